"""Sums over rows of slopes and curvatures along given directions, at given weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.erm.coded_rows import dense
from confide.erm.frames import slopes_and_bends
from confide.erm.moment_sums import MomentSum
from confide.erm.row_sums import Totals
from confide.erm.weighted_losses import Weighted
from confide.types import Array, Rows, Targets, Weights


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

    def add_block(
        self, totals: Totals, rows: Rows, labels: Targets, weights: Weights, row_weights: Array | None = None
    ) -> None:
        """Add the terms of one block of rows (m, d) at weights (1, D) to the totals in place."""
        row_sum = self.of.of
        bounds, clipped = Weighted(row_sum.loss, row_sum.largest_weight), row_sum.row_bound.clip(dense(rows))
        slope, bend = slopes_and_bends(self.of, bounds, clipped, labels, weights, row_weights)
        along = np.clip(row_sum._scores(clipped, np.array(self.directions)), -1.0, 1.0)
        pulls = slope * along
        totals.gradient[...] += np.stack([pulls, bend * along**2, pulls**2], axis=2).sum(axis=0)

    def completed(self, totals: Totals) -> Totals:
        """The totals as they are."""
        return totals
