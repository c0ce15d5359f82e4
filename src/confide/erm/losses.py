"""What proofs need to know of a loss, the logistic loss, and the hinge with smooth losses in its place.

A loss of the margin z = y (w . x) takes arrays of any shape and returns arrays of that shape, in float64. Labels are -1 and
+1. Each such loss is convex and falls with the margin. `target_losses` has the losses of a score and a target. Source:
Chaudhuri, Monteleoni and Sarwate (2011), corollaries 2 to 4.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from confide.array_types import Array, Targets
from confide.errors import ParameterError


class LossConstants(NamedTuple):
    """The public constants of a loss: what proofs need, and what other rooms ask. No code can change it.

    A loss has o scores: one score for a loss of the margin, or o scores for o classes (`confide.erm.class_losses`). Weights
    are (o, D), the slope of a row is a vector of o numbers, and the gradient of a row is the product of its slope with the
    row. Norms of slopes are L2 norms.

    Attributes
    ----------
    name : the name under which users and files know the loss
    lipschitz : L, the supremum of |slope|
    smoothness : c, the largest eigenvalue of the second derivative anywhere; inf where the loss is not smooth
    trace : the supremum of the trace of the second derivative
    value_at_zero : the loss at scores of 0, the largest over targets; the loss is nowhere negative
    rounding : absolute error of the computed derivative in units of 2^-53 lipschitz, at the computed margin
    bends : see `curvature_at_slope`, for a row that counts 1; None where it is `trace` for every slope
    weight : how much the heaviest row counts
    monotone : whether slopes lie in a polytope that has a corner at 0 and depends on the label alone; in the margin this
        means that slopes have one sign. The cheaper account of Gaussian noise holds for no other losses
    by_length : whether |derivative| is bounded by lipschitz R / |x| in place of lipschitz, R the bound on a row x. Such a
        loss allows noise in the shape of a ball alone
    bounded_slopes : whether |derivative| is at most lipschitz for rows of all lengths
    convex : whether the loss is convex in its scores
    tapered : whether steep rows hardly bend the objective: the curvature's trace is at most linear(slope) - |slope|^2 / W,
        W the weight of the row. The linear function is such that the bound vanishes where every score has its least or its
        greatest slope. In the margin: curvature_at_slope(a) <= a (1 - a / L)
    tail : the least t with curvature_at_slope(a) <= t (L - a) for every a, where the loss is tapered
    n_outputs : o, the number of scores
    separable : whether the loss is a sum of losses of one score each
    rank : the largest number of eigenvalues of the second derivative that are not 0
    self_concordant : whether |third derivative| <= range of the scores' change times second derivative, along every line; in
        the margin |third| <= |second| everywhere. A condition of the step-limited Newton method
    slope_limit : to which norm the slopes of a row of length R are clipped; None where they are not clipped

    Plans, solvers and checks of the input read the following. Some proof pages do so too, such as declared_slopes.md for
    `unit` and gradient.md, section 5, for `is_declared`.

    scores : what the scores are
    margin : where the corner of a hinge lies; 1 for a loss without a margin of its own
    target_bound : targets are clipped to at most this size; None for losses of labels
    threshold : where the slope of a residual is clipped; None for losses that are bounded otherwise
    joint : half the width of what takes the place of a kink; None where there is no such joint
    has_straight_joints : whether slopes are straight lines in the joints and constant outside of them
    unit : a number of the size of the scores that the loss asks for, in which widths of joints are given
    is_declared : whether a user wrote the loss and declared its constants
    """

    name: str
    lipschitz: float
    smoothness: float
    trace: float
    value_at_zero: float
    rounding: float
    bends: Callable[[Array], Array] | None = None
    weight: float = 1.0
    monotone: bool = False
    by_length: bool = False
    bounded_slopes: bool = True
    convex: bool = True
    tapered: bool = False
    tail: float = 1.0
    n_outputs: int = 1
    separable: bool = True
    rank: int = 1
    self_concordant: bool = False
    slope_limit: float | None = None
    scores: Literal["log-odds", "logarithm of the mean", "prediction", "score"] = "score"
    margin: float = 1.0
    target_bound: float | None = None
    threshold: float | None = None
    joint: float | None = None
    has_straight_joints: bool = False
    unit: float = 1.0
    is_declared: bool = False

    @property
    def has_kinks(self) -> bool:
        """Whether noise on the weights needs joints in place of the kinks of this loss."""
        return math.isinf(self.smoothness)

    @property
    def is_count(self) -> bool:
        """Whether targets are counts."""
        return self.scores == "logarithm of the mean"

    def curvature_at_slope(self, slope: Array) -> Array:
        """The largest trace of the second derivative where |slope| has this value: a quasi-concave function of |slope|."""
        return np.full_like(slope, self.trace) if self.bends is None else self.weight * self.bends(slope / self.weight)

    def weighted(self, largest: float) -> LossConstants:
        """Constants that hold for the losses w l of rows whose weight w lies between 0 and `largest`.

        They are the constants of `largest` times the loss, since a smaller weight is never worse. Proof:
        privacy/proofs/objective_perturbation.md, theorem 6.
        """
        # The rounding has one more unit, for the product with the weight.
        return self._replace(
            lipschitz=largest * self.lipschitz, smoothness=largest * self.smoothness, trace=largest * self.trace,
            value_at_zero=largest * self.value_at_zero, rounding=self.rounding + 1.0, weight=largest * self.weight,
        )  # fmt: skip


class Terms(NamedTuple):
    """What the scores of a block of m rows add to k problems, and its derivatives in the scores."""

    value: Array | None = None
    """(m, k): the loss. None where derivatives were asked for; the other fields are None where they were not."""
    slope: Array | None = None
    """(m, k o)"""
    curvature: Array | None = None
    """(m, k o) where the loss is separable, else matrices (m, k o o)."""


class Loss(ABC):
    """A convex function of the scores of a row, which knows the row's label or target, together with its constants."""

    __slots__ = ()

    @property
    @abstractmethod
    def constants(self) -> LossConstants:
        """What is known of the loss in public."""

    @abstractmethod
    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        """Value (order 0), or slope (1) and curvature (2) in the scores (m, k o) of rows with these targets (m,).

        `stretch` (m, 1) is R / |x| for each row. It has a meaning only where the loss is `by_length`.
        """

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        """The same loss with joints of this width in place of its kinks or its joints; a loss with neither is itself.

        `slopes_alone` says that only slopes will be summed, of a loss that need not be convex.
        """
        return self


class OneMargin(Loss):
    """A convex function of the margin together with its constants."""

    __slots__ = ()

    @abstractmethod
    def value(self, margin: Array) -> Array:
        """The loss."""

    @abstractmethod
    def derivative(self, margin: Array) -> Array:
        """First derivative in the margin, in [-lipschitz, lipschitz]."""

    @abstractmethod
    def second_derivative(self, margin: Array) -> Array:
        """Second derivative in the margin, in [0, smoothness]; at a kink of the derivative, its larger side."""

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        signs = targets[:, None].astype(scores.dtype, copy=False)
        margins = signs * scores
        if order == 0:
            return Terms(value=self.value(margins))
        curvature = self.second_derivative(margins) if order >= 2 else None
        return Terms(slope=np.multiply(signs, self.derivative(margins), out=margins), curvature=curvature)


def of_margin(
    name: str, smoothness: float, value_at_zero: float, bends: Callable[[Array], Array] | None = None, **others: Any
) -> LossConstants:
    """The constants of a loss that falls with the margin, with slopes in [-1, 0]; `others` as in `LossConstants`."""
    # The rounding covers exp, log1p and divisions within 2 units in the last place (proofs/certificate.md).
    facts = {"lipschitz": 1.0, "monotone": True, "rounding": 12.0, "trace": smoothness} | others
    return LossConstants(name=name, smoothness=smoothness, value_at_zero=value_at_zero, bends=bends, **facts)


def _logistic_bends(slope: Array) -> Array:
    return slope * (1.0 - slope)


@dataclass(frozen=True, slots=True)
class LogisticLoss(OneMargin):
    """log(1 + exp(-z)). L = 1, c = 1/4."""

    constants: ClassVar[LossConstants] = of_margin(
        "logistic", 0.25, math.log(2.0), _logistic_bends, tapered=True, self_concordant=True, scores="log-odds"
    )

    def value(self, margin: Array) -> Array:
        return np.maximum(-margin, 0.0) + np.log1p(np.exp(-np.abs(margin)))

    def derivative(self, margin: Array) -> Array:
        # 1 / (1 + t) loses no digits. Where t overflows the result is 0, and the exact slope is below 2^-1022. The arrays
        # are written over, since for many problems memory costs as much as arithmetic.
        with np.errstate(over="ignore"):
            grown = np.asarray(np.exp(margin))
        grown += 1.0
        return np.asarray(np.divide(-1.0, grown, out=grown))

    def second_derivative(self, margin: Array) -> Array:
        decay = np.exp(-np.abs(margin))
        return decay / (1.0 + decay) ** 2


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

    def __post_init__(self) -> None:
        if isinstance(self.smoothing, bool) or not 2.0**-20 <= self.smoothing < math.inf:
            raise ParameterError("smoothing of the logistic hinge must be a finite number of at least 2^-20.")

    @property
    def margin(self) -> float:
        """m, the position of the corner."""
        return 1.0 / self.smoothing

    @property
    def constants(self) -> LossConstants:
        at_zero = self.margin + math.log1p(math.exp(-self.margin))
        logistic = _LOGISTIC.constants
        return logistic._replace(name="logistic_hinge", value_at_zero=at_zero, margin=self.margin, scores="score")

    def value(self, margin: Array) -> Array:
        return _LOGISTIC.value(margin - self.margin)

    def derivative(self, margin: Array) -> Array:
        return _LOGISTIC.derivative(margin - self.margin)

    def second_derivative(self, margin: Array) -> Array:
        return _LOGISTIC.second_derivative(margin - self.margin)


@dataclass(frozen=True, slots=True)
class _SmoothedHinge(OneMargin, ABC):
    """The hinge with a joint of half-width `smoothing` around margin 1."""

    smoothing: float = 0.5

    def __post_init__(self) -> None:
        if isinstance(self.smoothing, bool) or not 0.0 < self.smoothing < math.inf:
            raise ParameterError("smoothing must be a positive finite number.")

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        return replace(self, smoothing=half_width)

    def value(self, margin: Array) -> Array:
        # The hinge itself below the joint.
        return np.where(margin < 1.0 - self.smoothing, 1.0 - margin, self._joint(margin))

    def _value_at_zero(self) -> float:
        return 1.0 if self.smoothing < 1.0 else float(self._joint(np.zeros(1))[0])

    @abstractmethod
    def _joint(self, margin: Array) -> Array:
        """The loss in the joint, and 0 above it."""


@dataclass(frozen=True, slots=True)
class HuberHinge(_SmoothedHinge):
    """Hinge with a quadratic joint of half-width `smoothing` around margin 1. L = 1, c = 1 / (2 smoothing)."""

    @property
    def constants(self) -> LossConstants:
        own, bend = self._value_at_zero(), 1.0 / (2.0 * self.smoothing)
        return of_margin("huber_hinge", bend, own, joint=self.smoothing, has_straight_joints=True)

    def _slope(self, margin: Array) -> Array:
        # ((1 - z) + h) / (2h) is not written as (1 + h - z) / (2h), which loses digits for small h.
        return np.clip(((1.0 - margin) + self.smoothing) / (2.0 * self.smoothing), 0.0, 1.0)

    def _joint(self, margin: Array) -> Array:
        # Equation (23): h s^2 with s the slope.
        return self.smoothing * self._slope(margin) ** 2

    def derivative(self, margin: Array) -> Array:
        return -self._slope(margin)

    def second_derivative(self, margin: Array) -> Array:
        return np.where(np.abs(1.0 - margin) <= self.smoothing, 1.0 / (2.0 * self.smoothing), 0.0)


@dataclass(frozen=True, slots=True)
class SmoothHinge(_SmoothedHinge):
    """Hinge with a twice differentiable polynomial joint of half-width `smoothing`. L = 1, c = 3 / (4 smoothing)."""

    @property
    def constants(self) -> LossConstants:
        return of_margin("smooth_hinge", self._bend, self._value_at_zero(), self._bends, joint=self.smoothing)

    @property
    def _bend(self) -> float:
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
        return self._bend * (1.0 - s * s)

    def _bends(self, slope: Array) -> Array:
        # The slope (2 + 3s - s^3) / 4 = a is solved by s = 2 sin(arcsin(2a - 1) / 3), since 3 sin t - 4 sin^3 t = sin 3t.
        s = 2.0 * np.sin(np.arcsin(np.clip(2.0 * slope - 1.0, -1.0, 1.0)) / 3.0)
        return self._bend * (1.0 - s * s)


def _kinked_bends(slope: Array) -> Array:
    return np.where((slope > 0.0) & (slope < 1.0), math.inf, 0.0)


@dataclass(frozen=True, slots=True)
class Hinge(OneMargin):
    """max(0, 1 - z). L = 1. The derivative at the kink is -1.

    The hinge is not smooth, so it has output perturbation alone, with a narrow joint in place of the kink.
    """

    constants: ClassVar[LossConstants] = of_margin("hinge", math.inf, 1.0, _kinked_bends)

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        return HuberHinge(half_width)

    def value(self, margin: Array) -> Array:
        return np.maximum(1.0 - margin, 0.0)

    def derivative(self, margin: Array) -> Array:
        return np.where(margin <= 1.0, -1.0, 0.0)

    def second_derivative(self, margin: Array) -> Array:
        return np.zeros_like(margin)
