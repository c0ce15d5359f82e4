"""A user's convex loss with its kinks joined: convex, and with the constants that the page says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.erm.transformed_losses import DeclaredLoss, InterpolatedSlopes


class Insensitive:
    """The absolute error beyond 0.3, and 0 below: kinks on both sides of the target."""

    def value(self, score, target):
        """max(0, |r| - 0.3)."""
        return np.maximum(np.abs(score - target) - 0.3, 0.0)

    def derivative(self, score, target):
        """Its slope."""
        return np.where(np.abs(score - target) <= 0.3, 0.0, np.sign(score - target))


class Corner:
    """The hinge."""

    def value(self, margin):
        """max(0, 1 - z)."""
        return np.maximum(0.0, 1.0 - margin)

    def derivative(self, margin):
        """Its slope."""
        return np.where(margin < 1.0, -1.0, 0.0)


def made(loss, width, *, lipschitz=1.0, bound=2.0, monotone=False, at_zero=1.7):
    """The loss as a plan takes it."""
    return InterpolatedSlopes(
        DeclaredLoss(loss, bound, "own", lipschitz, math.inf, at_zero, 1024.0, monotone), width, rises=True
    )


def slopes(loss, scores, target, order=1):
    """Slopes and curvatures of one problem."""
    terms = loss.of_scores(np.asarray(scores, dtype=float)[:, None], np.full(len(scores), target), order)
    return terms.slope[:, 0], None if terms.curvature is None else terms.curvature[:, 0]


@pytest.mark.parametrize("width", [2.0**-6, 0.25])
def test_slopes_rise_at_the_rate_of_the_constants(width):
    """Between all pairs of neighbouring scores, for targets off the grid, and the rate 2L / h is that of a jump of 2 L."""
    scores, fastest = np.linspace(-4.0, 4.0, 40_001), 0.0
    for target in (0.0, 0.1234567, -5.0):
        loss = made(Insensitive(), width)
        found, curvature = slopes(loss, scores, target, order=2)
        assert (np.diff(found) >= 0.0).all()
        assert np.abs(found).max() <= loss.constants.lipschitz
        assert (np.diff(found) <= loss.constants.smoothness * np.diff(scores) * (1 + 1e-9)).all()
        np.testing.assert_allclose(np.cumsum(curvature) * 2e-4, found - found[0], atol=0.1)
        fastest = max(fastest, curvature.max())
    assert made(Insensitive(), width).constants.smoothness == 2.0 / width
    assert fastest == 1.0 / width


def test_a_loss_of_one_sign_bends_half_as_much():
    """The hinge's slopes lie in [-1, 0], so c = L / h, and that is attained."""
    loss = made(Corner(), 0.25, bound=None, monotone=True)
    found, curvature = slopes(loss, np.linspace(-2.0, 3.0, 1001), 1, order=2)
    assert loss.constants.smoothness == curvature.max() == 4.0
    assert found.min() == -1.0
    assert found.max() == 0.0


@pytest.mark.parametrize("target", [0.0, 0.7, -1.99, 0.299])
@pytest.mark.parametrize("width", [0.25, 1.0, 4.0])
def test_the_joined_loss_is_nowhere_negative_and_near_the_user_s(target, width):
    """Lifted by half of h V at 0, the integral of the slopes lies between 0 and h V above the loss. V = 2 L here."""
    loss, user = made(Insensitive(), width), Insensitive()
    scores = np.linspace(-6.0, 6.0, 240_001)
    found = slopes(loss, scores, target)[0]
    integral = np.concatenate([[0.0], np.cumsum(0.5 * (found[1:] + found[:-1]) * np.diff(scores))])
    lift = loss.constants.value_at_zero - loss.loss.constants.value_at_zero
    assert lift == pytest.approx(width)
    above = integral - integral[120_000] + lift + user.value(0.0, target) - user.value(scores, target)
    assert above.min() >= -1e-4
    assert above.max() <= 2.0 * width + 1e-4


def test_the_declared_rounding_counts():
    """Interpolation has 8 units, and the user's own come on top: a certificate must know of both."""
    assert made(Corner(), 0.5).constants.rounding == 8.0 + 1024.0


@pytest.mark.parametrize("score", [2.0**53 + 2.0, 1e300, -(2.0**60)])
def test_far_scores_are_multiples_themselves(score):
    """From 2^52 widths on the slope is that of the loss at the score, exactly."""
    assert slopes(made(Insensitive(), 2.0**-8), [score], 0.5)[0][0] == np.sign(score)


def test_slopes_and_curvatures_by_hand():
    """Slopes 0, 0, 1, 1 at 0, 1/4, 1/2, 3/4 of the absolute error beyond 0.3; what falls by mistake has no curvature."""
    loss = made(Insensitive(), 0.25)
    scores = np.array([0.125, 0.25, 0.375, 0.4375, 0.5, 0.7])
    found, curvature = slopes(loss, scores, 0.0, order=2)
    assert found.tolist() == [0.0, 0.0, 0.5, 0.75, 1.0, 1.0]
    assert curvature.tolist() == [0.0, 4.0, 4.0, 4.0, 0.0, 0.0]
    assert slopes(loss, scores, 0.0)[1] is None
    assert (loss.constants.smoothness, loss.constants.value_at_zero) == (8.0, 1.7 + 0.25)
    one_sign = made(Insensitive(), 0.25, lipschitz=3.0, monotone=True)
    assert (one_sign.constants.smoothness, one_sign.constants.value_at_zero) == (12.0, 1.7 + 0.375)

    class Falling:
        """No convex function."""

        def derivative(self, score, target):
            """-s, or what is no number above 2."""
            return np.where(score > 2.0, np.nan, -score)

    found, curvature = slopes(made(Falling(), 0.5, lipschitz=5.0), [0.25, 2.25, 3.25], 0.0, order=2)
    assert found.tolist() == [-0.25, -3.5, -5.0]
    assert curvature.tolist() == [0.0, 0.0, 0.0]
