"""The sums of noisy gradients by the compiled kernel, over rows that are clipped when they are used.

These sums are released with noise, so the kernel is trusted with them: the bound on their rounding is proved in
privacy/proofs/gradient.md, "Scaled rows by the kernel". Before its first such sum in a process, the kernel adds up made-up
rows, and its sums must be those of NumPy.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from confide.compiled.gradient_sums import LossCode, code_of
from confide.compiled.loading import Kernel, is_plain
from confide.compiled.stored_rows import labels_and_counts
from confide.compiled.trials import kernel_if
from confide.erm.centred_rows import Centred
from confide.erm.clipped_rows import ClippedRows, ScaledRows, scaled_once
from confide.erm.clipped_slopes import ClippedSlopes
from confide.erm.hinges import HuberHinge, LogisticHinge
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.types import Array, Targets

_SHORTEST_ROW = 4
"""The kernel reads four numbers of a row at once."""
_LOSSES = (LogisticLoss, LogisticHinge, HuberHinge)
_CHECKED = ((67, 4), (40, 23), (33, 38), (21, 261))
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
    limits : (m,), the largest size of the slope of each row
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
    limits: Array
    intercept: float
    largest_weight: float
    plain: bool

    def add_to(self, gradient: Array, labels: Targets, weights: Array, row_weights: Array | None) -> None:
        """Add the sum over these rows, at weights (D,), to `gradient` (D,)."""
        n_features = self.rows.shape[1]
        own, constant, at_centre = weights[:n_features], 0.0, 0.0
        if self.intercept > 0.0:
            constant = self.intercept * float(weights[n_features])
        if self.centre is not None:
            at_centre = float(self.centre @ own)
        sums, moved = np.zeros(n_features + 1), np.zeros(1)
        beside = self.scales, self.shifts, self.limits, *labels_and_counts(labels, row_weights), self.largest_weight
        at = np.ascontiguousarray(own), constant, at_centre
        self.kernel.scaled_sums(self.rows, *beside, *at, *self.loss[:2], sums, moved, self.plain)
        if self.centre is not None:
            sums[:n_features] -= moved[0] * self.centre
        gradient[:n_features] += sums[:n_features]
        if self.intercept > 0.0:
            gradient[n_features] += self.intercept * sums[n_features]


def with_kernel(block: ClippedRows) -> ClippedRows:
    """The block with its sums by the kernel; as it is where there is no kernel, or the kernel knows no such sums."""
    module = kernel_of(block.row_sum)
    return block if module is None else _with(module, block)


def kernel_of(row_sum: RowSum) -> Kernel | None:
    """The kernel if it knows such a sum, has been tried, and is right. Whether it is tried depends on the sum alone.

    So it can be tried before any row is looked at, and its warning says nothing of rows.
    """
    clipped: Any = row_sum.loss
    if type(clipped) is not ClippedSlopes or type(clipped.loss) not in _LOSSES or row_sum.order != 1:
        return None
    return _tried(os.environ.get("CONFIDE_COMPILED"))


def _with(module: Kernel, block: ClippedRows) -> ClippedRows:
    row_sum, rows = block.row_sum, block.rows
    clipped: Any = row_sum.loss
    code = code_of(clipped.loss)
    if code is None or type(rows) is not ScaledRows or rows.shape[1] < _SHORTEST_ROW:
        return block
    # A number that begins between two addresses of doubles, as in a field of a record, is none to the kernel. Neither is a
    # long double, which on some machines is equal to a double and has another name in C.
    if rows.rows.dtype.char != "d" or rows.rows.strides[1] != 8 or not rows.rows.flags.aligned:
        return block
    # As `ClippedSlopes.of_scores` has them.
    limits = np.ravel(clipped.limit * block.stretch)
    shifts = None if rows.shifts is None else rows.shifts.reshape(-1)
    of_rows = rows.rows, rows.scales.reshape(-1), shifts, rows.centre, limits
    return replace(block, fused=ScaledSums(module, code, *of_rows, row_sum.intercept, row_sum.largest_weight, is_plain()))


@cache
def _tried(_environment: str | None) -> Kernel | None:
    """The compiled module, if its sums over made-up rows are those of NumPy. It is tried once for each environment."""
    return kernel_if(lambda module: all(_agrees(module, *shape) for shape in _CHECKED), "noisy gradients")


def _agrees(module: Kernel, n_rows: int, n_features: int) -> bool:
    """Whether sums over made-up rows are those of NumPy: with all that rows, slopes, weights and centres can be."""
    numbers = np.arange(n_rows * (n_features + 1.0))
    wide = 1.5 * np.sin(1.7 * numbers.reshape(n_rows, n_features + 1))
    wide[5], wide[6:12] = 0.0, 1e-3 * wide[6:12]
    rows, labels = wide[:, :n_features], np.where(numbers[:n_rows] % 3 > 0, 1, -1).astype(np.int8)
    weights, row_weights = np.cos(2.3 * numbers[None, : n_features + 1]), 0.5 + 1.5 * np.sin(numbers[:n_rows])
    row_weights[3] = np.nan
    centred = Centred(BallBound(2.0), tuple(0.5 * np.cos(numbers[:n_features]) / np.sqrt(n_features)), 1.5)
    for kind in _LOSSES:
        clipped = ClippedSlopes(kind(), 0.25)
        for row_sum, counts, size in (
            (RowSum(clipped, BallBound(2.0), 0.5, 1, 1.5), row_weights, 1.0),
            (RowSum(clipped, BallBound(2.0), 0.0, 1, 0.75), None, 400.0),
            (RowSum(clipped, centred, 0.5, 1, 1.5), row_weights, 1.0),
        ):
            at = size * weights[:, : row_sum.n_weights(n_features)]
            if not _apart(module, row_sum, rows, labels, at, counts) <= 1e-14 * n_rows:
                return False
    return True


def _apart(
    module: Kernel, row_sum: RowSum, rows: Array, labels: Targets, weights: Array, row_weights: Array | None
) -> float:
    """How far an entry of a sum by the kernel is at most from that by NumPy; NaN where the kernel makes none."""
    block = scaled_once(row_sum, rows)
    if block is None:
        return np.nan
    sums = []
    for each in (block, _with(module, block)):
        totals = row_sum.start(1, rows.shape[1])
        try:
            row_sum.add_block(totals, each, labels, weights, row_weights)
        except Exception:  # noqa: BLE001 - a module built from another source may fail in any way
            return np.nan
        sums.append(totals.gradient)
    return float(np.abs(sums[0] - sums[1]).max())
