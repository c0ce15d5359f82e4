"""k regularised, perturbed objectives over the same rows.

    F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |w|^2 + b_j . w      (sum form, rows clipped, c_i the weight of row i)

The sum form is used throughout: dividing by the number of rows gives the mean form, with alpha = l2 / n and b / n.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np

from confide.data.source import RowSource
from confide.erm.losses import Loss, Weighted
from confide.erm.row_bounds import RowBound, norm_with_intercept
from confide.erm.row_sums import RowSum
from confide.types import Array, Indices, Weights

_PASSES_KEPT = 4
"""Of many problems some are finished a few passes before the last."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The objectives and their derivatives at k points. Data: it never leaves the package."""

    value: Array
    """(k,): NaN where derivatives were asked for, which a solver can do with."""
    gradient: Array
    """(k, D), or (k, 0) if the values were asked for."""
    hessian: Array
    """(k, D, D), or (k, 0, 0) if it was not asked for."""


@dataclass(frozen=True, slots=True)
class Objective:
    """k objectives that share rows, loss and ridge, and differ in their linear terms.

    Parameters
    ----------
    source : the rows
    loss, row_bound, intercept : what one row adds, see `RowSum`
    l2 : ridge of the sum form, positive
    linear : (k, D), the linear terms b
    largest_weight : public bound on the weight of a row
    """

    source: RowSource
    loss: Loss
    row_bound: RowBound
    intercept: float
    l2: float
    linear: Weights
    largest_weight: float = 1.0
    _passes: deque[tuple[Weights, Array]] = field(
        init=False, compare=False, repr=False, default_factory=lambda: deque(maxlen=_PASSES_KEPT)
    )
    """The last weights and sums of gradients over these rows, kept where nobody else writes."""

    @property
    def loss_bounds(self) -> Weighted:
        """Constants of the loss of a row, its weight included."""
        return Weighted(self.loss, self.largest_weight)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped row with its intercept constant."""
        return norm_with_intercept(self.row_bound, self.intercept)

    @property
    def smoothness(self) -> float:
        """Upper bound on the Lipschitz constant of the gradients."""
        return (self.l2 + self.source.n_rows * self.loss_bounds.smoothness * self.row_norm**2) * (1.0 + 2.0**-40)

    def restrict(self, which: Indices) -> Objective:
        """The same for some of the k problems."""
        some = replace(self, linear=self.linear[which])
        # The sums do not depend on the linear terms. Whatever else is replaced begins with none.
        object.__setattr__(some, "_passes", self._passes)
        return some

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows."""
        row_sum = RowSum(self.loss, self.row_bound, self.intercept, order, self.largest_weight)
        totals = self.source.sum_over_rows(row_sum, weights)
        if order == 0:
            ridge = 0.5 * self.l2 * np.einsum("kd,kd->k", weights, weights)
            totals.value[...] += ridge + np.einsum("kd,kd->k", self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        if order >= 2:
            diagonal = np.arange(weights.shape[1])
            totals.hessian[:, diagonal, diagonal] += self.l2
        self._passes.append((weights.copy(), totals.gradient.copy()))
        return Evaluation(totals.value, self._with_ridge(totals.gradient, weights), totals.hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        sums = np.empty_like(weights)
        for sum_, point in zip(sums, weights, strict=True):
            found = [kept[same.argmax()] for points, kept in self._passes if (same := (points == point).all(axis=1)).any()]
            if not found:
                return self.evaluate(weights, order=1).gradient
            sum_[...] = found[-1]
        return self._with_ridge(sums, weights)

    def _with_ridge(self, sums: Array, weights: Weights) -> Array:
        gradients: Array = sums + (self.l2 * weights + self.linear)
        return gradients
