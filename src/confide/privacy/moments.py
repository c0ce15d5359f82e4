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
from confide.erm.losses import LossBounds
from confide.erm.moment_sums import MomentSum
from confide.erm.row_bounds import norm_with_intercept
from confide.erm.row_sums import RowSum, Totals
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours, PureDP, budget_of_row, pure_epsilon
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import GaussianMechanism, mu_within
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Noise, Plan, Problem, log_failure, made_by
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball

_LARGEST_INFLATION = 0.1
_SEAL_SHARE = 0.01
_WINDOW, _NARROW_WINDOW = 2.0**-6, 2.0**-12
"""Windows of scores, with and without noise. The wide one keeps rounding small, and changes the curvature by 1 in 25,000.

Where a loss bends suddenly, the window is in units of L / c, the width of the bend.
"""
_UNIT = 2.0**-53
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40
_GRID = np.linspace(0.0, 1.0, 2**12 + 1)


def joint_bound(loss: LossBounds, curvature_scale: float) -> float:
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


def blocks_of(loss: LossBounds) -> int:
    """Number of pairs of matrices that leave: one for each score of a separable loss, one for other losses."""
    return loss.n_outputs if loss.separable else 1


def width_of(problem: Problem) -> int:
    """Number of rows and columns of each matrix that leaves."""
    return problem.row_width * (1 if problem.loss.separable else problem.loss.rank)


def n_entries(problem: Problem) -> int:
    """Number of entries of the released vector."""
    return blocks_of(problem.loss) * width_of(problem) * (width_of(problem) + 1)


def directions_of(n_outputs: int, row_width: int) -> Array:
    """((o - 1) D, o D): orthonormal rows that span the directions in which not all scores move alike."""
    return np.asarray(np.kron(helmert(n_outputs), np.eye(row_width)))


def window_of(loss: LossBounds, window: float) -> float:
    """The window in the units of scores, from public facts."""
    return window if loss.self_concordant else window * loss.lipschitz / loss.smoothness


def summed_norm(problem: Problem) -> float:
    """The largest L2 norm of a row as sums have it. With a form in whose norm rows are only later, it is not `row_norm`."""
    return norm_with_intercept(problem.row_bound, problem.intercept)


def largest_norm(training: Plan, budget: Budget) -> float:
    """The norm to which released weights are shortened: twice the bound on exact minimisers, plus ten times the noise."""
    problem, noise_bound = training.problem, 0.0
    if training.noise is not None and training.perturbs_objective:
        noise_bound = training.noise.bound(log_failure(budget, problem))
    return float(2.0 * problem.rounding(training.l2).minimiser_norm(noise_bound) + 10.0 * training.noise_norm)


def shortened(vector: Array, longest: float) -> Array:
    """A vector, shortened to this L2 norm if it is longer."""
    norm = float(np.linalg.norm(vector))
    answer: Array = vector if norm <= longest else vector * (longest / norm * _DOWN)
    return answer


@dataclass(frozen=True, slots=True)
class MomentsPlan:
    """Everything about the moments that is decided before any row is read. Public.

    Attributes
    ----------
    problem : Problem
        The problem of the weights at which the moments are taken.
    budget : Budget
        What the moments cost.
    curvature_scale : float
        u, see `joint_bound`.
    largest_norm : float
        Weights with a larger norm are shortened to this norm before the moments are taken.
    radius : float
        Largest L2 distance between the moments before the last noise and moments with noise of the exact law.
    noise : Noise or None
        Continuous noise, which the lattice seals; None where the lattice is the noise.
    lattice : LatticeNoise or None
        None where there is no privacy.
    event : Event
        What a ledger counts.
    """

    problem: Problem
    budget: Budget
    curvature_scale: float
    largest_norm: float
    radius: float
    noise: Noise | None
    lattice: LatticeNoise | None
    event: Event

    @property
    def unit_of_curvature(self) -> float:
        """One unit of the released vector in units of the moments of the curvature: c / u."""
        return self.problem.loss_bounds.smoothness / self.curvature_scale

    @property
    def unit_of_slope(self) -> float:
        """One unit of the released vector in units of the moments of the slope: L^2, of one score where each has its own."""
        return self.problem.loss_bounds.lipschitz**2 / blocks_of(self.problem.loss)

    deviation = property(expected_noise.deviation)


@dataclass(frozen=True, slots=True)
class NoisyMoments:
    """What leaves the mechanism: noisy sums and public facts."""

    curvature: Array
    """(D, D), symmetric: sum of the curvatures times x x^T, without the ridge; 0 between two scores of a separable loss.

    Where scores bend together it is one of `directions_of`."""
    slope: Array
    """(D, D), symmetric: sum of the squared slopes times x x^T, likewise; 0 stands for what is not released."""
    plan: MomentsPlan


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """Moments over rows with noise. Between its two verbs the caller charges the plan's event."""

    def plan(self, training: Plan, budget: Budget) -> MomentsPlan:
        """The plan for weights that `training` will release, with the least noise. No data is used."""
        problem = training.problem
        loss, size = problem.loss_bounds, n_entries(problem)
        scale = expected_noise.balanced_scale(joint_bound, loss)
        if not budget.is_private:
            return MomentsPlan(problem, budget, scale, math.inf, 0.0, None, None, problem.event(budget))
        if loss.by_length or not (math.isfinite(loss.smoothness) and 2.0**-250 <= summed_norm(problem) <= 2.0**250):
            # Theorem 1 bounds the slope of a row by L. The fourth power of R must be a double.
            raise ParameterError("intervals need a smooth loss of bounded slope, and a row norm from 2^-250 to 2^250.")
        longest, norm = largest_norm(training, budget), summed_norm(problem)
        rounding = self._rounding(problem, scale, longest)
        # Theorem 1: the distance between the positive semidefinite terms of two rows is at most sqrt(2) times their bound.
        shift = math.sqrt(2.0) if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
        exact = shift * joint_bound(loss, scale) * norm**2 * _UP
        if not 2.0 * rounding <= _LARGEST_INFLATION * exact:
            raise ParameterError(
                f"moments over up to {problem.n_rows_high} rows are too inexact in double precision at this alpha. Narrow "
                f"n_rows_bounds, or raise alpha."
            )
        of_row = budget_of_row(budget, problem.rows_per_person)
        epsilon = pure_epsilon(of_row)
        noise = Noise(Ball(size, exact), "laplace", epsilon * (1.0 - _SEAL_SHARE) * _DOWN)
        failure = log_failure(budget, problem)
        # Each entry of the sum of moments and noise is rounded once.
        largest = problem.n_rows_high * joint_bound(loss, scale) * norm**2 + 2.0 * noise.bound(failure)
        radius = (rounding + noise.error(failure) + _UNIT * largest) * _UP
        seal = LatticeLaplace(size, lattice_exponent(2.0 * radius, size), 2.0 * radius, epsilon * _SEAL_SHARE * _DOWN)
        pure = problem.event(budget, PureMechanism(epsilon))
        plans = [MomentsPlan(problem, budget, scale, longest, radius, noise, seal, pure)]
        if not isinstance(of_row, PureDP):
            mu = mu_within(of_row)
            sensitivity = (exact + 2.0 * rounding) * _UP
            gaussian = LatticeGaussian.of_multiplier(
                size, lattice_exponent(sensitivity / max(1.0, mu), size), sensitivity, 1.0 / mu
            )
            event = problem.event(budget, GaussianMechanism(1.0 / gaussian.multiplier))
            plans.append(MomentsPlan(problem, budget, scale, longest, rounding, None, gaussian, event))
        return min(plans, key=lambda plan: plan.deviation)

    def _rounding(self, problem: Problem, scale: float, longest: float) -> float:
        """Largest L2 distance between computed and exact scaled moments. proofs/moments.md, theorems 2 and 5."""
        loss, dimension, norm = problem.loss_bounds, problem.row_width, summed_norm(problem)
        window = window_of(loss, _WINDOW)
        scores = loss.smoothness * ((2 * dimension + 8) * norm * longest + window)
        turning = 0 if loss.separable else 2 * (loss.n_outputs + 2) * loss.rank
        sums = problem.summation_depth + 2 * dimension + 24 + turning
        slopes = loss.rounding * loss.lipschitz + scores
        # A matrix of curvatures changes by at most three times the change of its probabilities.
        curvature = slopes * (1.0 / window if loss.separable else 3.0) / loss.smoothness + sums
        slope = 2.0 * slopes / loss.lipschitz + sums
        rows = problem.n_rows_high * norm**2 * math.sqrt(blocks_of(loss))
        return 1.02 * _UNIT * rows * (scale * curvature + slope)

    def release(self, plan: MomentsPlan, weights: Weights, source: RowSource, entropy: Entropy) -> NoisyMoments:
        """Sum over the rows once, at released weights (1, D), and release. The event was charged before this call."""
        if not made_by(plan, MomentsPlan):
            raise ParameterError(ANOTHERS)
        problem = plan.problem
        problem.check_source(source)
        row_sum = RowSum(problem.loss, problem.row_bound, problem.intercept, 1, problem.largest_weight)
        window = window_of(problem.loss_bounds, _NARROW_WINDOW if plan.lattice is None else _WINDOW)
        moments = _scaled(plan, source.sum_over_rows(MomentSum(row_sum, window), shortened(weights, plan.largest_norm)))
        if plan.noise is not None:
            moments = moments + plan.noise.draw(entropy)
        if plan.lattice is not None:
            moments = plan.lattice.release(moments, entropy)
        return _unscaled(plan, moments[0])


def joint_event(training: Plan, moments: MomentsPlan) -> Event:
    """The event of weights and moments under one account: that of the weights, which pays for the moments beside them.

    Raises ParameterError unless the moments have Gaussian noise, and the weights were planned for as much beside them.
    """
    lattice = moments.lattice
    is_gaussian = moments.noise is None and isinstance(lattice, LatticeGaussian)
    if not is_gaussian or not 1.0 / lattice.multiplier <= training.problem.beside_mu:  # type: ignore[union-attr]
        raise ParameterError("the plan of the weights does not pay for these moments.")
    return training.event


def _places(problem: Problem) -> tuple[Array, Array, Array]:
    """Rows and columns of the entries that leave, by blocks, diagonal first; factors 1 on it and sqrt(2) elsewhere."""
    width = width_of(problem)
    rows, columns = np.hstack([np.diag_indices(width), np.triu_indices(width, 1)])
    starts = width * np.arange(blocks_of(problem.loss))[:, None]
    multiples = np.where(rows == columns, 1.0, math.sqrt(2.0))
    return (starts + rows).ravel(), (starts + columns).ravel(), np.tile(multiples, len(starts))


def _scaled(plan: MomentsPlan, totals: Totals) -> Weights:
    """The scaled moments (1, N), to which noise is added; off-diagonal entries are multiplied by sqrt(2)."""
    loss, matrices, (rows, columns, multiples) = plan.problem.loss, totals.hessian, _places(plan.problem)
    if not loss.separable:
        directions = directions_of(loss.n_outputs, plan.problem.row_width)
        matrices = directions @ matrices @ directions.T
    units = (plan.unit_of_curvature, plan.unit_of_slope)
    parts = [multiples * matrix[rows, columns] / unit for matrix, unit in zip(matrices, units, strict=True)]
    return np.concatenate(parts)[None]


def _unscaled(plan: MomentsPlan, moments: Array) -> NoisyMoments:
    """The two matrices of scaled moments (N,)."""
    rows, columns, multiples = _places(plan.problem)
    size = blocks_of(plan.problem.loss) * width_of(plan.problem)
    matrices, units = np.zeros((2, size, size)), (plan.unit_of_curvature, plan.unit_of_slope)
    for matrix, part, unit in zip(matrices, np.split(moments, 2), units, strict=True):
        matrix[rows, columns] = matrix[columns, rows] = unit * (part / multiples)
    return NoisyMoments(matrices[0], matrices[1], plan)
