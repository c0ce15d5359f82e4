"""Forecasts for intervals, from public facts: whether to trust them, and how wide they will be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import (
    ApproxDP,
    Ledger,
    LogisticRegression,
    ParameterError,
    PoissonRegressor,
)
from confide.inference.forecast import LARGEST_RATIO, LARGEST_SUMS_RATIO, SumsForecast
from tests.inference.test_intervals import sample


def test_intervals_that_cannot_be_trusted_are_refused_before_the_charge():
    """Few rows, many columns; the message says what to change, and more of it is accepted."""
    ledger = Ledger(limit=10.0)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(500, 20)), rng.integers(0, 2, 500)
    model = LogisticRegression(0.5, inference_share=0.3, classes=[0, 1], ledger=ledger)
    with pytest.raises(ParameterError, match="more rows, a larger budget or inference_share, fewer columns, or ApproxDP"):
        model.fit(X, y)
    assert len(ledger.entries()) == 0
    assert not hasattr(model, "coef_")
    with pytest.raises(ParameterError, match="not be trustworthy"):
        model.plan(500, 20)
    assert model.plan(2_000_000, 20).intervals.is_valid
    assert model.plan(20_000, 2).intervals.is_valid
    assert model.set_params(budget=ApproxDP(0.5, 1e-6)).plan(60_000, 20).intervals.is_valid


def test_the_forecast_compares_noise_with_usual_curvature():
    """Both written out: noise of Gamma length in N dimensions; n rows of mean square 1/3 at half the largest curvature."""
    plan = LogisticRegression(1.0, inference_share=0.3, classes=[0, 1]).plan(10_000, 4)
    forecast, size = plan.intervals, 30
    # Theorem 1 of proofs/moments.md: sqrt(2) R^2, R^2 = 2; root mean square length sqrt(N (N + 1)) over the rate, by entry.
    entry = math.sqrt(2.0) * 2.0 / (0.3 * 0.99) * math.sqrt(size + 1)
    unit = 0.25 / forecast.moments.query.curvature_scale
    assert forecast.curvature_noise == pytest.approx(2.0 * entry * unit / math.sqrt(2.0) * math.sqrt(5.0), rel=0.03)
    assert forecast.usual_curvature == pytest.approx(10_000 * 0.125 / 3.0 / 4.0)
    assert forecast.ratio == forecast.curvature_noise / (forecast.usual_curvature + 10_000 * plan.alpha)
    document = plan.to_dict()["intervals"]
    assert document["ratio"] == forecast.ratio
    assert document["largest_ratio"] == LARGEST_RATIO
    text = str(plan)
    assert "expected interval" in text
    assert "noise up to" in text
    assert LogisticRegression(1.0, classes=[0, 1]).plan(10_000, 4).to_dict()["intervals"] is None


def test_noise_on_the_weights_does_not_pass_through_the_curvature():
    """The share of the variance that is left is that of sampling, of rows with half the largest curvature and slope."""
    arguments = {"inference_share": 0.3, "classes": [0, 1], "alpha": 0.01}
    inside, outside = (
        LogisticRegression(1.0, mechanism=name, **arguments).plan(4_000, 4) for name in ("objective", "output")
    )
    assert inside.intervals.uncertain_share == 1.0
    found, usual = outside.intervals, 4_000 * 0.125 / 3.0 / 4.0
    sampling = usual * 4.0 * 0.5 / (usual + 40.0) ** 2
    on_weights = outside.noise_norm**2 / 5
    assert found.uncertain_share == pytest.approx(sampling / (sampling + on_weights), rel=1e-6)
    assert found.ratio == pytest.approx(found.uncertain_share * found.curvature_noise / (usual + 40.0), rel=1e-6)
    # The same noise on the curvature hides what the other mechanism needs, and not what this one needs.
    with pytest.raises(ParameterError, match=r"100% of the variance of a weight depends on this curvature"):
        LogisticRegression(1.0, mechanism="objective", inference_share=0.3, classes=[0, 1]).plan(2_000, 20)
    assert (
        LogisticRegression(1.0, mechanism="output", inference_share=0.3, classes=[0, 1]).plan(2_000, 20).intervals.is_valid
    )


def test_counts_have_a_curvature_far_below_their_bound():
    """An eighth of it, by the forecast, and as much variance of the slopes."""
    plan = PoissonRegressor(ApproxDP(4.0, 1e-6), target_bound=16.0, inference_share=0.3).plan(40_000, 4)
    found = plan.intervals
    assert found.usual_curvature == pytest.approx(40_000 * 2.0 / 3.0 / 4.0)
    assert found.largest_ratio == 0.3
    noise = plan.noise_norm / (1.0 + found.usual_curvature / plan.l2) / math.sqrt(5.0)
    error = math.hypot(math.sqrt(found.usual_curvature) / (found.usual_curvature + plan.l2), noise)
    inflation = math.hypot(1.0, 0.5 * found.ratio)
    assert found.margin == pytest.approx(1.96 * error * inflation, rel=1e-6)


def test_the_forecast_width_is_near_the_widths_that_come():
    """Within a factor 2."""
    X, y = sample(20_000, 2)
    for mechanism in ("objective", "output"):
        model = LogisticRegression(1.0, inference_share=0.3, mechanism=mechanism, classes=[0, 1], random_state=0).fit(X, y)
        width = np.median(model.uncertainty().margins(0.95)[:3])
        assert 0.5 < model.plan(20_000, 3).intervals.margin / width < 2.2


@pytest.mark.parametrize(("ratio", "is_poor", "lost"), [(0.5, False, ""), (0.6, True, "0.03"), (1.6, True, "0.05")])
def test_a_poor_fit_of_least_squares_is_forecast_by_its_ratio(ratio, is_poor, lost):
    """The line says what was lost at such ratios; above the limit there are no intervals."""
    forecast = SumsForecast(curvature_noise=ratio * 100.0, usual_curvature=100.0, square_deviation=2.0, is_pure=True)
    assert forecast.is_poor == is_poor
    assert (f"lost {lost} of R^2" in forecast.lines().get("poor fit", "")) == is_poor
    if ratio > LARGEST_SUMS_RATIO:
        with pytest.raises(ParameterError, match="not be trustworthy"):
            forecast.check()
    else:
        forecast.check()
