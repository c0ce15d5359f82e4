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

Where a model's probabilities are right, the moments of slopes are those of curvatures (the information equality; of squared
and of robust losses, a multiple of them). So the moments of slopes, whose noise is larger, are shrunk towards a multiple of
those of curvatures in the same way, as far as they do not say otherwise.

Where so few rows meet a level or a hat that the noise exceeds their part, nothing but the ridge is known to hold its weight.
So the curvature of each column with itself is lowered by half a standard deviation of its noise, which makes intervals wider
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

_PART_OF_NOISE_THAT_IS_LEFT = 0.22
"""How much of the noise intervals still correct for, of what the shrinking leaves. With all of it, intervals of rare levels
and hats are too short, because `denoised_curvature` raises the curvature of directions that no row meets."""
_LOWERED_BY = 0.5
"""The curvature of a column with itself is lowered by so many standard deviations of its noise. Both numbers were chosen on
other populations than that of benchmarks/effect_bands.py, which confirmed them."""


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
        noisy = evidence.curvature[own], evidence.slope[own]
        bent, left[place, 0] = _estimate(noisy[0], of_curvature, evidence.intercept, groups)
        found, left[place, 1] = _estimate(noisy[1], of_slope, evidence.intercept, groups)
        deviations = left[place, 0] * of_curvature, of_slope
        multiple, share = _likeness(noisy[1], bent, deviations, _may_differ_from_zero(groups, len(bent)))
        slope[own] = multiple * bent + share * (found - multiple * bent)
        left[place, 1] *= share
        curvature[own], _ = _estimate(noisy[0], of_curvature, evidence.intercept, groups, lowered_by=_LOWERED_BY)
    shares = _PART_OF_NOISE_THAT_IS_LEFT * left.max(axis=0)
    return replace(
        evidence,
        curvature=curvature,
        slope=slope,
        curvature_deviation=float(of_curvature * shares[0]),
        slope_deviation=float(of_slope * shares[1]),
    )


def _may_differ_from_zero(groups: list[_Group], size: int) -> NDArray[np.bool_]:
    """(size, size): the upper triangle, without those products within a group that are 0 in every row."""
    known = np.ones((size, size), dtype=bool)
    for group in groups:
        known[group.place, group.place] = group.meets
    return np.triu(known)


def _likeness(
    slope: Array, curvature: Array, deviations: tuple[float, float], where: NDArray[np.bool_]
) -> tuple[float, float]:
    """The multiple of the curvature that is nearest to the slopes, and the share of what is left that is not noise.

    `deviations` are those of the noise on entries of the curvature and of the slopes off the diagonal.
    """
    # The noise on the diagonal is larger by the root of 2.
    equal = np.where(np.eye(len(slope), dtype=bool), 1.0 / np.sqrt(2.0), 1.0)
    ours, theirs = (slope * equal)[where], (curvature * equal)[where]
    size = float(theirs @ theirs)
    if deviations[1] == 0.0 or size == 0.0:
        return 0.0, 1.0
    multiple = max(0.0, float(ours @ theirs) / size)
    rest = ours - multiple * theirs
    noise = max(0, rest.size - 2) * (deviations[1] ** 2 + (multiple * deviations[0]) ** 2)
    return multiple, max(0.0, 1.0 - noise / max(float(rest @ rest), np.finfo(float).tiny))


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
    n_hats = size - bool(encoding.column.missing)
    neighbours = np.arange(n_hats - 1)
    meets[neighbours, neighbours + 1] = meets[neighbours + 1, neighbours] = True
    return _Group(place, meets, True, True)


def _estimate(
    noisy: Array, deviation: float, intercept: float, groups: list[_Group], lowered_by: float = 0.0
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
