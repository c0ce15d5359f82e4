"""Sufficient statistics of least squares, X^T X, X^T y and y^T y, with exact noise. Proof: proofs/sufficient_statistics.md.

The sums leave in one vector with one noise, which is less noise than if each sum had a share of the budget. Weights are
computed from the noisy sums afterwards and cost nothing. y^T y is used for intervals alone. For pure privacy the noise is
independent on a grid, or spherical under a seal: the smaller of them. Symbols inside formulas: D weights, N entries, R bound
on a row with its intercept, T bound on a target, n rows, f a factor of y^T y.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from confide import expected_noise
from confide._version import __version__
from confide.array_types import Array
from confide.blocks import Shown
from confide.erm.group_bounds import groups_of
from confide.erm.moment_sums import LeastSquaresSum
from confide.erm.penalties import RIDGE, Penalty
from confide.erm.row_bounds import LARGEST_BOUND, SMALLEST_BOUND
from confide.erm.source import RowSource
from confide.errors import ParameterError, wording
from confide.plan_text import multiples, plan_reasons, statistics_blocks, statistics_document
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.mechanism import Noise, ProblemFacts
from confide.privacy.noisy_sum import SumPlan, SumQuery, computed_distances, refuse_inexact
from confide.privacy.shapes import Ball

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

    penalty: ClassVar[Penalty] = RIDGE
    """One ridge. The share of an l1 penalty is decided after the noise, so the plan has it."""

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
        if scales := groups_of(self.row_bound)[1]:
            norm = min(norm, math.fsum(scales))
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
class NoisyStatistics:
    """What leaves: noisy sums and public facts. Whatever is computed from them is as private."""

    products: Array
    """(D, D): X^T X with noise, symmetric; its eigenvalues may be negative."""
    targets: Array
    """(D,): X^T y with noise."""
    square: float
    """y^T y with noise; NaN where it is not released."""
    plan: StatisticsPlan
    version: str = __version__


@dataclass(frozen=True, slots=True)
class Statistics(SumQuery):
    """The scaled statistics: diagonal of X^T X, upper triangle, X^T y, and y^T y if it is released.

    Attributes
    ----------
    problem : LeastSquares
    off_diagonal : float
        Factor of the off-diagonal entries of X^T X while the noise is added: sqrt(2), or 1 for independent Laplace noise.
    """

    problem: LeastSquares
    off_diagonal: float = math.sqrt(2.0)

    @property
    def square_scale(self) -> float:
        """Factor of y^T y while the noise is added, beside that of targets, twice; 0 where it is not released."""
        return self.problem.laplace_square_scale if self.off_diagonal == 1.0 else self.problem.gaussian_square_scale

    @property
    def size(self) -> int:
        return self.problem.n_statistics

    @property
    def rounding(self) -> float:
        """Theorem 3."""
        return self.problem.rounding

    @property
    def distances(self) -> tuple[float, float]:
        """The L2 distance is for off-diagonal entries times sqrt(2), the L1 distance for those as they are."""
        return computed_distances(self.problem.l2_sensitivity, self.problem.l1_sensitivity, self.rounding, self.size)

    def spherical(self, rate: float) -> Noise:
        """Spherical noise that hides a row at this rate."""
        # The bound is in the rate, since its square, in the norm of a ball, may be too small or too large for a double.
        return Noise(Ball(self.size, 1.0), "laplace", rate / self.problem.l2_sensitivity)

    def large(self, noise_bound: float) -> float:
        """A bound on the scaled statistics with noise within this bound."""
        problem = self.problem
        return 1.02 * math.sqrt(2.0 + self.square_scale**2) * problem.n_rows_high * problem.row_norm**2 + noise_bound

    def summed(self, rows: RowSource) -> Array:
        problem = self.problem
        totals, scale = rows.sum_over_rows(problem.row_sum, np.zeros((1, problem.n_weights))), problem.target_scale
        products, targets = totals.hessian[0], -totals.gradient[0]
        upper = self.off_diagonal * products[np.triu_indices_from(products, 1)]
        # In this order nothing overflows: where the square of the scale is very large, the squares are very small.
        square = [scale * (scale * (self.square_scale * 2.0 * totals.value[0]))] if problem.with_square else []
        return np.concatenate([np.diagonal(products), upper, scale * targets, square])

    def decoded(self, plan: StatisticsPlan, sums: Array) -> NoisyStatistics:
        dimension, scale, square = self.problem.n_weights, self.problem.target_scale, math.nan
        if self.problem.with_square:
            square = float(sums[-1]) / scale / scale / self.square_scale
            sums = sums[:-1]
        products = np.diag(sums[:dimension])
        rows, columns = np.triu_indices(dimension, 1)
        products[rows, columns] = products[columns, rows] = sums[dimension:-dimension] / self.off_diagonal
        return NoisyStatistics(products, sums[-dimension:] / scale, square, plan)


@dataclass(frozen=True, slots=True)
class StatisticsPlan(SumPlan[Statistics], Shown):
    """The plan of a fit by noisy sums: that of the sums, and what is made of them. Public: safe to print, store and review.

    The guarantee depends on none of the attributes that it adds.

    Attributes
    ----------
    l2 : float
        Ridge of the sum form for the weights that are made of the noisy sums.
    prior : tuple of float
        Weights towards which that ridge pulls; empty for 0.
    forecast : SumsForecast or None
        How much of what the rows tell the noise will hide.
    intervals : SumsForecast or None
        The same, where intervals will be made of the sums.
    l1_ratio : float
        Share of an l1 penalty beside that ridge in the strength of both.
    reasons : tuple of str
        What `why` says.
    """

    l2: float = 0.0
    prior: tuple[float, ...] = ()
    forecast: Any = None
    intervals: Any = None
    l1_ratio: float = 0.0
    reasons: tuple[str, ...] = field(default=(), compare=False, repr=False)

    parts: ClassVar[tuple[()]] = ()
    minimises: ClassVar[bool] = False
    weights_on_grid: ClassVar[bool] = False

    @property
    def problem(self) -> LeastSquares:
        """The public facts of the problem."""
        return self.query.problem

    @property
    def mechanism(self) -> str:
        """How plans and documents name it."""
        return "none" if self.lattice is None else "sufficient-statistics"

    def grid_sentence(self) -> str:
        """What the released weights are, for the guarantee."""
        return f", which are computed only from sums that are, up to public factors, {multiples(self)}"

    alpha = property(expected_noise.alpha)
    diagonal_deviation = property(expected_noise.diagonal_deviation)
    product_deviation = property(expected_noise.product_deviation)
    target_deviation = property(expected_noise.target_deviation)
    square_deviation = property(expected_noise.square_deviation)

    why = plan_reasons
    to_dict = statistics_document
    """A JSON form, for people and machines; the number of rows appears as its public bounds."""
    blocks = statistics_blocks


def plan_of_statistics(problem: LeastSquares, budget: Budget) -> StatisticsPlan:
    """The plan with the least noise among exact Laplace, sealed spherical and exact Gaussian. No data is used."""
    if not (budget.is_private and math.isfinite(problem.target_bound) and math.isfinite(problem.row_norm)):
        raise ParameterError("noise for sums needs a finite budget and finite bounds on rows and targets.")
    refuse_inexact(problem.l2_sensitivity, problem.rounding, wording("sums too inexact", n_rows=problem.n_rows_high))
    query = Statistics(problem)
    sealed = [StatisticsPlan.sealed(query, budget, share) for share in _SEAL_SHARES]
    pure = [StatisticsPlan.of(Statistics(problem, 1.0), budget, ("laplace",)), *sealed]
    plans = [min(pure, key=expected_noise.deviation_of_sums)]
    if not budget.is_pure:
        plans.append(StatisticsPlan.of(query, budget, ("gaussian",)))
    return min(plans, key=lambda plan: plan.product_deviation)
