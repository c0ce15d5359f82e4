"""Sums of a loss over rows: clip each raw row, append the constant of the intercept, add its term for k problems at once.

Conventions: rows (m, d) raw; weights (k, o D) with o the scores of the loss, one after the other, and D = d, or d + 1 when
there is an intercept, whose coordinate comes last in each.
The sums over rows are a closed list: `RowSum`, `MomentSum`, `DirectionSum`, `FrameSum`, `SpreadSum` and
`LeastSquaresSum`. No other trusted code meets a raw row.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array, issparse

from confide.array_types import Array, Factors, Rows, Targets, Weights
from confide.erm.clipped_rows import MANY_SCORES, WITH_PRODUCTS, ClippedRows
from confide.erm.coded_rows import CodedRows, JoinedRows
from confide.erm.losses import Loss, LossConstants
from confide.erm.row_bounds import (
    LONG_ROW,
    BallBound,
    Centred,
    CentredRows,
    RowBound,
    norm_with_intercept,
    row_products,
    row_squares,
)

# Memory that each thread uses again for every block of rows: new pages for every block cost more than the arithmetic.

_memory = threading.local()


def scratch(shape: tuple[int, ...], purpose: str = "rows", dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Memory of this thread for one block of clipped rows, which live no longer than their block is being added."""
    have: Array | None = getattr(_memory, purpose, None)
    if have is None or have.size < shape[0] * shape[1]:
        have = np.empty(shape[0] * shape[1])
        setattr(_memory, purpose, have)
    return have.view(dtype)[: shape[0] * shape[1]].reshape(shape)


# Sums over rows of curvature times x x^T: the Hessians that solvers ask for, and the second moments for intervals.
#
# The certificate of a minimiser needs none of them.


def add_curvatures(hessian: Array, clipped: Rows, curvatures: Array, loss: LossConstants, intercept: float) -> None:
    """Add the terms of one block of clipped rows to the upper triangles of the matrices (k, o D, o D), in place.

    The curvatures (m, k o) or (m, k o o) are those of `Terms`, times the weights of the rows.
    """
    n_features, n_outputs, separable = clipped.shape[1], loss.n_outputs, loss.separable
    if not isinstance(clipped, np.ndarray) or n_outputs > 1:
        pairs = range(n_outputs if separable else n_outputs**2)
        for problem, matrix in enumerate(hessian):
            for pair in pairs:
                first, second = (pair, pair) if separable else divmod(pair, n_outputs)
                if first <= second:
                    blocks = matrix.reshape(n_outputs, -1, n_outputs, matrix.shape[0] // n_outputs)
                    blocks[first, :, second] += _product(clipped, curvatures[:, problem * len(pairs) + pair], intercept)
        return
    rows = scratch((clipped.shape[0], hessian.shape[1]), "bent")
    for problem, matrix in enumerate(hessian):
        root = np.sqrt(curvatures[:, problem, None])
        np.multiply(clipped, root, out=rows[:, :n_features])
        if intercept > 0.0:
            rows[:, n_features:] = intercept * root
        add_products(matrix, rows)


def _product(clipped: Any, curvatures: Array, intercept: float) -> Array:
    """(D, D): the sum of c x x^T over rows x with their intercept and curvatures c (m,) of any sign."""
    n_features = clipped.shape[1]
    product = np.empty((n_features + (intercept > 0.0),) * 2)
    if type(clipped) is CentredRows:
        product[:n_features, :n_features] = clipped.products(curvatures)
    elif issparse(clipped):
        bent = clipped.data * np.repeat(curvatures, np.diff(clipped.indptr))
        sums = clipped.T @ csr_array((bent, clipped.indices, clipped.indptr), clipped.shape)
        product[:n_features, :n_features] = sums.toarray()
    else:
        np.matmul(clipped.T, clipped * curvatures[:, None], out=product[:n_features, :n_features])
    if intercept > 0.0:
        product[:n_features, n_features] = product[n_features, :n_features] = intercept * _sums(clipped, curvatures)
        product[n_features, n_features] = intercept**2 * curvatures.sum()
    return product


def _sums(clipped: Any, curvatures: Array) -> Any:
    return clipped.weighted_sums(curvatures[:, None])[0] if type(clipped) is CentredRows else clipped.T @ curvatures


def add_products(matrix: Array, rows: Array) -> None:
    """Add rows^T rows to the upper triangle of a matrix (D, D) in C order, in place."""
    # One triangle, accumulated in place by BLAS: half the work of a product and no (D, D) temporary. BLAS wants Fortran
    # order, so it is given the transposes; its lower triangle is the upper one here.
    dsyrk(1.0, rows.T, beta=1.0, c=matrix.T, lower=1, overwrite_c=1)


class Totals(NamedTuple):
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
        return self.loss.constants.n_outputs * (n_features + (self.intercept > 0.0))

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = self.n_weights(n_features)
        gradient_width, hessian_width = width if self.order >= 1 else 0, width if self.order >= 2 else 0
        hessians = np.zeros((n_problems, hessian_width, hessian_width))
        return Totals(np.zeros(n_problems), np.zeros((n_problems, gradient_width)), hessians)

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the terms of one block to the totals in place: rows (m, d), and labels or targets (m,) as the loss reads them.

        `row_weights` (m,) say how much each row counts. Without them each row counts 1, or `largest_weight` if that is less.
        """
        if type(rows) is ClippedRows:
            clipped, stretch = rows.of(self)
            if rows.fused is not None and len(weights) == 1:
                rows.fused(totals.gradient[0], labels, weights[0], row_weights)
                return
        else:
            many = self.order >= 2 or len(weights) * self.loss.constants.n_outputs > MANY_SCORES
            rows = rows.dense() if many and type(rows) is CodedRows else rows
            if isinstance(rows, np.ndarray) and isinstance(self.row_bound, BallBound | Centred):
                clipped = self.row_bound.clip(rows, scratch(rows.shape))
            else:
                clipped = self.row_bound.clip(rows)
            stretch = self.stretch(clipped) if self.loss.constants.by_length else 1.0
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
            add_curvatures(totals.hessian, clipped, counts * terms.curvature, self.loss.constants, self.intercept)

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
    sums: Array
    if type(left) in WITH_PRODUCTS:
        sums = left.times(right)
    elif type(right) in WITH_PRODUCTS:
        sums = right.weighted_sums(left.T)
    else:
        sums = left @ right if issparse(left) or issparse(right) else np.dot(left, right)
    return sums


def sums_of(numbers: Array, rows: Rows) -> Array:
    """(k,): sums of the columns of numbers (m, k), one number a row. Those of joined rows are made block by block."""
    return np.asarray(rows.sums_of(numbers) if isinstance(rows, JoinedRows | CentredRows) else numbers.sum(axis=0))


def mirrored(totals: Totals) -> Totals:
    """The totals with the upper triangle of every Hessian copied to the lower one, in place."""
    np.copyto(totals.hessian, totals.hessian.transpose(0, 2, 1), where=np.tri(totals.hessian.shape[1], k=-1, dtype=bool))
    return totals
