"""Rows in a frame: sums in it, row by row, and the bounds that proofs rest on."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.moment_sums import Frame, FrameSum, MomentSum, SpreadSum
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum

WINDOW = 2.0**-6


def slope(margins):
    return -1.0 / (1.0 + np.exp(margins))


def made_rows():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(700, 3)) * (rng.uniform(size=(700, 3)) < 0.7)
    return rows, rng.choice([-1, 1], 700).astype(np.int8), rng.uniform(0.0, 3.0, 700)


@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_curvature_and_slopes_in_a_frame_equal_their_definition(intercept, layout):
    """Moved, divided, and long rows counted less; scores are those of the rows as they are."""
    rows, labels, counts = made_rows()
    design = BallBound(1.0).clip(rows)
    constant = 1.3 if intercept else 0.0
    frame = Frame((0.2, -0.1, 0.0), (0.3, 0.1, 0.5), constant, intercept, 2.0)
    own = (design - np.array(frame.centre)) / np.array(frame.spreads)
    if intercept:
        design, own = np.hstack([design, np.full((700, 1), intercept)]), np.hstack([own, np.full((700, 1), constant)])
    theta = np.random.default_rng(5).normal(size=(1, design.shape[1]))
    margins, weighing = labels * (design @ theta[0]), np.minimum(counts, 2.0)
    bends = weighing * (slope(margins + WINDOW) - slope(margins - WINDOW)) / (2.0 * WINDOW) / (2.0 * 0.25)
    steep = weighing * labels * slope(margins) / 2.0
    share = np.minimum(1.0, 4.0 / np.sum(own**2, axis=1))
    assert 0.1 < np.mean(share < 1.0) < 0.9
    blocks = ArrayBlocks(rows if layout == "dense" else scipy.sparse.csr_array(rows))
    moments = MomentSum(RowSum(LogisticLoss(), BallBound(1.0), intercept, 1, 2.0), WINDOW)
    row_sum = pickle.loads(pickle.dumps(FrameSum(moments, frame)))
    totals = MemorySource(blocks, labels, counts).sum_over_rows(row_sum, theta)
    np.testing.assert_allclose(totals.hessian[0], (own * (share * bends)[:, None]).T @ own, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(totals.gradient[0], (np.sqrt(share) * steep) @ own, rtol=1e-9, atol=1e-9)
    assert (totals.hessian == totals.hessian.transpose(0, 2, 1)).all()


@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_the_matrix_of_a_frame_leads_to_its_rows_and_keeps_scores(intercept):
    """y = T x, and weights w for y are T^T w for x."""
    rows = BallBound(1.0).clip(made_rows()[0])
    frame = Frame((0.2, -0.1, 0.3) if intercept else (0.0,) * 3, (0.3, 0.1, 0.5), 1.3 if intercept else 0.0, intercept, 2.0)
    design = np.hstack([rows, np.full((len(rows), 1), intercept)]) if intercept else rows
    own, weights = frame.rows(rows), np.arange(1.0, design.shape[1] + 1.0)
    np.testing.assert_allclose(design @ frame.matrix.T, own, atol=1e-12)
    np.testing.assert_allclose(design @ (frame.matrix.T @ weights), own @ weights, rtol=1e-9, atol=1e-9)


def test_a_row_adds_no_more_than_the_length_of_the_frame_allows():
    """However far it lies: f |y|^2 is at most the squared length, and sqrt(f) |y| at most the length."""
    frame = Frame((0.9, -0.9), (1e-3, 1e-3), 1.0, 1.0, 1.7)
    own = frame.rows(np.array([[-1.0, 1.0], [0.9, -0.9], [0.9005, -0.9], [0.0, 0.0]]))
    lengths, counts = np.linalg.norm(own, axis=1), frame.counts_of(own)
    assert lengths.max() > 1e3
    assert (counts * lengths**2 <= 1.7**2 * (1 + 1e-12)).all()
    assert (np.sqrt(counts) * lengths <= 1.7 * (1 + 1e-12)).all()
    assert counts[1] == 1.0
    assert (Frame((0.0, 0.0), (1.0, 1.0), 1.0, 1.0, math.inf).counts_of(own) == 1.0).all()


def test_sums_of_rows_and_their_squares_are_in_units_of_the_columns():
    """Of clipped rows; the last entry is their number. Weights of rows play no part."""
    rows, labels, counts = made_rows()
    clipped = BallBound(2.0).clip(rows)
    totals = MemorySource(ArrayBlocks(rows), labels, counts).sum_over_rows(
        SpreadSum(BallBound(2.0), (2.0, 2.0, 4.0)), np.zeros((1, 3))
    )
    own = clipped / np.array([2.0, 2.0, 4.0])
    np.testing.assert_allclose(totals.gradient[0], [*own.sum(axis=0), *(own**2).sum(axis=0), 700.0], rtol=1e-9, atol=1e-9)
