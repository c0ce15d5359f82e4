"""How cells fit the description of their column, and rows their persons, counted piece by piece."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Indices
from confide.data.files import CSV_MISSING
from confide.errors import InputError
from confide.features.canonical_labels import MISSING_WORDS, canonical_label
from confide.features.cells import distinct_cells, number_in, positions_by_label, read_levels, read_numbers
from confide.features.columns import Column, NumberColumn
from confide.features.schema import Target
from confide.features.table import ROUNDED, identity_in, numbers_in, part_levels, spelling_of
from confide.studies.text_tables import Batch, cells_in, distinct_in

# Which text of a CSV file a fit reads as a number, as a missing cell, or not at all.
#
# A fit lets pyarrow convert a column of numbers, and one cell that is no number ends the conversion. Here the same grammar
# is written down, so that such cells can be counted. The tests compare it with pyarrow.

_NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NOT_FINITE = r"[+-]?(?i:inf|infinity|nan(\([0-9A-Za-z_]*\))?)"
_READABLE = f"^({_NUMBER}|{_NOT_FINITE})$"
_DECIMAL_COMMA = r"^\s*[+-]?([0-9]+|[0-9]{1,3}([. ][0-9]{3})+),[0-9]+\s*$"


def read_texts(texts: Any) -> tuple[Array, Array, Array]:
    """What a fit makes of the cells of a column of numbers in a CSV file.

    Parameters
    ----------
    texts : Arrow array of text; a null is a missing cell

    Returns
    -------
    numbers : float64; NaN for a missing cell, and for one that cannot be read
    unreadable : whether the text is neither a number nor a missing cell
    decimal_comma : whether an unreadable text is a number with a decimal comma
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    missing = pc.or_kleene(pc.is_null(texts), pc.is_in(texts, pa.array(CSV_MISSING, texts.type)))
    trimmed = pc.utf8_trim(texts, " \t")
    readable = pc.fill_null(pc.match_substring_regex(trimmed, _READABLE), False)
    numbers = pc.if_else(pc.and_(readable, pc.invert(missing)), trimmed, pa.scalar(None, texts.type)).cast(pa.float64())
    unreadable = pc.and_(pc.invert(readable), pc.invert(missing)).to_numpy(zero_copy_only=False)
    commas = pc.fill_null(pc.match_substring_regex(texts, _DECIMAL_COMMA), False).to_numpy(zero_copy_only=False)
    return np.asarray(numbers.to_numpy(zero_copy_only=False), dtype=np.float64), unreadable, unreadable & commas


_MISSING, _UNLISTED = -2, -1
_MOST_REMEMBERED = 1000
"""How many unlisted levels, or numbers outside the bounds, of one column are remembered."""
FEWEST_OF_A_CODE = 3
"""In so many cells a code for missing cells must be found."""
_NEAR_A_CODE = 5.0
"""How near a number is to a code that might be one of a tail, as 98 is to 99."""
TYPICAL_CODE = re.compile(r"-?([789])\1*(\.\1+)?|-[1-6]")
"""How codebooks write such codes: 9, 99, 999.9, -9, 88 and -1."""


@dataclass(slots=True)
class ColumnCounts:
    """Counts of the cells of one column.

    Parameters
    ----------
    name : name of the column
    described : its description: `NumberColumn`, `CategoryColumn` or `Target`
    remembers : whether unlisted levels are remembered
    least : of a weight, an exposure or a count the smallest that a fit takes; it refuses a smaller one, and a missing one

    Attributes
    ----------
    rows : all cells
    missing, unreadable, infinite : cells that are empty, are neither empty nor a number, or are infinite numbers; words such
        as NA are empty cells unless they are listed levels
    missing_words : those missing cells of levels that hold such a word
    decimal_commas : unreadable cells that are numbers with a decimal comma
    below, above : numbers that a fit clips to low or high
    unlisted : cells that hold none of the listed levels
    by_level : how many cells hold each listed level, in the order of the description
    levels : unlisted levels and how many cells hold each, if they are remembered
    outside : numbers outside the bounds and how many cells hold each, of so many different ones
    refused : numbers below `least`
    zeros : numbers that are 0
    """

    name: str
    described: Column | Target
    remembers: bool = False
    least: float = -math.inf
    rows: int = 0
    refused: int = 0
    zeros: int = 0
    missing: int = 0
    missing_words: int = 0
    unreadable: int = 0
    decimal_commas: int = 0
    infinite: int = 0
    below: int = 0
    above: int = 0
    unlisted: int = 0
    by_level: list[int] = field(default_factory=list)
    levels: Counter[str] = field(default_factory=Counter)
    outside: Counter[float] = field(default_factory=Counter)

    @property
    def raw_name(self) -> str:
        """The column of the table that is read."""
        return getattr(self.described, "raw_name", self.name)

    @property
    def is_target(self) -> bool:
        """Whether it is the column that is predicted."""
        return isinstance(self.described, Target)

    @property
    def clipped(self) -> int:
        """Numbers outside the bounds."""
        return self.below + self.above

    @property
    def likely_codes(self) -> tuple[float, ...]:
        """Numbers outside the bounds that repeat as codes for missing cells do: 999 or -9, or one far away alone."""
        if self.described.bounds is None:
            return ()
        low, high = self.described.bounds
        typical = {value for value in self.outside if TYPICAL_CODE.fullmatch(f"{value:.10g}")}
        values = []
        for value, count in self.outside.items():
            near = (self.outside[code] for code in self.outside if abs(code - value) <= _NEAR_A_CODE and code not in typical)
            is_typical = value in typical and count > 2 * max(near, default=0)
            beyond = self.below if value < low else self.above
            is_alone = max(low - value, value - high) > high - low and 2 * count >= beyond
            if count >= FEWEST_OF_A_CODE and (is_typical or is_alone):
                values.append(value)
        return tuple(sorted(values, key=lambda value: -self.outside[value]))

    @property
    def as_described(self) -> int:
        """Cells that hold a number within the bounds, or a listed level."""
        if self.described.bounds is None:
            return sum(self.by_level)
        return self.rows - self.missing - self.unreadable - self.infinite - self.clipped

    def add(self, piece: Batch, *, from_text: bool) -> None:
        """Count the cells of a piece of a table, which are all text if it comes from a file of text."""
        cells = cells_in(piece, self.raw_name)
        self.rows += len(cells)
        try:
            if self.described.bounds is None:
                self._add_levels(piece, cells)
            else:
                column: Any = self.described
                is_plain = getattr(column, "holds_numbers", True)
                read = _numbers(self.name, cells, from_text=from_text) if is_plain else _dates_or_ranks(column, cells)
                self._add_numbers(*read, *self.described.bounds)
        except InputError:
            self.unreadable += len(cells)  # lists, dates among levels, and the like: a fit refuses the whole column

    def _add_numbers(self, numbers: Array, unreadable: Any, commas: Any, low: float, high: float) -> None:
        if isinstance(self.described, NumberColumn) and self.described.holds_numbers:
            numbers = np.asarray(self.described.without_codes(numbers), dtype=np.float64)
        infinite = np.isinf(numbers)
        self.unreadable += int(unreadable.sum())
        self.decimal_commas += int(commas.sum())
        self.missing += int(np.isnan(numbers).sum() - unreadable.sum())
        self.infinite += int(infinite.sum())
        self.refused, self.zeros = self.refused + int((numbers < self.least).sum()), self.zeros + int((numbers == 0.0).sum())
        below, above = (numbers < low) & ~infinite, (numbers > high) & ~infinite
        self.below += int(below.sum())
        self.above += int(above.sum())
        values, counts = np.unique(numbers[below | above], return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            if value in self.outside or len(self.outside) < _MOST_REMEMBERED:
                self.outside[value] += count

    def _add_levels(self, piece: Batch, cells: Any) -> None:
        column: Any = self.described
        what = f'column "{self.raw_name}"'
        known = {canonical_label(level): position for position, level in enumerate(column.labels)}
        also_known = positions_by_label(column.labels) if self.is_target else column.known
        form = column.label_of if getattr(column, "prefix", None) else canonical_label
        words: dict[str | None, int] = {word: len(known) for word in MISSING_WORDS if word not in known}
        words |= {canonical_label(code): _MISSING for code in self.described.missing_codes}
        if getattr(column, "part", None) is not None:
            levels = part_levels(column, cells, missing=_MISSING)
        else:
            levels = read_levels(what, cells, also_known | words, missing=_MISSING, unknown=_UNLISTED, form=form)
        *counted, in_words = np.bincount(levels + 2, minlength=len(known) + 3).tolist()
        self.missing += counted[0] + in_words
        self.missing_words += in_words
        self.unlisted += counted[1]
        self.by_level = [before + now for before, now in zip(self.by_level or [0] * len(known), counted[2:], strict=True)]
        known |= words
        for value, count in distinct_in(piece, self.raw_name) if self.remembers and counted[1] else ():
            label = canonical_label(value)
            if label is not None and label not in known and (label in self.levels or len(self.levels) < _MOST_REMEMBERED):
                self.levels[label] += count


def _dates_or_ranks(column: NumberColumn, cells: Any) -> tuple[Array, Any, Any]:
    """What `_numbers` gives, of a column of dates or of an ordered category."""
    import pyarrow as pa

    numbers = np.asarray(numbers_in(column, cells, refuse=False), dtype=np.float64)
    unreadable = np.zeros(numbers.size, dtype=bool)
    if np.isnan(numbers).any() and not pa.types.is_temporal(cells.type):
        values, positions = distinct_cells(f'column "{column.raw_name}"', cells)
        unreadable = np.array([not column.can_read(value) for value in values] + [False])[positions]
    return numbers, unreadable, np.zeros(numbers.size, dtype=bool)


def _numbers(name: str, cells: Any, *, from_text: bool) -> tuple[Array, Any, Any]:
    """The number in each cell (NaN if there is none), whether it is unreadable, and whether it has a decimal comma."""
    import pyarrow as pa

    what = f'column "{name}"'
    if from_text:
        coded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
        positions: Indices = coded.indices.cast(pa.int64()).fill_null(len(coded.dictionary)).to_numpy(zero_copy_only=False)
        # The last entry stands for null cells, which are missing.
        numbers, *others = read_texts(coded.dictionary)
        unreadable, commas = (np.append(other, False)[positions] for other in others)
        return np.append(numbers, np.nan)[positions], unreadable, commas
    numbers = np.asarray(read_numbers(what, cells, refuse=False), dtype=np.float64)
    values: list[object] = []
    if not (pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)):
        values, positions = distinct_cells(what, cells)
    if not values:
        return numbers, np.zeros(numbers.size, dtype=bool), np.zeros(numbers.size, dtype=bool)
    unreadable = np.array([number_in(value) is None for value in values] + [False])[positions]
    texts = pa.array([value if isinstance(value, str) else None for value in values], pa.string())
    return numbers, unreadable, np.append(read_texts(texts)[2], False)[positions] & unreadable


# How many rows each person has, how persons are spelled, and how many rows repeat another row of the same person.
#
# Persons, their spellings and rows are remembered as fingerprints of 8 bytes each, so memory grows with their number, but
# not with their size.

Fingerprints = NDArray[np.uint64]


class PersonCounts:
    """Counts of the rows of persons.

    Parameters
    ----------
    name : the column that identifies persons
    columns : the columns that are compared to find repeated rows
    """

    def __init__(self, name: str, columns: tuple[str, ...]) -> None:
        self.name = name
        self.missing = 0
        self.rounded = 0
        self._columns = columns
        self._persons: list[Fingerprints] = []
        self._spellings: list[Fingerprints] = []
        self._rows: list[Fingerprints] = []

    def add(self, piece: Batch) -> None:
        """Count the rows of a piece."""
        values, positions = distinct_cells(f'column "{self.name}"', cells_in(piece, self.name))
        identities = [_identity(value) for value in values]
        persons = np.array([*map(_fingerprint, identities), 0], dtype=np.uint64)[positions]
        self.rounded += int(np.array([identity == ROUNDED for identity in identities] + [False])[positions].sum())
        spelled = [_fingerprint(identity and spelling_of(identity)) for identity in identities]
        self._spellings.append(np.array(spelled, dtype=np.uint64))
        known = persons != 0
        self.missing += int((~known).sum())
        self._persons.append(persons[known])
        self._rows.append(_fingerprints_of_rows(piece, self._columns, persons)[known])

    def summary(self, most: int) -> dict[str, int]:
        """What is to be shown.

        Parameters
        ----------
        most : the largest number of rows of one person that a fit is told, --max-rows-per-person

        Returns
        -------
        dict
            persons; rows_without_person; rounded_rows, whose person is a number that its type rounds; respelled, how many
            persons are another one in another spelling; most_rows, of one person; persons_above, who have more than `most`;
            rows_above, that a fit leaves out of them; repeated_rows, which equal another row of their person in every
            described column.
        """
        persons = np.concatenate(self._persons) if self._persons else np.zeros(0, dtype=np.uint64)
        rows = np.concatenate(self._rows) if self._rows else np.zeros(0, dtype=np.uint64)
        _, counts = np.unique(persons, return_counts=True)
        spellings = np.unique(np.concatenate([*self._spellings, np.zeros(1, dtype=np.uint64)]))
        above = counts[counts > most]
        return {
            "persons": int(counts.size),
            "rows_without_person": self.missing,
            "rounded_rows": self.rounded,
            "respelled": int(counts.size - (spellings.size - 1)),
            "most_rows": int(counts.max(initial=0)),
            "persons_above": int(above.size),
            "rows_above": int((above - most).sum()),
            "repeated_rows": int(rows.size - np.unique(rows).size),
        }


def _identity(value: object) -> str | None:
    """The identity of a person; None if it is missing or is none."""
    with suppress(TypeError, ValueError):
        return identity_in(value)
    return None


def _fingerprint(identity: str | None) -> int:
    """8 bytes of a hash of an identity; 0 if there is none."""
    if identity is None:
        return 0
    return int.from_bytes(hashlib.blake2b(identity.encode(), digest_size=8).digest(), "little") or 1


def _fingerprints_of_rows(piece: Batch, columns: tuple[str, ...], persons: Fingerprints) -> Fingerprints:
    """8 bytes for each row: of its person and of its cells in these columns."""
    import pandas as pd

    frame: Any = piece.select(list(columns)).to_pandas()
    try:
        hashes = pd.util.hash_pandas_object(frame, index=False)
    except TypeError:  # lists and the like
        hashes = pd.util.hash_pandas_object(frame.astype(str), index=False)
    return np.asarray(hashes, dtype=np.uint64) ^ (persons * np.uint64(0x9E3779B97F4A7C15))
