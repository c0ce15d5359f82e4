"""Checked rows in a compact form, a few bytes a cell, from which blocks of encoded rows are made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Indices
from confide.errors import hold
from confide.features.cells import CellNumbers, Levels
from confide.features.columns import CategoryColumn, Column, NumberColumn
from confide.features.schema import Schema


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Codes:
    """A checked frame in a compact form. It holds data: `Encoder.read` makes it, only for `Encoder.expand`.

    Parameters
    ----------
    schema : the schema by which the frame was read
    columns : one read-only array (n_rows,) for each column of the schema, in order, then one for each with atoms: which of
        them a number is, -1 for none. Of a number on a linear scale, without
        knots or with even ones: the numbers as they are, float32 or float64, NaN or infinite where one is missing or cannot
        be used. Of another number: float64 in [-1, 1] or, if it has knots, its position among them, 0 for its low; NaN if
        it is missing. Of a category: its level as a small integer, -1 for no level
        Columns whose atoms are still to be found come last, and no number is one of them yet
    kept : read-only positions (n_rows,) in the frame of the rows that are held here, in rising order; None if all are
    used : the columns with a cell that is a listed category or lies within the bounds, for `Encoder.refuse_unused`; empty if
        the rows were let pass unchecked
    cells : for each column whose atoms are still to be found, the cell of each number (n_rows,), see `features.atoms`
    """

    schema: Schema
    columns: tuple[NDArray[Any], ...]
    kept: Indices | None = None
    used: frozenset[str] = frozenset()
    cells: tuple[NDArray[Any], ...] = ()

    @property
    def n_rows(self) -> int:
        """Number of rows: public under replace-one, private under add-or-remove-one."""
        return len(self.columns[0])

    def taken(self, which: Indices | slice) -> Codes:
        """Some of the rows, by their positions here."""
        columns, cells = (tuple(array[which] for array in arrays) for arrays in (self.columns, self.cells))
        return Codes(self.schema, columns, cells=cells)

    def __repr__(self) -> str:
        return f"Codes({self.schema!r})"


# How one column becomes one group of encoded columns, whose entries have absolute values that add up to at most 1.
#
# - A number is clipped to its bounds and stretched to [-1, 1]. If cells may be missing, a second column is 1 where the
#   number is missing, and the first is 0 there.
# - A number with knots has one column for its low, each knot and its high. Each is a hat function: 1 at its own point, and
#   falling in a straight line to 0 at both neighbours (B-splines of degree 1). All are multiplied by 1 - 2^-36, which keeps
#   rounded sums below 1. A weight is the effect at its point, and effects between points are interpolated.
# - A category with exactly two levels has one column, -1 for the first level and 1 for the second. Any other category has
#   one column for each level, which is 1 where the row has that level. The levels are the listed categories, then "(other)"
#   and "(missing)" if they are declared. A category that is none of the levels gives zeros.
# - The atoms of a number are encoded like a category without a level for others, however many they are.

HAT_HEIGHT = 1.0 - 2.0**-36
"""Two hats add up to 1 except for rounding. With this height, the row bound sees at once that it need not clip any row."""


def encoding_of(column: Column) -> ColumnEncoding:
    """The encoding of a column, without its atoms."""
    return NumberEncoding(column) if column.is_number else CategoryEncoding(column)


def encodings_of(schema: Schema, sought: Sequence[NumberColumn] = (), slots: int = 0) -> tuple[ColumnEncoding, ...]:
    """How the columns of a schema are encoded, in order, then the atoms of those that have some, then slots for others."""
    with_atoms = (column for column in schema.columns if column.is_number and column.atoms)
    of_atoms = (CategoryEncoding(CategoryColumn(column.name, column.atoms), column) for column in with_atoms)
    names = tuple(map("(atom {})".format, range(1, slots + 1)))
    of_slots = (CategoryEncoding(CategoryColumn(column.name, names), column) for column in sought)
    return (*map(encoding_of, schema.columns), *of_atoms, *of_slots)


@dataclass(frozen=True, slots=True)
class NumberEncoding:
    """Numbers, clipped to public bounds and stretched to [-1, 1].

    On a linear scale, the codes of a straight column or of one with even knots are the numbers themselves. Other codes are
    numbers in [-1, 1] or, if the column has knots, positions among the knots, 0 for the low. NaN stands for a missing
    number.
    """

    is_number: ClassVar[Literal[True]] = True
    column: NumberColumn
    linked: ClassVar[bool] = False
    """Whether in every row exactly one of the encoded columns is 1 and the others are 0."""

    @property
    def is_plain(self) -> bool:
        """Whether it is encoded together with all other plain numbers (`PlainNumbers`)."""
        return self.column.is_straight

    @property
    def is_kept_as_is(self) -> bool:
        """Whether the codes are the numbers as they are: a linear scale, straight or with even knots."""
        even = self.column.scale == "linear" and self.column.has_even_knots
        return self.column.is_straight or (even and math.isfinite(self.steps_per_unit))

    @property
    def n_hats(self) -> int:
        """Number of hats; 0 for a straight line."""
        return self.column.n_knots + 2 if self.column.knots else 0

    @property
    def steps_per_unit(self) -> float:
        """How many even knots lie within one unit of the column, on a linear scale."""
        return (self.n_hats - 1) / (self.column.high - self.column.low)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the encoded columns. Even knots are shown with four digits if these differ."""
        name, points = self.column.name, self.column.knots_with_bounds
        shown = tuple(f"{point:.4g}" if abs(point) < 1e4 else f"{point:.0f}" for point in points)
        if not (self.column.has_even_knots and self.column.holds_numbers) or len(set(shown)) < len(shown):
            shown = self.column.texts_of(points)
        names = tuple(f"{name}~{value}" for value in shown) or (name,)
        return (*names, f"{name}=(missing)") if self.column.missing else names

    def codes(self, values: CellNumbers) -> NDArray[np.floating[Any]]:
        """The checked values of the column (n,) in a compact form (n,) from which blocks of encoded columns are made."""
        column = self.column
        if self.is_kept_as_is:
            return values
        stretched = column.stretched(values.astype(np.float64))
        if not column.missing:
            stretched[np.isnan(stretched)] = 0.0
        if not column.knots:
            return stretched
        if column.has_even_knots:
            # On the stretched scale such knots are evenly spaced: position 0 at -1 and the last one at 1.
            stretched += 1.0
            stretched *= (column.n_knots + 1) / 2.0
            return stretched
        points = column.stretched(np.array(column.knots_with_bounds))
        return np.asarray(np.interp(stretched, points, np.arange(float(points.size))))

    def write(self, codes: NDArray[Any], out: Array) -> None:
        """Fill `out`, the encoded columns of one block (size, m), from the codes of the block (m,)."""
        if self.column.knots:
            self.write_hats(self._positions(codes) if self.is_kept_as_is else codes, out)
        else:
            self.write_line(codes, out)

    def write_hats(self, positions: Array, out: Array) -> None:
        """Fill `out` (size, m) from positions (m,) among the knots, 0 for the low and NaN for a missing number."""
        places = np.arange(len(out) - bool(self.column.missing))[:, None]
        self._write(HAT_HEIGHT * np.maximum(1.0 - np.abs(positions - places), 0.0), positions, out)

    def write_line(self, stretched: Array, out: Array) -> None:
        """Fill `out` (size, m) from numbers (m,) in [-1, 1], NaN for a missing one."""
        self._write(stretched[None], stretched, out)

    def _write(self, entries: Array, codes: Array, out: Array) -> None:
        """Fill `out` with the entries of numbers (size, m), and with the indicator of those whose codes (m,) are missing."""
        numbers = out[:-1] if self.column.missing else out
        numbers[...] = entries
        if self.column.missing:
            absent = np.isnan(codes)
            numbers[:, absent] = 0.0
            out[-1] = absent

    def _positions(self, numbers: NDArray[np.floating[Any]]) -> Array:
        """Positions of numbers among even knots; those that are missing are NaN, or in the middle if none may be."""
        positions = numbers.astype(np.float64)
        with np.errstate(invalid="ignore", over="ignore"):
            positions -= self.column.low
            positions *= self.steps_per_unit
        np.clip(positions, 0.0, self.n_hats - 1.0, out=positions)
        if not self.column.missing:
            positions[np.isnan(positions)] = 0.5 * (self.n_hats - 1)
        return positions


@dataclass(frozen=True, slots=True)
class CategoryEncoding:
    """Categories, as levels. Their codes are the levels. Names are as for `NumberEncoding`.

    Parameters
    ----------
    column : the categories, or the atoms of a number, or slots for atoms that are still to be found
    number : the number whose atoms they are, or None
    """

    is_number: ClassVar[Literal[False]] = False
    is_plain: ClassVar[Literal[False]] = False
    is_kept_as_is: ClassVar[Literal[False]] = False
    column: CategoryColumn
    number: NumberColumn | None = None
    names: tuple[str, ...] = field(init=False, compare=False, repr=False)
    single: Array = field(init=False, compare=False, repr=False)
    """If there is one encoded column: its value for each level, and last, at index -1, for no level. Otherwise empty."""

    def __post_init__(self) -> None:
        levels = self.column.levels
        if self.number is not None:
            levels = self.number.texts_of(self.number.atoms) or levels
        columns = levels[1:] if len(levels) == 2 and self.number is None else levels
        values = [1.0, 0.0] if len(levels) == 1 else [-1.0, 1.0, 0.0] if len(columns) == 1 else []
        hold(self, names=tuple(f"{self.column.name}={level}" for level in columns), single=np.array(values))

    @property
    def linked(self) -> bool:
        return not self.single.size and self.column.other is not False

    def codes(self, values: Levels) -> Levels:
        return values

    def write(self, codes: NDArray[Any], out: Array) -> None:
        if self.single.size:
            out[0] = self.single[codes]
        else:
            out[...] = 0.0
            known = np.flatnonzero(codes >= 0)
            out[codes[known], known] = 1.0


ColumnEncoding: TypeAlias = NumberEncoding | CategoryEncoding


# Plain numbers: those on a linear scale without knots. Those of one block are encoded together.
#
# Encoding each column by itself would take longer for the calls than for the arithmetic.

_SINGLE_PRECISION_LIMIT = 2.0**100
"""Bounds below this, and ranges above its inverse, can be used in single precision without overflow."""


class PlainNumbers:
    """How plain numbers are encoded: clipped to their bounds and stretched to [-1, 1].

    Parameters
    ----------
    columns : for each column its place in the schema, the column, and the position of its encoded column
    """

    def __init__(self, columns: Sequence[tuple[int, NumberColumn, int]]) -> None:
        self._read, own, starts = map(list, zip(*columns, strict=True)) if columns else ([], [], [])
        ends = np.array(list(map(attrgetter("bounds"), own))).reshape(-1, 2)
        self._low, self._high = ends[:, :1], ends[:, 1:]
        self._width = self._high - self._low
        moderate = (np.abs(ends) < _SINGLE_PRECISION_LIMIT).all() and (self._width > 1.0 / _SINGLE_PRECISION_LIMIT).all()
        self._in_single_precision = bool(moderate and (self._low.astype(np.float32) == self._low).all())
        # A slice gives a view, so the result is written in place.
        self._in_place = bool(starts) and starts == list(range(starts[0], starts[0] + len(starts)))
        self._places = slice(starts[0], starts[0] + len(starts)) if self._in_place else np.array(starts, dtype=np.intp)
        self._indicators = [(row, starts[row] + 1) for row, column in enumerate(own) if column.missing]

    def write(self, codes: Codes, rows: slice, out: Array) -> None:
        """Encode the plain numbers of one block.

        The result is that of `NumberColumn.stretched`, except that numbers that are missing or infinite become 0.

        Parameters
        ----------
        codes : the rows, which are not written to
        rows : those of the block
        out : (n_features, m), of which the columns of these numbers are filled
        """
        if not self._read or not out.size:
            return
        stretched = out[self._places] if self._in_place else np.empty((len(self._read), out.shape[1]), out.dtype)
        absent = self.stretch(codes, rows, stretched)
        if not self._in_place:
            out[self._places] = stretched
        for row, place in self._indicators:
            out[place] = 0.0 if absent is None else absent[row]

    def stretch(self, codes: Codes, rows: slice, out: Array) -> NDArray[np.bool_] | None:
        """Encode the plain numbers of one block, without indicators of those that are missing.

        Parameters
        ----------
        codes, rows : as for `write`
        out : (number of columns, m), which is filled

        Returns
        -------
        (number of columns, m) whether a number is missing or infinite, so that it became 0; None if all are within bounds
        """
        numbers = [codes.columns[place][rows] for place in self._read]
        # Copying first is faster than one subtraction that also changes the type of the numbers.
        given: CellNumbers = np.stack(numbers, out=out if out.dtype == np.float64 else None)
        absent: NDArray[np.bool_] | None = None
        with np.errstate(all="ignore"):
            # The comparisons are written so that NaN counts as outside.
            least, most = given.min(axis=1, keepdims=True), given.max(axis=1, keepdims=True)
            if not (bool((least >= self._low).all()) and bool((most <= self._high).all())):
                absent = ~np.isfinite(given)
                in_place = given if given.dtype == np.float64 else None
                given = np.minimum(np.maximum(given, self._low, out=in_place), self._high, out=in_place)
            self._stretch(given, out)
        if absent is not None:
            out[absent] = 0.0
        return absent

    def _stretch(self, numbers: CellNumbers, out: Array) -> None:
        if out.dtype == np.float32 and numbers.dtype == np.float32 and self._in_single_precision:
            # The lower bound is subtracted first: this loses no digits if numbers are large compared with their range.
            np.subtract(numbers, self._low.astype(np.float32), out=out)
            out *= (2.0 / self._width).astype(np.float32)
            out -= np.float32(1.0)
            return
        exact: Any = numbers if numbers.dtype == np.float64 else numbers.astype(np.float64)
        exact -= self._low
        exact /= self._width
        exact *= 2.0
        exact -= 1.0
        if exact is not out:
            np.copyto(out, exact, casting="same_kind")
