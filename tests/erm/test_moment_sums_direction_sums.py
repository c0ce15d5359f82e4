"""Sums along directions: their definition, row by row, and the bounds that proofs rest on."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.linear_sums import SumOfRows
from confide.erm.losses import LogisticLoss
from confide.erm.moment_sums import DirectionSum, MomentSum
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum

WINDOW = 2.0**-6


def slope(margins):
    return -1.0 / (1.0 + np.exp(margins))


@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_sums_along_directions_equal_their_definition(intercept, layout):
    """Slopes and curvatures times clipped products, in units of the largest ones; a direction is clipped, one is not."""
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(700, 3)) * (rng.uniform(size=(700, 3)) < 0.7)
    labels, counts = rng.choice([-1, 1], 700).astype(np.int8), rng.uniform(0.0, 3.0, 700)
    design = BallBound(1.0).clip(rows)
    if intercept:
        design = np.hstack([design, np.full((700, 1), intercept)])
    width = design.shape[1]
    theta, directions = rng.normal(size=(1, width)), np.array([4.0, 0.3])[:, None] * rng.normal(size=(2, width))
    margins, weighing = labels * (design @ theta[0]), np.minimum(counts, 2.0)
    bends = weighing * (slope(margins + WINDOW) - slope(margins - WINDOW)) / (2.0 * WINDOW) / (2.0 * 0.25)
    steep = weighing * labels * slope(margins) / 2.0
    along = np.clip(design @ directions.T, -1.0, 1.0)
    assert (np.abs(along) == 1.0).any()
    expected = [(steep @ each, bends @ each**2, steep**2 @ each**2) for each in along.T]
    blocks = ArrayBlocks(rows if layout == "dense" else scipy.sparse.csr_array(rows))
    moments = MomentSum(RowSum(LogisticLoss(), BallBound(1.0), intercept, 1, 2.0), WINDOW)
    row_sum = pickle.loads(pickle.dumps(DirectionSum(moments, tuple(map(tuple, directions.tolist())))))
    totals = MemorySource(blocks, labels, counts).sum_over_rows(row_sum, theta)
    np.testing.assert_allclose(totals.gradient, expected, rtol=1e-9, atol=1e-9)


def test_sums_along_directions_by_hand():
    """One row at score 0 and another whose product is clipped: slopes of -1/2 over L = 2, curvatures over c = 1/2."""
    moments = MomentSum(RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1, 2.0), 0.5)
    row_sum = DirectionSum(moments, ((0.5,), (4.0,), (-4.0,)))
    totals = row_sum.start(1, 1)
    shapes = [part.shape for part in (totals.value, totals.gradient, totals.hessian)]
    assert shapes == [(1,), (3, 3), (3, 0, 0)]
    row_sum.add_block(totals, np.array([[0.5], [-0.5]]), np.array([1, 1], np.int8), np.zeros((1, 1)), np.array([1.0, 9.0]))
    # The rates of the two rows are -1/4 and -1/2, and their mean curvature within the window is that of tanh.
    bends = np.array([1.0, 2.0]) * (slope(0.5) - slope(-0.5)) / (2.0 * 0.5) / 0.5
    along = np.array([[0.25, -0.25], [1.0, -1.0], [-1.0, 1.0]])
    rates = np.array([-0.25, -0.5])
    expected = [[rates @ each, bends @ each**2, rates**2 @ each**2] for each in along]
    np.testing.assert_allclose(totals.gradient, expected, rtol=1e-14)
    assert row_sum.completed(totals) is totals


class Steep(LogisticLoss):
    """Of four times the slope and curvature that it states."""

    def derivative(self, margin):
        """-4 / (1 + e^z)."""
        return 4.0 * LogisticLoss.derivative(self, margin)


def test_no_row_adds_more_than_1_whatever_a_loss_says():
    """Slopes and curvatures are clipped to the stated constants: the bound on what a row may add rests on that."""
    row_sum = DirectionSum(MomentSum(RowSum(Steep(), BallBound(1.0), 0.0, 1), 0.25), ((-2.0,),))
    totals = row_sum.start(1, 1)
    row_sum.add_block(totals, np.array([[1.0]]), np.ones(1, np.int8), np.zeros((1, 1)))
    assert totals.gradient.tolist() == [[1.0, 1.0, 1.0]]
    row_sum.add_block(totals, np.array([[1.0]]), np.full(1, -1, np.int8), np.zeros((1, 1)))
    assert totals.gradient.tolist() == [[0.0, 2.0, 2.0]]
    falling = DirectionSum(MomentSum(RowSum(SumOfRows(), BallBound(1.0), 0.0, 1), 0.25), ((2.0,),))
    other = falling.start(1, 1)
    with np.errstate(invalid="ignore"):
        falling.add_block(other, np.array([[1.0]]), np.ones(1, np.int8), np.zeros((1, 1)))
    assert (other.gradient[0, 0], other.gradient[0, 2]) == (1.0, 1.0)
