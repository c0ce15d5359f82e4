"""Exact privacy losses, by integration."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide import ZCDP, ApproxDP
from confide.audit.densities import exact
from confide.errors import ParameterError
from confide.privacy.noise import Entropy
from tests.privacy.densities import gaussian_multiplier, gaussian_profile

ROW = 1.0 - 2.0**-30
FIRST, SECOND = ([[ROW], [0.2], [ROW]], [1, -1, 1]), ([[ROW], [0.2], [ROW]], [1, -1, -1])
COMMON = {"alpha": 100.0, "fit_intercept": False, "loss": "huber_hinge", "centre": False}


def test_the_worst_pair_of_laplace_noise_costs_epsilon():
    """All slopes are -1, so nearly the whole budget is used. The seal has a thousandth, and the curvature a little."""
    found = exact(confide.LinearSVC(1.0, mechanism="objective", **COMMON), FIRST, SECOND)
    assert found.shown == pytest.approx(0.997, abs=2e-3)
    assert not found.refuted
    assert found.delta(0.0) == pytest.approx(1.0 - math.exp(-0.5 * found.shown), abs=1e-3)


def test_the_worst_pair_of_gaussian_noise_costs_its_delta():
    """The curve of a Gaussian mechanism, and rho half of its squared shift."""
    noise = exact(confide.LinearSVC(ZCDP(0.1), mechanism="output", **COMMON), FIRST, SECOND)
    assert noise.rho == pytest.approx(0.1, rel=0.02)
    assert noise.delta(0.5) == pytest.approx(gaussian_profile(0.5, math.sqrt(0.2)), rel=0.03)
    assert noise.epsilon(1e-2) < exact(confide.LinearSVC(ZCDP(0.2), mechanism="output", **COMMON), FIRST, SECOND).epsilon(
        1e-2
    )


def test_two_weights_agree_with_one(monkeypatch):
    """A second column that is empty costs nothing in output perturbation."""
    wide = [(np.column_stack([np.array(rows), np.zeros(3)]), y) for rows, y in (FIRST, SECOND)]
    estimator = confide.LinearSVC(ApproxDP(1.0, 1e-2), mechanism="output", **COMMON)
    assert exact(estimator, *wide, n_points=81).shown == pytest.approx(exact(estimator, FIRST, SECOND).shown, rel=0.02)
    assert gaussian_multiplier(1.0, 1e-2) > 0.0


def test_rows_that_are_twice_as_long_are_refuted():
    """A plan for rows of norm 1 on rows that are not clipped."""
    from confide.erm.row_bounds import BallBound

    long = [(3.0 * np.array(rows), y) for rows, y in (FIRST, SECOND)]
    estimator = confide.LinearSVC(1.0, mechanism="objective", **COMMON)
    assert not exact(estimator, *long).refuted
    clip = BallBound.clip
    try:
        BallBound.clip = lambda self, rows, scratch=None: np.asarray(rows)
        found = exact(estimator, *long)
    finally:
        BallBound.clip = clip
    assert found.refuted
    assert "more than was claimed" in str(found)
    assert found.to_dict()["epsilon"] == pytest.approx(3.0, rel=0.02)


def test_what_cannot_be_integrated_is_refused():
    """Too many weights, an unknown density, a coarse grid."""
    wide = np.eye(3), [1, -1, 1]
    with pytest.raises(ParameterError, match="one or two weights"):
        exact(confide.LinearSVC(1.0, alpha=1.0), wide, wide)
    with pytest.raises(ParameterError, match="not known"):
        exact(confide.LogisticRegression(ZCDP(0.5), mechanism="gradient", alpha=1.0), FIRST, SECOND)
    with pytest.raises(ParameterError, match="too coarse"):
        exact(confide.LogisticRegression(1.0, alpha=0.5), FIRST, ([[ROW], [0.2], [-0.5]], [1, -1, 1]), n_points=4)
    assert Entropy.fresh().is_secret
