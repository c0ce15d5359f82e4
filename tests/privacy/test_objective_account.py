"""Rényi divergences of Gaussian objective perturbation, and the rho of its concentrated privacy."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import optimize, stats

from confide.privacy import objective_account
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective, _of_cells, concentrated_rho, renyi_curve

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
    monkeypatch.setattr(objective_account, "renyi_curve", lambda _, orders: np.zeros_like(orders))
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
    assert 0.02 <= GaussianMechanism(0.2).rho <= 0.02 * (1.0 + 1e-9)


def page_of_corners(curve, order):
    """The smaller form of theorem 5 of gaussian.md, or of theorem 3 of target_losses.md, without the seal; in 40 digits."""
    a, mu, kappa = mpmath.mpf(order), mpmath.mpf(curve.mu), mpmath.mpf(curve.kappa)
    phi, e = mpmath.ncdf, mpmath.exp
    replaced = curve.neighbours is Neighbours.REPLACE_ONE

    def h(m):
        return phi(-m / 2) + e(a * (a - 1) * m**2 / 2) * phi((a - mpmath.mpf(1) / 2) * m)

    def g(m):
        return 2 * e(a * (a - 1) * m**2 / 2) * phi((a - 1) * m)

    if not curve.monotone:
        moment = g(2 * mu) + 2 * phi((a - 1) * 2 * mu) - 1 if replaced else g(mu)
        return curve.curvature + mpmath.log(moment) / (a - 1)
    moment = 1 + sum(count * (h(shift * mu) - 1) for shift, count in curve.corners())
    forms = [curve.curvature + mpmath.log(moment) / (a - 1)]
    if curve.kappa < math.inf and replaced:
        forms.append(mpmath.log((e((a - 1) * kappa) + 1) * h(mu) + h(2 * mu) - 2) / (a - 1))
    elif curve.kappa < math.inf:
        above = e(a * (a - 1) * mu**2 / 2) * phi((a - mpmath.mpf(1) / 2) * mu - kappa / mu)
        forms.append(mpmath.log(e((a - 1) * kappa) * phi(kappa / mu - mu / 2) + above) / (a - 1))
    return min(forms)


MORE_CURVES = {
    **CURVES,
    "a large kappa": GaussianObjective(0.3, 9.0, 5.0, 0.0, Neighbours.REPLACE_ONE, monotone=True),
    "a large kappa, one more row": GaussianObjective(0.3, 9.0, 5.0, 0.0, Neighbours.ADD_OR_REMOVE_ONE, monotone=True),
    "one sign, one more row": GaussianObjective(0.3, 0.1, math.inf, 0.0, Neighbours.ADD_OR_REMOVE_ONE, monotone=True),
    "either sign, one more row": GaussianObjective(0.3, 0.1, math.inf, 0.0, Neighbours.ADD_OR_REMOVE_ONE),
}


@pytest.mark.parametrize("curve", MORE_CURVES.values(), ids=MORE_CURVES)
def test_the_bound_by_corners_is_that_of_the_page(curve):
    """Never below, and above by its allowances alone: relative 2^-40, and N 2^-49 / (a - 1) for N corners."""
    orders = 1.0 + np.array([2.0**-10, 0.03, 0.5, 1.0, 6.0, 40.0, 1e3])
    corners = sum(count for _, count in curve.corners())
    with mpmath.workdps(40):
        for order, found in zip(orders, objective_account._of_corners(curve, orders), strict=True):
            exact = page_of_corners(curve, order)
            allowed = float(exact) * 2.0**-40 + 2.0**-49 * corners / (order - 1.0)
            assert 0.7 * allowed <= float(found - exact) <= 1.3 * allowed + 1e-15 * float(exact)


Z = np.linspace(-10.0, 10.0, 1001)


def least_mean(order, cases):
    """log of the least over c of the mean of max(F(up), F(lo)) of lemma 4, each end given at the points Z; over a - 1."""
    chances = stats.norm.pdf(Z) * (Z[1] - Z[0])

    def mean(log_charge, *ends):
        values = [np.exp((order - 1.0) * end) + np.exp(log_charge) * np.expm1(-end) for end in ends]
        return float(np.maximum(*values) @ chances)

    least = [optimize.minimize_scalar(mean, bounds=(-20.0, 8.0), args=case, method="bounded").fun for case in cases]
    return math.log(max(least)) / (order - 1.0)


@pytest.mark.parametrize("order", [1.01, 1.5, 3.0, 10.0])
@pytest.mark.parametrize("n_outputs", [1, 2])
def test_the_bound_by_ends_is_that_of_the_page(n_outputs, order):
    """One more row, by a search over slopes: of one score, and of two scores that bend together, which is the same form.

    A row costs at most log(1 + b a (1 - a)), for two scores sqrt(2) b a (1 - a), b the bend.
    """
    mu, b = 0.4, 0.3
    curve = GaussianObjective(
        mu, 9.0, math.inf, 0.0, Neighbours.ADD_OR_REMOVE_ONE, True, n_outputs, separable=n_outputs == 1, bend=b
    )
    a = np.linspace(0.0, 1.0, 101)[:, None]
    straight = 0.5 * (a * mu) ** 2
    if n_outputs == 1:
        middle = b / 8.0
        cost = math.log1p(middle) - middle / (1.0 + middle) + b * a * (1.0 - a) / (1.0 + middle)
    else:
        cost = math.sqrt(2.0) * b * a * (1.0 - a)
    cases = [
        ((a * mu * Z + straight + cost).max(axis=0), (a * mu * Z + straight).min(axis=0)),
        ((a * mu * Z + straight).max(axis=0), (a * mu * Z + straight - cost).min(axis=0)),
    ]
    (found,) = objective_account._of_ends(curve, np.array([order]))
    assert found == pytest.approx(least_mean(order, cases), rel=0.02)


def test_what_costs_the_same_at_every_order_has_that_rho(monkeypatch):
    """Orders next to 1 decide: there the divergence over the order is the divergence itself."""
    monkeypatch.setattr(objective_account, "renyi_curve", lambda _, orders: np.full_like(orders, 0.7))
    rho = concentrated_rho.__wrapped__(GaussianObjective(1e-3, 0.0, math.inf, 0.0, Neighbours.REPLACE_ONE, True))
    assert 0.7 * (1.0 + 0.5 * 2.0**-40) <= rho <= 0.7 * (1.0 + 2.0**-39)


@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("mu", "n_outputs"), [(1e-6, 1), (1e-6, 4), (1e-3, 1)])
def test_beyond_the_last_order_rho_is_that_of_theorem_6(mu, n_outputs, neighbours, monkeypatch):
    """(s^2 mu^2 + nu^2) / 2 + (c_J + log(2 max(3, N)) / x) / x, x the last order less 1: 2^20, or 16 / mu if it is more."""
    monkeypatch.setattr(objective_account, "renyi_curve", lambda _, orders: np.zeros_like(orders))
    curve = GaussianObjective(mu, 0.2 * mu, math.inf, 0.3 * mu, neighbours, True, n_outputs, beside_mu=0.4 * mu)
    x, shift = max(2.0**20, 16.0 / mu), 2.0 * mu if neighbours is Neighbours.REPLACE_ONE else mu
    corners = 1 if n_outputs == 1 else 2**n_outputs - 1
    if neighbours is Neighbours.REPLACE_ONE:
        corners = 3 if n_outputs == 1 else 2 ** (2 * n_outputs) - 1
    exact = 0.5 * (shift**2 + 0.25 * mu**2) + (0.2 * mu + math.log(2.0 * max(3, corners)) / x) / x
    assert concentrated_rho.__wrapped__(curve) == pytest.approx(exact, rel=1e-9, abs=0.0)


def test_the_grid_of_orders_is_fine_where_rho_is_decided():
    """The largest divergence over the order, by a dense search: rho is above it by less than two parts in a thousand."""
    curve = CURVES["bent"]
    orders = 1.0 + np.geomspace(2.0**-10, 2.0**20, 4001)
    largest = (renyi_curve(curve, orders) / orders).max()
    assert largest <= concentrated_rho(curve) <= 1.002 * largest
