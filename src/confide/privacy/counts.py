"""Counts of rows by cell, with exact noise. Every row lies in exactly one cell. Proof: proofs/counts.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from confide import expected_noise
from confide.array_types import Array
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours, budget_of_row
from confide.privacy.events import Event
from confide.privacy.lattice import LatticeNoise, event_of, least_noise
from confide.privacy.mechanism import ANOTHERS, made_by
from confide.privacy.noise import Entropy

_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class CountsPlan:
    """Everything decided before any row is read. Public.

    Attributes
    ----------
    n_cells : int
    budget : Budget
        What the release costs; charged before a row is read.
    neighbours : Neighbours
    lattice : LatticeNoise or None
        The noise on each count; None where there is no privacy.
    event : Event
        What a ledger counts.
    """

    n_cells: int
    budget: Budget
    neighbours: Neighbours
    lattice: LatticeNoise | None
    event: Event

    deviation = property(expected_noise.deviation)


@dataclass(frozen=True, slots=True)
class NoisyCounts:
    """Counts with noise. Between its two verbs the caller charges the plan's event."""

    def plan(self, n_cells: int, budget: Budget, neighbours: Neighbours, rows_per_person: int = 1) -> CountsPlan:
        """The plan with the least noise among exact Laplace and exact Gaussian. No data is used."""
        if n_cells < 1 or rows_per_person < 1:
            raise ParameterError("counts need at least one cell, and at least one row a person.")
        if not budget.is_private:
            return CountsPlan(n_cells, budget, neighbours, None, Event(budget, None, rows_per_person, neighbours))
        # Theorem 1: a replaced row leaves one cell and enters another.
        changed = 2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0
        of_row = budget_of_row(budget, rows_per_person)
        lattice, curve = least_noise(n_cells, math.sqrt(changed) * _UP, changed, of_row)
        return CountsPlan(n_cells, budget, neighbours, lattice, event_of(budget, curve, rows_per_person, neighbours))

    def release(self, plan: CountsPlan, counts: NDArray[np.int64], entropy: Entropy) -> Array:
        """Release the numbers of rows by cell (n_cells,), sums of `counted` over all rows. The event was charged before."""
        if not made_by(plan, CountsPlan) or counts.shape != (plan.n_cells,):
            raise ParameterError(ANOTHERS)
        exact = counts.astype(np.float64)
        released: Array = exact if plan.lattice is None else plan.lattice.release(exact[None], entropy)[0]
        return released
