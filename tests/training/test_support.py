"""Weights that chance alone makes become 0, and the threshold is that of the law of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.erm.transformed_losses import DeclaredLoss
from confide.models.scores import LinearModel
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.output_perturbation import OutputPerturbation
from confide.training import support
from confide.training.alpha import AlphaRule
from confide.training.gradient_steps import HeavyBall, gradient_mechanism
from confide.training.support import FALSE_WEIGHTS, responses, support_threshold, with_zeros
from tests.privacy.problems import problem, with_penalty

RULE = AlphaRule(is_automatic=False, score_size=None, is_raised=False, for_intervals=False)


def planned(mechanism, budget, *, n=400, d=20, l1_ratio=0.5, loss=None, l2=40.0, intercept=1.0):
    """A plan with an l1 penalty."""
    facts = with_penalty(problem(n, d, intercept=intercept, l2=l2, loss=loss), l1_ratio=l1_ratio)
    return mechanism.plan(facts, budget)


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        (OutputPerturbation(), PureDP(1.0)), (OutputPerturbation(laplace_alone=True), PureDP(1.0)),
        (OutputPerturbation(), ApproxDP(1.0, 1e-6)), (OutputPerturbation(), ZCDP(0.1)),
    ],
    ids=["sphere", "Laplace", "approximate", "rho"],
)  # fmt: skip
def test_noise_alone_seldom_passes_and_not_much_seldomer_than_said(monkeypatch, mechanism, budget):
    """Of 20 weights that are noise, 0.1 pass in the mean. 300 draws of the plan's own noise tell 0.1 from 0.2 and 0.04."""
    monkeypatch.setattr(support, "usual_slope", lambda loss: 0.0)
    plan, entropy = planned(mechanism, budget), Entropy.seeded(0)
    threshold, passed = support_threshold(plan), 0
    for _ in range(300):
        weights = np.zeros((1, 21)) if plan.noise is None else plan.noise.draw(entropy)
        passed += np.count_nonzero(np.abs(plan.lattice.release(weights, entropy)[0, :20]) > threshold)
    assert 0.4 < passed / 300 / FALSE_WEIGHTS < 2.0


def test_the_draw_of_the_rows_counts_too():
    """With next to no noise the threshold is that of weights without an effect: 3.3 deviations of a logistic fit."""
    plan = planned(OutputPerturbation(), ZCDP(1e9), n=10_000, d=20, l2=1.0, intercept=0.0)
    in_column = 1.0 / np.sqrt(3.0 * 20.0)
    deviation = 0.5 * np.sqrt(10_000) * in_column / (1.0 + 0.25 * 10_000 * in_column**2)
    assert support_threshold(plan) == pytest.approx(2.807 * deviation, rel=0.02)
    # Larger scores bend the loss less, so the same rows say less of a weight.
    assert support_threshold(plan, np.full((1, 20), 10.0)) > 1.5 * support_threshold(plan)


@pytest.mark.parametrize(
    "loss", [LogisticLoss(), SquaredLoss(2.0, 0.5), MeanLoss(20.0, 2.0)], ids=lambda loss: loss.constants.name
)
def test_noisy_gradients_have_a_threshold_that_falls_with_the_noise(loss):
    """It is a finite number, which noise makes larger."""
    rule = AlphaRule(is_automatic=True, score_size=None, is_raised=False, for_intervals=False)
    small, large = (planned(gradient_mechanism(rule), ZCDP(rho), loss=loss) for rho in (10.0, 0.01))
    assert 0.0 < support_threshold(small) < support_threshold(large) < np.inf


def test_the_intercept_stays_and_nothing_happens_without_a_penalty():
    """Only weights of columns become 0; a plan without an l1 penalty has a threshold of 0."""
    plan = planned(OutputPerturbation(), ZCDP(0.1), d=2)
    threshold = support_threshold(plan)
    weights = np.array([[0.5 * threshold, -1.5 * threshold, 0.1 * threshold]])
    model = LinearModel.of(weights, plan.problem)
    found = with_zeros(model, plan, np.zeros((1, 3)))
    np.testing.assert_array_equal(found.coef, [[0.0, -1.5 * threshold]])
    np.testing.assert_array_equal(found.intercept, model.intercept)
    smooth = OutputPerturbation().plan(problem(400, 2, intercept=1.0, l2=40.0), ZCDP(0.1))
    assert support_threshold(smooth) == 0.0
    assert with_zeros(model, smooth, weights) is model


def test_levels_are_taken_relative_to_their_median_and_no_score_changes():
    """A number that all levels share goes to the intercept, in units of the scale; without a schema groups stay."""
    bound = GroupBound((3, 1), (0.5, 1.0))
    facts = problem(10**6, 4, row_bound=bound, intercept=1.0, l2=4e4)
    model = LinearModel(np.array([[7.0, 5.0, 9.0, 3.0]]), np.array([1.0]), bound)
    for has_levels, coefficients in ((True, [[0.0, -2.0, 2.0, 3.0]]), (False, [[7.0, 5.0, 9.0, 3.0]])):
        plan = OutputPerturbation().plan(with_penalty(facts, l1_ratio=0.1, has_levels=has_levels), ZCDP(0.1))
        found = with_zeros(model, plan, np.zeros((1, 5)))
        np.testing.assert_allclose(found.coef, coefficients)
        rows = ArrayBlocks(np.array([[0.5, 0.0, 0.0, 0.2], [0.0, 0.5, 0.0, -1.0], [0.0, 0.0, 0.5, 0.0]]))
        np.testing.assert_allclose(found.scores(rows), model.scores(rows))


@pytest.mark.parametrize("smoothness", [np.inf, 0.25])
def test_a_users_loss_of_the_margin_has_a_threshold_for_noisy_gradients(smoothness):
    """Its slopes alone are asked for, after the charge, and larger scores bend it less."""

    class SlopesAlone:
        def derivative(self, margin):
            return -1.0 / (1.0 + np.exp(margin))

    loss = DeclaredLoss(SlopesAlone(), None, "own", 1.0, smoothness, 1.0, 1024.0, True)
    plan = planned(gradient_mechanism(RULE), ZCDP(0.1), loss=loss)
    small, large = (support_threshold(plan, np.full((1, 21), size)) for size in (0.1, 30.0))
    assert 0.0 < small < large < np.inf
    known = planned(gradient_mechanism(RULE), ZCDP(0.1), loss=LogisticLoss())
    ours, theirs = (support._curvature(each.problem.loss, 2.0) for each in (plan, known))
    assert ours == pytest.approx(theirs, rel=0.02)


def test_an_even_number_of_levels_stays_on_the_grid_of_the_noise():
    """The median of two levels often lies between two multiples of the step, and weights must not leave the grid."""
    bound = GroupBound((2, 1), (1.0, 1.0))
    plan = OutputPerturbation().plan(
        with_penalty(problem(10**6, 3, row_bound=bound, intercept=1.0, l2=4e4), l1_ratio=0.1, has_levels=True), ZCDP(0.1)
    )
    step = 2.0**plan.lattice.exponent
    model = LinearModel(np.array([[7.0 + step, -5.0, 3.0]]), np.array([1.0]), bound)
    steps = with_zeros(model, plan, np.zeros((1, 4))).coef / step
    np.testing.assert_array_equal(steps, np.rint(steps))
    assert np.ptp(steps[0, :2]) * step == 12.0 + step


def test_around_a_centre_a_weight_that_becomes_0_leaves_the_intercept_too():
    """The model is that of the weights for centred rows with zeros, written for rows as they are."""
    bound = Centred(BallBound(1.0), (0.4, -0.3), 0.5)
    plan = OutputPerturbation().plan(
        with_penalty(problem(400, 2, row_bound=bound, intercept=1.0, l2=40.0), l1_ratio=0.5), ZCDP(0.1)
    )
    threshold = support_threshold(plan, np.zeros((1, 3)))
    weights = np.array([[0.9 * threshold, -1.1 * threshold, 0.7]])
    found = with_zeros(LinearModel.of(weights, plan.problem), plan, np.zeros((1, 3)))
    expected = LinearModel.of(np.array([[0.0, -1.1 * threshold, 0.7]]), plan.problem)
    np.testing.assert_allclose(found.coef, expected.coef)
    np.testing.assert_allclose(found.intercept, expected.intercept)


@pytest.mark.parametrize("stiffness", [1.0, 40.0])
def test_responses_are_those_of_a_walk_with_noise_and_with_a_pull(stiffness):
    """Against 3,000 simulated walks of a weight; a slow walk ends far from where the pull would bring it."""
    steps, rng = HeavyBall(40, 2e-4, 0.9, stiffness), np.random.default_rng(0)
    of_noise, of_pull = responses(steps, stiffness)
    walk, pulled = steps.start(1, 3000), steps.start(1)
    for _ in range(40):
        walk, pulled = walk.after(rng.normal(size=(3000, 1))), pulled.after(np.ones((1, 1)))
    assert of_noise == pytest.approx(walk.weights.std(), rel=0.06)
    assert of_pull == pytest.approx(abs(pulled.weights[0, 0]), rel=1e-12)
    assert of_pull < {1.0: 0.2, 40.0: 1.0}[stiffness] / stiffness
