"""The columns of a frame that a schema describes: found by name, read, and checked against their descriptions.

Messages name the columns of the schema and never hold a value. Other names in a frame are not shown either: if the header of
a file is missing, they are cells.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Container, Iterator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from confide.array_types import Indices
from confide.errors import InputError, imported, wording
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.cells import (
    CellNumbers,
    Levels,
    entries_at,
    labels_at,
    labels_of,
    part_of,
    read_dates,
    read_levels,
    read_numbers,
)
from confide.features.columns import RAW_NAME, CategoryColumn, NumberColumn
from confide.features.schema import Schema
from confide.known_words import listed, listed_absent, names_by_position

# Whose row each row is, and which rows of a person count, where one person may have several.
#
# Identifiers are compared exactly, and a table in which two of them differ in spelling alone is refused. If they were taken
# for two persons, one person could have more rows than the cap. If they were taken for one, the rows of one person could
# decide which rows of another count, and to remove a person could cost twice as much.

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-][0-9]{1,3})?")
"""How programs write a number. They write the sign of an exponent, which tells 1e+05 from an identifier such as 1e5."""
_UNSEEN = re.compile(
    "[\\0-\\x08\\x0e-\\x1b\\x7f-\\x84\\x86-\\x9f\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u2065\\u2800\\u3164\\ufe00-\\ufe0f\\uffa0\\U000e0100-\\U000e01ef]"
)
"""Letters that show nothing: control characters other than blanks, and what Unicode ignores outside its category Cf."""
_LONGEST_NUMBER = 1000
"""Characters of the longest text that is read as a number: Python refuses to write integers of several thousand digits."""
_NO_PERSON = frozenset(MISSING_WORDS)
_LEAST_ROUNDED = 2.0**11
"""Every type of floating-point number holds all whole numbers up to here."""


def read_identities(what: str, *columns: Any) -> Indices:
    """Whole numbers (n,), equal exactly where the cells are the same text or the same number.

    Nothing is rounded, and text is not read as a number. The integer 1, the text "1" and the number 1.0 are the same,
    because readers make all of them from one file.

    Parameters
    ----------
    what : how messages name the cells, for example 'column "patient_id"'
    *columns : one or more parts of the column, each a Series, an Arrow array, a NumPy array or a list of a type of its own

    Raises
    ------
    InputError
        If a cell is missing, or is not text, a number or a boolean; if a number is so large, or has so many digits, that
        its type rounds it; or if two identifiers differ in spelling alone.
    """
    index: dict[str, int] = {}
    parts = []
    for cells in columns:
        identities, positions = labels_of(what, cells, identity_in)
        table = [-1 if identity is None else index.setdefault(identity, len(index)) for identity in identities]
        parts.append(entries_at(positions, np.array([*table, -1])))
    codes: Indices = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if (codes == -1).any():
        raise InputError(f"{what}: holds missing values; every row needs the person that it belongs to.")
    if ROUNDED in index:
        raise InputError(wording("identifiers rounded", what=what))
    if len(set(map(spelling_of, index))) < len(index):
        raise InputError(wording("identifiers differ in spelling", what=what))
    return codes


ROUNDED = "\0rounded"
"""Stands for the identity of a number that its type may have rounded. No cell can have it: blanks and it are stripped."""


def identity_in(value: object) -> str | None:
    """The exact text of an identifier of any type; None if it is missing, as empty cells and words such as NA are.

    Raises
    ------
    TypeError, ValueError
        If the value is not text, a number or a boolean, or is an integer of thousands of digits.
    """
    match value:
        case str():
            text = value.strip()
            return None if not text or text in _NO_PERSON else text
        case bool() | np.bool_():
            return str(value)
        case int() | np.integer():
            return str(int(value))
    if canonical_label(value) is None:
        return None
    text = str(value)  # the shortest decimal of a float; exact for a Decimal
    if isinstance(value, (float, np.floating)):
        # Its type must hold all whole numbers up to it or, if it is narrow, all decimals of so many digits.
        size, kind = abs(float(value)), np.finfo(type(value))
        if size % 1.0 and kind.bits < 64:
            rounded = len(re.sub(r"e.*|\D", "", text).strip("0")) > kind.precision
        else:
            rounded = size >= _LEAST_ROUNDED and size >= 2.0 ** (kind.nmant + 1)
        if rounded:
            return ROUNDED
    exact = Fraction(text)
    return str(exact) if exact.denominator == 1 else text


def spelling_of(identity: str) -> str:
    """What two identities have in common if they differ in spelling alone.

    That is in case, in blanks and invisible letters, in letters and digits that Unicode has in several forms (NFKC), in
    dashes, or in how a number is written: with leading zeros, decimals or an exponent.
    """
    if identity.isascii():
        if identity.isdigit():
            return identity.lstrip("0") or "0"
        if identity.isalnum():
            return identity.lower()
    else:
        # Invisible letters first: between a letter and its accent, one would keep them apart.
        visible = "".join(letter for letter in _UNSEEN.sub("", identity) if unicodedata.category(letter) != "Cf")
        # By capitals: those of i and of i without a dot are one, and a capital I may have its dot.
        folded = unicodedata.normalize("NFKC", visible).upper().casefold().replace("i\u0307", "i")
        identity = "".join(map(_plain, unicodedata.normalize("NFKC", folded)))
    identity = " ".join(_UNSEEN.sub("", identity.lower()).split())
    return str(Fraction(identity)) if len(identity) <= _LONGEST_NUMBER and _NUMBER.fullmatch(identity) else identity


def _plain(letter: str) -> str:
    """The digit or the hyphen that a digit of any script, or a dash or minus sign of any length, stands for."""
    if letter.isdecimal():
        return str(unicodedata.decimal(letter))
    return "-" if letter == "\u2212" or unicodedata.category(letter) == "Pd" else letter


@dataclass(frozen=True, slots=True)
class RowsPerPerson:
    """A random choice of at most `most` rows of each person.

    The order of a table may depend on its content. So if the first rows of each person counted, a change of one person's
    rows could change which rows of another person count. Rows that are drawn at random depend on the rows of their own
    person only, and on nothing that anybody knows.

    Parameters
    ----------
    most : how many rows of each person count
    permutation : gives, for n, the numbers 0 to n - 1 in a secret order that is uniform and independent of everything else
    """

    most: int
    permutation: Callable[[int], Indices]

    def drawn(self, persons: Indices) -> Indices | None:
        """Positions of the rows that count, in rising order; None if all rows count.

        Parameters
        ----------
        persons : (n,) whole numbers, equal for rows of one person
        """
        shuffled = self.permutation(persons.size)
        order = shuffled[np.argsort(persons[shuffled], kind="stable")]
        grouped = persons[order]
        is_first = np.append(True, grouped[1:] != grouped[:-1])
        earlier = np.arange(persons.size) - np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        kept: Indices = np.sort(order[earlier < self.most])
        return None if kept.size == persons.size else kept


def rows_that_count(schema: Schema, rows_per_person: RowsPerPerson, *columns: Any) -> tuple[Indices | None, int]:
    """Positions of the rows that count, in rising order, or None if all do; and the number of all rows.

    Rows of a cohort count by their own cells alone, so that a row of another cohort changes nothing: a missing cell is none
    of the cohort (accounting/proofs/cohorts.md, section 2). Of persons, some rows are drawn.

    Parameters
    ----------
    schema : names the column that decides
    rows_per_person : which rows of each person count
    *columns : one or more parts of that column

    Raises
    ------
    InputError
        If the column cannot be read so, or no row is of the cohort.
    """
    what = f'column "{schema.choosing}"'
    if schema.cohort is None:
        persons = read_identities(what, *columns)
        return rows_per_person.drawn(persons), persons.size
    own = np.concatenate([labels_at(what, cells) == schema.cohort[1] for cells in columns])
    if not own.any():
        raise InputError(wording("cohort without rows", what=what, cohort=schema.cohort[1]))
    return (None if own.all() else np.flatnonzero(own)), own.size


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
    choosing : the column that decides which rows count, of persons or of cohorts, or None
    """

    schema: Schema
    columns: tuple[Any, ...]
    choosing: Any

    @classmethod
    def of(cls, frame: Any, schema: Schema, *, choosing: bool) -> RawTable:
        """The columns of a frame of any library that narwhals reads.

        Parameters
        ----------
        frame : pandas or Polars frame, or Arrow table
        schema : the public description of the columns
        choosing : whether to find the column that decides which rows count, if the schema names one

        Raises
        ------
        InputError
            If it is not a frame in memory, has no rows, lacks a column, or has two columns of one name.
        """
        names, chooses = schema.raw_names, schema.choosing if choosing else None
        found = columns_named(frame, *names, *(() if chooses is None else (chooses,)))
        by_name = dict(zip(names, found, strict=False))
        own = tuple(map(by_name.__getitem__, map(RAW_NAME, schema.columns)))
        return cls(schema, own, None if chooses is None else found[-1])

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return len(self.columns[0])

    def checked_columns(self, *, refuse: bool) -> Iterator[tuple[Any, bool]]:
        """`checked_column` of each column in turn.

        A column is read when it is asked for, so that not all columns are copied at the same time.
        """
        return (self.checked_column(place, refuse=refuse) for place in range(len(self.columns)))

    def columns_or_labels(self, labelled: Sequence[str], *, refuse: bool) -> tuple[Any, ...]:
        """The values (n,) of each column; of those that are `labelled` the canonical forms, None where a cell is missing."""
        return tuple(
            labels_at(f'column "{name}"', self.columns[place])
            if name in labelled
            else self.checked_column(place, refuse=refuse)[0]
            for place, name in enumerate([column.name for column in self.schema.columns])
        )

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
        return _numbers(column, cells, refuse) if column.is_number else _levels(column, cells, refuse)

    def counting(self, rows_per_person: RowsPerPerson) -> Indices | None:
        """Positions of the rows that count, in rising order; None if all do. See `rows_that_count`."""
        return rows_that_count(self.schema, rows_per_person, self.choosing)[0]


def columns_named(frame: Any, *names: str) -> tuple[Any, ...]:
    """The named columns of a frame of any library that narwhals reads, in the order of the names.

    Raises
    ------
    InputError
        If it is not a frame in memory, has no rows, or lacks a column, or has two columns of one name.
    """
    import narwhals.stable.v1 as nw

    if nw.dependencies.is_pyarrow_table(frame) and frame.num_rows:
        # The usual form of a piece of a file, of which a fit reads many.
        places = {name: place for place, name in enumerate(frame.column_names)}
        if len(places) == frame.num_columns and all(name in places for name in names):
            return tuple(frame.column(places[name]) for name in names)
    frame = _arrow_as_table(frame)
    is_array = isinstance(frame, np.ndarray) and frame.ndim == 2 and frame.dtype.kind in "fiub"
    if is_array and tuple(names) == names_by_position(n := len(names)):
        # The schema describes the columns of an array by their positions: x0, x1, ...
        if frame.shape[1] != n:
            raise InputError(f"X has {frame.shape[1]} columns, and the schema describes {n}: x0 to x{n - 1}.")
        return tuple(frame.T)
    try:
        table = nw.from_native(frame, pass_through=True)
        is_frame = isinstance(table, nw.DataFrame)
        present, n_rows = (set(table.columns), table.shape[0]) if is_frame else (set(), 0)
    except Exception:  # noqa: BLE001 - libraries raise different errors, above all for repeated names
        table, is_frame, present, n_rows = None, False, set(), 0
    if table is None and hasattr(frame, "columns"):
        repeated = [name for name in names if list(getattr(frame, "columns", ())).count(name) > 1]
        which = f" (these occur more than once: {listed(repeated)})" if repeated else ""
        raise InputError(f"the frame cannot be read: the names of its columns must all be different{which}.")
    if not is_frame:
        raise InputError(wording("schema needs a frame"))
    absent = [name for name in names if name not in present]
    if absent:
        raise InputError(f"the frame lacks columns that the schema describes: {listed_absent(absent, present)}.")
    if n_rows == 0:
        raise InputError("the frame has no rows; at least one is needed.")
    return tuple(table[name] for name in names)


def _arrow_as_table(frame: Any) -> Any:
    """An Arrow table of a record batch or a stream of any library; anything else as it is."""
    is_batch = hasattr(frame, "__arrow_c_array__") and hasattr(frame, "schema")
    # A frame of pandas, Polars or DuckDB and an Arrow table have a shape.
    if not is_batch and (not hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "shape")):
        return frame
    pa: Any = imported("pyarrow", "an Arrow stream", "files")
    with suppress(Exception):  # any message may quote cells
        return pa.Table.from_batches([pa.record_batch(frame)]) if is_batch else pa.table(frame)
    raise InputError("an Arrow stream cannot be read: it is damaged, or was read before.")


def _numbers(column: NumberColumn, cells: Any, refuse: bool) -> tuple[CellNumbers, bool]:
    """The numbers of a column, NaN for missing ones, and whether one of them lies within the bounds."""
    what = f'column "{column.raw_name}"'
    numbers = read_numbers(what, cells, refuse) if column.holds_numbers else numbers_in(column, cells, refuse)
    if column.missing_codes and column.holds_numbers:
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
            raise InputError(wording("missing values undeclared", what=what))
        numbers = np.where(infinite, np.nan, numbers).astype(numbers.dtype)
    if not refuse or any(column.low <= float(end) <= column.high for end in ends):
        return numbers, refuse
    # Some numbers may lie within the bounds although both ends do not, or are NaN.
    # As numbers of Python the bounds would be rounded to the precision of the column.
    return numbers, bool(((numbers >= np.float64(column.low)) & (numbers <= np.float64(column.high))).any())


def numbers_in(column: NumberColumn, cells: Any, refuse: bool = True) -> CellNumbers:
    """The numbers of a column (n,): of numbers, of dates, or the ranks of the levels of an ordered category.

    Missing cells, and codes for them, are NaN, as is a level that is not listed where cells may be missing.
    """
    what = f'column "{column.raw_name}"'
    if column.ordered:
        missing = len(column.ordered)
        known = column.known | {canonical_label(code): missing for code in column.missing_codes}
        levels = read_levels(what, cells, known, missing=missing, unknown=missing if column.missing else NO_LEVEL)
        if refuse and (levels == NO_LEVEL).any():
            raise InputError(wording("levels without a place", what=what))
        return np.append(np.arange(float(missing)), (np.nan, np.nan))[levels]
    cells = read_dates(what, cells, column.format, refuse) if column.part else read_numbers(what, cells, refuse)
    return column.numbers_from(cells)


def part_levels(column: CategoryColumn, cells: Any, missing: int, refuse: bool = True) -> Levels:
    """The level (n,) of a part of a date, `missing` where there is no date."""
    days = read_dates(f'column "{column.raw_name}"', cells, column.format, refuse)
    parts = part_of(np.where(np.isin(days, column.missing_codes), np.nan, days), str(column.part))
    return np.asarray(np.where(np.isnan(parts), missing, parts).astype(np.int8))


def _levels(column: CategoryColumn, cells: Any, refuse: bool) -> tuple[Levels, bool]:
    """The levels of a column, and whether a cell holds a listed category.

    The levels are the listed categories, then the level of unlisted ones and that of missing ones, where they are declared.
    """
    what = f'column "{column.raw_name}"'
    known, listed_other = column.known, column.other not in (True, False)
    unlisted = _COUNTS_AS_LISTED if listed_other else column.unlisted_level
    missing = column.missing_level if column.missing else unlisted if column.other else _UNDECLARED_GAP
    if column.part is not None:
        levels = part_levels(column, cells, missing, refuse)
    else:
        codes = {canonical_label(code): missing for code in column.missing_codes}
        found, form = None, column.label_of if column.prefix else canonical_label
        with suppress(InputError) if column.prefix else nullcontext():
            found = read_levels(what, cells, known | codes, missing=missing, unknown=unlisted, form=form)
        if found is None:
            raise InputError(wording("codes without zeros", what=what))
        levels = found
    is_used = refuse and bool(((levels >= 0) & (levels < len(column.categories))).any())
    undeclared = levels == _UNDECLARED_GAP
    if refuse and undeclared.any():
        raise InputError(f"{what}: holds missing values{_what_to_do(known)}")
    levels[undeclared] = NO_LEVEL
    if listed_other:
        levels[levels == _COUNTS_AS_LISTED] = column.unlisted_level
    return levels, is_used


def _what_to_do(known: Container[str | None]) -> str:
    """How a message about missing cells of a category ends; a reader may have made some of a level such as NA."""
    if lost := [word for word in MISSING_WORDS if word in known]:
        return wording("missing cells with a lost level", level=lost[0])
    return wording("missing cells without a level")
