"""Plans for objective perturbation with Gaussian noise: the least noise that the theorems allow."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

import confide
from confide import Ledger, LogisticRegression
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.target_losses import SquaredLoss
from confide.errors import InsufficientRegularisation
from confide.privacy import objective_perturbation
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, concentrated_epsilon, pure_epsilon
from confide.privacy.gaussian import gaussian_delta, ideal_mu
from confide.privacy.objective_account import GaussianObjective, concentrated_rho
from confide.privacy.objective_perturbation import (
    ObjectivePerturbation,
    _bend,
    _largest,
    _largest_concentrated,
    gaussian_plan,
)
from confide.privacy.shapes import Ball, Groups
from tests.privacy.densities import (
    gaussian_multiplier,
    least_gaussian_scale,
    objective_delta,
    shaped_kappa,
)
from tests.privacy.problems import GROUPS, LINKED, objective_plan, problem, shape_named

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE


def pieces_of(shape):
    """(length, columns) of the pieces of a shape: groups, or linked groups without their mean and their shared direction."""
    parts = list(zip(shape.scales, shape.sizes, shape.linked, strict=True))
    if not any(shape.linked):
        return [(s, k) for s, k, _ in parts]
    shared = parts[-1][0] ** 2 + sum(s**2 / k for s, k, flag in parts if flag)
    return [*((s * math.sqrt(1 - flag / k), k - flag) for s, k, flag in parts[:-1]), (math.sqrt(shared), 1)]


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("l2", [6.0, 31.0, 300.0])
@pytest.mark.parametrize("shape", ["ball", "groups", "linked"])
def test_at_adult_size_the_noise_is_the_least_that_the_theorems_allow(shape, l2, neighbours):
    """n = 32,561, the schema's columns, epsilon 1, delta 1e-6: within 2% of the least scale without any seal, never below.

    The ridges are where the curvature costs much, where the kappa form is the better one, and where it costs nothing.
    """
    settings = LogisticRegression(1.0, schema=confide.datasets.load_adult().schema)
    facts = settings.plan(32561).problem
    facts = problem(
        32561, facts.n_features, row_bound=facts.row_bound, intercept=facts.intercept, l2=l2, neighbours=neighbours
    )
    plan = objective_plan(facts, ApproxDP(1.0, 1e-6), "gaussian", shape)
    curvature = math.log1p(0.25 * facts.row_norm**2 / l2)

    def within(scale):
        kappa = shaped_kappa(pieces_of(plan.noise.shape), scale, l2)
        return objective_delta(1.0, 1.0 / scale, curvature, kappa, neighbours is REPLACE) <= 1e-6

    least = least_gaussian_scale(within)
    assert plan.added_l2 == 0.0
    assert least * (1 - 1e-6) <= plan.noise.scale <= 1.02 * least
    assert plan.seal_share < 0.01
    shift = 2.0 if neighbours is REPLACE else 1.0
    if l2 == 300.0:  # the curvature costs nothing: the exact multiplier of the Gaussian mechanism
        assert least == pytest.approx(shift * gaussian_multiplier(1.0, 1e-6), rel=0.02)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0])
def test_the_published_noise_for_add_or_remove_one_is_more_than_enough_and_not_for_replace_one(epsilon):
    """Kifer, Smith and Thakurta: ridge 2 c / epsilon, variance (8 log(2 / delta) + 4 epsilon) / epsilon^2, delta 1e-6.

    Their delta is kept with a factor of 10^4 or more to spare; under replace-one it would be exceeded by 10 and more.
    """
    loss, delta = LogisticLoss(), 1e-6
    deviation = math.sqrt(8.0 * math.log(2.0 / delta) + 4.0 * epsilon) / epsilon
    curvature = math.log1p(loss.constants.smoothness / (2.0 * loss.constants.smoothness / epsilon))
    ratios = {
        neighbours: GaussianObjective(1.0 / deviation, curvature, math.inf, 0.0, neighbours, True).delta(epsilon) / delta
        for neighbours in Neighbours
    }
    assert 1e-10 < ratios[ADD] < 1e-4
    assert 10.0 < ratios[REPLACE] < 50.0


BUDGETS = [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.05)]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
def test_finite_precision_costs_little_at_every_size(budget, neighbours):
    """Rows from 10^3 to 10^6, columns from 1 to 1000, automatic alpha: below 1% of the budget and 14% of the noise."""
    for n_rows, n_features in itertools.product((10**3, 10**4, 10**5, 10**6), (1, 10, 100, 1000)):
        bounds = (n_rows, n_rows) if neighbours is ADD else None
        model = LogisticRegression(budget, neighbours=neighbours, n_rows_bounds=bounds, mechanism="objective")
        plan = model.plan(n_rows, n_features)
        assert 0.0 < plan.seal_share <= 0.01
        assert 0.0 < plan.seal_norm <= 0.14 * plan.noise_norm


def test_a_batch_of_concentrated_releases_costs_what_their_curves_cost():
    """Two releases of rho 0.1 are no (0.2, 1e-6): rho is no epsilon. The batch is at least as dear as one of them alone.

    The law of one release at the plan's scale, in the worst direction of a loss in its linear zone, is known exactly.
    """
    plan = ObjectivePerturbation().plan(problem(1000, 60, l2=100.0), ZCDP(0.1))
    assert plan.noise.law == "gaussian"
    alone = least_gaussian_scale(lambda epsilon: profile_of_a_shift(epsilon, 2.0 / plan.noise.scale) <= 1e-6, high=100.0)
    ledger = Ledger(limit=ApproxDP(20.0, 1e-5), accounting="sum")
    ledger.plan([plan] * 2, delta=1e-6)
    spent = ledger.spent()
    assert alone <= spent.epsilon <= 1.001 * concentrated_epsilon(0.2, 1e-6)


def profile_of_a_shift(epsilon, mu):
    """The profile of the Gaussian mechanism, in SciPy's functions alone."""
    return stats.norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)


@pytest.mark.parametrize("relation", Neighbours)
@pytest.mark.parametrize("rho", [0.001, 0.005, 0.05, 0.5])
def test_concentrated_plans_at_the_automatic_ridge_have_nearly_the_noise_of_the_ideal_mechanism(rho, relation):
    """100 columns: at most 1.15 times the noise of the Gaussian mechanism that knows no curvature; all of rho is used."""
    bounds = (50_000, 50_000) if relation is ADD else None
    plan = LogisticRegression(ZCDP(rho), neighbours=relation, n_rows_bounds=bounds, mechanism="objective").plan(50_000, 100)
    shift = 2.0 if relation is REPLACE else 1.0
    least = plan.noise.shape.gaussian_norm(shift * plan.problem.loss_bounds.lipschitz / math.sqrt(2.0 * rho))
    assert least <= plan.noise.norm <= 1.15 * least
    assert 0.999 * rho <= concentrated_rho(plan.event.curve) <= rho


@pytest.mark.parametrize("shape", ["ball", "groups", "linked"])
def test_the_bend_of_a_plan_is_that_of_its_ridge_and_shape(shape):
    """B = L R^2 / l2; every row of the shape has at most the bend of its whitened length, and some have all of it."""
    facts = LogisticRegression(1.0, schema=confide.datasets.load_adult().schema).plan(32561).problem
    facts = problem(32561, facts.n_features, row_bound=facts.row_bound, intercept=facts.intercept, l2=900.0, neighbours=ADD)
    plan = objective_plan(facts, ZCDP(0.05), "gaussian", shape)
    curve, noise = plan.event.curve, plan.noise
    assert curve.bend == pytest.approx(facts.row_norm**2 / 900.0, rel=1e-6)
    pieces = list(zip(noise.shape.pieces, noise.shape.gaussian_deviations(noise.scale), strict=True))
    ratios = []
    # Rows that are full in the pieces of the most noise have the largest norm at their whitened length.
    for n in range(1, len(pieces) + 1):
        full = sorted(pieces, key=lambda piece: -piece[1])[:n]
        whitened = sum((length / deviation * noise.scale) ** 2 for (length, _), deviation in full)
        norm = sum(length**2 for (length, _), _ in full) / facts.row_norm**2
        first = curve.even_bend * whitened / curve.evenness**2
        rest = curve.even_bend + (1.0 - curve.even_bend) * (whitened - curve.evenness**2) / max(1e-9, 1 - curve.evenness**2)
        ratios.append(norm / (rest if whitened > curve.evenness**2 else first))
    assert 0.99 < max(ratios) <= 1.0 + 1e-6
    assert (curve.evenness, curve.even_bend) == (1.0, 1.0) or shape != "ball"


@pytest.mark.parametrize("budget", [ZCDP(0.02), ZCDP(0.5), ZCDP(3.0), ApproxDP(0.3, 1e-5), ApproxDP(2.0, 1e-2)])
def test_the_search_begins_at_what_the_budget_admits_without_curvature(budget):
    """The Gaussian mechanism of this ratio costs the whole budget, and one of 1% more would cost more than that."""

    def cost(mu):
        return 0.5 * mu**2 / budget.rho if isinstance(budget, ZCDP) else gaussian_delta(budget.epsilon, mu) / budget.delta

    assert cost(ideal_mu(budget)) == pytest.approx(1.0, rel=1e-4)
    assert cost(1.01 * ideal_mu(budget)) > 1.01


@pytest.mark.parametrize("neighbours", [REPLACE, ADD])
@pytest.mark.parametrize("share", [0.01, 0.14])
def test_the_seal_covers_two_radii_at_its_share_of_the_shift(share, neighbours):
    """Sensitivity 2 r, whitened: the share of the shift s mu of one row; together they cost hypot(1, share)."""
    facts = problem(1000, 5, l2=100.0, neighbours=neighbours)
    plan = gaussian_plan(facts, ApproxDP(1.0, 1e-5), facts.shapes[0], share)
    shift = 2.0 if neighbours is REPLACE else 1.0
    assert plan.noise.scale == 1.0 / plan.event.curve.mu
    assert plan.event.curve.seal_mu == pytest.approx(share * shift * plan.event.curve.mu, rel=1e-12)
    assert plan.lattice.l2_sensitivity == 2.0 * plan.radius
    assert 1.0 / plan.lattice.multiplier == pytest.approx(plan.event.curve.seal_mu, rel=1e-9)
    assert plan.seal_share == math.hypot(1.0, share) - 1.0


@pytest.mark.parametrize("loss", [HuberHinge(0.5), SquaredLoss(1.0, 1.0)], ids=["one sign", "either sign"])
@pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-5), ZCDP(0.05)], ids=["approximate", "zcdp"])
def test_a_loss_that_is_not_tapered_has_no_account_of_slopes(loss, budget):
    """Neither kappa nor a bend is claimed: the curvature costs the logarithm of theorem 2, whatever the slope."""
    facts = problem(1000, 5, loss=loss, l2=100.0)
    curve = gaussian_plan(facts, budget, facts.shapes[0], 0.01).event.curve
    assert (curve.kappa, curve.bend, curve.evenness, curve.even_bend) == (math.inf, math.inf, 1.0, 1.0)
    bounds = facts.loss_bounds
    assert curve.curvature == pytest.approx(math.log1p(bounds.smoothness * facts.row_norm**2 / 100.0), rel=1e-9)


@pytest.mark.parametrize("name", ["groups", "linked"])
def test_the_shorter_rows_of_a_shape_bend_as_the_page_says(name):
    """t0^2 = (1 - k0) / (k1 - k0) and s0 = k1 t0^2, with k the squared deviations of the pieces over (sigma R)^2."""
    facts = problem(20, 6, row_bound=GROUPS if name == "groups" else LINKED, intercept=0.0 if name == "groups" else 0.6)
    shape = shape_named(facts, name)
    k = [deviation**2 / shape.l2_norm**2 for deviation in shape.gaussian_deviations(1.0)]
    square = (1.0 - min(k)) / (max(k) - min(k))
    bend, evenness, even_bend = _bend(shape, 1.0, 30.0)
    assert bend == pytest.approx(shape.l2_norm**2 / 30.0, rel=1e-9)
    assert evenness == pytest.approx(math.sqrt(square), rel=1e-9)
    assert even_bend == pytest.approx(max(k) * square, rel=1e-9)
    assert even_bend >= max(k) * evenness**2
    assert 0.0 < square < 1.0


class Costs:
    """A stand-in for the account: what each ratio mu costs, and how often that was asked."""

    def __init__(self, cost):
        self.cost, self.asked = cost, []

    def __call__(self, mu):
        self.asked.append(mu)
        assert len(self.asked) <= 60, "the search does not end"
        return self.cost(mu)


def concentrated(cost, high, rho, monkeypatch):
    """The ratio that the search ends with, and the number of its evaluations."""
    costs = Costs(cost)
    monkeypatch.setattr(objective_perturbation, "concentrated_rho", costs)
    return _largest_concentrated(lambda mu: mu, high, ZCDP(rho)), len(costs.asked)


def test_a_power_law_is_met_a_little_below_the_budget_at_once(monkeypatch):
    """Logarithms are interpolated: the first middle costs exp(-5e-5) of the budget, which is near enough."""
    found, n = concentrated(lambda mu: 3.0 * mu**2, 0.9, 1.0, monkeypatch)
    assert 3.0 * found**2 == pytest.approx(math.exp(-5e-5), abs=2e-9)
    assert n == 4


@pytest.mark.parametrize("power", [0.3, 8.0])
@pytest.mark.parametrize("start", [0.05, 0.9])
def test_a_cost_that_bends_is_met_within_few_evaluations(start, power, monkeypatch):
    """Within 1e-4 below the budget, never above, from near and from far."""
    found, n = concentrated(lambda mu: 0.4 * mu**2 + 0.6 * mu**power, 1.0 + start, 1.0, monkeypatch)
    cost = 0.4 * found**2 + 0.6 * found**power
    assert math.exp(-1e-4) * (1.0 - 1e-9) <= cost < 1.0
    assert n <= 10


@pytest.mark.parametrize("cost", [0.7, 1.0 - 2.0**-40])
def test_the_ideal_ratio_is_taken_where_it_is_admitted(cost, monkeypatch):
    """Also at exactly the budget with its margin: two evaluations, of the same ratio."""
    assert concentrated(lambda _: cost, 0.3, 1.0, monkeypatch) == (0.3, 2)


def test_a_search_that_meets_a_jump_ends_just_below_it(monkeypatch):
    """Where no ratio costs nearly the budget: within 1e-5 of the largest one that is admitted."""
    found, _ = concentrated(lambda mu: 0.5 if mu < 0.7 else 2.0, 1.0, 1.0, monkeypatch)
    assert 0.7 * (1.0 - 2e-5) <= found < 0.7


@pytest.mark.parametrize("budget", [ZCDP(1.0), ApproxDP(1.0, 1e-5)], ids=["zcdp", "approximate"])
def test_a_budget_that_the_curvature_exceeds_is_refused(budget, monkeypatch):
    """At no ratio is the cost within the budget: what is no number is not within it either."""
    for cost in (2.0, math.nan):
        monkeypatch.setattr(objective_perturbation, "concentrated_rho", lambda _, cost=cost: cost)
        search = _largest_concentrated if isinstance(budget, ZCDP) else _largest
        with pytest.raises(InsufficientRegularisation, match="raise alpha or the budget"):
            search(lambda _, cost=cost: SimpleNamespace(delta=lambda _: cost), 0.3, budget)


@pytest.mark.parametrize("high", [0.2, 0.9])
def test_the_bisection_ends_on_the_private_side(high):
    """The delta of a ratio is its square here, and 0.25 (1 - 2^-40) is admitted: exactly that, and nothing above."""
    found = _largest(lambda mu: SimpleNamespace(mu=mu, delta=lambda _: mu**2), high, ApproxDP(1.0, 0.25)).mu
    assert found == high if high < 0.5 else 0.5 * (1.0 - 2e-7) <= found <= 0.5
    limit = 0.25 * (1.0 - 2.0**-40)
    assert _largest(lambda mu: SimpleNamespace(mu=mu, delta=lambda _: limit), high, ApproxDP(1.0, 0.25)).mu == high


def test_the_margin_of_kappa_covers_a_difference_of_nothing():
    """At t^2 = W l2 / 2 both terms agree, but for the margin of the second: W / l2 times 2^-40."""
    found = objective_perturbation._kappa(Ball(2, 1.0), 1.0, 2.0, 8.0)
    assert found == pytest.approx(2.0**-43, rel=0.2, abs=0.0)
    assert objective_perturbation._kappa(Ball(2, 1.0), 1.0, 1.0, 8.0) == 0.0


def test_no_share_of_the_bend_is_above_one():
    """A group of hardly any length: the quotient of the page is 1 but for its rounding."""
    assert _bend(Groups((1, 1), (1.0, 1e-9)), 1.0, 30.0)[2] == 1.0


def test_a_pure_budget_pays_for_no_gaussian_noise():
    """The search would begin at nothing."""
    assert ideal_mu(PureDP(1.0)) == 0.0


@pytest.mark.parametrize("above", [2.0**-41, 2.0**-30])
def test_a_delta_above_the_budget_less_its_margin_is_not_admitted(above):
    """The margin is one part in 2^40; a curve that never falls to it is refused."""
    delta = 0.25 * (1.0 - 2.0**-40 + above)
    with pytest.raises(InsufficientRegularisation):
        _largest(lambda mu: SimpleNamespace(mu=mu, delta=lambda _: delta), 0.9, ApproxDP(1.0, 0.25))


@pytest.mark.parametrize("cost", [1.0 - 2.0**-41, 1.0])
def test_a_rho_above_the_budget_less_its_margin_is_not_admitted(cost, monkeypatch):
    """The margin is one part in 2^40."""
    monkeypatch.setattr(objective_perturbation, "concentrated_rho", lambda _: cost)
    with pytest.raises(InsufficientRegularisation):
        _largest_concentrated(lambda mu: mu, 0.3, ZCDP(1.0))


def test_the_bend_of_a_ball_is_rounded_up_twice():
    """L R^2 / l2, and one part in 2^40 for each of both roundings."""
    bend, evenness, even_bend = _bend(Ball(2, 1.0), 1.0, 8.0)
    assert 1.9 * 2.0**-40 < 8.0 * bend - 1.0 < 2.1 * 2.0**-40
    assert (evenness, even_bend) == (1.0, 1.0)


@pytest.mark.parametrize(("neighbours", "part"), [(REPLACE, 1.0), (ADD, 2.0)], ids=["replace", "add"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
def test_the_ridge_is_raised_to_what_leaves_half_of_the_budget(loss, neighbours, part):
    """c R^2 / (exp(epsilon / 2) - 1), epsilon as strong as rho; where slopes are accounted for, 2 / shift times as much."""
    plan = gaussian_plan(problem(1000, 2, loss=loss, l2=1e-3, neighbours=neighbours), ZCDP(0.05), Ball(2, 1.0), 0.01)
    epsilon = pure_epsilon(ZCDP(0.05)) * (part if loss.constants.tapered else 1.0)
    assert plan.l2 == pytest.approx(loss.constants.smoothness / math.expm1(0.5 * epsilon), rel=1e-6)
