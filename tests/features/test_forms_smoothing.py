"""Smoothing: what the form penalises, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest

from confide import ParameterError, Smooth
from confide.features.forms import smoothing_form

EVEN = np.linspace(-1.0, 1.0, 8)


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("ridge", [1.0, 4.0])
def test_the_form_is_the_ridge_the_differences_and_the_mean_in_one_unit(order, ridge):
    """P = ridge c (I + s D'D + h 11'/k), computed here again; c makes the mean of the diagonal of its inverse 1 / ridge."""
    form = smoothing_form(EVEN, Smooth(7.0, ridge=ridge), order)
    weights = np.random.default_rng(0).normal(size=8)
    differences = np.diff(np.eye(8), order, axis=0)
    largest = 1.0 + 7.0 * np.linalg.svd(differences)[1].max() ** 2
    plain = weights @ weights + 7.0 * (np.diff(weights, order) ** 2).sum() + largest * weights.sum() ** 2 / 8.0
    unit = weights @ form @ weights / plain
    other = np.arange(8.0)
    plain = other @ other + 7.0 * (np.diff(other, order) ** 2).sum() + largest * other.sum() ** 2 / 8.0
    assert other @ form @ other == pytest.approx(unit * plain)
    assert np.diag(np.linalg.inv(form)).mean() == pytest.approx(1.0 / ridge)


def test_order_two_leaves_straight_lines_and_both_orders_hold_the_mean_near_zero():
    """A line through 0 costs the least there is where second differences count; constants and zigzags cost much more."""
    line, zigzag = np.arange(8.0) - 3.5, np.resize([1.0, -1.0], 8)
    for order in (1, 2):
        form = smoothing_form(EVEN, Smooth(100.0), order)
        costs = [weights @ form @ weights / (weights @ weights) for weights in (line, np.ones(8), zigzag)]
        assert min(costs[1:]) > 15.0 * costs[0]
        if order == 2:
            assert costs[0] == pytest.approx(np.linalg.eigvalsh(form)[0])


def test_uneven_knots_compare_slopes():
    """A straight line over uneven knots is as smooth as one over even knots."""
    points = np.array([-1.0, -0.9, 0.0, 0.2, 1.0])
    line = points - points.mean()
    form = smoothing_form(points, Smooth(1e3), 2)
    assert line @ form @ line == pytest.approx(np.linalg.eigvalsh(form)[0] * (line @ line), rel=1e-6)
    assert np.diff(np.diff(line)).max() > 0.1


@pytest.mark.parametrize(
    "given", [{"strength": 0.0}, {"strength": 1e7}, {"strength": True}, {"order": 3}, {"order": True}, {"ridge": -1.0}]
)
def test_numbers_outside_their_range_are_refused(given):
    """Before anything else happens."""
    with pytest.raises(ParameterError):
        Smooth(**given)
    with pytest.raises(ParameterError, match="more than 2 weights"):
        smoothing_form(np.array([-1.0, 1.0]), Smooth(), 2)
