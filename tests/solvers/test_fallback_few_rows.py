"""Fewer rows than weights: the minimiser in the space that the rows span is that of the problem."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective, Solution
from confide.erm.row_bounds import BallBound
from confide.solvers.fallback import InSpanOfRows
from confide.solvers.newton import Newton
from tests.privacy.problems import with_ridges
from tests.solvers.problems import CountingSource, Idle


def problems(loss, k=2, n=30, d=120, sparse=False, intercept=0.7):
    """k problems over fewer rows than columns. About half of the rows are beyond their bound."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(n, d)) / np.sqrt(d) * rng.uniform(0.5, 1.5, size=(n, 1))
    labels = (
        rng.choice([-1, 1], size=n).astype(np.int8)
        if loss.constants.n_outputs == 1
        else rng.integers(0, loss.constants.n_outputs, n)
    )
    blocks = ArrayBlocks(scipy.sparse.csr_array(rows) if sparse else rows)
    linear = rng.normal(size=(k, loss.constants.n_outputs * (d + (intercept > 0.0))))
    source = MemorySource(blocks, labels, rng.uniform(0.0, 2.0, size=n))
    return Objective(source, loss, BallBound(1.0), intercept, 0.5, linear, 1.5)


class Noted:
    """Newton's method, which takes note of the number of weights of each problem."""

    def __init__(self):
        self.widths = []

    def solve(self, objective, start, tolerance):
        """Solve."""
        self.widths.append(start.shape[1])
        return Newton().solve(objective, start, tolerance)


@pytest.mark.parametrize(
    "loss", [LogisticLoss(), HuberHinge(0.5), OneVsRest(LogisticLoss(), 3)], ids=lambda loss: loss.constants.name
)
@pytest.mark.parametrize("sparse", [True, False])
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_the_minimiser_is_found_with_few_weights(loss, sparse, intercept):
    """There are as many weights as rows and linear terms. Rows are clipped, weighted and have an intercept."""
    exact, inner = problems(loss, sparse=sparse, intercept=intercept), Noted()
    solution = InSpanOfRows(inner, Idle()).solve(exact, np.zeros_like(exact.linear), 1e-9)
    assert (np.linalg.norm(exact.evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01e-9).all()
    assert inner.widths == [loss.constants.n_outputs * (30 + 2 * loss.constants.n_outputs)]


@pytest.mark.parametrize("loss", [LogisticLoss(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
def test_which_method_is_the_first(loss):
    """The method in the space of the rows comes first for hinges, and second for self-concordant losses."""
    exact, inner, otherwise = problems(loss), Noted(), Noted()
    InSpanOfRows(inner, otherwise).solve(exact, np.zeros_like(exact.linear), 1e-8)
    first, second = (otherwise, inner) if loss.constants.self_concordant else (inner, otherwise)
    assert first.widths
    assert not second.widths


@pytest.mark.parametrize("why", ["more rows than weights", "no rows in memory"])
def test_other_problems_are_left_to_the_other_method(why):
    """The first method does nothing then, and the start stays as it is."""
    exact = problems(HuberHinge(0.5), n=200) if why == "more rows than weights" else problems(HuberHinge(0.5))
    if why == "no rows in memory":
        exact = exact.replaced(source=CountingSource(exact.source))
    inner, start = Noted(), np.ones_like(exact.linear)
    solution = InSpanOfRows(inner, Newton()).solve(exact, start, 1e-8)
    assert not inner.widths
    assert (solution.gradient_norm <= 1e-8).all()
    assert (start == 1.0).all()


class Worse:
    """A method whose answer is worse than its start."""

    def solve(self, objective, start, tolerance):
        """Return a point far from the minimiser."""
        weights = start + 1e3
        return Solution(weights, np.linalg.norm(objective.evaluate(weights, order=1).gradient, axis=1))


@pytest.mark.parametrize("second", [Worse(), Idle()])
def test_an_answer_of_the_second_method_that_is_worse_does_not_count(second):
    """Neither does an answer that is not a number. With a tolerance of 0 both methods are asked."""
    exact = problems(HuberHinge(0.5))
    solution = InSpanOfRows(Newton(), second).solve(exact, np.zeros_like(exact.linear), 0.0)
    assert (np.linalg.norm(exact.evaluate(solution.weights, order=1).gradient, axis=1) <= 1e-12).all()


def test_ridges_of_single_weights_are_left_to_the_other_method():
    """In the space of the rows they would be a matrix. The other method finds the minimiser with them."""
    exact = problems(HuberHinge(0.5))
    exact = with_ridges(exact, np.linspace(1.0, 9.0, exact.linear.shape[1]))
    inner = Noted()
    solution = InSpanOfRows(inner, Newton()).solve(exact, np.zeros_like(exact.linear), 1e-8)
    assert not inner.widths
    assert (np.linalg.norm(exact.gradients(solution.weights), axis=1) <= 1e-8).all()
