"""The quieter of two exact laws: which is taken, and what it costs."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan, SumQuery, least_noise
from confide.privacy.tables import Counts


def test_few_numbers_get_laplace_noise_and_many_gaussian():
    """At a tiny delta for few entries; the curve that a ledger counts is that of the noise."""
    laplace, curve = least_noise(3, 1.0, 1.0, ApproxDP(1.0, 1e-12))
    assert isinstance(laplace, LatticeLaplace)
    assert curve == PureMechanism(1.0)
    gaussian, curve = least_noise(100, 1.0, 10.0, ApproxDP(1.0, 1e-6))
    assert isinstance(gaussian, LatticeGaussian)
    assert curve == GaussianMechanism(1.0 / gaussian.multiplier)


@pytest.mark.parametrize("size", [1, 4, 30, 300])
@pytest.mark.parametrize("budget", [ApproxDP(0.5, 1e-6), ApproxDP(8.0, 1e-3), ZCDP(0.02), ZCDP(2.0)])
def test_no_other_law_is_quieter(size, budget):
    """Each law alone, at the same budget, from its formula: sqrt(2) times the L1 distance over epsilon, and mu."""
    found, curve = least_noise(size, 1.0, math.sqrt(size), budget)
    pure = math.sqrt(2.0 * budget.rho) if isinstance(budget, ZCDP) else budget.epsilon
    laplace = math.sqrt(2.0 * size) / pure
    assert found.deviation <= 1.002 * laplace
    if isinstance(found, LatticeGaussian):
        assert found.deviation == pytest.approx(1.0 / curve.mu, rel=2e-3)
    else:
        assert found.deviation == pytest.approx(laplace, rel=2e-3)
        assert curve.epsilon == pytest.approx(pure)


def test_a_pure_budget_has_laplace_noise_however_many_numbers_there_are():
    """Gaussian noise has no pure epsilon."""
    found, curve = least_noise(1000, 1.0, 30.0, PureDP(0.25))
    assert isinstance(found, LatticeLaplace)
    assert found.deviation == pytest.approx(math.sqrt(2.0) * 30.0 / 0.25, rel=2e-3)
    assert curve == PureMechanism(0.25)


@pytest.mark.parametrize("rho", [10.0, 100.0])
def test_laplace_noise_under_rho_costs_rho_and_not_less(rho):
    """Large budgets have Laplace noise; its pure epsilon is turned into rho by the formula epsilon tanh(epsilon / 2)."""
    found, curve = least_noise(1, 1.0, 1.0, ZCDP(rho))
    assert isinstance(found, LatticeLaplace)
    assert 0.999 * rho <= curve.epsilon * math.tanh(0.5 * curve.epsilon) <= rho
    assert found.deviation == pytest.approx(math.sqrt(2.0) / curve.epsilon, rel=2e-3)


@pytest.mark.parametrize("neighbours", list(Neighbours))
@pytest.mark.parametrize("persons", [1, 3])
def test_an_event_says_whom_it_protects(neighbours, persons):
    """Relation and rows of a person are those that were given; a curve speaks of one row, and not of pure budgets."""
    for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)):
        event = Event.of(budget, PureMechanism(0.3), Counts(1, neighbours, persons))
        assert (event.budget, event.rows_per_person, event.neighbours) == (budget, persons, neighbours)
        assert (event.curve is None) == (persons > 1 or isinstance(budget, PureDP))


class _OfTwoProblems(SumQuery):
    """A sum of one number that is computed for two problems at once."""

    size, distances = 1, (1.0, 1.0)
    protected = Counts(1, Neighbours.REPLACE_ONE)

    def check(self, rows):
        """Take any rows."""

    def summed(self, rows):
        """As many numbers as there are rows."""
        return rows[:, None]


def test_a_vector_of_another_size_is_not_released():
    """Distances and noise are those of `size` numbers; more numbers than these would have the noise of fewer."""
    lattice, curve = least_noise(1, 1.0, 1.0, PureDP(1.0))
    query = _OfTwoProblems()
    plan = SumPlan(query, PureDP(1.0), lattice, Event.of(PureDP(1.0), curve, query.protected))
    with pytest.raises(ValueError, match="reshape"):
        plan.release(np.zeros(2), Entropy.fresh())
    assert plan.release(np.zeros(1), Entropy.fresh()).shape == (1,)


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.5)])
@pytest.mark.parametrize(
    "query",
    [Counts(3, Neighbours.REPLACE_ONE), Counts(5, Neighbours.ADD_OR_REMOVE_ONE), Counts(3, Neighbours.ADD_OR_REMOVE_ONE, 2)],
    ids=["relation", "size", "persons"],
)
def test_noise_is_taken_for_no_other_query(query, budget):
    """Noise for one relation, size or cap on rows of a person, and the event that says so, are those of one query."""
    plan, counts = SumPlan.of(Counts(3, Neighbours.ADD_OR_REMOVE_ONE), budget), np.array([3, 1, 4])
    assert plan.release(counts, Entropy.fresh()).shape == (3,)
    with pytest.raises(ParameterError, match="another"):
        replace(plan, query=query).release(np.resize(counts, query.size), Entropy.fresh())
