"""All randomness of the package: random bits, and noise of the shapes that a closed list allows.

Maps with a proven relative error (proofs/noise.md) turn random bits into numbers, so that a computed draw is a rounded draw
of the exact law. The bits come from the generator of the operating system. Tests use a seeded stream; whoever knows the seed
knows the noise.
"""

from __future__ import annotations

import bisect
import itertools
import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Indices, Weights
from confide.privacy.bundles import UNITS, Bundles
from confide.privacy.shapes import Ball, Cylinder, Linked, Mapped, Shape, binomial_squares, cell_counts, cell_weights

# Laplace noise for rows whose columns fall into groups, made from the draws of `Entropy`. Proof: proofs/noise.md.


def polytope(entropy: Entropy, shape: Shape, rate: float) -> Array:
    """One draw (D,) with density proportional to exp(-rate |b|_K)."""
    if isinstance(shape, Mapped):
        return np.asarray(shape.mapped(polytope(entropy, shape.base, rate)[None])[0])
    if isinstance(shape, Bundles):
        return _bundles(entropy, shape, rate)
    # proofs/noise.md, section 3: r times a uniform point of the unit ball of the norm, r ~ Gamma(free dimension + 1).
    height = math.fsum(entropy.exponential(shape.free_dimension + 1)) / rate
    if isinstance(shape, Linked):
        point = _section(entropy, shape)
    else:
        drawn = zip(shape.sizes, shape.linked, strict=True)
        point = [_contrasts(entropy, size) if linked else _cross(entropy, size) for size, linked in drawn]
    return np.concatenate([height * scale * part for scale, part in zip(shape.scales, point, strict=True)])


def _bundles(entropy: Entropy, shape: Bundles, rate: float) -> Array:
    """One draw (D,): that of each bundle at its share of the rate, and that of the constant on all levels of groups away."""
    parts: list[Array] = [np.zeros(size) for size in shape.sizes]
    for i, (bundle, share) in enumerate(zip(shape.bundles, shape.shares, strict=True)):
        own = shape.shape_of(i)
        drawn = polytope(entropy, own, rate * (share / UNITS))
        for g, part in zip(bundle, np.split(drawn, np.cumsum(own.sizes)[:-1]), strict=True):
            parts[g] = part
    for g in shape.away:
        # proofs/noise.md, section 2: the entries of a linked group add up to s_g b_0 / s_0.
        parts[g] = parts[g] + shape.scales[g] * (parts[-1][0] / shape.scales[-1]) / shape.sizes[g]
    return np.concatenate(parts)


def _contrasts(entropy: Entropy, size: int) -> Array:
    """A uniform point of sum 0 among those whose distances from their median add up to at most 1."""
    magnitudes, order = _simplex(entropy, size)[1:], np.arange(size)
    for position in range(size - 1):
        other = position + entropy.below(size - position)
        order[position], order[other] = order[other], order[position]
    point = np.zeros(size)
    rising = size // 2
    point[order[:rising]] = magnitudes[:rising]
    point[order[rising : size - 1]] = -magnitudes[rising:]
    return np.asarray(point - math.fsum(point) / size)


def _cross(entropy: Entropy, size: int) -> Array:
    """A uniform point of L1 norm at most 1."""
    return _simplex(entropy, size + 1)[1:] * entropy.signs(size)


def _section(entropy: Entropy, shape: Linked) -> list[Array]:
    """A uniform point of the part of the unit ball that lies in the space of the shape, by groups, at scales of 1."""
    cells = _cells(entropy, shape.levels)
    rising, falling = (math.fsum(entropy.exponential(n + 1)) for n in (sum(cells), sum(shape.levels) - sum(cells)))
    total, positive = rising + falling, iter(cells)
    groups = [
        _group(entropy, size, next(positive), rising / total, falling / total) if linked else _cross(entropy, size)
        for size, linked in zip(shape.sizes[:-1], shape.linked[:-1], strict=True)
    ]
    return [*groups, np.array([(rising - falling) / total])]


def _cells(entropy: Entropy, levels: tuple[int, ...]) -> list[int]:
    """For each linked group, how many levels after the first have positive noise: first the total, then its parts."""
    total = drawn_by(entropy, cell_weights(levels))
    cells: list[int] = []
    for n, counts in zip(reversed(levels), cell_counts(levels)[-2::-1], strict=True):
        left, at = total - sum(cells), dict(enumerate(counts))
        cells.append(drawn_by(entropy, [square * at.get(left - j, 0) for j, square in enumerate(binomial_squares(n))]))
    return cells[::-1]


def _group(entropy: Entropy, size: int, positive: int, rising: float, falling: float) -> Array:
    """A linked group: the first level and `positive` others share `rising`, the first and the rest share -`falling`."""
    order = np.arange(size)
    for position in range(1, positive + 1):
        other = position + entropy.below(size - position)
        order[position], order[other] = order[other], order[position]
    group = np.zeros(size)
    group[order[: positive + 1]] = rising * _simplex(entropy, positive + 1)
    group[np.append(0, order[positive + 1 :])] -= falling * _simplex(entropy, size - positive)
    return group


def _simplex(entropy: Entropy, n: int) -> Array:
    """A uniform point among n positive numbers of sum 1."""
    parts = entropy.exponential(n)
    return parts / math.fsum(parts)


def drawn_by(entropy: Entropy, weights: Sequence[int]) -> int:
    """A position, with probability exactly proportional to its weight."""
    sums = list(itertools.accumulate(weights))
    return bisect.bisect_right(sums, entropy.below(sums[-1]))


_LN2 = math.log(2.0)

LOG_FAILURE = -200.0 * math.log(2.0)
"""Logarithm of the probability, before the factor exp(-epsilon), that a draw exceeds its public bound."""

LARGEST_PROVEN_EPSILON = 190.0
"""Above this epsilon the probability of underflow in a draw, which depends on no budget, exceeds what the proofs allow."""


@dataclass(frozen=True, slots=True)
class Entropy:
    """A stream of random bits and the noise that is made from it.

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
        return cls(read=_in_pieces(np.random.Generator(np.random.Philox(seed)).bytes), is_secret=False)

    def laplace(self, shape: Shape, n_problems: int, rate: float) -> Weights:
        """Draws (n_problems, D) with density proportional to exp(-rate |b|_K), independent by row.

        Balls: Chaudhuri, Monteleoni and Sarwate (2011), section 3. Proof for all shapes: proofs/noise.md.
        """
        draw = {Ball: self._ball, Cylinder: self._cylinder}.get(type(shape), partial(polytope, self))
        return np.array([draw(shape, rate) for _ in range(n_problems)])

    def gaussian(self, shape: Shape, n_problems: int, scale: float) -> Weights:
        """Draws (n_problems, D) of the Gaussian law of `shape` with this scale, independent by row.

        Each piece of the shape has its own deviation (`Shape.gaussian_deviations`). Proof: proofs/noise.md.
        """
        deviations = shape.gaussian_deviations(scale)
        return np.array([self._pieces(shape, deviations) for _ in range(n_problems)])

    def below(self, n: int) -> int:
        """An integer from 0 to n - 1, exactly uniform."""
        n_bits = (n - 1).bit_length()
        while (number := int.from_bytes(self.read(-(-n_bits // 8)), "little") >> (-n_bits % 8)) >= n:
            pass
        return number

    def permutation(self, n: int) -> Indices:
        """The numbers 0 to n - 1 in an exactly uniform order.

        It is the order of n random words, which are drawn anew unless all of them differ.
        """
        while True:
            words = self._words(n)
            order: Indices = words.argsort(kind="stable")
            if (np.diff(words[order]) > 0).all():
                return order

    def _words(self, n: int) -> NDArray[np.uint64]:
        # Each call reads its own bits and uses all of them. Bits that wait in a buffer would be used twice after a fork.
        return np.frombuffer(self.read(8 * n), dtype="<u8")

    def _leading_zeros(self, n: int) -> NDArray[np.int32]:
        """Numbers of zeros before the first one in streams of fair bits: geometric with parameter 1/2, unbounded."""
        words = self._words(n) >> 11  # 53 bits, which a double holds exactly
        zeros = 53 - np.frexp(words.astype(np.float64))[1]
        empty = np.flatnonzero(words == 0)
        if empty.size:
            zeros[empty] += self._leading_zeros(empty.size)
        return zeros

    def _uniform(self, n: int) -> Array:
        """Uniform in (0, 1) with 53 significant bits whatever their size, so that small values lose no precision."""
        return np.ldexp(((self._words(n) >> 12) + 2**52).astype(np.float64), -53 - self._leading_zeros(n))

    def exponential(self, n: int) -> Array:
        """Standard exponentials from two independent parts: the quotient by ln 2, which is geometric, and the remainder.

        Minus the logarithm of a uniform number would bound the absolute error alone, and small draws would lose their
        digits.
        """
        return self._leading_zeros(n) * _LN2 - _each(math.log1p, -0.5 * self._uniform(n))

    def signs(self, n: int) -> Array:
        return np.where(self._words(n) & 1, 1.0, -1.0)

    def _normal(self, n: int) -> Array:
        """Independent standard normals. Each pair is made from a radius and an angle, and the signs choose the quadrant."""
        radius = np.sqrt(2.0 * self.exponential((n + 1) // 2))
        angle = 0.5 * math.pi * self._uniform((n + 1) // 2)
        pairs: Array = np.concatenate([radius * _each(math.sin, angle), radius * _each(math.cos, angle)])
        # An odd n drops a cosine, never a sine: a cosine loses relative precision near a right angle.
        return self.signs(n) * pairs[:n]

    def _ball(self, shape: Shape, rate: float) -> Array:
        # Section 3: the length is Gamma(D), the direction uniform.
        direction = self._direction(shape.dimension)
        return math.fsum(self.exponential(shape.dimension)) / rate * shape.scales[0] * direction

    def _cylinder(self, shape: Shape, rate: float) -> Array:
        # Section 3: r times a uniform point of a ball and one of an interval, r ~ Gamma(D + 1).
        size, (radius, constant) = shape.sizes[0], shape.scales
        direction, last = self._direction(size), self.signs(1) * self._uniform(1)
        height = math.fsum(self.exponential(shape.dimension + 1)) / rate
        inside, outside = math.fsum(self.exponential(size)), math.fsum(self.exponential(1))
        return np.concatenate([height * radius * (inside / (inside + outside)) * direction, height * constant * last])

    def _direction(self, n: int) -> Array:
        """A uniform point of the unit sphere in n dimensions."""
        normals = self._normal(n)
        return normals / math.sqrt(math.fsum(normals * normals))

    def _pieces(self, shape: Shape, deviations: tuple[float, ...]) -> Array:
        # proofs/noise.md, section 3: linked groups are centred, and share one direction with the last group.
        normals = np.split(self._normal(shape.dimension), np.cumsum(shape.sizes)[:-1])
        groups = [deviation * normal for deviation, normal in zip(deviations, normals, strict=True)]
        if any(shape.linked):
            common = groups[-1] / shape.pieces[-1][0]
            for g in np.flatnonzero(shape.linked):
                centre = math.fsum(groups[g]) / shape.sizes[g]
                groups[g] = (groups[g] - centre) + shape.scales[g] / shape.sizes[g] * common
            groups[-1] = shape.scales[-1] * common
        return np.concatenate(groups)


def _in_pieces(read: Callable[[int], bytes]) -> Callable[[int], bytes]:
    """The same stream, read many draws at a time, since a call of NumPy's generator takes longer than a draw.

    NumPy makes four bytes at a time, at least once, and drops what is left of the last four; so does this.
    """
    ahead, at = b"", 0

    def piece(n: int) -> bytes:
        nonlocal ahead, at
        used = max(4, n + -n % 4)
        if at + used > len(ahead):
            ahead, at = ahead[at:] + read(max(4096, used)), 0
        at += used
        return ahead[at - used : at - used + n]

    return piece


def _each(function: Callable[[float], float], values: Array) -> Array:
    # Python's functions are used, since the vector forms of NumPy may err by more than the proof allows.
    return np.array([function(value) for value in values.tolist()])
