"""The private search: its split, its one charge, what it refuses, what it releases, and what it says."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import clone, is_classifier
from sklearn.linear_model import LogisticRegression as ScikitLogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import confide
from confide import (
    ZCDP,
    ApproxDP,
    BoxBound,
    BudgetExceeded,
    ConfideError,
    ERMRegressor,
    GroupBound,
    InputError,
    KernelSVC,
    Ledger,
    LinearSVC,
    LogisticRegression,
    ParameterError,
    PrivateSearchCV,
    PureDP,
    Ridge,
    Schema,
    SchemaEncoder,
)
from confide.data.arrays import MemorySource
from confide.data.federated import FederatedRows
from confide.estimators.linear_model import released_model
from confide.intake.arrays import rows_to_score
from confide.models.scores import LinearModel
from confide.privacy.budgets import budget_of_row
from confide.privacy.certificate import planned_tolerance
from confide.privacy.mechanism import log_failure
from confide.privacy.noise import Entropy
from confide.training.charge import divided
from tests.estimators.conventions import failed_checks

GRID = {"alpha": [1e-2, 1.0, 100.0]}
METHODS = ("permute-and-flip", "exponential", "repeated")


@pytest.fixture(scope="module")
def rows():
    """3,000 rows, three columns, labels by the first two."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(3000, 3))
    return X, (X[:, 0] > X[:, 1]).astype(int)


def search(budget=2.0, estimator=None, grid=GRID, **parameters):
    """A search that is quick."""
    parameters = {"method": "permute-and-flip", "expected_tries": 4} | parameters
    return PrivateSearchCV(estimator or LogisticRegression(classes=[0, 1]), grid, budget=budget, **parameters)


def test_words_that_repeat_are_drawn_anew():
    """Positions would break the tie, and the order would not be uniform."""
    words = iter([np.array([5, 1, 5], dtype="<u8").tobytes(), np.array([5, 1, 7], dtype="<u8").tobytes()])
    assert Entropy(lambda n: next(words), is_secret=False).permutation(3).tolist() == [1, 0, 2]


@pytest.mark.parametrize("method", METHODS)
def test_each_candidate_sees_its_part_alone(rows, method, monkeypatch):
    """Trainings use the rows that are drawn for them, and nobody trains on rows held out."""
    X, y = rows
    X = np.column_stack([X[:, :2], np.arange(3000) / 6001.0])  # the last column tells the position
    seen, original = [], MemorySource.sum_over_rows

    def watched(source, row_sum, weights):
        seen.append(tuple(np.rint(source.blocks.rows[:, 2] * 6001.0).astype(int)))
        return original(source, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", watched)
    model = search(method=method, random_state=4).fit(X, y)
    parts = {tuple(part) for part in divided(model.plan_.part_sizes, Entropy.seeded(4))[:-1]}
    assert set(seen) == parts
    assert len(parts) == (1 if method == "repeated" else 3)
    assert len(model.plan_.part_sizes) == len(parts) + 1


@pytest.mark.parametrize("budget", [PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)], ids=lambda budget: budget.kind)
@pytest.mark.parametrize("method", METHODS)
def test_a_search_is_one_charge(rows, method, budget):
    """Of the whole budget, whatever was trained; the guarantee, the plan and the saved model say the same."""
    ledger = Ledger(limit=budget)
    model = search(budget, method=method, ledger=ledger).fit(*rows)
    assert len(ledger.entries()) == 1
    assert ledger.spent() == budget
    assert model.guarantee_.budget == budget == model.plan_.event.budget
    assert model.guarantee_.void is None
    assert model.best_estimator_.guarantee_ == model.guarantee_
    assert f"{budget}" in str(model.plan_)
    assert "3,000" in model.guarantee_.statement()
    assert "whole search" in model.guarantee_.statement()
    with pytest.raises(BudgetExceeded):
        model.fit(*rows)
    with pytest.raises(BudgetExceeded):
        model.best_estimator_.fit(*rows)


@pytest.mark.parametrize("method", METHODS)
def test_the_charge_comes_before_a_row_is_used(rows, method, monkeypatch):
    """Nothing sums over rows or predicts when the ledger refuses; and when it does not, the charge is there before."""
    ledger, charged = Ledger(limit=3.0), []
    original = MemorySource.sum_over_rows

    def watched(*arguments):
        charged.append(ledger.spent().epsilon)
        return original(*arguments)

    monkeypatch.setattr(MemorySource, "sum_over_rows", watched)
    real = LinearModel.scores_alone
    monkeypatch.setattr(LinearModel, "scores_alone", lambda *a: charged.append(ledger.spent().epsilon) or real(*a))
    search(method=method, ledger=ledger).fit(*rows)
    assert set(charged) == {2.0}
    charged.clear()
    with pytest.raises(BudgetExceeded):
        search(method=method, ledger=ledger).fit(*rows)
    assert charged == []
    assert ledger.spent().epsilon == 2.0


def test_a_batch_may_be_planned_for_a_search(rows):
    """`ledger.plan` takes the plan of a search."""
    ledger = Ledger(limit=2.0)
    batch = ledger.plan([search().plan(3000, 3)])
    search(ledger=batch).fit(*rows)
    with pytest.raises(BudgetExceeded):
        search(ledger=batch).fit(*rows)


@pytest.mark.parametrize("persons", [1, 3])
@pytest.mark.parametrize("budget", [PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_what_the_parts_may_cost(budget, persons):
    """Trained once: the whole budget for each candidate, and the row's for choice and score. Repeated: see E.8."""
    estimator = LogisticRegression(classes=[0, 1], max_rows_per_person=persons)
    row = budget_of_row(budget, persons)
    once = search(budget, estimator, score_share=0.25).plan(3000, 3)
    assert {plan.budget for plan in once.plans} == {budget}
    assert {plan.problem.rows_per_person for plan in once.plans} == {persons}
    assert [plan.problem.n_rows_low for plan in once.plans] == [750] * 3
    assert once.part_sizes == (750,) * 4
    assert once.event.rows_per_person == persons
    if isinstance(row, ZCDP):
        choice, score = PureDP(once.selection.epsilon).to_zcdp().rho, once.score_noise.rho
        assert 0.74 * row.rho < choice <= 0.75 * row.rho * (1 + 1e-9)
        assert 0.24 * row.rho < score <= 0.25 * row.rho
    else:
        assert once.selection.epsilon == pytest.approx(0.75 * row.epsilon, rel=1e-9)
        assert once.score_noise.epsilon == pytest.approx(0.25 * row.epsilon, rel=1e-9)
        assert 1.0 <= once.score_noise.scale * 0.25 * row.epsilon <= 1.01
        assert once.selection.epsilon + once.score_noise.epsilon <= row.epsilon
    repeated = search(budget, estimator, method="repeated").plan(3000, 3)
    (base,) = {plan.budget for plan in repeated.plans}
    assert repeated.part_sizes == (2700, 300)
    assert repeated.repetition.mean == pytest.approx(4.0, rel=1e-4)
    of_row = budget_of_row(base, persons)
    if isinstance(row, ZCDP):
        joint = PureDP(2.5 * of_row.epsilon).to_zcdp().rho
        assert 0.999 * row.rho < joint <= row.rho
    else:
        assert 0.999 * row.epsilon < 2.5 * of_row.epsilon <= row.epsilon
    assert repeated.score_noise.epsilon == of_row.epsilon


@pytest.mark.parametrize("budget", [PureDP(2.0), PureDP(150.0), ApproxDP(40.0, 1e-6), ZCDP(0.5)], ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_what_trainings_set_aside_adds_up_to_no_more_than_of_one_fit(budget, method):
    """(1 + exp(epsilon)) p, times the number of trainings in the mean, stays below 2^-199: epsilon is that of the search."""
    plan = search(budget, grid={"alpha": [1e-2, 1e-1]}, method=method, expected_tries=1000.0).plan(3000, 3)
    trainings = 2.0 if plan.repetition is None else plan.repetition.mean
    epsilon = 0.0 if isinstance(budget, ZCDP) else budget.epsilon
    for candidate in plan.plans:
        total = log_failure(candidate.budget, candidate.problem) + math.log(trainings) + math.log1p(math.exp(epsilon))
        assert total <= -199.0 * math.log(2.0)
        assert candidate.radius >= candidate.tolerance / candidate.l2
        # The planned tolerance allows for a draw that is as long as that.
        if candidate.noise is not None and candidate.mechanism == "objective":
            needed = candidate.noise.bound(log_failure(candidate.budget, candidate.problem))
            rounding = candidate.problem.rounding(candidate.l2)
            assert candidate.tolerance == planned_tolerance(rounding, needed)


def test_gaussian_tries_are_taken_where_they_have_less_noise():
    """Many columns and a large delta: tries are concentrated, and their account stays within the budget of a row."""
    for persons in (1, 2):
        budget = ApproxDP(20.0, 1e-3)
        estimator = LogisticRegression(classes=[0, 1], max_rows_per_person=persons)
        plan = search(budget, estimator, grid={"alpha": [1e-2, 1e-1]}, method="repeated").plan(100_000, 3000)
        row, base = budget_of_row(budget, persons), plan.plans[0].budget
        assert isinstance(base, ZCDP)
        rho = budget_of_row(base, persons).rho
        assert 0.999 * row.epsilon < plan.repetition._epsilon(rho, row.delta) <= row.epsilon
        assert plan.score_noise.rho <= rho


def test_auto_takes_the_method_with_less_noise():
    """Six candidates under a pure budget: repeated. Two under a concentrated one: once, by the exponential mechanism."""
    six, two = {"alpha": [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]}, {"alpha": [0.01, 0.1]}
    assert search(grid=six, method="auto").plan(3000, 3).method == "repeated"
    assert search(ZCDP(0.5), grid=two, method="auto").plan(3000, 100).method == "exponential"
    assert search(grid={"alpha": [10.0, 20.0]}, method="auto").plan(2, 3).method == "repeated"


def test_a_plan_names_candidates_as_the_grid_states_them():
    """Estimators by their classes, parameters by their values, and long values in part."""
    lines, curves = confide.HuberRegressor(target_bound=1.0), confide.AdditiveRegressor(bounds=(-0.5, 0.5), target_bound=1.0)
    grid = [{"model": [lines]}, {"model": [curves], "model__knots": [3, {f"x{place}": 2 for place in range(3)}]}]
    plan = PrivateSearchCV(Pipeline([("model", lines)]), grid, budget=2.0).plan(3000, 3)
    assert plan.names[:2] == ("HuberRegressor", "AdditiveRegressor, knots 3")
    assert "candidate 1   AdditiveRegressor, knots 3: objective perturbation, alpha" in str(plan)
    assert len(plan.names[2]) < 80
    assert search(grid={}).plan(3000, 3).names == ("as it is",)


@pytest.mark.parametrize("method", METHODS)
def test_ridges_that_the_proof_makes_equal_are_refused_before_a_charge(rows, method):
    """They would be one candidate twice. Where something else differs too, or one of them is not raised, all is well."""
    X, y = rows
    ledger = Ledger(limit=2.0)
    alike = search(1.0, grid={"alpha": [1e-9, 0.5, 1e-8]}, method=method, ledger=ledger)
    with pytest.raises(ParameterError, match=r"candidates 0 and 2 of the grid differ in alpha alone, and the proof raises"):
        alike.fit(X, y)
    with pytest.raises(ParameterError, match="Take one of them out"):
        alike.plan(3000, X.shape[1])
    assert ledger.spent().epsilon == 0.0
    others = {"alpha": [1e-9, 0.5], "intercept_scaling": [0.5, 1.0]}
    assert len(search(1.0, grid=others, method=method).plan(3000, X.shape[1]).plans) == 4


@pytest.mark.parametrize("method", METHODS)
def test_the_best_candidate_is_found(rows, method):
    """At a large budget; ridges of 100 leave no better than chance. All that scikit-learn's users expect is there."""
    X, y = rows
    # One search in fifty tries nothing but ridges of 100.
    model = search(50.0, method=method, expected_tries=30, random_state=0).fit(X, y)
    assert model.best_params_ == {"alpha": GRID["alpha"][model.best_index_]}
    assert model.best_params_["alpha"] < 100.0
    assert model.score(X, y) > 0.9
    assert np.array_equal(model.predict(X), model.best_estimator_.predict(X))
    assert np.array_equal(model.decision_function(X), model.best_estimator_.decision_function(X))
    assert model.predict_proba(X).shape == model.predict_log_proba(X).shape == (3000, 2)
    assert model.classes_.tolist() == [0, 1]
    assert is_classifier(model)
    assert not hasattr(model, "cv_results_")
    assert hasattr(model, "best_score_") == (method == "repeated")


def test_choices_go_by_mistakes_on_the_rows_held_out(rows):
    """At a tiny budget of choice all candidates are chosen; at a large one the same one always."""
    X, y = rows
    picks = {search(1e4, random_state=seed).fit(X, y).best_index_ for seed in range(5)}
    assert 2 not in picks
    large = {"alpha": [1e4, 1e5, 1e6]}  # smaller ones are raised to one value at this budget
    assert len({search(1e-4, grid=large, random_state=seed).fit(X, y).best_index_ for seed in range(12)}) == 3


@pytest.mark.parametrize("method", METHODS)
def test_the_released_score_is_near_the_truth(rows, method):
    """It is that of the winner on the rows held out, with noise of the deviation that is told."""
    X, y = rows
    model = search(4.0, method=method, score_share=0.5, random_state=6).fit(X, y)
    held_out = divided(model.plan_.part_sizes, Entropy.seeded(6))[-1]
    truth = model.score(X[held_out], y[held_out])
    noise = model.plan_.score_noise
    assert model.best_score_deviation_ == noise.deviation / len(held_out)
    assert abs(model.best_score_ - truth) < 14.0 * model.best_score_deviation_


def test_noise_on_the_score_is_as_large_as_promised(rows):
    """Over 200 searches of one candidate, known by its row of the ledger: standard deviation within 30%."""
    X, y = rows[0][:40], rows[1][:40]
    errors = []
    for seed in range(200):
        model = search(2.0, grid={"alpha": [1.0]}, score_share=0.5, random_state=seed).fit(X, y)
        held_out = divided(model.plan_.part_sizes, Entropy.seeded(seed))[-1]
        errors.append((model.best_score_ - model.score(X[held_out], y[held_out])) * len(held_out))
    # epsilon 1, sensitivity 1: sqrt(2)
    assert 0.75 * math.sqrt(2.0) < np.std(errors) < 1.3 * math.sqrt(2.0)
    assert abs(np.mean(errors)) < 0.5


FRAME = {"age": np.linspace(0, 100, 600), "job": ["a", "b", "c"] * 200}
SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 100}, "job": {"categories": ["a", "b", "c"]}},
    target={"column": "income", "negative": "low", "positive": "high"},
)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize("method", METHODS)
def test_frames_with_a_schema(kind, method, tmp_path):
    """Divided like arrays; the saved model predicts the same and carries the guarantee of the search."""
    frame, y = kind(FRAME), ["low" if age < 50 else "high" for age in FRAME["age"]]
    model = search(50.0, LogisticRegression(schema=SCHEMA), method=method).fit(frame, y)
    assert model.classes_.tolist() == ["high", "low"] or model.classes_.tolist() == ["low", "high"]
    assert model.feature_names_in_.tolist() == ["age", "job"]
    model.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    assert loaded.guarantee_ == model.guarantee_
    text = json.dumps(json.loads((tmp_path / "model.json").read_text()))
    assert "mistakes" not in text


@pytest.mark.parametrize("make", [list, pd.DataFrame, scipy.sparse.csr_array, np.float32], ids=lambda make: make.__name__)
def test_rows_without_a_schema(rows, make):
    """Lists, frames of numbers, sparse rows and small floats; weights of rows go to the parts they belong to."""
    X, y = rows
    X = X.tolist() if make is list else make(X, columns=list("abc")) if make is pd.DataFrame else make(X)
    model = search(50.0).fit(X, y, sample_weight=np.full(3000, 0.5))
    assert model.score(X, y) > 0.6
    assert model.n_features_in_ == 3
    assert hasattr(model, "feature_names_in_") == (make is pd.DataFrame)
    text = model.guarantee_.statement()
    assert "not all are 0. That they passed these checks is not protected." in text
    # All weights of a part may be 0: its model is noise, and nothing is refused after the charge.
    few = np.arange(3000) == 0
    assert search(50.0).fit(X, y, sample_weight=few).predict(X).shape == (3000,)
    with pytest.raises(InputError, match="not all zero"):
        search(50.0).fit(X, y, sample_weight=np.zeros(3000))


@pytest.mark.parametrize(
    ("bound", "make"),
    [
        *itertools.product(
            (BoxBound([1.0] * 4), GroupBound((2, 2), (1.0, 1.0)), 1.0), (np.array, np.asfortranarray, pd.DataFrame)
        ),
        (1.0, scipy.sparse.csr_array),
        (BoxBound([1.0] * 4), scipy.sparse.csr_array),
    ],
)
def test_no_row_changes_how_the_score_of_another_is_rounded(make, bound):
    """Weights on a grid coincide at times. Then rows may lie on the boundary, and which side they round to must not change.

    If it did for all rows once one of them is clipped, one row would change all mistakes, and the choice with them.
    """
    size = np.random.default_rng(0).uniform(0.1, 0.5, 400)
    model = LogisticRegression(1.0, classes=[0, 1], row_norm=bound, fit_intercept=False)
    inside = size[:, None] * [1.0, 0.0, -1.0, 0.0]
    outside = inside.copy()
    outside[0] = [50.0, 0.0, 0.0, 0.0]
    model.fit(make(inside), np.arange(400) % 2)
    model.coef_ = 0.3 * np.array([[1.0, 0.7, 1.0, 0.2]])
    scoring = [rows_to_score(make(rows), model, None, accepts_sparse=True) for rows in (inside, outside)]
    before, after = map(released_model(model).scoring.scores_alone, scoring)
    assert before[0] != after[0]
    assert np.array_equal(before[1:], after[1:])


@pytest.mark.parametrize("method", METHODS)
def test_the_guarantee_speaks_of_all_rows_and_the_whole_budget(rows, method):
    """Not of the rows of a part, nor of the budget of a try: a delta above 1 / n is told, as for a fit alone."""
    X, y = rows
    for delta, is_told in ((1.1 / 3000, True), (0.9 / 3000, False)):
        text = search(ApproxDP(1.0, delta), method=method).fit(X, y).guarantee_.statement()
        assert ("is not below one over the number of rows" in text) == is_told
        assert "The number of rows, 3,000, is public." in text


def test_undeclared_labels_are_taken_from_all_rows(rows):
    """A part with one label alone has both classes; the guarantee says where they came from."""
    X, y = rows[0][:40], np.array(["no"] * 39 + ["yes"])
    model = search(estimator=LogisticRegression()).fit(X, y)
    assert model.classes_.tolist() == ["no", "yes"]
    assert "were not declared" in model.guarantee_.statement()


@pytest.mark.parametrize("estimator", [LinearSVC(classes=[0, 1]), KernelSVC(classes=[0, 1], n_features=16)])
def test_other_classifiers(rows, estimator):
    """Support vector machines, over a ridge or the length scale of a kernel; no probabilities where there are none."""
    grid = {"length_scale": [0.1, 1.0]} if isinstance(estimator, KernelSVC) else GRID
    model = search(50.0, estimator, grid).fit(*rows)
    assert model.score(*rows) > 0.8
    assert not hasattr(model, "predict_proba")
    assert set(model.best_params_) == set(grid)


def test_a_seed_makes_it_repeatable_and_void(rows):
    """Choice, weights and score, for each method; without a seed they differ."""
    for method in METHODS:
        first, second = (search(method=method, random_state=3, score_share=0.1).fit(*rows) for _ in range(2))
        assert np.array_equal(first.best_estimator_.coef_, second.best_estimator_.coef_)
        assert first.best_score_ == second.best_score_
        assert first.guarantee_.statement().startswith("NOT PRIVATE")
        fresh = search(method=method).fit(*rows)
        assert not np.array_equal(first.best_estimator_.coef_, fresh.best_estimator_.coef_)


IN_M = {"m__alpha": [1.0]}


class Doubled(SchemaEncoder):
    """A step of the user's own, which may do anything with rows."""


def after(step):
    """A search over ridges of a model after this step."""
    return search(estimator=Pipeline([("s", step), ("m", LogisticRegression(classes=[0, 1]))]), grid=IN_M)


def of_models(*models):
    """A search over models, as the last step of a pipeline."""
    return search(estimator=Pipeline([("m", models[0])]), grid={"m": list(models)})


def bad_searches():
    """(name, search, what the refusal says)."""
    model = LogisticRegression(classes=[0, 1])
    neighbours = clone(model).set_params(neighbours="add-or-remove-one", n_rows_bounds=(10, 5000))
    persons = LogisticRegression(schema=Schema(columns={"age": {"low": 0, "high": 100}}, person="patient"))
    ledger = Ledger(limit=9.0)
    losses = [ERMRegressor(target_bound=1.0, loss=loss) for loss in ("huber", "absolute")]
    return (
        {
            "a foreign estimator": (search(estimator=ScikitLogisticRegression()), "classifier or regressor of confide"),
            "a regressor with intervals": (
                search(estimator=Ridge(target_bound=1.0, intervals=True)),
                "intervals are not valid",
            ),
            "a regressor without a range": (search(estimator=Ridge(target_bound=math.inf)), "without a bound"),
            "a clip of 0": (search(estimator=Ridge(target_bound=1.0), clip=0.0), "clip"),
            "no model": (
                search(estimator=Pipeline([("m", "passthrough")]), grid={"m": [None]}),
                "classifier or regressor of confide",
            ),
            "a step that learns": (after(StandardScaler()), "StandardScaler"),
            "a step of a class of the user's": (after(Doubled(schema=SCHEMA)), "Doubled"),
            "persons of a step": (after(SchemaEncoder(schema=persons.schema)), "persons"),
            "a ledger of a later candidate": (of_models(model, clone(model).set_params(ledger=ledger)), "to the search"),
            "a seed of a later candidate": (of_models(model, clone(model).set_params(random_state=1)), "to the search"),
            "neighbours of a later candidate": (of_models(model, neighbours), "replace-one"),
            "a later one of two rows a person": (of_models(model, clone(model).set_params(max_rows_per_person=2)), "person"),
            "other classes": (of_models(model, LinearSVC(classes=[0, 2])), "classes"),
            "another prior": (of_models(model, clone(model).set_params(prior=([0.0] * 3, 0.0))), "prior"),
            "classes and numbers": (of_models(model, Ridge(target_bound=1.0)), "must predict the same"),
            "means and medians": (of_models(*losses), "must predict the same"),
            "two ranges of the target": (of_models(Ridge(target_bound=1.0), Ridge(target_bound=2.0)), "target_bound"),
            "its own ledger": (search(estimator=clone(model).set_params(ledger=ledger)), "to the search"),
            "its own seed": (search(estimator=clone(model).set_params(random_state=1)), "to the search"),
            "a private number of rows": (search(estimator=neighbours), "replace-one"),
            "a column of persons": (search(estimator=persons), "without a column of persons"),
            "no budget": (search(budget=math.inf), "finite"),
            "an empty grid": (search(grid=[]), "param_grid"),
            "an empty list": (search(grid={"alpha": []}), "param_grid"),
            "no grid": (search(grid=3), "param_grid"),
            "an unknown parameter": (search(grid={"C": [1.0]}), "'C'"),
            "a bad candidate": (search(grid={"alpha": [1.0, -1.0]}), "alpha"),
            "a bad last candidate": (search(grid={"alpha": [1.0], "row_norm": [1.0, "large"]}), "row_norm"),
            "classes of weights": (search(grid={"class_weight": [None, {0: 1.0, 2: 3.0}]}), "class_weight"),
            "a foreign method": (search(method="best"), "method"),
            "a share of 1": (search(score_share=1.0), "score_share"),
            "no rows held out": (search(held_out=0.0), "held_out"),
            "less than one try": (search(expected_tries=1.0), "expected_tries"),
            "a little less than 1.01, of low precision": (search(expected_tries=np.float16(1.01)), "expected_tries"),
            "a generator": (search(random_state=np.random.default_rng()), "random_state"),
        }
        | {
            f"varied {name}": (search(grid={name: [value]}), name)
            for name, value in {
                "budget": 1.0,
                "ledger": None,
                "random_state": 1,
                "neighbours": "replace-one",
                "n_rows_bounds": None,
                "max_rows_per_person": 1,
                "schema": None,
                "classes": [0, 1],
                "target_bound": 1.0,
            }.items()
        }
        | {
            f"varied {name} of a step": (search(estimator=Pipeline([("m", model)]), grid={f"m__{name}": [value]}), name)
            for name, value in {"budget": 1.0, "ledger": None, "random_state": 1, "schema": None}.items()
        }
    )


def test_a_parameter_of_no_step_is_refused_as_by_scikit_learn(rows):
    """Whose words name the parameters that there are."""
    ledger = Ledger(limit=9.0)
    with pytest.raises(ValueError, match="Invalid parameter 'alpha' for estimator Pipeline"):
        search(estimator=Pipeline([("m", LogisticRegression())]), ledger=ledger).fit(*rows)
    assert ledger.spent().epsilon == 0.0


@pytest.mark.parametrize("name", bad_searches())
def test_bad_searches_are_refused_before_a_charge(rows, name, monkeypatch):
    """In one line, and without a sum over rows."""
    model, expected = bad_searches()[name]
    monkeypatch.setattr(MemorySource, "sum_over_rows", None)
    model.set_params(ledger=(ledger := Ledger(limit=9.0)))
    with (
        pytest.raises(ParameterError, match=expected)
        if name != "classes of weights"
        else pytest.raises(ConfideError) as caught
    ):
        model.fit(*rows)
    assert len(str(caught.value).splitlines()) == 1
    assert ledger.spent().epsilon == 0.0
    assert not hasattr(model, "best_estimator_")


SECRET = 987654321.125


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fault", ["nan", "label", "length", "weight", "text", "few"])
def test_bad_rows_are_refused_before_a_charge(rows, method, fault):
    """Wherever they are, among rows held out too; and no value is shown."""
    X, y = rows
    for part in ([0], [1500], [2999]):
        X_bad, y_bad, weight = X.astype(object if fault == "text" else float), y.copy(), None
        if fault == "nan":
            X_bad[part[0]] = np.nan
        elif fault == "label":
            y_bad[part[0]] = 987654321
        elif fault == "length":
            y_bad = y_bad[:-1]
        elif fault == "weight":
            weight = np.ones(3000)
            weight[part[0]] = SECRET
        elif fault == "text":
            X_bad[part[0], 0] = "SECRET 987654321"
        else:
            X_bad, y_bad = X_bad[:1], y_bad[:1]
        ledger = Ledger(limit=9.0)
        with pytest.raises(ParameterError if fault == "few" else InputError) as caught:
            search(method=method, ledger=ledger).fit(X_bad, y_bad, sample_weight=weight)
        assert "98765" not in str(caught.value)
        assert ledger.spent().epsilon == 0.0


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["numpy", "parquet", "cached"])
def test_rows_on_disk_are_divided_as_in_memory(tmp_path, kind, method):
    """With one seed the same choice and the same weights, but for the order in which rows are added; one charge."""
    n_rows = 2000
    frame = pd.DataFrame({"age": np.linspace(0, 100, n_rows), "job": ["a", "b"] * (n_rows // 2)})
    X, y = np.column_stack([frame["age"] / 200.0, np.ones(n_rows) / 2]), (frame["age"] > 50).to_numpy().astype(int)
    ledger = Ledger(limit=100.0)
    if kind == "numpy":
        np.save(tmp_path / "rows.npy", X)
        np.save(tmp_path / "labels.npy", y)
        opened = confide.open_rows(tmp_path / "rows.npy", labels=tmp_path / "labels.npy")
        estimator, memory = LogisticRegression(), (X, y)
    else:
        schema = Schema(
            columns={"age": {"low": 0, "high": 100}, "job": {"categories": ["a", "b"]}},
            target={"column": "income", "negative": "low", "positive": "high"},
        )
        labels = np.where(y, "high", "low")
        frame.assign(income=labels).to_parquet(tmp_path / "rows.parquet")
        opened = confide.open_rows(tmp_path / "rows.parquet", schema, cache=kind == "cached")
        estimator, memory = LogisticRegression(schema=schema), (frame, labels)
    seeded = {"random_state": 3, "score_share": 0.2}
    found = search(50.0, estimator, method=method, ledger=ledger, **seeded).fit(opened)
    expected = search(50.0, estimator, method=method, **seeded).fit(*memory)
    assert found.best_params_ == expected.best_params_
    assert found.best_score_ == expected.best_score_
    np.testing.assert_allclose(found.best_estimator_.coef_, expected.best_estimator_.coef_, atol=1e-6)
    assert len(ledger.entries()) == 1


def test_rows_of_others_are_refused_before_a_charge():
    """What lies on a cluster or at other parties is not divided here."""
    ledger, schema = Ledger(limit=2.0), SCHEMA
    with pytest.raises(ConfideError, match="those of a cluster"):
        search(estimator=LogisticRegression(), ledger=ledger).fit(FederatedRows(schema, ()))
    assert ledger.remaining().epsilon == 2.0


def test_unknown_facts_are_refused(rows):
    """As the estimators do."""
    with pytest.raises(TypeError, match="groups"):
        search().fit(*rows, groups=np.zeros(3000))


def test_a_plan_reads_no_data_and_names_bad_numbers():
    """Of rows or columns."""
    assert search().plan(3000, 3) == search().plan(3000, 3)
    for n_rows, n_features in ((0, 3), (True, 3), (2.5, 3), (3, 3), (3000, None), (3000, 0)):
        with pytest.raises(ParameterError):
            search().plan(n_rows, n_features)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", [PureDP(2.0), ApproxDP(2.0, 1e-6), ZCDP(0.5)])
def test_classes_that_were_not_declared_are_planned_for(rows, budget, method):
    """Plans for two classes would show too little noise, and fits with Gaussian noise would be refused after the charge."""
    X, _ = rows
    ledger = Ledger(limit=budget)
    undeclared = search(budget, LinearSVC(), {"smoothing": [0.3, 0.5]}, method=method, ledger=ledger)
    undeclared.fit(X, X.argmax(axis=1))
    declared = clone(undeclared).set_params(estimator=LinearSVC(classes=[0, 1, 2]))
    assert undeclared.plan_ == undeclared.plan(3000, 3, n_classes=3) == declared.plan(3000, 3)
    assert undeclared.plan_ != undeclared.plan(3000, 3)
    assert undeclared.best_estimator_.coef_.shape == (3, 3)
    assert len(ledger.entries()) == 1


@pytest.mark.parametrize("method", ["permute-and-flip", "repeated"])
def test_scikit_learns_checks_pass(method):
    """check_estimator at a large budget and a wide row norm, as for the classifiers themselves.

    The draws are fixed: one check fits ten rows of which one class counts nothing, and some divisions of so few rows leave a
    part without the other class.
    """
    grid = {"intercept_scaling": [1.0, 2.0]}
    model = PrivateSearchCV(
        LogisticRegression(row_norm=1e3, max_sample_weight=10.0),
        grid,
        budget=1e6,
        method=method,
        expected_tries=4,
        random_state=0,
    )
    assert failed_checks(model) == ""


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cv_results_", "the scores of the candidates would reveal more of the rows than was paid for"),
        ("best_score_", "no part of the budget was kept for one. Give score_share"),
        ("best_score_deviation_", "no part of the budget was kept for one"),
        ("n_splits_", "there are no folds"),
        ("scorer_", "counts mistakes"),
        ("refit_time_", "depends on the rows"),
    ],
)
def test_what_a_search_does_not_have_is_explained_when_it_is_read(name, words):
    """With whole sentences, before and after the fit; hasattr stays False, and a score that was released is there."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(600, 2))
    search = confide.PrivateSearchCV(confide.LogisticRegression(classes=[0, 1]), {"alpha": [0.01, 1.0]}, budget=4.0)
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; it is not fitted yet"):
        getattr(search, name)
    search.set_params(method="permute-and-flip").fit(X, X[:, 0] > 0.0)
    assert not hasattr(search, name)
    with pytest.raises(AttributeError, match=words) as caught:
        getattr(search, name)
    assert caught.value.name == name
    assert str(caught.value).endswith(".")
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        search.nothing  # noqa: B018 - the access is the test
    assert 0.0 < clone(search).set_params(score_share=0.5).fit(X, X[:, 0] > 0.0).best_score_ < 2.0
