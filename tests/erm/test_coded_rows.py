"""Coded rows: their sums are those of the dense rows with the same numbers, and they are clipped to the same bounds."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

from confide.erm.class_losses import Softmax
from confide.erm.coded_rows import CodedLayout, CodedRows, dense
from confide.erm.group_bounds import GroupBound
from confide.erm.least_squares_sums import LeastSquaresSum
from confide.erm.losses import LogisticLoss
from confide.erm.moment_sums import MomentSum
from confide.erm.row_bounds import BallBound, row_squares
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError

LAYOUT = CodedLayout(12, singles=((0, 3), (9, 10)), pairs=((3, 7), (10, 12)))
"""A category, a number with three knots, two columns that are never used, a straight line, and a shortest pair."""
SIZES, SCALES = (3, 4, 2, 1, 2), (1.0,) * 5


def made_up(n_rows, layout=LAYOUT, seed=0, scale=1.0):
    """Rows whose pairs have entries that add up to a little less than the scale."""
    rng = np.random.default_rng(seed)
    columns, entries = np.empty(n_rows * layout.width, np.int32), np.empty(n_rows * layout.width)
    single, first, second = layout.parts(columns)
    ones, falling, rising = layout.parts(entries)
    for place, (start, stop) in enumerate(layout.singles):
        single[:, place] = rng.integers(start, stop, n_rows)
    for place, (start, stop) in enumerate(layout.pairs):
        first[:, place] = rng.integers(start, stop - 1, n_rows)
    second[...] = first + 1
    ones[...] = scale
    rising[...] = rng.random(rising.shape) * scale * (1 - 2.0**-36)
    falling[...] = scale * (1 - 2.0**-36) - rising
    return CodedRows(layout, columns, entries)


def test_the_dense_rows_hold_the_entries_in_their_columns():
    """Whatever is not stored is 0."""
    layout = CodedLayout(5, singles=((4, 5),), pairs=((0, 3),))
    rows = CodedRows(layout, np.array([4, 4, 0, 1, 1, 2], np.int32), np.array([-1, 0.5, 0.25, 1, 0.75, 0]))
    assert rows.shape == (2, 5)
    assert rows.dense().tolist() == [[0.25, 0.75, 0, 0, -1], [0, 1, 0, 0, 0.5]]
    assert dense(rows).tolist() == rows.dense().tolist()
    array = np.ones((2, 2))
    assert dense(array) is array


@pytest.mark.parametrize("layout", [LAYOUT, CodedLayout(8, ((1, 4), (4, 8)), ()), CodedLayout(8, (), ((0, 2), (2, 8)))])
@pytest.mark.parametrize("k", [1, 3])
def test_products_are_those_of_the_dense_rows(layout, k):
    """Scores, sums and norms, of all rows and of a part of them."""
    rng, rows = np.random.default_rng(1), made_up(50, layout)
    for part in (rows, rows[10:20], rows[45:60], rows[7:7]):
        vectors, weights = rng.normal(size=(layout.n_features, k)), rng.normal(size=(part.n_rows, k))
        np.testing.assert_allclose(part.times(vectors), part.dense() @ vectors, rtol=0, atol=1e-14)
        np.testing.assert_allclose(part.weighted_sums(weights), weights.T @ part.dense(), rtol=0, atol=1e-13)
        np.testing.assert_allclose(row_squares(part), (part.dense() ** 2).sum(axis=1), rtol=1e-14)
        factors = rng.random(part.n_rows)
        assert np.array_equal(part.scaled(factors).dense(), part.dense() * factors[:, None])
    assert np.array_equal(rows[10:20].dense(), rows.dense()[10:20])


def test_the_terms_of_a_score_are_the_dense_products_in_another_order():
    """In exact arithmetic both are the same sum; each computed one is within the bound of d terms in any order."""
    rows, unit = made_up(40, seed=3), Fraction(1, 2**53)
    weights = np.random.default_rng(3).normal(size=(12, 1)) * 10.0 ** np.random.default_rng(4).integers(-8, 9, (12, 1))
    slopes = np.random.default_rng(5).normal(size=(40, 1)) * 1e5
    table = [[Fraction(entry) for entry in row] for row in rows.dense().tolist()]
    for row, score in zip(table, rows.times(weights)[:, 0].tolist(), strict=True):
        terms = [entry * Fraction(weight) for entry, weight in zip(row, weights[:, 0].tolist(), strict=True)]
        assert abs(Fraction(score) - sum(terms)) <= 13 * unit * sum(map(abs, terms))
    for column, total in zip(zip(*table, strict=True), rows.weighted_sums(slopes)[0].tolist(), strict=True):
        terms = [entry * Fraction(slope) for entry, slope in zip(column, slopes[:, 0].tolist(), strict=True)]
        assert abs(Fraction(total) - sum(terms)) <= 41 * unit * sum(map(abs, terms))


SPOILT = {
    "a column before its interval": lambda columns, entries: columns.__setitem__(1, 8),
    "a column behind its interval": lambda columns, entries: columns.__setitem__(0, 3),
    "a negative column": lambda columns, entries: columns.__setitem__(0, -1),
    "a pair that begins at the last column": lambda columns, entries: (columns.__setitem__(4, 6), columns.__setitem__(8, 7)),
    "a pair of the same column": lambda columns, entries: columns.__setitem__(8, columns[4]),
    "a pair with a gap": lambda columns, entries: (columns.__setitem__(4, 3), columns.__setitem__(8, 5)),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_columns_outside_of_their_intervals_are_refused(spoil):
    """Compiled code would follow them into other memory, or a norm would not be that of the row."""
    rows = made_up(2)
    columns, entries = rows.columns.copy(), rows.entries.copy()
    CodedRows(LAYOUT, columns, entries)
    spoil(columns, entries)
    with pytest.raises(ParameterError, match="each in its interval"):
        CodedRows(LAYOUT, columns, entries)


def test_arrays_of_other_sizes_or_types_are_refused():
    """Neither a part of a row nor wide integers."""
    rows = made_up(3)
    for columns, entries in (
        (rows.columns[:-1], rows.entries[:-1]),
        (rows.columns[:-1], rows.entries),
        (rows.columns.astype(np.int64), rows.entries),
        (rows.columns.reshape(3, -1), rows.entries.reshape(3, -1)),
    ):
        with pytest.raises(ParameterError, match="coded rows need"):
            CodedRows(LAYOUT, columns, entries)
    with pytest.raises(FrozenInstanceError):
        rows.entries = np.zeros(0)


@pytest.mark.parametrize(
    ("n_features", "singles", "pairs"),
    [
        (5, (), ()),
        (5, ((0, 3), (2, 4)), ()),
        (5, ((0, 3),), ((2, 5),)),
        (5, ((3, 6),), ()),
        (5, ((-1, 2),), ()),
        (5, ((2, 2),), ()),
        (5, (), ((2, 3),)),
    ],
)
def test_a_layout_has_separate_intervals_inside_of_the_rows(n_features, singles, pairs):
    """With at least one column for an entry."""
    with pytest.raises(ParameterError, match="CodedLayout"):
        CodedLayout(n_features, singles, pairs)


@pytest.mark.parametrize("bound", [GroupBound(SIZES, SCALES), GroupBound(SIZES, SCALES, (True, *[False] * 4))])
def test_rows_within_the_groups_stay_coded(bound):
    """A single entry may be the scale itself, also one of a pair; nothing is copied."""
    rows = made_up(30)
    _, falling, rising = LAYOUT.parts(rows.entries)
    falling[3], rising[3] = 0.0, 1.0
    falling[4], rising[4] = -1.0, 0.0
    assert bound.clip(rows) is rows
    assert np.array_equal(bound.clip(rows.dense()), rows.dense())


OUTSIDE = {
    "a large single entry": (0, 1.5),
    "a level below the scale of a linked group": (0, 0.5),
    "no number": (0, math.nan),
    "an infinite pair": (4, math.inf),
    "a pair that is no number": (8, math.nan),
    "a pair above the scale": (4, 1.0),
    "a negative pair above the scale": (4, -1.0),
    "the largest number": (8, np.finfo(np.float64).max),
}


@pytest.mark.parametrize(("where", "value"), OUTSIDE.values(), ids=OUTSIDE)
def test_rows_outside_of_the_groups_are_clipped_as_dense_rows(where, value):
    """Whatever an encoder made of them."""
    bound = GroupBound(SIZES, SCALES, (True, *[False] * 4))
    rows = made_up(2)
    rows.entries[where] = value
    clipped = bound.clip(rows)
    assert isinstance(clipped, np.ndarray)
    np.testing.assert_array_equal(clipped, bound.clip(rows.dense()))
    for start, size in zip(np.cumsum(SIZES) - SIZES, SIZES, strict=True):
        sums = [sum(abs(Fraction(entry)) for entry in row) for row in clipped[:, start : start + size].tolist()]
        assert max(sums) <= 1


def test_groups_that_do_not_fit_the_intervals_are_clipped_as_dense_rows():
    """Two intervals in one group, an interval in two groups, and a linked group with a pair or without any entry."""
    rows = made_up(20)
    for sizes, linked in (
        ((7, 2, 1, 2), (False,) * 4),
        ((2, 5, 2, 1, 2), (False,) * 5),
        (SIZES, (True, True, False, False, False)),
        (SIZES, (True, False, True, False, False)),
    ):
        bound = GroupBound(sizes, (1.0,) * len(sizes), linked)
        clipped = bound.clip(rows)
        assert isinstance(clipped, np.ndarray)
        np.testing.assert_array_equal(clipped, bound.clip(rows.dense()))
    with pytest.raises(ParameterError, match="describes 11 columns"):
        GroupBound((11,), (1.0,)).clip(rows)


@pytest.mark.parametrize("norm", [0.3, 1.4, 1.9, 10.0, math.inf])
def test_a_ball_scales_the_entries(norm):
    """Rows inside stay as they are, and the others get the radius of the ball."""
    rows = made_up(60)
    clipped = BallBound(norm).clip(rows)
    assert isinstance(clipped, CodedRows)
    np.testing.assert_allclose(clipped.dense(), BallBound(norm).clip(rows.dense()), rtol=1e-14)
    for row in clipped.dense().tolist():
        assert norm == math.inf or sum(Fraction(entry) ** 2 for entry in row) <= Fraction(norm) ** 2
    inside = np.sqrt(row_squares(rows)) < norm * (1 - 1e-9)
    assert np.array_equal(clipped.dense()[inside], rows.dense()[inside])


@pytest.mark.parametrize("value", [1e200, 1e308])
def test_a_ball_scales_huge_rows_without_overflow(value):
    """As it does dense ones."""
    rows = made_up(5)
    rows.entries[[0, 12]] = value, -value
    clipped = dense(BallBound(1.0).clip(rows))
    np.testing.assert_array_equal(clipped, BallBound(1.0).clip(rows.dense()))
    assert (np.linalg.norm(clipped, axis=1) <= 1.0).all()


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("k", [1, 3, 40])
@pytest.mark.parametrize("bound", [GroupBound(SIZES, SCALES), BallBound(1.3)])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_sums_over_coded_rows_are_sums_over_dense_rows(order, k, bound, intercept):
    """Values, gradients and Hessians, for one problem and many, with and without weights of rows."""
    rng, rows = np.random.default_rng(2), made_up(64)
    labels, counts = rng.choice([-1, 1], 64).astype(np.int8), rng.random(64)
    weights = rng.normal(size=(k, 12 + (intercept > 0)))
    row_sum = RowSum(LogisticLoss(), bound, intercept, order)
    for row_weights in (None, counts):
        coded, plain = row_sum.start(k, 12), row_sum.start(k, 12)
        row_sum.add_block(coded, rows, labels, weights, row_weights)
        row_sum.add_block(plain, rows.dense(), labels, weights, row_weights)
        for name in ("value", "gradient", "hessian"):
            np.testing.assert_allclose(getattr(coded, name), getattr(plain, name), rtol=1e-11, atol=1e-11)


def test_other_sums_of_the_closed_list_take_coded_rows():
    """Several classes, moments and least squares."""
    rng, rows, bound = np.random.default_rng(6), made_up(64), GroupBound(SIZES, SCALES)
    softmax = RowSum(Softmax(3), bound, 1.0, 2)
    moments = MomentSum(RowSum(LogisticLoss(), bound, 1.0, 1), 0.01)
    squares = LeastSquaresSum(bound, 1.0, 5.0)
    signs, classes, targets = rng.choice([-1, 1], 64).astype(np.int8), rng.integers(0, 3, 64), rng.normal(size=64)
    for row_sum, labels, width in ((softmax, classes, 39), (moments, signs, 13), (squares, targets, 13)):
        weights = rng.normal(size=(1, width))
        coded, plain = row_sum.start(1, 12), row_sum.start(1, 12)
        row_sum.add_block(coded, rows, labels, weights)
        row_sum.add_block(plain, rows.dense(), labels, weights)
        for name in ("value", "gradient", "hessian"):
            np.testing.assert_allclose(getattr(coded, name), getattr(plain, name), rtol=1e-11, atol=1e-11)
