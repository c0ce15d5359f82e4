"""Problems with a large ridge need no metric: a few passes of L-BFGS reach the tolerance."""

from __future__ import annotations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.solvers import sampled
from confide.solvers.newton import Newton
from confide.solvers.sampled import _largest_curvature, solved_if_round
from tests.solvers.problems import CountingSource

N_ROWS = 12_000


def wide(ridge, n_features=240, loss=None, k=1, steep=0):
    """Columns of one size, which have nothing to do with each other; and `steep` rows that are twenty times as long."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, n_features)) / np.sqrt(n_features)
    rows[rng.integers(0, N_ROWS, steep)] *= 20.0
    source = CountingSource(MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=N_ROWS).astype(np.int8)))
    linear = rng.normal(size=(k, n_features))
    return Objective(source, loss or LogisticLoss(), BallBound(50.0), 0.0, ridge * N_ROWS, linear)


def start_of(problem):
    return np.zeros(problem.linear.shape)


@pytest.mark.parametrize("ridge", [1.0, 1e-1, 1e-2, 1e-3])
def test_a_round_problem_takes_few_passes_and_no_hessian(ridge):
    """The answer is that of Newton's method."""
    problem = wide(ridge)
    norm = float(np.linalg.norm(problem.evaluate(start_of(problem), order=1).gradient))
    problem.source.orders.clear()
    solution = solved_if_round(problem, start_of(problem), 1e-9 * norm)
    assert solution.gradient_norm[0] <= 1e-9 * norm
    assert problem.source.orders.count(2) == 0
    assert len(problem.source.orders) <= 12
    exact = Newton().solve(problem, start_of(problem), 1e-9 * norm).weights
    np.testing.assert_allclose(solution.weights, exact, rtol=0.0, atol=1e-7 * np.abs(exact).max())


@pytest.mark.parametrize(
    ("problem", "tolerance"),
    [
        (wide(1e-5), 1e-6),
        (wide(1.0, n_features=199), 1e-6),
        (wide(1.0, loss=HuberHinge(0.5)), 1e-6),
        (wide(1.0, k=2), 1e-6),
        (wide(1.0), 0.0),
    ],
    ids=["a small ridge", "few weights", "a hinge", "two problems", "no tolerance"],
)
def test_other_problems_are_left_to_a_metric(problem, tolerance):
    """They take no pass over all rows here."""
    problem.source.orders.clear()
    assert solved_if_round(problem, start_of(problem), tolerance) is None
    assert problem.source.orders == []


def test_the_curvature_is_that_of_the_hessian():
    """From below, and at least nine tenths of it."""
    problem = wide(1e-3)
    hessian = problem.evaluate(start_of(problem), order=2).hessian[0]
    largest = float(np.linalg.eigvalsh(hessian)[-1])
    assert 0.9 * largest <= _largest_curvature(problem, start_of(problem)) <= 1.001 * largest


def test_a_few_rows_that_mislead_do_no_harm(monkeypatch):
    """Curvature is measured on rows that are too short. What steps do not reach is left to a metric."""
    problem = wide(1e-4, steep=300)
    monkeypatch.setattr(sampled, "_largest_curvature", lambda few, start: 1.01 * few.l2)
    assert solved_if_round(problem, start_of(problem), 1e-6) is None


def test_a_curvature_that_is_no_number_counts_as_not_round(monkeypatch):
    monkeypatch.setattr(sampled, "_largest_curvature", lambda few, start: float("nan"))
    problem = wide(1.0)
    assert solved_if_round(problem, start_of(problem), 1e-6) is None
