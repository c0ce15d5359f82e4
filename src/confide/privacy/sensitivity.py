"""Pure formulas, one for each theorem: no data, no state. Rates are rounded down and costs up.

Symbols inside formulas: L lipschitz, c smoothness, R row norm with the intercept, l2 ridge of the sum form (lambda),
beta rate of the spherical Laplace noise. Proofs: proofs/objective_perturbation.md and proofs/output_perturbation.md.
"""

from __future__ import annotations

import math

import numpy as np

from confide.erm.losses import Loss
from confide.errors import ParameterError
from confide.privacy.guarantee import Neighbours
from confide.types import Array

_DOWN = 1.0 - 2.0**-40
_UP = 1.0 + 2.0**-40
_GRID = np.linspace(0.0, 1.0, 2**14 + 1)


def gradient_shift(lipschitz: float, row_norm: float, neighbours: Neighbours) -> float:
    """Largest change of the summed gradient, in L2 norm, between neighbours at the same weights."""
    rows_changed = 2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0
    return rows_changed * lipschitz * row_norm


def output_sensitivity(lipschitz: float, row_norm: float, l2: float, neighbours: Neighbours) -> float:
    """Largest L2 distance between the exact minimisers of neighbours. Lemma 1 of Chaudhuri et al. (2011): 2LR / l2.

    Proof: proofs/output_perturbation.md, theorem 1. Holds for non-differentiable convex losses too.
    """
    return gradient_shift(lipschitz, row_norm, neighbours) / l2 * _UP


def _loss_lines(loss: Loss, row_norm: float, l2: float, neighbours: Neighbours) -> tuple[Array, Array]:
    """Lines in the rate, (slope, intercept), whose maximum bounds the privacy loss E(beta) of objective perturbation.

        E(beta) = max over slopes a in [0, L] of  beta R (L + a) + log(1 + h(a) R^2 / l2)      (replace one)
                                                  beta R a       + log(1 + h(a) R^2 / l2)      (add or remove one)

    with h(a) the largest curvature at slope a. One line a cell of a grid: the first term at the cell's right end, h by its
    larger end (it is quasi-concave), or by c around the largest grid values. Proof: proofs/objective_perturbation.md.
    """
    slopes = loss.lipschitz * _GRID
    curvatures = loss.curvature_at_slope(slopes)
    cell_curvatures = np.maximum(curvatures[:-1], curvatures[1:])
    peaks = np.flatnonzero(curvatures == curvatures.max())
    cell_curvatures[max(0, peaks[0] - 1) : peaks[-1] + 1] = loss.smoothness
    already = loss.lipschitz if neighbours is Neighbours.REPLACE_ONE else 0.0
    return row_norm * (already + slopes[1:]), np.log1p(cell_curvatures * row_norm**2 / l2)


def objective_privacy_loss(rate: float, loss: Loss, row_norm: float, l2: float, neighbours: Neighbours) -> float:
    """Upper bound on the privacy loss of objective perturbation with spherical Laplace noise of this rate."""
    slopes, intercepts = _loss_lines(loss, row_norm, l2, neighbours)
    return float((rate * slopes + intercepts).max()) * _UP


def objective_noise_rate(epsilon: float, loss: Loss, row_norm: float, l2: float, neighbours: Neighbours) -> float:
    """Largest rate beta whose privacy loss is at most epsilon; 0 if the ridge alone leaves no room for noise.

    For a tapered loss, h(a) <= L - a, and beta R >= R^2 / l2 the curvature costs nothing: beta = epsilon / shift. For
    the logistic loss and replace-one this is the condition epsilon l2 >= 2 R^2.
    """
    free = epsilon / gradient_shift(loss.lipschitz, row_norm, neighbours) * _DOWN
    if loss.tapered and free * l2 >= row_norm * _UP:
        return free
    # Every line of the bound stays below epsilon up to its own rate; the least of these is the answer.
    slopes, intercepts = _loss_lines(loss, row_norm, l2, neighbours)
    return max(0.0, float(((epsilon * _DOWN - intercepts) / slopes).min())) * _DOWN


def refined_noise_epsilon(epsilon: float, smoothness: float, row_norm: float, l2: float) -> float:
    """What the curvature leaves of epsilon: epsilon - log(1 + c R^2 / l2), for any smooth loss and either relation."""
    return epsilon - math.log1p(smoothness * row_norm**2 / l2)


def least_l2(epsilon: float, smoothness: float, row_norm: float, noise_share: float = 0.5) -> float:
    """Least ridge of the sum form at which the curvature costs at most (1 - noise_share) epsilon: the slack branch.

    l2 >= c R^2 / (exp((1 - q) epsilon) - 1), q the public share of the noise.
    """
    if not 0.0 < noise_share < 1.0:
        raise ParameterError("the share of the noise lies strictly between 0 and 1.")
    # Above 700 nats the exponential overflows, and the ridge it asks for is nothing.
    return smoothness * row_norm**2 / math.expm1(min((1.0 - noise_share) * epsilon, 700.0)) * _UP


def calibrated_objective(
    epsilon: float, loss: Loss, row_norm: float, l2: float, neighbours: Neighbours, noise_share: float = 0.5
) -> tuple[float, float]:
    """The rate of the noise and the ridge to use, (beta, l2 total), for objective perturbation at epsilon.

    The ridge is raised (slack branch) where it would leave less than `noise_share` of epsilon to the noise. All of it is
    decided by public numbers. A threshold at 0, as published, allows noise without bound.
    """
    if not math.isfinite(loss.smoothness):
        raise ParameterError(f"objective perturbation needs a smooth loss, and {loss.name} is not smooth.")
    wanted = noise_share * epsilon / gradient_shift(loss.lipschitz, row_norm, neighbours)
    rate = objective_noise_rate(epsilon, loss, row_norm, l2, neighbours)
    if rate < wanted * _DOWN:
        l2 = max(l2, least_l2(epsilon, loss.smoothness, row_norm, noise_share))
        rate = objective_noise_rate(epsilon, loss, row_norm, l2, neighbours)
    return rate, l2


def published_noise_epsilon(epsilon: float, smoothness: float, row_norm: float, l2: float) -> float:
    """Algorithm 2 of Chaudhuri et al. (2011), step 1: epsilon - 2 log(1 + c R^2 / l2). Kept for comparison."""
    return epsilon - 2.0 * math.log1p(smoothness * row_norm**2 / l2)


def published_least_l2(epsilon: float, smoothness: float, row_norm: float) -> float:
    """Algorithm 2 of Chaudhuri et al. (2011), step 2: the total ridge of its slack branch. Kept for comparison."""
    return smoothness * row_norm**2 / math.expm1(epsilon / 4.0)
