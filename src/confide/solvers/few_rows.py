"""Fewer rows than weights: the same problem in the space that the rows span.

A minimiser is a sum of multiples of the rows and of the linear term, so it lies in the space that these span. In coordinates
of that space there are few weights and a small Hessian. The coordinates belong to an orthonormal basis, so lengths and
products stay the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.centred_rows import CentredRows
from confide.erm.coded_rows import dense
from confide.erm.row_bounds import BallBound
from confide.solvers.objectives import Objectives
from confide.solvers.solver import Solution, Solver
from confide.types import Array, Weights

_MOST_ROWS = 1000
"""The basis is computed for at most this many rows. The time for it grows with the square of their number."""


@dataclass(frozen=True, slots=True)
class InSpanOfRows:
    """Solves in the space of the rows where they are few and in memory. It has no theorem.

    Two solvers are asked, the second one for what the first did not finish. For a self-concordant loss, whose curvature
    changes slowly enough for gradients alone, `otherwise` is the first; for others, such as hinges, `inner` is.

    Parameters
    ----------
    inner : solver for the problem in the space of the rows
    otherwise : solver for the problem as it stands
    """

    inner: Solver
    otherwise: Solver

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        first = self.otherwise.solve if objective.loss.self_concordant else self._in_span
        then = self._in_span if objective.loss.self_concordant else self.otherwise.solve
        solution = first(objective, start, tolerance)
        # The norms are computed from the rows themselves, because rows in other coordinates differ in their last digits. A
        # norm of NaN counts as unfinished.
        weights = np.where(np.isfinite(solution.weights), solution.weights, start)
        norms = np.linalg.norm(objective.gradients(weights), axis=1)
        left = np.flatnonzero(~(norms <= tolerance))
        if left.size:
            again = then(objective.restrict(left), weights[left], tolerance)
            # A tolerance of 0 is never met, so the second method is always asked then. Its answer counts if it is better.
            gains = ~(again.gradient_norm >= norms[left]) & np.isfinite(again.gradient_norm)
            weights[left[gains]], norms[left[gains]] = again.weights[gains], again.gradient_norm[gains]
        return Solution(weights, norms)

    def _in_span(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """Weights found in the space of the rows. Where that space is not smaller, the start, with norms of NaN."""
        source, n_outputs = objective.source, objective.loss.n_outputs
        width = start.shape[1] // n_outputs
        directions = source.n_rows + n_outputs * len(start)
        if (
            not isinstance(source, MemorySource)
            or source.n_rows > _MOST_ROWS
            or directions >= width
            or objective.loss.by_length
            # In another basis the ridges of single weights would be a matrix.
            or np.ndim(objective.ridges)
        ):
            return Solution(start.copy(), np.full(len(start), np.nan))
        rows, linear = _rows(objective, source), objective.linear.reshape(-1, width)
        basis = np.linalg.qr(np.concatenate([rows, linear]).T)[0]

        def within(weights: Weights) -> Weights:
            found: Weights = (weights.reshape(-1, width) @ basis).reshape(len(start), -1)
            return found

        few = MemorySource(ArrayBlocks(rows @ basis), source.labels, source.row_weights, source.n_threads)
        # The rows are clipped and have their intercept already.
        reduced = objective.replaced(source=few, row_bound=BallBound(np.inf), intercept=0.0, linear=within(objective.linear))
        solution = self.inner.solve(reduced, within(start), tolerance)
        weights = (solution.weights.reshape(len(linear), -1) @ basis.T).reshape(start.shape)
        return Solution(weights, solution.gradient_norm)


def _rows(objective: Objectives, source: MemorySource) -> Array:
    """(n, D): the clipped rows with their intercept."""
    blocks = [_array(objective.row_bound.clip(dense(block))) for block, _, _ in source.counted_blocks()]
    rows = np.concatenate(blocks).astype(np.float64, copy=False)
    if objective.intercept > 0.0:
        rows = np.column_stack([rows, np.full(len(rows), objective.intercept)])
    return rows


def _array(clipped: Any) -> Any:
    if type(clipped) is CentredRows:
        return clipped.dense()
    return clipped.toarray() if issparse(clipped) else clipped
