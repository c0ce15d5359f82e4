"""Bounds on the loss on new rows: never below fits whose excess is known, near them, and reached where theory says so."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from benchmarks import excess_risk as benchmark

from confide import ZCDP, ApproxDP, HuberRegressor, LinearSVC, LogisticRegression, ParameterError, PoissonRegressor, PureDP
from confide.erm.group_bounds import GroupBound
from confide.planning.bounds import (
    _ROW_SHARES,
    RowDeviations,
    _cost_of_moved_scores,
    _divisions,
    excess_risk_bound,
    least_excess_risk,
    lengths_of,
    may_suffice,
    noise_quantile,
    on_grid,
    plan_without_centre,
    utility_bound,
)
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from tests.privacy.problems import problem, with_ridges

CELLS = [
    # population, mechanism, budget, rows, columns, failure, norm
    ("sphere", "objective", PureDP(1.0), 2000, 2, 0.2, 5.0),
    ("flipped", "objective", ZCDP(0.01), 2000, 10, 0.05, 1.0),
    ("rare", "output", PureDP(0.5), 2000, 10, 0.2, 1.0),
    ("sphere", "output", ZCDP(0.02), 5000, 10, 0.05, 5.0),
]


@pytest.mark.parametrize(("name", "mechanism", "budget", "n_rows", "n_columns", "failure", "norm"), CELLS)
def test_no_fit_is_beyond_its_bound(name, mechanism, budget, n_rows, n_columns, failure, norm):
    """Twelve fits a cell, their excess exact; benchmarks/excess_risk.py has the grid."""
    bound, found = benchmark.cell(name, n_rows, n_columns, budget, mechanism, failure, norm, 12)
    assert found.max() <= bound.excess_risk < 60.0 * np.quantile(found, 1.0 - failure)
    assert found.min() > 0.0


def test_at_a_hundred_thousand_rows_the_bound_is_within_a_factor_of_30():
    """Ten columns, epsilon 1, alpha at its best: three fits."""
    bound, found = benchmark.cell("sphere", 100_000, 10, PureDP(1.0), "objective", 0.05, 1.0, 3)
    assert found.max() <= bound.excess_risk <= 30.0 * found.min()


def plan_at(n_rows, mechanism="objective", budget=1.0, alpha=0.05, width=4, **options):
    return LogisticRegression(
        budget, alpha=alpha, mechanism=mechanism, centre=False, fit_intercept=False, **options
    ).plan(n_rows, width)  # fmt: skip


def test_the_bound_is_the_sum_of_its_terms():
    """By hand at one division of the probability: it is never above that, and not far below the least of the terms."""
    plan = plan_at(2000)
    alpha, failure = plan.l2 / 2000, 0.1
    noise = lengths_of(plan.noise).from_point(plan.l2 * 2.0, failure * 0.29) / 2000
    seal = alpha * (on_grid(plan.lattice).from_point(0.0, failure * 0.01) + 2.0 * plan.radius)
    rows = RowDeviations(2000, 1.0, 0.5, 1.0).excess(alpha, noise + seal, failure * 0.69)
    found = excess_risk_bound(plan, reference_norm=2.0, failure=failure).excess_risk
    assert found == pytest.approx(rows, rel=0.05)
    assert found > (alpha * 2.0 + 0.9 * np.quantile(np.linalg.norm(draws(plan), axis=1), 0.9) / 2000) ** 2 / (4.0 * alpha)


def draws(plan, n=2000):
    """(n, D) draws of the noise of a plan."""
    noise = plan.noise
    entropy = Entropy.seeded(4)
    return (entropy.laplace if noise.law == "laplace" else entropy.gaussian)(noise.shape, n, noise.scale)


@pytest.mark.parametrize("mechanism", ["objective", "output", "output-laplace"])
def test_noise_that_dominates_is_bounded_by_its_own_law(mechanism):
    """Many rows at a tiny epsilon: the least |alpha (w0 - s) + b / n|^2 / (4 alpha), with draws.

    And the curvature's part.
    """
    n, epsilon, alpha = 10**7, 1e-4, 0.02
    plan = plan_at(n, mechanism, epsilon, alpha, width=6)
    failure = 0.1
    bound = excess_risk_bound(plan, reference_norm=1.0, failure=failure).excess_risk
    rng = np.random.default_rng(0)
    noise = draws(plan) if plan.noise else rng.laplace(scale=plan.lattice.scale, size=(4000, 6))
    pull = noise / n if mechanism == "objective" else -alpha * noise
    cost = 0.0 if mechanism == "objective" else np.minimum(np.abs(noise[:, 0]), 0.125 * noise[:, 0] ** 2)
    pull[:, 0] += alpha
    least = np.quantile((pull**2).sum(axis=1) / (4.0 * alpha) + cost, 1.0 - failure)
    # Independent Laplace noise has no exact quantile of its length here.
    assert least < bound < {"objective": 1.5, "output": 2.4, "output-laplace": 4.0}[mechanism] * least


def test_the_cost_of_moved_scores_by_hand():
    """c / 2 (R q)^2 or L R q, whichever is less; 2 L where slopes have both signs."""
    plan = plan_at(1000, row_norm=2.0)
    assert _cost_of_moved_scores(plan, 0.01) == pytest.approx(0.125 * 4.0 * 1e-4)
    assert _cost_of_moved_scores(plan, 100.0) == pytest.approx(200.0)
    both = HuberRegressor(1.0, target_bound=1.0, threshold=0.1, alpha=0.5, mechanism="objective", centre=False).plan(1000, 3)
    norm = both.problem.row_norm
    assert _cost_of_moved_scores(both, 100.0) == pytest.approx(2.0 * both.problem.loss.constants.lipschitz * norm * 100.0)


def test_scores_that_move_cost_their_curvature_or_their_slope():
    """Noise on the weights, one column: a row of slope -1/2 and curvature 1/4 loses |s|^2 / 8.

    A hinge |s|. Both by their law.
    """
    n, alpha, failure = 10**8, 0.05, 0.1
    little = excess_risk_bound(plan_at(n, "output", 1e-5, alpha, width=1), reference_norm=1e-6, failure=failure)
    plan = plan_at(n, "output", 1e-5, alpha, width=1)
    size = on_grid(plan.lattice).along_rows(failure)
    assert little.excess_risk == pytest.approx(alpha * size**2 / 4.0 + size**2 / 8.0, rel=0.5)
    hinge = LinearSVC(
        1e-5, loss="huber_hinge", smoothing=2.0**-12, alpha=alpha, mechanism="output", centre=False, fit_intercept=False
    )
    steep = excess_risk_bound(hinge.plan(n, 1), reference_norm=1e-6, failure=failure).excess_risk
    assert steep > size
    assert steep < 2.0 * size + 0.01


def test_ridge_alone_costs_a_quarter_of_alpha_times_the_squared_norm():
    """A loss that is linear on all rows with mean slope alpha w0 / 2 reaches it: a Huber hinge far from its corner."""
    alpha, norm, n = 0.2, 3.0, 4000
    slope = alpha * norm / 2.0
    rng = np.random.default_rng(1)
    labels = np.where(rng.random(n) < 0.5 * (1.0 + slope), 1, -1)
    labels[: round(0.5 * (1.0 + slope) * n)], labels[round(0.5 * (1.0 + slope) * n) :] = 1, -1
    model = LinearSVC(
        1e6, loss="huber_hinge", smoothing=0.1, alpha=alpha, mechanism="objective", centre=False, fit_intercept=False,
        classes=[-1, 1], row_norm=0.3, random_state=0,
    )  # fmt: skip
    rows = np.full((n, 1), 0.3)
    slope_of_rows = 0.3 * labels.mean()
    best = 2.0 * slope_of_rows / alpha
    weights = model.fit(rows, labels).coef_[0, 0]
    assert weights == pytest.approx(best / 2.0, rel=1e-3)
    excess = -slope_of_rows * (weights - best)
    assert excess == pytest.approx(alpha * best**2 / 4.0, rel=1e-3)
    bound = excess_risk_bound(model.plan(10**8, 1), reference_norm=best)
    assert bound.excess_risk == pytest.approx(excess, rel=2e-2)
    assert bound.excess_risk >= excess * (1.0 - 1e-3)


def test_the_bound_grows_with_the_logarithm_of_rarer_failures():
    """A thousand times as rare costs less than twice as much.

    The bound by Markov's inequality grows a hundredfold and more.
    """
    plan = plan_at(20_000)
    rare, usual = (excess_risk_bound(plan, failure=f).excess_risk for f in (5e-5, 0.05))
    assert usual < rare < 2.0 * usual
    assert utility_bound(plan, failure=5e-5).excess_risk > 100.0 * utility_bound(plan, failure=0.05).excess_risk
    assert usual < utility_bound(plan, failure=0.05).excess_risk / 3.0


@pytest.mark.parametrize("budget", [PureDP(0.2), ApproxDP(0.2, 1e-6), ZCDP(0.001)], ids=["pure", "approximate", "zcdp"])
@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_the_best_alpha_is_best(mechanism, budget):
    """No alpha of a grid has a smaller bound, by more than a hundredth."""
    model = LogisticRegression(budget, mechanism=mechanism)
    plan, bound = least_excess_risk(model, 20_000, 6, reference_norm=2.0)
    assert bound.alpha == plan.l2 / 20_000
    for factor in (0.3, 0.7, 1.4, 3.0):
        other = excess_risk_bound(plan_without_centre(model, bound.alpha * factor, 20_000, 6), reference_norm=2.0)
        assert other.excess_risk > 0.99 * bound.excess_risk
        assert not (other.excess_risk < bound.excess_risk and not may_suffice(plan, other.excess_risk, 2.0))


def test_several_classes_and_regressions_have_bounds():
    """With the constants of their losses."""
    three = LogisticRegression(1.0, alpha=0.05, mechanism="objective", centre=False, classes=[0, 1, 2])
    two = LogisticRegression(1.0, alpha=0.05, mechanism="objective", centre=False)
    assert (
        excess_risk_bound(three.plan(50_000, 5, n_classes=3)).excess_risk
        > excess_risk_bound(two.plan(50_000, 5)).excess_risk
    )
    counts = PoissonRegressor(1.0, target_bound=5.0, alpha=0.5, mechanism="objective", centre=False, match_mean=False)
    assert excess_risk_bound(counts.plan(50_000, 5)).excess_risk > 0.0


def test_a_private_number_of_rows_counts_with_its_least():
    """The bound is above that for the same ridge of the sum and either number of rows."""
    facts = {"neighbours": "add-or-remove-one", "n_rows_bounds": (4000, 5000)}
    of_range = excess_risk_bound(plan_at(None, alpha=0.1, **facts))
    for n, alpha in ((4000, 0.1), (5000, 0.08)):
        one = excess_risk_bound(plan_at(None, alpha=alpha, neighbours="add-or-remove-one", n_rows_bounds=(n, n)))
        assert of_range.excess_risk >= one.excess_risk * (1.0 - 1e-3)


def test_it_is_said_in_words_and_useless_bounds_are_called_so():
    """With the part that privacy has no share in."""
    told = str(excess_risk_bound(plan_at(100_000, alpha=0.02)))
    assert "With probability 0.95: mean loss on new rows at most 0.0" in told
    assert "without privacy at the same alpha" in told
    useless = excess_risk_bound(plan_at(50, alpha=0.5))
    assert not useless.is_useful
    assert "No useful bound" in str(useless)


@pytest.mark.parametrize(
    "given", [{"failure": 0.0}, {"failure": 1.0}, {"reference_norm": 0.0}, {"reference_norm": math.inf}]
)
def test_numbers_outside_their_ranges_are_refused(given):
    """Before anything is computed."""
    with pytest.raises(ParameterError):
        excess_risk_bound(plan_at(1000), **given)
    with pytest.raises(ParameterError):
        least_excess_risk(LogisticRegression(1.0), 1000, 3, **given)


def test_plans_without_a_theorem_are_refused():
    """No noise, noisy gradients, several rows a person."""
    with pytest.raises(ParameterError, match="private models"):
        excess_risk_bound(LogisticRegression(math.inf).plan(1000, 3))
    with pytest.raises(ParameterError, match="gradients"):
        excess_risk_bound(LogisticRegression(ZCDP(0.1), mechanism="gradient", centre=False).plan(1000, 3))
    with pytest.raises(ParameterError, match="independent rows"):
        excess_risk_bound(plan_at(1000, max_rows_per_person=2))


def test_several_ridges_make_reference_weights_longer_by_the_root_of_their_ratio():
    """In units in which all ridges are the least one. Noise, alone or with the seal, counts as it is."""
    plain = problem(2000, 3, row_bound=GroupBound((2, 1), (0.9, 0.7)), intercept=0.5, l2=100.0)
    facts, mechanism = with_ridges(plain, (1.0, 4.0, 9.0)), ObjectivePerturbation()
    plan, without = (mechanism.plan(each, PureDP(1.0)) for each in (facts, plain))
    assert without.l2 == plan.l2 == 100.0
    without = replace(plan, problem=plain)
    found, longer = excess_risk_bound(plan, reference_norm=2.0), excess_risk_bound(without, reference_norm=6.0)
    assert found.without_noise == pytest.approx(longer.without_noise)
    assert found.excess_risk == pytest.approx(longer.excess_risk, rel=0.01)
    far = replace(plan, radius=40.0)
    by_hand = replace(far, problem=plain, radius=120.0)
    pulls = [[pull for _, pull, _ in _divisions(each, 6.0, 0.05)] for each in (far, by_hand)]
    np.testing.assert_allclose(pulls[0], pulls[1], rtol=0.02)


def test_noise_of_a_ball_beside_several_ridges_counts_by_its_length():
    """In those units it is no longer spherical. Noise on the weights is longer there by the root of the largest factor."""
    plain = problem(2000, 3, row_bound=GroupBound((2, 1), (0.9, 0.7)), intercept=0.5, l2=100.0)
    plan = ObjectivePerturbation().plan(plain, PureDP(1.0))
    plan = replace(plan, noise=replace(plan.noise, shape=plain.shapes[0]))
    assert plan.noise.shape.name == "ball"
    beside = replace(plan, problem=with_ridges(plain, (1.0, 4.0, 9.0)))
    pulls = [pull for _, pull, _ in _divisions(beside, 0.1, 0.05)]
    alone = [pull for _, pull, _ in _divisions(plan, 0.1, 0.05)]
    assert all(more > 1.05 * less for more, less in zip(pulls, alone, strict=True))
    shares = (0.05 * (1.0 - 2.0 * 0.01) * (1.0 - rows) for rows in _ROW_SHARES)
    for pull, share in zip(pulls, shares, strict=True):
        assert pull * 2000 >= 10.0 + noise_quantile(plan.noise, share)
    on_weights = OutputPerturbation().plan(plain, PureDP(1.0))
    stretched = replace(on_weights, problem=beside.problem)
    found, without = ([pull for _, pull, _ in _divisions(each, 6.0, 0.05)] for each in (stretched, on_weights))
    np.testing.assert_allclose(found, 3.0 * np.array(without), rtol=0.05)
