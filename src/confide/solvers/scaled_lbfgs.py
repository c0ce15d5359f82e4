"""L-BFGS where weights are too many for a Hessian: with a scale for each column, by which all are curved about alike.

One column of sparse rows may be used by half of the rows, and another one by three of them. Without scales, the number of
steps grows with the square root of the ratio of their curvatures. For a category with many levels the metric is that of
`confide.solvers.scaled_lbfgs`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.sparse import issparse

from confide.array_types import Array, Factors, Indices, Rows, Targets, Weights
from confide.erm.coded_rows import CodedLayout, CodedRows, dense
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import Loss
from confide.erm.objective import Objectives, Solution, mean_of, on_part
from confide.erm.row_bounds import CentredRows, RowBound
from confide.erm.row_sums import Totals
from confide.erm.source import SampledRows
from confide.solvers.cheap_gradients import cheaper_stages
from confide.solvers.lbfgs import LimitedMemory, Stage

# Curvature of coded rows of a category with many levels: diagonal among its levels, dense beside them.
#
# A row has one level of a category, so the products of two levels are 0. The Hessian then has the form of an arrow,
#
#     [ D    B ]     D diagonal, one entry for each level of the widest category
#     [ B^T  C ]     C small, of all other columns and the intercept
#
# which is summed up by counting, and solved by elimination of the levels. Scales of single columns cannot see that the
# levels together are nearly the intercept; this can.

_MOST_OTHERS = 400
"""There are at most so many columns beside the levels. Their part of the Hessian is dense."""


@dataclass(frozen=True, slots=True)
class Arrow:
    """Which columns are the levels of the widest category, and which stand beside it.

    Parameters
    ----------
    place : which of the single entries of a row is the level
    start, stop : the columns of the levels
    others : (d,), the position of each column among the others; -1 for a level
    """

    place: int
    start: int
    stop: int
    others: Indices

    @classmethod
    def of(cls, layout: CodedLayout) -> Arrow | None:
        """The arrow of a layout; None where too many columns stand beside the widest category."""
        if not layout.singles:
            return None
        sizes = [stop - start for start, stop in layout.singles]
        place = int(np.argmax(sizes))
        start, stop = layout.singles[place]
        if layout.n_features - sizes[place] > _MOST_OTHERS:
            return None
        beside = np.ones(layout.n_features, dtype=bool)
        beside[start:stop] = False
        return cls(place, start, stop, np.where(beside, np.cumsum(beside) - 1, -1))

    @property
    def n_levels(self) -> int:
        """Number of levels."""
        return self.stop - self.start

    @property
    def n_others(self) -> int:
        """Number of columns beside them, without the intercept."""
        return self.others.size - self.n_levels

    def parts(self, rows: CodedRows) -> tuple[Indices, Array, Array]:
        """The level (m,) of each row, its entry (m,), and the other columns (m, n_others)."""
        columns, entries = rows.layout.parts(rows.columns), rows.layout.parts(rows.entries)
        beside = np.zeros((rows.n_rows, self.n_others + 1))  # the last column takes the entries of levels
        at = np.arange(rows.n_rows)[:, None]
        for places, numbers in zip(columns, entries, strict=True):
            beside[at, self.others[places]] = numbers
        levels = columns[0][:, self.place].astype(np.intp) - self.start
        return levels, entries[0][:, self.place], beside[:, : self.n_others]


@dataclass(frozen=True, slots=True)
class ArrowSum:
    """The Hessian of one problem over coded rows, in the form of an arrow.

    Parameters
    ----------
    arrow : which columns are levels
    loss, row_bound, intercept, largest_weight : as in `confide.erm.row_sums.RowSum`
    """

    arrow: Arrow
    loss: Loss
    row_bound: RowBound
    intercept: float
    largest_weight: float

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows: D as gradient, and B above C as Hessian. They are of no use where the value is not 0."""
        width = self.arrow.n_others + (self.intercept > 0.0)
        return Totals(np.zeros(1), np.zeros((1, self.arrow.n_levels)), np.zeros((1, self.arrow.n_levels + width, width)))

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the curvature of one block of coded rows at weights (1, D)."""
        clipped = self.row_bound.clip(rows)
        if type(clipped) is not CodedRows:
            totals.value[...] = np.nan
            return
        n_levels, n_features = self.arrow.n_levels, clipped.shape[1]
        scores = clipped.times(weights[:, :n_features].T) + self.intercept * weights[:, n_features:].sum()
        bent = np.asarray(self.loss.of_scores(scores, labels, 2).curvature)[:, 0]
        bent = bent * (1.0 if row_weights is None else np.clip(row_weights, 0.0, self.largest_weight))
        levels, entries, beside = self.arrow.parts(clipped)
        beside = np.hstack([beside, np.full((len(beside), weights.shape[1] - n_features), self.intercept)])
        totals.gradient[0] += np.bincount(levels, weights=bent * entries * entries, minlength=n_levels)
        (hessian,) = totals.hessian
        for column, sums in zip(beside.T, hessian[:n_levels].T, strict=True):
            sums += np.bincount(levels, weights=bent * entries * column, minlength=n_levels)
        hessian[n_levels:] += (beside.T * bent) @ beside

    def completed(self, totals: Totals) -> Totals:
        """The totals as they are."""
        return totals


def arrow_of(objective: Objectives, part: SampledRows) -> Arrow | None:
    """The arrow of the rows, as a sample shows it; None for rows that are not coded and losses of several scores."""
    first = next((rows for rows, _, _ in part.counted_blocks()), None)
    return Arrow.of(first.layout) if type(first) is CodedRows and objective.loss.constants.n_outputs == 1 else None


def metric_at(objective: Objectives, arrow: Arrow, weights: Weights) -> Callable[[Array], Array] | None:
    """What takes gradients (k, D) to steps: the inverse of the Hessian at weights (1, D), from one pass over the rows.

    None where it cannot be computed.
    """
    row_sum = ArrowSum(arrow, objective.loss, objective.row_bound, objective.intercept, objective.largest_weight)
    totals = objective.source.sum_over_rows(row_sum, weights)
    ridges = np.broadcast_to(objective.ridges, weights.shape[1])
    of_levels, of_others = ridges[arrow.start : arrow.stop], np.delete(ridges, np.s_[arrow.start : arrow.stop])
    levels, across = totals.gradient[0] + of_levels, totals.hessian[0, : arrow.n_levels]
    beside = totals.hessian[0, arrow.n_levels :] + np.diag(of_others)
    if not (totals.value[0] == 0.0 and np.isfinite(levels).all()):
        return None
    try:
        factor = cho_factor(beside - across.T @ (across / levels[:, None]), check_finite=False)
    except LinAlgError:
        return None
    level, other = np.s_[arrow.start : arrow.stop], np.ones(weights.shape[1], dtype=bool)
    other[level] = False

    def steps_of(gradients: Array) -> Array:
        scaled = gradients[:, level] / levels
        others: Array = cho_solve(factor, (gradients[:, other] - scaled @ across).T, check_finite=False).T
        steps = np.empty_like(gradients)
        steps[:, other], steps[:, level] = others, scaled - others @ across.T / levels
        return steps

    return steps_of


_SAMPLED_SHARE = 8
"""One row in so many is sampled to see how columns are curved."""
_FEW_ROWS = 4096
"""So many rows tell whether the bound shortens any. Fewer than `_SAMPLED_SHARE` times as many rows are not sampled."""

_CLOSE_ON_THE_WAY, _MOST_STEPS_ON_THE_WAY = 1e-2, 10
"""How closely and with how many steps the point is found where the curvature of a category is computed again, as a share of
the gradient norm at the start."""
_DENSE_ROWS = 64
"""So many coded rows are made dense at a time, where they have to be."""


@dataclass(frozen=True, slots=True)
class ColumnScaledLimitedMemory:
    """L-BFGS with a scale for each column, and with first steps by approximate gradients. It has no theorem.

    benchmarks/solver_speed.py measures it on words of texts (option --sparse).
    """

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        n_rows = objective.source.n_rows
        part = objective.source.sample(n_rows // _SAMPLED_SHARE) if n_rows >= _SAMPLED_SHARE * _FEW_ROWS else None
        if part is None:
            return LimitedMemory().solve(objective, start, tolerance)
        few = objective.source.sample(_FEW_ROWS) if tolerance > 0.0 else None
        cheaper: tuple[Stage, ...] = ()
        if few is not None:
            fewer, _ = on_part(objective.restrict(np.arange(1)), few)
            cheaper = cheaper_stages(objective, fewer, start[:1], start[:1])
        arrow = arrow_of(objective, part)
        outcome = None if arrow is None else _in_arrow_metric(objective, arrow, start, tolerance, cheaper)
        if outcome is not None:
            return outcome
        column_scales = _column_scales(objective, part, start.shape[1])
        return LimitedMemory(column_scales=column_scales, cheaper=cheaper).solve(objective, start, tolerance)


def _in_arrow_metric(
    objective: Objectives, arrow: Arrow, start: Weights, tolerance: float, cheaper: tuple[Stage, ...]
) -> Solution | None:
    """L-BFGS in the metric of a Hessian with one diagonal block; None where that Hessian cannot be computed."""
    middle, first = mean_of(objective), start.mean(axis=0, keepdims=True)
    metric = metric_at(objective, arrow, first)
    if metric is None:
        return None
    way = LimitedMemory(_MOST_STEPS_ON_THE_WAY, metric=metric, relative_tolerance=_CLOSE_ON_THE_WAY)
    closer = way.solve(middle, first, tolerance).weights
    closer = np.where(np.isfinite(closer), closer, first)
    metric = metric_at(objective, arrow, closer) or metric
    return LimitedMemory(metric=metric, cheaper=cheaper).solve(objective, np.repeat(closer, len(start), axis=0), tolerance)


def _few_at_a_time(block: Rows) -> Iterator[Rows]:
    """The block, or coded rows in parts so small that they take little memory where they have to be made dense."""
    if type(block) is not CodedRows:
        yield block
        return
    for start in range(0, block.shape[0], _DENSE_ROWS):
        yield block[start : start + _DENSE_ROWS]


def _column_scales(objective: Objectives, part: SampledRows, width: int) -> Array:
    """(D,): the inverse of a bound on the curvature of each weight, from a part of the rows."""
    n_features, n_outputs = part.n_features, objective.loss.constants.n_outputs
    squares = np.zeros(n_features)
    rows: Any
    blocks = (block for whole, _, _ in part.counted_blocks() for block in _few_at_a_time(whole))
    for block in blocks:
        # Rows are clipped, because one row of any size could make the scales meaningless, or overflow.
        rows = objective.row_bound.clip(block if type(objective.row_bound) is GroupBound else dense(block))
        if type(rows) is CodedRows:
            squares += np.bincount(rows.columns, weights=rows.entries * rows.entries, minlength=n_features)
        elif type(rows) is CentredRows:
            squares += rows.column_squares()
        elif issparse(rows):
            squares += np.bincount(rows.indices, weights=np.square(rows.data, dtype=np.float64), minlength=n_features)
        else:
            squares += np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    bend = objective.largest_weight * objective.loss.constants.smoothness * objective.source.n_rows / part.n_rows
    curvatures = np.full((n_outputs, width // n_outputs), bend * part.n_rows * objective.intercept**2)
    curvatures[:, :n_features] = bend * squares
    return np.asarray(1.0 / (curvatures.ravel() + objective.ridges))
