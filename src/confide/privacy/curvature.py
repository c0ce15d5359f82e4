"""Curvature and slopes of the objective at given weights, in a frame, with exact noise. Proof: proofs/curvature.md.

Directions along which one coefficient can be told from the others are made of the curvature, and the slopes lead to weights
without the pull of the ridge. Rows are in the frame of `confide.privacy.spreads`, in which all columns vary alike.

Symbols inside formulas: D weights, N = D (D + 1) / 2 + D entries, r the length of the frame, L and c lipschitz and
smoothness of the loss of a row with its weight.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.losses import LossConstants
from confide.erm.moment_sums import Frame, FrameSum, MomentSum
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.mechanism import ANOTHERS, Plan, Problem
from confide.privacy.moments import largest_norm, shortened, window_of
from confide.privacy.noisy_sum import SumPlan, SumQuery, computed_distances, refuse_inexact

WINDOW = 2.0**-6
"""The window of scores within which the mean of the curvature is taken, as in moments.md."""
_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40
LEAST_SPREAD = 2.0**-12
"""The least spread of a column in a frame, over the largest size of an entry. The bounds on rounding errors rest on it."""
CONSTANT = 1.0
"""The last entry of every row in a frame with an intercept: that of a column whose spread is 1."""
_SQUARED_LENGTH = 1.4
"""The squared length of a frame, for each column. That of a usual row is 1. With a longer one there is more noise, and with
a shorter one more rows count less than they are (benchmarks/interest_of_tables.py)."""
_SLOPES = 0.7
"""What multiplies slopes, in units of the length of the frame, beside the curvature. For the logistic loss they raise the
noise on the curvature by a twelfth."""
_CELLS = 256


def length_of(problem: Problem) -> float:
    """r, the length of the frame of a problem."""
    constant = CONSTANT if problem.intercept > 0.0 else 0.0
    return math.sqrt(_SQUARED_LENGTH * problem.n_features + constant**2)


def scale_of_slopes(problem: Problem) -> float:
    """t, what multiplies slopes beside the curvature."""
    return _SLOPES * length_of(problem)


def distance_in_frame(problem: Problem) -> float:
    """The largest L2 distance of the scaled sums of neighbours. proofs/curvature.md, theorem 1.

    The grid bounds each cell of sizes of a slope from above.
    """
    sizes = np.arange(_CELLS + 1) / _CELLS
    bends, ends = largest_bend(problem.loss_bounds, sizes[:-1], sizes[1:]), _SLOPES * sizes[1:]
    if problem.neighbours is Neighbours.REPLACE_ONE:
        squared = _squared_of_two(bends, ends)
    else:
        squared = float((bends**2 + ends**2).max())
    return length_of(problem) ** 2 * math.sqrt(squared) * _UP


def _squared_of_two(bends: Array, ends: Array) -> float:
    """The largest squared distance of what two rows add, in units of r^4, whatever the angle between them is.

    Rows whose slopes pull apart point the same way, and then their curvatures cancel: no pair has the most of both.
    """
    without = bends[:, None] ** 2 + np.add.outer(ends, ends) ** 2
    both, across = np.multiply.outer(bends, bends), np.multiply.outer(ends, ends)
    cosine = np.minimum(1.0, across / (2.0 * both))
    apart = np.add.outer(bends**2 + ends**2, bends**2 + ends**2) + 2.0 * cosine * (across - both * cosine)
    return float(np.maximum(without, apart).max())


def largest_bend(loss: LossConstants, low: Array, high: Array) -> Array:
    """Q: the largest curvature of a row whose slope lies between these sizes, both in units of the largest."""
    if not (loss.tapered and loss.self_concordant):
        return np.ones_like(low)
    # A row whose slope has the size a bends by at most a (1 - a / L), and within the window by exp(w) times as much.
    steepness = math.exp(WINDOW) * loss.lipschitz / loss.smoothness
    at = np.clip(0.5, low, high)
    return np.asarray(np.minimum(1.0, steepness * at * (1.0 - at) * _UP))


@dataclass(frozen=True, slots=True)
class Curvature(SumQuery):
    """Curvature and slopes in a frame, at given weights.

    Attributes
    ----------
    problem : Problem
        The problem of the weights.
    largest_norm : float
        Weights with a larger norm are shortened to this norm before the sums are taken; infinite without privacy.
    """

    problem: Problem
    largest_norm: float

    @classmethod
    def plan(cls, training: Plan, budget: Budget) -> SumPlan[Curvature]:
        """The plan near weights that `training` will release, with the least noise. No data is used."""
        return SumPlan.of(cls(training.problem, reach_of(training, budget)), budget)

    @property
    def size(self) -> int:
        return self.problem.row_width * (self.problem.row_width + 3) // 2

    @property
    def distances(self) -> tuple[float, float]:
        exact = distance_in_frame(self.problem)
        refuse_inexact(exact, self.rounding, too_inexact(self.problem))
        sensitivity, _ = computed_distances(exact, math.inf, self.rounding, self.size)
        return sensitivity, math.sqrt(self.size) * sensitivity

    @property
    def rounding(self) -> float:
        """Largest L2 distance between computed and exact sums. proofs/curvature.md, theorem 2."""
        problem, loss = self.problem, self.problem.loss_bounds
        window = window_of(loss, WINDOW)
        scores = loss.smoothness * ((2 * problem.row_width + 8) * problem.summed_norm * self.largest_norm + window)
        slopes = loss.rounding * loss.lipschitz + scores
        of_row = 2**13 * (problem.row_width + 8)
        bend = slopes / (window * loss.smoothness) + of_row
        pull = slopes / loss.lipschitz + of_row
        of_sums = 2 * (problem.summation_depth + 2)
        return 1.02 * _UNIT * problem.n_rows_high * length_of(problem) ** 2 * (bend + pull + of_sums)

    def summed(self, rows: RowSource, frame: Frame, weights: Weights) -> Array:
        """The scaled sums at weights (1, D) for rows as they are. Frame and weights are functions of what was released."""
        problem = self.problem
        is_longer = math.isfinite(self.largest_norm) and not frame.length <= length_of(problem)
        if is_longer or len(frame.centre) != problem.n_features:
            raise ParameterError(ANOTHERS)
        totals = rows.sum_over_rows(FrameSum(curvature_sum(problem), frame), shortened(weights, self.largest_norm))
        positions, multiples = self._entries()
        return np.concatenate([multiples * totals.hessian[0][positions], scale_of_slopes(problem) * totals.gradient[0]])

    def decoded(self, plan: SumPlan[Curvature], sums: Array, frame: Frame, weights: Weights) -> tuple[Array, Array]:
        """Curvature (D, D) and slopes (D,)."""
        problem, loss = self.problem, self.problem.loss_bounds
        (rows, columns), multiples = self._entries()
        released = np.zeros((problem.row_width, problem.row_width))
        released[rows, columns] = released[columns, rows] = loss.smoothness * (sums[: len(rows)] / multiples)
        return released, loss.lipschitz / scale_of_slopes(problem) * sums[len(rows) :]

    def _entries(self) -> tuple[Any, Array]:
        """Rows and columns of the upper triangle, and the factors of its entries: 1 on the diagonal, and sqrt(2)."""
        rows, columns = np.triu_indices(self.problem.row_width)
        return (rows, columns), np.where(rows == columns, 1.0, math.sqrt(2.0))


def deviations_of_curvature(plan: SumPlan[Curvature]) -> tuple[float, float]:
    """Standard deviations of the noise on an entry of the curvature off the diagonal, and on one of the slopes.

    On the diagonal it is sqrt(2) times that of other entries.
    """
    problem, loss = plan.query.problem, plan.query.problem.loss_bounds
    off_diagonal = float(plan.deviation * loss.smoothness / math.sqrt(2.0))
    return off_diagonal, float(plan.deviation * loss.lipschitz / scale_of_slopes(problem))


def reach_of(training: Plan, budget: Budget) -> float:
    """The norm to which weights near those of `training` are shortened: infinity without privacy. Refuses other losses."""
    if not budget.is_private:
        return math.inf
    refuse_other_losses(training.problem)
    return largest_norm(training, budget)


def curvature_sum(problem: Problem) -> MomentSum:
    """Slopes and curvatures of the rows of a problem; each curvature is its mean over the window of moments.md."""
    row_sum = RowSum(problem.loss, problem.row_bound, problem.intercept, 1, problem.largest_weight)
    return MomentSum(row_sum, window_of(problem.loss_bounds, WINDOW))


def refuse_other_losses(problem: Problem) -> None:
    """Refuse what the proof does not cover."""
    loss = problem.loss.constants
    is_covered = loss.n_outputs == 1 and not loss.by_length and math.isfinite(loss.smoothness)
    if not (is_covered and 2.0**-250 <= problem.row_norm <= 2.0**250):
        # The fourth power of R must be a double.
        raise ParameterError(wording("loss without interest"))


def too_inexact(problem: Problem) -> str:
    """The refusal of sums whose rounding would be a tenth of what one row adds."""
    return wording("sums for interest too inexact", n_rows=problem.n_rows_high)
