"""Solvers: they reach the tolerance, batch or alone, and the fallback methods keep their public pass bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest
from confide.erm.hinges import HuberHinge, SmoothHinge
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.privacy.certificate import GradientRounding, solver_tolerance
from confide.solvers import fallback
from confide.solvers.fallback import GradientDescent, NewtonThenFallback, StepLimitedNewton
from confide.solvers.lbfgs import FromAfar, LimitedMemory
from confide.solvers.narrowing import Narrowing
from confide.solvers.newton import Newton
from confide.solvers.solver import Solution

LOSSES = [LogisticLoss(), HuberHinge(0.5), SmoothHinge(0.5)]


class CountingSource:
    """A source that counts passes by order."""

    def __init__(self, source):
        self.source, self.orders = source, []
        self.n_rows, self.n_features = source.n_rows, source.n_features

    def sum_over_rows(self, row_sum, weights):
        """Count and pass on."""
        self.orders.append(row_sum.order)
        return self.source.sum_over_rows(row_sum, weights)

    def sample(self, n_rows):
        """Passes over a sample do not count."""
        return self.source.sample(n_rows)


def objective(loss, n=400, d=6, l2=0.5, k=1, noise=5.0, seed=0, scale=1.0):
    """k perturbed objectives over random rows of norm at most 1."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * scale
    source = MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=n).astype(np.int8))
    return Objective(CountingSource(source), loss, BallBound(1.0), 1.0, l2, rng.normal(size=(k, d + 1)) * noise)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("l2", [1e-3, 1.0, 100.0])
def test_newton_reaches_a_small_gradient_for_several_problems(loss, l2):
    """8 problems in one batch, gradients checked by a pass of our own; few passes."""
    problems = objective(loss, l2=l2, k=8)
    start = np.zeros((8, 7))
    solution = NewtonThenFallback().solve(problems, start, 1e-8)
    norms = np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1)
    assert (norms <= 1.01e-8).all()
    assert (solution.gradient_norm <= 1e-8).all()
    assert not start.any()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_a_batch_gives_what_each_problem_gives_alone(loss):
    """k problems at once and k single problems agree."""
    problems = objective(loss, k=4)
    together = Newton().solve(problems, np.zeros((4, 7)), 1e-10).weights
    for j in range(4):
        alone = Newton().solve(problems.restrict(np.array([j])), np.zeros((1, 7)), 1e-10).weights
        np.testing.assert_allclose(together[j], alone[0], atol=1e-9)


def test_newton_takes_one_pass_a_trial():
    """About ten passes on an ordinary problem, all of them with value, gradient and Hessian."""
    problems = objective(LogisticLoss(), l2=1.0)
    Newton().solve(problems, np.zeros((1, 7)), 1e-9)
    assert len(problems.source.orders) <= 10
    assert set(problems.source.orders) == {2}


def test_tolerance_zero_ends_at_the_floor_of_doubles():
    """It does not run on, and the gradient is as small as rounding allows."""
    problems = objective(LogisticLoss(), l2=1.0)
    solution = NewtonThenFallback().solve(problems, np.zeros((1, 7)), 0.0)
    assert solution.gradient_norm[0] < 1e-12
    assert len(problems.source.orders) <= 14


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("k", [1, 5])
def test_many_rows_take_gradients_of_all_and_hessians_of_a_sample(loss, k):
    """Against SciPy, for one problem and five; few passes to 1e-10 of the start, no Hessian of all rows for one problem.

    For five problems with seven weights each, one Hessian at their centre costs less than a pass for all of them.

    Random labels are hard on hinges: few rows lie in the joint, and other ones at each step.
    """
    problems = objective(loss, n=20_000, k=k, l2=20.0, noise=50.0)
    start = np.zeros((k, 7))
    norm = np.linalg.norm(problems.evaluate(start, order=1).gradient, axis=1).max()
    problems.source.orders.clear()
    solution = NewtonThenFallback().solve(problems, start, 1e-10 * norm)
    assert (solution.gradient_norm <= 1e-10 * norm).all()
    assert problems.source.orders.count(2) == (0 if k == 1 else 1)
    assert len(problems.source.orders) <= (15 if loss.self_concordant else 60)
    for j in range(k):
        alone = problems.restrict(np.array([j]))

        def function(w, alone=alone):
            return alone.evaluate(w[None], order=0).value[0], alone.evaluate(w[None], order=1).gradient[0]

        exact = minimize(function, start[0], jac=True, method="L-BFGS-B", options={"gtol": 1e-7 * norm, "ftol": 0.0}).x
        np.testing.assert_allclose(solution.weights[j], exact, atol=1e-4)


def test_a_sample_that_misleads_is_given_up():
    """A hundred steep rows that no sample sees: full Hessians take over, and the tolerance is reached all the same."""
    rng = np.random.default_rng(0)
    rows = 1e-4 * rng.normal(size=(20_000, 5))
    hidden = rng.integers(0, 20_000, size=100)
    rows[hidden] = 10.0 * rng.normal(size=(100, 5))
    source = CountingSource(MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=20_000).astype(np.int8)))
    problems = Objective(source, HuberHinge(0.01), BallBound(1.0), 0.0, 1e-4, rng.normal(size=(1, 5)))
    solution = NewtonThenFallback().solve(problems, np.zeros((1, 5)), 1e-8)
    assert solution.gradient_norm[0] <= 1e-8
    assert len(source.orders) <= 400


class BoundedSource(CountingSource):
    """A source that counts passes with and without a bound on rows."""

    def sum_over_rows(self, row_sum, weights):
        """Count and pass on."""
        self.orders.append("free" if row_sum.row_bound.l2_norm == np.inf else "bound")
        return self.source.sum_over_rows(row_sum, weights)


def many_rows(spoil, n=20_000, d=6):
    """A problem whose rows obey their bound but for those that `spoil` changes."""
    rng = np.random.default_rng(3)
    rows = 0.2 * rng.normal(size=(n, d))
    spoil(rows)
    labels = np.where(rows @ rng.normal(size=d) + 0.2 * rng.logistic(size=n) > 0, 1, -1).astype(np.int8)
    source = BoundedSource(MemorySource(ArrayBlocks(rows), labels))
    return Objective(source, LogisticLoss(), BallBound(2.0), 0.0, 20.0, rng.normal(size=(1, d)))


def test_rows_that_need_no_clipping_are_clipped_in_the_last_pass_alone():
    """And the certificate takes its sums from that pass."""
    problems = many_rows(lambda rows: None)
    solution = NewtonThenFallback().solve(problems, np.zeros((1, 6)), 1e-6)
    orders = problems.source.orders
    assert orders.count("bound") == 1
    assert orders[-1] == "bound"
    assert 2 <= orders.count("free") <= 12
    assert np.linalg.norm(problems.gradients(solution.weights)) <= 1e-6
    assert len(orders) == len(problems.source.orders)


@pytest.mark.parametrize("size", [10.0, 1e6, 1e200])
def test_long_rows_that_no_sample_saw_count_as_clipped(size):
    """The minimiser is that of the clipped rows, whatever the passes without a bound said."""
    numbered = MemorySource(ArrayBlocks(np.arange(20_000.0)[:, None]), np.zeros(20_000))
    seen = numbered.sample(2500).blocks.block(0, 20_000)[:, 0].astype(int)
    unseen = np.setdiff1d(np.arange(20_000), seen)[::400]

    def spoil(rows):
        rows[unseen] *= size

    problems = many_rows(spoil)
    with np.errstate(all="ignore"):
        solution = NewtonThenFallback().solve(problems, np.zeros((1, 6)), 1e-6)
    exact = Newton().solve(problems, np.zeros((1, 6)), 1e-9).weights
    assert np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient) <= 1e-6
    np.testing.assert_allclose(solution.weights, exact, atol=1e-7)


def test_steps_that_run_out_on_the_cheaper_objective_claim_nothing():
    """Whatever their number: what the last step reached there is no gradient of the clipped rows."""

    def spoil(rows):
        rows[17] = 3000.0

    problems, start = many_rows(spoil, n=2000), np.zeros((1, 6))
    free = replace(problems, row_bound=BallBound(np.inf))
    for tolerance in np.logspace(-9, -1, 5):
        for most_steps in range(1, 40):
            solution = LimitedMemory(most_steps, from_afar=(FromAfar(free),)).solve(problems, start, tolerance)
            if solution.gradient_norm[0] <= tolerance:
                assert np.linalg.norm(replace(problems).evaluate(solution.weights, order=1).gradient) <= 1.01 * tolerance
        assert solution.gradient_norm[0] <= tolerance


class Boasting:
    """A first method that stays where it is and claims to be there."""

    def solve(self, objective, start, tolerance):
        """Claim a gradient of 0."""
        return Solution(start.copy(), np.zeros(len(start)))


def test_a_claim_of_the_first_method_is_not_believed():
    """Otherwise the certificate would refuse after the charge, and rows could make it."""
    problems = objective(LogisticLoss(), k=2)
    tolerance = planned_tolerance(problems, 50.0)
    solution = NewtonThenFallback(first=Boasting()).solve(problems, np.zeros((2, 7)), tolerance)
    assert (np.linalg.norm(replace(problems).evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01 * tolerance).all()


def test_many_problems_take_few_passes_of_their_own():
    """24 perturbed problems: their centre is found by passes for one, so that three or four for all of them are enough."""
    problems = objective(LogisticLoss(), n=20_000, k=24, l2=20.0, noise=20.0)
    widths, inner = [], problems.source.source

    class Source(CountingSource):
        def sum_over_rows(self, row_sum, weights):
            widths.append(len(weights))
            return inner.sum_over_rows(row_sum, weights)

    problems = replace(problems, source=Source(inner))
    solution = NewtonThenFallback().solve(problems, np.zeros((24, 7)), 1e-6)
    assert (np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01e-6).all()
    assert sum(width > 1 for width in widths) <= 5  # the check just made included


def test_the_same_problem_has_the_same_solution_bit_for_bit():
    """Nothing is drawn: the sample follows from the number of rows alone."""
    first, second = (
        NewtonThenFallback().solve(objective(LogisticLoss(), n=20_000, l2=20.0), np.zeros((1, 7)), 1e-8) for _ in range(2)
    )
    np.testing.assert_array_equal(first.weights, second.weights)


class Idle:
    """A first method that does nothing, so that the fallback has all the work."""

    def solve(self, objective, start, tolerance):
        """Return the start as it is, or NaN."""
        return Solution(start + np.nan, np.full(len(start), np.nan))


def planned_tolerance(problems, noise_bound):
    """The tolerance a plan would hand to the solver."""
    loss, n, d = problems.loss_bounds, problems.source.n_rows, problems.linear.shape[1]
    rounding = GradientRounding(loss, problems.row_norm, n, d, n + 1, problems.l2)
    return solver_tolerance(8.0 * rounding.worst(noise_bound))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("noise", [0.1, 30.0])
def test_the_fallback_alone_reaches_the_planned_tolerance(loss, noise):
    """Even when the first method returns NaN: that is why a refusal cannot be provoked by data."""
    problems = objective(loss, n=300, l2=5.0, k=2, noise=noise)
    tolerance = planned_tolerance(problems, 10 * noise)
    solution = NewtonThenFallback(first=Idle()).solve(problems, np.zeros((2, 7)), tolerance)
    norms = np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1)
    assert (norms <= tolerance).all()


def test_step_limited_newton_keeps_within_its_bound_where_plain_newton_overshoots():
    """Strong noise, small ridge: the theorem's number of steps is not exceeded."""
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
    """Losses that are not self-concordant, or a ridge lost in rounding."""
    assert not StepLimitedNewton().applies(objective(HuberHinge(0.5)), 1e-9, 1.0)
    assert not StepLimitedNewton().applies(objective(LogisticLoss(), l2=1e-12), 1e-9, 1.0)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_gradient_descent_converges_from_any_start(loss):
    """A start outside the theorem's range is replaced by 0."""
    problems = objective(loss, n=60, l2=4.0)
    tolerance = planned_tolerance(problems, 50.0)
    for start in (np.zeros((1, 7)), np.full((1, 7), 1e6)):
        solution = GradientDescent().solve(problems, start, tolerance)
        assert solution.gradient_norm[0] <= tolerance


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_newton_does_not_cycle_between_flat_pieces(loss):
    """Nearly parallel rows and a small ridge: steps that overshoot by orders of magnitude still end at the minimiser."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 60)), int(rng.integers(1, 5))
        rows = np.outer(rng.normal(size=n), rng.normal(size=d)) + 1e-6 * rng.normal(size=(n, d))
        source = MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=n).astype(np.int8))
        problems = Objective(source, loss, BallBound(1.0), 1.0, 10.0 ** rng.uniform(-3, 1), np.zeros((1, d + 1)))
        assert Newton().solve(problems, np.zeros((1, d + 1)), 1e-9).gradient_norm[0] <= 1e-9


def adversarial(seed, least_ridge=2.0**-20):
    """A small problem of one of seven kinds, with a narrow or wide joint and a ridge from the least that a plan admits."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 120)), int(rng.integers(1, 12))
    rows, labels = rng.normal(size=(n, d)), rng.choice([-1, 1], size=n)
    kind = seed % 7
    if kind == 1:  # nearly parallel
        rows = np.outer(rng.normal(size=n), rng.normal(size=d)) + 10.0 ** rng.uniform(-8, 0) * rng.normal(size=(n, d))
    if kind == 2:  # duplicates, some with both labels
        rows = rows[rng.integers(0, max(1, n // 4), size=n)]
    if kind in (3, 4):  # separable, at any scale
        labels = np.where(rows @ rng.normal(size=d) > 0, 1, -1)
        rows *= 10.0 ** rng.uniform(-6, 3) if kind == 4 else 1.0
    if kind == 5:
        rows *= 10.0 ** rng.uniform(-6, 3, size=(n, 1))
    if kind == 6:
        rows *= 10.0 ** rng.uniform(-6, 3, size=d)
    largest = 1000.0 if rng.random() < 0.3 else 1.0
    counts = np.where(labels > 0, 1000.0, 1e-4) if largest > 1.0 else None
    loss = (HuberHinge, SmoothHinge)[rng.integers(0, 2)](float(10.0 ** rng.uniform(-3, 0)))
    noise = rng.choice([0.0, 1e-3, 1.0, 10.0]) * largest
    source = CountingSource(MemorySource(ArrayBlocks(rows), labels.astype(np.int8), counts))
    l2 = least_ridge * 10.0 ** rng.uniform(0, 5) * largest * 2.0
    return Objective(source, loss, BallBound(1.0), 1.0, l2, rng.laplace(size=(1, d + 1)) * noise, largest)


def test_hinges_with_the_least_ridge_take_a_bounded_number_of_passes():
    """150 adversarial problems: Newton reaches the tolerance of a plan; in 1,700 such, 294 passes were the most."""
    with np.errstate(all="ignore"):
        for seed in range(150):
            problems = adversarial(seed)
            tolerance = planned_tolerance(problems, 3.0 * float(np.linalg.norm(problems.linear)) + 1e-300)
            solution = Narrowing(Newton()).solve(problems, np.zeros_like(problems.linear), tolerance)
            assert solution.gradient_norm[0] <= tolerance, seed
            assert len(problems.source.orders) <= 500, seed


def test_a_narrow_joint_takes_a_bounded_number_of_passes():
    """Separable rows, a joint of 1e-3, the least ridge: without wider joints on the way it took hundreds of Hessians."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1000, 20)) / math.sqrt(20)
    labels = np.where(rows @ rng.normal(size=20) > 0, 1, -1).astype(np.int8)
    for l2 in (2.0**-19, 2e-3):
        source = CountingSource(MemorySource(ArrayBlocks(rows), labels))
        problems = Objective(source, HuberHinge(1e-3), BallBound(1.0), 1.0, l2, rng.laplace(size=(1, 21)))
        tolerance = planned_tolerance(problems, 100.0)
        assert Narrowing(Newton()).solve(problems, np.zeros((1, 21)), tolerance).gradient_norm[0] <= tolerance
        assert source.orders.count(2) <= 80


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("l2", [1e-2, 1.0, 100.0])
def test_limited_memory_reaches_a_small_gradient_without_a_hessian(loss, l2):
    """Several problems, gradients alone, and not many passes; a tolerance of 0 ends at the floor of doubles."""
    problems = objective(loss, l2=l2, k=3)
    solution = LimitedMemory().solve(problems, np.zeros((3, 7)), 1e-8)
    norms = np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1)
    assert (norms <= 1.01e-8).all()
    assert set(problems.source.orders) == {1}
    assert len(problems.source.orders) <= 3 * 250
    assert LimitedMemory().solve(problems.restrict(np.array([0])), np.zeros((1, 7)), 0.0).gradient_norm[0] < 1e-11


def test_with_many_weights_no_hessian_is_formed(monkeypatch):
    """Neither by the first method nor by the fallback, which has a theorem for gradients alone."""
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


@pytest.mark.parametrize("inner", [Newton(), LimitedMemory()], ids=["newton", "lbfgs"])
def test_narrow_joints_are_reached_by_way_of_wider_ones(inner):
    """Half-width 2^-12, four problems: small gradients, by a pass of our own, within 150 passes of Newton's method."""
    problems = objective(HuberHinge(2.0**-12), n=3000, l2=1.0, k=4)
    start = np.zeros((4, 7))
    solution = Narrowing(inner).solve(problems, start, 1e-3)
    passes = len(problems.source.orders)
    assert (np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01e-3).all()
    assert not start.any()
    if isinstance(inner, Newton):
        assert passes < 150


@pytest.mark.parametrize("hinge", [HuberHinge(1e-3), SmoothHinge(1e-3)], ids=lambda loss: loss.name)
def test_narrow_joints_of_several_classes_are_reached_by_way_of_wider_ones(hinge):
    """Without them Newton's method ends 100,000 times above the tolerance, and gradient descent may go on for days."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 10)) / math.sqrt(10)
    classes = (rows[:, :3] + 0.05 * rng.normal(size=(300, 3))).argmax(axis=1)
    linear = rng.laplace(size=(1, 33)) * 0.3
    source = CountingSource(MemorySource(ArrayBlocks(rows), classes))
    problems = Objective(source, OneVsRest(hinge, 3), BallBound(1.0), 1.0, 0.03, linear)
    tolerance = planned_tolerance(problems, 10.0)
    solution = Narrowing(Newton()).solve(problems, np.zeros((1, 33)), tolerance)
    assert np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient) <= tolerance
    assert len(source.orders) <= 200


def test_wide_joints_and_other_losses_take_no_way():
    """The first method alone, and not a pass more."""
    for loss in (LogisticLoss(), HuberHinge(0.5), SmoothHinge(0.2)):
        problems = objective(loss)
        alone = Newton().solve(problems, np.zeros((1, 7)), 1e-8)
        passes = len(problems.source.orders)
        through = Narrowing(Newton()).solve(problems, np.zeros((1, 7)), 1e-8)
        assert np.array_equal(through.weights, alone.weights)
        assert len(problems.source.orders) == 2 * passes
