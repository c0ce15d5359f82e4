"""The middle of the rows, released with noise before the weights: rows that were moved by it are hidden by less noise.

One pass adds up the clipped rows, and exact Gaussian noise on a grid hides each row in that sum. So the release is a
Gaussian mechanism, and one charge covers it together with the release of the weights (`Problem.beside_mu`). The plan of the
weights does not depend on the centre: `Centred` has the same norm for every centre. Proof: proofs/centring.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from confide.array_types import Array
from confide.erm.linear_sums import SumOfRows
from confide.erm.row_bounds import (
    LARGEST_BOUND,
    LEAST_RADIUS,
    BallBound,
    Centred,
    RowBound,
    before_moving,
    norm_with_intercept,
)
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.plan_text import document_of_sum
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.certificate import GradientRounding
from confide.privacy.mechanism import ANOTHERS, Plan, Problem
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import Before, SumPlan, SumQuery, computed_distances

_COUNT_SCALE = 0.3
"""The constant that counts rows, as a share of the norm of a row. Of 0.15, 0.3, 0.6 and 1 this one puts the centre closest
to the mean, or at most a tenth further than the best, for 10 to 200 columns (benchmarks/centring.py --counts)."""


def sum_of_rows(row_bound: RowBound, neighbours: Neighbours, largest_weight: float) -> RowSum:
    """The sum of which a centre is made: of the rows, each times its weight, and of the weights where these are private."""
    is_counted = neighbours is not Neighbours.REPLACE_ONE or largest_weight != 1.0
    return RowSum(SumOfRows(), row_bound, _COUNT_SCALE * row_bound.l2_norm if is_counted else 0.0, 1, largest_weight)


@dataclass(frozen=True, slots=True)
class CentreOfRows(SumQuery):
    """The sum of the rows of a problem, and their number, or the sum of their weights, where that is private."""

    problem: Problem

    name = "centring"
    pays_for = "the centre of the rows"
    of_grid = "for the middle of the rows"
    line = ("centre", wording("what a centre does"))

    def document(self, part: SumPlan[CentreOfRows]) -> dict[str, Any]:
        """A JSON form of a part of a plan."""
        return document_of_sum(part) | {"mu": part.mu}

    def sentence(self, part: SumPlan[CentreOfRows]) -> str:
        """What is released, for the guarantee."""
        return wording("sentence of a centre", share=part.share)

    @property
    def row_sum(self) -> RowSum:
        """The sum over rows."""
        return sum_of_rows(self.problem.row_bound, self.problem.neighbours, self.problem.largest_weight)

    @property
    def size(self) -> int:
        return self.row_sum.n_weights(self.problem.n_features)

    @property
    def distances(self) -> tuple[float, float]:
        """For Gaussian noise. proofs/centring.md, theorem 3: a row that comes, or two rows at once."""
        problem, row_sum, weight = self.problem, self.row_sum, self.problem.largest_weight
        norm = norm_with_intercept(row_sum.row_bound, row_sum.intercept)
        longest = weight * norm
        if problem.neighbours is Neighbours.REPLACE_ONE:
            longest = max(longest, 2.0 * weight * row_sum.row_bound.l2_norm)
        bounds, depth = row_sum.loss.constants.weighted(weight), problem.summation_depth
        rounding = GradientRounding(bounds, norm, problem.n_rows_high, self.size, depth, 1.0).bound(0.0, 0.0, 0.0)
        return computed_distances(longest, math.inf, rounding, self.size)

    def summed(self, rows: RowSource) -> Array:
        return rows.sum_over_rows(self.row_sum, np.zeros((1, self.size))).gradient

    def decoded(self, plan: SumPlan[CentreOfRows], sums: Array) -> Centred:
        """The bound on rows with the centre that follows."""
        return centred_by(plan, sums)

    def before(self, part: Any, plan: Plan, rows: Any, entropy: Entropy) -> Before:
        """Release the centre, and give the plan of the weights with it. The event of the plan was charged before this."""
        problem = plan.problem
        if type(part) is not SumPlan or part not in plan.parts or not problem.is_centred:
            raise ParameterError(ANOTHERS)
        again = centring_plan(replace(problem, row_bound=before_moving(problem.row_bound)), part.budget, part.share)
        if part.lattice != again.lattice or not again.mu <= problem.beside_mu:
            raise ParameterError(ANOTHERS)
        problem.check_source(rows)
        return replace(plan, problem=replace(problem, row_bound=again.release(rows, entropy))), rows, ()


def centring_plan(problem: Problem, budget: Budget, share: float) -> SumPlan[CentreOfRows]:
    """The plan for the centre of the rows of a problem, at this share of the budget, which is not pure."""
    if not problem.row_bound.l2_norm <= LARGEST_BOUND:
        raise ParameterError("a centre needs rows of a norm of at most 2^300.")
    return SumPlan.of(CentreOfRows(problem), budget, ("gaussian",), share)


def centred_by(plan: SumPlan[CentreOfRows], released: Array) -> Centred:
    """The bound on rows that follows from a released sum (D,). It uses no row."""
    problem, row_sum = plan.query.problem, plan.query.row_sum
    inner, weight = row_sum.row_bound, row_sum.largest_weight
    total, sums = float(problem.n_rows_low), released
    if row_sum.intercept > 0.0:
        least = float(problem.n_rows_low) if weight == 1.0 else weight
        total = float(np.clip(released[-1] / row_sum.intercept, least, weight * problem.n_rows_high))
        sums = released[:-1]
    norm = inner.l2_norm
    mean = BallBound(norm).clip(sums[None] / total)[0]
    # Of the squared length of the noisy mean, this much is expected to be that of the rows, and the rest noise. The mean is
    # shortened so that rows are as close to it as can be expected.
    whole = float(mean @ mean)
    square = max(0.0, whole - mean.size * (plan.lattice.deviation / total) ** 2)  # type: ignore[union-attr]  # a plan with noise
    shrinkage = square / whole if whole > 0.0 else 0.0
    radius = math.sqrt(max(0.0, norm**2 - shrinkage * square))
    return Centred(inner, tuple((shrinkage * mean).tolist()), min(norm, max(LEAST_RADIUS * norm, radius)))
