"""Losses with kinks, and the widths of the joints that take their place."""

from __future__ import annotations

import math

import pytest

from confide.erm.class_losses import OneVsRest
from confide.erm.losses import Hinge, HuberHinge, LogisticLoss, SmoothHinge
from confide.erm.target_losses import SquaredLoss, TiltedLoss, has_kinks, joint_of, unit_of_scores, with_joint
from confide.erm.transformed_losses import DeclaredLoss, RisingSlopes

KINKED = DeclaredLoss(object(), 3.0, "own", 1.0, math.inf, 1.0, 1024.0, False)
SMOOTH = DeclaredLoss(object(), None, "own", 1.0, 2.0, 1.0, 1024.0, False)


@pytest.mark.parametrize("loss", [Hinge(), TiltedLoss.absolute(2.0), KINKED], ids=lambda loss: loss.name)
def test_kinks_are_seen_and_joined(loss):
    """The joint has the width asked for, can be made narrower, and leaves no kink; slopes are no steeper."""
    assert has_kinks(loss)
    joined = with_joint(loss, 0.25)
    assert not has_kinks(joined)
    assert math.isfinite(joined.smoothness)
    assert joint_of(joined) == 0.25
    assert joint_of(with_joint(joined, 0.125)) == 0.125
    assert joined.lipschitz == loss.lipschitz
    assert unit_of_scores(joined) == unit_of_scores(loss)


def test_the_joint_of_a_loss_can_be_read_and_replaced():
    """One joint, that of each class, and none."""
    assert joint_of(HuberHinge(0.25)) == joint_of(OneVsRest(SmoothHinge(0.25), 3)) == 0.25
    assert joint_of(LogisticLoss()) is None
    assert joint_of(Hinge()) is None
    assert joint_of(SMOOTH) is None
    assert not has_kinks(SMOOTH)
    assert with_joint(SmoothHinge(0.25), 0.125) == SmoothHinge(0.125)
    assert with_joint(OneVsRest(HuberHinge(0.25), 3), 0.125) == OneVsRest(HuberHinge(0.125), 3)
    assert with_joint(Hinge(), 0.125) == HuberHinge(0.125)


def test_widths_of_a_user_s_loss_are_powers_of_two():
    """In units of the largest power of two within the bound on targets, so that multiples of the width are exact."""
    assert unit_of_scores(KINKED) == 2.0
    assert with_joint(KINKED, 0.3) == RisingSlopes(KINKED, 0.5)
    assert unit_of_scores(TiltedLoss.absolute(3.0)) == 3.0
    assert unit_of_scores(SMOOTH) == unit_of_scores(Hinge()) == 1.0


def test_units_of_scores_are_bounds_on_targets():
    """Of the square as they are, of a user's loss the power of two within, with a joint or without; exact powers stay."""
    own = [DeclaredLoss(object(), bound, "own", 1.0, math.inf, 1.0, 1024.0, False) for bound in (4.0, 0.75, 7.5)]
    assert [unit_of_scores(each) for each in own] == [4.0, 0.5, 4.0]
    assert [unit_of_scores(RisingSlopes(each, 0.25)) for each in own] == [4.0, 0.5, 4.0]
    assert unit_of_scores(SquaredLoss(3.0, 1.0)) == 3.0
    assert unit_of_scores(RisingSlopes(SMOOTH, 0.25)) == unit_of_scores(LogisticLoss()) == 1.0


def test_joints_of_every_kind_of_loss():
    """Half of the width, which for a user's loss is rounded down to a power of two; a quantile keeps its slopes."""
    for half_width, width in ((0.25, 0.5), (0.2, 0.25), (0.375, 0.5), (0.5, 1.0)):
        made = with_joint(KINKED, half_width)
        assert made == RisingSlopes(KINKED, width) == with_joint(RisingSlopes(KINKED, 2.0), half_width)
        assert joint_of(made) == 0.5 * width
    quantile = TiltedLoss.of_quantile(0.25, 2.0)
    assert with_joint(quantile, 0.125) == TiltedLoss(2.0, -0.25, 0.75, 0.125)
    assert joint_of(with_joint(quantile, 0.125)) == 0.125
    assert joint_of(quantile) is None
    assert with_joint(OneVsRest(Hinge(), 4), 0.5) == OneVsRest(HuberHinge(0.5), 4)
    for loss in (HuberHinge(0.1), with_joint(quantile, 0.1), LogisticLoss(), made, OneVsRest(LogisticLoss(), 3)):
        assert not has_kinks(loss)
