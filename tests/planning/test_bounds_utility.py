"""Bounds on what noise costs hold, and are reached where theory says so."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from confide import ZCDP, ApproxDP, LogisticRegression, ParameterError, PureDP
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.planning.bounds import lattice_quantile, noise_quantile, utility_bound
from confide.privacy.budgets import Neighbours
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.mechanism import Noise
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.shapes import Ball, Cylinder, Groups
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import exact_minimiser, signed
from tests.privacy.problems import problem, releases, rows_and_labels, source, with_ridges

MECHANISMS = {"objective": ObjectivePerturbation(), "output": OutputPerturbation()}
BUDGETS = {"pure": PureDP(1.0), "approximate": ApproxDP(1.0, 1e-3), "zcdp": ZCDP(0.2)}


def excess_of(plan, rows, released, loss):
    """(n,) mean-form excesses of released weights over the least value of the regularised objective."""
    own = signed(rows.blocks.rows, rows.labels, plan.problem.intercept)
    least = np.float64(exact_minimiser(loss, own, plan.l2, np.zeros(plan.problem.n_weights)))

    def objective(w):
        return loss.value(w @ own.T).sum(axis=1) + plan.l2 / 2 * (w**2).sum(axis=1)

    distances = np.linalg.norm(released - least, axis=1)
    return (objective(released) - objective(least[None])) / len(own), distances


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("name", MECHANISMS)
def test_the_bounds_hold_in_as_many_fits_as_they_say(name, budget):
    """200 fits at a failure of 10%: more than 36 that exceed a bound would refute it at 1e-4."""
    rows = source(n=60, d=3, seed=1)
    plan = MECHANISMS[name].plan(problem(n=60, d=3, l2=12.0), budget)
    bound = utility_bound(plan, failure=0.1)
    excess, distances = excess_of(plan, rows, releases(MECHANISMS[name], plan, rows, 200, 3), LogisticLoss())
    assert (excess > bound.excess_objective).sum() <= 36
    assert (distances > bound.distance).sum() <= 36


@pytest.mark.parametrize("law", ["pure", "approximate"])
def test_the_constants_are_reached_where_the_loss_is_straight(law):
    """No weight comes near the joint, so the excess is |b|^2 / 2l and the distance |b| / l: neither is twice as large."""
    loss = HuberHinge(0.5)
    facts = problem(n=20, d=2, loss=loss, l2=3000.0, neighbours=Neighbours.REPLACE_ONE)
    plan = ObjectivePerturbation().plan(facts, BUDGETS[law])
    failure = 0.3
    bound = utility_bound(plan, failure=failure)
    excess, distances = excess_of(
        plan, source(n=20, d=2), releases(ObjectivePerturbation(), plan, source(n=20, d=2), 1500, 5), loss
    )
    # A third of the failure is the noise's, and the last step is small beside it.
    assert 0.95 < bound.distance / np.quantile(distances, 1 - failure / 3) < 1.15
    assert 0.9 < bound.excess_objective / np.quantile(excess, 1 - failure / 3) < 1.3


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.2)], ids=["pure", "zcdp"])
def test_noise_on_weights_costs_what_the_ridge_makes_of_it(budget):
    """A straight loss and short rows: H is the ridge, up to the rows' share."""
    loss = HuberHinge(0.5)
    plan = OutputPerturbation().plan(problem(n=20, d=2, loss=loss, row_norm=1.0, l2=3000.0), budget)
    bound = utility_bound(plan, failure=0.3)
    excess, _ = excess_of(plan, source(n=20, d=2), releases(OutputPerturbation(), plan, source(n=20, d=2), 1500, 6), loss)
    assert 0.9 < bound.excess_objective / np.quantile(excess, 0.9) < 1.4


SHAPES = {"ball": Ball(5, 1.5), "cylinder": Cylinder(4, 1.5, 0.5), "groups": Groups((2, 3), (1.0, 0.5))}


@pytest.mark.parametrize("law", ["laplace", "gaussian"])
@pytest.mark.parametrize("name", SHAPES)
def test_quantiles_of_noise_are_those_of_its_law(name, law):
    """Against other draws, at three levels and another scale."""
    entropy = Entropy.seeded(9)
    draws = (entropy.laplace if law == "laplace" else entropy.gaussian)(SHAPES[name], 4000, 3.0)
    norms = np.linalg.norm(draws, axis=1)
    for failure in (0.3, 0.1, 0.03):
        quantile = noise_quantile(Noise(SHAPES[name], law, 3.0), failure)
        assert np.mean(norms > quantile) <= 1.3 * failure + 0.002
        assert quantile <= 1.4 * np.quantile(norms, 1 - failure)


def test_quantiles_of_very_rare_noise_are_proven_ones():
    """Draws say nothing of one in a million."""
    noise = Noise(SHAPES["groups"], "laplace", 1.0)
    assert noise_quantile(noise, 1e-6) == noise.bound(math.log(1e-6))


@pytest.mark.parametrize("dimension", [1, 4, 50])
@pytest.mark.parametrize("law", ["laplace", "gaussian"])
def test_quantiles_of_noise_on_a_grid_hold_and_are_near(law, dimension):
    """Against 3000 draws."""
    if law == "laplace":
        lattice = LatticeLaplace(dimension, -12, 0.5, 1.0)
        draws = np.random.default_rng(0).laplace(scale=lattice.scale, size=(3000, dimension))
    else:
        lattice = LatticeGaussian.of_multiplier(dimension, -12, 0.5, 1.0)
        draws = np.random.default_rng(0).normal(scale=lattice.deviation, size=(3000, dimension))
    norms = np.linalg.norm(draws, axis=1)
    for failure in (0.3, 0.05):
        quantile = lattice_quantile(lattice, failure)
        assert np.mean(norms > quantile) <= 1.1 * failure + 0.005
        assert quantile <= (2.2 if law == "laplace" else 1.1) * np.quantile(norms, 1 - failure)


def test_the_population_bound_is_the_sum_of_its_terms():
    """Shrinkage, stability and displacement, written out for one plan."""
    plan = LogisticRegression(1.0, alpha=0.1, fit_intercept=False).plan(1000, 3)
    bound = utility_bound(plan, reference_norm=2.0, failure=0.06)
    noise = stats.gamma.ppf(0.98, 3) * 1.0 / plan.noise.scale
    distance = noise / plan.l2 + lattice_quantile(plan.lattice, 0.02) + plan.radius
    assert bound.distance == pytest.approx(distance, rel=1e-9)
    assert bound.excess_risk == pytest.approx(0.05 * 4.0 + 2.0 / (100.0 * 0.02) + distance, rel=1e-9)
    assert "0.94" in str(bound)


@pytest.mark.parametrize(
    "given",
    [{"failure": 0.0}, {"failure": 1.0}, {"failure": "0.1"}, {"reference_norm": 0.0}, {"reference_norm": float("nan")}],
)
def test_numbers_outside_their_ranges_are_refused(given):
    """Before anything is computed."""
    with pytest.raises(ParameterError):
        utility_bound(LogisticRegression(1.0).plan(1000, 3), **given)


def test_what_has_no_answer_is_refused():
    """No noise, or no loss of a score."""
    with pytest.raises(ParameterError, match="private models"):
        utility_bound(LogisticRegression(float("inf")).plan(1000, 3))


def test_a_small_probability_of_failure_is_not_rounded_away():
    """In words too."""
    assert "probability 0.999999999:" in str(utility_bound(LogisticRegression(1.0).plan(1000, 3), failure=1e-9))


SIZES = [(epsilon, width) for epsilon in (0.1, 1.0, 4.0) for width in (2, 14, 105)]


@pytest.mark.parametrize("mechanism", ["objective", "output", "output-laplace"])
@pytest.mark.parametrize(("epsilon", "width"), SIZES)
def test_more_rows_lower_the_noise_in_rows(mechanism, epsilon, width):
    """The number that a plan is compared by, over all rows, at the same budget; the distance does not fall."""
    sizes = (200, 1_000, 5_000, 24_000, 200_000)
    plans = [LogisticRegression(epsilon, mechanism=mechanism).plan(n, width) for n in sizes]
    shares = [plan.to_dict()["noise_in_rows"] / n for plan, n in zip(plans, sizes, strict=True)]
    assert all(more < 0.3 * fewer for fewer, more in pairwise(shares))
    assert f"{shares[0] * 200:.4g} rows can pull together, {shares[0]:.3g} of all" in str(plans[0])


def test_the_noise_in_rows_is_that_of_the_gradient():
    """By hand: Laplace noise of a ball of 14 columns and an interval at rate 1, and one row moves the sum by 2 L R."""
    plan = LogisticRegression(0.5).plan(24_000, 14)
    assert plan.to_dict()["noise_in_rows"] == pytest.approx(math.sqrt(16 * 17 * (14 / 16 + 1 / 3) / 2) * 2 / 0.5, rel=0.02)
    same = LogisticRegression(0.5, row_norm=7.0, intercept_scaling=7.0).plan(24_000, 14)
    assert same.to_dict()["noise_in_rows"] == pytest.approx(plan.to_dict()["noise_in_rows"], rel=1e-3)
    assert "noise in rows" not in str(LogisticRegression(math.inf).plan(24_000, 14))


def test_a_bound_that_weights_of_zero_keep_is_called_useless():
    """Against the largest values that weights of zero can have, computed by hand."""
    few = utility_bound(LogisticRegression(0.5).plan(200, 14))
    assert str(few).startswith("No useful bound")
    plan = LogisticRegression(0.5).plan(24_000, 14)
    some = utility_bound(plan)
    text = str(some)
    assert f"mean loss at most {some.excess_loss:.3g} above" in text
    assert f"{some.excess_risk:.3g}" not in text
    assert "No useful bound on the loss on new rows" in text
    assert some.excess_objective_of_zero == pytest.approx(math.log(2.0))
    assert some.excess_loss_of_zero == pytest.approx(math.log(2.0))
    assert utility_bound(plan, reference_norm=0.1).excess_loss_of_zero == pytest.approx(0.1 * math.sqrt(2.0))
    assert some.distance_of_zero == pytest.approx(math.sqrt(2.0 * math.log(2.0) / plan.alpha))
    many = str(utility_bound(LogisticRegression(4.0, alpha=0.05).plan(10**7, 14)))
    assert "useful" not in many
    assert "on new rows at most" in many


def test_weights_of_zero_keep_what_is_said_of_them():
    """On rows of every kind: their distance, their regularised loss and their loss above the best of norm 1."""
    rng = np.random.default_rng(3)
    for alpha in (1e-3, 0.1):
        plan = LogisticRegression(0.5, alpha=alpha, fit_intercept=False).plan(500, 3)
        bound = utility_bound(plan)
        X = rng.normal(size=(500, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = np.where(X[:, 0] > 0.0, 1.0, -1.0)

        def mean_loss(w, margins=y[:, None] * X):
            return float(np.logaddexp(0.0, -margins @ w).mean())

        best = LogisticRegression(math.inf, alpha=alpha, fit_intercept=False).fit(X, y).coef_[0]
        assert np.linalg.norm(best) <= bound.distance_of_zero
        regularised = mean_loss(best) + 0.5 * alpha * best @ best
        assert math.log(2.0) - regularised <= bound.excess_objective_of_zero
        assert math.log(2.0) - mean_loss(best / np.linalg.norm(best)) <= bound.excess_loss_of_zero


def test_bounds_know_the_prior():
    """The shrinkage is towards it, so its length counts; the bounds hold for what a release with it loses."""
    prior = (3.0, -4.0)
    plain, facts = problem(200, 2, l2=20.0), replace(problem(200, 2, l2=20.0), prior=prior)
    for mechanism in MECHANISMS.values():
        plan = mechanism.plan(facts, PureDP(1.0))
        bound, without = utility_bound(plan), utility_bound(mechanism.plan(plain, PureDP(1.0)))
        assert bound.excess_loss - bound.excess_objective == pytest.approx(0.5 * plan.alpha * (1.0 + 5.0) ** 2)
        assert bound.distance_of_zero >= 5.0 + without.distance_of_zero
        rows = source(200)
        objective = facts.objective(rows, plan.l2, np.zeros((1, 2)))
        least = NewtonThenFallback().solve(objective, np.zeros((1, 2)), 1e-9).weights
        apart = np.linalg.norm(releases(mechanism, plan, rows, 100, entropy=0) - least, axis=1)
        assert np.mean(apart > bound.distance) <= 0.1
        # Twice the objective's value, to avoid rounding: weights of zero are within their bounds.
        values = objective.evaluate(np.vstack([np.zeros((1, 2))]), order=0).value - objective.evaluate(least, order=0).value
        assert values[0] / 200 <= bound.excess_objective_of_zero
        assert np.linalg.norm(least) <= bound.distance_of_zero


def test_bounds_know_the_largest_of_several_ridges():
    """The ridge of a reference weight may be the largest; the bounds hold for what is released."""
    bound = GroupBound((2, 1), (0.9, 0.7))
    plain = problem(200, 3, row_bound=bound, intercept=0.5, l2=20.0)
    facts, mechanism = with_ridges(plain, (1.0, 4.0, 9.0)), MECHANISMS["objective"]
    plan = mechanism.plan(facts, PureDP(1.0))
    found, without = utility_bound(plan), utility_bound(mechanism.plan(plain, PureDP(1.0)))
    assert plan.l2 == 20.0
    assert found.excess_loss - found.excess_objective == pytest.approx(9.0 * 0.5 * plan.alpha)
    assert found.distance == pytest.approx(without.distance, rel=0.05)
    rng = np.random.default_rng(0)
    rows = rows_and_labels(rng.uniform(-1.0, 1.0, size=(200, 3)) * 0.4, rng.choice([-1, 1], size=200))
    objective = facts.objective(rows, plan.l2, np.zeros((1, 4)))
    least = NewtonThenFallback().solve(objective, np.zeros((1, 4)), 1e-9).weights
    drawn = releases(mechanism, plan, rows, 200, entropy=0)
    rises = [objective.evaluate(w[None], order=0).value[0] - objective.evaluate(least, order=0).value[0] for w in drawn]
    assert np.mean(np.array(rises) / 200 > found.excess_objective) <= 0.1
    assert np.mean(np.linalg.norm(drawn - least, axis=1) > found.distance) <= 0.1
    # A step of the length of the seal and the certificate costs the largest curvature, or the steepest slope if it is long.
    pull, longest = noise_quantile(plan.noise, 0.05 / 3.0), math.sqrt(2.0 * 200 * math.log(2.0) / plan.l2)
    for radius in (plan.radius, 0.5, 50.0):
        shift = lattice_quantile(plan.lattice, 0.05 / 3.0) + radius
        by_bend = pull * shift + 0.5 * (200 * 0.25 * facts.row_norm**2 + 9.0 * plan.l2) * shift**2
        slope = 200 * facts.row_norm + 9.0 * plan.l2 * longest + pull
        by_slope = slope * shift + 0.5 * 9.0 * plan.l2 * shift**2
        expected = (pull**2 / (2.0 * plan.l2) + min(by_bend, by_slope)) / 200
        assert (by_bend < by_slope) == (radius < 50.0)
        assert utility_bound(replace(plan, radius=radius)).excess_objective == pytest.approx(expected, rel=1e-9)


def test_the_bound_on_noise_in_the_objective_has_the_quantile_of_its_length():
    """A union bound over columns is several times as large."""
    n, d, alpha, epsilon, failure = 100_000, 10, 0.01, 1.0, 0.05
    exact = (2.0 / epsilon * stats.gamma.isf(failure, d)) ** 2 / (2.0 * alpha * n**2)
    by_union = 2.0 * d**2 * math.log(d / failure) ** 2 / (alpha * n**2 * epsilon**2)
    assert 4.0 * exact < by_union
    plan = LogisticRegression(epsilon, alpha=alpha, mechanism="objective", centre=False, fit_intercept=False).plan(n, d)
    assert exact < utility_bound(plan, failure=failure).excess_objective < 0.4 * by_union
