"""The automatic alpha: a function of public facts alone."""

from __future__ import annotations

import math

from confide.erm.losses import Loss
from confide.privacy.guarantee import Neighbours, PureDP
from confide.privacy.sensitivity import gradient_shift

WEIGHT_NORM_FACTOR = 5.0
"""Chosen on seven public data sets and seven budgets by benchmarks/automatic_alpha.py."""


def automatic_l2(
    budget: PureDP,
    loss: Loss,
    n_rows: int,
    n_weights: int,
    row_norm: float,
    neighbours: Neighbours,
) -> float:
    """Ridge of the sum form that balances the noise against the shrinkage; alpha is this over the number of rows.

    With b the noise in the summed objective, the excess loss is about |b|^2 / (2 l2) through the noise and
    l2 |w|^2 / 2 through the ridge; they balance at l2 = E|b| / |w|. What norm of w to expect depends on how much the rows
    can tell beside the noise: |w| = B / R on rows of norm R, with

        B = 5 (n R / E|b|)^(1/3),      n the number of rows (its lower bound where it is private).

    It is never below the ridge at which the curvature of the logistic loss costs nothing (epsilon l2 = shift R).

    Without privacy it is 1, scikit-learn's ``C=1``.
    """
    if not budget.is_private:
        return 1.0
    shift = gradient_shift(loss.lipschitz, row_norm, neighbours)
    expected_noise = n_weights * shift / budget.epsilon
    weight_norm = WEIGHT_NORM_FACTOR * math.cbrt(n_rows * row_norm / expected_noise) / row_norm
    # A little above the condition, because a small share of epsilon goes to the seal.
    curvature_free = 1.05 * shift * row_norm / budget.epsilon if math.isfinite(loss.smoothness) else 0.0
    return max(expected_noise / weight_norm, curvature_free)
