"""What proofs need to know of a loss, the logistic loss, and the hinge with smooth losses in its place.

A loss of the margin z = y (w . x) takes arrays of any shape and returns arrays of that shape, in float64. Labels are -1 and
+1. Each such loss is convex and falls with the margin. `target_losses` has the losses of a score and a target. Source:
Chaudhuri, Monteleoni and Sarwate (2011), corollaries 2 to 4.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from confide.array_types import Array, Targets
from confide.errors import ParameterError


class LossBounds(Protocol):
    """The public constants that proofs need: of a loss, or of all losses that the rows may have.

    A loss has o scores: one score for a loss of the margin, or o scores for o classes (`confide.erm.class_losses`). Weights
    are (o, D), the slope of a row is a vector of o numbers, and the gradient of a row is the product of its slope with the
    row. Norms of slopes are L2 norms.
    """

    @property
    def name(self) -> str:
        """The name under which users and files know the loss."""

    @property
    def lipschitz(self) -> float:
        """L, the supremum of |slope|."""

    @property
    def smoothness(self) -> float:
        """c, the largest eigenvalue of the second derivative anywhere; inf where the loss is not smooth."""

    @property
    def value_at_zero(self) -> float:
        """The loss at scores of 0, the largest over targets. The loss is nowhere negative."""

    @property
    def monotone(self) -> bool:
        """Whether slopes lie in a polytope that has a corner at 0 and depends on the label alone.

        In the margin this means that slopes have one sign.
        The cheaper account of Gaussian noise holds for no other losses.
        """

    @property
    def by_length(self) -> bool:
        """Whether |derivative| is bounded by lipschitz R / |x| in place of lipschitz, R the bound on a row x.

        Such a loss allows noise in the shape of a ball alone.
        """

    @property
    def tapered(self) -> bool:
        """Whether steep rows hardly bend the objective: the curvature's trace is at most linear(slope) - |slope|^2 / W.

        W is the weight of the row. The linear function is such that the bound vanishes where every score has its least or
        its greatest slope. In the margin: curvature_at_slope(a) <= a (1 - a / L).
        """

    @property
    def tail(self) -> float:
        """The least t with curvature_at_slope(a) <= t (L - a) for every a, where the loss is tapered."""

    @property
    def n_outputs(self) -> int:
        """o, the number of scores."""

    @property
    def separable(self) -> bool:
        """Whether the loss is a sum of losses of one score each."""

    @property
    def rank(self) -> int:
        """The largest number of eigenvalues of the second derivative that are not 0."""

    @property
    def trace(self) -> float:
        """The supremum of the trace of the second derivative."""

    @property
    def self_concordant(self) -> bool:
        """Whether |third derivative| <= range of the scores' change times second derivative, along every line.

        In the margin: |third| <= |second| everywhere. A condition of the step-limited Newton method.
        """

    @property
    def rounding(self) -> float:
        """Absolute error of the computed derivative in units of 2^-53 lipschitz, at the computed margin."""

    @property
    def margin(self) -> float:
        """Where the corner of a hinge lies; 1 for a loss without a margin of its own. No proof uses it."""

    @property
    def smoothing(self) -> float | None:
        """The half-width of the rounded corner of a hinge, as its user gave it; None for other losses. No proof uses it."""

    def curvature_at_slope(self, slope: Array) -> Array:
        """The largest trace of the second derivative where |slope| has this value: a quasi-concave function of |slope|."""


class Terms(NamedTuple):
    """What the scores of a block of m rows add to k problems, and its derivatives in the scores."""

    value: Array | None = None
    """(m, k): the loss. None where derivatives were asked for; the other fields are None where they were not."""
    slope: Array | None = None
    """(m, k o)"""
    curvature: Array | None = None
    """(m, k o) where the loss is separable, else matrices (m, k o o)."""


class Loss(LossBounds, Protocol):
    """A convex function of the scores of a row, which knows the row's label or target, together with its constants."""

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        """Value (order 0), or slope (1) and curvature (2) in the scores (m, k o) of rows with these targets (m,).

        `stretch` (m, 1) is R / |x| for each row. It has a meaning only where the loss is `by_length`.
        """


class MarginLoss(Loss, Protocol):
    """A convex function of the margin together with its constants."""

    def value(self, margin: Array) -> Array:
        """The loss."""

    def derivative(self, margin: Array) -> Array:
        """First derivative in the margin, in [-lipschitz, lipschitz]."""

    def second_derivative(self, margin: Array) -> Array:
        """Second derivative in the margin, in [0, smoothness]; at a kink of the derivative, its larger side."""


class OneScore:
    """What losses of one score have in common unless they say otherwise."""

    __slots__ = ()
    tail: ClassVar[float] = 1.0
    n_outputs: ClassVar[int] = 1
    separable: ClassVar[bool] = True
    rank: ClassVar[int] = 1
    smoothing: float | None = None

    @property
    def margin(self) -> float:
        return 1.0

    @property
    def trace(self: LossBounds) -> float:
        return self.smoothness


class OneMargin(OneScore):
    """What losses of the margin have in common unless they say otherwise."""

    __slots__ = ()
    lipschitz: ClassVar[float] = 1.0
    monotone: ClassVar[bool] = True
    by_length: ClassVar[bool] = False
    tapered: ClassVar[bool] = False
    self_concordant: ClassVar[bool] = False
    # Covers exp, log1p and divisions within 2 units in the last place (proofs/certificate.md).
    rounding: ClassVar[float] = 12.0

    def of_scores(self: MarginLoss, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        signs = targets[:, None].astype(scores.dtype, copy=False)
        margins = signs * scores
        if order == 0:
            return Terms(value=self.value(margins))
        curvature = self.second_derivative(margins) if order >= 2 else None
        return Terms(slope=np.multiply(signs, self.derivative(margins), out=margins), curvature=curvature)


@dataclass(frozen=True, slots=True)
class LogisticLoss(OneMargin):
    """log(1 + exp(-z)). L = 1, c = 1/4."""

    name: ClassVar[str] = "logistic"
    smoothness: ClassVar[float] = 0.25
    value_at_zero: ClassVar[float] = math.log(2.0)
    tapered: ClassVar[bool] = True
    self_concordant: ClassVar[bool] = True

    def value(self, margin: Array) -> Array:
        return np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))

    def derivative(self, margin: Array) -> Array:
        # 1 / (1 + t) loses no digits. Where t overflows the result is 0, and the exact slope is below 2^-1022. The arrays
        # are written over, since for many problems memory costs as much as arithmetic.
        with np.errstate(over="ignore"):
            grown = np.asarray(np.exp(margin))
        grown += 1.0
        slope: Array = np.divide(-1.0, grown, out=grown)
        return slope

    def second_derivative(self, margin: Array) -> Array:
        decay = np.exp(-np.abs(margin))
        return decay / (1.0 + decay) ** 2

    def curvature_at_slope(self, slope: Array) -> Array:
        return slope * (1.0 - slope)


# The hinge, and smooth losses in its place, each with its public constants.
#
# Source of the equations: Chaudhuri, Monteleoni and Sarwate (2011), equations (20) to (23).

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
