"""Shapes that bundle groups of columns: each bundle has a share of the rate. Proof: proofs/noise.md, section 2.

Noise for all groups at once grows with the number of columns of all of them, in every group. Where groups of like sizes have
a share of the rate of their own, a number does not pay for the levels of a long category.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from confide.errors import ParameterError
from confide.privacy.shapes import Groups, Linked, Shape, moments_of_groups

_UNIT = 2.0**-53
_UPWARDS = 1.0 + 2.0**-45
UNITS = 1024
"""Shares are whole numbers of units, and so many units are the whole rate: then their sum is exact."""
_TILTS, _SLACK = (0.5, 0.7, 0.9), 1.01
"""Where Markov's bound on the length of noise is tried, and what covers rounding and underflow (`laplace_bound`)."""
_MOST_LINKED = 2000
"""At most so many levels after the first are linked with the constant: the whole numbers from which a draw is chosen grow
with their square. More levels have noise of their own (`Contrasts`), which is hardly larger."""
_MOST_CUTS = 31
"""At most so many places at which the sorted groups may be divided, so that a plan takes little time."""


class Contrasts(Shape):
    """Rows as in `Groups`, of whose linked groups the mean is known: their noise adds up to 0.

    |b_g| is the sum of the distances from the median of b_g, over s_g, if g is linked.
    """

    __slots__ = ()
    name = "contrasts"
    laplace_error = 34.0 * _UNIT

    def solid_mean_square(self) -> float:
        """E |U|_2^2 for U uniform in the unit ball of the norm."""
        return math.fsum(self.group_mean_squares())

    def group_mean_squares(self) -> list[float]:
        """The same for each group."""
        # proofs/noise.md, section 2, for n = k - 1: (2n - (n + n mod 2) / k) / (k (k + 1)).
        squares = [
            (2 * (k - 1) - (k - 1 + (k - 1) % 2) / k) / (k * (k + 1)) if linked else 2.0 * k / ((k + 1) * (k + 2))
            for k, linked in zip(self.sizes, self.linked, strict=True)
        ]
        return [scale**2 * square for scale, square in zip(self.scales, squares, strict=True)]


@dataclass(frozen=True, slots=True, init=False)
class Bundles(Shape):
    """|b|_K is the sum over bundles of share times the norm of a bundle, which is the largest of its groups' norms.

    The groups in the bundle of the last group, which is the constant if any are linked, have the norm of `Linked` or
    `Groups`; the groups of the other bundles that of `Contrasts`.

    Parameters
    ----------
    bundles : the positions of the groups of each bundle, ascending, each group in one bundle
    shares : the share of each bundle, in units of 1 / 1024; they add up to 1024

    Raises
    ------
    ParameterError
        If bundles and shares are not of this form.
    """

    bundles: tuple[tuple[int, ...], ...]
    shares: tuple[int, ...]

    name: ClassVar[str] = "bundles"
    laplace_error: ClassVar[float] = 60.0 * _UNIT

    def __init__(
        self,
        sizes: tuple[int, ...],
        scales: tuple[float, ...],
        linked: tuple[bool, ...],
        bundles: tuple[tuple[int, ...], ...],
        shares: tuple[int, ...],
    ) -> None:
        linked = tuple(flag and size > 1 for size, flag in zip(sizes, linked, strict=True))
        if any(linked):
            Linked(sizes, scales, linked)  # its checks of the constant
        Shape.__init__(self, sizes, scales, linked)
        whole = sorted(itertools.chain(*bundles)) == list(range(len(sizes))) and all(map(_ascends, bundles))
        if not whole or len(shares) != len(bundles) or min(shares) < 1 or sum(shares) != UNITS:
            raise ParameterError(f"bundles hold each group once, and their shares are whole numbers that add up to {UNITS}.")
        object.__setattr__(self, "bundles", bundles)
        object.__setattr__(self, "shares", shares)

    @property
    def home(self) -> int:
        """The position of the bundle that holds the last group."""
        return next(i for i, bundle in enumerate(self.bundles) if len(self.sizes) - 1 in bundle)

    def shape_of(self, position: int) -> Shape:
        """The shape of one bundle alone."""
        bundle = self.bundles[position]
        sizes, scales = tuple(self.sizes[g] for g in bundle), tuple(self.scales[g] for g in bundle)
        linked = tuple(self.linked[g] for g in bundle)
        if position != self.home:
            return Contrasts(sizes, scales, linked)
        return Linked(sizes, scales, linked) if any(linked) else Groups(sizes, scales)

    @property
    def away(self) -> tuple[int, ...]:
        """The linked groups that are not in the bundle of the constant: each level has an equal part of its noise."""
        return tuple(g for g in range(len(self.sizes)) if self.linked[g] and g not in self.bundles[self.home])

    def solid_mean_square(self) -> float:
        """E |U|_2^2 for U uniform in the unit ball of the norm."""
        d, squares = self.free_dimension, squares_of_bundles(self)
        of_noise = math.fsum(square * (UNITS / share) ** 2 for square, share in zip(squares, self.shares, strict=True))
        return of_noise / ((d + 1) * (d + 2))

    def laplace_bound(self, rate: float, log_failure: float) -> float:
        """b_max: the sum of R_2 r / rate over bundles exceeds it with probability at most exp(log_failure).

        A bundle of free dimension d has r ~ Gamma(d + 1), independent of the others, and R_2 is the largest L2 norm of its
        part of a row, over its share. Markov's bound for exp(t times that sum), at the best of a few t.
        """
        squares = [math.fsum(self.scales[g] ** 2 for g in bundle) for bundle in self.bundles]
        squares[self.home] += math.fsum(self.scales[g] ** 2 / self.sizes[g] for g in self.away)
        reaches = [math.sqrt(square) * UNITS / share for square, share in zip(squares, self.shares, strict=True)]
        ms = (sum(self.sizes[g] - self.linked[g] for g in bundle) + 1 for bundle in self.bundles)
        far, pairs = max(reaches), list(zip(reaches, ms, strict=True))
        sums = ((t, math.fsum(-m * math.log1p(-t * reach / far) for reach, m in pairs)) for t in _TILTS)
        return _SLACK * far * min((grown - log_failure) / t for t, grown in sums) / rate


@functools.lru_cache(maxsize=64)
def squares_of_bundles(shape: Bundles) -> tuple[float, ...]:
    """For each bundle E |b|_2^2 of its noise at a rate of 1 and the whole share, groups away included."""
    squares = []
    for i in range(len(shape.bundles)):
        own = shape.shape_of(i)
        d, square = own.free_dimension, own.solid_mean_square()
        if i == shape.home and shape.away:
            constant = moments_of_groups(own)[-1][0] / shape.scales[-1] ** 2
            square += constant * math.fsum(shape.scales[g] ** 2 / shape.sizes[g] for g in shape.away)
        squares.append((d + 1) * (d + 2) * square)
    return tuple(squares)


def squares_of_groups(shape: Bundles) -> list[float]:
    """For each group E |b_g|_2^2 of its noise at a rate of 1."""
    variances = [0.0] * len(shape.sizes)
    for i, (bundle, share) in enumerate(zip(shape.bundles, shape.shares, strict=True)):
        own = shape.shape_of(i)
        d = own.free_dimension
        of_noise = (d + 1) * (d + 2) * (UNITS / share) ** 2
        if isinstance(own, Contrasts):
            squares = own.group_mean_squares()
        else:
            squares = [size * entry for size, (entry, _) in zip(own.sizes, moments_of_groups(own), strict=True)]
        for g, square in zip(bundle, squares, strict=True):
            variances[g] = of_noise * square
    for g in shape.away:
        # Each level has an equal part of the constant's noise.
        variances[g] += shape.scales[g] ** 2 / shape.sizes[g] * variances[-1] / shape.scales[-1] ** 2
    return variances


@functools.lru_cache(maxsize=64)
def shapes_of_groups(sizes: tuple[int, ...], scales: tuple[float, ...], linked: tuple[bool, ...]) -> tuple[Shape, ...]:
    """The shapes that hold rows in groups: all groups together, linked if any are, and in bundles where these differ.

    Where groups are linked, the last one is the constant.
    """
    linked = tuple(flag and size > 1 for size, flag in zip(sizes, linked, strict=True))
    few = _n_linked(sizes, linked) <= _MOST_LINKED
    together = (Groups(sizes, scales), *((Linked(sizes, scales, linked),) if any(linked) and few else ()))
    bundles = _divided(sizes, scales, linked)
    if len(bundles) == 1 and few:
        return together
    # The bundle that the constant joins has the smaller noise of `Linked`.
    homes = [home for home in range(len(bundles)) if _may_join(bundles[home], sizes, linked)] if any(linked) else [None]
    tried = [_moved(bundles, len(sizes) - 1, home) for home in homes]
    if not few:
        tried.append(_moved([*bundles, []], len(sizes) - 1, len(bundles)))
    candidates = [_with_shares(sizes, scales, linked, share) for share in tried]
    return (*together, min(candidates, key=lambda shape: shape.laplace_norm(1.0)))


def _n_linked(sizes: Sequence[int], linked: Sequence[bool]) -> int:
    """The number of levels after the first of all linked groups."""
    return sum(size - 1 for size, flag in zip(sizes, linked, strict=True) if flag)


def _may_join(bundle: list[int], sizes: tuple[int, ...], linked: tuple[bool, ...]) -> bool:
    """Whether the constant may be linked with the groups of a bundle."""
    return _n_linked([sizes[g] for g in bundle], [linked[g] for g in bundle]) <= _MOST_LINKED


def _divided(sizes: tuple[int, ...], scales: tuple[float, ...], linked: tuple[bool, ...]) -> list[list[int]]:
    """The groups in bundles, by the mean squares of their noise as if the constant were a group of its own.

    The noise of bundles has least total variance if the cube roots of D^2 C add up to the least number, D the sum of the
    dimensions of a bundle and C the sum of its mean squares. That is concave in (D, C), so the best bundles lie in order of
    the mean square of a group over its dimension.
    """
    one = [Contrasts((sizes[g],), (scales[g],), (linked[g],)) for g in range(len(sizes))]
    dimensions, squares = [shape.free_dimension for shape in one], [shape.solid_mean_square() for shape in one]
    ratios = [square / dimension for square, dimension in zip(squares, dimensions, strict=True)]
    order = sorted(range(len(sizes)), key=lambda g: (ratios[g], dimensions[g]))
    inner = [i for i in range(1, len(order)) if ratios[order[i]] > ratios[order[i - 1]] * _UPWARDS]
    n_cuts = min(len(inner), _MOST_CUTS)
    cuts = [0, *(inner[i * len(inner) // n_cuts] for i in range(n_cuts)), len(order)]
    both = ([values[g] for g in order] for values in (dimensions, squares))
    dimension, square = (list(itertools.accumulate(values, initial=0.0)) for values in both)
    # The least sum for the groups up to each cut, and where its last bundle begins.
    best: list[tuple[float, int]] = [(0.0, 0)]
    for j, end in enumerate(cuts[1:], start=1):
        tried = []
        for i, start in enumerate(cuts[:j]):
            d, c = dimension[end] - dimension[start], square[end] - square[start]
            tried.append((best[i][0] + math.cbrt((d + 1) * (d + 2) * c), i))
        best.append(min(tried))
    bundles, j = [], len(cuts) - 1
    while j > 0:
        i = best[j][1]
        bundles.append(sorted(order[cuts[i] : cuts[j]]))
        j = i
    return bundles


def _moved(bundles: list[list[int]], group: int, home: int | None) -> tuple[tuple[int, ...], ...]:
    """The bundles with one group in that of a position; as they are for None."""
    if home is None:
        return tuple(map(tuple, bundles))
    moved = [
        sorted([*(g for g in bundle if g != group), *([group] if i == home else [])]) for i, bundle in enumerate(bundles)
    ]
    return tuple(tuple(bundle) for bundle in moved if bundle)


def _with_shares(
    sizes: tuple[int, ...], scales: tuple[float, ...], linked: tuple[bool, ...], bundles: tuple[tuple[int, ...], ...]
) -> Shape:
    """These bundles with the shares of least total variance: proportional to the cube roots of their mean squares."""
    if len(bundles) == 1:
        return Linked(sizes, scales, linked) if any(linked) else Groups(sizes, scales)
    # Mean squares at the whole share do not depend on the shares.
    any_shares = (UNITS - len(bundles) + 1, *(1,) * (len(bundles) - 1))
    roots = [math.cbrt(square) for square in squares_of_bundles(Bundles(sizes, scales, linked, bundles, any_shares))]
    shares = [max(1, int(UNITS * root / math.fsum(roots))) for root in roots]
    shares[shares.index(max(shares))] += UNITS - sum(shares)
    return Bundles(sizes, scales, linked, bundles, tuple(shares))


def _ascends(bundle: tuple[int, ...]) -> bool:
    return bool(bundle) and list(bundle) == sorted(bundle)
