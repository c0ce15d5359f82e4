"""The gradients on which certificates rest by the compiled kernel.

Rows of an array are clipped, and moved by a centre if there is one, as they are read; rows that are codes of a schema are
within their bounds.

The kernel is trusted with these sums: they err by no more than theorem 2 of privacy/proofs/certificate.md allows for, under
"Rows by the kernel" and "Codes by the kernel". Before its first such sum of each kind in a process, the kernel adds up
made-up rows, and its sums must be those of NumPy.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from confide.array_types import Array, Factors, Targets, Weights
from confide.compiled.gradient_sums import LossCode, code_of
from confide.compiled.loading import Kernel, is_plain, kernel
from confide.compiled.stored_rows import (
    CURVE,
    LEVELS,
    LINE,
    SHORTEST_ROW,
    StoredArray,
    StoredCodes,
    StoredColumn,
    StoredRows,
    SumOfSlopes,
    labels_and_counts,
)
from confide.erm.clipped_rows import ClippedRows, ScaledRows, scaled_once, scaling_to
from confide.erm.group_bounds import GroupBound
from confide.erm.linear_sums import SumOfRows, SumsOfTwoParts
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.row_bounds import BallBound, Centred, before_moving, is_centred
from confide.erm.row_sums import RowSum, Totals
from confide.erm.source import BlockwiseSum
from confide.erm.target_losses import SquaredLoss
from confide.erm.transformed_losses import ClippedSlopes

# The kernel is tried on made-up rows and codes before its sums are trusted.

_TRIED_LOSSES = (LogisticLoss(), LogisticHinge(), HuberHinge(), SmoothHinge(), SumOfRows(), SquaredLoss(0.75, 0.5))
CERTIFIED_LOSSES = (LogisticLoss, LogisticHinge, HuberHinge, SmoothHinge, SumOfRows, SumsOfTwoParts, SquaredLoss)
"""Losses with whose gradients the kernel is trusted where certificates rest on them."""


@cache
def tried(is_right: Callable[[Kernel], bool], what: str, _environment: str | None) -> Kernel | None:
    """The compiled module if it passes a trial; otherwise None, with a warning that NumPy makes these numbers (`what`).

    It is tried once for each environment, and nobody's rows are looked at.
    """
    module = kernel()
    # Whoever calls may have made warnings of NumPy errors. A module built from another source may fail in any way.
    with np.errstate(all="ignore"), suppress(Exception):
        if module is None or is_right(module):
            return module
    # The budget may be charged already, so nothing may fail here, not even where warnings are errors.
    with suppress(RuntimeWarning):
        warnings.warn(
            f"The compiled kernel computes wrongly on this machine, or was built from another version of its source, so "
            f"{what} are made by NumPy. Build it again, perhaps with another compiler, or switch it off with "
            f"CONFIDE_COMPILED=0.",
            RuntimeWarning,
            stacklevel=2,
        )
    return None


def _agree(row_sum: RowSum, expected: Any, by_kernel: BlockwiseSum, rows: Any, *beside: Any) -> bool:
    """Whether the kernel's sum over made-up rows is that of NumPy over the same rows as it expects them.

    `beside` are labels, weights (1, D), and weights of rows or None.
    """
    first, second = (row_sum.start(1, expected.shape[1]) for _ in range(2))
    row_sum.add_block(first, expected, *beside)
    by_kernel.add_block(second, rows, *beside)
    return bool(np.abs(first.gradient - second.gradient).max() <= 1e-14 * expected.shape[0])


def kernel_of_angles() -> Kernel | None:
    """The kernel if it makes cosines and sines right."""
    return tried(_turns, "random features", os.environ.get("CONFIDE_COMPILED"))


def _turns(module: Kernel) -> bool:
    """Whether cosines and sines are those of NumPy, in either precision, and those of an angle alone, wherever it stands.

    And whether angles are products of matrices, of whole numbers to the bit.
    """
    rows, inputs, products = np.arange(15.0).reshape(3, 5) % 4.0, np.arange(185.0).reshape(5, 37), np.zeros((3, 37))
    module.angles(rows, inputs, products, is_plain())
    if not np.array_equal(products, rows @ inputs):
        return False
    angles = (np.arange(-301.0, 301.0) ** 3 * 0.037).reshape(2, 301)
    expected = 0.75 * np.hstack([np.cos(angles), np.sin(angles)])
    for precision, error in ((np.float64, 4e-16), (np.float32, 1e-7)):
        made, alone = np.zeros((2, 605), precision), np.zeros((1, 2), precision)
        module.turned(angles, 0.75, made[:, 2:604], is_plain())
        module.turned(angles[:1, 300:], 0.75, alone, is_plain())
        same = np.array_equal(alone[0], made[0, 302:604:301]) and not made[:, [0, 1, 604]].any()
        if not (same and np.abs(made[:, 2:604] - expected).max() <= error):
            return False
    return True


_CODED_ROWS = (1, 37, 700)
"""Numbers of made-up rows: fewer than are encoded at once, and more."""
_HEIGHT = np.array([0.75])
_LEVELS = 300
"""Number of levels of which the kernel keeps one sum each. Of fewer levels it keeps several."""
_HATS = 6
"""Even, so that the middle lies between two hats."""


def _codes_agree(module: Kernel) -> bool:
    """Whether sums over codes of every kind are those of NumPy over the rows that they stand for, in blocks and in one."""
    for codes, expanded in map(_made_up, _CODED_ROWS):
        places = np.arange(1.0 * codes.n_rows)
        labels = np.where(places % 3 > 0, 1, -1).astype(np.int8)
        counts = 0.5 + 1.5 * np.sin(places)
        counts[0] = np.nan
        for loss in _TRIED_LOSSES:
            for intercept, of_rows, block in ((0.5, counts, 16), (0.0, None, 2048)):
                row_sum = RowSum(loss, BallBound(np.inf), intercept, 1, 1.5)
                weights = 2.0 * np.cos(2.3 * np.arange(float(row_sum.n_weights(codes.n_features))))[None]
                if not _agree(row_sum, expanded, ClippedSum(module, row_sum, block), codes, labels, weights, of_rows):
                    return False
        if not _tells_of_no_level(module, codes, labels):
            return False
    return True


def _tells_of_no_level(module: Kernel, codes: StoredCodes, labels: Any) -> bool:
    """Whether the kernel tells of a row without a level in a linked category, wherever it is."""
    place = next(number for number, column in enumerate(codes.columns) if column.linked)
    asked = SumOfSlopes(labels, None, 1.0, np.ones(codes.n_features), 0.0, (0, 0.0, 0.0, 0.0), np.inf, is_plain())
    for row in (0, codes.n_rows // 2, -1):
        lacking = codes.codes[place].copy()
        lacking[row] = -1
        without = replace(codes, codes=(*codes.codes[:place], lacking, *codes.codes[place + 1 :]))
        if without.add_blocks(np.zeros(codes.n_features + 1), module, asked, 16) is not False:
            return False
    return True


def _made_up(n_rows: int) -> tuple[StoredCodes, Array]:
    """Codes of each kind and type, and the rows (n, d) that they stand for, expanded in plain steps."""
    columns: list[StoredColumn] = []
    codes: list[NDArray[Any]] = []
    expanded: list[Array] = []

    def add(column: StoredColumn, of_column: NDArray[Any], entries: Iterable[Array]) -> None:
        columns.append(column)
        codes.append(of_column)
        expanded.extend(entries)

    most = float(np.nextafter(_HATS - 1.0, 0.0))
    for kind, is_curve, missing in product((np.float32, np.float64), (False, True), (False, True)):
        start = len(expanded)
        # Numbers of which some are missing, infinite, or beyond their bounds -1 and 3.
        given = (1.0 + 2.5 * np.sin(1.3 * np.arange(1.0 * n_rows) + start)).astype(kind)
        given[2::7], given[5::11] = np.nan, np.inf
        numbers = given.astype(np.float64)
        if is_curve:
            absent = np.isnan(numbers)
            places = np.where(absent, 0.5 * (_HATS - 1.0), np.clip(np.where(absent, 0.0, numbers) + 1.0, 0.0, most))
            entries = _HEIGHT[0] * np.maximum(1.0 - np.abs(places - np.arange(1.0 * _HATS)[:, None]), 0.0)
            column = StoredColumn(CURVE, start, _HATS, -1, -1.0, 1.0, most, 0.5 * (_HATS - 1.0), _HEIGHT)
        else:
            absent = ~np.isfinite(numbers)
            entries = 0.5 * (np.clip(np.where(absent, 0.0, numbers), -1.0, 3.0) + 1.0)[None] - 1.0
            column = StoredColumn(LINE, start, 1, -1, -1.0, 0.5, 3.0)
        if missing or not is_curve:
            entries[:, absent] = 0.0
        indicator = start + len(entries) if missing else -1
        add(replace(column, indicator=indicator), given, [*entries, *([1.0 * absent] if missing else [])])
    for (whole, n_levels), linked in product(((np.int8, 3), (np.int16, 40), (np.int32, _LEVELS)), (False, True)):
        levels = (np.arange(n_rows) * 7 % (n_levels + (not linked)) - (not linked)).astype(whole)
        column = StoredColumn(LEVELS, len(expanded), n_levels + 1, linked=linked)
        add(column, levels, (1.0 * (levels == level) for level in range(n_levels)))
    levels, two = (np.arange(n_rows) % 3 - 1).astype(np.int8), np.array([0.0, -1.0, 1.0])
    add(StoredColumn(LEVELS, len(expanded), 3, values=two), levels, [two[levels + 1]])
    return StoredCodes(len(expanded), tuple(columns), tuple(codes), n_rows), np.column_stack(expanded)


_LARGEST_WEIGHT = 2.0**400
"""No product of such a weight with a row that a factor may shorten overflows. Larger ones are left to NumPy."""
_SHAPES_TRIED = ((67, 4), (41, 23), (33, 38), (9, 261), (30, 3))
"""Shapes of the made-up rows on which the kernel is tried: each remainder of four, few columns, and fewer rows at once."""


@dataclass(frozen=True, slots=True)
class ClippedSum:
    """The gradients that one `RowSum` adds up at one vector of weights, of rows as they are stored.

    Parameters
    ----------
    kernel : the compiled module
    row_sum : for rows in a ball, perhaps moved by a centre, or of groups of columns, with one of `CERTIFIED_LOSSES`
    rows_in_block : how many rows are summed up by themselves, see `confide.data.arrays.Blocks.rows_in_block`
    """

    kernel: Kernel
    row_sum: RowSum
    rows_in_block: int

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        return self.row_sum.start(n_problems, n_features)

    def add_block(self, totals: Totals, rows: Any, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the gradients of some blocks of `StoredRows` (m, d) at the weights (1, D) to the totals in place.

        One block of other rows is summed up by NumPy.
        """
        if type(rows) not in (StoredArray, StoredCodes):
            self.row_sum.add_block(totals, rows, labels, weights, row_weights)
            return
        (n_rows, n_features), loss = rows.shape, self.row_sum.loss
        counted = [row_weights]
        if type(loss) is SumsOfTwoParts:
            # Two sums of rows, which count as much as lies of them in either part.
            parts: Any = loss.of_scores(np.zeros((n_rows, 2)), labels, 1).slope
            own = np.ones(1) if row_weights is None else row_weights
            counted = list(np.fmin(np.fmax(own, 0.0), self.row_sum.largest_weight) * parts.T)
        made = [self._sums(rows, labels, weights[0], counts) for counts in counted]
        known = [] if any(sums is None for sums in made) else [sums for sums in made if sums is not None]
        for sums, gradient in zip(known, totals.gradient.reshape(len(made), -1), strict=False):
            gradient[:n_features] += sums[:n_features]
            gradient[n_features:] += self.row_sum.intercept * sums[n_features]
        for start in range(0, 0 if known else n_rows, self.rows_in_block):
            part = slice(start, start + self.rows_in_block)
            counts = None if row_weights is None else row_weights[part]
            self.row_sum.add_block(totals, rows.as_numpy_reads(part), labels[part], weights, counts)

    def _sums(self, rows: StoredRows, labels: Targets, weights: Array, row_weights: Array | None) -> Array | None:
        """(d + 1,): sums of slopes times rows, and of slopes; None where the kernel is not trusted with them."""
        n_features, row_sum, code = rows.shape[1], self.row_sum, code_of(self.row_sum.loss)
        # Written so that what is not a number counts as too large.
        if code is None or not np.abs(weights).max(initial=0.0) <= _LARGEST_WEIGHT:
            return None
        bound: Any = row_sum.row_bound
        offset = row_sum.intercept * float(weights[n_features]) if row_sum.intercept > 0.0 else 0.0
        # Codes that may be summed up are within their bound as they are.
        ball, moving = before_moving(bound), bound.moving if is_centred(bound) else None
        radius, farthest = scaling_to(ball, n_features) if type(ball) is BallBound else (math.inf, math.inf)
        beside = *labels_and_counts(labels, row_weights), row_sum.largest_weight
        at = np.ascontiguousarray(weights[:n_features]), offset
        sums = np.zeros(n_features + 1)
        asked = SumOfSlopes(*beside, *at, code, radius, is_plain(), farthest, moving)
        return sums if rows.add_blocks(sums, self.kernel, asked, self.rows_in_block) else None

    def completed(self, totals: Totals) -> Totals:
        """The totals of all rows in their final form."""
        return self.row_sum.completed(totals)


def by_kernel(row_sum: Any, n_problems: int, rows_in_block: int) -> ClippedSum | None:
    """The same sum by the kernel, over rows as they are stored; None without one, and for sums with which it is not trusted.

    Whether the kernel is tried depends on the sum alone, so its warning says nothing of rows.
    """
    known = type(row_sum) is RowSum and row_sum.order == n_problems == 1 and type(row_sum.loss) in CERTIFIED_LOSSES
    trial = _TRIALS.get(type(row_sum.row_bound)) if known and code_of(row_sum.loss) else None
    module = None if trial is None else tried(*trial, os.environ.get("CONFIDE_COMPILED"))
    return None if module is None else ClippedSum(module, row_sum, rows_in_block)


def kernel_of_rows() -> Kernel | None:
    """The kernel if it makes certified gradients of rows right."""
    return tried(*_TRIALS[BallBound], os.environ.get("CONFIDE_COMPILED"))


def _rows_agree(module: Kernel) -> bool:
    """Whether sums over made-up rows are those of NumPy: with all that rows, their order in memory and weights can be."""
    for n_rows, n_features in _SHAPES_TRIED:
        wide, labels, weights, counts = _made_up_rows(n_rows, n_features)
        wide[6:8] *= 1e-3
        far = wide.copy()
        far[-1, 0] = 1e200
        for loss in _TRIED_LOSSES:
            middle = Centred(BallBound(2.0), tuple(0.5 * np.cos(np.arange(1.0 * n_features)) / np.sqrt(n_features)), 1.5)
            small, large, moved = (RowSum(loss, bound, 0.5, 1, 1.5) for bound in (BallBound(1.0), BallBound(4.0), middle))
            free = RowSum(loss, BallBound(np.inf), 0.0, 1, 0.75)
            for row_sum, rows, of_rows, size in (
                (small, wide, counts, 1.0),
                (large, np.asfortranarray(wide), counts, 1.0),
                (free, wide.astype(np.float32), None, 1.0),
                (small, np.asfortranarray(wide, np.float32), None, 400.0),
                (small, far, counts, 1.0),
                (moved, wide, counts, 1.0),
                (moved, wide.astype(np.float32), counts, 1.0),
            ):
                at, own = size * weights[:, : row_sum.n_weights(n_features)], rows[:, :n_features]
                if not _agree(row_sum, own, ClippedSum(module, row_sum, 16), StoredArray(own), labels, at, of_rows):
                    return False
    return True


def _made_up_rows(n_rows: int, n_features: int) -> tuple[Array, Targets, Array, Array]:
    """Rows (n, d + 1), of which one is 0, labels, weights (1, d + 1), and weights of rows, of which one is no number."""
    numbers = np.arange(n_rows * (n_features + 1.0))
    wide = 1.5 * np.sin(1.7 * numbers.reshape(n_rows, n_features + 1))
    wide[5] = 0.0
    labels, counts = np.where(numbers[:n_rows] % 3 > 0, 1, -1).astype(np.int8), 0.5 + 1.5 * np.sin(numbers[:n_rows])
    counts[3] = np.nan
    return wide, labels, np.cos(2.3 * numbers[None, : n_features + 1]), counts


_TRIALS: dict[Any, tuple[Callable[[Kernel], bool], str]] = {
    BallBound: (_rows_agree, "certified gradients"),
    Centred: (_rows_agree, "certified gradients"),
    GroupBound: (_codes_agree, "certified gradients of coded rows"),
}
"""How the kernel is tried, by the bound on rows, and what is said of sums that it fails to make."""


# The sums of noisy gradients by the compiled kernel, over rows that are clipped when they are used.
#
# These sums are released with noise, so the kernel is trusted with them: the bound on their rounding is proved in
# privacy/proofs/gradient.md, "Scaled rows by the kernel". Before its first such sum in a process, the kernel adds up made-
# up rows, and its sums must be those of NumPy.

_LOSSES = (LogisticLoss, LogisticHinge, HuberHinge)
_SHAPES_TRIED_SCALED = ((67, 4), (40, 23), (33, 38), (21, 261))
"""Shapes of the made-up rows on which the kernel is tried: each remainder of four, and fewer rows at once."""


@dataclass(frozen=True, slots=True, eq=False)
class ScaledSums:
    """Sums of clipped slopes over one block of `ScaledRows`, in one pass over the rows as they are stored.

    Parameters
    ----------
    kernel : the compiled module
    loss : of one margin; see `code_of`
    rows : (m, d), each row in one piece
    scales : (m,)
    shifts : (m,), or None for rows that are not moved
    centre : (d,), or None
    limits : (m,), the largest size of the slope of each row; None for rows of floats, whose sums are for solvers alone
    intercept : the constant of each row; 0.0 for none
    largest_weight : bound on the weight of a row
    plain : see `is_plain`
    """

    kernel: Kernel
    loss: LossCode
    rows: Array
    scales: Array
    shifts: Array | None
    centre: Array | None
    limits: Array | None
    intercept: float
    largest_weight: float
    plain: bool

    def add_to(self, gradient: Array, labels: Targets, weights: Array, row_weights: Array | None) -> None:
        """Add the sum over these rows, at weights (D,), to `gradient` (D,)."""
        n_features = self.rows.shape[1]
        own, constant = weights[:n_features], self.intercept * float(weights[n_features:].sum())
        at_centre = 0.0 if self.centre is None else float(self.centre @ own)
        sums, moved = np.zeros(n_features + 1), np.zeros(1)
        beside = self.scales, self.shifts, self.limits, *labels_and_counts(labels, row_weights), self.largest_weight
        at = np.ascontiguousarray(own), constant, at_centre
        self.kernel.scaled_sums(self.rows, *beside, *at, *self.loss, sums, moved, self.plain)
        if self.centre is not None:
            sums[:n_features] -= moved[0] * self.centre
        gradient[:n_features] += sums[:n_features]
        gradient[n_features:] += self.intercept * sums[n_features]


def with_kernel(block: ClippedRows) -> ClippedRows:
    """The block with its sums by the kernel; as it is where there is no kernel, or the kernel knows no such sums."""
    module = kernel_of(block.row_sum)
    return block if module is None else _scaled_rows_with(module, block)


def kernel_of(row_sum: RowSum) -> Kernel | None:
    """The kernel if it knows such a sum, has been tried, and is right. Whether it is tried depends on the sum alone.

    So it can be tried before any row is looked at, and its warning says nothing of rows.
    """
    clipped: Any = row_sum.loss
    if type(clipped) is not ClippedSlopes or type(clipped.loss) not in _LOSSES or row_sum.order != 1:
        return None
    return tried(_scaled_agree, "noisy gradients", os.environ.get("CONFIDE_COMPILED"))


def _scaled_rows_with(module: Kernel, block: ClippedRows) -> ClippedRows:
    row_sum, rows = block.row_sum, block.rows
    clipped: Any = row_sum.loss
    code = code_of(clipped.loss)
    if code is None or type(rows) is not ScaledRows or rows.shape[1] < SHORTEST_ROW:
        return block
    # A number that begins between two addresses of doubles, as in a field of a record, is none to the kernel. Neither is a
    # long double, which on some machines is equal to a double and has another name in C.
    if rows.rows.dtype.char != "d" or rows.rows.strides[1] != 8 or not rows.rows.flags.aligned:
        return block
    # As `ClippedSlopes.of_scores` has them.
    limits = np.ravel(clipped.limit * block.stretch)
    shifts = None if rows.shifts is None else rows.shifts.reshape(-1)
    of_rows = rows.rows, rows.scales.reshape(-1), shifts, rows.centre, limits
    sums = ScaledSums(module, code, *of_rows, row_sum.intercept, row_sum.largest_weight, is_plain())
    return replace(block, fused=sums.add_to)


def _scaled_agree(module: Kernel) -> bool:
    """Whether sums over made-up rows are those of NumPy: with all that rows, slopes, weights and centres can be."""
    for n_rows, n_features in _SHAPES_TRIED_SCALED:
        wide, labels, weights, row_weights = _made_up_rows(n_rows, n_features)
        wide[6:12] *= 1e-3
        centred = Centred(BallBound(2.0), tuple(0.5 * np.cos(np.arange(1.0 * n_features)) / np.sqrt(n_features)), 1.5)
        for kind in _LOSSES:
            clipped = ClippedSlopes(kind(), 0.25)
            for row_sum, counts, size in (
                (RowSum(clipped, BallBound(2.0), 0.5, 1, 1.5), row_weights, 1.0),
                (RowSum(clipped, BallBound(2.0), 0.0, 1, 0.75), None, 400.0),
                (RowSum(clipped, centred, 0.5, 1, 1.5), row_weights, 1.0),
            ):
                at, block = size * weights[:, : row_sum.n_weights(n_features)], scaled_once(row_sum, wide[:, :n_features])
                if block is None:
                    return False
                if not _agree(row_sum, block, row_sum, _scaled_rows_with(module, block), labels, at, counts):
                    return False
    return True
