"""Blocks of sparse rows: views of the matrix, never dense."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource, rows_in_sparse_block
from confide.data.sparse import SparseBlocks
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum


def made_up(n_rows=500, n_features=40, dtype=np.float64):
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((n_rows, n_features)) < 0.1, rng.random((n_rows, n_features)), 0.0)
    return scipy.sparse.csr_array(dense.astype(dtype))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_are_the_rows_of_the_matrix(dtype):
    """It holds for any start and end, for empty rows, and in both precisions."""
    rows = made_up(dtype=dtype)
    rows.data[rows.indptr[10] : rows.indptr[12]] = 0.0
    rows.eliminate_zeros()
    blocks = SparseBlocks(rows)
    assert (blocks.n_rows, blocks.n_features) == rows.shape
    for start, stop in ((0, 500), (9, 13), (10, 12), (499, 500), (7, 7)):
        block = blocks.block(start, stop)
        assert block.shape == (stop - start, 40)
        assert block.dtype == dtype
        np.testing.assert_array_equal(block.toarray(), rows[start:stop].toarray())


def test_a_block_copies_no_entry():
    """Its entries and column indices share memory with the matrix."""
    rows = made_up()
    block = SparseBlocks(rows).block(100, 200)
    assert np.shares_memory(block.data, rows.data)
    assert np.shares_memory(block.indices, rows.indices)


@pytest.mark.parametrize("n_features", [1, 40, 3000, 40_000])
def test_a_block_has_as_many_rows_as_any_sparse_rows_so_wide(n_features):
    """It has at least half as many rows as there are features, up to the largest block."""
    blocks = SparseBlocks(scipy.sparse.csr_array((10, n_features)))
    assert blocks.rows_in_block == rows_in_sparse_block(n_features)
    assert blocks.rows_in_block >= min(8192, n_features // 2)


def test_rows_at_positions_are_copied():
    """They are given as blocks of their own or as a matrix."""
    rows = made_up()
    positions = np.array([3, 4, 400])
    taken = SparseBlocks(rows).taken(positions)
    np.testing.assert_array_equal(taken.block(0, 3).toarray(), rows.toarray()[positions])
    copied = SparseBlocks(rows).copied(positions)
    np.testing.assert_array_equal(copied.toarray(), rows.toarray()[positions])
    assert not np.shares_memory(copied.data, rows.data)


def test_lent_blocks_cannot_be_written_to():
    """They have the same entries, and the matrix itself stays writeable."""
    rows = made_up()
    block = SparseBlocks(rows).lent().block(0, 10)
    np.testing.assert_array_equal(block.toarray(), rows[:10].toarray())
    with pytest.raises(ValueError, match="read-only"):
        block.data[0] = 1.0
    rows.data[0] = 1.0


def test_sums_over_sparse_rows_are_those_over_dense_ones():
    """They agree up to rounding, because the order of additions differs."""
    rows = made_up()
    labels = np.where(np.arange(500) % 3 == 0, 1, -1).astype(np.int8)
    row_sum = RowSum(LogisticLoss(), BallBound(1.0), 1.0, order=2)
    weights = np.random.default_rng(1).normal(size=(2, 41))
    sparse = MemorySource(SparseBlocks(rows), labels).sum_over_rows(row_sum, weights)
    dense = MemorySource(ArrayBlocks(rows.toarray()), labels).sum_over_rows(row_sum, weights)
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(sparse, part), getattr(dense, part), rtol=1e-12, atol=1e-12)
