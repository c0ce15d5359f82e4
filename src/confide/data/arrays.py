"""Rows in memory, read block by block so that a block stays in the cache while it is used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from confide.erm.row_sums import RowSum, Totals
from confide.types import Labels, Rows, Weights

_BLOCK_BYTES = 2**19
"""A block and its few companions fit the second-level cache of common processors (1 MiB and more)."""
_FEWEST_ROWS, _MOST_ROWS = 64, 8192


def rows_in_block(n_features: int) -> int:
    """Number of rows of one block: a function of the number of features alone."""
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _BLOCK_BYTES // (8 * max(1, n_features))))


def summation_depth(n_rows: int, n_features: int) -> int:
    """Rows of the largest block plus number of blocks: the longest chain of additions behind one entry of a total."""
    block = rows_in_block(n_features)
    return min(block, n_rows) + -(-n_rows // block)


class Blocks(Protocol):
    """Rows that can be had a block at a time."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""

    def block(self, start: int, stop: int) -> Rows:
        """Rows start to stop: (stop - start, n_features), finite."""


@dataclass(frozen=True, slots=True)
class ArrayBlocks:
    """Blocks of a two-dimensional array: views of it, never copies."""

    rows: Rows

    @property
    def n_rows(self) -> int:
        return int(self.rows.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.rows.shape[1])

    def block(self, start: int, stop: int) -> Rows:
        return self.rows[start:stop]


@dataclass(frozen=True, slots=True)
class MemorySource:
    """A `RowSource` over blocks in memory and their labels.

    Parameters
    ----------
    blocks : the rows
    labels : (n,) int8, -1 or +1
    """

    blocks: Blocks
    labels: Labels

    @property
    def n_features(self) -> int:
        return self.blocks.n_features

    @property
    def n_rows(self) -> int:
        return self.blocks.n_rows

    def sum_over_rows(self, row_sum: RowSum, weights: Weights) -> Totals:
        totals = row_sum.start(weights.shape[0], self.n_features)
        for start, stop in self._ranges():
            row_sum.add_block(totals, self.blocks.block(start, stop), self.labels[start:stop], weights)
        return row_sum.completed(totals)

    def _ranges(self) -> Iterator[tuple[int, int]]:
        step = rows_in_block(self.n_features)
        for start in range(0, self.n_rows, step):
            yield start, min(start + step, self.n_rows)
