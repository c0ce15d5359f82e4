"""The best point so far of each of k problems, and which problems are finished."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confide.solvers.solver import Solution
from confide.types import Array, Indices, Weights

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
        near: NDArray[np.bool_] = self.least[which] <= _NEAR_FLOOR * self.largest[which]
        return near

    def unfinished(self) -> Indices:
        """The problems that are worth another step."""
        return np.flatnonzero((self.least > self.enough) & (self.idle < _MOST_IDLE_STEPS) & ~self.lost)

    def solution(self) -> Solution:
        """The best points."""
        return Solution(self.best, self.least)
