"""Rows in memory, read block by block so that a block stays in the cache while it is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import ClassVar, Protocol, TypeAlias

import numpy as np

from confide.data.lent import unwritable
from confide.data.source import BlockwiseSum, SummableRows
from confide.data.speed import Pass
from confide.data.threads import made_in_order
from confide.erm.row_sums import Totals
from confide.types import Array, Indices, Rows, Targets, Weights

_BLOCK_BYTES = 2**20
"""A block stays in the second- or third-level cache while it is used. Smaller ones cost more in calls than they save."""
_SCORE_BYTES = 2**19
"""So large are the scores of a block, or of a part of it. Smaller parts cost more in calls than they save."""
_FEWEST_ROWS, _MOST_ROWS, _MOST_SPARSE_ROWS = 64, 4096, 8192
"""The more rows, the longer the chains of additions that a plan has to allow for."""
ROWS_IN_RUN = 8
"""Rows next to each other are read faster, and may be alike."""
_SAMPLE_BYTES = 2**27
"""A sample of the rows as doubles may take so much, or what its fewest rows a column need."""
_ROWS_A_COLUMN, _SMALL_SAMPLE = 16, 4000
_BLOCKS_IN_GROUP = 32
"""Blocks are summed in groups: what a thread takes at a time, at least half as many blocks as a part of one has rows."""
_GROUPS_IN_BUNDLE = 8
"""Groups are summed in bundles, and those are summed: fewer additions in a chain, less rounding."""
TREE_ADDITIONS = 32
"""Room for adding up the totals of partitions in a tree, each of which sums its own rows in blocks and groups."""


def rows_in_block(n_features: int) -> int:
    """Number of rows of one block: a function of the number of features alone."""
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _BLOCK_BYTES // (8 * max(1, n_features))))


def rows_in_group(n_features: int) -> int:
    """The same of a group of blocks."""
    return rows_in_block(n_features) * _BLOCKS_IN_GROUP


def rows_in_sparse_block(n_features: int) -> int:
    """The same for sparse rows, at least half as many as features: each block costs a dense vector of sums."""
    return max(rows_in_block(n_features), min(_MOST_SPARSE_ROWS, n_features // 2))


def most_in_sample(n_features: int) -> int:
    """How many rows a sample may have, about: a function of the number of features alone."""
    return max(_SAMPLE_BYTES // (8 * max(1, n_features)), _ROWS_A_COLUMN * n_features, _SMALL_SAMPLE)


def sample_stride(n_rows: int, wanted: int) -> int:
    """The power of two for which every so many-th run of rows makes about `wanted` of `n_rows`: within a root of two.

    A power of two, so that a sample can be thinned to that of more rows, and rows that pass by once give the same one as
    rows in memory.
    """
    return int(2 ** max(0, round(math.log2(max(1, n_rows) / max(1, wanted)))))


def sampled_positions(start: int, stop: int, stride: int) -> Indices:
    """Which of the rows start to stop are in the sample: every `stride`-th run of a few."""
    first = start // (ROWS_IN_RUN * stride) * ROWS_IN_RUN * stride
    runs = np.arange(first, stop, ROWS_IN_RUN * stride)
    positions = (runs[:, None] + np.arange(ROWS_IN_RUN)).ravel()
    return positions[(start <= positions) & (positions < stop)]


def summation_depth(n_rows: int, n_features: int) -> int:
    """The longest chain of additions behind one entry of a total: in a block, group and bundle, over bundles and partitions.

    It does not fall with the rows, so it holds for the rows of any partition, however they are shared out. For dense and
    sparse rows alike, so that a plan need not know which will come: of few wide rows a sparse block has the longer chain, of
    very many the dense ones, which are shorter and so more. It costs little: the rounding bound has the number of features
    beside it.
    """
    blocks = rows_in_block(n_features), rows_in_sparse_block(n_features)
    return max(_depth(n_rows, block) for block in blocks) + TREE_ADDITIONS


def _depth(n_rows: int, block: int) -> int:
    blocks = -(-n_rows // block)
    groups = -(-blocks // _BLOCKS_IN_GROUP)
    bundles = -(-groups // _GROUPS_IN_BUNDLE)
    return min(block, n_rows) + min(blocks, _BLOCKS_IN_GROUP) + min(groups, _GROUPS_IN_BUNDLE) + bundles


CountedBlock: TypeAlias = tuple[Rows, Targets, Array | None]
"""Rows of one block, their labels, and how much each counts."""


def sum_over_groups(
    row_sum: BlockwiseSum,
    groups: Iterable[Iterable[CountedBlock]],
    n_features: int,
    weights: Weights,
    n_threads: int = 1,
    passing: Pass | None = None,
) -> Totals:
    """Totals over groups of blocks, not yet `completed`: wherever the same blocks come from, the same to the bit.

    Groups are added in their order, whoever made them, so the sum does not depend on the number of threads. Of a pass over
    all rows, `passing` is told of each group when it is summed.
    """
    n_problems = weights.shape[0]

    def total_of(group: Iterable[CountedBlock]) -> tuple[Totals, int]:
        total, n_rows = row_sum.start(n_problems, n_features), 0
        for block in group:
            for rows, labels, counts in _parts(block, n_problems):
                row_sum.add_block(total, rows, labels, weights, counts)
            n_rows += block[0].shape[0]
        return total, n_rows

    def told(made: Iterable[tuple[Totals, int]]) -> Iterator[Totals]:
        for total, n_rows in made:
            if passing is not None:
                passing.used(n_rows)
            yield total

    totals = row_sum.start(n_problems, n_features)
    with closing(made_in_order(total_of, groups, n_threads)) as made:
        in_order = told(made)
        for first in in_order:
            for other in islice(in_order, _GROUPS_IN_BUNDLE - 1):
                first.add(other)
            totals.add(first)
    return totals


def _parts(block: CountedBlock, n_problems: int) -> Iterator[CountedBlock]:
    """The block, or equal parts of it where many problems would make its scores large.

    No chain of additions becomes longer: a part has at least twice as many rows as a group has blocks.
    """
    rows, labels, counts = block
    size = rows.shape[0]
    n_parts = size // max(_FEWEST_ROWS, _SCORE_BYTES // (8 * max(1, n_problems)))
    if n_parts < 2:
        yield block
        return
    step = -(-size // n_parts)
    for start in range(0, size, step):
        part = slice(start, start + step)
        yield rows[part], labels[part], None if counts is None else counts[part]


class Blocks(Protocol):
    """Rows that can be had a block at a time.

    Classes name this protocol as their base and inherit the bodies of what they do not do otherwise.
    """

    __slots__ = ()

    made_anew: ClassVar[bool] = False
    """Whether each call of `block` makes an array that nobody else keeps. A solver may then write to it."""

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

    def copied(self, positions: Indices) -> Rows:
        """A copy of the rows at the positions, which rise."""

    def taken(self, positions: Indices) -> Blocks:
        """The rows at the positions, in their order, as blocks of their own."""

    def in_single_precision(self) -> Blocks | None:
        """The same rows in single precision, if blocks are made in each pass and can be made so; else None."""
        return None

    def lent(self) -> Blocks:
        """The same rows for a solver, which cannot write to them."""
        block = self.block

        def taken(positions: Indices) -> Blocks:
            return self.taken(positions).lent()

        def in_single_precision() -> Blocks | None:
            made = self.in_single_precision()
            return None if made is None else made.lent()

        return _LentBlocks(
            self.n_rows,
            self.n_features,
            self.rows_in_block,
            (lambda *rows: block(*rows)) if self.made_anew else lambda *rows: unwritable(block(*rows)),
            lambda positions: self.copied(positions),
            taken,
            in_single_precision,
        )


@dataclass(frozen=True, slots=True)
class ArrayBlocks(Blocks):
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

    def copied(self, positions: Indices) -> Rows:
        return self.rows[positions]

    def taken(self, positions: Indices) -> ArrayBlocks:
        return ArrayBlocks(self.rows[positions])

    def lent(self) -> ArrayBlocks:
        return ArrayBlocks(unwritable(self.rows))


@dataclass(frozen=True, slots=True)
class _LentBlocks:
    """Blocks for a solver: the methods of the blocks behind them, and none of their attributes. See `Blocks`."""

    n_rows: int
    n_features: int
    rows_in_block: int
    block: Callable[[int, int], Rows]
    copied: Callable[[Indices], Rows]
    taken: Callable[[Indices], Blocks]
    in_single_precision: Callable[[], Blocks | None]

    made_anew: ClassVar[bool] = False

    def lent(self) -> Blocks:
        """These blocks, which are lent already."""
        return self


@dataclass(frozen=True, slots=True)
class CopiedBlocks(Blocks):
    """Blocks of rows of any kind that were copied out of others. `progress` does not report passes over these copies."""

    rows: Rows
    rows_in_block: int = field()  # without `field` the property of the protocol would be taken as its default

    @property
    def n_rows(self) -> int:
        return int(self.rows.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.rows.shape[1])

    def block(self, start: int, stop: int) -> Rows:
        return self.rows[start:stop]

    def copied(self, positions: Indices) -> Rows:
        return self.rows[positions]

    def taken(self, positions: Indices) -> CopiedBlocks:
        return CopiedBlocks(self.rows[positions], self.rows_in_block)


@dataclass(frozen=True, slots=True)
class MemorySource(SummableRows):
    """A `RowSource` over blocks in memory, their labels and their weights.

    Parameters
    ----------
    blocks : the rows
    labels : (n,) int8, -1 or +1; of several classes their positions; for regression the targets, float64
    row_weights : (n,) how much each row counts, or None
    n_threads : threads that share the groups of blocks
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

    def counted_blocks(self, first: int = 0, end: int | None = None) -> Iterator[CountedBlock]:
        """All rows in order, a block at a time; or those from `first`, where a block begins, up to `end`."""
        step, end = self.blocks.rows_in_block, self.n_rows if end is None else min(end, self.n_rows)
        for start in range(first, end, step):
            stop = min(start + step, end)
            counts = None if self.row_weights is None else self.row_weights[start:stop]
            yield self.blocks.block(start, stop), self.labels[start:stop], counts

    def groups(self) -> Iterator[Iterator[CountedBlock]]:
        """All rows in the groups of blocks in which they are summed. A block is made when it is asked for."""
        step = self.blocks.rows_in_block * _BLOCKS_IN_GROUP
        return (self.counted_blocks(first, first + step) for first in range(0, self.n_rows, step))

    def lent(self) -> MemorySource:
        labels, row_weights = unwritable(self.labels), unwritable(self.row_weights)
        return MemorySource(self.blocks.lent(), labels, row_weights, self.n_threads)

    def sample(self, n_rows: int) -> MemorySource:
        """About so many of the rows, copied, in short runs spread evenly over all. For solvers, which are not trusted."""
        stride = sample_stride(self.n_rows, min(n_rows, most_in_sample(self.n_features)))
        return self.copied(sampled_positions(0, self.n_rows, stride))

    def copied(self, positions: Indices) -> MemorySource:
        """The rows at the positions, which rise, copied."""
        rows = CopiedBlocks(self.blocks.copied(positions), self.blocks.rows_in_block)
        row_weights = None if self.row_weights is None else self.row_weights[positions]
        return MemorySource(rows, self.labels[positions], row_weights, self.n_threads)

    def taken(self, positions: Indices) -> MemorySource:
        """The rows at the positions, in their order, copied in the form in which they are held."""
        row_weights = None if self.row_weights is None else self.row_weights[positions]
        return MemorySource(self.blocks.taken(positions), self.labels[positions], row_weights, self.n_threads)

    def in_single_precision(self) -> MemorySource | None:
        """The same rows, made in single precision; None where they are not made but stored."""
        made = self.blocks.in_single_precision()
        return None if made is None else replace(self, blocks=made)

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        passing = None if isinstance(self.blocks, CopiedBlocks) else Pass("training")
        groups, n_features = self.groups(), self.n_features
        return row_sum.completed(sum_over_groups(row_sum, groups, n_features, weights, self.n_threads, passing))
