"""Plain numbers: those on a linear scale without knots. Those of one block are encoded together.

Encoding each column by itself would take longer for the calls than for the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.features.cells import CellNumbers
from confide.features.columns import NumberColumn
from confide.types import Array

_SINGLE_PRECISION_LIMIT = 2.0**100
"""Bounds below this, and ranges above its inverse, can be used in single precision without overflow."""


def rows_of(columns: Sequence[CellNumbers], which: Sequence[int], rows: slice) -> list[CellNumbers]:
    """Some rows of some of the columns, as views (m,)."""
    return [columns[place][rows] for place in which]


class PlainNumbers:
    """How plain numbers are encoded: clipped to their bounds and stretched to [-1, 1].

    Parameters
    ----------
    columns : each column with the position of its encoded column

    Attributes
    ----------
    count : how many columns there are
    """

    def __init__(self, columns: Sequence[tuple[NumberColumn, int]]) -> None:
        self.count = len(columns)
        self._low = np.array([column.low for column, _ in columns]).reshape(-1, 1)
        self._high = np.array([column.high for column, _ in columns]).reshape(-1, 1)
        self._width = self._high - self._low
        ends = np.concatenate([self._low, self._high])
        moderate = bool((np.abs(ends) < _SINGLE_PRECISION_LIMIT).all()) and bool(
            (self._width > 1.0 / _SINGLE_PRECISION_LIMIT).all()
        )
        self._in_single_precision = moderate and bool((self._low.astype(np.float32) == self._low).all())
        starts = [start for _, start in columns]
        in_one_piece = starts == list(range(starts[0], starts[0] + len(starts))) if starts else False
        self._places = slice(starts[0], starts[0] + len(starts)) if in_one_piece else np.array(starts, dtype=np.intp)
        self._indicators = [(row, start + 1) for row, (column, start) in enumerate(columns) if column.missing]

    def write(self, numbers: Sequence[CellNumbers], out: Array) -> None:
        """Encode the numbers of one block.

        The result is that of `NumberColumn.stretched`, except that numbers that are missing or infinite become 0.

        Parameters
        ----------
        numbers : `count` arrays (m,), which are not written to
        out : (n_features, m), of which the columns of these numbers are filled
        """
        if not numbers or not out.size:
            return
        # A slice gives a view, so the result is written in place.
        stretched = out[self._places] if isinstance(self._places, slice) else np.empty((self.count, out.shape[1]), out.dtype)
        absent = self.stretch(numbers, stretched)
        if not isinstance(self._places, slice):
            out[self._places] = stretched
        for row, place in self._indicators:
            out[place] = 0.0 if absent is None else absent[row]

    def stretch(self, numbers: Sequence[CellNumbers], out: Array) -> NDArray[np.bool_] | None:
        """Encode the numbers of one block, without indicators of those that are missing.

        Parameters
        ----------
        numbers : `count` arrays (m,), which are not written to
        out : (count, m), which is filled

        Returns
        -------
        (count, m) whether a number is missing or infinite, so that it became 0; None if all are within their bounds
        """
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
