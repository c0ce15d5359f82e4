"""Columns of a frame or of files, without a target: checked before a charge, and read after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from confide.data.file_rows import FileRows, read_after_charge
from confide.data.on_disk import BATCH_ROWS, FilePart, Kind, Stamp, files_of
from confide.data.streams import RawRows, cut_to_size
from confide.features.cells import CellNumbers, Levels
from confide.features.columns import NumberColumn
from confide.features.persons import RowsPerPerson
from confide.features.raw_table import RawTable
from confide.features.schema import Schema

ReadColumns: TypeAlias = Callable[[], Iterator[tuple[CellNumbers | Levels, ...]]]
"""Gives the rows in pieces: for each column its numbers, NaN where a cell is missing, or its levels, negative for none."""


@dataclass(frozen=True, slots=True, eq=False)
class CheckedColumns:
    """Columns whose cells were checked.

    Attributes
    ----------
    read : function
        It gives the rows and refuses no cell. Files that changed since they were checked are refused.
    n_rows : int
        The number of rows as they were given.
    """

    read: ReadColumns
    n_rows: int


def checked_columns(rows: Any, schema: Schema, rows_per_person: RowsPerPerson) -> CheckedColumns:
    """Check every cell of the columns, and say how they are read after the charge.

    Parameters
    ----------
    rows : frame, or path, pattern or list of paths of CSV, Parquet, Arrow or Feather files
    schema : describes the columns, and the column that identifies persons, if there is one
    rows_per_person : which rows of each person count

    Raises
    ------
    InputError, FileError
        If the columns do not hold what is described. No message holds a value.
    """
    if isinstance(rows, str | os.PathLike | list | tuple):
        return _of_files(rows, schema, rows_per_person)
    table = RawTable.of(rows, schema, with_person=schema.person is not None)
    kept = None if schema.person is None else rows_per_person.drawn(table.persons())
    read = tuple(cells for cells, _ in table.checked_columns(refuse=True))
    held = read if kept is None else tuple(cells[kept] for cells in read)
    return CheckedColumns(lambda: iter([held]), table.n_rows)


def _of_files(paths: Any, schema: Schema, rows_per_person: RowsPerPerson) -> CheckedColumns:
    kinds: dict[str, Kind] = {
        column.name: "number" if isinstance(column, NumberColumn) else "text" for column in schema.columns
    }
    if schema.person is not None:
        kinds[schema.person] = "text"
    files = FileRows(schema, tuple(FilePart(Stamp.of(path), kinds) for path in files_of(paths)))
    n_rows = files.count()
    kept, _ = files.of_persons(rows_per_person)
    for _ in _pieces(kept, schema, refuse=True):
        pass
    return CheckedColumns(lambda: read_after_charge(_pieces(kept, schema, refuse=False)), n_rows)


def _pieces(rows: RawRows, schema: Schema, *, refuse: bool) -> Iterator[tuple[CellNumbers | Levels, ...]]:
    for tables in cut_to_size(rows.tables(schema.column_names, BATCH_ROWS), BATCH_ROWS):
        for table in tables:
            raw = RawTable.of(table, schema, with_person=False)
            yield tuple(cells for cells, _ in raw.checked_columns(refuse=refuse))
