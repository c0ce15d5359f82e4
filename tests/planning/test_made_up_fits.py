"""Forecasts by fits to made-up tables: what the tables say, whom they charge, and how near they are to fits of real rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide.expected_noise import noise_in_rows
from confide.planning import made_up_fits
from confide.planning.advice import verdict_of
from confide.planning.made_up_fits import _N_ROWS, Outcome, _budget_for, _deviance, _table
from confide.planning.simulation import simulate

COLUMNS = {"a": {"low": 0, "high": 10}, "b": {"categories": ["u", "v", "w"]}, "c": {"low": 0, "high": 1}}
TARGETS = {
    "numbers": {"column": "y", "low": 0, "high": 100},
    "counts": {"column": "y", "low": 0, "high": 20},
    "classes": {"column": "y", "classes": ["p", "q", "r"]},
}
SCHEMAS = {kind: confide.Schema.from_dict({"target": target, "columns": COLUMNS}) for kind, target in TARGETS.items()}
MODELS = {"numbers": confide.HuberRegressor, "counts": confide.PoissonRegressor, "classes": confide.LogisticRegression}


def made_up(kind, error, n_rows=4_000):
    """A made-up table and what is predicted."""
    model = MODELS[kind](1.0, schema=SCHEMAS[kind])
    plan = model.plan(n_rows)
    outcome = Outcome.of(model, plan, 0.5 if kind == "classes" else None)
    return _table(model.schema, plan.problem.row_bound, plan.problem.n_features, outcome, error, 0), outcome


@pytest.mark.parametrize(("kind", "error"), [("numbers", 0.3), ("counts", 0.7), ("classes", 0.3)])
def test_a_model_without_privacy_errs_as_guessed_on_made_up_rows(kind, error):
    """The best prediction does, and with one number of straight effect, one flag and three levels a linear model is it."""
    table, _ = made_up(kind, error)
    model = MODELS[kind](math.inf, schema=SCHEMAS[kind], alpha=1e-5).fit(table.rows[:_N_ROWS], table.targets[:_N_ROWS])
    predicted, fresh = model.predict(table.rows[_N_ROWS:]), np.asarray(table.targets[_N_ROWS:])
    if kind == "classes":
        found = np.mean(predicted != fresh)
    elif kind == "counts":
        found = _deviance(fresh, predicted) / _deviance(fresh, np.full(len(fresh), fresh.mean()))
    else:
        found = np.mean((fresh - predicted) ** 2) / fresh.var()
    assert found == pytest.approx(error, abs=0.06)


@pytest.mark.parametrize(("share", "second", "error"), [(0.74, 0.17, 0.23), (0.5, 0.29, 0.1), (1 / 3, 1 / 3, 0.4)])
def test_made_up_classes_have_the_share_of_the_most_frequent_one_that_is_expected(share, second, error):
    """However strong the signal: the others have shares in proportion to 1 / rank^s, 0.74 : 0.17 : 0.09 with an s of 2.1."""
    outcome = Outcome("classes", (0.0, 0.0), ("p", "q", "r"), share)
    targets = np.asarray(_table(SCHEMAS["classes"], None, 5, outcome, error, 1).targets)
    found = [np.mean(targets == label) for label in outcome.labels]
    assert found == pytest.approx([share, second, 1.0 - share - second], abs=0.025)


def test_the_forecast_of_a_weak_signal_is_near_a_constant_answer():
    """Three kinds of work of 15,000 people err by .253 without privacy, .26 always the most frequent, .273 at epsilon 1."""
    levels = {f"c{k}": {"categories": [f"l{i}" for i in range(k)]} for k in (16, 14, 5, 2, 2, 6)}
    numbers = {name: {"low": 0, "high": 100} for name in ("age", "hours", "gain", "loss")}
    schema = confide.Schema.from_dict({"target": TARGETS["classes"], "columns": levels | numbers})
    model = confide.LogisticRegression(1.0, schema=schema)
    assert simulate(model, 15_000, error=0.253, positive_rate=0.74, n_designs=1).error < 0.29


@pytest.mark.parametrize("kind", list(MODELS))
def test_a_forecast_falls_to_the_guess_as_rows_are_added(kind):
    """It is between the guess and about that of a constant answer, and its range holds it."""
    few, many = (simulate(MODELS[kind](1.0, schema=SCHEMAS[kind]), n, error=0.4, n_designs=1) for n in (400, 2_000_000))
    assert few.kind == many.kind == kind
    assert many.error == pytest.approx(0.4, abs=0.02)
    assert few.error > many.error + 0.02
    assert many.low <= many.error <= many.high
    assert few.constant_error == (pytest.approx(2 / 3) if kind == "classes" else 1.0)


@pytest.mark.parametrize(
    "budget", [confide.PureDP(0.5), confide.ApproxDP(0.5, 1e-6), confide.ZCDP(0.02)], ids=lambda b: b.kind
)
def test_fewer_made_up_rows_have_noise_as_large_beside_them(budget):
    """At a tenth of the rows the noise in rows is a tenth, within 15%."""
    model = confide.LogisticRegression(budget, schema=SCHEMAS["classes"])
    plan = model.plan(60_000)
    smaller = confide.LogisticRegression(_budget_for(model, plan, 6_000), schema=SCHEMAS["classes"]).plan(6_000)
    assert noise_in_rows(smaller) / 6_000 == pytest.approx(noise_in_rows(plan) / 60_000, rel=0.15)


def test_a_forecast_charges_nothing(tmp_path):
    """Though the estimator has a ledger, and made-up fits are fits."""
    ledger = confide.Ledger(tmp_path / "study.db", limit=1.0)
    simulate(confide.HuberRegressor(1.0, schema=SCHEMAS["numbers"], ledger=ledger), 1_000, error=0.4, n_designs=1)
    assert len(ledger.entries()) == 0


def test_a_guess_that_no_model_can_have_is_refused():
    """An error of a constant answer or more."""
    with pytest.raises(confide.ParameterError, match="error must lie between 0 and 1, "):
        simulate(confide.HuberRegressor(1.0, schema=SCHEMAS["numbers"]), 1_000, error=1.0)
    with pytest.raises(confide.ParameterError, match=r"error must lie between 0 and 0\.4,"):
        simulate(confide.LogisticRegression(1.0, schema=SCHEMAS["classes"]), 1_000, error=0.5, positive_rate=0.6)


def test_rows_without_a_schema_are_forecast_too():
    """Within a ball, for numbers and three classes."""
    assert simulate(confide.HuberRegressor(1.0, target_bound=5.0), 50_000, 4, error=0.4, n_designs=1).error < 0.7
    three = confide.LogisticRegression(1.0, classes=[0, 1, 2])
    assert 0.3 < simulate(three, 2_000, 4, error=0.3, n_designs=1).error < 0.5


def test_a_plan_for_three_classes_says_what_a_delta_would_bring():
    """Where the error is forecast to lie far above .366 at a pure epsilon of 1, and near it with a delta; of forty flags."""
    flags = {f"soil{i}": {"low": 0, "high": 1} for i in range(40)}
    schema = confide.Schema.from_dict({"target": TARGETS["classes"], "columns": {**COLUMNS, **flags}})
    verdict = verdict_of(confide.LogisticRegression(1.0, schema=schema), 6_000, error=0.366)
    assert verdict.forecast.error > 0.4
    assert verdict.delta.startswith("With a delta of 1e-06 beside this epsilon")
    with_delta = simulate(confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), schema=schema), 6_000, error=0.366)
    assert with_delta.error < verdict.forecast.error - 0.03


def test_the_forecast_for_three_kinds_of_forest_is_near_fits_of_real_rows():
    """Of 3,000 rows, whose error without privacy is .31: .39 at a pure epsilon of 1, and .33 with a delta of 1e-6."""
    bounds = {"Elevation": (1800, 4000), "Aspect": (0, 360), "Slope": (0, 60), "Hillshade": (0, 255)}
    bounds |= {"Hydrology": (0, 1500), "Roadways": (0, 7500), **{f"Wilderness{i}": (0, 1) for i in range(4)}}
    columns = {name: {"low": low, "high": high} for name, (low, high) in bounds.items()}
    model = confide.LogisticRegression(
        1.0, schema=confide.Schema.from_dict({"target": TARGETS["classes"], "columns": columns})
    )
    verdict = verdict_of(model, 3_000, error=0.31, positive_rate=0.49)
    assert 0.36 < verdict.forecast.error < 0.43
    assert verdict.forecast.low < 0.39 < verdict.forecast.high
    assert "Expected error: 31 to" in verdict.delta
    assert verdict_of(model, 3_000, positive_rate=0.49).delta


@pytest.mark.parametrize("bounds", [{"a": (0, 5), "b": (-3, 3)}, (0, 5)], ids=["named", "one pair"])
@pytest.mark.filterwarnings("error")
def test_columns_described_by_bounds_are_forecast_as_a_schema_of_them_is(bounds):
    """Made-up rows lie within the bounds and have the names."""
    columns = bounds if isinstance(bounds, dict) else {"x0": bounds, "x1": bounds}
    schema = confide.Schema({name: {"low": low, "high": high} for name, (low, high) in columns.items()})
    given, described = (
        simulate(confide.AdditiveRegressor(1.0, target_bound=1.0, **more), 5_000, n, error=0.5, n_designs=1).error
        for more, n in (({"bounds": bounds}, None if isinstance(bounds, dict) else 2), ({"schema": schema}, None))
    )
    assert given == described


def test_the_fit_without_privacy_is_made_once_for_all_budgets(monkeypatch):
    """It takes most of the time where there are many weights, and a plan also says what a delta would bring."""
    fits = []
    fitted = made_up_fits._fitted
    monkeypatch.setattr(made_up_fits, "_fitted", lambda model, *rest: fits.append(model.budget) or fitted(model, *rest))
    made_up_fits._table.cache_clear()
    for budget in (1.0, 0.5):
        simulate(confide.LogisticRegression(budget, schema=SCHEMAS["classes"]), 500, error=0.4, n_designs=1)
    assert fits.count(math.inf) == 1
    assert len(fits) == 5
