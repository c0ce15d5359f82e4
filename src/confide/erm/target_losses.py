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
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol

import numpy as np

from confide.array_types import Array, Targets
from confide.erm.class_losses import OneVsRest
from confide.erm.losses import Hinge, HuberHinge, Loss, OneScore, SmoothHinge, Terms
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND
from confide.erm.transformed_losses import DeclaredLoss, RisingSlopes
from confide.errors import ParameterError


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


# The absolute error and the loss of quantiles, and the same with a joint in place of the kink.
#
# Targets are clipped here to their declared interval, and a target that is not a number counts as the lower end. Source:
# Koenker and Bassett (1978), Regression quantiles. Proof: privacy/proofs/declared_slopes.md, section 5.


@dataclass(frozen=True, slots=True)
class TiltedLoss(OneScore):
    """max(low r, high r) of the residual r = score - target, where low < 0 < high. L = max(-low, high).

    With a joint of half-width h its slope rises from low at r = -h to high at r = h along a straight line, so c = (high -
    low) / (2 h). The best constant score is a quantile of the targets: a share of -low / (high - low) of them lies below.

    Parameters
    ----------
    target_bound : targets are clipped to [-target_bound, target_bound]
    low, high : the slopes below and above the target, between 2^-20 and 1 in size
    smoothing : the half-width h of the joint; None for a kink
    """

    target_bound: float
    low: float
    high: float
    smoothing: float | None = None

    monotone: ClassVar[bool] = False
    by_length: ClassVar[bool] = False
    tapered: ClassVar[bool] = False
    self_concordant: ClassVar[bool] = False
    # One difference, a quotient, a product and a sum of numbers of at most 2 lipschitz.
    rounding: ClassVar[float] = 12.0

    def __post_init__(self) -> None:
        if not 2.0**-20 <= min(-self.low, self.high) <= max(-self.low, self.high) <= 1.0:
            raise ParameterError("the slopes of a tilted loss must have opposite signs and sizes between 2^-20 and 1.")
        if not SMALLEST_BOUND <= self.target_bound <= LARGEST_BOUND:
            raise ParameterError(
                f"target_bound must lie between {SMALLEST_BOUND:.3g} and {LARGEST_BOUND:.3g}, and it is {self.target_bound}."
            )
        if self.smoothing is not None and not 0.0 < self.smoothing < math.inf:
            raise ParameterError("smoothing must be a positive finite number.")

    @classmethod
    def of_quantile(cls, quantile: float, target_bound: float) -> TiltedLoss:
        """The loss whose best constant score is this quantile of the targets."""
        return cls(target_bound, -quantile, 1.0 - quantile)

    @classmethod
    def absolute(cls, target_bound: float) -> TiltedLoss:
        """The absolute error, whose best constant score is the median."""
        return cls(target_bound, -1.0, 1.0)

    @property
    def name(self) -> str:
        return "absolute" if (self.low, self.high) == (-1.0, 1.0) else "quantile"

    @property
    def lipschitz(self) -> float:
        return max(-self.low, self.high)

    @property
    def smoothness(self) -> float:
        return math.inf if self.smoothing is None else (self.high - self.low) / (2.0 * self.smoothing)

    @property
    def value_at_zero(self) -> float:
        # A joint raises the loss by at most a quarter of h times the range of slopes.
        return self.lipschitz * self.target_bound + 0.25 * (self.high - self.low) * (self.smoothing or 0.0)

    def curvature_at_slope(self, slope: Array) -> Array:
        return np.full_like(slope, self.smoothness)

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        residual = scores - np.fmin(np.fmax(targets, -self.target_bound), self.target_bound)[:, None]
        if order == 0:
            return Terms(value=self._value(residual))
        if self.smoothing is None:
            slope = np.where(residual < 0.0, self.low, np.where(residual > 0.0, self.high, 0.0))
            return Terms(slope=slope, curvature=np.zeros_like(residual) if order >= 2 else None)
        along = residual / (2.0 * self.smoothing)
        slope = np.clip(along * (self.high - self.low) + 0.5 * (self.high + self.low), self.low, self.high)
        curvature = np.where(np.abs(residual) <= self.smoothing, self.smoothness, 0.0) if order >= 2 else None
        return Terms(slope=slope, curvature=curvature)

    def _value(self, residual: Array) -> Array:
        value = np.maximum(self.low * residual, self.high * residual)
        if self.smoothing is None:
            return value
        inside = np.minimum(np.abs(residual), self.smoothing)
        # (high - low) (h - |r|)^2 / (4 h) more than with a kink, where |r| < h.
        return value + (self.high - self.low) * (self.smoothing - inside) ** 2 / (4.0 * self.smoothing)


# Losses with kinks, and the smooth losses that take their place: the same slopes, with a joint at each kink.


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
