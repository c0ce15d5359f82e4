"""Quantiles of columns: what one row changes, the exact law of a choice, what it costs neighbours, and how far off it is."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, concentrated_epsilon
from confide.privacy.events import PureMechanism
from confide.privacy.noise import Entropy
from confide.privacy.selection import QuantilesPlan, Selection, _exponentials, mistakes, places, rows_off

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
GRID, WEIGHTS = (0.0, 1.0, 2.5), (3, 1, 2)
CELLS = (-1.0, 0.0, 1.0, 2.0, 2.5, 9.0, math.nan)
"""Values below, on and beyond each candidate, and a missing cell."""
QUANTILES = (Fraction(1, 10), Fraction(1, 2), Fraction(3, 4))


def plan_of(grids, quantiles, budget, relation, rows=1, weights=None):
    return QuantilesPlan.of(grids, weights or [(1,) * len(grid) for grid in grids], quantiles, budget, relation, rows)


def distances(rows, quantile, unit=1):
    """How far each candidate is from being the quantile, by definition, row by row: it stands for all up to the next."""
    present = [max(row, GRID[0]) for row in rows if not math.isnan(row)]
    wanted, ends = quantile * len(present), (*GRID[1:], math.inf)
    below = [sum(row < candidate for row in present) for candidate in GRID]
    up_to = [sum(row < end for row in present) for end in ends]
    return [
        math.ceil(max(Fraction(0), less - wanted, wanted - most) / unit) for less, most in zip(below, up_to, strict=True)
    ]


def neighbours_of(rows, relation):
    """Data sets that differ from these rows in one."""
    for place in range(len(rows)):
        without = rows[:place] + rows[place + 1 :]
        if relation is ADD:
            yield without
        else:
            yield from ((*without, cell) for cell in CELLS)


def data_sets(n_rows):
    return itertools.combinations_with_replacement(CELLS, n_rows)


def exact_law(columns, quantiles, relation, epsilon, together, weights=WEIGHTS):
    """Probabilities of all vectors of candidates, by the formula."""
    scores = [mistakes(places(GRID, np.array(cells)), q, relation) for cells in columns for q in quantiles]
    law = {}
    for vector in itertools.product(range(len(GRID)), repeat=len(scores)):
        off = [int(of_list[i]) for of_list, i in zip(scores, vector, strict=True)]
        law[vector] = math.prod(weights[i] for i in vector) * math.exp(-epsilon * (max(off) if together else sum(off)) / 2)
    total = sum(law.values())
    return {vector: chance / total for vector, chance in law.items()}


@pytest.mark.parametrize("quantile", QUANTILES)
def test_distances_are_those_of_the_definition(quantile):
    """For all data sets of up to two rows, in the unit of each relation; one candidate at least is the quantile."""
    for n_rows in range(3):
        for rows in data_sets(n_rows):
            counts = places(GRID, np.array(rows))
            assert mistakes(counts, quantile, REPLACE).tolist() == distances(rows, quantile)
            assert mistakes(counts, quantile, ADD).tolist() == distances(rows, quantile, max(quantile, 1 - quantile))
            assert mistakes(counts, quantile, REPLACE).min() == 0
            assert counts.sum() == sum(not math.isnan(row) for row in rows)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("quantile", QUANTILES)
def test_one_row_changes_each_distance_by_at_most_one(relation, quantile):
    """Over all neighbours of all data sets of three rows, missing cells among them; 1 is attained, so half would fail."""
    worst = 0
    for rows in data_sets(3):
        here = mistakes(places(GRID, np.array(rows)), quantile, relation)
        for other in neighbours_of(rows, relation):
            worst = max(worst, np.abs(here - mistakes(places(GRID, np.array(other)), quantile, relation)).max())
    assert worst == 1


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_neighbours_are_as_probable_as_the_budget_says(relation, together):
    """Two columns at two quantiles, both columns of a row changed: the worst ratio comes near epsilon and stays below.

    A choice of each by itself costs one of them what its selection says, and its losses have that range.
    """
    epsilon, quantiles, worst, widest = 0.8, QUANTILES[:2], 0.0, 0.0
    plan = plan_of([GRID] * 2, quantiles, PureDP(epsilon), relation)
    assert plan.together
    columns = 2 if together else 1
    for rows in itertools.combinations_with_replacement(CELLS, 3):
        here = exact_law([rows] * columns, quantiles[: 1 + together], relation, plan.selection.epsilon, together)
        for other in neighbours_of(rows, relation):
            there = exact_law([other] * columns, quantiles[: 1 + together], relation, plan.selection.epsilon, together)
            losses = [math.log(here[vector] / there[vector]) for vector in here]
            worst, widest = max(worst, *map(abs, losses)), max(widest, max(losses) - min(losses))
    assert 0.5 * epsilon < worst <= epsilon
    assert widest <= epsilon


@pytest.mark.parametrize("together", [True, False])
def test_choices_have_the_exact_law(together):
    """6,000 releases of two tiny columns by chi-square; an epsilon that is off by 2, either way, is rejected."""
    columns, entropy = ((0.0, 1.0, 1.0, 2.0, 2.5, 2.5, math.nan), (0.0, 0.0, 0.0, 0.0, 9.0)), Entropy.seeded(11)
    plan = plan_of([GRID] * 2, [Fraction(3, 4)], PureDP(1.2) if together else ZCDP(0.25), REPLACE, weights=[WEIGHTS] * 2)
    assert plan.together == together
    counts = [places(GRID, np.array(cells)) for cells in columns]
    drawn = [tuple(GRID.index(each[0]) for each in plan.release(counts, entropy)) for _ in range(6_000)]

    def p_value(factor, weights=WEIGHTS):
        law = exact_law(columns, [Fraction(3, 4)], REPLACE, factor * plan.selection.epsilon, together, weights)
        return stats.chisquare([drawn.count(v) for v in law], [chance * len(drawn) for chance in law.values()]).pvalue

    assert p_value(1.0) > 1e-3
    assert p_value(0.5) < 1e-9
    assert p_value(2.0) < 1e-9
    assert p_value(1.0, (1, 1, 1)) < 1e-9


def test_exponentials_are_exact_to_many_digits():
    """Against the exponential function in doubles, whatever the rate; the first is the power of two itself."""
    for rate in (Fraction(1, 10**9), Fraction(0.025), Fraction(40)):
        found = _exponentials(rate, [0, 1, 7, 30])
        assert found[0].bit_count() == 1
        for level, number in zip((0, 1, 7, 30), found, strict=True):
            assert math.log(number) - math.log(found[0]) == pytest.approx(-float(rate) * level, rel=1e-12, abs=1e-12)
            assert number > 2**128


def test_a_choice_together_is_capped_and_takes_a_huge_epsilon():
    """Counts of a thousand million rows, and an epsilon of a thousand million, take no memory; the best are chosen."""
    off, weights = np.array([10**9, 0, 10**9 + 5]), np.array([1, 1, 100])
    for epsilon in (1e-6, 1e-3, 1.0, 1e9):
        found = [
            Selection("exponential", epsilon).choose_together([off] * 3, [weights] * 3, Entropy.seeded(k)) for k in range(9)
        ]
        assert found == [[1, 1, 1]] * 9


@pytest.mark.parametrize("budget", [PureDP(0.6), ApproxDP(0.6, 1e-6), ApproxDP(0.6, 1e-12), ZCDP(0.02)])
@pytest.mark.parametrize("n_columns", [3, 300])
def test_what_all_choices_cost_is_the_budget(budget, n_columns):
    """From below, and not a thousandth less: one choice its epsilon, k of them k epsilon^2 / 8 of concentrated privacy."""
    plan = plan_of([GRID] * n_columns, QUANTILES[:2], budget, REPLACE)
    part, k = plan.selection.epsilon, 2 * n_columns
    assert plan.together == (not isinstance(budget, ZCDP) and (isinstance(budget, PureDP) or n_columns == 3))
    assert plan.event.budget == budget
    if isinstance(budget, ZCDP):
        spent, limit = k * part**2 / 8.0, budget.rho
    elif plan.together:
        spent, limit = part, budget.epsilon
    else:
        spent, limit = concentrated_epsilon(k * part**2 / 8.0, budget.delta), budget.epsilon
    assert 0.999 * limit < spent <= limit
    is_curve = isinstance(budget, ApproxDP) and plan.together
    assert plan.event.curve == (PureMechanism(0.6) if is_curve else None)


@pytest.mark.parametrize("budget", [PureDP(0.5), ApproxDP(0.5, 1e-9)])
def test_lists_that_may_all_be_lost_at_once_are_chosen_one_by_one(budget):
    """From 8 k / epsilon rows beyond the outermost quantile on they are chosen together. Half, and twice, are noticed.

    Two choices by themselves have half of epsilon each, for which no delta is used.
    """
    quantiles, grids = [Fraction(1, 100), Fraction(9, 10)], [(1,) * len(GRID)]
    for n_rows, together in ((3100, False), (3300, True), (math.inf, True)):
        plan = QuantilesPlan.of([GRID], grids, quantiles, budget, REPLACE, 1, n_rows)
        assert plan.together == together
        assert plan.selection.epsilon == pytest.approx(0.5 if together else 0.25, rel=1e-9)
        assert plan.event.curve == (None if isinstance(budget, PureDP) else PureMechanism(0.5))


def test_rows_of_one_person_share_the_budget():
    """Three rows: a third of epsilon, a ninth of rho; and no finer account is charged."""
    one, three = (plan_of([GRID], [Fraction(1, 2)], PureDP(0.6), REPLACE, rows) for rows in (1, 3))
    assert three.selection.epsilon == pytest.approx(one.selection.epsilon / 3.0)
    assert three.event.rows_per_person == 3
    assert plan_of([GRID], [Fraction(1, 2)], ApproxDP(0.6, 1e-6), REPLACE, 3).event.curve is None
    rho = plan_of([GRID], [Fraction(1, 2)], ZCDP(0.09), REPLACE, 3)
    assert rho.selection.epsilon == pytest.approx(math.sqrt(8.0 * 0.01))
    few, many = (plan_of([GRID] * 300, QUANTILES, ApproxDP(0.6, 1e-6), REPLACE, rows) for rows in (1, 3))
    assert many.selection.epsilon < few.selection.epsilon / 3.0


def test_quantiles_of_a_column_rise_and_columns_keep_their_order():
    """Whatever is drawn; each number is a candidate of its own column."""
    grids, entropy = ((0.0, 1.0), (5.0, 6.0, 7.0)), Entropy.seeded(2)
    for budget in (PureDP(1e-6), ZCDP(1e-6)):
        plan = plan_of(grids, QUANTILES, budget, ADD)
        counts = [places(grid, np.array([0.5, 5.5])) for grid in grids]
        for _ in range(50):
            found = plan.release(counts, entropy)
            assert all(list(of_column) == sorted(of_column) for of_column in found)
            assert all(set(of_column) <= set(grid) for of_column, grid in zip(found, grids, strict=True))


@pytest.mark.parametrize("budget", [PureDP(0.3), ZCDP(0.01)])
@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_few_releases_are_further_off_than_promised(relation, budget):
    """At level 0.8 fewer than a fifth of 300 releases exceed it; a twentieth of it, by a tenth of them."""
    rng = np.random.default_rng(4)
    grid, values, entropy = tuple(np.linspace(0.0, 1.0, 51)), rng.uniform(size=400), Entropy.seeded(8)
    plan = plan_of([grid, grid], [Fraction(1, 2)], budget, relation)
    counts = places(grid, values)
    distance = dict(zip(grid, distances_of(counts, 0.5), strict=True))
    off = np.array([max(distance[each[0]] for each in plan.release([counts] * 2, entropy)) for _ in range(300)])
    assert (off > rows_off(plan, 0.8)).mean() < 0.2
    assert (off > rows_off(plan, 0.8) / 20.0).mean() > 0.1


def distances_of(counts, quantile):
    """In rows, from counts by cell."""
    up_to, wanted = counts.cumsum(), quantile * counts.sum()
    return np.maximum(0.0, np.maximum(up_to - counts - wanted, wanted - up_to))


def test_a_large_epsilon_finds_the_quantile():
    """The candidate that is the quantile, in double precision or single, also where most cells are equal."""
    plan = plan_of([GRID], [Fraction(9, 10)], PureDP(1e6), REPLACE)
    for values in (np.array([1.0] * 19 + [9.0]), np.array([1.0] * 19 + [9.0], dtype=np.float32)):
        assert plan.release([places(GRID, values)], Entropy.fresh()) == ((1.0,),)


def test_values_beyond_all_candidates_count():
    """Below the first as the first, above the last as the last, and infinite ones; missing ones nowhere."""
    values = np.array([-5.0, -math.inf, 0.0, 0.9, 1.0, 99.0, math.inf, math.nan])
    assert places(GRID, values).tolist() == [4, 1, 2]


@pytest.mark.parametrize(
    ("grids", "quantiles", "message"),
    [
        ([], QUANTILES, "need a column"),
        ([(1.0,)], QUANTILES, "two or more candidates"),
        ([(1.0, 1.0)], QUANTILES, "rising order"),
        ([GRID], [], "need a column"),
        ([GRID], [Fraction(1, 2), Fraction(1, 2)], "rising order"),
        ([GRID], [Fraction(0)], "strictly between"),
        ([GRID], [Fraction(1)], "strictly between"),
    ],
)
def test_plans_that_make_no_sense_are_refused(grids, quantiles, message):
    with pytest.raises(ParameterError, match=message):
        plan_of(grids, quantiles, PureDP(1.0), REPLACE)


def test_plans_without_privacy_or_weights_and_foreign_plans_are_refused():
    """An infinite budget, candidates that count nowhere, and a plan of another kind."""
    with pytest.raises(ParameterError, match="must be finite"):
        plan_of([GRID], QUANTILES, PureDP(math.inf), REPLACE)
    with pytest.raises(ParameterError, match="weight of at least 1"):
        plan_of([GRID], QUANTILES, PureDP(1.0), REPLACE, weights=[(1, 0, 1)])
    with pytest.raises(ParameterError, match="weight of at least 1"):
        plan_of([GRID], QUANTILES, PureDP(1.0), REPLACE, weights=[(1, 1)])
    plan = plan_of([GRID], QUANTILES, PureDP(1.0), REPLACE)

    class Other(QuantilesPlan):
        """A plan of another mechanism."""

    facts = (plan.candidates, plan.weights, plan.quantiles, plan.selection, plan.together)
    other = Other(*facts, plan.budget, plan.neighbours, plan.event)
    with pytest.raises(ParameterError, match="another mechanism"):
        other.release([], Entropy.fresh())


@pytest.mark.parametrize(("relation", "unit"), [(REPLACE, 1.0), (ADD, 0.9)], ids=["replace", "add"])
def test_rows_off_is_the_bound_of_the_page(relation, unit):
    """2 u / epsilon times the logarithm of all weights, over 1 - level; by itself of k choices, the largest column's."""
    grids = [(0.0, 1.0), tuple(map(float, range(7))), (3.0, 4.0, 5.0)]
    plan = plan_of(grids, QUANTILES, PureDP(0.9), relation)
    exact = 2.0 * unit / 0.9 * math.log((2 * 7 * 3) ** 3 / (1.0 - 0.95))
    assert rows_off(plan, 0.95) == pytest.approx(exact, rel=1e-9)
    apart = plan_of(grids, QUANTILES, ZCDP(0.09), relation)
    exact = 2.0 * unit / math.sqrt(8.0 * 0.01) * math.log(9 * 7 / (1.0 - 0.95))
    assert rows_off(apart, 0.95) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("quantiles", [[Fraction(1, 2), Fraction(1, 4)], [Fraction(-1, 4)], [Fraction(5, 4)]])
def test_quantiles_out_of_order_or_range_are_refused(quantiles):
    """Falling ones, and shares of rows that there cannot be."""
    with pytest.raises(ParameterError, match="rising order"):
        plan_of([GRID], quantiles, PureDP(1.0), REPLACE)


def test_two_candidates_and_one_quantile_are_enough():
    """The least plan: it has one choice, which costs the whole budget."""
    plan = plan_of([(0.0, 1.0)], [Fraction(1, 2)], PureDP(0.5), ADD)
    assert plan.selection.epsilon == pytest.approx(0.5, rel=1e-9)
    assert (plan.event.rows_per_person, plan.event.neighbours, plan.neighbours) == (1, ADD, ADD)


def test_counts_of_every_column_are_needed():
    """Neither fewer nor more than the columns of the plan."""
    plan = plan_of([GRID, GRID], [Fraction(1, 2)], PureDP(0.5), ADD)
    with pytest.raises(ValueError, match="argument 2"):
        plan.release([places(GRID, np.array([1.0]))], Entropy.seeded(1))


def test_places_has_a_cell_for_every_candidate_even_without_rows():
    assert places(GRID, np.array([math.nan])).tolist() == [0, 0, 0]
    assert places(GRID, np.array(CELLS)).tolist() == [2, 2, 2]


def test_candidates_that_fall_once_are_refused():
    """Wherever it is."""
    for grid in ((0.0, 2.0, 1.0), (1.0, 0.0, 2.0), (0.0, 1.0, 1.0)):
        with pytest.raises(ParameterError, match="rising order"):
            plan_of([GRID, grid], QUANTILES, PureDP(1.0), REPLACE)
