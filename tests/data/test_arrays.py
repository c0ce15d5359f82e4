"""Samples of rows in memory, which are the same rows for every kind of block."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.data.frames import EncodedBlocks
from confide.data.mapped import MappedBlocks
from confide.data.sparse import SparseBlocks
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from tests.data.tables import SCHEMA, made_up


@pytest.mark.parametrize("n_rows", [1, 3, 7, 8, 9, 15, 16, 17, 999])
def test_a_sample_is_of_different_rows_with_their_own_labels_and_weights(n_rows):
    """Rows are in order, about as many as wanted, and come from all parts of the data."""
    numbers = np.arange(n_rows)
    source = MemorySource(ArrayBlocks(numbers[:, None] * 1.0), numbers, numbers * 1.0, 2)
    for wanted in (1, 8, 9, n_rows // 16 + 1, n_rows, 10 * n_rows):
        sample = source.sample(wanted)
        picked = sample.blocks.block(0, sample.n_rows)[:, 0]
        assert (np.diff(picked) > 0).all()
        # Within a root of two, and a run of a few rows.
        asked = min(max(wanted, 8), n_rows)
        assert asked / 1.5 - 8 < len(picked) < 1.5 * asked + 8
        # One run is the first; of several the last lies in the second half.
        assert picked[0] == 0
        assert len(picked) <= 8 or picked[-1] + 8 >= n_rows // 2
        np.testing.assert_array_equal(sample.labels, picked)
        np.testing.assert_array_equal(sample.row_weights, picked)
        assert sample.n_threads == 2
        # A sample of a sample is one.
        assert np.isin(sample.sample(wanted // 2 + 1).labels, picked).all()


def test_every_kind_of_block_gives_the_same_rows_for_a_sample():
    """Arrays, sparse rows, encoded frames and mapped rows give the rows that their blocks hold at the same positions."""
    encoder, frame = Encoder(SCHEMA), made_up()
    encoded = EncodedBlocks(encoder, encoder.read(frame))
    whole = encoded.block(0, len(frame))
    fourier = FourierMap(encoder.n_features, 6)
    numbers = np.arange(len(frame))
    for blocks, expected in (
        (encoded, whole),
        (ArrayBlocks(whole), whole),
        (ArrayBlocks(np.asfortranarray(whole, dtype=np.float32)), whole.astype(np.float32)),
        (SparseBlocks(scipy.sparse.csr_array(whole)), whole),
        (MappedBlocks(encoded, fourier), fourier.transform(whole)),
    ):
        sample = MemorySource(blocks, numbers).sample(500)
        rows = sample.blocks.block(0, sample.n_rows)
        dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
        np.testing.assert_allclose(dense, expected[sample.labels], rtol=0, atol=1e-15)
        assert rows.dtype == expected.dtype
        assert not np.shares_memory(dense, expected)
