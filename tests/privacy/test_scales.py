"""Scales of columns in random features: sensitivity of the sums by search, the law of their noise, and what follows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from confide.data.arrays import ArrayBlocks, MappedBlocks, MemorySource
from confide.erm.group_bounds import GroupBound
from confide.erm.linear_sums import SumsOfTwoParts
from confide.errors import ParameterError
from confide.features.fourier import CurvesAndFeatures, FourierMap
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, budget_of_row
from confide.privacy.lattice import LatticeNoise
from confide.privacy.matching import check_parts
from confide.privacy.mechanism import ProblemFacts
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.scales import SumsByTarget, scales_by, scales_plan
from tests.covering import pairs_of
from tests.privacy.laws import mu_of
from tests.privacy.problems import problem

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BUDGETS = {"approximate": ApproxDP(1.0, 1e-5), "concentrated": ZCDP(0.1)}
TWO_PAIRS = GroupBound((2, 2), (1.0, 1.0))


def query(neighbours=REPLACE, bound=TWO_PAIRS, *, n=30, signed=None, target_bound=None, weight=1.0, persons=1):
    """The sums of a small problem."""
    facts = ProblemFacts(
        row_bound=bound,
        intercept=0.0,
        n_features=sum(bound.sizes),
        n_rows_low=n,
        n_rows_high=n if neighbours is REPLACE else n + 20,
        summation_depth=200,
        neighbours=neighbours,
        rows_per_person=persons,
    )
    return SumsByTarget(facts, signed or (False,) * len(bound.sizes), target_bound, weight)


def sums(of_query, rows, targets, weights=None):
    """The sums that are released, without noise."""
    targets = np.asarray(targets, dtype=np.int8 if of_query.target_bound is None else np.float64)
    return of_query.summed(MemorySource(ArrayBlocks(np.asarray(rows, dtype=np.float64)), targets, weights))[0]


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("target_bound", [None, 3.0])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours, target_bound, weight):
    """Over rows of either sign, targets and weights; the bound is attained, and no more than 0.1% above that."""
    of_query = query(neighbours, target_bound=target_bound, weight=weight)
    plan = scales_plan(of_query, ApproxDP(1.0, 1e-5), 0.02)
    rows = [(a, 0.0, 0.0, b) for a in (-1.0, 0.0, 1.0) for b in (-1.0, 1.0)] + [(0.0, 9.0, 9.0, 0.0)]
    targets = (-1, 1) if target_bound is None else (-9.0, -3.0, -0.5, 0.0, 3.0, 9.0)
    weights = [np.array([w]) for w in (0.0, 0.5 * weight, weight)]
    one = [sums(of_query, [row], [target], w) for row in rows for target in targets for w in weights]
    others = one if neighbours is REPLACE else [np.zeros_like(one[0])]
    largest = max(float(np.linalg.norm(a - b)) for a in one for b in others)
    assert largest <= plan.lattice.l2_sensitivity <= 1.001 * largest


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], persons=[1, 3])
def test_released_sums_scatter_by_the_theorems_law(name, neighbours, persons):
    """1,000 releases: the law, and a deviation to within 4%. Both are computed here again."""
    budget, share = BUDGETS[name], 0.05
    plan = scales_plan(query(neighbours, persons=persons), budget, share)
    entropy = Entropy.seeded(3)
    noise = np.vstack([plan.lattice.release(np.zeros((1, plan.lattice.dimension)), entropy) for _ in range(1000)]).ravel()
    assert noise.size == 1000 * 2 * 5
    mu = mu_of(budget_of_row(budget, persons))
    longest = 2.0 * math.sqrt(2.0) if neighbours is REPLACE else math.sqrt(2.0) * math.hypot(1.0, 0.3)
    law = stats.norm(scale=longest / (math.sqrt(share) * mu))
    assert stats.kstest(noise, law.cdf).pvalue > 1e-3
    assert noise.std() == pytest.approx(law.std(), rel=0.04)
    assert plan.mu == pytest.approx(math.sqrt(share) * mu, rel=1e-3)


def test_parts_of_rows_add_up_to_them():
    """Classes divide rows, and numbers divide each row; what is no number counts as the least."""
    rows = np.array([[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 0.0]])
    first, second = sums(query(), rows, [1, -1]).reshape(2, -1)
    count = 0.3 * math.sqrt(2.0)
    np.testing.assert_allclose(first, [1.0, 0.0, 0.0, 1.0, count])
    np.testing.assert_allclose(second, [0.0, 1.0, 1.0, 0.0, count])
    parts = SumsOfTwoParts(2.0).of_scores(np.zeros((5, 2)), np.array([-9.0, -1.0, 0.0, 2.0, np.nan]), 1).slope
    np.testing.assert_array_equal(parts[:, 0], [0.0, 0.25, 0.5, 1.0, 0.0])
    np.testing.assert_array_equal(parts.sum(axis=1), 1.0)
    scores = np.arange(10.0).reshape(5, 2)
    value = SumsOfTwoParts().of_scores(scores, np.array([1, -1, 1, -1, 1]), 0).value
    np.testing.assert_array_equal(value[:, 0], [0.0, 3.0, 4.0, 7.0, 8.0])


def made_up(n=40_000, seed=0):
    """Three columns of two cells: the first says much about the class, the second little and the third nothing."""
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 2, size=(n, 3))
    labels = np.where(rng.uniform(size=n) < 0.2 + 0.5 * cells[:, 0] + 0.1 * cells[:, 1], 1, -1)
    rows = np.zeros((n, 6))
    for column in range(3):
        rows[np.arange(n), 2 * column + cells[:, column]] = 1.0
    return rows, labels


THREE = GroupBound((2, 2, 2), (1.0,) * 3, (True,) * 3)


def test_scales_follow_from_how_much_the_cells_of_a_column_differ():
    """The formula of the page, computed here again: exact sums, and then noise of which its mean is subtracted."""
    rows, labels = made_up()
    plan = scales_plan(query(bound=THREE, n=len(rows)), ApproxDP(1.0, 1e-5), 0.02)
    exact = sums(plan.query, rows, labels)
    share, expected = (labels == 1).mean(), []
    for column in range(3):
        cell = rows[:, 2 * column + 1] == 1.0
        rates = np.array([(labels[~cell] == 1).mean(), (labels[cell] == 1).mean()])
        masses = np.array([(~cell).mean(), cell.mean()])
        noise = (plan.deviation / (masses * len(rows))) ** 2 * (share**2 + (1.0 - share) ** 2)
        expected.append(masses @ ((rates - share) ** 2 - noise) / (share * (1.0 - share)) ** 2)
    squares = np.maximum(expected, 0.001)
    squares = 2.25 * (0.8 * squares / squares.mean() + 0.2)
    np.testing.assert_allclose(scales_by(plan, exact), np.sqrt(squares), rtol=0.006)
    rng = np.random.default_rng(1)
    noisy = [scales_by(plan, exact + plan.deviation * rng.normal(size=exact.size)) for _ in range(100)]
    np.testing.assert_allclose(np.mean(noisy, axis=0), np.sqrt(squares), rtol=0.1)
    assert scales_by(plan, np.zeros_like(exact)) == (1.5, 1.5, 1.5)


def test_straight_lines_count_as_two_cells():
    """A category of two levels has the same scale as one column of signs as it has as two columns of zeros and ones."""
    rows, labels = made_up()
    lines = GroupBound((1, 1, 1), (1.0,) * 3, (False,) * 3)
    of_cells, of_lines = query(bound=THREE, n=len(rows)), query(bound=lines, n=len(rows), signed=(True,) * 3)
    budget = ApproxDP(8.0, 1e-3)
    both = [
        scales_by(scales_plan(each, budget, 0.5), sums(each, given, labels))
        for each, given in ((of_cells, rows), (of_lines, rows[:, 1::2] - rows[:, ::2]))
    ]
    np.testing.assert_allclose(*both, rtol=0.02)


def test_whatever_is_released_scales_can_be_used():
    """Sums of noise alone, huge, negative or zero: the map takes the scales, so nothing fails after the charge."""
    rng = np.random.default_rng(0)
    appended = CurvesAndFeatures(FourierMap(6, 4), 1.0, 2.0)
    for signed in (False, True):
        plan = scales_plan(query(bound=THREE, signed=(signed,) * 3), ApproxDP(1.0, 1e-5), 0.02)
        for size in (0.0, 1e-300, 1e-3, 1.0, 1e3, 1e12, 1e300):
            for _ in range(20):
                scales = scales_by(plan, rng.normal(size=plan.lattice.dimension) * size)
                assert all(0.6 < scale < 2.5 for scale in scales)
                appended.scaled(tuple(np.repeat(scales, 2).tolist()))


def whole_plan(neighbours=REPLACE, share=0.3, **others):
    """A plan of weights with its scales, and the rows."""
    rows, labels = made_up(30)
    appended = CurvesAndFeatures(FourierMap(6, 8), 1.0, math.sqrt(3.0))
    own = query(neighbours, THREE, **others)
    part = scales_plan(own, ApproxDP(1.0, 1e-5), share)
    facts = problem(
        n=30, d=14, row_norm=appended.row_bound.norm, intercept=1.0, l2=300.0, neighbours=neighbours,
        high=None if neighbours is REPLACE else 50,
    )  # fmt: skip
    plan = ObjectivePerturbation().plan(replace(facts, beside_mu=part.mu), ApproxDP(1.0, 1e-5))
    source = MemorySource(MappedBlocks(ArrayBlocks(rows), appended), labels.astype(np.int8))
    return replace(plan, parts=(part,)), source


def test_rows_have_the_scales_that_were_released(monkeypatch):
    """The plan knows them, rows are mapped by them, and plan and rows are the same otherwise."""
    plan, source = whole_plan()
    monkeypatch.setattr(LatticeNoise, "release", lambda self, exact, entropy: exact)
    ready, mapped, found = plan.scaling.query.before(plan.scaling, plan, source, Entropy.seeded(0))
    scales = scales_by(plan.scaling, sums(plan.scaling.query, source.blocks.blocks.rows, source.labels))
    assert found == tuple(np.repeat(scales, 2))
    assert ready is plan
    assert mapped.blocks.fourier_map == source.blocks.fourier_map.scaled(found)
    assert (mapped.n_features, mapped.n_rows) == (source.n_features, source.n_rows)
    assert np.abs(mapped.blocks.block(0, 30) - source.blocks.block(0, 30)).max() > 0.1


def test_a_plan_whose_charge_does_not_cover_the_sums_is_not_released():
    """A smaller mu, other noise, another relation, other persons, or a plan without the part."""
    plan, source = whole_plan()
    too_cheap = replace(plan, problem=replace(plan.problem, beside_mu=0.99 * plan.scaling.mu))
    more_precise = replace(plan, parts=(replace(plan.scaling, lattice=whole_plan(share=0.6)[0].scaling.lattice),))
    of_others = [replace(plan, parts=whole_plan(**other)[0].parts) for other in ({"persons": 2}, {"n": 29}, {"weight": 0.5})]
    for wrong in (*of_others, replace(plan, parts=whole_plan(ADD)[0].parts)):
        with pytest.raises(ParameterError, match="another mechanism"):
            check_parts(wrong)
    for wrong in (too_cheap, more_precise):
        with pytest.raises(ParameterError, match="another mechanism"):
            wrong.scaling.query.before(wrong.scaling, wrong, source, Entropy.seeded(0))
    with pytest.raises(ParameterError, match="another mechanism"):
        plan.scaling.query.before(plan.scaling, replace(plan, parts=()), source, Entropy.seeded(0))


def test_a_pure_budget_pays_for_no_scales():
    """Their noise is Gaussian."""
    with pytest.raises(ParameterError, match="pays for no gaussian noise"):
        scales_plan(query(), PureDP(1.0), 0.02)
