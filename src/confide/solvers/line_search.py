"""Search along a line by slopes alone, for k problems at once and at several points of each line in one pass.

The objectives are convex, so the slope along a line rises, and a step is good where the slope is about 0. Close to the
minimiser the differences of values drown in rounding, while slopes can still be told apart. Several points cost little more
than one, because the rows are read once.
"""

from __future__ import annotations

import numpy as np

from confide.solvers.objectives import HasGradients
from confide.types import Array, Weights

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
        found = np.einsum("kpd,kd->kp", gradients, directions[open_lines])
        still = []
        for j, steps, at_steps, gradient in zip(open_lines, points, found, gradients, strict=True):
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
