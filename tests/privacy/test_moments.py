"""Noisy moments for intervals: the sensitivity by search, rounding, and the law of the noise."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import stats

from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.moment_sums import MomentSum
from confide.erm.row_bounds import BallBound
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.expected_noise import balanced_scale
from confide.privacy import moments
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.gaussian import mu_within
from confide.privacy.mechanism import Noise, Problem, log_failure
from confide.privacy.moments import (
    _WINDOW,
    Moments,
    blocks_of,
    joint_bound,
    largest_norm,
    shortened,
    width_of,
    window_of,
)
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import joint_event
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.shapes import Ball
from confide.training.auto_mechanism import NonPrivate
from tests.covering import pairs_of
from tests.privacy.problems import SummedOnce

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3), SmoothHinge(0.4), SquaredLoss(3.0, 0.2)]
BUDGETS = {"pure": PureDP(0.7), "approximate": ApproxDP(0.7, 1e-5), "zcdp": ZCDP(0.1)}
ACCEPT, REJECT = 1e-3, 1e-8


def problem_of(loss=None, d=3, n=12, neighbours=REPLACE, intercept=1.5, weight=1.7, persons=1):
    """Public facts of a small problem: row norm 2, constant 1.5, so R = 2.5."""
    return Problem(
        loss=loss or LogisticLoss(), row_bound=BallBound(2.0), intercept=intercept, n_features=d, n_rows_low=n,
        n_rows_high=n if neighbours is REPLACE else n + 3, summation_depth=summation_depth(n + 3, d), l2=20.0,
        neighbours=neighbours, rows_per_person=persons, largest_weight=weight,
    )  # fmt: skip


def plan_of(problem, budget, mechanism=None):
    """The plan of moments after training at the same budget."""
    return Moments.plan((mechanism or ObjectivePerturbation()).plan(problem, budget), budget)


def source_of(rows, labels, counts=None):
    """A source of these rows."""
    return MemorySource(ArrayBlocks(np.asarray(rows, dtype=np.float64)), np.asarray(labels, dtype=np.int8), counts)


def computed(plan, source, weights):
    """The scaled moments without noise, at weights that are not shortened."""
    return replace(plan.query, largest_norm=2.0**900).summed(source, weights)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_no_neighbours_are_further_apart_than_the_noise_allows_for(loss, neighbours):
    """Random rows, weights of rows and weights; and a search for the worst scores of two orthogonal rows."""
    problem = problem_of(loss, neighbours=neighbours, intercept=0.0, n=1)
    plan = plan_of(problem, PureDP(1.0))
    allowed, rng, largest = plan.noise.shape.scales[0], np.random.default_rng(0), 0.0
    rows = 5.0 * np.eye(3)[:2]
    for trial in range(800):
        if trial % 2:
            rows = rng.normal(size=(2, 3)) * 10.0 ** rng.uniform(-1, 1)
        counts = np.array([1.7, 1.7]) if trial % 3 else rng.uniform(0.0, 3.0, 2)
        labels = rng.choice([-1, 1], 2) * (3 if loss.constants.name == "huber" else 1)
        weights = rng.normal(size=(1, 3)) * 10.0 ** rng.uniform(-2, 1)
        if not trial % 2 and trial % 4:
            # Scores far on the wrong side of one row or both: the steepest slopes.
            weights = -np.array([[labels[0], labels[1], 0.0]]) * rng.uniform(0.0, 10.0, (1, 1))
            if loss.constants.name == "huber" and trial % 8 == 6:
                # Residuals near the threshold, on either side of it: steep, and bent.
                weights = np.array([[*(labels[:2] - 0.2 * rng.choice([0.95, 0.999, 1.001], 2)), 0.0]]) / 2.0
        sums = [
            computed(plan, source_of(rows[[i]], labels[[i]], counts[[i]]), weights)
            for i in range(1 + (neighbours is REPLACE))
        ]
        largest = max(largest, float(np.linalg.norm(sums[0] - sums[1] if neighbours is REPLACE else sums[0])))
    assert largest <= allowed
    # Hinges are at their steepest where they bend the most, but for the window.
    assert largest >= {"huber_hinge": 0.65, "huber": 0.65, "smooth_hinge": 0.95}.get(loss.constants.name, 0.99) * allowed


def test_the_joint_bound_is_attained():
    """Where a row is steep and bends: the logistic loss at the scale beyond which curvature is not free."""
    for scale in (0.5, 0.955, 2.0, 5.0):
        slopes = np.linspace(0.0, 1.0, 200001)
        exact = np.sqrt((scale * 4.0 * slopes * (1.0 - slopes)) ** 2 + slopes**4).max()
        assert exact <= joint_bound(LogisticLoss().constants.weighted(3.0), scale) <= exact * 1.02
    assert (
        joint_bound(
            LogisticLoss().constants.weighted(3.0), balanced_scale(joint_bound, LogisticLoss().constants.weighted(3.0))
        )
        < 1.02
    )
    assert joint_bound(HuberHinge(0.3).constants.weighted(1.0), 2.0) == pytest.approx(math.sqrt(5.0), rel=1e-9)
    assert joint_bound(SquaredLoss(3.0, 0.2).constants.weighted(1.0), 2.0) == pytest.approx(math.sqrt(5.0), rel=1e-9)


@pytest.mark.parametrize("smoothing", [0.3, 2.0])
def test_a_smooth_hinge_bends_little_where_it_is_steep(smoothing):
    """Against the worst margin by search, the curvature averaged over the window: at most 4% above, never below."""
    loss = SmoothHinge(smoothing)
    window = window_of(loss.constants.weighted(3.0), _WINDOW)
    margins = np.linspace(1.0 - smoothing - window, 1.0 + smoothing + window, 200001)
    bends = (
        (loss.derivative(margins + window) - loss.derivative(margins - window)) / (2.0 * window) / loss.constants.smoothness
    )
    slopes = np.abs(loss.derivative(margins))
    for scale in (0.5, 0.977, 2.0, 5.0):
        exact = np.sqrt((scale * bends) ** 2 + slopes**4).max()
        assert exact <= joint_bound(loss.constants.weighted(3.0), scale) <= exact * 1.04
    # Without the bound on the bend it would be the root of 2 or more.
    scale = balanced_scale(joint_bound, loss.constants.weighted(3.0))
    assert (
        joint_bound(loss.constants.weighted(3.0), scale) * math.hypot(4.0 / scale, 4.0)
        < math.sqrt(2.0) * math.hypot(4.0, 4.0) / 1.34
    )


def test_the_window_is_in_the_units_of_the_loss():
    """A loss whose scores are a thousand times larger has a window so much wider; weights of rows do not matter."""
    assert window_of(LogisticLoss().constants.weighted(3.0), _WINDOW) == 2.0**-6
    for size in (1e-3, 1.0, 1e3):
        assert window_of(SquaredLoss(size, 0.2 * size).constants.weighted(3.0), _WINDOW) == pytest.approx(0.2 * size / 64)


def exact_moments(plan, rows, labels, counts, weights):
    """The scaled moments in 60 digits, as a list."""
    mpmath.mp.dps = 60
    problem, w = plan.problem, mpmath.mpf(window_of(plan.problem.loss_bounds, _WINDOW))
    big, theta = mpmath.mpf(problem.largest_weight), [mpmath.mpf(float(x)) for x in weights]

    def slope(z):
        if problem.loss.constants.tapered:
            return -1 / (1 + mpmath.exp(z - mpmath.mpf(getattr(problem.loss, "margin", 0.0))))
        if isinstance(problem.loss, SquaredLoss):
            return min(max(z, -mpmath.mpf(problem.loss.threshold)), mpmath.mpf(problem.loss.threshold))
        h = mpmath.mpf(problem.loss.smoothing)
        return -min(max((1 - z + h) / (2 * h), mpmath.mpf(0)), mpmath.mpf(1))

    size, total = problem.n_weights, None
    for row, label, count in zip(rows, labels, counts, strict=True):
        x = [mpmath.mpf(float(v)) for v in row]
        norm = mpmath.sqrt(sum(v * v for v in x))
        # Rows are clipped to a radius a little inside their bound: a fact of the data, and no rounding.
        x = [v * min(1, 2 * (1 - mpmath.mpf(2) ** -40) / norm) for v in x] + [mpmath.mpf(problem.intercept)]
        c, z = min(mpmath.mpf(float(count)), big), sum(a * b for a, b in zip(x, theta, strict=True))
        z = z - int(label) if isinstance(problem.loss, SquaredLoss) else int(label) * z
        curvature = c * (slope(z + w) - slope(z - w)) / (2 * w) / mpmath.mpf(plan.query.unit_of_curvature)
        square = (c * slope(z)) ** 2 / mpmath.mpf(plan.query.unit_of_slope)
        entries = []
        for factor in (curvature, square):
            entries += [factor * x[i] * x[i] for i in range(size)]
            entries += [factor * mpmath.sqrt(2) * x[i] * x[j] for i in range(size) for j in range(i + 1, size)]
        total = entries if total is None else [a + b for a, b in zip(total, entries, strict=True)]
    return total


@pytest.mark.parametrize(
    ("loss", "used"),
    [(LogisticLoss(), 4e-5), (LogisticHinge(0.5), 4e-5), (HuberHinge(0.3), 5e-6), (SquaredLoss(3.0, 0.2), 1e-6)],
    ids=["logistic", "logistic hinge", "huber_hinge", "squared"],
)
def test_computed_moments_are_within_the_rounding_bound(loss, used):
    """Against 60 digits, at weights as long as they may be.

    It is a bound for the worst rows: of random ones a small part of it is used, and more than nothing.
    """
    problem = problem_of(loss)
    plan = plan_of(problem, ApproxDP(4.0, 1e-5))
    rng, worst = np.random.default_rng(3), 0.0
    allowed = plan.query.rounding
    for _ in range(20):
        rows, labels = rng.normal(size=(12, 3)), rng.choice([-1, 1], 12)
        counts = rng.uniform(0.5, 2.0, 12)
        direction = rng.normal(size=4)
        weights = direction / np.linalg.norm(direction) * plan.query.largest_norm * rng.choice([1.0, 0.01])
        exact = exact_moments(plan, rows, labels, counts, weights)
        given = computed(plan, source_of(rows, labels, counts), weights[None])
        gaps = [float(mpmath.mpf(float(a)) - b) for a, b in zip(given, exact, strict=True)]
        worst = max(worst, float(np.linalg.norm(gaps)))
    assert used * allowed < worst <= allowed


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], persons=[1, 2])
def test_released_moments_scatter_by_the_theorems_law(name, neighbours, persons):
    """400 releases; noise 0.7 or 1.4 times as large would be rejected."""
    problem = problem_of(neighbours=neighbours, persons=persons)
    plan = plan_of(problem, BUDGETS[name])
    rng = np.random.default_rng(0)
    source, weights = source_of(rng.normal(size=(12, 3)), rng.choice([-1, 1], 12)), rng.normal(size=(1, 4))
    exact, entropy, source = computed(plan, source, weights), Entropy.seeded(1), SummedOnce(source)
    assert exact.size == 20
    upper = np.triu_indices(4, 1)

    def scaled(matrix):
        return np.concatenate([np.diagonal(matrix), math.sqrt(2.0) * matrix[upper]])

    noises = []
    for _ in range(400):
        release = plan.release(source, entropy, weights)
        parts = [scaled(release[0]) / plan.query.unit_of_curvature, scaled(release[1]) / plan.query.unit_of_slope]
        noises.append(np.concatenate(parts) - exact)
    # Theorem 1, written out: R^2 = 6.25, and G = 1 for the logistic loss.
    sensitivity = (math.sqrt(2.0) if neighbours is REPLACE else 1.0) * 6.25
    check_law(np.array(noises), plan, sensitivity, largest_preference=0.45)


def check_law(noises, plan, sensitivity, largest_preference):
    """Noise (draws, N) of the budgets above has the law of the theorem, and not that of 0.7 or 1.4 times as much."""
    persons, size = plan.problem.rows_per_person, noises.shape[1]
    if plan.budget.kind == "pure":
        sizes, law = np.linalg.norm(noises, axis=1), stats.gamma(size, scale=sensitivity * persons / 0.7 / 0.99)
    else:
        mu = math.sqrt(2.0 * 0.1) / persons if plan.budget.kind == "zcdp" else 1.0 / deviation_of(plan)
        sizes, law = noises.ravel() * mu / sensitivity, stats.norm()
    assert stats.kstest(sizes, law.cdf).pvalue > ACCEPT
    for factor in (0.7, 1.4):
        assert stats.kstest(factor * sizes, law.cdf).pvalue < REJECT
    # Directions do not prefer an entry.
    assert np.abs(np.mean(noises**2, axis=0) / np.mean(noises**2) - 1.0).max() < largest_preference


def deviation_of(plan):
    """Deviation of the analytic Gaussian mechanism at the budget of a row, over the sensitivity, by its own bisection."""
    from confide.privacy.budgets import budget_of_row

    of_row = budget_of_row(plan.budget, plan.problem.rows_per_person)

    def delta(sigma):
        return stats.norm.cdf(0.5 / sigma - of_row.epsilon * sigma) - math.exp(of_row.epsilon) * stats.norm.cdf(
            -0.5 / sigma - of_row.epsilon * sigma
        )

    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if delta(middle) <= of_row.delta else (middle, high)
    return high


def test_long_weights_are_shortened_and_moments_do_not_leave_without_a_plan_for_them():
    """Beyond the norm that rounding was bounded for."""
    problem = problem_of()
    plan = plan_of(problem, ApproxDP(1.0, 1e-5))
    source = source_of(np.ones((12, 3)), np.ones(12))
    far = np.full((1, 4), 1e9)
    one = plan.release(source, Entropy.seeded(0), far)
    two = plan.release(source, Entropy.seeded(0), far * 1e3)
    assert np.array_equal(one[0], two[0])
    with pytest.raises(ParameterError, match="the plan is for"):
        plan.release(source_of(np.ones((13, 3)), np.ones(13)), Entropy.seeded(0), far)


def test_rounding_is_paid_for():
    """The radius of pure noise and the sensitivity of Gaussian noise hold the rounding bound; absurd sizes are refused."""
    problem = problem_of()
    for budget in (PureDP(1.0), ApproxDP(1.0, 1e-5)):
        plan = plan_of(problem, budget, OutputPerturbation())
        rounding = plan.query.rounding
        assert plan.noise is None or plan.radius >= rounding
        if plan.noise is None:
            exact = math.sqrt(2.0) * joint_bound(problem.loss_bounds, plan.query.curvature_scale) * problem.row_norm**2
            assert plan.lattice.l2_sensitivity >= exact + 2.0 * rounding
        else:
            assert plan.lattice.l2_sensitivity >= 2.0 * (rounding + 2.0**-53 * 12 * problem.row_norm**2)
    large = replace(problem_of(n=10**8), summation_depth=10**6, l2=1e2)
    with pytest.raises(ParameterError, match="too inexact"):
        plan_of(large, ApproxDP(1.0, 1e-5), OutputPerturbation())


def test_one_account_needs_weights_that_pay_for_the_moments():
    """Gaussian moments of at most `beside_mu`: more of them, or Laplace noise, is refused before anything is charged."""
    budget, problem = ApproxDP(1.0, 1e-4), replace(problem_of(n=2000), l2=500.0)
    training = ObjectivePerturbation().plan(replace(problem, beside_mu=0.1), budget)
    moments = Moments.plan(training, ZCDP(0.005 * (1.0 - 2.0**-40)))
    assert joint_event(training, moments) == training.event
    assert training.event.curve.beside_mu == 0.1
    assert 0.0999 < 1.0 / moments.lattice.multiplier <= 0.1
    for other in (Moments.plan(training, ZCDP(0.006)), Moments.plan(training, PureDP(0.05))):
        with pytest.raises(ParameterError, match="does not pay"):
            joint_event(training, other)
    alone = ObjectivePerturbation().plan(problem, budget)
    with pytest.raises(ParameterError, match="does not pay"):
        joint_event(alone, moments)


@pytest.mark.parametrize("norm", [2.0**-260, 2.0**260])
def test_rows_whose_fourth_power_is_no_double_are_refused(norm):
    """The bound on the noise would be 0 or infinite."""
    problem = replace(problem_of(intercept=0.0), row_bound=BallBound(norm), l2=norm**2)
    training = OutputPerturbation().plan(problem, PureDP(1.0))
    with pytest.raises(ParameterError, match="from 2"):
        Moments.plan(training, PureDP(1.0))


def test_long_weights_are_shortened_and_short_ones_stay():
    """By their own length alone."""
    weights = np.array([[3.0, 4.0]])
    assert shortened(weights, 5.0) is weights
    assert np.linalg.norm(shortened(weights, 1.0)) == pytest.approx(1.0)
    assert np.linalg.norm(shortened(weights, 1.0)) <= 1.0
    training = ObjectivePerturbation().plan(problem_of(), PureDP(1.0))
    assert largest_norm(training, PureDP(1.0)) >= 2.0 * training.noise.bound(-200.0) / training.l2


def rounding_by_hand(problem, scale, longest):
    """Theorems 2 and 5 of the page, with numbers put in by hand: 18 + 3 roundings of entries, (2 D + 8) of scores."""
    loss, d, norm = problem.loss_bounds, problem.row_width, problem.row_norm
    window = 2.0**-6 * (1.0 if loss.self_concordant else loss.lipschitz / loss.smoothness)
    slopes = loss.rounding * loss.lipschitz + loss.smoothness * ((2 * d + 8) * norm * longest + window)
    scores = 1 if not isinstance(problem.loss, OneVsRest) else problem.loss.constants.n_outputs
    turned = (
        2 * (problem.loss.constants.n_outputs + 2) * (problem.loss.constants.n_outputs - 1)
        if isinstance(problem.loss, Softmax)
        else 0
    )
    sums = problem.summation_depth + 2 * d + 24 + turned
    stretched = 3.0 if isinstance(problem.loss, Softmax) else 1.0 / window
    entries = scale * (stretched * slopes / loss.smoothness + sums) + 2.0 * slopes / loss.lipschitz + sums
    return 1.02 * 2.0**-53 * problem.n_rows_high * norm**2 * math.sqrt(scores) * entries


@pytest.mark.parametrize("longest", [0.0, 1e-3, 1e3])
@pytest.mark.parametrize("depth", [1, 10**7])
@pytest.mark.parametrize(
    "loss", [LogisticLoss(), HuberHinge(0.3), Softmax(4), OneVsRest(LogisticLoss(), 3)], ids=lambda loss: loss.constants.name
)
def test_the_rounding_bound_is_that_of_the_page(loss, depth, longest):
    """At weights of no, little and great length, and for few and many additions, each of which decides somewhere."""
    problem = replace(problem_of(loss), summation_depth=depth)
    for scale in (0.1, 10.0):
        found = Moments(problem, scale, 1.0, longest).rounding
        assert found == pytest.approx(rounding_by_hand(problem, scale, longest), rel=1e-9, abs=0.0)


def test_a_pure_plan_adds_up_what_its_seal_covers():
    """Rounding of the sums, the error of the draw, and one rounding of sum and noise; 99% of epsilon, and 1% for the seal.

    For few rows the noise decides the last part, for many the sums.
    """
    for n, l2 in ((12, 20.0), (10**6, 1e6)):
        problem = replace(problem_of(n=n), l2=l2)
        training = ObjectivePerturbation().plan(problem, PureDP(0.7))
        plan = Moments.plan(training, PureDP(0.7))
        bound = joint_bound(problem.loss_bounds, plan.query.curvature_scale) * 2.5**2
        noise = Noise(Ball(20, math.sqrt(2.0) * bound), "laplace", 0.99 * 0.7)
        failure = log_failure(PureDP(0.7), problem)
        largest = n * bound + 2.0 * noise.bound(failure)
        rounding = rounding_by_hand(problem, plan.query.curvature_scale, plan.query.largest_norm)
        exact = rounding + noise.error(failure) + 2.0**-53 * largest
        assert plan.radius == pytest.approx(exact, rel=1e-9, abs=0.0)
        assert plan.noise.scale == pytest.approx(0.99 * 0.7, rel=1e-9)
        assert plan.noise.shape.scales[0] == pytest.approx(math.sqrt(2.0) * bound, rel=1e-9)
        assert plan.lattice.l2_sensitivity == 2.0 * plan.radius
        assert plan.lattice.epsilon == pytest.approx(0.01 * 0.7, rel=1e-9)
        assert plan.noise.scale + plan.lattice.epsilon < 0.7


@pytest.mark.parametrize(("budget", "width"), [(PureDP(math.inf), 2.0**-12), (PureDP(1.0), 2.0**-6), (ZCDP(0.1), 2.0**-6)])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.3)], ids=lambda loss: loss.constants.name)
def test_the_window_is_narrow_where_there_is_no_noise_and_as_planned_otherwise(loss, budget, width, monkeypatch):
    """2^-6 is in the bound on rounding; 2^-12 is nearer to the curvature itself."""
    problem, windows = problem_of(loss), []
    training = OutputPerturbation().plan(problem, PureDP(1.0))
    plan = Moments.plan(training, budget)
    monkeypatch.setattr(moments, "MomentSum", lambda row_sum, window: windows.append(window) or MomentSum(row_sum, window))
    plan.release(source_of(np.ones((12, 3)), np.ones(12)), Entropy.seeded(0), np.zeros((1, 4)))
    bends = 1.0 if loss.constants.name == "logistic" else 1.7 / problem.loss_bounds.smoothness
    assert windows == [pytest.approx(width * bends, rel=1e-12)]


@pytest.mark.parametrize(
    ("loss", "blocks", "width"), [(LogisticLoss(), 1, 4), (Softmax(4), 1, 12), (OneVsRest(LogisticLoss(), 3), 3, 4)]
)
def test_a_matrix_leaves_for_each_score_of_its_own_and_one_where_scores_bend_together(loss, blocks, width):
    """Blocks of D, or one of (o - 1) D; each is symmetric, and there are two kinds."""
    problem = problem_of(loss)
    assert (blocks_of(loss.constants), width_of(problem), Moments(problem, 1.0, 1.0, 1.0).size) == (
        blocks,
        width,
        blocks * width * (width + 1),
    )


def test_moments_without_privacy_have_no_noise():
    """Their plan has no lattice, and what leaves is the sum of the definition to the digits that the window leaves."""
    plan = plan_of(problem_of(weight=1.0), PureDP(math.inf), NonPrivate())
    rng = np.random.default_rng(2)
    rows, labels, weights = rng.normal(size=(12, 3)) * 0.3, rng.choice([-1, 1], 12), rng.normal(size=(1, 4))
    found = plan.release(source_of(rows, labels), Entropy.seeded(0), weights)
    design = np.hstack([rows, np.full((12, 1), 1.5)])
    p = 1.0 / (1.0 + np.exp(labels * (design @ weights[0])))
    np.testing.assert_allclose(found[0], (design * (p * (1.0 - p))[:, None]).T @ design, rtol=1e-6)
    np.testing.assert_allclose(found[1], (design * (p**2)[:, None]).T @ design, rtol=1e-9)


def test_moments_without_noise_have_no_account_beside_weights():
    """A plan without privacy has no lattice, and is refused in words."""
    budget, facts = ApproxDP(1.0, 1e-4), replace(problem_of(n=2000), l2=500.0)
    training = ObjectivePerturbation().plan(replace(facts, beside_mu=0.1), budget)
    with pytest.raises(ParameterError, match="does not pay"):
        joint_event(training, Moments.plan(training, PureDP(math.inf)))


@pytest.mark.parametrize("n_outputs", [4, 16])
def test_scores_of_their_own_change_as_much_in_the_window_as_that_of_the_worst_row(n_outputs):
    """One-vs-rest: the window is that of the whole row, so each score has sqrt(o) times as much of it. By a search."""
    one, loss = SmoothHinge(0.4), OneVsRest(SmoothHinge(0.4), n_outputs).constants.weighted(1.0)
    window = window_of(loss, _WINDOW)
    assert window == pytest.approx(
        math.sqrt(n_outputs) * 2.0**-6 * one.constants.lipschitz / one.constants.smoothness, rel=1e-9
    )
    margins = np.linspace(0.6 - window, 1.4 + window, 200001)
    bends = (one.derivative(margins + window) - one.derivative(margins - window)) / (2.0 * window) / one.constants.smoothness
    slopes = np.abs(one.derivative(margins))
    for scale in (0.5, 0.977, 2.0, 5.0):
        exact = math.sqrt(n_outputs) * np.sqrt((scale * bends) ** 2 + slopes**4).max()
        assert exact <= joint_bound(loss, scale) <= exact * 1.1


class PointedBend:
    """Facts of a loss that bends at one slope alone, between two slopes of the grid: half as much at the next of them."""

    self_concordant, separable, n_outputs, lipschitz, smoothness = True, False, 1, 1.0, 1.0

    def __init__(self, peak):
        self.peak = peak

    def curvature_at_slope(self, slopes):
        """It falls by a half within half a cell."""
        return np.maximum(0.0, 1.0 - 2.0**12 * np.abs(slopes - self.peak))


@pytest.mark.parametrize("cell", [0, 1, 3000, 4094, 4095])
@pytest.mark.parametrize("part", [0.49, 0.51])
def test_the_largest_bend_may_lie_between_two_slopes_of_the_grid(cell, part):
    """Cells on both sides of the largest value on the grid count in full, and no others do."""
    peak = (cell + part) * 2.0**-12
    found = joint_bound(PointedBend(peak), 10.0)
    assert math.hypot(10.0, peak**2) <= found <= math.hypot(10.0, (peak + 2.0**-11) ** 2) * (1.0 + 1e-9)


class BendOfFlatRows:
    """Facts of a loss with several scores of their own: it bends up to half of the largest slope, and no further."""

    self_concordant, separable, smoothness = False, True, 1.0

    def __init__(self, n_outputs):
        self.n_outputs, self.lipschitz = n_outputs, math.sqrt(n_outputs)

    def curvature_at_slope(self, slopes):
        """o times that of one score."""
        return np.where(slopes <= 0.5 * self.lipschitz, float(self.n_outputs), 0.0)


@pytest.mark.parametrize("n_outputs", [2, 16])
def test_a_bend_counts_for_all_slopes_of_its_window_and_the_cells_next_to_them(n_outputs):
    """A score has sqrt(o) 2^-6 of its window in units of slopes: with two more cells, so much beyond a half it counts."""
    reach = math.ceil(math.sqrt(n_outputs) * 2.0**-6 * 2**12)
    steep = (2**11 + reach + 2) * 2.0**-12
    expected = math.sqrt(n_outputs) * math.hypot(3.0, steep**2)
    assert joint_bound(BendOfFlatRows(n_outputs), 3.0) == pytest.approx(expected, rel=1e-9)


def test_released_weights_may_be_twice_as_long_as_exact_ones_and_ten_times_the_noise():
    """With noise on the weights: 2 sqrt(2 n log(2) / l2) for rows of weight 1, and ten times its root mean square."""
    problem = problem_of(weight=1.0)
    training = OutputPerturbation().plan(problem, PureDP(1.0))
    exact = 2.0 * math.sqrt(2.0 * 12 * math.log(2.0) / 20.0) + 10.0 * training.noise_norm
    assert largest_norm(training, PureDP(1.0)) == pytest.approx(exact, rel=1e-6)


def test_moments_whose_rounding_is_a_tenth_of_the_sensitivity_are_refused(monkeypatch):
    """Twice the rounding: at nine hundredths there is a plan, at eleven there is none."""
    monkeypatch.setattr(moments, "largest_norm", lambda *_: 3.0)
    problem = problem_of(n=10**6)
    training = OutputPerturbation().plan(problem, ZCDP(0.1))
    scale = balanced_scale(joint_bound, problem.loss_bounds)
    exact = math.sqrt(2.0) * joint_bound(problem.loss_bounds, scale) * 2.5**2
    rounding = Moments(problem, scale, 1.0, 3.0).rounding

    def with_share(share):
        # The bound grows with the number of rows, if weights and sums are as long as they were.
        n = round(10**6 * share * exact / (2.0 * rounding))
        return replace(training, problem=replace(problem, n_rows_low=n, n_rows_high=n))

    Moments.plan(with_share(0.09), ZCDP(0.1))
    with pytest.raises(ParameterError, match="too inexact"):
        Moments.plan(with_share(0.11), ZCDP(0.1))


@pytest.mark.parametrize("rho", [1e-4, 1.0, 4.0, 16.0])
def test_the_grid_of_moments_is_fine_beside_sensitivity_and_noise(rho):
    """A thousandth of the smaller of both over the root of the dimension, but for the next power of two."""
    lattice = plan_of(problem_of(), ZCDP(rho), OutputPerturbation()).lattice
    fine = lattice.l2_sensitivity * min(1.0, 1.0 / math.sqrt(2.0 * rho)) / 1000.0 / math.sqrt(20.0)
    assert 0.499 * fine <= lattice.step <= 1.001 * fine
    assert lattice.deviation == pytest.approx(lattice.l2_sensitivity / math.sqrt(2.0 * rho), rel=0.01)


def test_the_grid_of_the_seal_adds_a_thousandth_to_two_radii():
    """But for the next power of two."""
    lattice = plan_of(problem_of(), PureDP(1.0)).lattice
    fine = lattice.l2_sensitivity / 1000.0 / math.sqrt(20.0)
    assert 0.5 * fine < lattice.step <= fine


def test_units_are_those_of_curvatures_and_squared_slopes_of_one_score():
    """Of a row that counts three times: c = 3 / 4 over the scale, and the square of the slope of one score, 3^2."""
    for loss in (LogisticLoss(), OneVsRest(LogisticLoss(), 4)):
        plan = plan_of(problem_of(loss, weight=3.0), ZCDP(0.1), OutputPerturbation())
        assert plan.query.unit_of_curvature == pytest.approx(0.75 / plan.query.curvature_scale, rel=1e-9)
        assert plan.query.unit_of_slope == pytest.approx(9.0, rel=1e-9)


@pytest.mark.parametrize(
    ("norm", "is_allowed"), [(2.0**249, True), (2.0**251, False), (2.0**-249, True), (2.0**-251, False)]
)
def test_row_norms_from_two_to_the_minus_250_to_250_have_moments(norm, is_allowed):
    """Their fourth powers are doubles."""
    problem = replace(problem_of(intercept=0.0), row_bound=BallBound(norm), l2=norm**2)
    training = OutputPerturbation().plan(problem, ZCDP(0.1))
    if is_allowed:
        assert Moments.plan(training, ZCDP(0.1)).lattice.l2_sensitivity > 0.0
    else:
        with pytest.raises(ParameterError, match="from 2"):
            Moments.plan(training, ZCDP(0.1))


def test_the_event_of_gaussian_moments_has_the_mu_of_their_noise():
    """It is the largest that the budget allows."""
    plan = plan_of(problem_of(), ApproxDP(1.0, 1e-3), OutputPerturbation())
    assert plan.noise is None
    assert plan.event.curve.mu == pytest.approx(mu_within(ApproxDP(1.0, 1e-3)), rel=1e-6)
    assert plan.event.curve.mu == pytest.approx(plan.lattice.l2_sensitivity / plan.lattice.deviation, rel=5e-3)


def test_a_plan_without_privacy_has_no_noise_and_no_seal():
    """Nothing is shortened, rounded to a grid or paid for."""
    plan = Moments.plan(ObjectivePerturbation().plan(problem_of(), PureDP(1.0)), PureDP(math.inf))
    assert (plan.query.largest_norm, plan.radius, plan.noise, plan.lattice) == (math.inf, 0.0, None, None)
