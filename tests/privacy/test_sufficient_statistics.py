"""Noisy sums of least squares: sensitivities by search, rounding, the law of the noise, and an attack at a worst pair."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import optimize, stats

from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm import row_sums
from confide.erm.group_bounds import GroupBound
from confide.erm.row_bounds import BallBound
from confide.errors import NotCertified, ParameterError
from confide.privacy import sufficient_statistics
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import PureMechanism
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.mechanism import log_failure
from confide.privacy.noise import Entropy
from confide.privacy.sufficient_statistics import (
    _SEAL_SHARES,
    LeastSquares,
    Statistics,
    StatisticsPlan,
    plan_of_statistics,
)
from tests.audit.attacks import few_of, lower_bound, upper_bound
from tests.covering import pairs_of
from tests.privacy.densities import gaussian_multiplier
from tests.privacy.laws import check_law
from tests.privacy.problems import SummedOnce

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BOTH = pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
NORM, CONSTANT, TARGET = 2.0, 1.5, 3.0
"""Row norm 2 and intercept constant 1.5, so R = 2.5; targets up to 3: a wrong factor of any of them shows."""
RADIUS = math.hypot(NORM, CONSTANT)
GROUPS = GroupBound((2, 1), (0.8, 1.3))


def facts_of(
    neighbours=REPLACE, d=2, n=8, bound=None, intercept=CONSTANT, target=TARGET, persons=1, high=None, square=False
):
    """Public facts of a small problem."""
    high = high or (n if neighbours is REPLACE else n + 4)
    return LeastSquares(
        row_bound=bound or BallBound(NORM), intercept=intercept, n_features=d, n_rows_low=n, n_rows_high=high,
        summation_depth=summation_depth(high, d), neighbours=neighbours, rows_per_person=persons, target_bound=target,
        with_square=square,
    )  # fmt: skip


def independent(facts, budget):
    """The plan with independent Laplace noise."""
    return StatisticsPlan.of(Statistics(facts, 1.0), budget, ("laplace",))


def spherical(facts, budget, share):
    """The plan with spherical Laplace noise, whose seal has this share."""
    return StatisticsPlan.sealed(Statistics(facts), budget, share)


def plan_of(name, facts, budget):
    """The plan of this law: "pure" and "spherical" are the two for pure budgets, of which the plan takes the better."""
    if name not in ("pure", "spherical"):
        return plan_of_statistics(facts, budget)
    return independent(facts, budget) if name == "pure" else spherical(facts, budget, 0.01)


def source_of(rows, targets):
    """A source of these rows."""
    return MemorySource(ArrayBlocks(np.asarray(rows, dtype=np.float64)), np.asarray(targets, dtype=np.float64))


def statistics(facts, x, y, off_diagonal):
    """The scaled statistics of one row, or of each of many, by the definition."""
    y = np.expand_dims(y, -1)
    if facts.intercept:
        x = np.concatenate([x, np.full((*np.shape(x)[:-1], 1), facts.intercept)], axis=-1)
    rows, columns = np.triu_indices(np.shape(x)[-1], 1)
    target = math.hypot(*norms(facts)) / facts.target_bound * y
    square = [square_factor(facts, off_diagonal) * target**2] if facts.with_square else []
    return np.concatenate([x**2, off_diagonal * x[..., rows] * x[..., columns], target * x, *square], axis=-1)


def square_factor(facts, off_diagonal):
    """Of the square of a target beside that of a row: what is free for replace-one and Gaussian noise, or one half."""
    return math.sqrt(1.5) if off_diagonal > 1.0 and facts.neighbours is REPLACE else 0.5


def norms(facts):
    """Norm of a row, and the constant."""
    return facts.row_bound.l2_norm, facts.intercept


def random_rows(facts, n, rng):
    """n rows at the edge of their bound or inside, and their targets."""
    x = facts.row_bound.clip(rng.normal(size=(n, facts.n_features)) * rng.choice([0.3, 3.0, 30.0], (n, facts.n_features)))
    lengths = np.where(rng.random((n, 1)) < 2 / 3, 1.0, rng.random((n, 1)))
    return x * lengths, facts.target_bound * np.where(rng.random(n) < 3 / 4, rng.choice([-1, 1, 0], n), rng.random(n))


@BOTH
@pytest.mark.parametrize("bound", [None, GROUPS, GroupBound((3,), (1.2,), (True,))], ids=["ball", "groups", "linked"])
@pytest.mark.parametrize("intercept", [0.0, CONSTANT])
@pytest.mark.parametrize("square", [False, True])
def test_no_random_neighbours_are_further_apart_than_the_sensitivities(neighbours, bound, intercept, square):
    """20,000 pairs of rows, in L2 and in L1 norm."""
    facts = facts_of(neighbours, d=3, bound=bound, intercept=intercept, square=square)
    rng = np.random.default_rng(1)
    one, other = random_rows(facts, 20_000, rng), random_rows(facts, 20_000, rng)
    for off_diagonal, order, limit in ((math.sqrt(2), 2, facts.l2_sensitivity), (1.0, 1, facts.l1_sensitivity)):
        shifts = statistics(facts, *one, off_diagonal)
        if neighbours is REPLACE:
            shifts = shifts - statistics(facts, *other, off_diagonal)
        assert np.linalg.norm(shifts, ord=order, axis=1).max() <= limit


def test_the_l2_sensitivities_are_attained():
    """A row at the edge; two of them at 60 degrees with opposite targets. 30% less noise would be too little."""
    for intercept in (0.0, CONSTANT):
        facts = facts_of(ADD, intercept=intercept)
        shift = statistics(facts, np.array([NORM, 0.0]), TARGET, math.sqrt(2))
        assert np.linalg.norm(shift) == pytest.approx(facts.l2_sensitivity, rel=1e-9)
        facts = facts_of(REPLACE, intercept=intercept)
        # x . x' + s^2 = R^2 / 2
        cosine = (0.5 * math.hypot(NORM, intercept) ** 2 - intercept**2) / NORM**2
        first = statistics(facts, np.array([NORM, 0.0]), TARGET, math.sqrt(2))
        second = statistics(facts, NORM * np.array([cosine, math.sqrt(1 - cosine**2)]), -TARGET, math.sqrt(2))
        assert np.linalg.norm(first - second) == pytest.approx(facts.l2_sensitivity, rel=1e-9)


def test_the_sensitivities_with_the_square_of_targets_are_attained():
    """Replace-one, L2: by two pairs, one with the other targets and one with none; a factor above that of the code costs.

    Add or remove: by a row at the edge, in L2 and in L1 norm. The search finds nothing further for any pair of rows.
    """
    facts = facts_of(REPLACE, intercept=0.0, square=True)
    assert facts.l2_sensitivity == pytest.approx(facts_of(REPLACE, intercept=0.0).l2_sensitivity, rel=1e-12)
    root = math.sqrt(2)
    one = statistics(facts, np.array([NORM, 0.0]), TARGET, root)
    for other, target in (([0.5 * NORM, math.sqrt(0.75) * NORM], -TARGET), ([0.0, NORM], 0.0)):
        assert np.linalg.norm(one - statistics(facts, np.array(other), target, root)) == pytest.approx(
            facts.l2_sensitivity, rel=1e-9
        )
    facts = facts_of(ADD, intercept=0.0, square=True)
    assert np.linalg.norm(statistics(facts, np.array([NORM, 0.0]), TARGET, root)) == pytest.approx(
        facts.l2_sensitivity, rel=1e-9
    )
    assert facts.l2_sensitivity == pytest.approx(1.5 * NORM**2, rel=1e-9)
    diagonal = np.full(2, NORM / root)
    assert np.abs(statistics(facts, diagonal, TARGET, 1.0)).sum() == pytest.approx(facts.l1_sensitivity, rel=1e-9)


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_search_finds_no_neighbours_further_apart(dimension):
    """Rows and targets anywhere in their bounds, started from 12 random pairs, with the square; at most 5% stays unused."""
    facts = facts_of(REPLACE, d=dimension, intercept=0.0, square=True)

    def distance(v, off_diagonal, order):
        rows, targets = v[:-2].reshape(2, dimension), np.clip(v[-2:], -1.0, 1.0) * TARGET
        rows = rows * (NORM / np.maximum(NORM, np.linalg.norm(rows, axis=1)))[:, None]
        pair = statistics(facts, rows, targets, off_diagonal)
        return -np.linalg.norm(pair[0] - pair[1], ord=order)

    rng = np.random.default_rng(7)
    for off_diagonal, order, limit in ((math.sqrt(2), 2, facts.l2_sensitivity), (1.0, 1, facts.l1_sensitivity)):
        starts = rng.normal(size=(12, 2 * dimension + 2)) * 2.0
        found = -min(
            optimize.minimize(distance, start, (off_diagonal, order), "Nelder-Mead", options={"maxfev": 2000}).fun
            for start in starts
        )
        assert found <= limit
        if dimension > 1:
            assert found > 0.95 * limit


def test_the_l1_sensitivities_are_attained_or_nearly_so():
    """Add or remove: exactly, by a row on the diagonal and by one at all limits of a group bound. Replace: to 5%."""
    facts = facts_of(ADD, d=5, intercept=0.0)
    diagonal = np.full(5, NORM / math.sqrt(5))
    assert np.abs(statistics(facts, diagonal, TARGET, 1.0)).sum() == pytest.approx(facts.l1_sensitivity, rel=1e-9)
    facts = facts_of(ADD, d=3, bound=GROUPS)
    assert np.abs(statistics(facts, np.array([0.8, 0.0, 1.3]), TARGET, 1.0)).sum() == pytest.approx(
        facts.l1_sensitivity, rel=1e-9
    )
    facts = facts_of(REPLACE, d=2, intercept=0.0)
    shift = [statistics(facts, x, y, 1.0) for x, y in zip(far_pair(facts), (TARGET, -TARGET), strict=True)]
    assert 0.95 * facts.l1_sensitivity < np.abs(shift[0] - shift[1]).sum() <= facts.l1_sensitivity


def far_pair(facts):
    """Two rows in the ball that are far apart in L1 norm with opposite targets, by search."""

    def rows(v):
        return [x / max(1.0, np.linalg.norm(x) / NORM) for x in np.split(v, 2)]

    def distance(v):
        first, second = rows(v)
        return -np.abs(statistics(facts, first, TARGET, 1.0) - statistics(facts, second, -TARGET, 1.0)).sum()

    rng = np.random.default_rng(0)
    starts = rng.normal(size=(20, 2 * facts.n_features)) * 2
    return rows(min((optimize.minimize(distance, start, method="Nelder-Mead") for start in starts), key=lambda r: r.fun).x)


def test_the_l1_bound_of_many_weights_is_below_twice_that_of_a_row():
    """For balls by the second bound of the theorem; group bounds know more of the L1 norm of a row."""
    ball, groups = facts_of(d=30), facts_of(d=30, bound=GroupBound((10,) * 3, (NORM / math.sqrt(3),) * 3))
    assert ball.l1_sensitivity < 2.0 * replace(ball, neighbours=ADD).l1_sensitivity
    assert ball.l2_sensitivity == pytest.approx(groups.l2_sensitivity, rel=1e-9)
    assert groups.l1_sensitivity < 0.7 * ball.l1_sensitivity


def exact_statistics(facts, rows, targets, off_diagonal):
    """The sums in rational numbers, of rows inside their bound."""
    columns = [
        [Fraction(v) for v in row] + ([Fraction(facts.intercept)] if facts.intercept else []) for row in rows.tolist()
    ]
    size = len(columns[0])
    gram = [[sum(x[i] * x[j] for x in columns) for j in range(size)] for i in range(size)]
    cross = [sum(Fraction(y) * x[i] for x, y in zip(columns, targets.tolist(), strict=True)) for i in range(size)]
    upper = [Fraction(off_diagonal) * gram[i][j] for i in range(size) for j in range(i + 1, size)]
    scale = Fraction(facts.target_scale)
    square = sum(Fraction(y) ** 2 for y in targets.tolist()) * scale**2 * Fraction(facts.gaussian_square_scale)
    return [gram[i][i] for i in range(size)] + upper + [scale * value for value in cross] + [square] * facts.with_square


@pytest.mark.parametrize("square", [False, True])
def test_computed_sums_are_within_the_rounding_bound_in_every_order(square):
    """Rows of very different size that cancel, forwards, backwards and shuffled, against rational numbers."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(600, 3))
    rows *= (NORM * 0.99 * 10.0 ** -rng.integers(0, 9, size=600) / np.linalg.norm(rows, axis=1))[:, None]
    targets = rng.choice([-1.0, 1.0], size=600) * rng.random(600) * TARGET
    facts = facts_of(d=3, n=600, square=square)
    assert facts.rounding == pytest.approx(facts_of(d=3, n=600).rounding * (math.sqrt(1.75) if square else 1.0))
    plan = plan_of_statistics(facts, ZCDP(0.5))
    exact = exact_statistics(facts, rows, targets, math.sqrt(2))
    for order in (np.arange(600), np.arange(600)[::-1], rng.permutation(600)):
        found = plan.query.summed(source_of(rows[order], targets[order])).tolist()
        error = math.sqrt(sum(float(Fraction(f) - e) ** 2 for f, e in zip(found, exact, strict=True)))
        assert 0.0 < error <= facts.rounding
    assert 2.0 * facts.rounding < 1e-9 * facts.l2_sensitivity


def test_products_of_a_block_are_added_once(monkeypatch):
    """A BLAS that adds them to what is there one after the other has a chain as long as a block, not as all rows.

    Where blocks are added in place, sums of 131,072 equal rows err by up to five times what is allowed for.
    """

    def one_after_the_other(factor, rows, beta, c, lower, overwrite_c):
        c[0, 0] = np.cumsum(np.append(beta * c[0, 0], rows[0] * rows[0]))[-1]

    monkeypatch.setattr(row_sums, "dsyrk", one_after_the_other)
    facts = facts_of(d=1, n=2**17, bound=BallBound(1.0), intercept=0.0, target=1.0)
    for size in np.random.default_rng(0).uniform(0.9, 0.9999, 20):
        sums = source_of(np.full((2**17, 1), size), np.zeros(2**17)).sum_over_rows(facts.row_sum, np.zeros((1, 1)))
        assert abs(float(Fraction(size) ** 2 * 2**17 - Fraction(sums.hessian[0, 0, 0]))) <= facts.rounding


def test_rounding_is_paid_for_and_costs_next_to_nothing():
    """Twice the bound is in the sensitivity of the lattice: below 1e-5 of it for 10^7 rows; 10^12 rows are refused."""
    for name, budget in (("pure", PureDP(1.0)), ("approximate", ApproxDP(1.0, 1e-6)), ("zcdp", ZCDP(0.5))):
        facts = facts_of(d=20, n=10**7)
        noise = plan_of(name, facts, budget).lattice
        if isinstance(noise, LatticeGaussian):
            paid = noise.l2_sensitivity / facts.l2_sensitivity - 1.0
            least = 2.0 * facts.rounding / facts.l2_sensitivity
        else:
            paid = math.sqrt(noise.dimension) * noise.l2_sensitivity / facts.l1_sensitivity - 1.0
            least = 2.0 * math.sqrt(noise.dimension) * facts.rounding / facts.l1_sensitivity
        assert 1e-7 < least <= paid < 1e-4
        with pytest.raises(ParameterError, match="Narrow n_rows_bounds"):
            plan_of_statistics(facts_of(d=20, n=10**12), budget)


BUDGETS = {
    "pure": (PureDP(0.8), LatticeLaplace),
    "spherical": (PureDP(0.8), LatticeLaplace),
    "approximate": (ApproxDP(1.0, 0.01), LatticeGaussian),
    "tiny delta": (ApproxDP(20.0, 1e-30), LatticeLaplace),
    "zcdp": (ZCDP(0.05), LatticeGaussian),
}


def of_row(budget, persons):
    """Group privacy, by its formulas."""
    if isinstance(budget, PureDP):
        return PureDP(budget.epsilon / persons)
    if isinstance(budget, ZCDP):
        return ZCDP(budget.rho / persons**2)
    part = math.expm1(budget.epsilon / persons) / math.expm1(budget.epsilon)
    return ApproxDP(budget.epsilon / persons, budget.delta * part)


@pairs_of(name=["pure", "spherical", "approximate", "zcdp"], neighbours=[REPLACE, ADD], persons=[1, 2], square=[False, True])
def test_released_sums_scatter_around_the_exact_ones_by_the_theorems_law(name, neighbours, persons, square):
    """Seeded releases, rows and targets beyond their bounds: diagonal, products, targets, square; 30% off is rejected."""
    budget, law = BUDGETS[name]
    facts = facts_of(neighbours, persons=persons, square=square)
    rng = np.random.default_rng(5)
    rows, targets = rng.normal(size=(8, 2)) * 3.0, rng.normal(size=8) * 5.0
    clipped = rows * np.minimum(1.0, NORM / np.linalg.norm(rows, axis=1))[:, None]
    design = np.hstack([clipped, np.full((8, 1), CONSTANT)])
    plan = plan_of(name, facts, budget)
    assert isinstance(plan.lattice, law)
    entropy, source = Entropy.seeded(2), SummedOnce(source_of(rows, targets))
    sample = [plan.release(source, entropy) for _ in range(1000 if square else 300)]
    products = np.array([release.products for release in sample]) - design.T @ design
    cross = np.array([release.targets for release in sample]) - design.T @ np.clip(targets, -TARGET, TARGET)
    squares = np.array([release.square for release in sample]) - (np.clip(targets, -TARGET, TARGET) ** 2).sum()
    assert np.array_equal(products, products.transpose(0, 2, 1))
    row = of_row(budget, persons)
    norm = RADIUS**2
    if name == "spherical":
        check_spherical(facts, sample, products, cross, squares, 0.99 * row.epsilon)
        return
    if law is LatticeLaplace:
        length = math.sqrt(2) * NORM + CONSTANT
        one = 0.5 * (length**2 + norm) + length * RADIUS
        # Three weights: j = (sqrt(25) - 1) / 6 = 2 / 3, and sqrt(18 / 4 + 9 / 2) sqrt(2) (4 / 3) R^2 = 4 sqrt(2) R^2; the
        # square adds f^2 / (j + j^2 / 2) = (1 / 4) / (8 / 9) under the first root, or f R^2.
        two = math.sqrt(2 * (9 + 0.28125 * square)) * 4 / 3 * norm
        scale = (one + 0.5 * square * norm if neighbours is ADD else min(2 * one, two)) / row.epsilon
        scales, expected, factor = (scale, scale, scale * TARGET / RADIUS), stats.expon.cdf, 0.5
    else:
        multiplier = math.sqrt(0.5 / row.rho) if name == "zcdp" else gaussian_multiplier(row.epsilon, row.delta)
        factor = math.sqrt(1.5) if neighbours is REPLACE else 0.5
        deviation = math.sqrt(2 + 0.25 * square if neighbours is ADD else 4.5) * norm * multiplier
        scales, expected = (deviation, deviation / math.sqrt(2), deviation * TARGET / RADIUS), stats.halfnorm.cdf
    upper = products[:, *np.triu_indices(3, 1)]
    noises = [np.diagonal(products, axis1=1, axis2=2), upper, cross]
    if square:
        noises, scales = [*noises, squares], (*scales, scales[0] * (TARGET / RADIUS) ** 2 / factor)
    else:
        assert np.isnan(squares).all()
    for noise, scale in zip(noises, scales, strict=True):
        values = np.abs(noise).ravel() / scale
        check_law(values, expected)
        assert 0.4 < (noise > 0.0).mean() < 0.6


def check_spherical(facts, sample, products, cross, squares, rate):
    """All entries in one vector, scaled as in theorem 1: its length is Gamma, its direction uniform; 30% off is rejected."""
    factor = square_factor(facts, math.sqrt(2))
    parts = [np.diagonal(products, axis1=1, axis2=2), math.sqrt(2) * products[:, *np.triu_indices(3, 1)]]
    parts.append(cross * RADIUS / TARGET)
    if facts.with_square:
        parts.append(factor * (squares * (RADIUS / TARGET) ** 2)[:, None])
    noise = np.hstack(parts)
    size = noise.shape[1]
    assert (len(noise), size) == (len(sample), 9 + facts.with_square)
    sensitivity = math.sqrt(4.5 if facts.neighbours is REPLACE else 2 + 0.25 * facts.with_square) * RADIUS**2
    lengths = np.linalg.norm(noise, axis=1)
    check_law(lengths * rate / sensitivity, stats.gamma(size).cdf)
    for coordinate in (noise / lengths[:, None]).T:
        assert stats.kstest(coordinate**2, stats.beta(0.5, (size - 1) / 2).cdf).pvalue > 1e-4


@pytest.mark.parametrize("share", _SEAL_SHARES)
def test_the_seal_of_spherical_noise_covers_what_is_inexact(share):
    """Rounding of the sums, the error of the draw and one rounding, twice, at its share of epsilon; the rest is noise."""
    for facts in (facts_of(d=20, n=10**6), facts_of(ADD, d=3, n=100, square=True)):
        plan, n, unit = spherical(facts, PureDP(0.5), share), facts.n_rows_high, 2.0**-53
        size, square = facts.n_statistics, facts.gaussian_square_scale
        longest = facts.l2_sensitivity * (1.4 * (size + 1) + 2.0 * (200 * math.log(2) + 0.5)) / (0.5 * (1.0 - share))
        least = facts.rounding + unit * (51.0 * longest + math.sqrt(2 + square**2) * n * RADIUS**2)
        assert least <= plan.radius <= 1.02 * least
        assert plan.lattice.l2_sensitivity >= 2.0 * plan.radius
        spent = plan.lattice.epsilon + plan.noise.scale * facts.l2_sensitivity
        assert 0.5 * (1.0 - 1e-9) <= spent <= 0.5
        assert plan.noise.shape.scales == (1.0,)
        assert plan.lattice.deviation < 0.05 * plan.diagonal_deviation
        more = spherical(replace(facts, set_aside=100.0), PureDP(0.5), share)
        assert more.radius > plan.radius
        assert "shape ball" in str(plan)
        assert plan.to_dict()["noise"] == "laplace, shape ball"


@pytest.mark.parametrize(("neighbours", "ratios"), [(REPLACE, (1.70, 1.47, 1.34)), (ADD, (1.68, 1.24, 1.05))])
def test_the_smaller_of_independent_and_spherical_noise_is_taken(neighbours, ratios):
    """On products: so many times less with 1, 10 and 20 columns and an intercept of 1; on targets the ratio over sqrt(2)."""
    for d, ratio in zip((1, 10, 20), ratios, strict=True):
        facts = facts_of(neighbours, d=d, n=10**5, bound=BallBound(1.0), intercept=1.0, target=1.0)
        apart, round_ = independent(facts, PureDP(1.0)), spherical(facts, PureDP(1.0), 0.001)
        assert apart.product_deviation / round_.product_deviation == pytest.approx(ratio, rel=0.01)
        assert round_.target_deviation == pytest.approx(math.sqrt(2) * round_.product_deviation / facts.target_scale)
        taken = plan_of_statistics(facts, PureDP(1.0))
        assert (taken.noise is None) == (neighbours is ADD and d == 20)
        assert taken in (apart, round_)


@pytest.mark.parametrize("budget", [PureDP(1e6), ApproxDP(1e6, 1e-6), ZCDP(1e6)], ids=lambda budget: budget.kind)
def test_the_grid_is_finer_than_the_noise_at_any_budget(budget):
    """Else rounding, which grows with the sensitivity, would take the place of the noise that a large budget spares."""
    plan = plan_of_statistics(facts_of(d=5), budget)
    assert plan.lattice.step < 0.1 * plan.product_deviation


def test_the_law_with_less_noise_is_taken():
    """Laplace noise where delta is next to nothing and epsilon large; its event says that it is pure."""
    budget, law = BUDGETS["tiny delta"]
    plan = plan_of_statistics(facts_of(), budget)
    assert isinstance(plan.lattice, law)
    assert isinstance(plan.event.curve, PureMechanism)


@BOTH
@pytest.mark.parametrize("name", few_of(["pure", "spherical", "approximate", "zcdp"], "approximate", "zcdp"))
def test_an_attack_at_a_worst_pair_finds_what_is_spent_and_no_more(name, neighbours):
    """Likelihood ratios of all statistics together at the pair of theorem 1 or 2. Refuted with two fifths of the noise.

    As many releases from either data set as refute two fifths of the noise with probability 99.9% and more, at an event that
    tells them well; a right mechanism is refuted with probability at most 0.1%.
    """
    n_releases = {"pure": 2500, "spherical": 2500, "approximate": 1000, "zcdp": 600}[name]
    budget = {"pure": PureDP(1.0), "spherical": PureDP(1.0), "approximate": ApproxDP(1.0, 0.05), "zcdp": ZCDP(0.5)}[name]
    facts = facts_of(neighbours, d=2, n=3 if neighbours is REPLACE else 2, intercept=0.0)
    within = NORM * (1.0 - 2.0**-30)
    common, zeros = [[within, 0.0], [0.0, within]], [TARGET, -TARGET]
    if name == "pure":
        mine = far_pair(facts) if neighbours is REPLACE else [[within / math.sqrt(2)] * 2, None]
    else:
        mine = [[within, 0.0], [0.5 * within, math.sqrt(0.75) * within]]
    first = SummedOnce(source_of([*common, mine[0]], [*zeros, TARGET]))
    others = ([*common, mine[1]], [*zeros, -TARGET]) if neighbours is REPLACE else (common, zeros)
    second = SummedOnce(source_of(*others))
    plan = plan_of(name, facts, budget)
    centres = [plan.query.summed(data) for data in (first, second)]
    promised = plan.lattice.scale if name == "pure" else plan.lattice.deviation
    if name == "spherical":
        promised = facts.l2_sensitivity / 0.99

    def log_ratio(values):
        if name == "pure":
            return (np.abs(values - centres[1]) - np.abs(values - centres[0])).sum(axis=1) / promised
        if name == "spherical":
            return (np.linalg.norm(values - centres[1], axis=1) - np.linalg.norm(values - centres[0], axis=1)) / promised
        return (((values - centres[1]) ** 2) - (values - centres[0]) ** 2).sum(axis=1) / (2 * promised**2)

    def excess(factor, seed):
        noise, less = plan.lattice, plan
        if name == "spherical":
            less = replace(plan, noise=replace(plan.noise, scale=plan.noise.scale / factor))
        elif name == "pure":
            less = replace(plan, lattice=replace(noise, epsilon=noise.epsilon / factor))
        else:
            less = replace(plan, lattice=replace(noise, deviation=promised * factor))
        # Noise has several coordinates, so that few releases come near epsilon.
        threshold = 0.0 if name == "zcdp" else 0.5 * budget.epsilon
        hits = []
        for side, data in enumerate((first, second)):
            entropy = Entropy.seeded((seed, side))
            sample = [less.release(data, entropy) for _ in range(n_releases)]
            products, targets = np.array([r.products for r in sample]), np.array([r.targets for r in sample])
            upper = plan.query.off_diagonal * products[:, :1, 1]
            scaled = (products[:, [0, 1], [0, 1]], upper, facts.target_scale * targets)
            values = np.hstack(scaled)
            hits.append(int((log_ratio(values) > threshold).sum()))
        p, q = lower_bound(hits[0], n_releases), upper_bound(hits[1], n_releases)
        if isinstance(budget, PureDP):
            return math.log(max(p, 1e-300) / q) - 1.0
        if name == "approximate":
            return p - math.e * q - 0.05
        orders = 1.0 + np.geomspace(1e-3, 30.0, 200)
        moments = p**orders * q ** (1 - orders) + (1 - p) ** orders * (1 - q) ** (1 - orders)
        return float((np.log(moments) / (orders - 1) / orders).max()) * (p > q) - 0.5

    assert excess(1.0, 1) <= 0.0
    assert excess(0.4, 2) > 0.0


@BOTH
@pytest.mark.parametrize("kind", ["pure", "approximate", "zcdp"])
def test_less_budget_never_means_less_noise(kind, neighbours):
    """BoostedAdaSSP: noise shrinks as epsilon shrinks. Another peer divides by epsilon squared. Here: in proportion."""
    make = {"pure": PureDP, "approximate": lambda e: ApproxDP(e, 1e-6), "zcdp": lambda e: ZCDP(0.5 * e**2)}[kind]
    facts = facts_of(neighbours, d=5)
    deviations = [plan_of_statistics(facts, make(size)).product_deviation for size in np.geomspace(1e-2, 1e2, 30)]
    assert all(more > less for more, less in itertools.pairwise(deviations))
    # The ratio of two sizes is 10^(4 / 29) = 1.37. Beyond a size of 1 Laplace noise takes over where it is smaller.
    assert all(1.1 < more / less < 1.5 for more, less in itertools.pairwise(deviations[:15]))


@BOTH
@pytest.mark.parametrize("intercept", [0.0, CONSTANT])
def test_the_event_is_the_budget_whatever_the_intercept(neighbours, intercept):
    """diffprivlib: epsilon (1 + 1 / (d + 1)) with an intercept. One event, at exactly the budget; its curve within it."""
    for budget in (PureDP(0.1), ApproxDP(1.0, 1e-6), ZCDP(0.1)):
        plan = plan_of_statistics(facts_of(neighbours, d=20, intercept=intercept), budget)
        assert plan.event.budget == budget
        if isinstance(budget, ApproxDP):
            assert isinstance(plan.event.curve, GaussianMechanism)
            multiplier = gaussian_multiplier(1.0, 1e-6)
            assert multiplier <= 1.0 / plan.event.curve.mu <= 1.0001 * multiplier
            two = plan_of_statistics(facts_of(neighbours, d=20, intercept=intercept, persons=2), budget)
            assert two.event.curve is None


@BOTH
def test_the_intercept_is_inside_the_bound(neighbours):
    """Its constant counts in R: the noise grows as R^2 with it, on every entry."""
    small, large = (plan_of_statistics(facts_of(neighbours, intercept=s), ZCDP(0.5)) for s in (0.5, 4.0))
    ratio = (NORM**2 + 16.0) / (NORM**2 + 0.25)
    assert large.product_deviation / small.product_deviation == pytest.approx(ratio, rel=1e-3)
    assert large.target_deviation / small.target_deviation == pytest.approx(math.sqrt(ratio), rel=1e-3)


@pytest.mark.parametrize("name", ["pure", "spherical", "approximate", "zcdp"])
def test_scaled_sums_are_multiples_of_the_public_step(name):
    """From OpenDP's noise, which is fresh each time."""
    plan = plan_of(name, facts_of(), BUDGETS[name][0])
    source = source_of(np.eye(8)[:, :2], np.arange(8.0))
    releases = [plan.release(source, Entropy.fresh()) for _ in range(2)]
    assert not np.array_equal(releases[0].products, releases[1].products)
    diagonal = np.ldexp(np.diag(releases[0].products), -plan.lattice.exponent)
    assert np.array_equal(diagonal, np.rint(diagonal))
    upper = np.ldexp(releases[0].products[np.triu_indices(3, 1)] * plan.query.off_diagonal, -plan.lattice.exponent)
    np.testing.assert_allclose(upper, np.rint(upper), rtol=1e-12)


def test_what_a_plan_does_not_cover_is_refused():
    """No noise without a finite budget and finite bounds, other rows than planned for, numbers that are not finite."""
    source = source_of(np.eye(8)[:, :2], np.arange(8.0))
    for facts in (facts_of(target=math.inf), facts_of(bound=BallBound(math.inf))):
        with pytest.raises(ParameterError, match="finite"):
            plan_of_statistics(facts, PureDP(1.0))
    with pytest.raises(ParameterError, match="finite"):
        plan_of_statistics(facts_of(), PureDP(math.inf))
    for target in (0.0, -1.0, math.nan, 2.0**301):
        with pytest.raises(ParameterError, match="target_bound"):
            facts_of(target=target)
    plan = plan_of_statistics(facts_of(), PureDP(1.0))
    with pytest.raises(ParameterError, match="another mechanism"):
        replace(plan, lattice=None).release(source, Entropy.fresh())
    with pytest.raises(ParameterError, match="other rows came"):
        plan.release(source_of(np.eye(9)[:, :2], np.arange(9.0)), Entropy.fresh())
    with pytest.raises(NotCertified):
        plan.release(source_of(np.eye(8)[:, :2], np.full(8, np.nan)), Entropy.fresh())


@BOTH
def test_bounds_at_the_edge_of_what_is_allowed_work(neighbours):
    """Row and target bounds of 2^-300 and 2^300, in all pairs: finite sums on the grid."""
    for row, target in itertools.product((2.0**-300, 2.0**300), repeat=2):
        facts = facts_of(neighbours, bound=BallBound(row), target=target, intercept=row, square=True)
        for budget in (PureDP(1.0), ApproxDP(1.0, 1e-6)):
            plan = plan_of_statistics(facts, budget)
            release = plan.release(source_of(np.full((8, 2), 1e308), np.full(8, -1e308)), Entropy.fresh())
            assert np.isfinite(release.products).all()
            assert np.isfinite(release.targets).all()
            assert 0.0 < plan.square_deviation < math.inf
            assert abs(release.square - 8 * target**2) < 60.0 * plan.square_deviation
            assert abs(release.products[0, 1]) < 1e3 * 8 * row**2


def test_a_plan_says_what_was_decided():
    """In words and as JSON; no private number of rows in it."""
    plan = plan_of_statistics(facts_of(ADD, persons=2), ZCDP(0.1))
    text, document = str(plan), plan.to_dict()
    for words in (
        "sufficient statistics",
        "between 8 and 12 (private)",
        "at most 2 rows each",
        "target bound",
        "multiples of 2^",
    ):
        assert words in text
    assert document["n_rows_bounds"] == [8, 12]
    assert document["product_deviation"] == plan.product_deviation > 0.0
    assert document["noise"] == "discrete gaussian"


@pytest.mark.parametrize(("neighbours", "scale"), [(REPLACE, math.sqrt(1.5)), (ADD, 0.5)], ids=["replace", "add"])
def test_the_square_of_targets_has_the_scales_of_the_page_or_none(neighbours, scale):
    """f of theorem 1 under Gaussian noise, 1/2 under Laplace noise, and 0 where the square is not released."""
    plain, facts = facts_of(neighbours), facts_of(neighbours, square=True)
    assert facts.gaussian_square_scale == pytest.approx(scale, rel=1e-9)
    assert facts.laplace_square_scale == 0.5
    assert plain.gaussian_square_scale == plain.laplace_square_scale == 0.0
    assert facts.n_statistics == plain.n_statistics + 1


@pytest.mark.parametrize("square", [False, True])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_l1_sensitivity_is_that_of_theorem_2(d, square):
    """By hand for one row; for two the least over a weight j, which a search over j finds again where f = 0."""
    rows = {each: facts_of(each, d=d, square=square) for each in (REPLACE, ADD)}
    longest, l1 = rows[ADD].row_norm, math.sqrt(d) * rows[ADD].row_bound.l2_norm + CONSTANT
    of_row, f = 0.5 * (l1**2 + longest**2) + l1 * longest, 0.5 * square
    assert rows[ADD].l1_sensitivity == pytest.approx(of_row + f * longest**2, rel=1e-9)
    n = d + 1

    def of_two(j):
        entries = n * (n + 3) / 4 + n / j + f**2 / (j + j**2 / 2)
        return math.sqrt(2.0 * entries) * (1.0 + j / 2) * longest**2

    if square:
        best = of_two((math.sqrt(4 * n + 13) - 1) / (n + 3))
    else:
        best = optimize.minimize_scalar(of_two, bounds=(1e-3, 10.0), method="bounded").fun
    assert rows[REPLACE].l1_sensitivity == pytest.approx(min(2.0 * of_row, best), rel=1e-8)


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("square", [False, True])
def test_the_rounding_of_statistics_is_that_of_theorem_3(square, neighbours):
    """1.52 sqrt(1 + f^2 / 2) u n R^2 (m + 2 D + 14) with the larger f of both laws."""
    facts = facts_of(neighbours, d=4, n=1000, square=square)
    f = (math.sqrt(1.5) if neighbours is REPLACE else 0.5) if square else 0.0
    terms = facts.summation_depth + 2 * 5 + 14
    exact = 1.52 * math.sqrt(1.0 + 0.5 * f**2) * 2.0**-53 * facts.n_rows_high * facts.row_norm**2 * terms
    assert facts.rounding == pytest.approx(exact, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_sums_whose_rounding_is_a_tenth_of_the_sensitivity_are_refused(neighbours):
    """Twice the rounding: at nine hundredths there is a plan, at eleven there is none."""

    def with_share(share):
        one = replace(facts_of(neighbours, n=10**9), summation_depth=5000)
        n = round(10**9 * share * one.l2_sensitivity / (2.0 * one.rounding))
        return replace(one, n_rows_low=n, n_rows_high=n)

    plan_of_statistics(with_share(0.09), PureDP(1.0))
    with pytest.raises(ParameterError, match="too inexact"):
        plan_of_statistics(with_share(0.11), PureDP(1.0))


@pytest.mark.parametrize("rho", [1e-3, 1.0, 4.0, 16.0])
def test_the_grid_of_gaussian_sums_is_fine_beside_sensitivity_and_noise(rho):
    """A thousandth of the smaller of both over the root of the number of sums, but for the next power of two."""
    lattice = plan_of_statistics(facts_of(d=9), ZCDP(rho)).lattice
    assert isinstance(lattice, LatticeGaussian)
    fine = lattice.l2_sensitivity * min(1.0, 1.0 / math.sqrt(2.0 * rho)) / 1000.0 / math.sqrt(lattice.dimension)
    assert 0.499 * fine <= lattice.step <= 1.001 * fine


def test_plans_of_exact_noise_have_no_radius_and_no_penalty():
    """The lattice is their noise."""
    for name in ("approximate", "zcdp"):
        plan = plan_of(name, facts_of(), BUDGETS[name][0])
        assert (plan.noise, plan.radius, plan.l1_ratio, plan.l2) == (None, 0.0, 0.0, 0.0)


def test_the_seal_of_spherical_noise_takes_a_thousandth_or_a_hundredth():
    """Of epsilon; the better one is taken."""
    assert sufficient_statistics._SEAL_SHARES == (0.001, 0.01)


@pytest.mark.parametrize("square", [False, True])
def test_what_spherical_noise_rounds_is_the_largest_sum_and_the_noise(square):
    """1.02 sqrt(2 + f^2) n R^2 + b_max, each of which is rounded once, beside the rounding of the sums and of the draw."""
    facts = replace(facts_of(n=10**9, d=1, square=square), summation_depth=1)
    plan = spherical(facts, PureDP(0.8), 0.01)
    failure = log_failure(PureDP(0.8), facts)
    largest = 1.02 * math.sqrt(2.0 + facts.gaussian_square_scale**2) * 1e9 * facts.row_norm**2 + plan.noise.bound(failure)
    exact = facts.rounding + plan.noise.error(failure) + 2.0**-53 * largest
    assert plan.radius == pytest.approx(exact, rel=1e-9, abs=0.0)


def test_the_grid_below_spherical_noise_adds_a_thousandth_to_two_radii():
    """But for the next power of two; and the seal is for two radii."""
    plan = spherical(facts_of(d=4), PureDP(0.8), 0.01)
    fine = 2.0 * plan.radius / 1000.0 / math.sqrt(plan.problem.n_statistics)
    assert 0.5 * fine < plan.lattice.step <= fine
    assert plan.lattice.l2_sensitivity == 2.0 * plan.radius


def test_the_square_of_the_targets_is_the_last_number_that_leaves():
    """In the units of its own scale; the targets are the numbers before it."""
    plan = plan_of_statistics(facts_of(d=2, square=True), ZCDP(0.1))
    numbers = np.arange(1.0, plan.problem.n_statistics + 1.0)
    released = plan.query.decoded(plan, numbers)
    assert released.square == pytest.approx(numbers[-1] / plan.problem.target_scale**2 / plan.query.square_scale, rel=1e-12)
    np.testing.assert_allclose(released.targets, numbers[-4:-1] / plan.problem.target_scale, rtol=1e-12)


def test_what_no_facts_may_be_is_refused_for_sums_too():
    """A person without rows."""
    with pytest.raises(ParameterError, match="max_rows_per_person"):
        facts_of(persons=0)


def test_rows_are_summed_for_one_problem(monkeypatch):
    """A second one would take twice the time and be used by nobody."""
    asked, sums = [], MemorySource.sum_over_rows
    monkeypatch.setattr(
        MemorySource, "sum_over_rows", lambda self, kind, weights: (asked.append(weights), sums(self, kind, weights))[1]
    )
    plan = plan_of_statistics(facts_of(n=20, d=2), ZCDP(0.1))
    rows = MemorySource(ArrayBlocks(np.full((20, 2), 0.1)), np.full(20, 0.5))
    plan.release(rows, Entropy.seeded(0))
    assert [weights.tolist() for weights in asked] == [[[0.0] * plan.problem.n_weights]]
