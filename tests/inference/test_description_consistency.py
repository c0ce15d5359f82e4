"""Counts that agree."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from confide.inference.description import with_margins, with_total
from confide.privacy.tables import common_total


def test_the_nearest_counts_with_a_total_are_found():
    """Beside a general solver."""
    rng = np.random.default_rng(0)
    for total in (0.0, 3.0, 50.0):
        counts = rng.normal(5.0, 8.0, 7)
        found = with_total(counts, total)
        assert found.min() >= 0.0
        assert found.sum() == pytest.approx(total)
        start = np.full(7, total / 7)
        limits = [{"type": "eq", "fun": lambda x, total=total: x.sum() - total}]
        best = minimize(lambda x, c=counts: ((x - c) ** 2).sum(), start, bounds=[(0, None)] * 7, constraints=limits)
        assert ((found - counts) ** 2).sum() <= best.fun + 1e-6


def test_counts_that_agree_already_stay():
    """Nothing is to be done."""
    counts = np.array([4.0, 0.0, 6.0])
    assert with_total(counts, 10.0).tolist() == [4.0, 0.0, 6.0]


def test_tables_with_fewer_cells_say_more_about_the_total():
    """The variance of a total is that of its cells together."""
    assert common_total([np.array([10.0, 10.0]), np.array([5.0, 5.0, 5.0, 5.0, 5.0, 5.0])]) == pytest.approx(22.5)
    assert common_total([np.array([-10.0, 2.0])]) == 0.0


def test_margins_are_met():
    """Negative counts, an empty row, and no rows at all."""
    rng = np.random.default_rng(1)
    counts = rng.normal(5.0, 8.0, (4, 3))
    rows, columns = np.array([30.0, 0.0, 20.0, 10.0]), np.array([45.0, 14.0, 1.0])
    found = with_margins(counts, rows, columns)
    assert found.min() >= 0.0
    np.testing.assert_allclose(found.sum(axis=1), rows, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), columns, atol=1e-6)
    assert with_margins(counts, np.zeros(4), np.zeros(3)).tolist() == np.zeros((4, 3)).tolist()
