"""Exact noise on a grid: the last step before weights leave.

Weights are rounded to multiples of a power of two. The noise is an integer multiple of that power, and its law is exactly a
discrete Laplace or Gaussian one. So the guarantee holds for the bits that leave. OpenDP confirms what each release costs.

Proof: proofs/lattice.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np

from confide.errors import NotCertified, ParameterError
from confide.privacy.discrete import discrete_gaussian, discrete_laplace
from confide.privacy.noise import Entropy
from confide.second_account import confirms
from confide.types import Weights

_UPWARDS = 1.0 + 2.0**-48
_SMOOTHING, _LEAST_DEVIATION = 6.0, 40.0
"""In grid steps: what the proof takes off the deviation of a discrete Gaussian, and the least deviation that it allows."""


def lattice_exponent(size: float, dimension: int) -> int:
    """k of the largest grid step 2^k <= size / (1000 sqrt(dimension)), or -1000 if that is larger.

    At this step rounding adds a thousandth to the size.
    """
    return math.frexp(max(size / (1000.0 * math.sqrt(dimension)), 2.0**-1000))[1] - 1


@dataclass(frozen=True, slots=True)
class LatticeNoise:
    """What both laws have in common.

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
        """Largest L2 distance after rounding. Rounding changes the difference of two numbers by at most a step."""
        # proofs/lattice.md, section 2, in the units of the weights.
        return (self.l2_sensitivity + math.sqrt(self.dimension) * self.step) * _UPWARDS

    @property
    def norm(self) -> float:
        """Root mean square of the L2 norm of the noise of one row of weights, rounded upwards."""
        return float(math.sqrt(self.dimension) * self.deviation * _UPWARDS)  # type: ignore[attr-defined]  # laws have it

    def integers(self, n: int, entropy: Entropy) -> Any:
        """(n,) independent draws of the noise, in grid steps: for `release`, which must get each of them once."""
        if entropy.is_secret and not confirms(self):
            raise NotCertified("OpenDP finds the noise less private than claimed, so nothing is released.")
        return _integers(self, n, entropy)

    def release(self, weights: Weights, entropy: Entropy, drawn: Any = None) -> Weights:
        """Weights (k, dimension) that may leave: multiples of the grid step, each row of weights with noise of its own.

        The noise is drawn here unless as many integers were `drawn` before.
        """
        # A product with a power of two is exact unless it overflows, and what overflows is refused.
        with np.errstate(over="ignore"):
            steps = np.rint(np.ldexp(weights, -self.exponent)).ravel()
        if not np.isfinite(steps).all():
            raise NotCertified("the weights are not finite, so nothing is released; what was charged stays charged.")
        noise = self.integers(steps.size, entropy) if drawn is None else drawn
        sums = [float(int(step) + z) for step, z in zip(steps.tolist(), noise, strict=True)]
        released: Weights = np.ldexp(np.array(sums), self.exponent).reshape(weights.shape)
        return released


@dataclass(frozen=True, slots=True)
class LatticeLaplace(LatticeNoise):
    """Independent discrete Laplace noise: a release of one row is `epsilon`-private."""

    epsilon: float

    @classmethod
    def of_l1(cls, dimension: int, l1_sensitivity: float, epsilon: float) -> Self:
        """The noise for numbers whose L1 distance is bounded, on a grid that adds a thousandth to the distance.

        The L2 sensitivity enters the scale only as sqrt(d) times its value. Where epsilon is large the grid is finer, so
        that it stays finer than the noise.
        """
        l2_sensitivity = l1_sensitivity / math.sqrt(dimension) * _UPWARDS
        exponent = lattice_exponent(l2_sensitivity / max(1.0, epsilon), dimension)
        return cls(dimension, exponent, l2_sensitivity, epsilon)

    @property
    def scale(self) -> float:
        """Scale of the law, in the units of the weights."""
        # proofs/lattice.md, section 3: L1 distances are at most sqrt(d) times L2 distances.
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
        """A release is as private for a row as continuous Gaussian noise of this many sensitivities; rounded downwards."""
        # proofs/lattice.md, section 4: s^2 - 36 in place of s^2, in grid steps.
        steps = self.deviation / self.step
        return math.sqrt(steps * steps - _SMOOTHING**2) * self.step / self.rounded_sensitivity / _UPWARDS


def _integers(noise: LatticeNoise, n: int, entropy: Entropy) -> Any:
    """Noise for n weights, in grid steps."""
    step = Fraction(2) ** noise.exponent
    if isinstance(noise, LatticeGaussian):
        return discrete_gaussian(Fraction(noise.deviation) / step, n, entropy)
    return discrete_laplace(Fraction(noise.scale) / step, n, entropy)  # type: ignore[attr-defined]  # the other law
