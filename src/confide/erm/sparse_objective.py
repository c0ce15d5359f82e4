"""Objectives with an l1 penalty beside the ridge. Proof: privacy/proofs/elastic_net.md.

    F_j(w) = sum_i c_i loss(y_i w . x_i) + (l2 / 2) |w|^2 + b_j . w + sum_m l1_m |w_m|      (sum form)

The l1 penalty has kinks, so what is certified is the least subgradient in place of the gradient.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from confide.data.source import SummableRows
from confide.erm.objective import Objective, Source
from confide.erm.subgradients import least_subgradients
from confide.types import Array, Weights


@dataclass(frozen=True, slots=True)
class SparseObjective(Objective[Source]):
    """k objectives that share rows, loss, ridge and l1 penalty. `evaluate` leaves the l1 penalty out.

    Parameters
    ----------
    l1 : (D,), the strength of the l1 penalty on each weight, not negative
    """

    l1: Array = field(kw_only=True)

    def lent(self) -> SparseObjective[SummableRows]:
        """The same for a solver: whatever it writes to what it is given, this objective stays as it is."""
        loss, row_bound, linear, l1 = deepcopy((self.loss, self.row_bound, self.linear, self.l1))
        source, weight = self.source.lent(), self.largest_weight
        face = SparseObjective(source, loss, row_bound, self.intercept, self.l2, linear, weight, l1=l1)
        face._with_sums_of(self)
        return face

    def gradients(self, weights: Weights) -> Array:
        """The least subgradients (k, D) at (k, D) weights, from sums of the last passes or by a pass."""
        return least_subgradients(weights, Objective.gradients(self, weights), self.l1)
