"""Quantiles and levels at their worst pairs of neighbours, as black boxes: releases never show more than was promised.

Events and pairs are fixed beforehand; confidence bounds are Clopper and Pearson's. Each attack has power: with three fifths
of the noise the same number of releases refutes the guarantee.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.privacy.noise import Entropy
from confide.privacy.selection import QuantilesPlan, Selection, places
from confide.privacy.tables import LevelsPlan
from tests.audit.attacks import lower_bound, upper_bound

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
GRID, WEIGHTS, N = (0.0, 1.0), (1, 3), 8_000
LEVELS = ApproxDP(1.0, 0.04)


def shown(first, second, epsilon):
    """Lower bound on P - exp(epsilon) Q of an event, from its frequencies in N releases from either data set."""
    p, q = (sum(event) for event in (first, second))
    return lower_bound(p, N) - math.exp(epsilon) * upper_bound(q, N)


def quantiles_shown(epsilon_spent, relation):
    """Two columns, whose medians a row moves from the first candidate to the second, which weighs more; epsilon is 1."""
    plan = QuantilesPlan.of([GRID] * 2, [WEIGHTS] * 2, [Fraction(1, 2)], PureDP(1.0), relation)
    assert plan.together
    plan = replace(plan, selection=Selection("exponential", epsilon_spent))
    here, there = ([0.0, 0.0, 1.0], [0.0, 1.0, 1.0]) if relation is REPLACE else ([0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0])
    found = []
    for side, rows in enumerate((here, there)):
        counts, entropy = [places(GRID, np.array(rows))] * 2, Entropy.seeded(40 + side)
        found.append([plan.release(counts, entropy) == ((0.0,), (0.0,)) for _ in range(N)])
    return shown(*found, 1.0)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_releases_of_quantiles_do_not_refute_the_guarantee(relation):
    assert quantiles_shown(1.0, relation) <= 0.0


def test_releases_of_quantiles_at_more_than_the_budget_refute_it():
    assert quantiles_shown(1.0 / 0.6, REPLACE) > 0.0


def levels_shown(plan, first, second, entropies=(50, 51)):
    """The event that a level is released, whose rows are so many in either data set."""
    found = []
    for rows, seed in zip((first, second), entropies, strict=True):
        (released,) = plan.release([{f"{i}": rows for i in range(N)}], Entropy.seeded(seed))
        found.append([f"{i}" in released for i in range(N)])
    return shown(*found, plan.budget.epsilon) - plan.budget.delta


def with_noise(plan, factor):
    """The plan with this part of its noise, at the same threshold."""
    return replace(plan, lattice=replace(plan.lattice, epsilon=plan.lattice.epsilon / factor))


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_releases_of_levels_do_not_refute_the_guarantee(relation):
    """A level of one row or none, and levels just below the threshold of one row more or less."""
    plan = LevelsPlan.of(1, LEVELS, relation)
    near = round(plan.threshold)
    for first, second in ((1, 0), (near, near - 1), (near - 1, near)):
        assert levels_shown(plan, first, second) <= 0.0


def test_a_level_of_one_row_refutes_a_threshold_that_is_too_low():
    """The chance of a threshold at three fifths of its distance from one row."""
    plan = LevelsPlan.of(1, LEVELS, REPLACE)
    step = plan.lattice.step
    lower = replace(plan, threshold=1.0 + step * round(0.6 * (plan.threshold - 1.0) / step))
    assert levels_shown(lower, 1, 0) > 0.0


def test_levels_near_the_threshold_refute_noise_that_is_too_small():
    """One row more or less, at three tenths of the noise: a row is half of what replace-one pays for."""
    plan = with_noise(LevelsPlan.of(1, LEVELS, ADD), 0.3)
    near = math.ceil(plan.threshold)
    assert levels_shown(plan, near, near - 1) > 0.0
