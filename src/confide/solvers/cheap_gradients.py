"""Approximate gradients for the first steps: cheaper than the exact ones, which are those that a certificate believes.

Rows in memory are read as they are stored. A row that its bound would shorten is not copied: its score and its slope are
multiplied by a factor that was computed once. Rows in single precision are multiplied in single precision. The rounding
differs from that of the exact gradients, and is much larger in single precision, so the last steps are always made by exact
gradients. benchmarks/notes/what_does_float32_save.md tells what these passes cost.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from confide.array_types import Array, Factors, Indices, Rows, Targets, Weights
from confide.compiled.gradient_sums import CompiledSum, code_of
from confide.compiled.loading import is_plain, kernel
from confide.compiled.stored_rows import StoredRows
from confide.compiled.sums import ScaledSums, kernel_of_rows
from confide.data.arrays import ArrayBlocks, KeptBlocks, MemorySource, StoredBlocks, rows_in_block
from confide.erm.clipped_rows import MANY_SCORES, ScaledRows
from confide.erm.coded_rows import CodedRows, dense
from confide.erm.losses import Loss
from confide.erm.objective import HasGradients, Objectives
from confide.erm.row_bounds import LONG_ROW, BallBound, RowBound, before_moving, is_centred, row_products, row_squares
from confide.erm.row_sums import RowSum, Totals, mirrored, product, scratch
from confide.erm.source import SummableRows
from confide.errors import ParameterError
from confide.solvers.lbfgs import Stage

# Gradients by the compiled kernel, for the first steps; see `confide.compiled`.
#
# The kernel is not trusted with these. It reads rows alone and gives numbers to a solver, whose last step is made by the
# exact gradients of `RowSum`. A kernel that gives wrong numbers makes a solver slow, or has it begin again without the
# kernel.

_AT_THE_BOUND = 1.0 + 2.0**-40
"""`BallBound` shortens rows to a little less than its norm. Rows that were scaled to that norm are taken as they are here:
exact gradients correct the difference, and to shorten every row would cost as much again."""


@dataclass(frozen=True, slots=True)
class CheapObjective:
    """Objectives whose gradients are approximate, or made by the kernel.

    Parameters
    ----------
    exact : the objectives themselves
    source : the same rows: as the kernel reads them, or with a factor beside each label if the bound shortens some of them
    row_sum : the sum that is made over them
    """

    exact: Objectives
    source: SummableRows
    row_sum: CompiledSum | ApproximateSum

    def restrict(self, which: Indices) -> CheapObjective:
        return replace(self, exact=self.exact.restrict(which))

    def evaluate(self, weights: Weights, order: int) -> Totals:
        if order != 1 and not (order == 2 and self.has_hessians):
            raise ParameterError("the kernel makes gradients, and Hessians of some rows of few columns.")
        exact, totals = self.exact, self.source.sum_over_rows(replace(self.row_sum, order=order), weights)
        hessian = totals.hessian.astype(np.float64, copy=False)
        if order >= 2:
            np.einsum("kdd->kd", hessian)[...] += exact.ridges
        return Totals(totals.value, totals.gradient + (exact.ridges * weights + exact.linear), hessian)

    @property
    def has_hessians(self) -> bool:
        """Whether there are Hessians of this problem."""
        return isinstance(self.row_sum, ApproximateSum) or (self._rows is not None and self._rows.has_products)

    @property
    def row_norm(self) -> float:
        """Largest L2 norm of a clipped row."""
        return self.exact.row_norm

    @property
    def _rows(self) -> StoredRows | None:
        source = in_memory(self.source)
        return source.blocks.rows if source is not None and isinstance(source.blocks, StoredBlocks) else None


def in_memory(source: SummableRows) -> MemorySource | None:
    """The source if its rows are in memory; otherwise None."""
    return source if isinstance(source, MemorySource) else None


def _ball(bound: RowBound) -> BallBound | None:
    """The bound if it is a ball; otherwise None."""
    return bound if isinstance(bound, BallBound) else None


def compiled_objective(objective: Objectives, unshortened: bool) -> CheapObjective | None:
    """The problem with gradients by the kernel; None without a kernel, and where it cannot make them.

    Parameters
    ----------
    objective : the exact objective. The kernel needs one problem, a loss that it knows, and rows as they are stored.
    unshortened : whether the bound seems to shorten no row. The kernel shortens rows of an array to a ball, and knows no
        other bound.
    """
    module, code, bound = kernel(), code_of(objective.loss), objective.row_bound
    if module is None or code is None or len(objective.linear) != 1:
        return None
    # To look for rows beyond a ball costs little, and a single one among millions would make the minimiser another one.
    radius = math.inf if _ball(bound) is None else bound.l2_norm * _AT_THE_BOUND
    source = objective.source.as_stored(True) if radius < math.inf else None
    if source is None and unshortened:
        source, radius = objective.source.as_stored(False), math.inf
    if source is None:
        return None
    exposure = getattr(objective.loss, "exposure", None)
    row_sum = CompiledSum(module, code, objective.intercept, objective.largest_weight, radius, exposure=exposure)
    return CheapObjective(objective, source, row_sum)


_LONG_SINGLE_ROW = 64
"""For rows in single precision what `LONG_ROW` is for doubles: from this many columns on, `row_products` is faster than a
product of matrices."""
_USUAL_ERROR = 64.0 * 2.0**-24
"""Estimate of the largest error of a gradient in single precision, over sqrt(rows) times the bound on rows. It is used where
no error can be measured."""
_OVER_MEASURED = 2.0
"""The error may be this many times larger at other weights than where it was measured."""
_FACTOR_BYTES, _FACTOR_SHARE = 2**27, 0.05
"""Labels with factors may take so many bytes, or this share of the memory of the rows if that is more.
benchmarks/large_fit.py (option --rows 20000000) shows the memory and the gain for many short rows."""
_MADE_BYTES = 2**29
"""Rows that are made anew in each pass may take so much memory in single precision, where a solver keeps them."""
_LONG_BLOCK_BYTES, _LONG_BLOCK_ROWS = 2**22, 8192
"""Size of a long block. The rows of a larger one would have left the cache before they are read for the second time. In
blocks of fewer rows, threads wait for each other longer than they work (benchmarks/notes/what_do_threads_gain.md)."""
_LEAST_RIDGE_SHARE = 2.0**-22
"""A ridge below this share of the largest curvature that rows may have would drown in the rounding of single precision."""
_SAME_GRADIENT = 1e-9
"""Two gradients with a smaller relative difference are taken to be sums over the same rows, in another order."""


@dataclass(frozen=True, slots=True)
class ApproximateSum:
    """The gradients that `RowSum` adds up, in a chosen precision, of rows with a factor for each row beside its label.

    Parameters
    ----------
    loss : of one score
    intercept : constant appended to every shortened row; 0.0 for none
    largest_weight : bound on the weight of a row
    precision : in which rows are multiplied, whatever they are stored in
    order : 1 for gradients; 2 for Hessians too, which are in single precision and need rows that are not sparse
    """

    loss: Loss
    intercept: float
    largest_weight: float
    precision: type[np.floating[Any]]
    order: int = 1

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = n_features + (self.intercept > 0.0)
        # Hessians are in single precision, in which BLAS multiplies twice as fast as in double precision.
        hessians: Any = np.zeros((n_problems, width, width) if self.order >= 2 else (n_problems, 0, 0), np.float32)
        return Totals(np.full(n_problems, np.nan), np.zeros((n_problems, width)), hessians)

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the gradients of one block of rows (m, d) to the totals in place."""
        n_features, rows = rows.shape[1], dense(rows)
        rows = rows if type(rows) is ScaledRows else _in_precision(rows, self.precision)
        known: Any = labels
        if self.order == len(weights) == known.ndim == 1 and (fused := self._fused(rows)) is not None:
            fused.add_to(totals.gradient[0], known, weights[0], row_weights)
            return
        targets, factors = _without_factors(known, self.precision) if known.ndim == 2 else (known, None)
        directions = weights[:, :n_features].astype(self.precision)
        long = LONG_ROW if self.precision == np.float64 else _LONG_SINGLE_ROW
        if len(weights) == 1 and n_features >= long and isinstance(rows, np.ndarray) and rows.flags.c_contiguous:
            scores = row_products(rows, directions[0])[:, None]
        else:
            scores = product(rows, directions.T)
        if factors is not None:
            scores *= factors
        scores += (self.intercept * weights[:, n_features:].sum(axis=1)).astype(self.precision)
        terms = self.loss.of_scores(scores, targets, self.order)
        slopes, curvatures = np.asarray(terms.slope), np.asarray(terms.curvature)
        if row_weights is not None or self.largest_weight < 1.0:
            counts = np.clip(np.ones(1) if row_weights is None else row_weights[:, None], 0.0, self.largest_weight)
            slopes, curvatures = counts * slopes, counts * curvatures if self.order >= 2 else curvatures
        if self.order >= 2:
            self._add_hessian(totals.hessian, rows, factors, curvatures)
        totals.gradient[:, n_features:] += self.intercept * slopes.sum(axis=0, dtype=np.float64)[:, None]
        if factors is not None:
            slopes *= factors
        totals.gradient[:, :n_features] += product(slopes.T.astype(self.precision, copy=False), rows)

    def _fused(self, rows: Any) -> ScaledSums | None:
        """The sums over long rows of floats by the kernel, which reads a row once; None where it cannot make them."""
        module, code = kernel_of_rows(), code_of(self.loss)
        beside = rows if type(rows) is ScaledRows else ScaledRows(rows, np.ones(rows.shape[0]))
        own, shifts = beside.rows, beside.shifts
        if module is None or code is None or getattr(self.loss, "exposure", None) or type(own) is not np.ndarray:
            return None
        if own.dtype != np.float32 or own.shape[1] < _LONG_SINGLE_ROW or not (own.flags.c_contiguous and own.flags.aligned):
            return None
        numbers = np.float64(beside.scales).ravel(), None if shifts is None else np.float64(shifts).ravel(), beside.centre
        return ScaledSums(module, code, own, *numbers, None, self.intercept, self.largest_weight, is_plain())

    def _add_hessian(self, hessian: Array, rows: Any, factors: Any, curvatures: Array) -> None:
        n_features = rows.shape[1]
        bent = np.empty((rows.shape[0], hessian.shape[1]), np.float32)
        for problem, matrix in enumerate(hessian):
            root = np.sqrt(curvatures[:, problem, None])
            np.multiply(rows, root if factors is None else root * factors, out=bent[:, :n_features])
            bent[:, n_features:] = self.intercept * root
            # BLAS through NumPy computes one triangle and leaves Python's lock free; through SciPy it would keep the lock.
            matrix += np.dot(bent.T, bent, out=scratch(matrix.shape, "products", np.float32))

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every Hessian."""
        return mirrored(totals)


def approximate(exact: Objectives, source: SummableRows, precision: type[np.floating[Any]]) -> CheapObjective:
    """The objectives with gradients in a precision in which rows are multiplied, whatever they are stored in."""
    return CheapObjective(exact, source, ApproximateSum(exact.loss, exact.intercept, exact.largest_weight, precision))


def cheaper_stages(
    objective: Objectives, fewer: Objectives, start: Weights, near: Weights, unshortened: bool | None = None
) -> tuple[Stage, ...]:
    """Cheaper objectives for first steps, each with the gradient norm down to which it is believed; none if none is known.

    Parameters
    ----------
    objective : the exact objectives. Factors for rows, and single precision, need a loss of one score.
    fewer : one problem over a few of the rows, by which it is guessed whether the bound shortens any row
    start : (1, D) where that is guessed
    near : (1, D) closer to the minimiser, where the error of single precision is measured; or 0
    unshortened : what `shortens_none` says, if it is known already
    """
    free, bound = BallBound(np.inf), objective.row_bound
    if objective.loss.constants.by_length or bound == free:
        return ()
    if (kept := _with_kept_rows(objective)) is not None:
        return (Stage(kept),)
    if (made := made_once(objective)) is not None:
        return (Stage(made, error_of(rows_in_single(fewer), fewer, near, made.source.n_rows), np.float32),)
    source, unshortened = _in_long_blocks(objective.source), _known(unshortened, fewer, start)
    held, ball = in_memory(source), _ball(bound)
    if (compiled := compiled_objective(objective, unshortened)) is not None:
        # The kernel is at least as fast as each of the others, and rounds as little as the exact gradients.
        return (Stage(compiled),)
    unshortened = unshortened and not (held is not None and ball is not None and _shortens_any(held, ball))
    in_doubles = (Stage(objective.replaced(source=source, row_bound=free)),) if unshortened else ()
    if objective.loss.constants.n_outputs > 1:
        return in_doubles
    # Of short rows products are not most of the work.
    in_single = source.in_single_precision() if unshortened and source.n_features >= LONG_ROW else None
    if in_single is not None:
        # Rows that are made in each pass, for example read from a disk, cost more to make than to clip. A stage in doubles
        # would save next to nothing.
        in_doubles = ()
    elif held is not None and ball is not None:
        precision = _precision_with_factors(held, unshortened)
        if precision is not None:
            known = _with_factors(held, ball, unshortened, precision)
            if known is None:
                return ()
            in_single = known if precision == np.float32 else None
            if not unshortened or precision == np.float64:
                in_doubles = (Stage(approximate(objective, known, np.float64)),)
    if in_single is None:
        return in_doubles
    held, ball = in_memory(fewer.source), BallBound(fewer.row_bound.l2_norm)
    few = None if held is None else _with_factors(held, ball, unshortened, np.float32)
    floor = error_of(None if few is None else approximate(fewer, few, np.float32), fewer, near, source.n_rows)
    return (Stage(approximate(objective, in_single, np.float32), floor, np.float32), *in_doubles)


def _with_kept_rows(objective: Objectives) -> Objectives | None:
    """The objective over coded rows that are moved and clipped once; None for other rows, and where they would be large.

    To make coded rows, to move them by a centre and to clip them costs several times as much as their sums.
    """
    source, bound = in_memory(objective.source), objective.row_bound
    has_many_scores = len(objective.linear) * objective.loss.constants.n_outputs > MANY_SCORES
    if not is_centred(bound) or source is None or has_many_scores or type(source.blocks.block(0, 1)) is not CodedRows:
        return None
    kept = source.for_many_passes(RowSum(objective.loss, bound, objective.intercept, 1, objective.largest_weight))
    return None if kept is source else objective.replaced(source=kept)


def made_once(objective: Objectives) -> CheapObjective | None:
    """The objectives in single precision over dense rows that a map makes: clipped once, or as their source keeps them.

    None for other rows, and where they would be large.
    """
    source = in_memory(objective.source)
    is_one = source is not None and objective.loss.constants.n_outputs == 1 and not objective.loss.constants.by_length
    if source is None or not is_one or not 0 < 4 * source.n_rows * source.n_features <= _MADE_BYTES:
        return None
    # Arrays are not made anew, and encoded rows are soon made in single precision.
    is_other = isinstance(source.blocks, ArrayBlocks) or source.blocks.in_single_precision() is not None
    if is_other or not isinstance(first := source.blocks.block(0, 1), np.ndarray):
        return None
    # Rows that were made for the caller may be written to; those that the source keeps may not.
    return rows_in_single(objective) if first.flags.writeable else _with_scales(objective, source)


def _with_scales(objective: Objectives, source: MemorySource) -> CheapObjective | None:
    """The objectives over rows that their source keeps in single precision: they are clipped when they are used."""
    bound: Any = objective.row_bound
    if (ball := _ball(before_moving(bound))) is None:
        return None
    whole: Any = _in_long_blocks(replace(source, blocks=ArrayBlocks(source.blocks.block(0, source.n_rows))), 4)
    centre: Any = np.array(bound.centre, np.float32) if is_centred(bound) else None
    made, shifts = list[Any](), None
    for block, _, _ in whole.counted_blocks():
        squares = row_squares(block)[:, None]
        with np.errstate(divide="ignore"):
            scales = np.minimum(1.0, ball.norm / np.sqrt(squares))
        if centre is not None:
            moved = scales * (scales * squares - 2.0 * row_products(block, centre)[:, None]) + centre @ centre
            shifts = bound.factors(moved).astype(np.float32)
            scales = scales * shifts
        made.append(ScaledRows(block, scales, shifts, centre))
    return approximate(objective, replace(whole, blocks=KeptBlocks(whole.blocks, tuple(made))), np.float32)


def rows_in_single(objective: Objectives) -> CheapObjective:
    """The objectives over rows that are moved and clipped once, and kept in single precision."""
    source: Any = objective.source
    rows, start = np.empty((source.n_rows, source.n_features), np.float32), 0
    for block, _, _ in source.counted_blocks():
        rows[start : start + block.shape[0]] = dense(objective.row_bound.clip(np.array(dense(block), np.float64)))
        start += block.shape[0]
    return approximate(objective, _in_long_blocks(replace(source, blocks=ArrayBlocks(rows)), 4), np.float32)


def folded_rows(made: CheapObjective, weights: Weights, most: int) -> NDArray[np.float32]:
    """About `most` rows of floats (m, D) whose products add up to about the Hessian of all rows at (1, D), without ridge.

    Each is a sum of rows times the roots of their curvatures, with signs that are as good as random: so products of two rows
    cancel. All rows have a part in it, so it is closer to the Hessian than a sample of as many rows.
    """
    source: Any = made.source
    exact, width, end = made.exact, source.n_features, 0
    together = max(1, source.n_rows // most)
    folded = np.empty((source.n_rows // together, weights.shape[1]), np.float32)
    for block, labels, counts in source.counted_blocks():
        rows = block if type(block) is ScaledRows else ScaledRows(block, np.ones((len(block), 1), np.float32))
        size = rows.shape[0] // together * together
        own, end = folded[end : end + size // together], end + size // together
        scores = rows.times(weights[:, :width].T.astype(np.float32)) + exact.intercept * weights[:, width:].sum()
        bends = np.asarray(exact.loss.of_scores(scores, labels, 2).curvature)[:size, 0]
        bends = bends * np.clip(1.0 if counts is None else counts[:size], 0.0, exact.largest_weight)
        roots = np.float32(np.sign(np.sin(np.arange(1.0, size + 1.0) ** 2)) * np.sqrt(bends)).reshape(-1, together)
        scales, stored = rows.scales[:size].reshape(roots.shape), rows.rows[:size].reshape(*roots.shape, width)
        np.einsum("gt,gtd->gd", roots * scales, stored, out=own[:, :width])
        if rows.shifts is not None and rows.centre is not None:
            own[:, :width] -= (roots * rows.shifts[:size].reshape(roots.shape)).sum(axis=1)[:, None] * rows.centre
        own[:, width:] = exact.intercept * roots.sum(axis=1)[:, None]
    return folded[:end]


def _precision_with_factors(source: MemorySource, unshortened: bool) -> type[np.floating[Any]] | None:
    """The precision in which stored rows are best read as they are, with factors; None where that does not pay."""
    if not isinstance(source.blocks, ArrayBlocks) or source.blocks.are_copies:
        return None
    rows = source.blocks.rows
    n_bytes = 8 * _columns_of_factors(source) * source.n_rows
    is_large = n_bytes > max(_FACTOR_BYTES, _FACTOR_SHARE * rows.dtype.itemsize * rows.size)
    if is_large or rows.dtype not in (np.float32, np.float64):
        return None
    # Products are not most of the work on short rows, so single precision gains nothing there.
    if rows.dtype == np.float32 and (issparse(rows) or rows.shape[1] >= LONG_ROW):
        return np.float32
    # To clip sparse rows costs as much as the products with them, even where no row is shortened.
    return np.float64 if issparse(rows) or not unshortened else None


def in_single_precision(
    objective: Objectives, fewer: Objectives, start: Weights, unshortened: bool | None = None
) -> CheapObjective | None:
    """Many problems at less than half the cost, for one step that need not be exact; None where no such form is known.

    Parameters
    ----------
    objective, fewer, start, unshortened : as in `cheaper_stages`
    """
    source, bound = in_memory(objective.source), objective.row_bound
    if objective.loss.constants.n_outputs > 1 or objective.loss.constants.by_length or source is None:
        return None
    unshortened = _known(unshortened, fewer, start)
    # Rows that are made in each pass are dense.
    are_sparse = isinstance(source.blocks, ArrayBlocks) and issparse(source.blocks.rows)
    if are_sparse or not (unshortened or _ball(bound) is not None):
        return None
    known = _with_factors(source, BallBound(bound.l2_norm), unshortened, np.float32)
    return None if known is None else approximate(objective, known, np.float32)


def with_cheap_hessians(
    objective: Objectives, fewer: Objectives, start: Weights, unshortened: bool | None = None
) -> HasGradients:
    """The objectives with Hessians at half the cost, for use as a metric; unchanged where single precision may not do.

    Parameters
    ----------
    objective, fewer, start, unshortened : as in `cheaper_stages`
    """
    if objective.l2 < _LEAST_RIDGE_SHARE * objective.smoothness:
        return objective
    if (compiled := compiled_objective(objective, _known(unshortened, fewer, start))) is not None and compiled.has_hessians:
        return compiled
    return in_single_precision(objective, fewer, start, unshortened) or objective


def error_of(few: CheapObjective | None, fewer: Objectives, near: Weights, n_rows: int) -> float:
    """About the error of gradients over all rows in single precision, from objectives over a few rows in that precision.

    Weights that single precision cannot tell apart have a part in it: no step in that precision is finer.
    """
    if few is None or not near.any():
        # At weights of 0 all scores are exact, so no error can be measured there.
        return _USUAL_ERROR * fewer.row_bound.l2_norm * math.sqrt(n_rows)
    there = near.astype(np.float32).astype(np.float64)
    errors = few.evaluate(there, order=1).gradient - fewer.evaluate(near, order=1).gradient
    # The errors of rows cancel in part, but those of the intercept do not. So the error is taken to grow with the number of
    # rows, and not with its square root.
    return _OVER_MEASURED * float(np.linalg.norm(errors)) * n_rows / few.source.n_rows


def _known(unshortened: bool | None, fewer: Objectives, start: Weights) -> bool:
    return shortens_none(fewer, start) if unshortened is None else unshortened


def shortens_none(fewer: Objectives, start: Weights) -> bool:
    """Whether the bound seems to shorten no row: the gradient of a few rows is the same without it."""
    with_bound = fewer.evaluate(start, order=1).gradient
    without = fewer.replaced(row_bound=BallBound(np.inf)).evaluate(start, order=1).gradient
    return bool(np.linalg.norm(with_bound - without) <= _SAME_GRADIENT * np.linalg.norm(with_bound))


def _shortens_any(source: MemorySource, bound: BallBound) -> bool:
    """Whether a ball shortens any row of an array, of which a few rows told nothing. False for other rows.

    One such row among millions makes the minimiser another one, and then exact gradients would have to take many steps.
    """
    rows = _array_of(source)
    if rows is None:
        return False
    # Rows that were scaled to the norm of the bound are as long as that but for rounding.
    precision = np.float32 if rows.dtype == np.float32 else np.float64
    most = bound.norm * bound.norm * (1.0 + 64.0 * float(np.finfo(precision).eps))
    with np.errstate(all="ignore"):
        return not all(row_squares(rows).max(initial=0.0) <= most for rows, _, _ in source.counted_blocks())


def _columns_of_factors(source: MemorySource) -> int:
    """How many numbers of a row `_with_factors` keeps: labels of two classes have no target beside their factor."""
    return 1 if source.labels.dtype == np.int8 else 2


def _with_factors(source: MemorySource, bound: BallBound, unshortened: bool, precision: Any) -> MemorySource | None:
    """Rows whose labels also hold the factor by which each row obeys the bound; the rows as they are if none is shortened.

    A label of -1 or 1 becomes the sign of the factor, (n, 1). A target stands before the factor, (n, 2). The result is None
    if a row is longer than any number of the precision, and for counts with an exposure.
    """
    if unshortened:
        return source
    if source.labels.dtype.names is not None:
        return None
    known = np.empty((source.n_rows, _columns_of_factors(source)))
    _find_factors(source, bound.norm, known[:, -1])
    if not known[:, -1].min() > bound.norm / np.finfo(precision).max:
        return None
    if known.shape[1] == 1:
        known[:, 0] *= source.labels
    else:
        known[:, 0] = source.labels
    return replace(source, labels=known)


def _without_factors(known: Any, dtype: Any) -> tuple[Array, Array]:
    """Labels or targets (m,), and the factors (m, 1) of their rows."""
    if known.shape[1] == 1:
        return np.sign(known[:, 0]), np.abs(known).astype(dtype, copy=False)
    return known[:, 0], known[:, 1:].astype(dtype, copy=False)


def _array_of(source: MemorySource) -> Any:
    """The array that holds the rows of a source; None for rows of other kinds, and for copies of some rows."""
    blocks = source.blocks
    return None if not isinstance(blocks, ArrayBlocks) or blocks.are_copies or issparse(blocks.rows) else blocks.rows


def _in_long_blocks(source: SummableRows, longer: int = 1) -> SummableRows:
    """The same rows, in blocks as long as the cache allows, or so many times longer: threads seldom wait for each other.

    Sums for the certificate are made over shorter blocks, because every plan has to allow for the rounding of long chains of
    additions.
    """
    held, width = in_memory(source), source.n_features
    rows = None if held is None else _array_of(held)
    if held is None or rows is None:
        return source
    n_rows = max(rows_in_block(width), min(_LONG_BLOCK_ROWS, longer * _LONG_BLOCK_BYTES // (8 * max(1, width))))
    return replace(held, blocks=ArrayBlocks(rows, rows_in_block=n_rows))


def _find_factors(source: MemorySource, norm: float, factors: NDArray[Any]) -> None:
    """Write the factor by which each row obeys the bound to `factors` (n,)."""
    start = 0
    with np.errstate(all="ignore"):
        for rows, _, _ in source.counted_blocks():
            squares = row_squares(_in_precision(dense(rows), np.float64))
            factors[start : start + rows.shape[0]] = np.minimum(1.0, norm / np.sqrt(squares))
            start += rows.shape[0]


def _in_precision(rows: Any, precision: type[np.floating[Any]]) -> Any:
    """Rows of one block in a precision. Where they have to be copied, the copy lies in memory of this thread."""
    if issparse(rows) or rows.dtype == precision:
        return rows.astype(precision, copy=False)
    # The memory is used again, as in `RowSum`: new pages for every block would cost more than the work on them.
    made = scratch(rows.shape, dtype=precision)
    np.copyto(made, rows, casting="same_kind")
    return made
