"""Noisy tables and moments: the sensitivity by search, the law of the noise, and what leaves."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.gaussian import largest_mu
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import (
    MOMENT_SCALE,
    Tables,
    counted,
    l1_distance,
    l2_distance,
    moments_of,
    products_of,
    rows_of,
    spread,
)
from tests.covering import pairs_of

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BOTH = pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
BUDGETS = {"pure": PureDP(0.7), "approximate": ApproxDP(0.7, 0.1), "zcdp": ZCDP(0.1)}
ACCEPT, REJECT = 1e-3, 1e-8
SIZES = (3, 4)
CELLS = (np.array([0, 2, 2, 1]), np.array([3, 3, 0, 1]))
VALUES = np.array([0.25, -0.5, np.nan, 1.0])


def sums(cells=CELLS, values=VALUES):
    """The sums that a release is made of."""
    return [counted(each, size) for each, size in zip(cells, SIZES, strict=True)], moments_of(values)


def vector(cells, values):
    """The exact vector on which noise is put, through the release itself."""
    plan = SumPlan.of(Tables(SIZES, 1, REPLACE), PureDP(math.inf))
    released = plan.release(sums(cells, values), Entropy.seeded(0))
    return np.concatenate([*released.counts, MOMENT_SCALE * released.moments.ravel()])


def test_without_privacy_the_sums_are_those_of_the_rows():
    """Each row counts once in each table, in the nearest cell if its own does not exist; a missing value adds nothing."""
    assert vector(CELLS, VALUES).tolist() == [1, 1, 2, 1, 1, 0, 2, 0.5 * 0.75, 0.5 * 1.3125]
    assert counted(np.array([-5, 99, 1]), 3).tolist() == [1, 1, 1]
    assert moments_of(np.array([7.0, -7.0, 0.1, np.nan])).tolist() == [
        round(0.1 * 2**20),
        2 * 2**20 + round(0.01 * 2**20),
    ]


@BOTH
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours):
    """Over all neighbours that change one row; both bounds are attained up to a thousandth, by one pair each."""
    grid = [*np.linspace(-1.0, 1.0, 17).tolist(), math.nan]
    l1, l2 = 0.0, 0.0
    for x in grid:
        for y in grid if neighbours is REPLACE else [None]:
            mine = vector(([0, 0, 1], [0, 0, 2]), np.array([0.3, 0.1, x]))
            if y is None:
                other = vector(([0, 0], [0, 0]), np.array([0.3, 0.1]))
            else:
                other = vector(([0, 0, 2], [0, 0, 3]), np.array([0.3, 0.1, y]))
            l1, l2 = max(l1, np.abs(mine - other).sum()), max(l2, float(np.linalg.norm(mine - other)))
    assert l1 <= l1_distance(2, 1, neighbours) <= 1.001 * l1
    assert l2 <= l2_distance(2, 1, neighbours) <= 1.001 * l2


def test_products_are_those_of_all_pairs_of_columns():
    """Up to 2^-20 a row, clipped, in any order to the bit; a missing value adds nothing to its products."""
    values = np.random.default_rng(1).uniform(-1.2, 1.2, (4, 600))
    values[2, ::7] = np.nan
    clipped = np.clip(np.nan_to_num(values), -1.0, 1.0)
    exact = (clipped @ clipped.T)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(np.ldexp(products_of(values).astype(float), -20), exact, atol=600 * 2.0**-20)
    assert (sum(products_of(piece[:, ::-1]) for piece in np.split(values, 8, axis=1)) == products_of(values)).all()
    assert products_of(values[:1]).shape == (0,)


@BOTH
@pytest.mark.parametrize("columns", [2, 3, 4, 5])
def test_products_of_neighbours_are_as_far_apart_as_the_theorem_says(neighbours, columns):
    """Rows at all corners attain both bounds; 4,000 pairs of other rows stay below. Written out for two to five columns."""
    rng = np.random.default_rng(columns)
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=columns)))
    pairs = [(corners[0], corner) for corner in corners]
    pairs += [tuple(rng.choice([*rng.uniform(-1, 1, 9), -1.0, 0.0, 1.0, math.nan], (2, columns))) for _ in range(4000)]
    l1 = l2 = 0.0
    for x, y in pairs:
        other = products_of(y[:, None]) if neighbours is REPLACE else 0
        change = MOMENT_SCALE * np.ldexp((products_of(x[:, None]) - other).astype(float), -20)
        l1, l2 = max(l1, float(np.abs(change).sum())), max(l2, float(np.linalg.norm(change)))
    n_changed = {2: 1, 3: 2, 4: 4, 5: 6}[columns] if neighbours is REPLACE else {2: 1, 3: 3, 4: 6, 5: 10}[columns]
    by = 1.0 if neighbours is REPLACE else 0.5
    assert (l1, l2) == (n_changed * by, pytest.approx(math.sqrt(n_changed) * by))
    assert l1_distance(0, 0, neighbours, columns) == pytest.approx(l1, rel=2.0**-15)
    assert l2_distance(0, 0, neighbours, columns) == pytest.approx(l2, rel=2.0**-15)
    assert l1_distance(0, 0, neighbours, columns) > l1
    assert l2_distance(0, 0, neighbours, columns) > l2
    # Beside tables and moments both add up: L1 distances as they are, L2 distances by their squares.
    assert l1_distance(2, 3, neighbours, columns) == pytest.approx(l1_distance(2, 3, neighbours) + l1, rel=1e-4)
    together = math.hypot(l2_distance(2, 3, neighbours), l2)
    assert l2_distance(2, 3, neighbours, columns) == pytest.approx(together, rel=1e-4)


@pytest.mark.parametrize("budget", [PureDP(0.7), ZCDP(0.1)], ids=lambda budget: budget.kind)
def test_released_products_scatter_by_the_theorems_law(budget):
    """1,000 releases of 6 products of 4 columns; noise 15% smaller or larger would be rejected."""
    plan = SumPlan.of(Tables((3,), 4, REPLACE, 1, 4), budget)
    assert plan.lattice.dimension == 3 + 2 * 4 + 6
    values = np.random.default_rng(5).uniform(-1, 1, (4, 50))
    moments = np.concatenate([*map(moments_of, values), products_of(values)])
    entropy, rows = Entropy.seeded(4), ([counted(np.zeros(50, dtype=int), 3)], moments)
    exact = np.ldexp(products_of(values).astype(float), -20)
    noises = np.array([plan.release(rows, entropy).products for _ in range(1000)]) - exact
    # One table, four columns of moments and four of six products that change by 2, in units of half of a product.
    if budget.is_pure:
        law = stats.laplace(scale=2.0 * (2.0 + 4.0 * 0.5 * 2.25 + 4.0) / 0.7)
    else:
        law = stats.norm(scale=2.0 * math.sqrt(2.0 + 4.0 + 4.0) / math.sqrt(0.2))
    assert stats.kstest(noises.ravel(), law.cdf).pvalue > ACCEPT
    for factor in (0.85, 1.15):
        assert stats.kstest(factor * noises.ravel(), law.cdf).pvalue < 1e-3
    assert np.abs(np.corrcoef(noises.T) - np.eye(6)).max() < 0.25


def test_sums_do_not_depend_on_the_order_of_the_rows():
    """They are integers: not a bit changes, in whatever pieces the rows come."""
    values = np.random.default_rng(0).uniform(-1, 1, 1000)
    whole = moments_of(values)
    assert (moments_of(values[::-1]) == whole).all()
    assert (sum(moments_of(piece) for piece in np.split(values, 40)) == whole).all()


@BOTH
def test_rows_that_are_spread_are_no_further_apart_than_rows_in_one_cell(neighbours):
    """In exact arithmetic: whatever the shares are, a row adds one unit. Rows in different cells attain both bounds."""
    rng = np.random.default_rng(2)
    shares = [*np.eye(3), *rng.dirichlet([0.3] * 3, 30), [9.0, -1.0, 2.0], [math.nan, 0.5, math.inf], [0.1, 0.1, 0.1]]
    alone = [spread(np.array([block]), np.array([each]), 2) for each in shares for block in (-1, 0, 1, 7)]
    for units in alone:
        assert units.min() >= 0
        assert units.sum() == 2**20
    l1, squares = 0, 0
    for first in alone:
        for second in alone if neighbours is REPLACE else [np.zeros(6, dtype=np.int64)]:
            difference = [int(each) for each in first - second]
            l1, squares = max(l1, sum(map(abs, difference))), max(squares, sum(each * each for each in difference))
    of_table = 2 if neighbours is REPLACE else 1
    assert (Fraction(l1, 2**20), Fraction(squares, 2**40)) == (of_table, of_table)
    # Three tables: what the noise is for.
    assert l1_distance(3, 0, neighbours) == pytest.approx(3 * of_table)
    assert l2_distance(3, 0, neighbours) == pytest.approx(math.sqrt(3 * of_table))


def test_rows_are_spread_by_their_shares():
    """Up to 2^-20, in any order and in any pieces to the bit."""
    rng = np.random.default_rng(3)
    shares, blocks = rng.dirichlet([1.0] * 4, 500), rng.integers(3, size=500)
    units = spread(blocks, shares, 3)
    exact = np.array([shares[blocks == block].sum(axis=0) for block in range(3)]).ravel()
    np.testing.assert_allclose(rows_of(units), exact, atol=500 * 2.0**-20)
    order = rng.permutation(500)
    assert (spread(blocks[order], shares[order], 3) == units).all()
    assert (sum(spread(blocks[part], shares[part], 3) for part in np.split(order, 5)) == units).all()


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], persons=[1, 2])
def test_released_sums_scatter_by_the_theorems_law(name, neighbours, persons):
    """400 releases of 9 numbers; noise 0.7 or 1.4 times as large would be rejected."""
    plan = SumPlan.of(Tables(SIZES, 1, neighbours, persons), BUDGETS[name])
    entropy, exact = Entropy.seeded(3), vector(CELLS, VALUES)
    released = [plan.release(sums(), entropy) for _ in range(400)]
    noises = np.array([np.concatenate([*r.counts, MOMENT_SCALE * r.moments.ravel()]) for r in released]) - exact
    # Theorem 1, written out: two tables and one column of moments.
    longest1, squared = (4 + 1.125, 4 + 1.0) if neighbours is REPLACE else (2 + 1.0, 2 + 0.5)
    if name == "pure":
        law = stats.laplace(scale=longest1 * persons / 0.7)
    elif name == "zcdp":
        law = stats.norm(scale=math.sqrt(squared) * persons / math.sqrt(0.2))
    else:
        from confide.privacy.budgets import budget_of_row

        of_row = budget_of_row(plan.budget, persons)
        law = stats.norm(scale=math.sqrt(squared) / largest_mu(of_row.epsilon, of_row.delta))
    assert stats.kstest(noises.ravel(), law.cdf).pvalue > ACCEPT
    for factor in (0.7, 1.4):
        assert stats.kstest(factor * noises.ravel(), law.cdf).pvalue < REJECT
    assert plan.deviation == pytest.approx(law.std(), rel=0.01)
    assert np.abs(np.corrcoef(noises.T) - np.eye(9)).max() < 0.25


@pytest.mark.parametrize("name", BUDGETS)
def test_the_event_is_that_of_the_budget(name):
    """What a ledger counts; with several rows a person it has no curve of one row."""
    plan = SumPlan.of(Tables(SIZES, 1, REPLACE), BUDGETS[name])
    assert plan.event.budget == BUDGETS[name]
    assert (plan.event.curve is None) == (name == "pure")
    several = SumPlan.of(Tables(SIZES, 1, REPLACE, 3), BUDGETS[name])
    assert several.event.curve is None
    assert several.event.rows_per_person == 3
    assert several.deviation > 2.0 * plan.deviation


def test_the_less_noisy_law_is_taken():
    """Laplace noise for one small table at a small delta; Gaussian noise for many tables."""
    assert isinstance(SumPlan.of(Tables((3,), 0, REPLACE), ApproxDP(0.7, 1e-6)).lattice, LatticeLaplace)
    assert isinstance(SumPlan.of(Tables((3,) * 40, 0, REPLACE), ApproxDP(0.7, 1e-6)).lattice, LatticeGaussian)


@pytest.mark.parametrize(("sizes", "moments", "crossed"), [((), 0, 0), ((3, 0), 0, 0), ((3,), -1, 0), ((3,), 0, -1)])
def test_a_plan_without_cells_is_refused(sizes, moments, crossed):
    """Before any row."""
    with pytest.raises(ParameterError, match="a table, a cell in each table"):
        SumPlan.of(Tables(sizes, moments, REPLACE, 1, crossed), PureDP(1.0))


def test_sums_of_another_plan_are_refused():
    """Their number is public, and fixed by the plan."""
    plan = SumPlan.of(Tables(SIZES, 1, REPLACE), PureDP(1.0))
    counts, moments = sums()
    for wrong in ((counts[::-1], moments), (counts[:1], moments), (counts, np.tile(moments, 2)), (counts, moments[None])):
        with pytest.raises(ParameterError, match="plan"):
            plan.release(wrong, Entropy.seeded(0))


@pytest.mark.parametrize(("neighbours", "of_table", "l1", "l2"), [(REPLACE, 2.0, 2.25, 4.0), (ADD, 1.0, 2.0, 2.0)])
def test_the_distances_are_those_of_the_page_with_what_rounding_adds(neighbours, of_table, l1, l2):
    """Theorem 1, with 1 + 2^-16 for numbers of 20 binary digits: of moments alone, of tables alone, and of both."""
    rounded, above = 1.0 + 2.0**-16, 1.0 + 2.0**-40
    for tables, columns in ((0, 1), (1, 0), (3, 2)):
        exact = tables * of_table + columns * 0.5 * l1 * rounded
        assert l1_distance(tables, columns, neighbours) == pytest.approx(exact * above, rel=1e-14)
        exact = math.sqrt(tables * of_table + columns * (0.5 * rounded) ** 2 * l2)
        assert l2_distance(tables, columns, neighbours) == pytest.approx(exact * above, rel=1e-14)


def test_the_least_plan_has_one_table_of_one_cell():
    """Neither columns nor persons of several rows are needed; less than one row a person is refused."""
    plan = SumPlan.of(Tables((1,), 0, ADD), PureDP(0.7))
    assert (plan.query.sizes, plan.query.n_moments, plan.event.rows_per_person) == ((1,), 0, 1)
    assert plan.lattice.scale == pytest.approx(1.0 / 0.7, rel=3e-3)
    with pytest.raises(ParameterError, match="at least one row a person"):
        SumPlan.of(Tables((1,), 0, ADD, 0), PureDP(0.7))


def test_noise_has_the_excess_kurtosis_of_its_law():
    """The fourth moment of Laplace noise is 24 s^4, and its variance 2 s^2; a Gaussian has none."""
    laplace, gaussian = (SumPlan.of(Tables(SIZES, 1, REPLACE), BUDGETS[name]) for name in ("pure", "zcdp"))
    assert (laplace.excess_kurtosis, gaussian.excess_kurtosis) == (24.0 / 2.0**2 - 3.0, 0.0)


@pytest.mark.parametrize("budget", [PureDP(0.7), ZCDP(0.1)], ids=lambda budget: budget.kind)
def test_every_number_that_leaves_has_noise(budget):
    """Seven cells, and two moments of each of two columns."""
    plan = SumPlan.of(Tables(SIZES, 2, REPLACE), budget)
    assert plan.lattice.dimension == 3 + 4 + 2 * 2
