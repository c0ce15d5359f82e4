"""Newton's method with an exact line search for k problems at once.

One pass over the rows serves one trial point of every unfinished problem, with gradient and Hessian, so that an accepted
trial costs no second pass. Where a full step does not flatten the slope along it, `flat_steps` finds the step. These
steps are nearly exact: smoothed hinges with a small ridge are made of few quadratic pieces, on which a few exact steps are
enough, while steps that only promise a decrease may take thousands.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs

from confide.array_types import Array, Indices, Weights
from confide.erm.objective import HasGradients, Solution

# Search along a line by slopes alone, for k problems at once and at several points of each line in one pass.
#
# The objectives are convex, so the slope along a line rises, and a step is good where the slope is about 0. Close to the
# minimiser the differences of values drown in rounding, while slopes can still be told apart. Several points cost little
# more than one, because the rows are read once.

_GRID = np.arange(1, 8) / 8.0
"""Where points lie between the two ends of an interval, as shares of it."""
_MOST_ROUNDS = 12
"""A search ends after this many passes, with the flattest point found."""
_NARROWEST = 2.0**-48
"""An interval of this relative width is not divided any further: its ends are nearly neighbours among doubles."""
_SPREAD_BY_RATIO = 2.0**-4
"""Points are spread by ratio where the lower end is below this share of the upper one, and evenly elsewhere."""


def flat_steps(
    objective: HasGradients, weights: Weights, directions: Weights, slopes: Array, flatness: float
) -> tuple[Array, Array]:
    """Steps (k,) where the slope along each direction is at most `flatness` times the one at 0, or the flattest found.

    Parameters
    ----------
    objective : k problems
    weights, directions : (k, D), where the lines start and where they go
    slopes : (k,) the slopes at 0, negative
    flatness : the share of the first slope that may be left

    Returns
    -------
    steps, gradients : (k,), positive, and (k, D) there; NaN for a problem whose every slope was NaN
    """
    n_problems = len(slopes)
    low, low_slopes = np.zeros(n_problems), slopes.copy()
    high, high_slopes = np.full(n_problems, np.inf), np.full(n_problems, np.nan)
    best, least, at_best = np.full(n_problems, np.nan), np.full(n_problems, np.inf), np.full_like(weights, np.nan)
    open_lines = np.arange(n_problems)
    for _ in range(_MOST_ROUNDS):
        points = np.vstack(
            [_points(low[j], low_slopes[j], high[j], high_slopes[j], slopes[j]) for j in open_lines]
        )  # (open, points)
        trials = weights[open_lines, None] + points[:, :, None] * directions[open_lines, None]
        repeated = np.repeat(open_lines, points.shape[1])
        gradients = objective.restrict(repeated).evaluate(trials.reshape(len(repeated), -1), order=1).gradient
        gradients = gradients.reshape(trials.shape)
        slopes_at_points = np.einsum("kpd,kd->kp", gradients, directions[open_lines])
        still = []
        for j, steps, at_steps, gradient in zip(open_lines, points, slopes_at_points, gradients, strict=True):
            sizes = np.where(np.isnan(at_steps), np.inf, np.abs(at_steps))
            flattest = int(np.argmin(sizes))
            if sizes[flattest] < least[j]:
                best[j], least[j], at_best[j] = steps[flattest], sizes[flattest], gradient[flattest]
            rising = ~(at_steps < 0.0)  # a slope of NaN is beyond what can be computed, so the point is too far
            last = int(np.argmax(rising)) if rising.any() else len(steps)
            if last > 0 and steps[last - 1] > low[j]:
                low[j], low_slopes[j] = steps[last - 1], at_steps[last - 1]
            if last < len(steps) and steps[last] < high[j]:
                high[j], high_slopes[j] = steps[last], at_steps[last]
            if least[j] > -flatness * slopes[j] and low[j] < high[j] * (1.0 - _NARROWEST):
                still.append(j)
        open_lines = np.array(still, dtype=np.intp)
        if open_lines.size == 0:
            break
    return best, at_best


def _points(low: float, low_slope: float, high: float, high_slope: float, slope: float) -> Array:
    """Eight points in order: where a straight line through the slopes at both ends is 0, and a grid between the ends."""
    if low == 0.0 and high == np.inf:
        return 8.0 ** np.arange(-6.0, 2.0)
    if high == np.inf:
        # No upper end yet: points further out, and where the slope would be 0 if it went on rising as from 0 to `low`.
        guess = low * slope / (slope - low_slope) if low_slope > slope else np.inf
        grid = low * 8.0 ** np.arange(1.0, 8.0)
    else:
        guess = low + (high - low) * (low_slope / (low_slope - high_slope))
        least = max(low, 2.0**-24 * high)
        grid = least * (high / least) ** _GRID if low < _SPREAD_BY_RATIO * high else low + (high - low) * _GRID
    return np.sort(np.append(grid, guess if low < guess < high else 0.5 * grid[0] + 0.5 * low))


# The best point so far of each of k problems, and which problems are finished.

_NEAR_FLOOR = 1e-10
"""A gradient norm is near the floor of doubles at this share of the largest norm met. Slopes are noise there, so a full step
is taken without a look at them."""
_MOST_IDLE_STEPS = 4
"""A problem is at its floor after this many steps in a row, near the floor, that do not halve its gradient norm."""


class BestPoints:
    """Best points and gradient norms of k problems.

    Parameters
    ----------
    start, gradients : (k, D), where they begin
    enough : the gradient norm at which a problem is finished, one number or (k,)
    """

    def __init__(self, start: Weights, gradients: Array, enough: Array | float) -> None:
        norms: Array = np.linalg.norm(gradients, axis=1)
        self.best, self.least = start.copy(), np.where(np.isnan(norms), np.inf, norms)
        self.largest, self.idle = self.least.copy(), np.zeros(len(start), dtype=np.intp)
        self.enough, self.lost = enough, ~np.isfinite(norms)

    def forget_norms(self) -> None:
        """Believe no gradient norm so far: each problem has to arrive anew. For the step from one objective to another."""
        self.least[...], self.idle[...] = np.inf, 0

    def arrive(self, which: Indices, points: Weights, gradients: Array) -> Array:
        """Take note of new points of these problems. Returns their gradient norms."""
        norms: Array = np.linalg.norm(gradients, axis=1)
        self.lost[which] |= ~np.isfinite(norms)
        self.largest[which] = np.fmax(self.largest[which], norms)
        idle = self.near_floor(which) & (norms > 0.5 * self.least[which])
        self.idle[which] = np.where(idle, self.idle[which] + 1, 0)
        closer = norms < self.least[which]
        self.best[which[closer]], self.least[which[closer]] = points[closer], norms[closer]
        return norms

    def near_floor(self, which: Indices) -> NDArray[np.bool_]:
        """Whether rounding is no longer small beside the gradient of each of these problems."""
        return np.asarray(self.least[which] <= _NEAR_FLOOR * self.largest[which])

    def unfinished(self) -> Indices:
        """The problems that are worth another step."""
        return np.flatnonzero((self.least > self.enough) & (self.idle < _MOST_IDLE_STEPS) & ~self.lost)

    def solution(self) -> Solution:
        """The best points."""
        return Solution(self.best, self.least)


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
                state = (objective if direct.size == len(start) else objective.restrict(direct)).evaluate(trials, order=2)
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
