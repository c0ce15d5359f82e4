"""Gradients to make steps by, cheaper than those that a certificate believes.

Rows in memory are read as they stand: a row that its bound would shorten is not copied, but its score and its slope are
shortened, by a factor that was found once; and rows in single precision are multiplied in it. The rounding is another, and
in single precision much larger, so the last steps have to be made by the objective itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.data.sparse import SparseBlocks
from confide.erm.losses import Loss
from confide.erm.objective import Evaluation, Objective
from confide.erm.row_bounds import BallBound, sparse_squares
from confide.erm.row_sums import Totals
from confide.solvers.line_search import HasGradients
from confide.types import Array, Indices, Targets, Weights

_LONG_ROW = 48
_FLOOR = {"float32": 64.0 * 2.0**-24, "float64": 0.0}
"""Error of a gradient over sqrt(rows) times their bound, at most about."""
_LIGHT, _LIGHT_SHARE = 2**26, 0.06
"""Labels with factors may take so many bytes, or such a part of what the rows take."""
_SAME = 1e-9
"""Gradients as close as this, relatively, are of the same rows."""


@dataclass(frozen=True, slots=True)
class RoughSum:
    """Gradients as `RowSum` adds them, in the precision of the rows. Beside each label (m, 2) is a factor for the row.

    Parameters
    ----------
    loss : of one score
    intercept : constant appended to every shortened row; 0.0 for none
    largest_weight : bound on the weight of a row
    order : 1, as that of a `RowSum` for gradients
    """

    loss: Loss
    intercept: float
    largest_weight: float
    order: int = 1

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        return Totals(np.full(n_problems, np.nan), np.zeros((n_problems, n_features + (self.intercept > 0.0))), np.empty(0))

    def add_block(
        self, totals: Totals, rows: Array, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the gradients of one block of rows (m, d) to the totals in place."""
        n_features, factors = rows.shape[1], labels[:, 1:]
        directions = weights[:, :n_features].astype(rows.dtype)
        if len(weights) == 1 and n_features >= _LONG_ROW and not issparse(rows):
            # These rows come from memory here: read one after the other, twice as fast as by a product.
            products = np.einsum("ij,j->i", rows, directions[0])[:, None]
        else:
            products = rows @ directions.T
        scores = factors * products
        if self.intercept > 0.0:
            scores += self.intercept * weights[:, n_features]
        counts = np.ones(1) if row_weights is None else row_weights[:, None]
        slopes = np.clip(counts, 0.0, self.largest_weight) * np.asarray(self.loss.of_scores(scores, labels[:, 0], 1).slope)
        if self.intercept > 0.0:
            totals.gradient[:, n_features] += self.intercept * slopes.sum(axis=0)
        slopes *= factors
        totals.gradient[:, :n_features] += slopes.T.astype(rows.dtype) @ rows

    def completed(self, totals: Totals) -> Totals:
        """The totals."""
        return totals


@dataclass(frozen=True, slots=True)
class RoughObjective:
    """An objective whose gradients are rough.

    Parameters
    ----------
    exact : the objective itself
    source : the same rows, with a factor beside each label
    """

    exact: Objective
    source: MemorySource

    def restrict(self, which: Indices) -> RoughObjective:
        return replace(self, exact=self.exact.restrict(which))

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        row_sum = RoughSum(self.exact.loss, self.exact.intercept, self.exact.largest_weight)
        totals = self.source.sum_over_rows(row_sum, weights)  # type: ignore[arg-type]  # not one of those that are trusted
        gradient = totals.gradient + (self.exact.l2 * weights + self.exact.linear)
        return Evaluation(totals.value, gradient, totals.hessian)


def cheaper(objective: Objective, fewer: Objective, at: Weights) -> tuple[HasGradients, float] | None:
    """The objective at less cost, believed to be the same down to a gradient norm, and that norm; None if none is known.

    Parameters
    ----------
    objective : with losses of one score if its rows are to be shortened otherwise than by its bound
    fewer : one problem over a few of the rows, by which it is guessed whether any is shortened
    at : (1, D) where
    """
    loss, free = objective.loss, BallBound(np.inf)
    if loss.by_length or objective.row_bound == free:
        return None
    with_bound = fewer.evaluate(at, order=1).gradient
    without = replace(fewer, row_bound=free).evaluate(at, order=1).gradient
    same = bool(np.linalg.norm(with_bound - without) <= _SAME * np.linalg.norm(with_bound))
    source, bound = objective.source, objective.row_bound
    if loss.n_outputs == 1 and isinstance(source, MemorySource) and isinstance(bound, BallBound):
        rows = source.blocks.rows if isinstance(source.blocks, (ArrayBlocks, SparseBlocks)) else np.empty((0, 0), dtype=int)
        # Of short rows the work is not in their products, and of sparse ones a bound costs as much as they do.
        single = rows.dtype == np.float32 and rows.shape[1] >= _LONG_ROW
        light = 16 * source.n_rows <= max(_LIGHT, _LIGHT_SHARE * rows.dtype.itemsize * rows.size)
        if light and rows.dtype.name in _FLOOR and (single or issparse(rows) or not (same or rows.dtype == np.float32)):
            # Labels are told apart in any precision, targets are not.
            known = np.empty((source.n_rows, 2), rows.dtype if source.labels.dtype == np.int8 else np.float64)
            known[:, 0], known[:, 1] = source.labels, 1.0
            if not same:
                _find_factors(source, bound.norm, known[:, 1])
                if not known[:, 1].all():
                    # Of rows whose squares overflow nothing would be left.
                    return None
            floor = _FLOOR[rows.dtype.name] * bound.norm * math.sqrt(source.n_rows)
            return RoughObjective(objective, replace(source, labels=known)), floor
    return (replace(objective, row_bound=free), 0.0) if same else None


def _find_factors(source: MemorySource, norm: float, factors: NDArray[Any]) -> None:
    """Fill in by what each row has to be multiplied to obey the bound (n,)."""
    start = 0
    with np.errstate(all="ignore"):
        for rows, _, _ in source.counted_blocks():
            squares = sparse_squares(rows) if issparse(rows) else np.einsum("ij,ij->i", rows, rows)
            factors[start : start + rows.shape[0]] = np.minimum(1.0, norm / np.sqrt(squares))
            start += rows.shape[0]
