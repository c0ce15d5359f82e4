"""The picture of expected accuracy against the budget."""

from __future__ import annotations

import pytest

import confide
from confide import ApproxDP, ParameterError, PrivacyAccuracyDisplay
from confide.planning import simulate

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
plt.switch_backend("Agg")
MODEL = confide.LogisticRegression(ApproxDP(1.0, 1e-6), classes=[0, 1])


def test_forecasts_are_those_of_simulate_in_order_of_their_budgets():
    budgets = [ApproxDP(1.0, 1e-6), ApproxDP(0.05, 1e-6)]
    display = PrivacyAccuracyDisplay.from_estimator(MODEL, 2000, 3, error=0.2, budgets=budgets)
    alone = simulate(MODEL, 2000, 3, error=0.2)
    assert [each.plan.event.budget.epsilon for each in display.forecasts] == [0.05, 1.0]
    assert display.forecasts[1].error == alone.error
    (line,) = [line for line in display.ax_.get_lines() if line.get_label() == "forecast"]
    assert line.get_ydata().tolist() == [1.0 - each.error for each in display.forecasts]
    assert display.ax_.get_xlabel() == "epsilon (delta = 1e-06)"
    _, ax = plt.subplots()
    assert display.plot(ax=ax).ax_ is ax
    plt.close("all")


def test_the_budgets_go_from_a_quarter_to_four_times_the_chosen_one(monkeypatch):
    """A delta stays as it is."""
    asked = []

    def seen(estimator, *args, **others):
        asked.append(estimator.budget)
        return simulate(MODEL, 2000, 3, error=0.2)

    monkeypatch.setattr("confide.displays.plans.simulate", seen)
    PrivacyAccuracyDisplay.from_estimator(MODEL, 2000, 3, error=0.2)
    assert asked == [ApproxDP(factor, 1e-6) for factor in (0.25, 0.5, 1.0, 2.0, 4.0)]
    plt.close("all")


def test_budgets_of_another_kind_are_refused():
    with pytest.raises(ParameterError, match="of the kind that the estimator has"):
        PrivacyAccuracyDisplay.from_estimator(MODEL, 2000, 3, error=0.2, budgets=[1.0])
