"""Numbers between 0 and 1 as shares of a few cells, whose sums give means, squares and further powers.

The shares of a number x are those of the binomial law: the chance of j successes in d trials, each with chance x (the
polynomials of Bernstein). They are not negative and add up to 1, so a row that is spread over cells changes a release no
more than one that lies in a single cell. Every polynomial of degree at most d in x is a weighted sum of its shares.
"""

from __future__ import annotations

import math

import numpy as np

from confide.types import Array


def shares_of(values: Array, degree: int) -> Array:
    """The shares (n, degree + 1) of numbers (n,), which are clipped to [0, 1]. A missing number counts as 0.

    Each entry is made of its own number alone, by operations that NumPy applies to each entry by itself.
    """
    x = np.clip(np.where(np.isnan(values), 0.0, values), 0.0, 1.0)
    shares = np.ones((degree + 1, x.size))
    for trial in range(1, degree + 1):
        # After each trial the number of successes is that of before, or one more.
        before = shares[:trial].copy()
        shares[:trial] = (1.0 - x) * before
        shares[trial] = 0.0
        shares[1 : trial + 1] += x * before
    return np.ascontiguousarray(shares.T)


def products_of(first: Array, second: Array) -> Array:
    """The shares (n, a * b) of pairs of numbers, from those of each: (n, a) and (n, b). The second runs fastest."""
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def weights_of_power(power: int, degree: int) -> Array:
    """The weights (degree + 1,) with which the shares of x add up to x^power; power is at most degree."""
    return np.array([math.comb(j, power) / math.comb(degree, power) for j in range(degree + 1)])


def weights_of_polynomial(coefficients: tuple[float, ...], degree: int) -> Array:
    """The same for a polynomial: its coefficients, from that of x^0 on."""
    powers = [each * weights_of_power(power, degree) for power, each in enumerate(coefficients)]
    return np.asarray(np.sum(powers, axis=0))
