"""What all linear regressors have in common."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from confide import (
    AdditiveRegressor,
    ApproxDP,
    ERMRegressor,
    HuberRegressor,
    InputError,
    Ledger,
    ParameterError,
    PoissonRegressor,
    Ridge,
    Schema,
    evaluate,
    load,
    open_rows,
)
from confide.data.arrays import ArrayBlocks
from confide.estimators.released import effects_of
from confide.inference.rates import Interval
from tests.estimators.own_losses import Pseudo

INF = float("inf")


def made_up(n=2000, d=5, seed=0, noise=0.1):
    """Rows of norm about 1, some longer, and targets mostly within 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    return X, np.clip(X, -1, 1) @ np.linspace(1.0, -0.5, d) * 0.5 + 0.2 + noise * rng.normal(size=n)


def test_the_score_is_that_of_scikit_learn():
    """R^2, with weights of rows too."""
    X, y = made_up()
    model, weights = Ridge(5.0, target_bound=1.0).fit(X, y), np.arange(1.0, 2001.0)
    residuals = (y - model.predict(X)) ** 2
    assert model.score(X, y) == pytest.approx(1.0 - residuals.mean() / y.var())
    mean = np.average(y, weights=weights)
    expected = 1.0 - np.average(residuals, weights=weights) / np.average((y - mean) ** 2, weights=weights)
    assert model.score(X, y, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("make", [Ridge, HuberRegressor, PoissonRegressor, ERMRegressor])
def test_every_regressor_asks_for_the_bound_on_targets(make):
    """In fit and plan, before a charge: what it is, and how it is chosen; without privacy too."""
    X, y = made_up()
    ledger = Ledger(limit=2.0)
    assert make().target_bound is None
    for model in (make(1.0, ledger=ledger), make(INF)):
        for ask in (lambda model=model: model.fit(X, abs(y)), lambda model=model: model.plan(100, 3)):
            with pytest.raises(ParameterError, match=r"give target_bound, the largest size .* public knowledge and never"):
                ask()
    assert len(ledger.entries()) == 0
    assert clone(make(target_bound=3.0)).get_params()["target_bound"] == 3.0


REGRESSORS = [Ridge, HuberRegressor, PoissonRegressor, ERMRegressor]


@pytest.mark.parametrize("make", REGRESSORS)
def test_predictions_are_those_of_rows_clipped_as_in_the_fit(make):
    """Whatever the block in which a row lies; of counts the exponential of the score."""
    X, y = made_up(n=400)
    model = make(INF, target_bound=2.0, row_norm=0.5).fit(X, abs(y))
    clipped = X * np.minimum(1.0, 0.5 / np.linalg.norm(X, axis=1))[:, None]
    scores = clipped @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), np.exp(scores) if make is PoissonRegressor else scores, atol=1e-12)
    assert model.coef_.shape == (5,)
    assert type(model.intercept_) is float


def test_rows_of_several_blocks_are_predicted_alike(monkeypatch):
    """The blocks of a large array give what one block gives."""
    X, y = made_up(n=400)
    model = Ridge(INF, target_bound=2.0).fit(X, y)
    whole = model.predict(X)
    asked = []
    block = ArrayBlocks.block
    monkeypatch.setattr(
        ArrayBlocks, "block", lambda self, start, stop: asked.append((start, stop)) or block(self, start, stop)
    )
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 64)
    np.testing.assert_allclose(model.predict(X), whole, atol=1e-14)
    assert len(asked) > 3
    assert [start for start, _ in asked] == [0, *(stop for _, stop in asked[:-1])]
    assert asked[-1][1] == 400


@pytest.mark.parametrize("make", REGRESSORS)
def test_the_guarantee_says_how_targets_are_clipped(make):
    """To the bound on both sides, and counts from zero."""
    X, y = made_up(n=200)
    statement = make(1.0, target_bound=2.5).fit(X, abs(y)).guarantee_.statement()
    clipped = "declared range, 0 to 2.5" if make is PoissonRegressor else "declared bound, 2.5 in absolute value"
    assert f"Every target is clipped to its {clipped}" in statement


def test_targets_of_a_score_are_checked_like_those_of_a_fit():
    """One finite number for each row, and weights that are weights; no value is shown."""
    X, y = made_up(n=50)
    model = Ridge(1.0, target_bound=1.0).fit(X, y)
    for targets, words in ((y[:-1], "one target for each row"), ([*y[:-1], np.nan], "NaN"), (None, "y")):
        with pytest.raises(InputError, match=words):
            model.score(X, targets)
    with pytest.raises(InputError, match="sample_weight"):
        model.score(X, y, sample_weight=-np.ones(50))


@pytest.mark.parametrize("make", REGRESSORS)
def test_a_plan_holds_the_alpha_of_the_fit(make):
    """From the number of rows and columns alone."""
    X, y = made_up(n=500)
    model = make(1.0, target_bound=1.0)
    assert model.plan(500, 5).alpha == model.fit(X, abs(y)).alpha_


@pytest.mark.parametrize("make", [*REGRESSORS, AdditiveRegressor])
def test_a_target_of_numbers_in_a_schema_gives_the_bound_and_the_column(make, tmp_path):
    """Targets are clipped to its range, from memory as from files; plan, file and guarantee need no target_bound."""
    X, _ = made_up(n=300, d=2)
    frame = pd.DataFrame(np.clip(X, -1, 1), columns=["a", "b"])
    price = np.random.default_rng(1).uniform(0.0, 9.0, len(frame))
    columns = {"a": {"low": -1, "high": 1}, "b": {"low": -1, "high": 1}}
    schema = Schema(columns=columns, target={"column": "price", "low": 0.5, "high": 5})
    frame.assign(price=price).to_parquet(tmp_path / "rows.parquet")
    model = make(INF, schema=schema).fit(frame, price)
    assert model.target_bound is None
    assert "Every target is clipped to its declared range, 0.5 to 5." in model.guarantee_.statement()
    from_files = make(INF, schema=schema).fit(open_rows(tmp_path / "rows.parquet", schema))
    np.testing.assert_allclose(from_files.coef_, model.coef_, atol=1e-9)
    bounded = make(INF, schema=Schema(columns), target_bound=5.0).fit(frame, np.clip(price, 0.5, 5.0))
    np.testing.assert_allclose(bounded.coef_, model.coef_, atol=1e-9)
    assert model.plan(n_rows=300).problem == bounded.plan(n_rows=300).problem
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    assert loaded.target_bound is None
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))


@pytest.mark.parametrize("make", [Ridge, HuberRegressor, PoissonRegressor], ids=lambda kind: kind.__name__)
def test_targets_that_all_lie_beyond_the_bound_are_clipped_without_a_word(make):
    """A refusal or a warning would tell of all rows. The same plan, charge and sentences as for targets within the bound."""
    X, _ = made_up()
    found = []
    for targets in (np.full(len(X), 1e9), np.linspace(0.1, 0.9, len(X))):
        ledger = Ledger(limit=1.0)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = make(1.0, target_bound=1.0, ledger=ledger, random_state=0).fit(X, targets)
        said = [str(each.message) for each in told]
        found.append((model.guarantee_.statement(), model.alpha_, ledger.spent().epsilon, said))
    assert found[0] == found[1]


def of_years(n=2000):
    """Rows, years from 1930 to 2010 that they tell something of, some beyond these ends, and the schema."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(-1.0, 1.0, size=(n, 2)), columns=["a", "b"])
    columns = {"a": {"low": -1, "high": 1, "knots": [0.0]}, "b": {"low": -1, "high": 1}}
    year = 1970.0 + 30.0 * frame["a"].to_numpy() + rng.normal(0.0, 10.0, n)
    return frame, year, Schema(columns, target={"column": "year", "low": 1930, "high": 2010})


SHIFTED = {
    "ridge": (Ridge, {}),
    "sums": (Ridge, {"mechanism": "sufficient-statistics"}),
    "sums with intervals": (Ridge, {"intervals": True}),
    "huber": (HuberRegressor, {}),
    "huber with intervals": (HuberRegressor, {"inference_share": 0.5}),
    "huber on weights": (HuberRegressor, {"mechanism": "output"}),
    "quantile": (ERMRegressor, {"loss": "quantile", "quantile": 0.75}),
    "additive": (AdditiveRegressor, {"penalty": "smooth"}),
    "sparse": (HuberRegressor, {"l1_ratio": 0.5}),
}


@pytest.mark.parametrize("kind", SHIFTED)
def test_a_target_far_from_zero_is_fitted_as_if_it_were_shifted_by_hand(kind, tmp_path):
    """Its own units everywhere: coefficients, intercept, predictions, intervals, summary, effects, files and refits."""
    frame, year, schema = of_years()
    make, parameters = SHIFTED[kind]
    by_hand = Schema(schema.columns, target={"column": "year", "low": -40, "high": 40})
    model, other = (
        make(ApproxDP(20.0, 1e-6), schema=each, random_state=3, **parameters).fit(frame, y)
        for each, y in ((schema, year), (by_hand, year - 1970.0))
    )
    assert model.plan(len(frame)).problem == other.plan(len(frame)).problem
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.intercept_ == other.intercept_ + 1970.0
    np.testing.assert_allclose(model.predict(frame), other.predict(frame) + 1970.0, atol=1e-9)
    rated, as_shifted = (evaluate(*each, budget=math.inf) for each in ((model, frame, year), (other, frame, year - 1970.0)))
    assert rated.r2.value == pytest.approx(as_shifted.r2.value, abs=1e-6)
    assert rated.rmse.value == pytest.approx(as_shifted.rmse.value, abs=1e-6)
    assert rated.calibration[5].value == pytest.approx(as_shifted.calibration[5].value + 1970.0, abs=1e-6)
    np.testing.assert_allclose(effects_of(model).intercepts, effects_of(other).intercepts + 1970.0, atol=1e-9)
    assert "Its middle, 1970, is subtracted from every target" in model.guarantee_.statement()
    assert "subtracted" not in other.guarantee_.statement()
    if "intervals" in kind:
        for target in ("regularised", "unregularised") if make is Ridge else ("regularised",):
            np.testing.assert_allclose(model.conf_int(target=target), other.conf_int(target=target), atol=1e-9)
            for units in ("original", "encoded"):
                lines = [each.summary(target=target, units=units).to_frame()[["low", "high"]] for each in (model, other)]
                apart = lines[0].to_numpy(float) - lines[1].to_numpy(float)
                np.testing.assert_allclose(apart[:-1], 0.0, atol=1e-9)
                np.testing.assert_allclose(apart[-1], 1970.0, atol=1e-9)
            uncertain = model.uncertainty(target).estimates - other.uncertainty(target).estimates
            np.testing.assert_allclose(uncertain, [*np.zeros(len(model.coef_)), 1970.0], atol=1e-9)
            means = model.predict_interval(frame[:5], target=target) - other.predict_interval(frame[:5], target=target)
            np.testing.assert_allclose(means, 1970.0, atol=1e-9)
    model.save(tmp_path / "model.json")
    loaded = load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    if "intervals" in kind:
        np.testing.assert_array_equal(loaded.conf_int(), model.conf_int())
    frame.assign(year=year).to_parquet(tmp_path / "rows.parquet")
    from_files = make(ApproxDP(20.0, 1e-6), schema=schema, random_state=3, **parameters).fit(
        open_rows(tmp_path / "rows.parquet", schema)
    )
    np.testing.assert_allclose(from_files.predict(frame), model.predict(frame), atol=1e-6)


@pytest.mark.parametrize("kind", ["ridge", "sums", "sums with intervals", "huber"])
def test_a_prior_of_a_model_far_from_zero_pulls_towards_its_own_intercept(kind, tmp_path):
    """A refit, and a prior of coefficients, are what they are for targets that were shifted by hand."""
    frame, year, schema = of_years()
    make, parameters = SHIFTED[kind]
    by_hand = Schema(schema.columns, target={"column": "year", "low": -40, "high": 40})
    prior = Ridge(5.0, schema=schema, random_state=1).fit(frame, year)
    numbers = (prior.coef_, prior.intercept_ - 1970.0)
    budget = ApproxDP(20.0, 1e-6)
    model = make(budget, schema=schema, random_state=3, prior=prior, **parameters).fit(frame, year)
    other = make(budget, schema=by_hand, random_state=3, prior=numbers, **parameters).fit(frame, year - 1970.0)
    np.testing.assert_allclose(model.predict(frame), other.predict(frame) + 1970.0, atol=1e-6)
    again = model.refit(frame, year, alpha=1e3)
    assert abs(again.intercept_ - model.intercept_) < 0.1
    model.save(tmp_path / "model.json")
    np.testing.assert_array_equal(load(tmp_path / "model.json").predict(frame), model.predict(frame))


def test_a_prior_of_numbers_that_lie_elsewhere_is_refused():
    """Its intercept would be far from all targets."""
    frame, year, schema = of_years()
    elsewhere = Schema(schema.columns, target={"column": "year", "low": -40, "high": 40})
    prior = Ridge(5.0, schema=elsewhere).fit(frame, year - 1970.0)
    with pytest.raises(ParameterError, match="numbers between -40 and 40, and here they lie between 1930 and 2010"):
        Ridge(5.0, schema=schema, prior=prior).fit(frame, year)
    wider = Schema(schema.columns, target={"column": "year", "low": 1900, "high": 2000})
    Ridge(5.0, schema=wider, prior=Ridge(5.0, schema=schema).fit(frame, year)).fit(frame, year)


def test_an_interval_that_is_shown_has_a_width():
    """Four digits of 1970 are the same at both ends."""
    frame, year, schema = of_years()
    line = Ridge(50.0, schema=schema, intervals=True).fit(frame, year).summary().cells[-1]
    estimate, low, high = (float(line[place]) for place in (2, 6, 7))
    assert low < estimate < high
    assert Interval(0.30021, 0.29909, 0.30134).readable == ("0.3002", "0.2991", "0.3013")
    assert Interval(1930.0, 1929.815, 1930.133).readable == ("1930.00", "1929.82", "1930.13")
    assert Interval(2.0, -math.inf, math.inf).readable == ("2.000", "-inf", "inf")


def test_exported_models_of_a_target_far_from_zero_predict_in_its_own_units():
    """A pipeline of scikit-learn, and an ONNX graph."""
    onnxruntime = pytest.importorskip("onnxruntime")
    frame, year, schema = of_years()
    model = AdditiveRegressor(5.0, schema=schema).fit(frame, year)
    assert 1930.0 < model.predict(frame).mean() < 2010.0
    np.testing.assert_allclose(model.to_sklearn().predict(frame), model.predict(frame), atol=1e-6)
    session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
    (found,) = session.run(None, {name: frame[[name]].to_numpy(np.float64) for name in frame})
    np.testing.assert_allclose(found.ravel(), model.predict(frame), atol=1e-3)


@pytest.mark.parametrize("make", [Ridge, AdditiveRegressor])
def test_years_are_predicted_about_as_well_as_years_from_1970_on(make):
    """The middle of a range is public, so a fit may subtract it."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(size=(6_000, 12)), columns=[f"x{i}" for i in range(12)])
    columns = {name: {"low": 0, "high": 1} for name in frame}
    year = np.clip(1945 + 50 * frame["x0"] + 20 * frame["x1"] + rng.normal(0, 3, len(frame)), 1930, 2010)
    schema = Schema(columns, target={"column": "year", "low": 1930, "high": 2010})
    assert make(1.0, schema=schema, random_state=0).fit(frame, year).score(frame, year) > 0.8


def test_both_ends_of_the_targets_may_be_given_without_a_schema():
    """In place of target_bound; the same as hand-shifted targets with a bound."""
    X, y = made_up(n=300)
    ends = {"target_low": 99.0, "target_high": 101.0}
    model = Ridge(5.0, random_state=0, **ends).fit(X, y + 100.0)
    other = Ridge(5.0, random_state=0, target_bound=1.0).fit(X, (y + 100.0) - 100.0)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert model.intercept_ == other.intercept_ + 100.0
    assert "declared range, 99 to 101. Its middle, 100, is subtracted" in model.guarantee_.statement()
    counts = PoissonRegressor(5.0, target_low=0.0, target_high=4.0).plan(500, 3)
    assert counts.problem == PoissonRegressor(5.0, target_bound=4.0).plan(500, 3).problem


def test_targets_are_shifted_only_where_the_model_is_the_same_with_another_intercept():
    """Not counts, not without an intercept, not a loss of the user's own, and not where 0 is near the range."""
    X, y = made_up(n=300)
    far, near = {"target_low": 30.0, "target_high": 50.0}, {"target_low": 0.0, "target_high": 20.0}
    assert HuberRegressor(5.0, **far).plan(300, 5).problem.loss.target_bound == 10.0
    assert HuberRegressor(5.0, **near).plan(300, 5).problem.loss.target_bound == 20.0
    assert PoissonRegressor(5.0, **far).plan(300, 5).problem.loss.target_bound == 50.0
    assert HuberRegressor(5.0, fit_intercept=False, **far).plan(300, 5).problem.loss.target_bound == 50.0
    assert ERMRegressor(5.0, loss=Pseudo(), **far).plan(300, 5).problem.loss.target_bound == 50.0
    assert Ridge(5.0, fit_intercept=False, **far).fit(X, y + 40.0).intercept_ == 0.0
