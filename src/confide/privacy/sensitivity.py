"""Pure formulas, one for each theorem: no data, no state. Rates are rounded down and costs up.

Symbols inside formulas: L lipschitz and c smoothness of the loss of a row, its weight included; R largest L2 norm of a row
with its intercept, l2 ridge of the sum form (lambda), beta rate of Laplace noise in the norm of its shape, in which every
row is at most 1 long. Proofs: proofs/objective_perturbation.md and proofs/output_perturbation.md.
"""

from __future__ import annotations

import math

import numpy as np

from confide.erm.losses import LossBounds
from confide.errors import ParameterError
from confide.privacy.budgets import Neighbours
from confide.types import Array

_DOWN = 1.0 - 2.0**-40
_UP = 1.0 + 2.0**-40
_CURVATURE_UP = 1.0 + 2.0**-30
"""More than is lost where 1 - a of a steep slope a is computed from a slope that was multiplied by a weight."""
_GRID = np.linspace(0.0, 1.0, 2**14 + 1)


def gradient_shift(lipschitz: float, neighbours: Neighbours) -> float:
    """Largest change of the summed gradient between neighbours at the same weights, in any norm with rows of at most 1."""
    return (2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0) * lipschitz


def output_sensitivity(lipschitz: float, row_norm: float, l2: float, neighbours: Neighbours) -> float:
    """Largest L2 distance between the exact minimisers of neighbours. Lemma 1 of Chaudhuri et al. (2011): 2LR / l2.

    Proof: proofs/output_perturbation.md, theorem 1. Holds for non-differentiable convex losses too.
    """
    return gradient_shift(lipschitz, neighbours) * row_norm / l2 * _UP


def _loss_lines(loss: LossBounds, row_norm: float, l2: float, neighbours: Neighbours) -> tuple[Array, Array]:
    """Lines in the rate, (slope, intercept), whose maximum bounds the privacy loss E(beta) of objective perturbation.

        E(beta) = max over slopes a in [0, L] of  beta (L + a) + log(1 + h(a) R^2 / l2)      (replace one)
                                                  beta a       + log(1 + h(a) R^2 / l2)      (add or remove one)

    with h(a) the largest curvature at slope a. Of a loss with rank r, h is the largest trace, and the logarithm is
    r log(1 + h(a) R^2 / (r l2)). One line a cell of a grid: the first term at the cell's right end, h by its larger end (it
    is quasi-concave), or by its supremum around the largest grid values. Proof: proofs/objective_perturbation.md,
    proofs/multiclass.md.
    """
    slopes = loss.lipschitz * _GRID
    curvatures = loss.curvature_at_slope(slopes)
    cell_curvatures = np.maximum(curvatures[:-1], curvatures[1:])
    peaks = np.flatnonzero(curvatures == curvatures.max())
    cell_curvatures[max(0, peaks[0] - 1) : peaks[-1] + 1] = loss.trace
    already = loss.lipschitz if neighbours is Neighbours.REPLACE_ONE else 0.0
    return already + slopes[1:], loss.rank * np.log1p(cell_curvatures / loss.rank * row_norm**2 / l2 * _CURVATURE_UP)


def objective_noise_rate(epsilon: float, loss: LossBounds, row_norm: float, l2: float, neighbours: Neighbours) -> float:
    """Largest rate beta whose privacy loss is at most epsilon; 0 if the ridge alone leaves no room for noise.

    For a tapered loss, h(a) <= t (L - a), and beta >= t R^2 / l2 the curvature costs nothing: beta = epsilon / shift. For
    replace-one this is the condition epsilon l2 >= 2 t L R^2.
    """
    free = epsilon / gradient_shift(loss.lipschitz, neighbours) * _DOWN
    if loss.tapered and free * l2 >= loss.tail * row_norm**2 * _UP:
        return free
    # Every line of the bound stays below epsilon up to its own rate; the least of these is the answer.
    slopes, intercepts = _loss_lines(loss, row_norm, l2, neighbours)
    return max(0.0, float(((epsilon * _DOWN - intercepts) / slopes).min())) * _DOWN


def curvature_cost(loss: LossBounds, row_norm: float, l2: float) -> float:
    """c_J, the most that the curvature of one row adds to the privacy loss: r log(1 + T R^2 / (r l2)), T the trace."""
    return loss.rank * math.log1p(loss.trace / loss.rank * row_norm**2 / l2) * _UP


def least_l2(epsilon: float, loss: LossBounds, row_norm: float, noise_share: float = 0.5) -> float:
    """Least ridge of the sum form at which the curvature costs at most (1 - noise_share) epsilon: the slack branch.

    l2 >= (T / r) R^2 / (exp((1 - q) epsilon / r) - 1), q the public share of the noise.
    """
    # Above 700 nats the exponential overflows, and the ridge it asks for is nothing.
    exponent = min((1.0 - noise_share) * epsilon / loss.rank, 700.0)
    return loss.trace / loss.rank * row_norm**2 / math.expm1(exponent) * _UP


def calibrated_objective(
    epsilon: float, loss: LossBounds, row_norm: float, l2: float, neighbours: Neighbours, noise_share: float = 0.5
) -> tuple[float, float]:
    """The rate of the noise and the ridge to use, (beta, l2 total), for objective perturbation at epsilon.

    The ridge is raised (slack branch) where it would leave less than `noise_share` of epsilon to the noise. All of it is
    decided by public numbers. A threshold at 0, as published, allows noise without bound.
    """
    if not math.isfinite(loss.smoothness):
        raise ParameterError(f"objective perturbation needs a smooth loss, and {loss.name} is not smooth.")
    wanted = noise_share * epsilon / gradient_shift(loss.lipschitz, neighbours)
    rate = objective_noise_rate(epsilon, loss, row_norm, l2, neighbours)
    if rate < wanted * _DOWN:
        l2 = max(l2, least_l2(epsilon, loss, row_norm, noise_share))
        rate = objective_noise_rate(epsilon, loss, row_norm, l2, neighbours)
    return rate, l2
