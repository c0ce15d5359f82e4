"""What the Gaussian mechanism costs: its exact curve. Proof: proofs/gaussian.md, theorem 1.

In formulas mu is the shift over the standard deviation. Curves are evaluated in logarithms, and calibrations end on the
private side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from confide.array_types import Array
from confide.erm.losses import LossConstants
from confide.errors import ParameterError
from confide.privacy.budgets import Budget, Neighbours

_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta at which N(mu, 1) against N(0, 1) is (epsilon, delta)-indistinguishable; any real epsilon.

    Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu). Balle and Wang (2018), theorem 5.
    """
    return float(gaussian_deltas(epsilon, mu))


def gaussian_deltas(epsilons: Array | float, mu: float) -> Array:
    """`gaussian_delta` at several epsilons."""
    if mu <= 0.0:
        return np.asarray(np.maximum(0.0, -np.expm1(np.minimum(epsilons, 0.0))))
    first = log_ndtr(0.5 * mu - epsilons / mu)
    second = epsilons + log_ndtr(-0.5 * mu - epsilons / mu)
    # exp(first) - exp(second), without losing the difference; first >= second up to rounding, which the last term covers.
    difference = -np.expm1(np.minimum(0.0, second - first)) * (1.0 + 1e-9) + 2.0**-48 * (1.0 - first)
    return np.asarray(np.exp(first) * difference + 2.0**-1000)  # for what underflows


@dataclass(frozen=True, slots=True)
class GaussianMechanism:
    """A release whose curve is at most that of the Gaussian mechanism.

    Parameters
    ----------
    mu : sensitivity over standard deviation, positive
    """

    mu: float

    def renyi(self, order: float) -> float:
        """Upper bound on the Rényi divergence of this order, above 1."""
        return 0.5 * order * self.mu**2 * _UP

    @property
    def rho(self) -> float:
        """Upper bound on renyi(order) / order over all orders."""
        return self.renyi(1.0)


@lru_cache(maxsize=1024)
def largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu at which the Gaussian mechanism is (epsilon, delta)-private, rounded down."""
    low, high = 0.0, math.sqrt(2.0 * epsilon) + 10.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


def ideal_mu(budget: Budget, down: float = 1.0) -> float:
    """The largest mu at which the Gaussian mechanism costs `down` times rho, or epsilon and `down` times delta.

    A pure budget allows none: it is 0 there.
    """
    if budget.is_concentrated:
        return math.sqrt(2.0 * budget.amount * down)
    return 0.0 if budget.is_pure else largest_mu(budget.amount, budget.slack * down)


def mu_within(budget: Budget, beside_mu: float = 0.0) -> float:
    """The largest mu at which the Gaussian mechanism costs at most the budget, and a little less.

    If it comes with other Gaussian releases of `beside_mu`, all together cost at most the budget; 0 if nothing is left.
    """
    whole = ideal_mu(budget, _DOWN)
    if not beside_mu:
        return whole
    # Squares add up: theorem 1. The factor covers the roundings of this line.
    return math.sqrt(max(0.0, (whole - beside_mu) * (whole + beside_mu))) * _DOWN


# Formulas of the theorems on Laplace noise, without data and state. Rates are rounded down, and costs up.
#
# Symbols inside formulas: L lipschitz and c smoothness of the loss of a row, its weight included; R largest L2 norm of a
# row with its intercept, l2 ridge of the sum form (lambda), beta rate of Laplace noise in the norm of its shape, in which
# each row has norm at most 1. Proofs: proofs/objective_perturbation.md and proofs/output_perturbation.md.

_CURVATURE_UP = 1.0 + 2.0**-30
"""Covers the digits that 1 - a loses for a steep slope a that was computed from a slope times a weight."""
_GRID = np.linspace(0.0, 1.0, 2**14 + 1)


def gradient_shift(lipschitz: float, neighbours: Neighbours) -> float:
    """Largest change of the summed gradient between neighbours at the same weights, in a norm where rows are at most 1."""
    return (2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0) * lipschitz


def output_sensitivity(lipschitz: float, row_norm: float, l2: float, neighbours: Neighbours) -> float:
    """Largest L2 distance between the exact minimisers of neighbours. Lemma 1 of Chaudhuri et al. (2011): 2LR / l2.

    Proof: proofs/output_perturbation.md, theorem 1. Holds for non-differentiable convex losses too.
    """
    return gradient_shift(lipschitz, neighbours) * row_norm / l2 * _UP


def _loss_lines(loss: LossConstants, row_norm: float, l2: float, neighbours: Neighbours) -> tuple[Array, Array]:
    """Lines in the rate, (slope, intercept), whose maximum bounds the privacy loss E(beta) of objective perturbation.

        E(beta) = max over slopes a in [0, L] of  beta (L + a) + log(1 + h(a) R^2 / l2)      (replace one)
                                                  beta a       + log(1 + h(a) R^2 / l2)      (add or remove one)

    with h(a) the largest curvature at slope a. For a loss of rank r, h(a) is the largest trace, and the logarithm is r log(1
    + h(a) R^2 / (r l2)). Each cell of a grid gives one line. Its first term is taken at the right end of the cell. For h(a)
    it takes the larger of the two ends, since h is quasi-concave, or the supremum of h in the cells next to the largest grid
    values. Proof: proofs/objective_perturbation.md, theorem 4; proofs/multiclass.md, theorem 2.
    """
    slopes = loss.lipschitz * _GRID
    curvatures = loss.curvature_at_slope(slopes)
    cell_curvatures = np.maximum(curvatures[:-1], curvatures[1:])
    peaks = np.flatnonzero(curvatures == curvatures.max())
    cell_curvatures[max(0, peaks[0] - 1) : peaks[-1] + 1] = loss.trace
    already = loss.lipschitz if neighbours is Neighbours.REPLACE_ONE else 0.0
    return already + slopes[1:], loss.rank * np.log1p(cell_curvatures / loss.rank * row_norm**2 / l2 * _CURVATURE_UP)


def objective_noise_rate(epsilon: float, loss: LossConstants, row_norm: float, l2: float, neighbours: Neighbours) -> float:
    """Largest rate beta whose privacy loss is at most epsilon; 0 if the ridge alone leaves no room for noise.

    A tapered loss has h(a) <= t (L - a). If beta >= t R^2 / l2 its curvature costs nothing, and beta = epsilon / shift. For
    replace-one this is the condition epsilon l2 >= 2 t L R^2.
    """
    free = epsilon / gradient_shift(loss.lipschitz, neighbours) * _DOWN
    if loss.tapered and free * l2 >= loss.tail * row_norm**2 * _UP:
        return free
    # Each line of the bound stays below epsilon up to a rate of its own. The least of these rates is the answer.
    slopes, intercepts = _loss_lines(loss, row_norm, l2, neighbours)
    return max(0.0, float(((epsilon * _DOWN - intercepts) / slopes).min())) * _DOWN


def curvature_cost(loss: LossConstants, row_norm: float, l2: float) -> float:
    """c_J, the largest cost of the curvature of one row in privacy loss: r log(1 + T R^2 / (r l2)), T the trace."""
    return loss.rank * math.log1p(loss.trace / loss.rank * row_norm**2 / l2) * _UP


def least_l2(epsilon: float, loss: LossConstants, row_norm: float, noise_share: float = 0.5) -> float:
    """Least ridge of the sum form at which the curvature costs at most (1 - noise_share) epsilon: the slack branch.

    l2 >= (T / r) R^2 / (exp((1 - q) epsilon / r) - 1), q the public share of the noise.
    """
    # Above 700 the exponential would overflow; the ridge that it asks for is as good as 0 there.
    exponent = min((1.0 - noise_share) * epsilon / loss.rank, 700.0)
    return loss.trace / loss.rank * row_norm**2 / math.expm1(exponent) * _UP


def calibrated_objective(
    epsilon: float, loss: LossConstants, row_norm: float, l2: float, neighbours: Neighbours, noise_share: float = 0.5
) -> tuple[float, float]:
    """The rate of the noise and the ridge to use, (beta, l2 total), for objective perturbation at epsilon.

    The ridge is raised (slack branch) where it would leave less than `noise_share` of epsilon to the noise. Public numbers
    alone decide it. The published algorithm raises the ridge only where nothing is left, which allows noise of any size.
    """
    if not math.isfinite(loss.smoothness):
        raise ParameterError(f"objective perturbation needs a smooth loss, and {loss.name} is not smooth.")
    wanted = noise_share * epsilon / gradient_shift(loss.lipschitz, neighbours)
    rate = objective_noise_rate(epsilon, loss, row_norm, l2, neighbours)
    if rate < wanted * _DOWN:
        l2 = max(l2, least_l2(epsilon, loss, row_norm, noise_share))
        rate = objective_noise_rate(epsilon, loss, row_norm, l2, neighbours)
    return rate, l2
