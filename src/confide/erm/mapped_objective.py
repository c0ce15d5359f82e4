"""Objectives in the norm of a quadratic form, over rows as they are. Proof: privacy/proofs/penalty.md, section 8.

    F_j(v) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |v|^2 + b_j . v,   w = M' v      (sum form, rows x clipped)

It is the objective over rows M x. The map is applied to weights and to sums in place of rows, which may stay coded.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from confide.data.source import SummableRows
from confide.erm.objective import Objective, Source
from confide.solvers.objectives import Evaluation
from confide.types import Array, Weights


class NormMap(Protocol):
    """The public linear map M of rows to the norm of a form."""

    def weights_of(self, coef: Array) -> Array:
        """Weights (k, d or more) of rows as they are, from those in the norm: M' v."""

    def sums_in_norm(self, sums: Array) -> Array:
        """Sums (k, d or more) of multiples of mapped rows, from those of rows as they are: M g."""


@dataclass(frozen=True, slots=True)
class MappedObjective(Objective[Source]):
    """k objectives in the norm of a form, whose rows are not mapped.

    Parameters
    ----------
    form : the map
    mapped_norm : largest L2 norm of a mapped row with its intercept constant
    """

    form: NormMap = field(kw_only=True)
    mapped_norm: float = field(kw_only=True)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped and mapped row with its intercept constant."""
        return self.mapped_norm

    def lent(self) -> MappedObjective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear, form = deepcopy((self.loss, self.row_bound, self.linear, self.form))
        face = MappedObjective(
            self.source.lent(), loss, row_bound, self.intercept, self.l2, linear, self.largest_weight,
            form=form, mapped_norm=self.mapped_norm,
        )  # fmt: skip
        face._with_sums_of(self)
        return face

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        """Values (order 0), gradients (1), or gradients and Hessians (2) at (k, D) weights, in one pass over the rows."""
        totals = self._sums(self.form.weights_of(weights), order)
        if order == 0:
            ridge = 0.5 * self.l2 * np.einsum("kd,kd->k", weights, weights)
            totals.value[...] += ridge + np.einsum("kd,kd->k", self.linear, weights)
            return Evaluation(totals.value, totals.gradient, totals.hessian)
        hessian = totals.hessian
        if order >= 2:
            half = [self.form.sums_in_norm(matrix) for matrix in hessian]
            hessian = np.array([self.form.sums_in_norm(matrix.T) for matrix in half])
            diagonal = np.arange(weights.shape[1])
            hessian[:, diagonal, diagonal] += self.l2
        gradient = self.form.sums_in_norm(totals.gradient)
        return Evaluation(totals.value, gradient + (self.l2 * weights + self.linear), hessian)

    def gradients(self, weights: Weights) -> Array:
        """Gradients (k, D) at (k, D) weights: from sums of the last passes at the same weights, else by a pass."""
        sums = self._sums(self.form.weights_of(weights), 1, look_back=True)
        return self.form.sums_in_norm(sums.gradient) + (self.l2 * weights + self.linear)
