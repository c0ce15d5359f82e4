"""The forecast of intervals for named coefficients: formulas, what is refused, and what people read."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide.errors import ParameterError


def plan_of(n=20_000, d=10, budget=None, **parameters):
    given = confide.ApproxDP(1.0, 1e-6) if budget is None else budget
    return confide.LogisticRegression(given, interest=["x0"], **parameters).plan(n, d)


def test_the_forecast_follows_from_public_facts():
    """Typical rows add n c / 2 to the curvature in each direction of the frame; errors are those of the formulas."""
    plan = plan_of().intervals
    facts, curvature = plan.facts, 20_000 * 0.125
    assert facts.usual_curvature == pytest.approx(curvature)
    first = math.hypot(math.sqrt(curvature), 5.0 * facts.sums_deviations[0]) / curvature
    of_weights = math.hypot(math.sqrt(curvature), facts.slope_deviation) / curvature
    hidden = facts.curvature_deviation * math.sqrt(11.0) / curvature
    second = 3.0 * hidden * of_weights
    assert (plan.first_order, plan.second_order) == pytest.approx((first, second))
    assert plan.hidden == pytest.approx(hidden)
    (named,) = plan.combinations
    # Noise of the last step, and of the weights before it: part of the step leaves the least of both.
    noises = np.hypot([math.sqrt(first**2 - 1.0 / curvature), 2.0 * facts.slope_deviation / curvature], second)
    # A typical row of a ball is 1 / root 3 long, over ten columns.
    error = math.sqrt(1.0 / curvature + 1.0 / np.sum(noises**-2.0)) * math.sqrt(30.0)
    assert plan.margin(named) == pytest.approx(1.959964 * error)
    assert plan.smallest_effect(named) == pytest.approx((1.959964 + 0.841621) * error)


def test_the_forecast_of_a_level_is_that_of_equally_frequent_ones():
    """The rows that are compared lie half a unit from their middle, which is not clipped; other columns move them too."""
    schema = confide.Schema(columns={"site": {"categories": ["a", "b", "c"]}, "x": {"low": 0, "high": 10}})
    model = confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), schema=schema, interest=["site", "x"])
    plan = model.plan(20_000).intervals
    level, _, number = plan.combinations
    spread = math.sqrt(0.5 / 3.0)
    curvature = plan.facts.usual_curvature
    first = math.hypot(math.sqrt(curvature), (0.5 / spread + 4.0) * plan.facts.sums_deviations[0]) / curvature
    noises = np.hypot(
        [math.sqrt(first**2 - 1.0 / curvature), 2.0 * plan.facts.slope_deviation / curvature], plan.second_order
    )
    assert plan.error_of(level) == pytest.approx(math.sqrt(1.0 / curvature + 1.0 / np.sum(noises**-2.0)) / spread)
    # A number from 0 to 10 that is spread evenly has a standard deviation of 10 / root 12.
    assert plan.spread_of(number) == pytest.approx(10.0 / math.sqrt(12.0))
    assert plan.error_of(number) == pytest.approx(plan.error / plan.spread_of(number))
    sentences = plan.sentences()
    of_number = 1.959964 * plan.error
    assert f"if the column, on its scale, has a standard deviation of 2.89, and {of_number:.3g} over that" in sentences[2]
    assert "if levels are equally frequent, and" in sentences[0]


def test_a_plan_whose_intervals_would_often_rest_on_a_supposition_is_refused_before_any_row():
    """With the budget that would do, which is then taken, and intervals for all coefficients where there are any."""
    with pytest.raises(ParameterError, match="not be trustworthy") as refused:
        plan_of(n=6_000)
    message = str(refused.value)
    (epsilon,) = re.findall(r"A budget that would do: .* epsilon = ([\d.]+) and delta = 1e-06", message)
    plan_of(n=6_000, budget=confide.ApproxDP(float(epsilon), 1e-6))
    with pytest.raises(ParameterError, match="not be trustworthy"):
        plan_of(n=6_000, budget=confide.ApproxDP(float(epsilon) / 1.3, 1e-6))
    assert "inference_share=0.3" in message
    confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), inference_share=0.3).plan(6_000, 10)
    with pytest.raises(ParameterError, match="More rows, fewer columns") as hopeless:
        plan_of(n=100, budget=confide.ApproxDP(0.01, 1e-6))
    assert "would do" not in str(hopeless.value)


@pytest.mark.parametrize(("size", "is_refused"), [(0.98, False), (1.02, True)])
def test_the_limit_is_the_one_that_tables_gave(size, is_refused):
    """Noise in the curvature of 7% of what typical rows add to it, of 12% for arrays; without privacy there is no limit."""
    schema = confide.Schema(columns={"x0": {"low": 0, "high": 1}, "x1": {"low": 0, "high": 1}})
    for good, limit in ((plan_of().intervals, 0.12), (plan_of(d=None, schema=schema).intervals, 0.07)):
        deviation = good.facts.curvature_deviation * size * limit / good.hidden
        changed = replace(good, facts=replace(good.facts, curvature_deviation=deviation))
        assert changed.is_trustworthy is not is_refused
        assert replace(changed, budget=confide.PureDP(math.inf)).is_trustworthy


def test_a_refused_noise_is_shown_above_its_limit():
    """Also where it is hardly above: 0.07, where 0.07 is allowed, would be no reason."""
    schema = confide.Schema(columns={"x0": {"low": 0, "high": 1}, "x1": {"low": 0, "high": 1}})
    good = plan_of(d=None, schema=schema).intervals
    near = replace(good.facts, curvature_deviation=good.facts.curvature_deviation * 0.07001 / good.hidden)
    assert "would be 0.071 of what typical rows add to it, where 0.07 is allowed" in str(
        replace(good, facts=near).refusal("")
    )


def test_the_plan_says_what_to_expect():
    """In lines for people and as JSON: the width, and the effect that is found with power 80%."""
    plan = plan_of()
    text, found = str(plan), plan.to_dict()["intervals"]
    expected = plan.intervals.margin(plan.intervals.combinations[0])
    assert f"x0 (per 1, as given): about +- {expected:.3g} at 95%" in " ".join(text.split())
    assert "in one account with the weights" in text
    assert found["interest"][0]["expected_margin"] == expected
    assert found["interest"][0]["supposed_standard_deviation"] == pytest.approx(1.0 / math.sqrt(30.0))
    assert found["interest"][0]["smallest_effect"] == pytest.approx(expected * 2.801585 / 1.959964)
    assert found["is_joint"] is True
    assert np.isfinite([found["hidden"], found["first_order"], found["second_order"]]).all()
    assert "in one account" not in str(plan_of(n=500_000, budget=1.0))


def test_the_plan_says_what_the_share_of_the_rarer_outcome_changes():
    """Rows curve by p (1 - p), over the largest, three quarters of that of the mean: half where one in five has it."""
    plan = plan_of().intervals
    half, tenth = plan.at_rate(0.5), plan.at_rate(0.1)
    assert (half.curvature_share, tenth.curvature_share) == pytest.approx((0.75, 0.27))
    curvature = 20_000 * 0.25 * 0.27
    first = math.hypot(math.sqrt(curvature), 5.0 * plan.facts.sums_deviations[0]) / curvature
    assert tenth.first_order == pytest.approx(first)
    assert plan.at_rate(0.211).error == pytest.approx(plan.error, rel=0.02)
    assert plan.widths_by_rate == {0.5: half.error / plan.error, 0.1: tenth.error / plan.error}
    said = plan.lines()["widths"]
    assert f"{half.error / plan.error:.2g} times as wide if half" in said
    assert f"{tenth.error / plan.error:.2g} times if one in ten" in said
    assert plan.to_dict()["widths_by_rate"] == {"0.5": half.error / plan.error, "0.1": tenth.error / plan.error}


def test_the_forecast_of_a_difference_of_risks_adds_up_its_two_errors():
    """That of the coefficient at the steepest rate, and the noise on the sum for the effect that the test finds."""
    plan = plan_of(risk_differences=True).intervals
    (named,) = plan.combinations
    effect = plan.smallest_effect(named)
    expected = math.hypot(0.25 * plan.error_of(named), math.tanh(effect / 4.0) * plan.risks.deviation / 20_000)
    assert plan.error_of_risk(named) == pytest.approx(expected, rel=1e-5)
    assert plan.margin_of_risk(named, 0.9) == pytest.approx(1.644854 * expected, rel=1e-5)
    assert plan.error_of_risks == pytest.approx(expected * plan.spread_of(named), rel=1e-5)
    assert f"{plan.margin_of_risk(named):.3g}" in plan.sentences()[0]


def test_the_share_of_differences_of_risks_is_that_with_the_least_forecast(monkeypatch):
    """Of the four that are compared; without them a plan is what it was."""
    from confide.training import budget_shares

    chosen = plan_of(risk_differences=True).intervals
    found = {}
    for share in (0.01, 0.02, 0.04, 0.08):
        monkeypatch.setattr(budget_shares, "_SHARES_OF_RISKS", (share,))
        found[share] = plan_of(risk_differences=True, alpha=0.001).intervals.error_of_risks
    monkeypatch.undo()
    best = plan_of(risk_differences=True, alpha=0.001).intervals
    assert best.error_of_risks == min(found.values())
    assert found[best.shares[-1]] == best.error_of_risks
    assert len(plan_of().intervals.shares) == 4
    assert chosen.share > plan_of().intervals.share
