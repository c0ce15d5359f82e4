"""Rows in memory, read block by block so that a block stays in the cache while it is used."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from scipy.sparse import issparse, vstack

from confide.erm.row_sums import SumOverRows, Totals
from confide.types import Array, Rows, Targets, Weights

_BLOCK_BYTES = 2**19
"""A block and its few companions fit the second-level cache of common processors (1 MiB and more)."""
_SCORE_BYTES = 2**16
"""Scores of a block and the few arrays of their size stay in the cache with it."""
_FEWEST_ROWS, _MOST_ROWS = 64, 8192
_ROWS_IN_RUN = 8
"""Rows next to each other are read faster, and may be alike."""
_BLOCKS_IN_GROUP = 256
"""Blocks are summed in groups, and groups are summed: fewer additions in a chain, less rounding."""
TREE_ADDITIONS = 32
"""Room for adding up the totals of partitions in a tree, each of which sums its own rows in blocks and groups."""


def rows_in_block(n_features: int) -> int:
    """Number of rows of one block: a function of the number of features alone."""
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _BLOCK_BYTES // (8 * max(1, n_features))))


def rows_in_sparse_block(n_features: int) -> int:
    """The same for sparse rows, at least half as many as features: each block costs a dense vector of sums."""
    return max(rows_in_block(n_features), min(_MOST_ROWS, n_features // 2))


def summation_depth(n_rows: int, n_features: int) -> int:
    """The longest chain of additions behind one entry of a total: in a block, in a group, over groups, over partitions.

    It does not fall with the rows, so it holds for the rows of any partition, however they are shared out. For dense and
    sparse rows alike, so that a plan need not know which will come. It costs little: the rounding bound has the number of
    features beside it.
    """
    return _depth(n_rows, rows_in_sparse_block(n_features)) + TREE_ADDITIONS


def _depth(n_rows: int, block: int) -> int:
    blocks = -(-n_rows // block)
    return min(block, n_rows) + min(blocks, _BLOCKS_IN_GROUP) + -(-blocks // _BLOCKS_IN_GROUP)


CountedBlock: TypeAlias = tuple[Rows, Targets, Array | None]
"""Rows of one block, their labels, and how much each counts."""


def sum_over_blocks(row_sum: SumOverRows, blocks: Iterable[CountedBlock], n_features: int, weights: Weights) -> Totals:
    """Totals over blocks, added in groups, not yet `completed`: wherever the same blocks come from, the same to the bit."""
    totals = row_sum.start(weights.shape[0], n_features)
    group, size = row_sum.start(weights.shape[0], n_features), 0
    for rows, labels, counts in blocks:
        row_sum.add_block(group, rows, labels, weights, counts)
        size += 1
        if size == _BLOCKS_IN_GROUP:
            totals.add(group)
            group, size = row_sum.start(weights.shape[0], n_features), 0
    if size:
        totals.add(group)
    return totals


class Blocks(Protocol):
    """Rows that can be had a block at a time."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""

    @property
    def rows_in_block(self) -> int:
        """How many rows to take at a time: a function of `n_features` alone, at most `rows_in_sparse_block` of it."""

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

    @property
    def rows_in_block(self) -> int:
        return rows_in_block(self.n_features)

    def block(self, start: int, stop: int) -> Rows:
        return self.rows[start:stop]


@dataclass(frozen=True, slots=True)
class _Copied:
    """Blocks of rows of any kind that were copied out of others."""

    rows: Rows
    rows_in_block: int

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
    """A `RowSource` over blocks in memory, their labels and their weights.

    Parameters
    ----------
    blocks : the rows
    labels : (n,) int8, -1 or +1; of several classes their positions; for regression the targets, float64
    row_weights : (n,) how much each row counts, or None
    n_threads : threads that share the blocks; the BLAS had better have one for each of them
    """

    blocks: Blocks
    labels: Targets
    row_weights: Array | None = None
    n_threads: int = 1

    @property
    def n_features(self) -> int:
        return self.blocks.n_features

    @property
    def n_rows(self) -> int:
        return self.blocks.n_rows

    def counted_blocks(self) -> Iterator[CountedBlock]:
        """All rows in order, a block at a time."""
        step = self.blocks.rows_in_block
        for start in range(0, self.n_rows, step):
            stop = min(start + step, self.n_rows)
            counts = None if self.row_weights is None else self.row_weights[start:stop]
            yield self.blocks.block(start, stop), self.labels[start:stop], counts

    def sample(self, n_rows: int) -> MemorySource:
        """About so many of the rows, copied, in short runs spread evenly over all. For solvers, which are not trusted."""
        runs = max(1, min(n_rows, self.n_rows) // _ROWS_IN_RUN)
        starts = np.clip((np.arange(runs) + 0.5) * (self.n_rows / runs) - 0.5 * _ROWS_IN_RUN, 0, self.n_rows - 1).astype(
            np.intp
        )
        picked = np.minimum(starts[:, None] + np.arange(_ROWS_IN_RUN), self.n_rows - 1).ravel()
        if self.n_rows < runs * _ROWS_IN_RUN or starts[-1] + _ROWS_IN_RUN > self.n_rows:
            picked = np.unique(picked)
        rows = getattr(self.blocks, "rows", None)
        if rows is not None:
            rows = rows[picked]
        else:
            cuts = np.flatnonzero(np.diff(picked) > 1) + 1
            pieces = [self.blocks.block(int(run[0]), int(run[-1]) + 1) for run in np.split(picked, cuts)]
            rows = vstack(pieces, format="csr") if issparse(pieces[0]) else np.vstack(pieces)
        row_weights = None if self.row_weights is None else self.row_weights[picked]
        return MemorySource(_Copied(rows, self.blocks.rows_in_block), self.labels[picked], row_weights, self.n_threads)

    def _rows_at_once(self, n_problems: int) -> int:
        """Fewer rows than a block's where many problems make its scores large, if no chain of additions becomes longer."""
        block = self.blocks.rows_in_block
        fewer = max(_FEWEST_ROWS, _SCORE_BYTES // (8 * max(1, n_problems)))
        return fewer if fewer < block and _depth(self.n_rows, fewer) <= _depth(self.n_rows, block) else block

    def sum_over_rows(self, row_sum: SumOverRows, weights: Weights) -> Totals:
        step = self._rows_at_once(weights.shape[0])

        def group_from(first: int) -> Totals:
            group = row_sum.start(weights.shape[0], self.n_features)
            end = min(first + step * _BLOCKS_IN_GROUP, self.n_rows)
            for start in range(first, end, step):
                stop = min(start + step, end)
                counts = None if self.row_weights is None else self.row_weights[start:stop]
                row_sum.add_block(group, self.blocks.block(start, stop), self.labels[start:stop], weights, counts)
            return group

        totals = row_sum.start(weights.shape[0], self.n_features)
        groups = range(0, self.n_rows, step * _BLOCKS_IN_GROUP)
        if self.n_threads == 1 or len(groups) == 1:
            for first in groups:
                totals.add(group_from(first))
        else:
            # Groups are added in their order, whoever made them: so the sum does not depend on the number of threads.
            with ThreadPoolExecutor(self.n_threads) as pool:
                made = [pool.submit(copy_context().run, group_from, first) for first in groups]
                for group in made:
                    totals.add(group.result())
        return row_sum.completed(totals)
