"""Solvers of objectives with an l1 penalty: they reach the tolerance whatever the first method does."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest

from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.objective import Solution
from confide.erm.penalties import least_subgradients
from confide.erm.row_sums import Totals
from confide.solvers import proximal
from confide.solvers.fallback import GradientDescent, NewtonThenFallback
from confide.solvers.proximal import AcceleratedProximalGradient, ProximalNewton, minimiser_of_model
from tests.privacy.problems import problem, source, with_penalty

NARROW = HuberHinge(2.0**-10)


def made(n=60, d=6, *, loss=None, l2=2.0, l1_ratio=0.5, intercept=1.0, seed=0):
    """An objective over random rows."""
    facts = with_penalty(problem(n, d, loss=loss or LogisticLoss(), l2=l2, intercept=intercept), l1_ratio=l1_ratio)
    return facts.objective(source(n, d, seed), l2, np.zeros((1, facts.n_weights)))


@pytest.mark.parametrize(
    ("method", "loss"),
    [
        (ProximalNewton(), LogisticLoss()),
        *((each(), loss) for each in (AcceleratedProximalGradient, NewtonThenFallback) for loss in (LogisticLoss(), NARROW)),
    ],
    ids=repr,
)
@pytest.mark.parametrize("l1_ratio", [0.05, 0.5, 0.9])
def test_fast_methods_find_minimisers_with_zeros(method, loss, l1_ratio):
    """The least subgradient, computed here anew, is small, and with a strong penalty all weights but the intercept are 0."""
    objective = made(loss=loss, l1_ratio=l1_ratio)
    tolerance = 1e-7 if loss.constants.name == "logistic" else 1e-5
    solution = method.solve(objective, np.zeros((1, 7)), tolerance)
    gradient = objective.evaluate(solution.weights, order=1).gradient
    assert np.linalg.norm(least_subgradients(solution.weights, gradient, objective.l1)) <= tolerance
    if l1_ratio == 0.9:
        assert np.flatnonzero(solution.weights[0]).tolist() == [6]


def test_the_minimiser_of_a_model_is_exact():
    """The conditions of the minimiser hold to rounding, from random starts and with weights that have no penalty."""
    rng = np.random.default_rng(0)
    for _ in range(30):
        root = rng.normal(size=(8, 8))
        hessian, gradient, weights = root @ root.T + 0.1 * np.eye(8), rng.normal(size=8) * 3, rng.normal(size=8)
        weights[rng.random(8) < 0.4] = 0.0
        l1 = np.where(rng.random(8) < 0.2, 0.0, 1.5)
        found = minimiser_of_model(gradient, hessian, weights, l1)
        slopes = gradient + hessian @ (found - weights)
        assert np.abs(least_subgradients(found[None], slopes[None], l1)).max() < 1e-9


class Boasting:
    """A first method that stays at its start and claims that this is the minimiser."""

    def solve(self, objective, start, tolerance):
        """Claim a subgradient of 0."""
        return Solution(start.copy(), np.zeros(len(start)))


class Failing:
    """A first method that divides by 0."""

    def solve(self, objective, start, tolerance):
        """Raise."""
        raise ZeroDivisionError


class Lost:
    """A first method that ends nowhere."""

    def solve(self, objective, start, tolerance):
        """No numbers."""
        return Solution(np.full_like(start, np.nan), np.zeros(len(start)))


@pytest.mark.parametrize("first", [Boasting, Failing, Lost])
def test_the_whole_solver_does_without_its_first_method(monkeypatch, first):
    """Proximal steps reach the tolerance alone, from wherever the first method ended."""
    monkeypatch.setattr(proximal, "ProximalNewton", first)
    objective = made(l2=6.0)
    solution = NewtonThenFallback().solve(objective, np.zeros((1, 7)), 1e-8)
    assert np.linalg.norm(objective.gradients(solution.weights)) <= 1e-8


@dataclass
class Disturbed:
    """An objective whose gradients have errors of a given size, in the direction that holds steps up."""

    inner: object
    size: float
    passes: int = 0

    def __getattr__(self, name):
        """All that is not disturbed."""
        return getattr(self.inner, name)

    def evaluate(self, weights, order):
        """A gradient with an error against the step, which is longest where it hurts most."""
        self.passes += 1
        gradient = self.inner.evaluate(weights, order).gradient
        direction = least_subgradients(weights, gradient, self.inner.l1)
        error = -direction * (self.size / max(np.linalg.norm(direction), 1e-300))
        return Totals(np.zeros(1), gradient + error, np.empty((1, 0, 0)))

    def gradients(self, weights):
        """As in `evaluate`."""
        return least_subgradients(weights, self.evaluate(weights, 1).gradient, self.inner.l1)


@pytest.mark.parametrize("l1_ratio", [0.1, 0.6])
def test_proximal_steps_reach_the_tolerance_with_the_largest_errors_that_the_theorem_admits(l1_ratio):
    """Errors of rho in the worst direction end at a computed norm of 4.9 rho, within the number of steps of theorem 4."""
    for rho in (1e-3, 1e-6):
        objective = Disturbed(made(l2=6.0, l1_ratio=l1_ratio), rho)
        solution = GradientDescent().solve(objective, np.zeros((1, 7)), 4.9 * rho)
        assert solution.gradient_norm[0] <= 4.9 * rho
        condition = objective.smoothness / objective.l2 * (1 + 1e-9)
        first = np.linalg.norm(made(l2=6.0, l1_ratio=l1_ratio).gradients(np.zeros((1, 7)))) + rho
        assert objective.passes <= 4 + (6 * condition + 1) * math.log(condition * (first / rho) ** 2)


def test_a_warm_start_that_the_theorem_does_not_admit_is_not_taken():
    """From far away it begins at 0 anew."""
    objective = made(l2=6.0)
    far = GradientDescent().solve(objective, np.full((1, 7), 1e9), 1e-7)
    zero = GradientDescent().solve(objective, np.zeros((1, 7)), 1e-7)
    np.testing.assert_array_equal(far.weights, zero.weights)
