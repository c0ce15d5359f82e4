"""The compiled kernel makes first steps cheaper. Whatever it gives, the answer is the one that exact gradients accept."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import confide
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.group_bounds import BoxBound
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.errors import ParameterError
from confide.solvers import cheap_gradients
from confide.solvers.cheap_gradients import compiled_objective
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.problems import with_ridges


def problem(norm=1.0, loss=None, n=20_000, d=12):
    """Rows of several norms around 1."""
    rng = np.random.default_rng(8)
    rows = rng.normal(size=(n, d)) / np.sqrt(d) * rng.uniform(0.2, 2.0, size=(n, 1))
    labels = np.where(rows @ rng.normal(size=d) + rng.logistic(size=n) > 0, 1, -1).astype(np.int8)
    source = MemorySource(ArrayBlocks(rows), labels)
    return Objective(source, loss or LogisticLoss(), BallBound(norm), 0.7, 20.0, rng.normal(size=(1, d + 1)))


@pytest.mark.parametrize(("norm", "unshortened"), [(1.0, False), (100.0, True)])
def test_gradients_are_those_of_the_objective(compiled, norm, unshortened):
    """Ridge and noise included, over rows that are lent."""
    exact = problem(norm)
    weights = np.random.default_rng(1).normal(size=exact.linear.shape)
    expected = exact.evaluate(weights, order=1).gradient
    for objective in (exact, exact.lent()):
        found = compiled_objective(objective, unshortened).restrict(np.arange(1)).evaluate(weights, order=1).gradient
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        # A line search asks for several points of one problem.
        lines = compiled_objective(objective, unshortened).restrict(np.zeros(3, dtype=int))
        several = lines.evaluate(np.repeat(weights, 3, axis=0), order=1).gradient
        np.testing.assert_array_equal(several, np.repeat(found, 3, axis=0))
    with pytest.raises(ParameterError, match="few columns"):
        compiled_objective(problem(n=100, d=64), unshortened=False).evaluate(np.zeros((1, 65)), order=2)


def test_a_single_long_row_is_shortened_though_a_few_rows_told_nothing(compiled):
    """Without it the minimiser would be another one, and exact gradients would have to take many steps."""
    exact = problem(10.0)
    exact.source.blocks.rows[17] *= 1e6
    weights = np.random.default_rng(1).normal(size=exact.linear.shape)
    found = compiled_objective(exact, unshortened=True).evaluate(weights, order=1).gradient
    np.testing.assert_allclose(found, exact.evaluate(weights, order=1).gradient, rtol=1e-9)


@pytest.mark.parametrize(
    "loss", [LogisticLoss(), LogisticHinge(0.25), HuberHinge(0.5), SmoothHinge(0.5)], ids=lambda loss: loss.constants.name
)
@pytest.mark.parametrize(("norm", "unshortened"), [(1.0, False), (100.0, True)])
@pytest.mark.parametrize("d", [1, 3, 8, 21, 63])
def test_hessians_are_those_of_the_objective(compiled, loss, norm, unshortened, d):
    """In single precision, with ridge and intercept, and gradients beside them in double precision."""
    exact = problem(norm, loss, n=3000, d=d)
    weights = np.random.default_rng(1).normal(size=exact.linear.shape)
    expected = exact.evaluate(weights, order=2)
    found = compiled_objective(exact, unshortened).evaluate(weights, order=2)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-5, atol=1e-5 * np.abs(expected.hessian).max())


def test_there_are_problems_that_the_kernel_leaves_to_numpy(compiled, monkeypatch):
    """Several problems, sparse rows, bounds other than a ball where they shorten rows, and a kernel that is switched off."""
    exact = problem()
    assert compiled_objective(exact, unshortened=False) is not None
    several = replace(exact, linear=np.repeat(exact.linear, 2, axis=0))
    assert compiled_objective(several, unshortened=True) is None
    box = replace(exact, row_bound=BoxBound([1.0] * 12))
    assert compiled_objective(box, unshortened=False) is None
    assert compiled_objective(box, unshortened=True) is not None
    sparse = MemorySource(ArrayBlocks(scipy.sparse.csr_array(exact.source.blocks.rows)), exact.source.labels)
    assert compiled_objective(replace(exact, source=sparse), unshortened=True) is None
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    assert compiled_objective(exact, unshortened=True) is None


class Nonsense:
    """A kernel that adds what it likes.

    Parameters
    ----------
    kind : what it adds
    """

    def __init__(self, kind):
        self.kind, self.calls, self._rng = kind, 0, np.random.default_rng(9)

    def dense_sums(self, rows, radius, labels, counts, largest, weights, offset, loss, a, low, high, out, products, plain):
        self.calls += 1
        if self.kind == "fails":
            raise ValueError
        out += {
            "noise": self._rng.normal(size=out.size) * rows.shape[0],
            "nothing": 0.0,
            "no number": np.nan,
            "huge": 1e300,
            "the wrong way": np.append(weights, 0.0) * -rows.shape[0],
        }[self.kind]
        if products is not None:
            products += self._rng.normal(size=products.size) if self.kind == "noise" else out.max()


@pytest.mark.parametrize("kind", ["noise", "nothing", "no number", "huge", "the wrong way", "fails"])
@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
def test_a_kernel_of_nonsense_costs_time_alone(monkeypatch, kind, loss):
    """The answer is the minimiser, as exact gradients see it, and the last pass is one of theirs."""
    exact, wrong, kinds = problem(loss=loss, n=9000), Nonsense(kind), []
    expected = NewtonThenFallback().solve(replace(exact), np.zeros((1, 13)), 1e-8).weights
    monkeypatch.setattr(cheap_gradients, "kernel", lambda: wrong)
    passes = MemorySource.sum_over_rows

    def noted(self, row_sum, weights):
        kinds.append(type(row_sum))
        return passes(self, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    with np.errstate(all="ignore"):
        solution = NewtonThenFallback().solve(exact, np.zeros((1, 13)), 1e-8)
    assert wrong.calls > 0
    assert kinds[-1] is RowSum
    assert np.linalg.norm(replace(exact).evaluate(solution.weights, order=1).gradient) <= 1.01e-8
    np.testing.assert_allclose(solution.weights, expected, atol=2e-9)


@pytest.mark.parametrize("estimator", [confide.LogisticRegression, confide.LinearSVC])
@pytest.mark.parametrize("norm", [1.0, 20.0])
def test_seeded_releases_are_those_of_numpy_alone(compiled, monkeypatch, estimator, norm):
    """With the kernel, without it, and with one of nonsense, weights agree to far less than their noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(30_000, 6))
    y = X[:, 0] + rng.logistic(size=30_000) > 0

    def released():
        model = estimator(1.0, row_norm=norm, classes=[False, True], random_state=5).fit(X, y)
        return np.append(model.coef_, model.intercept_), model.guarantee_

    with_kernel, guarantee = released()
    monkeypatch.setattr(cheap_gradients, "kernel", lambda: Nonsense("noise"))
    with_nonsense, _ = released()
    monkeypatch.undo()
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    without, same = released()
    np.testing.assert_allclose(with_kernel, without, atol=1e-8)
    np.testing.assert_allclose(with_nonsense, without, atol=1e-8)
    assert str(guarantee) == str(same)


def test_exact_gradients_have_the_last_pass_alone(compiled, monkeypatch):
    """The kernel makes all other passes over all rows of an ordinary fit."""
    exact, kinds = problem(), []
    passes = MemorySource.sum_over_rows

    def noted(self, row_sum, weights):
        if self.n_rows == exact.source.n_rows:
            kinds.append(type(row_sum))
        return passes(self, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    NewtonThenFallback().solve(exact, np.zeros((1, 13)), 1e-7)
    assert kinds.count(RowSum) == 1
    assert kinds[-1] is RowSum
    assert len(kinds) > 1


def test_ridges_of_single_weights_are_those_of_the_objective(compiled):
    """In gradients and in Hessians."""
    exact = with_ridges(problem(n=3000), np.linspace(1.0, 9.0, 13))
    weights = np.random.default_rng(1).normal(size=exact.linear.shape)
    expected, found = exact.evaluate(weights, order=2), compiled_objective(exact, False).evaluate(weights, order=2)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-5, atol=1e-5 * np.abs(expected.hessian).max())
