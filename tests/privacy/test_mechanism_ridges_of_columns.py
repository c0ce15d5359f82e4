"""A ridge for each weight: the law of what is released, the cost of curvature, the certificate, attacks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from confide.audit.densities import Density, likelihood_ratio, minimiser
from confide.erm.class_losses import OneVsRest
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.gaussian import calibrated_objective, objective_noise_rate
from confide.privacy.mechanism import LARGEST_RIDGE_FACTOR
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import bundles_norm, log_determinant, noise_behind, shape_norm, signed
from tests.privacy.laws import check_law
from tests.privacy.problems import (
    GROUPS,
    group_rows,
    objective_plan,
    problem,
    releases,
    rows_and_labels,
    with_penalty,
    with_ridges,
)

OBJECTIVE, CONSTANT = ObjectivePerturbation(), 1.5
SIZES, SCALES = (3, 2, 1, 1), (0.8, 1.3, 0.6, CONSTANT)
FACTORS = (1.0, 1.0, 1.0, 9.0, 9.0, 4.0, 16.0)
RIDGES = np.array(FACTORS)
BESIDE = math.sqrt(0.8**2 + 1.3**2 / 9.0 + 0.6**2 / 4.0 + CONSTANT**2 / 16.0)
"""The longest row where entries count over the roots of the factors."""
LONG, OF_LONG = GroupBound((9, 1, 1), (0.3, 1.3, 0.6), (True, False, False)), (*(1.0,) * 9, 4.0, 4.0, 9.0)


def facts_of(bound=GROUPS, factors=FACTORS, **others):
    """A small problem whose weights have ridges of their own."""
    plain = problem(12, bound.n_features, row_bound=bound, intercept=CONSTANT, **{"l2": 60.0, **others})
    return with_ridges(plain, of_groups(bound, factors))


def of_groups(bound, factors):
    """The factors of groups, from those of weights."""
    return tuple(factors[end - 1] for end in np.cumsum((*bound.sizes, 1)))


@pytest.mark.parametrize(("neighbours", "shift"), [(Neighbours.REPLACE_ONE, 2.0), (Neighbours.ADD_OR_REMOVE_ONE, 1.0)])
@pytest.mark.parametrize("shape", ["groups", "bundles"])
def test_released_weights_invert_to_the_noise_of_the_theorem(shape, neighbours, shift):
    """-(ridges w + sum of slopes) is Laplace noise of the rows' shape: 30% more or less noise fails, or the plain ridge."""
    bound, factors = (GROUPS, FACTORS) if shape == "groups" else (LONG, OF_LONG)
    facts = facts_of(bound, factors, l2=300.0, neighbours=neighbours)
    plan = objective_plan(facts, PureDP(0.8), "laplace", shape)
    rows, labels = group_rows(bound, 12, seed=3), np.where(np.arange(12) % 3, 1, -1)
    sample = releases(OBJECTIVE, plan, rows_and_labels(rows, labels), 400, 6)
    noise = noise_behind(LogisticLoss(), signed(rows, labels, CONSTANT), plan.l2 * np.array(factors), sample)
    rate = (1.0 - plan.seal_share) * 0.8 / shift
    norms = shape_norm(noise, SIZES, SCALES) if shape == "groups" else bundles_norm(plan.noise.shape, noise)
    check_law(norms * rate, stats.gamma(plan.noise.shape.free_dimension).cdf)


@pytest.mark.parametrize("factor", [1.0, 0.7])
def test_the_budget_is_reached_by_the_longest_row_and_exceeded_if_its_length_were_less(factor):
    """Its label changes at weights where the loss bends: noise and curvature cost all they may. Random pairs cost less."""
    loss, epsilon, l2 = HuberHinge(0.5), 1.0, 20.0
    rate = objective_noise_rate(
        epsilon, loss.constants, factor * facts_of(loss=loss).curved_norm, l2, Neighbours.REPLACE_ONE
    )

    def shown(first, second, w):
        logs = [
            -rate * shape_norm(noise_behind(loss, each, l2 * RIDGES, w), SIZES, SCALES)
            + log_determinant(loss, each, l2 * RIDGES, w)
            for each in (first, second)
        ]
        return float(np.abs(logs[0] - logs[1]).max())

    longest = np.array([[0.8, 0.0, 0.0, 1.3, 0.0, 0.6, CONSTANT]])
    at = (0.5 + 1e-9) * (longest / RIDGES) / ((longest / RIDGES) @ longest.T)
    assert (shown(longest, -longest, at) <= epsilon * (1.0 + 1e-6)) == (factor == 1.0)
    assert shown(longest, -longest, at) > 0.99 * epsilon
    rng = np.random.default_rng(4)
    for case in range(10):
        rows = np.hstack([group_rows(GROUPS, 5, seed=case), np.full((5, 1), CONSTANT)]) * rng.choice([-1.0, 1.0], (5, 1))
        w = rng.normal(size=(200, 7)) * 10.0 ** rng.uniform(-1.5, 1.5, size=(200, 1))
        assert shown(rows[:4], rows[1:], w) <= epsilon or factor < 1.0


def test_the_longest_row_beside_the_ridges_is_that_of_the_groups():
    """Without factors it is the norm of a row."""
    assert facts_of().curved_norm == pytest.approx(BESIDE, rel=1e-9)
    assert facts_of().curved_norm >= BESIDE
    plain = problem(12, 6, row_bound=GROUPS, intercept=CONSTANT)
    assert plain.curved_norm == plain.row_norm
    rows = np.hstack([group_rows(GROUPS, 2000, seed=5), np.full((2000, 1), CONSTANT)])
    lengths = np.sqrt((rows**2 / RIDGES).sum(axis=1))
    assert 0.999 * BESIDE < lengths.max() <= facts_of().curved_norm


@pytest.mark.parametrize("l2", [1.0, 6.0, 60.0])
def test_the_curvature_is_paid_for_rows_as_long_as_beside_the_ridges(l2):
    """At a small least ridge, which is raised, and at larger ones."""
    facts = facts_of(l2=l2, loss=HuberHinge(0.5))
    plan = OBJECTIVE.plan(facts, PureDP(1.0))
    expected = calibrated_objective(1.0 - plan.seal_share, facts.loss_bounds, BESIDE, l2, Neighbours.REPLACE_ONE)
    assert (plan.noise.scale, plan.l2) == pytest.approx(expected, rel=1e-6)
    assert (plan.l2 > l2) == (l2 == 1.0)
    assert facts.row_norm > 1.7 * BESIDE


def test_the_densities_that_audits_know_are_those_of_the_theorem():
    """The likelihood ratio of two data sets at releases, and a minimiser with no noise behind it."""
    facts = facts_of()
    plan = objective_plan(facts, PureDP(1.0), "laplace", "groups")
    rows, labels = group_rows(GROUPS, 12, seed=8), np.where(np.arange(12) % 2, 1, -1)
    # Another row bends the objective elsewhere, and another label would not.
    others = np.where(np.arange(12)[:, None] == 0, group_rows(GROUPS, 12, seed=9), rows)
    first, second = (Density(plan, rows_and_labels(each, labels)) for each in (rows, others))
    weights = releases(OBJECTIVE, plan, rows_and_labels(rows, labels), 20, 1)
    logs = []
    for each in (rows, others):
        own = signed(each, labels, CONSTANT)
        behind = noise_behind(LogisticLoss(), own, plan.l2 * RIDGES, weights)
        determinant = log_determinant(LogisticLoss(), own, plan.l2 * RIDGES, weights)
        logs.append(-plan.noise.scale * shape_norm(behind, SIZES, SCALES) + determinant)
    found = likelihood_ratio(first, second)(weights)
    np.testing.assert_allclose(found, logs[0] - logs[1], atol=1e-9)
    assert np.abs(found).max() <= 1.0
    centre = minimiser(plan, first.source)
    assert np.linalg.norm(noise_behind(LogisticLoss(), signed(rows, labels, CONSTANT), plan.l2 * RIDGES, centre)) < 1e-6


def test_the_rounding_bound_counts_the_largest_ridge():
    """As a penalty that is so many times as steep as its ridge, without an error of its own."""
    plain, found = problem(12, 6, row_bound=GROUPS, intercept=CONSTANT).rounding(30.0), facts_of().rounding(30.0)
    assert found.steepness == pytest.approx(16.0)
    assert found.steepness >= 16.0
    more = found.bound(1e9, 2.0, 3.0) - plain.bound(1e9, 2.0, 3.0)
    assert more == pytest.approx(1.01 * 8.0 * 2.0**-53 * 16.0 * 30.0 * 1e9, rel=1e-6)
    assert found.minimiser_norm(5.0) == plain.minimiser_norm(5.0)
    at_worst = 2.0 * found.minimiser_norm(5.0)
    steepest = 12 * 1.0 * found.row_norm + 16.0 * 30.0 * at_worst + 5.0
    assert found.worst(5.0) == pytest.approx(found.bound(at_worst, 5.0, steepest), rel=1e-9)


def test_the_rounding_bound_covers_gradients_with_a_strong_ridge():
    """Against 60 digits, where the ridge is nearly all of the gradient; a bound with the least ridge would be too small."""
    mp = pytest.importorskip("mpmath").MPContext()
    mp.dps = 60
    bound = GroupBound((1, 1), (1.0, 1.0))
    facts = with_ridges(problem(1, 2, row_bound=bound, intercept=1.0), (1.0, 2.0**19 + 1.0 / 3.0, 7.0))
    rng, worst = np.random.default_rng(2), 0.0
    for _ in range(200):
        w, linear = rng.normal(size=(1, 3)) * 1e9, rng.normal(size=(1, 3))
        objective = facts.objective(rows_and_labels([[0.0, 0.0]]), 0.7, linear)
        computed = objective.gradients(w)[0]
        slope = LogisticLoss().derivative(w[0, 2:3])[0]
        ridges = [mp.mpf(0.7) * mp.mpf(factor) * mp.mpf(x) for factor, x in zip(facts.penalty.factors, w[0], strict=True)]
        exact = [ridges[0] + linear[0, 0], ridges[1] + linear[0, 1], ridges[2] + linear[0, 2] + slope]
        error = float(mp.sqrt(sum((mp.mpf(c) - e) ** 2 for c, e in zip(computed, exact, strict=True))))
        of_ridge = 2.0**-53 * 0.7 * (2.0**19 + 1.0) * float(np.linalg.norm(w))
        assert error <= facts.rounding(0.7).bound(float(np.linalg.norm(w)), 3.0, float(np.linalg.norm(computed)))
        worst = max(worst, error / of_ridge)
    assert 0.3 < worst <= 6.0


@pytest.mark.parametrize("seed", range(4))
def test_the_tolerance_is_reached_and_the_minimiser_is_within_its_bound(seed):
    """By the usual solver and by those with a theorem; |w*| <= W / sqrt(2)."""
    facts = facts_of(loss=(LogisticLoss(), HuberHinge(0.5))[seed % 2], l2=5.0)
    plan = OBJECTIVE.plan(facts, PureDP(1.0))
    rows = rows_and_labels(group_rows(GROUPS, 12, seed), np.where(np.arange(12) % 2, 1, -1))
    rng = np.random.default_rng(seed)
    objective = facts.objective(rows, plan.l2, rng.normal(size=(1, 7)) * 30.0)

    class Idle:
        """A first method that does nothing, so that those with a theorem do it all."""

        def solve(self, objective, start, tolerance):
            from confide.erm.objective import Solution

            return Solution(start.copy(), np.full(len(start), np.nan))

    found = [
        solver.solve(objective.lent(), np.zeros((1, 7)), 1e-7)
        for solver in (NewtonThenFallback(), NewtonThenFallback(Idle()))
    ]
    for solution in found:
        assert np.linalg.norm(objective.gradients(solution.weights)) <= 2e-7
    np.testing.assert_allclose(found[0].weights, found[1].weights, atol=1e-6)
    reached = facts.rounding(plan.l2).minimiser_norm(float(np.linalg.norm(objective.linear))) / math.sqrt(2.0)
    assert np.linalg.norm(found[0].weights) <= reached


@pytest.mark.parametrize(
    "factors",
    [
        (1.0,) * 3,
        (1.0, 1.0, 1.0, 0.5),
        (2.0,) * 4,
        (1.0, 1.0, 1.0, 2.0 * LARGEST_RIDGE_FACTOR),
        (1.0, 1.0, 1.0, math.nan),
    ],
    ids=["too few", "less than the least", "no least", "too large", "not a number"],
)
def test_ridges_below_the_one_that_the_guarantee_rests_on_are_refused(factors):
    """And others that are none."""
    plain = problem(12, GROUPS.n_features, row_bound=GROUPS, intercept=CONSTANT, l2=60.0)
    with pytest.raises(ParameterError, match="4 factors"):
        with_ridges(plain, factors)


def test_ridges_are_for_one_score_and_no_prior():
    """The theorem speaks of these."""
    plain = problem(12, 6, row_bound=GROUPS, intercept=CONSTANT)
    by_length = SquaredLoss(1.0, 2.0, by_length=True)
    for others in ({"prior": (1.0,) * 7}, {"loss": OneVsRest(LogisticLoss(), 3)}, {"loss": by_length}):
        with pytest.raises(ParameterError, match="one score"):
            with_ridges(replace(plain, **others), FACTORS)


@pytest.mark.parametrize("bound", [BallBound(1.6), Centred(BallBound(1.6), (0.1,) * 6, 1.3)], ids=["ball", "moved"])
def test_rows_in_a_ball_have_ridges_of_any_groups_and_pay_for_the_whole_curvature(bound):
    """The rows' length is not shortened, whichever weights have the larger ridge; a group for each weight is asked for."""
    plain = problem(12, 6, row_bound=bound, intercept=CONSTANT, l2=6.0)
    ridges = with_penalty(plain, factors=(1.0, 9.0, 1.0), sizes=(2, 4, 1))
    assert ridges.curved_norm == plain.row_norm
    for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)):
        one, several = (OBJECTIVE.plan(each, budget) for each in (plain, ridges))
        assert (several.noise.scale, several.l2) == (one.noise.scale, one.l2)
    of_groups_moved = Centred(GROUPS, (0.1,) * 6, 1.4)
    with pytest.raises(ParameterError, match="4 factors"):  # a centre that is found has the ridges of the same groups
        with_penalty(replace(plain, row_bound=of_groups_moved), factors=(1.0, 9.0, 1.0), sizes=(2, 4, 1))
    for sizes in ((2, 4), (2, 5, 1), (3, 4, 0), ()):
        with pytest.raises(ParameterError, match="factors"):
            with_penalty(plain, factors=(1.0, 9.0, 1.0), sizes=sizes)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_gaussian_noise_behind_weights_of_a_ball_is_that_of_the_plan(neighbours):
    """-(ridges w + sum of slopes) is the noise: 20% more or less fails, or one ridge for all weights."""
    plain = problem(12, 6, row_bound=BallBound(1.7), intercept=CONSTANT, l2=300.0, neighbours=neighbours)
    facts = with_penalty(plain, factors=(1.0, 9.0, 1.0), sizes=(2, 4, 1))
    plan = objective_plan(facts, ApproxDP(0.8, 1e-5), "gaussian", "cylinder")
    rows, labels = group_rows(GROUPS, 12, seed=3), np.where(np.arange(12) % 3, 1, -1)
    sample = releases(OBJECTIVE, plan, rows_and_labels(rows, labels), 400, 6)
    ridges = plan.l2 * np.repeat((1.0, 9.0, 1.0), (2, 4, 1))
    noise = noise_behind(LogisticLoss(), signed(rows, labels, CONSTANT), ridges, sample)
    of_columns, of_constant = plan.noise.shape.gaussian_deviations(plan.noise.scale)
    check_law((noise[:, :6] ** 2).sum(axis=1) / of_columns**2 + noise[:, 6] ** 2 / of_constant**2, stats.chi2(7).cdf)


@pytest.mark.parametrize("neighbours", Neighbours)
def test_weights_of_rows_and_rows_of_a_person_count_as_with_one_ridge(neighbours):
    """The rate is that of the longest row beside the ridges, of the loss with the largest weight, at a row's budget."""
    facts = facts_of(l2=200.0, loss=HuberHinge(0.5), neighbours=neighbours, largest_weight=3.0, rows_per_person=2)
    plan = OBJECTIVE.plan(facts, PureDP(2.0))
    weighted = HuberHinge(0.5).constants.weighted(3.0)
    expected = calibrated_objective(1.0 - plan.seal_share, weighted, BESIDE, 200.0, neighbours)
    assert (plan.noise.scale, plan.l2) == pytest.approx(expected, rel=1e-6)
    rows, counts = group_rows(GROUPS, 12, seed=2), np.linspace(0.0, 6.0, 12)
    w, linear = np.random.default_rng(1).normal(size=(2, 1, 7))
    objective = facts.objective(rows_and_labels(rows, row_weights=counts), 200.0, linear)
    slopes = np.minimum(counts, 3.0) * HuberHinge(0.5).derivative(w @ signed(rows, np.ones(12), CONSTANT).T)
    by_hand = 200.0 * RIDGES * w + linear + slopes @ signed(rows, np.ones(12), CONSTANT)
    for each in (objective, objective.lent(), objective.restrict(np.array([0]))):
        np.testing.assert_allclose(each.gradients(w), by_hand, rtol=1e-12)
        np.testing.assert_allclose(each.evaluate(w, order=1).gradient, by_hand, rtol=1e-12)
        # The largest curvature of weighted rows, from which a method with a theorem has its steps.
        assert each.smoothness == pytest.approx(
            16.0 * 200.0 + 12 * 3.0 * facts.loss.constants.smoothness * facts.row_norm**2
        )


def test_what_no_problem_may_be_is_refused_with_ridges_too():
    """A person without rows, and bounds on the number of rows that cross."""
    for wrong in ({"rows_per_person": 0}, {"n_rows_low": 30, "n_rows_high": 20}):
        with pytest.raises(ParameterError):
            replace(facts_of(), **wrong)


def test_the_largest_ridge_that_is_allowed_is_a_million_times_the_least():
    """2^20 exactly; what is above it is refused elsewhere."""
    assert facts_of(factors=(*(1.0,) * 6, 2.0**20)).penalty.factors[-1] == 2.0**20
    with pytest.raises(ParameterError, match="4 factors"):
        facts_of(factors=(*(1.0,) * 6, 2.0**20 * (1.0 + 2.0**-52)))
