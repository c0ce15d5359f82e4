"""Sums over rows of second moments, spreads, directions and least squares, and the closed list of all sums."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from confide.array_types import Array, Factors, Rows, Targets, Weights
from confide.erm.coded_rows import dense
from confide.erm.row_bounds import RowBound
from confide.erm.row_sums import RowSum, Totals, add_curvatures, add_products, mirrored


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

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the moments of one block of rows (m, d) at weights (k, o D) to the totals in place."""
        clipped, loss = self.of.row_bound.clip(dense(rows)), self.of.loss
        weights = weights.reshape(-1, clipped.shape[1] + (self.of.intercept > 0.0))
        scores, counts = self.of._scores(clipped, weights), self.of._counts(row_weights)
        slope = counts * self._slopes(scores, labels)
        if loss.constants.separable:
            above, below = (self._slopes(scores + shift, labels) for shift in (self.window, -self.window))
            # Rounding may make a difference of nothing negative.
            curvatures, squares = np.maximum(above - below, 0.0) / (2.0 * self.window), slope**2
        else:
            vectors = slope.reshape(len(slope), -1, loss.constants.n_outputs)
            bends = loss.of_scores(scores, labels, 2).curvature
            curvatures = np.zeros(0) if bends is None else bends
            squares = (vectors[..., :, None] * vectors[..., None, :]).reshape(len(slope), -1)
        made = np.zeros_like(totals.hessian)
        add_curvatures(made, clipped, np.hstack([counts * curvatures, squares]), loss.constants, self.of.intercept)
        # Added once, for BLAS may add products to what is there one after the other, in a chain as long as all rows.
        totals.hessian[...] += made

    def _slopes(self, scores: Array, labels: Targets) -> Array:
        slopes = self.of.loss.of_scores(scores, labels, 1).slope
        return np.zeros_like(scores) if slopes is None else slopes

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every matrix filled, in place."""
        return mirrored(totals)


# Rows in units of their own: moved by a released middle and divided by released spreads; and sums over rows in them.
#
# Where a column lies far from 0 in relation to its spread, noise for rows as they are hides how much it varies. In its
# frame every column has about the mean 0 and the spread 1, so the noise hides all of them alike. Long rows count less
# there, by a factor that depends on the row alone. That bounds what one row adds, and leaves the minimiser of a right model
# where it is.


@dataclass(frozen=True, slots=True)
class Frame:
    """What turns clipped rows x into y = ((x - centre) / spreads, constant). Public: it follows from a release.

    Parameters
    ----------
    centre, spreads : one number for each column; spreads are positive
    constant : the last entry of every y; 0 without an intercept, and then y has no such entry
    intercept : the constant of the intercept in the objective; 0 for none
    length : rows y that are longer than this count less
    """

    centre: tuple[float, ...]
    spreads: tuple[float, ...]
    constant: float
    intercept: float
    length: float

    @property
    def matrix(self) -> Array:
        """T (D, D), y = T x for rows x with the constant of the intercept; weights w for y are T^T w for x."""
        d, own = len(self.centre), 1.0 / np.array(self.spreads)
        if not self.constant > 0.0:
            return np.diag(own)
        matrix = np.diag(np.append(own, self.constant / self.intercept))
        matrix[:d, d] = -np.array(self.centre) * own / self.intercept
        return matrix

    def rows(self, clipped: Array) -> Array:
        """(m, D): the rows y of clipped rows (m, d)."""
        moved = (clipped - np.array(self.centre)) / np.array(self.spreads)
        return np.hstack([moved, np.full((len(moved), 1), self.constant)]) if self.constant > 0.0 else moved

    def counts_of(self, rows: Array) -> Array:
        """(m,): f = min(1, length^2 / |y|^2), how much each row y counts in the curvature; its slope counts sqrt(f)."""
        if math.isinf(self.length):
            return np.ones(len(rows))
        squares = np.einsum("ij,ij->i", rows, rows)
        return np.asarray(np.minimum(1.0, self.length**2 / np.maximum(squares, np.finfo(float).tiny)))


@dataclass(frozen=True, slots=True)
class FrameSum:
    """Curvature and slopes of rows in a frame, at weights (1, D) for rows as they are.

        the Hessian (1, D, D): sum_i f_i q_i y_i y_i^T    and the gradient (1, D): sum_i sqrt(f_i) p_i y_i,
        p_i = c_i s_i / L,    q_i = c_i h_i / c

    with f_i and y_i those of `Frame`, c_i, s_i and h_i weight, slope and curvature of the row as in `MomentSum`, and L and c
    the largest slope and the largest curvature of a row with its weight. So p_i lies in [-1, 1] and q_i in [0, 1].
    """

    of: MomentSum
    frame: Frame

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = self.of.of.n_weights(n_features)
        return Totals(np.zeros(1), np.zeros((1, width)), np.zeros((1, width, width)))

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the terms of one block of rows (m, d) to the totals in place."""
        clipped = self.of.of.row_bound.clip(dense(rows))
        slope, bend = slopes_and_bends(self.of, clipped, labels, weights, row_weights)
        own = self.frame.rows(clipped)
        counts = self.frame.counts_of(own)[:, None]
        # Slopes of long rows are shortened no more than their bound asks, so weights err less where no model is right.
        totals.gradient[...] += (np.sqrt(counts) * slope * own).sum(axis=0)
        totals.hessian[...] += own.T @ (counts * bend * own)

    def completed(self, totals: Totals) -> Totals:
        """The totals, whose Hessian is symmetric to the last bit, in place."""
        totals.hessian[...] = 0.5 * (totals.hessian + totals.hessian.transpose(0, 2, 1))
        return totals


def slopes_and_bends(
    of: MomentSum, clipped: Array, labels: Targets, weights: Weights, row_weights: Array | None
) -> tuple[Array, Array]:
    """(m, 1) each: slopes p in [-1, 1] and curvatures q in [0, 1] of clipped rows, in units of the largest ones."""
    row_sum, window = of.of, of.window
    bounds = row_sum.loss.constants.weighted(row_sum.largest_weight)
    weights = weights.reshape(1, clipped.shape[1] + (row_sum.intercept > 0.0))
    scores, counts = row_sum._scores(clipped, weights), row_sum._counts(row_weights)
    slope = np.clip(counts * of._slopes(scores, labels) / bounds.lipschitz, -1.0, 1.0)
    above, below = (of._slopes(scores + shift, labels) for shift in (window, -window))
    return slope, np.clip(counts * (above - below) / (2.0 * window * bounds.smoothness), 0.0, 1.0)


@dataclass(frozen=True, slots=True)
class SpreadSum:
    """Sums of clipped rows in units of their bounds, of their squares, and the number of rows: the gradient (1, 2 d + 1).

    Parameters
    ----------
    row_bound : public bound on a row
    units : the largest size of an entry, one number for each column
    """

    row_bound: RowBound
    units: tuple[float, ...]

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        return Totals(np.zeros(1), np.zeros((1, 2 * n_features + 1)), np.zeros((1, 0, 0)))

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the terms of one block of rows (m, d) to the totals in place. Labels and weights play no part."""
        own = self.row_bound.clip(dense(rows)) / np.array(self.units)
        totals.gradient[0] += np.concatenate([own.sum(axis=0), (own * own).sum(axis=0), [float(len(own))]])

    def completed(self, totals: Totals) -> Totals:
        """The totals as they are."""
        return totals


# Sums over rows of slopes and curvatures along given directions, at given weights.


@dataclass(frozen=True, slots=True)
class DirectionSum:
    """Three sums for each direction v, as the gradient (k, 3) of the totals.

        sum_i p_i,    sum_i q_i    and    sum_i p_i^2,    p_i = c_i s_i r_i / L,    q_i = c_i h_i r_i^2 / c

    with r_i = v . x_i clipped to [-1, 1], c_i the weight of the row, s_i and h_i its slope and its curvature as in
    `MomentSum`, and L and c the largest slope and the largest curvature of a row with its weight. So every p_i lies in
    [-1, 1] and every q_i in [0, 1].

    Parameters
    ----------
    of : slopes and curvatures of rows, of a loss of one score
    directions : k vectors of D numbers, that of the intercept's constant last
    """

    of: MomentSum
    directions: tuple[tuple[float, ...], ...]

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        n_directions = len(self.directions)
        return Totals(np.zeros(1), np.zeros((n_directions, 3)), np.zeros((n_directions, 0, 0)))

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the terms of one block of rows (m, d) at weights (1, D) to the totals in place."""
        row_sum = self.of.of
        clipped = row_sum.row_bound.clip(dense(rows))
        slope, bend = slopes_and_bends(self.of, clipped, labels, weights, row_weights)
        along = np.clip(row_sum._scores(clipped, np.array(self.directions)), -1.0, 1.0)
        pulls = slope * along
        totals.gradient[...] += np.stack([pulls, bend * along**2, pulls**2], axis=2).sum(axis=0)

    def completed(self, totals: Totals) -> Totals:
        """The totals as they are."""
        return totals


# Sums over rows of the products that least squares needs.


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

    def add_block(self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the terms of one block of rows (m, d), targets (m,), to the totals in place; weights do not matter."""
        clipped = self.row_bound.clip(dense(rows))
        if self.intercept > 0.0:
            clipped = np.hstack([clipped, np.full((clipped.shape[0], 1), self.intercept)])
        targets = np.clip(labels, -self.target_bound, self.target_bound, dtype=np.float64)
        totals.value[...] += 0.5 * (targets @ targets)
        made = np.zeros_like(totals.hessian)  # added once, as in `MomentSum`
        for gradient, products in zip(totals.gradient, made, strict=True):
            gradient -= targets @ clipped
            add_products(products, clipped)
        totals.hessian[...] += made

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every Hessian filled, in place."""
        return mirrored(totals)


# The closed list of sums over rows: trusted code asks a source of rows for no other.

SumOverRows: TypeAlias = RowSum | LeastSquaresSum | MomentSum | DirectionSum | FrameSum | SpreadSum
"""A sum that a source of rows makes. Solvers are lent rows over which they may sum what they like."""
