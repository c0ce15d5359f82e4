"""Second moments of curvature and slope at released weights, with exact noise. Proof: proofs/moments.md.

Intervals for coefficients are computed from these moments. Both matrices leave in one vector with one noise. A loss such as
the logistic one hardly bends at rows with a steep slope, so the second matrix adds very little to the cost of the first.

Symbols inside formulas: D weights, N = D (D + 1) entries, R bound on a row with its intercept, L lipschitz and c smoothness
of the loss of a row with its weight. Where a loss is a sum over o scores, each score has two matrices of its own, L is that
of one score, and all o pairs leave together. Where o scores bend together, D stands for the (o - 1) D directions that do not
move all scores alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import helmert

from confide import expected_noise
from confide.array_types import Array, Weights
from confide.erm.losses import LossConstants
from confide.erm.moment_sums import MomentSum
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.mechanism import Noise, Plan, Problem, log_failure
from confide.privacy.noisy_sum import SumPlan, SumQuery, computed_distances, refuse_inexact
from confide.privacy.shapes import Ball

_SEAL_SHARE = 0.01
_WINDOW, _NARROW_WINDOW = 2.0**-6, 2.0**-12
"""Windows of scores, with and without noise. The wide one keeps rounding small, and changes the curvature by 1 in 25,000.

Where a loss bends suddenly, the window is in units of L / c, the width of the bend.
"""
_UNIT = 2.0**-53
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40
_GRID = np.linspace(0.0, 1.0, 2**12 + 1)


def joint_bound(loss: LossConstants, curvature_scale: float) -> float:
    """G: with curvatures in units of c / curvature_scale and slopes in units of L, no row adds more than G R^2.

    G^2 = max over slopes a in [0, 1] of (u h(a))^2 + a^4, h(a) <= min(1, e^w curvature_at_slope(a L) / c) for a
    self-concordant loss and the window w; for others h(a) is at most the largest curvature_at_slope(b L) / c with b as near
    to a as slopes of one window are; o times that for a sum over o scores. proofs/moments.md, theorems 1 and 4.
    """
    growth = math.exp(_WINDOW) if loss.self_concordant else 1.0
    bends = growth * loss.curvature_at_slope(loss.lipschitz * _GRID) / (blocks_of(loss) * loss.smoothness)
    # The bend is quasi-concave: in a cell it is at most the larger of the two ends, and at most 1 next to the largest value.
    cells = np.maximum(bends[:-1], bends[1:])
    peak = int(bends.argmax())
    cells[max(0, peak - 1) : peak + 1] = 1.0
    if not loss.self_concordant:
        # A slope changes by at most c w within the window w, in units of L, or of that of one score.
        change = loss.smoothness * window_of(loss, _WINDOW) / loss.lipschitz * math.sqrt(blocks_of(loss))
        reach = math.ceil(change * (_GRID.size - 1)) + 1
        cells = sliding_window_view(np.pad(cells, reach), 2 * reach + 1).max(axis=1)
    bends = np.minimum(cells * _UP, 1.0)
    return math.sqrt(blocks_of(loss)) * float(np.sqrt((curvature_scale * bends) ** 2 + _GRID[1:] ** 4).max()) * _UP


def blocks_of(loss: LossConstants) -> int:
    """Number of pairs of matrices that leave: one for each score of a separable loss, one for other losses."""
    return loss.n_outputs if loss.separable else 1


def width_of(problem: Problem) -> int:
    """Number of rows and columns of each matrix that leaves."""
    return problem.row_width * (1 if problem.loss.constants.separable else problem.loss.constants.rank)


def directions_of(n_outputs: int, row_width: int) -> Array:
    """((o - 1) D, o D): orthonormal rows that span the directions in which not all scores move alike."""
    return np.asarray(np.kron(helmert(n_outputs), np.eye(row_width)))


def window_of(loss: LossConstants, window: float) -> float:
    """The window in the units of scores, from public facts."""
    return window if loss.self_concordant else window * loss.lipschitz / loss.smoothness


def largest_norm(training: Plan, budget: Budget) -> float:
    """The norm to which released weights are shortened: twice the bound on exact minimisers, plus ten times the noise."""
    problem, noise_bound = training.problem, 0.0
    if training.noise is not None and training.noise.in_objective:
        noise_bound = training.noise.bound(log_failure(budget, problem))
    return float(2.0 * problem.rounding(training.l2).minimiser_norm(noise_bound) + 10.0 * training.noise_norm)


def shortened(vector: Array, longest: float) -> Array:
    """A vector, shortened to this L2 norm if it is longer."""
    norm = float(np.linalg.norm(vector))
    return np.asarray(vector if norm <= longest else vector * (longest / norm * _DOWN))


@dataclass(frozen=True, slots=True)
class Moments(SumQuery):
    """The moments at released weights.

    Attributes
    ----------
    problem : Problem
        The problem of the weights at which the moments are taken.
    curvature_scale : float
        u, see `joint_bound`.
    bound : float
        G, see `joint_bound`; infinite without privacy.
    largest_norm : float
        Weights with a larger norm are shortened to this norm before the moments are taken; infinite without privacy.
    """

    problem: Problem
    curvature_scale: float
    bound: float
    largest_norm: float

    @classmethod
    def plan(cls, training: Plan, budget: Budget) -> SumPlan[Moments]:
        """The plan for weights that `training` will release, with the least noise. No data is used."""
        problem = training.problem
        loss = problem.loss_bounds
        scale = expected_noise.balanced_scale(joint_bound, loss)
        if not budget.is_private:
            return SumPlan.of(cls(problem, scale, math.inf, math.inf), budget)
        if loss.by_length or not (math.isfinite(loss.smoothness) and 2.0**-250 <= problem.summed_norm <= 2.0**250):
            # Theorem 1 bounds the slope of a row by L. The fourth power of R must be a double.
            raise ParameterError("intervals need a smooth loss of bounded slope, and a row norm from 2^-250 to 2^250.")
        query = cls(problem, scale, joint_bound(loss, scale), largest_norm(training, budget))
        refuse_inexact(query.sensitivity, query.rounding, wording("moments too inexact", n_rows=problem.n_rows_high))
        plans: list[SumPlan[Moments]] = [SumPlan.sealed(query, budget, _SEAL_SHARE)]
        if not budget.is_pure:
            plans.append(SumPlan.of(query, budget, ("gaussian",)))
        return min(plans, key=lambda plan: plan.deviation)

    @property
    def unit_of_curvature(self) -> float:
        """One unit of the released vector in units of the moments of the curvature: c / u."""
        return self.problem.loss_bounds.smoothness / self.curvature_scale

    @property
    def unit_of_slope(self) -> float:
        """One unit of the released vector in units of the moments of the slope: L^2, of one score where each has its own."""
        return self.problem.loss_bounds.lipschitz**2 / blocks_of(self.problem.loss.constants)

    @property
    def size(self) -> int:
        return blocks_of(self.problem.loss.constants) * width_of(self.problem) * (width_of(self.problem) + 1)

    @property
    def sensitivity(self) -> float:
        """The largest L2 distance of the exact vectors of neighbours.

        Theorem 1: that of the positive semidefinite terms of two rows is at most sqrt(2) times their bound.
        """
        shift = math.sqrt(2.0) if self.problem.neighbours is Neighbours.REPLACE_ONE else 1.0
        return shift * self.bound * self.problem.summed_norm**2 * _UP

    @property
    def distances(self) -> tuple[float, float]:
        """For Gaussian noise: there is no bound of its own on the L1 distance."""
        return computed_distances(self.sensitivity, math.inf, self.rounding, self.size)

    @property
    def rounding(self) -> float:
        """Largest L2 distance between computed and exact scaled moments. proofs/moments.md, theorems 2 and 5."""
        problem = self.problem
        loss, dimension, norm = problem.loss_bounds, problem.row_width, problem.summed_norm
        window = window_of(loss, _WINDOW)
        scores = loss.smoothness * ((2 * dimension + 8) * norm * self.largest_norm + window)
        turning = 0 if loss.separable else 2 * (loss.n_outputs + 2) * loss.rank
        sums = problem.summation_depth + 2 * dimension + 24 + turning
        slopes = loss.rounding * loss.lipschitz + scores
        # A matrix of curvatures changes by at most three times the change of its probabilities.
        curvature = slopes * (1.0 / window if loss.separable else 3.0) / loss.smoothness + sums
        slope = 2.0 * slopes / loss.lipschitz + sums
        rows = problem.n_rows_high * norm**2 * math.sqrt(blocks_of(loss))
        return 1.02 * _UNIT * rows * (self.curvature_scale * curvature + slope)

    def spherical(self, rate: float) -> Noise:
        """Spherical noise that hides a row at this rate."""
        return Noise(Ball(self.size, self.sensitivity), "laplace", rate)

    def large(self, noise_bound: float) -> float:
        """A bound on moments with noise within this bound."""
        return self.problem.n_rows_high * self.bound * self.problem.summed_norm**2 + 2.0 * noise_bound

    def summed(self, rows: RowSource, weights: Weights) -> Array:
        """The scaled moments (N,) at released weights (1, D); off-diagonal entries are multiplied by sqrt(2)."""
        problem, loss = self.problem, self.problem.loss
        row_sum = RowSum(loss, problem.row_bound, problem.intercept, 1, problem.largest_weight)
        window = window_of(problem.loss_bounds, _WINDOW if math.isfinite(self.largest_norm) else _NARROW_WINDOW)
        matrices = rows.sum_over_rows(MomentSum(row_sum, window), shortened(weights, self.largest_norm)).hessian
        if not loss.constants.separable:
            directions = directions_of(loss.constants.n_outputs, problem.row_width)
            matrices = directions @ matrices @ directions.T
        places, columns, multiples = _places(problem)
        units = (self.unit_of_curvature, self.unit_of_slope)
        return np.concatenate([multiples * m[places, columns] / unit for m, unit in zip(matrices, units, strict=True)])

    def decoded(self, plan: SumPlan[Moments], sums: Array, weights: Weights) -> tuple[Array, Array]:
        """Two symmetric matrices (D, D), sums over the rows: of curvatures times x x^T, and of squared slopes likewise.

        The ridge is left out. Between two scores of a separable loss the curvature is 0, and slopes are not released. Where
        scores bend together rows and columns are those of `directions_of`.
        """
        rows, columns, multiples = _places(self.problem)
        size = blocks_of(self.problem.loss.constants) * width_of(self.problem)
        matrices, units = np.zeros((2, size, size)), (self.unit_of_curvature, self.unit_of_slope)
        for matrix, part, unit in zip(matrices, np.split(sums, 2), units, strict=True):
            matrix[rows, columns] = matrix[columns, rows] = unit * (part / multiples)
        return matrices[0], matrices[1]


def _places(problem: Problem) -> tuple[Array, Array, Array]:
    """Rows and columns of the entries that leave, by blocks, diagonal first; factors 1 on it and sqrt(2) elsewhere."""
    width = width_of(problem)
    rows, columns = np.hstack([np.diag_indices(width), np.triu_indices(width, 1)])
    starts = width * np.arange(blocks_of(problem.loss.constants))[:, None]
    multiples = np.where(rows == columns, 1.0, math.sqrt(2.0))
    return (starts + rows).ravel(), (starts + columns).ravel(), np.tile(multiples, len(starts))
