"""Blocks of coded rows that were clipped for many passes, joined, because a call for each block costs more than its sums.

A joined block is one sparse matrix. The columns of each block are shifted by the number of columns times the number of
blocks before it, so every block has columns, and sums, of its own. Products are those of the blocks. Sums over rows are made
block by block, and those of the blocks are added up. So no chain of additions is longer than without joining
(privacy/proofs/gradient.md, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csc_array, csr_array

from confide.erm.coded_rows import CodedRows
from confide.types import Array, Indices

BLOCKS_IN_JOINED = 8
"""So many blocks are joined: enough to make calls cheap, and few enough to stay in the cache."""
_MOST = 2**31 - 1
"""The largest 32-bit integer, with which compiled code counts columns and entries."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedRows:
    """Several blocks of coded rows with d columns, in their order.

    Parameters
    ----------
    stacked : the rows (m, q d) as a sparse matrix, q the number of blocks
    transposed : its transpose, over the same memory
    starts : (q,), the position of the first row of each block
    """

    stacked: Any
    transposed: Any
    starts: Indices

    @classmethod
    def of(cls, blocks: Sequence[CodedRows]) -> JoinedRows | None:
        """The blocks as one, in memory of their own; None if 32-bit integers cannot count their columns or entries."""
        n_features, width, number = blocks[0].shape[1], blocks[0].layout.width, len(blocks)
        n_rows = sum(block.n_rows for block in blocks)
        if max(number * n_features, n_rows * width) > _MOST:
            return None
        columns = np.concatenate(
            [
                np.concatenate(block.layout.parts(block.columns), axis=1) + np.int32(place * n_features)
                for place, block in enumerate(blocks)
            ]
        )
        entries = np.concatenate([np.concatenate(block.layout.parts(block.entries), axis=1) for block in blocks])
        ends = np.arange(n_rows + 1, dtype=np.int32) * np.int32(width)
        shape = n_rows, number * n_features
        stacked = csr_array((entries.ravel(), columns.ravel(), ends), shape)
        transposed = csc_array((stacked.data, stacked.indices, stacked.indptr), shape[::-1])
        starts = np.cumsum([0, *(block.n_rows for block in blocks[:-1])])
        return cls(stacked, transposed, starts)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns of a block."""
        n_rows, n_columns = self.stacked.shape
        return int(n_rows), int(n_columns) // len(self.starts)

    def times(self, vectors: Array) -> Array:
        """(m, k): products of the rows with the columns of a matrix (d, k)."""
        products: Array = self.stacked @ np.tile(vectors, (len(self.starts), 1))
        return products

    def weighted_sums(self, weights: Array) -> Array:
        """(k, d): sums of the rows, each times its weight, for the columns of weights (m, k)."""
        sums: Array = self.transposed @ weights
        return np.ascontiguousarray(sums.reshape(len(self.starts), -1, weights.shape[1]).sum(axis=0).T)

    def sums_of(self, numbers: Array) -> Array:
        """(k,): sums of the columns of numbers (m, k), one number a row, block by block."""
        sums: Array = np.add.reduceat(numbers, self.starts, axis=0).sum(axis=0)
        return sums
