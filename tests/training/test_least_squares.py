"""Least squares: the ridge of its plan, weights from its sums, and what is refused before a row is read."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide import ApproxDP, Ridge
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.models.prior import Prior
from confide.privacy.budgets import Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.training.alpha import noise_l2
from confide.training.least_squares import plan_of_sums, weights_of_sums
from confide.training.settings import SquaredError
from tests.estimators.test_regression import made_up
from tests.training.examples import RICH, least_squares

INF = math.inf
PLAIN, WITH_SQUARE = SquaredError(1.0, with_square=False), SquaredError(1.0, with_square=True)


def numbers(n_rows=3000):
    """Rows within the unit ball, and targets near a line, as a source."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(n_rows, 2))
    return X, MemorySource(ArrayBlocks(X), X @ [0.8, -0.4] + 0.05 * rng.normal(size=n_rows))


def test_an_alpha_is_taken_times_the_lowest_number_of_rows():
    """Public or declared."""
    assert plan_of_sums(least_squares(alpha=0.5), PLAIN, 2, 300).l2 == 150.0
    private = least_squares(alpha=0.5, neighbours=Neighbours.ADD_OR_REMOVE_ONE, n_rows_bounds=(200, 400))
    assert plan_of_sums(private, PLAIN, 2, None).l2 == 100.0


def test_the_automatic_ridge_is_that_of_the_noise():
    """0.7 t sqrt(D), t the deviation of the noise on a product, or of spherical noise; without privacy it is 1."""
    plan = plan_of_sums(least_squares(budget=ApproxDP(0.01, 1e-2)), PLAIN, 2, 300)
    assert plan.noise is None
    assert plan.l2 == noise_l2(plan.product_deviation, 2)
    assert plan.l2 == pytest.approx(0.7 * plan.product_deviation * math.sqrt(2.0))
    spherical = plan_of_sums(least_squares(), PLAIN, 2, 300)
    assert spherical.noise is not None
    assert spherical.l2 == pytest.approx(0.7 * spherical.diagonal_deviation * math.sqrt(2.0))
    assert plan_of_sums(least_squares(budget=PureDP(INF)), PLAIN, 2, 300).l2 == 1.0


def test_intervals_that_could_not_be_trusted_are_refused_and_the_same_weights_are_not():
    """Few rows at a small budget. With many rows the plan holds the forecast of its intervals."""
    poor = least_squares(budget=PureDP(0.1))
    assert plan_of_sums(poor, PLAIN, 2, 100).intervals is None
    with pytest.raises(ParameterError, match="interval"):
        plan_of_sums(poor, WITH_SQUARE, 2, 100)
    plan = plan_of_sums(least_squares(budget=RICH), WITH_SQUARE, 2, 100_000)
    assert plan.intervals is plan.forecast is not None


@pytest.mark.parametrize("squared", [PLAIN, WITH_SQUARE], ids=["weights alone", "with intervals"])
def test_without_privacy_the_weights_are_those_of_the_normal_equations(squared):
    """To 1e-12; intervals are made of the same sums."""
    X, rows = numbers()
    plan = plan_of_sums(least_squares(budget=PureDP(INF), alpha=0.01), squared, 2, 3000)
    weights, evidence = weights_of_sums(plan, rows, Entropy.fresh())
    np.testing.assert_allclose(weights, np.linalg.solve(X.T @ X + 30.0 * np.eye(2), X.T @ rows.labels), rtol=1e-12)
    assert (evidence is not None) == squared.with_square


def test_private_weights_are_near_those_without_privacy_and_differ_from_them():
    """At a large budget on many rows, within a twentieth."""
    _, rows = numbers(30_000)
    private = plan_of_sums(least_squares(budget=RICH, alpha=1e-3), PLAIN, 2, 30_000)
    public = plan_of_sums(least_squares(budget=PureDP(INF), alpha=1e-3), PLAIN, 2, 30_000)
    one, other = (weights_of_sums(plan, rows, Entropy.seeded(0))[0] for plan in (private, public))
    assert 0.0 < np.linalg.norm(one - other) < 0.05


def test_sums_that_overflow_are_refused_in_words():
    """Without privacy and without bounds nothing clips rows or targets."""
    rows = MemorySource(ArrayBlocks(np.full((100, 2), 1e200)), np.full(100, 1e200))
    facts = replace(least_squares(budget=PureDP(INF)), row_bound=BallBound(INF))
    plan = plan_of_sums(facts, SquaredError(INF, with_square=False), 2, 100)
    with np.errstate(all="ignore"), pytest.raises(ParameterError, match="give a finite row_norm"):
        weights_of_sums(plan, rows, Entropy.fresh())


def test_the_automatic_ridge_is_public_and_falls_with_the_budget():
    """The same for other rows of the same shape; under an infinite budget it is 1 in the sum form."""
    alphas = [Ridge(ApproxDP(epsilon, 1e-6), target_bound=1.0).plan(1000, 5).alpha for epsilon in (0.1, 1.0, 10.0)]
    assert alphas[0] > 4 * alphas[1] > 16 * alphas[2] > 0.0
    assert (
        Ridge(1.0, target_bound=1.0).fit(*made_up(seed=1)).alpha_
        == Ridge(1.0, target_bound=1.0).fit(*made_up(seed=2)).alpha_
    )
    assert Ridge(INF, target_bound=1.0).plan(1000, 5).alpha == 1e-3
    assert Ridge(1.0, alpha=0.25, target_bound=1.0).fit(*made_up()).alpha_ == 0.25


def test_a_plan_of_sums_keeps_the_prior_and_the_same_sums():
    """Its weights are those of the prior's problem; the intercept is in units of its constant; the release is the same."""
    prior = Prior.of_numbers([1.0, 2.0], 3.0)
    plain, plan = (plan_of_sums(least_squares(prior=each, intercept=2.0), PLAIN, 2, 300) for each in (None, prior))
    assert plan.prior == (1.0, 2.0, 1.5)
    assert replace(plan, prior=()) == plain
