"""Exact noise on a grid: the last step before weights leave.

Weights are rounded to multiples of a power of two. The noise is an integer multiple of that power, and its law is exactly a
discrete Laplace or Gaussian one. So the guarantee holds for the bits that leave. Where OpenDP is installed,
it is asked what each release costs, and can only refuse.

Proof: proofs/lattice.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from confide.array_types import Array, Weights
from confide.errors import NotCertified, ParameterError
from confide.privacy.noise import Entropy
from confide.second_account import denies

# Exact discrete noise, many integers at once. Proof: proofs/lattice.md, section 5.
#
# An event of probability p happens where a uniform number is below p. The first 16 bits of that number decide, unless they
# nearly equal the first 16 bits of p. Then further bits are compared with digits of p, which decimal arithmetic computes
# with enough precision. So floating point never decides an event that it could decide wrongly.

_MARGIN = 1.5
"""In units of the last of 16 bits. It is far above the error of a probability in doubles; few events need more bits."""


def bernoulli_exp(x: Fraction, entropy: Entropy) -> bool:
    """True with probability exp(-x)."""
    return _is_below(0, 0, x, False, entropy)


def discrete_laplace(scale: Fraction, n: int, entropy: Entropy) -> Any:
    """(n,) Python integers, independent, x with probability proportional to exp(-|x| / scale)."""
    numbers = _geometric(scale, 2 * n, entropy)
    return numbers[:n] - numbers[n:]


def discrete_gaussian(scale: Fraction, n: int, entropy: Entropy) -> Any:
    """(n,) Python integers, independent, x with probability proportional to exp(-x^2 / (2 scale^2))."""
    # Canonne, Kamath and Steinke (2020), algorithm 3.
    width = Fraction(math.floor(scale) + 1)
    values, left, centre = np.zeros(n, dtype=object), np.arange(n), scale**2 / width
    while left.size:
        sizes = np.abs(drawn := discrete_laplace(width, left.size, entropy))
        near = np.exp(-0.5 * ((sizes.astype(np.float64) - float(centre)) / float(scale)) ** 2)
        kept = _events(near, lambda i: (sizes[i] - centre) ** 2 / (2 * scale**2), False, (left.size,), entropy)  # noqa: B023
        values[left[kept]], left = drawn[kept], left[~kept]
    return values


def _geometric(scale: Fraction, n: int, entropy: Entropy) -> Any:
    """(n,) independent Python integers that are at least x with probability exp(-x / scale).

    Their binary digits are independent.
    """
    n_digits = math.ceil(scale).bit_length()
    largest = 2**n_digits / scale
    # Probabilities of digits whose exponent is too small for a double are 1/2 to all the digits that a double has.
    near = np.exp(-np.ldexp(float(largest), np.arange(-n_digits, 0)))[:, None]
    # Entry i of all digits is number i % n of digit i // n.
    digits = _events(near / (1.0 + near), lambda i: 2 ** (i // n) / scale, True, (n_digits, n), entropy)
    packed, size = np.packbits(digits, axis=0, bitorder="little").T.tobytes(), -(-n_digits // 8)
    numbers = np.array([int.from_bytes(packed[i : i + size], "little") for i in range(0, n * size, size)], dtype=object)
    going = np.arange(n)
    while going.size:
        going = going[_events(math.exp(-float(largest)), lambda _: largest, False, (going.size,), entropy)]
        numbers[going] += 1 << n_digits
    return numbers


def _events(
    near: Array | float, exponent: Callable[[int], Fraction], odds: bool, shape: tuple[int, ...], entropy: Entropy
) -> Any:
    """An array of independent events of probability p = exp(-x), or of these odds, p = exp(-x) / (1 + exp(-x)).

    x = exponent(i) for entry i of the flat array, and `near`, which is broadcast to the shape, is p in doubles.
    """
    words = np.frombuffer(entropy.read(2 * math.prod(shape)), dtype="<u2").reshape(shape)
    threshold = 2.0**16 * near
    events = words < threshold
    undecided = (words > threshold - _MARGIN) & (words < threshold + _MARGIN)
    for i in undecided.ravel().nonzero()[0].tolist():
        events.flat[i] = _is_below(int(words.flat[i]), 16, exponent(i), odds, entropy)
    return events


def _is_below(word: int, n_bits: int, x: Fraction, odds: bool, entropy: Entropy) -> bool:
    """Whether a uniform number is below p, given its first bits."""
    while word == (whole := _first_bits(x, odds, n_bits)):
        word, n_bits = (word << 32) + int.from_bytes(entropy.read(4), "little"), n_bits + 32
    return word < whole


def _first_bits(x: Fraction, odds: bool, n_bits: int) -> int:
    """The whole part of 2^n_bits p."""
    if x == 0:
        return 1 << n_bits
    size = len(str(math.floor(x)))
    precision = n_bits + size
    while True:
        precision += 20
        with localcontext(Context(prec=precision, Emin=MIN_EMIN, Emax=MAX_EMAX)):
            probability = (Decimal(-x.numerator) / Decimal(x.denominator)).exp()
            probability = (1 << n_bits) * (probability / (1 + probability) if odds else probability)
            error = probability.scaleb(size + 3 - precision)
            low, high = math.floor(probability - error), math.floor(probability + error)
        if low == high:
            return low


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

    Attributes
    ----------
    law : "laplace" or "gaussian"
    deviation : standard deviation of the noise on one weight
    step : the grid step
    rounded_sensitivity : largest L2 distance after rounding, which changes the difference of two numbers by at most a step
    """

    dimension: int
    exponent: int
    l2_sensitivity: float
    step: float = field(init=False, compare=False, repr=False)
    rounded_sensitivity: float = field(init=False, compare=False, repr=False)

    law: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "step", math.ldexp(1.0, self.exponent))
        # proofs/lattice.md, section 2, in the units of the weights.
        longest = (self.l2_sensitivity + math.sqrt(self.dimension) * self.step) * _UPWARDS
        object.__setattr__(self, "rounded_sensitivity", longest)

    @property
    def norm(self) -> float:
        """Root mean square of the L2 norm of the noise of one row of weights, rounded upwards."""
        return float(math.sqrt(self.dimension) * self.deviation * _UPWARDS)  # type: ignore[attr-defined]  # laws have it

    def integers(self, n: int, entropy: Entropy) -> Any:
        """(n,) independent draws of the noise, in grid steps: for `release`, which must get each of them once."""
        if entropy.is_secret and denies(self):
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
        return np.asarray(np.ldexp(np.array(sums), self.exponent).reshape(weights.shape))


@dataclass(frozen=True, slots=True)
class LatticeLaplace(LatticeNoise):
    """Independent discrete Laplace noise: a release of one row is `epsilon`-private.

    Attributes
    ----------
    scale : scale of the law, in the units of the weights
    """

    epsilon: float
    scale: float = field(init=False, compare=False, repr=False)
    deviation: float = field(init=False, compare=False, repr=False)

    law = "laplace"

    def __post_init__(self) -> None:
        LatticeNoise.__post_init__(self)
        # proofs/lattice.md, section 3: L1 distances are at most sqrt(d) times L2 distances.
        scale = math.sqrt(self.dimension) * self.rounded_sensitivity / self.epsilon * _UPWARDS
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "deviation", math.sqrt(2.0) * scale)

    @classmethod
    def of_l1(cls, dimension: int, l1_sensitivity: float, epsilon: float) -> Self:
        """The noise for numbers whose L1 distance is bounded, on a grid that adds a thousandth to the distance.

        The L2 sensitivity enters the scale only as sqrt(d) times its value. Where epsilon is large the grid is finer, so
        that it stays finer than the noise.
        """
        l2_sensitivity = l1_sensitivity / math.sqrt(dimension) * _UPWARDS
        return cls(dimension, lattice_exponent(l2_sensitivity / max(1.0, epsilon), dimension), l2_sensitivity, epsilon)


@dataclass(frozen=True, slots=True)
class LatticeGaussian(LatticeNoise):
    """Independent discrete Gaussian noise of a given deviation, at least 40 grid steps."""

    deviation: float

    law = "gaussian"

    def __post_init__(self) -> None:
        LatticeNoise.__post_init__(self)
        if not self.deviation >= _LEAST_DEVIATION * self.step:
            raise ParameterError("the deviation of Gaussian noise on a grid must be at least 40 grid steps.")

    @classmethod
    def of_mu(cls, dimension: int, l2_sensitivity: float, mu: float) -> Self:
        """Noise that costs one row no more than a Gaussian mechanism of this mu. The grid stays finer than the noise."""
        exponent = lattice_exponent(l2_sensitivity / max(1.0, mu), dimension)
        return cls.of_multiplier(dimension, exponent, l2_sensitivity, 1.0 / mu)

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
