"""How long noise is: from a point that does not depend on it, and along rows. For bounds before any data.

Noise of a ball, Laplace or Gaussian, is r u: u is uniform on the unit sphere of R^D and independent of r, whose law is
gamma or chi. So its quantiles are one-dimensional integrals. Proofs: proofs/excess_risk.md, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Protocol

import numpy as np
from scipy import optimize, special

from confide.planning.utility import lattice_quantile, noise_quantile
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise
from confide.privacy.mechanism import Noise
from confide.types import Array

_N_NODES, _TAIL = 64, 1e-10
"""Nodes of the integrals over r, and the probability at each end that they leave out."""
_RAREST = 1e-6
"""For rarer failures the integrals are not used, but sums of lengths."""
_SAFE = 0.999
"""Quantiles are taken at this share of the probability of failure: far more than the error of the integrals."""


class Lengths(Protocol):
    """Lengths that noise exceeds with a given probability of failure at most."""

    def from_point(self, distance: float, failure: float) -> float:
        """A bound on |p + s|, s the noise and p a fixed point at most this far from 0."""

    def along_rows(self, failure: float) -> float:
        """A bound on the root of the mean of (u . s)^2 over unit vectors u that do not depend on the noise."""


@dataclass(frozen=True, slots=True)
class Spherical:
    """Noise r u, u uniform on the unit sphere of `dimension` dimensions.

    Attributes
    ----------
    dimension : D
    law : "laplace", r is gamma(D), or "gaussian", r is chi with D degrees of freedom
    scale : by which r is multiplied
    """

    dimension: int
    law: str
    scale: float

    def from_point(self, distance: float, failure: float) -> float:
        """The exact quantile for a point at this distance; a nearer point has a smaller one (Anderson's theorem)."""
        return self.scale * _quantile_from_point(self.dimension, self.law, distance / self.scale, failure)

    def along_rows(self, failure: float) -> float:
        """The root of the mean of s_1^2 beyond its quantile; proofs/excess_risk.md, lemma 5."""
        return self.scale * _tail_mean(self.dimension, self.law, failure)


@dataclass(frozen=True, slots=True)
class OnGrid:
    """Exact noise on a grid, as near to its continuous law as a grid step in each coordinate.

    Attributes
    ----------
    lattice : LatticeNoise
    """

    lattice: LatticeNoise

    def from_point(self, distance: float, failure: float) -> float:
        """For Gaussian noise from the exact quantile; for Laplace noise the sum of both lengths."""
        if isinstance(self.lattice, LatticeGaussian):
            return self._spherical.from_point(distance, failure) + math.sqrt(self.lattice.dimension) * self.lattice.step
        scale, roots = float(self.lattice.scale), math.sqrt(self.lattice.dimension)  # type: ignore[attr-defined]
        by_entries = scale * _norm_of_exponentials(self.lattice.dimension, failure) + roots * self.lattice.step
        return distance + min(lattice_quantile(self.lattice, failure), by_entries)

    def along_rows(self, failure: float) -> float:
        """As for spherical noise. Squares of independent Laplace noise along any direction are no larger in this sense."""
        if isinstance(self.lattice, LatticeLaplace):
            # Beyond its quantile q = t log(1 / failure), the square of Laplace noise of scale t has the mean q^2 + 2 q t + 2
            # t^2.
            scale = float(self.lattice.scale)
            quantile = -scale * math.log(failure)
            return math.sqrt(quantile**2 + 2.0 * quantile * scale + 2.0 * scale**2) + self.lattice.step
        return self._spherical.along_rows(failure) + self.lattice.step

    @property
    def _spherical(self) -> Spherical:
        lattice: Any = self.lattice
        return Spherical(lattice.dimension, "gaussian", float(lattice.deviation))


@dataclass(frozen=True, slots=True)
class Shaped:
    """Noise of another shape than a ball: its length alone is used.

    Attributes
    ----------
    noise : Noise
    """

    noise: Noise

    def from_point(self, distance: float, failure: float) -> float:
        return distance + noise_quantile(self.noise, failure)

    def along_rows(self, failure: float) -> float:
        return noise_quantile(self.noise, failure)


def lengths_of(noise: Noise) -> Lengths:
    """The lengths of continuous noise."""
    if noise.shape.name != "ball":
        return Shaped(noise)
    size = noise.shape.scales[0] / noise.scale if noise.law == "laplace" else noise.shape.gaussian_deviations(noise.scale)[0]
    return Spherical(noise.shape.dimension, noise.law, size)


@lru_cache(maxsize=4096)
def _quantile_from_point(dimension: int, law: str, shift: float, failure: float) -> float:
    """The quantile of |p + r u| for |p| = shift."""
    longest = _longest(dimension, law, _SAFE * failure)
    if shift == 0.0 or failure < _RAREST:
        return shift + longest

    def excess_chance(t: float) -> float:
        # |p + r u| > t where u_1 > (t^2 - |p|^2 - r^2) / (2 |p| r): never and always beyond two values of r.
        radius, mass = _nodes(dimension, law, abs(t - shift), t + shift)
        cosine = ((t - shift) * (t + shift) - radius * radius) / (2.0 * shift * radius)
        between = float(mass @ (1.0 - _cosine_below(np.clip(cosine, -1.0, 1.0), dimension)))
        always = _chance_beyond(dimension, law, t + shift)
        if t < shift:
            always += 1.0 - _chance_beyond(dimension, law, shift - t)
        return always + between - _SAFE * failure

    # At most the sum of the lengths; at least the quantile for a point at 0, and almost that of a step back.
    return _least(excess_chance, max(0.0, shift - longest), shift + longest)


@lru_cache(maxsize=4096)
def _tail_mean(dimension: int, law: str, failure: float) -> float:
    """The root of E[s_1^2 | |s_1| beyond its quantile], or the quantile of |s| if that is less."""
    chance = _SAFE * failure
    longest = _longest(dimension, law, chance)
    if failure < _RAREST:
        return longest

    def beyond(q: float, power: int) -> float:
        """E[s_1^(2 power); |s_1| > q]."""
        radius, mass = _nodes(dimension, law, q, math.inf)
        return float((mass * radius ** (2 * power)) @ _squared_cosine_beyond((q / radius) ** 2, dimension, power))

    quantile = _least(lambda q: beyond(q, 0) - chance, 0.0, longest)
    return min(longest, math.sqrt(beyond(quantile, 1) / chance))


def _norm_of_exponentials(dimension: int, failure: float) -> float:
    """A bound on the L2 norm of independent standard exponentials: proofs/excess_risk.md, lemma 6."""
    most, rarely = math.log(2.0 * dimension / failure), math.log(2.0 / failure)
    # Squares have mean 2 and variance 20, and their means are no larger where they are cut.
    return math.sqrt(2.0 * dimension + math.sqrt(40.0 * dimension * rarely) + most**2 * rarely / 3.0)


def _longest(dimension: int, law: str, failure: float) -> float:
    """The quantile of r at scale 1."""
    if law == "laplace":
        return float(special.gammainccinv(dimension, failure))
    return math.sqrt(2.0 * float(special.gammainccinv(0.5 * dimension, failure)))


def _chance_beyond(dimension: int, law: str, length: float) -> float:
    """P(r > length) at scale 1."""
    if law == "laplace":
        return float(special.gammaincc(dimension, length))
    return float(special.gammaincc(0.5 * dimension, 0.5 * length**2))


def _nodes(dimension: int, law: str, low: float, high: float) -> tuple[Array, Array]:
    """Nodes and weights for means over r between two values, where a root may begin at either: r is linear in a sine."""
    sines, weights, least, most, constant = _rule(dimension, law)
    low, high = max(low, least), max(low, least, min(high, most))
    half = 0.5 * (high - low)
    radius = low + half * (1.0 + sines)
    exponent = radius if law == "laplace" else 0.5 * radius**2
    return radius, half * weights * np.exp((dimension - 1.0) * np.log(radius) - exponent - constant)


@cache
def _rule(dimension: int, law: str) -> tuple[Array, Array, float, float, float]:
    """Gauss and Legendre's rule in the angle; the ends of the law of r, and the logarithm of the constant of its density."""
    angles, weights = np.polynomial.legendre.leggauss(_N_NODES)
    angles, weights = 0.5 * math.pi * angles, 0.5 * math.pi * weights
    shape = dimension if law == "laplace" else 0.5 * dimension
    ends = float(special.gammaincinv(shape, _TAIL)), float(special.gammainccinv(shape, _TAIL))
    constant = float(special.gammaln(shape))
    if law != "laplace":
        ends = math.sqrt(2.0 * ends[0]), math.sqrt(2.0 * ends[1])
        constant += (shape - 1.0) * math.log(2.0)
    return np.sin(angles), weights * np.cos(angles), *ends, constant


def _cosine_below(cosine: Array, dimension: int) -> Array:
    """P(u_1 <= c), u uniform on the unit sphere."""
    side = np.where(cosine < 0.0, -1.0, 1.0)
    return 0.5 * (1.0 + side * (1.0 - _squared_cosine_beyond(cosine**2, dimension, 0)))


def _squared_cosine_beyond(square: Array, dimension: int, power: int) -> Array:
    """E[u_1^(2 power); u_1^2 > square] for a power of 0 or 1. u_1^2 has the beta law of (1 / 2, (D - 1) / 2)."""
    if dimension == 1:
        return np.asarray(square < 1.0, dtype=float)
    share = 1.0 if power == 0 else 1.0 / dimension
    beyond: Array = share * special.betaincc(0.5 + power, 0.5 * (dimension - 1), np.minimum(1.0, square))
    return beyond


def _least(excess_chance: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function passes 0, from above, to a relative error of 1e-4. The upper end is never too small."""
    if excess_chance(low) <= 0.0:
        return low
    if excess_chance(high) >= 0.0:
        return high
    root = optimize.brentq(excess_chance, low, high, xtol=1e-12 * high, rtol=5e-5)
    return float(root) * (1.0 + 1e-4)
