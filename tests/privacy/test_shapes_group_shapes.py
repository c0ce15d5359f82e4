"""Shapes for groups of columns: their norms, and the tables of linked groups."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.privacy.shapes import Ball, Groups, Linked, cell_counts, cell_weights, moments_of_groups

SIZES, SCALES, FLAGS = (3, 2, 1, 4, 1), (1.0, 2.0, 0.7, 0.5, 1.5), (True, False, False, True, False)


LINKED = Linked(SIZES, SCALES, FLAGS)


ADULT = Linked((9, 16, 7, 15, 6, 5, 41, *(1,) * 8), (15**-0.5,) * 15, (True,) * 7 + (False,) * 8)


def test_the_norms_of_a_schema_like_adult_match_the_specification():
    """Spherical 215, groups 108, linked 96 at rate 1/2; variance factors .66 and .59 for Gaussian noise."""
    ball, groups = Ball(ADULT.dimension, ADULT.l2_norm), Groups(ADULT.sizes, ADULT.scales)
    assert [round(shape.laplace_norm(0.5)) for shape in (ball, groups, ADULT)] == [215, 108, 96]
    ratios = [(shape.gaussian_norm(1.0) / ball.gaussian_norm(1.0)) ** 2 for shape in (groups, ADULT)]
    np.testing.assert_allclose(ratios, [0.66, 0.59], atol=0.005)


def test_the_laplace_norm_of_linked_groups_matches_exact_integration():
    """One linked group of two levels and a constant: V is the plane, K a rhombus of known second moment.

    Scales 1: b = (x, c - x, c) with |x| + |c - x| <= 1 and |c| <= 1, a convex polygon in (x, c), integrated on a grid.
    """
    shape = Linked((2, 1), (1.0, 1.0), (True, False))
    grid = (np.arange(2000) + 0.5) / 1000 - 1.0
    x, c = np.meshgrid(grid, grid, indexing="ij")
    inside = np.abs(x) + np.abs(c - x) <= 1.0
    exact = ((x**2 + (c - x) ** 2 + c**2) * inside).sum() / inside.sum()
    assert shape.solid_mean_square() == pytest.approx(exact, rel=2e-3)
    assert shape.laplace_norm(2.0) == pytest.approx(math.sqrt(3 * 4 * exact) / 2, rel=2e-3)


def test_cell_tables_are_exact_and_fast():
    """Counts of all levels add up to binomial(2 n, n); 40 groups of ten levels take less than a second."""
    assert cell_counts((2, 1)) == ((1,), (1, 4, 1), (1, 5, 5, 1))
    assert cell_weights((2, 1)) == (6, 10, 10, 6)
    shape = Linked((*(10,) * 40, 1), (1.0,) * 41, (*(True,) * 40, False))
    start = time.process_time()
    assert shape.laplace_norm(1.0) > 0.0
    assert time.process_time() - start < 1.0
    assert sum(cell_counts(shape.levels)[-1]) == math.comb(18, 9) ** 40


def test_linked_groups_need_an_intercept_of_their_own():
    """The last group is one column, and free."""
    for sizes, flags in (((2, 2), (True, False)), ((2, 1), (True, True))):
        with pytest.raises(ParameterError):
            Linked(sizes, (1.0, 1.0), flags)


def test_a_linked_group_of_one_column_is_not_linked():
    """It would be constant: its noise is that of a column of its own."""
    shape = Linked((3, 1, 1), (1.0, 2.0, 1.0), (True, True, False))
    assert tuple(shape.linked) == (True, False, False)
    assert shape.levels == (2,)


def test_moments_of_groups_grow_with_the_square_of_their_scale():
    """Those of an entry and those of two entries of one group, linked or not."""
    flags = (True, False, True, False)
    plain = moments_of_groups(Linked((3, 2, 4, 1), (1.0,) * 4, flags))
    longer = moments_of_groups(Linked((3, 2, 4, 1), (3.0, 0.5, 5.0, 4.0), flags))
    for one, other, scale in zip(plain, longer, (3.0, 0.5, 5.0, 4.0), strict=True):
        assert other == pytest.approx((scale**2 * one[0], scale**2 * one[1]), rel=1e-12)
    assert plain[0][1] != 0.0


def test_the_entries_of_a_linked_group_add_up_to_the_constant():
    """k of one entry and k (k - 1) of two of them are what the constant has, at scales of 1."""
    sizes, flags = (3, 2, 5, 1), (True, False, True, False)
    found = moments_of_groups(Linked(sizes, (1.0,) * 4, flags))
    for size, flag, (own, shared) in zip(sizes, flags, found, strict=True):
        if flag:
            assert size * own + size * (size - 1) * shared == pytest.approx(found[-1][0], rel=1e-12)
            assert shared < 0.0 or size * own < found[-1][0]


def test_the_rounding_constants_are_those_of_the_table():
    """In units of 2^-53, proofs/noise.md, section 4: 30 for an entry of a group, 52 for the first level of a linked one."""
    for shape, needed in ((Groups, 30.0 * 2.0**-53), (Linked, 52.0 * 2.0**-53)):
        assert needed < shape.laplace_error <= 1.1 * needed
