"""The absolute error and the loss of quantiles, and the same with a joint in place of the kink.

Targets are clipped here to their declared interval, and a target that is not a number counts as the lower end. Source:
Koenker and Bassett (1978), Regression quantiles. Proof: privacy/proofs/declared_slopes.md, section 5.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide.erm.losses import OneScore, Terms
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND
from confide.errors import ParameterError
from confide.types import Array, Targets


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
