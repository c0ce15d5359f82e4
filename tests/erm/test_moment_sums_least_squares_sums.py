"""Sums of products for least squares: their definition, row by row."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.moment_sums import LeastSquaresSum
from confide.erm.row_bounds import BallBound


def made_up(n=300, d=4, seed=0, dtype=np.float64):
    """Rows, most of them longer than 1, and labels."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(dtype), rng.choice([-1, 1], size=n).astype(np.int8)


@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("layout", ["C", "F", "float32", "strided", "integers"])
def test_least_squares_sums_equal_their_definition(intercept, layout):
    """X^T X and -X^T y over clipped rows and targets, at any weights; the arrays given stay as they are."""
    rows, _ = made_up(n=10_000)
    targets = np.random.default_rng(2).normal(size=10_000) * 3.0
    given = {
        "C": rows,
        "F": np.asfortranarray(rows),
        "float32": rows.astype(np.float32),
        "strided": np.repeat(rows, 2, axis=0)[::2],
        "integers": np.rint(rows),
    }[layout]
    before = given.copy(), targets.copy()
    design = BallBound(1.0).clip(given.astype(np.float64))
    if intercept:
        design = np.hstack([design, np.full((len(design), 1), intercept)])
    source, row_sum = MemorySource(ArrayBlocks(given), targets), LeastSquaresSum(BallBound(1.0), intercept, 2.0)
    for weights in (np.zeros((1, design.shape[1])), np.ones((1, design.shape[1]))):
        totals = source.sum_over_rows(pickle.loads(pickle.dumps(row_sum)), weights)
        np.testing.assert_allclose(totals.hessian[0], design.T @ design, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(totals.gradient[0], -design.T @ np.clip(targets, -2.0, 2.0), rtol=1e-10, atol=1e-10)
    assert np.array_equal(given, before[0])
    assert np.array_equal(targets, before[1])


def test_the_least_squares_sum_of_one_row_is_its_term_alone():
    """Whatever the row and the target hold: entries of 1e300 are clipped first."""
    row_sum = LeastSquaresSum(BallBound(1.0), 0.5, 2.0)
    totals = MemorySource(ArrayBlocks(np.array([[3e300, -4e300]])), np.array([1e308])).sum_over_rows(
        row_sum, np.zeros((1, 3))
    )
    x = np.array([0.6, -0.8, 0.5])
    np.testing.assert_allclose(totals.hessian[0], np.outer(x, x), rtol=1e-11)
    np.testing.assert_allclose(totals.gradient[0], -2.0 * x, rtol=1e-11)


@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_least_squares_sums_by_hand(intercept):
    """Targets beyond the bound: half of y^T y, -X^T y and X^T X, for two problems alike; weights do not count."""
    row_sum = LeastSquaresSum(BallBound(10.0), intercept, 2.0)
    totals = row_sum.start(2, 2)
    width = 2 + (intercept > 0.0)
    assert [part.shape for part in (totals.value, totals.gradient, totals.hessian)] == [(2,), (2, width), (2, width, width)]
    rows, targets = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([5.0, -1.0])
    row_sum.add_block(totals, rows, targets, np.ones((2, width)), np.array([9.0, 9.0]))
    row_sum.add_block(totals, rows[:1], np.array([-9.0]), np.ones((2, width)))
    totals = row_sum.completed(totals)
    design = np.hstack([rows[[0, 1, 0]], np.full((3, 1), intercept)])[:, :width]
    assert totals.value.tolist() == [0.5 * (4.0 + 1.0 + 4.0)] * 2
    assert totals.gradient.tolist() == [(-design.T @ [2.0, -1.0, -2.0]).tolist()] * 2
    assert totals.hessian.tolist() == [(design.T @ design).tolist()] * 2
