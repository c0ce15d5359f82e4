"""Objectives with a strongly convex penalty of the user's own. Proof: privacy/proofs/strongly_convex.md.

    F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / m) (N(w) + m / 2 c^2) + b_j . w      (sum form)

N is m-strongly convex and c is the weight of the intercept, so the objective is l2-strongly convex.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

from confide.data.source import SummableRows
from confide.erm.declared_losses import asked
from confide.erm.objective import Objective, Source
from confide.erm.strongly_convex import StronglyConvex, slopes_of, values_of
from confide.solvers.objectives import Evaluation
from confide.types import Array, Weights

_STEP = 2.0**-20
"""Steps of differences of gradients, for Hessians that solvers use and no certificate does."""


@dataclass(frozen=True, slots=True)
class PenalisedObjective(Objective[Source]):
    """k objectives that share rows, loss and penalty, and differ in their linear terms.

    Parameters
    ----------
    penalty : the penalty of the weights of the columns, of each score
    """

    penalty: StronglyConvex = field(kw_only=True)

    @property
    def smoothness(self) -> float:
        """Upper bound on the Lipschitz constant of the gradients."""
        of_rows = self.source.n_rows * self.loss_bounds.smoothness * self.row_norm**2
        return (self.l2 * self.penalty.steepness + of_rows) * (1.0 + 2.0**-40)

    def lent(self) -> PenalisedObjective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear = deepcopy((self.loss, self.row_bound, self.linear))
        # A penalty whose copy fails has no functions: then the solver finds nothing that could be certified.
        penalty = asked(lambda: deepcopy(self.penalty), None) or replace(self.penalty, value=None, gradient=None)
        source, weight = self.source.lent(), self.largest_weight
        face = PenalisedObjective(source, loss, row_bound, self.intercept, self.l2, linear, weight, penalty=penalty)
        face._with_sums_of(self)
        return face

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows.

        The Hessians of the penalty are differences of its gradients.
        """
        totals = self._sums(weights, order)
        if order == 0:
            totals.value[...] += self._values(weights) + np.einsum("kd,kd->k", self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        if order >= 2:
            totals.hessian[...] += self._hessians(weights)
        return Evaluation(totals.value, totals.gradient + (self._slopes(weights) + self.linear), totals.hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        return self._sums(weights, 1, look_back=True).gradient + (self._slopes(weights) + self.linear)

    def _by_score(self, weights: Weights) -> tuple[Weights, int]:
        """The weights of each score in a row of its own, and how many of a row are those of columns."""
        width = weights.shape[1] // self.loss.n_outputs
        return weights.reshape(-1, width), width - (self.intercept > 0.0)

    def _slopes(self, weights: Weights) -> Array:
        """The gradients (k, D) of the penalty."""
        by_score, columns = self._by_score(weights)
        slopes = self.l2 * by_score
        slopes[:, :columns] = self.l2 / self.penalty.strong_convexity * slopes_of(self.penalty, by_score[:, :columns])
        return slopes.reshape(weights.shape)

    def _values(self, weights: Weights) -> Array:
        by_score, columns = self._by_score(weights)
        values = self.l2 / self.penalty.strong_convexity * values_of(self.penalty, by_score[:, :columns])
        values += 0.5 * self.l2 * np.square(by_score[:, columns:]).sum(axis=1)
        return np.asarray(values.reshape(len(weights), -1).sum(axis=1))

    def _hessians(self, weights: Weights) -> Array:
        """The Hessians (k, D, D) of the penalty, nearly."""
        found = np.zeros((*weights.shape, weights.shape[1]))
        for matrix, point in zip(found, weights, strict=True):
            step = _STEP * (1.0 + float(np.abs(point).max()))
            moves = step * np.eye(len(point))
            ahead, behind = self._slopes(point + moves), self._slopes(point - moves)
            differences = (ahead - behind) / (2.0 * step)
            matrix[...] = 0.5 * (differences + differences.T)
        return found
