"""Released moments of encoded columns, with less noise: their zeros and sums are public.

The columns that encode a category or a curve are mostly 0, and few rows meet many of them. In such directions the noise on
the moments is larger than the moments, and intervals from them as they are would be far too short: `denoised_curvature`
supposes that directions that it cannot tell apart are alike. But much is known of such moments before any row is read. Let M
be a sum over rows of u x x^T, u not negative, as both released matrices are.

- Two levels of a category never meet in a row, and a hat meets its neighbours alone, so all other products within a group of
  encoded columns are 0. Products of hats and of levels are not negative.
- Where the encoded columns of a group add up to 1 in each row, their products with one column add up to that column's
  product with 1. So each column's sum is released twice: beside the intercept, and within its group.
- Between two groups, products are near those that independent columns would have, the outer product of the two groups' sums
  divided by the sum of u. What is left is shrunk towards 0 by the positive-part rule of James and Stein (1961), which has a
  smaller expected squared error than no shrinking whatever the truth, for three or more numbers.

Where so few rows meet a level or a hat that the noise exceeds their part, nothing but the ridge is known to hold its weight.
So the curvature of each column with itself is lowered by one standard deviation of its noise, which makes intervals wider
there and hardly anywhere else. All of this is post-processing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from confide.features.column_encodings import CategoryEncoding, ColumnEncoding, NumberEncoding
from confide.features.encoder import Encoder
from confide.inference.evidence import Evidence
from confide.types import Array

_PART_OF_NOISE_THAT_IS_LEFT = 0.5
"""How much of the noise `denoised_curvature` still corrects for, of what the shrinking leaves. With all of it, intervals of
rare levels and hats were too short: 95% intervals held their targets in 90% to 95% of samples, with half of it in 96% to 99%
(benchmarks/effect_bands.py)."""


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """What is known of one group of encoded columns.

    Attributes
    ----------
    place : where its columns are
    meets : (size, size), whether two of its columns may both differ from 0 in one row
    adds_up : whether its columns add up to 1 in every row
    not_negative : whether no column has negative entries
    """

    place: slice
    meets: NDArray[np.bool_]
    adds_up: bool
    not_negative: bool


def with_known_zeros(evidence: Evidence, encoder: Encoder) -> Evidence:
    """The same evidence with less noise in its moments; unchanged if several scores bend together."""
    if not evidence.separable:
        return evidence
    described = zip(encoder.groups, encoder.factors, encoder.row_bound.scales, strict=True)
    groups = [_group(group.place, factors, scale) for group, factors, scale in described]
    curvature, slope = evidence.curvature.copy(), evidence.slope.copy()
    of_curvature, of_slope = evidence.curvature_deviation, evidence.slope_deviation
    left = np.zeros((len(evidence.blocks), 2))
    for place, block in enumerate(evidence.blocks):
        own = (block, block)
        curvature[own], left[place, 0] = _estimate(curvature[own], of_curvature, evidence.intercept, groups, lowered_by=1.0)
        slope[own], left[place, 1] = _estimate(slope[own], of_slope, evidence.intercept, groups, lowered_by=0.0)
    shares = _PART_OF_NOISE_THAT_IS_LEFT * left.max(axis=0)
    return replace(
        evidence,
        curvature=curvature,
        slope=slope,
        curvature_deviation=float(of_curvature * shares[0]),
        slope_deviation=float(of_slope * shares[1]),
    )


def _group(place: slice, factors: tuple[ColumnEncoding, ...], scale: float) -> _Group:
    known = [_of_column(place, factor) for factor in factors]
    return _Group(
        place,
        reduce(np.kron, (each.meets for each in known)),
        scale == 1.0 and all(each.adds_up for each in known),
        all(each.not_negative for each in known),
    )


def _of_column(place: slice, encoding: ColumnEncoding) -> _Group:
    size = len(encoding.names)
    meets = np.eye(size, dtype=bool)
    if isinstance(encoding, CategoryEncoding):
        return _Group(place, meets, encoding.linked, not encoding.single.size)
    assert isinstance(encoding, NumberEncoding)  # noqa: S101  # the two kinds of columns
    if not encoding.column.knots:
        return _Group(place, meets, False, False)
    n_hats = size - encoding.column.missing
    neighbours = np.arange(n_hats - 1)
    meets[neighbours, neighbours + 1] = meets[neighbours + 1, neighbours] = True
    return _Group(place, meets, True, True)


def _estimate(
    noisy: Array, deviation: float, intercept: float, groups: list[_Group], lowered_by: float
) -> tuple[Array, float]:
    """The moments of one score, and the share of the noise that is left in them.

    The moments of a column with itself are lowered by `lowered_by` standard deviations of their noise.
    """
    if deviation == 0.0:
        return noisy, 1.0
    estimate = np.zeros_like(noisy)
    sums = np.zeros(len(noisy))
    for group in groups:
        own = np.where(group.meets, noisy[group.place, group.place], 0.0)
        lowered = np.diagonal(own) - lowered_by * np.sqrt(2.0) * deviation
        if intercept > 0.0:
            sums[group.place] = noisy[group.place, -1] / intercept
        if group.adds_up and intercept > 0.0:
            # Both are the column's sum; each is weighted by the inverse of its variance.
            twice, beside = 1.0 + group.meets.sum(axis=1), 1.0 / intercept**2
            sums[group.place] = (sums[group.place] / beside + own.sum(axis=1) / twice) / (1.0 / beside + 1.0 / twice)
            if not (group.meets & ~np.eye(len(own), dtype=bool)).any():
                lowered = sums[group.place] - lowered_by * deviation / np.sqrt(1.0 / beside + 1.0 / twice)
        if group.not_negative:
            own, sums[group.place] = np.maximum(own, 0.0), np.maximum(sums[group.place], 0.0)
        np.fill_diagonal(own, np.maximum(lowered, 0.0))
        estimate[group.place, group.place] = own
    total = noisy[-1, -1] / intercept**2 if intercept > 0.0 else 0.0
    kept = n_entries = 0.0
    for first, second in combinations(groups, 2):
        alone = np.outer(sums[first.place], sums[second.place]) / total if total > 0.0 else 0.0
        rest = noisy[first.place, second.place] - alone
        noise = max(0, rest.size - 2) * deviation**2
        share = max(0.0, 1.0 - noise / max(float(np.sum(rest**2)), np.finfo(float).tiny))
        estimate[first.place, second.place] = alone + share * rest
        estimate[second.place, first.place] = estimate[first.place, second.place].T
        kept, n_entries = kept + share**2 * rest.size, n_entries + rest.size
    if intercept > 0.0:
        estimate[:-1, -1] = estimate[-1, :-1] = intercept * sums[:-1]
        estimate[-1, -1] = noisy[-1, -1]
    return estimate, float(np.sqrt(kept / n_entries)) if n_entries else 1.0
