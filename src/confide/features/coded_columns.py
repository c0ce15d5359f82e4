"""Encoded rows as coded rows: one entry for a category or a straight line, two neighbouring ones for a number with knots.

All numbers with knots are encoded together, in an array with one row for each row of the table. Its constants are repeated
for every row, because NumPy is several times faster then than where it has to repeat a short list of constants itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array
from confide.compiled.stored_rows import CURVE, LEVELS, LINE, StoredCodes, StoredColumn
from confide.erm.coded_rows import CodedLayout, CodedRows, unchangeable
from confide.features.codes import HAT_HEIGHT, Codes, ColumnEncoding, NumberEncoding, PlainNumbers
from confide.features.groups import Group

_COLUMNS_PER_ENTRY = 3
"""Rows without curves are coded if they have so many columns for each entry; else dense rows are as fast."""


_SINGLES = ("straight", "line", "category")
"""Kinds of columns with a single entry, in the order of their entries."""
_CURVES = ("raw curve", "beside a straight number", "curve", "beside a line")
"""Kinds of curves, in the order of their entries. The codes of raw ones are the numbers as they are."""


class CodedColumns:
    """How the columns of a table become coded rows. A schema with interactions of several columns has dense rows.

    Parameters
    ----------
    n_features : number of encoded columns
    encoded : each column with its group of encoded columns, in the order of the schema
    beside : the curves of straight numbers: the place of the column, how its hats are encoded, and their group
    """

    def __init__(
        self,
        n_features: int,
        encoded: Sequence[tuple[ColumnEncoding, Group]],
        beside: Sequence[tuple[int, NumberEncoding, Group]] = (),
    ) -> None:
        parts: dict[str, list[tuple[int, Any, Group]]] = {kind: [] for kind in (*_SINGLES, *_CURVES)}
        for place, (encoding, group) in enumerate(encoded):
            kind = "category"
            if encoding.is_number:
                with_knots, straight = ("raw curve", "straight") if encoding.is_kept_as_is else ("curve", "line")
                kind = with_knots if encoding.column.knots else straight
            parts[kind].append((place, encoding, group))
        for place, hats, group in beside:
            # The codes of a straight number are the number itself, or that number stretched to [-1, 1].
            kind = "beside a straight number" if encoded[place][0].is_kept_as_is else "beside a line"
            parts[kind].append((place, hats, group))
        self._categories, self._n_straight = parts["category"], len(parts["straight"])
        self._lines = [place for place, _, _ in parts["line"]]
        self._stretch = PlainNumbers([(place, encoding.column, 0) for place, encoding, _ in parts["straight"]])
        self._gaps = tuple(bool(part[1].column.missing) for part in (*parts["straight"], *parts["line"]))
        n_raw = len(parts["raw curve"])
        self._may_be_infinite = range(n_raw, n_raw + len(parts["beside a straight number"]))
        self._indicators: dict[int, int] = {}
        curves: list[tuple[Any, ...]] = []
        for kind in _CURVES:
            for place, encoding, group in parts[kind]:
                if encoding.column.missing:
                    self._indicators[len(curves)] = _indicator(encoding, group)
                last = encoding.n_hats - 1.0
                # The position of a number among even knots is an affine function of it. Codes of other curves are positions.
                if kind == "curve":
                    low, step = 0.0, 1.0
                elif kind == "beside a line":
                    low, step = -1.0, 0.5 * last
                else:
                    low, step = encoding.column.low, encoding.steps_per_unit
                # The highest position lies just below the last one, so that its whole part is that of the last but one.
                curves.append((place, low, step, math.nextafter(last, 0.0), 0.5 * last, float(group.start)))
        columns = tuple(zip(*curves, strict=True)) or ((),) * 6
        self._curves, self._lows, self._steps, self._most, self._middles, self._starts = columns
        both = ([group for kind in kinds for _, _, group in parts[kind]] for kinds in (_SINGLES, _CURVES))
        singles, pairs = (tuple((group.start, group.start + group.size) for group in groups) for groups in both)
        self._layout = CodedLayout(n_features, singles, pairs)

    @property
    def pays(self) -> bool:
        """Whether coded rows are faster than dense ones."""
        # Hats cost far more as dense columns than as entries, however few they are (benchmarks/coded_rows.py).
        return bool(self._layout.pairs) or self._layout.n_features >= _COLUMNS_PER_ENTRY * self._layout.width

    def block(self, codes: Codes, start: int, stop: int) -> CodedRows:
        """Encoded rows start to stop, for a small number of rows."""
        size = (stop - start) * self._layout.width
        columns, entries = np.empty(size, np.int32), np.empty(size)
        single_columns, first, second = self._layout.parts(columns)
        single, first_entries, second_entries = self._layout.parts(entries)
        if self._layout.pairs:
            self._write_pairs(codes, slice(start, stop), (first, second), (first_entries, second_entries))
        if self._layout.singles:
            single_columns[...] = [begin for begin, _ in self._layout.singles]
            self._write_numbers(codes, slice(start, stop), single_columns, single)
            self._write_categories(codes, slice(start, stop), single_columns, single)
        return CodedRows(self._layout, columns, entries)

    def _write_pairs(self, codes: Codes, rows: slice, columns: tuple[Any, Any], entries: tuple[Array, Array]) -> None:
        (first, second), (falling, rising) = columns, entries
        n_rows, positions = len(first), np.empty(first.shape)
        for place, column in enumerate(self._curves):
            positions[:, place] = codes.columns[column][rows]
            if place in self._may_be_infinite:
                # Codes of a line may be infinite, and then the number counts as missing.
                positions[np.isinf(positions[:, place]), place] = np.nan
        with np.errstate(invalid="ignore", over="ignore"):
            positions -= _repeated(self._lows, n_rows)
            positions *= _repeated(self._steps, n_rows)
            np.maximum(positions, 0.0, out=positions)
            np.minimum(positions, _repeated(self._most, n_rows), out=positions)
        # Positions are finite now, except for numbers that are missing.
        absent = np.isnan(positions) if np.isnan(positions.sum()) else None
        if absent is not None:
            positions[absent] = np.broadcast_to(self._middles, absent.shape)[absent]
        # The memory of one result holds the whole part of the position until the result is written.
        whole = np.floor(positions, out=falling)
        positions -= whole
        whole += _repeated(self._starts, n_rows)
        np.copyto(first, whole, casting="unsafe")
        np.add(first, 1, out=second)
        np.multiply(positions, HAT_HEIGHT, out=rising)
        np.subtract(HAT_HEIGHT, rising, out=falling)
        if absent is not None:
            for place, indicator in self._indicators.items():
                gaps = absent[:, place]
                first[gaps, place], second[gaps, place] = indicator - 1, indicator
                falling[gaps, place], rising[gaps, place] = 0.0, 1.0

    def _write_numbers(self, codes: Codes, rows: slice, columns: NDArray[np.int32], entries: Array) -> None:
        n_straight = self._n_straight
        if n_straight and len(columns):
            stretched = np.empty((n_straight, len(columns)))
            absent = self._stretch.stretch(codes, rows, stretched)
            entries[:, :n_straight] = stretched.T
            if absent is not None:
                for row in np.flatnonzero(self._gaps[:n_straight]):
                    entries[absent[row], row] = 1.0
                    columns[:, row] += absent[row]
        for place, column in enumerate(self._lines, start=n_straight):
            line = codes.columns[column][rows]
            entries[:, place] = line
            if self._gaps[place]:
                gaps = np.isnan(line)
                entries[gaps, place] = 1.0
                columns[:, place] += gaps

    def _write_categories(self, codes: Codes, rows: slice, columns: NDArray[np.int32], entries: Array) -> None:
        for place, (column, encoding, _) in enumerate(self._categories, start=len(self._gaps)):
            levels = codes.columns[column][rows]
            if encoding.single.size:
                entries[:, place] = encoding.single[levels]
            else:
                # A category without a level has an entry of 0.
                entries[:, place] = levels >= 0
                columns[:, place] += np.maximum(levels, 0)


@lru_cache(maxsize=32)
def _repeated(constants: tuple[float, ...], n_rows: int) -> Any:
    """A constant for each column, repeated for every row; one number if all are equal."""
    return constants[0] if len(set(constants)) == 1 else unchangeable(np.tile(np.array(constants), (n_rows, 1)))


# Codes of columns as the compiled kernel reads them.

_FEWEST_CERTIFIED = 5
"""With fewer encoded columns, the rounding bound might have no room for that of the entries that the kernel makes."""
_LARGEST_STEP = 2.0**900
"""Steps of columns (of a line, 2 over its range) lie between this and its inverse, so that none over- or underflows."""
_HEIGHT = unchangeable(np.array([HAT_HEIGHT]))


class StoredColumns:
    """How codes become the rows of `Encoder.block`, for the kernel. A schema with interactions has no such form.

    Parameters
    ----------
    n_features : number of encoded columns
    encoded : each column with its group of encoded columns, in the order of the schema
    """

    def __init__(self, n_features: int, encoded: Sequence[tuple[ColumnEncoding, Group]]) -> None:
        self._n_features = n_features
        # The kernel adds up the columns whose numbers are kept as they are first.
        self._order = sorted(range(len(encoded)), key=lambda place: not encoded[place][0].is_kept_as_is)
        self._columns = tuple(_stored(*encoded[place]) for place in self._order)

    @property
    def is_certified(self) -> bool:
        """Whether the kernel is trusted with the gradients of these columns on which certificates rest."""
        steps = (column.step for column in self._columns if column.kind != LEVELS)
        moderate = all(1.0 / _LARGEST_STEP <= step <= _LARGEST_STEP for step in steps)
        return moderate and self._n_features >= _FEWEST_CERTIFIED

    def of(self, codes: Codes) -> StoredCodes | None:
        """The rows, in the memory of the codes; None for types of numbers that the kernel does not read."""
        arrays = tuple(np.require(codes.columns[place], requirements=["C", "A"]) for place in self._order)
        for array, column in zip(arrays, self._columns, strict=True):
            types, largest = ("bhil", 4) if column.kind == LEVELS else ("fd", 8)
            if array.dtype.char not in types or array.dtype.itemsize > largest or not array.dtype.isnative:
                return None
        return StoredCodes(self._n_features, self._columns, arrays, codes.n_rows)


def _stored(encoding: ColumnEncoding, group: Group) -> StoredColumn:
    if not encoding.is_number:
        if encoding.single.size:
            # The entry for no level comes last there, and first for the kernel.
            return StoredColumn(LEVELS, group.start, encoding.single.size, values=unchangeable(np.roll(encoding.single, 1)))
        return StoredColumn(LEVELS, group.start, group.size + 1, linked=encoding.linked)
    column, indicator = encoding.column, _indicator(encoding, group)
    if not column.knots:
        low, high = (column.low, column.high) if encoding.is_kept_as_is else (-1.0, 1.0)
        return StoredColumn(LINE, group.start, 1, indicator, low, 2.0 / (high - low), high)
    low, step = (column.low, encoding.steps_per_unit) if encoding.is_kept_as_is else (0.0, 1.0)
    last = encoding.n_hats - 1.0
    # As in `CodedColumns`: the highest position lies just below the last hat.
    most = math.nextafter(last, 0.0)
    return StoredColumn(CURVE, group.start, encoding.n_hats, indicator, low, step, most, 0.5 * last, _HEIGHT)


def _indicator(encoding: NumberEncoding, group: Group) -> int:
    return group.start + group.size - 1 if encoding.column.missing else -1
