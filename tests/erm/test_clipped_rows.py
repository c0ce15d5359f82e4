"""Blocks that were clipped for one sum: other sums refuse them, and their memory is counted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import Softmax
from confide.erm.clipped_rows import ClippedRows, ScaledRows, clipped_once, joined, scaled_once
from confide.erm.coded_rows import CodedLayout, CodedRows
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.row_sums import RowSum, sums_of
from confide.erm.transformed_losses import ClippedSlopes
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
    half = replace(SUM, intercept=0.5)
    np.testing.assert_allclose(scaled_once(half, ROWS).stretch, half.stretch(SUM.row_bound.clip(ROWS)), rtol=1e-14)
    assert scaled_once(replace(SUM, loss=LogisticLoss()), ROWS).stretch == 1.0
    huge = ROWS.copy()
    huge[3, 1] = 1e170
    for other in (huge, csr_array(ROWS), ROWS.astype(np.float32)):
        assert scaled_once(SUM, other) is None


@pytest.mark.parametrize("d", [3, 47, 48, 100])
@pytest.mark.parametrize("k", [1, 2, 3])
def test_scaled_rows_of_any_width_multiply_as_the_rows_that_they_stand_for(d, k):
    """Also long ones, which are multiplied by one vector in another way."""
    rng = np.random.default_rng(d)
    rows, vectors = rng.normal(size=(20, d)), rng.normal(size=(d, k))
    scales, shifts, centre = rng.uniform(0.1, 1.0, (20, 1)), rng.uniform(1.0, 2.0, (20, 1)), rng.normal(size=d)
    np.testing.assert_allclose(ScaledRows(rows, scales).times(vectors), (scales * rows) @ vectors, rtol=1e-11, atol=1e-12)
    moved = ScaledRows(rows, scales, shifts, centre).times(vectors)
    np.testing.assert_allclose(moved, (scales * rows - shifts * centre) @ vectors, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("radius", [0.6, 1.0])
def test_scaled_rows_that_are_centred_are_those_of_the_bound(radius):
    """Moved, shortened and magnified as `Centred` does it; their lengths are known too."""
    bound = Centred(BallBound(1.0), (0.3, -0.2, 0.1, 0.4), radius)
    row_sum = replace(SUM, row_bound=bound)
    block, formed = scaled_once(row_sum, ROWS), bound.clip(ROWS)
    np.testing.assert_allclose(block.rows.times(np.eye(4)), formed, atol=1e-14)
    np.testing.assert_allclose(block.stretch, row_sum.stretch(formed), rtol=1e-13)
    assert block.n_bytes == 32 * 200


def test_rows_far_beyond_the_bound_are_not_scaled_when_they_are_used():
    """Beyond 2^200 radii, or 2^500 where there is no bound; at that distance they still are."""
    radius = 1.0 - 2.0**-40
    for norm, farthest in ((1.0, 2.0**200 * radius), (2.0**300, 2.0**500 * radius), (np.inf, 2.0**500)):
        row_sum = RowSum(LogisticLoss(), BallBound(norm), 0.0, 1)
        for length, is_scaled in ((farthest, True), (farthest * (1.0 + 2.0**-50), False)):
            block = scaled_once(row_sum, np.array([[length, 0.0], [0.0, 0.5]]))
            assert (block is not None) == is_scaled
        entry = scaled_once(row_sum, np.array([[farthest]])).rows.times(np.ones((1, 1)))[0, 0]
        assert entry == pytest.approx(min(norm * radius, farthest), rel=1e-15, abs=0.0)
    assert scaled_once(replace(SUM, row_bound=GroupBound((4,), (1.0,))), ROWS) is None


def test_memory_of_coded_and_centred_rows_is_counted():
    """12 bytes for each stored entry, 8 for each double, and 32 a row."""
    layout = CodedLayout(5, ((0, 2),), ((2, 5),))
    coded = CodedRows(layout, np.array([0, 1, 2, 3, 3, 4], np.int32), np.full(6, 0.1))
    centred = Centred(BallBound(1.0), (0.1,) * 5, 1.0)
    for bound in (BallBound(1.0), centred):
        row_sum = RowSum(LogisticLoss(), bound, 0.0, 1)
        assert clipped_once(row_sum, coded).n_bytes == 2 * (3 * 12 + 32)
        assert clipped_once(row_sum, coded).shape == (2, 5)
        assert clipped_once(row_sum, csr_array(coded.dense())).n_bytes == 2 * (3 * 12 + 32)
        assert clipped_once(row_sum, coded.dense()).n_bytes == 2 * (5 * 8 + 32)


@pytest.mark.parametrize(("n_classes", "kind"), [(32, CodedRows), (33, np.ndarray)])
def test_coded_rows_are_made_dense_for_more_than_32_scores(n_classes, kind):
    """Products with dense rows are faster then."""
    coded = CodedRows(CodedLayout(2, ((0, 2),), ()), np.array([0, 1], np.int32), np.ones(2))
    assert type(clipped_once(RowSum(Softmax(n_classes), BallBound(2.0), 0.0, 1), coded).rows) is kind


def coded_blocks(row_sum, widths=(5, 5)):
    """Two clipped blocks, of rows with the numbers 1 to 3 in the first columns."""
    return [
        clipped_once(
            row_sum, CodedRows(CodedLayout(width, ((0, width),), ()), np.arange(3, dtype=np.int32), np.arange(1.0, 4.0))
        )
        for width in widths
    ]


@pytest.mark.parametrize("bound", [BallBound(2.0), Centred(BallBound(2.0), (0.5,) * 5, 1.5)], ids=["ball", "centred"])
@pytest.mark.parametrize("loss", [LogisticLoss(), ClippedSlopes(LogisticLoss(), 0.3)], ids=["plain", "clipped"])
def test_joined_blocks_are_the_blocks_one_after_the_other(bound, loss):
    """Their products, sums and stretches; of one sum, whose bound and loss they keep."""
    row_sum = RowSum(loss, bound, 1.0, 1)
    blocks = coded_blocks(row_sum)
    block = joined(blocks)
    assert block.row_sum is row_sum
    assert block.shape == (6, 5)
    vectors = np.random.default_rng(0).normal(size=(5, 2))
    np.testing.assert_allclose(
        block.rows.times(vectors), np.vstack([each.rows.times(vectors) for each in blocks]), rtol=1e-14
    )
    stretches = np.vstack([each.stretch for each in blocks]) if loss.constants.by_length else 1.0
    np.testing.assert_array_equal(block.stretch, stretches)
    sums = sums_of(np.arange(12.0).reshape(6, 2), block.rows)
    assert sums.tolist() == [30.0, 36.0]


def test_blocks_that_do_not_belong_together_are_not_joined():
    """Of another layout, of another kind, and moved ones beside those that were not."""
    row_sum = RowSum(LogisticLoss(), BallBound(2.0), 0.0, 1)
    blocks = coded_blocks(row_sum)
    moved = coded_blocks(replace(row_sum, row_bound=Centred(BallBound(2.0), (0.5,) * 5, 1.5)))
    dense = clipped_once(row_sum, ROWS)
    assert joined(blocks) is not None
    for others in (
        coded_blocks(row_sum, (5, 6)),
        [blocks[0], dense],
        [dense, dense],
        [blocks[0], moved[1]],
        [moved[0], blocks[1]],
    ):
        assert joined(others) is None


def test_only_an_equal_sum_of_order_0_or_1_gets_the_rows():
    """The sum itself, or one that says the same."""
    for order in (0, 1):
        row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, order)
        block = clipped_once(row_sum, ROWS)
        assert block.of(row_sum)[0] is block.of(replace(row_sum))[0] is block.rows
    bent = replace(row_sum, order=2)
    with pytest.raises(ParameterError, match="clipped for another sum"):
        ClippedRows(bent, ROWS, 1.0).of(bent)


def test_arrays_are_clipped_in_the_order_of_memory_of_a_single_pass():
    """Row by row; groups clip arrays and sparse rows in memory of their own."""
    block = clipped_once(SUM, np.asfortranarray(ROWS))
    assert block.rows.flags.c_contiguous
    np.testing.assert_allclose(block.rows, clipped_once(SUM, ROWS).rows, rtol=1e-14)
    grouped = replace(SUM, row_bound=GroupBound((2, 2), (0.5, 0.25)))
    np.testing.assert_array_equal(clipped_once(grouped, ROWS).rows, grouped.row_bound.clip(ROWS))
    sparse = clipped_once(replace(SUM, row_bound=BallBound(0.5)), csr_array(ROWS))
    np.testing.assert_allclose(sparse.rows.toarray(), BallBound(0.5).clip(ROWS), rtol=1e-14)
