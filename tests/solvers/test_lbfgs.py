"""L-BFGS: gradients alone, stages of cheaper objectives first, and scales of columns."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import Totals
from confide.solvers.lbfgs import LimitedMemory, Stage, _Schedule
from tests.solvers.problems import LOSSES, objective


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("l2", [1e-2, 1.0, 100.0])
def test_limited_memory_reaches_a_small_gradient_without_a_hessian(loss, l2):
    """Several problems are solved by gradients alone, in not many passes. A tolerance of 0 ends at the floor of doubles."""
    problems = objective(loss, l2=l2, k=3)
    solution = LimitedMemory().solve(problems, np.zeros((3, 7)), 1e-8)
    norms = np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1)
    assert (norms <= 1.01e-8).all()
    assert set(problems.source.orders) == {1}
    assert len(problems.source.orders) <= 3 * 250
    assert LimitedMemory().solve(problems.restrict(np.array([0])), np.zeros((1, 7)), 0.0).gradient_norm[0] < 1e-11


def test_a_metric_that_is_the_inverse_hessian_leaves_few_steps():
    """The problem is nearly quadratic. An object that has nothing but gradients is solved in the same metric."""
    problems = objective(LogisticLoss(), l2=100.0)
    start = np.zeros((1, 7))
    inverse = np.linalg.inv(problems.evaluate(start, order=2).hessian[0])
    problems.source.orders.clear()
    method = LimitedMemory(metric=lambda gradients: gradients @ inverse)
    solution = method.solve(problems, start, 1e-9)
    assert solution.gradient_norm[0] <= 1e-9
    assert len(problems.source.orders) <= 8

    class GradientsAlone:
        def restrict(self, which):
            return self

        def evaluate(self, weights, order):
            return problems.evaluate(weights, order)

    np.testing.assert_array_equal(method.solve_in_metric(GradientsAlone(), start, 1e-9).weights, solution.weights)


class Bowl:
    """The objective |w - centre|^2 / 2, for any number of problems. It counts passes."""

    def __init__(self, centre):
        self.centre, self.passes = centre, 0

    def restrict(self, which):
        """All problems are alike."""
        return self

    def evaluate(self, weights, order):
        """The gradients."""
        self.passes += 1
        return Totals(np.full(len(weights), np.nan), weights - self.centre, np.empty((len(weights), 0, 0)))


def test_stages_follow_each_other_and_the_last_has_the_last_word():
    """Steps are made on a cheaper objective until it is close to its own minimiser; the answer is that of the exact one."""
    exact, cheap = objective(LogisticLoss(), l2=100.0), Bowl(1.0)
    solution = LimitedMemory(cheaper=(Stage(cheap),)).solve(exact, np.zeros((1, 7)), 1e-9)
    assert cheap.passes >= 2
    assert np.linalg.norm(exact.evaluate(solution.weights, order=1).gradient) <= 1.01e-9


def test_a_schedule_skips_stages_where_one_exact_step_may_be_enough():
    """Otherwise each stage has its turn. Problems that are close to the end of a stage take no more steps in it."""
    first, second, exact = Bowl(0.0), Bowl(1.0), Bowl(2.0)
    both, enough = np.arange(2), np.full(2, 1e-3)
    for norms, expected in (([1e-2, 0.5], second), ([1e-2, 2e-2], exact)):
        schedule = _Schedule((Stage(first), Stage(second)), exact, 2)
        assert schedule.now.objective is first
        schedule.judge(both, np.ones(2), np.array(norms), enough)
        assert list(schedule.open(both)) == ([1] if expected is second else [])
        schedule.advance(enough)
        assert schedule.now.objective is expected
        assert schedule.is_exact == (expected is exact)
        assert list(schedule.open(both)) == [0, 1]


@pytest.mark.parametrize("most_slow_steps", [3, None])
def test_problems_that_gain_little_are_given_up_if_asked(most_slow_steps):
    """The columns are curved very differently and have no scales, so that steps gain little."""
    problems = objective(LogisticLoss(), l2=1e-6, scale=np.logspace(0, -5, 6))
    solution = LimitedMemory(most_slow_steps=most_slow_steps).solve(problems, np.zeros((1, 7)), 1e-8)
    assert (solution.gradient_norm[0] <= 1e-8) == (most_slow_steps is None)
