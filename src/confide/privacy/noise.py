"""All randomness of the package, drawn from a closed list of shapes.

Every number is made from a stream of random bits by maps whose relative error is proven
(proofs/noise.md), so that a draw is the rounded form of one with the exact law. The stream is the operating system's
generator. A seeded stream exists for tests; whoever knows the seed knows the noise.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from confide.types import Array, Weights

_WORD_BITS = 64
_LN2 = math.log(2.0)

LOG_FAILURE = -200.0 * math.log(2.0)
"""Logarithm of the probability, before the factor exp(-epsilon), that a draw exceeds its public bound (see below)."""

LARGEST_PROVEN_EPSILON = 190.0
"""Above it the probability of underflow in a draw, which no budget changes, exceeds what the proofs allow for."""

RELATIVE_ERROR = 50.0 * 2.0**-53
"""Bound on |computed draw - exact draw| / |exact draw| in L2 norm (proofs/noise.md)."""


@dataclass(frozen=True, slots=True)
class Entropy:
    """A stream of random bits and the shapes of noise that are made from it.

    Use `Entropy.fresh` for releases and `Entropy.seeded` for tests.
    """

    read: Callable[[int], bytes] = field(repr=False)
    """read(n) gives n independent uniform bytes."""
    is_secret: bool
    """False if the bits can be known in advance."""

    @classmethod
    def fresh(cls) -> Entropy:
        """The operating system's generator: unpredictable, and never the same twice."""
        return cls(read=secrets.token_bytes, is_secret=True)

    @classmethod
    def seeded(cls, seed: int) -> Entropy:
        """A reproducible stream. It protects nobody: the guarantee of what is drawn from it is void."""
        return cls(read=np.random.Generator(np.random.Philox(seed)).bytes, is_secret=False)

    def spherical_laplace(self, n_problems: int, dimension: int, rate: float) -> Weights:
        """Draws (n_problems, dimension) with density proportional to exp(-rate |b|), b in R^dimension, independent by row.

        |b| is Gamma(dimension) with scale 1 / rate, and b / |b| is uniform on the sphere. Chaudhuri, Monteleoni and Sarwate
        (2011), section 3. Proof: proofs/noise.md.
        """
        draws = np.empty((n_problems, dimension))
        for problem in range(n_problems):
            radius = math.fsum(self._exponential() for _ in range(dimension)) / rate
            direction = self._normal(dimension)
            length = math.sqrt(math.fsum(x * x for x in direction))
            draws[problem] = [radius * (x / length) for x in direction]
        return draws

    def _word(self) -> int:
        return int.from_bytes(self.read(_WORD_BITS // 8), "little")

    def _leading_zeros(self) -> int:
        """Zeros before the first one in a stream of fair bits: geometric with success probability 1/2, unbounded."""
        zeros = 0
        while (word := self._word()) == 0:
            zeros += _WORD_BITS
        return zeros + _WORD_BITS - word.bit_length()

    def _uniform(self) -> float:
        """Uniform in (0, 1) with 53 significant bits whatever its size, so that small values lose no precision."""
        return math.ldexp(2**52 + (self._word() >> 12), -53 - self._leading_zeros())

    def _exponential(self) -> float:
        """Standard exponential: quotient by ln 2 (geometric) and remainder are independent.

        Minus the logarithm of a uniform would have an absolute error only, which ruins small draws.
        """
        return self._leading_zeros() * _LN2 - math.log1p(-0.5 * self._uniform())

    def _sign(self) -> float:
        return 1.0 if self._word() & 1 else -1.0

    def _normal(self, dimension: int) -> Array:
        """Independent standard normals, in pairs by radius and angle; the quadrant comes from the signs."""
        normals: list[float] = []
        while len(normals) < dimension:
            radius = math.sqrt(2.0 * self._exponential())
            angle = 0.5 * math.pi * self._uniform()
            # An odd last coordinate takes the sine: a cosine loses relative precision near a right angle.
            normals += [self._sign() * radius * math.sin(angle), self._sign() * radius * math.cos(angle)]
        return np.array(normals[:dimension])


def spherical_laplace_bound(dimension: int, rate: float, epsilon: float) -> float:
    """A norm that a spherical Laplace draw exceeds with probability at most p = 2^-200 exp(-epsilon).

    A mechanism whose proof fails on such a draw is (epsilon, (1 + exp(epsilon)) p)-private, and (1 + exp(epsilon)) p is
    at most 2^-199. With underflow counted, that holds up to LARGEST_PROVEN_EPSILON.

    For G ~ Gamma(d): E exp(G / 2) = 2^d, so Pr[G > 2 (d ln 2 + ln(1/p))] <= p, and 2 ln 2 < 1.4.
    """
    return (1.4 * dimension + 2.0 * (epsilon - LOG_FAILURE)) / rate
