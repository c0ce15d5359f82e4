"""Least squares: the plan of its noisy sums, and the weights that are computed from them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from confide.array_types import Array
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.inference.forecast import SumsForecast
from confide.inference.least_squares import SumsEvidence
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import (
    LeastSquares,
    NoisyStatistics,
    Statistics,
    StatisticsPlan,
    plan_of_statistics,
)
from confide.solvers.proximal import minimiser_of_model
from confide.training.alpha import noise_l2, usual_norm
from confide.training.auto_mechanism import facts_of_rows
from confide.training.settings import Settings, SquaredError
from confide.training.support import FALSE_WEIGHTS, USUAL_RESIDUAL, gaussian_threshold


def ridge_weights(products: Array, targets: Array, l2: float, prior: Array | None = None) -> Array:
    """Weights (D,) that minimise w . P w / 2 - w . t + (l2 / 2) |w - prior|^2, where P is the positive part of `products`.

    X^T X has no negative eigenvalues, so eigenvalues that noise pushed below 0 are put back to 0. The weights are not
    exact. Privacy does not depend on that, for the guarantee covers the sums that they are computed from.
    """
    if prior is not None:
        targets = targets + l2 * prior
    values, vectors = np.linalg.eigh(products)
    # An eigenvalue has about this error. Without it here, a tiny ridge would magnify the error of an eigenvalue near 0.
    rounding = 2.0**-52 * len(values) * np.abs(values).max()
    return np.asarray(vectors @ ((vectors.T @ targets) / (np.maximum(values, 0.0) + (l2 + rounding))))


# Least squares with an l1 penalty, from noisy sums over rows. It is made of what was released, so it costs nothing.


def sparse_weights(sums: NoisyStatistics) -> Array:
    """Weights (D,) of the elastic net for these sums, with the ridge of their plan and its share of an l1 penalty.

    Weights that are no larger than what noise and the draw of the rows alone make are set to 0, as in `support.py`.
    """
    plan, problem = sums.plan, sums.plan.problem
    of_columns = np.arange(problem.n_weights) < problem.n_features
    strengths = np.where(of_columns, plan.l2 * plan.l1_ratio / (1.0 - plan.l1_ratio), 0.0)
    # X^T X has no negative eigenvalues, so those that noise pushed below 0 are put back to 0.
    values, vectors = np.linalg.eigh(sums.products)
    rounding = 2.0**-52 * len(values) * np.abs(values).max()
    values = np.maximum(values, 0.0)
    hessian = (vectors * (values + plan.l2 + rounding)) @ vectors.T
    weights = minimiser_of_model(-sums.targets, hessian, np.zeros(len(values)), strengths)
    if plan.lattice is None:
        return weights
    noise = math.hypot(plan.target_deviation, plan.product_deviation * float(np.linalg.norm(weights)))
    residual = USUAL_RESIDUAL * problem.target_bound
    # The variance of a weight: that of the slopes, between two inverses of the curvature.
    shrinkage = 1.0 / (values + plan.l2 + rounding)
    variances = vectors**2 @ (shrinkage**2 * (noise**2 + residual**2 * values))
    threshold = np.sqrt(variances) * gaussian_threshold(FALSE_WEIGHTS / problem.n_features, 1.0)
    return np.where(of_columns & (np.abs(weights) <= threshold), 0.0, weights)


def plan_of_sums(settings: Settings, squared: SquaredError, n_features: int, n_rows: int | None) -> StatisticsPlan:
    """The plan for `n_rows` rows, or for the declared bounds on their number. It uses no row."""
    facts = facts_of_rows(settings, n_features, n_rows)
    problem = LeastSquares(**facts, target_bound=squared.target_bound, with_square=squared.with_square)
    low = problem.n_rows_low
    prior = settings.weights_of_prior(1, n_features)
    share = settings.l1_ratio
    l2 = None if settings.alpha is None else settings.alpha * low * (1.0 - share)
    usual, design = settings.usual_norm or usual_norm(settings.row_bound, 0.0), settings.sampling_design(low)
    if not settings.budget.is_private:
        # Without privacy the automatic ridge is 1, as in scikit-learn.
        plan = StatisticsPlan.of(Statistics(problem), settings.budget)
        plan = replace(plan, l2=1.0 - share if l2 is None else l2, prior=prior, l1_ratio=share)
        return replace(plan, intervals=SumsForecast.of(plan, usual, design)) if squared.with_square else plan
    plan = plan_of_statistics(problem, settings.budget)
    # Spherical noise on X^T y is larger than that on X^T X off the diagonal, and a ridge limits it too.
    automatic = noise_l2(plan.product_deviation if plan.noise is None else plan.diagonal_deviation, problem.n_weights)
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
        return plan.release(source, entropy)  # type: ignore[no-any-return]
    totals = source.sum_over_rows(plan.problem.row_sum, np.zeros((1, plan.problem.n_weights)))
    # At zero weights the residuals are the targets: the loss is half their squared sum, and the gradient is -X^T y.
    square = 2.0 * float(totals.value[0]) if plan.problem.with_square else 0.0
    if not (np.isfinite(totals.hessian).all() and np.isfinite(totals.gradient).all() and np.isfinite(square)):
        raise ParameterError("sums over the rows overflow. Scale rows and targets, or give a finite row_norm.")
    return NoisyStatistics(totals.hessian[0], -totals.gradient[0], square, plan)
