"""Rows in memory, read block by block so that a block stays in the cache while it is used."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from confide.array_types import Array, Indices, Rows, SparseRows, Targets, Weights
from confide.compiled.loading import kernel
from confide.compiled.stored_rows import CertifiedCodes, StoredArray, StoredRows
from confide.compiled.sums import ClippedSum, by_kernel, kernel_of, with_kernel
from confide.data.checked_source import RowsWithDefaults
from confide.erm.clipped_rows import ClippedRows, clipped_once, joined, scaled_once
from confide.erm.coded_rows import BLOCKS_IN_JOINED, dense
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum, Totals
from confide.erm.source import BlockwiseSum, SummableRows, made_for_a_solver, unwritable
from confide.errors import InputError
from confide.features.codes import Codes
from confide.features.encoder import Encoder
from confide.features.forms import RowMap
from confide.threads import Pass, made_in_order

_BLOCK_BYTES = 2**20
"""A block of this size stays in the second- or third-level cache while it is used.

Smaller blocks lose more time to calls than they save.
"""
_SCORE_BYTES = 2**19
"""A block with larger scores is cut into parts. Smaller parts lose more time to calls than they save."""
_FEWEST_ROWS, _MOST_ROWS, _MOST_SPARSE_ROWS = 64, 4096, 8192
"""Limits of the rows of a block. More rows mean longer chains of additions, whose rounding a plan has to allow for."""
ROWS_IN_RUN = 8
"""Rows of a sample that are next to each other. Longer runs are read faster, but neighbouring rows may be alike."""
_SAMPLE_BYTES = 2**27
"""Most bytes of a sample, as doubles, unless the rows that a sample may always have need more."""
_SAMPLE_ROWS_PER_COLUMN, _FEWEST_SAMPLE_ROWS = 16, 4000
"""A sample may always have this many rows for each column, and this many rows in all."""
_KEPT_BYTES = 2**28
"""Blocks are kept for many passes if all of them need no more memory than this."""
_BLOCKS_IN_GROUP = 32
"""Blocks are summed in groups, and a thread takes one group at a time.

A group has at most half as many blocks as a part of a block has rows (`_FEWEST_ROWS`), as `_parts` relies on.
"""
_NUMBERS_OF_A_SLOPE, _MANY_NUMBERS = 8, 2**22
"""Beside its numbers, each row takes the kernel as long as 8 numbers would. It reads 2^22 numbers in a few milliseconds."""
_MANY_JOINED_ROWS = 2**18
"""NumPy sums up so many joined rows in a few milliseconds."""
_GROUPS_IN_BUNDLE = 8
"""Groups are summed in bundles, and bundles are added up: chains of additions are shorter, so there is less rounding."""
TREE_ADDITIONS = 32
"""Additions that a plan allows for when the totals of partitions are added in a tree, after blocks, groups and bundles."""


def rows_in_block(n_features: int) -> int:
    """Number of rows of one block: a function of the number of features alone."""
    return max(_FEWEST_ROWS, min(_MOST_ROWS, _BLOCK_BYTES // (8 * max(1, n_features))))


def rows_in_group(n_features: int, *, sparse: bool = False) -> int:
    """Number of rows of one group of blocks: of dense rows, or of sparse and coded ones."""
    return (rows_in_sparse_block if sparse else rows_in_block)(n_features) * _BLOCKS_IN_GROUP


def rows_in_sparse_block(n_features: int) -> int:
    """Number of rows of one block of sparse or coded rows: a function of the number of features alone.

    Each block costs a dense vector of sums, so it has at least half as many rows as there are features, up to the largest
    block.
    """
    return max(rows_in_block(n_features), min(_MOST_SPARSE_ROWS, n_features // 2))


def most_in_sample(n_features: int) -> int:
    """About how many rows a sample may have: a function of the number of features alone."""
    return max(_SAMPLE_BYTES // (8 * max(1, n_features)), _SAMPLE_ROWS_PER_COLUMN * n_features, _FEWEST_SAMPLE_ROWS)


def sample_stride(n_rows: int, wanted: int) -> int:
    """The step s for which every s-th run of rows gives about `wanted` of `n_rows` rows, within a factor of the root of 2.

    It is a power of two, so a sample with a smaller step can be thinned to one with a larger step. Therefore rows that are
    read once, in pieces, give the same sample as rows in memory.
    """
    return int(2 ** max(0, round(math.log2(max(1, n_rows) / max(1, wanted)))))


def sampled_positions(start: int, stop: int, stride: int) -> Indices:
    """Which of the rows start to stop are in the sample: every `stride`-th run of `ROWS_IN_RUN` rows."""
    first = start // (ROWS_IN_RUN * stride) * ROWS_IN_RUN * stride
    runs = np.arange(first, stop, ROWS_IN_RUN * stride)
    positions = (runs[:, None] + np.arange(ROWS_IN_RUN)).ravel()
    return positions[(start <= positions) & (positions < stop)]


def summation_depth(n_rows: int, n_features: int) -> int:
    """The longest chain of additions behind one entry of a total: in a block, group and bundle, over bundles and partitions.

    It never decreases as the number of rows grows, so it also holds for the rows of each partition, however rows are
    divided. It holds for dense, sparse and coded rows, so a plan need not know which will come. With few wide rows, sparse
    blocks have the longer chain; with very many rows, dense blocks have it, because they are smaller and there are more of
    them. Taking the larger of the two costs little, because the rounding bound also grows with the number of features.
    """
    blocks = rows_in_block(n_features), rows_in_sparse_block(n_features)
    return max(_depth(n_rows, block) for block in blocks) + TREE_ADDITIONS


def _depth(n_rows: int, block: int) -> int:
    blocks = -(-n_rows // block)
    groups = -(-blocks // _BLOCKS_IN_GROUP)
    bundles = -(-groups // _GROUPS_IN_BUNDLE)
    return min(block, n_rows) + min(blocks, _BLOCKS_IN_GROUP) + min(groups, _GROUPS_IN_BUNDLE) + bundles


CountedBlock: TypeAlias = tuple[Rows, Targets, Array | None]
"""The rows of one block, their labels, and how much each row counts (None if each counts 1)."""


def sum_over_groups(
    row_sum: BlockwiseSum,
    groups: Iterable[Iterable[CountedBlock]],
    n_features: int,
    weights: Weights,
    n_threads: int = 1,
    passing: Pass | None = None,
) -> Totals:
    """Totals over groups of blocks, not yet `completed`. The same blocks give the same totals to the bit.

    Groups are added in their order, whichever thread summed them, so the totals do not depend on the number of threads. In a
    pass over all rows, `passing` is told of each group when it has been summed.
    """
    n_problems = weights.shape[0]

    def total_of(group: Iterable[CountedBlock]) -> tuple[Totals, int]:
        total, n_rows = row_sum.start(n_problems, n_features), 0
        for block in group:
            for rows, labels, counts, some, some_weights in _parts(block, total, weights):
                row_sum.add_block(some, rows, labels, some_weights, counts)
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


def _parts(block: CountedBlock, total: Totals, weights: Weights) -> Iterator[tuple[Any, ...]]:
    """The block, or equal parts of it if its scores for many problems would be large; with totals and weights.

    No chain of additions becomes longer, because a part has at least twice as many rows as a group has blocks. A block that
    was clipped once may be several joined ones, and is never cut: it is summed for some of the problems at a time.
    """
    rows, labels, counts = block
    size, n_problems = rows.shape[0], weights.shape[0]
    n_parts = size // max(_FEWEST_ROWS, _SCORE_BYTES // (8 * max(1, n_problems)))
    if n_parts < 2:
        yield rows, labels, counts, total, weights
        return
    if type(rows) is ClippedRows:
        at_once = max(1, _SCORE_BYTES // (8 * size))
        for problem in range(0, n_problems, at_once):
            some = slice(problem, problem + at_once)
            in_place = Totals(total.value[some], total.gradient[some], total.hessian[some])
            yield rows, labels, counts, in_place, weights[some]
        return
    step = -(-size // n_parts)
    for start in range(0, size, step):
        part = slice(start, start + step)
        yield rows[part], labels[part], None if counts is None else counts[part], total, weights


class Blocks(Protocol):
    """Rows that are given one block at a time.

    Classes name this protocol as their base and inherit the bodies of what they do not do otherwise.
    """

    __slots__ = ()

    made_anew: ClassVar[bool] = False
    """Whether each call of `block` makes an array that nobody else keeps. A solver may then write to it."""

    @property
    def blocks_in_group(self) -> int:
        """How many blocks are summed in one group; 1 where each block is as long as a group of others."""
        return _BLOCKS_IN_GROUP

    @property
    def are_copies(self) -> bool:
        """Whether these are copies of some rows. `confide.progress` does not report passes over them."""
        return False

    def gains_by_threads(self, order: int) -> bool:
        """Whether a pass over all rows is faster with several threads; it makes Hessians if the order is 2.

        A short pass is not. Nor is one that holds Python's lock for most of the time, because the threads wait for the lock.
        """
        return True

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""

    @property
    def rows_in_block(self) -> int:
        """How many rows to take at a time: a function of `n_features` alone, at most `rows_in_sparse_block(n_features)`."""

    def block(self, start: int, stop: int) -> Rows:
        """Rows start to stop: (stop - start, n_features), finite."""

    def copied(self, positions: Indices) -> Rows:
        """A copy of the rows at the positions, which are in rising order."""

    def as_copies(self, positions: Indices) -> Blocks:
        """Blocks of such a copy, for a solver."""
        return CopiedBlocks(self.copied(positions), self.rows_in_block)

    def taken(self, positions: Indices) -> Blocks:
        """The rows at the positions, in the order of the positions, as blocks of their own."""

    def in_single_precision(self) -> Blocks | None:
        """The same rows in single precision, if blocks are made in each pass and can be made so; else None."""
        return None

    def as_stored(self, shortened: bool) -> StoredBlocks | None:
        """The same rows for the compiled kernel, `shortened` to a ball by it if need be; None where it cannot do so."""
        return None

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        """The same rows for gradients on which certificates rest, by the compiled kernel; None where NumPy makes these.

        It depends on public facts alone: the bound, the kind of rows, and the schema.
        """
        return None

    def lent(self) -> Blocks:
        """The same rows for a solver, which cannot write to them."""
        block = self.block

        def taken(positions: Indices) -> Blocks:
            return self.taken(positions).lent()

        def in_single_precision() -> Blocks | None:
            made = self.in_single_precision()
            return None if made is None else made.lent()

        def as_stored(shortened: bool) -> StoredBlocks | None:
            made = self.as_stored(shortened)
            return None if made is None else made.lent()

        return _LentBlocks(
            self.n_rows,
            self.n_features,
            self.rows_in_block,
            (lambda *rows: made_for_a_solver(block(*rows))) if self.made_anew else lambda *rows: unwritable(block(*rows)),
            lambda positions: self.copied(positions),
            taken,
            in_single_precision,
            as_stored,
            lambda positions: self.as_copies(positions),
            self.are_copies,
            lambda order: self.gains_by_threads(order),
        )


class BlocksOfRows(Blocks):
    """Blocks of rows that are held in one object, of which a part is taken by its positions."""

    __slots__ = ()

    rows: Rows

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


@dataclass(frozen=True, slots=True)
class ArrayBlocks(BlocksOfRows):
    """Blocks of a two-dimensional array. They are views of the array, never copies."""

    rows: Rows

    @property
    def rows_in_block(self) -> int:
        return rows_in_block(self.n_features)

    def taken(self, positions: Indices) -> ArrayBlocks:
        return ArrayBlocks(self.rows[positions])

    def as_stored(self, shortened: bool) -> StoredBlocks | None:
        rows: Any = self.rows
        # By their letters: on some machines another type, long doubles, is equal to doubles and has another name in C.
        known = isinstance(rows, np.ndarray) and rows.dtype.char in "df" and rows.dtype.isnative
        # Numbers that begin between two addresses of their kind, as in a field of a record, are none to the kernel.
        known = known and rows.flags.aligned
        return StoredBlocks(StoredArray(rows), rows_in_group(self.n_features)) if known else None

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        # A subclass may make rows of its own from what is stored.
        return self.as_stored(shortened=True) if type(self) is ArrayBlocks and type(row_bound) is BallBound else None

    def lent(self) -> ArrayBlocks:
        return ArrayBlocks(unwritable(self.rows))


@dataclass(frozen=True, slots=True)
class StoredBlocks(BlocksOfRows):
    """Rows as they are stored, for the compiled kernel. A block is as long as a group of other blocks.

    The kernel is called once for each block, and leaves Python's lock free, so several threads work at the same time.
    """

    rows: StoredRows
    rows_in_block: int = field()  # without `field` the property of the protocol would be taken as its default
    are_copies: bool = field(default=False)

    @property
    def blocks_in_group(self) -> int:
        return 1

    def gains_by_threads(self, order: int) -> bool:
        products = self.rows.n_numbers**2 if order >= 2 else 0
        return self.n_rows * (self.rows.n_numbers + products + _NUMBERS_OF_A_SLOPE) >= _MANY_NUMBERS

    def block(self, start: int, stop: int) -> Any:
        return self.rows[start:stop]

    def copied(self, positions: Indices) -> Rows:
        raise NotImplementedError("rows as they are stored are summed up, and no more.")

    def taken(self, positions: Indices) -> Blocks:
        raise NotImplementedError("rows as they are stored are summed up, and no more.")

    def lent(self) -> StoredBlocks:
        return replace(self, rows=self.rows.lent(unwritable))


@dataclass(frozen=True, slots=True)
class _LentBlocks:
    """Blocks for a solver, made when the solver asks for them.

    It has the methods of the blocks behind it. They are held as functions, so no attribute leads to those blocks.
    """

    n_rows: int
    n_features: int
    rows_in_block: int
    block: Callable[[int, int], Rows]
    copied: Callable[[Indices], Rows]
    taken: Callable[[Indices], Blocks]
    in_single_precision: Callable[[], Blocks | None]
    as_stored: Callable[[bool], StoredBlocks | None]
    as_copies: Callable[[Indices], Blocks]
    are_copies: bool
    gains_by_threads: Callable[[int], bool]

    made_anew: ClassVar[bool] = False

    @property
    def blocks_in_group(self) -> int:
        return _BLOCKS_IN_GROUP

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        """None: a certificate looks at no rows that were lent."""
        return None

    def lent(self) -> Blocks:
        """These blocks, which are lent already."""
        return self


@dataclass(frozen=True, slots=True)
class CopiedBlocks(BlocksOfRows):
    """Blocks of copied rows of any kind."""

    rows: Rows
    rows_in_block: int = field()  # without `field` the property of the protocol would be taken as its default
    are_copies: bool = field(default=True)

    def as_stored(self, shortened: bool) -> StoredBlocks | None:
        stored = ArrayBlocks(self.rows).as_stored(shortened)
        return None if stored is None else replace(stored, are_copies=True)

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        return self.as_stored(shortened=True) if type(self) is CopiedBlocks and type(row_bound) is BallBound else None

    def taken(self, positions: Indices) -> CopiedBlocks:
        return CopiedBlocks(self.rows[positions], self.rows_in_block)


@dataclass(frozen=True, slots=True)
class KeptBlocks(Blocks):
    """Blocks that are clipped once and summed over in many passes.

    Parameters
    ----------
    blocks : the rows as they are
    made : all blocks in order, as a sum clipped them, or as they are
    rows_in_block : as `blocks` have it, computed once for many passes
    """

    blocks: Blocks
    made: tuple[ClippedRows | Rows, ...]
    rows_in_block: int = field()  # without `field` the property of the protocol would be taken as its default

    @property
    def n_rows(self) -> int:
        return self.blocks.n_rows

    @property
    def n_features(self) -> int:
        return self.blocks.n_features

    def block(self, start: int, stop: int) -> Any:
        number, offset = divmod(start, self.rows_in_block)
        if offset == 0 and stop == min(start + self.rows_in_block, self.n_rows):
            return self.made[number]
        return self.blocks.block(start, stop)

    def copied(self, positions: Indices) -> Rows:
        return self.blocks.copied(positions)

    def taken(self, positions: Indices) -> Blocks:
        return self.blocks.taken(positions)


@dataclass(frozen=True, slots=True)
class JoinedBlocks(KeptBlocks):
    """The same, of coded rows: several blocks are joined to one, and a group has so many rows as before."""

    @property
    def blocks_in_group(self) -> int:
        return _BLOCKS_IN_GROUP // BLOCKS_IN_JOINED

    def gains_by_threads(self, order: int) -> bool:
        return self.n_rows >= _MANY_JOINED_ROWS

    @classmethod
    def of(cls, kept: KeptBlocks) -> KeptBlocks:
        """The kept blocks, joined if all of them can be."""
        made: list[ClippedRows | Rows] = []
        for first in range(0, len(kept.made), BLOCKS_IN_JOINED):
            clipped = [block for block in kept.made[first : first + BLOCKS_IN_JOINED] if type(block) is ClippedRows]
            together = joined(clipped) if clipped else None
            if together is None:
                return kept
            made.append(together)
        return cls(kept.blocks, tuple(made), kept.rows_in_block * BLOCKS_IN_JOINED)


@dataclass(frozen=True, slots=True)
class MemorySource(RowsWithDefaults, SummableRows):
    """A `RowSource` over blocks in memory, with their labels and weights.

    Parameters
    ----------
    blocks : the rows
    labels : (n,) int8, -1 or +1; the positions of three classes or more; or the targets of a regression, float64
    row_weights : (n,) how much each row counts, or None if each counts 1
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
        """Rows `first` (where a block begins) to `end`, by default all, one block at a time."""
        step, end = self.blocks.rows_in_block, self.n_rows if end is None else min(end, self.n_rows)
        for start in range(first, end, step):
            stop = min(start + step, end)
            counts = None if self.row_weights is None else self.row_weights[start:stop]
            yield self.blocks.block(start, stop), self.labels[start:stop], counts

    def groups(self) -> Iterator[Iterator[CountedBlock]]:
        """All rows, in the groups of blocks in which they are summed. A block is made when it is asked for."""
        step = self.blocks.rows_in_block * self.blocks.blocks_in_group
        return (self.counted_blocks(first, first + step) for first in range(0, self.n_rows, step))

    def lent(self) -> MemorySource:
        labels, row_weights = unwritable(self.labels), unwritable(self.row_weights)
        return MemorySource(self.blocks.lent(), labels, row_weights, self.n_threads)

    def for_many_passes(self, row_sum: RowSum) -> MemorySource:
        """The same rows; blocks are clipped and kept in memory if together they are small.

        Large arrays are not copied: of each row it is kept how it is clipped.
        """
        kernel_of(row_sum)  # tried now, if it was not yet, so that this depends on no row
        step = self.blocks.rows_in_block
        if self.n_rows == 0:
            return self
        first = self.blocks.block(0, min(step, self.n_rows))
        is_small = clipped_once(row_sum, first).n_bytes * -(-self.n_rows // step) <= _KEPT_BYTES
        if not is_small and (self.blocks.made_anew or scaled_once(row_sum, first) is None):
            return self

        def made(rows: Rows) -> ClippedRows | Rows:
            # A block with a huge row stays as it is, and is clipped in each pass: memory must not depend on what rows hold.
            if is_small:
                return clipped_once(row_sum, rows)
            scaled = scaled_once(row_sum, rows)
            return rows if scaled is None else with_kernel(scaled)

        blocks = KeptBlocks(self.blocks, tuple(made(rows) for rows, _, _ in self.counted_blocks()), step)
        return replace(self, blocks=JoinedBlocks.of(blocks) if is_small else blocks)

    def sample(self, n_rows: int) -> MemorySource:
        """About `n_rows` of the rows, copied, in short runs spread evenly over all rows. Only solvers use it."""
        stride = sample_stride(self.n_rows, min(n_rows, most_in_sample(self.n_features)))
        return self.copied(sampled_positions(0, self.n_rows, stride))

    def copied(self, positions: Indices) -> MemorySource:
        """A copy of the rows at the positions, which are in rising order."""
        row_weights = None if self.row_weights is None else self.row_weights[positions]
        return MemorySource(self.blocks.as_copies(positions), self.labels[positions], row_weights, self.n_threads)

    def taken(self, positions: Indices) -> MemorySource:
        """A copy of the rows at the positions, in the order of the positions and in the form in which rows are held."""
        row_weights = None if self.row_weights is None else self.row_weights[positions]
        return MemorySource(self.blocks.taken(positions), self.labels[positions], row_weights, self.n_threads)

    def in_memory(self, purpose: str = "") -> Iterator[MemorySource]:
        yield self

    def in_single_precision(self) -> MemorySource | None:
        """The same rows in single precision, if blocks are made for each call; None if they are stored."""
        made = self.blocks.in_single_precision()
        return None if made is None else replace(self, blocks=made)

    def as_stored(self, shortened: bool) -> MemorySource | None:
        made = self.blocks.as_stored(shortened)
        return None if made is None else replace(self, blocks=made)

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        passing = None if self.blocks.are_copies else Pass("training")
        compiled = by_kernel(row_sum, len(weights), self.blocks.rows_in_block)
        rows, n_features = self.rows_for(compiled), self.n_features
        n_threads = self.n_threads if rows.blocks.gains_by_threads(getattr(row_sum, "order", 1)) else 1
        totals = sum_over_groups(compiled or row_sum, rows.groups(), n_features, weights, n_threads, passing)
        return row_sum.completed(totals)

    def rows_for(self, compiled: ClippedSum | None) -> MemorySource:
        """The same rows in the form in which they are stored, if the kernel may make this sum."""
        stored = None if compiled is None else self.blocks.as_certified(compiled.row_sum.row_bound)
        return self if stored is None else replace(self, blocks=stored)


# Blocks of sparse rows in memory. They are never made dense.


@dataclass(frozen=True, slots=True)
class SparseBlocks(BlocksOfRows):
    """Blocks of a CSR matrix. They are views of its entries, with row pointers and column indices of their own.

    Parameters
    ----------
    rows : CSR matrix, float64 or float32, with column indices in range. A matrix in canonical form (`row_bounds.canonical`)
        saves work later
    """

    rows: SparseRows

    def gains_by_threads(self, order: int) -> bool:
        return False

    @property
    def rows_in_block(self) -> int:
        return rows_in_sparse_block(self.n_features)

    def block(self, start: int, stop: int) -> SparseRows:
        first, last = int(self.rows.indptr[start]), int(self.rows.indptr[stop])
        # The constructor would copy these views, because the arrays behind them are much larger.
        block = csr_array((stop - start, self.n_features), dtype=self.rows.dtype)
        block.data, block.indices = self.rows.data[first:last], inside(self.rows.indices[first:last], self.n_features)
        block.indptr = self.rows.indptr[start : stop + 1] - self.rows.indptr[start]
        return block

    def taken(self, positions: Indices) -> SparseBlocks:
        return SparseBlocks(self.rows[positions])  # it is in nobody else's hands, and its blocks are looked through

    def copied(self, positions: Indices) -> SparseRows:
        rows = self.rows[positions]
        rows.indices = inside(rows.indices, self.n_features)
        return rows

    def lent(self) -> SparseBlocks:
        return SparseBlocks(unwritable(self.rows))


def inside(indices: Indices, n_features: int) -> Indices:
    """A copy of column indices, in which nobody can write.

    Compiled code follows indices without a check, and another thread may write to those of X.

    Raises
    ------
    InputError
        If one is outside of the columns, so that X was changed since it was checked.
    """
    own = indices.copy()
    # A negative index is a large number without its sign.
    if own.size and own.view(f"u{own.itemsize}").max() >= n_features:
        raise InputError(
            "X was changed by another thread while it was read, so nothing is released; what was charged stays charged. Fit "
            "again while nobody writes to the rows."
        )
    return unwritable(own)  # type: ignore[no-any-return]


# Rows that a public map, such as random Fourier features, is applied to, block by block.


@dataclass(frozen=True, slots=True)
class MappedBlocks(Blocks):
    """Blocks of mapped rows, made when they are asked for. The whole mapped matrix never exists.

    Parameters
    ----------
    blocks : rows as the map takes them
    fourier_map : the map that is applied to each row
    """

    blocks: Blocks
    fourier_map: RowMap

    made_anew: ClassVar[bool] = True
    """Each block is made for one call and kept nowhere, so it may be written to."""

    @property
    def n_rows(self) -> int:
        return self.blocks.n_rows

    @property
    def n_features(self) -> int:
        return self.fourier_map.n_features

    def block(self, start: int, stop: int) -> Array:
        return self.fourier_map.transform(dense(self.blocks.block(start, stop)))

    def copied(self, positions: Indices) -> Array:
        return self.fourier_map.transform(self.blocks.copied(positions))

    def taken(self, positions: Indices) -> MappedBlocks:
        return MappedBlocks(self.blocks.taken(positions), self.fourier_map)

    @property
    def rows_in_block(self) -> int:
        return rows_in_block(self.n_features)


# Rows that are kept as codes of raw columns and encoded block by block, by public knowledge alone.

_WIDE = 1000
"""Copies of coded rows with more columns than this stay coded: they would take much memory, and few of their entries are
not 0."""
_LARGE_COPY = 2**26
"""So do copies of more bytes. A sample of 3,000,000 rows of Adult took 160 MB, and to use so much memory for the first time
takes longer than to encode the sample again (benchmarks/notes/what_does_the_kernel_gain.md)."""


@dataclass(frozen=True, slots=True)
class EncodedBlocks(Blocks):
    """Blocks of encoded rows, made when they are asked for. The whole encoded matrix never exists.

    Parameters
    ----------
    encoder, codes : both of the same schema
    single : whether blocks are in single precision; only solvers, which are not trusted, read such blocks
    are_copies : whether these are copies of some rows
    """

    encoder: Encoder
    codes: Codes
    single: bool = False
    are_copies: bool = field(default=False)  # without `field` the property of the protocol would be taken as its default

    made_anew: ClassVar[bool] = True
    """Each block is made for one call and kept nowhere, so it may be written to."""

    @property
    def n_rows(self) -> int:
        return self.codes.n_rows

    @property
    def n_features(self) -> int:
        return self.encoder.n_features

    def gains_by_threads(self, order: int) -> bool:
        # Coded rows are made and summed up by short calls of NumPy.
        return not self.encoder.codes_rows

    @property
    def rows_in_block(self) -> int:
        return (rows_in_sparse_block if self.encoder.codes_rows else rows_in_block)(self.n_features)

    def block(self, start: int, stop: int) -> Rows:
        return self.encoder.block(self.codes, start, stop, np.float32 if self.single else np.float64)

    def in_single_precision(self) -> EncodedBlocks | None:
        """The same rows in single precision; None if they are coded, which saves more time than single precision."""
        return None if self.encoder.codes_rows else replace(self, single=True)

    def as_stored(self, shortened: bool) -> StoredBlocks | None:
        rows = None if shortened else self.encoder.as_stored(self.codes)
        if rows is None:
            return None
        return StoredBlocks(rows, rows_in_group(self.n_features, sparse=self.encoder.codes_rows), self.are_copies)

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        codes = self.encoder.as_certified(self.codes, row_bound) if type(self) is EncodedBlocks and not self.single else None
        if codes is None:
            return None
        rows = CertifiedCodes(codes, self.block)
        return StoredBlocks(rows, rows_in_group(self.n_features, sparse=self.encoder.codes_rows), self.are_copies)

    def taken(self, positions: Indices) -> EncodedBlocks:
        return replace(self, codes=self.codes.taken(positions))

    def copied(self, positions: Indices) -> Array:
        if positions.size == self.n_rows:
            # Positions rise, so these are all rows, and their codes need no copy.
            return self.encoder.expand(self.codes, 0, self.n_rows)
        taken = self.codes.taken(positions)
        return self.encoder.expand(taken, 0, taken.n_rows)

    def as_copies(self, positions: Indices) -> Blocks:
        is_small = self.n_features <= _WIDE and 8 * self.n_features * positions.size <= _LARGE_COPY
        if not self.encoder.codes_rows or (is_small and not self._has_products()):
            return CopiedBlocks(self.copied(positions), self.rows_in_block)
        # The encoder stays out of a solver's reach, though the codes are copies.
        return replace(self.taken(positions), are_copies=True).lent()

    def _has_products(self) -> bool:
        """Whether the compiled kernel makes Hessians of the codes, in less time than it takes to expand them."""
        stored = None if kernel() is None else self.as_stored(shortened=False)
        return stored is not None and stored.rows.has_products
