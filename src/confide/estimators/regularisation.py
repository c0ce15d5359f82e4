"""The automatic alpha: a function of public facts alone."""

from __future__ import annotations

import math

from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LossBounds
from confide.erm.row_bounds import RowBound
from confide.privacy.budgets import Budget, Neighbours, pure_epsilon
from confide.privacy.sensitivity import gradient_shift

WEIGHT_NORM_FACTOR = 3.5
WEIGHT_NORM_ON_WEIGHTS = 2.5
"""Chosen on public data sets and budgets by benchmarks/automatic_alpha.py."""

SCORE_FACTOR = 2.0
"""Of 1/4 to 16 the best, or within 2% of it, for Huber's loss, the clipped square and counts on the data sets and budgets of
benchmarks/regression_error.py."""


def curvature_free_l2(budget: Budget, loss: LossBounds, row_norm: float, neighbours: Neighbours) -> float:
    """A little above the ridge of the sum form at which the curvature of the logistic loss costs Laplace noise nothing.

    That is t shift R^2 / epsilon, the shift with the largest weight and t the `tail` of the loss, 1 in the margin; a small
    share of epsilon goes to the seal.
    """
    if not math.isfinite(loss.smoothness):
        return 0.0
    epsilon = pure_epsilon(budget)
    return 1.05 * loss.tail * gradient_shift(loss.lipschitz, neighbours) * row_norm**2 / epsilon


def usual_norm(row_bound: RowBound, intercept: float) -> float:
    """The L2 norm of a usual row with its intercept, guessed from its bound alone.

    Exactly one level of a category counts in full; a number, or a row of a ball, as if its size were spread evenly below its
    bound: a third of the square. A guess that does not fit the data costs accuracy, not privacy.
    """
    if isinstance(row_bound, GroupBound):
        groups = zip(row_bound.sizes, row_bound.scales, row_bound.linked, strict=True)
        square = math.fsum(scale**2 / (1.0 if linked or size > 1 else 3.0) for size, scale, linked in groups)
    else:
        square = row_bound.l2_norm**2 / 3.0
    return math.sqrt(square + intercept**2)


def balanced_l2(
    noise_norm: float,
    weight: float,
    row_norm: float,
    *,
    on_weights: bool,
    score_size: float | None = None,
    margin: float = 1.0,
) -> float:
    """Ridge of the sum form that balances the noise against the shrinkage; alpha is this over the number of rows.

    With b the noise in the summed objective, the excess loss is about |b|^2 / (2 l2) through the noise and
    l2 |w|^2 / 2 through the ridge; they balance at l2 = |b| / |w|. What norm of w to expect depends on how much the rows
    can tell beside the noise: |w| = B / S on rows of usual norm S, with

        B = 3.5 (n S / |b|)^(1/3),      n the number of rows (its lower bound where it is private) times the largest `weight`
                                        of one, |b| root mean square.

    Noise on the weights, |b| / l2 long, is not damped by the curvature of the loss: weights are kept short, B = 2.5.

    Where a hinge has its corner at a `margin` above 1, scores are so many times larger, and so is B. Of a regression it is
    known how large scores are, `score_size`, and B is twice that.
    """
    if score_size is not None:
        return noise_norm * row_norm / (SCORE_FACTOR * score_size)
    length = WEIGHT_NORM_ON_WEIGHTS if on_weights else WEIGHT_NORM_FACTOR * math.cbrt(weight * row_norm / noise_norm)
    return noise_norm * row_norm / (max(1.0, margin) * length)


NOISE_SHARE = 0.7
"""Compared on made-up designs (independent, correlated, one-hot, short and decaying) of 3,000 to 100,000 rows."""


def noise_l2(product_deviation: float, n_weights: int) -> float:
    """Ridge of the sum form that keeps noise in X^T X from being inverted: 0.7 t sqrt(D), t its deviation on a product.

    Symmetric noise of this deviation has eigenvalues up to 2 t sqrt(D). Negative eigenvalues are put to 0 anyway
    (`confide.solvers.normal_equations`), so a third of that suffices; a ridge that waits for a private lower bound on the
    smallest eigenvalue (Wang, 2018) spends budget on it, and was better on no design.
    """
    return NOISE_SHARE * product_deviation * math.sqrt(n_weights)
