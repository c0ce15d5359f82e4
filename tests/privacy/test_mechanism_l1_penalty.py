"""An l1 penalty beside the ridge: the law of its noise, its certificate, and what it does not allow."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.penalties import RIDGE, shrunk
from confide.errors import NotCertified, ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.certificate import certify, planned_tolerance, solver_tolerance
from confide.privacy.mechanism import zero_weights
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import gaussian_multiplier, signed
from tests.privacy.laws import check_law
from tests.privacy.problems import problem, releases, rows_and_labels, source, with_penalty

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
OUTPUT = OutputPerturbation()
LAWS = {
    "sealed sphere": (PureDP(0.8), lambda b: ("gamma", 1 / (0.99 * b.epsilon))),
    "approximate": (ApproxDP(1.0, 0.01), lambda b: ("halfnorm", gaussian_multiplier(b.epsilon, b.delta))),
    "zcdp": (ZCDP(0.05), lambda b: ("halfnorm", math.sqrt(0.5 / b.rho))),
}


@pytest.mark.parametrize(("neighbours", "shift"), [(REPLACE, 2.0), (ADD, 1.0)], ids=["replace", "add"])
@pytest.mark.parametrize("name", LAWS)
def test_weights_scatter_around_the_sparse_minimiser_by_the_theorems_law(name, neighbours, shift):
    """Over shift R / l2 times the multiplier of the law, w - w* has the standard law; 30% off fails.

    The ridge keeps every margin below 1/2, where the slope of the hinge is -1 and the minimiser is known: the sum of y x,
    shrunk by l1, over l2.
    """
    budget, expected = LAWS[name]
    high = 12 if neighbours is ADD else None
    facts = with_penalty(
        problem(8, 2, loss=HuberHinge(0.5), row_norm=2.0, intercept=1.5, l2=120.0, neighbours=neighbours, high=high),
        l1_ratio=0.02,
    )
    raw = np.random.default_rng(4).normal(size=(8, 2)) * 3.0
    labels = np.where(np.arange(8) % 3, 1, -1)
    clipped = raw * np.minimum(1.0, 2.0 / np.linalg.norm(raw, axis=1))[:, None]
    pulls = signed(clipped, labels, 1.5).sum(axis=0)
    centre = shrunk(pulls, np.array([1.0, 1.0, 0.0]) * 120.0 * 0.02 / 0.98) / 120.0
    assert (signed(clipped, labels, 1.5) @ centre < 0.5).all()
    assert 0.0 < np.count_nonzero(centre[:2]) < 2, "one weight is 0 and one is not"
    plan = OUTPUT.plan(facts, budget)
    law, multiplier = expected(budget)
    sample = releases(OUTPUT, plan, rows_and_labels(raw, labels), 500, 5, NewtonThenFallback())
    scattered = (sample - centre) / (shift * 2.5 / 120.0 * multiplier)
    if law == "gamma":
        check_law(np.linalg.norm(scattered, axis=1), stats.gamma(3).cdf)
    else:
        check_law(np.abs(scattered).ravel(), getattr(stats, law).cdf)


def minimiser(facts, rows):
    """The certified minimiser of a plan, and that plan."""
    plan = OUTPUT.plan(facts, ZCDP(0.1))
    objective = plan.problem.objective(rows, plan.l2, zero_weights(plan.problem))
    weights = NewtonThenFallback().solve(objective.lent(), zero_weights(plan.problem), solver_tolerance(plan.tolerance))
    certify(objective, weights.weights, plan.tolerance, plan.problem.rounding(plan.l2))
    return weights.weights, plan, objective


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
def test_minimisers_of_neighbours_are_no_further_apart_than_the_sensitivity(loss):
    """16 pairs of neighbours; where both pull all they can the distance is 2LR / l2, so a smaller bound fails."""
    rng, farthest = np.random.default_rng(1), 0.0
    for case in range(16):
        l2, ratio = float(rng.uniform(2.0, 60.0)), float(rng.choice([0.05, 0.5]))
        facts = with_penalty(problem(6, 3, loss=loss, l2=l2), l1_ratio=ratio)
        rows, labels = rng.normal(size=(6, 3)) * 2.0, rng.choice([-1, 1], 6)
        if case % 2:
            rows, labels = np.tile([2.0, 0.0, 0.0], (6, 1)), np.ones(6)
        first = minimiser(facts, rows_and_labels(rows, labels))[0]
        rows[0], labels[0] = (-rows[0], labels[0]) if case % 2 else (rng.normal(size=3) * 2.0, -labels[0])
        other = minimiser(facts, rows_and_labels(rows, labels))[0]
        farthest = max(farthest, float(np.linalg.norm(first - other)) * l2 / 2.0)
        assert np.linalg.norm(first - other) <= 2.0 / l2
    assert farthest > {"logistic": 0.4, "huber_hinge": 0.8}[loss.constants.name]


def test_only_the_sparse_minimiser_is_certified():
    """A weight that is nearly 0 is refused where the minimiser has 0, and so is the minimiser without the penalty."""
    facts = with_penalty(problem(40, 4, intercept=1.0, l2=10.0), l1_ratio=0.1)
    weights, plan, objective = minimiser(facts, source(40, 4, seed=2))
    zeros = np.flatnonzero(weights[0] == 0.0)
    assert 0 < len(zeros) < 4
    rounding = plan.problem.rounding(plan.l2)
    for wrong in (1e-12, -1e-9):
        near = weights.copy()
        near[0, zeros[0]] = wrong
        with pytest.raises(NotCertified):
            certify(objective, near, plan.tolerance, rounding)
    moved = weights.copy()
    moved[0, 4] += 3.0 * plan.tolerance / plan.l2
    with pytest.raises(NotCertified):
        certify(objective, moved, plan.tolerance, rounding)


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6])
def test_the_rounding_bound_covers_subgradients_and_steps(scale):
    """Against 60 digits, on cancelling rows, for a strong and a weak penalty; without its terms for the penalty it fails."""
    mp = pytest.importorskip("mpmath").MPContext()
    mp.dps = 60
    rng, worst, without = np.random.default_rng(3), 0.0, 0.0
    for _ in range(40):
        n, d, l2 = int(rng.integers(1, 8)), int(rng.integers(1, 4)), 5.0
        ratio = scale / (1.0 + scale)
        facts = with_penalty(problem(n, d, l2=l2), l1_ratio=ratio)
        rows, labels = rng.uniform(-0.5, 0.5, size=(n, d)), rng.choice([-1, 1], n)
        objective = facts.objective(rows_and_labels(rows, labels), l2, np.zeros((1, d)))
        weights = rng.normal(size=(1, d)) * 10.0 ** rng.uniform(-3, 3) * rng.choice([0.0, 1.0], d)
        exact = []
        gradient = []
        for m in range(d):
            total = mp.mpf(l2) * mp.mpf(float(weights[0, m]))
            for x, y in zip(rows, labels, strict=True):
                z = int(y) * mp.fsum(mp.mpf(float(a)) * mp.mpf(float(b)) for a, b in zip(x, weights[0], strict=True))
                total -= int(y) * mp.mpf(float(x[m])) / (1 + mp.exp(z))
            gradient.append(total)
            strength = mp.mpf(float(objective.l1[m]))
            kept = max(abs(total) - strength, mp.mpf(0)) * mp.sign(total)
            exact.append(total + strength * mp.sign(mp.mpf(float(weights[0, m]))) if weights[0, m] else kept)
        found = objective.gradients(weights)[0]
        error = float(mp.sqrt(mp.fsum((mp.mpf(float(a)) - b) ** 2 for a, b in zip(found, exact, strict=True))))
        norms = float(np.linalg.norm(weights)), 0.0, float(np.linalg.norm(found))
        rounding = facts.rounding(l2)
        worst = max(worst, error / rounding.bound(*norms))
        smooth = replace(rounding, penalty=RIDGE)
        without = max(without, error / smooth.bound(norms[0], 0.0, float(mp.sqrt(mp.fsum(g * g for g in gradient)))))
        # The step as one without rounding, at a gradient with an error: lemma 5.
        step = (1.0 - 2.0**-50) / objective.smoothness
        computed = objective.evaluate(weights, order=1).gradient
        after = shrunk(weights - step * computed, step * objective.l1)[0]
        errors = []
        for m in range(d):
            argument = mp.mpf(float(weights[0, m])) - mp.mpf(step) * gradient[m]
            width = mp.mpf(step) * mp.mpf(float(objective.l1[m]))
            if after[m]:
                errors.append((argument - mp.mpf(float(after[m])) - width * mp.sign(mp.mpf(float(after[m])))) / mp.mpf(step))
            else:
                errors.append(max(abs(argument) - width, mp.mpf(0)) / mp.mpf(step))
        of_step = float(mp.sqrt(mp.fsum(e * e for e in errors)))
        worst = max(worst, of_step / rounding.bound(norms[0], 0.0, float(np.linalg.norm(computed))))
    assert worst <= 1.0
    assert scale < 1e6 or without > 1.0, "the penalty's own rounding must count"


@pytest.mark.parametrize("l1_ratio", [0.01, 0.9])
def test_the_rounding_bound_is_that_of_theorem_2(l1_ratio):
    """To the last of its constants, which cancelling rows do not reach: rho at |g| + |l1|, and four roundings of a step."""
    facts = with_penalty(problem(7, 3, intercept=0.5, l2=5.0, largest_weight=3.0), l1_ratio=l1_ratio)
    of_l1 = math.sqrt(3.0) * 5.0 * l1_ratio / (1.0 - l1_ratio)
    steepest = 5.0 + 7.0 * 3.0 * 0.25 * 1.25
    for weights, noise, gradient in ((0.0, 0.0, 1e9), (1e12, 3.0, 2.0), (2.0, 1.0, 0.0)):
        found = facts.rounding(5.0).bound(weights, noise, gradient)
        smooth = (
            problem(7, 3, intercept=0.5, l2=5.0, largest_weight=3.0).rounding(5.0).bound(weights, noise, gradient + of_l1)
        )
        of_step = 1.1 * 2.0**-53 * (5.0 * (gradient + of_l1) + 5.0 * of_l1 + 2.0 * steepest * weights)
        assert found == pytest.approx(smooth + 4.0 * of_step, rel=1e-9, abs=0.0)


def test_the_plan_has_the_ridge_and_the_penalty_of_its_share():
    """l1 is l2 times r / (1 - r) on each weight of every score but the intercept's, and follows the ridge."""
    facts = with_penalty(problem(20, 2, intercept=1.0, l2=30.0), l1_ratio=0.75)
    for l2, expected in ((30.0, [90.0, 90.0, 0.0]), (2.0, [6.0, 6.0, 0.0])):
        np.testing.assert_allclose(facts.objective(source(20, 2), l2, np.zeros((1, 3))).l1, expected)
    assert facts.rounding(30.0).l1_norm == pytest.approx(90.0 * math.sqrt(2.0))
    plan = OUTPUT.plan(facts, ZCDP(0.1))
    assert plan.problem.penalty.l1_ratio == 0.75
    assert plan.tolerance == planned_tolerance(facts.rounding(30.0), 0.0)
    assert plan.tolerance > OUTPUT.plan(problem(20, 2, intercept=1.0, l2=30.0), ZCDP(0.1)).tolerance
    assert plan.lattice.l2_sensitivity == pytest.approx(2.0 * math.sqrt(2.0) / 30.0, rel=1e-6)


@pytest.mark.parametrize("l1_ratio", [0.1, 0.3, 0.7])
def test_the_norm_of_the_penalty_is_no_smaller_than_that_of_its_vector(l1_ratio):
    """It comes from a formula, exact to a few units of rounding; a plan of 10^9 columns has no vector of them."""
    for n_features in (1, 2, 3, 5, 50, 1000):
        facts = with_penalty(problem(30, n_features, l2=7.0), l1_ratio=l1_ratio)
        exact = n_features * Fraction(facts.penalty.l1_strength(7.0)) ** 2
        assert exact <= Fraction(facts.rounding(7.0).l1_norm) ** 2 <= exact * Fraction(1.0 + 2.0**-46)
    assert with_penalty(problem(30, 10**9, l2=7.0), l1_ratio=l1_ratio).rounding(7.0).l1_norm > 1.0


def test_noise_in_the_objective_is_refused():
    """Its theorem needs a differentiable penalty, whatever the budget is."""
    facts = with_penalty(problem(20, 2), l1_ratio=0.5)
    for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)):
        with pytest.raises(ParameterError, match="penalty without kinks"):
            ObjectivePerturbation().plan(facts, budget)


@pytest.mark.parametrize("l1_ratio", [1.0, -0.5, math.nan])
def test_the_ridge_must_stay_positive(l1_ratio):
    """Without a ridge there is no strong convexity, so no sensitivity."""
    with pytest.raises(ParameterError, match="l1_ratio"):
        with_penalty(problem(20, 2), l1_ratio=l1_ratio)


def test_a_share_that_leaves_doubles_no_room_is_refused():
    """The penalty's own rounding would be larger than the ridge can cover."""
    with pytest.raises(ParameterError, match="Raise alpha"):
        OUTPUT.plan(with_penalty(problem(20, 2), l1_ratio=1.0 - 2.0**-50), ZCDP(0.1))


def test_what_no_problem_may_be_is_refused_with_a_penalty_too():
    """A person without rows, and bounds on the number of rows that cross."""
    facts = with_penalty(problem(20, 2), l1_ratio=0.5)
    for wrong in ({"rows_per_person": 0}, {"n_rows_low": 30, "n_rows_high": 20}):
        with pytest.raises(ParameterError):
            replace(problem(20, 2), **wrong)
        with pytest.raises(ParameterError):
            replace(facts, **wrong)


def test_columns_are_no_levels_unless_a_schema_says_so():
    facts = with_penalty(problem(20, 2), l1_ratio=0.5)
    assert not facts.penalty.has_levels
    assert with_penalty(problem(20, 2), l1_ratio=0.5, has_levels=True).penalty.has_levels
