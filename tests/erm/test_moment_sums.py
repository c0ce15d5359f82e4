"""Sums of second moments: their definition, row by row."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import Softmax
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.moment_sums import MomentSum
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum


def made_up(n=300, d=4, seed=0, dtype=np.float64):
    """Rows, most of them longer than 1, and labels."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)).astype(dtype), rng.choice([-1, 1], size=n).astype(np.int8)


@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_moment_sums_equal_their_definition(intercept, layout):
    """Curvature over a window of scores and squared slope, times products of clipped rows and weights of rows."""
    rng, w = np.random.default_rng(4), 2.0**-6
    rows = rng.normal(size=(700, 3)) * (rng.uniform(size=(700, 3)) < 0.7)
    labels, counts = rng.choice([-1, 1], 700).astype(np.int8), rng.uniform(0.0, 3.0, 700)
    design = BallBound(1.0).clip(rows)
    if intercept:
        design = np.hstack([design, np.full((700, 1), intercept)])
    theta = rng.normal(size=(1, design.shape[1]))
    margins, weighing = labels * (design @ theta[0]), np.minimum(counts, 2.0)

    def slope(z):
        return -1.0 / (1.0 + np.exp(z))

    bends = weighing * (slope(margins + w) - slope(margins - w)) / (2.0 * w)
    steep = (weighing * slope(margins)) ** 2
    blocks = ArrayBlocks(rows if layout == "dense" else scipy.sparse.csr_array(rows))
    row_sum = MomentSum(RowSum(LogisticLoss(), BallBound(1.0), intercept, 1, 2.0), w)
    totals = MemorySource(blocks, labels, counts).sum_over_rows(pickle.loads(pickle.dumps(row_sum)), theta)
    assert totals.hessian.shape == (2, design.shape[1], design.shape[1])
    np.testing.assert_allclose(totals.hessian[0], (design * bends[:, None]).T @ design, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(totals.hessian[1], (design * steep[:, None]).T @ design, rtol=1e-9, atol=1e-9)


def test_moments_of_several_classes_by_hand():
    """Softmax at scores of 0 and three classes: I/3 - 1/9 and the slope (1/3, -2/3, 1/3), times x x^T, counted 2 and 4."""
    row_sum = MomentSum(RowSum(Softmax(3), BallBound(4.0), 0.5, 1, 2.0), 0.1)
    totals = row_sum.start(1, 2)
    shapes = [part.shape for part in (totals.value, totals.gradient, totals.hessian)]
    assert shapes == [(2,), (2, 0), (2, 9, 9)]
    row_sum.add_block(totals, np.array([[1.0, -3.0]]), np.array([1]), np.zeros((1, 9)), np.array([7.0]))
    totals = row_sum.completed(totals)
    x, slope = np.array([1.0, -3.0, 0.5]), np.array([1.0, -2.0, 1.0]) / 3.0
    np.testing.assert_allclose(
        totals.hessian[0], 2.0 * np.kron(np.eye(3) / 3 - 1 / 9, np.outer(x, x)), rtol=1e-12, atol=1e-15
    )
    np.testing.assert_allclose(totals.hessian[1], 4.0 * np.kron(np.outer(slope, slope), np.outer(x, x)), rtol=1e-12)


def test_the_mean_curvature_within_a_window_by_hand():
    """A hinge with a joint from 0 to 2 at margin 0: half of the window of 1 is bent, by 1/2, and the slope there is -1."""
    row_sum = MomentSum(RowSum(HuberHinge(1.0), BallBound(1.0), 0.0, 1), 1.0)
    totals = row_sum.start(1, 1)
    row_sum.add_block(totals, np.array([[0.5], [0.5]]), np.array([1, -1], np.int8), np.zeros((1, 1)))
    assert row_sum.completed(totals).hessian.tolist() == [[[2 * 0.25 * 0.25]], [[2 * 0.25]]]


class Falling(LogisticLoss):
    """A loss whose computed slope falls with the margin by mistake."""

    def derivative(self, margin):
        """-0.5 - margin / 100."""
        return -0.5 - margin / 100.0


def test_a_curvature_is_never_negative():
    """Whatever differences of slopes rounding makes."""
    row_sum = MomentSum(RowSum(Falling(), BallBound(2.0), 0.0, 1), 0.5)
    totals = row_sum.start(1, 1)
    row_sum.add_block(totals, np.array([[1.0]]), np.ones(1, np.int8), np.zeros((1, 1)))
    assert totals.hessian.ravel().tolist() == [0.0, 0.25]


def test_moments_of_two_problems_are_those_of_each_alone():
    """Those of the curvature first, then those of the slope; for one score and for three."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(20, 2))
    for loss, labels in ((Softmax(3), rng.integers(3, size=20)), (LogisticLoss(), rng.choice([-1, 1], 20).astype(np.int8))):
        row_sum = MomentSum(RowSum(loss, BallBound(1.0), 0.5, 1), 0.1)
        weights = rng.normal(size=(2, 3 * loss.constants.n_outputs))

        def found(points, row_sum=row_sum, labels=labels):
            totals = row_sum.start(len(points), 2)
            row_sum.add_block(totals, rows, labels, points)
            return row_sum.completed(totals).hessian

        first, second, both = found(weights[:1]), found(weights[1:]), found(weights)
        np.testing.assert_allclose(both, np.stack([first[0], second[0], first[1], second[1]]), rtol=1e-11, atol=1e-12)
