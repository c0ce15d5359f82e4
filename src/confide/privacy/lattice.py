"""Exact noise on a grid: the last step before weights leave.

Weights are rounded to multiples of a power of two, and get integer multiples of it as noise, whose law is exactly a
discrete Laplace or Gaussian one. So the guarantee holds for the very bits that leave. OpenDP draws the noise of releases;
noise from a seed, for tests, has the same laws.

Proof: proofs/lattice.md.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from confide.errors import NotCertified, ParameterError
from confide.privacy.noise import Entropy
from confide.types import Weights

_UPWARDS = 1.0 + 2.0**-48
_SMOOTHING, _LEAST_DEVIATION = 6.0, 40.0
"""In grid steps: what a discrete Gaussian has over a continuous one, and the least deviation that is proven for."""


def lattice_exponent(size: float, dimension: int) -> int:
    """k of the largest grid step 2^k <= size / (1000 sqrt(dimension)): rounding adds a thousandth to the sensitivity."""
    return max(-1000, math.frexp(size / (1000.0 * math.sqrt(dimension)))[1] - 1)


@dataclass(frozen=True, slots=True)
class LatticeNoise:
    """What both laws share.

    Parameters
    ----------
    dimension : number of weights of one problem
    exponent : k of the grid step 2^k
    l2_sensitivity : largest L2 distance of the weights of neighbours, before rounding
    """

    dimension: int
    exponent: int
    l2_sensitivity: float

    @property
    def step(self) -> float:
        """The grid step."""
        return math.ldexp(1.0, self.exponent)

    @property
    def rounded_sensitivity(self) -> float:
        """Largest L2 distance after rounding, which changes the difference of two numbers by at most a step."""
        # E.11, step 3, in the units of the weights.
        return (self.l2_sensitivity + math.sqrt(self.dimension) * self.step) * _UPWARDS

    @property
    def norm(self) -> float:
        """Root of the expected squared L2 norm of the noise of one row, rounded upwards."""
        return float(math.sqrt(self.dimension) * self.deviation * _UPWARDS)  # type: ignore[attr-defined]  # laws have it

    def release(self, weights: Weights, entropy: Entropy) -> Weights:
        """Weights (k, dimension) that may leave: multiples of the grid step, each row with noise of its own."""
        # First of all, since a sampler of integers may take NaN for a number.
        if not np.isfinite(weights).all():
            raise NotCertified("the weights are not finite, so nothing is released; what was charged stays charged.")
        draw = _from_opendp(self) if entropy.is_secret else functools.partial(_from_seed, self, entropy)
        return np.array([draw(row) for row in weights.tolist()])


@dataclass(frozen=True, slots=True)
class LatticeLaplace(LatticeNoise):
    """Independent discrete Laplace noise: a release of one row is `epsilon`-private."""

    epsilon: float

    @classmethod
    def of_l1(cls, dimension: int, l1_sensitivity: float, epsilon: float) -> Self:
        """The noise for weights whose L1 distance is bounded, on a grid that adds a thousandth to it.

        Of the L2 sensitivity nothing enters but sqrt(d) times it. The grid is finer than the noise where epsilon is large.
        """
        l2_sensitivity = l1_sensitivity / math.sqrt(dimension) * _UPWARDS
        exponent = lattice_exponent(l2_sensitivity / max(1.0, epsilon), dimension)
        return cls(dimension, exponent, l2_sensitivity, epsilon)

    @property
    def scale(self) -> float:
        """Scale of the law, in the units of the weights."""
        # E.11, step 4': L1 distances are at most sqrt(d) times L2 distances.
        return math.sqrt(self.dimension) * self.rounded_sensitivity / self.epsilon * _UPWARDS

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on one weight."""
        return math.sqrt(2.0) * self.scale


@dataclass(frozen=True, slots=True)
class LatticeGaussian(LatticeNoise):
    """Independent discrete Gaussian noise of a given deviation, at least 40 grid steps."""

    deviation: float

    def __post_init__(self) -> None:
        if not self.deviation >= _LEAST_DEVIATION * self.step:
            raise ParameterError("the deviation of Gaussian noise on a grid must be at least 40 grid steps.")

    @classmethod
    def of_multiplier(cls, dimension: int, exponent: int, l2_sensitivity: float, multiplier: float) -> Self:
        """The least noise of at least this `multiplier`; its `rho` is below 1 / (2 multiplier^2)."""
        grid = LatticeNoise(dimension, exponent, l2_sensitivity)
        deviation = math.hypot(multiplier * grid.rounded_sensitivity, _SMOOTHING * grid.step) * (1.0 + 2.0**-45)
        return cls(dimension, exponent, l2_sensitivity, max(deviation, _LEAST_DEVIATION * grid.step))

    @property
    def rho(self) -> float:
        """Zero-concentrated privacy of a release of one row, rounded upwards."""
        return (self.rounded_sensitivity / self.deviation) ** 2 / 2.0 * _UPWARDS

    @property
    def multiplier(self) -> float:
        """A row is as private as under continuous Gaussian noise of this many sensitivities, rounded downwards."""
        # proofs/lattice.md, section 4: s^2 - 36 in place of s^2, in grid steps.
        steps = self.deviation / self.step
        return math.sqrt(steps * steps - _SMOOTHING**2) * self.step / self.rounded_sensitivity / _UPWARDS


@functools.lru_cache(maxsize=16)
def _from_opendp(noise: LatticeNoise) -> Any:
    """OpenDP's measurement of one row. Its own account of the privacy must confirm ours."""
    # Imported here, and without opendp.prelude, because that is slow.
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    space: Any = domains.vector_domain(domains.atom_domain(T=float, nan=False), size=noise.dimension)
    if isinstance(noise, LatticeLaplace):
        measurement: Any = measurements.make_laplace(space, metrics.l1_distance(T=float), noise.scale, noise.exponent)
        distance, cost = math.sqrt(noise.dimension) * noise.l2_sensitivity, noise.epsilon
    elif isinstance(noise, LatticeGaussian):
        measurement = measurements.make_gaussian(space, metrics.l2_distance(T=float), noise.deviation, noise.exponent)
        distance, cost = noise.l2_sensitivity, noise.rho
    if not measurement.map(distance) <= cost:
        raise NotCertified("OpenDP finds the noise less private than claimed, so nothing is released.")
    return measurement


def _from_seed(noise: LatticeNoise, entropy: Entropy, row: list[float]) -> list[float]:
    """The same law, from the bits of `entropy`."""
    step = Fraction(2) ** noise.exponent
    if isinstance(noise, LatticeLaplace):
        draw = functools.partial(discrete_laplace, Fraction(noise.scale) / step, entropy)
    elif isinstance(noise, LatticeGaussian):
        draw = functools.partial(discrete_gaussian, Fraction(noise.deviation) / step, entropy)
    return [float((round(Fraction(weight) / step) + draw()) * step) for weight in row]


# Canonne, Kamath and Steinke (2020), algorithms 1 to 3: rational numbers and fair bits alone.


def bernoulli_exp(x: Fraction, entropy: Entropy) -> bool:
    """True with probability exp(-x)."""
    if x > 1:
        return bernoulli_exp(Fraction(1), entropy) and bernoulli_exp(x - 1, entropy)
    k = 1
    while entropy.below(k * x.denominator) < x.numerator:
        k += 1
    return k % 2 == 1


def discrete_laplace(scale: Fraction, entropy: Entropy) -> int:
    """An integer x with probability proportional to exp(-|x| / scale)."""
    while True:
        rest = entropy.below(scale.numerator)
        if not bernoulli_exp(Fraction(rest, scale.numerator), entropy):
            continue
        whole = 0
        while bernoulli_exp(Fraction(1), entropy):
            whole += 1
        size = (rest + scale.numerator * whole) // scale.denominator
        sign = 1 - 2 * entropy.below(2)
        if size > 0 or sign > 0:
            return sign * size


def discrete_gaussian(scale: Fraction, entropy: Entropy) -> int:
    """An integer x with probability proportional to exp(-x^2 / (2 scale^2))."""
    width = Fraction(math.floor(scale) + 1)
    while True:
        x = discrete_laplace(width, entropy)
        if bernoulli_exp((abs(x) - scale**2 / width) ** 2 / (2 * scale**2), entropy):
            return x
