"""Losses for the sake of their gradients: sums of rows, of two parts of them, of their probabilities and of their rates.

They are losses for the sake of these sums alone, and nothing minimises them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from confide.array_types import Array, Targets
from confide.erm.losses import LogisticLoss, Loss, LossConstants, Terms
from confide.erm.row_sums import RowSum


@dataclass(frozen=True, slots=True)
class ProbabilityOfRows(Loss):
    """log(1 + exp(z)), z the score of a row. Its slope is the probability 1 / (1 + exp(-z)). L = 1, c = 1/4."""

    # Its rounding is that of `LogisticLoss`, whose slope this is.
    constants: ClassVar[LossConstants] = LogisticLoss.constants._replace(
        name="probability of rows", monotone=False, tapered=False, self_concordant=False
    )

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        logistic = LogisticLoss()
        if order == 0:
            return Terms(value=logistic.value(-scores))
        bends = logistic.second_derivative(scores) if order >= 2 else None
        return Terms(slope=-logistic.derivative(-scores), curvature=bends)


@dataclass(frozen=True, slots=True)
class RateOfProbability(Loss):
    """The probability p = 1 / (1 + exp(-z)), whose slope is its rate p (1 - p). L = 1/4, c = 1 / (6 sqrt(3)).

    The second derivative p (1 - p) (1 - 2 p) is largest at p = 1/2 - 1 / (2 sqrt(3)).
    """

    # An exponential, a sum, a square and a quotient, each within 2 units in the last place.
    constants: ClassVar[LossConstants] = LossConstants(
        name="rate of probability", lipschitz=0.25, smoothness=0.09622504486493765, trace=0.09622504486493765,
        value_at_zero=0.5, rounding=12.0, convex=False,
    )  # fmt: skip

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        logistic = LogisticLoss()
        if order == 0:
            return Terms(value=-logistic.derivative(-scores))
        slope = logistic.second_derivative(scores)
        curvature = slope * (1.0 + 2.0 * logistic.derivative(-scores)) if order >= 2 else None
        return Terms(slope=np.asarray(slope), curvature=curvature)


# The sum of rows as the gradient of a loss: that of the score itself, which is linear.


@dataclass(frozen=True, slots=True)
class SumOfRows(Loss):
    """The score of a row, whatever its label. Its slope is 1, so the gradient of a `RowSum` is the sum of the rows.

    It is a loss for the sake of that sum alone. It is not bounded below, and nothing minimises it.
    """

    constants: ClassVar[LossConstants] = LossConstants(
        name="sum of rows", lipschitz=1.0, smoothness=0.0, trace=0.0, value_at_zero=0.0, rounding=0.0
    )

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        if order == 0:
            return Terms(value=scores)
        return Terms(slope=np.ones_like(scores), curvature=np.zeros_like(scores) if order >= 2 else None)


@dataclass(frozen=True, slots=True)
class SumsOfTwoParts(Loss):
    """Two scores of a row, the first times p and the second times 1 - p: so the gradient has a sum over each of two parts.

    Of two classes, p is 1 for the second class and 0 for the first. Of a number, p is (1 + t / b) / 2, t the number clipped
    to [-b, b]. It is a loss for the sake of these sums alone.

    Parameters
    ----------
    target_bound : b, at least 2^-300; None for two classes
    """

    target_bound: float | None = None

    constants: ClassVar[LossConstants] = LossConstants(
        # p^2 + (1 - p)^2 <= 1. Both numbers are within 4 units in the last place: a quotient, a sum, a half, a difference.
        name="sums of two parts", lipschitz=1.0, smoothness=0.0, trace=0.0, value_at_zero=0.0, rounding=4.0, n_outputs=2
    )  # fmt: skip

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        bound = 1.0 if self.target_bound is None else self.target_bound
        given: Any = targets
        given = given if given.dtype.names is None else given["count"]
        # In this order, so that what is not a number counts as -b.
        first = 0.5 * (1.0 + np.fmin(np.fmax(given, -bound), bound) / bound)
        parts = np.tile(np.column_stack([first, 1.0 - first]), scores.shape[1] // 2)
        if order == 0:
            return Terms(value=(parts * scores).reshape(len(scores), -1, 2).sum(axis=2))
        return Terms(slope=parts, curvature=np.zeros_like(parts) if order >= 2 else None)


def finds_scales(row_sum: RowSum) -> bool:
    """Whether this is the sum of two parts, over encoded rows without features, from which scales of columns follow."""
    return isinstance(row_sum.loss, SumsOfTwoParts)
