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


def block_of(columns: Sequence[CellNumbers], which: Sequence[int], rows: slice) -> CellNumbers:
    """Some rows of some columns as one array (len(which), m), float64 if one of the columns is."""
    chosen = [columns[place][rows] for place in which]
    return np.concatenate(chosen).reshape(len(chosen), -1) if chosen else np.empty((0, 0))


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

    def write(self, numbers: NDArray[np.floating[Any]], out: Array) -> None:
        """Encode the numbers of one block.

        The result is that of `NumberColumn.stretched`, except that numbers that are missing or infinite become 0.

        Parameters
        ----------
        numbers : (count, m), which are not written to
        out : (n_features, m), of which the columns of these numbers are filled
        """
        if not numbers.size:
            return
        # A slice gives a view, so the result is written in place.
        stretched = out[self._places] if isinstance(self._places, slice) else np.empty(numbers.shape, out.dtype)
        absent = self.stretch(numbers, stretched)
        if not isinstance(self._places, slice):
            out[self._places] = stretched
        for row, place in self._indicators:
            out[place] = 0.0 if absent is None else absent[row]

    def stretch(self, numbers: NDArray[np.floating[Any]], out: Array) -> NDArray[np.bool_] | None:
        """Encode the numbers of one block, without indicators of those that are missing.

        Parameters
        ----------
        numbers : (count, m), which are not written to
        out : (count, m), which is filled

        Returns
        -------
        (count, m) whether a number is missing or infinite, so that it became 0; None if all are within their bounds
        """
        with np.errstate(all="ignore"):
            # The comparisons are written so that NaN counts as outside.
            least, most = numbers.min(axis=1, keepdims=True), numbers.max(axis=1, keepdims=True)
            inside = bool((least >= self._low).all()) and bool((most <= self._high).all())
            self._stretch(numbers if inside else np.minimum(np.maximum(numbers, self._low), self._high), out)
        if inside:
            return None
        absent: NDArray[np.bool_] = ~np.isfinite(numbers)
        out[absent] = 0.0
        return absent

    def _stretch(self, numbers: NDArray[np.floating[Any]], out: Array) -> None:
        if out.dtype == np.float32 and numbers.dtype == np.float32 and self._in_single_precision:
            # The lower bound is subtracted first: this loses no digits if numbers are large compared with their range.
            np.subtract(numbers, self._low.astype(np.float32), out=out)
            out *= (2.0 / self._width).astype(np.float32)
            out -= np.float32(1.0)
            return
        if out.dtype == np.float32:
            exact = np.empty(out.shape)
            self._stretch(numbers, exact)
            np.copyto(out, exact, casting="same_kind")
            return
        # Copying first is faster than one subtraction that also changes the type of the numbers.
        np.copyto(out, numbers)
        out -= self._low
        out /= self._width
        out *= 2.0
        out -= 1.0
