"""Coded rows: their sums are those of the dense rows with the same numbers, and they are clipped to the same bounds."""

from __future__ import annotations

import math
from copy import copy
from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from confide.erm.class_losses import Softmax
from confide.erm.coded_rows import CodedLayout, CodedRows, _frame, dense
from confide.erm.group_bounds import GroupBound, _limits_of_coded
from confide.erm.losses import LogisticLoss
from confide.erm.moment_sums import LeastSquaresSum, MomentSum
from confide.erm.row_bounds import LONG_ROW, BallBound, row_squares
from confide.erm.row_sums import RowSum, product
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


def with_entries(rows, where, values):
    """The rows with other entries at some places."""
    entries = rows.entries.copy()
    entries[where] = values
    return CodedRows(rows.layout, rows.columns, entries)


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
@pytest.mark.parametrize("k", [1, 2, 3])
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


class OtherArray(np.ndarray):
    """An array that might compare or multiply in its own way."""


def test_arrays_of_other_sizes_or_types_are_refused():
    """Neither a part of a row, nor wide integers, nor entries whose sums would be made in another precision."""
    rows = made_up(3)
    others = [
        (rows.columns, rows.entries.astype(kind)) for kind in (np.float32, np.float16, np.int64, np.int32, np.complex128)
    ]
    swapped = rows.entries.dtype.newbyteorder()
    for columns, entries in (
        *others,
        (rows.columns, rows.entries.astype(swapped)),
        (rows.columns.astype(rows.columns.dtype.newbyteorder()), rows.entries),
        (rows.columns.view(OtherArray), rows.entries),
        (rows.columns, rows.entries.view(OtherArray)),
        (rows.columns, rows.entries.tolist()),
        (rows.columns[:-1], rows.entries[:-1]),
        (rows.columns[:-1], rows.entries),
        (rows.columns.astype(np.int64), rows.entries),
        (rows.columns.reshape(3, -1), rows.entries.reshape(3, -1)),
    ):
        with pytest.raises(ParameterError, match="coded rows need"):
            CodedRows(LAYOUT, columns, entries)
    with pytest.raises(FrozenInstanceError):
        rows.entries = np.zeros(0)


def test_columns_and_entries_cannot_be_written_to_after_the_check():
    """Also not those of rows that were scaled, or of a part."""
    rows = made_up(3)
    for each in (rows, rows[1:], BallBound(0.1).clip(rows)):
        for array in (each.columns, each.entries):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 0


def test_trusted_sums_use_no_products_of_another_class():
    """Coded rows and layouts of other classes, or what claims to be coded rows, are refused."""
    rows = made_up(3)
    with pytest.raises(TypeError, match="cannot be subclassed"):

        class Other(CodedRows):
            """Rows with products of their own."""

    class OtherLayout(CodedLayout):
        """A layout with parts of its own."""

    with pytest.raises(ParameterError, match="coded rows need"):
        CodedRows(OtherLayout(12, LAYOUT.singles, LAYOUT.pairs), rows.columns, rows.entries)

    class Claiming:
        """What `isinstance` takes for coded rows."""

        __class__ = CodedRows
        shape, layout, n_rows, columns, entries = rows.shape, LAYOUT, 3, rows.columns, rows.entries

        def squares(self):
            """Zeros."""
            return np.zeros(3)

        def times(self, vectors):
            """Ones."""
            return np.ones((3, vectors.shape[1]))

        def weighted_sums(self, weights):
            """Far too much."""
            return np.full((weights.shape[1], 12), 1e9)

        def dense(self):
            """Far too much."""
            return np.full((3, 12), 1e9)

    claiming = Claiming()
    assert isinstance(claiming, CodedRows)
    assert dense(claiming) is claiming
    for bound in (BallBound(1.0), BallBound(math.inf), GroupBound(SIZES, SCALES)):
        with pytest.raises((TypeError, ValueError)):
            bound.clip(claiming)
    with pytest.raises(AttributeError):
        row_squares(claiming)
    for left, right in ((claiming, np.ones((12, 1))), (np.ones((1, 3)), claiming)):
        with pytest.raises(TypeError):
            product(left, right)


def test_what_is_kept_for_a_layout_cannot_be_changed():
    """Neither by whoever gets hold of an array, nor by a key that claims to equal another one."""
    rows, bound = made_up(4), GroupBound(SIZES, SCALES)
    frame = _frame(LAYOUT, 4)
    limits = _limits_of_coded(bound._key, LAYOUT.key, 4)
    for array in (frame.lowest, frame.highest, frame.stacked.indptr, frame.transposed.indptr, *limits):
        assert array.size
        while isinstance(array, np.ndarray):
            with pytest.raises(ValueError, match="WRITEABLE"):
                array.setflags(write=True)
            array = array.base
    assert frame is _frame(CodedLayout(12, LAYOUT.singles, LAYOUT.pairs), 4)
    assert limits is _limits_of_coded(GroupBound(SIZES, SCALES)._key, LAYOUT.key, 4)

    class Key(bytes):
        """Equal to every key of the same hash."""

        def __eq__(self, other):
            return True

        def __hash__(self):
            return hash(LAYOUT.key)

    for of in (rows.layout, bound):
        name = "key" if of is rows.layout else "_key"
        key, of_its_own = getattr(of, name), copy(of)
        object.__setattr__(of_its_own, name, Key(key))
        with pytest.raises(TypeError, match="known by bytes"):
            _frame(of_its_own, 4) if of is rows.layout else of_its_own.clip(rows)
    mine, layout = copy(rows), copy(rows.layout)
    object.__setattr__(layout, "key", Key(layout.key))
    object.__setattr__(mine, "layout", layout)
    with pytest.raises(TypeError, match="known by bytes"):
        bound.clip(mine)
    others = {CodedLayout(12, *intervals).key for intervals in (
        (((0, 3), (9, 10)), ((3, 7), (10, 12))),
        (((0, 3), (9, 10), (3, 7), (10, 12)), ()),
        (((9, 10), (0, 3)), ((3, 7), (10, 12))),
        (((0, 3),), ((3, 7), (10, 12))),
    )}  # fmt: skip
    assert len(others | {CodedLayout(13, LAYOUT.singles, LAYOUT.pairs).key}) == 5
    bounds = [GroupBound((3, 4), (1.0, 2.0)), GroupBound((4, 3), (1.0, 2.0)), GroupBound((3, 4), (2.0, 1.0))]
    assert len({each._key for each in (*bounds, GroupBound((3, 4), (1.0, 2.0), (True, False)))}) == 4


def test_blocks_and_layouts_beyond_32_bit_integers_are_refused():
    """Compiled code counts with them."""
    with pytest.raises(ParameterError, match="fewer than 2\\^31 columns"):
        CodedLayout(2**31, ((0, 2),), ())
    CodedLayout(2**31 - 1, ((2**31 - 3, 2**31 - 1),), ())
    for layout, n_rows in ((CodedLayout(2, ((0, 1),), ()), 2**30), (CodedLayout(9, (), ((0, 4), (4, 9))), 2**29)):
        # Arrays of zeros that take no memory.
        columns, entries = (np.broadcast_to(kind(0), n_rows * layout.width) for kind in (np.int32, np.float64))
        with pytest.raises(ParameterError, match="block of coded rows has fewer"):
            CodedRows(layout, columns, entries)


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
        (9, ((0, 3), (4, 4)), ()),
        (9, ((0, 3),), ((3, 5), (5, 6))),
    ],
)
def test_a_layout_has_separate_intervals_inside_of_the_rows(n_features, singles, pairs):
    """With at least one column for an entry."""
    with pytest.raises(ParameterError, match="CodedLayout"):
        CodedLayout(n_features, singles, pairs)


@pytest.mark.parametrize(
    ("n_features", "singles", "pairs"),
    [
        (math.nan, ((0, 3),), ()),
        (6.0, ((0, 3),), ()),
        (6, ((0, math.nan),), ()),
        (6, ((0.0, 3.0),), ()),
        (6, (), ((math.nan, 3),)),
        (6, ((0, 3, 4),), ()),
        (6, (3,), ()),
        (6, None, ()),
    ],
)
def test_a_layout_is_made_of_whole_numbers(n_features, singles, pairs):
    """Of any integer type, kept as those of Python."""
    with pytest.raises(ParameterError, match="needs whole numbers"):
        CodedLayout(n_features, singles, pairs)
    layout = CodedLayout(np.int64(6), [[np.int32(0), np.int64(3)]], np.array([[3, 6]]))
    assert layout == CodedLayout(6, ((0, 3),), ((3, 6),))
    numbers = (layout.n_features, *layout.singles[0], *layout.pairs[0])
    assert {type(each) for each in numbers} == {int}


@pytest.mark.parametrize("bound", [GroupBound(SIZES, SCALES), GroupBound(SIZES, SCALES, (True, *[False] * 4))])
def test_rows_within_the_groups_stay_coded(bound):
    """A single entry may be the scale itself, also one of a pair; nothing is copied."""
    rows = made_up(30)
    entries = rows.entries.copy()
    _, falling, rising = LAYOUT.parts(entries)
    falling[3], rising[3] = 0.0, 1.0
    falling[4], rising[4] = -1.0, 0.0
    rows = CodedRows(LAYOUT, rows.columns, entries)
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
    rows = with_entries(made_up(2), where, value)
    clipped = bound.clip(rows)
    assert isinstance(clipped, np.ndarray)
    np.testing.assert_array_equal(clipped, bound.clip(rows.dense()))
    for start, size in zip(np.cumsum(SIZES) - SIZES, SIZES, strict=True):
        sums = [sum(abs(Fraction(entry)) for entry in row) for row in clipped[:, start : start + size].tolist()]
        assert max(sums) <= 1


PAIRS = CodedLayout(10, singles=((8, 10),), pairs=((0, 4), (4, 8)))
DIFFERENT = GroupBound((4, 4, 2), (1.0, 1e-3, 0.25))
ABOVE = {
    "a sum without a sign": (0.9, -0.9, 1e-4, 1e-4, 0.25),
    "two negative entries": (-0.9, -0.9, 1e-4, 1e-4, 0.25),
    "less above the scale than a sum shows": (1.0, 2.0**-54, 1e-4, 1e-4, 0.25),
    "less above the smaller scale than a sum shows": (0.5, 0.25, 1e-3, 1e-20, 0.25),
    "above the smaller of two scales": (0.1, 0.1, 0.1, 0.3, 0.25),
    "one entry above the smaller scale": (0.1, 0.1, 0.0, 2e-3, 0.25),
    "a level above a scale of its own": (0.1, 0.1, 1e-4, 1e-4, 0.5),
    "a level below it": (0.1, 0.1, 1e-4, 1e-4, -0.5),
}
WITHIN = {
    "two signs": (0.4, -0.4, -1e-4, 1e-4, 0.25),
    "one entry of the whole scale": (0.0, 1.0, 1e-3, 0.0, -0.25),
    "one scale alone, the other one nearly": (0.5, 0.5 - 2.0**-40, 1e-3, 0.0, 0.0),
}


def one_row(entries):
    """A row of `PAIRS`: two pairs in groups of different scales, then a level."""
    return CodedRows(PAIRS, np.array([8, 1, 5, 2, 6], np.int32), np.array(entries)[[4, 0, 2, 1, 3]])


@pytest.mark.parametrize("entries", ABOVE.values(), ids=ABOVE)
def test_a_pair_above_its_own_scale_is_clipped(entries):
    """However little, whatever the signs, and if another group has a larger scale. Exactly, it is within the scale then."""
    rows = one_row(entries)
    clipped = DIFFERENT.clip(rows)
    assert isinstance(clipped, np.ndarray)
    np.testing.assert_array_equal(clipped, DIFFERENT.clip(rows.dense()))
    assert not np.array_equal(clipped, rows.dense())
    for (start, stop), scale in zip(((0, 4), (4, 8), (8, 10)), DIFFERENT.scales, strict=True):
        assert sum(abs(Fraction(entry)) for entry in clipped[0, start:stop].tolist()) <= Fraction(scale)


@pytest.mark.parametrize("entries", WITHIN.values(), ids=WITHIN)
def test_a_pair_within_its_own_scale_stays(entries):
    """Also where another group has a smaller scale."""
    rows = one_row(entries)
    assert DIFFERENT.clip(rows) is rows


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
    rows = with_entries(made_up(5), [0, 12], [value, -value])
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


@pytest.mark.parametrize("form", [lambda rows: rows, lambda rows: csr_array(rows.dense())], ids=["coded", "CSR"])
def test_long_rows_that_no_bound_reads_have_the_scores_of_dense_rows(form):
    """One problem, a ball of no radius, and rows so long that arrays are multiplied one by one."""
    layout = CodedLayout(2 * LONG_ROW, singles=((0, LONG_ROW),), pairs=((LONG_ROW, 2 * LONG_ROW),))
    rows, row_sum = made_up(20, layout), RowSum(LogisticLoss(), BallBound(math.inf), 0.0, 1)
    weights, labels = np.random.default_rng(9).normal(size=(1, 2 * LONG_ROW)), np.ones(20, np.int8)
    given, plain = row_sum.start(1, 2 * LONG_ROW), row_sum.start(1, 2 * LONG_ROW)
    row_sum.add_block(given, form(rows), labels, weights)
    row_sum.add_block(plain, rows.dense(), labels, weights)
    np.testing.assert_allclose(given.gradient, plain.gradient, rtol=1e-12, atol=1e-12)


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


def test_columns_are_kept_within_the_intervals_of_each_row():
    """From the first column of each interval to its last; the first entry of a pair has a neighbour above it."""
    frame = _frame(LAYOUT, 2)
    assert frame.lowest.tolist() == [0, 9, 0, 9, 3, 10, 3, 10]
    assert frame.highest.tolist() == [2, 9, 2, 9, 5, 10, 5, 10]
