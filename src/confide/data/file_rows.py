"""Rows in files: tables, which are read piece by piece in every pass, and NumPy arrays, which are mapped into memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Indices, Weights
from confide.data.arrays import CheckedPass, CheckedSource, MemorySource, RowMapChange, most_in_sample
from confide.data.files import BATCH_ROWS, FilePart, Stamp, changed
from confide.data.partitions import AnyReading, OpenedRows
from confide.data.sources import files_of, kinds_read
from confide.data.spooled import pieces_of
from confide.data.streams import (
    KeptSample,
    LabelledCodes,
    PieceFile,
    RawTables,
    Reading,
    StreamedSource,
    cut_to_size,
    kept_rows,
    read_ahead,
)
from confide.erm.row_sums import Totals
from confide.erm.source import BlockwiseSum
from confide.errors import FileError, InputError, ParameterError
from confide.features.cells import CellNumbers, Levels
from confide.features.schema import Schema
from confide.features.table import RawTable, RowsPerPerson, rows_that_count
from confide.threads import Pass, Progress

_HELD_BYTES, _HELD_FILES = 2**28, 2**29
"""Rows stay in memory from the check on, as codes, if these have at most so many bytes, and their files at most so many.

To read a file again takes several times as long as to sum up its rows."""


@dataclass(frozen=True, slots=True)
class FileRows(OpenedRows):
    """Rows of tables in files, as `open_rows` returns them.

    Parameters
    ----------
    schema : the public description of the columns
    parts : the files, in order
    cache : folder for the file that keeps encoded rows between passes, "" for the system's folder of temporary files, or
        None to read the files again in every pass
    progress : called with the number of rows that were read, or None
    target : the column of numbers that a regression predicts, or None for the target of the schema
    """

    schema: Schema
    parts: tuple[FilePart, ...]
    cache: Path | str | None = None
    progress: Progress | None = None
    target: str | None = None

    lies_here: ClassVar[bool] = True

    def __repr__(self) -> str:
        return f"FileRows({len(self.parts)} file{'s'[: len(self.parts) != 1]}, {self.schema!r})"

    def tables(self, names: Sequence[str], n_rows: int = BATCH_ROWS) -> Iterator[Any]:
        """All rows, file after file. A file that changed since it was opened is refused, before and after it is read."""
        for part in self.parts:
            part.stamp.check()
            yield from read_ahead(part.tables(names, n_rows))
            part.stamp.check()

    def count(self) -> int:
        """The number of rows, found by reading one column."""
        for part in self.parts:
            part.check(self._weight, self.schema.roles)  # a pass that reads weights asks for them
        n_rows = sum(int(table.num_rows) for table in self.tables([self.schema.raw_names[0]]))
        if n_rows == 0:
            raise self._empty()
        return n_rows

    def that_count(self, rows_per_person: RowsPerPerson) -> tuple[RawTables, int | None]:
        """The rows that count, and with a column of persons the number of all rows; otherwise None."""
        chooses = self.schema.choosing
        if chooses is None:
            return self.tables, None
        import pyarrow as pa

        self.count()
        # The cells of all rows are in memory at once. Files may hold the same identifiers in different types.
        columns = [table[chooses] for table in self.tables([chooses])]
        runs = (run for _, run in groupby(columns, key=lambda column: column.type))
        parts = [pa.chunked_array([chunk for part in run for chunk in getattr(part, "chunks", [part])]) for run in runs]
        kept, n_rows = rows_that_count(self.schema, rows_per_person, *parts)
        return (self.tables if kept is None else kept_rows(self.tables, kept)), None if self.schema.cohort else n_rows

    @property
    def _weight(self) -> tuple[str, ...]:
        """The column of weights, if the schema names one."""
        return () if self.schema.weight is None else (self.schema.weight.column,)

    def _empty(self) -> InputError:
        return InputError(f"{self._names} has no rows below the column names; at least one row is needed.")

    @property
    def _names(self) -> str:
        return ", ".join(f"{part.path}" for part in self.parts[:3]) + (", ..." if len(self.parts) > 3 else "")

    @contextmanager
    def checked(self, reading: AnyReading, rows_per_person: RowsPerPerson, n_threads: int = 1) -> Iterator[CheckedPass]:
        if not isinstance(reading, Reading):
            raise ParameterError("rows in table files need a schema; give one to open_rows.")
        for part in self.parts:
            part.check(() if reading.weighs else self._weight, self.schema.roles)
        rows, n_given = self.that_count(rows_per_person)
        with ExitStack() as until_released:
            store = None
            if self.cache is not None:
                store = PieceFile(Path(self.cache) if self.cache else None)
                until_released.callback(store.close)
            n_rows, used = 0, frozenset[str]()
            passing = Pass("checking", self.progress)
            kept = KeptSample(most_in_sample(reading.n_features))
            held: list[LabelledCodes] = []
            left = _HELD_BYTES if store is None and sum(part.stamp.size for part in self.parts) <= _HELD_FILES else -1
            refusal = ""
            try:
                for piece in reading.pieces(rows, refuse=True):
                    n_rows, used = n_rows + piece.labels.size, used | piece.used
                    kept.add(piece)
                    left -= sum(array.nbytes for array in piece.arrays)
                    if left >= 0:
                        held.append(piece)
                    else:
                        held.clear()
                    if store is not None:
                        store.append(piece)
                    passing.used(piece.labels.size)
            except InputError as error:
                refusal = str(error)
            if refusal:
                # A refusal of cells names the files. Raised here, so that the first error is no context of this one.
                is_named = any(f"{part.path}" in refusal for part in self.parts)
                raise InputError(refusal if is_named else f"{self._names}: {refusal}")
            if n_rows == 0:
                raise self._empty()
            reading.refuse_unused(used)

            def pieces() -> Iterator[LabelledCodes]:
                if left < 0:
                    yield from read_after_charge(reading.pieces(rows, refuse=False)) if store is None else store.pieces()
                    return
                # Pieces stayed in memory. A file that changed is refused all the same.
                self.check_stamps()
                yield from held
                self.check_stamps()

            source = StreamedSource(pieces, reading, n_rows, kept, n_threads, self.progress)
            yield source, n_rows if n_given is None else n_given

    def check_stamps(self) -> None:
        """Refuse files that changed since they were opened."""
        for part in self.parts:
            part.stamp.check()


Piece = TypeVar("Piece")


def read_after_charge(pieces: Iterator[Piece]) -> Iterator[Piece]:
    """The pieces of a pass after the charge. A file that passed the check and cannot be read now must have changed.

    The error of the reader may depend on the rows, so it is replaced by one that does not.
    """
    while True:
        failed = True
        with suppress(InputError, FileError):
            piece, failed = next(pieces, None), False
        if failed:
            raise changed("what holds the rows")
        if piece is None:
            return
        yield piece


@dataclass(frozen=True, slots=True)
class ArrayRows:
    """Numeric rows and labels in NumPy files, mapped into memory, as `open_rows` returns them.

    Parameters
    ----------
    rows : (n, d) memory map of float64 or float32
    labels : (n,) memory map of labels or targets
    stamps : size, time and identity of each file when it was opened
    """

    rows: NDArray[np.floating]
    labels: NDArray[np.generic]
    stamps: tuple[Stamp, ...]

    def __repr__(self) -> str:
        return f"ArrayRows({self.rows.shape[1]} columns)"


@dataclass(frozen=True, slots=True)
class StampedSource(CheckedSource):
    """A `RowSource` of rows in memory-mapped files. It refuses every pass during which a file changed.

    Parameters
    ----------
    source : the rows
    stamps : size, time and identity of each file when it was opened
    """

    source: MemorySource
    stamps: tuple[Stamp, ...]

    @property
    def n_features(self) -> int:
        return self.source.n_features

    @property
    def n_rows(self) -> int:
        return self.source.n_rows

    def sample(self, n_rows: int) -> MemorySource:
        return self.source.sample(n_rows)

    def as_stored(self, shortened: bool) -> StampedSource | None:
        made = self.source.as_stored(shortened)
        return None if made is None else StampedSource(made, self.stamps)

    def taken(self, positions: Indices) -> MemorySource:
        """A copy of the rows at these positions, in the order of the positions."""
        taken = self.source.taken(positions)
        self._check_stamps()
        return taken

    def remapped(self, change: RowMapChange) -> StampedSource:
        return StampedSource(self.source.remapped(change), self.stamps)

    def in_memory(self, purpose: str = "") -> Iterator[MemorySource]:
        yield from self.source.in_memory(purpose)
        self._check_stamps()

    def sum_over_rows(self, row_sum: BlockwiseSum, weights: Weights) -> Totals:
        totals = self.source.sum_over_rows(row_sum, weights)
        self._check_stamps()
        return totals

    def _check_stamps(self) -> None:
        for stamp in self.stamps:
            stamp.check()


# Columns of a frame or of files, without a target: checked before a charge, and read after it.

ReadColumns: TypeAlias = Callable[[], Iterator[tuple[CellNumbers | Levels, ...]]]
"""Gives the rows in pieces: for each column its numbers, NaN where a cell is missing, or its levels, negative for none."""


def checked_columns(
    rows: Any, schema: Schema, rows_per_person: RowsPerPerson, labelled: Sequence[str] = ()
) -> tuple[ReadColumns, int]:
    """Check every cell of the columns, and say how they are read after the charge.

    Parameters
    ----------
    rows : frame, or path, pattern or list of paths of CSV, Parquet, Arrow or Feather files
    schema : describes the columns, and the column of persons or of cohorts, if there is one
    rows_per_person : which rows of each person count
    labelled : columns that are read as the canonical forms of their labels, None for missing ones

    Returns
    -------
    A function that gives the rows, and the number of rows as they were given. The function refuses no cell, but files that
    changed since they were checked.

    Raises
    ------
    InputError, FileError
        If the columns do not hold what is described. No message holds a value.
    """
    if pieces_of(rows) is None and not isinstance(rows, str | os.PathLike | list | tuple):
        table = RawTable.of(rows, schema, choosing=True)
        kept = None if table.choosing is None else table.counting(rows_per_person)
        read = table.columns_or_labels(labelled, refuse=True)
        held = read if kept is None else tuple(cells[kept] for cells in read)
        return lambda: iter([held]), table.n_rows
    kinds = kinds_read(schema)
    files = FileRows(schema, tuple(FilePart(Stamp.of(path), kinds) for path in files_of(rows, schema)))
    n_rows = files.count()
    counted, _ = files.that_count(rows_per_person)

    def pieces(*, refuse: bool) -> Iterator[tuple[Any, ...]]:
        for tables in cut_to_size(counted(schema.raw_names, BATCH_ROWS), BATCH_ROWS):
            for table in tables:
                yield RawTable.of(table, schema, choosing=False).columns_or_labels(labelled, refuse=refuse)

    for _ in pieces(refuse=True):
        pass
    return lambda: read_after_charge(pieces(refuse=False)), n_rows
