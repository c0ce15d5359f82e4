"""Blocks that one sum over rows has clipped once, before it makes many passes. Proof: privacy/proofs/gradient.md."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.array_types import Array, Rows, Targets
from confide.erm.coded_rows import CodedRows, JoinedRows, dense
from confide.erm.row_bounds import (
    LARGEST_SAFE_SQUARE,
    LONG_ROW,
    BallBound,
    Centred,
    CentredRows,
    before_moving,
    norm_with_intercept,
    row_products,
    row_squares,
)
from confide.errors import ParameterError

MANY_SCORES = 32
"""For more scores of a row than this, coded rows are made dense, because products are faster (benchmarks/coded_rows.py)."""


_FARTHEST = 2.0**200
"""Rows that are longer than so many radii are not scaled when they are used: a slope times their scale might underflow."""


@dataclass(frozen=True, slots=True, eq=False)
class ClippedRows:
    """One block that a sum has clipped. Nobody writes to it.

    Parameters
    ----------
    row_sum : the `confide.erm.row_sums.RowSum` that clipped the rows
    rows : the clipped rows
    stretch : the bound on a row over its length (m, 1), if the loss asks for it
    fused : adds the sum over these rows to a gradient (D,), by labels, weights (D,) and weights of rows, in one pass: score
        and slope of a row beside its part of the sum. None where `RowSum` makes the sums
    """

    row_sum: Any
    rows: Any
    stretch: Array | float
    fused: Callable[[Array, Targets, Array, Array | None], None] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return int(self.rows.shape[0]), int(self.rows.shape[1])

    @property
    def n_bytes(self) -> int:
        """Memory of the numbers that are kept."""
        if type(self.rows) is ScaledRows:
            return 32 * self.shape[0]
        rows: Any = self.rows.rows if type(self.rows) is CentredRows else self.rows
        names = ("columns", "entries") if type(rows) is CodedRows else ("data", "indices") if issparse(rows) else ("T",)
        stored = [getattr(rows, name) for name in names]
        # Beside the rows at most four numbers for each.
        return sum(int(array.nbytes) for array in stored) + 32 * self.shape[0]

    def of(self, row_sum: Any) -> tuple[Any, Array | float]:
        """The clipped rows and their stretch. Any other sum, which might clip rows otherwise, is refused."""
        if not (row_sum is self.row_sum or row_sum == self.row_sum) or row_sum.order >= 2:
            raise ParameterError("these rows were clipped for another sum.")
        return self.rows, self.stretch


@dataclass(frozen=True, slots=True, eq=False)
class ScaledRows:
    """One block of an array whose rows are clipped when they are used: row times scale, less shift times centre.

    Parameters
    ----------
    rows : (m, d), as they are
    scales : (m, 1)
    shifts : (m, 1), or None for rows that are not moved
    centre : (d,), or None
    """

    rows: Array
    scales: Array
    shifts: Array | None = None
    centre: Array | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return int(self.rows.shape[0]), int(self.rows.shape[1])

    def times(self, vectors: Array) -> Array:
        """(m, k): products of the rows with the columns of a matrix (d, k)."""
        if vectors.shape[1] == 1 and self.rows.shape[1] >= LONG_ROW:
            # Nothing has read these rows before, so they come from memory: see `row_products`.
            products = row_products(self.rows, vectors[:, 0])[:, None]
        else:
            products = np.dot(self.rows, vectors)
        products *= self.scales
        if self.shifts is not None and self.centre is not None:
            products -= self.shifts * np.dot(self.centre, vectors)
        return products

    def weighted_sums(self, weights: Array) -> Array:
        """(k, d): sums of the rows, each times its weight, for the columns of weights (m, k)."""
        sums: Array = np.dot((self.scales * weights).T, self.rows)
        if self.shifts is not None and self.centre is not None:
            sums -= np.dot(weights.T, self.shifts) * self.centre
        return sums


WITH_PRODUCTS = (CodedRows, JoinedRows, CentredRows, ScaledRows)
"""Kinds of rows that have products of their own."""


def scaling_to(ball: BallBound, n_features: int) -> tuple[float, float]:
    """The radius to which `BallBound.clip` shortens rows, and the largest squared length that a factor may shorten."""
    radius = ball._radius(n_features)
    return radius, min(LARGEST_SAFE_SQUARE, radius * radius * (_FARTHEST * _FARTHEST))


def scaled_once(row_sum: Any, rows: Rows) -> ClippedRows | None:
    """One block as `clipped_once` has it, but in no memory beside that of the rows, a few numbers for each.

    None if that is not possible: for rows that are no array of doubles, for bounds on groups of columns, and for huge rows.
    """
    bound = row_sum.row_bound
    ball = before_moving(bound)
    if not (isinstance(rows, np.ndarray) and rows.dtype == np.float64 and isinstance(ball, BallBound)):
        return None
    with np.errstate(over="ignore", under="ignore"):
        squared_norms = row_squares(rows)
    radius, farthest = scaling_to(ball, rows.shape[1])
    if not squared_norms.max(initial=0.0) <= farthest:
        return None
    outside = ~(squared_norms <= radius * radius)
    scales = np.where(outside, radius / np.sqrt(np.where(outside, squared_norms, 1.0)), 1.0)
    if isinstance(bound, Centred):
        distances = row_squares(rows * scales[:, None] - bound.centre)
        shifts = bound.factors(distances)
        squares = shifts * shifts * distances
        scaled = ScaledRows(rows, (shifts * scales)[:, None], shifts[:, None], np.array(bound.centre))
    else:
        squares = scales * scales * squared_norms
        scaled = ScaledRows(rows, scales[:, None])
    with np.errstate(divide="ignore"):
        lengths = np.sqrt(squares + row_sum.intercept**2)
        stretch = norm_with_intercept(bound, row_sum.intercept) / lengths[:, None]
    return ClippedRows(row_sum, scaled, stretch if row_sum.loss.constants.by_length else 1.0)


def clipped_once(row_sum: Any, rows: Rows) -> ClippedRows:
    """One block, clipped for many passes with this `RowSum` of order 0 or 1, at one vector of weights each."""
    rows = dense(rows) if row_sum.loss.constants.n_outputs > MANY_SCORES else rows
    if isinstance(rows, np.ndarray) and isinstance(row_sum.row_bound, BallBound | Centred):
        # In the same order of memory as in a single pass, so that sums agree to the bit.
        clipped = row_sum.row_bound.clip(rows, np.empty(rows.shape))
    else:
        clipped = row_sum.row_bound.clip(rows)
    return ClippedRows(row_sum, clipped, row_sum.stretch(clipped) if row_sum.loss.constants.by_length else 1.0)


def joined(blocks: Sequence[ClippedRows]) -> ClippedRows | None:
    """Blocks that one sum clipped, as one block; None unless all of them are coded and can be joined."""
    first = blocks[0]
    is_centred = type(first.rows) is CentredRows
    coded: list[Any] = [block.rows.rows if type(block.rows) is CentredRows else block.rows for block in blocks]
    rows: Any = None
    if all(type(block) is CodedRows and block.layout == coded[0].layout for block in coded):
        rows = JoinedRows.of(coded)
    if rows is None or any((type(block.rows) is CentredRows) != is_centred for block in blocks):
        return None
    if is_centred:
        names = ("factors", "squared_lengths")
        factors, lengths = (np.concatenate([getattr(block.rows, name) for block in blocks]) for name in names)
        rows = CentredRows(rows, factors, first.rows.centre, lengths)
    stretches: list[Any] = [block.stretch for block in blocks]
    by_length = first.row_sum.loss.constants.by_length
    return ClippedRows(first.row_sum, rows, np.concatenate(stretches) if by_length else first.stretch)
