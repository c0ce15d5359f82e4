"""Rows larger than memory: they pass by in pieces, each a few blocks long, in every pass over them.

Pieces are cut so that the blocks of `MemorySource` come out, whatever the files or their row groups are: a sum over a
stream is that over the same rows in memory to the bit, with the same chain of additions.

Rows are checked in a pass of their own, before a budget is charged. Later passes read without refusing: a cell that could
not be used would count as missing or as nothing, so that no answer after the charge depends on what a row holds.
"""

from __future__ import annotations

import queue
import tempfile
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from confide.data.arrays import (
    ROWS_IN_RUN,
    Blocks,
    MemorySource,
    most_in_sample,
    rows_in_group,
    sample_stride,
    sampled_positions,
    sum_over_groups,
)
from confide.data.checked_source import RowsWithDefaults
from confide.data.frames import EncodedBlocks
from confide.data.mapped import MappedBlocks
from confide.data.on_disk import changed
from confide.data.passes import Pass, Progress
from confide.data.source import BlockwiseSum, SummableRows
from confide.erm.row_sums import Totals
from confide.errors import FileError
from confide.features.canonical_labels import Label
from confide.features.codes import Codes
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.labels import positions_of, read_labels, read_targets
from confide.types import Array, Indices, Targets, Weights

_PIECE_BYTES = 2**25
_PIECES_AHEAD = 2


class Part(Protocol):
    """Raw rows that can be read again and again, each once and in the same order."""

    def tables(self, names: Sequence[str], n_rows: int) -> Iterator[Any]:
        """Arrow tables or record batches with the named columns, of about `n_rows` rows where there is a choice."""


@dataclass(frozen=True, slots=True)
class NumberTarget:
    """What a regression is to predict, in place of labels.

    Parameters
    ----------
    column : where the numbers are; "" beside numeric arrays
    counts : whether none may be negative
    """

    column: str
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows as codes, and their labels as -1 and +1, or targets. It holds data."""

    codes: Codes
    labels: Targets

    @property
    def used(self) -> frozenset[str]:
        """The columns with a cell as the schema describes it."""
        return self.codes.used

    @property
    def arrays(self) -> tuple[Any, ...]:
        """All that it holds, in order."""
        return (self.codes.numbers, *self.codes.others, self.labels)

    def taken(self, which: Indices | slice) -> Piece:
        """Some of the rows, copied."""
        return Piece(self.codes.taken(which), self.labels[which])


@dataclass(frozen=True, slots=True)
class Reading:
    """How raw columns become blocks of rows and labels, by public facts alone. Picklable.

    Parameters
    ----------
    encoder : of the schema, which must have a target unless numbers are to be predicted
    domain : the labels; of two the one that becomes -1 first
    class_weights : what a row of each of them counts, or None where every row counts 1
    fourier : a public map that encoded rows pass through, or None
    numbers : what is to be predicted in place of labels, or None
    single : whether blocks of rows are in single precision, as in `EncodedBlocks`
    """

    encoder: Encoder
    domain: tuple[Label, ...]
    class_weights: tuple[float, ...] | None = None
    fourier: FourierMap | None = None
    numbers: NumberTarget | None = None
    single: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The raw columns that are read."""
        target = self.numbers or self.encoder.schema.target
        return (*self.encoder.schema.column_names, *(() if target is None else (target.column,)))

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""
        return self.encoder.n_features if self.fourier is None else self.fourier.n_features

    @property
    def rows_in_piece(self) -> int:
        """A whole number of groups of blocks, so that none is cut."""
        step = rows_in_group(self.n_features)
        return step * max(1, _PIECE_BYTES // (8 * max(len(self.names), self.n_features) * step))

    def pieces(self, part: Part, *, refuse: bool) -> Iterator[Piece]:
        """All rows of a part, checked or let pass, in pieces of `rows_in_piece`, the last one shorter."""
        for tables in recut(part.tables(self.names, self.rows_in_piece), self.rows_in_piece):
            pieces = [self.piece(table, refuse=refuse) for table in tables]
            yield pieces[0] if len(pieces) == 1 else joined(pieces)

    def piece(self, table: Any, *, refuse: bool) -> Piece:
        """The rows of a frame or table, checked or let pass."""
        given = table[self.names[-1]]
        labels: Targets
        if self.numbers is not None:
            labels = read_targets(given, counts=self.numbers.counts, refuse=refuse)
        else:
            labels = read_labels(given, *self.domain, refuse=refuse)
        return Piece(self.encoder.read(table, refuse=refuse), labels)

    def refuse_unused(self, used: frozenset[str]) -> None:
        """Refuse checked rows, as `Encoder.refuse_unused` does, by the columns that all their pieces use."""
        self.encoder.refuse_unused(used)

    def source(self, piece: Piece) -> MemorySource:
        """The rows of a piece, in memory."""
        counts = counts_of(piece.labels, self.class_weights)
        return source_of(EncodedBlocks(self.encoder, piece.codes, self.single), piece.labels, counts, self.fourier)


def joined(pieces: Sequence[Piece]) -> Piece:
    """The rows of several pieces as one."""
    schema, codes = pieces[0].codes.schema, [piece.codes for piece in pieces]
    numbers = np.concatenate([each.numbers for each in codes], axis=1)
    others = tuple(np.concatenate(parts) for parts in zip(*(each.others for each in codes), strict=True))
    used = frozenset[str]().union(*(each.used for each in codes))
    return Piece(Codes(schema, numbers, others, used=used), np.concatenate([piece.labels for piece in pieces]))


def counts_of(labels: Any, class_weights: tuple[float, ...] | None) -> Array | None:
    """What each row counts by its class, or None where all count 1."""
    if class_weights is None:
        return None
    counts: Array = np.array(class_weights)[positions_of(labels, len(class_weights))]
    return counts


def source_of(blocks: Blocks, labels: Targets, counts: Array | None, fourier: FourierMap | None) -> MemorySource:
    """Rows in memory, mapped where there is a map, with what each row counts."""
    return MemorySource(blocks if fourier is None else MappedBlocks(blocks, fourier), labels, counts)


@dataclass(frozen=True, slots=True)
class StreamedSource(RowsWithDefaults, SummableRows):
    """A `RowSource` over pieces that are read anew in each pass.

    Parameters
    ----------
    pieces : begins a pass
    reading : how pieces become blocks
    n_rows : how many rows there were when they were checked
    kept : some of them, which were kept then
    n_threads : threads that share the groups of blocks, besides one that reads
    told : told how many rows of a pass were used, or None for who watches by `progress`
    """

    pieces: Callable[[], Iterator[Piece]]
    reading: Reading
    n_rows: int = field()  # without `field` the property of the protocol would be taken as its default
    kept: KeptSample
    n_threads: int = 1
    told: Progress | None = None

    @property
    def n_features(self) -> int:
        return self.reading.n_features

    def sample(self, n_rows: int) -> MemorySource:
        """About so many of the rows, those that `MemorySource.sample` would take. For solvers, which are not trusted."""
        stride = sample_stride(self.n_rows, min(n_rows, most_in_sample(self.n_features)))
        kept = self.reading.source(self.kept.piece())
        picked = sampled_positions(0, kept.n_rows, stride // self.kept.stride)
        return kept.copied(picked)

    def taken(self, positions: Indices) -> StreamedSource:
        """The rows at the positions, in the order in which they pass by. Reads them once, for `sample`."""
        pieces = partial(_picked, self.pieces, np.sort(positions), self.reading.rows_in_piece)
        kept = KeptSample(most_in_sample(self.n_features))
        for piece in pieces():
            kept.add(piece)
        return replace(self, pieces=pieces, n_rows=positions.size, kept=kept)

    def in_single_precision(self) -> StreamedSource | None:
        """The same rows, encoded in single precision; None where a map would make them doubles."""
        return None if self.reading.fourier else replace(self, reading=replace(self.reading, single=True))

    def in_memory(self, purpose: str = "") -> Generator[MemorySource, None, None]:
        """All rows, a piece at a time; refused at the end where their number is no longer what it was."""
        passing = Pass(purpose, self.told) if purpose else None
        counted = 0
        # A thread reads what comes next.
        for piece in read_ahead(self.pieces()):
            counted += piece.labels.size
            yield self.reading.source(piece)
            if passing is not None:
                passing.used(piece.labels.size)
        if counted != self.n_rows:
            raise changed("what holds the rows")

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        # Closed here: who holds an exception would hold the threads that read, too.
        with closing(self.in_memory()) as pieces:
            # Threads that add up expand each block themselves, and use it while it is in the cache.
            groups = (group for memory in pieces for group in memory.groups())
            passing = Pass("training", self.told)
            return row_sum.completed(sum_over_groups(row_sum, groups, self.n_features, weights, self.n_threads, passing))


def _picked(begin: Callable[[], Iterator[Piece]], positions: Indices, n_rows: int) -> Iterator[Piece]:
    """The rows at the positions, which rise, of a pass over pieces; `n_rows` in a piece, fewer in the last.

    So the blocks are those of the same rows in memory.
    """
    start, waiting, n_waiting = 0, [], 0
    for piece in begin():
        stop = start + piece.labels.size
        first, last = np.searchsorted(positions, (start, stop))
        waiting.append(piece.taken(positions[first:last] - start))
        n_waiting += int(last - first)
        start = stop
        if n_waiting >= n_rows:
            whole = joined(waiting)
            cut = n_waiting - n_waiting % n_rows
            for begun in range(0, cut, n_rows):
                yield whole.taken(slice(begun, begun + n_rows))
            waiting, n_waiting = [whole.taken(slice(cut, None))], n_waiting - cut
    if n_waiting:
        yield joined(waiting)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a part at the positions kept, rising."""

    part: Part
    kept: Indices

    def tables(self, names: Sequence[str], n_rows: int) -> Iterator[Any]:
        start = 0
        for table in self.part.tables(names, n_rows):
            stop = start + table.num_rows
            first, last = np.searchsorted(self.kept, (start, stop))
            yield table.take(self.kept[first:last] - start)
            start = stop


class KeptSample:
    """Some of the rows that pass by, kept in memory for solvers: those that `MemorySource.sample` would take of all.

    Parameters
    ----------
    most : about how many
    """

    def __init__(self, most: int) -> None:
        self.stride = 1
        self._most, self._n_rows = most, 0
        self._kept: list[tuple[Indices, Piece]] = []

    def add(self, piece: Piece) -> None:
        """Take note of the next rows."""
        start, self._n_rows = self._n_rows, self._n_rows + piece.labels.size
        stride = sample_stride(self._n_rows, self._most)
        if stride > self.stride:
            thinned = ((np.flatnonzero(at // ROWS_IN_RUN % stride == 0), at, piece) for at, piece in self._kept)
            self._kept = [(at[which], piece.taken(which)) for which, at, piece in thinned]
            self.stride = stride
        picked = sampled_positions(start, self._n_rows, stride)
        self._kept.append((picked, piece.taken(picked - start)))

    def piece(self) -> Piece:
        """What was kept; there must have been rows."""
        return joined([piece for _, piece in self._kept])


class PieceFile:
    """Checked pieces in a file of their own, for as many passes as wanted.

    They are private data on a disk. The file has no name that could be opened, only its owner could read it, and the system
    removes it when it is closed or the process ends, however it ends.

    Parameters
    ----------
    folder : where the file lies; None for the system's folder of temporary files
    """

    def __init__(self, folder: Path | None) -> None:
        try:
            self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed by `close`
        except OSError as error:
            raise FileError(f"cannot write to the cache's folder: {error.strerror}.") from None
        self._starts: list[int] = []
        self._reading = threading.Lock()
        self._schema: Any = None
        self._n_arrays = 0

    def append(self, piece: Piece) -> None:
        """Write one piece after the others."""
        self._schema, self._n_arrays = piece.codes.schema, len(piece.arrays)
        full, start = None, self._file.tell()
        try:
            for array in piece.arrays:
                np.save(self._file, array, allow_pickle=False)
        except OSError as error:
            full = error.strerror
        if full is not None:
            raise FileError(f"cannot write to the cache: {full}. Give a folder with more room, or leave the cache out.")
        self._starts.append(start)

    def pieces(self) -> Iterator[Piece]:
        """All pieces, in order, whatever other passes begin or end meanwhile."""
        for start in self._starts:
            with self._reading:
                self._file.seek(start)
                numbers, *others, labels = (np.load(self._file, allow_pickle=False) for _ in range(self._n_arrays))
            yield Piece(Codes(self._schema, numbers, tuple(others)), labels)

    def close(self) -> None:
        """Give the room back."""
        self._file.close()


def recut(tables: Iterable[Any], n_rows: int) -> Iterator[list[Any]]:
    """The same rows, `n_rows` at a time, fewer at the end. Several tables where files hold a column in several types."""
    import pyarrow as pa

    waiting: list[Any] = []
    n_waiting = 0
    for given in tables:
        table = given if isinstance(given, pa.Table) else pa.Table.from_batches([given])
        while n_waiting + table.num_rows >= n_rows:
            taken = n_rows - n_waiting
            yield _joined([*waiting, table.slice(0, taken)])
            table, waiting, n_waiting = table.slice(taken), [], 0
        if table.num_rows:
            waiting.append(table)
            n_waiting += table.num_rows
    if n_waiting:
        yield _joined(waiting)


def _joined(tables: list[Any]) -> list[Any]:
    """Neighbours of one schema as one table."""
    import pyarrow as pa

    runs = groupby(tables, key=lambda table: table.schema)
    return [pa.concat_tables(list(run)) for _, run in runs]


Item = TypeVar("Item")


def read_ahead(items: Iterator[Item]) -> Iterator[Item]:
    """The same items, made in a thread of their own while those before are used; closed there, if they can be."""
    ready: queue.Queue[Item | BaseException | None] = queue.Queue(_PIECES_AHEAD)
    stopped, user = threading.Event(), threading.get_ident()

    def put(item: Item | BaseException | None) -> None:
        while not stopped.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def work() -> None:
        # Floating-point warnings would depend on the data; the setting of the caller's thread does not reach this one.
        with np.errstate(all="ignore"):
            try:
                for item in items:
                    put(item)
                    if stopped.is_set():
                        return
                put(None)
            except BaseException as error:  # noqa: BLE001 - raised in the caller's thread
                put(error)
            finally:
                if isinstance(items, Generator):
                    items.close()

    reader = threading.Thread(target=work, daemon=True)
    reader.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        # Garbage is collected in any thread: in one that the reader waits for, or in the reader, this would never end.
        if threading.get_ident() == user:
            reader.join()
