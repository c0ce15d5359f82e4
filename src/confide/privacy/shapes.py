"""Shapes of noise: what a public bound on rows allows. Pure mathematics, without randomness and without data.

A shape is a norm |.|_K in which every clipped row, its intercept constant included as the last coordinate, has |x|_K <= 1.
Laplace noise of a shape has density proportional to exp(-rate |b|_K); Gaussian noise has the least total variance among
those in which a row is at most 1 / scale standard deviations long. `confide.privacy.noise` draws both.

Proof: proofs/noise.md.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from dataclasses import dataclass
from typing import ClassVar

from confide.erm.row_bounds import GroupBound, RowBound, norm_with_intercept
from confide.errors import ParameterError

_UNIT = 2.0**-53
_UPWARDS = 1.0 + 2.0**-45


@dataclass(frozen=True, slots=True)
class Shape:
    """Consecutive groups of columns. `Ball`, `Groups` and `Linked` say what a row may be in them.

    Parameters
    ----------
    sizes : number of columns of each group
    scales : largest norm of each group
    linked : whether the entries of a row in this group always add up to its scale
    """

    sizes: tuple[int, ...]
    scales: tuple[float, ...]
    linked: tuple[bool, ...]

    name: ClassVar[str]
    laplace_error: ClassVar[float]
    """Bound on |computed draw - exact draw|_2 over `laplace_bound`."""

    @property
    def dimension(self) -> int:
        """D, number of coordinates."""
        return sum(self.sizes)

    @property
    def free_dimension(self) -> int:
        """Dimension of the space the noise lives in: each linked group costs one."""
        return self.dimension - sum(self.linked)

    @property
    def l2_norm(self) -> float:
        """R_2: no clipped row is longer, rounded upwards."""
        return math.sqrt(math.fsum(scale * scale for scale in self.scales)) * (1.0 + 2.0**-50)

    def solid_mean_square(self) -> float:
        """E |U|_2^2 for U uniform in the unit ball of the norm."""
        # E.14: one cross-polytope for each group.
        pairs = zip(self.sizes, self.scales, strict=True)
        return math.fsum(2.0 * scale**2 * size / ((size + 1) * (size + 2)) for size, scale in pairs)

    def laplace_norm(self, rate: float) -> float:
        """Root of E |b|_2^2 under the Laplace law: b = r U / rate with r ~ Gamma(d + 1), d the free dimension."""
        d = self.free_dimension
        return math.sqrt((d + 1) * (d + 2) * self.solid_mean_square()) / rate

    def laplace_bound(self, rate: float, log_failure: float) -> float:
        """b_max: |b|_2 is longer with probability at most exp(log_failure).

        |b|_2 <= R_2 G / rate with G ~ Gamma(m) and m the free dimension plus one; E exp(G / 2) = 2^m, and 2 ln 2 < 1.4.
        """
        return self.l2_norm * (1.4 * (self.free_dimension + 1) - 2.0 * log_failure) / rate

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """(rho, m), one a group: orthogonal subspaces of dimension m in which no row is longer than rho.

        A linked group is centred. The piece of the last group is the direction that it shares with all linked ones.
        """
        # E.14: (s_g sqrt(1 - 1/k_g), k_g - 1) if linked, (s_g, k_g) otherwise; |c|^2 = s_0^2 + sum of s_g^2 / k_g.
        groups = list(zip(self.sizes, self.scales, self.linked, strict=True))
        shared = math.fsum(scale**2 / size for size, scale, linked in groups if linked) + self.scales[-1] ** 2
        own = [(scale * math.sqrt(1.0 - linked / size), size - linked) for size, scale, linked in groups[:-1]]
        return (*own, (math.sqrt(shared), self.sizes[-1]))

    def gaussian_norm(self, scale: float) -> float:
        """Root of E |b|_2^2 under the Gaussian law."""
        return scale * math.fsum(rho * math.sqrt(m) for rho, m in self.pieces)

    def gaussian_deviations(self, scale: float) -> tuple[float, ...]:
        """A deviation t for each piece, rounded upwards: the sum of (rho / t)^2 is at most 1 / scale^2."""
        # E.14, least total variance: t_i^2 = scale^2 (sum_j rho_j sqrt(m_j)) rho_i / sqrt(m_i).
        total = self.gaussian_norm(1.0)
        return tuple(scale * math.sqrt(total * rho / math.sqrt(m)) * _UPWARDS for rho, m in self.pieces)

    def gaussian_bound(self, scale: float, log_failure: float) -> float:
        """b_max: exact and computed draw are no longer, but for the event of probability exp(log_failure)."""
        exact = self.gaussian_norm(scale) + max(self.gaussian_deviations(scale)) * _deviates(log_failure)
        return exact * _UPWARDS + self.gaussian_error(scale, log_failure)

    def gaussian_error(self, scale: float, log_failure: float) -> float:
        """Bound on |computed draw - exact draw|_2, but for the same event."""
        normals = math.sqrt(self.dimension) + _deviates(log_failure)
        return 32.0 * _UNIT * max(self.gaussian_deviations(scale)) * normals


def _deviates(log_failure: float) -> float:
    """A standard normal vector exceeds its mean length by more with probability at most exp(log_failure) / 2."""
    return math.sqrt(2.0 * (0.7 - log_failure))  # 0.7 > ln 2


class Ball(Shape):
    """Rows of L2 norm at most `radius`: |b|_K = |b|_2 / radius."""

    __slots__ = ()
    name = "ball"
    laplace_error = 50.0 * _UNIT

    def __init__(self, dimension: int, radius: float) -> None:
        super().__init__((dimension,), (radius,), (False,))

    def solid_mean_square(self) -> float:
        return self.scales[0] ** 2 * self.dimension / (self.dimension + 2)


class Groups(Shape):
    """Rows whose L1 norm in each group is at most its scale: |b|_K is the largest of |b_g|_1 / s_g."""

    __slots__ = ()
    name = "groups"
    laplace_error = 32.0 * _UNIT

    def __init__(self, sizes: tuple[int, ...], scales: tuple[float, ...]) -> None:
        super().__init__(sizes, scales, (False,) * len(sizes))


class Linked(Shape):
    """Rows as in `Groups` that have exactly one active level in each linked group, and a constant as the last group.

    All of them lie in V = {b : sum of b_g / s_g equals b_0 / s_0 for each linked g}, b_0 the last coordinate, and so does
    the noise. A linked group of one column would be constant, which is left unused.
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


def shapes_of(row_bound: RowBound, intercept: float, n_features: int) -> tuple[Shape, ...]:
    """The shapes that hold every clipped row of `n_features` columns, its constant `intercept` appended unless it is 0."""
    constant = int(intercept > 0.0)
    ball = Ball(n_features + constant, norm_with_intercept(row_bound, intercept))
    if not isinstance(row_bound, GroupBound):
        return (ball,)
    sizes, scales = row_bound.sizes + (1,) * constant, row_bound.scales + (intercept,) * constant
    if constant and any(linked and size > 1 for size, linked in zip(row_bound.sizes, row_bound.linked, strict=True)):
        return (ball, Groups(sizes, scales), Linked(sizes, scales, (*row_bound.linked, False)))
    return (ball, Groups(sizes, scales))


@functools.lru_cache(maxsize=64)
def cell_counts(levels: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """Entry [i][J]: over j_1 + ... + j_i = J, the sum of the products of binomial(n_g, j_g)^2; n_g are the `levels`."""
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
    """Entry J: J! (N - J)! times the last counts, the weight of J levels with positive noise out of N."""
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
    weights, counts, n_levels = cell_weights(levels), cell_counts(levels)[-1], sum(levels)
    total = sum(weights) * (n_levels + 2) * (n_levels + 3)
    mixed = sum(weight * (J + 1) * (n_levels - J + 1) for J, weight in enumerate(weights)) / total
    sections = {}
    for n in set(levels):
        squares, others = binomial_squares(n), list[int]()
        for count in counts[: n_levels - n + 1]:  # divides the polynomial of all groups by that of this one
            others.append(count - sum(a * b for a, b in zip(squares[1:], reversed(others), strict=False)))
        sections[n] = math.fsum(
            square * other * (weights[J := i + j] // counts[J]) * (J + 1) / total
            * (4.0 * (J + 2) / (j + 2) - 2.0 * (n_levels - J + 1) / ((j + 1) * (n - j + 1)))
            for j, square in enumerate(squares) for i, other in enumerate(others)
        )  # fmt: skip
    return 1.0 - 4.0 * mixed, sections
