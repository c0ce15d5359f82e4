"""Shapes of noise for rows whose columns fall into groups. Proof: proofs/noise.md."""

from __future__ import annotations

import functools
import itertools
import math
import operator

import numpy as np

from confide.errors import ParameterError
from confide.privacy.shapes import Shape
from confide.types import Array

_UNIT = 2.0**-53
_MOST_EXACT = 300
"""Mean squares of so many levels are quotients of whole numbers. Those of more are made of doubles, which is faster."""


class Groups(Shape):
    """Rows whose L1 norm in each group is at most its scale: |b|_K is the largest of |b_g|_1 / s_g."""

    __slots__ = ()
    name = "groups"
    laplace_error = 32.0 * _UNIT

    def __init__(self, sizes: tuple[int, ...], scales: tuple[float, ...]) -> None:
        super().__init__(sizes, scales, (False,) * len(sizes))


class Linked(Shape):
    """Rows as in `Groups` that have exactly one active level in each linked group, and a constant as the last group.

    These rows lie in V = {b : sum of b_g / s_g equals b_0 / s_0 for each linked g}, where b_0 is the last coordinate, and so
    does the noise. A linked group of one column would be constant, so it is not treated as linked.
    """

    __slots__ = ()
    name = "linked"
    laplace_error = 54.0 * _UNIT

    def __init__(self, sizes: tuple[int, ...], scales: tuple[float, ...], linked: tuple[bool, ...]) -> None:
        if sizes[-1] != 1 or linked[-1]:
            raise ParameterError("linked groups need the intercept as the last group, itself not linked.")
        super().__init__(sizes, scales, tuple(flag and size > 1 for size, flag in zip(sizes, linked, strict=True)))

    @property
    def levels(self) -> tuple[int, ...]:
        """Number of levels after the first, of each linked group."""
        return tuple(size - 1 for size, linked in zip(self.sizes, self.linked, strict=True) if linked)

    def solid_mean_square(self) -> float:
        constant, sections = _section_mean_squares(self.levels)
        squares = [
            sections[size - 1] if linked else 2.0 * size / ((size + 1) * (size + 2))
            for size, linked in zip(self.sizes, self.linked, strict=True)
        ]
        squares[-1] = constant
        return math.fsum(scale**2 * square for scale, square in zip(self.scales, squares, strict=True))


def moments_of_groups(shape: Shape) -> list[tuple[float, float]]:
    """For each group the variance of an entry of U, and the covariance of two; U is uniform in the unit ball of the norm."""
    constant, sections = _section_mean_squares(shape.levels) if isinstance(shape, Linked) else (0.0, {})
    found = []
    for size, scale, linked in zip(shape.sizes, shape.scales, shape.linked, strict=True):
        own, shared = 2.0 / ((size + 1) * (size + 2)), 0.0
        if linked:
            # The entries add up to that of the constant.
            own = sections[size - 1] / size
            shared = (constant - size * own) / (size * (size - 1))
        found.append((scale**2 * own, scale**2 * shared))
    if isinstance(shape, Linked):
        found[-1] = (shape.scales[-1] ** 2 * constant, 0.0)
    return found


@functools.lru_cache(maxsize=64)
def cell_counts(levels: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Entry [i][J]: the sum of the products of binomial(n_g, j_g)^2 over j_1 + ... + j_i = J; n_g are the `levels`."""
    counts: list[tuple[int, ...]] = [(1,)]
    for n in levels:
        row = [0] * (len(counts[-1]) + n)
        for j, square in enumerate(binomial_squares(n)):
            for total, count in enumerate(counts[-1], start=j):
                row[total] += square * count
        counts.append(tuple(row))
    return tuple(counts)


@functools.lru_cache(maxsize=64)
def cell_weights(levels: tuple[int, ...]) -> tuple[int, ...]:
    """Entry J: the weight of J levels with positive noise out of N, which is J! (N - J)! times the last counts."""
    factorials = list(itertools.accumulate(range(1, sum(levels) + 1), operator.mul, initial=1))
    return tuple(a * b * c for a, b, c in zip(factorials, factorials[::-1], cell_counts(levels)[-1], strict=True))


def binomial_squares(n: int) -> list[int]:
    """binomial(n, j)^2 for j = 0 to n."""
    return [math.comb(n, j) ** 2 for j in range(n + 1)]


@functools.lru_cache(maxsize=64)
def _section_mean_squares(levels: tuple[int, ...]) -> tuple[float, dict[int, float]]:
    """E U_0^2, and E |U_g|_2^2 for a linked group of n levels after the first, by n; at scales of 1.

    U_0 = 2t - 1 and U_g = t p - (1 - t) q with t ~ Beta(J + 1, N - J + 1) and p, q uniform in simplices of j + 1 and
    n - j + 1 vertices, one of them common. E p_i^2 = 2 / ((j + 1)(j + 2)); p and q change places with j and n - j.
    """
    if sum(levels) > _MOST_EXACT:
        return _section_mean_squares_of_doubles(levels)
    weights, counts, n_levels = cell_weights(levels), cell_counts(levels)[-1], sum(levels)
    total = sum(weights) * (n_levels + 2) * (n_levels + 3)
    mixed = sum(weight * (J + 1) * (n_levels - J + 1) for J, weight in enumerate(weights)) / total
    sections = {}
    for n in set(levels):
        squares, others = binomial_squares(n), list[int]()
        for count in counts[: n_levels - n + 1]:  # divides the polynomial of all groups by that of this group
            others.append(count - sum(a * b for a, b in zip(squares[1:], reversed(others), strict=False)))
        sections[n] = math.fsum(
            square * other * (weights[J := i + j] // counts[J]) * (J + 1) / total
            * (4.0 * (J + 2) / (j + 2) - 2.0 * (n_levels - J + 1) / ((j + 1) * (n - j + 1)))
            for j, square in enumerate(squares) for i, other in enumerate(others)
        )  # fmt: skip
    return 1.0 - 4.0 * mixed, sections


def _section_mean_squares_of_doubles(levels: tuple[int, ...]) -> tuple[float, dict[int, float]]:
    """The same to within about 1e-11 of themselves. Choices and forecasts are made of it, and no draw of noise."""
    n_levels = sum(levels)
    powers = [_scaled_squares(n) for n in levels]
    before = list(itertools.accumulate(powers, np.convolve, initial=np.ones(1)))
    after = list(itertools.accumulate(reversed(powers), np.convolve, initial=np.ones(1)))[::-1]
    # J! (N - J)!, as a share of that in the middle, is 1 / binomial(N, J).
    steps = np.arange(n_levels)
    of_total = np.concatenate([[0.0], np.cumsum(np.log(steps + 1.0) - np.log(n_levels - steps))])
    of_total -= of_total[n_levels // 2]
    J = np.arange(n_levels + 1.0)
    chances = np.exp(_logs(before[-1]) + of_total)
    total = float(chances.sum()) * (n_levels + 2) * (n_levels + 3)
    mixed = float((chances * (J + 1.0) * (n_levels - J + 1.0)).sum()) / total
    sections = {}
    for g, n in enumerate(levels):
        if n in sections:
            continue
        others = np.convolve(before[g], after[g + 1])
        j = np.arange(n + 1.0)[:, None]
        both = np.arange(n + 1)[:, None] + np.arange(others.size)[None]
        weights = np.exp(_logs(powers[g])[:, None] + _logs(others)[None] + of_total[both]) * (both + 1.0)
        of_cells = 4.0 * (both + 2.0) / (j + 2.0) - 2.0 * (n_levels - both + 1.0) / ((j + 1.0) * (n - j + 1.0))
        sections[n] = float((weights * of_cells).sum()) / total
    return 1.0 - 4.0 * mixed, sections


def _scaled_squares(n: int) -> Array:
    """binomial(n, j)^2 for j = 0 to n, as shares of their sum."""
    steps = np.arange(n)
    logs = np.concatenate([[0.0], np.cumsum(np.log(n - steps) - np.log(steps + 1.0))])
    squares = np.exp(2.0 * (logs - logs.max()))
    shares: Array = squares / squares.sum()
    return shares


def _logs(shares: Array) -> Array:
    with np.errstate(divide="ignore"):
        found: Array = np.log(shares)
    return found
