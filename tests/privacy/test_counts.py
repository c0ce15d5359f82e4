"""Noisy counts: the sensitivity by search, the law of the noise, and what leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Counts, counted
from tests.covering import pairs_of

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BUDGETS = {"pure": PureDP(0.7), "approximate": ApproxDP(0.7, 0.1), "zcdp": ZCDP(0.1)}
ACCEPT, REJECT = 1e-3, 1e-8
CELLS = np.array([0, 3, 3, 7, 1, 3, 0])


def exact(cells, n_cells=8):
    """The counts without noise, through the release itself."""
    plan = SumPlan.of(Counts(n_cells, REPLACE), PureDP(math.inf))
    return plan.release(counted(np.asarray(cells), n_cells), Entropy.seeded(0))


def test_without_privacy_the_counts_are_those_of_the_rows():
    """Each row counts once; a cell that does not exist is the nearest."""
    assert exact(CELLS).tolist() == [2, 1, 0, 3, 0, 0, 0, 1]
    assert exact([-5, 99, 2]).tolist() == [1, 0, 1, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours):
    """Over all neighbours of one data set; the bound is attained."""
    l1, l2 = 0.0, 0.0
    for row in range(len(CELLS)):
        for cell in range(-2, 10):
            other = np.delete(CELLS, row) if neighbours is ADD else np.where(np.arange(len(CELLS)) == row, cell, CELLS)
            difference = exact(CELLS) - exact(other)
            l1, l2 = max(l1, np.abs(difference).sum()), max(l2, float(np.linalg.norm(difference)))
    expected = (2.0, math.sqrt(2.0)) if neighbours is REPLACE else (1.0, 1.0)
    assert (l1, l2) == pytest.approx(expected)
    laplace = SumPlan.of(Counts(8, neighbours), PureDP(1.0)).lattice
    gaussian = SumPlan.of(Counts(8, neighbours), ZCDP(0.1)).lattice
    assert l1 <= math.sqrt(8) * laplace.l2_sensitivity <= 1.001 * l1
    assert l2 <= gaussian.l2_sensitivity <= 1.001 * l2


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], persons=[1, 2])
def test_released_counts_scatter_by_the_theorems_law(name, neighbours, persons):
    """600 releases of 8 counts; noise 0.7 or 1.4 times as large would be rejected."""
    plan = SumPlan.of(Counts(8, neighbours, persons), BUDGETS[name])
    entropy = Entropy.seeded(3)
    noises = np.array([plan.release(counted(CELLS, 8), entropy) for _ in range(600)]) - exact(CELLS)
    changed = 2.0 if neighbours is REPLACE else 1.0
    if name == "pure":
        law = stats.laplace(scale=changed * persons / 0.7)
    elif name == "zcdp":
        law = stats.norm(scale=math.sqrt(changed) * persons / math.sqrt(0.2))
    else:
        law = stats.norm(scale=math.sqrt(changed) * gaussian_deviation(plan.budget, persons))
    values = noises.ravel()
    assert stats.kstest(values, law.cdf).pvalue > ACCEPT
    for factor in (0.7, 1.4):
        assert stats.kstest(factor * values, law.cdf).pvalue < REJECT
    assert plan.deviation == pytest.approx(law.std(), rel=0.01)
    assert np.abs(np.corrcoef(noises.T) - np.eye(8)).max() < 0.25


def gaussian_deviation(budget, persons):
    """The analytic Gaussian mechanism at the budget of a row, over the sensitivity, by its own bisection."""
    from confide.privacy.budgets import budget_of_row

    of_row = budget_of_row(budget, persons)

    def delta(sigma):
        one, two = 0.5 / sigma - of_row.epsilon * sigma, -0.5 / sigma - of_row.epsilon * sigma
        return stats.norm.cdf(one) - math.exp(of_row.epsilon) * stats.norm.cdf(two)

    low, high = 1e-3, 1e6
    for _ in range(200):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if delta(middle) <= of_row.delta else (middle, high)
    return high


@pytest.mark.parametrize("name", BUDGETS)
def test_the_event_is_that_of_the_budget(name):
    """What a ledger counts; with several rows a person it has no curve of one row."""
    plan = SumPlan.of(Counts(8, REPLACE), BUDGETS[name])
    assert plan.event.budget == BUDGETS[name]
    assert (plan.event.curve is None) == (name == "pure")
    several = SumPlan.of(Counts(8, REPLACE, 3), BUDGETS[name])
    assert several.event.curve is None
    assert several.event.rows_per_person == 3
    assert several.deviation > 2.0 * plan.deviation


def test_the_less_noisy_law_is_taken():
    """Laplace noise at a small delta, where few counts change; Gaussian noise at a large one and for rho."""
    small = SumPlan.of(Counts(8, REPLACE), ApproxDP(0.7, 1e-6))
    assert isinstance(small.lattice, LatticeLaplace)
    assert isinstance(SumPlan.of(Counts(8, REPLACE), ApproxDP(0.7, 0.1)).lattice, LatticeGaussian)
    assert isinstance(SumPlan.of(Counts(8, REPLACE), ZCDP(0.1)).lattice, LatticeGaussian)


def test_a_plan_without_cells_is_refused():
    """Before any row."""
    with pytest.raises(ParameterError, match="at least one cell"):
        SumPlan.of(Counts(0, REPLACE), PureDP(1.0))


def test_one_cell_is_enough():
    """The number of all rows: its noise is that of one count."""
    assert SumPlan.of(Counts(1, ADD), PureDP(1.0)).query.n_cells == 1
    with pytest.raises(ParameterError, match="at least one row a person"):
        SumPlan.of(Counts(1, ADD, 0), PureDP(1.0))
