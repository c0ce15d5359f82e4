"""Many releases by one plan over the same rows, solved together.

Each release takes the same steps as a fit, with the plan that the estimator's `plan` makes: noise, minimiser, certificate,
last step. The only difference is that several draws of noise share the passes over the rows. One draw with a seed gives the
weights of a fit with that `random_state` (tests/test_experiments.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.privacy.certificate import certify, solver_tolerance
from confide.privacy.mechanism import Plan, zero_weights
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback
from confide.threads import one_blas_thread

_BATCH_SIZE = 10
"""Number of problems in one batch. More of them would not fit into the processor's caches."""


@dataclass(frozen=True)
class Releases:
    """Released weights, and the plan that they were released by.

    Attributes
    ----------
    plan : Plan
    weights : (draws, D) array, with the intercept last if there is one
    exact : (1, D) array, the minimiser to which noise was added; None for noise in the objective
    """

    plan: Plan
    weights: np.ndarray
    exact: np.ndarray | None


def release_many(model: Any, X: np.ndarray, y: np.ndarray, draws: int, seed: int) -> Releases:
    """A number of releases of a classifier for labels 0 and 1 without a schema, with seeded noise.

    Raises
    ------
    confide.ParameterError
        If a fit would be refused.
    """
    plan = model.plan(*X.shape)
    source = MemorySource(ArrayBlocks(np.ascontiguousarray(X)), np.where(y == 1, 1, -1).astype(np.int8))
    entropy = Entropy.seeded(seed)
    with np.errstate(all="ignore"), one_blas_thread():
        if plan.mechanism == "objective":
            parts = [min(_BATCH_SIZE, draws - start) for start in range(0, draws, _BATCH_SIZE)]
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
    # Without privacy the tolerance is 0: as exact as floating-point numbers allow.
    wanted = solver_tolerance(plan.tolerance) if plan.tolerance > 0.0 else 0.0
    weights = NewtonThenFallback().solve(objective, np.zeros_like(linear), wanted).weights
    if plan.tolerance > 0.0:
        certify(objective, weights, plan.tolerance, plan.problem.rounding(plan.l2))
    return weights


def mistakes(weights: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Shares of rows that each of (k, D) weights, without an intercept, puts into the wrong class of 0 and 1."""
    return ((X @ weights.T > 0.0) != (y[:, None] == 1)).mean(axis=0)
