"""Sums over pairs of columns, by which a fit finds whether columns act together: the proof's bounds, and what follows."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.group_bounds import GroupBound
from confide.features.fourier import CELLS, ProductsOfPairs, bound_of_pairs
from confide.privacy.budgets import ApproxDP, Neighbours
from confide.privacy.gaussian import gaussian_delta
from confide.privacy.mechanism import ProblemFacts
from confide.privacy.objective_account import GaussianObjective
from confide.privacy.scales import PairsByTarget, coarse_cells, gain_of_pairs, scales_by, scales_plan
from tests.privacy.test_scales import ADD, REPLACE, THREE, made_up, query, sums

BUDGET = ApproxDP(1.0, 1e-5)


def pairs_query(n_columns, *, n=30, neighbours=REPLACE, weight=1.0):
    """The sums over pairs of so many columns."""
    n_pairs = math.comb(n_columns, 2)
    facts = ProblemFacts(
        row_bound=bound_of_pairs(n_pairs),
        intercept=0.0,
        n_features=n_pairs * CELLS**2,
        n_rows_low=n,
        n_rows_high=n if neighbours is REPLACE else n + 20,
        summation_depth=200,
        neighbours=neighbours,
        rows_per_person=1,
    )
    return PairsByTarget(facts, (), None, weight)


def cells_of(rows, labels, n_columns=3, bound=THREE, signed=None):
    """The plan of the sums of columns, and the products of coarse cells that follow from their exact sums."""
    plan = scales_plan(query(bound=bound, n=len(rows), signed=signed), BUDGET, 0.02)
    exact = sums(plan.query, rows, labels)
    return coarse_cells(plan, exact, scales_by(plan, exact), n_columns)


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours, weight):
    """Over rows of the encoder in all cells and rows beyond their bound; the bound is nearly attained."""
    of_query = pairs_query(3, neighbours=neighbours, weight=weight)
    products = ProductsOfPairs(np.vstack([np.eye(12), np.zeros((1, 12))]), np.ones(12))
    rows = np.zeros((66, 12))
    for at, cells in enumerate(np.ndindex(4, 4, 4)):
        rows[at, [0 + cells[0], 4 + cells[1], 8 + cells[2]]] = 1.0
    rows[64], rows[65] = 50.0, np.linspace(-9.0, 9.0, 12)
    made = products.transform(rows)

    def released(at, label):
        weights = None if weight == 1.0 else np.array([weight])
        source = MemorySource(ArrayBlocks(made[at : at + 1]), np.array([label], np.int8), weights)
        return of_query.summed(source)[0]

    each = [released(at, label) for at in range(66) for label in (-1, 1)]
    largest = max(np.linalg.norm(one) for one in each)
    if neighbours is REPLACE:
        largest = max(np.linalg.norm(one - other) for one, other in combinations(each[:20] + each[-24:], 2))
    assert largest <= of_query.distances[0] <= 1.001 * max(largest, weight * math.sqrt(3.0) * 2.0 * (neighbours is REPLACE))


def test_cells_have_about_as_many_rows_each_and_the_columns_tell_most():
    """Eight places of a column become four; of three columns, the two that tell most are paired."""
    rng = np.random.default_rng(0)
    masses = np.array([0.01, 0.01, 0.2, 0.3, 0.3, 0.1, 0.05, 0.03])
    places = rng.choice(8, p=masses, size=(20_000, 3))
    rows = np.zeros((20_000, 24))
    for column in range(3):
        rows[np.arange(20_000), 8 * column + places[:, column]] = 1.0
    labels = np.where(rng.uniform(size=20_000) < 0.2 + 0.5 * (places[:, 0] > 3) + 0.2 * (places[:, 2] > 3), 1, -1)
    products = cells_of(rows, labels, 2, GroupBound((8, 8, 8), (1.0,) * 3))
    cells = products.cells.reshape(25, 2, CELLS)
    assert (cells[8:16] == 0.0).all()
    assert (cells[:8, 1] == 0.0).all()
    shares = masses @ cells[:8, 0]
    assert shares.sum() == pytest.approx(1.0)
    assert shares.max() < 0.45
    made = products.transform(rows)
    np.testing.assert_array_equal(made.sum(axis=1), 1.0)
    both = (rows[:, :8] @ cells[:8, 0])[:, :, None] * (rows[:, 16:] @ cells[16:24, 1])[:, None, :]
    np.testing.assert_allclose(made, both.reshape(len(rows), -1))


def test_a_straight_line_has_two_cells_and_a_row_is_mapped_alone():
    """A number counts in the lower cell by how low it is; other rows of a block change no bit."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(-2.0, 2.0, size=(500, 2))
    labels = np.where(rng.uniform(size=500) < 0.5, 1, -1)
    products = cells_of(rows, labels, 2, GroupBound((1, 1), (2.0, 2.0)), (True, True))
    made = products.transform(rows)
    low = (1.0 - rows / 2.0) / 2.0
    np.testing.assert_allclose(made[:, 0], low[:, 0] * low[:, 1], rtol=1e-9)
    np.testing.assert_array_equal(made, np.vstack([products.transform(rows[at : at + 1]) for at in range(500)]))


def of_pairs(chances, rows=4000.0, noise=0.0, seed=0):
    """Gain and deviation for released sums of one pair with these chances in its cells, and so much noise."""
    plan = scales_plan(pairs_query(2, n=int(rows)), ApproxDP(1.0, 1e-5), 0.05)
    shares = np.full((CELLS, CELLS), 1.0 / CELLS**2)
    rng = np.random.default_rng(seed)
    first = rows * shares * chances if noise == 0.0 else rng.binomial(int(rows / CELLS**2), chances)
    released = np.concatenate([first.ravel(), [0.0], (rows * shares - first).ravel(), [0.0]])
    released = released + plan.deviation * rng.normal(size=released.size) * noise
    return gain_of_pairs(released, plan)


def test_a_gain_is_that_of_the_logarithms_of_probabilities():
    """Of sums of effects there is none. Of a checkerboard it is about what the chances of cells add."""
    effects = np.linspace(-1.0, 1.0, CELLS)
    sums_of_effects = 1.0 / (1.0 + np.exp(-(effects[:, None] + 0.5 * effects[None])))
    gain, deviation = of_pairs(sums_of_effects, rows=400_000.0)
    assert abs(gain) < 0.001
    assert 0.0 < deviation < 0.001
    board = np.where(np.indices((CELLS, CELLS)).sum(axis=0) % 2, 0.6, 0.4)
    entropy = math.log(2.0) + 0.6 * math.log(0.6) + 0.4 * math.log(0.4)
    assert of_pairs(board, rows=400_000.0)[0] == pytest.approx(entropy, rel=0.05)


def test_noise_adds_nothing_to_the_mean_and_as_much_to_the_deviation_as_is_said():
    """Over 300 releases of a sum of effects, at the noise of a plan."""
    effects = np.linspace(-1.0, 1.0, CELLS)
    chances = 1.0 / (1.0 + np.exp(-(effects[:, None] + 0.5 * effects[None])))
    made = np.array([of_pairs(chances, noise=1.0, seed=seed) for seed in range(300)])
    said = made[:, 1].mean()
    assert abs(made[:, 0].mean()) < 0.6 * said
    assert 0.7 < made[:, 0].std() / said < 1.6


def test_columns_act_together_where_the_gain_is_large_beside_its_noise():
    """A table whose class depends on two columns together, and one whose columns act alone."""
    rows, labels = made_up(40_000)
    together = np.where((rows[:, 1] == rows[:, 3]) == (np.random.default_rng(2).uniform(size=40_000) < 0.9), 1, -1)
    found = []
    for given in (labels, together):
        products = cells_of(rows, given)
        part = scales_plan(pairs_query(3, n=40_000), BUDGET, 0.05)
        source = MemorySource(ArrayBlocks(products.transform(rows)), given.astype(np.int8))
        gain, deviation = gain_of_pairs(part.query.summed(source)[0], part)
        found.append(gain > 0.012 + 4.0 * deviation)
    assert found == [False, True]


@pytest.mark.parametrize("size", [0.0, 1e-300, 1.0, 1e12, 1e300])
def test_whatever_is_released_there_are_cells_and_a_gain(size):
    """Sums of any size and either sign."""
    rng = np.random.default_rng(0)
    of_columns = scales_plan(query(bound=THREE), BUDGET, 0.02)
    part = scales_plan(pairs_query(3), BUDGET, 0.05)
    for _ in range(20):
        released = rng.normal(size=of_columns.lattice.dimension) * size
        products = coarse_cells(of_columns, released, scales_by(of_columns, released), 3)
        assert products.n_features == part.query.problem.n_features
        with np.errstate(all="raise", under="ignore"):
            assert np.isfinite(gain_of_pairs(rng.normal(size=part.lattice.dimension) * size, part)).all()


@pytest.mark.parametrize("neighbours", [Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE])
@pytest.mark.parametrize("monotone", [False, True])
def test_the_account_of_noise_in_the_objective_covers_a_gaussian_of_its_shift_and_seal(neighbours, monotone):
    """Theorem 5: at every epsilon its delta is at least that of one Gaussian of the shift, the seal and what is beside."""
    rng = np.random.default_rng(0)
    shift = 2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0
    for _ in range(200):
        mu, curvature, kappa, bend = np.exp(rng.uniform(-4.0, 1.0, size=4))
        seal, beside = shift * mu * np.exp(rng.uniform(-4.0, 1.0, size=2))
        curve = GaussianObjective(mu, curvature, kappa, seal, neighbours, monotone, beside_mu=beside, bend=bend)
        whole = math.hypot(shift * mu, seal, beside)
        for epsilon in np.exp(rng.uniform(-3.0, 3.0, size=10)):
            assert curve.delta(epsilon) >= gaussian_delta(epsilon, whole * (1.0 - 1e-9)) * (1.0 - 1e-6)
