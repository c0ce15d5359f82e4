"""Where each of k problems stands: its best point so far, and whether it is finished."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from confide.solvers.solver import Solution
from confide.types import Array, Indices, Weights

_SMALL = 1e-10
"""What share of the largest gradient norm met is near the floor of doubles. There slopes are noise: full steps are taken."""
_MOST_IDLE = 4
"""Steps near the floor that do not halve the gradient, before a problem counts as at its floor."""


class Progress:
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

    def begin_again(self) -> None:
        """Believe no gradient so far: each problem has to arrive anew."""
        self.least[...], self.idle[...] = np.inf, 0

    def arrive(self, which: Indices, points: Weights, gradients: Array) -> Array:
        """Take note of new points of these problems; their gradient norms."""
        norms: Array = np.linalg.norm(gradients, axis=1)
        self.lost[which] |= ~np.isfinite(norms)
        self.largest[which] = np.fmax(self.largest[which], norms)
        idle = self.near_floor(which) & (norms > 0.5 * self.least[which])
        self.idle[which] = np.where(idle, self.idle[which] + 1, 0)
        closer = norms < self.least[which]
        self.best[which[closer]], self.least[which[closer]] = points[closer], norms[closer]
        return norms

    def near_floor(self, which: Indices) -> NDArray[np.bool_]:
        """Whether rounding has begun to tell."""
        near: NDArray[np.bool_] = self.least[which] <= _SMALL * self.largest[which]
        return near

    def unfinished(self) -> Indices:
        """The problems that are worth another step."""
        return np.flatnonzero((self.least > self.enough) & (self.idle < _MOST_IDLE) & ~self.lost)

    def solution(self) -> Solution:
        """The best points."""
        return Solution(self.best, self.least)
