"""Too many weights for a Hessian: few passes whatever the columns are used by, and the same minimiser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.data.sparse import SparseBlocks
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.hinges import HuberHinge
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.errors import FileError
from confide.estimators.logistic import LogisticRegression
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.rough import RoughSum
from confide.solvers.wide import ByColumns


def words(n=33_000, d=2_010, entries=8, seed=0):
    """Rows of words: some in every second row, most in hardly any."""
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


def problems(rows, loss=None, k=1, norm=1.0, intercept=0.5):
    """k problems over words, or over the same rows in another form."""
    rng = np.random.default_rng(1)
    loss = loss or LogisticLoss()
    n, d = rows.shape
    labels = rng.choice([-1, 1], size=n).astype(np.int8) if loss.n_outputs == 1 else rng.integers(0, loss.n_outputs, n)
    blocks = SparseBlocks(rows) if scipy.sparse.issparse(rows) else ArrayBlocks(rows)
    linear = rng.normal(size=(k, loss.n_outputs * (d + 1)))
    return Objective(MemorySource(blocks, labels), loss, BallBound(norm), intercept, 4.0, linear)


def kinds_of_passes(monkeypatch, n_rows):
    """The kinds of sums over all rows, in order."""
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
    """With a bound that shortens rows and one that does not; units of columns save many steps."""
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


def test_sparse_rows_in_single_precision_and_dense_ones_have_the_same_minimiser():
    """Rows in whatever form: the answer is the minimiser over the rows as they are given."""
    rows = words().astype(np.float32)
    answers = [
        NewtonThenFallback().solve(problem, np.zeros_like(problem.linear), 1e-7).weights
        for problem in (problems(rows), problems(rows.toarray()), problems(rows.astype(np.float64)))
    ]
    np.testing.assert_allclose(answers[0], answers[1], atol=1e-7)
    np.testing.assert_allclose(answers[0], answers[2], atol=1e-7)


@pytest.mark.parametrize("loss", [Softmax(3), OneVsRest(LogisticLoss(), 3)], ids=["softmax", "one-vs-rest"])
def test_several_classes_are_made_in_units_of_columns_too(monkeypatch, loss):
    """Without rough sums, which are of one score."""
    exact = problems(words(n=33_000, d=100, entries=6), loss)
    kinds = kinds_of_passes(monkeypatch, exact.source.n_rows)
    solution = ByColumns().solve(exact, np.zeros_like(exact.linear), 1e-6)
    assert RoughSum not in kinds
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-6


def test_a_long_row_that_no_sample_saw_does_not_mislead():
    """Its bound counts in the end."""
    rows = words()
    rows.data[rows.indptr[101] : rows.indptr[103]] *= 1e6
    exact = problems(rows, norm=10.0)
    solution = NewtonThenFallback().solve(exact, np.zeros_like(exact.linear), 1e-7)
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-7


@pytest.mark.parametrize("size", [1e25, 1e200, 1.7e308])
@pytest.mark.parametrize("intercept", [0.0, 0.5])
def test_a_huge_row_is_no_reason_to_refuse_or_to_take_long(monkeypatch, size, intercept):
    """Its squares overflow, and it lies in every sample; with and without an intercept."""
    rows = words()
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
    """Wide softmax without an intercept: what was charged is released."""
    rng = np.random.default_rng(0)
    rows, classes = rng.normal(size=(33_000, 201)) / 20.0, np.arange(33_000) % 3
    rows[0] = 1e200
    model = LogisticRegression(1.0, row_norm=1.0, fit_intercept=False, classes=[0, 1, 2]).fit(rows, classes)
    assert np.isfinite(model.coef_).all()


class Raising:
    """A first method that stumbles over the rows."""

    def __init__(self, error):
        self.error = error

    def solve(self, objective, start, tolerance):
        """Raise."""
        raise self.error


@pytest.mark.parametrize(
    "error", [ZeroDivisionError(), OverflowError(), ValueError(), np.linalg.LinAlgError(), IndexError()]
)
def test_what_the_first_method_raises_is_left_to_one_with_a_theorem(error):
    """It is not told to anybody."""
    exact = problems(words(n=500, d=20, entries=4))
    solution = NewtonThenFallback(first=Raising(error)).solve(exact, np.zeros_like(exact.linear), 1e-6)
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-6


def test_refusals_of_the_package_itself_pass():
    """Files that changed, above all."""
    exact = problems(words(n=500, d=20, entries=4))
    with pytest.raises(FileError):
        NewtonThenFallback(first=Raising(FileError("changed"))).solve(exact, np.zeros_like(exact.linear), 1e-6)
