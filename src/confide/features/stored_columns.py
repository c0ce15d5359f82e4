"""Codes of columns as the compiled kernel reads them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.compiled.stored_rows import CURVE, LEVELS, LINE, StoredCodes, StoredColumn
from confide.erm.coded_rows import unchangeable
from confide.features.codes import Codes
from confide.features.column_encodings import HAT_HEIGHT, CategoryEncoding, ColumnEncoding, NumberEncoding, is_kept_as_is
from confide.features.layout import Group

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
        kept = [(each, group) for each, group in encoded if is_kept_as_is(each)]
        others = [(each, group) for each, group in encoded if not is_kept_as_is(each)]
        self._n_features = n_features
        self._columns = tuple(_stored(each, group) for each, group in (*kept, *others))

    @property
    def is_certified(self) -> bool:
        """Whether the kernel is trusted with the gradients of these columns on which certificates rest."""
        steps = (column.step for column in self._columns if column.kind != LEVELS)
        moderate = all(1.0 / _LARGEST_STEP <= step <= _LARGEST_STEP for step in steps)
        return moderate and self._n_features >= _FEWEST_CERTIFIED

    def of(self, codes: Codes) -> StoredCodes | None:
        """The rows, in the memory of the codes; None for types of numbers that the kernel does not read."""
        arrays = tuple(np.require(each, requirements=["C", "A"]) for each in (*codes.numbers, *codes.others))
        if not all(
            _is_read(array, "bhil" if column.kind == LEVELS else "fd", 4 if column.kind == LEVELS else 8)
            for array, column in zip(arrays, self._columns, strict=True)
        ):
            return None
        return StoredCodes(self._n_features, self._columns, arrays, codes.n_rows)


def _is_read(array: NDArray[Any], types: str, largest: int) -> bool:
    return array.dtype.char in types and array.dtype.itemsize <= largest and array.dtype.isnative


def _stored(encoding: ColumnEncoding, group: Group) -> StoredColumn:
    if isinstance(encoding, NumberEncoding):
        return _curve(encoding, group) if encoding.column.knots else _line(encoding, group)
    if isinstance(encoding, CategoryEncoding) and encoding.single.size:
        # The entry for no level comes last there, and first for the kernel.
        return StoredColumn(LEVELS, group.start, encoding.single.size, values=unchangeable(np.roll(encoding.single, 1)))
    return StoredColumn(LEVELS, group.start, group.size + 1, linked=encoding.linked)


def _line(encoding: NumberEncoding, group: Group) -> StoredColumn:
    column = encoding.column
    low, high = (column.low, column.high) if encoding.is_kept_as_is else (-1.0, 1.0)
    return StoredColumn(LINE, group.start, 1, _indicator(encoding, group), low, 2.0 / (high - low), high)


def _curve(encoding: NumberEncoding, group: Group) -> StoredColumn:
    low, step = (encoding.column.low, encoding.steps_per_unit) if encoding.is_kept_as_is else (0.0, 1.0)
    last = encoding.n_hats - 1.0
    # As in `CodedColumns`: the highest position lies just below the last hat.
    most, indicator = math.nextafter(last, 0.0), _indicator(encoding, group)
    return StoredColumn(CURVE, group.start, encoding.n_hats, indicator, low, step, most, 0.5 * last, _HEIGHT)


def _indicator(encoding: NumberEncoding, group: Group) -> int:
    return group.start + group.size - 1 if encoding.column.missing else -1
