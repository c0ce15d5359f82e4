"""The mean of predicted counts, matched to that of the counts by one factor, which two noisy sums give after the weights.

A loss whose slopes are clipped, and a ridge, draw predictions of counts below their mean. One pass adds up the counts and
what predictions exceed them by, both bounded, and exact noise on a grid hides each row in the two sums. The intercept then
moves by the logarithm of the factor. One charge covers weights and sums. Proof: proofs/matching.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.erm.target_losses import PoissonLoss
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, Neighbours, PureDP, budget_of_row
from confide.privacy.gaussian import mu_within
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Plan, Problem
from confide.privacy.noise import Entropy

COUNT_SCALE = 0.25
"""What multiplies the sum of the counts beside that of the residuals. Its noise matters as much as the residuals are large
beside the counts, and a quarter costs the residuals 3% or less under Gaussian noise (benchmarks/means_of_counts.py)."""
USUAL_ERROR = 0.15
"""The usual error of the mean of predictions without a factor, as a share of it: .01 to .4 in
benchmarks/means_of_counts.py."""
LARGEST_FACTOR = 2.0
"""The largest factor by which predictions are multiplied or divided."""
_NO_MEAN = -1000.0
"""A score at which the predicted mean is 0: its exponential is less than 2^-1400."""
_LARGEST_SCORE = 1000.0
"""Weights that could give a constant row a larger score than this are not corrected."""
_LARGEST_INFLATION = 0.1
"""Rounding may cost at most this share of the noise."""
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class MatchingPlan:
    """How the two sums are released. Everything is decided from public facts.

    Attributes
    ----------
    share : part of the budget: of epsilon under Laplace noise, and of the squared mu of a Gaussian mechanism otherwise
    budget : what the sums and the weights cost together
    target_bound : the bound on counts, and on the size of residuals
    radius : the largest L2 norm of weights at which sums are made
    lattice : the noise on the sum of residuals and on that of counts, times the intercept's constant
    """

    share: float
    budget: Budget
    target_bound: float
    radius: float
    lattice: LatticeLaplace | LatticeGaussian

    @property
    def mu(self) -> float:
        """Under Gaussian noise, the shift over deviation for one row, rounded upwards; otherwise infinity."""
        return 1.0 / self.lattice.multiplier * _UP if isinstance(self.lattice, LatticeGaussian) else math.inf

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {
            "share": self.share,
            "deviation": self.lattice.deviation,
            "grid_exponent": self.lattice.exponent,
        }


def sum_of_residuals(problem: Problem) -> RowSum:
    """The sum over rows whose entry for the intercept adds up residuals: mean less count, within the bound on counts."""
    if not isinstance(problem.loss, PoissonLoss) or not problem.intercept > 0.0:
        raise ParameterError("only predictions of counts with an intercept are matched to a mean.")
    return RowSum(whole_slopes(problem.loss), problem.row_bound, problem.intercept, 1, problem.largest_weight)


def whole_slopes(loss: Any) -> PoissonLoss:
    """The loss of counts whose slopes, mean less count, are clipped at the bound on counts alone."""
    return PoissonLoss(loss.target_bound, loss.target_bound)


def matching_plan(problem: Problem, budget: Budget, share: float, law: str) -> MatchingPlan:
    """The plan for the sums of a problem, at this share of the budget of weights and sums.

    Parameters
    ----------
    problem : the problem of the weights
    budget : what weights and sums cost together
    share : part of it, above 0 and below 1
    law : "laplace", for pure and approximate budgets, or "gaussian", for approximate and concentrated ones

    Raises
    ------
    ParameterError
        If the problem has no counts or no intercept, or sums over so many rows are too inexact.
    """
    row_sum, of_row = sum_of_residuals(problem), budget_of_row(budget, problem.rows_per_person)
    # proofs/matching.md, theorem 1: residuals lie in [-B, B] and counts in [0, B], times a weight.
    rows = 2.0 if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
    unit = problem.intercept * problem.largest_weight * row_sum.loss.constants.lipschitz
    radius = _LARGEST_SCORE / problem.intercept * _UP
    rounding = 2.0 * _rounding(problem, row_sum, radius)
    if not rounding <= _LARGEST_INFLATION * unit:
        raise ParameterError("sums of counts over so many rows are too inexact in double precision.")
    residual, count = rows * unit + rounding, COUNT_SCALE * (unit + rounding)
    lattice: LatticeLaplace | LatticeGaussian
    if law == "laplace" and not isinstance(of_row, ZCDP):
        lattice = LatticeLaplace.of_l1(2, (residual + count) * _UP, share * of_row.epsilon * (1.0 - 2.0**-40))
    elif law == "laplace" or isinstance(of_row, PureDP):
        raise ParameterError(f"the budget {budget} pays for no {law} noise on these sums.")
    else:
        sensitivity, multiplier = math.hypot(residual, count) * _UP, 1.0 / (math.sqrt(share) * mu_within(of_row))
        exponent = lattice_exponent(sensitivity * min(1.0, multiplier), 2)
        lattice = LatticeGaussian.of_multiplier(2, exponent, sensitivity, multiplier)
    return MatchingPlan(share, budget, row_sum.loss.constants.lipschitz, radius, lattice)


def _rounding(problem: Problem, row_sum: RowSum, radius: float) -> float:
    """The L2 distance between a computed sum and the exact one, at weights within the radius."""
    bounds = row_sum.loss.constants.weighted(problem.largest_weight)
    return replace(problem.rounding(0.0), loss=bounds, prior_norm=0.0).bound(radius, 0.0, 0.0)


def matched(plan: Plan, weights: Weights, source: RowSource, entropy: Entropy) -> Weights:
    """Release the sums, and give the weights (1, D) with the intercept that follows. Their event was charged before.

    Parameters
    ----------
    plan : the plan by which the weights were released
    weights : the weights (1, D) that were released
    source : the rows
    entropy : where random bits come from
    """
    matching, problem = plan.matching, plan.problem
    if type(matching) is not MatchingPlan or not _is_paid(plan, matching):
        raise ParameterError(ANOTHERS)
    law = "laplace" if isinstance(matching.lattice, LatticeLaplace) else "gaussian"
    if matching.budget != plan.event.budget or matching != matching_plan(problem, matching.budget, matching.share, law):
        raise ParameterError(ANOTHERS)
    problem.check_source(source)
    row_sum = sum_of_residuals(problem)
    at_zero = np.zeros_like(weights)
    at_zero[0, -1] = _NO_MEAN / problem.intercept
    is_near = float(np.linalg.norm(weights)) <= matching.radius * (1.0 - 2.0**-20)
    points = np.vstack([weights if is_near else at_zero, at_zero])
    at_point, at_none = source.sum_over_rows(row_sum, points).gradient[:, -1]
    released = matching.lattice.release(np.array([[at_point, -COUNT_SCALE * at_none]]), entropy)[0]
    if not is_near:
        return weights
    moved = weights.copy()
    moved[0, -1] += math.log(factor_of(matching, released)) / problem.intercept
    return moved


def factor_of(matching: MatchingPlan, released: Array) -> float:
    """The factor for predictions, from the two released sums (2,). It uses no row.

    It is the sum of the counts over that of the predictions, drawn towards 1 where the noise is large beside a usual error
    of the mean.
    """
    residual, counts = float(released[0]), float(released[1]) / COUNT_SCALE
    predictions = counts + residual
    if not (counts > 0.0 and predictions > 0.0):
        return 1.0
    # Without noise -residual / predictions is missing. It is divided by 1 + (noise / predictions / usual error)^2.
    scale = math.hypot(predictions, matching.lattice.deviation / USUAL_ERROR)
    missing = -(residual / scale) * (predictions / scale)
    return min(max(1.0 + missing, 1.0 / LARGEST_FACTOR), LARGEST_FACTOR)


def _is_paid(plan: Plan, matching: MatchingPlan) -> bool:
    """Whether the plan of the weights leaves enough of the budget for the sums, beside a centre of the rows: theorem 3."""
    whole, of_weights = plan.event.budget, plan.budget
    if isinstance(whole, ApproxDP) and isinstance(matching.lattice, LatticeGaussian):
        centre = 0.0 if plan.centring is None else plan.centring.mu
        return of_weights == whole and math.hypot(centre, matching.mu) <= plan.problem.beside_mu
    if type(of_weights) is not type(whole) or getattr(of_weights, "delta", 0.0) > getattr(whole, "delta", 0.0):
        return False
    # Epsilons and rhos add up, and sums with Laplace noise cost no delta.
    parts = [Fraction(each.rho if isinstance(each, ZCDP) else each.epsilon) for each in (of_weights, whole)]
    return parts[0] + Fraction(matching.share) * parts[1] <= parts[1]
