"""Levels of intervals that all hold together: known cases, and simulated curves."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from confide.inference.bands import level_of_band, level_of_each


def test_independent_intervals_hold_together():
    assert level_of_each(0.95, 10) ** 10 == pytest.approx(0.95)
    assert level_of_each(0.95, 0) == 0.95


def test_one_error_needs_no_more_than_its_own_level_and_independent_ones_that_of_sidak():
    """A curve that moves as a whole, one that does not move, and five places that are independent."""
    assert level_of_band(0.9, np.outer(np.arange(1.0, 8.0), [0.5])) == pytest.approx(0.9, abs=2e-3)
    assert level_of_band(0.9, np.zeros((4, 3))) == 0.9
    assert level_of_band(0.9, np.diag([1.0, 2.0, 3.0, 0.5, 7.0])) == pytest.approx(level_of_each(0.9, 5), abs=2e-3)


def test_a_simulated_curve_stays_in_its_band():
    """Partial sums of noise, a curve whose places depend on each other."""
    errors = np.tri(30)
    critical = float(ndtri(0.5 + 0.5 * level_of_band(0.95, errors)))
    curves = np.random.default_rng(0).normal(size=(20_000, 30)) @ errors.T / np.sqrt(np.arange(1, 31))
    assert (np.abs(curves).max(axis=1) <= critical).mean() == pytest.approx(0.95, abs=0.008)
