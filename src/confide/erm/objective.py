"""k regularised, perturbed objectives over the same rows.

    F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |w|^2 + b_j . w      (sum form, rows clipped, c_i the weight of row i)

The sum form is used throughout: dividing by the number of rows gives the mean form, with alpha = l2 / n and b / n.
A mechanism keeps an `Objective` over its own rows, and lends solvers another one over rows that they cannot write to.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np

from confide.data.kept_sums import kept_sums
from confide.data.source import RowSource, SummableRows
from confide.erm.losses import Loss
from confide.erm.row_bounds import RowBound, norm_with_intercept
from confide.erm.row_sums import RowSum, Totals
from confide.erm.weighted_losses import Weighted
from confide.solvers.objectives import Evaluation
from confide.types import Array, Indices, Weights

Source = TypeVar("Source", bound=RowSource)


@dataclass(frozen=True, slots=True)
class Objective(Generic[Source]):
    """k objectives that share rows, loss and ridge, and differ in their linear terms.

    Parameters
    ----------
    source : the rows: `RowSource` for a mechanism, whose list of sums is closed; `SummableRows` for a solver
    loss, row_bound, intercept : what one row adds, see `RowSum`
    l2 : ridge of the sum form, positive
    linear : (k, D), the linear terms b
    largest_weight : public bound on the weight of a row
    """

    source: Source
    loss: Loss
    row_bound: RowBound
    intercept: float
    l2: float
    linear: Weights
    largest_weight: float = 1.0
    _sums: Callable[..., Totals] = field(init=False, compare=False, repr=False)
    """See `kept_sums`."""

    def __post_init__(self) -> None:
        # An objective that is made by replacing a part of another one, such as its rows, remembers no sums of that one.
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

    ridges = property(lambda self: self.l2)
    """The ridge of each weight, (D,), or one number for all of them."""

    @property
    def smoothness(self) -> float:
        """Upper bound on the Lipschitz constant of the gradients."""
        of_rows = self.source.n_rows * self.loss_bounds.smoothness * self.row_norm**2
        return float(np.max(self.ridges) + of_rows) * (1.0 + 2.0**-40)

    def restrict(self, which: Indices) -> Objective[Source]:
        """The same for some of the k problems, with the same sums: these do not depend on the linear terms."""
        return replace(self, linear=self.linear[which])._with_sums_of(self)

    def replaced(self, **parts: Any) -> Objective[Any]:
        """Other problems: the same with other parts, named as the parameters are. They begin with no sums."""
        return replace(self, **parts)

    def lent(self) -> Objective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        source, (loss, row_bound, linear) = self.source.lent(), deepcopy((self.loss, self.row_bound, self.linear))
        return Objective(source, loss, row_bound, self.intercept, self.l2, linear, self.largest_weight)._with_sums_of(self)

    def _with_sums_of(self, other: Objective[Any]) -> Objective[Source]:
        object.__setattr__(self, "_sums", other._sums)
        return self

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows."""
        totals = self._sums(weights, order)
        if order == 0:
            totals.value[...] += np.einsum("kd,kd->k", 0.5 * self.ridges * weights + self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        if order >= 2:
            np.einsum("kdd->kd", totals.hessian)[...] += self.ridges  # the diagonals, which this writes to
        return Evaluation(totals.value, totals.gradient + (self.ridges * weights + self.linear), totals.hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        return np.asarray(self._sums(weights, 1, look_back=True).gradient + (self.ridges * weights + self.linear))


KeptObjective: TypeAlias = Objective[RowSource]
"""What a mechanism keeps for itself: the sums over its rows are a closed list."""
