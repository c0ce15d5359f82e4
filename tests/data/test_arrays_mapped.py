"""Rows that a public map is applied to, block by block."""

from __future__ import annotations

import tracemalloc

import numpy as np

from confide.data.arrays import ArrayBlocks, MappedBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import RowSum
from confide.features.fourier import FourierMap


def made_up(n_rows, n_inputs):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n_rows, n_inputs)), rng.choice([-1, 1], size=n_rows).astype(np.int8)


def test_sums_over_mapped_blocks_are_those_over_the_mapped_rows():
    """They agree to the bit, because a mapped row does not depend on its block."""
    rows, labels = made_up(3000, 4)
    fourier_map = FourierMap(4, 50)
    row_sum = RowSum(LogisticLoss(), fourier_map.row_bound, 1.0, order=2)
    weights = np.random.default_rng(2).normal(size=(2, 51))
    mapped = MappedBlocks(ArrayBlocks(rows), fourier_map)
    assert (mapped.n_rows, mapped.n_features) == (3000, 50)
    totals = MemorySource(mapped, labels).sum_over_rows(row_sum, weights)
    expected = MemorySource(ArrayBlocks(fourier_map.transform(rows)), labels).sum_over_rows(row_sum, weights)
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_array_equal(getattr(totals, part), getattr(expected, part))


def test_the_mapped_matrix_never_exists():
    """A pass over 80 MB of mapped rows needs less than 4 MB."""
    rows, labels = made_up(10_000, 5)
    source = MemorySource(MappedBlocks(ArrayBlocks(rows), FourierMap(5, 1000)), labels)
    row_sum = RowSum(LogisticLoss(), source.blocks.fourier_map.row_bound, 0.0, order=1)
    tracemalloc.start()
    source.sum_over_rows(row_sum, np.zeros((1, 1000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000
