"""Calibrated probabilities: what they are made of, that they are nearer to frequencies, and what is refused."""

from __future__ import annotations

import json
import math
import types

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score

import confide
from confide.errors import FileError, ParameterError
from confide.files import read_document, sha256_of, write_document
from confide.models import files
from confide.report import verification


@pytest.fixture(scope="module")
def adult():
    return confide.datasets.load_adult()


def halves(adult):
    return (adult.X_test[:8000], adult.y_test[:8000]), (adult.X_test[8000:], adult.y_test[8000:])


@pytest.fixture(scope="module", params=["LinearSVC", "LogisticRegression"])
def released(request, adult):
    """A model, and an evaluation of it on half of the rows held out."""
    model = getattr(confide, request.param)(2.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    (X, y), _ = halves(adult)
    return model, confide.evaluate(model, X, y, budget=2.0, n_bins=50)


def binned(model, X):
    """The probability of the second class by the model, or its score as if it were log-odds."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)[:, 1]
    return 1.0 / (1.0 + np.exp(-model.decision_function(X)))


def test_probabilities_are_nearer_to_frequencies_than_scores(adult, released):
    """Those of a support vector machine by far, and they lie between 0 and 1 and add up to 1."""
    model, counts = released
    _, (X, y) = halves(adult)
    positive = np.asarray(y == model.classes_[1])
    calibrated = confide.CalibratedClassifier(model, counts)
    chances = calibrated.predict_proba(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert chances.min() > 0.0
    gain = log_loss(positive, binned(model, X)) - log_loss(positive, chances[:, 1])
    assert gain > (0.03 if isinstance(model, confide.LinearSVC) else -0.004)
    places = np.digitize(chances[:, 1], (0.25, 0.5, 0.75))
    for place in range(4):
        own = places == place
        assert abs(chances[own, 1].mean() - positive[own].mean()) < 0.04
    assert calibrated.score(X, y) > model.score(X, y) - 0.005
    assert calibrated.classes_.tolist() == model.classes_.tolist()
    assert (calibrated.predict(X) == model.classes_[(chances[:, 1] > 0.5).astype(int)]).all()


def test_the_map_is_made_of_released_counts_alone_and_never_falls(released):
    """Isotonic regression is the largest of the smallest means of neighbouring bins; between middles lie straight lines."""
    model, counts = released
    chances = confide.CalibratedClassifier(model, counts).chances_
    negative, positive = np.maximum(counts.counts, 0.0)
    weight = negative + positive + 1e-9
    shares = (positive + 0.5) / (negative + positive + 1.0)

    def mean(first, last):
        return np.average(shares[first : last + 1], weights=weight[first : last + 1])

    isotonic = [max(min(mean(a, b) for b in range(i, 50)) for a in range(i + 1)) for i in range(50)]
    np.testing.assert_allclose(chances, np.clip(isotonic, 0.001, 0.999), rtol=1e-9)
    assert (np.diff(chances) >= 0.0).all()


def test_the_class_that_the_schema_calls_positive_may_be_the_first():
    """Then the bins of the evaluation are those of the first class, and so are the chances."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (4000, 1))
    labels = np.where(rng.random(4000) < 1 / (1 + np.exp(-4 * X[:, 0])), "a", "b")
    target = {"column": "y", "negative": "b", "positive": "a"}
    schema = confide.Schema({"x0": {"low": -1, "high": 1}}, target)
    model = confide.LinearSVC(50.0, schema=schema).fit(X[:2000], labels[:2000])
    counts = confide.evaluate(model, X[2000:], labels[2000:], budget=50.0, n_bins=20)
    calibrated = confide.CalibratedClassifier(model, counts)
    assert '"a"' in counts.outcome
    far = calibrated.predict_proba(np.array([[0.9], [-0.9]]))
    assert calibrated.classes_.tolist() == ["a", "b"]
    assert far[0, 0] > 0.8 > 0.2 > far[1, 0]


def test_the_query_gives_the_same_probabilities(adult, released):
    duckdb = pytest.importorskip("duckdb")
    model, counts = released
    calibrated = confide.CalibratedClassifier(model, counts)
    people = adult.X_test.head(500)  # noqa: F841 - duckdb finds it by its name
    found = duckdb.sql(calibrated.to_sql("people", "duckdb")).df()
    np.testing.assert_allclose(found["calibrated"], calibrated.predict_proba(adult.X_test.head(500))[:, 1], atol=1e-9)
    assert calibrated.to_sql("people").startswith("--")


def test_the_query_takes_no_exponential_that_overflows():
    """PostgreSQL ends a query there. Scores of a margin have no least size."""
    import pandas as pd

    people, labels = pd.DataFrame({"x": np.linspace(0.0, 1.0, 400)}), np.repeat([0, 1], 200)
    schema = confide.Schema({"x": {"low": 0, "high": 1}}, {"column": "y", "negative": 0, "positive": 1})
    model = confide.LinearSVC(50.0, schema=schema).fit(people, labels)
    model.coef_ = model.coef_ * 1e5
    calibrated = confide.CalibratedClassifier(model, confide.evaluate(model, people, labels, budget=5.0))
    database = pytest.importorskip("duckdb").connect()
    database.create_function("exponential", math.exp, ["DOUBLE"], "DOUBLE")  # raises where it overflows
    database.register("people", people)
    query = calibrated.to_sql("people", "duckdb").replace("EXP(", "exponential(")
    found = database.sql(query).df()["calibrated"]
    assert model.decision_function(people).min() < -710.0
    np.testing.assert_allclose(found, calibrated.predict_proba(people)[:, 1], atol=1e-9)


def test_it_costs_nothing_and_states_both_releases(adult):
    """The evaluation is charged; a calibrated classifier of it is not."""
    ledger = confide.Ledger(limit=1.0)
    model = confide.LinearSVC(1.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    (X, y), (others, _) = halves(adult)
    counts = confide.evaluate(model, X, y, budget=1.0, n_bins=50, ledger=ledger)
    calibrated = confide.CalibratedClassifier(model, counts)
    calibrated.predict_proba(others)
    assert ledger.spent().epsilon == 1.0
    said = calibrated.statement()
    assert said.startswith("This model was released under")
    assert said == calibrated.guarantee_.statement()
    assert "For whoever has rows in both, both amounts add up." in said
    assert "counts of rows held out. Released under pure differential privacy with epsilon = 1" in said


def test_counts_of_another_model_or_of_none_are_refused(adult, released):
    """They would say something else than the model does; so would counts by group, and a model of three classes."""
    model, counts = released
    other = confide.LinearSVC(2.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    (X, y), _ = halves(adult)
    by_sex = confide.evaluate(model, X, y, budget=2.0, groups="sex")
    with pytest.raises(ParameterError, match="another model"):
        confide.CalibratedClassifier(other, counts).predict_proba(X)
    damaged = counts.to_dict() | {"counts": [[1, 2], [3]]}
    for wrong in (by_sex, None, damaged):
        with pytest.raises(ParameterError, match=r"confide\.evaluate g[ai]ve"):
            confide.CalibratedClassifier(model, wrong).predict_proba(X)
    with pytest.raises(ParameterError, match=r"must be what confide\.evaluate gives"):
        confide.CalibratedClassifier(model, {"counts": [[1], [2]]}).predict_proba(X)
    with pytest.raises(ParameterError, match="classifier of two classes"):
        confide.CalibratedClassifier("model", counts).classes_  # noqa: B018


def test_counts_that_were_changed_by_hand_are_refused(adult, released, tmp_path):
    """What is said does not follow from them then. A calibrated file has its checksum, and `verify` compares its rates."""
    model, counts = released
    document = json.loads(json.dumps(counts.to_dict()))
    changed = document | {"counts": [[document["counts"][0][0] + 50, *document["counts"][0][1:]], document["counts"][1]]}
    with pytest.raises(ParameterError, match=r'follows from its counts.*"counts"'):
        confide.CalibratedClassifier(model, changed).fit()
    with pytest.raises(ParameterError, match="It was changed"):
        confide.CalibratedClassifier(model, document).set_params(evaluation=changed).predict_proba(adult.X_test[:5])
    for path, written in (("one.json", document), ("two.json", changed)):
        confide.CalibratedClassifier(model, document).save(tmp_path / path)
        write_document(tmp_path / path, read_document(tmp_path / path) | {"evaluation": written}, overwrite=True)
    assert confide.load(tmp_path / "one.json").predict_proba(adult.X_test[:5]).shape == (5, 2)
    forged = confide.load(tmp_path / "two.json")
    findings = verification.verify(forged.model, calibrated=forged)
    assert any(finding.outcome == "failed" and "It was changed" in finding.sentence for finding in findings)
    with pytest.raises(ParameterError, match="It was changed"):
        forged.set_params(evaluation=dict(forged.evaluation)).classes_  # noqa: B018


def test_clones_share_what_was_released(adult, released):
    """So cross-validation scores the same probabilities in every fold, and a stack of estimators takes it as it is."""
    model, counts = released
    _, (X, y) = halves(adult)
    calibrated = confide.CalibratedClassifier(model, counts)
    made = clone(calibrated)
    assert made is not calibrated
    assert (made.fit(X, y).predict_proba(X) == calibrated.predict_proba(X)).all()
    assert cross_val_score(calibrated, X, y, cv=3).mean() == pytest.approx(calibrated.score(X, y), abs=0.001)


def test_the_target_of_a_frame_is_the_schemas(adult, released):
    model, counts = released
    _, (X, y) = halves(adult)
    frame = X.assign(**{adult.schema.target.column: y.to_numpy()})
    for scores in (model, confide.CalibratedClassifier(model, counts)):
        assert scores.score(frame) == scores.score(X, y)


def test_an_evaluation_in_json_serves_as_well(adult, released, tmp_path):
    """As a dict, and as the path of the file that `confide evaluate` writes."""
    model, counts = released
    written = json.dumps({"model": "model.json", **counts.to_dict(), "charge": None})
    (tmp_path / "evaluation.json").write_text(written, encoding="utf-8")
    own = confide.CalibratedClassifier(model, counts)
    for given in (json.loads(written), tmp_path / "evaluation.json"):
        read = confide.CalibratedClassifier(model, given)
        assert (read.chances_ == own.chances_).all()
        assert read.statement() == own.statement()


def test_it_is_saved_with_its_model_and_loaded(adult, released, tmp_path):
    """By the rules of all files: nothing is replaced unasked, and a part of another model, or an unknown one, is refused."""
    model, counts = released
    _, (X, _) = halves(adult)
    calibrated, path = confide.CalibratedClassifier(model, counts), tmp_path / "calibrated.json"
    calibrated.save(path)
    loaded = confide.load(path)
    assert isinstance(loaded, confide.CalibratedClassifier)
    assert (loaded.predict_proba(X) == calibrated.predict_proba(X)).all()
    assert loaded.statement() == calibrated.statement()
    loaded.save(path, overwrite=True)
    with pytest.raises(FileError, match="exists already"):
        calibrated.save(path)
    content = read_document(path)
    other = content["evaluation"] | {"model_checksums": ["0" * 64]}
    for wrong in ({"evaluation": other}, {"model": content["model"] | {"alpha": "1"}}, {"more": 1}, {"evaluation": None}):
        write_document(path, content | wrong, overwrite=True)
        with pytest.raises(FileError, match="parts"):
            confide.load(path)


def test_the_guarantee_is_void_where_one_of_both_releases_is(adult, released):
    model, counts = released
    (X, y), _ = halves(adult)
    assert confide.CalibratedClassifier(model, counts).guarantee_.void is None
    seeded = confide.evaluate(model, X, y, budget=2.0, random_state=1)
    void = confide.CalibratedClassifier(model, seeded)
    assert "random_state" in void.guarantee_.void
    assert "NOT PRIVATE" in void.statement().splitlines()[-1]
    for said in (void.statement(), void.to_sql().removeprefix("-- ")):
        assert said.startswith("NOT PRIVATE. The noise came from a fixed seed")
    assert void.to_python().count("NOT PRIVATE") == 2
    pytest.importorskip("onnx")
    facts = {entry.key: entry.value for entry in void.to_onnx().metadata_props}
    assert json.loads(facts["guarantee"])["void"] == void.guarantee_.void


def test_sentences_of_a_document_are_lines_of_their_own(released):
    """A line end would close the comment of a query, and what follows would be run as SQL; nor may a word be empty."""
    model, counts = released
    own, line = counts.to_dict(), "x\nDROP TABLE people;"
    no_noise = {"budget": {"kind": "pure", "epsilon": "inf"}, "void": None}
    for wrong in (
        {"void": line},
        {"void": ""},
        {"interrupted": [line]},
        {"neighbours": line},
        {"neighbours": None},
        no_noise,
    ):
        with pytest.raises(ParameterError, match=r"must be what confide\.evaluate gives"):
            confide.CalibratedClassifier(model, own | wrong).to_sql()


def test_other_programs_give_the_same_probabilities(adult, released, tmp_path):
    """An ONNX graph of both classes, a file of Python of the positive one; both state both releases."""
    model, counts = released
    _, (X, _) = halves(adult)
    calibrated = confide.CalibratedClassifier(model, counts)
    own = calibrated.predict_proba(X)
    module = types.ModuleType("scoring")
    text = calibrated.to_python()
    exec(compile(text, "scoring.py", "exec"), module.__dict__)  # noqa: S102 - it was just written
    found = [module.predict(row)["calibrated"] for row in X.head(200).to_dict("records")]
    np.testing.assert_allclose(found, own[:200, 1], atol=1e-9)
    runtime = pytest.importorskip("onnxruntime")
    graph = calibrated.to_onnx()
    session = runtime.InferenceSession(graph.SerializeToString())
    kinds = {column.name: np.float64 if column.is_number else object for column in adult.schema.columns}
    given = {name: X[[name]].to_numpy(dtype=kind, na_value="" if kind is object else np.nan) for name, kind in kinds.items()}
    (chances,) = session.run(["calibrated"], given)
    np.testing.assert_allclose(chances, own, atol=1e-9)
    statement = {fact.key: fact.value for fact in graph.metadata_props}["statement"]
    for said in (text, statement, calibrated.to_sql()):
        assert "counts of rows held out. Released under pure differential privacy with epsilon = 2" in said


def test_its_report_is_that_of_the_model_with_the_rates(adult, released, tmp_path):
    """It says that the probabilities follow from them, before their price. The model's own report does not."""
    model, counts = released
    said = "Calibrated probabilities of this model follow from the counts behind these rates. The rates cost epsilon = 2"
    for reported, given in ((confide.CalibratedClassifier(model, counts), {}), (model, {"evaluation": counts})):
        reported.report(tmp_path / "page.html", overwrite=True, **given)
        assert (said in (tmp_path / "page.html").read_text(encoding="utf-8")) == (reported is not model)
    confide.CalibratedClassifier(model, counts).report(tmp_path / "card.md", analyst="A. Nalyst")
    card = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert f"{counts.auc.value:.3f}" in card
    assert "A. Nalyst" in card


def upgraded(monkeypatch):
    """Let a version of another number write and read, whose files have a parameter more."""
    for module in ("_version", "models.files", "estimators.calibration", "report.verification"):
        monkeypatch.setattr(f"confide.{module}.__version__", "9.9.9")
    written = files.document_of

    def with_more(name, parameters, released):
        return written(name, dict(parameters) | {"a_later_one": 0.5}, released)

    monkeypatch.setattr("confide.estimators.linear_model.document_of", with_more)


def test_files_outlive_an_upgrade(adult, tmp_path, monkeypatch):
    """Model, evaluation and calibrated file of an earlier version are read by a later one, and saved again to the bit."""
    (X, y), (others, _) = halves(adult)
    ledger = confide.Ledger(limit=4.0)
    model = confide.LogisticRegression(2.0, schema=adult.schema, ledger=ledger).fit(adult.X_train, adult.y_train)
    evaluation = confide.evaluate(model, X, y, budget=2.0, n_bins=50)
    model.save(tmp_path / "model.json")
    (tmp_path / "rates.json").write_text(json.dumps(evaluation.to_dict()), encoding="utf-8")
    made = confide.CalibratedClassifier(model, evaluation)
    made.save(tmp_path / "calibrated.json")
    expected = made.predict_proba(others[:50])
    upgraded(monkeypatch)
    read, calibrated = confide.load(tmp_path / "model.json"), confide.load(tmp_path / "calibrated.json")
    again = confide.CalibratedClassifier(read, tmp_path / "rates.json")
    for one in (again, calibrated):
        np.testing.assert_array_equal(one.predict_proba(others[:50]), expected)
    read.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "model.json").read_bytes()
    assert verification.failures_of_plan(read) == ()
    said = [
        finding.sentence for finding in verification.verify(read, ledger=ledger, sha256=sha256_of(tmp_path / "again.json"))
    ]
    assert "Which version wrote the file: it says confide 0.1.0." in said
    assert any("names the checksum of this model's file" in sentence for sentence in said)
    read.coef_ = read.coef_ + 2.0 ** round(math.log2(abs(read.coef_).max()))
    with pytest.raises(ParameterError, match="another model"):
        again.predict_proba(others)
