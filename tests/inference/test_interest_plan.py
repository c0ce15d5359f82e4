"""The forecast of intervals for named coefficients: formulas, what is refused, and what people read."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide.errors import ParameterError
from confide.inference.interest_plan import LARGEST_SCORE_ERROR, LARGEST_SECOND_ORDER


def plan_of(n=20_000, d=10, budget=None, **parameters):
    given = confide.ApproxDP(1.0, 1e-6) if budget is None else budget
    return confide.LogisticRegression(given, interest=["x0"], **parameters).plan(n, d)


def test_the_forecast_follows_from_public_facts():
    """Typical rows add n (c / 2) |x|^2 / d to the curvature; errors of first and second order are those of the formulas."""
    plan = plan_of().intervals
    facts, curvature = plan.facts, 20_000 * 0.125 / 3.0 / 10
    assert plan.usual_curvature == pytest.approx(curvature)
    clip = 3.0 * math.sqrt(1.0 / 30.0)
    first = math.hypot(math.sqrt(curvature), clip * facts.sums_deviations[0]) / curvature
    noise = np.array(facts.noise_in_objective)
    assert noise[-1] > 1.7 * noise[0]
    assert math.sqrt(np.sum(noise**2)) == pytest.approx(plan_of().noise.norm)
    of_weights = math.hypot(math.sqrt(curvature), noise[0]) / curvature
    second = facts.curvature_deviation * math.sqrt(10.0) * of_weights / curvature
    assert (plan.first_order, plan.second_order) == pytest.approx((first, second))
    assert plan.hidden == pytest.approx(facts.curvature_deviation * math.sqrt(11.0) / curvature)
    of_constant = noise[-1] / 2_500.0
    assert plan.score_error == pytest.approx(of_weights**2 / 3.0 + of_constant**2)
    (named,) = plan.combinations
    # Of the step and of the weight itself as much as leaves least noise beside the sampling error.
    of_step, of_near = first**2 + second**2 - 1.0 / curvature, of_weights**2 - 1.0 / curvature
    error = math.sqrt(1.0 / curvature + of_step * of_near / (of_step + of_near))
    assert error < 0.98 * math.hypot(first, second)
    assert plan.margin(named) == pytest.approx(1.959964 * error)
    assert plan.smallest_effect(named) == pytest.approx((1.959964 + 0.841621) * error)


def test_a_plan_whose_weights_are_mostly_noise_is_refused_before_any_row():
    """At either limit; both are named, with what helps."""
    with pytest.raises(ParameterError, match="mostly noise"):
        plan_of(n=1_000, budget=confide.ApproxDP(0.3, 1e-6))
    good = plan_of().intervals
    good.check()
    for changed in (
        {"noise_in_objective": tuple(100.0 * each for each in good.facts.noise_in_objective)},
        {"curvature_deviation": good.facts.curvature_deviation * 100.0},
    ):
        bad = replace(good, facts=replace(good.facts, **changed))
        assert bad.score_error > LARGEST_SCORE_ERROR or bad.second_order > LARGEST_SECOND_ORDER * bad.first_order
        with pytest.raises(ParameterError, match="not be trustworthy"):
            bad.check()


@pytest.mark.parametrize(("size", "is_refused"), [(0.98, False), (1.02, True)])
def test_the_limits_are_those_that_simulations_gave(size, is_refused):
    """A mean squared error of scores of one half, and errors of second order as large as those of first order."""
    good = plan_of().intervals
    facts = replace(good.facts, curvature_deviation=0.0)
    low, high = 1.0, 1e6
    for _ in range(80):
        middle = math.sqrt(low * high)
        score_error = replace(good, facts=replace(facts, noise_in_objective=middle)).score_error
        low, high = (middle, high) if score_error < 0.5 * size else (low, middle)
    ratio = good.second_order / good.first_order
    for changed in (
        replace(good, facts=replace(facts, noise_in_objective=low)),
        replace(good, facts=replace(good.facts, curvature_deviation=good.facts.curvature_deviation * size / ratio)),
    ):
        if is_refused:
            with pytest.raises(ParameterError, match="not be trustworthy"):
                changed.check()
        else:
            changed.check()


def test_the_plan_says_what_to_expect():
    """In lines for people and as JSON: the width, and the effect that is found with power 80%."""
    plan = plan_of()
    text, found = str(plan), plan.to_dict()["intervals"]
    expected = plan.intervals.margin(plan.intervals.combinations[0])
    assert f"x0 (per 1, as given): about +- {expected:.3g} at 95%" in text
    assert "in one account with the weights" in text
    assert found["interest"][0]["expected_margin"] == expected
    assert found["interest"][0]["smallest_effect"] == pytest.approx(expected * 2.801585 / 1.959964)
    assert found["is_joint"] is True
    assert np.isfinite([found["score_error"], found["first_order"], found["second_order"]]).all()
    assert "in one account" not in str(plan_of(n=500_000, budget=1.0))


def test_the_forecast_of_a_difference_of_risks_adds_up_its_two_errors():
    """That of the coefficient at the steepest rate, and the noise on the sum for the effect that the test finds."""
    plan = plan_of(risk_differences=True).intervals
    (named,) = plan.combinations
    effect = plan.smallest_effect(named)
    expected = math.hypot(0.25 * plan.error_of(named), math.tanh(effect / 4.0) * plan.risks.deviation / 20_000)
    assert plan.error_of_risk(named) == pytest.approx(expected, rel=1e-5)
    assert plan.margin_of_risk(named, 0.9) == pytest.approx(1.644854 * expected, rel=1e-5)
    assert plan.error_of_risks == pytest.approx(expected, rel=1e-5)
    assert f"{plan.margin_of_risk(named):.3g}" in plan.sentences()[0]


def test_the_share_of_differences_of_risks_is_that_with_the_least_forecast(monkeypatch):
    """Of the four that are compared; without them a plan is what it was."""
    from confide.training import interest_choice

    chosen = plan_of(risk_differences=True).intervals
    found = {}
    for share in (0.01, 0.02, 0.04, 0.08):
        monkeypatch.setattr(interest_choice, "_SHARES_OF_RISKS", (share,))
        found[share] = plan_of(risk_differences=True, alpha=0.001).intervals.error_of_risks
    monkeypatch.undo()
    best = plan_of(risk_differences=True, alpha=0.001).intervals
    assert best.error_of_risks == min(found.values())
    assert found[best.shares[2]] == best.error_of_risks
    assert len(plan_of().intervals.shares) == 2
    assert chosen.share > plan_of().intervals.share
