"""Intervals that all hold together: known cases, and the points that stand for draws of a curve's errors."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtri

from confide.inference.intervals import draws_of_errors, level_of_each


def critical_of(errors, level):
    """The largest error of a curve at any place, in units of its deviation, that is not exceeded with this probability."""
    return float(np.quantile(np.abs(draws_of_errors(errors)).max(axis=1), level))


def test_independent_intervals_hold_together():
    assert level_of_each(0.95, 10) ** 10 == pytest.approx(0.95)
    assert level_of_each(0.95, 0) == 0.95


def test_a_curve_that_moves_as_a_whole_needs_no_more_than_one_interval_and_independent_places_what_sidak_says():
    """Also a curve that does not move at all: it has no errors."""
    assert critical_of(np.outer(np.arange(1.0, 8.0), [0.5]), 0.9) == pytest.approx(float(ndtri(0.95)), abs=0.01)
    independent = float(ndtri(0.5 + 0.5 * level_of_each(0.9, 5)))
    assert critical_of(np.diag([1.0, 2.0, 3.0, 0.5, 7.0]), 0.9) == pytest.approx(independent, abs=0.02)
    assert not draws_of_errors(np.zeros((4, 3))).any()


def test_draws_have_the_correlations_of_the_errors_and_deviation_one():
    """Partial sums, whose places depend on each other; a place without an error stays where it is."""
    errors = np.vstack([np.tri(8), np.zeros(8)])
    draws = draws_of_errors(errors)
    covariance = errors[:8] @ errors[:8].T
    deviations = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(np.cov(draws[:, :8].T), covariance / np.outer(deviations, deviations), atol=0.03)
    assert not draws[:, 8].any()


def test_a_simulated_curve_stays_within_the_critical_value():
    """Random walks of 30 steps."""
    errors = np.tri(30)
    curves = np.random.default_rng(0).normal(size=(20_000, 30)) @ errors.T / np.sqrt(np.arange(1, 31))
    assert (np.abs(curves).max(axis=1) <= critical_of(errors, 0.95)).mean() == pytest.approx(0.95, abs=0.008)
