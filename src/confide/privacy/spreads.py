"""Middles and spreads of the columns, with exact noise: the frame of the releases for named coefficients.

One pass adds up the clipped rows and their squares, in units of the bounds on columns. Proof: proofs/spreads.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.array_types import Array
from confide.erm.group_bounds import groups_of
from confide.erm.moment_sums import Frame, SpreadSum
from confide.erm.row_bounds import RowBound
from confide.erm.source import RowSource
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.curvature import CONSTANT, LEAST_SPREAD, length_of, refuse_other_losses, too_inexact
from confide.privacy.mechanism import Plan, Problem
from confide.privacy.noisy_sum import SumPlan, SumQuery, computed_distances, refuse_inexact

_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40
_OF_ONE, _OF_MORE = 4.0, 6.25
"""The largest squared distance of (x, x^2) of two rows, for one column of size at most 1, and for columns of L2 norm at most
1: theorem 1."""
_LEAST_VARIANCE = 1.0
"""The least variance that is believed, in standard deviations of its noise (benchmarks/interest_of_tables.py)."""
_LEAST_OF_LEVELS = 0.25
"""The least variance that is believed of a level, over that of levels that are equally frequent."""


def units_of(row_bound: RowBound, n_features: int) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """The largest size of an entry of each column, and the sizes of the groups whose norm in these units is at most 1."""
    sizes, scales, _ = groups_of(row_bound)
    if sizes:
        return tuple(np.repeat(scales, sizes).tolist()), sizes
    unit = row_bound.l2_norm if math.isfinite(row_bound.l2_norm) else 1.0
    return (unit,) * n_features, (n_features,)


def _distances(sizes: tuple[int, ...], neighbours: Neighbours) -> tuple[float, float]:
    """The largest L2 and L1 distances of the sums of neighbours: theorem 1."""
    n_columns, n_groups = sum(sizes), len(sizes)
    if neighbours is Neighbours.REPLACE_ONE:
        squared = sum(_OF_ONE if size == 1 else _OF_MORE for size in sizes)
        # The number of rows is public, and no distance: its entry is replaced by the number itself.
        return math.sqrt(squared), math.sqrt(2.0 * n_columns * squared)
    squared = 2.0 * n_groups + 1.0
    return math.sqrt(squared), math.sqrt((2.0 * n_columns + 1.0) * squared)


@dataclass(frozen=True, slots=True)
class Spreads(SumQuery):
    """Sums of the clipped rows and of their squares, in units of the bounds on columns, and the number of rows.

    Attributes
    ----------
    problem : Problem
        The problem of the weights.
    units, sizes : tuple
        See `units_of`.
    """

    problem: Problem
    units: tuple[float, ...]
    sizes: tuple[int, ...]

    @classmethod
    def plan(cls, training: Plan, budget: Budget) -> SumPlan[Spreads]:
        """The plan for the rows of weights that `training` will release. No data is used."""
        problem = training.problem
        if budget.is_private:
            refuse_other_losses(problem)
        return SumPlan.of(cls(problem, *units_of(problem.row_bound, problem.n_features)), budget)

    @property
    def size(self) -> int:
        return 2 * self.problem.n_features + 1

    @property
    def distances(self) -> tuple[float, float]:
        l2, l1 = _distances(self.sizes, self.problem.neighbours)
        refuse_inexact(l2, self.rounding, too_inexact(self.problem))
        return computed_distances(l2, l1, self.rounding, self.size)

    @property
    def rounding(self) -> float:
        """Theorem 2."""
        entries, problem = math.sqrt(2.0 * len(self.sizes) + 1.0), self.problem
        return 1.02 * _UNIT * problem.n_rows_high * entries * (problem.summation_depth + 2 * problem.row_width + 12)

    def summed(self, rows: RowSource) -> Array:
        problem, row_sum = self.problem, SpreadSum(self.problem.row_bound, self.units)
        sums = rows.sum_over_rows(row_sum, np.zeros((1, problem.row_width))).gradient
        if problem.neighbours is Neighbours.REPLACE_ONE:
            # Of persons with several rows some may have been dropped, and how many is private.
            sums[0, -1] = problem.n_rows_low
        return sums

    def decoded(self, plan: SumPlan[Spreads], sums: Array) -> Frame:
        """The frame that follows."""
        return frame_of(plan, sums)


def frame_of(plan: SumPlan[Spreads], released: Array) -> Frame:
    """The frame that follows from released sums (2 d + 1,). It uses no row."""
    problem, d = plan.query.problem, plan.query.problem.n_features
    n_rows = float(problem.n_rows_low)
    if problem.neighbours is not Neighbours.REPLACE_ONE:
        n_rows = float(np.clip(released[-1], problem.n_rows_low, problem.n_rows_high))
    means, squares = released[:d] / n_rows, released[d : 2 * d] / n_rows
    has_constant = problem.intercept > 0.0
    # Without an intercept scores of moved rows are no scores of rows.
    centre = np.clip(means, -1.0, 1.0) if has_constant else np.zeros(d)
    variances = squares - centre * centre
    least = np.full(d, (LEAST_SPREAD * _UP) ** 2)
    if plan.lattice is not None:
        noise = plan.deviation / n_rows * np.sqrt(1.0 + 4.0 * centre * centre)
        least = np.maximum(least, np.maximum(_LEAST_VARIANCE * noise, _usual_of_levels(problem)))
        least = np.minimum(least, 1.0)
        variances = np.minimum(variances, 1.0)
    units = np.array(plan.query.units)
    spreads = units * np.sqrt(np.maximum(variances, least))
    constant = CONSTANT if has_constant else 0.0
    length = length_of(problem) if plan.lattice is not None else math.inf
    return Frame(tuple((units * centre).tolist()), tuple(spreads.tolist()), constant, problem.intercept, length)


def _usual_of_levels(problem: Problem) -> Array:
    """(d,): the least variance that is believed of each column: that of levels, and 0 for numbers."""
    of_groups = groups_of(problem.row_bound)[0]
    if not of_groups:
        return np.zeros(problem.n_features)
    sizes = np.repeat(of_groups, of_groups)
    return np.where(sizes > 1, _LEAST_OF_LEVELS * (1.0 - 1.0 / sizes) / sizes, 0.0)
