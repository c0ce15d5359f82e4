"""Objectives in which each weight has a ridge of its own. Proof: privacy/proofs/objective_perturbation.md, section 11.

F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) sum_d r_d w_d^2 + b_j . w      (sum form)
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from confide.data.source import SummableRows
from confide.erm.objective import Objective, Source
from confide.types import Array


@dataclass(frozen=True, slots=True)
class ObjectiveWithRidges(Objective[Source]):
    """k objectives that share rows, loss and ridges, and differ in their linear terms.

    Parameters
    ----------
    factors : (D,), r: how many times as strong as `l2` the ridge of each weight is, at least 1
    """

    factors: Array = field(kw_only=True)

    @property
    def ridges(self) -> Array:
        """The ridge of each weight, (D,)."""
        found: Array = self.l2 * self.factors
        return found

    def lent(self) -> ObjectiveWithRidges[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear, factors = deepcopy((self.loss, self.row_bound, self.linear, self.factors))
        source, weight = self.source.lent(), self.largest_weight
        face = ObjectiveWithRidges(source, loss, row_bound, self.intercept, self.l2, linear, weight, factors=factors)
        face._with_sums_of(self)
        return face
