"""Losses with kinks, and the smooth losses that take their place: the same slopes, with a joint at each kink."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from confide.erm.class_losses import OneVsRest
from confide.erm.declared_losses import DeclaredLoss
from confide.erm.hinges import Hinge, HuberHinge, SmoothHinge
from confide.erm.losses import Loss
from confide.erm.rising_slopes import RisingSlopes
from confide.erm.target_losses import SquaredLoss
from confide.erm.tilted_losses import TiltedLoss


def has_kinks(loss: Loss) -> bool:
    """Whether noise on the weights needs a joint in place of the kinks of this loss."""
    return isinstance(loss, Hinge | TiltedLoss | DeclaredLoss) and not math.isfinite(loss.smoothness)


def unit_of_scores(loss: Loss) -> float:
    """A public number of the size of the scores that the loss asks for, in which widths of joints are given.

    1 for losses of the margin, and the bound on targets for others. For slopes at multiples of a width it is a power of two.
    """
    if isinstance(loss, TiltedLoss | SquaredLoss):
        return loss.target_bound
    declared = loss.loss if isinstance(loss, RisingSlopes) else loss
    if not isinstance(declared, DeclaredLoss) or declared.target_bound is None:
        return 1.0
    return 2.0 ** math.floor(math.log2(declared.target_bound))


def joint_of(loss: Loss) -> float | None:
    """Half the width of the joint of a loss, or of the loss of each class; None for other losses."""
    of_one = loss.loss if isinstance(loss, OneVsRest) else loss
    if isinstance(of_one, RisingSlopes):
        return 0.5 * of_one.width
    return of_one.smoothing if isinstance(of_one, HuberHinge | SmoothHinge | TiltedLoss) else None


def with_joint(loss: Any, half_width: float) -> Any:
    """The same loss with a joint of this width. The hinge itself becomes a `HuberHinge`.

    For a loss that a user wrote, twice the half width is rounded down to a power of two.
    """
    if isinstance(loss, OneVsRest):
        return replace(loss, loss=with_joint(loss.loss, half_width))
    if isinstance(loss, DeclaredLoss | RisingSlopes):
        declared = loss.loss if isinstance(loss, RisingSlopes) else loss
        return RisingSlopes(declared, 2.0 ** math.floor(math.log2(2.0 * half_width)))
    return HuberHinge(half_width) if isinstance(loss, Hinge) else replace(loss, smoothing=half_width)
