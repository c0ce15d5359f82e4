"""Rows in memory, read block by block so that a block stays in the cache while it is used."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from confide.array_types import Array, Indices, Rows, Targets, Weights
from confide.compiled.loading import kernel
from confide.compiled.stored_rows import StoredArray, StoredRows
from confide.compiled.sums import ClippedSum, by_kernel, kernel_of, with_kernel
from confide.erm.clipped_rows import ClippedRows, clipped_once, joined, scaled_once
from confide.erm.coded_rows import BLOCKS_IN_JOINED, dense
from confide.erm.row_bounds import BallBound, before_moving
from confide.erm.row_sums import RowSum, Totals
from confide.erm.source import BlockwiseSum, SummableRows, made_for_a_solver, unwritable
from confide.errors import InputError, InputTypeError, wording
from confide.features.codes import Codes
from confide.features.encoder import Encoder
from confide.features.forms import RowMap
from confide.features.fourier import CurvesAndFeatures
from confide.threads import Pass, made_in_order, watched_pass

# Rows that passed the check, as a fit uses them.

_ROWS_NOT_READ_HERE = wording("rows not read here")

PLACES = {
    "here": "",
    "partitions": wording("rows in partitions"),
    "parties": "Every row lay at exactly one of the parties, and each party summed the same rows in every pass.",
}
"""What a guarantee assumes about each place where rows can lie; nothing where this process reads the rows itself."""


RowMapChange: TypeAlias = Callable[[Any], RowMap | None] | None


class CheckedSource(SummableRows, Protocol):
    """A source whose rows were checked before the budget is charged.

    Beside sums, a source may give rows at chosen positions and whole pieces of rows. A source that cannot do so refuses, and
    a source that cannot give the sums of a fit refuses them before anything is charged. The bodies here are those of most
    sources: every sum can be computed, nothing is assumed, and no rows are handed out.
    """

    __slots__ = ()

    place: ClassVar[str] = "here"
    """Where the rows lie: a name in `PLACES`."""

    def refuse_sums(self, row_sums: Callable[[], Sequence[RowSum]], *, with_moments: bool) -> None:
        """Refuse a fit that may ask for sums that this source cannot give. Called before anything is charged.

        Parameters
        ----------
        row_sums : gives all sums that a plan of this fit may ask for, at order 2
        with_moments : whether the fit also asks for the second moments from which intervals are computed

        Raises
        ------
        ParameterError, InputError
            If the source cannot give one of these sums.
        """
        return

    def taken(self, positions: Indices) -> CheckedSource:
        """A source of the rows at these positions."""
        raise InputTypeError(_ROWS_NOT_READ_HERE)

    def remapped(self, change: RowMapChange) -> CheckedSource:
        """The same rows by another map than their own: `change` makes it, or None for encoded rows, in blocks as long.

        Where there is no change at all, they are encoded rows in blocks of their own.
        """
        raise InputTypeError(_ROWS_NOT_READ_HERE)

    def with_atoms(self, atoms: tuple[tuple[float, ...], ...]) -> CheckedSource:
        """The same rows with the atoms that were found, for each column in which they were looked for."""
        raise InputTypeError(_ROWS_NOT_READ_HERE)

    def in_memory(self, purpose: str = "") -> Iterator[MemorySource]:
        """All rows, one piece after the other. A pass with a purpose is reported to whoever watches the progress."""
        raise InputTypeError(_ROWS_NOT_READ_HERE)

    def sum_of_pieces(self, of_piece: Callable[[MemorySource], NDArray[np.int64]], n_integers: int) -> NDArray[np.int64]:
        """The sum over all pieces of so many integers that are made of each, wherever it lies. One pass over the rows."""
        sums = np.zeros(n_integers, dtype=np.int64)
        for piece in self.in_memory("scoring"):
            sums += of_piece(piece)
        return sums


CheckedPass: TypeAlias = tuple[CheckedSource, int]
"""What a check gives: the rows that count, and how many were given before those beyond the cap of a person were dropped."""


# Blocks of rows in memory, and the order in which they are summed.

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
    positions = (np.arange(first, stop, ROWS_IN_RUN * stride)[:, None] + np.arange(ROWS_IN_RUN)).ravel()
    return positions[(start <= positions) & (positions < stop)]


def summation_depth(n_rows: int, n_features: int) -> int:
    """The longest chain of additions behind one entry of a total: in a block, group and bundle, over bundles and partitions.

    It never decreases as the number of rows grows, so it also holds for the rows of each partition, however rows are
    divided. It holds for dense, sparse and coded rows, so a plan need not know which will come. With few wide rows, sparse
    blocks have the longer chain; with very many rows, dense blocks have it, because they are smaller and there are more of
    them. Taking the larger of the two costs little, because the rounding bound also grows with the number of features.
    """
    dense_rows, sparse_rows = rows_in_block(n_features), rows_in_sparse_block(n_features)
    return max(_depth(n_rows, dense_rows), _depth(n_rows, sparse_rows)) + TREE_ADDITIONS


def _depth(n_rows: int, block: int) -> int:
    blocks = -(-n_rows // block)
    groups = -(-blocks // _BLOCKS_IN_GROUP)
    bundles = -(-groups // _GROUPS_IN_BUNDLE)
    return min(block, n_rows) + min(blocks, _BLOCKS_IN_GROUP) + min(groups, _GROUPS_IN_BUNDLE) + bundles


Counted: TypeAlias = tuple[Rows, Targets, Array | None]
"""The rows of one block, their labels, and how much each row counts (None if each counts 1)."""
Group: TypeAlias = "tuple[MemorySource, int, int]"
"""Rows that one thread sums up: their source, the first of them, where a block begins, and the one after the last."""


def sum_over_groups(
    row_sum: BlockwiseSum,
    groups: Iterable[Group],
    n_features: int,
    weights: Weights,
    n_threads: int = 1,
    passing: Pass | None = None,
) -> Totals:
    """Totals over groups of blocks, not yet `completed`. The same blocks give the same totals to the bit.

    Groups are added in their order, whichever thread summed them, so the totals do not depend on the number of threads. In a
    pass that somebody watches, `passing` is told of each group when it has been summed.
    """
    n_problems = weights.shape[0]

    def total_of(group: Group) -> tuple[Totals, int]:
        source, first, end = group
        total, step = row_sum.start(n_problems, n_features), source.blocks.rows_in_block
        for start in range(first, end, step):
            # Each block is made by the thread that sums it up, and is used while it is in the cache.
            block = source.counted(start, min(start + step, end))
            for rows, labels, counts, some, some_weights in _parts(block, total, weights):
                row_sum.add_block(some, rows, labels, some_weights, counts)
        return total, end - first

    totals = bundle = row_sum.start(n_problems, n_features)
    threads = nullcontext(map(total_of, groups)) if n_threads == 1 else closing(made_in_order(total_of, groups, n_threads))
    with threads as made:
        for number, (total, n_rows) in enumerate(made):
            if passing is not None:
                passing.used(n_rows)
            if number % _GROUPS_IN_BUNDLE:
                bundle.add(total)
            else:
                if number:
                    totals.add(bundle)
                bundle = total
    if bundle is not totals:
        totals.add(bundle)
    return totals


def _parts(block: Counted, total: Totals, weights: Weights) -> Iterable[tuple[Any, ...]]:
    """The block, or equal parts of it if its scores for many problems would be large; with totals and weights.

    No chain of additions becomes longer, because a part has at least twice as many rows as a group has blocks. A block that
    was clipped once may be several joined ones, and is never cut: it is summed for some of the problems at a time.
    """
    rows, labels, counts = block
    size, n_problems = rows.shape[0], weights.shape[0]
    n_parts = size // max(_FEWEST_ROWS, _SCORE_BYTES // (8 * max(1, n_problems)))
    if n_parts < 2:
        return [(rows, labels, counts, total, weights)]
    if type(rows) is ClippedRows:
        at_once = max(1, _SCORE_BYTES // (8 * size))
        of_problems = (slice(problem, problem + at_once) for problem in range(0, n_problems, at_once))
        totals = ((some, Totals(*(part[some] for part in total))) for some in of_problems)
        return ((rows, labels, counts, own, weights[some]) for some, own in totals)
    step = -(-size // n_parts)
    parts = (slice(start, start + step) for start in range(0, size, step))
    return ((rows[part], labels[part], None if counts is None else counts[part], total, weights) for part in parts)


@dataclass(frozen=True, slots=True)
class Blocks:
    """Rows that are given one block at a time. Each kind of rows derives from this class, and says what it does otherwise.

    Attributes
    ----------
    n_rows : number of rows
    n_features : number of columns of a block
    rows_in_block : how many rows to take at a time: a function of `n_features` alone, at most
        `rows_in_sparse_block(n_features)`
    are_copies : whether these are copies of some rows. `confide.progress` does not report passes over them
    made_anew : whether each call of `block` makes an array that nobody else keeps. A solver may then write to it
    """

    n_rows: int = field(init=False)
    n_features: int = field(init=False)
    rows_in_block: int = field(default=0, kw_only=True)
    are_copies: bool = field(default=False, kw_only=True)
    made_anew: bool = field(init=False)

    def _hold(self, shape: tuple[int, int], rows_in_block: int, made_anew: bool = False) -> None:
        """Compute once what every pass asks for."""
        for name, size in zip(("n_rows", "n_features", "rows_in_block"), (*shape, rows_in_block), strict=True):
            object.__setattr__(self, name, int(size))
        object.__setattr__(self, "made_anew", made_anew)

    @property
    def blocks_in_group(self) -> int:
        """How many blocks are summed in one group."""
        return _BLOCKS_IN_GROUP

    def gains_by_threads(self, order: int, /) -> bool:
        """Whether a pass over all rows is faster with several threads; it makes Hessians if the order is 2.

        A short pass is not. Nor is one that holds Python's lock for most of the time, because the threads wait for the lock.
        """
        return True

    def block(self, start: int, stop: int, /) -> Rows:
        """Rows start to stop: (stop - start, n_features), finite."""
        raise NotImplementedError

    def copied(self, positions: Indices) -> Rows:
        """A copy of the rows at the positions, which are in rising order."""
        raise NotImplementedError

    def as_copies(self, positions: Indices, /) -> Blocks:
        """Blocks of such a copy, for a solver."""
        return ArrayBlocks(self.copied(positions), rows_in_block=self.rows_in_block, are_copies=True)

    def taken(self, positions: Indices, /) -> Blocks:
        """The rows at the positions, in the order of the positions, as blocks of their own."""
        raise NotImplementedError

    def in_single_precision(self) -> Blocks | None:
        """The same rows in single precision, if blocks are made in each pass and can be made so; else None."""
        return None

    def as_stored(self, shortened: bool, /) -> StoredBlocks | None:
        """The same rows for the compiled kernel, `shortened` to a ball by it if need be; None where it cannot do so."""
        return None

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        """The same rows for gradients on which certificates rest, by the compiled kernel; None where NumPy makes these.

        It depends on public facts alone: the bound, the kind of rows, and the schema.
        """
        return None

    def lent(self) -> Blocks:
        """The same rows for a solver, which cannot write to them."""
        block, made_anew = self.block, self.made_anew

        def lent(make: Callable[..., Blocks | None]) -> Callable[..., Any]:
            return lambda *given: None if (made := make(*given)) is None else made.lent()

        face = _LentBlocks(
            lambda *rows: (made_for_a_solver if made_anew else unwritable)(block(*rows)),
            lambda positions: self.as_copies(positions),
            lent(self.taken),
            lent(self.in_single_precision),
            lent(self.as_stored),
            lambda order: self.gains_by_threads(order),
            are_copies=self.are_copies,
        )
        face._hold((self.n_rows, self.n_features), self.rows_in_block)
        return face


@dataclass(frozen=True, slots=True)
class _LentBlocks(Blocks):
    """Blocks for a solver, made when the solver asks for them.

    It has the methods of the blocks behind it. They are held as functions, so no attribute leads to those blocks.
    """

    # `field` keeps the methods of the same names from being taken for default values.
    block: Callable[[int, int], Rows] = field()
    as_copies: Callable[[Indices], Blocks] = field()
    taken: Callable[[Indices], Blocks] = field()
    in_single_precision: Callable[[], Blocks | None] = field()
    as_stored: Callable[[bool], StoredBlocks | None] = field()
    gains_by_threads: Callable[[int], bool] = field()

    def lent(self) -> Blocks:
        """These blocks, which are lent already."""
        return self


@dataclass(frozen=True, slots=True)
class ArrayBlocks(Blocks):
    """Blocks of a two-dimensional array, or of a CSR matrix, which is never made dense. They are views, never copies.

    Parameters
    ----------
    rows : array, or CSR matrix of float64 or float32 with column indices in range. A matrix in canonical form
        (`row_bounds.canonical`) saves work later
    """

    rows: Rows

    def __post_init__(self) -> None:
        width = self.rows.shape[1]
        usual = rows_in_sparse_block(width) if issparse(self.rows) else rows_in_block(width)
        self._hold(self.rows.shape, self.rows_in_block or usual)

    def gains_by_threads(self, order: int) -> bool:
        # SciPy holds Python's lock while it multiplies sparse rows.
        return not issparse(self.rows)

    def block(self, start: int, stop: int) -> Rows:
        rows: Any = self.rows
        if not issparse(rows):
            return rows[start:stop]
        first, last = int(rows.indptr[start]), int(rows.indptr[stop])
        # The constructor would copy these views, because the arrays behind them are much larger.
        block = csr_array((stop - start, self.n_features), dtype=rows.dtype)
        block.data, block.indices = rows.data[first:last], inside(rows.indices[first:last], self.n_features)
        block.indptr = rows.indptr[start : stop + 1] - rows.indptr[start]
        return block

    def copied(self, positions: Indices) -> Rows:
        rows: Any = self.rows[positions]
        if issparse(rows):
            rows.indices = inside(rows.indices, self.n_features)
        return rows

    def taken(self, positions: Indices) -> ArrayBlocks:
        return replace(self, rows=self.rows[positions])

    def as_stored(self, shortened: bool) -> StoredBlocks | None:
        rows: Any = self.rows
        # By their letters: on some machines another type, long doubles, is equal to doubles and has another name in C.
        known = isinstance(rows, np.ndarray) and rows.dtype.char in "df" and rows.dtype.isnative
        # Numbers that begin between two addresses of their kind, as in a field of a record, are none to the kernel.
        if not (known and rows.flags.aligned):
            return None
        return StoredBlocks(StoredArray(rows), rows_in_block=rows_in_group(self.n_features), are_copies=self.are_copies)

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        # A subclass may make rows of its own from what is stored.
        return self.as_stored(True) if type(self) is ArrayBlocks and type(before_moving(row_bound)) is BallBound else None

    def lent(self) -> ArrayBlocks:
        return replace(self, rows=unwritable(self.rows))


@dataclass(frozen=True, slots=True)
class StoredBlocks(Blocks):
    """Rows as they are stored, for the compiled kernel, which sums them up. A block is as long as a group of other blocks.

    The kernel is called once for each block, and leaves Python's lock free, so several threads work at the same time.
    """

    rows: StoredRows

    def __post_init__(self) -> None:
        self._hold(self.rows.shape, self.rows_in_block)

    @property
    def blocks_in_group(self) -> int:
        return 1

    def gains_by_threads(self, order: int) -> bool:
        products = self.rows.n_numbers**2 if order >= 2 else 0
        return self.n_rows * (self.rows.n_numbers + products + _NUMBERS_OF_A_SLOPE) >= _MANY_NUMBERS

    def block(self, start: int, stop: int) -> Any:
        return self.rows[start:stop]

    def lent(self) -> StoredBlocks:
        return replace(self, rows=self.rows.lent(unwritable))


@dataclass(frozen=True, slots=True)
class KeptBlocks(Blocks):
    """Blocks that are clipped once and summed over in many passes.

    Parameters
    ----------
    blocks : the rows as they are
    made : all blocks in order, as a sum clipped them, or as they are
    joined : so many blocks of coded rows became one; a group has as many rows as before
    """

    blocks: Blocks
    made: tuple[ClippedRows | Rows, ...]
    joined: int = 1

    def __post_init__(self) -> None:
        self._hold((self.blocks.n_rows, self.blocks.n_features), self.blocks.rows_in_block * self.joined)

    @property
    def blocks_in_group(self) -> int:
        return _BLOCKS_IN_GROUP // self.joined

    def gains_by_threads(self, order: int) -> bool:
        return self.joined == 1 or self.n_rows >= _MANY_JOINED_ROWS

    def block(self, start: int, stop: int) -> Any:
        number, offset = divmod(start, self.rows_in_block)
        if offset == 0 and stop == min(start + self.rows_in_block, self.n_rows):
            return self.made[number]
        return self.blocks.block(start, stop)

    def copied(self, positions: Indices) -> Rows:
        return self.blocks.copied(positions)

    def taken(self, positions: Indices) -> Blocks:
        return self.blocks.taken(positions)

    def in_joined_blocks(self) -> KeptBlocks:
        """The same blocks, `BLOCKS_IN_JOINED` at a time as one; as they are unless all are coded and can be joined."""
        made: list[ClippedRows] = []
        for first in range(0, len(self.made), BLOCKS_IN_JOINED):
            clipped = [block for block in self.made[first : first + BLOCKS_IN_JOINED] if type(block) is ClippedRows]
            together = joined(clipped) if clipped else None
            if together is None:
                return self
            made.append(together)
        return replace(self, made=tuple(made), joined=BLOCKS_IN_JOINED)


@dataclass(frozen=True, slots=True)
class MemorySource(CheckedSource):
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
    n_rows: int = field(init=False)
    n_features: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_rows", self.blocks.n_rows)
        object.__setattr__(self, "n_features", self.blocks.n_features)

    def counted(self, start: int, stop: int) -> Counted:
        """One block: rows start to stop with their labels, and how much each counts."""
        counts = None if self.row_weights is None else self.row_weights[start:stop]
        return self.blocks.block(start, stop), self.labels[start:stop], counts

    def counted_blocks(self) -> Iterator[Counted]:
        step = self.blocks.rows_in_block
        return (self.counted(start, min(start + step, self.n_rows)) for start in range(0, self.n_rows, step))

    def groups(self) -> Iterator[Group]:
        """All rows, in the groups of blocks in which they are summed."""
        firsts = range(0, self.n_rows, self.blocks.rows_in_block * self.blocks.blocks_in_group)
        return zip(repeat(self), firsts, (*firsts[1:], self.n_rows), strict=False)

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

        blocks = KeptBlocks(self.blocks, tuple(made(rows) for rows, _, _ in self.counted_blocks()))
        return replace(self, blocks=blocks.in_joined_blocks() if is_small else blocks)

    def sample(self, n_rows: int) -> MemorySource:
        """About `n_rows` of the rows, copied, in short runs spread evenly over all rows. Only solvers use it."""
        stride = sample_stride(self.n_rows, min(n_rows, most_in_sample(self.n_features)))
        return self.copied(sampled_positions(0, self.n_rows, stride))

    def copied(self, positions: Indices) -> MemorySource:
        """A copy of the rows at the positions, which are in rising order."""
        return self._at(positions, self.blocks.as_copies(positions))

    def taken(self, positions: Indices) -> MemorySource:
        """A copy of the rows at the positions, in the order of the positions and in the form in which rows are held."""
        return self._at(positions, self.blocks.taken(positions))

    def _at(self, positions: Indices, blocks: Blocks) -> MemorySource:
        row_weights = None if self.row_weights is None else self.row_weights[positions]
        return MemorySource(blocks, self.labels[positions], row_weights, self.n_threads)

    def remapped(self, change: RowMapChange) -> MemorySource:
        mapped: Any = self.blocks
        if change is None:
            object.__setattr__(mapped, "_kept", None)
            return replace(self, blocks=replace(mapped.blocks, rows_in_block=0))
        if (made := change(mapped.fourier_map)) is not None:
            # After the charge there may not be so much memory twice. Whoever still reads the rows before makes them again.
            object.__setattr__(mapped, "_kept", None)
            return replace(self, blocks=replace(mapped, fourier_map=made))
        return replace(self, blocks=replace(mapped.blocks, rows_in_block=mapped.rows_in_block))

    @property
    def cells(self) -> tuple[NDArray[Any], ...]:
        """The cell of each number (n_rows,) in the columns whose atoms are still to be found."""
        blocks: Any = self.blocks
        return getattr(blocks, "blocks", blocks).codes.cells  # type: ignore[no-any-return]

    def with_atoms(self, atoms: tuple[tuple[float, ...], ...]) -> MemorySource:
        blocks: Any = self.blocks
        return replace(self, blocks=blocks.with_atoms(atoms))

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
        passing = None if self.blocks.are_copies else watched_pass("training")
        order = getattr(row_sum, "order", 1)
        compiled = by_kernel(row_sum, len(weights), self.blocks.rows_in_block) if order == 1 else None
        rows = self.rows_for(compiled)
        n_threads = self.n_threads if self.n_threads > 1 and rows.blocks.gains_by_threads(order) else 1
        totals = sum_over_groups(compiled or row_sum, rows.groups(), self.n_features, weights, n_threads, passing)
        return row_sum.completed(totals)

    def rows_for(self, compiled: ClippedSum | None) -> MemorySource:
        """The same rows in the form in which they are stored, if the kernel may make this sum."""
        stored = None if compiled is None else self.blocks.as_certified(compiled.row_sum.row_bound)
        return self if stored is None else replace(self, blocks=stored)


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
        raise InputError(wording("rows changed while read"))
    return unwritable(own)  # type: ignore[no-any-return]


# Rows that a public map, such as random Fourier features, is applied to, block by block.


_MAPPED_NUMBERS, _MADE_AT_ONCE = 2**27, 16
"""A fit keeps so many numbers of mapped rows, 512 MiB, and makes those of so many blocks at once. Where there are more,
every pass makes them again."""


@dataclass(frozen=True, slots=True)
class MappedBlocks(Blocks):
    """Blocks of mapped rows, made when they are asked for, and again each time unless they are kept.

    Parameters
    ----------
    blocks : rows as the map takes them
    fourier_map : the map that is applied to each row
    keeps : whether rows in single precision are kept once they were made, if all of them are few enough. Then they are not
        made for the caller, who must not write to them
    """

    blocks: Blocks
    fourier_map: RowMap
    keeps: bool = False
    _kept: tuple[NDArray[np.float32], NDArray[np.bool_]] | None = field(init=False, compare=False, repr=False)
    """The rows, and which of them were made."""

    def __post_init__(self) -> None:
        shape = self.blocks.n_rows, self.fourier_map.n_features
        is_kept = self.keeps and isinstance(self.fourier_map, CurvesAndFeatures) and math.prod(shape) <= _MAPPED_NUMBERS
        self._hold(shape, rows_in_block(shape[1]), made_anew=not is_kept)
        object.__setattr__(self, "_kept", (np.empty(shape, np.float32), np.zeros(shape[0], bool)) if is_kept else None)

    def block(self, start: int, stop: int) -> Rows:
        features: Any = self.fourier_map
        if self._kept is None:
            return np.asarray(features.transform(dense(self.blocks.block(start, stop))))
        (rows, known), step = self._kept, _MADE_AT_ONCE * self.rows_in_block
        for first in range(start, stop, step):
            # As an integer of Python itself: a solver may ask for rows by objects that are another number each time.
            part = slice(first, min(first + step, operator.index(stop)))
            if not known[part].all():
                # Threads that make the same rows make the same numbers.
                features.write(dense(self.blocks.block(part.start, part.stop)), rows[part])
                known[part] = True
        return rows[start:stop]

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        return None if self._kept is None else ArrayBlocks(self.block(0, self.n_rows)).as_certified(row_bound)

    def with_atoms(self, atoms: tuple[tuple[float, ...], ...]) -> MappedBlocks:
        """The same rows with the atoms that were found."""
        encoded: Any = self.blocks
        object.__setattr__(self, "_kept", None)  # after the charge there may not be so much memory twice
        return replace(self, blocks=encoded.with_atoms(atoms))

    def copied(self, positions: Indices) -> Rows:
        # A solver may ask for any positions, and a slice of an array would be a view. What is taken is always a copy.
        if self._kept is not None and self._kept[1].take(positions).all():
            return self._kept[0].take(positions, axis=0)
        return self.fourier_map.transform(self.blocks.copied(positions))

    def taken(self, positions: Indices) -> MappedBlocks:
        return replace(self, blocks=self.blocks.taken(positions), keeps=False)


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
    """

    encoder: Encoder
    codes: Codes
    single: bool = False

    def __post_init__(self) -> None:
        width, coded = self.encoder.n_features, self.encoder.codes_rows
        usual = rows_in_sparse_block(width) if coded else rows_in_block(width)
        self._hold((self.codes.n_rows, width), self.rows_in_block or usual, made_anew=True)

    def with_atoms(self, atoms: tuple[tuple[float, ...], ...]) -> EncodedBlocks:
        """The same rows with the atoms that were found."""
        return replace(self, codes=self.encoder.with_atoms(self.codes, atoms))

    def gains_by_threads(self, order: int) -> bool:
        # Coded rows are made and summed up by short calls of NumPy.
        return not self.encoder.codes_rows

    def block(self, start: int, stop: int) -> Rows:
        return self.encoder.block(self.codes, start, stop, np.float32 if self.single else np.float64)

    def in_single_precision(self) -> EncodedBlocks | None:
        """The same rows in single precision; None if they are coded, which saves more time than single precision."""
        return None if self.encoder.codes_rows else replace(self, single=True)

    def as_stored(self, shortened: bool) -> StoredBlocks | None:
        return None if shortened else self._stored(self.encoder.as_stored(self.codes))

    def as_certified(self, row_bound: Any) -> StoredBlocks | None:
        codes = self.encoder.as_certified(self.codes, row_bound) if type(self) is EncodedBlocks and not self.single else None
        return self._stored(None if codes is None else replace(codes, expanded=self.block))

    def _stored(self, rows: StoredRows | None) -> StoredBlocks | None:
        n_rows = self.rows_in_block * _BLOCKS_IN_GROUP
        return None if rows is None else StoredBlocks(rows, rows_in_block=n_rows, are_copies=self.are_copies)

    def taken(self, positions: Indices) -> EncodedBlocks:
        return replace(self, codes=self.codes.taken(positions))

    def copied(self, positions: Indices) -> Array:
        # Positions rise, so where they are as many as the rows these are all rows, and their codes need no copy.
        codes = self.codes if positions.size == self.n_rows else self.codes.taken(positions)
        return self.encoder.expand(codes, 0, codes.n_rows)

    def as_copies(self, positions: Indices) -> Blocks:
        # Small rows are expanded, unless the compiled kernel makes Hessians of the codes, in less time than that takes.
        is_small = self.n_features <= _WIDE and 8 * self.n_features * positions.size <= _LARGE_COPY
        stored = self.as_stored(shortened=False) if self.encoder.codes_rows and is_small and kernel() is not None else None
        if not self.encoder.codes_rows or (is_small and not (stored is not None and stored.rows.has_products)):
            return ArrayBlocks(self.copied(positions), rows_in_block=self.rows_in_block, are_copies=True)
        # The encoder stays out of a solver's reach, though the codes are copies.
        return replace(self.taken(positions), are_copies=True).lent()
