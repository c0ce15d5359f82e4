"""The curvature of the objective at released weights, with exact noise. Proof: proofs/curvature.md.

Directions along which one coefficient can be told from the others are made of it. The constant of the intercept is shortened
in this matrix. That leaves less noise where columns meet, and more only where the constant does.

Symbols inside formulas: D weights, N = D (D + 1) / 2 entries, R bound on a row without its constant, k the shortened
constant, c smoothness of the loss of a row with its weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide import expected_noise
from confide.accounting.events import Event
from confide.data.source import RowSource
from confide.erm.moment_sums import MomentSum
from confide.erm.row_bounds import norm_with_intercept
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours, budget_of_row
from confide.privacy.lattice import LatticeNoise
from confide.privacy.least_noise import least_noise
from confide.privacy.mechanism import ANOTHERS, Plan, Problem, made_by
from confide.privacy.moments import SecondMoments, largest_norm, shortened, summed_norm, window_of
from confide.privacy.noise import Entropy
from confide.types import Array, Weights

WINDOW = 2.0**-6
"""The window of scores within which the mean of the curvature is taken, as in moments.md."""
LARGEST_INFLATION = 0.1
"""The largest part of a row's effect by which rounding may raise the noise."""
_UNIT = 2.0**-53
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40
_SHORT_CONSTANT = 0.4
"""The largest constant of the intercept in this matrix, as a share of the bound on a row. With a smaller one there is less
noise where columns meet, and more beside the constant. At a quarter, columns whose mean is not 0 could not be told from the
constant, and coverage was lost; from 0.35 to 0.5 intervals were alike (benchmarks/README.md)."""


@dataclass(frozen=True, slots=True)
class CurvaturePlan:
    """Everything about the matrix that is decided before any row is read. Public.

    Attributes
    ----------
    problem : Problem
        The problem of the weights at which the curvature is taken.
    budget : Budget
        What the matrix costs.
    constant : float
        k, the constant of the intercept in the matrix; 0 without an intercept.
    largest_norm : float
        Weights with a larger norm are shortened to this norm before the curvature is taken.
    lattice : LatticeNoise or None
        None where there is no privacy.
    event : Event
        What a ledger counts.
    """

    problem: Problem
    budget: Budget
    constant: float
    largest_norm: float
    lattice: LatticeNoise | None
    event: Event

    deviation = property(expected_noise.deviation)

    @property
    def entry_deviation(self) -> float:
        """Standard deviation of the noise on an entry off the diagonal, in units of curvature. On it, sqrt(2) times this."""
        return float(self.deviation * self.problem.loss_bounds.smoothness / math.sqrt(2.0))


@dataclass(frozen=True, slots=True)
class NoisyCurvature:
    """The curvature with noise. Between its two verbs the caller charges the plan's event."""

    def plan(self, training: Plan, budget: Budget) -> CurvaturePlan:
        """The plan for weights that `training` will release, with the least noise. No data is used."""
        problem = training.problem
        size = problem.row_width * (problem.row_width + 1) // 2
        constant = min(problem.intercept, _SHORT_CONSTANT * problem.row_bound.l2_norm)
        if not budget.is_private:
            return CurvaturePlan(problem, budget, constant, math.inf, None, problem.event(budget))
        refuse_other_losses(problem)
        longest = largest_norm(training, budget)
        # Theorem 1: the distance between the positive semidefinite terms of two rows is at most sqrt(2) times their bound.
        shift = math.sqrt(2.0) if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
        exact = shift * norm_with_intercept(problem.row_bound, constant) ** 2 * _UP
        # Theorem 2: entries are multiplied by numbers of at most 1, in two more roundings.
        more = 2.0 * _UNIT * problem.n_rows_high * summed_norm(problem) ** 2
        sensitivity = (exact + 2.0 * (SecondMoments()._rounding(problem, 1.0, longest) + more)) * _UP
        if not sensitivity <= (1.0 + LARGEST_INFLATION) * exact:
            raise too_inexact(problem)
        of_row = budget_of_row(budget, problem.rows_per_person)
        lattice, curve = least_noise(size, sensitivity, math.sqrt(size) * sensitivity, of_row)
        return CurvaturePlan(problem, budget, constant, longest, lattice, problem.event(budget, curve))

    def release(self, plan: CurvaturePlan, weights: Weights, source: RowSource, entropy: Entropy) -> Array:
        """Sum over the rows once, at released weights (1, D), and release (D, D). The event was charged before this call.

        Rows have the constant of the plan in place of that of the intercept.
        """
        if not made_by(plan, CurvaturePlan):
            raise ParameterError(ANOTHERS)
        problem, unit = plan.problem, plan.problem.loss_bounds.smoothness
        problem.check_source(source)
        totals = source.sum_over_rows(curvature_sum(problem), shortened(weights, plan.largest_norm))
        matrix: Array = totals.hessian[0] / unit
        factors = np.ones(len(matrix))
        if problem.intercept > 0.0:
            factors[-1] = plan.constant / problem.intercept
        matrix = matrix * np.outer(factors, factors)
        rows, columns = np.triu_indices(len(matrix))
        multiples = np.where(rows == columns, 1.0, math.sqrt(2.0))
        entries = multiples * matrix[rows, columns]
        if plan.lattice is not None:
            entries = plan.lattice.release(entries[None], entropy)[0]
        released = np.zeros_like(matrix)
        released[rows, columns] = released[columns, rows] = unit * (entries / multiples)
        return released


def curvature_sum(problem: Problem) -> MomentSum:
    """Slopes and curvatures of the rows of a problem; each curvature is its mean over the window of moments.md."""
    row_sum = RowSum(problem.loss, problem.row_bound, problem.intercept, 1, problem.largest_weight)
    return MomentSum(row_sum, window_of(problem.loss_bounds, WINDOW))


def refuse_other_losses(problem: Problem) -> None:
    """Refuse what the proof does not cover."""
    loss = problem.loss
    is_covered = loss.n_outputs == 1 and not loss.by_length and math.isfinite(loss.smoothness)
    if not (is_covered and 2.0**-250 <= problem.row_norm <= 2.0**250):
        # The fourth power of R must be a double.
        raise ParameterError(
            "interest needs a smooth loss of one score and bounded slope, and a row norm from 2^-250 to 2^250."
        )


def too_inexact(problem: Problem) -> ParameterError:
    """The refusal of sums whose rounding would be a tenth of what one row adds."""
    return ParameterError(
        f"sums for interest over up to {problem.n_rows_high} rows are too inexact in double precision at this alpha. Narrow "
        f"n_rows_bounds, or raise alpha."
    )
