"""Sums over rows of the products that least squares needs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from confide.erm.coded_rows import dense
from confide.erm.curvature_sums import add_products
from confide.erm.row_bounds import RowBound
from confide.erm.row_sums import Totals, mirrored
from confide.types import Array, Rows, Targets, Weights


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
