"""The least subgradient: a minimiser has none but 0, and any other point has a longer one."""

from __future__ import annotations

import numpy as np

from confide.erm.penalties import least_subgradients


def test_it_is_the_nearest_point_of_the_subdifferential_to_zero():
    """Against a search over all slopes of the penalty, on points with zeros of both signs."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        weights = rng.choice([-1.5, -0.0, 0.0, 0.5], 3)
        gradient, l1 = rng.normal(size=3) * 2.0, rng.choice([0.0, 0.5, 2.0], 3)
        slopes = np.linspace(-1.0, 1.0, 20_001)
        nearest = [
            g + s * np.sign(w) if w != 0.0 else min(g + s * slopes, key=abs)
            for w, g, s in zip(weights, gradient, l1, strict=True)
        ]
        found = least_subgradients(weights[None], gradient[None], l1)[0]
        np.testing.assert_allclose(found, nearest, atol=2e-4)


def test_what_is_not_a_number_stays_so():
    """A certificate must not pass for weights or gradients that are no numbers."""
    found = least_subgradients(np.array([[np.nan, 0.0]]), np.array([[np.nan, np.nan]]), np.ones(2))
    assert np.isnan(found).all()


def test_least_subgradients_by_hand():
    """At a weight of 0 what the penalty cannot take up; elsewhere the penalty's slope on top; strengths for each weight."""
    weights = np.array([[0.0, 0.0, 0.0, 2.0, -2.0], [1.0, -0.0, 0.0, -0.0, 0.0]])
    gradients = np.array([[3.0, -3.0, 0.5, 0.5, 0.5], [-2.0, 1.0, 1.5, 0.25, -4.0]])
    l1 = np.array([1.0, 1.0, 1.0, 2.0, 3.0])
    expected = [[2.0, -2.0, 0.0, 2.5, -2.5], [-1.0, 0.0, 0.5, 0.0, -1.0]]
    assert least_subgradients(weights, gradients, l1).tolist() == expected
