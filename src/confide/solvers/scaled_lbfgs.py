"""L-BFGS where weights are too many for a Hessian: with a scale for each column, by which all are curved about alike.

One column of sparse rows may be used by half of the rows, and another one by three of them. Without scales, the number of
steps grows with the square root of the ratio of their curvatures. For a category with many levels the metric is that of
`confide.solvers.arrow_metric`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.data.source import SampledRows
from confide.erm.centred_rows import CentredRows
from confide.erm.coded_rows import CodedRows, dense
from confide.erm.group_bounds import GroupBound
from confide.solvers.approximate_gradients import cheaper_stages
from confide.solvers.arrow_metric import Arrow, arrow_of, metric_at
from confide.solvers.lbfgs import LimitedMemory, Stage
from confide.solvers.objectives import Objectives, mean_of, on_part
from confide.solvers.solver import Solution
from confide.types import Array, Rows, Weights

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
        enough = n_rows >= _SAMPLED_SHARE * _FEW_ROWS
        part = objective.source.sample(n_rows // _SAMPLED_SHARE) if enough else None
        if part is None:
            return LimitedMemory().solve(objective, start, tolerance)
        few = objective.source.sample(_FEW_ROWS) if tolerance > 0.0 else None
        cheaper: tuple[Stage, ...] = ()
        if few is not None:
            fewer, _ = on_part(objective.restrict(np.arange(1)), few)
            cheaper = cheaper_stages(objective, fewer, start[:1], start[:1])
        arrow = arrow_of(objective, part)
        found = None if arrow is None else _in_arrow_metric(objective, arrow, start, tolerance, cheaper)
        if found is not None:
            return found
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
    n_features, n_outputs = part.n_features, objective.loss.n_outputs
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
    bend = objective.loss_bounds.smoothness * objective.source.n_rows / part.n_rows
    curvatures = np.full((n_outputs, width // n_outputs), bend * part.n_rows * objective.intercept**2)
    curvatures[:, :n_features] = bend * squares
    scales: Array = 1.0 / (curvatures.ravel() + objective.ridges)
    return scales
