"""Newton's method with a line search for k problems at once.

One pass over the rows serves one trial point of every unfinished problem, with value, gradient and Hessian, so that an
accepted trial costs no second pass: passes = accepted steps + rejected trials + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from confide.erm.objective import Objective
from confide.solvers.solver import Solution
from confide.types import Array, Weights

_SUFFICIENT_DECREASE = 1e-4
_SHORTEST_STEP = 2.0**-40
_VALUE_ROUNDING = 2.0**-46
"""Relative error of a summed value: differences below it say nothing."""
_MOST_BLIND_TRIALS = 6
"""Trials that neither the value nor the gradient can call good, before a problem counts as at its floor."""


def newton_directions(hessian: Array, gradient: Array) -> Array:
    """The (k, D) solutions s of H s = -g; a row of NaN where H is not numerically positive definite."""
    directions = np.full_like(gradient, np.nan)
    for problem, matrix in enumerate(hessian):
        try:
            # The Hessian is not used again, so its factor may take its place.
            factor = cho_factor(matrix.T, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:
            continue
        directions[problem] = -cho_solve(factor, gradient[problem], check_finite=False)
    return directions


@dataclass(frozen=True, slots=True)
class Newton:
    """Damped Newton. Fast, and without a theorem: what it does not finish is left to the methods of `fallback`."""

    most_passes: int = 300

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        weights = start.copy()
        n_problems = weights.shape[0]
        state = objective.evaluate(weights, order=2)
        values, gradients = state.value, state.gradient
        directions = newton_directions(state.hessian, gradients)
        steps = np.ones(n_problems)
        blind_trials = np.zeros(n_problems, dtype=np.intp)
        unfinished = np.linalg.norm(gradients, axis=1) > tolerance
        for _ in range(self.most_passes):
            unfinished &= np.isfinite(directions).all(axis=1) & (steps >= _SHORTEST_STEP)
            which = np.flatnonzero(unfinished)
            if which.size == 0:
                break
            trials = weights[which] + steps[which, None] * directions[which]
            state = objective.restrict(which).evaluate(trials, order=2)
            slopes = np.einsum("kd,kd->k", gradients[which], directions[which])
            gradient_norms = np.linalg.norm(state.gradient, axis=1)
            halved = gradient_norms <= 0.5 * np.linalg.norm(gradients[which], axis=1)
            decreased = state.value <= values[which] + _SUFFICIENT_DECREASE * steps[which] * slopes
            # Below the rounding of the value, values cannot be compared: only the gradient tells. A step that makes it
            # smaller is taken; a few that do not halve it mean that the floor of double precision is reached.
            blind = -slopes <= _VALUE_ROUNDING * np.abs(values[which])
            smaller = gradient_norms < np.linalg.norm(gradients[which], axis=1)
            accepted = np.where(blind, smaller, decreased)
            blind_trials[which[blind & ~halved]] += 1
            unfinished[which[blind_trials[which] >= _MOST_BLIND_TRIALS]] = False

            moved = which[accepted]
            weights[moved] = trials[accepted]
            values[moved] = state.value[accepted]
            gradients[moved] = state.gradient[accepted]
            directions[moved] = newton_directions(state.hessian[accepted], state.gradient[accepted])
            steps[moved] = 1.0
            steps[which[~accepted]] *= 0.5
            unfinished[moved[gradient_norms[accepted] <= tolerance]] = False
        return Solution(weights=weights, gradient_norm=np.linalg.norm(gradients, axis=1))
