"""Weights from sums over rows, noisy or not."""

from __future__ import annotations

import numpy as np
import pytest

from confide.training.least_squares import ridge_weights


@pytest.mark.parametrize("l2", [1e-6, 1.0, 1e3])
def test_positive_sums_give_the_minimiser(l2):
    """The gradient P w - t + l2 w is 0."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 4))
    products, targets = rows.T @ rows, rng.normal(size=4)
    weights = ridge_weights(products, targets, l2)
    np.testing.assert_allclose((products + l2 * np.eye(4)) @ weights, targets, rtol=1e-10, atol=1e-10)


def test_negative_eigenvalues_count_as_none():
    """An eigenvalue that noise pushed below 0 counts as 0: weights along it are targets over the ridge, of the same sign."""
    weights = ridge_weights(np.diag([4.0, -1.0, -100.0]), np.array([6.0, 1.0, 1.0]), 2.0)
    np.testing.assert_allclose(weights, [1.0, 0.5, 0.5])


def test_a_tiny_ridge_does_not_magnify_rounding():
    """With two equal columns and a ridge of 1e-300, weights are finite and share the target."""
    rows = np.random.default_rng(1).normal(size=(100, 1)) @ np.ones((1, 2))
    weights = ridge_weights(rows.T @ rows, rows.T @ rows[:, 0], 1e-300)
    np.testing.assert_allclose(weights, [0.5, 0.5], rtol=0.2)


def test_a_prior_is_the_minimiser_where_the_sums_say_nothing():
    """And elsewhere the weights solve (P + l2) w = t + l2 prior."""
    prior = np.array([3.0, -2.0])
    nothing = ridge_weights(np.zeros((2, 2)), np.zeros(2), 5.0, prior)
    np.testing.assert_allclose(nothing, prior, rtol=1e-12)
    products, targets = np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([1.0, 4.0])
    weights = ridge_weights(products, targets, 5.0, prior)
    np.testing.assert_allclose(products @ weights + 5.0 * (weights - prior), targets, rtol=1e-12)
