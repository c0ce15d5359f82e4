"""The mean of predicted counts, matched to that of the counts by one factor, which two noisy sums give after the weights.

A loss whose slopes are clipped, and a ridge, draw predictions of counts below their mean. One pass adds up the counts and
what predictions exceed them by, both bounded, and exact noise on a grid hides each row in the two sums. The intercept then
moves by the logarithm of the factor. One charge covers weights and sums. Proof: proofs/matching.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.erm.target_losses import MeanLoss
from confide.errors import ParameterError, wording
from confide.plan_text import document_of_sum
from confide.privacy import centring, scales, tables
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.gradient import GradientPlan
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.mechanism import ANOTHERS, Plan, Problem
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan, SumQuery, refuse_inexact

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
_UP = 1.0 + 2.0**-40


def sum_of_residuals(problem: Problem) -> RowSum:
    """The sum over rows whose entry for the intercept adds up residuals: mean less count, within the bound on counts."""
    if not isinstance(problem.loss, MeanLoss) or not problem.intercept > 0.0:
        raise ParameterError("only predictions of counts with an intercept are matched to a mean.")
    return RowSum(whole_slopes(problem.loss), problem.row_bound, problem.intercept, 1, problem.largest_weight)


def whole_slopes(loss: Any) -> MeanLoss:
    """The loss of counts whose slopes, mean less count, are clipped at the bound on counts alone."""
    return replace(loss, threshold=loss.target_bound, power=1.0, dispersion=0.0, least=0.0)  # type: ignore[no-any-return]


@dataclass(frozen=True, slots=True)
class CountsAndResiduals(SumQuery):
    """The sum of residuals and that of counts, times the intercept's constant, for a problem with a loss of counts."""

    problem: Problem

    name = "matching"
    pays_for = "the mean of predictions"
    of_grid = "for the mean of predictions"
    line = "mean", "makes predictions right in the mean, by two noisy sums that are made after the weights"

    def document(self, part: SumPlan[CountsAndResiduals]) -> dict[str, Any]:
        """A JSON form of a part of a plan."""
        return document_of_sum(part)

    def sentence(self, part: SumPlan[CountsAndResiduals]) -> str:
        """What is released, for the guarantee."""
        return wording("sentence of a matching", target_bound=self.target_bound, share=part.share)

    @property
    def row_sum(self) -> RowSum:
        """The sum over rows."""
        return sum_of_residuals(self.problem)

    @property
    def target_bound(self) -> float:
        """The bound on counts, and on the size of residuals."""
        return self.row_sum.loss.constants.lipschitz

    @property
    def radius(self) -> float:
        """The largest L2 norm of weights at which sums are made."""
        return _LARGEST_SCORE / self.problem.intercept * _UP

    @property
    def size(self) -> int:
        return 2

    @property
    def distances(self) -> tuple[float, float]:
        """proofs/matching.md, theorems 1 and 2: residuals lie in [-B, B] and counts in [0, B], times a weight."""
        problem = self.problem
        rows = 2.0 if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
        unit = problem.intercept * problem.largest_weight * self.target_bound
        refuse_inexact(unit, self.rounding, "sums of counts over so many rows are too inexact in double precision.")
        residual, count = rows * unit + 2.0 * self.rounding, COUNT_SCALE * (unit + 2.0 * self.rounding)
        return math.hypot(residual, count) * _UP, (residual + count) * _UP

    @property
    def rounding(self) -> float:
        """The L2 distance between a computed sum and the exact one, at weights within the radius."""
        bounds = self.row_sum.loss.constants.weighted(self.problem.largest_weight)
        return replace(self.problem.rounding(0.0), loss=bounds, prior_norm=0.0).bound(self.radius, 0.0, 0.0)

    def summed(self, rows: RowSource, weights: Weights) -> Array:
        """Both sums at released weights (1, D). At weights that are too long both are made at none."""
        at_zero = np.zeros_like(weights)
        at_zero[0, -1] = _NO_MEAN / self.problem.intercept
        points = np.vstack([weights if self._is_near(weights) else at_zero, at_zero])
        at_point, at_none = rows.sum_over_rows(self.row_sum, points).gradient[:, -1]
        return np.array([at_point, -COUNT_SCALE * at_none])

    def decoded(self, plan: SumPlan[CountsAndResiduals], sums: Array, weights: Weights) -> Weights:
        """The weights (1, D) with the intercept that follows."""
        if not self._is_near(weights):
            return weights
        moved = weights.copy()
        moved[0, -1] += math.log(factor_of(plan, sums)) / self.problem.intercept
        return moved

    def after(self, part: Any, plan: Plan, weights: Weights, rows: RowSource, entropy: Entropy) -> Weights:
        """Release the sums, and give the weights with the intercept that follows. Their event was charged before."""
        if type(part) is not SumPlan or part not in plan.parts or not _is_paid(plan, part):
            raise ParameterError(ANOTHERS)
        # Rows may have been centred since, and the sums are of rows as they are now.
        again = matching_plan(plan.problem, part.budget, part.share, part.law)
        if part.budget != plan.event.budget or part.lattice != again.lattice:
            raise ParameterError(ANOTHERS)
        return np.asarray(again.release(rows, entropy, weights))

    def _is_near(self, weights: Weights) -> bool:
        return float(np.linalg.norm(weights)) <= self.radius * (1.0 - 2.0**-20)


def matching_plan(problem: Problem, budget: Budget, share: float, law: str) -> SumPlan[CountsAndResiduals]:
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
    if law == "laplace" and budget.is_concentrated:
        raise ParameterError(f"the budget {budget} pays for no {law} noise on these sums.")
    return SumPlan.of(CountsAndResiduals(problem), budget, (law,), share)


def factor_of(matching: SumPlan[CountsAndResiduals], released: Array) -> float:
    """The factor for predictions, from the two released sums (2,). It uses no row.

    It is the sum of the counts over that of the predictions, drawn towards 1 where the noise is large beside a usual error
    of the mean.
    """
    residual, counts = float(released[0]), float(released[1]) / COUNT_SCALE
    predictions = counts + residual
    if not (counts > 0.0 and predictions > 0.0):
        return 1.0
    # Without noise -residual / predictions is missing. It is divided by 1 + (noise / predictions / usual error)^2.
    noise: Any = matching.lattice
    scale = math.hypot(predictions, noise.deviation / USUAL_ERROR)
    missing = -(residual / scale) * (predictions / scale)
    return min(max(1.0 + missing, 1.0 / LARGEST_FACTOR), LARGEST_FACTOR)


_BY_TARGET = scales.SumsByTarget, scales.PairsByTarget
_OF_ROWS = attrgetter("neighbours", "rows_per_person", "n_rows_low", "n_rows_high")


def check_parts(plan: Any) -> None:
    """Refuse parts of a plan that no page covers: each is a noisy sum of one of five kinds, at most one of a kind.

    proofs/matching.md, theorem 3, centring.md, theorem 4, scales.md, theorems 2 and 5, and tables.md, theorem 3.
    """
    known: list[Any] = [centring.CentreOfRows, tables.AtomsOfColumns, CountsAndResiduals, *_BY_TARGET]
    shared, without, covered = 0.0, getattr(plan, "without", None), True
    for part in plan.parts:
        if type(part) is not SumPlan or type(part.query) not in known:
            raise ParameterError(ANOTHERS)
        known.remove(type(part.query))
        if type(part.query) in _BY_TARGET:
            covered &= _are_of_same_rows(part.query.problem, part.query.largest_weight, plan.problem)
        if math.isfinite(part.mu) and type(part.query) is not CountsAndResiduals:  # which has a share of its own: `_is_paid`
            shared = math.hypot(shared, part.mu)
    covered &= shared <= getattr(plan.problem, "beside_mu", 0.0)
    if not covered or (scales.PairsByTarget in known) != (without is None):
        raise ParameterError(ANOTHERS)
    if without is not None:
        _check_without(plan, without)


def _are_of_same_rows(own: Any, largest_weight: float, problem: Any) -> bool:
    """Whether the facts about rows, persons and weights are those of the problem of the weights."""
    return _OF_ROWS(own) == _OF_ROWS(problem) and largest_weight == problem.largest_weight


def _check_without(plan: Plan, other: Any) -> None:
    """Refuse another plan of the weights that the event of this one does not cover: scales.md, theorem 5."""
    if type(other) is not GradientPlan or not isinstance(other.lattice, LatticeGaussian):
        raise ParameterError(ANOTHERS)
    check_parts(other)
    mu = math.hypot(math.sqrt(other.n_passes) / other.lattice.multiplier, *(part.mu for part in other.parts))
    is_own = _are_of_same_rows(other.problem, other.problem.largest_weight, plan.problem)
    is_plain = {type(part.query) for part in other.parts} <= {centring.CentreOfRows}
    if not (is_own and is_plain and mu <= scales.mu_of_weights(plan)):
        raise ParameterError(ANOTHERS)


def _is_paid(plan: Plan, matching: SumPlan[CountsAndResiduals]) -> bool:
    """Whether the plan of the weights leaves enough of the budget for the sums, beside its other parts: theorem 3."""
    whole, of_weights = plan.event.budget, plan.budget
    if whole.is_approximate and matching.law == "gaussian":
        return of_weights == whole and math.hypot(*(part.mu for part in plan.parts)) <= plan.problem.beside_mu
    if of_weights.kind != whole.kind or of_weights.slack > whole.slack:
        return False
    # Epsilons and rhos add up, and sums with Laplace noise cost no delta.
    return Fraction(of_weights.amount) + Fraction(matching.share) * Fraction(whole.amount) <= Fraction(whole.amount)
