"""Sums of a loss over rows: clip each raw row, append the constant of the intercept, add its term for k problems at once.

Conventions: rows (m, d) raw; weights (k, o D) with o the scores of the loss, one after the other, and D = d, or d + 1 when
there is an intercept, whose coordinate comes last in each.
The sums over rows are a closed list: `RowSum`, `MomentSum`, `DirectionSum`, `FrameSum`, `SpreadSum` and
`LeastSquaresSum`. No other trusted code meets a raw row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse

from confide.erm.centred_rows import Centred, CentredRows
from confide.erm.clipped_rows import MANY_SCORES, WITH_PRODUCTS, ClippedRows, sums_of
from confide.erm.coded_rows import dense
from confide.erm.curvature_sums import add_curvatures
from confide.erm.losses import Loss
from confide.erm.row_bounds import LONG_ROW, BallBound, RowBound, norm_with_intercept, row_products, row_squares
from confide.erm.thread_memory import scratch
from confide.types import Array, Rows, Targets, Weights


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the rows seen so far. They are data, and never leave the package."""

    value: Array
    """(k,): summed loss; NaN where only derivatives were asked for."""
    gradient: Array
    """(k, o D); (k, 0) when the order of the sum is 0."""
    hessian: Array
    """(k, o D, o D); (k, 0, 0) when the order is below 2. Before `completed` the upper triangles alone are filled."""

    def add(self, other: Totals) -> None:
        """Add the totals of other rows in place."""
        self.value[...] += other.value
        self.gradient[...] += other.gradient
        self.hessian[...] += other.hessian


@dataclass(frozen=True, slots=True)
class RowSum:
    """A sum over rows of the loss, or of its derivatives up to `order` in the weights. Frozen and picklable.

    Every row is clipped to `row_bound` here, and its weight to [0, largest_weight], so the bounds hold whatever the source
    of the rows does. Removing one row changes the sum by exactly the term of that clipped row.

    Parameters
    ----------
    loss : of the score of a row and its label or target
    row_bound : public bound on a row before the intercept
    intercept : constant appended to every clipped row; 0.0 for none
    order : 0 value, 1 gradient, 2 gradient and Hessian
    largest_weight : public bound on the weight of a row
    """

    loss: Loss
    row_bound: RowBound
    intercept: float
    order: int
    largest_weight: float = 1.0

    def n_weights(self, n_features: int) -> int:
        """Number of weights o D of one problem."""
        return self.loss.n_outputs * (n_features + (self.intercept > 0.0))

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = self.n_weights(n_features)
        gradient_width, hessian_width = width if self.order >= 1 else 0, width if self.order >= 2 else 0
        hessians = np.zeros((n_problems, hessian_width, hessian_width))
        return Totals(np.zeros(n_problems), np.zeros((n_problems, gradient_width)), hessians)

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the terms of one block to the totals in place: rows (m, d), and labels or targets (m,) as the loss reads them.

        `row_weights` (m,) say how much each row counts. Without them each row counts 1, or `largest_weight` if that is less.
        """
        if type(rows) is ClippedRows:
            clipped, stretch = rows.of(self)
            if rows.fused is not None and len(weights) == 1:
                rows.fused.add_to(totals.gradient[0], labels, weights[0], row_weights)
                return
        else:
            rows = dense(rows) if self.order >= 2 or len(weights) * self.loss.n_outputs > MANY_SCORES else rows
            if isinstance(rows, np.ndarray) and isinstance(self.row_bound, BallBound | Centred):
                clipped = self.row_bound.clip(rows, scratch(rows.shape))
            else:
                clipped = self.row_bound.clip(rows)
            stretch = self.stretch(clipped) if self.loss.by_length else 1.0
        n_features = clipped.shape[1]
        weights = weights.reshape(-1, n_features + (self.intercept > 0.0))
        scores = self._scores(clipped, weights)
        terms = self.loss.of_scores(scores, labels, self.order, stretch)
        counts = self._counts(row_weights)
        if terms.value is not None:
            totals.value[...] += (counts * terms.value).sum(axis=0)
        if terms.slope is not None:
            # A count of 1 costs no product: for many problems the array of slopes is as large as that of the rows.
            slopes = terms.slope if isinstance(counts, float) and counts == 1.0 else counts * terms.slope
            gradient = totals.gradient.reshape(weights.shape)
            gradient[:, :n_features] += product(slopes.T, clipped)
            if self.intercept > 0.0:
                gradient[:, n_features] += self.intercept * sums_of(slopes, clipped)
        if terms.curvature is not None:
            add_curvatures(totals.hessian, clipped, counts * terms.curvature, self.loss, self.intercept)

    def _scores(self, clipped: Rows, weights: Weights) -> Array:
        n_features = clipped.shape[1]
        unread = self.row_bound.l2_norm == np.inf and isinstance(clipped, np.ndarray)
        if unread and len(weights) == 1 and n_features >= LONG_ROW:
            # No norm was taken of these rows, so they are read here for the first time, from memory.
            scores: Array = row_products(clipped, weights[0, :n_features])[:, None]
        else:
            scores = product(clipped, weights[:, :n_features].T)
        if self.intercept > 0.0:
            scores += self.intercept * weights[:, n_features]
        return scores

    def stretch(self, clipped: Rows) -> Array:
        """(m, 1): the bound on a row over its length, intercept included; inf for a row of zeros."""
        squares = clipped.squares() if type(clipped) is CentredRows else row_squares(clipped)
        with np.errstate(divide="ignore"):
            return norm_with_intercept(self.row_bound, self.intercept) / np.sqrt(squares + self.intercept**2)[:, None]

    def _counts(self, row_weights: Array | None) -> Array | float:
        """(m, 1), or one number: how much each row counts, in [0, largest_weight]; 0 for a weight that is not a number."""
        if row_weights is None:
            return min(1.0, self.largest_weight)
        return np.fmin(np.fmax(row_weights, 0.0), self.largest_weight)[:, None]

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every Hessian filled, in place."""
        if self.order >= 1:
            totals.value[...] = np.nan
        return mirrored(totals)


def product(left: Any, right: Any) -> Array:
    """The product of two matrices, one of them rows. Arrays use `dot`, since the operator keeps other threads waiting."""
    found: Array
    if type(left) in WITH_PRODUCTS:
        found = left.times(right)
    elif type(right) in WITH_PRODUCTS:
        found = right.weighted_sums(left.T)
    else:
        found = left @ right if issparse(left) or issparse(right) else np.dot(left, right)
    return found


def mirrored(totals: Totals) -> Totals:
    """The totals with the upper triangle of every Hessian copied to the lower one, in place."""
    for matrix in totals.hessian if totals.hessian.size else ():
        matrix[...] = np.triu(matrix) + np.triu(matrix, 1).T
    return totals
