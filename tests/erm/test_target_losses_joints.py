"""Losses with kinks, and the widths of the joints that take their place."""

from __future__ import annotations

import math

import pytest

from confide.erm.class_losses import OneVsRest
from confide.erm.losses import Hinge, HuberHinge, LogisticLoss, SmoothHinge
from confide.erm.target_losses import SquaredLoss, TiltedLoss
from confide.erm.transformed_losses import DeclaredLoss, InterpolatedSlopes

KINKED = DeclaredLoss(object(), 3.0, "own", 1.0, math.inf, 1.0, 1024.0, False)
SMOOTH = DeclaredLoss(object(), None, "own", 1.0, 2.0, 1.0, 1024.0, False)


@pytest.mark.parametrize("loss", [Hinge(), TiltedLoss.absolute(2.0), KINKED], ids=lambda loss: loss.constants.name)
def test_kinks_are_seen_and_joined(loss):
    """The joint has the width asked for, can be made narrower, and leaves no kink; slopes are no steeper."""
    assert loss.constants.has_kinks
    joined = loss.with_joint(0.25)
    assert not joined.constants.has_kinks
    assert math.isfinite(joined.constants.smoothness)
    assert joined.constants.joint == 0.25
    assert joined.with_joint(0.125).constants.joint == 0.125
    assert joined.constants.lipschitz == loss.constants.lipschitz
    assert joined.constants.unit == loss.constants.unit


def test_the_joint_of_a_loss_can_be_read_and_replaced():
    """One joint, that of each class, and none."""
    assert HuberHinge(0.25).constants.joint == OneVsRest(SmoothHinge(0.25), 3).constants.joint == 0.25
    assert LogisticLoss().constants.joint is None
    assert Hinge().constants.joint is None
    assert SMOOTH.constants.joint is None
    assert not SMOOTH.constants.has_kinks
    assert SmoothHinge(0.25).with_joint(0.125) == SmoothHinge(0.125)
    assert OneVsRest(HuberHinge(0.25), 3).with_joint(0.125) == OneVsRest(HuberHinge(0.125), 3)
    assert Hinge().with_joint(0.125) == HuberHinge(0.125)


def test_widths_of_a_user_s_loss_are_powers_of_two():
    """In units of the largest power of two within the bound on targets, so that multiples of the width are exact."""
    assert KINKED.constants.unit == 2.0
    assert KINKED.with_joint(0.3) == InterpolatedSlopes(KINKED, 0.5, rises=True)
    assert TiltedLoss.absolute(3.0).constants.unit == 3.0
    assert SMOOTH.constants.unit == Hinge().constants.unit == 1.0


def test_units_of_scores_are_bounds_on_targets():
    """Of the square as they are, of a user's loss the power of two within, with a joint or without; exact powers stay."""
    own = [DeclaredLoss(object(), bound, "own", 1.0, math.inf, 1.0, 1024.0, False) for bound in (4.0, 0.75, 7.5)]
    assert [each.constants.unit for each in own] == [4.0, 0.5, 4.0]
    assert [InterpolatedSlopes(each, 0.25, rises=True).constants.unit for each in own] == [4.0, 0.5, 4.0]
    assert SquaredLoss(3.0, 1.0).constants.unit == 3.0
    assert InterpolatedSlopes(SMOOTH, 0.25, rises=True).constants.unit == LogisticLoss().constants.unit == 1.0


def test_joints_of_every_kind_of_loss():
    """Half of the width, which for a user's loss is rounded down to a power of two; a quantile keeps its slopes."""
    for half_width, width in ((0.25, 0.5), (0.2, 0.25), (0.375, 0.5), (0.5, 1.0)):
        made = KINKED.with_joint(half_width)
        assert (
            made
            == InterpolatedSlopes(KINKED, width, rises=True)
            == InterpolatedSlopes(KINKED, 2.0, rises=True).with_joint(half_width)
        )
        assert made.constants.joint == 0.5 * width
    quantile = TiltedLoss.of_quantile(0.25, 2.0)
    assert quantile.with_joint(0.125) == TiltedLoss(2.0, -0.25, 0.75, 0.125)
    assert quantile.with_joint(0.125).constants.joint == 0.125
    assert quantile.constants.joint is None
    assert OneVsRest(Hinge(), 4).with_joint(0.5) == OneVsRest(HuberHinge(0.5), 4)
    for loss in (HuberHinge(0.1), quantile.with_joint(0.1), LogisticLoss(), made, OneVsRest(LogisticLoss(), 3)):
        assert not loss.constants.has_kinks
