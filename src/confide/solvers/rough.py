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
from scipy.linalg.blas import ssyrk
from scipy.sparse import issparse

from confide.data.arrays import ArrayBlocks, MemorySource, rows_in_block
from confide.data.source import RowSource
from confide.data.sparse import SparseBlocks
from confide.erm.losses import Loss
from confide.erm.objective import Evaluation, Objective
from confide.erm.row_bounds import LONG_ROW, BallBound, row_products, row_squares
from confide.erm.row_sums import Totals, mirrored, product
from confide.erm.thread_memory import scratch
from confide.solvers.lbfgs import FromAfar
from confide.solvers.line_search import HasGradients
from confide.types import Array, Indices, Targets, Weights

_LONG_SINGLE_ROW = 64
"""What `LONG_ROW` is for doubles."""
_FLOOR = 64.0 * 2.0**-24
"""Error of a gradient over sqrt(rows) times their bound, at most about."""
_OVER_MEASURED = 2.0
"""Elsewhere it may be so much larger than where it was measured."""
_LIGHT, _LIGHT_SHARE = 2**27, 0.05
"""Labels with factors may take so many bytes, or such a part of what the rows take."""
_LONG_BLOCK_BYTES, _LONG_BLOCK_ROWS = 2**22, 8192
"""Longer blocks are read slowly the second time. In those of fewer rows threads wait for each other more than they work."""
_FAR_ABOVE_ROUNDING = 2.0**-22
"""A ridge of this part of the largest curvature that rows may have is seen beside it in single precision."""
_SAME = 1e-9
"""Gradients as close as this, relatively, are of the same rows."""


@dataclass(frozen=True, slots=True)
class RoughSum:
    """Gradients as `RowSum` adds them, in a precision of their own. Beside each label there may be a factor for the row.

    Parameters
    ----------
    loss : of one score
    intercept : constant appended to every shortened row; 0.0 for none
    largest_weight : bound on the weight of a row
    precision : in which rows are multiplied, whatever they are stored in
    order : 1 for gradients, or 2 for Hessians too, in single precision and of rows that are not sparse
    """

    loss: Loss
    intercept: float
    largest_weight: float
    precision: type[np.floating[Any]]
    order: int = 1

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = n_features + (self.intercept > 0.0)
        # Added up by BLAS in place, in single precision too: twice as fast as sums in double.
        hessians: Any = np.zeros((n_problems, width, width) if self.order >= 2 else (n_problems, 0, 0), np.float32)
        return Totals(np.full(n_problems, np.nan), np.zeros((n_problems, width)), hessians)

    def add_block(
        self, totals: Totals, rows: Array, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the gradients of one block of rows (m, d) to the totals in place."""
        n_features, rows = rows.shape[1], _in_precision(rows, self.precision)
        targets, factors = labels, None
        if labels.ndim == 2:
            targets, factors = _without_factors(labels, rows.dtype)
        directions = weights[:, :n_features].astype(rows.dtype)
        long = LONG_ROW if rows.dtype == np.float64 else _LONG_SINGLE_ROW
        if len(weights) == 1 and n_features >= long and not issparse(rows) and rows.flags.c_contiguous:
            scores = row_products(rows, directions[0])[:, None]
        else:
            scores = product(rows, directions.T)
        if factors is not None:
            scores *= factors
        if self.intercept > 0.0:
            scores += (self.intercept * weights[:, n_features]).astype(rows.dtype)
        terms = self.loss.of_scores(scores, targets, self.order)
        slopes, curvatures = np.asarray(terms.slope), np.asarray(terms.curvature)
        if row_weights is not None or self.largest_weight < 1.0:
            counts = np.clip(np.ones(1) if row_weights is None else row_weights[:, None], 0.0, self.largest_weight)
            slopes, curvatures = counts * slopes, counts * curvatures if self.order >= 2 else curvatures
        if self.order >= 2:
            self._add_hessian(totals.hessian, rows, factors, curvatures)
        if self.intercept > 0.0:
            totals.gradient[:, n_features] += self.intercept * slopes.sum(axis=0, dtype=np.float64)
        if factors is not None:
            slopes *= factors
        totals.gradient[:, :n_features] += product(slopes.T.astype(rows.dtype, copy=False), rows)

    def _add_hessian(self, hessian: Array, rows: Array, factors: Any, curvatures: Array) -> None:
        n_features = rows.shape[1]
        bent = np.empty((rows.shape[0], hessian.shape[1]), np.float32)
        for problem, matrix in enumerate(hessian):
            root = np.sqrt(curvatures[:, problem, None])
            np.multiply(rows, root if factors is None else root * factors, out=bent[:, :n_features])
            if self.intercept > 0.0:
                bent[:, n_features:] = self.intercept * root
            ssyrk(1.0, bent.T, beta=1.0, c=matrix.T, lower=1, overwrite_c=1)

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every Hessian."""
        return mirrored(totals)


@dataclass(frozen=True, slots=True)
class RoughObjective:
    """An objective whose gradients are rough.

    Parameters
    ----------
    exact : the objective itself
    source : the same rows, with a factor beside each label where some have one
    precision : in which they are multiplied, whatever they are stored in
    """

    exact: Objective
    source: RowSource
    precision: type[np.floating[Any]]

    def restrict(self, which: Indices) -> RoughObjective:
        return replace(self, exact=self.exact.restrict(which))

    def evaluate(self, weights: Weights, order: int) -> Evaluation:
        row_sum = RoughSum(self.exact.loss, self.exact.intercept, self.exact.largest_weight, self.precision, order)
        totals = self.source.sum_over_rows(row_sum, weights)  # type: ignore[arg-type]  # not one of those that are trusted
        gradient = totals.gradient + (self.exact.l2 * weights + self.exact.linear)
        hessian = totals.hessian.astype(np.float64)
        if order >= 2:
            hessian[:, np.arange(weights.shape[1]), np.arange(weights.shape[1])] += self.exact.l2
        return Evaluation(totals.value, gradient, hessian)


def cheaper(objective: Objective, fewer: Objective, start: Weights, near: Weights) -> tuple[FromAfar, ...]:
    """The objective at less cost, believed to be the same down to gradient norms that fall; empty if that is not known.

    Parameters
    ----------
    objective : with losses of one score if its rows are to be shortened otherwise than by its bound
    fewer : one problem over a few of the rows, by which it is guessed whether any is shortened
    start : (1, D) where that is guessed
    near : (1, D) closer to the minimiser, or 0
    """
    free, bound = BallBound(np.inf), objective.row_bound
    if objective.loss.by_length or bound == free:
        return ()
    source, same = _in_long_blocks(objective.source), _nothing_shortened(fewer, start)
    in_doubles = (FromAfar(replace(objective, source=source, row_bound=free)),) if same else ()
    if objective.loss.n_outputs > 1:
        return in_doubles
    in_single = _made_in_single_precision(source) if same else None
    if in_single is not None:
        # Making rows, reading them from a disk say, costs more than their bound does.
        in_doubles = ()
    elif isinstance(source, MemorySource) and isinstance(bound, BallBound):
        precision = _worth_factors(source, same)
        if precision is not None:
            known = _with_factors(source, bound, same, precision)
            if known is None:
                return ()
            in_single = known if precision == np.float32 else None
            if not same or precision == np.float64:
                in_doubles = (FromAfar(RoughObjective(objective, known, np.float64)),)
    if in_single is None:
        return in_doubles
    floor = _floor(source.n_rows, same, fewer, near)
    return (FromAfar(RoughObjective(objective, in_single, np.float32), floor, np.float32), *in_doubles)


def _made_in_single_precision(source: RowSource) -> RowSource | None:
    """The same rows if they are made for each pass, and long enough that products are most of the work."""
    if source.n_features < LONG_ROW or not hasattr(source, "in_single_precision"):
        return None
    made: RowSource | None = source.in_single_precision()
    return made


def _worth_factors(source: MemorySource, same: bool) -> type[np.floating[Any]] | None:
    """The precision of stored rows that are best read as they stand, with factors; None for others."""
    if not isinstance(source.blocks, (ArrayBlocks, SparseBlocks)):
        return None
    rows = source.blocks.rows
    light = 8 * _columns_of_factors(source) * source.n_rows <= max(_LIGHT, _LIGHT_SHARE * rows.dtype.itemsize * rows.size)
    if not light or rows.dtype not in (np.float32, np.float64):
        return None
    # Of short rows the work is not in their products.
    if rows.dtype == np.float32 and (issparse(rows) or rows.shape[1] >= LONG_ROW):
        return np.float32
    # Of sparse rows a bound costs as much as they do.
    return np.float64 if issparse(rows) or not same else None


def in_single_precision(objective: Objective, fewer: Objective, start: Weights) -> RoughObjective | None:
    """Many problems at less than half the cost, for one step that need not be exact; None where that is not known.

    Parameters
    ----------
    objective, fewer, start : as in `cheaper`
    """
    source, bound = objective.source, objective.row_bound
    if objective.loss.n_outputs > 1 or objective.loss.by_length or not isinstance(source, MemorySource):
        return None
    same = _nothing_shortened(fewer, start)
    if issparse(getattr(source.blocks, "rows", None)) or not (same or isinstance(bound, BallBound)):
        return None
    known = _with_factors(source, BallBound(bound.l2_norm), same, np.float32)
    return None if known is None else RoughObjective(objective, known, np.float32)


def for_a_metric(objective: Objective, fewer: Objective, start: Weights) -> HasGradients:
    """The objective with Hessians at half the cost, to take gradients to steps; itself where single precision may not do.

    Parameters
    ----------
    objective, fewer, start : as in `cheaper`
    """
    if objective.l2 < _FAR_ABOVE_ROUNDING * objective.smoothness:
        return objective
    return in_single_precision(objective, fewer, start) or objective


def _floor(n_rows: int, same: bool, fewer: Objective, near: Weights) -> float:
    """About the error of gradients in single precision, at weights that it can tell apart."""
    bound = BallBound(fewer.row_bound.l2_norm)
    few = _with_factors(fewer.source, bound, same, np.float32) if isinstance(fewer.source, MemorySource) else None
    if few is None or not near.any():
        # Scores of 0 are exact: nothing can be measured there.
        return _FLOOR * bound.norm * math.sqrt(n_rows)
    there = near.astype(np.float32).astype(np.float64)
    rough = RoughObjective(fewer, few, np.float32)
    errors = rough.evaluate(there, order=1).gradient - fewer.evaluate(there, order=1).gradient
    # Some errors of rows cancel, those of the intercept do not.
    return _OVER_MEASURED * float(np.linalg.norm(errors)) * n_rows / few.n_rows


def _nothing_shortened(fewer: Objective, start: Weights) -> bool:
    """Whether the bound seems to shorten none of the rows."""
    with_bound = fewer.evaluate(start, order=1).gradient
    without = replace(fewer, row_bound=BallBound(np.inf)).evaluate(start, order=1).gradient
    return bool(np.linalg.norm(with_bound - without) <= _SAME * np.linalg.norm(with_bound))


def _with_factors(source: MemorySource, bound: BallBound, same: bool, precision: Any) -> MemorySource | None:
    """Rows with labels that tell by what each has to be multiplied to obey the bound; as they are where none is shortened.

    A label of -1 or 1 is the sign of that, (n, 1), and a target stands before it, (n, 2). None where some rows are so long
    that numbers of the precision cannot tell it.
    """
    if same:
        return source
    known = np.empty((source.n_rows, _columns_of_factors(source)))
    _find_factors(source, bound.norm, known[:, -1])
    if not known[:, -1].min() > bound.norm / np.finfo(precision).max:
        return None
    if known.shape[1] == 1:
        known[:, 0] *= source.labels
    else:
        known[:, 0] = source.labels
    return replace(source, labels=known)


def _columns_of_factors(source: MemorySource) -> int:
    return 1 if source.labels.dtype == np.int8 else 2


def _without_factors(known: Any, dtype: Any) -> tuple[Array, Array]:
    """Labels or targets (m,), and the factors (m, 1) of their rows."""
    if known.shape[1] == 1:
        return np.sign(known[:, 0]), np.abs(known).astype(dtype, copy=False)
    return known[:, 0], known[:, 1:].astype(dtype, copy=False)


@dataclass(frozen=True, slots=True)
class _LongBlocks(ArrayBlocks):
    """Blocks of an array as long as the third-level cache allows, which a certificate would have to pay for."""

    @property
    def rows_in_block(self) -> int:
        return max(rows_in_block(self.n_features), min(_LONG_BLOCK_ROWS, _LONG_BLOCK_BYTES // (8 * max(1, self.n_features))))


def _in_long_blocks(source: RowSource) -> RowSource:
    """The same rows, in blocks so long that threads seldom wait for each other."""
    if isinstance(source, MemorySource) and isinstance(source.blocks, ArrayBlocks):
        return replace(source, blocks=_LongBlocks(source.blocks.rows))
    return source


def _find_factors(source: MemorySource, norm: float, factors: NDArray[Any]) -> None:
    """Fill in by what each row has to be multiplied to obey the bound (n,)."""
    start = 0
    with np.errstate(all="ignore"):
        for rows, _, _ in source.counted_blocks():
            squares = row_squares(_in_precision(rows, np.float64))
            factors[start : start + rows.shape[0]] = np.minimum(1.0, norm / np.sqrt(squares))
            start += rows.shape[0]


def _in_precision(rows: Any, precision: type[np.floating[Any]]) -> Any:
    """Rows of one block, in memory of this thread where they have to be copied."""
    if issparse(rows) or rows.dtype == precision:
        return rows.astype(precision, copy=False)
    # As in `RowSum`: new pages for every block cost more than what is done with them.
    made = scratch(rows.shape, dtype=precision)
    np.copyto(made, rows, casting="same_kind")
    return made
