"""Laplace noise for rows whose columns fall into groups, made from the draws of `Entropy`. Proof: proofs/noise.md."""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from confide.privacy.bundled_shapes import UNITS, Bundles
from confide.privacy.group_shapes import Linked, binomial_squares, cell_counts, cell_weights
from confide.privacy.mapped_shapes import Mapped
from confide.privacy.shapes import Shape
from confide.types import Array


class Draws(Protocol):
    """What `Entropy` draws, as far as noise in groups is made of it."""

    def exponential(self, n: int) -> Array:
        """(n,) independent draws of the exponential law of rate 1."""

    def signs(self, n: int) -> Array:
        """(n,) independent signs, -1 or +1."""

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1, uniform."""


def polytope(entropy: Draws, shape: Shape, rate: float) -> Array:
    """One draw (D,) with density proportional to exp(-rate |b|_K)."""
    if isinstance(shape, Mapped):
        image: Array = shape.mapped(polytope(entropy, shape.base, rate)[None])[0]
        return image
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


def _bundles(entropy: Draws, shape: Bundles, rate: float) -> Array:
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


def _contrasts(entropy: Draws, size: int) -> Array:
    """A uniform point of sum 0 among those whose distances from their median add up to at most 1."""
    magnitudes, order = _simplex(entropy, size)[1:], np.arange(size)
    for position in range(size - 1):
        other = position + entropy.below(size - position)
        order[position], order[other] = order[other], order[position]
    point = np.zeros(size)
    rising = size // 2
    point[order[:rising]] = magnitudes[:rising]
    point[order[rising : size - 1]] = -magnitudes[rising:]
    centred: Array = point - math.fsum(point) / size
    return centred


def _cross(entropy: Draws, size: int) -> Array:
    """A uniform point of L1 norm at most 1."""
    return _simplex(entropy, size + 1)[1:] * entropy.signs(size)


def _section(entropy: Draws, shape: Linked) -> list[Array]:
    """A uniform point of the part of the unit ball that lies in the space of the shape, by groups, at scales of 1."""
    cells = _cells(entropy, shape.levels)
    rising, falling = (math.fsum(entropy.exponential(n + 1)) for n in (sum(cells), sum(shape.levels) - sum(cells)))
    total, positive = rising + falling, iter(cells)
    groups = [
        _group(entropy, size, next(positive), rising / total, falling / total) if linked else _cross(entropy, size)
        for size, linked in zip(shape.sizes[:-1], shape.linked[:-1], strict=True)
    ]
    return [*groups, np.array([(rising - falling) / total])]


def _cells(entropy: Draws, levels: tuple[int, ...]) -> list[int]:
    """For each linked group, how many levels after the first have positive noise: first the total, then its parts."""
    total = _choice(entropy, cell_weights(levels))
    cells: list[int] = []
    for n, counts in zip(reversed(levels), cell_counts(levels)[-2::-1], strict=True):
        left, at = total - sum(cells), dict(enumerate(counts))
        cells.append(_choice(entropy, [square * at.get(left - j, 0) for j, square in enumerate(binomial_squares(n))]))
    return cells[::-1]


def _group(entropy: Draws, size: int, positive: int, rising: float, falling: float) -> Array:
    """A linked group: the first level and `positive` others share `rising`, the first and the rest share -`falling`."""
    order = np.arange(size)
    for position in range(1, positive + 1):
        other = position + entropy.below(size - position)
        order[position], order[other] = order[other], order[position]
    group = np.zeros(size)
    group[order[: positive + 1]] = rising * _simplex(entropy, positive + 1)
    group[np.append(0, order[positive + 1 :])] -= falling * _simplex(entropy, size - positive)
    return group


def _simplex(entropy: Draws, n: int) -> Array:
    """A uniform point among n positive numbers of sum 1."""
    parts = entropy.exponential(n)
    return parts / math.fsum(parts)


def _choice(entropy: Draws, weights: Sequence[int]) -> int:
    """A position, with probability exactly proportional to its weight."""
    sums = list(itertools.accumulate(weights))
    return bisect.bisect_right(sums, entropy.below(sums[-1]))
