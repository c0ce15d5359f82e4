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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np

from confide.data.arrays import Blocks, CountedBlock, MemorySource, in_groups, rows_in_block, sum_over_groups
from confide.data.frames import EncodedBlocks
from confide.data.mapped import MappedBlocks
from confide.data.on_disk import changed
from confide.erm.row_sums import SumOverRows, Totals
from confide.errors import FileError
from confide.features.encoder import Codes, Encoder, read_labels
from confide.features.fourier import FourierMap
from confide.features.labels import positions_of
from confide.features.schema import Label
from confide.types import Array, Indices, Labels, Weights

_PIECE_BYTES = 2**25
_PIECES_AHEAD = 2


class Part(Protocol):
    """Raw rows that can be read again and again, each once and in the same order."""

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """Arrow tables or record batches with the named columns."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows as codes, and their labels as -1 and +1. It holds data."""

    codes: Codes
    labels: Labels


@dataclass(frozen=True, slots=True)
class Reading:
    """How raw columns become blocks of rows and labels, by public facts alone. Picklable.

    Parameters
    ----------
    encoder : of the schema, which must have a target
    domain : the labels; of two the one that becomes -1 first
    class_weights : what a row of each of them counts, or None where every row counts 1
    fourier : a public map that encoded rows pass through, or None
    """

    encoder: Encoder
    domain: tuple[Label, ...]
    class_weights: tuple[float, ...] | None = None
    fourier: FourierMap | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The raw columns that are read."""
        target = self.encoder.schema.target
        return (*self.encoder.schema.column_names, *(() if target is None else (target.column,)))

    @property
    def n_features(self) -> int:
        """Number of columns of a block."""
        return self.encoder.n_features if self.fourier is None else self.fourier.n_features

    @property
    def rows_in_piece(self) -> int:
        """A whole number of blocks."""
        step = rows_in_block(self.n_features)
        return step * max(1, _PIECE_BYTES // (8 * max(len(self.names), self.n_features) * step))

    def pieces(self, part: Part, *, refuse: bool) -> Iterator[Piece]:
        """All rows of a part, checked or let pass, in pieces of `rows_in_piece`, the last one shorter."""
        for tables in recut(part.tables(self.names), self.rows_in_piece):
            read = [self.piece(table, refuse=refuse) for table in tables]
            columns = tuple(np.concatenate(parts) for parts in zip(*(piece.codes.columns for piece in read), strict=True))
            yield Piece(Codes(self.encoder.schema, columns), np.concatenate([piece.labels for piece in read]))

    def piece(self, table: Any, *, refuse: bool) -> Piece:
        """The rows of a frame or table, checked or let pass."""
        labels = read_labels(table[self.names[-1]], *self.domain, refuse=refuse)
        return Piece(self.encoder.read(table, refuse=refuse), labels)

    def blocks(self, piece: Piece) -> Iterator[CountedBlock]:
        """The blocks of a piece."""
        counts = counts_of(piece.labels, self.class_weights)
        return counted_blocks(EncodedBlocks(self.encoder, piece.codes), piece.labels, counts, self.fourier)


def counts_of(labels: Labels, class_weights: tuple[float, ...] | None) -> Array | None:
    """What each row counts by its class, or None where all count 1."""
    if class_weights is None:
        return None
    counts: Array = np.array(class_weights)[positions_of(labels, len(class_weights))]
    return counts


def counted_blocks(
    blocks: Blocks, labels: Labels, counts: Array | None, fourier: FourierMap | None
) -> Iterator[CountedBlock]:
    """Blocks of rows, mapped where there is a map, with what each row counts."""
    mapped = blocks if fourier is None else MappedBlocks(blocks, fourier)
    return MemorySource(mapped, labels, counts).counted_blocks()


@dataclass(frozen=True, slots=True)
class StreamedSource:
    """A `RowSource` over pieces that are read anew in each pass.

    Parameters
    ----------
    pieces : begins a pass
    reading : how pieces become blocks
    n_rows : how many rows there were when they were checked
    n_threads : threads that share the groups of blocks, besides two that read and expand
    """

    pieces: Callable[[], Iterator[Piece]]
    reading: Reading
    n_rows: int
    n_threads: int = 1

    @property
    def n_features(self) -> int:
        return self.reading.n_features

    def sum_over_rows(self, row_sum: SumOverRows, weights: Weights) -> Totals:
        counted = 0

        def blocks() -> Iterator[CountedBlock]:
            nonlocal counted
            # One thread reads, one expands what was read, and others add up.
            for piece in read_ahead(list(self.reading.blocks(piece)) for piece in read_ahead(self.pieces())):
                for block in piece:
                    counted += block[0].shape[0]
                    yield block

        totals = sum_over_groups(row_sum, in_groups(blocks()), self.n_features, weights, self.n_threads)
        if counted != self.n_rows:
            raise changed("what holds the rows")
        return row_sum.completed(totals)


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a part at the positions kept, rising."""

    part: Part
    kept: Indices

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        start = 0
        for table in self.part.tables(names):
            stop = start + table.num_rows
            first, last = np.searchsorted(self.kept, (start, stop))
            yield table.take(self.kept[first:last] - start)
            start = stop


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
        self._n_pieces = 0
        self._schema: Any = None

    def append(self, piece: Piece) -> None:
        """Write one piece after the others."""
        self._schema = piece.codes.schema
        full = None
        try:
            for array in (*piece.codes.columns, piece.labels):
                np.save(self._file, array, allow_pickle=False)
        except OSError as error:
            full = error.strerror
        if full is not None:
            raise FileError(f"cannot write to the cache: {full}. Give a folder with more room, or leave the cache out.")
        self._n_pieces += 1

    def pieces(self) -> Iterator[Piece]:
        """All pieces, in order. One pass at a time."""
        self._file.seek(0)
        for _ in range(self._n_pieces):
            columns = tuple(np.load(self._file, allow_pickle=False) for _ in self._schema.columns)
            yield Piece(Codes(self._schema, columns), np.load(self._file, allow_pickle=False))

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
    """The same items, made in a thread of their own while those before are used."""
    ready: queue.Queue[Item | BaseException | None] = queue.Queue(_PIECES_AHEAD)
    stopped = threading.Event()

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

    reader = threading.Thread(target=work, daemon=True)
    reader.start()
    try:
        while (item := ready.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stopped.set()
        reader.join()
