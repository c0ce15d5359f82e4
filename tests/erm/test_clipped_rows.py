"""Blocks that were clipped for one sum: other sums refuse them, and their memory is counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.clipped_rows import ScaledRows, clipped_once, scaled_once
from confide.erm.clipped_slopes import ClippedSlopes
from confide.erm.hinges import HuberHinge
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError

ROWS = np.random.default_rng(0).normal(size=(200, 4))
SUM = RowSum(ClippedSlopes(LogisticLoss(), 0.3), BallBound(0.5), 1.0, 1)


def test_rows_are_clipped_and_their_lengths_are_known():
    """As the sum itself would do it, to the bit; rows that need no clipping are not copied."""
    block = clipped_once(SUM, ROWS)
    rows, stretch = block.of(SUM)
    np.testing.assert_array_equal(rows, SUM.row_bound.clip(ROWS))
    np.testing.assert_array_equal(stretch, SUM.stretch(rows))
    assert block.shape == (200, 4)
    assert clipped_once(RowSum(LogisticLoss(), BallBound(0.5), 1.0, 1), ROWS).stretch == 1.0
    assert clipped_once(RowSum(LogisticLoss(), BallBound(100.0), 1.0, 1), ROWS).rows is ROWS


def test_memory_is_that_of_the_numbers():
    """Of dense and of sparse rows, and 32 bytes a row for what stands beside them."""
    assert clipped_once(SUM, ROWS).n_bytes == 200 * (4 * 8 + 32)
    assert clipped_once(SUM, csr_array(ROWS)).n_bytes == 200 * (4 * 12 + 32)


@pytest.mark.parametrize(
    "changed", [{"row_bound": BallBound(2.0)}, {"intercept": 1.0}, {"order": 2}, {"loss": HuberHinge(0.5)}], ids=str
)
def test_rows_that_were_clipped_for_one_sum_are_refused_by_others(changed):
    """Their bound may be another one; an equal sum takes them."""
    row_sum = RowSum(LogisticLoss(), BallBound(0.5), 0.0, 1)
    rows = np.random.default_rng(1).normal(size=(300, 40))
    kept = MemorySource(ArrayBlocks(rows), np.ones(300, np.int8)).for_many_passes(row_sum)
    kept.sum_over_rows(replace(row_sum), np.zeros((1, 40)))
    other = replace(row_sum, **changed)
    with pytest.raises(ParameterError, match="clipped for another sum"):
        kept.sum_over_rows(other, np.zeros((1, other.n_weights(40))))


def test_scaled_rows_multiply_as_the_rows_that_they_stand_for():
    """For several vectors and weights at once, with a centre and without."""
    rng = np.random.default_rng(3)
    moved = ScaledRows(ROWS, rng.uniform(0.1, 1.0, (200, 1)), rng.uniform(1.0, 2.0, (200, 1)), rng.normal(size=4))
    vectors, weights = rng.normal(size=(4, 3)), rng.normal(size=(200, 2))
    for rows, subtracted in ((moved, moved.shifts * moved.centre), (ScaledRows(ROWS, moved.scales), 0.0)):
        formed = rows.scales * ROWS - subtracted
        np.testing.assert_allclose(rows.times(vectors), formed @ vectors, atol=1e-13)
        np.testing.assert_allclose(rows.weighted_sums(weights), weights.T @ formed, atol=1e-12)
        assert rows.shape == (200, 4)


def test_scales_are_those_of_the_bound_and_cost_no_memory_for_rows():
    """Rows inside stay as they are, others are as long as the bound; huge rows, and other kinds of rows, have none."""
    block = scaled_once(SUM, ROWS)
    np.testing.assert_allclose(block.rows.scales * ROWS, SUM.row_bound.clip(ROWS), rtol=1e-15)
    np.testing.assert_allclose(block.stretch, SUM.stretch(SUM.row_bound.clip(ROWS)), rtol=1e-14)
    assert block.n_bytes == 32 * 200
    assert scaled_once(replace(SUM, loss=LogisticLoss()), ROWS).stretch == 1.0
    huge = ROWS.copy()
    huge[3, 1] = 1e170
    for other in (huge, csr_array(ROWS), ROWS.astype(np.float32)):
        assert scaled_once(SUM, other) is None
