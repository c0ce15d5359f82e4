"""Conversions from concentrated to approximate privacy."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import minimize_scalar

from confide.privacy.budgets import (
    ZCDP,
)
from confide.privacy.conversions import concentrated_epsilon, concentrated_limit


@pytest.mark.parametrize(("rho", "epsilon"), [(0.5, 5.22153), (0.1, 2.14194), (0.01, 0.62169)])
def test_concentrated_privacy_converts_as_tightly_as_published(rho, epsilon):
    """Fixtures at delta = 1e-6, five decimals; never below the infimum over all orders."""
    found = ZCDP(rho).to_approx(1e-6)
    assert found.epsilon == pytest.approx(epsilon, abs=1.1e-5)
    assert found.delta == 1e-6

    def at(log_excess):
        order = 1 + math.exp(log_excess)
        return rho * order + math.log1p(-1 / order) - (math.log(1e-6) + math.log(order)) / (order - 1)

    least = minimize_scalar(at, bounds=(-2.0, 8.0), method="bounded", options={"xatol": 1e-9}).fun
    assert least * (1 - 1e-12) <= found.epsilon <= least * (1 + 1e-5)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-2])
def test_the_concentrated_limit_is_the_inverse_on_the_private_side(epsilon, delta):
    """Its rho converts to at most epsilon, and 0.2% more converts to more."""
    rho, order = concentrated_limit(epsilon, delta)
    assert concentrated_epsilon(rho, delta) <= epsilon
    assert concentrated_epsilon(1.002 * rho, delta) > epsilon
    assert order > 1.0
