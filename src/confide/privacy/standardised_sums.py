"""Mean differences of probabilities over the rows, with exact noise. Proof: proofs/standardised_sums.md.

For each named change the probability of every row is compared with and without it. Three kinds of sums leave: of the
differences, of their rates, and of how the differences depend on the weights. They follow weights that were released.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.array_types import Array
from confide.erm.linear_sums import ProbabilityOfRows, RateOfProbability
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.certificate import GradientRounding
from confide.privacy.mechanism import ANOTHERS, Plan, Problem
from confide.privacy.moments import shortened
from confide.privacy.noisy_sum import SumPlan, SumQuery, computed_distances, refuse_inexact

_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40
LARGEST_STEP = 16.0
"""Changes of a score are shortened to this size. A larger one changes probabilities by 1, but for a thousandth."""
_LARGEST_SCORE = 1024.0
"""Weights that could give the longest row a larger score than this are shortened."""
_LEAST_DIFFERENCE, _LEAST_BEND = 2.0**-7, 2.0**-9
"""The least bounds on a difference and on the difference of two rates by which sums are divided."""
RATE_SCALE, BEND_SCALE = 0.25, 0.125
"""What multiplies the sum of the rates and that of the bends, beside the differences. The noise on differences grows by 3%
to 6% for them under Gaussian noise, and both are needed for the width of intervals alone."""


def largest_difference(step: Array) -> Array:
    """The largest difference of two probabilities whose log-odds are `step` apart: tanh(|step| / 4); from below limited."""
    return np.asarray(np.maximum(np.tanh(0.25 * np.abs(step)), _LEAST_DIFFERENCE) * (1.0 + 2.0**-20))


def largest_bend(step: Array) -> Array:
    """A bound on the difference of the two rates p (1 - p): at most 1/4, and at most |step| / (6 sqrt(3))."""
    bound = np.minimum(0.25, RateOfProbability.constants.smoothness * np.abs(step))
    return np.asarray(np.maximum(bound, _LEAST_BEND) * (1.0 + 2.0**-20))


@dataclass(frozen=True, slots=True)
class StandardisedSums:
    """What was released. Sums over rows, each of which counts once.

    Attributes
    ----------
    differences : (k,), sums of differences of probabilities
    rates : (k,), sums of p (1 - p) after the change
    bends : (k, D), sums of rows, their constant included, times the difference of p (1 - p) after and before the change
    n_rows : noisy number of rows, or the public one
    """

    differences: Array
    rates: Array
    bends: Array
    n_rows: float


@dataclass(frozen=True, slots=True)
class RiskSums(SumQuery):
    """Sums of probabilities with and without each change, in units in which one row adds at most 1 times its scale.

    Attributes
    ----------
    problem : Problem
        The problem of the weights at which the sums are taken.
    n_changes : int
        k, the number of changes.
    scales : (float, float, float)
        What multiplies the rates, the bends and the count of the rows, beside the differences. The count has 0 where the
        number of rows is public.
    """

    problem: Problem
    n_changes: int
    scales: tuple[float, float, float]

    @classmethod
    def plan(cls, training: Plan, n_changes: int, budget: Budget) -> SumPlan[RiskSums]:
        """The plan for so many changes, at weights that `training` will release. No data is used."""
        problem = training.problem
        _refuse(problem, n_changes)
        bends = BEND_SCALE / math.sqrt(problem.row_width) if budget.is_pure else BEND_SCALE
        query = cls(problem, n_changes, (RATE_SCALE, bends, float(problem.neighbours is Neighbours.ADD_OR_REMOVE_ONE)))
        return SumPlan.of(query, budget)

    @property
    def size(self) -> int:
        """For each change its difference, its rate and D bends; and the count."""
        return self.n_changes * (self.problem.row_width + 2) + (self.scales[2] > 0.0)

    @property
    def distances(self) -> tuple[float, float]:
        facts = (self.problem, self.n_changes, self.scales)
        l2, l1 = (_UP * distance_of_neighbours(*facts, order) for order in (2, 1))
        rounding = math.sqrt(self.n_changes) * self.rounding
        refuse_inexact(l2, rounding, "sums of probabilities over so many rows are too inexact in double precision.")
        return computed_distances(l2, l1, rounding, self.size)

    @property
    def rounding(self) -> float:
        """L2 distance between the computed and the exact vector of one change. proofs/standardised_sums.md, theorem 2."""
        problem, norm = self.problem, self.problem.summed_norm
        sizes = (problem.n_rows_high, problem.row_width, problem.summation_depth)
        facts = (norm, *sizes, 0.0, problem.is_centred)
        of_probability, of_rate = (
            GradientRounding(loss.constants.weighted(1.0), *facts).bound(_LARGEST_SCORE / norm, 0.0, 0.0)
            for loss in (ProbabilityOfRows(), RateOfProbability())
        )
        constant, (rates, bends, counts) = problem.intercept, self.scales
        exact = 2.0 * of_probability / (constant * _LEAST_DIFFERENCE)
        exact += rates * 4.0 * of_rate / constant + bends * 2.0 * of_rate / (_LEAST_BEND * norm)
        # Differences, quotients and products of numbers of at most n, and the count.
        last = 16.0 * _UNIT * problem.n_rows_high * (1.0 / _LEAST_DIFFERENCE + rates + bends / _LEAST_BEND)
        return exact + last + counts * (of_probability / constant + 4.0 * _UNIT * problem.n_rows_high)

    def summed(self, rows: RowSource, points: Array, steps: Array) -> Array:
        """The sums over two passes, at released weights (k, D) and steps (k,) of their scores.

        Weights and steps are functions of what was released; `within_reach` gives those at which sums can be taken.
        """
        problem, (rates, bends, counts), k = self.problem, self.scales, self.n_changes
        if points.shape != (k, problem.row_width):
            raise ParameterError(ANOTHERS)
        before, steps = within_reach(problem, points, steps)
        after = before.copy()
        after[:, -1] += steps / problem.intercept
        everyone = np.zeros((1, problem.row_width))
        everyone[0, -1] = _LARGEST_SCORE / problem.summed_norm
        losses = (ProbabilityOfRows(), RateOfProbability())
        of_probability, of_rate = (RowSum(loss, problem.row_bound, problem.intercept, 1) for loss in losses)
        probabilities = rows.sum_over_rows(of_probability, np.vstack([after, before, everyone])).gradient[:, -1]
        gradients = rows.sum_over_rows(of_rate, np.vstack([after, before])).gradient
        constant, signs = problem.intercept, np.where(steps < 0.0, -1.0, 1.0)
        differences = signs * (probabilities[:k] - probabilities[k : 2 * k]) / constant / largest_difference(steps)
        bent = (gradients[:k] - gradients[k:]) / (largest_bend(steps) * problem.summed_norm)[:, None]
        parts = [differences, rates * 4.0 * gradients[:k, -1] / constant, (bends * bent).ravel()]
        return np.concatenate([*parts, *([counts * probabilities[-1:] / constant] if counts else [])])

    def decoded(self, plan: SumPlan[RiskSums], sums: Array, points: Array, steps: Array) -> StandardisedSums:
        problem, (rates, bends, counts), k = self.problem, self.scales, self.n_changes
        _, steps = within_reach(problem, points, steps)
        signs = np.where(steps < 0.0, -1.0, 1.0)
        bent = sums[2 * k : k * (problem.row_width + 2)].reshape(k, -1) / bends
        return StandardisedSums(
            differences=signs * sums[:k] * largest_difference(steps),
            rates=sums[k : 2 * k] / (4.0 * rates),
            bends=bent * (largest_bend(steps) * problem.summed_norm)[:, None],
            n_rows=float(sums[-1] / counts) if counts else float(problem.n_rows_low),
        )


def within_reach(problem: Problem, points: Array, steps: Array) -> tuple[Array, Array]:
    """Weights (k, D) and steps (k,), shortened so that weights stay within the reach of the proof after each step."""
    # What is no number can only come of sums that are all noise.
    steps = np.clip(np.nan_to_num(steps), -LARGEST_STEP, LARGEST_STEP)
    points = np.nan_to_num(points, posinf=0.0, neginf=0.0)
    longest = _LARGEST_SCORE / problem.summed_norm - LARGEST_STEP / problem.intercept
    return np.array([shortened(point, longest) for point in points]), steps


def distance_of_neighbours(problem: Problem, n_changes: int, scales: tuple[float, float, float], order: int) -> float:
    """The largest L1 or L2 distance (`order`) of the vectors of neighbours. proofs/standardised_sums.md, theorem 1."""
    rates, bends, counts = scales
    rows = 2.0 if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
    if order == 1:
        return n_changes * (1.0 + rates + rows * bends * math.sqrt(problem.row_width)) + counts
    return math.hypot(math.sqrt(n_changes) * math.hypot(1.0, rates, rows * bends), counts)


def _refuse(problem: Problem, n_changes: int) -> None:
    """Refuse what the proof does not cover."""
    if n_changes < 1:
        raise ParameterError("differences of risks need a change to compare.")
    if not isinstance(problem.loss, LogisticLoss) or not problem.intercept > 0.0 or problem.largest_weight != 1.0:
        raise ParameterError(wording("differences of risks of whom"))
    if not math.isfinite(problem.summed_norm):
        raise ParameterError("differences of risks need a bound on rows: give a schema, or a finite row_norm.")
    reach = _LARGEST_SCORE / problem.summed_norm - LARGEST_STEP / problem.intercept
    if not reach >= 0.5 * _LARGEST_SCORE / problem.summed_norm:
        raise ParameterError(wording("differences of risks need a constant"))
