"""Proximal steps from noisy sums: without noise they end at the elastic net."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide.solvers.fallback import NewtonThenFallback
from confide.training.alpha import AlphaRule
from confide.training.gradient_steps import HeavyBall, descent_of, l2_of_chance
from tests.privacy.problems import problem, source, with_penalty


def test_exact_sums_lead_to_the_elastic_net():
    """The mean of the points is the minimiser that the solver finds, zeros and intercept included."""
    facts = with_penalty(problem(60, 5, intercept=1.0, l2=3.0), l1_ratio=0.4)
    objective = facts.objective(source(60, 5, seed=1), 3.0, np.zeros((1, 6)))
    exact = NewtonThenFallback().solve(objective, np.zeros((1, 6)), 1e-9).weights
    assert 0 < np.count_nonzero(exact[0, :5]) < 5
    walk = HeavyBall(600, 0.02, 0.8, 3.0, (), facts.penalty.l1_strength(3.0), 6, 5).start(6)
    for _ in range(600):
        walk = walk.after(objective.evaluate(walk.point, order=1).gradient - 3.0 * walk.point)
    np.testing.assert_allclose(walk.weights, exact, atol=1e-6)
    np.testing.assert_array_equal(walk.point == 0.0, exact == 0.0)


def test_the_steps_know_the_penalty_and_say_that_they_are_proximal():
    """The strength is that of the problem, and the intercept of each score has none."""
    facts = with_penalty(problem(60, 2, intercept=1.0, l2=3.0), l1_ratio=0.75)
    rule = AlphaRule(is_automatic=False, score_size=None, is_raised=False, for_intervals=False)
    steps = replace(descent_of(rule, facts, 1.0)[1].steps, step=0.1)
    assert steps.l1 == pytest.approx(9.0)
    assert "proximal heavy ball" in str(steps)
    np.testing.assert_allclose(steps.shrunk(np.array([[1.0, -0.5, 0.2, -2.0, 3.0, 0.2]])), [[0.1, 0.0, 0.2, -1.1, 2.1, 0.2]])


def test_the_automatic_penalty_is_a_quarter_of_the_pull_of_chance():
    """Noise of deviation 3 on each of 8 weights, and next to no rows: 3 sqrt(2 ln 16) / 4, whatever the share of l1 is."""
    for ratio in (0.2, 0.5, 0.9):
        facts = with_penalty(problem(1, 8, l2=3.0), l1_ratio=ratio)
        l2 = l2_of_chance(facts, 3.0, 1e-9)
        assert l2 * ratio / (1.0 - ratio) == pytest.approx(0.25 * 3.0 * np.sqrt(2.0 * np.log(16.0)))
    many = with_penalty(problem(10**6, 8, l2=3.0), l1_ratio=0.5)
    assert l2_of_chance(many, 0.0, 0.8) == pytest.approx(
        0.25 * 0.5 * 1000.0 * 0.8 / np.sqrt(8.0) * np.sqrt(2.0 * np.log(16.0))
    )
