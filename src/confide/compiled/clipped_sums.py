"""The gradients on which certificates rest by the compiled kernel.

Rows of an array are clipped as they are read; rows that are codes of a schema are within their bounds.

The kernel is trusted with these sums: they err by no more than theorem 2 of privacy/proofs/certificate.md allows for, under
"Rows by the kernel" and "Codes by the kernel". Before its first such sum of each kind in a process, the kernel adds up
made-up rows, and its sums must be those of NumPy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from confide.compiled.coded_trial import tried_with_codes
from confide.compiled.gradient_sums import LossCode, code_of
from confide.compiled.loading import Kernel, is_plain
from confide.compiled.stored_rows import CertifiedCodes, CertifiedRows, StoredArray, SumOfSlopes, labels_and_counts
from confide.compiled.trials import CERTIFIED_LOSSES, kernel_if
from confide.erm.clipped_rows import scaling_to
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum, Totals
from confide.types import Array, Targets, Weights

_LARGEST_WEIGHT = 2.0**400
"""No product of such a weight with a row that a factor may shorten overflows. Larger ones are left to NumPy."""
_CHECKED = ((67, 4), (41, 23), (33, 38), (9, 261), (30, 3))
"""Shapes of the made-up rows on which the kernel is tried: each remainder of four, few columns, and fewer rows at once."""


@dataclass(frozen=True, slots=True)
class ClippedSum:
    """The gradients that one `RowSum` adds up at one vector of weights, of rows as they are stored.

    Parameters
    ----------
    kernel : the compiled module
    row_sum : for rows in a ball or of groups of columns, with a loss of one margin
    loss : see `code_of`
    rows_in_block : how many rows are summed up by themselves, see `confide.data.arrays.Blocks.rows_in_block`
    """

    kernel: Kernel
    row_sum: RowSum
    loss: LossCode
    rows_in_block: int

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        return self.row_sum.start(n_problems, n_features)

    def add_block(
        self, totals: Totals, rows: Any, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the gradients of some blocks of `CertifiedRows` (m, d) at the weights (1, D) to the totals in place.

        One block of other rows is summed up by NumPy.
        """
        if type(rows) not in (StoredArray, CertifiedCodes):
            self.row_sum.add_block(totals, rows, labels, weights, row_weights)
            return
        n_features, intercept = rows.shape[1], self.row_sum.intercept
        sums = self._sums(rows, labels, weights[0], row_weights)
        if sums is None:
            for part in self._blocks(rows.shape[0]):
                counts = None if row_weights is None else row_weights[part]
                self.row_sum.add_block(totals, rows.as_numpy_reads(part), labels[part], weights, counts)
            return
        gradient = totals.gradient[0]
        gradient[:n_features] += sums[:n_features]
        if intercept > 0.0:
            gradient[n_features] += intercept * sums[n_features]

    def _sums(self, rows: CertifiedRows, labels: Targets, weights: Array, row_weights: Array | None) -> Array | None:
        """(d + 1,): sums of slopes times rows, and of slopes; None where the kernel is not trusted with them."""
        n_features, row_sum = rows.shape[1], self.row_sum
        # Written so that what is not a number counts as too large.
        if not np.abs(weights).max(initial=0.0) <= _LARGEST_WEIGHT:
            return None
        bound: Any = row_sum.row_bound
        offset = row_sum.intercept * float(weights[n_features]) if row_sum.intercept > 0.0 else 0.0
        # Codes that may be summed up are within their bound as they are.
        radius, farthest = scaling_to(bound, n_features) if type(bound) is BallBound else (math.inf, math.inf)
        beside = *labels_and_counts(labels, row_weights), row_sum.largest_weight
        at = np.ascontiguousarray(weights[:n_features]), offset
        sums = np.zeros(n_features + 1)
        asked = SumOfSlopes(*beside, *at, self.loss, radius, is_plain(), farthest)
        return sums if rows.add_blocks(sums, self.kernel, asked, self.rows_in_block) else None

    def _blocks(self, n_rows: int) -> Iterator[slice]:
        return (slice(start, start + self.rows_in_block) for start in range(0, n_rows, self.rows_in_block))

    def completed(self, totals: Totals) -> Totals:
        """The totals of all rows in their final form."""
        return self.row_sum.completed(totals)


def by_kernel(row_sum: Any, n_problems: int, rows_in_block: int) -> ClippedSum | None:
    """The same sum by the kernel, over rows as they are stored; None without one, and for sums with which it is not trusted.

    Whether the kernel is tried depends on the sum alone, so its warning says nothing of rows.
    """
    known = type(row_sum) is RowSum and row_sum.order == 1 and n_problems == 1 and type(row_sum.loss) in CERTIFIED_LOSSES
    tried = {BallBound: _tried, GroupBound: tried_with_codes}.get(type(row_sum.row_bound)) if known else None
    module = None if tried is None else tried(os.environ.get("CONFIDE_COMPILED"))
    return None if module is None else _with(module, row_sum, rows_in_block)


def _with(module: Kernel, row_sum: RowSum, rows_in_block: int) -> ClippedSum | None:
    code = code_of(row_sum.loss)
    return None if code is None else ClippedSum(module, row_sum, code, rows_in_block)


@cache
def _tried(_environment: str | None) -> Kernel | None:
    """The compiled module, if its sums over made-up rows are those of NumPy. It is tried once for each environment."""
    return kernel_if(lambda module: all(_agrees(module, *shape) for shape in _CHECKED), "certified gradients")


def _agrees(module: Kernel, n_rows: int, n_features: int) -> bool:
    """Whether sums over made-up rows are those of NumPy: with all that rows, their order in memory and weights can be."""
    numbers = np.arange(n_rows * (n_features + 1.0))
    wide = 1.5 * np.sin(1.7 * numbers.reshape(n_rows, n_features + 1))
    wide[5], wide[6:8] = 0.0, 1e-3 * wide[6:8]
    labels = np.where(numbers[:n_rows] % 3 > 0, 1, -1).astype(np.int8)
    weights, counts = np.cos(2.3 * numbers[None, : n_features + 1]), 0.5 + 1.5 * np.sin(numbers[:n_rows])
    counts[3] = np.nan
    far = wide.copy()
    far[-1, 0] = 1e200
    for kind in CERTIFIED_LOSSES:
        small, large = (RowSum(kind(), BallBound(norm), 0.5, 1, 1.5) for norm in (1.0, 4.0))
        free = RowSum(kind(), BallBound(np.inf), 0.0, 1, 0.75)
        for row_sum, rows, of_rows, size in (
            (small, wide, counts, 1.0),
            (large, np.asfortranarray(wide), counts, 1.0),
            (free, wide.astype(np.float32), None, 1.0),
            (small, np.asfortranarray(wide, np.float32), None, 400.0),
            (small, far, counts, 1.0),
        ):
            at = size * weights[:, : row_sum.n_weights(n_features)]
            if not _apart(module, row_sum, rows[:, :n_features], labels, at, of_rows) <= 1e-14 * n_rows:
                return False
    return True


def _apart(module: Kernel, row_sum: RowSum, rows: Any, labels: Targets, weights: Array, row_weights: Array | None) -> float:
    """How far an entry of a sum by the kernel is at most from that by NumPy; NaN where the kernel makes none."""
    by_numpy, by_kernel = row_sum.start(1, rows.shape[1]), row_sum.start(1, rows.shape[1])
    row_sum.add_block(by_numpy, rows, labels, weights, row_weights)
    summed = _with(module, row_sum, 16)
    if summed is None:
        return np.nan
    try:
        summed.add_block(by_kernel, StoredArray(rows), labels, weights, row_weights)
    except Exception:  # noqa: BLE001 - a module built from another source may fail in any way
        return np.nan
    return float(np.abs(by_numpy.gradient - by_kernel.gradient).max())
