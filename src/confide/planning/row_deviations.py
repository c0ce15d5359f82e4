"""How far the mean loss on independent rows can be below that of the population, near fixed weights.

Let w0 be fixed weights, L the mean loss of the population and L_n that of n rows. Let G bound the gradient of the loss of a
row, and t = G / sqrt(n). With

    D(v) = (L - L_n)(w0 + v) - (L - L_n)(w0)

a number T is needed such that D(v) <= T + alpha |v|^2 - p |v| for all v at once. Lengths |v| are divided into shells. In
each, the mean of the largest D(v) + p |v| - alpha |v|^2 is about the largest (k t + p) r - alpha r^2. It exceeds its mean by
y with probability at most exp(-y^2 / (2 t^2 r^2)), where r is the outer radius. Shells far from the critical length hardly
ever matter. Proofs: proofs/excess_risk.md, theorem 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from confide.types import Array

_RATIO = 1.1
"""Ratio of the radii of a shell. Of 1.04, 1.07, 1.1, 1.15 and 1.2 it makes the smallest bounds, by up to 2%."""
_N_HALVINGS = 14


@dataclass(frozen=True, slots=True)
class Complexity:
    """The mean of the largest D(v), |v| <= r, in units of t r.

    Attributes
    ----------
    linear : by the part of the loss that is linear, where slopes have one sign
    convex : by symmetrisation and contraction of the rest
    """

    linear: float
    convex: float

    @classmethod
    def of(cls, n_outputs: int, *, is_monotone: bool) -> Complexity:
        """For several scores contraction costs a factor sqrt(2 o) (Maurer, 2016)."""
        if n_outputs > 1:
            return cls(0.0, 2.0 * math.sqrt(2.0 * n_outputs))
        return cls(0.5, 1.0) if is_monotone else cls(0.0, 2.0)


@dataclass(frozen=True, slots=True)
class RowDeviations:
    """Deviations of the mean loss of independent rows.

    Attributes
    ----------
    n_rows : int
    steepness : G, a bound on the norm of the gradient of the loss of a row
    complexity : Complexity
    """

    n_rows: int
    steepness: float
    complexity: Complexity

    @property
    def unit(self) -> float:
        """t = G / sqrt(n)."""
        return self.steepness / math.sqrt(self.n_rows)

    def slope(self, failure: float) -> float:
        """t (k + sqrt(2 log(1 / failure))): what D(v) / r exceeds in a ball of one radius r that rarely."""
        return self.unit * (self.complexity.linear + self.complexity.convex + math.sqrt(-2.0 * math.log(failure)))

    def excess(self, alpha: float, pull: float, failure: float) -> float:
        """A number T with D(v) <= T + alpha |v|^2 - pull |v| for all v, with probability at least 1 - failure.

        Parameters
        ----------
        alpha, pull : float, alpha positive
        failure : float, in (0, 1)
        """
        # (p + slope)^2 / (4 alpha) would suffice at the critical length alone.
        low, high = ((pull + self.slope(chance)) ** 2 / (4.0 * alpha) for chance in (1.0, failure * 1e-2))
        while self.chance(alpha, pull, high) > failure:
            high *= 2.0
        for _ in range(_N_HALVINGS):
            middle = math.sqrt(low * high)
            low, high = (low, middle) if self.chance(alpha, pull, middle) <= failure else (middle, high)
        return high

    def chance(self, alpha: float, pull: float, excess: float) -> float:
        """A bound on the probability that T = `excess` does not suffice: a sum over shells of |v|."""
        outer = self._shells(alpha, pull, excess)
        inner = outer / _RATIO
        contracted = self.complexity.convex * self.unit
        together = _largest(pull + contracted, alpha, inner, outer)
        apart = contracted * outer + _largest(pull, alpha, inner, outer)
        mean = self.complexity.linear * self.unit * outer + np.where(inner >= 0.5 * contracted / alpha, together, apart)
        beyond = np.maximum(0.0, excess - mean) / (self.unit * outer)
        return float(np.exp(-0.5 * beyond**2).sum())

    def _shells(self, alpha: float, pull: float, excess: float) -> Array:
        """Outer radii of the shells. Nearer to w0 and farther from it D(v) <= 2 G |v| suffices, whatever the rows are."""
        steepest = pull + 2.0 * self.steepness
        farthest, nearest = steepest / alpha, excess / steepest
        n_shells = max(1, math.ceil(math.log(farthest / nearest) / math.log(_RATIO)))
        return np.asarray(farthest * _RATIO ** -np.arange(n_shells, dtype=float))


def _largest(slope: float, alpha: float, inner: Array, outer: Array) -> Array:
    """The largest value of slope r - alpha r^2 for r in each shell."""
    radius = np.clip(0.5 * slope / alpha, inner, outer)
    return np.asarray(slope * radius - alpha * radius**2)
