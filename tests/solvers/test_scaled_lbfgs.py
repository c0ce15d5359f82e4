"""Problems with too many weights for a Hessian take few passes, however unevenly columns are used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.estimators.logistic import LogisticRegression
from confide.solvers import lbfgs, scaled_lbfgs
from confide.solvers.cheap_gradients import ApproximateSum
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.scaled_lbfgs import ColumnScaledLimitedMemory, _column_scales
from tests.privacy.problems import with_ridges


def words(n=33_000, d=2_010, entries=8, seed=0):
    """Rows of words, some of which are in every second row and most in hardly any."""
    rng = np.random.default_rng(seed)
    shares = np.cumsum(1.0 / np.arange(1, d + 1))
    columns = np.searchsorted(shares / shares[-1], rng.random(n * entries))
    rows = scipy.sparse.csr_array((rng.gamma(2.0, size=n * entries), columns, np.arange(n + 1) * entries), shape=(n, d))
    rows.sum_duplicates()
    rows.data /= np.repeat(
        np.sqrt(np.bincount(np.repeat(np.arange(n), np.diff(rows.indptr)), rows.data**2)), np.diff(rows.indptr)
    )
    rows.data *= np.repeat(rng.uniform(0.2, 1.5, size=n), np.diff(rows.indptr))
    return rows


@pytest.fixture
def fewer_rows(monkeypatch):
    """Scales of columns and samples begin at a quarter of the rows, so that `FEWER` rows are as good as `words()`."""
    monkeypatch.setattr(scaled_lbfgs, "_FEW_ROWS", scaled_lbfgs._FEW_ROWS // 4)
    monkeypatch.setattr(lbfgs, "_SAMPLED_ROWS", lbfgs._SAMPLED_ROWS // 4)


FEWER = 8_250


def problems(rows, loss=None, k=1, norm=1.0, intercept=0.5):
    """k problems over words, or over the same rows in another form."""
    rng = np.random.default_rng(1)
    loss = loss or LogisticLoss()
    n, d = rows.shape
    labels = (
        rng.choice([-1, 1], size=n).astype(np.int8)
        if loss.constants.n_outputs == 1
        else rng.integers(0, loss.constants.n_outputs, n)
    )
    blocks = ArrayBlocks(rows)
    linear = rng.normal(size=(k, loss.constants.n_outputs * (d + 1)))
    return Objective(MemorySource(blocks, labels), loss, BallBound(norm), intercept, 4.0, linear)


def kinds_of_passes(monkeypatch, n_rows):
    """A list that takes note of the kinds of sums over all rows, in order."""
    kinds, passes = [], MemorySource.sum_over_rows

    def noted(self, row_sum, weights):
        if self.n_rows == n_rows:
            kinds.append(type(row_sum))
        return passes(self, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    return kinds


@pytest.mark.parametrize(
    ("loss", "norm", "k"),
    [(LogisticLoss(), 1.0, 3), (LogisticLoss(), 10.0, 1), (HuberHinge(0.5), 1.0, 1)],
    ids=["several, clipped", "inside the bound", "hinge"],
)
def test_few_passes_by_the_objective_itself_reach_the_tolerance(monkeypatch, loss, norm, k):
    """Scales of columns save many steps, with a bound that shortens rows and with one that does not."""
    exact = problems(words(), loss, k, norm)
    before = exact.source.blocks.rows.copy()
    kinds = kinds_of_passes(monkeypatch, exact.source.n_rows)
    solution = NewtonThenFallback().solve(exact, np.zeros_like(exact.linear), 1e-7)
    assert (np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01e-7).all()
    kinds.pop()
    assert kinds[-1] is RowSum
    assert kinds.count(RowSum) <= 10
    n_passes = len(kinds)
    kinds.clear()
    LimitedMemory().solve(exact, np.zeros_like(exact.linear), 1e-7)
    assert n_passes < 0.8 * len(kinds)
    assert (exact.source.blocks.rows != before).nnz == 0


@pytest.mark.usefixtures("fewer_rows")
def test_sparse_rows_in_single_precision_and_dense_ones_have_the_same_minimiser():
    """The answer is the minimiser over the rows as they are given, in whatever form."""
    rows = words(FEWER).astype(np.float32)
    answers = [
        NewtonThenFallback().solve(problem, np.zeros_like(problem.linear), 1e-7).weights
        for problem in (problems(rows), problems(rows.toarray()), problems(rows.astype(np.float64)))
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-7)
    np.testing.assert_allclose(answers[0], answers[2], atol=1e-7)


@pytest.mark.usefixtures("fewer_rows")
@pytest.mark.parametrize("loss", [Softmax(3), OneVsRest(LogisticLoss(), 3)], ids=["softmax", "one-vs-rest"])
def test_several_classes_have_scales_of_columns_too(monkeypatch, loss):
    """Approximate sums are for losses of one score, so none is made here."""
    exact = problems(words(FEWER, d=40, entries=6), loss)
    kinds = kinds_of_passes(monkeypatch, exact.source.n_rows)
    solution = ColumnScaledLimitedMemory().solve(exact, np.zeros_like(exact.linear), 1e-6)
    assert ApproximateSum not in kinds
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-6


@pytest.mark.usefixtures("fewer_rows")
def test_a_long_row_that_no_sample_saw_does_not_mislead():
    """The row is clipped in the last passes."""
    rows = words(FEWER)
    rows.data[rows.indptr[101] : rows.indptr[103]] *= 1e6
    exact = problems(rows, norm=10.0)
    solution = NewtonThenFallback().solve(exact, np.zeros_like(exact.linear), 1e-7)
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-7


@pytest.mark.usefixtures("fewer_rows")
@pytest.mark.parametrize("size", [1e25, 1e200, 1.7e308])
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_a_huge_row_is_no_reason_to_refuse_or_to_take_long(monkeypatch, size, intercept):
    """The squares of the row overflow, and it lies in every sample."""
    rows = words(FEWER)
    rows.data[: rows.indptr[1]] = size
    exact = problems(rows, intercept=intercept) if intercept else problems(rows)
    if not intercept:
        exact = replace(exact, intercept=0.0, linear=exact.linear[:, :-1])
    kinds = kinds_of_passes(monkeypatch, exact.source.n_rows)
    with np.errstate(all="ignore"):
        solution = NewtonThenFallback().solve(exact, np.zeros_like(exact.linear), 1e-6)
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-6
    assert len(kinds) < 400


def test_a_huge_row_of_several_classes_does_not_end_a_fit():
    """A softmax of many weights without an intercept is released after its charge."""
    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(33_000, 201)) / 20.0, np.arange(33_000) % 3
    rows[0] = 1e200
    model = LogisticRegression(1.0, row_norm=1.0, fit_intercept=False, classes=[0, 1, 2]).fit(rows, classes)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("dense", [True, False])
def test_scales_are_inverse_bounds_on_the_curvature(dense):
    """Their inverses are the diagonal of the Hessian of the logistic loss at weights of 0. Half of the rows come close."""
    rows = words(n=500, d=20, entries=4)
    exact = problems(rows.toarray() if dense else rows)
    scales = _column_scales(exact, exact.source, exact.linear.shape[1])
    curvatures = np.diagonal(exact.evaluate(np.zeros_like(exact.linear), order=2).hessian[0])
    # The logistic loss has its largest curvature at 0.
    np.testing.assert_allclose(1.0 / scales, curvatures, rtol=1e-12)
    half = exact.source.copied(np.arange(0, 500, 2))
    np.testing.assert_allclose(_column_scales(exact, half, exact.linear.shape[1]), scales, rtol=0.5)


def test_scales_know_a_ridge_for_each_weight():
    """Beside the curvature of the rows; the minimiser is that of the objective with these ridges."""
    objective = problems(words(n=2000, d=2010))
    factors = tuple(np.linspace(1.0, 1e4, 2011).tolist())
    apart = with_ridges(objective, np.array(factors))
    plain, found = (_column_scales(each, each.source, 2011) for each in (objective, apart))
    np.testing.assert_allclose(1.0 / found - 1.0 / plain, 4.0 * (np.array(factors) - 1.0), rtol=1e-6, atol=1e-9)
    solution = ColumnScaledLimitedMemory().solve(apart, np.zeros((1, 2011)), 1e-6)
    assert np.linalg.norm(apart.gradients(solution.weights)) <= 1e-6
