"""Many releases by one plan over the same rows, solved together.

What a fit does, with the plan of the estimator's own `plan`: noise, minimiser, certificate, last step. Only that several
draws of noise share the passes over the rows. One draw with a seed gives the weights of a fit with that `random_state`
(tests/test_experiments.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.data.threads import one_blas_thread
from confide.privacy.certificate import certify, solver_tolerance
from confide.privacy.mechanism import Plan, zero_weights
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback

_AT_ONCE = 10
"""Problems in one batch: more of them would not fit into the caches."""


@dataclass(frozen=True)
class Releases:
    """Released weights, and what they were released by.

    Attributes
    ----------
    plan : Plan
    weights : (draws, D) array, the intercept's last where there is one
    exact : (1, D) array, the minimiser that noise was added to; None for noise in the objective
    """

    plan: Plan
    weights: np.ndarray
    exact: np.ndarray | None


def release_many(model: Any, X: np.ndarray, y: np.ndarray, draws: int, seed: int) -> Releases:
    """So many releases of a classifier of the labels 0 and 1 without a schema, by seeded noise.

    Raises
    ------
    confide.ParameterError
        Where a fit would be refused.
    """
    plan = model.plan(*X.shape)
    source = MemorySource(ArrayBlocks(np.ascontiguousarray(X)), np.where(y == 1, 1, -1).astype(np.int8))
    entropy = Entropy.seeded(seed)
    with np.errstate(all="ignore"), one_blas_thread():
        if plan.mechanism == "objective":
            parts = [min(_AT_ONCE, draws - start) for start in range(0, draws, _AT_ONCE)]
            return Releases(plan, np.concatenate([_perturbed(plan, source, part, entropy) for part in parts]), None)
        exact = _minimisers(plan, source, zero_weights(plan.problem))
        weights = np.repeat(exact, draws, axis=0)
        if plan.noise is not None:
            weights = weights + np.concatenate([plan.noise.draw(entropy) for _ in range(draws)])
        return Releases(plan, weights if plan.lattice is None else plan.lattice.release(weights, entropy), exact)


def _perturbed(plan: Plan, source: MemorySource, draws: int, entropy: Entropy) -> np.ndarray:
    noise = np.concatenate([plan.noise.draw(entropy) for _ in range(draws)])
    return plan.lattice.release(_minimisers(plan, source, noise), entropy)


def _minimisers(plan: Plan, source: MemorySource, linear: np.ndarray) -> np.ndarray:
    """(k, D) minimisers, certified as in a fit."""
    objective = plan.problem.objective(source, plan.l2, linear)
    # Without privacy a tolerance of 0 asks for the best that doubles allow.
    wanted = solver_tolerance(plan.tolerance) if plan.tolerance > 0.0 else 0.0
    weights = NewtonThenFallback().solve(objective, np.zeros_like(linear), wanted).weights
    if plan.tolerance > 0.0:
        certify(objective, weights, plan.tolerance, plan.problem.rounding(plan.l2))
    return weights


def mistakes(weights: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Share of rows that each of (k, D) weights without intercept puts into the wrong of the classes 0 and 1."""
    return ((X @ weights.T > 0.0) != (y[:, None] == 1)).mean(axis=0)
