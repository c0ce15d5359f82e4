"""Many rows are solved by Hessians of a sample and gradients of all; a misleading sample does no harm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from confide.data.arrays import ArrayBlocks, MappedBlocks, MemorySource
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound, Centred
from confide.features.fourier import CurvesAndFeatures, FourierMap
from confide.solvers import cheap_gradients, sampled
from confide.solvers.cheap_gradients import CheapObjective
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.lbfgs import LimitedMemory, Stage
from confide.solvers.newton import Newton
from confide.solvers.sampled import Metric, SampledNewton, _sampled_rows, solved_over_made_rows, without_chance
from tests.solvers.problems import LOSSES, CountingSource, objective


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("k", [1, 5])
def test_many_rows_take_gradients_of_all_and_hessians_of_a_sample(loss, k):
    """Few passes reach 1e-10 of the norm at the start, without a Hessian of all rows for one problem. SciPy finds the same.

    For five problems with seven weights each, one Hessian at their centre costs less than a pass for all of them. Random
    labels make hinges hard: few rows lie in the joint, and other ones at each step.
    """
    problems = objective(loss, n=20_000, k=k, l2=20.0, noise=50.0)
    start = np.zeros((k, 7))
    norm = np.linalg.norm(problems.evaluate(start, order=1).gradient, axis=1).max()
    problems.source.orders.clear()
    solution = NewtonThenFallback().solve(problems, start, 1e-10 * norm)
    assert (solution.gradient_norm <= 1e-10 * norm).all()
    assert problems.source.orders.count(2) == (0 if k == 1 else 1)
    assert len(problems.source.orders) <= (15 if loss.constants.self_concordant else 60)
    for j in range(k):
        alone = problems.restrict(np.array([j]))

        def function(w, alone=alone):
            return alone.evaluate(w[None], order=0).value[0], alone.evaluate(w[None], order=1).gradient[0]

        exact = minimize(function, start[0], jac=True, method="L-BFGS-B", options={"gtol": 1e-7 * norm, "ftol": 0.0}).x
        np.testing.assert_allclose(solution.weights[j], exact, atol=1e-4)


def test_a_sample_that_misleads_is_given_up():
    """No sample sees a hundred steep rows. Hessians of all rows take over, and the tolerance is reached."""
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
        """Take note of the bound, and sum over the source behind it."""
        self.orders.append("free" if row_sum.row_bound.l2_norm == np.inf else "bound")
        return self.source.sum_over_rows(row_sum, weights)


def many_rows(spoil, n=20_000, d=6):
    """A problem whose rows obey their bound, except those that `spoil` changes."""
    rng = np.random.default_rng(3)
    rows = 0.2 * rng.normal(size=(n, d))
    spoil(rows)
    labels = np.where(rows @ rng.normal(size=d) + 0.2 * rng.logistic(size=n) > 0, 1, -1).astype(np.int8)
    source = BoundedSource(MemorySource(ArrayBlocks(rows), labels))
    return Objective(source, LogisticLoss(), BallBound(2.0), 0.0, 20.0, rng.normal(size=(1, d)))


def test_rows_that_need_no_clipping_are_clipped_in_the_last_pass_alone():
    """The certificate then takes its sums from that pass."""
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
    """The minimiser is that of the clipped rows, although passes without a bound see them otherwise."""
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
    """A norm reached on the cheaper objective is none of the clipped rows, however many steps there are."""

    def spoil(rows):
        rows[17] = 3000.0

    problems, start = many_rows(spoil, n=2000), np.zeros((1, 6))
    free = replace(problems, row_bound=BallBound(np.inf))
    for tolerance in np.logspace(-9, -1, 5):
        for most_steps in range(1, 40):
            solution = LimitedMemory(most_steps, cheaper=(Stage(free),)).solve(problems, start, tolerance)
            if solution.gradient_norm[0] <= tolerance:
                assert np.linalg.norm(replace(problems).evaluate(solution.weights, order=1).gradient) <= 1.01 * tolerance
        assert solution.gradient_norm[0] <= tolerance


def test_many_problems_take_few_passes_of_their_own():
    """The centre of 24 perturbed problems is found by passes for one problem, so a few passes for all 24 are enough."""
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
    """Nothing is drawn at random: the sample follows from the number of rows alone."""
    first, second = (
        NewtonThenFallback().solve(objective(LogisticLoss(), n=20_000, l2=20.0), np.zeros((1, 7)), 1e-8) for _ in range(2)
    )
    np.testing.assert_array_equal(first.weights, second.weights)


def test_a_metric_is_the_inverse_of_a_share_of_the_hessian():
    """A matrix that is not positive definite has no metric."""
    hessian = np.array([[4.0, 1.0], [1.0, 3.0]])
    steps = Metric(Metric.of(hessian.copy()).factor, share=0.5)(np.array([[1.0, 2.0]]))
    np.testing.assert_allclose(steps[0], 0.5 * np.linalg.solve(hessian, [1.0, 2.0]), rtol=1e-14)
    assert Metric.of(np.array([[1.0, 2.0], [2.0, 1.0]])) is None


@pytest.mark.parametrize(
    ("n_rows", "n_features", "width", "expected"),
    [
        (7_999, 5, 5, 0),  # a quarter of the rows would be fewer than 2,000
        (8_001, 5, 5, 2_000),  # the fewest
        (20_000, 60, 60, 3_333),  # a sixth of the rows
        (40_000, 100, 100, 4_800),  # a Hessian of these costs twelve gradients of all rows
        (60_000, 100, 100, 6_000),  # 60 for each weight
        (1_000_000, 100, 100, 62_500),  # 1/16 of the rows
        (20_000_000, 20, 20, 88_000),  # 4,400 for each weight
        (100_000, 1_000, 1_000, 8_000),  # eight for each weight
        (30_000, 1_000, 1_000, 0),  # the same would be more than a quarter of the rows
    ],
)
def test_how_many_rows_are_sampled(n_rows, n_features, width, expected):
    """The number follows from those of rows, columns and weights. It is 0 where Hessians of all rows are cheap enough."""
    assert _sampled_rows(n_rows, n_features, width) == expected


def test_correlations_of_chance_are_taken_off_and_others_are_kept():
    """Independent columns lose nearly all of them, correlated ones keep the very array, and the diagonal stays."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, 300)) * np.geomspace(1e-3, 1e3, 300)
    by_chance = rows.T @ rows
    found = without_chance(by_chance, 2000)
    np.testing.assert_array_equal(np.diagonal(found), np.diagonal(by_chance))
    scales = 1.0 / np.sqrt(np.diagonal(by_chance))
    left = np.linalg.eigvalsh(found * scales * scales[:, None])
    before = np.linalg.eigvalsh(by_chance * scales * scales[:, None])
    assert left[-1] / left[0] < 1.2
    assert before[-1] / before[0] > 4.0
    rows[:, 1:] += rows[:, :-1] / scales[:-1] * scales[1:] * 0.5
    correlated = rows.T @ rows
    assert without_chance(correlated, 100_000) is correlated
    correlated[0, 0] = 0.0
    assert without_chance(correlated, 2000) is correlated
    correlated[...] = np.nan
    assert without_chance(correlated, 2000) is correlated


def test_many_independent_columns_take_few_passes(monkeypatch):
    """A sample of eight rows a weight takes as few steps as rows without end, when its chance correlations are taken off."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(16_000, 100)) / np.sqrt(100)
    labels = np.where(rows @ rng.normal(size=100) * 3.0 + rng.logistic(size=16_000) > 0, 1, -1).astype(np.int8)
    source = MemorySource(ArrayBlocks(rows), labels)
    passes, taken = MemorySource.sum_over_rows, []
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    monkeypatch.setattr(sampled, "_sampled_rows", lambda *_: 800)

    def noted(self, row_sum, weights):
        taken.append(self.n_rows == 16_000)
        return passes(self, row_sum, weights)

    def solved():
        taken.clear()
        objective = Objective(source, LogisticLoss(), BallBound(10.0), 0.0, 4.0, rng.normal(size=(1, 100)))
        found = SampledNewton().solve(objective.lent(), np.zeros((1, 100)), 1e-7)
        assert found.gradient_norm[0] <= 1e-7
        return sum(taken)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    with_chance_off = solved()
    monkeypatch.setattr(sampled, "without_chance", lambda hessian, _: hessian)
    assert with_chance_off < 0.7 * solved()


def over_made_rows(n_features=300, joint=False, keeps=False):
    """An objective over rows that a map makes anew in each pass, or keeps, with 304 weights."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6000, 3)) * 0.5
    labels = np.where(rows[:, 0] * rows[:, 1] > 0.0, 1, -1).astype(np.int8)
    blocks = MappedBlocks(ArrayBlocks(rows), CurvesAndFeatures(FourierMap(3, n_features), 1.0, 1.0), keeps)
    loss = HuberHinge(0.01) if joint else LogisticLoss()
    return Objective(MemorySource(blocks, labels), loss, BallBound(1.2), 0.7, 3.0, rng.normal(size=(1, n_features + 4)))


def test_over_rows_that_are_made_anew_few_passes_make_them_again(monkeypatch):
    """The rows are made once, and steps are taken over what is kept; the last gradient is the exact one."""
    objective, made = over_made_rows(), []
    write = CurvesAndFeatures.write
    monkeypatch.setattr(CurvesAndFeatures, "write", lambda self, rows, to: made.append(len(rows)) or write(self, rows, to))
    solution = solved_over_made_rows(objective, np.zeros((1, 304)), 1e-6)
    assert sum(made) <= 5 * 6000 + 4000
    norm = np.linalg.norm(objective.replaced().gradients(solution.weights))
    assert norm <= 1e-6
    np.testing.assert_allclose(norm, solution.gradient_norm[0], rtol=1e-3)


@pytest.mark.parametrize("centre", [False, True])
def test_rows_that_are_kept_are_made_once_for_all_steps(monkeypatch, centre):
    """Steps are taken over the kept rows themselves, moved and clipped as they are used; a few steps are enough."""
    objective, made, passes = over_made_rows(keeps=True), [], []
    if centre:
        objective = objective.replaced(row_bound=Centred(BallBound(1.5), (0.02,) * 303, 1.0))
    objective = objective.lent()
    write, evaluate = CurvesAndFeatures.write, CheapObjective.evaluate
    monkeypatch.setattr(CurvesAndFeatures, "write", lambda self, rows, to: made.append(len(rows)) or write(self, rows, to))

    def noted(self, weights, order):
        passes.extend([self.source.blocks] * (self.source.n_rows == 6000))
        return evaluate(self, weights, order)

    monkeypatch.setattr(CheapObjective, "evaluate", noted)
    solution = solved_over_made_rows(objective, np.zeros((1, 304)), 1e-6)
    assert sum(made) == 6001
    assert 3 < len(passes) < 30
    first = passes[0].block(0, min(passes[0].rows_in_block, 6000))
    np.testing.assert_array_equal(first.rows, objective.source.blocks.block(0, len(first.rows)))
    exact = objective.row_bound.clip(first.rows.astype(float))
    np.testing.assert_allclose(first.times(np.eye(303, dtype=np.float32)), exact, atol=1e-6)
    assert np.linalg.norm(objective.replaced().gradients(solution.weights)) <= 1e-6


@pytest.mark.parametrize("keeps", [False, True])
def test_without_a_tolerance_made_rows_lead_to_the_floor_of_doubles(keeps):
    """A fit without privacy asks for the best that doubles allow."""
    objective = over_made_rows(keeps=keeps)
    solution = solved_over_made_rows(objective, np.zeros((1, 304)), 0.0)
    assert np.linalg.norm(objective.replaced().gradients(solution.weights)) <= 1e-11
    expected = Newton().solve(objective, np.zeros((1, 304)), 0.0)
    np.testing.assert_allclose(solution.weights, expected.weights, atol=1e-12)


@pytest.mark.parametrize("change", ["two problems", "few weights", "a joint", "an array", "much memory", "no metric"])
def test_other_problems_are_not_solved_over_made_rows(monkeypatch, change):
    objective, tolerance = over_made_rows(100 if change == "few weights" else 300, change == "a joint"), 1e-6
    start = np.zeros_like(objective.linear)
    if change == "two problems":
        start = np.zeros((2, 304))
        objective = objective.replaced(linear=start)
    elif change == "an array":
        rows = objective.source.blocks.block(0, 6000)
        objective = objective.replaced(source=MemorySource(ArrayBlocks(rows), objective.source.labels))
    elif change == "much memory":
        monkeypatch.setattr(cheap_gradients, "_MADE_BYTES", 4 * 6000 * 303 - 1)
    elif change == "no metric":
        monkeypatch.setattr(Metric, "of", lambda hessian: None)
    assert solved_over_made_rows(objective, start, tolerance) is None
