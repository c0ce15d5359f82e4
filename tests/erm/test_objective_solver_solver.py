"""Every solver reaches the tolerance of ordinary problems, whether it has a theorem or not."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.losses import LogisticLoss
from confide.solvers.fallback import GradientDescent, InSpanOfRows, Narrowing, NewtonThenFallback, StepLimitedNewton
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.newton import Newton
from confide.solvers.sampled import SampledNewton
from confide.solvers.scaled_lbfgs import ColumnScaledLimitedMemory
from tests.solvers.problems import objective

OF_ONE_PROBLEM = [StepLimitedNewton(), GradientDescent()]
OF_SEVERAL = [
    Newton(),
    LimitedMemory(),
    SampledNewton(),
    ColumnScaledLimitedMemory(),
    Narrowing(Newton()),
    InSpanOfRows(Newton(), LimitedMemory()),
    NewtonThenFallback(),
]


@pytest.mark.parametrize("solver", [*OF_ONE_PROBLEM, *OF_SEVERAL], ids=lambda solver: type(solver).__name__)
@pytest.mark.parametrize("n", [300, 40_000])
def test_a_solver_reaches_the_tolerance_and_says_so(solver, n):
    """Rows are few or many. The norms that it claims are those of a pass made here, and the start is unchanged."""
    k = 1 if solver in OF_ONE_PROBLEM else 3
    problems, start = objective(LogisticLoss(), n=n, k=k, l2=0.02 * n), np.full((k, 7), 0.5)
    norm = np.linalg.norm(problems.evaluate(start, order=1).gradient, axis=1).max()
    solution = solver.solve(problems, start, 1e-9 * norm)
    found = np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1)
    assert (found <= 1.01e-9 * norm).all()
    np.testing.assert_allclose(solution.gradient_norm, found, atol=1e-11 * norm)
    assert (start == 0.5).all()


@pytest.mark.parametrize("solver", OF_SEVERAL, ids=lambda solver: type(solver).__name__)
def test_a_tolerance_of_0_asks_for_the_best_that_doubles_allow(solver):
    """The solver ends there."""
    problems = objective(LogisticLoss(), n=3000, k=2, l2=10.0)
    solution = solver.solve(problems, np.zeros((2, 7)), 0.0)
    assert (np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1) < 1e-11).all()
