"""Sums over rows of second moments of curvature and slope, at given weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.erm.coded_rows import dense
from confide.erm.curvature_sums import add_curvatures
from confide.erm.row_sums import RowSum, Totals, mirrored
from confide.types import Array, Rows, Targets, Weights


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
        clipped, loss = self.of.row_bound.clip(dense(rows)), self.of.loss
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
        add_curvatures(made, clipped, np.hstack([counts * curvatures, squares]), loss, self.of.intercept)
        # Added once, for BLAS may add products to what is there one after the other, in a chain as long as all rows.
        totals.hessian[...] += made

    def _slopes(self, scores: Array, labels: Targets) -> Array:
        slopes = self.of.loss.of_scores(scores, labels, 1).slope
        return np.zeros_like(scores) if slopes is None else slopes

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every matrix filled, in place."""
        return mirrored(totals)
