"""Conversions from concentrated to approximate privacy."""

from __future__ import annotations

import math

import mpmath
import pytest
from scipy.optimize import minimize_scalar

from confide.privacy import budgets
from confide.privacy.budgets import (
    ZCDP,
    concentrated_epsilon,
    concentrated_limit,
)


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


@pytest.mark.parametrize("rho", [1e-9, 0.1, 30.0, 1e6])
def test_conversions_end_above_the_least_order_of_the_grid(rho):
    """Epsilon is a little above the exact value at each order of the grid, where the least of them is taken."""
    orders = budgets._ORDERS
    with mpmath.workdps(40):

        def exact(order):
            a = mpmath.mpf(float(order))
            return rho * a + mpmath.log(1 - 1 / a) - (mpmath.log(mpmath.mpf(1e-6)) + mpmath.log(a)) / (a - 1)

        at = int((rho * orders + budgets._order_penalty(1e-6)).argmin())
        least = min(exact(order) for order in orders[max(0, at - 1) : at + 2])
        found = concentrated_epsilon(rho, 1e-6)
        assert least + 0.5e-12 + 2.0**-41 * least <= found <= least + 2e-12 + 2.0**-39 * least


def test_the_orders_reach_from_near_1_to_where_tiny_budgets_have_their_best():
    """A ten-thousandth above 1 and 10^8, in steps of less than one part in a thousand of the excess."""
    excess = budgets._ORDERS - 1.0
    assert excess[0] == pytest.approx(1e-4, rel=1e-6)
    assert excess[-1] == pytest.approx(1e8)
    assert 0.0008 < (excess[1:] / excess[:-1] - 1.0).max() < 0.001


def test_no_budget_and_no_privacy_convert_to_themselves():
    assert concentrated_epsilon(0.0, 1e-6) == 0.0
    assert concentrated_epsilon(math.inf, 1e-6) == math.inf
    assert concentrated_limit(1e-12, 1e-30)[0] == 0.0


@pytest.mark.parametrize("epsilon", [1e6, 1e-5])
def test_the_concentrated_limit_is_rounded_down_by_its_allowances(epsilon):
    """At its own order: a part in 2^40 of epsilon and of what rho costs there, and 10^-12; 20% off is noticed."""
    found, order = concentrated_limit(epsilon, 0.5)
    with mpmath.workdps(40):
        a = mpmath.mpf(order)
        penalty = mpmath.log(1 - 1 / a) - (mpmath.log(0.5) + mpmath.log(a)) / (a - 1)
        lowered = epsilon - (found * a + penalty)
        lost = 2.0**-40 * (epsilon + found * order) + 1e-12
        assert 0.8 * lost < lowered < 1.2 * lost


def test_every_finite_rho_has_a_finite_epsilon_and_nothing_costs_nothing():
    assert 0.0 < concentrated_epsilon(math.pi, 1e-6) < 20.0
    assert concentrated_epsilon(0.0, 1e-30) == 0.0
