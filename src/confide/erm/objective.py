"""k regularised, perturbed objectives over the same rows.

    F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |w|^2 + b_j . w      (sum form, rows clipped, c_i the weight of row i)

The sum form is used throughout: dividing by the number of rows gives the mean form, with alpha = l2 / n and b / n.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

from confide.data.kept_sums import kept_sums
from confide.data.lent import lent
from confide.data.source import RowSource
from confide.erm.losses import Loss
from confide.erm.row_bounds import RowBound, norm_with_intercept
from confide.erm.row_sums import RowSum, Totals
from confide.erm.weighted_losses import Weighted
from confide.types import Array, Indices, Weights


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
    _sums: Callable[..., Totals] = field(init=False, compare=False, repr=False)
    """See `kept_sums`."""

    def __post_init__(self) -> None:
        # Whatever is replaced, other rows say, begins with no sums.
        row_sum = RowSum(self.loss, self.row_bound, self.intercept, 1, self.largest_weight)
        object.__setattr__(self, "_sums", kept_sums(self.source, row_sum, self.linear.shape[1]))

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
        """The same for some of the k problems, whose sums over rows do not depend on the linear terms."""
        return self._with_same_sums(replace(self, linear=self.linear[which]))

    def lent(self) -> Objective:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear = deepcopy((self.loss, self.row_bound, self.linear))
        face = replace(self, source=lent(self.source), loss=loss, row_bound=row_bound, linear=linear)
        return self._with_same_sums(face)

    def _with_same_sums(self, other: Objective) -> Objective:
        object.__setattr__(other, "_sums", self._sums)
        return other

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows."""
        totals = self._sums(weights, order)
        if order == 0:
            ridge = 0.5 * self.l2 * np.einsum("kd,kd->k", weights, weights)
            totals.value[...] += ridge + np.einsum("kd,kd->k", self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        if order >= 2:
            diagonal = np.arange(weights.shape[1])
            totals.hessian[:, diagonal, diagonal] += self.l2
        return Evaluation(totals.value, totals.gradient + (self.l2 * weights + self.linear), totals.hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        return self._sums(weights, 1, look_back=True).gradient + (self.l2 * weights + self.linear)
