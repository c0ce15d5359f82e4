"""Losses for the sake of their gradients: sums of rows, of their probabilities and of the rates of these.

Both are losses for the sake of these sums alone. They look at no label, and nothing minimises them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from confide.array_types import Array, Targets
from confide.erm.losses import LogisticLoss, Loss, LossConstants, Terms


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
        return Terms(
            slope=-logistic.derivative(-scores), curvature=logistic.second_derivative(scores) if order >= 2 else None
        )


@dataclass(frozen=True, slots=True)
class RateOfProbability(Loss):
    """The probability p = 1 / (1 + exp(-z)), whose slope is its rate p (1 - p). L = 1/4, c = 1 / (6 sqrt(3)).

    The second derivative p (1 - p) (1 - 2 p) is largest at p = 1/2 - 1 / (2 sqrt(3)).
    """

    # An exponential, a sum, a square and a quotient, each within 2 units in the last place.
    constants: ClassVar[LossConstants] = LossConstants(
        name="rate of probability",
        lipschitz=0.25,
        smoothness=0.09622504486493765,
        trace=0.09622504486493765,
        value_at_zero=0.5,
        rounding=12.0,
        convex=False,
    )

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
