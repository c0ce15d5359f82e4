"""Noise on the weights of scikit-learn (Chaudhuri, Monteleoni and Sarwate, 2011, algorithm 1), with the right constant.

Rows have norm at most 1, their constant column included, and every weight is regularised. The minimiser of
sum_i loss(w, row i) + l2 |w|^2 / 2 then moves by at most 2 / l2 when a row is replaced, and by 1 / l2 when one is added
or removed: the objective is l2-strongly convex, and the gradient of the logistic loss is shorter than the row.
scikit-learn stops a little short of that minimiser, for which this proof does not account; nor does it for
floating-point noise.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from benchmarks.peers.outcomes import Outcome
from benchmarks.peers.problems import Problem
from dp_accounting import get_sigma_gaussian
from sklearn.linear_model import LogisticRegression

from confide.array_types import Array


def settings(*, small: bool) -> list[dict[str, Any]]:
    """The grid of hyperparameters, one for every budget, so that few fits serve them all."""
    ridges = (3.0, 30.0, 300.0) if small else (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0)
    return [{"norm": norm, "ridge": ridge} for norm in ("largest", "usual") for ridge in ridges]


@lru_cache(maxsize=64)
def minimiser(problem: Problem, norm: str, ridge: float) -> Array:
    """Weights (d,) without noise."""
    rows, _ = problem.unit_rows(norm)
    # Newton's steps on a Hessian of the rows' width: near the minimiser to the last digits.
    model = LogisticRegression(C=1.0 / ridge, fit_intercept=False, solver="newton-cholesky", tol=1e-10, max_iter=100)
    return np.asarray(model.fit(rows, problem.split.y_train).coef_[0])


def laplace(epsilon: float, ridge: float, n_weights: int, draws: int, rng: np.random.Generator) -> Array:
    """Noise (d, draws) with density proportional to exp(-epsilon |b| / (2 / ridge)), for neighbours that replace a row."""
    directions = rng.standard_normal((n_weights, draws))
    return directions / np.linalg.norm(directions, axis=0) * rng.gamma(n_weights, 2.0 / (ridge * epsilon), draws)


def gaussian(epsilon: float, delta: float, ridge: float, n_weights: int, draws: int, rng: np.random.Generator) -> Array:
    """The least Gaussian noise (d, draws) for neighbours that add or remove a row."""
    return rng.standard_normal((n_weights, draws)) * (float(get_sigma_gaussian(epsilon, delta)) / ridge)


def outcomes(
    problem: Problem, epsilon: float, delta: float, chosen: list[dict[str, Any]], draws: int, seed: int
) -> list[list[Outcome]]:
    """Outcomes of each setting, one for each draw; delta 0 is pure privacy."""
    rng, found = np.random.default_rng(seed), []
    for setting in chosen:
        weights = minimiser(problem, setting["norm"], setting["ridge"])[:, None]
        if delta == 0.0:
            noise = laplace(epsilon, setting["ridge"], len(weights), draws, rng)
        else:
            noise = gaussian(epsilon, delta, setting["ridge"], len(weights), draws, rng)
        _, test = problem.unit_rows(setting["norm"])
        found.append(problem.outcomes(test @ (weights + noise)))
    return found
