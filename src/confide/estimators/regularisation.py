"""The automatic alpha: a function of public facts alone."""

from __future__ import annotations

import math

from confide.erm.losses import Loss
from confide.privacy.guarantee import Neighbours, PureDP
from confide.privacy.sensitivity import gradient_shift

EXPECTED_WEIGHT_NORM = 14.0
"""B, the weight norm expected on rows of norm 1. Chosen on seven public data sets by benchmarks/automatic_alpha.py."""


def automatic_l2(
    budget: PureDP, loss: Loss, n_weights: int, row_norm: float, neighbours: Neighbours, weight_norm: float
) -> float:
    """Ridge of the sum form that balances the noise against the shrinkage; alpha is this over the number of rows.

    With b the noise in the summed objective, the excess loss is about |b|^2 / (2 l2) through the noise and
    l2 |w|^2 / 2 through the ridge; they balance at l2 = E|b| / |w|, and |w| = B / R on rows of norm R. It is never below
    the ridge at which the curvature of the logistic loss costs nothing (epsilon l2 = shift R).

    Without privacy it is 1, scikit-learn's ``C=1``.
    """
    if not budget.is_private:
        return 1.0
    shift = gradient_shift(loss.lipschitz, row_norm, neighbours)
    expected_noise = n_weights * shift / budget.epsilon
    # A little above the condition, because a small share of epsilon goes to the seal.
    curvature_free = 1.05 * shift * row_norm / budget.epsilon if math.isfinite(loss.smoothness) else 0.0
    return max(expected_noise * row_norm / weight_norm, curvature_free)
