"""Smooth losses in place of the hinge."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.target_losses import SquaredLoss
from confide.erm.transformed_losses import DeclaredLoss
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


@pytest.mark.parametrize(
    "constants",
    [lambda loss: loss.constants, lambda loss: loss.constants.weighted(2.0), lambda loss: OneVsRest(loss, 3).constants],
)
def test_a_loss_says_where_its_corner_is_and_how_wide(constants):
    """Weights and several classes pass on what the loss of one row says; a loss without a margin of its own has 1."""
    for loss, margin, joint in [
        (LogisticLoss(), 1.0, None),
        (Hinge(), 1.0, None),
        (HuberHinge(0.3), 1.0, 0.3),
        (SmoothHinge(0.25), 1.0, 0.25),
        (LogisticHinge(0.25), 4.0, None),
    ]:
        assert (constants(loss).margin, constants(loss).joint) == (margin, joint)


def test_a_loss_that_is_no_hinge_has_no_corner():
    """The losses of several classes, of targets and of users have margin 1 and no joint."""
    declared = DeclaredLoss(LogisticHinge(0.25), None, "own", 1.0, 0.25, 5.0, 12.0, monotone=True)
    for loss in (Softmax(3), SquaredLoss(1.0, 1.0), declared):
        assert (loss.constants.margin, loss.constants.joint) == (1.0, None)


def test_the_logistic_hinge_by_hand():
    """With h = 1/4 the corner is at 4: log(1 + e^4) at margin 0, and log 2, slope -1/2 and curvature 1/4 at the corner."""
    loss, corner = LogisticHinge(0.25), np.array([4.0])
    assert loss.constants.value_at_zero == pytest.approx(math.log(1.0 + math.exp(4.0)), rel=1e-15, abs=0.0)
    found = (
        loss.value(corner),
        loss.derivative(corner),
        loss.second_derivative(corner),
        loss.constants.curvature_at_slope(corner / 8),
    )
    np.testing.assert_allclose(np.ravel(found), [math.log(2.0), -0.5, 0.25, 0.25], rtol=1e-15)


HUBER = {0.25: (0.75, -1, 0), 0.5: (0.5, -1, 1), 0.75: (9 / 32, -0.75, 1), 1: (1 / 8, -0.5, 1), 1.5: (0, 0, 1), 2: (0, 0, 0)}
SMOOTH = {
    0.25: (0.75, -1, 0), 0.5: (0.5, -1, 0), 0.75: (135 / 512, -27 / 32, 9 / 8), 1: (3 / 32, -0.5, 1.5),
    1.25: (7 / 512, -5 / 32, 9 / 8), 1.5: (0, 0, 0), 2: (0, 0, 0),
}  # fmt: skip
KINKED = {0: (1, -1, 0), 0.75: (0.25, -1, 0), 1: (0, -1, 0), math.nextafter(1, 2): (0, 0, 0), 3: (0, 0, 0)}


@pytest.mark.parametrize(
    ("loss", "by_hand"),
    [(HuberHinge(0.5), HUBER), (SmoothHinge(0.5), SMOOTH), (Hinge(), KINKED)],
    ids=["huber", "smooth", "hinge"],
)
def test_hinges_by_hand(loss, by_hand):
    """Below, in and above the joint, whose ends count as bent where the curvature jumps there; the kink has slope -1."""
    margins = np.array(list(by_hand), dtype=float)
    found = np.stack([loss.value(margins), loss.derivative(margins), loss.second_derivative(margins)], axis=1)
    np.testing.assert_array_equal(found, np.array(list(by_hand.values())))


def test_the_curvature_at_a_slope_by_hand():
    """All slopes of the Huber hinge bend alike; the smooth one bends by 3/4 (1 - s^2) / h at slope (2 + 3s - s^3) / 4."""
    np.testing.assert_array_equal(HuberHinge(0.25).constants.curvature_at_slope(np.array([0.0, 0.3, 1.0])), [2.0] * 3)
    # The slopes of s = -1, -1/2, 0, 1/2 and 1; beyond 0 and 1 what rounding may have made of these.
    slopes = np.array([-(2.0**-50), 0.0, 5 / 32, 0.5, 27 / 32, 1.0, 1.0 + 2.0**-50])
    expected = [0.0, 0.0, 2.25, 3.0, 2.25, 0.0, 0.0]
    np.testing.assert_allclose(SmoothHinge(0.25).constants.curvature_at_slope(slopes), expected, atol=1e-7)
    kinked = Hinge().constants.curvature_at_slope(np.array([0.0, 2.0**-60, 0.5, 1.0 - 2.0**-53, 1.0]))
    np.testing.assert_array_equal(kinked, [0.0, math.inf, math.inf, math.inf, 0.0])


@pytest.mark.parametrize("kind", [HuberHinge, SmoothHinge])
@pytest.mark.parametrize("smoothing", [2.0**-1000, 1e-3, 1e300])
def test_joints_have_any_positive_finite_width(kind, smoothing):
    """The value at margin 0 is that of a joint around 1, which reaches beyond 0 if it is wider than 1."""
    loss = kind(smoothing)
    s = min(1.0, 1.0 / smoothing)
    joint = smoothing * ((1.0 + s) ** 2 / 4 if kind is HuberHinge else (1.0 + s) ** 3 * (3.0 - s) / 16)
    assert loss.constants.value_at_zero == pytest.approx(joint if smoothing > 1.0 else 1.0, rel=1e-14)


def test_the_least_smoothing_of_the_logistic_hinge():
    """2^-20, since the corner of a smaller one would be so far out that margins near it are rounded."""
    assert LogisticHinge(2.0**-20).margin == 2.0**20
    assert LogisticHinge(1e300).constants.value_at_zero == pytest.approx(math.log(2.0))
    with pytest.raises(ParameterError, match=r"at least 2\^-20"):
        LogisticHinge(math.nextafter(2.0**-20, 0.0))


def test_the_flags_of_hinges():
    """They fall with the margin; only the logistic one is tapered and self-concordant."""
    for loss in (LogisticHinge(), HuberHinge(), SmoothHinge(), Hinge()):
        assert (
            loss.constants.monotone,
            loss.constants.by_length,
            loss.constants.separable,
            loss.constants.n_outputs,
            loss.constants.rank,
        ) == (True, False, True, 1, 1)
        assert (loss.constants.tapered, loss.constants.self_concordant) == (
            (True, True) if loss.constants.name == "logistic_hinge" else (False, False)
        )
        assert (loss.constants.lipschitz, loss.constants.rounding, loss.constants.trace) == (
            1.0,
            12.0,
            loss.constants.smoothness,
        )
        assert loss.constants.has_kinks == (loss.constants.name == "hinge")
        assert loss.constants.has_straight_joints == (loss.constants.name == "huber_hinge")
