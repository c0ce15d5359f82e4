"""Weights that chance alone makes become 0, and the threshold is that of the law of the noise."""

from __future__ import annotations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.target_losses import PoissonLoss, SquaredLoss
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.elastic_net import SparseProblem
from confide.privacy.noise import Entropy
from confide.privacy.output_perturbation import OutputPerturbation
from confide.released_models.scores import LinearModel
from confide.training import released_support
from confide.training.alpha import AlphaRule
from confide.training.gradient_steps import gradient_mechanism
from confide.training.released_support import FALSE_WEIGHTS, support_threshold, with_zeros
from tests.privacy.problems import problem

RULE = AlphaRule(is_automatic=False, score_size=None, is_raised=False, for_intervals=False)


def planned(mechanism, budget, *, n=400, d=20, l1_ratio=0.5, loss=None, l2=40.0, intercept=1.0):
    """A plan with an l1 penalty."""
    facts = SparseProblem.of(problem(n, d, intercept=intercept, l2=l2, loss=loss), l1_ratio)
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
    monkeypatch.setattr(released_support, "usual_slope", lambda loss: 0.0)
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


@pytest.mark.parametrize("loss", [LogisticLoss(), SquaredLoss(2.0, 0.5), PoissonLoss(20.0, 2.0)], ids=lambda loss: loss.name)
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
        plan = OutputPerturbation().plan(SparseProblem.of(facts, 0.1, has_levels=has_levels), ZCDP(0.1))
        found = with_zeros(model, plan, np.zeros((1, 5)))
        np.testing.assert_allclose(found.coef, coefficients)
        rows = ArrayBlocks(np.array([[0.5, 0.0, 0.0, 0.2], [0.0, 0.5, 0.0, -1.0], [0.0, 0.0, 0.5, 0.0]]))
        np.testing.assert_allclose(found.scores(rows), model.scores(rows))
