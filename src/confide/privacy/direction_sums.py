"""Sums of slopes and curvatures along released directions, with exact noise. Proof: proofs/direction_sums.md.

For each direction three numbers leave: what the rows' slopes add up to along it, their curvature, and their squared slopes.
They say how far a named coefficient lies from its released weight, and how sure that is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.array_types import Array, Weights
from confide.erm.losses import LossConstants
from confide.erm.moment_sums import DirectionSum
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.curvature import WINDOW, curvature_sum, largest_bend, reach_of, too_inexact
from confide.privacy.mechanism import ANOTHERS, Plan, Problem
from confide.privacy.moments import shortened, window_of
from confide.privacy.noisy_sum import SumPlan, SumQuery, computed_distances, refuse_inexact

_UNIT = 2.0**-53
_UP = 1.0 + 2.0**-40
_LONGEST_DIRECTION = 1024.0
"""Directions are shortened to this L2 norm, over the bound on a row with its constant."""
_CELLS = 256
_SCALES = {Neighbours.REPLACE_ONE: (1.0, 1.0), Neighbours.ADD_OR_REMOVE_ONE: (1.0, 0.5)}
_PURE_SCALES = (0.5, 0.5)
"""What multiplies the curvature and the squared slopes beside the slopes. Under Gaussian noise and replace-one neighbours
they cost nothing for a loss that hardly bends at steep rows; elsewhere the noise on slopes grows by a sixth to a half."""


@dataclass(frozen=True, slots=True)
class DirectionSums(SumQuery):
    """Sums of slopes, curvatures and squared slopes along directions.

    Attributes
    ----------
    problem : Problem
        The problem of the weights near which the sums are taken.
    n_directions : int
    scales : tuple of float
        What multiplies the curvature and the squared slopes before the noise is added.
    largest_norm : float
        Weights with a larger norm are shortened to this norm; infinite without privacy.
    """

    problem: Problem
    n_directions: int
    scales: tuple[float, float]
    largest_norm: float

    @classmethod
    def plan(cls, training: Plan, n_directions: int, budget: Budget) -> SumPlan[DirectionSums]:
        """The plan for so many directions, near weights that `training` will release. No data is used."""
        if n_directions < 1:
            raise ParameterError("sums along directions need a direction.")
        scales = _PURE_SCALES if budget.is_pure else _SCALES[training.problem.neighbours]
        return SumPlan.of(cls(training.problem, n_directions, scales, reach_of(training, budget)), budget)

    @property
    def units(self) -> Array:
        """(3,): one unit of the released vector in the units of slopes, of curvatures and of squared slopes."""
        loss = self.problem.loss_bounds
        return np.array([loss.lipschitz, loss.smoothness / self.scales[0], loss.lipschitz**2 / self.scales[1]])

    @property
    def size(self) -> int:
        return 3 * self.n_directions

    @property
    def distances(self) -> tuple[float, float]:
        loss, neighbours = self.problem.loss_bounds, self.problem.neighbours
        l2 = math.sqrt(self.n_directions) * distance_of_neighbours(loss, self.scales, neighbours, 2)
        l1 = self.n_directions * distance_of_neighbours(loss, self.scales, neighbours, 1)
        refuse_inexact(l2, self.rounding, too_inexact(self.problem))
        return computed_distances(l2, l1, self.rounding, self.size)

    @property
    def rounding(self) -> float:
        """Largest L2 distance between computed and exact sums. proofs/direction_sums.md, theorem 2."""
        problem, loss = self.problem, self.problem.loss_bounds
        terms, window = 2 * problem.row_width + 8, window_of(loss, WINDOW)
        scores = loss.smoothness * (terms * problem.summed_norm * self.largest_norm + window)
        slopes = loss.rounding * loss.lipschitz + scores
        along = terms * _LONGEST_DIRECTION
        pull = slopes / loss.lipschitz + along + 4.0
        bend = slopes / (window * loss.smoothness) + 2.0 * along + 8.0
        of_sums = 3 * (problem.summation_depth + 2)
        of_row = pull + bend + 2.0 * pull + 2.0
        return 1.02 * _UNIT * math.sqrt(self.n_directions) * problem.n_rows_high * (of_row + of_sums)

    def summed(self, rows: RowSource, weights: Weights, directions: Array) -> Array:
        """The scaled sums (k, 3) at weights (1, D) and directions (k, D), which are functions of what was released."""
        problem = self.problem
        if directions.shape != (self.n_directions, problem.row_width):
            raise ParameterError(ANOTHERS)
        longest = _LONGEST_DIRECTION / problem.summed_norm if math.isfinite(self.largest_norm) else math.inf
        kept = tuple(tuple(shortened(direction, longest).tolist()) for direction in directions)
        row_sum = DirectionSum(curvature_sum(problem), kept)
        sums = rows.sum_over_rows(row_sum, shortened(weights, self.largest_norm)).gradient
        return np.multiply(sums, [1.0, *self.scales])

    def decoded(self, plan: SumPlan[DirectionSums], sums: Array, weights: Weights, directions: Array) -> Array:
        """(k, 3): the sums of slopes along the direction, of curvatures and of squared slopes, in their own units."""
        return np.asarray(sums.reshape(-1, 3) * self.units)


def distance_of_neighbours(loss: LossConstants, scales: tuple[float, float], neighbours: Neighbours, order: int) -> float:
    """The largest L1 or L2 distance (`order`) of the scaled sums of neighbours, for one direction.

    One row adds (p, u q, t p^2), p in [-1, 1] and q in [0, Q(|p|)]: proofs/direction_sums.md, theorem 1. The grid bounds
    each cell from above.
    """
    of_curvature, of_squares = scales
    width = 1.0 / _CELLS
    lows = np.arange(-_CELLS, _CELLS) * width
    sizes = np.sort(np.abs(np.stack([lows, lows + width])), axis=0)
    bends = of_curvature * largest_bend(loss, *sizes)
    if neighbours is Neighbours.ADD_OR_REMOVE_ONE:
        parts = np.stack([sizes[1], bends, of_squares * sizes[1] ** 2])
    else:
        apart = np.abs(np.subtract.outer(lows, lows)) + width
        together = np.abs(np.add.outer(lows, lows) + width) + width
        parts = np.stack([apart, np.maximum.outer(bends, bends), of_squares * apart * together])
    return float(np.linalg.norm(parts, ord=order, axis=0).max()) * _UP
