"""Quantiles of columns: what one row changes, the exact law of a choice, what it costs neighbours, and how far off it is."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import PureMechanism
from confide.privacy.noise import Entropy
from confide.privacy.selection import QuantilesPlan, _equal_part, mistakes, places, rows_off

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
GRID = (0.0, 1.0, 2.5)
CELLS = (-1.0, 0.0, 0.5, 1.0, 2.0, 2.5, 9.0, math.nan)
"""One value at each place among the candidates, and a missing cell."""
QUANTILES = (Fraction(1, 10), Fraction(1, 2), Fraction(3, 4))


def distances(rows, quantile):
    """How far each candidate is from being the quantile, by definition, row by row."""
    present = [row for row in rows if not math.isnan(row)]
    wanted = quantile * len(present)
    below = [sum(row < candidate for row in present) for candidate in GRID]
    up_to = [sum(row <= candidate for row in present) for candidate in GRID]
    return [max(Fraction(0), less - wanted, wanted - most) for less, most in zip(below, up_to, strict=True)]


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


def exact_law(rows, quantile, relation, epsilon):
    """Probabilities of the candidates under permute-and-flip, by all orders of visiting."""
    scores = [float(m) for m in mistakes(places(GRID, np.array(rows)), quantile, relation)]
    kept, law = np.exp(-epsilon * (np.array(scores) - min(scores)) / 2.0), np.zeros(len(GRID))
    for order in itertools.permutations(range(len(GRID))):
        refused = 1.0
        for candidate in order:
            law[candidate] += refused * kept[candidate] / math.factorial(len(GRID))
            refused *= 1.0 - kept[candidate]
    return law


@pytest.mark.parametrize("quantile", QUANTILES)
def test_distances_are_those_of_the_definition(quantile):
    """For all data sets of up to two rows, in the unit of each relation; a median of no rows is as good as another."""
    for n_rows in range(3):
        for rows in data_sets(n_rows):
            counts = places(GRID, np.array(rows))
            expected = distances(rows, quantile)
            assert mistakes(counts, quantile, REPLACE) == expected
            assert mistakes(counts, quantile, ADD) == [each / max(quantile, 1 - quantile) for each in expected]
            assert counts.sum() == sum(not math.isnan(row) for row in rows)


@pytest.mark.parametrize("relation", [REPLACE, ADD])
@pytest.mark.parametrize("quantile", QUANTILES)
def test_one_row_changes_each_distance_by_at_most_one(relation, quantile):
    """Over all neighbours of all data sets of three rows, missing cells among them; 1 is attained, so half would fail."""
    worst = Fraction(0)
    for rows in data_sets(3):
        here = mistakes(places(GRID, np.array(rows)), quantile, relation)
        for other in neighbours_of(rows, relation):
            there = mistakes(places(GRID, np.array(other)), quantile, relation)
            worst = max(worst, *(abs(a - b) for a, b in zip(here, there, strict=True)))
    assert worst == 1


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_neighbours_are_as_probable_as_the_budget_says(relation):
    """All outcomes of all neighbours of data sets of two rows: the worst ratio comes near exp(epsilon) and stays below."""
    epsilon, worst = 0.8, 0.0
    plan = QuantilesPlan.of([GRID], [Fraction(1, 2)], PureDP(epsilon), relation)
    for rows in data_sets(2):
        here = exact_law(rows, Fraction(1, 2), relation, plan.selection.epsilon)
        for other in neighbours_of(rows, relation):
            there = exact_law(other, Fraction(1, 2), relation, plan.selection.epsilon)
            worst = max(worst, np.abs(np.log(here / there)).max())
    assert 0.5 * epsilon < worst <= epsilon


def test_choices_have_the_exact_law():
    """6,000 releases of a tiny table by chi-square; a sensitivity that is off by 2, either way, is rejected."""
    rows, quantile, entropy = (0.0, 0.5, 0.5, 2.0, 2.5, math.nan), Fraction(3, 4), Entropy.seeded(11)
    plan = QuantilesPlan.of([GRID], [quantile], PureDP(1.2), REPLACE)
    counts = places(GRID, np.array(rows))
    drawn = [plan.release([counts], entropy)[0][0] for _ in range(6_000)]
    found = [drawn.count(candidate) for candidate in GRID]

    def p_value(epsilon):
        return stats.chisquare(found, exact_law(rows, quantile, REPLACE, epsilon) * len(drawn)).pvalue

    assert p_value(1.2) > 1e-3
    assert p_value(0.6) < 1e-9
    assert p_value(2.4) < 1e-9


@pytest.mark.parametrize("budget", [PureDP(0.6), ApproxDP(0.6, 1e-6), ZCDP(0.02)])
def test_equal_parts_add_up_to_the_budget(budget):
    """Six choices: what they cost together is the budget, from below, and not a thousandth less."""
    plan = QuantilesPlan.of([GRID, GRID, GRID], QUANTILES[:2], budget, REPLACE)
    part = plan.selection.epsilon
    if isinstance(budget, ZCDP):
        assert plan.selection.law == "exponential"
        spent, limit = 6 * part**2 / 8.0, budget.rho
    else:
        assert plan.selection.law == "permute-and-flip"
        spent, limit = 6 * part, budget.epsilon
    assert 0.999 * limit < spent <= limit
    assert plan.event.budget == budget
    assert plan.event.curve == (PureMechanism(0.6) if isinstance(budget, ApproxDP) else None)


def test_rows_of_one_person_share_the_budget():
    """Three rows: a third of epsilon, a ninth of rho; and no finer account is charged."""
    one, three = (QuantilesPlan.of([GRID], [Fraction(1, 2)], PureDP(0.6), REPLACE, rows) for rows in (1, 3))
    assert three.selection.epsilon == pytest.approx(one.selection.epsilon / 3.0)
    assert three.event.rows_per_person == 3
    approximate = QuantilesPlan.of([GRID], [Fraction(1, 2)], ApproxDP(0.6, 1e-6), REPLACE, 3)
    assert approximate.event.curve is None
    rho = QuantilesPlan.of([GRID], [Fraction(1, 2)], ZCDP(0.09), REPLACE, 3)
    assert rho.selection.epsilon == pytest.approx(math.sqrt(8.0 * 0.01))


def test_quantiles_of_a_column_rise_and_columns_keep_their_order():
    """Whatever is drawn; each number is a candidate of its own column."""
    grids, entropy = ((0.0, 1.0), (5.0, 6.0, 7.0)), Entropy.seeded(2)
    plan = QuantilesPlan.of(grids, QUANTILES, PureDP(1e-6), ADD)
    counts = [places(grid, np.array([0.5, 5.5])) for grid in grids]
    for _ in range(50):
        found = plan.release(counts, entropy)
        assert all(list(of_column) == sorted(of_column) for of_column in found)
        assert all(set(of_column) <= set(grid) for of_column, grid in zip(found, grids, strict=True))


@pytest.mark.parametrize("relation", [REPLACE, ADD])
def test_few_releases_are_further_off_than_promised(relation):
    """At level 0.8 fewer than a fifth of 300 releases exceed it; an eighth of it, by a tenth of them."""
    rng = np.random.default_rng(4)
    grid, values, entropy = tuple(np.linspace(0.0, 1.0, 51)), rng.uniform(size=400), Entropy.seeded(8)
    plan = QuantilesPlan.of([grid], [Fraction(1, 2)], PureDP(0.3), relation)
    counts = places(grid, values)
    unit = Fraction(1) if relation is REPLACE else Fraction(1, 2)
    distance = dict(zip(grid, (each * unit for each in mistakes(counts, Fraction(1, 2), relation)), strict=True))
    off = np.array([float(distance[plan.release([counts], entropy)[0][0]]) for _ in range(300)])
    assert (off - float(min(distance.values())) > rows_off(plan, 0.8)).mean() < 0.2
    assert (off > rows_off(plan, 0.8) / 8.0).mean() > 0.1


def test_a_large_epsilon_finds_the_quantile():
    """The candidate that is the quantile, in double precision or single, also where most cells are equal."""
    plan = QuantilesPlan.of([GRID], [Fraction(9, 10)], PureDP(1e6), REPLACE)
    for values in (np.array([1.0] * 19 + [9.0]), np.array([1.0] * 19 + [9.0], dtype=np.float32)):
        assert plan.release([places(GRID, values)], Entropy.fresh()) == ((1.0,),)


def test_values_beyond_all_candidates_count():
    """Below the first, above the last, and infinite ones; missing ones nowhere."""
    values = np.array([-5.0, -math.inf, 0.0, 99.0, math.inf, math.nan])
    assert places(GRID, values).tolist() == [2, 1, 0, 0, 0, 0, 2]


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
        QuantilesPlan.of(grids, quantiles, PureDP(1.0), REPLACE)


def test_budgets_that_cannot_be_shared_and_foreign_plans_are_refused():
    """An infinite budget, one too small for its parts, and a plan of another kind."""
    with pytest.raises(ParameterError, match="must be finite"):
        QuantilesPlan.of([GRID], QUANTILES, PureDP(math.inf), REPLACE)
    with pytest.raises(ParameterError, match="too small to be shared by 3 quantiles"):
        QuantilesPlan.of([GRID], QUANTILES, PureDP(1e-9), REPLACE)
    plan = QuantilesPlan.of([GRID], QUANTILES, PureDP(1.0), REPLACE)

    class Other(QuantilesPlan):
        """A plan of another mechanism."""

    other = Other(plan.candidates, plan.quantiles, plan.selection, plan.budget, plan.neighbours, plan.event)
    with pytest.raises(ParameterError, match="another mechanism"):
        other.release([], Entropy.fresh())


@pytest.mark.parametrize(("relation", "unit"), [(REPLACE, 1.0), (ADD, 0.9)], ids=["replace", "add"])
def test_rows_off_is_the_bound_of_the_page(relation, unit):
    """2 u log(k m / (1 - level)) / epsilon: k choices together, m the most candidates, u the unit of the worst quantile."""
    grids = [(0.0, 1.0), tuple(map(float, range(7))), (3.0, 4.0, 5.0)]
    plan = QuantilesPlan.of(grids, QUANTILES, PureDP(0.9), relation)
    exact = 2.0 * unit / 0.1 * math.log(9 * 7 / (1.0 - 0.95))
    assert rows_off(plan, 0.95) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("quantiles", [[Fraction(1, 2), Fraction(1, 4)], [Fraction(-1, 4)], [Fraction(5, 4)]])
def test_quantiles_out_of_order_or_range_are_refused(quantiles):
    """Falling ones, and shares of rows that there cannot be."""
    with pytest.raises(ParameterError, match="rising order"):
        QuantilesPlan.of([GRID], quantiles, PureDP(1.0), REPLACE)


def test_two_candidates_and_one_quantile_are_enough():
    """The least plan: it has one choice, which costs the whole budget."""
    plan = QuantilesPlan.of([(0.0, 1.0)], [Fraction(1, 2)], PureDP(0.5), ADD)
    assert plan.selection.epsilon == pytest.approx(0.5, rel=1e-9)
    assert (plan.event.rows_per_person, plan.event.neighbours, plan.neighbours) == (1, ADD, ADD)


def test_counts_of_every_column_are_needed():
    """Neither fewer nor more than the columns of the plan."""
    plan = QuantilesPlan.of([GRID, GRID], [Fraction(1, 2)], PureDP(0.5), ADD)
    with pytest.raises(ValueError, match="argument 2"):
        plan.release([places(GRID, np.array([1.0]))], Entropy.seeded(1))


def test_places_has_a_cell_for_every_place_even_without_rows():
    """Seven places among three candidates."""
    assert places(GRID, np.array([math.nan])).tolist() == [0] * 7
    assert places(GRID, np.array(CELLS)).tolist() == [1] * 7


@pytest.mark.parametrize("n", [3, 7, 1000])
def test_equal_parts_are_rounded_down_by_one_part_in_two_to_the_forty(n):
    """So that their exact sum is below the budget."""
    for part, whole in ((_equal_part(ZCDP(0.3), n).rho, 0.3), (_equal_part(PureDP(0.3), n).epsilon, 0.3)):
        assert 0.9 * 2.0**-40 < 1 - n * Fraction(part) / Fraction(whole) < 1.1 * 2.0**-40


def test_candidates_that_fall_once_are_refused():
    """Wherever it is."""
    for grid in ((0.0, 2.0, 1.0), (1.0, 0.0, 2.0), (0.0, 1.0, 1.0)):
        with pytest.raises(ParameterError, match="rising order"):
            QuantilesPlan.of([GRID, grid], QUANTILES, PureDP(1.0), REPLACE)
