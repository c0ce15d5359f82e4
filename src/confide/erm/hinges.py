"""The hinge, and smooth losses in its place, each with its public constants.

Source of the equations: Chaudhuri, Monteleoni and Sarwate (2011), equations (20) to (23).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide.erm.losses import LogisticLoss, OneMargin
from confide.errors import ParameterError
from confide.types import Array

_LOGISTIC = LogisticLoss()


@dataclass(frozen=True, slots=True)
class LogisticHinge(OneMargin):
    """log(1 + exp(m - z)), the logistic loss moved by a margin m = 1 / smoothing. L = 1, c = 1/4.

    This is the hinge with its corner at margin m, rounded by softplus: h log(1 + exp((1 - z) / h)) with h = `smoothing`, for
    scores that are h times as large. A translation keeps slopes, curvatures and the relation between them. So every
    constant but the value at 0 is that of the logistic loss. Source: Zhang, Jin, Yang and Hauptmann (2003).
    """

    smoothing: float = 0.5

    name: ClassVar[str] = "logistic_hinge"
    smoothness: ClassVar[float] = 0.25
    tapered: ClassVar[bool] = True
    self_concordant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if isinstance(self.smoothing, bool) or not 2.0**-20 <= self.smoothing < math.inf:
            raise ParameterError("smoothing of the logistic hinge must be a finite number of at least 2^-20.")

    @property
    def margin(self) -> float:
        """m, the position of the corner."""
        return 1.0 / self.smoothing

    @property
    def value_at_zero(self) -> float:
        return self.margin + math.log1p(math.exp(-self.margin))

    def value(self, margin: Array) -> Array:
        return _LOGISTIC.value(margin - self.margin)

    def derivative(self, margin: Array) -> Array:
        return _LOGISTIC.derivative(margin - self.margin)

    def second_derivative(self, margin: Array) -> Array:
        return _LOGISTIC.second_derivative(margin - self.margin)

    def curvature_at_slope(self, slope: Array) -> Array:
        return _LOGISTIC.curvature_at_slope(slope)


@dataclass(frozen=True, slots=True)
class _SmoothedHinge(OneMargin, ABC):
    """The hinge with a joint of half-width `smoothing` around margin 1."""

    smoothing: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.smoothing, bool) or not 0.0 < self.smoothing < math.inf:
            raise ParameterError("smoothing must be a positive finite number.")

    @property
    def value_at_zero(self) -> float:
        return float(self.value(np.zeros(1))[0])

    def value(self, margin: Array) -> Array:
        # The hinge itself below the joint.
        return np.where(margin < 1.0 - self.smoothing, 1.0 - margin, self._joint(margin))

    @abstractmethod
    def _joint(self, margin: Array) -> Array:
        """The loss in the joint, and 0 above it."""


@dataclass(frozen=True, slots=True)
class HuberHinge(_SmoothedHinge):
    """Hinge with a quadratic joint of half-width `smoothing` around margin 1. L = 1, c = 1 / (2 smoothing)."""

    name: ClassVar[str] = "huber_hinge"

    @property
    def smoothness(self) -> float:
        return 1.0 / (2.0 * self.smoothing)

    def _slope(self, margin: Array) -> Array:
        # ((1 - z) + h) / (2h) is not written as (1 + h - z) / (2h), which loses digits for small h.
        return np.clip(((1.0 - margin) + self.smoothing) / (2.0 * self.smoothing), 0.0, 1.0)

    def _joint(self, margin: Array) -> Array:
        # Equation (23): h s^2 with s the slope.
        return self.smoothing * self._slope(margin) ** 2

    def derivative(self, margin: Array) -> Array:
        return -self._slope(margin)

    def second_derivative(self, margin: Array) -> Array:
        return np.where(np.abs(1.0 - margin) <= self.smoothing, self.smoothness, 0.0)

    def curvature_at_slope(self, slope: Array) -> Array:
        return np.full_like(slope, self.smoothness)


@dataclass(frozen=True, slots=True)
class SmoothHinge(_SmoothedHinge):
    """Hinge with a twice differentiable polynomial joint of half-width `smoothing`. L = 1, c = 3 / (4 smoothing)."""

    name: ClassVar[str] = "smooth_hinge"

    @property
    def smoothness(self) -> float:
        return 3.0 / (4.0 * self.smoothing)

    def _position(self, margin: Array) -> Array:
        return np.clip((1.0 - margin) / self.smoothing, -1.0, 1.0)

    def _joint(self, margin: Array) -> Array:
        # Equation (20) in s = (1 - z) / h: h (-s^4 + 6 s^2 + 8 s + 3) / 16 = h (1 + s)^3 (3 - s) / 16.
        s = self._position(margin)
        return self.smoothing * (1.0 + s) ** 3 * (3.0 - s) / 16.0

    def derivative(self, margin: Array) -> Array:
        # Equation (21).
        s = self._position(margin)
        return -(2.0 + s * (3.0 - s * s)) / 4.0

    def second_derivative(self, margin: Array) -> Array:
        # Equation (22).
        s = self._position(margin)
        return self.smoothness * (1.0 - s * s)

    def curvature_at_slope(self, slope: Array) -> Array:
        # The slope (2 + 3s - s^3) / 4 = a is solved by s = 2 sin(arcsin(2a - 1) / 3), since 3 sin t - 4 sin^3 t = sin 3t.
        s = 2.0 * np.sin(np.arcsin(np.clip(2.0 * slope - 1.0, -1.0, 1.0)) / 3.0)
        return self.smoothness * (1.0 - s * s)


@dataclass(frozen=True, slots=True)
class Hinge(OneMargin):
    """max(0, 1 - z). L = 1. The derivative at the kink is -1.

    The hinge is not smooth, so it has output perturbation alone, with a narrow joint in place of the kink.
    """

    name: ClassVar[str] = "hinge"
    smoothness: ClassVar[float] = math.inf
    value_at_zero: ClassVar[float] = 1.0

    def value(self, margin: Array) -> Array:
        return np.maximum(1.0 - margin, 0.0)

    def derivative(self, margin: Array) -> Array:
        return np.where(margin <= 1.0, -1.0, 0.0)

    def second_derivative(self, margin: Array) -> Array:
        return np.zeros_like(margin)

    def curvature_at_slope(self, slope: Array) -> Array:
        return np.where((slope > 0.0) & (slope < 1.0), math.inf, 0.0)
