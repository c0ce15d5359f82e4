"""Quadratic forms: rows and weights in their norm, the longest rows, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from confide import BallBound, GroupBound, ParameterError
from confide.features.forms import LARGEST_CONDITION, QuadraticForm

RNG = np.random.default_rng(0)


def random_block(size, seed=0, condition=50.0):
    """A symmetric matrix whose eigenvalues lie between 1 and a condition number."""
    directions = np.linalg.qr(np.random.default_rng(seed).normal(size=(size, size)))[0]
    return directions @ np.diag(np.geomspace(1.0, condition, size)) @ directions.T


STRENGTHS = np.array([2.0, 1.0, 1.0, 1.0, 0.25, 1.0, 1.0])
BLOCKS = [(1, random_block(3)), (5, random_block(2, seed=1))]
FORM = QuadraticForm.of(STRENGTHS, BLOCKS)
MATRIX = np.diag(STRENGTHS)
for _start, _block in BLOCKS:
    MATRIX[_start : _start + len(_block), _start : _start + len(_block)] = _block


def test_the_ridge_of_weights_in_the_norm_is_the_form():
    """|v|^2 = w' P w for the weights v of rows in the norm of the form, and scores are the same: z . v = x . w."""
    coef, rows = RNG.normal(size=(3, 7)), RNG.normal(size=(5, 7))
    inside = FORM.weights_in_norm(coef)
    assert (inside**2).sum(axis=1) == pytest.approx(np.einsum("oi,ij,oj->o", coef, MATRIX, coef), rel=1e-5)
    assert FORM.rows(rows) @ inside.T == pytest.approx(rows @ coef.T, rel=1e-6, abs=1e-6)
    assert FORM.weights_of(inside) == pytest.approx(coef)
    assert np.linalg.norm(FORM.rows(rows), axis=1) ** 2 == pytest.approx(
        np.einsum("mi,ij,mj->m", rows, np.linalg.inv(MATRIX), rows), rel=1e-5
    )


def test_columns_beyond_the_form_stay_as_they_are():
    """Random features and the constant of the intercept come after the columns of the form."""
    rows = RNG.normal(size=(4, 9))
    assert np.array_equal(FORM.rows(rows)[:, 7:], rows[:, 7:])
    assert np.array_equal(FORM.weights_of(rows)[:, 7:], rows[:, 7:])
    assert np.array_equal(FORM.weights_in_norm(rows)[:, 7:], rows[:, 7:])


@pytest.mark.parametrize("size", [1, 3, 40, 200])
def test_a_row_in_the_norm_depends_on_that_row_alone(size):
    """To the bit, at any place of any block: products on grids are exact in every order of additions."""
    form = QuadraticForm.of(np.ones(size + 1), [(1, random_block(size, condition=1e6))])
    rows = np.random.default_rng(size).standard_cauchy(size=(70, size + 1))
    together = form.rows(rows)
    for start, stop in ((0, 1), (3, 4), (1, 18), (5, 70)):
        assert np.array_equal(form.rows(rows[start:stop]), together[start:stop])
        assert np.array_equal(form.rows(np.asfortranarray(rows[start:stop])), together[start:stop])
    assert np.array_equal(form.rows(rows[::-1])[::-1], together)


@pytest.mark.parametrize("size", [16, 128])
def test_a_sum_that_needs_every_bit_is_exact(size):
    """All products of a sum are large and of one sign, so that a grid of one bit more would be too fine."""
    given = np.eye(size)
    rng = np.random.default_rng(size)
    given[-1] = rng.uniform(0.9, 1.0, size)
    form = QuadraticForm.of(np.ones(size), [(0, np.linalg.inv(given.T @ given))])
    rows = rng.uniform(0.9, 1.0, (300, size))
    assert np.array_equal(np.concatenate([form.rows(row[None]) for row in rows]), form.rows(rows))


@pytest.mark.parametrize(
    "bound",
    [
        BallBound(3.0),
        GroupBound((1, 3, 1, 2), (2.0, 0.5, 1.0, 1.0)),
        GroupBound((1, 3, 1, 2), (2.0, 0.5, 1.0, 1.0), (False, True, False, True)),
        GroupBound((2, 2, 3), (1.0, 1.0, 0.7)),
    ],
)
def test_no_row_within_a_bound_is_longer_than_the_longest(bound):
    """Search over rows at the edge; where no block goes across groups the bound is attained, as it is for a ball."""
    rows = RNG.normal(size=(3_000, 7)) * 100.0
    rows[: rows.shape[0] // 2] = RNG.permuted(np.r_[1e3, np.zeros(6)] * np.ones((1500, 1)), axis=1)
    if isinstance(bound, GroupBound):
        start, edge = 0, np.zeros((1_500, 7))
        for size, scale in zip(bound.sizes, bound.scales, strict=True):
            edge[np.arange(1_500), start + RNG.integers(size, size=1_500)] = scale
            start += size
        rows = np.concatenate([rows, edge])
    else:
        rows = np.concatenate([rows, np.linalg.svd(FORM.rows(np.eye(7)).T)[2] * 1e3])
    lengths = np.linalg.norm(FORM.rows(bound.clip(rows)), axis=1)
    assert lengths.max() <= FORM.longest(bound)
    crosses = isinstance(bound, GroupBound) and bound.sizes == (2, 2, 3)
    assert lengths.max() >= (0.5 if crosses else 0.9999) * FORM.longest(bound)


def test_the_least_map_of_two_bounds_is_taken_where_blocks_go_across_groups():
    """The ball around all groups, or the sum of their longest entries."""
    whole = QuadraticForm.of(np.ones(6), [(0, random_block(6))])
    groups = GroupBound((1,) * 6, (1.0,) * 6)
    entries = np.sqrt(whole.column_squares).sum()
    assert whole.longest(groups) == pytest.approx(min(entries, whole.longest_map * np.sqrt(6.0)))


def test_forms_are_equal_if_their_numbers_are():
    """Plans are remembered by their settings, so equal forms must be equal and others not."""
    again = QuadraticForm.of(STRENGTHS, BLOCKS)
    assert again == FORM
    assert hash(again) == hash(FORM)
    assert QuadraticForm.of(STRENGTHS, BLOCKS[:1]) != FORM
    assert QuadraticForm.of(STRENGTHS * 2.0, BLOCKS) != FORM
    assert not FORM.scales.flags.writeable


@pytest.mark.parametrize(
    "form",
    [
        (np.array([1.0, 0.0]),),
        (np.array([1.0, np.nan]),),
        (np.array([1.0, 2.0 * LARGEST_CONDITION]),),
        (np.ones(2), [(0, np.array([[1.0, 2.0], [2.0, 1.0]]))]),
        (np.ones(2), [(0, np.ones((2, 2)))]),
    ],
)
def test_what_is_not_positive_definite_is_refused(form):
    """Nor what is nearly singular: rounding would change it."""
    with pytest.raises(ParameterError, match="positive definite"):
        QuadraticForm.of(*form)


@pytest.mark.parametrize("size", [1, 4, 60])
def test_weights_come_back_within_the_rounding(size):
    """Whole numbers, as on a grid, go to the columns and back; a thousandth of the bound would not hold them."""
    form = QuadraticForm.of(np.r_[3.0, np.ones(size)], [(1, random_block(size, condition=1e4))])
    whole = np.rint(np.random.default_rng(size).normal(size=(200, size + 1)) * 2.0**40)
    moved, most = np.abs(form.weights_in_norm(form.weights_of(whole)) - whole), form.rounding(whole)
    assert (moved <= most).all()
    assert (moved > 0.001 * most).any()
