"""Forecasts around the budget, and rates on private rows."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from confide import ApproxDP, ParameterError, PureDP
from confide.planning.simulation import simulate
from confide.report.accuracy import (
    accuracy_picture,
    budgets_around,
    charge_of_rates,
    checked_evaluation,
    forecast_note,
    forecasts_of,
    rates_of,
)
from tests.report.released import logistic, rates, without_privacy


def made_up(epsilon, error):
    """A forecast, without the simulation."""
    plan = SimpleNamespace(event=SimpleNamespace(budget=PureDP(epsilon)))
    return SimpleNamespace(
        error=error, low=error - 0.01, high=error + 0.02, non_private_error=0.1, constant_error=0.4, plan=plan
    )


def test_budgets_lie_around_the_chosen_one_and_keep_its_delta():
    found = budgets_around(ApproxDP(1.0, 1e-6))
    assert [budget.epsilon for budget in found] == [0.25, 0.5, 1.0, 2.0, 4.0]
    assert {budget.delta for budget in found} == {1e-6}


def test_forecasts_are_those_of_the_planner(monkeypatch):
    """With the model's own parameters and number of rows, at each budget; one of them is simulated here."""
    asked = []

    def simulated(estimator, n_rows, n_features, **guesses):
        asked.append((estimator.budget, n_rows, n_features, guesses))
        return estimator

    monkeypatch.setattr("confide.report.accuracy.simulate", simulated)
    found = forecasts_of(logistic()[0], 0.2, 0.4)
    assert [each[0] for each in asked] == budgets_around(PureDP(1.0))
    assert {each[1:3] for each in asked} == {(600, None)}
    assert asked[0][3] == {"error": 0.2, "positive_rate": 0.4}
    assert all(each.ledger is None for each in found)
    assert simulate(found[2], 600, error=0.2, positive_rate=0.4).error > 0.2
    with pytest.raises(ParameterError, match="private models"):
        forecasts_of(without_privacy(), 0.2)


def test_the_picture_shows_the_chosen_budget_larger_and_accuracy_rising():
    drawing = accuracy_picture([made_up(0.5, 0.3), made_up(1.0, 0.2), made_up(2.0, 0.15)], 1.0)
    points = re.findall(r'<circle class="point" cx="([0-9.]+)" cy="([0-9.]+)" r="(\d)"', drawing)
    assert [radius for *_, radius in points] == ["3", "6", "3"]
    heights = [float(y) for _, y, _ in points]
    assert heights == sorted(heights, reverse=True)
    assert "epsilon 1: 80.0%" in drawing
    assert "90.0%" in forecast_note([made_up(0.5, 0.3)])


def test_an_evaluation_is_read_as_it_is_and_as_json():
    found = checked_evaluation(rates())
    assert found == checked_evaluation(found) == checked_evaluation({"evaluation": found})
    assert [name for name, _ in rates_of(found)] == ["Accuracy", "Sensitivity", "Specificity", "AUC"]
    assert f"{found['accuracy']['value']:.3f} (" in rates_of(found)[0][1]
    hidden = found | {"auc": {"value": None, "low": None, "high": None}}
    assert rates_of(hidden)[3][1] == "the noise hides it"
    assert checked_evaluation(None) is None


@pytest.mark.parametrize("damage", [{"accuracy": 0.5}, {"auc": {"value": 2.0, "low": 0.0, "high": 1.0}}])
def test_what_is_no_evaluation_is_refused(damage):
    with pytest.raises(ParameterError, match="evaluation"):
        checked_evaluation(rates().to_dict() | damage)
    with pytest.raises(ParameterError, match="evaluation must be"):
        checked_evaluation({"accuracy": 1.0})


@pytest.mark.parametrize(
    ("charge", "words"),
    [
        ({"charge": {"ledger": "held_out.db"}}, "to the ledger held_out.db."),
        ({"charge": {"ledger": "postgresql://host/db?password=x"}}, "to the ledger postgresql://host/db."),
        ({"charge": {"ledger": None}}, "to no ledger"),
        ({}, "not known"),
    ],
)
def test_the_ledger_of_rates_is_named_where_it_is_known(charge, words):
    assert words in charge_of_rates(charge)
