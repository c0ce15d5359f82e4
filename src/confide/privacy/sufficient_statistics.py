"""Sufficient statistics of least squares, X^T X, X^T y and y^T y, with exact noise. Proof: proofs/sufficient_statistics.md.

The sums leave in one vector with one noise, which is less noise than if each sum had a share of the budget. Weights are
computed from the noisy sums afterwards and cost nothing. y^T y is used for intervals alone. For pure privacy the noise is
independent on a grid, or spherical under a seal: the smaller of them. Symbols inside formulas: D weights, N entries, R bound
on a row with its intercept, T bound on a target, n rows, f a factor of y^T y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from confide import expected_noise
from confide._version import __version__
from confide.array_types import Array, Weights
from confide.erm.group_bounds import GroupBound
from confide.erm.moment_sums import LeastSquaresSum
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND
from confide.erm.row_sums import Totals
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.plan_text import plan_reasons, statistics_document, statistics_text
from confide.privacy.budgets import Budget, Neighbours, PureDP, budget_of_row, pure_epsilon
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import GaussianMechanism, mu_within
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Noise, ProblemFacts, log_failure, made_by
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball

_NAME = "sufficient-statistics"
_LARGEST_INFLATION = 0.1
_SQUARE_SCALE = 0.5
_SEAL_SHARES = (1e-3, 1e-2)
"""Shares of epsilon that the seal of spherical noise may take. The better one is taken."""
_UNIT = 2.0**-53
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastSquares(ProblemFacts):
    """The public facts of one least-squares problem.

    Attributes
    ----------
    target_bound : every target is clipped to [-target_bound, target_bound]
    with_square : whether y^T y is released too
    """

    target_bound: float
    with_square: bool = False

    def __post_init__(self) -> None:
        ProblemFacts.__post_init__(self)
        if not (SMALLEST_BOUND <= self.target_bound <= LARGEST_BOUND or self.target_bound == math.inf):
            raise ParameterError("target_bound must be a positive number between 2^-300 and 2^300.")

    @property
    def row_sum(self) -> LeastSquaresSum:
        """The sum over rows that is released."""
        return LeastSquaresSum(self.row_bound, self.intercept, self.target_bound)

    @property
    def n_statistics(self) -> int:
        """N: the distinct entries of X^T X, X^T y, and y^T y if it is released."""
        return self.n_weights * (self.n_weights + 3) // 2 + self.with_square

    @property
    def target_scale(self) -> float:
        """c = R / T: a target times c is bounded by R, as a row is."""
        return self.row_norm / self.target_bound

    @property
    def gaussian_square_scale(self) -> float:
        """f: c^2 f y^T y gets Gaussian noise; 0 where it is not released. For replace-one it costs nothing (theorem 1)."""
        free = math.sqrt(1.5) * _DOWN if self.neighbours is Neighbours.REPLACE_ONE else _SQUARE_SCALE
        return free if self.with_square else 0.0

    @property
    def laplace_square_scale(self) -> float:
        """f for Laplace noise."""
        return _SQUARE_SCALE if self.with_square else 0.0

    @property
    def row_l1_norm(self) -> float:
        """Largest L1 norm of a clipped row with its intercept, rounded upwards."""
        norm = math.sqrt(self.n_features) * self.row_bound.l2_norm
        if isinstance(self.row_bound, GroupBound):
            norm = min(norm, math.fsum(self.row_bound.scales))
        return (norm + self.intercept) * _UP

    @property
    def l2_sensitivity(self) -> float:
        """Largest L2 distance of the scaled statistics of neighbours, off-diagonal entries times sqrt(2).

        Theorem 1: 3 R^2 / sqrt(2) for replace-one, sqrt(2 + f^2) R^2 for add-or-remove-one.
        """
        replaced = self.neighbours is Neighbours.REPLACE_ONE
        factor = 3.0 / math.sqrt(2.0) if replaced else math.sqrt(2.0 + self.gaussian_square_scale**2)
        return factor * self.row_norm**2 * _UP

    @property
    def l1_sensitivity(self) -> float:
        """Largest L1 distance of the scaled statistics of neighbours, off-diagonal entries as they are. Theorem 2."""
        square, dimension, of_target = self.row_norm**2, self.n_weights, self.laplace_square_scale
        # (B^2 + R^2) / 2 + B R, B the L1 norm.
        of_row = 0.5 * (self.row_l1_norm**2 + square) + self.row_l1_norm * self.row_norm
        if self.neighbours is Neighbours.ADD_OR_REMOVE_ONE:
            return (of_row + of_target * square) * _UP
        # sqrt(D (D + 3) / 4 + D / j + f^2 / (j + j^2 / 2)) sqrt(2) (1 + j / 2) R^2, for f = 0 least at this j.
        weight = (math.sqrt(4.0 * dimension + 13.0) - 1.0) / (dimension + 3.0)
        entries = dimension * (dimension + 3.0) / 4.0 + dimension / weight + of_target**2 / (weight + 0.5 * weight**2)
        return min(2.0 * of_row, math.sqrt(2.0 * entries) * (1.0 + 0.5 * weight) * square) * _UP

    @property
    def rounding(self) -> float:
        """Largest L2 distance between computed and exact scaled statistics, in either scaling.

        Theorem 3: 1.52 sqrt(1 + f^2 / 2) u n R^2 (m + 2D + 14), m the summation depth.
        """
        terms = self.summation_depth + 2 * self.n_weights + 14
        scale = max(self.gaussian_square_scale, self.laplace_square_scale)
        return 1.52 * math.sqrt(1.0 + 0.5 * scale**2) * _UNIT * self.n_rows_high * terms * self.row_norm**2


@dataclass(frozen=True, slots=True)
class StatisticsPlan:
    """Everything decided before any row is read. Public: safe to print, store and review.

    Attributes
    ----------
    problem : LeastSquares
    budget : Budget
        What the release costs; charged before a row is read.
    mechanism : str
        "sufficient-statistics", or "none" without noise.
    lattice : LatticeNoise or None
        The noise, on N scaled statistics; or what seals `noise`.
    off_diagonal : float
        Factor of the off-diagonal entries of X^T X while the noise is added.
    square_scale : float
        Factor of y^T y at that time, beside that of targets, twice; 0 where it is not released.
    event : Event
        What a ledger counts.
    l2 : float
        Ridge of the sum form for the weights that are made of the noisy sums. The guarantee does not depend on it.
    prior : tuple of float
        Weights towards which that ridge pulls; empty for 0. The guarantee does not depend on them.
    l1_ratio : float
        Share of an l1 penalty beside that ridge in the strength of both. The guarantee does not depend on it.
    forecast : SumsForecast or None
        How much of what the rows tell the noise will hide. The guarantee does not depend on it either.
    intervals : SumsForecast or None
        The same, where intervals will be made of the sums.
    noise : Noise or None
        Continuous noise, which the lattice seals; None where the lattice is the noise.
    radius : float
        Largest L2 distance between scaled statistics with this noise and what they would be with noise of the exact law.
    reasons : tuple of str
        What `why` says.
    """

    problem: LeastSquares
    budget: Budget
    mechanism: str
    lattice: LatticeNoise | None
    off_diagonal: float
    square_scale: float
    event: Event
    l2: float = 0.0
    prior: tuple[float, ...] = ()
    forecast: Any = None
    intervals: Any = None
    noise: Noise | None = None
    radius: float = 0.0
    l1_ratio: float = 0.0
    reasons: tuple[str, ...] = field(default=(), compare=False, repr=False)

    alpha = property(expected_noise.alpha)
    diagonal_deviation = property(expected_noise.diagonal_deviation)
    product_deviation = property(expected_noise.product_deviation)
    target_deviation = property(expected_noise.target_deviation)
    square_deviation = property(expected_noise.square_deviation)

    to_dict = statistics_document
    """A JSON form, for people and machines; the number of rows appears as its public bounds."""
    __str__ = statistics_text
    why = plan_reasons


@dataclass(frozen=True, slots=True)
class NoisyStatistics:
    """What leaves the mechanism: noisy sums and public facts. Whatever is computed from them is as private."""

    products: Array
    """(D, D): X^T X with noise, symmetric; its eigenvalues may be negative."""
    targets: Array
    """(D,): X^T y with noise."""
    square: float
    """y^T y with noise; NaN where it is not released."""
    plan: StatisticsPlan
    version: str = __version__


@dataclass(frozen=True, slots=True)
class SufficientStatistics:
    """Sums over rows with noise. Between its two verbs the caller charges the plan's event."""

    def plan(self, problem: LeastSquares, budget: Budget) -> StatisticsPlan:
        """The plan with the least noise among exact Laplace, sealed spherical and exact Gaussian. No data is used."""
        if not (budget.is_private and math.isfinite(problem.target_bound) and math.isfinite(problem.row_norm)):
            raise ParameterError("noise for sums needs a finite budget and finite bounds on rows and targets.")
        size, rounding, exact = problem.n_statistics, problem.rounding, problem.l2_sensitivity
        if not 2.0 * rounding <= _LARGEST_INFLATION * exact:
            raise ParameterError(
                f"sums over up to {problem.n_rows_high} rows are too inexact in double precision. Narrow n_rows_bounds."
            )
        of_row = budget_of_row(budget, problem.rows_per_person)
        epsilon = pure_epsilon(of_row)
        pure = [_independent(problem, budget, epsilon), *(_spherical(problem, budget, epsilon, s) for s in _SEAL_SHARES)]
        plans = [min(pure, key=expected_noise.deviation_of_sums)]
        if not isinstance(of_row, PureDP):
            mu = mu_within(of_row)
            sensitivity = (exact + 2.0 * rounding) * _UP
            exponent = lattice_exponent(sensitivity / max(1.0, mu), size)
            gaussian = LatticeGaussian.of_multiplier(size, exponent, sensitivity, 1.0 / mu)
            event = problem.event(budget, GaussianMechanism(1.0 / gaussian.multiplier))
            scale = problem.gaussian_square_scale
            plans.append(StatisticsPlan(problem, budget, _NAME, gaussian, math.sqrt(2.0), scale, event))
        return min(plans, key=lambda plan: plan.product_deviation)

    def release(self, plan: StatisticsPlan, source: RowSource, entropy: Entropy) -> NoisyStatistics:
        """Sum over the rows once and release. The event of the plan was charged before this call."""
        if not made_by(plan, StatisticsPlan, _NAME) or plan.lattice is None:
            raise ParameterError(ANOTHERS)
        problem = plan.problem
        problem.check_source(source)
        totals = source.sum_over_rows(problem.row_sum, np.zeros((1, problem.n_weights)))
        statistics = _scaled(plan, totals)
        if plan.noise is not None:
            statistics = statistics + plan.noise.draw(entropy)
        return NoisyStatistics(*_unscaled(plan, plan.lattice.release(statistics, entropy)[0]), plan)


def _independent(problem: LeastSquares, budget: Budget, epsilon: float) -> StatisticsPlan:
    """The plan with exact Laplace noise, independent in each entry."""
    size, event = problem.n_statistics, problem.event(budget, PureMechanism(epsilon))
    l1_sensitivity = (problem.l1_sensitivity + 2.0 * math.sqrt(size) * problem.rounding) * _UP
    laplace = LatticeLaplace.of_l1(size, l1_sensitivity, epsilon * _DOWN)
    return StatisticsPlan(problem, budget, _NAME, laplace, 1.0, problem.laplace_square_scale, event)


def _spherical(problem: LeastSquares, budget: Budget, epsilon: float, share: float) -> StatisticsPlan:
    """The plan with spherical Laplace noise, whose seal takes this share of epsilon: theorem 4."""
    size, scale, failure = problem.n_statistics, problem.gaussian_square_scale, log_failure(budget, problem)
    # The bound is in the rate, since its square, in the norm of a ball, may be too small or too large for a double.
    noise = Noise(Ball(size, 1.0), "laplace", epsilon * (1.0 - share) * _DOWN / problem.l2_sensitivity)
    # Each entry of the sum of statistics and noise is rounded once.
    largest = 1.02 * math.sqrt(2.0 + scale**2) * problem.n_rows_high * problem.row_norm**2 + noise.bound(failure)
    radius = (problem.rounding + noise.error(failure) + _UNIT * largest) * _UP
    seal = LatticeLaplace(size, lattice_exponent(2.0 * radius, size), 2.0 * radius, epsilon * share * _DOWN)
    event = problem.event(budget, PureMechanism(epsilon))
    plan = StatisticsPlan(problem, budget, _NAME, seal, math.sqrt(2.0), scale, event)
    return replace(plan, noise=noise, radius=radius)


def _scaled(plan: StatisticsPlan, totals: Totals) -> Weights:
    """The scaled statistics (1, N), to which noise is added: diagonal, upper triangle, targets, square of targets."""
    products, targets, scale = totals.hessian[0], -totals.gradient[0], plan.problem.target_scale
    upper = plan.off_diagonal * products[np.triu_indices_from(products, 1)]
    # In this order nothing overflows: where the square of the scale is very large, the squares are very small.
    square = [scale * (scale * (plan.square_scale * 2.0 * totals.value[0]))] if plan.problem.with_square else []
    return np.concatenate([np.diagonal(products), upper, scale * targets, square])[None]


def _unscaled(plan: StatisticsPlan, statistics: Array) -> tuple[Array, Array, float]:
    """X^T X, X^T y and y^T y of scaled statistics (N,)."""
    dimension, scale, square = plan.problem.n_weights, plan.problem.target_scale, math.nan
    if plan.problem.with_square:
        square = float(statistics[-1]) / scale / scale / plan.square_scale
        statistics = statistics[:-1]
    products = np.diag(statistics[:dimension])
    rows, columns = np.triu_indices(dimension, 1)
    products[rows, columns] = products[columns, rows] = statistics[dimension:-dimension] / plan.off_diagonal
    return products, statistics[-dimension:] / scale, square
