"""Conversions from concentrated to approximate privacy, as functions of numbers. Proof: proofs/gaussian.md, section 8."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_ORDERS = 1.0 + np.geomspace(1e-4, 1e8, 2**15)
_LOGS = np.log1p(-1.0 / _ORDERS) - np.log(_ORDERS) / (_ORDERS - 1.0)


def _order_penalty(delta: float) -> Any:
    """What each order adds to epsilon when a Rényi divergence is converted to (epsilon, delta).

    log(1 - 1/a) - (log delta + log a) / (a - 1), Canonne, Kamath and Steinke (2020), proposition 12. Any order is valid.
    """
    return _LOGS - math.log(delta) / (_ORDERS - 1.0)


def concentrated_epsilon(rho: float, delta: float) -> float:
    """Least epsilon over a grid of orders such that rho-zCDP implies (epsilon, delta)."""
    if rho == math.inf:
        return math.inf
    epsilon = float((rho * _ORDERS + _order_penalty(delta)).min())
    return max(0.0, epsilon + 1e-12 + abs(epsilon) * 2.0**-40) if rho > 0.0 else 0.0


def concentrated_limit(epsilon: float, delta: float) -> tuple[float, float]:
    """Largest rho such that rho-zCDP implies (epsilon, delta), and the order of the grid at which it does."""
    rhos = (epsilon * (1.0 - 2.0**-40) - 1e-12 - _order_penalty(delta)) / _ORDERS
    best = int(rhos.argmax())
    return max(0.0, float(rhos[best]) * (1.0 - 2.0**-40)), float(_ORDERS[best])
