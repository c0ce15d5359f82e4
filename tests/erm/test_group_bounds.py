"""Bounds on groups of columns: every clipped row obeys them in exact arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from confide.erm.coded_rows import CodedLayout, CodedRows, dense
from confide.erm.group_bounds import BoxBound, GroupBound
from confide.errors import FileError, ParameterError
from confide.models.files import row_bound_from_dict

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


BLOCKS = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=FINITE)


def exact_square_norm(row):
    """The squared L2 norm of floats, exactly."""
    return sum(Fraction(float(x)) ** 2 for x in row)


GROUPS = GroupBound((3, 1, 2), (1.0, 0.5, 2.0))


@given(block=hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.just(6)), elements=FINITE))
def test_clipped_rows_obey_every_group_in_exact_arithmetic(block):
    """L1 norm of each group at most its scale, by rational arithmetic, and the L2 norm of the row at most l2_norm."""
    before = block.copy()
    clipped = GROUPS.clip(block)
    assert np.array_equal(block, before)
    for row in clipped:
        start = 0
        for size, scale in zip(GROUPS.sizes, GROUPS.scales, strict=True):
            assert sum(abs(Fraction(float(x))) for x in row[start : start + size]) <= Fraction(scale)
            start += size
        assert exact_square_norm(row) <= Fraction(GROUPS.l2_norm) ** 2


def test_one_hot_rows_pass_a_group_bound_untouched():
    """A group that holds its scale in one column loses nothing to a margin; no copy is made."""
    scale = 1.0 / math.sqrt(15.0)
    bound = GroupBound((4, 1), (scale, scale))
    block = np.array([[0.0, scale, 0.0, 0.0, -scale], [0.0, 0.0, 0.0, 0.0, scale / 3]])
    assert bound.clip(block) is block


LINKED = GroupBound((3, 1, 2, 4, 1), (1.0, 0.5, 2.0, 0.1, 3.0), (True, False, False, True, True))


ANYTHING = st.floats(allow_nan=True, allow_infinity=True, width=64) | st.sampled_from(
    [0.0, -0.0, 1.0, 0.5, 2.0, 0.1, 3.0, -1.0, -0.1, math.nextafter(1.0, 0), math.nextafter(0.1, 1), 5e-324, 1e300]
)


def groups_of(bound, row):
    """The parts of a row with their scales and whether they are linked."""
    stops = np.cumsum(bound.sizes)
    return zip(np.split(row, stops[:-1]), bound.scales, bound.linked, strict=True)


def obeys(bound, row):
    """Whether a row obeys the bound, by exact comparisons and rational arithmetic."""
    return all(
        np.isfinite(part).all()
        and (
            sorted(part.tolist()) == [0.0] * (part.size - 1) + [scale]
            if linked
            else sum(abs(Fraction(float(x))) for x in part) <= Fraction(scale)
        )
        for part, scale, linked in groups_of(bound, row)
    )


@given(block=hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(11)), elements=ANYTHING))
def test_clipped_rows_are_linked_whatever_comes_in(block):
    """Exactly one entry of a linked group is its scale, and the others are 0, also for subnormals, infinities and NaN."""
    before = block.copy()
    clipped = LINKED.clip(block)
    assert np.array_equal(block, before, equal_nan=True)
    for old, new in zip(before, clipped, strict=True):
        assert obeys(LINKED, new)
        for (was, scale, linked), (now, _, _) in zip(groups_of(LINKED, old), groups_of(LINKED, new), strict=True):
            if linked:
                # What is no number counts as the least one, infinite entries as the largest; the first of equals is taken.
                order = np.nan_to_num(was, nan=-np.finfo(np.float64).max)
                assert now[order.argmax()] == scale
        # A row is clipped alike in any block, and a second time next to nothing is left to do.
        np.testing.assert_allclose(LINKED.clip(old[None])[0], new, rtol=1e-13, atol=1e-300)
    np.testing.assert_allclose(LINKED.clip(clipped), clipped, rtol=1e-13, atol=1e-300)


@given(data=st.data(), bad=ANYTHING)
def test_rows_that_are_linked_stay_bit_for_bit_beside_rows_that_are_not(data, bad):
    """Also the signs of zeros, and whatever stands in other groups of the row."""
    zeros = st.sampled_from([0.0, -0.0])
    row = np.array(data.draw(st.lists(zeros, min_size=11, max_size=11)))
    row[[data.draw(st.integers(0, 2)), data.draw(st.integers(6, 9)), 10]] = [1.0, 0.1, 3.0]
    row[3] = data.draw(st.sampled_from([0.0, -0.0, 0.5, -0.5, 5e-324, 0.25]))
    row[data.draw(st.integers(4, 5))] = data.draw(st.sampled_from([0.0, -0.0, 2.0, -2.0, 0.3]))
    assert LINKED.clip(row[None]).tobytes() == row.tobytes()
    spoilt = row.copy()
    spoilt[data.draw(st.integers(0, 10))] = bad
    clipped = LINKED.clip(np.array([spoilt, row, spoilt]))
    assert clipped[1].tobytes() == row.tobytes()
    for (was, scale, linked), (now, _, _) in zip(groups_of(LINKED, spoilt), groups_of(LINKED, clipped[0]), strict=True):
        if linked and sorted(was.tolist()) == [0.0] * (was.size - 1) + [scale]:
            assert now.tobytes() == was.tobytes()


MENDED = {
    "no level": ([0, 0, 0], [1, 0, 0]),
    "two levels": ([0, 1, 1], [0, 1, 0]),
    "a small one": ([0, 0, 0.5], [0, 0, 1]),
    "a negative one": ([0, -1, 0], [1, 0, 0]),
    "all negative": ([-3, -1, -2], [0, 1, 0]),
    "too large": ([0, 1e300, 2], [0, 1, 0]),
    "a sum that rounds to 1": ([5e-324, 1, 0], [0, 1, 0]),
    "a sum that is 1": ([-1, 1, 1], [0, 1, 0]),
    "almost 1": ([0, 0, math.nextafter(1.0, 0)], [0, 0, 1]),
    "not a number": ([math.nan, -1, 0], [0, 0, 1]),
    "no number at all": ([math.nan] * 3, [1, 0, 0]),
    "infinite": ([0, 1, math.inf], [0, 0, 1]),
    "minus infinity": ([-math.inf, 1, math.nan], [0, 1, 0]),
}


@pytest.mark.parametrize(("row", "expected"), MENDED.values(), ids=MENDED)
def test_a_linked_group_becomes_its_scale_at_the_largest_entry(row, expected):
    """The first of equals; what is not a number is the smallest."""
    assert GroupBound((3,), (1.0,), (True,)).clip(np.array([row], dtype=float)).tolist() == [expected]


def test_the_sum_of_a_row_does_not_stand_for_its_form():
    """Thirds that sum to the scale, or cancel to it, are no linked group; an unlinked one may hold the first of them."""
    bound = GroupBound((3,), (1.0,), (True,))
    for row in ([0.25, 0.25, 0.5], [2 / 3, 2 / 3, -1 / 3], [1.0, 1e300, -1e300], [1.0, 5e-324, 0.0]):
        assert obeys(bound, bound.clip(np.array([row]))[0])
    assert GroupBound((3,), (1.1,)).clip(np.array([[0.25, 0.25, 0.5]])).tolist() == [[0.25, 0.25, 0.5]]


@pytest.mark.parametrize("n_groups", [1, 15, 16, 17, 33, 200])
def test_any_number_of_groups_is_clipped_group_by_group(n_groups):
    """Groups of all kinds in a made-up order, more of them than one matrix product takes."""
    rng = np.random.default_rng(n_groups)
    sizes = rng.integers(1, 6, size=n_groups)
    bound = GroupBound(sizes, rng.uniform(0.1, 4.0, size=n_groups), (rng.random(n_groups) > 0.5).tolist())
    rows = rng.normal(size=(20, sizes.sum())) * rng.choice([0.0, 0.1, 3.0, 1e200], size=(20, sizes.sum()))
    before = rows.copy()
    clipped = bound.clip(rows)
    assert np.array_equal(rows, before)
    assert all(obeys(bound, row) for row in clipped)
    np.testing.assert_allclose(bound.clip(clipped), clipped, rtol=1e-13, atol=1e-300)
    stops = np.cumsum(bound.sizes)
    for stop, size, scale, linked in zip(stops, bound.sizes, bound.scales, bound.linked, strict=True):
        alone = GroupBound((size,), (scale,), (linked,)).clip(rows[:, stop - size : stop])
        np.testing.assert_allclose(clipped[:, stop - size : stop], alone, rtol=1e-13, atol=1e-300)


def test_linked_float32_rows_are_held_to_the_scale_in_float64():
    """A scale that single precision rounds is restored."""
    scale = 1.0 / math.sqrt(15.0)
    bound = GroupBound((2, 1), (scale, scale), (True, False))
    clipped = bound.clip(np.array([[0, scale, scale]], dtype=np.float32))
    assert clipped.tolist() == [[0.0, scale, min(float(np.float32(scale)), scale)]]


@given(block=hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.just(3)), elements=ANYTHING))
def test_a_box_clips_each_entry_to_its_interval(block):
    """By comparison alone: entries inside stay bit for bit, and what is not a number becomes the lower end."""
    box = BoxBound([1.0, 0.1, 1e-80])
    clipped = box.clip(block)
    for (i, j), entry in np.ndenumerate(block):
        limit = box.scales[j]
        expected = -limit if math.isnan(entry) else max(-limit, min(limit, entry))
        assert clipped[i, j] == expected
        assert math.copysign(1.0, clipped[i, j]) == math.copysign(1.0, expected)


def test_a_box_is_a_group_bound_with_groups_of_one():
    """From any sequence of positive numbers."""
    assert BoxBound([1, 0.5]) == BoxBound(np.array([1.0, 0.5])) == GroupBound((1, 1), (1.0, 0.5))


@pytest.mark.parametrize("limits", [[], [0.0], [1.0, -1.0], [math.nan], [math.inf], ["1"], "12", 1.0, None, [[1.0]]])
def test_impossible_boxes_are_refused(limits):
    """One positive number a column."""
    with pytest.raises(ParameterError, match="limit"):
        BoxBound(limits)


@pytest.mark.parametrize(
    "parts",
    [
        (("a",), (1.0,)), ((1.5,), (1.0,)), ((True,), (1.0,)), ((None,), (1.0,)), ("1", (1.0,)), (1, (1.0,)), (None, None),
        ((1,), ("1",)), ((1,), (None,)), ((1,), (True,)), ((1,), (1j,)), ((1,), 1.0), ((1,), "1"),
        ((1,), (1.0,), ("no",)), ((1,), (1.0,), (0,)), ((1,), (1.0,), True), ((1,), (1.0,), None), (((1,),), ((1.0,),)),
    ],
)  # fmt: skip
def test_a_group_bound_of_the_wrong_types_is_refused_with_advice(parts):
    """A ParameterError says what is needed; no number is rounded or read from text."""
    with pytest.raises(ParameterError, match="whole numbers as sizes, numbers as scales and bools as `linked`"):
        GroupBound(*parts)


def test_a_group_bound_takes_any_sequence_of_numbers():
    """Lists and arrays of NumPy's numbers are the same bound."""
    assert GroupBound(np.array([3, 1, 2]), np.array([1, 0.5, 2], dtype=np.float32)) == GROUPS


def test_a_group_bound_refuses_rows_of_another_width():
    """Columns and groups must match."""
    with pytest.raises(ParameterError, match="6 columns"):
        GROUPS.clip(np.zeros((2, 5)))


def test_groups_are_not_linked_unless_they_say_so():
    """No flags are as many False, in Python and in files of an earlier version."""
    assert GROUPS.linked == (False, False, False)
    assert GroupBound(GROUPS.sizes, GROUPS.scales, (True, False, False)) != GROUPS
    described = GROUPS.to_dict()
    del described["linked"]
    assert row_bound_from_dict(described) == GROUPS


@pytest.mark.parametrize(
    "groups",
    [
        ((), ()),
        ((1,), (1.0, 2.0)),
        ((0,), (1.0,)),
        ((0, 1), (1.0, 1.0)),
        ((1,), (0.0,)),
        ((1, 2), (1.0, 1.0), (True,)),
        ((2,), (1.0,), (1,)),
        ((2,), (1.0,), ("true",)),
    ],
)
def test_impossible_groups_are_refused(groups):
    """As many scales and flags as groups, sizes of 1 and more, positive scales, flags that are True or False."""
    with pytest.raises(ParameterError, match="GroupBound"):
        GroupBound(*groups)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_box_clips_sparse_rows_as_dense_ones(dtype):
    """Entry by entry, in float64."""
    rng = np.random.default_rng(5)
    rows = scipy.sparse.csr_array((rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.4)).astype(dtype))
    bound = BoxBound(rng.uniform(0.1, 1.0, 6))
    clipped = bound.clip(rows)
    assert clipped.dtype == np.float64
    assert np.array_equal(clipped.toarray(), bound.clip(rows.toarray()))


@pytest.mark.parametrize("sizes", [(2**22 + 1,), (2**21, 2**21 + 1), (2**31,), (2**63,)])
def test_more_columns_than_memory_holds_are_refused(sizes):
    """A size in a file of a stranger must not make us allocate memory for as many columns."""
    with pytest.raises(ParameterError, match="at most 4,194,304 columns together"):
        GroupBound(sizes, [1.0] * len(sizes))
    assert GroupBound([2**22], [1.0]).n_features == 2**22


@pytest.mark.parametrize("n_rows", [0, 3])
def test_groups_of_columns_refuse_sparse_rows(n_rows):
    """A linked group has no row of zeros alone; the refusal comes without rows too, so before a charge."""
    with pytest.raises(ParameterError, match="ball or a box"):
        GroupBound((2, 1), (1.0, 1.0), (True, False)).clip(scipy.sparse.csr_array((n_rows, 3)))


@pytest.mark.parametrize("size", [5, 2**31, 10**30])
def test_groups_of_more_columns_than_a_file_has_weights_are_refused_before_they_take_memory(size):
    """A file that was damaged or forged. As many columns as weights are read."""
    described = {"kind": "groups", "sizes": [size, 1], "scales": [1.0, 1.0]}
    with pytest.raises(FileError, match="do not fit"):
        row_bound_from_dict(described, 5)
    assert row_bound_from_dict({"kind": "groups", "sizes": [4, 1], "scales": [1.0, 1.0]}, 5).n_features == 5


def test_the_norm_of_groups_by_hand():
    """The root of the sum of squares of the scales, rounded outwards by 2^-50, whatever the sizes are."""
    assert GroupBound((2, 7), (3.0, 4.0)).l2_norm == 5.0 * (1.0 + 2.0**-50)
    assert GroupBound((1,), (2.0**-300,)).l2_norm == 2.0**-300 * (1.0 + 2.0**-50)
    assert BoxBound([2.0**300] * 4).l2_norm == 2.0**301 * (1.0 + 2.0**-50)


@pytest.mark.parametrize(
    "scale", [0.0, math.nextafter(2.0**-300, 0.0), math.nextafter(2.0**300, math.inf), math.inf, math.nan]
)
def test_scales_beyond_their_range_are_refused_by_one_rounding(scale):
    """The ends themselves are taken, of boxes too."""
    for low_or_high in (2.0**-300, 2.0**300):
        assert BoxBound([low_or_high, 1.0]) == GroupBound((1, 1), (low_or_high, 1.0))
    with pytest.raises(ParameterError, match=r"between 2\^-300 and 2\^300"):
        GroupBound((3, 1), (1.0, scale))
    with pytest.raises(ParameterError, match="limit for each column"):
        BoxBound([1.0, scale])


def test_bounds_are_compared_and_shown_by_what_they_say():
    """By sizes, scales and links, and without what is computed from these."""
    bound = GroupBound((1, 3, 1, 2), (0.5, 1.0, 2.0, 1.0), (True, False, False, True))
    assert repr(bound) == ("GroupBound(sizes=(1, 3, 1, 2), scales=(0.5, 1.0, 2.0, 1.0), linked=(True, False, False, True))")
    twin = GroupBound([1, 3, 1, 2], [0.5, 1, 2, 1], [True, False, False, True])
    assert (twin, hash(twin)) == (bound, hash(bound))
    assert len({bound, twin, BoxBound([1.0, 2.0]), BoxBound([1.0, 2.0]), BoxBound([2.0, 1.0])}) == 3
    assert bound.to_dict() == {
        "kind": "groups", "sizes": [1, 3, 1, 2], "scales": [0.5, 1.0, 2.0, 1.0], "linked": [True, False, False, True],
    }  # fmt: skip


@pytest.mark.parametrize(("size", "scale"), [(2, 1.0), (3, 1.0), (4, 8.0), (30, 0.25)])
def test_groups_keep_the_margin_of_the_proof(size, scale):
    """A computed norm within the scale by size + 4 units of 2^-52 is left alone, one nearer is scaled down to that."""
    radius = scale * (1.0 - (size + 4) * 2.0**-52)
    bound = GroupBound((1, size), (scale, scale))
    rows = np.zeros((1, 1 + size))
    rows[0, -2:] = 0.5 * scale, -(radius - 0.5 * scale)
    assert bound.clip(rows) is rows
    nearer = rows.copy()
    nearer[0, -1] = -(radius + scale * 2.0**-52 - 0.5 * scale)
    clipped = bound.clip(nearer)
    assert clipped is not nearer
    assert np.abs(clipped).sum() == pytest.approx(radius, rel=2.0**-52, abs=0.0)
    # One entry alone needs no margin.
    for entry in (scale, -scale):
        alone = np.zeros((1, 1 + size))
        alone[0, [0, 2]] = entry
        assert bound.clip(alone) is alone
        alone[0, 2] *= 1.0 + 2.0**-52
        assert np.abs(bound.clip(alone)[0, 1:]).sum() == pytest.approx(radius, rel=2.0**-52, abs=0.0)


@pytest.mark.parametrize(("size", "scale"), [(2, 1.0), (3, 8.0), (30, 0.25)])
def test_coded_pairs_keep_the_margin_of_the_proof(size, scale):
    """As dense groups do; the limit of another group is of no concern, nor is the number of rows."""
    radius = scale * (1.0 - (size + 4) * 2.0**-52)
    layout = CodedLayout(3 + size, singles=((0, 3),), pairs=((3, 3 + size),))
    for other in (1e-3, 1e3):
        bound = GroupBound((3, size), (other, scale))
        for second, stays in ((radius - 0.5 * scale, True), (radius + scale * 2.0**-52 - 0.5 * scale, False)):
            for sign in (1.0, -1.0):
                entries = np.array([other, -other, 0.5 * scale, scale, sign * second, 0.0])
                rows = CodedRows(layout, np.array([1, 2, 3, 3, 4, 4], np.int32), entries)
                assert (bound.clip(rows) is rows) == stays
    assert GroupBound((3, size), (1.0, scale)).clip(rows[:0]).shape == (0, 3 + size)


def test_each_pair_is_held_to_the_margin_of_its_own_group():
    """Also where another one has a smaller radius, so that each is looked at; and one entry needs no margin there."""
    layout, bound = CodedLayout(4, singles=(), pairs=((0, 2), (2, 4))), GroupBound((2, 2), (1.0, 8.0))
    radii = np.array([1.0, 8.0]) * (1.0 - 6.0 * 2.0**-52)
    columns = np.array([0, 2, 1, 3], np.int32)
    for first, second, stays in (
        ([0.5, 4.0], radii - [0.5, 4.0], True), ([0.5, 4.0], radii - [0.5 - 2.0**-52, 4.0], False),
        ([0.5, 4.0], radii - [0.5, 4.0 - 2.0**-49], False), ([1.0, 0.0], [0.0, 8.0], True), ([0.0, 8.0], [-1.0, 0.0], True),
        ([1.0, 4.0], [2.0**-60, 0.0], False), ([0.0, 8.0], [0.25, 2.0**-60], False),
    ):  # fmt: skip
        rows = CodedRows(layout, columns, np.concatenate([first, second]).astype(np.float64))
        assert (bound.clip(rows) is rows) == stays


def test_a_group_is_looked_at_beside_groups_that_are_plainly_within():
    """Two entries in one group and one in another: nothing is copied, and nothing is counted for the group beside it."""
    bound = GroupBound((2, 3, 2), (1.0, 2.0, 1.0), (False, False, True))
    rows = np.array([[1.0, 0.0, 1.0, 0.0, 0.5, 0.0, 1.0], [0.25, -0.5, 0.0, 0.0, -2.0, 1.0, 0.0]])
    assert bound.clip(rows) is rows
    spoilt = rows.copy()
    spoilt[1, 0] = 0.75
    clipped = bound.clip(spoilt)
    np.testing.assert_allclose(clipped[1, :2], [0.6, -0.4], rtol=2.0**-48)
    assert clipped[:, 2:].tolist() == rows[:, 2:].tolist()
    assert clipped[0].tolist() == rows[0].tolist()


@pytest.mark.parametrize(("stored", "stays"), [(-1.0, False), (0.5, False), (math.nextafter(1.0, 0), False), (1.0, True)])
def test_a_coded_entry_of_a_linked_group_is_its_scale(stored, stays):
    """Nothing less; an entry of a group that is not linked may be anything up to its scale."""
    layout = CodedLayout(5, singles=((0, 3), (3, 5)), pairs=())
    rows = CodedRows(layout, np.array([1, 4], np.int32), np.array([stored, 1.0]))
    assert (GroupBound((3, 2), (1.0, 1.0), (True, True)).clip(rows) is rows) == stays
    assert (GroupBound((3, 2), (1.0, 1.0), (True, False)).clip(rows) is rows) == stays
    assert GroupBound((3, 2), (1.0, 1.0), (False, True)).clip(rows) is rows
    # The first of the largest entries: a column before it, if it is negative.
    mended = dense(GroupBound((3, 2), (1.0, 1.0), (True, True)).clip(rows))
    assert mended.tolist() == [[1.0, 0.0, 0.0, 0.0, 1.0] if stored < 0 else [0.0, 1.0, 0.0, 0.0, 1.0]]


GROUPS_OF_INTERVALS = {
    "as they are": ((3, 2, 4), True),
    "a wider group, with columns that are never used before": ((4, 2, 4), True),
    "two intervals in one group": ((5, 4), False),
    "an interval that begins before its group": ((2, 3, 4), False),
    "an interval that ends behind its group": ((3, 1, 5), False),
    "a group without an interval": ((3, 2, 4, 1), True),
}


@pytest.mark.parametrize(("sizes", "own"), GROUPS_OF_INTERVALS.values(), ids=GROUPS_OF_INTERVALS)
def test_coded_rows_stay_where_each_interval_has_a_group_of_its_own(sizes, own):
    """Otherwise they are clipped as dense rows, although their entries are small. A linked group needs an interval too."""
    before = sizes[0] - 3 if sizes[0] > 3 and len(sizes) == 3 else 0
    layout = CodedLayout(
        sum(sizes), singles=((before, before + 3),), pairs=((before + 3, before + 5), (before + 5, before + 9))
    )
    rows = CodedRows(layout, np.array([0, 3, 5, 4, 6], np.int32) + np.int32(before), np.array([1.0, 0.1, 0.1, 0.1, 0.1]))
    clipped = GroupBound(sizes, (2.0,) * len(sizes)).clip(rows)
    assert (clipped is rows) == own
    if not own:
        np.testing.assert_array_equal(clipped, rows.dense())
    for linked in range(len(sizes)):
        links = tuple(group == linked for group in range(len(sizes)))
        clipped = GroupBound(sizes, (1.0,) * len(sizes), links).clip(rows)
        assert (clipped is rows) == (own and linked == 0)


def test_entries_of_sparse_rows_that_are_no_numbers_become_the_ends():
    """In a box: the lower end for what is not a number, and either end for infinities."""
    rows = scipy.sparse.csr_array(np.array([[math.nan, 0.0, math.inf], [0.0, -math.inf, 0.25]]))
    assert BoxBound([1.0, 2.0, 0.5]).clip(rows).toarray().tolist() == [[-1.0, 0.0, 0.5], [0.0, -2.0, 0.25]]


@pytest.mark.parametrize("group", [0, 15, 16, 31, 32])
def test_one_group_outside_is_clipped_beside_any_number_of_groups_within(group):
    """Of 33 groups of two columns and two rows, one group of one row is too long; nothing else changes."""
    bound = GroupBound((2,) * 33, (1.0,) * 33)
    rows = np.full((2, 66), 0.25)
    rows[1, 2 * group : 2 * group + 2] = 3.0, -1.0
    clipped = bound.clip(rows)
    np.testing.assert_allclose(clipped[1, 2 * group : 2 * group + 2], [0.75, -0.25], rtol=1e-14)
    assert (np.delete(clipped, [2 * group, 2 * group + 1], axis=1) == 0.25).all()
    assert (clipped[0] == 0.25).all()


@pytest.mark.parametrize("column", [0, 1])
def test_one_number_outside_is_clipped_beside_groups_within(column):
    """A group of one beside one of two, whichever comes first."""
    sizes = (1, 2) if column == 0 else (2, 1)
    rows = np.full((2, 3), 0.25)
    rows[0, 2 * column] = -7.0
    expected = rows.copy()
    expected[0, 2 * column] = -1.0
    assert GroupBound(sizes, (1.0, 1.0)).clip(rows).tolist() == expected.tolist()
