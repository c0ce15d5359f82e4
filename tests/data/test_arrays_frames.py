"""Blocks of encoded rows, made when they are asked for."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from confide.compiled.loading import kernel
from confide.data import arrays
from confide.data.arrays import ArrayBlocks, EncodedBlocks, MemorySource, rows_in_block
from confide.erm.coded_rows import dense
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import RowSum
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.data.tables import SCHEMA, made_up


@pytest.fixture
def blocks():
    encoder = Encoder(SCHEMA)
    return EncodedBlocks(encoder, encoder.read(made_up()))


def test_blocks_are_the_encoded_rows(blocks):
    """It holds for any start and end. A block has as many rows as for any data with so many columns."""
    rows = blocks.encoder.expand(blocks.codes, 0, blocks.n_rows)
    assert (blocks.n_rows, blocks.n_features) == rows.shape
    assert blocks.rows_in_block == rows_in_block(blocks.n_features)
    for start, stop in ((0, 1), (17, 900), (0, blocks.n_rows), (5, 5)):
        np.testing.assert_array_equal(blocks.block(start, stop), rows[start:stop])


def test_a_block_may_be_written_to(blocks):
    """It is made for one call, so the next call gives the same rows."""
    expected = blocks.block(0, 10).copy()
    blocks.block(0, 10)[:] = 7.0
    np.testing.assert_array_equal(blocks.block(0, 10), expected)
    assert blocks.made_anew


def test_rows_at_positions_are_taken_as_codes_or_copied_as_rows(blocks):
    """Both are the rows at these positions."""
    positions = np.array([3, 4, 900])
    expected = blocks.block(0, blocks.n_rows)[positions]
    np.testing.assert_array_equal(blocks.taken(positions).block(0, 3), expected)
    np.testing.assert_array_equal(blocks.copied(positions), expected)
    every = np.arange(blocks.n_rows)
    np.testing.assert_array_equal(blocks.copied(every), blocks.block(0, blocks.n_rows))
    assert blocks.taken(positions).n_rows == 3


def test_single_precision_is_the_same_to_six_digits(blocks):
    """It holds for blocks. Copies are in double precision."""
    single = blocks.in_single_precision()
    block = single.block(0, 500)
    assert block.dtype == np.float32
    np.testing.assert_allclose(block, blocks.block(0, 500), rtol=0, atol=1e-6)
    assert blocks.block(0, 500).dtype == np.float64
    assert single.copied(np.array([0, 1])).dtype == np.float64


def test_the_encoded_matrix_never_exists():
    """A pass over 160 MB of encoded rows needs less than 12 MB."""
    schema = Schema({"c": {"categories": list(range(1000))}})
    encoder = Encoder(schema)
    codes = encoder.read(pd.DataFrame({"c": np.arange(20_000) % 1000}))
    source = MemorySource(EncodedBlocks(encoder, codes), np.ones(20_000, np.int8))
    row_sum = RowSum(LogisticLoss(), encoder.row_bound, 0.0, order=1)
    tracemalloc.start()
    source.sum_over_rows(row_sum, np.zeros((1, 1000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 12_000_000


@pytest.mark.parametrize(("most", "setting"), [(0, "0"), (2**26, "0"), (2**26, "")])
def test_large_copies_of_coded_rows_stay_coded(monkeypatch, most, setting):
    """All copies do where the kernel makes Hessians of codes. They are the same rows, and nobody can write to the codes."""
    monkeypatch.setattr(arrays, "_LARGE_COPY", most)
    monkeypatch.setenv("CONFIDE_COMPILED", setting)
    encoder = Encoder(Schema(columns={"c": {"categories": [f"v{i}" for i in range(60)]}, "x": {"low": 0.0, "high": 1.0}}))
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"c": rng.choice([f"v{i}" for i in range(60)], 500), "x": rng.uniform(size=500)})
    blocks = EncodedBlocks(encoder, encoder.read(table))
    assert encoder.codes_rows
    positions = np.arange(0, 500, 3)
    copied = blocks.as_copies(positions)
    assert isinstance(copied, ArrayBlocks) == (most > 0 and kernel() is None)
    assert copied.are_copies
    np.testing.assert_array_equal(dense(copied.block(0, positions.size)), blocks.copied(positions))
