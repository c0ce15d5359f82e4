"""Smooth losses in place of the hinge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.declared_losses import DeclaredLoss
from confide.erm.hinges import Hinge, HuberHinge, LogisticHinge, SmoothHinge
from confide.erm.losses import LogisticLoss
from confide.erm.target_losses import SquaredLoss
from confide.erm.weighted_losses import Weighted
from confide.errors import ParameterError

GRID = np.linspace(-30.0, 30.0, 240_001)


@pytest.mark.parametrize("smoothing", [0.05, 0.5, 4.0])
def test_the_logistic_hinge_is_softplus_of_the_distance_to_its_margin(smoothing):
    """h log(1 + exp((1 - z) / h)) of scores h times as large: h log 2 above the hinge at its corner, nowhere more."""
    loss, z = LogisticHinge(smoothing), np.linspace(-3.0, 5.0, 1601)
    rounded = smoothing * loss.value(z / smoothing)
    np.testing.assert_allclose(rounded, smoothing * np.logaddexp(0.0, (1.0 - z) / smoothing), rtol=1e-12)
    above = rounded - np.maximum(0.0, 1.0 - z)
    assert above.min() >= -1e-12
    assert above.max() == pytest.approx(smoothing * math.log(2.0), rel=1e-12)
    assert z[above.argmax()] == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("smoothing", [0.05, 0.5, 2.0])
def test_smooth_hinges_stay_close_above_the_hinge(smoothing):
    """hinge <= smooth hinge <= hinge + 3h/16, and hinge <= Huber hinge <= hinge + h/4; all are continuous at the joints."""
    hinge = Hinge().value(GRID)
    for loss, gap in ((SmoothHinge(smoothing), 3 * smoothing / 16), (HuberHinge(smoothing), smoothing / 4)):
        difference = loss.value(GRID) - hinge
        assert difference.min() >= -1e-12
        assert difference.max() <= gap + 1e-12
        assert difference.max() >= 0.99 * gap
        for joint in (1.0 - smoothing, 1.0 + smoothing):
            around = np.array([joint - 1e-9, joint + 1e-9])
            assert abs(np.diff(loss.value(around))[0]) < 1e-8
            assert abs(np.diff(loss.derivative(around))[0]) < 1e-7


@pytest.mark.parametrize("smoothing", [0.0, -1.0, math.inf, math.nan, True])
def test_smoothing_outside_its_range_is_refused(smoothing):
    """Positive and finite, and not a flag."""
    with pytest.raises(ParameterError):
        HuberHinge(smoothing)
    with pytest.raises(ParameterError):
        LogisticHinge(smoothing)


@pytest.mark.parametrize("wrapped", [lambda loss: loss, lambda loss: Weighted(loss, 2.0), lambda loss: OneVsRest(loss, 3)])
def test_a_loss_says_where_its_corner_is_and_how_wide(wrapped):
    """Weights and several classes pass on what the loss of one row says; a loss without a margin of its own has 1."""
    for loss, margin, smoothing in [
        (LogisticLoss(), 1.0, None),
        (Hinge(), 1.0, None),
        (HuberHinge(0.3), 1.0, 0.3),
        (SmoothHinge(0.25), 1.0, 0.25),
        (LogisticHinge(0.25), 4.0, 0.25),
    ]:
        assert (wrapped(loss).margin, wrapped(loss).smoothing) == (margin, smoothing)


def test_a_loss_that_is_no_hinge_has_no_corner():
    """The losses of several classes, of targets and of users have margin 1 and no smoothing."""
    declared = DeclaredLoss(LogisticHinge(0.25), None, "own", 1.0, 0.25, 5.0, 12.0, monotone=True)
    for loss in (Softmax(3), SquaredLoss(1.0, 1.0), declared):
        assert (loss.margin, loss.smoothing) == (1.0, None)
