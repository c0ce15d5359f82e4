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
from confide.errors import ParameterError, wording


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
        own, within, limits, times = self._met(targets, stretch)
        kinds, is_asked = (own.value, own.derivative, own.second_derivative), (order == 0, order >= 1, order >= 2)
        return Terms(
            *(times * of(scores, within, limits) if asked else None for of, asked in zip(kinds, is_asked, strict=True))
        )

    def _met(self, targets: Any, stretch: Array | float) -> tuple[_TargetLoss, Array, Array | float, Array | float]:
        """A loss, targets and limits for it, and what it is multiplied by, for these targets."""
        within = np.fmin(np.fmax(targets, self.targets[0]), self.targets[1])[:, None]
        return self, within, self.threshold * stretch if self.by_length else self.threshold, 1.0


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
        # One difference and one product are rounded. The certificate accounts for the lengths of rows.
        return LossConstants(
            name="clipped_squared" if self.by_length else "huber", scores="prediction", unit=self.target_bound,
            lipschitz=self.threshold, smoothness=1.0, trace=1.0, rounding=3.0,
            value_at_zero=_largest_at_zero(self, (self.target_bound,), limit),
            by_length=self.by_length, bounded_slopes=not self.by_length,
            target_bound=self.target_bound, threshold=self.threshold,
        )  # fmt: skip

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
class MeanLoss(_TargetLoss):
    """Half the deviance of a target t whose mean is m = exp(s), with its derivative clipped. L = threshold.

        Poisson, Tweedie, gamma    variance m^p, 1 <= p <= 2        derivative m^(2 - p) - t m^(1 - p)
        negative binomial          variance m + a m^2, p = 1        derivative (m - t) / (1 + a m)

    It is at least 0, and 0 at s = log t. For counts c = target_bound + L; otherwise see privacy/proofs/cost_losses.md. With
    an exposure e for each row the mean is e exp(s), so the score is moved by log e, and only the value at score 0 is another
    one.

    Parameters
    ----------
    target_bound, threshold : see the module
    exposure : the least and the greatest exposure, to which those of rows are clipped here; None if targets have none. Rows
        that bring none have the least one, which puts scores near 0 where costs are large
    power : p
    dispersion : a, a public number; 0 unless p is 1
    least : the least target; above 0 for p = 2, whose loss of a target of 0 has no minimum
    """

    target_bound: float
    threshold: float
    exposure: tuple[float, float] | None = None
    power: float = 1.0
    dispersion: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        _check(self.target_bound, self.threshold)
        least, greatest = self.exposure or (1.0, 1.0)
        if not 2.0**-40 <= least <= greatest <= 2.0**40:
            raise ParameterError("exposures must lie between 2^-40 and 2^40.")
        in_range = 1.0 <= self.power <= 2.0 and (2.0**-400 if self.power == 2.0 else 0.0) <= self.least < self.target_bound
        # The dispersion of rows with exposures, for which `_met` makes another loss, is an array, and was checked before.
        if np.ndim(self.dispersion) == 0 and self.dispersion != 0.0:
            in_range = in_range and self.power == 1.0 and 2.0**-40 <= self.dispersion <= 2.0**40
        if not in_range:
            raise ParameterError(wording("facts of a loss of a mean"))

    @property
    def targets(self) -> tuple[float, float]:
        return self.least, self.target_bound

    @property
    def constants(self) -> LossConstants:
        p, a, size = self.power, self.dispersion, self.target_bound ** (2.0 - self.power)
        peak = min(self.threshold, abs(1.0 - a * self.target_bound) / (2.0 * a)) if a else self.threshold
        smoothness = float(self._bends(np.array(peak))) * (_UP if a else 1.0)
        # proofs/cost_losses.md, section 4. Of counts the exponential errs by 8 units of at most target_bound + threshold,
        # and a quotient by an exposure by one.
        per_size = 24.0 if a else 1100.0 if p > 1.0 else 9.0 if self.exposure is None else 10.0
        of_power = {1.0: "poisson", 2.0: "gamma"}.get(p, f"tweedie, power {p:g}")
        # At score 0 it falls with the target below the exposure, rises above, and is convex in the exposure's logarithm.
        return LossConstants(
            name=f"negative_binomial, dispersion {a:g}" if a else of_power, scores="logarithm of the mean",
            lipschitz=self.threshold, smoothness=smoothness, trace=smoothness, bends=self._bends,
            value_at_zero=_largest_at_zero(self, self.targets, self.threshold, self.exposure or (1.0,)) * _UP,
            rounding=per_size * ((size + self.threshold) / self.threshold) + (16.0 if a or p > 1.0 else 3.0),
            target_bound=self.target_bound, threshold=self.threshold,
        )  # fmt: skip

    def _bends(self, slope: Array) -> Array:
        """The largest curvature at slopes of this size."""
        p, a, bound = self.power, self.dispersion, self.target_bound
        rise = max(p - 1.0, 2.0 - p) * abs(1.0 - a * bound)
        bent: Array = (bound ** (2.0 - p) + rise * slope - a * slope * slope) / (1.0 + a * bound)
        # Where it ends at 0, rounding must not make it too small.
        return np.maximum(bent, 0.0) + (2.0**-40 * (bound + self.threshold) if a else 0.0)

    def _parts(self, scores: Array, targets: Array) -> tuple[Array, Array]:
        """Both parts of the slope without dispersion, which is their difference: m^(2 - p) and t m^(1 - p)."""
        with np.errstate(all="ignore"):
            rising = np.minimum(np.exp((2.0 - self.power) * scores), _HUGE)
            if self.power == 1.0:
                return rising, targets
            return rising, np.where(targets > _TINY, targets * np.exp((1.0 - self.power) * scores), 0.0)

    def derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        rising, falling = self._parts(scores, targets)
        return np.clip((rising - falling) / (1.0 + self.dispersion * rising), -limits, limits)

    def second_derivative(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        rising, falling = self._parts(scores, targets)
        beside = 1.0 + self.dispersion * rising
        with np.errstate(all="ignore"):
            bent = ((2.0 - self.power) * rising + (self.power - 1.0) * falling) / beside
            bent = bent * ((1.0 + self.dispersion * targets) / beside)
            return np.where(np.abs(rising - falling) / beside <= limits, bent, 0.0)

    def value(self, scores: Array, targets: Array, limits: Array | float) -> Array:
        p, a = self.power, self.dispersion
        with np.errstate(all="ignore"):
            low, high = self._kinks(targets, limits)
            inside = np.fmin(np.fmax(scores, low), high)
            is_some, error = targets > _TINY, inside - np.log(targets)
            if np.any(a):
                # A difference of large terms would lose all digits near the minimum, or where a t is large.
                ratio, above, below = 1.0 + a * targets, np.minimum(error, 30.0), np.minimum(-error, 700.0)
                rise = np.logaddexp(0.0, inside + np.log(a)) - np.log(ratio)
                rise = np.where(above == error, np.log1p(a * targets / ratio * np.expm1(above)), rise)
                other = (ratio * np.log1p(np.expm1(below) / ratio) - below) / a - targets * (error + below)
                some = np.where(ratio > 2.0, other, (targets + 1.0 / a) * rise - targets * error)
                deviance = np.where(is_some, some, rise / a)
            else:
                # With e = s - log t. Near the minimum a difference of large terms would lose all digits.
                some = targets ** (2.0 - p) * (_grown(2.0 - p, error) + _grown(p - 1.0, -error))
                deviance = np.where(is_some, some, np.exp((2.0 - p) * inside) / (2.0 - p) if p < 2.0 else 0.0)
        return np.asarray(np.maximum(deviance, 0.0) + limits * np.abs(scores - inside))

    def _kinks(self, targets: Array, limits: Array | float) -> tuple[Array, Array]:
        """The scores at which the derivative reaches the limits, infinite or no number where it does not."""
        p, a = self.power, self.dispersion
        if p == 1.0:
            low = np.log(np.maximum(targets - limits, 0.0)) - np.log1p(a * limits)
            return low, np.log(targets + limits) - np.log1p(-np.minimum(a * limits, 1.0))
        # Where the larger part is the smaller one and the limit: Newton's method on logarithms, which are concave.
        middle, limit = np.log(targets), np.log(limits)
        low, high = np.fmin(middle, (middle - limit) / (p - 1.0)), np.fmax(middle, np.divide(limit, 2.0 - p))
        for _ in range(_STEPS_TO_KINK):
            rising, falling = self._parts(low, targets)[0], self._parts(high, targets)[1]
            steep = p - 1.0 + (2.0 - p) * rising / (rising + limits), 2.0 - p + (p - 1.0) * falling / (falling + limits)
            low = low - (np.log(rising + limits) - middle - (1.0 - p) * low) / steep[0]
            high = high + (np.log(falling + limits) - (2.0 - p) * high) / steep[1]
        return low, high

    def _met(self, targets: Any, stretch: Array | float) -> tuple[_TargetLoss, Array, Array | float, Array | float]:
        if self.exposure is None:
            return super(MeanLoss, self)._met(targets, stretch)
        # The loss at the moved score is e^(2 - p) times that of the rate t / e, whose slopes are clipped at the threshold
        # over that, and whose dispersion is e times as large.
        counts, given = (targets["count"], targets["exposure"]) if targets.dtype.names else (targets, np.zeros(1))
        exposure: Any = np.fmin(np.fmax(given, self.exposure[0]), self.exposure[1])[:, None]
        rates = np.fmin(np.fmax(counts, self.least), self.target_bound)[:, None] / exposure
        own = replace(self, dispersion=self.dispersion * exposure) if self.dispersion else self
        times = exposure ** (2.0 - self.power)
        return own, rates, self.threshold / times, times


_TINY, _HUGE = 2.0**-500, 2.0**900
"""A target of at most the first counts as 0 where it is multiplied by an exponential, and no mean is above the second."""
_STEPS_TO_KINK = 8
_UP = 1.0 + 2.0**-40


def _grown(rate: float, error: Array) -> Array:
    """(exp(rate error) - 1) / rate, or its limit at the rate 0."""
    return np.expm1(rate * error) / rate if rate else error


def _check(target_bound: float, threshold: float) -> None:
    in_range = SMALLEST_BOUND <= threshold <= LARGEST_BOUND and target_bound >= SMALLEST_BOUND
    # The lengths of short rows may underflow. The error is negligible only if the limit is not extremely small.
    if not (in_range and (2.0**-100 * target_bound <= threshold or target_bound == math.inf)):
        raise ParameterError("threshold must be a positive number, at least 2^-100 of target_bound and at most 2^300.")


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
                wording("bound of a tilted loss", low=SMALLEST_BOUND, high=LARGEST_BOUND, bound=self.target_bound)
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
        # A joint raises the loss by at most a quarter of h times the range of slopes. One difference, a quotient, a product
        # and a sum of numbers of at most 2 lipschitz are rounded.
        return LossConstants(
            name="absolute" if (self.low, self.high) == (-1.0, 1.0) else "quantile", scores="prediction",
            lipschitz=lipschitz, smoothness=smoothness, trace=smoothness, rounding=12.0,
            value_at_zero=lipschitz * self.target_bound + 0.25 * (self.high - self.low) * (self.smoothing or 0.0),
            joint=self.smoothing, has_straight_joints=self.smoothing is not None,
            target_bound=self.target_bound, unit=self.target_bound,
        )  # fmt: skip

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
