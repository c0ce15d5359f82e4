"""The guess of how much the mean loss of typical rows bends."""

from __future__ import annotations

import math

import pytest

from confide.erm.losses import Hinge, HuberHinge, LogisticLoss
from confide.erm.target_losses import SquaredLoss, TiltedLoss
from confide.erm.transformed_losses import DeclaredLoss
from confide.training.alpha import usual_curvature, usual_slope

OWN = DeclaredLoss(object(), 4.0, "own", 1.0, math.inf, 1.0, 1024.0, False)


@pytest.mark.parametrize("joint", [2.0**-12, 2.0**-6])
@pytest.mark.parametrize("loss", [Hinge(), TiltedLoss.absolute(4.0), OWN], ids=lambda loss: loss.constants.name)
def test_a_joint_does_not_change_the_curvature_of_the_mean(loss, joint):
    """Few rows lie in a joint, so the narrower it is, the more they bend the loss: the mean stays."""
    residuals, unit = loss.constants.target_bound is not None, 1.0 if isinstance(loss, Hinge) else 4.0
    expected = 8.0 / 4.0 if residuals else 0.5
    assert usual_curvature(loss.constants, unit, has_residuals=residuals) == expected
    assert usual_curvature(loss.with_joint(joint).constants, unit, has_residuals=residuals) == expected


def test_a_smooth_loss_has_its_own():
    """Its largest curvature; and a wide joint bends no more than it can."""
    assert usual_curvature(LogisticLoss().constants, 1.0, has_residuals=False) == 0.25
    assert usual_curvature(SquaredLoss(4.0, 1.0).constants, 4.0, has_residuals=True) == 1.0
    assert usual_curvature(HuberHinge(8.0).constants, 1.0, has_residuals=False) == 1.0 / 16.0


def test_losses_of_a_target_have_residuals():
    """Losses of the margin have none."""
    assert OWN.constants.target_bound
    assert OWN.with_joint(0.5).constants.target_bound
    assert SquaredLoss(4.0, 1.0).constants.target_bound
    assert not Hinge().constants.target_bound
    assert not DeclaredLoss(object(), None, "own", 1.0, 1.0, 1.0, 1024.0, False).constants.target_bound


def test_slopes_of_residuals_with_kinks_are_steep():
    """Nearly every row has a slope of the full size; of margins and of smooth losses about half of the rows have."""
    assert (
        usual_slope(TiltedLoss.absolute(4.0).constants)
        == usual_slope(OWN.constants)
        == usual_slope(OWN.with_joint(0.5).constants)
        == 1.0
    )
    assert usual_slope(LogisticLoss().constants) == usual_slope(Hinge().constants) == 0.5
    assert usual_slope(SquaredLoss(4.0, 3.0).constants) == 1.5
