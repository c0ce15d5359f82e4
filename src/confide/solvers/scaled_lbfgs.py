"""L-BFGS where weights are too many for a Hessian: with a scale for each column, by which all are curved about alike.

One column of sparse rows may be used by half of the rows, and another one by three of them. Without scales, the number of
steps grows with the square root of the ratio of their curvatures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.data.source import SampledRows
from confide.erm.centred_rows import CentredRows
from confide.erm.coded_rows import dense
from confide.solvers.approximate_gradients import cheaper_stages
from confide.solvers.lbfgs import LimitedMemory, Stage
from confide.solvers.objectives import Objectives, on_part
from confide.solvers.solver import Solution
from confide.types import Array, Weights

_SAMPLED_SHARE = 8
"""One row in so many is sampled to see how columns are curved."""
_FEW_ROWS = 4096
"""So many rows tell whether the bound shortens any. Fewer than `_SAMPLED_SHARE` times as many rows are not sampled."""


@dataclass(frozen=True, slots=True)
class ColumnScaledLimitedMemory:
    """L-BFGS with a scale for each column, and with first steps by approximate gradients. It has no theorem.

    benchmarks/solver_speed.py measures it on words of texts (option --sparse).
    """

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        n_rows = objective.source.n_rows
        enough = n_rows >= _SAMPLED_SHARE * _FEW_ROWS
        part = objective.source.sample(n_rows // _SAMPLED_SHARE) if enough else None
        if part is None:
            return LimitedMemory().solve(objective, start, tolerance)
        column_scales = _column_scales(objective, part, start.shape[1])
        few = objective.source.sample(_FEW_ROWS) if tolerance > 0.0 else None
        cheaper: tuple[Stage, ...] = ()
        if few is not None:
            fewer, _ = on_part(objective.restrict(np.arange(1)), few)
            cheaper = cheaper_stages(objective, fewer, start[:1], start[:1])
        return LimitedMemory(column_scales=column_scales, cheaper=cheaper).solve(objective, start, tolerance)


def _column_scales(objective: Objectives, part: SampledRows, width: int) -> Array:
    """(D,): the inverse of a bound on the curvature of each weight, from a part of the rows."""
    n_features, n_outputs = part.n_features, objective.loss.n_outputs
    squares = np.zeros(n_features)
    rows: Any
    for block, _, _ in part.counted_blocks():
        # Rows are clipped, because one row of any size could make the scales meaningless, or overflow.
        rows = objective.row_bound.clip(dense(block))
        if type(rows) is CentredRows:
            squares += rows.column_squares()
        elif issparse(rows):
            squares += np.bincount(rows.indices, weights=np.square(rows.data, dtype=np.float64), minlength=n_features)
        else:
            squares += np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    bend = objective.loss_bounds.smoothness * objective.source.n_rows / part.n_rows
    curvatures = np.full((n_outputs, width // n_outputs), bend * part.n_rows * objective.intercept**2)
    curvatures[:, :n_features] = bend * squares
    scales: Array = 1.0 / (curvatures.ravel() + objective.l2)
    return scales
