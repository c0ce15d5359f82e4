"""Losses of several classes, with one score for each. Slopes are vectors; targets are positions of classes, 0 to o - 1.

Constants: privacy/proofs/multiclass.md, sections 2 and 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.array_types import Array, Targets
from confide.erm.losses import Loss, LossConstants, OneMargin, Terms


@dataclass(frozen=True, slots=True)
class Softmax(Loss):
    """Minus the logarithm of the probability of a row's class, probabilities proportional to exp(score).

    L = sqrt(2), c = 1/2, rank o - 1, trace 1 - 1/o.
    """

    n_outputs: int

    @property
    def constants(self) -> LossConstants:
        o = self.n_outputs
        return LossConstants(
            name="softmax", scores="log-odds", n_outputs=o, separable=False, rank=o - 1,
            lipschitz=math.sqrt(2.0) * (1.0 + 2.0**-50), smoothness=0.5, trace=1.0 - 1.0 / o, bends=self._bends,
            value_at_zero=math.log(o), rounding=(o + 2.0 * math.log(o) + 18.0) / math.sqrt(2.0),
            monotone=True, tapered=True, tail=2.0 * math.sqrt(2.0) * (1.0 + 2.0**-50), self_concordant=True,
        )  # fmt: skip

    def _bends(self, slope: Array) -> Array:
        # 2m - a^2, where m is one minus the probability of the row's class, and as large as the slope a allows.
        largest = np.minimum(1.0, slope * math.sqrt(1.0 - 1.0 / self.n_outputs))
        return np.maximum(0.0, 2.0 * largest - slope * slope)

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        n_rows, n_classes = scores.shape[0], self.n_outputs
        scores = scores.reshape(n_rows, -1, n_classes)
        own = (np.arange(n_rows), slice(None), targets)
        lower = scores - scores.max(axis=2, keepdims=True)
        # The largest share is 1, so the sum neither overflows nor vanishes. exp(score - log of the sum) would lose digits.
        shares = np.exp(lower)
        total = shares.sum(axis=2, keepdims=True)
        if order == 0:
            return Terms(np.log(total[:, :, 0]) - lower[own])
        probabilities = shares / total
        slope = probabilities.copy()
        slope[own] -= 1.0
        if order == 1:
            return Terms(slope=slope.reshape(n_rows, -1))
        curvature = -probabilities[:, :, :, None] * probabilities[:, :, None, :]
        diagonal = np.arange(n_classes)
        curvature[:, :, diagonal, diagonal] += probabilities
        return Terms(slope=slope.reshape(n_rows, -1), curvature=curvature.reshape(n_rows, -1))


@dataclass(frozen=True, slots=True)
class OneVsRest(Loss):
    """For each class a loss of the margin, +1 for the class and -1 for all others; their sum is the loss of a row.

    L = sqrt(o) L_1, c is that of one loss, the rank is o, and the trace is o times that of one loss. `loss` must fall with
    the margin, and its curvature must be a concave function of its squared slope.
    """

    loss: OneMargin
    n_outputs: int

    @property
    def constants(self) -> LossConstants:
        o, of_one = self.n_outputs, self.loss.constants
        lipschitz = math.sqrt(o) * of_one.lipschitz * (1.0 + 2.0**-50)
        return of_one._replace(
            name=f"one-vs-rest {of_one.name}", n_outputs=o, rank=o, lipschitz=lipschitz, tail=lipschitz, bends=self._bends,
            trace=o * of_one.smoothness, value_at_zero=o * of_one.value_at_zero,
        )  # fmt: skip

    def _bends(self, slope: Array) -> Array:
        of_one = self.loss.constants
        share = np.minimum(slope / math.sqrt(self.n_outputs), of_one.lipschitz)
        return self.n_outputs * of_one.curvature_at_slope(share)

    def with_joint(self, half_width: float, *, slopes_alone: bool = False) -> Any:
        return replace(self, loss=self.loss.with_joint(half_width))

    def of_scores(self, scores: Array, targets: Targets, order: int, stretch: Array | float = 1.0) -> Terms:
        n_rows = scores.shape[0]
        margin_signs = np.where(np.arange(self.n_outputs) == targets[:, None], 1.0, -1.0)
        signs = np.tile(margin_signs, scores.shape[1] // self.n_outputs)
        margins = signs * scores
        values = self.loss.value(margins).reshape(n_rows, -1, self.n_outputs).sum(axis=2) if order == 0 else None
        return Terms(
            values,
            signs * self.loss.derivative(margins) if order >= 1 else None,
            self.loss.second_derivative(margins) if order >= 2 else None,
        )
