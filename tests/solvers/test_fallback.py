"""The whole solver: it reaches the tolerance whatever the first method does, and the fallback methods keep their bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective, Solution
from confide.erm.row_bounds import BallBound
from confide.errors import FileError
from confide.solvers import fallback
from confide.solvers.fallback import GradientDescent, NewtonThenFallback, StepLimitedNewton
from tests.privacy.own_penalties import LOG_COSH
from tests.privacy.problems import with_penalty
from tests.solvers.problems import LOSSES, Idle, objective, planned_tolerance


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("l2", [1e-3, 1.0, 100.0])
def test_newton_reaches_a_small_gradient_for_several_problems(loss, l2):
    """Eight problems are solved in one batch, and a pass made here confirms the gradients."""
    problems = objective(loss, l2=l2, k=8)
    start = np.zeros((8, 7))
    solution = NewtonThenFallback().solve(problems, start, 1e-8)
    norms = np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1)
    assert (norms <= 1.01e-8).all()
    assert (solution.gradient_norm <= 1e-8).all()
    assert not start.any()


def test_tolerance_zero_ends_at_the_floor_of_doubles():
    """The solver ends after few passes, and the gradient is as small as rounding allows."""
    problems = objective(LogisticLoss(), l2=1.0)
    solution = NewtonThenFallback().solve(problems, np.zeros((1, 7)), 0.0)
    assert solution.gradient_norm[0] < 1e-12
    assert len(problems.source.orders) <= 14


class Boasting:
    """A first method that stays at its start and claims that this is the minimiser."""

    def solve(self, objective, start, tolerance):
        """Claim a gradient of 0."""
        return Solution(start.copy(), np.zeros(len(start)))


def test_a_claim_of_the_first_method_is_not_believed():
    """If the claim were believed, the certificate would refuse after the charge, and rows could bring that about."""
    problems = objective(LogisticLoss(), k=2)
    tolerance = planned_tolerance(problems, 50.0)
    solution = NewtonThenFallback(first=Boasting()).solve(problems, np.zeros((2, 7)), tolerance)
    assert (np.linalg.norm(replace(problems).evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01 * tolerance).all()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("noise", [0.1, 30.0])
def test_the_fallback_alone_reaches_the_planned_tolerance(loss, noise):
    """The first method returns NaN here, and the tolerance is reached all the same. So data cannot provoke a refusal."""
    problems = objective(loss, n=300, l2=5.0, k=2, noise=noise)
    tolerance = planned_tolerance(problems, 10 * noise)
    solution = NewtonThenFallback(first=Idle()).solve(problems, np.zeros((2, 7)), tolerance)
    norms = np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1)
    assert (norms <= tolerance).all()


def test_step_limited_newton_keeps_within_its_bound_where_plain_newton_overshoots():
    """With strong noise and a small ridge it takes no more steps than the theorem says."""
    for seed in range(5):
        problems = objective(LogisticLoss(), n=200, l2=0.05, noise=20.0, seed=seed)
        tolerance = planned_tolerance(problems, 300.0)
        method = StepLimitedNewton()
        gradient = np.linalg.norm(problems.evaluate(np.zeros((1, 7)), order=1).gradient)
        assert method.applies(problems, tolerance, 2 * gradient / problems.l2)
        before = len(problems.source.orders)
        solution = method.solve(problems, np.zeros((1, 7)), tolerance)
        assert solution.gradient_norm[0] <= tolerance
        bound = 8.7 * (problems.row_norm * gradient / 0.05) ** 1.5 + 12.5 * math.log(0.05 / (8.8 * tolerance / 5)) + 4
        assert len(problems.source.orders) - before <= bound


def test_step_limited_newton_is_not_used_where_its_theorem_is_silent():
    """The theorem needs a self-concordant loss, and a ridge that is not lost in rounding."""
    assert not StepLimitedNewton().applies(objective(HuberHinge(0.5)), 1e-9, 1.0)
    assert not StepLimitedNewton().applies(objective(LogisticLoss(), l2=1e-12), 1e-9, 1.0)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_gradient_descent_converges_from_any_start(loss):
    """A start outside the theorem's range is replaced by 0."""
    problems = objective(loss, n=60, l2=4.0)
    tolerance = planned_tolerance(problems, 50.0)
    for start in (np.zeros((1, 7)), np.full((1, 7), 1e6)):
        solution = GradientDescent().solve(problems, start, tolerance)
        assert solution.gradient_norm[0] <= tolerance


def test_with_many_weights_no_hessian_is_formed(monkeypatch):
    """Neither the first method forms one nor the fallback, which has a theorem for gradients alone."""
    monkeypatch.setattr(fallback, "_WIDEST_HESSIAN", 6)
    for first in (None, Idle()):
        problems = objective(LogisticLoss(), n=60, l2=4.0)
        tolerance = planned_tolerance(problems, 50.0)
        solution = NewtonThenFallback(first).solve(problems, np.zeros((1, 7)), tolerance)
        assert solution.gradient_norm[0] <= tolerance
        assert set(problems.source.orders) == {1}


def test_rows_of_any_size_do_not_stop_a_solver():
    """Rows from 1e-300 to 1e300 are clipped, and the minimiser is found."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(200, 3)) * 10.0 ** rng.uniform(-300, 300, size=(200, 1))
    source = MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=200).astype(np.int8))
    problems = Objective(source, LogisticLoss(), BallBound(1.0), 1.0, 0.1, np.zeros((1, 4)))
    assert NewtonThenFallback().solve(problems, np.zeros((1, 4)), 1e-9).gradient_norm[0] <= 1e-9


class Raising:
    """A first method that raises an exception."""

    def __init__(self, error):
        self.error = error

    def solve(self, objective, start, tolerance):
        """Raise."""
        raise self.error


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), OverflowError(), ValueError(), np.linalg.LinAlgError(), IndexError()]
)
def test_what_the_first_method_raises_is_left_to_one_with_a_theorem(error):
    """The exception, which rows may have caused, is not passed on."""
    exact = objective(LogisticLoss())
    solution = NewtonThenFallback(first=Raising(error)).solve(exact, np.zeros_like(exact.linear), 1e-6)
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-6


def test_refusals_of_the_package_itself_pass():
    """A refusal because files changed is the most important one."""
    exact = objective(LogisticLoss())
    with pytest.raises(FileError):
        NewtonThenFallback(first=Raising(FileError("changed"))).solve(exact, np.zeros_like(exact.linear), 1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_gradients_change_no_faster_than_the_smoothness_says(loss):
    """No change of a gradient is larger than that times the step that led to it. Gradient descent rests on this."""
    problems = objective(loss, n=60, l2=0.1, scale=3.0)
    rng = np.random.default_rng(5)
    points, steps = rng.normal(size=(2, 50, 7)) * rng.uniform(1e-3, 3.0, size=(2, 50, 1))
    problems = replace(problems, linear=np.zeros((50, 7)))
    before, after = (problems.evaluate(at, order=1).gradient for at in (points, points + steps))
    quotients = np.linalg.norm(after - before, axis=1) / np.linalg.norm(steps, axis=1)
    assert quotients.max() <= problems.smoothness


def test_with_a_penalty_of_the_user_s_own_gradient_descent_takes_over_and_reaches_the_tolerance():
    """F2 knows the Hessian of a ridge. It would apply to this loss, and is not asked."""
    plain = objective(LogisticLoss(), l2=20.0)
    own = with_penalty(plain, function=LOG_COSH)
    solution = NewtonThenFallback(first=Idle()).solve(own, np.zeros((1, 7)), 1e-7)
    assert np.linalg.norm(own.gradients(solution.weights)) <= 1.01e-7
    assert max(own.source.orders) == 1, "no Hessian was asked for"
