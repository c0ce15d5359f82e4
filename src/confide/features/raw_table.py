"""The columns of a frame that a schema describes: found by name, read, and checked against their descriptions.

Messages name the columns of the schema and never hold a value. Other names in a frame are not shown either: if the header of
a file is missing, they are cells.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.errors import InputError
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.cells import CellNumbers, Levels, read_levels, read_numbers
from confide.features.column_names import listed_absent, names_by_position
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.persons import read_identities
from confide.features.schema import Schema
from confide.known_words import listed
from confide.types import Indices

NO_LEVEL = -1
"""The level of a category that is none of the levels."""
_UNDECLARED_GAP = -2
"""While a column is read: a missing cell, where the schema does not say what it counts as."""
_COUNTS_AS_LISTED = -3
"""While a column is read: an unlisted category that counts as one of the listed ones."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RawTable:
    """The columns of one frame that are read by a schema. It holds data.

    Parameters
    ----------
    schema : the public description of the columns
    columns : a Series or Arrow array for each column of the schema, in its order
    person : the column that identifies persons, or None
    """

    schema: Schema
    columns: tuple[Any, ...]
    person: Any

    @classmethod
    def of(cls, frame: Any, schema: Schema, *, with_person: bool) -> RawTable:
        """The columns of a frame of any library that narwhals reads.

        Parameters
        ----------
        frame : pandas or Polars frame, or Arrow table
        schema : the public description of the columns
        with_person : whether to find the column that identifies persons, if the schema names one

        Raises
        ------
        InputError
            If it is not a frame in memory, has no rows, lacks a column, or has two columns of one name.
        """
        names = schema.column_names
        if not with_person or schema.person is None:
            return cls(schema, _columns_named(frame, names), None)
        *columns, person = _columns_named(frame, (*names, schema.person))
        return cls(schema, tuple(columns), person)

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0])

    def checked_columns(self, *, refuse: bool) -> Iterator[tuple[Any, bool]]:
        """`checked_column` of each column in turn.

        A column is read when it is asked for, so that not all columns are copied at the same time.
        """
        return (self.checked_column(place, refuse=refuse) for place in range(len(self.columns)))

    def checked_column(self, place: int, *, refuse: bool) -> tuple[Any, bool]:
        """The values (n,) of one column, and whether one of its cells is as the schema describes it.

        The values of a number are `CellNumbers`, those of a category are `Levels`, where `NO_LEVEL` stands for none of them.

        Parameters
        ----------
        place : which column of the schema
        refuse : False lets every cell pass, and then looks at none of them to see whether it is as described

        Raises
        ------
        InputError
            If the column holds what its description does not allow.
        """
        column, cells = self.schema.columns[place], self.columns[place]
        return _numbers(column, cells, refuse) if isinstance(column, NumberColumn) else _levels(column, cells, refuse)

    def persons(self) -> Indices:
        """Whole numbers (n,), equal for the rows of one person.

        Raises
        ------
        InputError
            If a cell is missing or is not text, a number or a boolean, or identifiers differ in spelling alone.
        """
        return read_identities(f'column "{self.schema.person}"', self.person)


def column_of(frame: Any, name: str) -> Any:
    """One named column of a frame of any library that narwhals reads.

    Raises
    ------
    InputError
        If it is not a frame in memory, has no rows, or lacks the column.
    """
    (column,) = _columns_named(frame, (name,))
    return column


def _columns_named(frame: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """The named columns of a frame, in the order of the names."""
    import narwhals.stable.v1 as nw

    if (columns := _columns_of_arrow(frame, names)) is not None:
        return columns
    frame = _named_by_position(_with_rows_again(frame), names)
    try:
        table = nw.from_native(frame, pass_through=True)
        present, n_rows = (set(table.columns), table.shape[0]) if isinstance(table, nw.DataFrame) else (set(), 0)
    except Exception:  # noqa: BLE001 - libraries raise different errors, above all for repeated names
        table, present, n_rows = None, set(), 0
    if not isinstance(table, nw.DataFrame):
        raise InputError(_why_no_table(frame, table, names))
    absent = [name for name in names if name not in present]
    if absent:
        raise InputError(f"the frame lacks columns that the schema describes: {listed_absent(absent, present)}.")
    if n_rows == 0:
        raise InputError("the frame has no rows; at least one is needed.")
    return tuple(table[name] for name in names)


def _with_rows_again(frame: Any) -> Any:
    """An Arrow table of the rows of an object that gives Arrow streams, but is no frame; anything else as it is.

    Raises
    ------
    InputError
        If the object gives its rows once only. A fit may read them several times.
    """
    is_batch = hasattr(frame, "__arrow_c_array__") and hasattr(frame, "schema")
    # A frame of pandas, Polars or DuckDB and an Arrow table have a shape.
    if not is_batch and (not hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "shape")):
        return frame
    import pyarrow as pa

    with suppress(Exception):  # any message may quote cells
        if is_batch:
            return pa.Table.from_batches([pa.record_batch(frame)])
        if not isinstance(frame, pa.RecordBatchReader):
            frame.__arrow_c_stream__()
            return pa.table(frame)
    raise InputError(
        "an Arrow stream that can be read only once, such as a RecordBatchReader, is no table: read it into memory first "
        "(pyarrow: read_all), or write it to a Parquet file and give fit confide.open_rows of its path."
    )


def _named_by_position(frame: Any, names: Sequence[str]) -> Any:
    """An array of numbers as a frame, if the schema describes its columns by their positions: x0, x1, ..."""
    if not isinstance(frame, np.ndarray) or frame.ndim != 2 or frame.dtype.kind not in "fiub":
        return frame
    if tuple(names) != names_by_position(len(names)):
        return frame
    if frame.shape[1] != len(names):
        raise InputError(f"X has {frame.shape[1]} columns, and the schema describes {len(names)}: x0 to x{len(names) - 1}.")
    import pandas as pd

    return pd.DataFrame(frame, columns=list(names), copy=False)


def _columns_of_arrow(frame: Any, names: Sequence[str]) -> tuple[Any, ...] | None:
    """The named columns of an Arrow table; None if it is not one, or lacks something.

    This is the usual form of a piece of a file, of which a fit reads many.
    """
    import pyarrow as pa

    if not isinstance(frame, pa.Table) or not frame.num_rows:
        return None
    places = {name: place for place, name in enumerate(frame.column_names)}
    if len(places) < frame.num_columns or any(name not in places for name in names):
        return None
    return tuple(frame.column(places[name]) for name in names)


def _why_no_table(frame: Any, table: Any, names: Sequence[str]) -> str:
    """Why a frame cannot be read; `table` is what narwhals makes of it, or None if that failed."""
    import narwhals.stable.v1 as nw

    if isinstance(table, nw.LazyFrame):
        return "a schema needs a frame in memory; call .collect() (Polars), .compute() (Dask) or .df() (DuckDB) on it first."
    if table is None and hasattr(frame, "columns"):
        repeated = [name for name in names if list(getattr(frame, "columns", ())).count(name) > 1]
        which = f" (these occur more than once: {listed(repeated)})" if repeated else ""
        return f"the frame cannot be read: the names of its columns must all be different{which}."
    return "a schema needs a pandas or Polars frame, whose columns have names."


def _numbers(column: NumberColumn, cells: Any, refuse: bool) -> tuple[CellNumbers, bool]:
    """The numbers of a column, NaN for missing ones, and whether one of them lies within the bounds."""
    what = f'column "{column.name}"'
    numbers = read_numbers(what, cells, refuse)
    if column.missing_codes:
        numbers = column.without_codes(numbers)
    if column.is_straight and not refuse:
        # The encoder finds the cells that are not finite numbers, block by block, when it encodes the column.
        return numbers, False
    # The least and the greatest number are finite exactly if all are, and are cheaper to find than to test each number.
    ends = (numbers.min(initial=np.inf), numbers.max(initial=-np.inf))
    if numbers.size and not (math.isfinite(ends[0]) and math.isfinite(ends[1])):
        infinite = np.isinf(numbers)
        if refuse and infinite.any():
            raise InputError(f"{what}: holds infinite numbers; give finite ones, or leave the cells empty.")
        if refuse and not column.missing:
            raise InputError(
                f'{what}: holds missing values; declare "missing = true" for it in the schema, or fill them in by a rule '
                f"that does not depend on the data."
            )
        numbers = np.where(infinite, np.nan, numbers).astype(numbers.dtype)
    return numbers, refuse and _some_within(column, numbers, ends)


def _some_within(column: NumberColumn, numbers: CellNumbers, ends: tuple[Any, Any]) -> bool:
    """Whether a number lies within the bounds of its column; `ends` are the least and the greatest one, or NaN."""
    if any(column.low <= float(end) <= column.high for end in ends):
        return True
    # Some numbers may lie within the bounds although both ends do not, or are NaN.
    # As numbers of Python the bounds would be rounded to the precision of the column.
    return bool(((numbers >= np.float64(column.low)) & (numbers <= np.float64(column.high))).any())


def _levels(column: CategoryColumn, cells: Any, refuse: bool) -> tuple[Levels, bool]:
    """The levels of a column, and whether a cell holds a listed category.

    The levels are the listed categories, then the level of unlisted ones and that of missing ones, where they are declared.
    """
    what = f'column "{column.name}"'
    known = {canonical_label(category): level for level, category in enumerate(column.categories)}
    unlisted, missing = (len(known), len(known)) if column.other else (NO_LEVEL, _UNDECLARED_GAP)
    if isinstance(column.other, str):
        unlisted = missing = _COUNTS_AS_LISTED
    if column.missing:
        missing = len(known) + (column.other is True)
    codes = {canonical_label(code): missing for code in column.missing_codes}
    levels = read_levels(what, cells, known | codes, missing=missing, unknown=unlisted)
    is_used = refuse and bool(((levels >= 0) & (levels < len(known))).any())
    undeclared = levels == _UNDECLARED_GAP
    if refuse and undeclared.any():
        raise InputError(f"{what}: holds missing values{_what_to_do(known)}")
    levels[undeclared] = NO_LEVEL
    if isinstance(column.other, str):
        levels[levels == _COUNTS_AS_LISTED] = known[column.other]
    return levels, is_used


def _what_to_do(known: Container[str | None]) -> str:
    """How a message about missing cells of a category ends; a reader may have made some of a level such as NA."""
    if lost := [word for word in MISSING_WORDS if word in known]:
        return (
            f', and many readers of files take its level "{lost[0]}" for a missing cell. Read the file so that the level is '
            f"kept (pandas: keep_default_na=False, na_values=['']; R: na.strings=''); "
            f'declare "missing = true" only for cells that are empty in the file.'
        )
    return (
        ', which are empty cells or words such as NA that the schema does not list; declare "missing = true" or '
        '"other = true" for it in the schema, or list such a word if it is a category (NA is the code of Namibia).'
    )
