"""The only code that meets a raw row: clip it, append the constant of the intercept, add its term for k problems at once.

Conventions: rows (m, d) raw; weights (k, o D) with o the scores of the loss, one after the other, and D = d, or d + 1 when
there is an intercept, whose coordinate comes last in each.
The sums over rows are a closed list: `RowSum`, `MomentSum`, `LeastSquaresSum`.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.sparse import csr_array, issparse

from confide.erm.losses import Loss
from confide.erm.row_bounds import LONG_ROW, BallBound, RowBound, norm_with_intercept, row_products, row_squares
from confide.types import Array, Rows, Targets, Weights


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums over the rows seen so far. They are data: nothing of them leaves the package."""

    value: Array
    """(k,): summed loss, NaN where only its derivatives were asked for."""
    gradient: Array
    """(k, o D): empty (k, 0) when the order of the sum is 0."""
    hessian: Array
    """(k, o D, o D), upper triangles alone until `completed`: empty (k, 0, 0) when the order is below 2."""

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
        gradient_width = width if self.order >= 1 else 0
        hessian_width = width if self.order >= 2 else 0
        return Totals(
            value=np.zeros(n_problems),
            gradient=np.zeros((n_problems, gradient_width)),
            hessian=np.zeros((n_problems, hessian_width, hessian_width)),
        )

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the terms of one block of rows (m, d), labels (m,) or targets such as the loss reads, to the totals in place.

        `row_weights` (m,) say how much each row counts; without them each counts 1, or `largest_weight` if that is less.
        """
        if isinstance(rows, np.ndarray) and isinstance(self.row_bound, BallBound):
            clipped = self.row_bound.clip(rows, scratch(rows.shape))
        else:
            clipped = self.row_bound.clip(rows)
        n_features = clipped.shape[1]
        weights = weights.reshape(-1, n_features + (self.intercept > 0.0))
        scores = self._scores(clipped, weights)
        terms = self.loss.of_scores(scores, labels, self.order, self._stretch(clipped) if self.loss.by_length else 1.0)
        counts = self._counts(row_weights)
        if terms.value is not None:
            totals.value[...] += (counts * terms.value).sum(axis=0)
        if terms.slope is not None:
            # A row that counts 1 is not multiplied by it: scores of many problems are as large as their rows.
            slopes = terms.slope if isinstance(counts, float) and counts == 1.0 else counts * terms.slope
            gradient = totals.gradient.reshape(weights.shape)
            gradient[:, :n_features] += product(slopes.T, clipped)
            if self.intercept > 0.0:
                gradient[:, n_features] += self.intercept * slopes.sum(axis=0)
        if terms.curvature is not None:
            self._add_hessian(totals.hessian, clipped, counts * terms.curvature)

    def _scores(self, clipped: Rows, weights: Weights) -> Array:
        n_features = clipped.shape[1]
        scores: Array
        if len(weights) == 1 and n_features >= LONG_ROW and self.row_bound.l2_norm == np.inf and not issparse(clipped):
            # Without a norm to take, these rows are read here first, from memory.
            scores = row_products(clipped, weights[0, :n_features])[:, None]
        else:
            scores = product(clipped, weights[:, :n_features].T)
        if self.intercept > 0.0:
            scores += self.intercept * weights[:, n_features]
        return scores

    def _stretch(self, clipped: Rows) -> Array:
        """(m, 1): the bound on a row over its length, intercept included; inf for a row of zeros."""
        lengths = np.sqrt(row_squares(clipped) + self.intercept**2)
        with np.errstate(divide="ignore"):
            stretch: Array = norm_with_intercept(self.row_bound, self.intercept) / lengths
        return stretch[:, None]

    def _counts(self, row_weights: Array | None) -> Array | float:
        """(m, 1), or one number: what each row counts, in [0, largest_weight]; a weight that is not a number counts 0."""
        if row_weights is None:
            return min(1.0, self.largest_weight)
        return np.fmin(np.fmax(row_weights, 0.0), self.largest_weight)[:, None]

    def _add_hessian(self, hessian: Array, clipped: Array, curvatures: Array) -> None:
        n_features, n_outputs = clipped.shape[1], self.loss.n_outputs
        if issparse(clipped) or n_outputs > 1:
            pairs = range(n_outputs if self.loss.separable else n_outputs**2)
            for problem, matrix in enumerate(hessian):
                for pair in pairs:
                    first, second = (pair, pair) if self.loss.separable else divmod(pair, n_outputs)
                    if first <= second:
                        blocks = matrix.reshape(n_outputs, -1, n_outputs, matrix.shape[0] // n_outputs)
                        blocks[first, :, second] += self._product(clipped, curvatures[:, problem * len(pairs) + pair])
            return
        rows = scratch((clipped.shape[0], hessian.shape[1]), "bent")
        for problem, matrix in enumerate(hessian):
            root = np.sqrt(curvatures[:, problem, None])
            np.multiply(clipped, root, out=rows[:, :n_features])
            if self.intercept > 0.0:
                rows[:, n_features:] = self.intercept * root
            _add_products(matrix, rows)

    def _product(self, clipped: Any, curvatures: Array) -> Array:
        """(D, D): the sum of c x x^T over rows x with their intercept and curvatures c (m,) of any sign."""
        n_features = clipped.shape[1]
        product = np.empty((n_features + (self.intercept > 0.0),) * 2)
        if issparse(clipped):
            bent = clipped.data * np.repeat(curvatures, np.diff(clipped.indptr))
            sums = clipped.T @ csr_array((bent, clipped.indices, clipped.indptr), clipped.shape)
            product[:n_features, :n_features] = sums.toarray()
        else:
            np.matmul(clipped.T, clipped * curvatures[:, None], out=product[:n_features, :n_features])
        if self.intercept > 0.0:
            product[:n_features, n_features] = product[n_features, :n_features] = self.intercept * (clipped.T @ curvatures)
            product[n_features, n_features] = self.intercept**2 * curvatures.sum()
        return product

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every Hessian filled, in place."""
        if self.order >= 1:
            totals.value[...] = np.nan
        return mirrored(totals)


@dataclass(frozen=True, slots=True)
class MomentSum:
    """Second moments of what rows add at given weights: (2k, o D, o D), those of the curvature, then those of the slope.

        sum_i (c_i h_i) kron x_i x_i^T    and    sum_i (c_i^2 s_i s_i^T) kron x_i x_i^T

    with c_i the weight of the row, s_i the slope of its loss in its o scores z_i, and h_i the curvature in them. Of a
    separable loss both are taken score by score, as in `RowSum`, and the curvature of a score is its mean within `window`,

        h_i = (s(z_i + w) - s(z_i - w)) / (2 w),

    which changes continuously with the score even where the loss bends suddenly.

    Parameters
    ----------
    of : the sum over rows whose terms these are
    window : w, positive; of no use where the loss is not separable
    """

    of: RowSum
    window: float

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = self.of.n_weights(n_features)
        return Totals(np.zeros(2 * n_problems), np.zeros((2 * n_problems, 0)), np.zeros((2 * n_problems, width, width)))

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the moments of one block of rows (m, d) at weights (k, o D) to the totals in place."""
        clipped, loss = self.of.row_bound.clip(rows), self.of.loss
        weights = weights.reshape(-1, clipped.shape[1] + (self.of.intercept > 0.0))
        scores, counts = self.of._scores(clipped, weights), self.of._counts(row_weights)
        slope = counts * self._slopes(scores, labels)
        if loss.separable:
            above, below = (self._slopes(scores + shift, labels) for shift in (self.window, -self.window))
            # Rounding may make a difference of nothing negative.
            curvatures, squares = np.maximum(above - below, 0.0) / (2.0 * self.window), slope**2
        else:
            bends, vectors = loss.of_scores(scores, labels, 2).curvature, slope.reshape(len(slope), -1, loss.n_outputs)
            curvatures = np.zeros(0) if bends is None else bends
            squares = (vectors[..., :, None] * vectors[..., None, :]).reshape(len(slope), -1)
        made = np.zeros_like(totals.hessian)
        self.of._add_hessian(made, clipped, np.hstack([counts * curvatures, squares]))
        # Added once, for BLAS may add products to what is there one after the other, in a chain as long as all rows.
        totals.hessian[...] += made

    def _slopes(self, scores: Array, labels: Targets) -> Array:
        slopes = self.of.loss.of_scores(scores, labels, 1).slope
        return np.zeros_like(scores) if slopes is None else slopes

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every matrix filled, in place."""
        return mirrored(totals)


@dataclass(frozen=True, slots=True)
class LeastSquaresSum:
    """Half the squared residual of each row at weights of 0, by its derivatives, which determine it but for a constant.

        f(w) = (y - w . x)^2 / 2 = y^2 / 2 - y x . w + w . (x x^T) w / 2

    So the value is half of y^T y, the gradient -X^T y and the Hessian X^T X, over clipped rows with their intercept and
    clipped targets.

    Parameters
    ----------
    row_bound : public bound on a row before the intercept
    intercept : constant appended to every clipped row; 0.0 for none
    target_bound : every target is clipped to [-target_bound, target_bound]
    """

    row_bound: RowBound
    intercept: float
    target_bound: float

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = n_features + (self.intercept > 0.0)
        return Totals(np.zeros(n_problems), np.zeros((n_problems, width)), np.zeros((n_problems, width, width)))

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the terms of one block of rows (m, d), targets (m,), to the totals in place; weights do not matter."""
        clipped = self.row_bound.clip(rows)
        if self.intercept > 0.0:
            clipped = np.hstack([clipped, np.full((clipped.shape[0], 1), self.intercept)])
        targets = np.clip(labels, -self.target_bound, self.target_bound, dtype=np.float64)
        totals.value[...] += 0.5 * (targets @ targets)
        made = np.zeros_like(totals.hessian)  # added once, as in `MomentSum`
        for gradient, products in zip(totals.gradient, made, strict=True):
            gradient -= targets @ clipped
            _add_products(products, clipped)
        totals.hessian[...] += made

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every Hessian filled, in place."""
        return mirrored(totals)


_memory = threading.local()


def scratch(shape: tuple[int, ...], purpose: str = "rows", dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Memory of this thread for one block of clipped rows, which live no longer than their block is being added."""
    have: Array | None = getattr(_memory, purpose, None)
    if have is None or have.size < shape[0] * shape[1]:
        have = np.empty(shape[0] * shape[1])
        setattr(_memory, purpose, have)
    return have.view(dtype)[: shape[0] * shape[1]].reshape(shape)


SumOverRows: TypeAlias = RowSum | LeastSquaresSum | MomentSum


def product(left: Any, right: Any) -> Array:
    """Of two matrices, one of them of rows. Of arrays by `dot`: the operator keeps other threads waiting."""
    sparse = issparse(left) or issparse(right)
    found: Array = left @ right if sparse else np.dot(left, right)
    return found


def _add_products(matrix: Array, rows: Array) -> None:
    """Add rows^T rows to the upper triangle of a matrix (D, D) in C order, in place."""
    # One triangle, accumulated in place by BLAS: half the work of a product and no (D, D) temporary. BLAS wants Fortran
    # order, so it is given the transposes; its lower triangle is the upper one here.
    dsyrk(1.0, rows.T, beta=1.0, c=matrix.T, lower=1, overwrite_c=1)


def mirrored(totals: Totals) -> Totals:
    """The totals with both triangles of every Hessian, of which there is the upper one, in place."""
    for matrix in totals.hessian:
        matrix[...] = np.triu(matrix) + np.triu(matrix, 1).T
    return totals
