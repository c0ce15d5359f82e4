"""Sums of slopes and curvatures along released directions, with exact noise. Proof: proofs/direction_sums.md.

For each direction three numbers leave: what the rows' slopes add up to along it, their curvature, and their squared slopes.
They say how far a named coefficient lies from its released weight, and how sure that is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide import expected_noise
from confide.array_types import Array, Weights
from confide.erm.losses import LossBounds
from confide.erm.moment_sums import DirectionSum
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours, PureDP, budget_of_row
from confide.privacy.curvature import (
    LARGEST_INFLATION,
    WINDOW,
    CurvaturePlan,
    curvature_sum,
    largest_bend,
    refuse_other_losses,
    too_inexact,
)
from confide.privacy.events import Event
from confide.privacy.lattice import LatticeGaussian, LatticeNoise
from confide.privacy.mechanism import ANOTHERS, Plan, Problem, made_by
from confide.privacy.moments import largest_norm, shortened, summed_norm, window_of
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import least_noise
from confide.privacy.spreads import SpreadsPlan
from confide.privacy.standardised_sums import StandardisedSumsPlan

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
class DirectionSumsPlan:
    """Everything about the sums that is decided before any row is read. Public.

    Attributes
    ----------
    problem : Problem
        The problem of the weights near which the sums are taken.
    n_directions : int
    budget : Budget
        What the sums cost.
    scales : tuple of float
        What multiplies the curvature and the squared slopes before the noise is added.
    largest_norm : float
        Weights with a larger norm are shortened to this norm.
    lattice : LatticeNoise or None
        None where there is no privacy.
    event : Event
        What a ledger counts.
    """

    problem: Problem
    n_directions: int
    budget: Budget
    scales: tuple[float, float]
    largest_norm: float
    lattice: LatticeNoise | None
    event: Event

    deviation = property(expected_noise.deviation)

    @property
    def units(self) -> Array:
        """(3,): one unit of the released vector in the units of slopes, of curvatures and of squared slopes."""
        loss = self.problem.loss_bounds
        return np.array([loss.lipschitz, loss.smoothness / self.scales[0], loss.lipschitz**2 / self.scales[1]])


@dataclass(frozen=True, slots=True)
class NoisyDirectionSums:
    """Sums along directions with noise. Between its two verbs the caller charges the plan's event."""

    def plan(self, training: Plan, n_directions: int, budget: Budget) -> DirectionSumsPlan:
        """The plan for so many directions, near weights that `training` will release. No data is used."""
        problem = training.problem
        if n_directions < 1:
            raise ParameterError("sums along directions need a direction.")
        of_row = budget_of_row(budget, problem.rows_per_person)
        scales = _PURE_SCALES if isinstance(of_row, PureDP) else _SCALES[problem.neighbours]
        if not budget.is_private:
            event = problem.event(budget)
            return DirectionSumsPlan(problem, n_directions, budget, scales, math.inf, None, event)
        refuse_other_losses(problem)
        longest, loss, neighbours = largest_norm(training, budget), problem.loss_bounds, problem.neighbours
        rounding = self._rounding(problem, longest, n_directions)
        l2 = math.sqrt(n_directions) * distance_of_neighbours(loss, scales, neighbours, 2)
        l1 = n_directions * distance_of_neighbours(loss, scales, neighbours, 1)
        if not 2.0 * rounding <= LARGEST_INFLATION * l2:
            raise too_inexact(problem)
        size = 3 * n_directions
        lattice, curve = least_noise(
            size, (l2 + 2.0 * rounding) * _UP, (l1 + 2.0 * math.sqrt(size) * rounding) * _UP, of_row
        )
        return DirectionSumsPlan(problem, n_directions, budget, scales, longest, lattice, problem.event(budget, curve))

    def _rounding(self, problem: Problem, longest: float, n_directions: int) -> float:
        """Largest L2 distance between computed and exact sums. proofs/direction_sums.md, theorem 2."""
        loss, terms = problem.loss_bounds, 2 * problem.row_width + 8
        window = window_of(loss, WINDOW)
        scores = loss.smoothness * (terms * summed_norm(problem) * longest + window)
        slopes = loss.rounding * loss.lipschitz + scores
        along = terms * _LONGEST_DIRECTION
        pull = slopes / loss.lipschitz + along + 4.0
        bend = slopes / (window * loss.smoothness) + 2.0 * along + 8.0
        of_sums = 3 * (problem.summation_depth + 2)
        of_row = pull + bend + 2.0 * pull + 2.0
        return 1.02 * _UNIT * math.sqrt(n_directions) * problem.n_rows_high * (of_row + of_sums)

    def release(
        self, plan: DirectionSumsPlan, weights: Weights, directions: Array, source: RowSource, entropy: Entropy
    ) -> Array:
        """Sum over the rows once, at weights (1, D) and directions (k, D), and release (k, 3).

        Weights and directions are functions of what was released. The columns are the sums of slopes along the direction, of
        curvatures and of squared slopes, in their own units. The event was charged before this call.
        """
        problem = plan.problem
        if not made_by(plan, DirectionSumsPlan) or directions.shape != (plan.n_directions, problem.row_width):
            raise ParameterError(ANOTHERS)
        problem.check_source(source)
        longest = math.inf if plan.lattice is None else _LONGEST_DIRECTION / summed_norm(problem)
        kept = tuple(tuple(shortened(each, longest).tolist()) for each in directions)
        row_sum = DirectionSum(curvature_sum(problem), kept)
        sums = source.sum_over_rows(row_sum, shortened(weights, plan.largest_norm)).gradient * np.array([1.0, *plan.scales])
        if plan.lattice is not None:
            sums = plan.lattice.release(sums.reshape(1, -1), entropy).reshape(sums.shape)
        released: Array = sums * plan.units
        return released


def distance_of_neighbours(loss: LossBounds, scales: tuple[float, float], neighbours: Neighbours, order: int) -> float:
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


def event_of_sums(training: Plan, *beside: SpreadsPlan | CurvaturePlan | DirectionSumsPlan | StandardisedSumsPlan) -> Event:
    """The event of weights and all sums under one account: that of the weights, which pays for what is beside them.

    Raises ParameterError unless all sums have Gaussian noise, and the weights were planned for as much beside them.
    """
    multipliers = [each.lattice.multiplier for each in beside if isinstance(each.lattice, LatticeGaussian)]
    if (
        len(multipliers) < len(beside)
        or not math.hypot(*(1.0 / each for each in multipliers)) * _UP <= training.problem.beside_mu
    ):
        raise ParameterError("the plan of the weights does not pay for the curvature and the sums.")
    return training.event
