"""Fewer rows than weights: the same problem in the space that the rows span.

A minimiser is a sum of rows and of the linear term, so it lies in a space of as many dimensions as there are of these. In
coordinates of that space there are few weights, and a Hessian of them is small. Coordinates keep lengths and products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.solvers.solver import Solution, Solver
from confide.types import Array, Weights

_MOST_ROWS = 1000


@dataclass(frozen=True, slots=True)
class InSpanOfRows:
    """`inner` in the space of the rows where they are few and in memory; `otherwise` for others, and for what is left.

    Without a theorem. A loss that bends evenly needs no Hessian: `otherwise` comes first, and `inner` for what that leaves.
    """

    inner: Solver
    otherwise: Solver

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        first = self.otherwise.solve if objective.loss.self_concordant else self._in_span
        then = self._in_span if objective.loss.self_concordant else self.otherwise.solve
        solution = first(objective, start, tolerance)
        # By a pass over the rows themselves, which are not the same to the last digit. A NaN counts as unfinished.
        weights = np.where(np.isfinite(solution.weights), solution.weights, start)
        norms = np.linalg.norm(objective.gradients(weights), axis=1)
        left = np.flatnonzero(~(norms <= tolerance))
        if left.size:
            again = then(objective.restrict(left), weights[left], tolerance)
            # A tolerance of 0 is never met, and what comes second may have nothing to say.
            gains = ~(again.gradient_norm >= norms[left]) & np.isfinite(again.gradient_norm)
            weights[left[gains]], norms[left[gains]] = again.weights[gains], again.gradient_norm[gains]
        return Solution(weights, norms)

    def _in_span(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        """Weights found in the space of the rows; the start itself where there is nothing to gain."""
        source, n_outputs = objective.source, objective.loss.n_outputs
        width = start.shape[1] // n_outputs
        directions = source.n_rows + n_outputs * len(start)
        if (
            not isinstance(source, MemorySource)
            or source.n_rows > _MOST_ROWS
            or directions >= width
            or objective.loss.by_length
        ):
            return Solution(start.copy(), np.full(len(start), np.nan))
        rows, linear = _rows(objective, source), objective.linear.reshape(-1, width)
        basis = np.linalg.qr(np.concatenate([rows, linear]).T)[0]

        def within(weights: Weights) -> Weights:
            found: Weights = (weights.reshape(-1, width) @ basis).reshape(len(start), -1)
            return found

        few = MemorySource(ArrayBlocks(rows @ basis), source.labels, source.row_weights, source.n_threads)
        reduced = replace(objective, source=few, row_bound=BallBound(np.inf), intercept=0.0, linear=within(objective.linear))
        solution = self.inner.solve(reduced, within(start), tolerance)
        weights = (solution.weights.reshape(len(linear), -1) @ basis.T).reshape(start.shape)
        return Solution(weights, solution.gradient_norm)


def _rows(objective: Objective, source: MemorySource) -> Array:
    """(n, D): the clipped rows with their intercept."""
    blocks: list[Any] = [objective.row_bound.clip(block) for block, _, _ in source.counted_blocks()]
    rows = np.concatenate([block.toarray() if issparse(block) else block for block in blocks]).astype(np.float64, copy=False)
    if objective.intercept > 0.0:
        rows = np.column_stack([rows, np.full(len(rows), objective.intercept)])
    return rows
