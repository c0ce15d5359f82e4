"""Losses of a score s = w . x and a target t, each with the public constants that calibrations need.

The derivative of each loss is clipped to [-limit, limit]. The derivative of a convex loss rises with the score, and the
clipped derivative does so too. So the loss stays convex, becomes linear where the limit binds, and has nowhere more
curvature than before. The limit is `threshold`, or `threshold` R / |x| where the loss is `by_length`. Then the gradient of a
row is at most threshold R long, also for a short row. Redberg, Koskela and Wang (2023) clip by length; Huber (1964).

Targets are clipped here to their declared interval, and a target that is not a number counts as the lower end. So the
constants hold for every source of rows. Proofs: privacy/proofs/target_losses.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from confide.erm.losses import Loss, OneScore, Terms
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND
from confide.errors import ParameterError
from confide.types import Array, Targets


class _Clipped(Loss, Protocol):
    """What a loss of this module must define for `_TargetLoss`. Its functions take arrays that broadcast."""

    lowest_target: float
    highest_target: float
    threshold: float

    def value(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        """The loss, never negative."""

    def derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        """Its derivative in the score, in [-limits, limits]."""

    def second_derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        """Its second derivative; at a kink of the derivative, its larger side."""


class _TargetLoss(OneScore):
    """What losses of a score and a target have in common unless they say otherwise."""

    __slots__ = ()
    # A score may lie on either side of its target, so slopes have either sign.
    monotone: ClassVar[bool] = False
    by_length: bool = False
    tapered: ClassVar[bool] = False
    self_concordant: ClassVar[bool] = False

    @property
    def lipschitz(self: _Clipped) -> float:
        return self.threshold

    def of_scores(self: _Clipped, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        within = np.fmin(np.fmax(targets, self.lowest_target), self.highest_target)[:, None]
        limits = self.threshold * stretch if self.by_length else self.threshold
        return Terms(
            self.value(scores, within, limits) if order == 0 else None,
            self.derivative(scores, within, limits) if order >= 1 else None,
            self.second_derivative(scores, within, limits) if order >= 2 else None,
        )


@dataclass(frozen=True, slots=True)
class SquaredLoss(_TargetLoss):
    """(s - t)^2 / 2 with its derivative clipped, t in [-target_bound, target_bound]. L = threshold, c = 1.

    This is Huber's loss, or the clipped square where it is clipped by length.
    """

    target_bound: float
    threshold: float
    by_length: bool = False

    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        _check(self.target_bound, self.threshold)

    # One difference and one product are rounded. The certificate accounts for the lengths of rows.
    rounding: ClassVar[float] = 3.0

    @property
    def name(self) -> str:
        return "clipped_squared" if self.by_length else "huber"

    @property
    def lowest_target(self) -> float:
        return -self.target_bound

    @property
    def highest_target(self) -> float:
        return self.target_bound

    @property
    def value_at_zero(self) -> float:
        # Where losses are clipped by length, a row of zeros has no limit.
        limit = math.inf if self.by_length else self.threshold
        return float(self.value(np.zeros(1), np.array([self.target_bound]), limit)[0])

    def value(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        # The larger of |r| and the limit appears once: (|r| - excess)^2 / 2 + limit excess.
        distance = np.abs(scores - targets)
        inside = np.minimum(distance, limits)
        beyond = distance - inside
        linear: Array = np.where(beyond > 0.0, beyond * inside, 0.0)
        return 0.5 * inside * inside + linear

    def derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        return np.clip(scores - targets, -limits, limits)

    def second_derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        return np.where(np.abs(scores - targets) <= limits, 1.0, 0.0)

    def curvature_at_slope(self, slope: Array) -> Array:
        return np.ones_like(slope)


@dataclass(frozen=True, slots=True)
class PoissonLoss(_TargetLoss):
    """exp(s) - t s - t + t log t with its derivative clipped, t in [0, target_bound]. L = threshold, c = target_bound + L.

    Half the deviance of a count whose mean is exp(s): at least 0, and 0 at s = log t.
    """

    target_bound: float
    threshold: float

    name: ClassVar[str] = "poisson"
    lowest_target: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        _check(self.target_bound, self.threshold)

    @property
    def highest_target(self) -> float:
        return self.target_bound

    @property
    def smoothness(self) -> float:
        return self.target_bound + self.threshold

    @property
    def value_at_zero(self) -> float:
        # It falls with the target below 1 and rises with it above 1, so it is largest at one of the ends.
        ends = np.array([0.0, self.target_bound])
        return float(self.value(np.zeros(2), ends, self.threshold).max()) * (1.0 + 2.0**-40)

    @property
    def rounding(self) -> float:
        # The exponential errs by 8 units of at most target_bound + threshold.
        return 9.0 * (self.smoothness / self.threshold) + 3.0

    def value(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        with np.errstate(all="ignore"):
            # Where the derivative reaches the limits; below, only for a target above the limit.
            low, high = np.log(np.maximum(targets - limits, 0.0)), np.log(targets + limits)
            inside = np.clip(scores, low, high)
            # t (exp(e) - 1 - e) with e = s - log t. Near the minimum a difference of large terms would lose all digits.
            error = inside - np.log(targets)
            far = np.exp(inside) - targets - np.where(targets > 0.0, targets * error, 0.0)
            deviance = np.where(np.abs(error) < 1.0, targets * (np.expm1(error) - error), far)
        return np.maximum(deviance, 0.0) + limits * np.abs(scores - inside)

    def derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        return np.clip(_exponential(scores) - targets, -limits, limits)

    def second_derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        means = _exponential(scores)
        return np.where(np.abs(means - targets) <= limits, means, 0.0)

    def curvature_at_slope(self, slope: Array) -> Array:
        return self.target_bound + slope


def _check(target_bound: float, threshold: float) -> None:
    in_range = SMALLEST_BOUND <= threshold <= LARGEST_BOUND and target_bound >= SMALLEST_BOUND
    # The lengths of short rows may underflow. The error is negligible only if the limit is not extremely small.
    if not (in_range and (2.0**-100 * target_bound <= threshold or target_bound == math.inf)):
        raise ParameterError("threshold must be a positive number, at least 2^-100 of target_bound and at most 2^300.")


def _exponential(scores: Array) -> Array:
    with np.errstate(over="ignore", under="ignore"):
        return np.exp(scores)
