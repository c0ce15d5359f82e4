"""Approximate gradients are those of the same objective at less cost, and never decide the answer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
import pytest

from confide import Schema
from confide.data.arrays import ArrayBlocks, EncodedBlocks, KeptBlocks, MappedBlocks, MemorySource
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.row_sums import RowSum
from confide.features.encoder import Encoder
from confide.features.fourier import CurvesAndFeatures, FourierMap
from confide.solvers import cheap_gradients
from confide.solvers.cheap_gradients import (
    ApproximateSum,
    CheapObjective,
    cheaper_stages,
    in_single_precision,
    with_cheap_hessians,
)
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.newton import Newton
from tests.privacy.problems import with_ridges

pytestmark = pytest.mark.usefixtures("by_numpy_alone")


def is_approximate(objective):
    """Whether gradients are made by approximate sums."""
    return isinstance(getattr(objective, "row_sum", None), ApproximateSum)


def problems(dtype="float64", k=1, n=20_000, d=60, norm=1.0, loss=None, intercept=0.7, weighted=True, spoil=None):
    """k problems over rows of several norms around 1, some of them beyond the bound."""
    rng = np.random.default_rng(3)
    rows = (rng.normal(size=(n, d)) / np.sqrt(d) * rng.uniform(0.2, 2.0, size=(n, 1))).astype(dtype)
    if spoil is not None:
        spoil(rows)
    counts = rng.uniform(0.0, 3.0, size=n) if weighted else None
    source = MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=n).astype(np.int8), counts)
    linear = rng.normal(size=(k, d + (intercept > 0.0)))
    return Objective(source, loss or LogisticLoss(), BallBound(norm), intercept, 20.0, linear, largest_weight=2.0)


def few(objective):
    """One problem over a few of the rows."""
    part = objective.source.sample(2500)
    return replace(objective, source=part, linear=objective.linear[:1])


@pytest.mark.parametrize(("dtype", "largest_error"), [("float64", 1e-9), ("float32", None)])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_gradients_are_those_of_the_objective_down_to_the_floor(dtype, largest_error, weighted, intercept):
    """Rows are clipped, weighted and have an intercept; there are one problem and several."""
    exact = problems(dtype, k=3, weighted=weighted, intercept=intercept)
    stages = cheaper_stages(exact, few(exact), *np.zeros((2, 1, exact.linear.shape[1])))
    cheap, floor, precision = stages[0]
    assert precision == np.dtype(dtype)
    assert all(is_approximate(stage.objective) for stage in stages)
    weights = np.random.default_rng(4).normal(size=exact.linear.shape).astype(dtype).astype(float)
    for which in (np.arange(3), np.array([1])):
        found = cheap.restrict(which).evaluate(weights[which], order=1).gradient
        expected = exact.restrict(which).evaluate(weights[which], order=1).gradient
        errors = np.linalg.norm(found - expected, axis=1)
        assert (errors <= (largest_error or floor)).all()
        # The bound changes gradients by far more than that.
        free = replace(exact.restrict(which), row_bound=BallBound(np.inf)).evaluate(weights[which], order=1).gradient
        assert (np.linalg.norm(free - expected, axis=1) > 1e3 * (largest_error or floor)).all()
        # The last stage multiplies in double precision whatever rows are stored in, and its factors are doubles.
        found = stages[-1].objective.restrict(which).evaluate(weights[which], order=1).gradient
        assert (np.linalg.norm(found - expected, axis=1) <= 1e-9).all()
    assert len(stages) == 1 + (dtype == "float32")
    assert stages[-1].floor == 0.0
    assert stages[-1].precision == np.float64


def test_rows_within_the_bound_are_read_without_it():
    """To leave the bound out is all that can be saved for rows in double precision."""
    exact = problems(norm=10.0)
    ((cheap, floor, _),) = cheaper_stages(exact, few(exact), *np.zeros((2, 1, 61)))
    assert floor == 0.0
    assert cheap.row_bound == BallBound(np.inf)
    assert cheaper_stages(replace(exact, row_bound=BallBound(np.inf)), few(exact), *np.zeros((2, 1, 61))) == ()
    single = problems("float32", norm=10.0)
    first, last = cheaper_stages(single, few(single), *np.zeros((2, 1, 61)))
    assert first.objective.row_sum.precision == first.precision == np.float32
    assert last.objective.row_bound == BallBound(np.inf)


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("size", [1.0, 1e15, 1e30])
def test_the_answer_is_the_minimiser_of_the_clipped_rows(monkeypatch, loss, dtype, size):
    """The objective itself makes few passes, and the last one. The squares of some rows overflow."""

    def spoil(rows):
        rows[::997] *= size

    exact = problems(dtype, loss=loss, weighted=False, spoil=spoil)
    kinds = []
    passes = MemorySource.sum_over_rows

    def noted(self, row_sum, weights):
        if self.n_rows == exact.source.n_rows:
            kinds.append(type(row_sum))
        return passes(self, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    before = exact.source.blocks.rows.copy()
    with np.errstate(all="ignore"):
        solution = NewtonThenFallback().solve(exact, np.zeros((1, 61)), 1e-7)
        assert (np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01e-7).all()
        kinds.pop()
        assert kinds[-1] is RowSum
        if size == 1.0:
            # Rows in single precision need no more: the last stage is in double precision, without a copy of the rows.
            assert kinds.count(RowSum) <= 3 < kinds.count(ApproximateSum)
        reference = Newton().solve(replace(exact), np.zeros((1, 61)), 1e-9).weights
    np.testing.assert_allclose(solution.weights, reference, atol=1e-8)
    np.testing.assert_array_equal(exact.source.blocks.rows, before)


def test_short_rows_in_single_precision_are_read_without_their_bound():
    """Products are not most of the work on such rows, so single precision would save nothing."""
    narrow = problems("float32", d=20, norm=10.0)
    ((cheap, floor, _),) = cheaper_stages(narrow, few(narrow), *np.zeros((2, 1, 21)))
    assert not is_approximate(cheap)
    assert floor == 0.0


@pytest.mark.parametrize("norm", [1.0, 10.0], ids=["some are clipped", "none is"])
def test_the_floor_is_measured_where_scores_are_not_0(norm):
    """It lies above the error over all rows, and so close to it that the exact objective has few steps left to make."""
    exact = problems("float32", norm=norm)
    at = np.random.default_rng(5).normal(size=(1, 61)).astype(np.float32).astype(float)
    cheap, floor, _ = cheaper_stages(exact, few(exact), np.zeros((1, 61)), at)[0]
    for shift in (0.0, 0.5):
        there = (at + shift).astype(np.float32).astype(float)
        error = np.linalg.norm(cheap.evaluate(there, order=1).gradient - exact.evaluate(there, order=1).gradient)
        assert floor / 100.0 < error < floor
    assert floor < cheaper_stages(exact, few(exact), *np.zeros((2, 1, 61)))[0].floor


@pytest.mark.parametrize("norm", [1.0, 10.0], ids=["some are clipped", "none is"])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_many_problems_in_single_precision_are_the_same_to_five_digits(norm, intercept, weighted, dtype):
    """Gradients and Hessians are compared, for rows stored in either precision."""
    exact = problems(dtype, k=5, norm=norm, intercept=intercept, weighted=weighted)
    single = in_single_precision(exact, few(exact), np.zeros((1, exact.linear.shape[1])))
    weights = np.random.default_rng(4).normal(size=exact.linear.shape)
    found, expected = single.evaluate(weights, order=2), exact.evaluate(weights, order=2)
    np.testing.assert_allclose(found.gradient, expected.gradient, atol=2e-5 * np.abs(expected.gradient).max())
    np.testing.assert_allclose(found.hessian, expected.hessian, atol=2e-5 * np.abs(expected.hessian).max())
    which = np.array([3, 1])
    found = single.restrict(which).evaluate(weights[which], order=1)
    np.testing.assert_allclose(found.gradient, expected.gradient[which], atol=2e-5 * np.abs(expected.gradient).max())


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("size", [1.0, 1e15, 1e30, 1e60])
def test_many_problems_end_where_each_does(monkeypatch, loss, size):
    """One pass over all rows is in single precision, however long a few rows are, and the last pass is exact."""

    def spoil(rows):
        rows[::997] *= size

    exact = problems(k=8, loss=loss, weighted=False, spoil=spoil)
    kinds = []
    passes = MemorySource.sum_over_rows

    def noted(self, row_sum, weights):
        if self.n_rows == exact.source.n_rows and len(weights) == 8:
            kinds.append(type(row_sum))
        return passes(self, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    with np.errstate(all="ignore"):
        solution = NewtonThenFallback().solve(exact, np.zeros((8, 61)), 1e-6)
        assert kinds.count(ApproximateSum) == (size < 1e60)
        assert kinds[-1] is RowSum
        reference = Newton().solve(replace(exact), np.zeros((8, 61)), 1e-9).weights
    np.testing.assert_allclose(solution.weights, reference, atol=1e-7)


@pytest.mark.parametrize("times", [0.6, 1.7])
def test_a_metric_has_single_precision_where_the_ridge_is_seen_beside_all_curvature(times):
    """A smaller ridge than 2^-22 of the largest curvature might drown in rounding, and steps would become too long."""
    exact = problems(weighted=False, norm=10.0)
    curved = exact.smoothness - exact.l2
    exact = replace(exact, l2=times * 2.0**-22 * curved)
    bent = with_cheap_hessians(exact, few(exact), np.zeros((1, 61)))
    assert is_approximate(bent) == (times > 1.0)
    weights = np.full((1, 61), 0.1)
    found, expected = (objective.evaluate(weights, order=2) for objective in (bent, exact))
    np.testing.assert_allclose(found.hessian, expected.hessian, atol=2e-6 * np.abs(expected.hessian).max())
    assert found.hessian.dtype == np.float64  # its factor is used on gradients of doubles
    assert np.linalg.eigvalsh(found.hessian[0]).min() > 0.5 * exact.l2


@pytest.mark.parametrize("size", [1e39, 1e42, 1e44])
def test_rows_that_single_precision_cannot_hold_do_not_keep_from_the_minimiser(size):
    """In single precision these rows are infinite, while their factors are not 0."""

    def spoil(rows):
        rows[::8] *= size

    exact = problems(weighted=False, spoil=spoil)
    with np.errstate(all="ignore"):
        solution = NewtonThenFallback().solve(exact, np.zeros((1, 61)), 1e-6)
        reference = Newton().solve(replace(exact), np.zeros((1, 61)), 1e-9).weights
    np.testing.assert_allclose(solution.weights, reference, atol=1e-7)


@pytest.mark.parametrize(("tolerance", "in_doubles"), [(1e-7, True), (0.1, False)])
def test_steps_in_double_precision_are_skipped_where_one_by_the_objective_may_be_enough(tolerance, in_doubles):
    """Steps in double precision would be additional passes."""
    exact = problems("float32", weighted=False)
    made = []

    @dataclass(frozen=True)
    class Noted:
        of: CheapObjective

        def restrict(self, which):
            return replace(self, of=self.of.restrict(which))

        def evaluate(self, weights, order):
            made.append(self.of.row_sum.precision)
            return self.of.evaluate(weights, order)

    stages = cheaper_stages(exact, few(exact), *np.zeros((2, 1, 61)))
    stages = tuple(stage._replace(objective=Noted(stage.objective)) for stage in stages)
    solution = LimitedMemory(100, cheaper=stages).solve(exact, np.zeros((1, 61)), tolerance)
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01 * tolerance
    assert made[0] is np.float32
    assert (np.float64 in made) == in_doubles


def coded(bound=None, k=1):
    """k problems over coded rows: a number with knots and a category."""
    rng = np.random.default_rng(0)
    columns = {"age": {"low": 17, "high": 90, "knots": 6}, "work": {"categories": list("abcdefgh"), "other": "a"}}
    frame = pd.DataFrame({"age": rng.uniform(17, 90, 3000), "work": rng.choice(list("abcdefgh"), 3000)})
    encoder = Encoder(Schema(columns=columns))
    blocks = EncodedBlocks(encoder, encoder.read(frame))
    source = MemorySource(blocks, rng.choice([-1, 1], 3000).astype(np.int8), rng.uniform(0.0, 3.0, 3000))
    bound = bound or Centred(encoder.row_bound, (0.1,) * encoder.n_features, 0.8 * encoder.row_bound.l2_norm)
    return Objective(
        source, HuberHinge(0.5), bound, 1.0, 20.0, rng.normal(size=(k, encoder.n_features + 1)), largest_weight=2.0
    )


def test_coded_rows_with_a_centre_are_moved_and_clipped_once():
    """The first steps take the same gradients from rows that are kept; the last ones are exact."""
    exact = coded()
    ((cheap, _, _),) = cheaper_stages(exact, few(exact), *np.zeros((2, 1, exact.linear.shape[1])))
    assert isinstance(cheap.source.blocks, KeptBlocks)
    weights = np.random.default_rng(4).normal(size=exact.linear.shape)
    expected = exact.evaluate(weights, order=1).gradient
    found = cheap.restrict(np.array([0])).evaluate(weights, order=1).gradient
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-9)
    solution = NewtonThenFallback().solve(exact.lent(), np.zeros_like(weights), 1e-7)
    assert np.linalg.norm(exact.evaluate(solution.weights, order=1).gradient) <= 1e-7


def test_other_rows_are_not_kept():
    """Many problems make coded rows dense, and bounds without a centre have cheaper stages of their own."""
    at = np.zeros((2, 1, coded().linear.shape[1]))
    for problem in (coded(k=40), coded(bound=BallBound(2.0))):
        for stage in cheaper_stages(problem, few(problem), *at):
            assert not isinstance(getattr(stage.objective.source, "blocks", None), KeptBlocks)


def test_ridges_of_single_weights_are_those_of_the_objective():
    """In gradients and in Hessians."""
    exact = problems("float64", intercept=0.7)
    exact = with_ridges(exact, np.linspace(1.0, 9.0, exact.linear.shape[1]))
    stage = cheaper_stages(exact, few(exact), *np.zeros((2, 1, exact.linear.shape[1])))[0]
    weights = np.random.default_rng(4).normal(size=exact.linear.shape)
    expected, found = exact.evaluate(weights, order=2), stage.objective.evaluate(weights, order=2)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-6, atol=1e-6 * np.abs(expected.hessian).max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_single_long_row_is_shortened_though_a_few_rows_told_nothing(dtype):
    """Rows that were scaled to the norm of the bound count as inside; one row beyond it does not."""

    def scaled(rows):
        rows /= np.linalg.norm(rows, axis=1)[:, None]

    def longer(rows):
        scaled(rows)
        rows[11] *= 1.5

    weights = np.random.default_rng(2).normal(size=(1, 61))
    for spoil, n_stages in ((scaled, 2 if dtype == "float32" else 1), (longer, 2 if dtype == "float32" else 1)):
        exact = problems(dtype, spoil=spoil)
        stages = cheaper_stages(exact, few(exact), *np.zeros((2, 1, 61)), unshortened=True)
        assert len(stages) == n_stages
        assert is_approximate(stages[-1].objective) == (spoil is longer)
        found = stages[-1].objective.evaluate(weights, order=1).gradient
        np.testing.assert_allclose(
            found, exact.evaluate(weights, order=1).gradient, rtol=1e-5 if dtype == "float32" else 1e-9
        )


def mapped(bound):
    """An objective over rows that a map makes anew in each pass."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(5000, 3)) * 0.5
    labels = np.where(rows[:, 0] * rows[:, 1] > 0.0, 1, -1).astype(np.int8)
    blocks = MappedBlocks(ArrayBlocks(rows), CurvesAndFeatures(FourierMap(3, 80), 1.0, 1.0))
    return Objective(MemorySource(blocks, labels), LogisticLoss(), bound, 0.7, 20.0, rng.normal(size=(1, 84)))


@pytest.mark.parametrize("bound", [BallBound(1.2), Centred(BallBound(1.5), (0.1,) * 83, 1.2)], ids=["ball", "centre"])
def test_rows_that_a_map_makes_are_made_once_in_single_precision(monkeypatch, bound):
    """Moved and clipped as they are; down to about the floor, which a few rows tell; only where they are small enough."""
    objective = mapped(bound)
    sample = objective.replaced(source=objective.source.copied(np.arange(0, 5000, 20)))
    near = LimitedMemory(100).solve(objective, np.zeros((1, 84)), 1e-3).weights
    lent = objective.replaced(source=objective.source.lent())
    (stage,) = cheaper_stages(lent, sample, np.zeros((1, 84)), near)
    rows = stage.objective.source.blocks.rows
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, bound.clip(objective.source.blocks.block(0, 5000)), atol=1e-6)
    weights = near.astype(np.float32).astype(np.float64)
    error = stage.objective.evaluate(weights, 1).gradient - objective.evaluate(weights, 1).gradient
    assert 0.3 * np.linalg.norm(error) < stage.floor < 0.01
    monkeypatch.setattr(cheap_gradients, "_MADE_BYTES", 4 * 5000 * 83 - 1)
    assert not any(is_approximate(stage.objective) for stage in cheaper_stages(lent, sample, np.zeros((1, 84)), near))


@pytest.mark.parametrize("centre", [(), (0.1,) * 83], ids=["ball", "centre"])
@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("row_weights", [None, np.linspace(-0.5, 2.5, 5000)], ids=["", "weighted"])
def test_folded_rows_have_about_the_hessian_of_all_rows(centre, keeps, row_weights):
    """Exactly that if each is one row; if each is ten, much closer to it than a sample of as many rows."""
    bound = Centred(BallBound(1.5), centre, 1.2) if centre else BallBound(1.2)
    known = mapped(bound)
    source = replace(known.source, blocks=replace(known.source.blocks, keeps=keeps), row_weights=row_weights)
    objective = known.replaced(source=source)
    weights = np.random.default_rng(1).normal(size=(1, 84))
    exact = objective.evaluate(weights, 2).hessian[0] - 20.0 * np.eye(84)
    made = cheap_gradients.made_once(objective)

    def error_of(most):
        folded = cheap_gradients.folded_rows(made, weights, most)
        assert folded.shape[1] == 84
        assert 0.98 * most < len(folded) <= most
        return np.linalg.norm(folded.T @ folded - exact) / np.linalg.norm(exact)

    assert error_of(5000) < 1e-5
    assert error_of(500) < 0.1
