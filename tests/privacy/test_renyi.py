"""Rényi divergences of Gaussian objective perturbation, and the rho of its concentrated privacy."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.privacy import renyi
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.gaussian_objective import GaussianObjective
from confide.privacy.renyi import _of_cells, concentrated_rho, renyi_curve

ORDERS = 1.0 + np.geomspace(1e-4, 1e5, 300)
CURVES = {
    "tapered": GaussianObjective(0.1, 0.02, 0.01, 0.01, Neighbours.REPLACE_ONE, monotone=True),
    "tapered, one more row": GaussianObjective(0.3, 0.2, 0.1, 0.01, Neighbours.ADD_OR_REMOVE_ONE, monotone=True),
    "one sign": GaussianObjective(0.1, 0.02, math.inf, 0.01, Neighbours.REPLACE_ONE, monotone=True),
    "either sign": GaussianObjective(0.2, 0.05, math.inf, 0.0, Neighbours.REPLACE_ONE),
    "bent": GaussianObjective(0.1, 0.05, 0.2, 0.01, Neighbours.REPLACE_ONE, monotone=True, bend=0.2, evenness=0.8),
    "three classes, bent": GaussianObjective(0.2, 0.1, math.inf, 0.01, Neighbours.REPLACE_ONE, True, 3, True, bend=0.3),
    "three classes": GaussianObjective(0.2, 0.05, math.inf, 0.01, Neighbours.REPLACE_ONE, True, 3, False),
}
each_curve = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@each_curve
def test_one_order_has_the_value_of_the_whole_curve(curve):
    """`renyi` of an event and the curve that a search evaluates are the same bound."""
    np.testing.assert_array_equal([curve.renyi(order) for order in ORDERS], renyi_curve(curve, ORDERS))


@each_curve
def test_rho_bounds_every_order_and_is_reached(curve):
    """The divergence over the order stays below rho; at some order, or in the limit, it comes within a hundredth."""
    ratios = renyi_curve(curve, ORDERS) / ORDERS
    rho = concentrated_rho(curve)
    assert (ratios <= rho).all()
    shift = (2.0 if curve.neighbours is Neighbours.REPLACE_ONE else 1.0) * curve.mu
    assert max(ratios.max(), 0.5 * (shift**2 + curve.seal_mu**2)) >= 0.99 * rho


@each_curve
def test_rho_covers_orders_beyond_the_grid(curve, monkeypatch):
    """With nothing from the orders of the grid: what is left still bounds orders from the last one of the grid on."""
    monkeypatch.setattr(renyi, "renyi_curve", lambda _, orders: np.zeros_like(orders))
    rho, far = concentrated_rho.__wrapped__(curve), np.array([2.0**21, 2.0**24])
    assert (renyi_curve(curve, far) / far <= rho * (1.0 + 1e-9)).all()


@each_curve
def test_the_objective_costs_at_least_its_gaussian_shift(curve):
    """For large orders the divergence over the order tends to half of the squared shifts."""
    shift = (2.0 if curve.neighbours is Neighbours.REPLACE_ONE else 1.0) * curve.mu
    assert renyi_curve(curve, ORDERS)[-1] / ORDERS[-1] == pytest.approx(0.5 * (shift**2 + curve.seal_mu**2), rel=0.05)


@pytest.mark.parametrize(("first", "last"), [(0.001, 0.01), (0.5, 2.0), (3.0, 6.0)])
def test_a_cell_of_orders_bounds_the_chord_over_the_order(first, last):
    """The largest chord over x (1 + x), x the order less 1, by a search: below the bound, and close to it."""
    raised, ratios = np.array([first, last]), np.array([0.8, 0.8])
    x = np.linspace(first, last, 20_001)
    chord = np.interp(x, raised, ratios * raised * (1.0 + raised))
    exact = (chord / (x * (1.0 + x))).max()
    (bound,) = _of_cells(raised, ratios)
    assert exact <= bound
    assert bound - 0.8 <= 2.5 * (exact - 0.8)


@each_curve
def test_beside_releases_and_the_seal_add_half_of_their_square(curve):
    """Divergences add up: a seal and a release beside it cost a (nu^2 + m^2) / 2 at the order a."""
    bare = replace(curve, seal_mu=0.0, beside_mu=0.0)
    together = replace(curve, seal_mu=0.3, beside_mu=0.4)
    found = renyi_curve(together, ORDERS) - renyi_curve(bare, ORDERS)
    np.testing.assert_allclose(found, 0.5 * np.maximum(ORDERS, 1.0 + 2.0**-10) * 0.25, rtol=1e-6)
    assert concentrated_rho(together) >= concentrated_rho(bare) + 0.125 * (1.0 - 1e-3)


def test_the_gaussian_mechanism_has_half_of_its_squared_shift():
    """Its divergence of order a is a mu^2 / 2."""
    assert 0.02 <= concentrated_rho(GaussianMechanism(0.2)) <= 0.02 * (1.0 + 1e-9)
