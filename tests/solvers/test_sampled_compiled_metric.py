"""The Hessian of all rows by the kernel saves passes where rows are many and weights few."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide.compiled.gradient_sums import CompiledSum
from confide.data.arrays import MemorySource
from confide.solvers import sampled
from confide.solvers.cheap_gradients import compiled_objective
from confide.solvers.fallback import NewtonThenFallback
from confide.solvers.sampled import Metric, closer_start
from tests.solvers.test_cheap_gradients_compiled_gradients import problem


def near(exact, shift=1e-2):
    """A point near the minimiser, and a metric that is a little off."""
    at = NewtonThenFallback().solve(exact, np.zeros(exact.linear.shape), 1e-9).weights
    hessian = exact.evaluate(at, order=2).hessian[0]
    return at, at + shift, Metric.of(hessian * 1.05)


def test_the_second_step_leaves_next_to_nothing(compiled):
    """The first step leaves the share by which the metric is off. The second one leaves a thousandth of that, or less."""
    exact = problem()
    best, start, metric = near(exact)
    kernel = compiled_objective(exact, unshortened=False)
    weights, _, norms = closer_start(kernel, start, metric, Metric.of, 5000, 1e-9)
    first, second = np.linalg.norm(start - best), np.linalg.norm(weights - best)
    assert second < 1e-4 * first
    between = start - metric(kernel.evaluate(start, order=1).gradient)
    np.testing.assert_allclose(norms, np.linalg.norm(exact.evaluate(between, order=1).gradient, axis=1), rtol=1e-6)


@pytest.mark.parametrize("why", ["many weights", "small sample", "close enough", "no number", "no Hessian"])
def test_where_it_does_not_pay_nothing_is_done(compiled, why):
    """Wide rows, a sample that says little, a start that is nearly good enough, and a kernel of no use."""
    exact = problem(d=40, n=2000) if why == "many weights" else problem(n=2000)
    _, start, metric = near(exact)
    kernel = compiled_objective(exact, unshortened=False)
    if why == "no number":
        start = np.full_like(start, np.nan)

    def of_hessian(hessian):
        return None if why == "no Hessian" else Metric.of(hessian)

    n_sampled, tolerance = 10 if why == "small sample" else 5000, 1.0 if why == "close enough" else 1e-9
    assert closer_start(kernel, start, metric, of_hessian, n_sampled, tolerance) is None


def test_a_fit_of_many_rows_takes_fewer_passes(compiled, monkeypatch):
    """Fewer passes over all rows, one of them with a Hessian; and the same answer."""
    exact, orders = problem(n=200_000, d=6, norm=100.0), []
    passes = MemorySource.sum_over_rows

    def noted(self, row_sum, weights):
        asked = getattr(row_sum, "row_sum", row_sum)
        if self.n_rows == exact.source.n_rows:
            orders.append((type(asked), asked.order))
        return passes(self, row_sum, weights)

    monkeypatch.setattr(MemorySource, "sum_over_rows", noted)
    found = NewtonThenFallback().solve(replace(exact).lent(), np.zeros((1, 7)), 1e-6).weights
    taken = orders.copy()
    assert taken.count((CompiledSum, 2)) == 1
    orders.clear()
    monkeypatch.setattr(sampled, "_MOST_WEIGHTS", 0)
    expected = NewtonThenFallback().solve(replace(exact).lent(), np.zeros((1, 7)), 1e-6).weights
    assert len(taken) < len(orders)
    np.testing.assert_allclose(found, expected, atol=1e-8)
