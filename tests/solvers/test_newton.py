"""Newton's method with exact line searches solves problems in a batch or alone, by one pass for each trial."""

from __future__ import annotations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.solvers.newton import Newton, newton_directions
from tests.solvers.problems import LOSSES, objective


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_a_batch_gives_what_each_problem_gives_alone(loss):
    """k problems at once and k single problems agree."""
    problems = objective(loss, k=4)
    together = Newton().solve(problems, np.zeros((4, 7)), 1e-10).weights
    for j in range(4):
        alone = Newton().solve(problems.restrict(np.array([j])), np.zeros((1, 7)), 1e-10).weights
        np.testing.assert_allclose(together[j], alone[0], atol=1e-9)


def test_newton_takes_one_pass_a_trial():
    """An ordinary problem takes about ten passes, all of them with gradient and Hessian."""
    problems = objective(LogisticLoss(), l2=1.0)
    Newton().solve(problems, np.zeros((1, 7)), 1e-9)
    assert len(problems.source.orders) <= 10
    assert set(problems.source.orders) == {2}


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_newton_does_not_cycle_between_flat_pieces(loss):
    """Rows are nearly parallel and the ridge is small. Steps that overshoot by far still end at the minimiser."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n, d = int(rng.integers(1, 60)), int(rng.integers(1, 5))
        rows = np.outer(rng.normal(size=n), rng.normal(size=d)) + 1e-6 * rng.normal(size=(n, d))
        source = MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=n).astype(np.int8))
        problems = Objective(source, loss, BallBound(1.0), 1.0, 10.0 ** rng.uniform(-3, 1), np.zeros((1, d + 1)))
        assert Newton().solve(problems, np.zeros((1, d + 1)), 1e-9).gradient_norm[0] <= 1e-9


def test_a_relative_tolerance_ends_it_earlier():
    """It ends at this share of the gradient norm at the start, and not much further."""
    problems = objective(LogisticLoss(), l2=1.0)
    first = np.linalg.norm(problems.evaluate(np.zeros((1, 7)), order=1).gradient)
    found = Newton(relative_tolerance=0.1).solve(problems, np.zeros((1, 7)), 0.0)
    assert 1e-6 * first < found.gradient_norm[0] <= 0.1 * first


def test_directions_solve_the_newton_equation_where_it_can_be_solved():
    """The direction s solves H s = -g for a positive definite H. It is NaN for another H, and nothing is raised."""
    hessian = np.array([[[4.0, 1.0], [1.0, 3.0]], [[1.0, 2.0], [2.0, 1.0]]])
    gradient = np.array([[1.0, -2.0], [1.0, 1.0]])
    found = newton_directions(hessian.copy(), gradient)
    np.testing.assert_allclose(hessian[0] @ found[0], -gradient[0], rtol=1e-14)
    assert np.isnan(found[1]).all()
