"""Noisy sums for differences of risks: the sensitivity by search, the law of the noise, and what leaves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.linear_sums import ProbabilityOfRows, RateOfProbability
from confide.erm.row_bounds import BallBound
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, PureDP
from confide.privacy.certificate import GradientRounding
from confide.privacy.gaussian import largest_mu
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.standardised_sums import (
    LARGEST_STEP,
    RiskSums,
    distance_of_neighbours,
    largest_bend,
    largest_difference,
    within_reach,
)
from tests.covering import pairs_of
from tests.privacy.test_curvature import ADD, BOTH, BUDGETS, REPLACE, N, problem_of, some_rows, source_of

POINTS = np.array([[0.4, -0.3, 0.2], [3.0, 1.0, -0.5]])
STEPS = np.array([0.8, -2.5])


def training_of(neighbours=REPLACE, persons=1, **changed):
    return ObjectivePerturbation().plan(problem_of(neighbours, persons, **changed), PureDP(1.0))


def probability(scores):
    return 1.0 / (1.0 + np.exp(-scores))


def expected_sums(rows, points=POINTS, steps=STEPS):
    """Sums over rows without noise, from their definition."""
    design = np.hstack([rows, np.ones((len(rows), 1))])
    before = design @ points.T
    after = before + steps
    low, high = probability(before), probability(after)
    bends = high * (1.0 - high) - low * (1.0 - low)
    return (high - low).sum(axis=0), (high * (1.0 - high)).sum(axis=0), bends.T @ design


def released(plan, rows, labels, entropy, points=POINTS, steps=STEPS):
    return plan.release(source_of(rows, labels), entropy, points, steps)


def vector_of(rows, labels, neighbours, points, steps):
    """The exact vector of the proof page, in the units of its theorem 1, and its plan."""
    facts = training_of(neighbours, n_rows_low=len(rows), n_rows_high=len(rows) + (neighbours is ADD))
    plan = RiskSums.plan(facts, len(points), ZCDP(0.1))
    return plan.query.summed(source_of(rows, labels), points, steps), plan


@BOTH
def test_without_privacy_the_sums_are_those_of_the_definition(neighbours):
    """Differences of probabilities, their rates and bends; and the number of rows, if it is not public."""
    rows, labels = some_rows()
    plan = RiskSums.plan(training_of(neighbours), 2, PureDP(math.inf))
    found = released(plan, rows, labels, Entropy.seeded(0))
    for one, other in zip((found.differences, found.rates, found.bends), expected_sums(rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert found.n_rows == pytest.approx(N)


def test_the_bounds_on_differences_hold_and_are_attained():
    """Over all scores: the first exactly, the second within a sixth."""
    scores = np.linspace(-60.0, 60.0, 200_001)
    for step in (0.05, -0.4, 1.5, -6.0, 16.0):
        low, high = probability(scores), probability(scores + step)
        largest, bend = (float(of(np.array([step]))[0]) for of in (largest_difference, largest_bend))
        assert 0.999 * largest <= np.abs(high - low).max() <= largest
        assert 0.8 * bend <= np.abs(high * (1.0 - high) - low * (1.0 - low)).max() <= bend
    assert largest_difference(np.zeros(1)) >= 2.0**-7
    assert largest_bend(np.zeros(1)) >= 2.0**-9


@BOTH
def test_two_rows_come_near_the_distance_and_none_exceed_it(neighbours):
    """A search over rows, points and steps; the noise covers what was found, and a tenth less would not."""
    rng = np.random.default_rng(3)
    largest = {1: 0.0, 2: 0.0}
    common, _ = some_rows(6)
    for _ in range(400):
        step = float(rng.choice([-1.0, 1.0]) * rng.choice([0.05, 0.5, 1.0, 2.0]))
        # One row lies where the difference is largest, and one where there is none.
        points = np.array([[rng.choice([0.0, 40.0, 400.0]), 0.0, rng.choice([-0.5 * step, 0.0, -step, 30.0, -300.0])]])
        mine, theirs = rng.uniform(-1.0, 1.0, size=(2, 1, 2))
        first = np.vstack([mine, common])
        second = common if neighbours is ADD else np.vstack([theirs, common])
        pair = [vector_of(rows, np.ones(len(rows)), neighbours, points, np.array([step])) for rows in (first, second)]
        apart, plan = pair[0][0] - pair[1][0], pair[0][1]
        for order in largest:
            bound = distance_of_neighbours(plan.problem, 1, plan.query.scales, order)
            largest[order] = max(largest[order], float(np.linalg.norm(apart, ord=order)) / bound)
    assert 0.9 <= largest[2] <= 1.0
    assert 0.75 <= largest[1] <= 1.0


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], persons=[1, 2])
def test_released_sums_scatter_by_the_theorems_law(name, neighbours, persons):
    """The deviations are those of theorem 3, and those of 200 releases; noise 0.7 or 1.4 times as large fails."""
    plan = RiskSums.plan(training_of(neighbours, persons), 2, BUDGETS[name])
    bends, rows, count = 0.125, 2.0 if neighbours is REPLACE else 1.0, float(neighbours is ADD)
    if name == "pure":
        bends /= math.sqrt(3.0)
        distance = 2.0 * (1.25 + rows * bends * math.sqrt(3.0)) + count
        deviation = math.sqrt(2.0) * distance / (0.7 / persons)
    else:
        distance = math.sqrt(2.0 * (1.0 + 0.25**2 + (rows * bends) ** 2) + count)
        epsilon = 0.7 / persons
        delta = 0.1 * (1.0 if persons == 1 else math.expm1(epsilon) / math.expm1(0.7))
        deviation = distance * persons / math.sqrt(0.2) if name == "zcdp" else distance / largest_mu(epsilon, delta)
    assert plan.query.scales == (0.25, bends, count)
    assert plan.deviation == pytest.approx(deviation, rel=4e-3)
    rows_, labels = some_rows()
    entropy, (differences, rates, bent) = Entropy.seeded(5), expected_sums(rows_)
    found = [released(plan, rows_, labels, entropy) for _ in range(200)]
    of_bends = (largest_bend(STEPS) * math.sqrt(2.0) / bends)[:, None]
    for centre, unit, part in (
        (differences, largest_difference(STEPS), "differences"),
        (rates, 0.25 / 0.25, "rates"),
        (bent, of_bends, "bends"),
    ):
        errors = (np.array([getattr(each, part) for each in found]) - centre) / (unit * deviation)
        assert 0.6 < np.mean(errors**2) < 1.6
    if neighbours is ADD:
        assert 0.5 < np.mean([((each.n_rows - N) / deviation) ** 2 for each in found]) < 1.7
    else:
        assert {each.n_rows for each in found} == {float(N)}


def test_points_and_steps_are_shortened_to_the_reach_of_the_proof():
    """And what is no number becomes 0."""
    problem = training_of().problem
    points, steps = within_reach(problem, np.array([[1e9, 0.0, 0.0], [np.nan, np.inf, 1.0]]), np.array([1e3, np.nan]))
    assert np.linalg.norm(points[0]) <= 1024.0 / problem.row_norm - LARGEST_STEP
    assert points[1].tolist() == [0.0, 0.0, 1.0]
    assert steps.tolist() == [LARGEST_STEP, 0.0]


def test_a_release_uses_points_and_steps_within_the_reach_of_the_proof():
    """It is that of the shortened ones, to the bit, and what is no number in them cannot stop it after the charge."""
    rows, labels = some_rows()
    plan = RiskSums.plan(training_of(), 2, PureDP(math.inf))
    points = np.array([[1e9, 3e8, 0.0], [np.nan, np.inf, 0.3]])
    for steps in (np.array([1e3, -40.0]), np.array([np.nan, -np.inf])):
        near = within_reach(plan.problem, points, steps)
        found, expected = (released(plan, rows, labels, None, *each) for each in ((points, steps), near))
        for name in ("differences", "rates", "bends"):
            one, other = getattr(found, name), getattr(expected, name)
            assert np.isfinite(one).all()
            np.testing.assert_array_equal(one, other)
    sizes = [float(np.linalg.norm(each)) for each in near[0]]
    assert sizes[0] == pytest.approx(1024.0 / plan.problem.row_norm - LARGEST_STEP)


def test_the_rounding_bound_is_above_the_error_in_double_precision():
    """Computed numbers, beside those of the same rows in long double; and it is a small part of a row's effect."""
    rows, labels = some_rows()
    vector, plan = vector_of(rows, labels, REPLACE, POINTS, STEPS)
    exact = expected_sums(*(each.astype(np.longdouble) for each in (rows, POINTS, STEPS)))
    signs, (rates, bends, _) = np.sign(STEPS), plan.query.scales
    unit = largest_bend(STEPS) * plan.problem.row_norm
    parts = [signs * exact[0] / largest_difference(STEPS), rates * 4 * exact[1], (bends * exact[2] / unit[:, None]).ravel()]
    error = float(np.linalg.norm((vector - np.concatenate(parts)).astype(np.float64)))
    bound = math.sqrt(2.0) * plan.query.rounding
    assert 0.0 < error <= bound <= 1e-6


def rounding_by_the_theorem(neighbours, n_rows):
    """r of theorem 2 for one change, and rho of theorem 2 of certificate.md written out: D = 3, R^2 = 2, s = 1, m = 60."""
    unit, norm, width, depth = 2.0**-53, math.sqrt(2.0), 3, 60
    reach = 1024.0 / norm

    def of_loss(lipschitz, smoothness):
        # The rounding of the loss is 12, and 1 for the weight of a row.
        slopes = lipschitz * (depth + width + 5 + 13) + (2 * width + 5) * smoothness * norm * reach
        return 1.01 * unit * n_rows * norm * slopes

    chances, rates = of_loss(1.0, 0.25), of_loss(0.25, 1.0 / (6.0 * math.sqrt(3.0)))
    exact = 2.0 * chances * 2.0**7 + 4.0 * 0.25 * rates + 2.0 * 0.125 * rates * 2.0**9 / norm
    last = 16.0 * unit * n_rows * (2.0**7 + 0.25 + 2.0**9 * 0.125)
    return exact + last + (chances + 4.0 * unit * n_rows if neighbours is ADD else 0.0)


@BOTH
def test_rounding_is_that_of_the_theorem_and_a_tenth_of_the_noise_is_the_limit(neighbours):
    """To nine digits; a plan for a hundredth more rows than the limit allows is refused, and one for fewer is not."""
    plan = RiskSums.plan(training_of(neighbours), 2, ZCDP(0.1))
    rows = plan.problem.n_rows_high
    assert plan.query.rounding == pytest.approx(rounding_by_the_theorem(neighbours, rows), rel=1e-9, abs=0.0)
    distance = distance_of_neighbours(plan.problem, 2, plan.query.scales, 2)
    limit = 0.1 * distance / (2.0 * math.sqrt(2.0) * rounding_by_the_theorem(neighbours, 1))
    facts = training_of(neighbours)
    for factor in (0.99, 1.01):
        many = int(factor * limit)
        bounds = {"n_rows_high": many} | ({} if neighbours is ADD else {"n_rows_low": many})
        large = replace(facts, problem=replace(facts.problem, **bounds))
        if factor < 1.0:
            found = RiskSums.plan(large, 2, ZCDP(0.1))
            # The noise pays for the rounding too.
            assert found.deviation == pytest.approx(1.099 * plan.deviation, rel=2e-3)
        else:
            with pytest.raises(ParameterError, match="too inexact"):
                RiskSums.plan(large, 2, ZCDP(0.1))


def test_the_reach_and_the_least_divisors_are_those_of_the_page():
    """1024 over the bound on rows, steps of 16, and divisors of 2^-7 and 2^-9, all a millionth above."""
    problem = training_of().problem
    points, steps = within_reach(problem, np.array([[1e6, 0.0, 0.0]]), np.array([-99.0]))
    assert np.linalg.norm(points) == pytest.approx(1024.0 / math.sqrt(2.0) - 16.0, rel=1e-9)
    assert steps[0] == -16.0
    above = 1.0 + 2.0**-20
    assert largest_difference(np.zeros(1))[0] == 2.0**-7 * above
    assert largest_bend(np.zeros(1))[0] == 2.0**-9 * above
    assert largest_difference(np.array([2.0]))[0] == pytest.approx(math.tanh(0.5) * above, rel=1e-12)
    assert largest_bend(np.array([-1.0]))[0] == pytest.approx(above / (6.0 * math.sqrt(3.0)), rel=1e-12)
    assert largest_bend(np.array([9.0]))[0] == 0.25 * above


@pytest.mark.parametrize(("constant", "is_allowed"), [(1.0 / 31.0, False), (1.0 / 30.0, True)])
def test_a_constant_below_a_thirtieth_of_the_bound_on_rows_is_refused(constant, is_allowed):
    """A thirty-second part of the bound with the constant is the limit."""
    plan = training_of(intercept=constant * 31.0 / 32.0)
    if is_allowed:
        assert RiskSums.plan(plan, 1, ZCDP(0.1)).query.scales[0] == 0.25
    else:
        with pytest.raises(ParameterError, match="a thirtieth"):
            RiskSums.plan(plan, 1, ZCDP(0.1))


def test_what_the_proof_does_not_cover_is_refused():
    """No change, other losses, no intercept, weights of rows, a tiny constant, many rows, and other changes."""
    sums = RiskSums
    with pytest.raises(ParameterError, match="need a change"):
        sums.plan(training_of(), 0, ZCDP(0.1))
    for changed in ({"loss": SquaredLoss(1.0, 0.1)}, {"intercept": 0.0}, {"largest_weight": 2.0}):
        with pytest.raises(ParameterError, match="logistic models with an intercept"):
            sums.plan(training_of(**changed), 1, ZCDP(0.1))
    with pytest.raises(ParameterError, match="a thirtieth"):
        sums.plan(training_of(intercept=0.01), 1, ZCDP(0.1))
    facts = training_of()
    unbounded = replace(facts, problem=replace(facts.problem, row_bound=BallBound(math.inf)))
    with pytest.raises(ParameterError, match="need a bound on rows"):
        sums.plan(unbounded, 1, PureDP(math.inf))
    many = replace(facts, problem=replace(facts.problem, n_rows_low=2**45, n_rows_high=2**45))
    with pytest.raises(ParameterError, match="too inexact"):
        sums.plan(many, 1, ZCDP(0.1))
    rows, labels = some_rows()
    with pytest.raises(ParameterError, match="another mechanism"):
        released(sums.plan(training_of(), 1, ZCDP(0.1)), rows, labels, Entropy.seeded(0))


def test_laplace_noise_pays_for_the_rounding_in_the_l1_norm():
    """The root of the number of released numbers times the bound in the L2 norm, from both sides."""
    facts = training_of()
    small = RiskSums.plan(facts, 2, PureDP(1.0))
    per_row = small.query.rounding / small.problem.n_rows_high
    l1, l2 = (distance_of_neighbours(small.problem, 2, small.query.scales, order) for order in (1, 2))
    many = int(0.099 * l2 / (2.0 * math.sqrt(2.0) * per_row))
    large = replace(facts, problem=replace(facts.problem, n_rows_low=many, n_rows_high=many))
    found = RiskSums.plan(large, 2, PureDP(1.0))
    rounding = math.sqrt(2.0) * per_row * many
    expected = 1.0 + 2.0 * math.sqrt(small.query.size) * rounding / l1
    assert expected > 1.05
    assert found.deviation / small.deviation == pytest.approx(expected, rel=2e-3)


def test_no_row_counts_more_than_once_whatever_weight_its_source_gives_it():
    """A weight above 1 counts as 1: the theorem is for such rows."""
    rows, labels = some_rows()
    plan = RiskSums.plan(training_of(), 2, PureDP(math.inf))
    heavy = MemorySource(ArrayBlocks(rows), labels, np.full(len(rows), 5.0))
    found = plan.release(heavy, Entropy.seeded(0), POINTS, STEPS)
    for one, other in zip((found.differences, found.rates, found.bends), expected_sums(rows), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("constant", [0.5, 2.0])
def test_a_step_moves_the_score_of_every_row_by_itself_whatever_the_constant_of_the_intercept_is(constant):
    """So its bound holds: with another constant the last weight of a point counts as often, and a step does not."""
    rows, labels = some_rows()
    plan = RiskSums.plan(training_of(ADD, intercept=constant), 2, PureDP(math.inf))
    found = released(plan, rows, labels, Entropy.seeded(0))
    factors = np.array([1.0, 1.0, constant])
    differences, rates, bends = expected_sums(rows, POINTS * factors)
    for one, other in zip((found.differences, found.rates, found.bends), (differences, rates, bends * factors), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert found.n_rows == pytest.approx(N)


def test_a_source_with_other_rows_than_the_plan_is_for_is_refused():
    """The bound on rounding is for so many rows."""
    rows, labels = some_rows(N + 50)
    with pytest.raises(ParameterError, match="the plan is for"):
        released(RiskSums.plan(training_of(), 2, ZCDP(0.1)), rows, labels, Entropy.seeded(0))


@pytest.mark.parametrize(("neighbours", "count"), [(REPLACE, 0), (ADD, 1)], ids=["replace", "add"])
@pytest.mark.parametrize("k", [1, 4])
def test_a_plan_knows_how_many_numbers_leave(k, neighbours, count):
    """For each change a difference, a rate and three bends; and the number of rows where it is not public."""
    plan = RiskSums.plan(training_of(neighbours), k, ZCDP(0.1))
    assert plan.query.size == plan.lattice.dimension == 5 * k + count


def test_the_reach_is_in_units_of_the_constant():
    """With a constant of 2 a step moves the weight of the intercept by half as much: 1024 / R - 16 / 2."""
    problem = training_of(intercept=2.0).problem
    points, _ = within_reach(problem, np.array([[1e6, 0.0, 0.0]]), np.array([1.0]))
    assert np.linalg.norm(points) == pytest.approx(1024.0 / math.sqrt(5.0) - 8.0, rel=1e-9)


@BOTH
def test_sums_with_a_constant_of_two_are_those_of_the_definition(neighbours):
    """Probabilities do not depend on how the intercept is scaled, and neither does the number of rows."""
    rows, labels = some_rows()
    plan = RiskSums.plan(training_of(neighbours, intercept=2.0), 2, PureDP(math.inf))
    points = POINTS * [1.0, 1.0, 0.5]
    found = released(plan, rows, labels, Entropy.seeded(0), points, STEPS)
    differences, rates, bends = expected_sums(rows)
    np.testing.assert_allclose(found.differences, differences, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.rates, rates, rtol=1e-9)
    np.testing.assert_allclose(found.bends, bends * [1.0, 1.0, 2.0], rtol=1e-9, atol=1e-12)
    assert found.n_rows == pytest.approx(N)


@pytest.mark.parametrize("constant", [0.5, 2.0])
def test_rounding_of_rates_and_counts_is_in_units_of_the_constant(constant):
    """The sums of slopes are divided by it: 4 e / s beside 16 n u for a rate, and e / s beside 4 n u for the count."""
    problem = training_of(ADD, intercept=constant).problem
    norm, n, unit = math.hypot(1.0, constant), problem.n_rows_high, 2.0**-53
    of_probability, of_rate = (
        GradientRounding(loss.constants.weighted(1.0), norm, n, 3, problem.summation_depth, 0.0).bound(
            1024.0 / norm, 0.0, 0.0
        )
        for loss in (ProbabilityOfRows(), RateOfProbability())
    )
    none, rates, counts = (
        RiskSums(problem, 2, scales).rounding for scales in ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    )
    assert rates - none == pytest.approx(4.0 * of_rate / constant + 16.0 * unit * n, rel=1e-4, abs=0.0)
    assert counts - none == pytest.approx(of_probability / constant + 4.0 * unit * n, rel=1e-4, abs=0.0)


@pytest.mark.parametrize("row_norm", [0.5, 2.0])
def test_the_score_that_counts_rows_is_the_largest_that_the_proof_allows(monkeypatch, row_norm):
    """1024 s / R: its weights are 0 and 1024 / R, however long a row may be."""
    seen, sums = [], MemorySource.sum_over_rows

    def noted(source, row_sum, weights):
        seen.append(weights[4:])
        return sums(source, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    facts = replace(problem_of(ADD), row_bound=BallBound(row_norm))
    plan = RiskSums.plan(ObjectivePerturbation().plan(facts, PureDP(1.0)), 2, ZCDP(0.1))
    released(plan, *some_rows(), Entropy.seeded(0))
    longest = math.hypot(row_norm, plan.problem.intercept)
    np.testing.assert_allclose(seen[0], [[0.0, 0.0, 1024.0 / longest]], rtol=1e-9)
