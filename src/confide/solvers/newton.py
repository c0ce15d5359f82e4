"""Newton's method with an exact line search for k problems at once.

One pass over the rows serves one trial point of every unfinished problem, with gradient and Hessian, so that an accepted
trial costs no second pass. Where a full step does not flatten the slope along it, the step is found by `line_search`. These
steps are nearly exact: smoothed hinges with a small ridge are made of few quadratic pieces, on which a few exact steps are
enough, while steps that only promise a decrease may take thousands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from confide.solvers.best_points import BestPoints
from confide.solvers.line_search import flat_steps
from confide.solvers.objectives import HasGradients
from confide.solvers.solver import Solution
from confide.types import Array, Indices, Weights

_FLAT_ENOUGH = 0.5
"""The share of the slope that a full step may leave. A step shortened by a line search would not leave much less."""
_FLATNESS = 1e-2
"""The share of the slope that a line search leaves. A few points more on a line are cheaper than one more iteration."""


def newton_directions(hessian: Array, gradient: Array) -> Array:
    """The (k, D) solutions s of H s = -g; a row of NaN where H is not numerically positive definite."""
    directions = np.full_like(gradient, np.nan)
    for problem, matrix in enumerate(hessian):
        # LAPACK itself, since SciPy's functions around it take longer than it does for few weights. The Hessian is not used
        # again, so its factor may take its place.
        factor, failed = dpotrf(matrix.T, lower=True, overwrite_a=True, clean=False)
        if not failed:
            directions[problem] = -dpotrs(factor, gradient[problem], lower=True)[0]
    return directions


@dataclass(frozen=True, slots=True)
class Newton:
    """Newton with exact line searches. It is fast and has no theorem: `fallback` takes over what it does not finish.

    Parameters
    ----------
    most_steps : steps after which it ends
    relative_tolerance : a problem also ends at this share of its gradient norm at the start
    """

    most_steps: int = 100
    relative_tolerance: float = 0.0

    def solve(self, objective: HasGradients, start: Weights, tolerance: float) -> Solution:
        state = objective.evaluate(start, order=2)
        enough = np.maximum(tolerance, self.relative_tolerance * np.linalg.norm(state.gradient, axis=1))
        points = BestPoints(start, state.gradient, enough)
        weights, gradients = start.copy(), state.gradient
        directions = newton_directions(state.hessian, gradients)
        searching = np.zeros(len(start), dtype=bool)

        def arrive(which: Indices, there: Weights, gradient: Array, hessian: Array) -> None:
            weights[which], gradients[which] = there, gradient
            directions[which] = newton_directions(hessian, gradient)
            points.arrive(which, there, gradient)

        for _ in range(self.most_steps):
            which = points.unfinished()
            which = which[np.isfinite(directions[which]).all(axis=1)]
            if which.size == 0:
                break
            slopes = np.einsum("kd,kd->k", gradients, directions)
            # A problem that needed a search in the last step is likely to need one again.
            direct, refused = which[~searching[which]], which[searching[which]]
            if direct.size:
                trials = weights[direct] + directions[direct]
                state = objective.restrict(direct).evaluate(trials, order=2)
                left = np.abs(np.einsum("kd,kd->k", state.gradient, directions[direct]))
                good = (left <= -_FLAT_ENOUGH * slopes[direct]) | points.near_floor(direct)
                refused = np.concatenate([refused, direct[~good]])
                arrive(direct[good], trials[good], state.gradient[good], state.hessian[good])
            searching[...] = False
            if refused.size:
                lines = objective.restrict(refused)
                steps, _ = flat_steps(lines, weights[refused], directions[refused], slopes[refused], _FLATNESS)
                searching[refused] = np.abs(np.log2(steps)) > 1.0
                trials = weights[refused] + steps[:, None] * directions[refused]
                state = lines.evaluate(trials, order=2)
                arrive(refused, trials, state.gradient, state.hessian)
        return points.solution()
