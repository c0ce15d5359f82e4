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
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from confide.array_types import Array, Targets
from confide.erm.losses import Loss, LossConstants, Terms
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND
from confide.errors import ParameterError


class _TargetLoss(Loss):
    """What losses of a score and a target have in common. Their functions take arrays that broadcast.

    A score may lie on either side of its target, so slopes have either sign.
    """

    __slots__ = ()
    threshold: float
    by_length: bool = False

    @property
    @abstractmethod
    def targets(self) -> tuple[float, float]:
        """The lowest and the highest target."""

    @abstractmethod
    def value(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        """The loss, never negative."""

    @abstractmethod
    def derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        """Its derivative in the score, in [-limits, limits]."""

    @abstractmethod
    def second_derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        """Its second derivative; at a kink of the derivative, its larger side."""

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        lowest, highest = self.targets
        within = np.fmin(np.fmax(targets, lowest), highest)[:, None]
        limits = self.threshold * stretch if self.by_length else self.threshold
        return Terms(
            self.value(scores, within, limits) if order == 0 else None,
            self.derivative(scores, within, limits) if order >= 1 else None,
            self.second_derivative(scores, within, limits) if order >= 2 else None,
        )


@lru_cache(maxsize=64)
def _largest_at_zero(
    loss: _TargetLoss, targets: tuple[float, ...], limit: float, exposure: tuple[float, ...] = (1.0,)
) -> float:
    """The largest loss at score 0 over these targets and exposures."""
    return float(loss.value(np.log(exposure)[:, None], np.array(targets), limit).max())


@dataclass(frozen=True, slots=True)
class SquaredLoss(_TargetLoss):
    """(s - t)^2 / 2 with its derivative clipped, t in [-target_bound, target_bound]. L = threshold, c = 1.

    This is Huber's loss, or the clipped square where it is clipped by length.
    """

    target_bound: float
    threshold: float
    by_length: bool = False

    def __post_init__(self) -> None:
        _check(self.target_bound, self.threshold)

    @property
    def targets(self) -> tuple[float, float]:
        return -self.target_bound, self.target_bound

    @property
    def constants(self) -> LossConstants:
        # Where losses are clipped by length, a row of zeros has no limit.
        limit = math.inf if self.by_length else self.threshold
        return LossConstants(
            name="clipped_squared" if self.by_length else "huber",
            lipschitz=self.threshold,
            smoothness=1.0,
            trace=1.0,
            value_at_zero=_largest_at_zero(self, (self.target_bound,), limit),
            # One difference and one product are rounded. The certificate accounts for the lengths of rows.
            rounding=3.0,
            by_length=self.by_length,
            bounded_slopes=not self.by_length,
            scores="prediction",
            target_bound=self.target_bound,
            threshold=self.threshold,
            unit=self.target_bound,
        )

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


@dataclass(frozen=True, slots=True)
class PoissonLoss(_TargetLoss):
    """exp(s) - t s - t + t log t with its derivative clipped, t in [0, target_bound]. L = threshold, c = target_bound + L.

    Half the deviance of a count whose mean is exp(s): at least 0, and 0 at s = log t. With an exposure e for each row the
    mean is e exp(s), so the score is moved by log e, and only the value at score 0 is another one.

    Parameters
    ----------
    target_bound, threshold : see the module
    exposure : the least and the greatest exposure, to which those of rows are clipped here; None if targets have none
    """

    target_bound: float
    threshold: float
    exposure: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        _check(self.target_bound, self.threshold)
        least, greatest = self.exposure or (1.0, 1.0)
        if not 2.0**-40 <= least <= greatest <= 2.0**40:
            raise ParameterError("exposures must lie between 2^-40 and 2^40.")

    @property
    def targets(self) -> tuple[float, float]:
        return 0.0, self.target_bound

    @property
    def constants(self) -> LossConstants:
        smoothness = self.target_bound + self.threshold
        return LossConstants(
            name="poisson",
            lipschitz=self.threshold,
            smoothness=smoothness,
            trace=smoothness,
            # It falls with the target below the exposure and rises with it above, and is convex in the exposure's logarithm.
            value_at_zero=_largest_at_zero(self, self.targets, self.threshold, self.exposure or (1.0,)) * (1.0 + 2.0**-40),
            # The exponential errs by 8 units of at most target_bound + threshold, and a quotient by an exposure by one.
            rounding=(9.0 if self.exposure is None else 10.0) * (smoothness / self.threshold) + 3.0,
            bends=self._bends,
            scores="logarithm of the mean",
            target_bound=self.target_bound,
            threshold=self.threshold,
        )

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

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        if self.exposure is None:
            return super(PoissonLoss, self).of_scores(scores, targets, order)
        # The loss at the moved score is e times that of the rate t / e, whose slopes are clipped at threshold / e.
        given: Any = targets
        exposure = np.fmin(np.fmax(given["exposure"], self.exposure[0]), self.exposure[1])[:, None]
        rates = np.fmin(np.fmax(given["count"], 0.0), self.target_bound)[:, None] / exposure
        kinds = self.value, self.derivative, self.second_derivative
        limits, is_asked = self.threshold / exposure, (order == 0, order >= 1, order >= 2)
        return Terms(
            *(exposure * of(scores, rates, limits) if own else None for of, own in zip(kinds, is_asked, strict=True))
        )

    def _bends(self, slope: Array) -> Array:
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
class TiltedLoss(Loss):
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
    def constants(self) -> LossConstants:
        lipschitz = max(-self.low, self.high)
        smoothness = math.inf if self.smoothing is None else (self.high - self.low) / (2.0 * self.smoothing)
        return LossConstants(
            name="absolute" if (self.low, self.high) == (-1.0, 1.0) else "quantile",
            lipschitz=lipschitz,
            smoothness=smoothness,
            trace=smoothness,
            # A joint raises the loss by at most a quarter of h times the range of slopes.
            value_at_zero=lipschitz * self.target_bound + 0.25 * (self.high - self.low) * (self.smoothing or 0.0),
            # One difference, a quotient, a product and a sum of numbers of at most 2 lipschitz.
            rounding=12.0,
            scores="prediction",
            target_bound=self.target_bound,
            joint=self.smoothing,
            has_straight_joints=self.smoothing is not None,
            unit=self.target_bound,
        )

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        return replace(self, smoothing=half_width)

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        residual = scores - np.fmin(np.fmax(targets, -self.target_bound), self.target_bound)[:, None]
        if order == 0:
            return Terms(value=self._value(residual))
        if self.smoothing is None:
            slope = np.where(residual < 0.0, self.low, np.where(residual > 0.0, self.high, 0.0))
            return Terms(slope=slope, curvature=np.zeros_like(residual) if order >= 2 else None)
        along = residual / (2.0 * self.smoothing)
        slope = np.clip(along * (self.high - self.low) + 0.5 * (self.high + self.low), self.low, self.high)
        curvature = np.where(np.abs(residual) <= self.smoothing, self.constants.smoothness, 0.0) if order >= 2 else None
        return Terms(slope=slope, curvature=curvature)

    def _value(self, residual: Array) -> Array:
        value = np.maximum(self.low * residual, self.high * residual)
        if self.smoothing is None:
            return value
        inside = np.minimum(np.abs(residual), self.smoothing)
        # (high - low) (h - |r|)^2 / (4 h) more than with a kink, where |r| < h.
        return value + (self.high - self.low) * (self.smoothing - inside) ** 2 / (4.0 * self.smoothing)
