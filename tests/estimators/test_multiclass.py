"""Three classes and more: what users see of softmax and one-vs-rest."""

from __future__ import annotations

import math
import threading
import warnings
from multiprocessing import Pipe

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression as Plain

import confide
from confide import KernelSVC, Ledger, LinearSVC, LogisticRegression, Schema
from confide.data.federated import FederatedRows
from confide.data.partitions import NumericReading
from confide.erm.row_bounds import BallBound
from confide.errors import ConfideError, InputError, ParameterError, SchemaError
from confide.estimators.parties import take_part
from confide.planning.advice import verdict_of
from tests.estimators.conventions import failed_checks
from tests.estimators.several_classes import MODELS, X, Y, models, rows_and_classes


@pytest.mark.parametrize("n_rows", [3000, 300])
def test_without_privacy_softmax_is_scikit_learns_multinomial_regression(n_rows):
    """The same weights on the clipped rows with the constant as a column, within 10^-7; probabilities too."""
    rows, classes = X[:n_rows], Y[:n_rows]
    for alpha in (1e-3, 1e-1):
        model = LogisticRegression(math.inf, alpha=alpha, row_norm=0.8, intercept_scaling=0.5).fit(rows, classes)
        clipped = np.hstack([BallBound(0.8).clip(rows), np.full((n_rows, 1), 0.5)])
        plain = Plain(C=1.0 / (alpha * n_rows), fit_intercept=False, tol=1e-13, max_iter=5000, solver="newton-cg")
        plain.fit(clipped, classes)
        np.testing.assert_allclose(model.coef_, plain.coef_[:, :-1], atol=1e-7)
        np.testing.assert_allclose(model.intercept_, 0.5 * plain.coef_[:, -1], atol=1e-7)
        np.testing.assert_allclose(model.predict_proba(rows), plain.predict_proba(clipped), atol=1e-7)


def test_above_600_weights_the_same_minimum_is_found_without_a_hessian():
    """70 columns, 10 classes: L-BFGS; gradients of the mean loss by the formula are below 10^-9 there."""
    rows, classes = rows_and_classes(2000, 70, 10, seed=1)
    model = LogisticRegression(math.inf, alpha=0.05, fit_intercept=False).fit(rows, classes)
    clipped = BallBound(1.0).clip(rows)
    gradient = (softmax(clipped @ model.coef_.T, axis=1) - np.eye(10)[classes]).T @ clipped / 2000 + 0.05 * model.coef_
    assert np.abs(gradient).max() < 1e-9


def test_without_privacy_one_vs_rest_is_one_two_class_model_a_class():
    """Each class's weights are those of the model of that class against all others."""
    for make in (LogisticRegression, LinearSVC):
        extra = {"multiclass": "one-vs-rest"} if make is LogisticRegression else {}
        joint = make(math.inf, alpha=0.01, **extra).fit(X, Y)
        for label in range(4):
            alone = make(math.inf, alpha=0.01).fit(X, (label == Y).astype(int))
            np.testing.assert_allclose(joint.coef_[label], alone.coef_[0], atol=1e-6)
            assert joint.intercept_[label] == pytest.approx(alone.intercept_[0], abs=1e-6)


def test_probabilities_are_those_of_the_scores():
    """Softmax of them; with one-vs-rest the sigmoid of each over their sum. Rows add up to 1, logarithms agree."""
    for multiclass in ("softmax", "one-vs-rest"):
        model = LogisticRegression(1.0, multiclass=multiclass, random_state=0).fit(X, Y)
        scores, found = model.decision_function(X), model.predict_proba(X)
        each = expit(scores)
        expected = softmax(scores, axis=1) if multiclass == "softmax" else each / each.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(model.predict_log_proba(X), np.log(expected), rtol=1e-9, atol=1e-12)


def test_two_classes_are_fitted_as_ever_whatever_is_asked_for_more():
    """One vector of weights, one score; the parameter changes nothing."""
    fits = [LogisticRegression(1.0, multiclass=kind, random_state=3).fit(X, Y > 1) for kind in ("softmax", "one-vs-rest")]
    assert fits[0].coef_.shape == (1, 4)
    assert fits[0].decision_function(X).shape == (3000,)
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].plan(3000, 4).problem.loss.constants.name == "logistic"


def test_the_ledger_is_charged_once_and_the_same_for_any_number_of_classes():
    """One event of the budget, for 2, 4 and 10 classes."""
    for k in (2, 4, 10):
        ledger = Ledger(limit=1.0)
        LogisticRegression(0.3, ledger=ledger).fit(X, np.arange(3000) % k)
        LinearSVC(0.3, ledger=ledger).fit(X, np.arange(3000) % k)
        assert len(ledger.entries()) == 2
        assert ledger.spent().epsilon == pytest.approx(0.6)


def test_classes_that_are_not_declared_are_public_and_the_guarantee_says_so():
    """The labels present; declared ones may be absent from the rows."""
    present = LogisticRegression(1.0).fit(X, Y)
    assert "The labels 0, 1, 2 and 3 were not declared: they were taken from the rows" in present.guarantee_.statement()
    declared = LogisticRegression(1.0, classes=range(6)).fit(X, Y)
    assert declared.coef_.shape == (6, 4)
    assert declared.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    with pytest.raises(InputError, match="outside the declared"):
        LogisticRegression(1.0, classes=[0, 1, 2]).fit(X, Y)


def test_too_many_classes_numbers_that_are_none_and_the_hinge_are_refused_before_a_charge():
    """More than 100 labels, numbers with fractions, and the plain hinge; no label is shown."""
    ledger = Ledger(limit=1.0)
    for model, labels, words in (
        (LogisticRegression(1.0, ledger=ledger), np.arange(3000) % 101 + 98765, "more than 100"),
        (LogisticRegression(1.0, ledger=ledger), X[:, 0] * 98765.0, "continuous"),
        (LinearSVC(1.0, loss="hinge", ledger=ledger), Y, "Only binary"),
        (LogisticRegression(1.0, multiclass="ovr", ledger=ledger), Y, "multiclass"),
        (LogisticRegression(1.0, class_weight={0: 1.0, 1: 2.0}, ledger=ledger), Y, "the classes"),
        (LogisticRegression(1.0, classes=[0, 1, 1], ledger=ledger), Y, "different"),
    ):
        with pytest.raises(ConfideError, match=words) as caught:
            model.fit(X, labels)
        assert "98765" not in str(caught.value)
    assert ledger.spent().epsilon == 0.0


@models
def test_weights_of_rows_and_classes_count_as_repeated_rows(make):
    """Without privacy: whole weights of rows or classes give the fit of the rows so often, at the same sum form."""
    counts = np.array([1, 2, 1, 3])[Y]
    repeated = np.repeat(np.arange(3000), counts)
    alpha = 0.02
    reference = make(math.inf, alpha=alpha * 3000 / len(repeated)).fit(X[repeated], Y[repeated])
    by_class = make(math.inf, alpha=alpha, class_weight={0: 1, 1: 2, 2: 1, 3: 3}).fit(X, Y)
    by_row = make(math.inf, alpha=alpha, max_sample_weight=3.0).fit(X, Y, sample_weight=counts.astype(float))
    for model in (by_class, by_row):
        np.testing.assert_allclose(model.coef_, reference.coef_, atol=2e-6)


@pytest.mark.parametrize(
    "make", [*MODELS, lambda b, **k: KernelSVC(b, n_features=32, **k)], ids=["softmax", "ovr", "svm", "kernel"]
)
def test_a_saved_model_predicts_the_same(make, tmp_path):
    """Scores bit for bit, classes and parameters after a round trip."""
    model = make(1.0).fit(X, Y)
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    np.testing.assert_array_equal(loaded.classes_, model.classes_)
    if isinstance(model, LogisticRegression):
        assert loaded.multiclass == model.multiclass
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


FRAME = pd.DataFrame({"size": np.clip(X[:, 0], -1, 1), "kind": np.where(X[:, 1] > 0, "a", "b")})
SCHEMA = {
    "target": {"column": "species", "classes": ["gentoo", "adelie", "chinstrap"]},
    "columns": {"size": {"low": -1, "high": 1}, "kind": {"categories": ["a", "b"]}},
}
SPECIES = np.array(["adelie", "chinstrap", "gentoo"])[Y % 3]


def test_a_schema_declares_the_classes(tmp_path):
    """Through TOML and back; a label outside is refused, and `classes` beside it; a round trip of the model keeps it."""
    schema = Schema.from_dict(SCHEMA)
    (tmp_path / "schema.toml").write_text(schema.to_toml())
    assert Schema.from_toml(tmp_path / "schema.toml") == schema
    assert schema.to_dict()["target"] == SCHEMA["target"]
    assert "target species: gentoo or adelie or chinstrap" in str(schema)
    model = LogisticRegression(1.0, schema=schema).fit(FRAME, SPECIES)
    assert model.classes_.tolist() == ["adelie", "chinstrap", "gentoo"]
    assert model.plan(3000).problem.loss.constants.n_outputs == 3
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict_proba(FRAME), model.predict_proba(FRAME))
    with pytest.raises(InputError, match="none of"):
        LogisticRegression(1.0, schema=schema).fit(FRAME, np.where(SPECIES == "adelie", "emperor", SPECIES))
    with pytest.raises(ParameterError, match="declares"):
        LogisticRegression(1.0, schema=schema, classes=[0, 1, 2]).fit(FRAME, SPECIES)


def test_labels_of_a_schema_are_read_in_canonical_form():
    """1 in the schema is 1.0 and "1" in a table."""
    schema = Schema.from_dict(SCHEMA | {"target": {"column": "grade", "classes": [1, 2, 3]}})
    fits = [
        LogisticRegression(1.0, schema=schema, random_state=1).fit(FRAME, labels)
        for labels in (Y % 3 + 1, (Y % 3 + 1).astype(float), (Y % 3 + 1).astype(str))
    ]
    for model in fits[1:]:
        np.testing.assert_array_equal(model.coef_, fits[0].coef_)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ({"classes": ["a", "b"]}, "three"),
        ({"classes": ["a", "b", "a"]}, "twice"),
        ({"classes": ["a", "b", 3]}, "one type"),
        ({"classes": "abc"}, "list"),
        ({"classes": ["a", "b", None]}, "classes"),
        ({"classes": ["a", "b", "c"], "positive": "a"}, "not both"),
        ({"negative": "a"}, "missing"),
    ],
    ids=str,
)
def test_targets_of_classes_that_contradict_themselves_are_refused(target, words):
    """A SchemaError says what is wrong."""
    with pytest.raises(SchemaError, match=words):
        Schema.from_dict(SCHEMA | {"target": {"column": "species"} | target})


@models
def test_rows_on_disk_and_at_several_parties_give_the_weights_of_rows_in_memory(make, tmp_path):
    """A Parquet file read in each pass, NumPy files, and two parties; class weights too."""
    schema = Schema.from_dict(SCHEMA)
    table = FRAME.assign(species=SPECIES)
    table.to_parquet(tmp_path / "rows.parquet")
    options = {"random_state": 2, "class_weight": {"adelie": 1.0, "chinstrap": 0.5, "gentoo": 2.0}}
    memory = make(1.0, schema=schema, **options).fit(FRAME, SPECIES)
    disk = make(1.0, schema=schema, **options).fit(confide.open_rows(tmp_path / "rows.parquet", schema))
    np.testing.assert_array_equal(disk.coef_, memory.coef_)
    assert disk.classes_.tolist() == memory.classes_.tolist()

    pipes, threads = [Pipe() for _ in range(2)], []
    for (_, theirs), part in zip(pipes, (table[:1000], table[1000:]), strict=True):
        party = make(1.0, schema=schema, **options)
        threads.append(threading.Thread(target=take_part, args=(theirs, party, part, part["species"])))
        threads[-1].start()
    parties = make(1.0, schema=schema, **options).fit(FederatedRows(schema, [ours for ours, _ in pipes]))
    for thread in threads:
        thread.join(60)
    np.testing.assert_array_equal(parties.coef_, memory.coef_)

    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    arrays = make(1.0, random_state=2).fit(confide.open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy"))
    np.testing.assert_array_equal(arrays.coef_, make(1.0, random_state=2).fit(X, Y).coef_)


def test_labels_outside_the_classes_of_a_file_are_refused_before_a_charge(tmp_path):
    """One of 3,000; after the check nothing is refused."""
    ledger, schema = Ledger(limit=1.0), Schema.from_dict(SCHEMA)
    table = FRAME.assign(species=np.where(np.arange(3000) == 2500, "emperor", SPECIES))
    table.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="none of"):
        LogisticRegression(1.0, ledger=ledger).fit(confide.open_rows(tmp_path / "rows.parquet", schema))
    assert ledger.spent().epsilon == 0.0


def test_numeric_partitions_read_positions_of_classes():
    """Refused where a label is none of them; once past refusing it counts as the first."""
    reading = NumericReading(2, ("a", "b", "c"), (1.0, 2.0, 3.0))
    rows = np.zeros((4, 2))
    piece = reading.piece((rows, np.array(["c", "a", "b", "a"])), refuse=True)
    assert piece.labels.tolist() == [2, 0, 1, 0]
    ((_, labels, counts),) = reading.source(piece).counted_blocks()
    assert (labels.tolist(), counts.tolist()) == ([2, 0, 1, 0], [3.0, 1.0, 2.0, 1.0])
    with pytest.raises(InputError, match="outside the declared"):
        reading.piece((rows, np.array(["c", "a", "d", "a"])), refuse=True)
    assert reading.piece((rows, np.array(["c", "a", "d", "b"])), refuse=False).labels.tolist() == [2, 0, 0, 1]


def test_a_private_search_chooses_among_models_of_several_classes():
    """The score is accuracy; the chosen model predicts all classes."""
    search = confide.PrivateSearchCV(LogisticRegression(classes=range(4)), {"alpha": [0.01, 1.0]}, budget=4.0)
    search.fit(X, Y)
    assert search.predict_proba(X).shape == (3000, 4)
    assert search.score(X, Y) > 0.4


def test_own_losses_are_for_two_classes_and_named_ones_for_more():
    """Of three classes a loss by its name is one-vs-rest."""
    named = confide.ERMClassifier(1.0, loss="huber_hinge", random_state=1).fit(X, Y)
    np.testing.assert_array_equal(named.coef_, LinearSVC(1.0, random_state=1).fit(X, Y).coef_)

    class Own:
        """Half the logistic loss."""

        lipschitz, smoothness = 0.5, 0.125

        def value(self, margin):
            return 0.5 * np.logaddexp(0.0, -margin)

        def derivative(self, margin):
            return -0.5 * expit(-margin)

        def second_derivative(self, margin):
            return 0.5 * expit(-margin) * expit(margin)

    confide.ERMClassifier(1.0, loss=Own()).fit(X, Y > 1)
    with pytest.raises(ParameterError, match="Only binary"):
        confide.ERMClassifier(1.0, loss=Own()).fit(X, Y)


KERNEL = KernelSVC(1e8, length_scale=1.0, n_features=64)


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [LogisticRegression(1e6, row_norm=1e3), LogisticRegression(1e6, row_norm=1e3, multiclass="one-vs-rest"), KERNEL],
    ids=["softmax", "one-vs-rest", "kernel"],
)
def test_scikit_learns_checks_pass(model):
    """As a classifier of several classes, which its tags say it is."""
    assert model.__sklearn_tags__().classifier_tags.multi_class
    assert failed_checks(model) == ""


def test_a_search_and_a_verdict_tell_of_many_classes_against_all_others():
    """Once, however many candidates there are; in the plan of the search too."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(400, 2))
    model = confide.LinearSVC(1.0, row_norm=1.0, classes=list(range(20)))
    search = confide.PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, budget=1.0)
    with pytest.warns(confide.AccuracyWarning, match="Each of 20 classes is compared") as told:
        search.fit(rows, np.arange(400) % 20)
    assert sum("Each of 20 classes" in str(each.message) for each in told) == 1
    assert str(search.plan_).count("Each of 20 classes") == 1
    assert "Each of 20 classes" in str(verdict_of(model, 100_000, 2, with_forecast=False))


@pytest.mark.parametrize(
    ("model", "n_classes", "is_told"),
    [
        (confide.LinearSVC(1.0, row_norm=1.0), 20, True),
        (confide.LinearSVC(1.0, row_norm=1.0), 19, False),
        (confide.KernelSVC(1.0, length_scale=1.0, n_features=4), 30, True),
        (confide.LogisticRegression(1.0, row_norm=1.0, multiclass="one-vs-rest"), 20, True),
        (confide.LogisticRegression(1.0, row_norm=1.0), 20, False),
        (confide.LinearSVC(float("inf"), row_norm=1.0), 20, False),
    ],
)
def test_many_classes_against_all_others_are_told(model, n_classes, is_told):
    """Before the charge and in the plan, where noise is added; softmax compares all classes at once."""
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, size=(60, 2))
    model.set_params(classes=list(range(n_classes)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model.fit(rows, np.arange(60) % n_classes)
    messages = [str(each.message) for each in told if each.category is confide.AccuracyWarning]
    assert [f"Each of {n_classes} classes is compared with all others" in message for message in messages] == [
        True
    ] * is_told
    plan = model.plan(100_000, 2)
    sentence = f"Each of {n_classes} classes is compared with all others"
    assert (sentence in str(plan), sentence in str(plan.to_dict())) == (is_told, is_told)
