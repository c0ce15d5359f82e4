"""Levels that nobody lists: the law of what is released, the threshold, what neighbours cost, and what stays hidden."""

from __future__ import annotations

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import stats

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.noise import Entropy
from confide.privacy.tables import MOST_UNLISTED, LevelsPlan

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
CHANGED = {REPLACE: 2.0, ADD: 1.0}


def released_chance(plan, rows):
    """With which probability a level of so many rows is released, by the law of the noise."""
    steps, scale = (plan.threshold - rows) / plan.lattice.step, plan.lattice.scale / plan.lattice.step
    assert steps == int(steps)
    upper = math.exp(-abs(steps if steps > 0 else steps - 1) / scale) / (1.0 + math.exp(-1.0 / scale))
    return upper if steps > 0 else 1.0 - upper


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("n_columns", [1, 4, MOST_UNLISTED])
@pytest.mark.parametrize("budget", [ApproxDP(0.5, 1e-6), ApproxDP(8.0, 1e-12), ApproxDP(0.01, 1e-3)])
def test_noise_and_threshold_spend_the_budget_and_no_more(budget, n_columns, relation):
    """Theorem 1: noise for epsilon less 2 delta, and a level of one row alone has a chance of at most delta / c.

    A sensitivity off by 2 either way, and a chance off by 1.5, are noticed.
    """
    plan = LevelsPlan.of(n_columns, budget, relation)
    noise = plan.lattice
    spent = CHANGED[relation] * n_columns / noise.scale + 2.0 * budget.delta
    assert 0.99 * budget.epsilon < spent <= budget.epsilon
    assert 0.67 * budget.delta < n_columns * released_chance(plan, 1) <= budget.delta
    assert noise.step <= 1.0
    assert (plan.event.budget, plan.event.curve, plan.event.neighbours) == (budget, None, relation)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_neighbours_are_within_epsilon_and_delta(relation):
    """The exact divergence of all pairs of two small tables, one column, every outcome; and near the bound, so half fails.

    Rows of two levels that both have, and of one that one of them has alone.
    """
    budget = ApproxDP(1.0, 0.02)
    plan = LevelsPlan.of(1, budget, relation)
    step, scale = plan.lattice.step, plan.lattice.scale / plan.lattice.step

    def law(rows):
        """Outcomes of one level: hidden, or a number of steps above the threshold, 64 of them together."""
        if rows == 0:
            return np.array([1.0] + [0.0] * (cells // 64))
        x = np.arange(cells) + (plan.threshold - rows) / step
        released = np.exp(-np.abs(x) / scale) * math.tanh(0.5 / scale)
        return np.concatenate([[1.0 - released_chance(plan, rows)], released.reshape(-1, 64).sum(axis=1)])

    cells = 64 * int(scale / 4)
    near = round(plan.threshold)
    base = (near, near, 1)
    moves = [(-1, 0, 0), (0, 0, -1)] if relation is ADD else [(-1, 1, 0), (0, 1, -1), (1, 0, -1)]
    worst = 0.0
    for move in moves:
        other = tuple(np.add(base, move))
        for here, there in ((base, other), (other, base)):
            # A level that stays has the same noise in both.
            kept = [(law(a), law(b)) for a, b in zip(here, there, strict=True) if a != b]
            p, q = (functools.reduce(np.multiply.outer, [pair[i] for pair in kept]) for i in (0, 1))
            worst = max(worst, float(np.maximum(p - math.exp(budget.epsilon) * q, 0.0).sum()))
    assert 0.5 * budget.delta < worst <= budget.delta


def test_levels_of_one_row_come_out_as_often_as_planned():
    """40,000 levels of one row at a delta of a tenth; a threshold with half or twice the chance is rejected."""
    plan = LevelsPlan.of(1, ApproxDP(3.0, 0.1), REPLACE)
    found = len(plan.release([{f"v{i}": 1 for i in range(40_000)}], Entropy.seeded(3))[0])

    def p_value(chance):
        return stats.binomtest(found, 40_000, chance).pvalue

    assert p_value(released_chance(plan, 1)) > 1e-3
    assert p_value(0.05) < 1e-9
    assert p_value(0.2) < 1e-9


def test_released_numbers_have_the_noise_of_the_plan():
    """Large levels, by the mean absolute error; noise 15% smaller would be noticed. Every level has noise of its own."""
    plan = LevelsPlan.of(3, ApproxDP(1.0, 1e-6), REPLACE)
    counts = [{f"v{i}": 10_000 + i for i in range(2_000)} for _ in range(3)]
    found = plan.release(counts, Entropy.seeded(5))
    noise = np.array([found[k][level] - rows for k in range(3) for level, rows in counts[k].items()])
    assert np.abs(noise).mean() == pytest.approx(6.0, rel=0.07)
    assert abs(np.corrcoef(noise[:2000], noise[2000:4000])[0, 1]) < 0.1
    assert np.unique(noise).size > 1_000


def test_without_noise_the_threshold_decides_and_names_give_the_order(monkeypatch):
    """Forced outcomes: a count just below the threshold stays hidden, the next is released; order tells nothing."""
    plan = LevelsPlan.of(2, ApproxDP(1.0, 1e-6), ADD)
    monkeypatch.setattr(LatticeLaplace, "integers", lambda self, n, entropy: [0] * n)
    least = math.ceil(plan.threshold)
    counts = {"b": least, "a": least + 5, "c": least - 1, "z": 0, "é": 10 * least}
    for order in itertools.permutations(counts):
        first, second = plan.release([{level: counts[level] for level in order}, {}], Entropy.fresh())
        assert list(first.items()) == [("a", least + 5.0), ("b", float(least)), ("é", 10.0 * least)]
        assert second == {}


def test_a_level_that_no_row_has_is_never_released():
    """Not even where all noise is far above the threshold: it has no noise."""
    plan = LevelsPlan.of(1, ApproxDP(1e-3, 1e-6), REPLACE)
    assert all(plan.release([{"a": 0}], Entropy.seeded(k)) == ({},) for k in range(50))


def test_large_levels_are_found_with_the_promised_chance():
    """Theorem 3, by the law; a tenth of a scale fewer rows would do for a smaller promise."""
    plan = LevelsPlan.of(2, ApproxDP(1.0, 1e-6), REPLACE)
    step = plan.lattice.step
    for level in (0.6, 0.95, 0.999):
        rows = math.ceil(plan.found_from(level) / step) * step
        assert level <= released_chance(plan, rows) < level + 0.01
        assert released_chance(plan, rows - step * round(0.2 * plan.lattice.scale / step)) < level


def test_rows_of_one_person_share_the_budget():
    """Three rows: noise for a third of epsilon, and a smaller delta, by group privacy."""
    one, three = (LevelsPlan.of(1, ApproxDP(0.9, 1e-6), REPLACE, rows) for rows in (1, 3))
    assert three.lattice.scale == pytest.approx(3.0 * one.lattice.scale, rel=1e-3)
    share = math.expm1(0.3) / math.expm1(0.9)
    assert released_chance(three, 1) == pytest.approx(1e-6 * share, rel=0.01)
    assert three.event.rows_per_person == 3


@pytest.mark.parametrize("budget", [PureDP(1.0), ZCDP(0.1), PureDP(math.inf)])
def test_without_a_delta_levels_are_refused_in_words(budget):
    with pytest.raises(ParameterError, match=r"need a budget with a delta.*or list the categories"):
        LevelsPlan.of(1, budget, REPLACE)


def test_what_cannot_be_planned_is_refused():
    """No column or too many, a delta as large as epsilon, and counts or plans of something else."""
    for n_columns in (0, MOST_UNLISTED + 1):
        with pytest.raises(ParameterError, match="1 to 500 columns"):
            LevelsPlan.of(n_columns, ApproxDP(1.0, 1e-6), REPLACE)
    with pytest.raises(ParameterError, match="delta of the budget is too large"):
        LevelsPlan.of(1, ApproxDP(0.1, 0.05), REPLACE)
    plan = LevelsPlan.of(2, ApproxDP(1.0, 1e-6), REPLACE)
    with pytest.raises(ParameterError, match="another mechanism"):
        plan.release([{}], Entropy.fresh())

    class Other(LevelsPlan):
        """A plan of another mechanism."""

    other = Other(plan.n_columns, plan.lattice, plan.threshold, plan.budget, plan.neighbours, plan.event)
    with pytest.raises(ParameterError, match="another mechanism"):
        other.release([{}, {}], Entropy.fresh())
