"""Row bounds: exact after clipping, silent inside, and never writing to the user's array."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from confide.erm.row_bounds import BallBound, GroupBound, norm_with_intercept, row_bound_from_dict
from confide.errors import ParameterError

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


@pytest.mark.parametrize("bound", [BallBound(1.0), GroupBound((2,), (1.0,))], ids=["ball", "groups"])
def test_views_and_subclasses_of_arrays_are_not_written_to_either(bound, tmp_path):
    """A memory map, a matrix subclass and a view share memory with their base without being it."""
    mapped = np.memmap(tmp_path / "rows", dtype=np.float64, mode="w+", shape=(1, 2))
    for rows in (mapped, np.zeros((1, 2)).view(type("Sub", (np.ndarray,), {})), np.zeros((2, 2))[:1]):
        rows[...] = [[3.0, 4.0]]
        assert np.abs(bound.clip(rows)).sum() < 2.0
        assert rows.tolist() == [[3.0, 4.0]]


def test_a_group_bound_refuses_rows_of_another_width():
    """Columns and groups must match."""
    with pytest.raises(ParameterError, match="6 columns"):
        GROUPS.clip(np.zeros((2, 5)))


def test_l2_norms_are_rounded_outwards():
    """The stated norms are at least the exact ones."""
    assert Fraction(GROUPS.l2_norm) ** 2 >= Fraction(1) + Fraction(1, 4) + Fraction(4)
    joint = norm_with_intercept(BallBound(1.0), 1.0)
    assert Fraction(joint) ** 2 >= 2
    assert joint == pytest.approx(math.sqrt(2.0), rel=1e-14)
    assert norm_with_intercept(BallBound(0.3), 0.0) == 0.3


@pytest.mark.parametrize("bound", [BallBound(0.7), BallBound(math.inf), GROUPS], ids=["ball", "inf", "groups"])
def test_bounds_survive_a_round_trip(bound):
    """to_dict and back gives an equal bound."""
    assert row_bound_from_dict(bound.to_dict()) == bound


@pytest.mark.parametrize("norm", [0.0, -1.0, math.nan, True, "1", None, -math.inf])
def test_impossible_norms_are_refused(norm):
    """Positive numbers only."""
    with pytest.raises(ParameterError):
        BallBound(norm)


@pytest.mark.parametrize(("sizes", "scales"), [((), ()), ((1,), (1.0, 2.0)), ((0,), (1.0,)), ((1,), (0.0,))])
def test_impossible_groups_are_refused(sizes, scales):
    """As many scales as groups, sizes of 1 and more, positive scales."""
    with pytest.raises(ParameterError):
        GroupBound(sizes, scales)
