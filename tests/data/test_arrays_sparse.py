"""Blocks of sparse rows: views of the entries, with indices of their own, never dense."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource, rows_in_sparse_block
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.errors import InputError


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
    blocks = ArrayBlocks(rows)
    assert (blocks.n_rows, blocks.n_features) == rows.shape
    for start, stop in ((0, 500), (9, 13), (10, 12), (499, 500), (7, 7)):
        block = blocks.block(start, stop)
        assert block.shape == (stop - start, 40)
        assert block.dtype == dtype
        np.testing.assert_array_equal(block.toarray(), rows[start:stop].toarray())


def test_a_block_copies_no_entry():
    """Its column indices are its own: another thread may write to those of the matrix while compiled code follows them."""
    rows = made_up()
    block = ArrayBlocks(rows).block(100, 200)
    assert np.shares_memory(block.data, rows.data)
    assert not np.shares_memory(block.indices, rows.indices)
    before = block.indices.copy()
    rows.indices[:] = 10**6
    np.testing.assert_array_equal(block.indices, before)


@pytest.mark.parametrize("wrong", [40, 10**6, 2**31 - 1, -1, -(2**31)])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_column_indices_that_were_changed_are_refused_and_never_followed(wrong, kind):
    """In every way to read rows; with what a product would read or write elsewhere in memory."""
    rows = made_up()
    rows.indices, rows.indptr = rows.indices.astype(kind), rows.indptr.astype(kind)
    blocks = ArrayBlocks(rows)
    rows.indices[rows.indptr[150]] = wrong
    for read in (
        lambda: blocks.block(100, 200),
        lambda: blocks.copied(np.array([3, 150])),
        lambda: blocks.taken(np.array([3, 150])).block(0, 2),
        lambda: blocks.lent().block(150, 151),
    ):
        with pytest.raises(InputError, match="changed by another thread"):
            read()
    assert blocks.block(0, 100).shape == (100, 40)


def test_a_fit_survives_a_thread_that_writes_to_its_indices():
    """In a process of its own, which would die: the fit refuses, or has read what was there before."""
    script = """
import threading, numpy as np, scipy.sparse, confide
rng = np.random.default_rng(0)
X = scipy.sparse.csr_array(np.where(rng.random((30_000, 200)) < 0.05, 0.5, 0.0))
y, whole, pointers = np.arange(30_000) % 2, X.indices.copy(), X.indptr.copy()
done = threading.Event()
def write():
    while not done.wait(0.01):
        X.indices[:] = 2**31 - 1
        X.indptr[1:] = 2**31 - 1
threading.Timer(0.02, write).start()
model = confide.LogisticRegression(1.0, classes=[0, 1])
with confide.progress(lambda *_: None):
    for _ in range(5):
        X.indices[:], X.indptr[:] = whole, pointers
        try:
            model.fit(X, y)
        except confide.InputError as error:
            assert "indices" in str(error) or "changed by another thread" in str(error), error
done.set()
print("alive")
"""
    found = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True, check=False)
    assert (found.returncode, found.stdout) == (0, "alive\n"), found.stderr
    assert not found.stderr


@pytest.mark.parametrize("n_features", [1, 40, 3000, 40_000])
def test_a_block_has_as_many_rows_as_any_sparse_rows_so_wide(n_features):
    """It has at least half as many rows as there are features, up to the largest block."""
    blocks = ArrayBlocks(scipy.sparse.csr_array((10, n_features)))
    assert blocks.rows_in_block == rows_in_sparse_block(n_features)
    assert blocks.rows_in_block >= min(8192, n_features // 2)


def test_rows_at_positions_are_copied():
    """They are given as blocks of their own or as a matrix."""
    rows = made_up()
    positions = np.array([3, 4, 400])
    taken = ArrayBlocks(rows).taken(positions)
    np.testing.assert_array_equal(taken.block(0, 3).toarray(), rows.toarray()[positions])
    copied = ArrayBlocks(rows).copied(positions)
    np.testing.assert_array_equal(copied.toarray(), rows.toarray()[positions])
    assert not np.shares_memory(copied.data, rows.data)


def test_lent_blocks_cannot_be_written_to():
    """They have the same entries, and the matrix itself stays writeable."""
    rows = made_up()
    block = ArrayBlocks(rows).lent().block(0, 10)
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
    sparse = MemorySource(ArrayBlocks(rows), labels).sum_over_rows(row_sum, weights)
    dense = MemorySource(ArrayBlocks(rows.toarray()), labels).sum_over_rows(row_sum, weights)
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_allclose(getattr(sparse, part), getattr(dense, part), rtol=1e-12, atol=1e-12)
