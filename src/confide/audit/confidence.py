"""What two counts say about a guarantee: Clopper-Pearson bounds, and the amounts of privacy that they refute.

Source: Clopper and Pearson (1934); Jagielski, Ullman and Oprea (2020), "Auditing differentially private machine learning".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtri

from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP

_ORDERS = 1.0 + np.geomspace(1e-3, 30.0, 200)


def lower_bound(hits: Any, n: int, confidence: float) -> Any:
    """Clopper and Pearson's bound from below on a probability: it is too high with probability (1 - confidence) / 2.

    Parameters
    ----------
    hits : int or array of numbers
        How often the event was seen.
    n : int
        Out of how many.
    confidence : float in (0, 1)
        Of this bound and the upper one together.
    """
    found = betaincinv(np.maximum(hits, 1e-300), n - np.asarray(hits) + 1.0, 0.5 - 0.5 * confidence)
    return np.where(np.asarray(hits) <= 0, 0.0, found)[()]


def upper_bound(hits: Any, n: int, confidence: float) -> Any:
    """The same from above; see `lower_bound`."""
    return 1.0 - lower_bound(n - np.asarray(hits), n, confidence)


@dataclass(frozen=True, slots=True)
class Separation:
    """An event that is likely under one data set and unlikely under its neighbour.

    Attributes
    ----------
    low : float in [0, 1]
        The event has at least this probability under the first data set.
    high : float in [0, 1]
        It has at most this probability under the second.
    """

    low: float
    high: float

    def epsilon(self, delta: float = 0.0) -> float:
        """The least epsilon at this delta that allows such an event, at least 0."""
        ratios = [
            math.log((inside - delta) / max(outside, 1e-300))
            for inside, outside in ((self.low, self.high), (1.0 - self.high, 1.0 - self.low))
            if inside > delta
        ]
        return max(0.0, *ratios, 0.0)

    def delta(self, epsilon: float) -> float:
        """The least delta at this epsilon that allows such an event, at least 0."""
        factor = math.exp(min(epsilon, 700.0))
        return max(0.0, self.low - factor * self.high, (1.0 - self.high) - factor * (1.0 - self.low))

    @property
    def rho(self) -> float:
        """The least rho of zero-concentrated privacy that allows such an event, at least 0."""
        p, q = self.low, self.high
        if p <= q:
            return 0.0
        found = 0.0
        for one, other in ((p, q), (1.0 - q, 1.0 - p)):
            with np.errstate(divide="ignore", over="ignore"):
                logs = np.logaddexp(_log_moment(one, other), _log_moment(1.0 - one, 1.0 - other))
            found = max(found, float((logs / (_ORDERS - 1.0) / _ORDERS).max()))
        return found

    @property
    def mu(self) -> float:
        """The least mu of Gaussian privacy that allows such an event, at least 0."""
        p, q = min(self.low, 1.0 - 1e-300), max(self.high, 1e-300)
        return max(0.0, float(ndtri(p) - ndtri(q))) if p > q else 0.0

    def spent(self, budget: Budget) -> float:
        """The least amount of the budget's own currency that allows such an event: epsilon at its delta, or rho."""
        if isinstance(budget, ZCDP):
            return self.rho
        return self.epsilon(budget.delta if isinstance(budget, ApproxDP) else 0.0)


def claimed(budget: Budget) -> float:
    """The amount that a budget allows, in its own currency: epsilon or rho."""
    return budget.rho if isinstance(budget, ZCDP) else budget.epsilon


def currency(budget: Budget) -> str:
    """What `Separation.spent` measures for this budget."""
    if isinstance(budget, ZCDP):
        return "rho"
    return "epsilon" if isinstance(budget, PureDP) else f"epsilon at delta {budget.delta:g}"


def _log_moment(p: float, q: float) -> Any:
    """Logarithm of p^a q^(1 - a) for each order a."""
    if p <= 0.0:
        return np.full(_ORDERS.shape, -np.inf)
    return _ORDERS * math.log(p) - (_ORDERS - 1.0) * math.log(max(q, 1e-300))
