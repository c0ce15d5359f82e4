"""L-BFGS where weights are too many for a Hessian: in units in which all columns are curved about alike.

Columns of sparse rows are used by half of the rows or by three of them, and without such units the number of steps grows
with the root of how much more the first are curved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.data.arrays import MemorySource
from confide.erm.objective import Objective
from confide.solvers.lbfgs import LimitedMemory, on_part
from confide.solvers.rough import cheaper
from confide.solvers.solver import Solution
from confide.types import Array, Weights

_SHARE, _FEW_ROWS = 8, 4096
"""What part of the rows tells how columns are curved, and how many tell whether rows are shortened."""


@dataclass(frozen=True, slots=True)
class ByColumns:
    """L-BFGS in units of the columns, with rough passes first. Without a theorem."""

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        sample, n_rows = getattr(objective.source, "sample", None), objective.source.n_rows
        if sample is None or n_rows < _SHARE * _FEW_ROWS:
            return LimitedMemory().solve(objective, start, tolerance)
        method = LimitedMemory(units=_units(objective, sample(n_rows // _SHARE), start.shape[1]))
        fewer, _ = on_part(objective.restrict(np.arange(1)), sample(_FEW_ROWS))
        found = cheaper(objective, fewer, start[:1], start[:1]) if tolerance > 0.0 else ()
        return replace(method, from_afar=found).solve(objective, start, tolerance)


def _units(objective: Objective, part: MemorySource, width: int) -> Array:
    """(D,): the inverse of a bound on the curvature of each weight, from a part of the rows."""
    n_features, n_outputs = part.n_features, objective.loss.n_outputs
    squares = np.zeros(n_features)
    rows: Any
    for block, _, _ in part.counted_blocks():
        # Clipped, because one row without a bound could take all meaning from the units, or overflow.
        rows = objective.row_bound.clip(block)
        if issparse(rows):
            squares += np.bincount(rows.indices, weights=np.square(rows.data, dtype=np.float64), minlength=n_features)
        else:
            squares += np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    bend = objective.loss_bounds.smoothness * objective.source.n_rows / part.n_rows
    curvatures = np.full((n_outputs, width // n_outputs), bend * part.n_rows * objective.intercept**2)
    curvatures[:, :n_features] = bend * squares
    units: Array = 1.0 / (curvatures.ravel() + objective.l2)
    return units
