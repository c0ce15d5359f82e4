"""Searches over regressors, additive models, pipelines of public steps, and several estimators at once."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_regressor
from sklearn.linear_model import LogisticRegression as ScikitLogisticRegression
from sklearn.pipeline import Pipeline

import confide
from confide import (
    AdditiveClassifier,
    AdditiveRegressor,
    ApproxDP,
    BudgetExceeded,
    ERMRegressor,
    HuberRegressor,
    InputError,
    Ledger,
    LogisticRegression,
    ParameterError,
    PoissonRegressor,
    PrivateSearchCV,
    RandomFourierFeatures,
    Ridge,
    Schema,
    SchemaEncoder,
)
from confide.data.arrays import MemorySource
from confide.privacy.noise import Entropy
from confide.training.charge import divided
from tests.estimators.conventions import failed_checks

METHODS = ("permute-and-flip", "repeated")
X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(3000, 3))
NUMBERS = X[:, 0] - X[:, 1]
COUNTS = np.random.default_rng(1).poisson(np.exp(2.0 * NUMBERS)).astype(float)
LABELS = (NUMBERS > 0.0).astype(int)
FRAME = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": np.where(X[:, 2] > 0.0, "high", "low")})
COLUMNS = {name: {"low": -0.5, "high": 0.5} for name in "ab"} | {"c": {"categories": ["low", "high"]}}
SCHEMA = Schema(columns=COLUMNS)
RIDGES = {"alpha": [1e-2, 100.0]}
REGRESSORS = {
    "huber": (HuberRegressor(target_bound=1.0), RIDGES, NUMBERS),
    "ridge": (Ridge(target_bound=1.0), RIDGES, NUMBERS),
    "sums": (Ridge(target_bound=1.0, mechanism="sufficient-statistics"), RIDGES, NUMBERS),
    "additive": (AdditiveRegressor(target_bound=1.0, bounds=(-0.5, 0.5)), RIDGES, NUMBERS),
    "counts": (PoissonRegressor(target_bound=8.0), RIDGES, COUNTS),
    "a quantile": (ERMRegressor(loss="quantile", quantile=0.9, target_bound=1.0), RIDGES, NUMBERS),
    "a far range": (HuberRegressor(target_low=9.0, target_high=11.0), RIDGES, NUMBERS + 10.0),
}


def search(estimator, grid, budget=20.0, **parameters):
    """A search that is quick."""
    return PrivateSearchCV(estimator, grid, budget=budget, **({"method": METHODS[0], "expected_tries": 30} | parameters))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors_are_searched_in_one_charge(name, method, tmp_path):
    """The plan is that of public facts, the ridge of 100 loses, and the model verifies as one that a search released."""
    estimator, grid, y = REGRESSORS[name]
    ledger = Ledger(limit=20.0)
    found = search(estimator, grid, method=method, ledger=ledger).fit(X, y)
    assert found.plan_ == search(estimator, grid, method=method).plan(3000, 3)
    assert ledger.spent().epsilon == 20.0
    assert len(ledger.entries()) == 1
    assert found.best_params_ == {"alpha": 0.01} or method == "repeated"  # one search in ten tries nothing else
    assert is_regressor(found)
    assert found.score(X, y) == found.best_estimator_.score(X, y)
    assert np.array_equal(found.predict(X), found.best_estimator_.predict(X))
    for absent in ("classes_", "decision_function", "predict_proba"):
        assert not hasattr(found, absent)
    assert found.n_features_in_ == 3
    assert "It covers a whole search" in found.guarantee_.statement()
    found.save(tmp_path / "model.json")
    assert confide.load(tmp_path / "model.json").guarantee_ == found.guarantee_
    with pytest.raises(BudgetExceeded):
        found.fit(X, y)


@pytest.mark.parametrize("name", REGRESSORS)
def test_the_released_score_of_a_regressor_is_its_error_on_the_rows_held_out(name):
    """Minus the mean of clipped squares, or of the loss of the quantile, by NumPy, with noise of the deviation told."""
    estimator, grid, y = REGRESSORS[name]
    found = search(estimator, grid, score_share=0.5, random_state=6).fit(X, y)
    held_out = divided(found.plan_.part_sizes, Entropy.seeded(6))[-1]
    target = estimator._target(None)
    residuals = y[held_out] - np.clip(found.predict(X[held_out]), target.low, target.high)
    errors, clip = residuals**2, 0.25 * (target.high - target.low)
    largest = clip**2
    if name == "a quantile":
        errors, largest = np.maximum(0.9 * residuals, -0.1 * residuals), 0.9 * clip
    deviation = found.plan_.score_noise.deviation * largest / len(held_out)
    assert found.best_score_deviation_ == pytest.approx(deviation)
    assert abs(found.best_score_ + np.minimum(errors, largest).mean()) < 12.0 * deviation + largest * 2.0**-20
    wide = search(estimator, grid, score_share=0.5, random_state=6, clip=1e3).fit(X, y)
    assert wide.plan_.errors[0].clip == target.high - target.low
    assert wide.best_score_deviation_ > 2.0 * found.best_score_deviation_


def test_noise_on_the_score_of_a_regressor_is_as_large_as_promised():
    """Over 200 searches: standard deviation within 30% of that of one row at epsilon 1."""
    errors = []
    for seed in range(200):
        found = search(Ridge(target_bound=1.0), {"alpha": [1.0]}, 2.0, score_share=0.5, random_state=seed, clip=2.0)
        found.fit(X[:40], NUMBERS[:40])
        held_out = divided(found.plan_.part_sizes, Entropy.seeded(seed))[-1]
        truth = np.mean((NUMBERS[held_out] - np.clip(found.predict(X[held_out]), -1.0, 1.0)) ** 2)
        errors.append((found.best_score_ + truth) * len(held_out) / 4.0)
    assert 0.75 * math.sqrt(2.0) < np.std(errors) < 1.3 * math.sqrt(2.0)


@pytest.mark.parametrize("method", METHODS)
def test_pipelines_of_public_steps_are_searched(method):
    """Parameters of either step; the choice is a fitted pipeline, which predicts from raw rows as its parts do."""
    pipeline = Pipeline([
        ("encode", SchemaEncoder(schema=SCHEMA)),
        ("features", RandomFourierFeatures(32)),
        ("model", LogisticRegression(classes=[0, 1])),
    ])  # fmt: skip
    grid = {"features__length_scale": [1e-3, 1.0], "model__alpha": [0.003]}
    found = search(pipeline, grid, 100.0, method=method).fit(FRAME, LABELS)
    assert found.best_params_["features__length_scale"] == 1.0 or method == "repeated"
    assert type(found.best_estimator_) is Pipeline
    rows = found.best_estimator_[:-1].transform(FRAME)
    assert rows.shape == (3000, 32)
    assert np.array_equal(found.predict(FRAME), found.best_estimator_[-1].predict(rows))
    assert found.predict_proba(FRAME).shape == (3000, 2)
    assert found.score(FRAME, LABELS) > 0.85 or method == "repeated"
    assert (found.n_features_in_, found.feature_names_in_.tolist()) == (3, ["a", "b", "c"])
    assert found.classes_.tolist() == [0, 1]
    assert found.plan_ == clone(found).plan(3000)
    for write in (partial(found.save, "model.json"), found.to_sklearn, found.to_onnx, found.to_sql, found.to_python):
        with pytest.raises(ParameterError, match="the choice is a pipeline"):
            write()
    assert found.best_estimator_[-1].guarantee_ == found.guarantee_
    assert "No step before the fit" in found.guarantee_.statement()


def test_a_search_over_a_pipeline_releases_what_its_model_alone_does():
    """With one seed: rows that were encoded before the search, or by it."""
    model, seeded = LogisticRegression(classes=[0, 1]), {"random_state": 3}
    pipeline = Pipeline([("encode", SchemaEncoder(schema=SCHEMA)), ("model", model)])
    within = search(pipeline, {"model__alpha": [0.01, 0.1]}, **seeded).fit(FRAME, LABELS)
    rows = SchemaEncoder(schema=SCHEMA).fit(FRAME).transform(FRAME)
    alone = search(model, {"alpha": [0.01, 0.1]}, **seeded).fit(rows, LABELS)
    assert within.best_index_ == alone.best_index_
    assert np.array_equal(within.best_estimator_[-1].coef_, alone.best_estimator_.coef_)


def test_steps_that_are_the_same_are_applied_once(monkeypatch):
    """Six candidates, two maps."""
    seen, original = [], RandomFourierFeatures.transform
    monkeypatch.setattr(RandomFourierFeatures, "transform", lambda step, rows: seen.append(1) or original(step, rows))
    pipeline = Pipeline([("features", RandomFourierFeatures(8)), ("model", LogisticRegression(classes=[0, 1]))])
    search(pipeline, {"features__length_scale": [0.1, 1.0], "model__alpha": [0.1, 1.0, 2.0]}).fit(X, LABELS)
    assert len(seen) == 2


@pytest.mark.parametrize("method", METHODS)
def test_several_estimators_are_compared_as_in_scikit_learn(method):
    """Each with parameters of its own; curves win where straight lines know nothing."""
    bent = (np.abs(X[:, 0]) > 0.25).astype(int)
    straight, curved = LogisticRegression(classes=[0, 1]), AdditiveClassifier(classes=[0, 1], bounds=(-0.5, 0.5))
    grid = [{"model": [straight], "model__alpha": [0.01, 0.1]}, {"model": [curved], "model__knots": [3, 6]}]
    found = search(Pipeline([("model", straight)]), grid, 50.0, method=method).fit(X, bent)
    if method != "repeated":  # which tries nothing else at times
        assert type(found.best_estimator_[-1]) is AdditiveClassifier
        assert found.best_params_["model__knots"] in (3, 6)
        assert found.score(X, bent) > 0.85
    assert found.plan_ == clone(found).plan(3000, 3)
    assert not hasattr(curved, "coef_")  # what is in the grid stays as it is
    placeholder = Pipeline([("features", None), ("model", "passthrough")])
    assert search(placeholder, {"model": [straight, curved]}).fit(X, bent).best_index_ in (0, 1)


def test_a_choice_among_kinds_of_regressions():
    """Squared errors on the scale of one target, for curves, straight lines and logarithms of counts."""
    models = [model(target_bound=8.0) for model in (Ridge, HuberRegressor, PoissonRegressor)]
    models.append(AdditiveRegressor(target_bound=8.0, loss="poisson", bounds=(-0.5, 0.5)))
    found = search(Pipeline([("model", models[0])]), {"model": models}).fit(X, COUNTS)
    assert found.score(X, COUNTS) > 0.2
    assert {own.link.kind for own in found.plan_.errors} == {"identity", "exponential"}


def test_choices_of_regressors_go_by_their_errors_on_the_rows_held_out():
    """At a tiny budget of the choice each candidate is chosen; at a large one the same one always."""
    rough = search(Ridge(target_bound=1.0), {"alpha": [0.01, 10.0, 100.0]}, 1e-4)
    large = clone(rough).set_params(param_grid={"alpha": [1e3, 1e4, 1e5]})  # smaller ones are raised to one value
    assert len({clone(large).set_params(random_state=seed).fit(X, NUMBERS).best_index_ for seed in range(15)}) == 3
    sure = {clone(rough).set_params(budget=1e3, random_state=seed).fit(X, NUMBERS).best_index_ for seed in range(5)}
    assert sure == {0}


def test_the_search_says_how_much_noise_it_adds():
    """By public facts: 2.5 times the epsilon and nine tenths of the rows, or a part of the rows for each candidate."""
    repeated = search(LogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, 1.0, method="repeated").plan(30_000, 3)
    assert repeated.times_the_noise == pytest.approx(2.5 / 0.9, rel=0.01)
    once = search(LogisticRegression(classes=[0, 1]), {"alpha": [0.1, 1.0]}, 1.0).plan(30_000, 3)
    assert once.times_the_noise == pytest.approx(3.0, rel=0.01)
    of_sums = search(REGRESSORS["sums"][0], RIDGES, ApproxDP(1.0, 1e-6)).plan(30_000, 3)
    assert of_sums.times_the_noise == pytest.approx(3.0, rel=0.01)
    assert "beside a fit  3 times the noise of a model without a search" in str(once)


def wrong_rows():
    """(pipeline, rows, targets, what the refusal says)."""
    encoded = Pipeline([("encode", SchemaEncoder(schema=SCHEMA)), ("model", LogisticRegression(classes=[0, 1]))])
    kernel = Pipeline([("features", RandomFourierFeatures(8)), ("model", Ridge(target_bound=1.0))])
    bad = Pipeline([("features", RandomFourierFeatures(7)), ("model", Ridge(target_bound=1.0))])
    return {
        "a missing column": (encoded, FRAME[["a", "b"]], LABELS, "c"),
        "an unknown cell": (encoded, FRAME.assign(c=None), LABELS, "missing"),
        "an array for a frame": (encoded, X, LABELS, "frame"),
        "fewer labels": (encoded, FRAME, LABELS[:-1], "each row"),
        "a missing number": (kernel, np.where(X > 0.49, np.nan, X), NUMBERS, "NaN"),
        "a missing target": (kernel, X, np.where(NUMBERS > 0.9, np.nan, NUMBERS), "NaN"),
        "an odd number of features": (bad, X, NUMBERS, "even"),
    }


@pytest.mark.parametrize("name", wrong_rows())
def test_rows_that_a_candidate_cannot_use_are_refused_before_a_charge(name, monkeypatch):
    """Nothing is added up, and nothing was charged; all candidates before the last could be trained."""
    pipeline, rows, targets, words = wrong_rows()[name]
    monkeypatch.setattr(MemorySource, "sum_over_rows", None)
    ledger = Ledger(limit=5.0)
    with pytest.raises((InputError, ParameterError), match=words):
        search(pipeline, {"model__alpha": [0.1, 1.0]}, 1.0, ledger=ledger).fit(rows, targets)
    assert ledger.spent().epsilon == 0.0


def test_rows_in_files_pass_no_step(tmp_path):
    """They are read in pieces, so give the model a schema instead."""
    path, ledger = tmp_path / "rows.parquet", Ledger(limit=5.0)
    FRAME.assign(y=LABELS).to_parquet(path)
    described = Schema(columns=COLUMNS, target={"column": "y", "negative": 0, "positive": 1})
    pipeline = Pipeline([("encode", SchemaEncoder(schema=SCHEMA)), ("model", LogisticRegression(classes=[0, 1]))])
    with pytest.raises((InputError, ParameterError)):
        search(pipeline, {"model__alpha": [0.1, 1.0]}, ledger=ledger).fit(confide.open_rows(path, described))
    assert ledger.spent().epsilon == 0.0
    models = [kind(schema=described) for kind in (LogisticRegression, AdditiveClassifier)]
    found = search(Pipeline([("model", models[0])]), {"model": models}, ledger=ledger, budget=5.0)
    assert found.fit(confide.open_rows(path, described)).score(FRAME, LABELS) > 0.8


def test_a_pipeline_of_another_library_is_refused():
    pipeline = Pipeline([("model", ScikitLogisticRegression())])
    with pytest.raises(ParameterError, match="classifier or regressor of confide"):
        search(pipeline, {"model__C": [1.0]}).plan(100, 2)


@pytest.mark.parametrize("method", METHODS)
def test_scikit_learns_checks_pass_for_a_search_over_regressors(method):
    """As for the regressors themselves. Few tries say as much of scikit-learn's conventions as many."""
    model = HuberRegressor(row_norm=1e3, target_bound=1e4, max_sample_weight=10.0)
    found = search(model, {"intercept_scaling": [1.0, 2.0]}, 1e6, method=method, expected_tries=3.0, random_state=0)
    assert failed_checks(found) == ""


@pytest.mark.data
@pytest.mark.usefixtures("data_dir")
def test_a_search_on_prices_of_diamonds():
    """Curves or straight lines at epsilon 1, on 40,000 rows; the score that is released is near that on rows held out."""
    from benchmarks.additive_regression import diamonds

    data = diamonds()
    rows, targets = data.rows[: data.n_train], data.targets[: data.n_train]
    known = {"schema": data.schema, "target_bound": data.target_bound}
    models = [HuberRegressor(**known), AdditiveRegressor(**known)]
    found = search(Pipeline([("model", models[0])]), {"model": models}, 1.0, method="repeated").fit(rows, targets)
    assert data.explained(found) > 0.8
    held = data.targets[data.n_train :] - found.predict(data.rows[data.n_train :])
    assert abs(found.best_score_ + np.minimum(held**2, 1e4**2).mean()) < 0.2 * 1e4**2


@pytest.mark.parametrize("estimator", [HuberRegressor, partial(Ridge, mechanism="sufficient-statistics")])
@pytest.mark.parametrize("first", [True, False])
def test_each_candidate_gets_the_targets_that_its_own_fit_would_get(estimator, first):
    """Of a range far from 0 a candidate with an intercept subtracts the middle, and one without does not, in any order."""
    model = estimator(target_low=90.0, target_high=130.0)
    found = search(model, {"fit_intercept": [first, not first]}, 1e3, method="exponential").fit(X, NUMBERS + 115.0)
    assert found.best_params_ == {"fit_intercept": True}
    assert np.mean(found.predict(X)) == pytest.approx(115.0, abs=0.5)


def test_candidates_with_and_without_an_intercept_count_the_same_exposures():
    """An intercept divides exposures by the middle of their bounds, and each candidate gets those of its own fit."""
    years = np.random.default_rng(2).uniform(1.0, 9.0, len(X))
    visits = np.random.default_rng(3).poisson(4.0 * years)
    exposure = {"column": "years", "low": 1.0, "high": 9.0}
    schema = Schema(COLUMNS, {"column": "visits", "low": 0, "high": 60, "exposure": exposure})
    model, frame = PoissonRegressor(schema=schema), FRAME.assign(years=years, visits=visits)
    found = search(model, {"fit_intercept": [False, True]}, 1e3, method="exponential").fit(frame)
    assert found.best_params_ == {"fit_intercept": True}
    assert np.mean(found.predict(frame)) == pytest.approx(4.0, rel=0.05)
