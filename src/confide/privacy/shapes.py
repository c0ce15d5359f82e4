"""Shapes of noise: what a public bound on rows allows. Mathematics without randomness and without data.

A shape is a norm |.|_K in which every clipped row x has |x|_K <= 1; the constant of the intercept is the last coordinate of
x. Laplace noise of a shape has density proportional to exp(-rate |b|_K). Gaussian noise has the least total variance at
which a row is at most 1 / scale standard deviations long. `confide.privacy.noise` draws both.

Proof: proofs/noise.md.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from confide.array_types import Array
from confide.erm.group_bounds import GroupBound
from confide.erm.penalties import NormMap
from confide.errors import ParameterError

_UNIT = 2.0**-53
_UPWARDS = 1.0 + 2.0**-45


@dataclass(frozen=True, slots=True)
class Shape:
    """Consecutive groups of columns. Each kind of shape says how large a row may be in each group.

    Parameters
    ----------
    sizes : number of columns of each group
    scales : largest norm of each group
    linked : for each group, whether the entries of a row in it always add up to its scale

    Attributes
    ----------
    dimension : D, number of coordinates
    free_dimension : dimension of the space that holds the noise: each linked group takes one dimension away
    l2_norm : R_2, the largest L2 norm of a clipped row, rounded upwards
    """

    sizes: tuple[int, ...]
    scales: tuple[float, ...]
    linked: tuple[bool, ...]
    dimension: int = field(init=False, compare=False, repr=False)
    free_dimension: int = field(init=False, compare=False, repr=False)
    l2_norm: float = field(init=False, compare=False, repr=False)

    name: ClassVar[str]
    laplace_error: ClassVar[float]
    """Bound on |computed draw - exact draw|_2 over `laplace_bound`."""

    def __post_init__(self) -> None:
        dimension, squares = sum(self.sizes), [scale * scale for scale in self.scales]
        object.__setattr__(self, "dimension", dimension)
        object.__setattr__(self, "free_dimension", dimension - sum(self.linked))
        object.__setattr__(self, "l2_norm", math.sqrt(math.fsum(squares)) * (1.0 + 2.0**-50))

    def solid_mean_square(self) -> float:
        """E |U|_2^2 for U uniform in the unit ball of the norm."""
        # proofs/noise.md, section 2: the unit ball is a product of cross-polytopes, one for each group.
        pairs = zip(self.sizes, self.scales, strict=True)
        return math.fsum(2.0 * scale**2 * size / ((size + 1) * (size + 2)) for size, scale in pairs)

    def laplace_norm(self, rate: float) -> float:
        """Root of E |b|_2^2 under the Laplace law: b = r U / rate with r ~ Gamma(d + 1), d the free dimension."""
        d = self.free_dimension
        return math.sqrt((d + 1) * (d + 2) * self.solid_mean_square()) / rate

    def laplace_bound(self, rate: float, log_failure: float) -> float:
        """b_max: |b|_2 exceeds it with probability at most exp(log_failure).

        |b|_2 <= R_2 G / rate with G ~ Gamma(m) and m the free dimension plus one; E exp(G / 2) = 2^m, and 2 ln 2 < 1.4.
        """
        return self.l2_norm * (1.4 * (self.free_dimension + 1) - 2.0 * log_failure) / rate

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """One pair (rho, m) for each group: orthogonal subspaces of dimension m in which no row is longer than rho.

        A linked group is centred. The piece of the last group is the direction that it shares with all linked groups.
        """
        # proofs/noise.md, section 2: (s_g sqrt(1 - 1/k_g), k_g - 1) if linked, (s_g, k_g) otherwise; the shared direction
        # has |c|^2 = s_0^2 + sum of s_g^2 / k_g.
        groups = list(zip(self.sizes, self.scales, self.linked, strict=True))
        shared = math.fsum(scale**2 / size for size, scale, linked in groups if linked) + self.scales[-1] ** 2
        own = [(scale * math.sqrt(1.0 - linked / size), size - linked) for size, scale, linked in groups[:-1]]
        return (*own, (math.sqrt(shared), self.sizes[-1]))

    def gaussian_norm(self, scale: float) -> float:
        """Root of E |b|_2^2 under the Gaussian law."""
        return scale * math.fsum(rho * math.sqrt(m) for rho, m in self.pieces)

    def gaussian_deviations(self, scale: float) -> tuple[float, ...]:
        """A deviation t for each piece, rounded upwards, at which the sum of (rho / t)^2 is at most 1 / scale^2."""
        # Least total variance (proofs/noise.md): t_i^2 = scale^2 (sum_j rho_j sqrt(m_j)) rho_i / sqrt(m_i).
        total = self.gaussian_norm(1.0)
        return tuple(scale * math.sqrt(total * rho / math.sqrt(m)) * _UPWARDS for rho, m in self.pieces)

    def gaussian_bound(self, scale: float, log_failure: float) -> float:
        """b_max: neither the exact nor the computed draw is longer, outside of an event of probability exp(log_failure)."""
        exact = self.gaussian_norm(scale) + max(self.gaussian_deviations(scale)) * _deviates(log_failure)
        return exact * _UPWARDS + self.gaussian_error(scale, log_failure)

    def gaussian_error(self, scale: float, log_failure: float) -> float:
        """Bound on |computed draw - exact draw|_2, outside of the same event."""
        return 32.0 * _UNIT * max(self.gaussian_deviations(scale)) * (math.sqrt(self.dimension) + _deviates(log_failure))


def _deviates(log_failure: float) -> float:
    """A standard normal vector is longer than its mean length plus this with probability at most exp(log_failure) / 2."""
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


class Cylinder(Shape):
    """Rows of L2 norm at most `radius`, and after them the constant of the intercept.

    |b|_K is the larger of |b_1|_2 / radius and |b_0| / constant, where b_1 are the first `n_features` coordinates and b_0 is
    the last one. A ball around whole rows would allow features of the length of features and constant together.
    """

    __slots__ = ()
    name = "cylinder"
    laplace_error = 71.0 * _UNIT

    def __init__(self, n_features: int, radius: float, constant: float) -> None:
        super().__init__((n_features, 1), (radius, constant), (False, False))

    def solid_mean_square(self) -> float:
        size, (radius, constant) = self.sizes[0], self.scales
        return radius**2 * size / (size + 2) + constant**2 / 3.0


# Shapes of noise for rows whose columns fall into groups. Proof: proofs/noise.md.

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
        pairs = zip(self.sizes, self.linked, strict=True)
        squares = [sections[size - 1] if linked else 2.0 * size / ((size + 1) * (size + 2)) for size, linked in pairs]
        squares[-1] = constant
        return math.fsum(scale**2 * square for scale, square in zip(self.scales, squares, strict=True))


def moments_of_groups(shape: Shape) -> list[tuple[float, float]]:
    """For each group the variance of an entry of U, and the covariance of two; U is uniform in the unit ball of the norm."""
    constant, sections = _section_mean_squares(shape.levels) if isinstance(shape, Linked) else (0.0, {})
    moments = []
    for size, scale, linked in zip(shape.sizes, shape.scales, shape.linked, strict=True):
        own, shared = 2.0 / ((size + 1) * (size + 2)), 0.0
        if linked:
            # The entries add up to that of the constant.
            own = sections[size - 1] / size
            shared = (constant - size * own) / (size * (size - 1))
        moments.append((scale**2 * own, scale**2 * shared))
    if isinstance(shape, Linked):
        moments[-1] = (shape.scales[-1] ** 2 * constant, 0.0)
    return moments


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
    return np.asarray(squares / squares.sum())


def _logs(shares: Array) -> Array:
    with np.errstate(divide="ignore"):
        logarithms: Array = np.log(shares)
    return logarithms


# Noise of groups of columns, in the norm of a quadratic form. Proof: proofs/penalty.md, section 8.
#
# Rows x in groups have |x|_K <= 1, and their images M x have norm at most 1 in the image of that norm. Noise of the image's
# shape is the image of the noise: it is M b.

LARGEST_BLOCK = 256
"""Blocks of a map with more columns are not used here: `laplace_error` allows for the products of so many."""
_UP = 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True, init=False)
class Mapped(Shape):
    """The image of a shape of groups under the map of a form; the intercept's constant stays as it is.

    Parameters
    ----------
    base : `Groups` or `Linked`, of rows as they are
    form : the form, no block of which reaches across groups
    mapped_norm : largest L2 norm of a mapped row with its constant
    """

    base: Shape
    form: NormMap
    mapped_norm: float

    name: ClassVar[str] = "groups in the norm of the penalty"
    # The base's error, and the product with a block: gamma of 258 times the root of 256, as |M| stretches more than M.
    laplace_error: ClassVar[float] = 4300.0 * _UNIT

    def __init__(self, base: Shape, form: NormMap, mapped_norm: float) -> None:
        Shape.__init__(self, base.sizes, base.scales, base.linked)
        for name, value in (("base", base), ("form", form), ("mapped_norm", mapped_norm), ("l2_norm", mapped_norm)):
            object.__setattr__(self, name, value)

    @property
    def stretch(self) -> float:
        """The largest factor by which the map stretches noise, rounded upwards."""
        return max(1.0, self.form.longest_map) * _UP

    def solid_mean_square(self) -> float:
        """E |M U|^2 for U uniform in the unit ball of the base's norm. No guarantee rests on it."""
        columns = self.form.sums_in_norm(np.eye(self.dimension))
        total, start = 0.0, 0
        for size, (own, shared) in zip(self.sizes, moments_of_groups(self.base), strict=True):
            part = columns[start : start + size]
            # The entries of a group have one variance and one covariance.
            total += (own - shared) * float(np.square(part).sum()) + shared * float(np.square(part.sum(axis=0)).sum())
            start += size
        return total

    def laplace_bound(self, rate: float, log_failure: float) -> float:
        """b_max of the mapped noise: that of the noise, stretched."""
        return self.stretch * self.base.laplace_bound(rate, log_failure)

    def mapped(self, draws: Array) -> Array:
        """Draws (n, D) of the mapped noise, from those of the base."""
        return self.form.sums_in_norm(draws)

    @property
    def pieces(self) -> tuple[tuple[float, int], ...]:
        """None: the law is for Laplace noise."""
        raise ParameterError("noise of groups in the norm of a penalty is for pure budgets.")


def may_keep_groups(form: NormMap, row_bound: object) -> bool:
    """Whether every block of a form lies within one group of columns, and none is too large."""
    if type(row_bound) is not GroupBound or row_bound.n_features != form.n_features:
        return False
    group_of = [group for group, size in enumerate(row_bound.sizes) for _ in range(size)]
    ends = ((start, start + len(part) - 1) for start, part in form.blocks)
    return all(last - first < LARGEST_BLOCK and group_of[first] == group_of[last] for first, last in ends)


def shape_of_groups(base: Shape, form: NormMap, mapped_norm: float) -> Mapped:
    """The image of one of the shapes of groups."""
    assert base.name in ("groups", Linked.name)  # noqa: S101 - a ball has no groups
    return Mapped(base, form, mapped_norm)
