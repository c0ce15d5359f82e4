"""Least squares with an l1 penalty, from noisy sums over rows. It is made of what was released, so it costs nothing."""

from __future__ import annotations

import math

import numpy as np

from confide.privacy.sufficient_statistics import NoisyStatistics
from confide.solvers.proximal import minimiser_of_model
from confide.training.released_support import FALSE_WEIGHTS, gaussian_threshold
from confide.types import Array

_USUAL_RESIDUAL = 0.1
"""The root mean square of residuals, in units of the bound on targets: the threshold of `HuberRegressor` that None means."""


def sparse_weights(sums: NoisyStatistics) -> Array:
    """Weights (D,) of the elastic net for these sums, with the ridge of their plan and its share of an l1 penalty.

    Weights that are no larger than what noise and the draw of the rows alone make are set to 0, as `released_support` says.
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
    residual = _USUAL_RESIDUAL * problem.target_bound
    # The variance of a weight: that of the slopes, between two inverses of the curvature.
    shrinkage = 1.0 / (values + plan.l2 + rounding)
    variances = vectors**2 @ (shrinkage**2 * (noise**2 + residual**2 * values))
    share = FALSE_WEIGHTS / problem.n_features
    threshold = np.sqrt(variances) * gaussian_threshold(share, 1.0)
    return np.where(of_columns & (np.abs(weights) <= threshold), 0.0, weights)
