"""The compiled kernel is tried on made-up codes before its sums over codes are trusted."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from confide.compiled.gradient_sums import code_of
from confide.compiled.loading import Kernel, is_plain
from confide.compiled.stored_rows import CURVE, LEVELS, LINE, StoredCodes, StoredColumn, SumOfSlopes
from confide.compiled.trials import CERTIFIED_LOSSES, kernel_if
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.types import Array

_CHECKED = (1, 37, 700)
"""Numbers of made-up rows: fewer than are encoded at once, and more."""
_HEIGHT = np.array([0.75])
_LEVELS = 300
"""Number of levels of which the kernel keeps one sum each. Of fewer levels it keeps several."""
_HATS = 6
"""Even, so that the middle lies between two hats."""


@cache
def tried_with_codes(_environment: str | None) -> Kernel | None:
    """The compiled module, if its sums over made-up codes are those of NumPy. It is tried once for each environment."""
    return kernel_if(lambda module: all(_agrees(module, n_rows) for n_rows in _CHECKED), "certified gradients of coded rows")


def _agrees(module: Kernel, n_rows: int) -> bool:
    """Whether sums over codes of every kind are those of NumPy over the rows that they stand for, in blocks and in one."""
    codes, expanded = _made_up(n_rows)
    places = np.arange(1.0 * n_rows)
    labels = np.where(places % 3 > 0, 1, -1).astype(np.int8)
    counts = 0.5 + 1.5 * np.sin(places)
    counts[0] = np.nan
    for kind in CERTIFIED_LOSSES:
        for intercept, of_rows, block in ((0.5, counts, 16), (0.0, None, 2048)):
            row_sum = RowSum(kind(), BallBound(np.inf), intercept, 1, 1.5)
            weights = 2.0 * np.cos(2.3 * np.arange(float(row_sum.n_weights(codes.n_features))))[None]
            if not _apart(module, row_sum, codes, expanded, labels, weights, of_rows, block) <= 1e-14 * n_rows:
                return False
    return _tells_of_no_level(module, codes, labels)


def _apart(
    module: Kernel,
    row_sum: RowSum,
    codes: StoredCodes,
    expanded: Array,
    labels: Any,
    weights: Array,
    counts: Array | None,
    rows_in_block: int,
) -> float:
    """How far an entry of a sum by the kernel is at most from that by NumPy; NaN where the kernel makes none."""
    loss, d = code_of(row_sum.loss), codes.n_features
    by_numpy = row_sum.start(1, d)
    row_sum.add_block(by_numpy, expanded, labels, weights, counts)
    if loss is None:
        return np.nan
    offset = row_sum.intercept * float(weights[0, -1])
    asked = SumOfSlopes(labels, counts, row_sum.largest_weight, weights[0, :d].copy(), offset, loss, np.inf, is_plain())
    sums = np.zeros(d + 1)
    try:
        whole = codes.add_blocks(sums, module, asked, rows_in_block)
    except Exception:  # noqa: BLE001 - a module built from another source may fail in any way
        return np.nan
    sums[d] *= row_sum.intercept
    return float(np.abs(by_numpy.gradient[0] - sums[: by_numpy.gradient.shape[1]]).max()) if whole else np.nan


def _tells_of_no_level(module: Kernel, codes: StoredCodes, labels: Any) -> bool:
    """Whether the kernel tells of a row without a level in a linked category, wherever it is."""
    place = next(number for number, column in enumerate(codes.columns) if column.linked)
    asked = SumOfSlopes(labels, None, 1.0, np.ones(codes.n_features), 0.0, (0, 0.0, 0.0, 0.0), np.inf, is_plain())
    for row in (0, codes.n_rows // 2, -1):
        lacking = codes.codes[place].copy()
        lacking[row] = -1
        arrays = (*codes.codes[:place], lacking, *codes.codes[place + 1 :])
        without = StoredCodes(codes.n_features, codes.columns, arrays, codes.n_rows)
        try:
            if without.add_blocks(np.zeros(codes.n_features + 1), module, asked, 16) is not False:
                return False
        except Exception:  # noqa: BLE001 - a module built from another source may fail in any way
            return False
    return True


def _made_up(n_rows: int) -> tuple[StoredCodes, Array]:
    """Codes of each kind and type, and the rows (n, d) that they stand for, expanded in plain steps."""
    made = _MadeUp(n_rows)
    for kind in (np.float32, np.float64):
        made.add_line(kind, missing=False)
        made.add_line(kind, missing=True)
        made.add_curve(kind, missing=False)
        made.add_curve(kind, missing=True)
    for whole, levels in ((np.int8, 3), (np.int16, 40), (np.int32, _LEVELS)):
        made.add_levels(whole, levels, linked=False)
        made.add_levels(whole, levels, linked=True)
    made.add_one_column(np.int8)
    return made.codes(), np.column_stack(made.expanded)


class _MadeUp:
    """Columns of codes, and the encoded columns that they stand for."""

    def __init__(self, n_rows: int) -> None:
        self.n_rows = n_rows
        self.expanded: list[Array] = []
        self._columns: list[StoredColumn] = []
        self._codes: list[Any] = []

    def codes(self) -> StoredCodes:
        return StoredCodes(len(self.expanded), tuple(self._columns), tuple(self._codes), self.n_rows)

    def _numbers(self, kind: type[np.floating[Any]]) -> Any:
        """Numbers of which some are missing, infinite, or beyond their bounds -1 and 3."""
        numbers = (1.0 + 2.5 * np.sin(1.3 * np.arange(1.0 * self.n_rows) + len(self.expanded))).astype(kind)
        numbers[2::7], numbers[5::11] = np.nan, np.inf
        return numbers

    def _add(self, column: StoredColumn, codes: Any, *expanded: Array) -> None:
        self._columns.append(column)
        self._codes.append(codes)
        self.expanded += expanded

    def add_line(self, kind: type[np.floating[Any]], *, missing: bool) -> None:
        codes, start = self._numbers(kind), len(self.expanded)
        numbers = codes.astype(np.float64)
        absent = ~np.isfinite(numbers)
        line = np.where(absent, 0.0, 0.5 * (np.clip(np.where(absent, 0.0, numbers), -1.0, 3.0) + 1.0) - 1.0)
        column = StoredColumn(LINE, start, 1, start + 1 if missing else -1, -1.0, 0.5, 3.0)
        self._add(column, codes, line, *([1.0 * absent] if missing else []))

    def add_curve(self, kind: type[np.floating[Any]], *, missing: bool) -> None:
        codes, start, last = self._numbers(kind), len(self.expanded), _HATS - 1.0
        numbers = codes.astype(np.float64)
        absent = np.isnan(numbers)
        most = float(np.nextafter(last, 0.0))
        places = np.where(absent, 0.5 * last, np.clip(np.where(absent, 0.0, numbers) + 1.0, 0.0, most))
        hats = _HEIGHT[0] * np.maximum(1.0 - np.abs(places[:, None] - np.arange(1.0 * _HATS)), 0.0)
        if missing:
            hats[absent] = 0.0
        indicator = start + _HATS if missing else -1
        column = StoredColumn(CURVE, start, _HATS, indicator, -1.0, 1.0, most, 0.5 * last, _HEIGHT)
        self._add(column, codes, *hats.T, *([1.0 * absent] if missing else []))

    def add_levels(self, kind: type[np.signedinteger[Any]], n_levels: int, *, linked: bool) -> None:
        codes = (np.arange(self.n_rows) * 7 % (n_levels + (not linked)) - (not linked)).astype(kind)
        column = StoredColumn(LEVELS, len(self.expanded), n_levels + 1, linked=linked)
        self._add(column, codes, *(1.0 * (codes == level) for level in range(n_levels)))

    def add_one_column(self, kind: type[np.signedinteger[Any]]) -> None:
        codes, entries = (np.arange(self.n_rows) % 3 - 1).astype(kind), np.array([0.0, -1.0, 1.0])
        self._add(StoredColumn(LEVELS, len(self.expanded), 3, values=entries), codes, entries[codes + 1])
