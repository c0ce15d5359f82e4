"""Exact discrete noise, many integers at once. Proof: proofs/lattice.md, section 5.

An event of probability p happens where a uniform number is below p. The first 16 bits of that number decide, unless they
nearly equal the first 16 bits of p. Then further bits are compared with digits of p, which decimal arithmetic computes with
enough precision. So floating point never decides an event that it could decide wrongly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from confide.privacy.noise import Entropy
from confide.types import Array

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
    found, left, centre = np.zeros(n, dtype=object), np.arange(n), scale**2 / width
    while left.size:
        sizes = np.abs(drawn := discrete_laplace(width, left.size, entropy))
        near = np.exp(-0.5 * ((sizes.astype(np.float64) - float(centre)) / float(scale)) ** 2)
        kept = _events(near, lambda i: (sizes[i] - centre) ** 2 / (2 * scale**2), False, (left.size,), entropy)  # noqa: B023
        found[left[kept]], left = drawn[kept], left[~kept]
    return found


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
            found = (Decimal(-x.numerator) / Decimal(x.denominator)).exp()
            found = (1 << n_bits) * (found / (1 + found) if odds else found)
            error = found.scaleb(size + 3 - precision)
            low, high = math.floor(found - error), math.floor(found + error)
        if low == high:
            return low
