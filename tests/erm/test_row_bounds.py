"""Row bounds: exact after clipping, silent inside, and never writing to the user's array."""

from __future__ import annotations

import copy
import math
import pickle
import sys
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from confide.erm.coded_rows import CodedLayout, CodedRows, dense
from confide.erm.group_bounds import BoxBound, GroupBound
from confide.erm.row_bounds import LONG_ROW, BallBound, norm_with_intercept, row_products, row_squares, scaled_to_norm
from confide.errors import ParameterError
from confide.models.files import row_bound_from_dict

GROUPS = GroupBound((3, 1, 2), (1.0, 0.5, 2.0))
LINKED = GroupBound((3, 1, 2, 4, 1), (1.0, 0.5, 2.0, 0.1, 3.0), (True, False, False, True, True))
FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)
BLOCKS = hnp.arrays(np.float64, st.tuples(st.integers(1, 6), st.just(4)), elements=FINITE)


def exact_square_norm(row):
    """Sum of squares in rational arithmetic."""
    return sum((Fraction(float(x)) ** 2 for x in row), Fraction(0))


@given(block=BLOCKS, norm=st.sampled_from([1.0, 0.1, 3.7, 1e-6, 1e6]))
def test_clipped_rows_obey_the_ball_in_exact_arithmetic(block, norm):
    """Rational arithmetic, rows from subnormal to 1e308."""
    clipped = BallBound(norm).clip(block)
    for row in clipped:
        assert exact_square_norm(row) <= Fraction(norm) ** 2


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n_features", [47, 48, 300])
def test_long_clipped_rows_obey_the_ball_in_exact_arithmetic(n_features, order):
    """Their squares are added up by BLAS where they lie in one piece, in an order of its own."""
    rng = np.random.default_rng(1)
    sizes = 10.0 ** rng.uniform(-3.0, 3.0, size=(400, 1)) / np.sqrt(n_features)
    block = np.asarray(rng.normal(size=(400, n_features)) * sizes, order=order)
    block[:3, 0] = 1e160, 1e308, 5e-324
    clipped = BallBound(0.3).clip(block)
    assert all(exact_square_norm(row) <= Fraction(0.3) ** 2 for row in clipped)
    inside = np.array([exact_square_norm(row) <= Fraction(0.2999) ** 2 for row in block])
    assert 0 < inside.sum() < 400
    assert np.array_equal(clipped[inside], block[inside])


@given(block=BLOCKS)
def test_clipping_keeps_the_direction_and_the_rows_inside(block):
    """Rows inside are bit-identical; longer ones keep their direction and reach the radius."""
    before = block.copy()
    clipped = BallBound(2.0).clip(block)
    assert np.array_equal(block, before)
    for old, new in zip(before, clipped, strict=True):
        if exact_square_norm(old) <= Fraction(1999, 1000) ** 2:
            assert np.array_equal(old, new)
        elif exact_square_norm(old) > 4:
            assert math.isclose(math.sqrt(float(exact_square_norm(new))), 2.0, rel_tol=1e-9)
            largest = np.abs(old).argmax()
            np.testing.assert_allclose(new / new[largest], old / old[largest], rtol=1e-9, atol=1e-300)


def test_the_naive_clip_fails_where_ours_holds():
    """x / max(1, |x|) exceeds norm 1 for many rows by one rounding; the margin prevents it."""
    block = np.random.default_rng(0).normal(size=(500, 7)) * 5
    naive = block / np.maximum(1.0, np.linalg.norm(block, axis=1))[:, None]
    assert sum(exact_square_norm(row) > 1 for row in naive) > 50
    assert all(exact_square_norm(row) <= 1 for row in BallBound(1.0).clip(block))


def test_float32_rows_are_clipped_in_float64():
    """A float32 row is promoted first, and its clipped form is not stored back in float32."""
    block = np.random.default_rng(1).normal(size=(300, 9)).astype(np.float32) * 4
    clipped = BallBound(1.0).clip(block)
    assert clipped.dtype == np.float64
    assert all(exact_square_norm(row) <= 1 for row in clipped)


def test_wide_rows_keep_a_wider_margin():
    """At 200,000 columns the margin grows with the width, and the norm stays inside."""
    row = np.random.default_rng(2).normal(size=(1, 200_000))
    assert exact_square_norm(BallBound(1.0).clip(row)[0]) <= 1


def test_an_infinite_ball_leaves_rows_alone():
    """row_norm = inf is the identity, without a copy."""
    block = np.array([[1e300, -5.0]])
    assert BallBound(math.inf).clip(block) is block


@pytest.mark.parametrize(
    "bound",
    [BallBound(1.0), GroupBound((2,), (1.0,)), GroupBound((2,), (1.0,), (True,)), BoxBound([0.9, 0.9])],
    ids=["ball", "groups", "linked", "box"],
)
def test_views_and_subclasses_of_arrays_are_not_written_to_either(bound, tmp_path):
    """A memory map, a matrix subclass and a view share memory with their base without being it."""
    mapped = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=(1, 2))
    for rows in (mapped, np.zeros((1, 2)).view(type("Sub", (np.ndarray,), {})), np.zeros((2, 2))[:1]):
        rows[...] = [[3.0, 4.0]]
        assert np.abs(bound.clip(rows)).sum() < 2.0
        assert rows.tolist() == [[3.0, 4.0]]


def test_l2_norms_are_rounded_outwards():
    """The stated norms are at least the exact ones."""
    assert Fraction(GROUPS.l2_norm) ** 2 >= Fraction(1) + Fraction(1, 4) + Fraction(4)
    joint = norm_with_intercept(BallBound(1.0), 1.0)
    assert Fraction(joint) ** 2 >= 2
    assert joint == pytest.approx(math.sqrt(2.0), rel=1e-14)
    assert norm_with_intercept(BallBound(0.3), 0.0) == 0.3
    assert norm_with_intercept(BallBound(3.0), 4.0) == 5.0 * (1.0 + 2.0**-50)
    # In exact arithmetic, for pairs of which hypot rounds about half down.
    for radius, constant in np.random.default_rng(3).uniform(0.1, 10.0, size=(200, 2)).tolist():
        square, found = Fraction(radius) ** 2 + Fraction(constant) ** 2, norm_with_intercept(BallBound(radius), constant)
        assert square * (1 + Fraction(1, 2**51)) < Fraction(found) ** 2 < square * (1 + Fraction(1, 2**48))
        both = GroupBound((1, 1), (radius, constant)).l2_norm
        assert square * (1 + Fraction(1, 2**51)) < Fraction(both) ** 2 < square * (1 + Fraction(1, 2**48))


@pytest.mark.parametrize(
    "bound",
    [BallBound(0.7), BallBound(math.inf), GROUPS, LINKED, BoxBound([1.0, 2.0])],
    ids=["ball", "inf", "groups", "linked", "box"],
)
def test_bounds_survive_a_round_trip(bound):
    """to_dict and back gives an equal bound; so do copies and pickles, which clip as before."""
    assert row_bound_from_dict(bound.to_dict()) == bound
    rows = np.random.default_rng(3).normal(size=(5, getattr(bound, "n_features", 4)))
    for twin in (copy.deepcopy(bound), pickle.loads(pickle.dumps(bound))):
        assert twin == bound
        assert hash(twin) == hash(bound)
        assert np.array_equal(twin.clip(rows), bound.clip(rows))


@pytest.mark.parametrize("norm", [0.0, -1.0, math.nan, True, "1", None, -math.inf])
def test_impossible_norms_are_refused(norm):
    """Positive numbers only."""
    with pytest.raises(ParameterError):
        BallBound(norm)


@given(block=BLOCKS, norm=st.sampled_from([1.0, 0.1, 3.7, 1e-6, 1e6]))
def test_sparse_rows_obey_the_ball_in_exact_arithmetic_and_stay_sparse(block, norm):
    """Rows from subnormal to 1e308: the same rows as dense to a rounding, and the zeros that were not stored are not now."""
    given_rows = scipy.sparse.csr_array(block)
    clipped = BallBound(norm).clip(given_rows)
    assert clipped.nnz == given_rows.nnz
    for row in clipped.toarray():
        assert exact_square_norm(row) <= Fraction(norm) ** 2
    np.testing.assert_allclose(clipped.toarray(), BallBound(norm).clip(block), rtol=1e-14)
    assert np.array_equal(given_rows.toarray(), block)


def test_how_much_work_huge_sparse_rows_are_does_not_grow_with_their_number():
    """As many calls, Python's and compiled ones, for 2,000 rows whose squares overflow as for 2."""

    def n_calls(rows):
        calls = []
        sys.setprofile(lambda frame, event, argument: calls.append(event) if event.endswith("call") else None)
        try:
            BallBound(1.0).clip(rows)
        finally:
            sys.setprofile(None)
        return len(calls)

    few, many = (scipy.sparse.csr_array(np.full((n_rows, 3), 1e300)) for n_rows in (2, 2000))
    n_calls(few)
    assert n_calls(few) == n_calls(many)


def test_an_entry_stored_in_parts_counts_as_their_sum():
    """Four parts of 1 are a row of length 4, not 2; also if the matrix remembers that it had no such entries."""
    rows = scipy.sparse.csr_array((np.ones(4), np.arange(4), [0, 4]), shape=(1, 4))
    assert rows.has_canonical_format
    rows.indices[:] = 2
    for bound in (BallBound(1.0), BoxBound([1.0] * 4)):
        clipped = bound.clip(rows).toarray()
        np.testing.assert_allclose(clipped, [[0, 0, 1, 0]], rtol=1e-11)
        assert exact_square_norm(clipped[0]) <= 1
    assert rows.nnz == 4


def test_the_range_of_norms_has_both_its_ends():
    """2^-300 to 2^300, kept as floats, and infinity; by one rounding."""
    for norm in (2.0**-300, 1, 2.0**300, math.inf, np.float32(0.5)):
        bound = BallBound(norm)
        assert (bound.norm, bound.l2_norm) == (norm, norm)
        assert type(bound.norm) is float
    # In single precision the smallest bound would be 0.
    for norm in (
        math.nextafter(2.0**-300, 0.0),
        math.nextafter(2.0**300, math.inf),
        1j,
        10**400,
        np.float32(0),
        np.float16(0),
    ):
        with pytest.raises(ParameterError, match=r"between 2\^-300 and 2\^300"):
            BallBound(norm)
    assert (BallBound(0.5).to_dict(), BallBound(math.inf).to_dict()) == (
        {"kind": "ball", "norm": 0.5},
        {"kind": "ball", "norm": "inf"},
    )


MARGINS = {1: 2.0**-40, 100: 2.0**-40, 4088: 2.0**-40, 4089: 4097 * 2.0**-52, 8000: 8008 * 2.0**-52}
"""Of the radius within the norm: 2^-40, or d + 8 units of 2^-52 for wide rows (privacy/proofs/certificate.md)."""


@pytest.mark.parametrize(("d", "margin"), MARGINS.items())
@pytest.mark.parametrize("norm", [0.25, math.pi, 8.0])
def test_the_radius_lies_within_the_ball_by_the_margin_of_the_proof(d, margin, norm):
    """A row of that radius is left alone, one a unit longer gets it, and so does a long one; dense, sparse and coded."""
    radius = norm * (1.0 - margin)
    longer = math.nextafter(radius, math.inf)
    for length, found in ((radius, radius), (longer, radius), (3.0 * norm, radius), (-1e200, -radius)):
        rows = np.zeros((1, d))
        rows[0, -1] = length
        coded = CodedRows(CodedLayout(d, ((d - 1, d),), ()), np.array([d - 1], np.int32), np.array([length]))
        for form in (rows, np.asfortranarray(rows), scipy.sparse.csr_array(rows), coded):
            clipped = BallBound(norm).clip(form)
            (entry,) = clipped.data if scipy.sparse.issparse(clipped) else dense(clipped)[:, -1]
            assert entry == pytest.approx(found, rel=2.0**-51, abs=0.0)
            assert (entry == length) == (length == radius)
            if form is rows or form is coded:
                assert (clipped is form) == (length == radius)


def test_rows_within_a_small_ball_are_not_copied():
    """Nor are none at all."""
    for rows in (np.full((3, 2), 0.125), np.zeros((3, 2)), np.zeros((0, 2))):
        assert BallBound(0.25).clip(rows) is rows
    empty = CodedRows(CodedLayout(2, ((0, 1),), ()), np.zeros(0, np.int32), np.zeros(0))
    small = CodedRows(CodedLayout(2, ((0, 1),), ()), np.zeros(1, np.int32), np.full(1, 0.125))
    sparse = scipy.sparse.csr_array(np.full((3, 2), 0.125))
    assert np.shares_memory(BallBound(0.25).clip(sparse).data, sparse.data)
    for coded in (empty, small):
        assert BallBound(0.25).clip(coded) is coded
        assert BallBound(math.inf).clip(coded) is coded


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_scratch_memory_holds_the_rows_that_are_changed(dtype):
    """Clipped ones, and those of another precision; doubles inside of the ball are handed back as they are."""
    inside, outside = (np.array([[0.25, 0.5], [x, 0.0]], dtype) for x in (0.5, 4.0))
    for rows, second in ((inside, 0.5), (outside, 1.0 - 2.0**-40)):
        scratch = np.full((2, 2), np.nan)
        clipped = BallBound(1.0).clip(rows, scratch)
        assert (clipped is scratch) == (rows is outside or dtype == np.float32)
        assert (clipped is rows) == (rows is inside and dtype == np.float64)
        assert clipped.tolist() == [[0.25, 0.5], [second, 0.0]]
    assert BallBound(math.inf).clip(outside).tolist() == [[0.25, 0.5], [4.0, 0.0]]


def test_rows_of_all_sizes_beside_each_other_are_clipped_by_hand():
    """Small, ordinary and huge ones, and rows without entries, in one block; sparse rows keep their places."""
    rows = np.array(
        [[0.1, 0.0, 0.2], [0, 0, 0], [3.0, 0, 4.0], [3e200, 4e200, 0.0], [0, 0, 0], [0, -6e300, 8e300], [0, 0, 1.0]]
    )
    radius = 2.0 * (1.0 - 2.0**-40)
    expected = np.array([[0.1, 0, 0.2], [0, 0, 0], [0.6, 0, 0.8], [0.6, 0.8, 0], [0, 0, 0], [0, -0.6, 0.8], [0, 0, 1.0]])
    expected[[2, 3, 5]] *= radius
    for form in (rows, np.asfortranarray(rows), scipy.sparse.csr_array(rows)):
        clipped = BallBound(2.0).clip(form)
        if scipy.sparse.issparse(form):
            assert clipped.indices.tolist() == form.indices.tolist()
            clipped = clipped.toarray()
        np.testing.assert_allclose(clipped, expected, rtol=1e-15, atol=0)
        assert clipped[[0, 1, 4, 6]].tolist() == rows[[0, 1, 4, 6]].tolist()
    squares = row_squares(scipy.sparse.csr_array(rows[[0, 1, 2, 6, 4]]))
    assert squares.dtype == np.float64
    np.testing.assert_allclose(squares, [0.05, 0.0, 25.0, 1.0, 0.0], rtol=1e-15)
    assert row_squares(scipy.sparse.csr_array((3, 2))).tolist() == [0.0] * 3


@pytest.mark.parametrize(("order", "length"), [(1, 7.0), (2, 5.0)])
@pytest.mark.parametrize("size", [2.0**-1030, 1.0, 2.0**1000])
def test_rows_are_scaled_to_either_norm_without_overflow(order, length, size):
    """(3, -4) has an L1 norm of 7 and an L2 norm of 5; a row of zeros, and one of that norm, stay."""
    rows = np.array([[3.0, -4.0], [0.0, 0.0]]) * size
    for share in (0.5, 1.0, 2.0):
        found = scaled_to_norm(rows, share * length * size, order)
        np.testing.assert_allclose(found, rows * min(share, 1.0), rtol=1e-15)
    if order == 2:
        np.testing.assert_array_equal(scaled_to_norm(rows, size), scaled_to_norm(rows, size, 2))


@pytest.mark.parametrize("d", [3, LONG_ROW - 1, LONG_ROW, 2 * LONG_ROW])
def test_products_of_rows_are_those_of_their_definition(d):
    """With as many other rows or with one vector, in any order of memory."""
    rng = np.random.default_rng(d)
    rows, others = rng.normal(size=(2, 5, d))
    for each in (rows, np.asfortranarray(rows), np.repeat(rows, 2, axis=0)[::2]):
        np.testing.assert_allclose(row_products(each, others), (rows * others).sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(row_products(each, others[0]), rows @ others[0], rtol=1e-12)
        np.testing.assert_allclose(row_squares(each), (rows**2).sum(axis=1), rtol=1e-14)


def test_float32_sparse_rows_are_clipped_in_float64():
    """As dense ones are, and their type is that of doubles inside of the ball too."""
    rows = scipy.sparse.csr_array(np.array([[3.0, 4.0], [0.25, 0.0]], dtype=np.float32))
    for norm in (1.0, 10.0, math.inf):
        assert BallBound(norm).clip(rows).dtype == np.float64
        assert rows.dtype == np.float32
