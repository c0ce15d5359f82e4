"""Joined blocks of coded rows: the sums of their blocks, made block by block."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm import coded_rows
from confide.erm.coded_rows import CodedLayout, CodedRows, JoinedRows

LAYOUT = CodedLayout(12, ((0, 3), (8, 12)), ((3, 8),))


def block(n_rows: int, seed: int) -> CodedRows:
    """Rows of two categories and a number with knots, with entries of many sizes."""
    rng = np.random.default_rng(seed)
    columns, entries = np.empty(n_rows * LAYOUT.width, np.int32), np.exp(5.0 * rng.normal(size=n_rows * LAYOUT.width))
    single, first, second = LAYOUT.parts(columns)
    single[...] = np.column_stack([rng.integers(*interval, n_rows) for interval in LAYOUT.singles])
    first[:, 0] = rng.integers(3, 7, n_rows)
    second[...] = first + 1
    return CodedRows(LAYOUT, columns, entries)


BLOCKS = [block(n_rows, seed) for seed, n_rows in enumerate((40, 40, 40, 7))]


@pytest.mark.parametrize("k", [1, 3], ids=["one problem", "several scores"])
def test_products_and_sums_are_those_of_the_rows(k):
    """Of one vector and of several, in the order of the blocks; the last block may be shorter."""
    rng = np.random.default_rng(9)
    rows, whole = JoinedRows.of(BLOCKS), np.vstack([each.dense() for each in BLOCKS])
    assert rows.shape == whole.shape == (127, 12)
    vectors, weights = rng.normal(size=(12, k)), rng.normal(size=(127, k))
    np.testing.assert_allclose(rows.times(vectors), whole @ vectors, rtol=1e-12)
    np.testing.assert_allclose(rows.weighted_sums(weights), weights.T @ whole, rtol=1e-11)
    np.testing.assert_allclose(rows.sums_of(weights), weights.sum(axis=0), rtol=1e-12)
    assert rows.weighted_sums(weights).flags.c_contiguous


def test_sums_are_made_block_by_block():
    """A block beside others has the sums that it has alone, to the bit, and no number of one meets those of another."""
    rows, weights = JoinedRows.of(BLOCKS[:2]), np.random.default_rng(8).normal(size=(80, 1))
    for own in (slice(0, 40), slice(40, 80)):
        alone = np.zeros((80, 1))
        alone[own] = weights[own]
        of_block = JoinedRows.of(BLOCKS[:1] if own.start == 0 else BLOCKS[1:2])
        np.testing.assert_array_equal(rows.weighted_sums(alone), of_block.weighted_sums(weights[own]))
        np.testing.assert_array_equal(rows.sums_of(alone), of_block.sums_of(weights[own]))


def test_the_sums_of_blocks_are_added_up_and_nothing_else():
    """To the bit: a chain of additions through all blocks would be longer than the rounding bound allows for."""
    rng = np.random.default_rng(7)
    rows, weights = JoinedRows.of(BLOCKS), rng.normal(size=(127, 6)) * np.exp(rng.normal(size=(127, 6)))
    ends = np.cumsum([each.n_rows for each in BLOCKS])[:-1]
    alone = [(JoinedRows.of([each]), own) for each, own in zip(BLOCKS, np.split(weights, ends), strict=True)]
    np.testing.assert_array_equal(
        rows.weighted_sums(weights), np.sum([one.weighted_sums(own) for one, own in alone], axis=0)
    )
    np.testing.assert_array_equal(rows.sums_of(weights), np.sum([one.sums_of(own) for one, own in alone], axis=0))


def test_the_matrix_and_its_transpose_share_their_memory():
    """A fit keeps the entries once."""
    rows = JoinedRows.of(BLOCKS)
    for name in ("data", "indices"):
        assert np.shares_memory(getattr(rows.stacked, name), getattr(rows.transposed, name))
    assert rows.stacked.indices.dtype == np.int32


def test_blocks_that_32_bit_integers_cannot_count_are_not_joined(monkeypatch):
    """Columns times blocks, or entries of all rows: compiled code would follow wrong columns into memory."""
    monkeypatch.setattr(coded_rows, "_MOST_JOINED", 127 * LAYOUT.width)
    assert JoinedRows.of(BLOCKS) is not None
    monkeypatch.setattr(coded_rows, "_MOST_JOINED", 127 * LAYOUT.width - 1)
    assert JoinedRows.of(BLOCKS) is None
    monkeypatch.setattr(coded_rows, "_MOST_JOINED", 12 * 2 - 1)
    few = [block(1, 0), block(1, 1)]
    assert JoinedRows.of(few[:1]) is not None
    assert JoinedRows.of(few) is None


def test_columns_of_joined_blocks_are_counted_up_to_the_largest_32_bit_integer():
    """Two blocks of 2^30 columns have one column too many."""
    largest = CodedLayout(2**31 - 1, ((0, 5),), ())
    assert JoinedRows.of([CodedRows(largest, np.array([3], np.int32), np.ones(1))]) is not None
    layout = CodedLayout(2**30, ((0, 2**30),), ())
    one = CodedRows(layout, np.array([5], np.int32), np.ones(1))
    assert JoinedRows.of([one]) is not None
    assert JoinedRows.of([one, one]) is None


def test_joined_rows_by_hand():
    """Two blocks of three columns: their matrices are diagonal blocks, and sums are added up over them."""
    layout = CodedLayout(3, ((0, 1),), ((1, 3),))
    blocks = [
        CodedRows(layout, np.array([0, 0, 1, 1, 2, 2], np.int32), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])),
        CodedRows(layout, np.array([0, 1, 2], np.int32), np.array([7.0, 8.0, 9.0])),
    ]
    rows = JoinedRows.of(blocks)
    assert rows.shape == (3, 3)
    assert rows.starts.tolist() == [0, 2]
    assert rows.stacked.toarray().tolist() == [[1, 3, 5, 0, 0, 0], [2, 4, 6, 0, 0, 0], [0, 0, 0, 7, 8, 9]]
    assert rows.transposed.toarray().tolist() == rows.stacked.toarray().T.tolist()
    assert rows.times(np.array([[1.0], [10.0], [100.0]])).tolist() == [[531.0], [642.0], [987.0]]
    assert rows.weighted_sums(np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]])).tolist() == [[3, 7, 11], [16, 20, 24]]
    assert rows.sums_of(np.array([[1.0, 5.0], [2.0, 6.0], [4.0, 7.0]])).tolist() == [7.0, 18.0]
