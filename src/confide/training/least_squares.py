"""Least squares: the plan of its noisy sums, and the weights that are computed from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from confide.data.arrays import summation_depth
from confide.data.source import RowSource
from confide.errors import ParameterError
from confide.inference.forecast import SumsForecast
from confide.inference.least_squares import SumsEvidence
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import LeastSquares, NoisyStatistics, StatisticsPlan, SufficientStatistics
from confide.solvers.normal_equations import ridge_weights
from confide.training.alpha import noise_l2, usual_norm
from confide.training.mechanism_choice import row_bounds
from confide.training.settings import Settings, SquaredError
from confide.training.sparse_least_squares import sparse_weights
from confide.types import Array


def plan_of_sums(settings: Settings, squared: SquaredError, n_features: int, n_rows: int | None) -> StatisticsPlan:
    """The plan for `n_rows` rows, or for the declared bounds on their number. It uses no row."""
    low, high = row_bounds(settings, n_rows)
    problem = LeastSquares(
        row_bound=settings.row_bound,
        intercept=settings.intercept,
        n_features=n_features,
        n_rows_low=low,
        n_rows_high=high,
        summation_depth=summation_depth(high, n_features),
        neighbours=settings.neighbours,
        rows_per_person=settings.rows_per_person,
        set_aside=settings.set_aside,
        target_bound=squared.target_bound,
        with_square=squared.with_square,
    )
    prior = settings.weights_of_prior(1, n_features)
    share = settings.l1_ratio
    l2 = None if settings.alpha is None else settings.alpha * low * (1.0 - share)
    usual, design = settings.usual_norm or usual_norm(settings.row_bound, 0.0), settings.sampling_design(low)
    if not settings.budget.is_private:
        # Without privacy the automatic ridge is 1, as in scikit-learn.
        event = problem.event(settings.budget)
        l2 = 1.0 - share if l2 is None else l2
        plan = StatisticsPlan(problem, settings.budget, "none", None, 1.0, 0.0, event, l2, prior, l1_ratio=share)
        return replace(plan, intervals=SumsForecast.of(plan, usual, design)) if squared.with_square else plan
    plan = SufficientStatistics().plan(problem, settings.budget)
    # Spherical noise on X^T y is larger than that on X^T X off the diagonal, and a ridge limits it too.
    deviation = plan.product_deviation if plan.noise is None else plan.diagonal_deviation
    automatic = noise_l2(deviation, problem.n_weights)
    plan = replace(plan, l2=automatic if l2 is None else l2, prior=prior, l1_ratio=share)
    forecast = SumsForecast.of(plan, usual, design)
    if squared.with_square:
        forecast.check()
    return replace(plan, forecast=forecast, intervals=forecast if squared.with_square else None)


def weights_of_sums(plan: StatisticsPlan, source: RowSource, entropy: Entropy) -> tuple[Array, SumsEvidence | None]:
    """The released weights (D,), and what intervals are computed from, or None if it is not released."""
    sums = _sums(plan, source, entropy)
    if plan.l1_ratio > 0.0:
        return sparse_weights(sums), None
    weights = ridge_weights(sums.products, sums.targets, plan.l2, np.array(plan.prior) if plan.prior else None)
    return weights, SumsEvidence.of(sums, weights) if plan.problem.with_square else None


def _sums(plan: StatisticsPlan, source: RowSource, entropy: Entropy) -> NoisyStatistics:
    """The sums with the noise of the plan, or without noise if the budget is infinite."""
    if plan.budget.is_private:
        return SufficientStatistics().release(plan, source, entropy)
    totals = source.sum_over_rows(plan.problem.row_sum, np.zeros((1, plan.problem.n_weights)))
    # At zero weights the residuals are the targets: the loss is half their squared sum, and the gradient is -X^T y.
    square = 2.0 * float(totals.value[0]) if plan.problem.with_square else 0.0
    if not (np.isfinite(totals.hessian).all() and np.isfinite(totals.gradient).all() and np.isfinite(square)):
        raise ParameterError("sums over the rows overflow. Scale rows and targets, or give a finite row_norm.")
    return NoisyStatistics(totals.hessian[0], -totals.gradient[0], square, plan)
