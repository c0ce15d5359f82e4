"""Sums of gradients over rows by the compiled kernel, for solvers.

The sums are those of `RowSum` for one vector of weights, added up in another order, with fused multiplications and with an
exponential of their own. Their rounding error is of the same size, but nothing is proved of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from confide.array_types import Factors, Targets, Weights
from confide.compiled.loading import Kernel, is_plain
from confide.compiled.stored_rows import SumOfSlopes, labels_and_counts
from confide.erm.linear_sums import SumOfRows, SumsOfTwoParts
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, Loss, SmoothHinge
from confide.erm.row_sums import Totals, mirrored
from confide.erm.target_losses import MeanLoss, SquaredLoss

LossCode: TypeAlias = tuple[int, float, float, float]
"""Which loss, as kernel.c counts them; the place of the corner, half-width of the joint or threshold; bounds of targets."""


_CODES: dict[type, Callable[[Any], LossCode | None]] = {
    LogisticLoss: lambda _: (0, 0.0, 0.0, 0.0),
    LogisticHinge: lambda loss: (0, loss.margin, 0.0, 0.0),
    HuberHinge: lambda loss: (1, loss.smoothing, 0.0, 0.0),
    SmoothHinge: lambda loss: (2, loss.smoothing, 0.0, 0.0),
    SquaredLoss: lambda loss: (3, loss.threshold, *loss.targets),
    MeanLoss: lambda loss: (4, loss.threshold, *loss.targets) if loss.constants.name == "poisson" else None,
    SumOfRows: lambda _: (5, 0.0, 0.0, 0.0),
    SumsOfTwoParts: lambda _: (5, 0.0, 0.0, 0.0),
}


def code_of(loss: Loss) -> LossCode | None:
    """The loss as the kernel knows it, or None if it does not."""
    # Another class, also a subclass, may have other slopes.
    made = _CODES.get(type(loss))
    return None if made is None or loss.constants.by_length else made(loss)


@dataclass(frozen=True, slots=True)
class CompiledSum:
    """The gradients, or Hessians too, that `RowSum` adds up, of `StoredRows`. Each vector of weights takes a pass.

    Parameters
    ----------
    kernel : the compiled module
    loss : see `code_of`
    intercept : constant appended to every shortened row; 0.0 for none
    largest_weight : bound on the weight of a row
    radius : rows are shortened to this length; inf for rows as they are
    order : 1 for gradients; 2 for Hessians too, of rows that have products
    share : Hessians are made from the first of so many parts of each block, and stand for all of it
    exposure : the least and the greatest exposure of counts; None where they have none
    """

    kernel: Kernel
    loss: LossCode
    intercept: float
    largest_weight: float
    radius: float
    order: int = 1
    share: int = 1
    exposure: tuple[float, float] | None = None

    def start(self, n_problems: int, n_features: int) -> Totals:
        """Totals over no rows."""
        width = n_features + (self.intercept > 0.0)
        bent = width if self.order >= 2 else 0
        return Totals(np.full(n_problems, np.nan), np.zeros((n_problems, width)), np.zeros((n_problems, bent, bent)))

    def add_block(self, totals: Totals, rows: Any, labels: Targets, weights: Weights, row_weights: Factors = None) -> None:
        """Add the gradients of one block of `StoredRows` (m, d) at each of the weights (k, D) to the totals in place."""
        n_rows, n_features = rows.shape
        for weight, gradient, hessian in zip(weights, totals.gradient, totals.hessian, strict=True):
            of_rows = labels_and_counts(labels, row_weights, self.exposure)
            own, constant = np.ascontiguousarray(weight[:n_features]), self.intercept * float(weight[n_features:].sum())
            asked = SumOfSlopes(*of_rows, self.largest_weight, own, constant, self.loss, self.radius, is_plain())
            sums = np.zeros(n_features + 1)
            products = np.zeros(hessian.shape) if self.order >= 2 else None
            rows.add(sums, self.kernel, asked, products if self.share == 1 else None)
            if products is not None:
                if self.share > 1:
                    part = slice(0, -(-n_rows // self.share))
                    own_weights = None if row_weights is None else row_weights[part]
                    own, counts = labels_and_counts(labels[part], own_weights, self.exposure)
                    rows[part].add(np.zeros_like(sums), self.kernel, replace(asked, labels=own, counts=counts), products)
                    products *= n_rows / part.stop
                products[:, n_features:] *= self.intercept
                products[n_features:] *= self.intercept
                hessian += products
            gradient[:n_features] += sums[:n_features]
            gradient[n_features:] += self.intercept * sums[n_features]

    def completed(self, totals: Totals) -> Totals:
        """The totals with both triangles of every Hessian."""
        return mirrored(totals)
