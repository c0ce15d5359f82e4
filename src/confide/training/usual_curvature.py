"""How much the mean loss of typical rows bends: a guess from public facts, on which no proof rests."""

from __future__ import annotations

import math

from confide.erm.declared_losses import DeclaredLoss
from confide.erm.hinges import Hinge, HuberHinge
from confide.erm.interpolated_slopes import InterpolatedSlopes
from confide.erm.losses import Loss
from confide.erm.tilted_losses import TiltedLoss

_USUAL_CURVATURE = {True: 8.0, False: 0.5}
"""Curvature of the mean of losses with kinks over many rows, in units of the slope over the size of scores. Residuals (True)
are spread over a small part of the range of targets, and margins (False) over a few units."""

_USUAL_SLOPE = 0.5
"""The root mean square of the slopes of most losses over typical rows, in units of the largest slope."""


def usual_curvature(loss: Loss, unit: float, *, has_residuals: bool) -> float:
    """The curvature of the mean loss in the score, over typical rows."""
    if math.isfinite(loss.smoothness) and not isinstance(loss, Hinge | HuberHinge | TiltedLoss | InterpolatedSlopes):
        return loss.smoothness
    return min(loss.smoothness, _USUAL_CURVATURE[has_residuals] * loss.lipschitz / unit)


def usual_slope(loss: Loss) -> float:
    """The root mean square of the slopes of typical rows. Residuals are seldom so small that a kink is near."""
    is_steep = isinstance(loss, TiltedLoss | InterpolatedSlopes | DeclaredLoss) and is_of_residuals(loss)
    return loss.lipschitz * (1.0 if is_steep else _USUAL_SLOPE)


def is_of_residuals(loss: Loss) -> bool:
    """Whether the loss is one of a score and a target."""
    own = loss.loss if isinstance(loss, InterpolatedSlopes) else loss
    return getattr(own, "target_bound", None) is not None
