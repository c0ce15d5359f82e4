"""Differences of risks: the formula, its ends, and a table of them."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide.errors import ParameterError
from confide.inference.table import risk_difference


@pytest.mark.parametrize("baseline", [0.001, 0.3, 0.9])
@pytest.mark.parametrize("change", [-3.0, -0.1, 0.0, 2.0])
def test_a_difference_is_that_of_two_logistic_probabilities(baseline, change):
    odds = baseline / (1.0 - baseline) * math.exp(change)
    assert risk_difference(change, baseline) == pytest.approx(odds / (1.0 + odds) - baseline, abs=1e-14)


def test_the_largest_changes_lead_to_certainty():
    assert risk_difference(math.inf, 0.3) == pytest.approx(0.7)
    assert risk_difference(-math.inf, 0.3) == pytest.approx(-0.3)
    assert risk_difference(1e4, 0.3) == pytest.approx(0.7)
    assert risk_difference(-1e4, 0.3) == pytest.approx(-0.3)


def test_a_table_has_a_difference_for_each_coefficient_with_its_interval():
    """In its order, without the intercept; and none where coefficients are no log-odds."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-0.5, 0.5, size=(500, 2))
    model = confide.LogisticRegression(math.inf, interest=["x1", "x0"]).fit(rows, rng.integers(0, 2, 500))
    table = model.summary()
    found = table.risk_differences(0.4)
    assert found.index.tolist() == ["x1", "x0"]
    line = table.coefficients[0]
    assert found.loc["x1", "risk_difference"] == risk_difference(line.estimate, 0.4)
    assert found.loc["x1", ["low", "high"]].tolist() == [risk_difference(line.low, 0.4), risk_difference(line.high, 0.4)]
    for baseline in (0.0, 1.0, "0.3", True, math.nan):
        with pytest.raises(ParameterError, match="baseline"):
            table.risk_differences(baseline)
    with pytest.raises(ParameterError, match="log-odds"):
        confide.Ridge(math.inf, intervals=True, target_bound=1.0).fit(rows, rows[:, 0]).summary().risk_differences(0.4)
