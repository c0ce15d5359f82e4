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
from confide.erm.row_bounds import LARGEST_BOUND, LEAST_RADIUS, BallBound, Centred, RowBound, norm_with_intercept
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, Neighbours, budget_of_row
from confide.privacy.certificate import GradientRounding
from confide.privacy.gaussian import mu_within
from confide.privacy.lattice import LatticeGaussian, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Plan, Problem
from confide.privacy.noise import Entropy

_COUNT_SCALE = 0.3
"""The constant that counts rows, as a share of the norm of a row. Of 0.15, 0.3, 0.6 and 1 this one puts the centre closest
to the mean, or at most a tenth further than the best, for 10 to 200 columns (benchmarks/centring.py --counts)."""
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class CentringPlan:
    """How the sum of the rows is released. Everything is decided from public facts.

    Attributes
    ----------
    share : part of the budget, as a share of the squared mu that the whole budget allows a Gaussian mechanism
    row_sum : the sum over rows; its constant counts them where their number, or the sum of their weights, is private
    n_rows_low, n_rows_high : public bounds on the number of rows
    lattice : the noise
    """

    share: float
    row_sum: RowSum
    n_rows_low: int
    n_rows_high: int
    lattice: LatticeGaussian

    @property
    def mu(self) -> float:
        """The release is a Gaussian mechanism of this shift over deviation for one row; rounded upwards."""
        return 1.0 / self.lattice.multiplier * _UP

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "share": self.share,
            "mu": self.mu,
            "deviation": self.lattice.deviation,
            "grid_exponent": self.lattice.exponent,
        }


def sum_of_rows(row_bound: RowBound, neighbours: Neighbours, largest_weight: float) -> RowSum:
    """The sum of which a centre is made: of the rows, each times its weight, and of the weights where these are private."""
    is_counted = neighbours is not Neighbours.REPLACE_ONE or largest_weight != 1.0
    return RowSum(SumOfRows(), row_bound, _COUNT_SCALE * row_bound.l2_norm if is_counted else 0.0, 1, largest_weight)


def centring_plan(problem: Problem, budget: Budget, share: float) -> CentringPlan:
    """The plan for the centre of the rows of a problem, at this share of the budget, which is not pure."""
    of_row = budget_of_row(budget, problem.rows_per_person)
    if not isinstance(of_row, ApproxDP | ZCDP):
        raise ParameterError("a pure budget cannot pay for Gaussian noise.")
    if not problem.row_bound.l2_norm <= LARGEST_BOUND:
        raise ParameterError("a centre needs rows of a norm of at most 2^300.")
    row_sum = sum_of_rows(problem.row_bound, problem.neighbours, problem.largest_weight)
    weight, norm = problem.largest_weight, norm_with_intercept(row_sum.row_bound, row_sum.intercept)
    # proofs/centring.md, theorem 3: a row that comes, or two rows at once.
    longest = weight * norm
    if problem.neighbours is Neighbours.REPLACE_ONE:
        longest = max(longest, 2.0 * weight * row_sum.row_bound.l2_norm)
    dimension, bounds = row_sum.n_weights(problem.n_features), row_sum.loss.constants.weighted(weight)
    rounding = GradientRounding(bounds, norm, problem.n_rows_high, dimension, problem.summation_depth, 1.0)
    sensitivity = (longest + 2.0 * rounding.bound(0.0, 0.0, 0.0)) * _UP
    multiplier = 1.0 / (math.sqrt(share) * mu_within(of_row))
    # The grid is finer than the noise where the noise is small.
    exponent = lattice_exponent(sensitivity * min(1.0, multiplier), dimension)
    lattice = LatticeGaussian.of_multiplier(dimension, exponent, sensitivity, multiplier)
    return CentringPlan(share, row_sum, problem.n_rows_low, problem.n_rows_high, lattice)


def with_centre(plan: Plan, source: RowSource, entropy: Entropy) -> Plan:
    """Release the centre, and give the plan of the weights with it. The event of the plan was charged before this call."""
    centring, problem = plan.centring, plan.problem
    if type(centring) is not CentringPlan or not isinstance(problem.row_bound, Centred):
        raise ParameterError(ANOTHERS)
    inner = problem.row_bound.inner
    row_sum = sum_of_rows(inner, problem.neighbours, problem.largest_weight)
    if row_sum != centring.row_sum or not centring.mu <= problem.beside_mu:
        raise ParameterError(ANOTHERS)
    problem.check_source(source)
    totals = source.sum_over_rows(row_sum, np.zeros((1, row_sum.n_weights(source.n_features))))
    released = centring.lattice.release(totals.gradient, entropy)[0]
    return replace(plan, problem=replace(problem, row_bound=centred_by(centring, released)))


def centred_by(plan: CentringPlan, released: Array) -> Centred:
    """The bound on rows that follows from a released sum (D,). It uses no row."""
    row_sum, lattice = plan.row_sum, plan.lattice
    inner, weight = row_sum.row_bound, row_sum.largest_weight
    total, sums = float(plan.n_rows_low), released
    if row_sum.intercept > 0.0:
        least = float(plan.n_rows_low) if weight == 1.0 else weight
        total = float(np.clip(released[-1] / row_sum.intercept, least, weight * plan.n_rows_high))
        sums = released[:-1]
    norm = inner.l2_norm
    mean = BallBound(norm).clip(sums[None] / total)[0]
    # Of the squared length of the noisy mean, this much is expected to be that of the rows, and the rest noise. The mean is
    # shortened so that rows are as close to it as can be expected.
    whole = float(mean @ mean)
    square = max(0.0, whole - mean.size * (lattice.deviation / total) ** 2)
    shrinkage = square / whole if whole > 0.0 else 0.0
    radius = math.sqrt(max(0.0, norm**2 - shrinkage * square))
    return Centred(inner, tuple((shrinkage * mean).tolist()), min(norm, max(LEAST_RADIUS * norm, radius)))
