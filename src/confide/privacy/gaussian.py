"""What the Gaussian mechanism costs: its exact curve. Proof: proofs/gaussian.md, theorem 1.

In formulas mu is the shift over the standard deviation. Curves are evaluated in logarithms, and calibrations end on the
private side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from confide.privacy.budgets import ZCDP, ApproxDP
from confide.types import Array

_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


def gaussian_delta(epsilon: float, mu: float) -> float:
    """The least delta at which N(mu, 1) against N(0, 1) is (epsilon, delta)-indistinguishable; any real epsilon.

    Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu). Balle and Wang (2018), theorem 5.
    """
    return float(gaussian_deltas(np.array([epsilon]), mu)[0])


def gaussian_deltas(epsilons: Array, mu: float) -> Array:
    """`gaussian_delta` at several epsilons."""
    if mu <= 0.0:
        certain: Array = np.maximum(0.0, -np.expm1(np.minimum(epsilons, 0.0)))
        return certain
    first = log_ndtr(0.5 * mu - epsilons / mu)
    second = epsilons + log_ndtr(-0.5 * mu - epsilons / mu)
    # exp(first) - exp(second), without losing the difference; first >= second up to rounding, which the last term covers.
    difference = -np.expm1(np.minimum(0.0, second - first)) * (1.0 + 1e-9) + 2.0**-48 * (1.0 - first)
    deltas: Array = np.exp(first) * difference + 2.0**-1000  # for what underflows
    return deltas


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


def largest_mu(epsilon: float, delta: float) -> float:
    """The largest mu at which the Gaussian mechanism is (epsilon, delta)-private, rounded down."""
    low, high = 0.0, math.sqrt(2.0 * epsilon) + 10.0
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if gaussian_delta(epsilon, middle) <= delta else (low, middle)
    return low


def mu_within(budget: ZCDP | ApproxDP, beside_mu: float = 0.0) -> float:
    """The largest mu at which the Gaussian mechanism costs at most the budget, and a little less.

    If it comes with other Gaussian releases of `beside_mu`, all together cost at most the budget; 0 if nothing is left.
    """
    whole = _mu_of_whole(budget)
    if not beside_mu:
        return whole
    # Squares add up: theorem 1. The factor covers the roundings of this line.
    return math.sqrt(max(0.0, (whole - beside_mu) * (whole + beside_mu))) * _DOWN


def _mu_of_whole(budget: ZCDP | ApproxDP) -> float:
    if isinstance(budget, ZCDP):
        return math.sqrt(2.0 * budget.rho * _DOWN)
    return largest_mu(budget.epsilon, budget.delta * _DOWN)
