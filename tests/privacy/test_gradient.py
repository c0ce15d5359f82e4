"""Noisy gradients: sensitivity by search, rounding against exact sums, the law of the noise, and what all sums cost."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats
from scipy.sparse import csr_array

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge, LogisticLoss
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.erm.transformed_losses import ClippedSlopes
from confide.errors import NotCertified, ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, budget_of_row
from confide.privacy.gaussian import GaussianMechanism, gaussian_delta, mu_within
from confide.privacy.gradient import Descent, NoisyGradients, _within
from confide.privacy.lattice import LatticeGaussian, LatticeNoise
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.solvers.fallback import NewtonThenFallback
from confide.training.gradient_steps import HeavyBall
from tests.privacy.densities import gaussian_multiplier
from tests.privacy.descents import Mean, mean_of_sums
from tests.privacy.laws import check_law
from tests.privacy.problems import GROUPS, LINKED, group_rows, problem, releases, rows_and_labels, source

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BOTH = pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
BUDGETS = pytest.mark.parametrize("budget", [ApproxDP(1.0, 1e-6), ApproxDP(0.05, 1e-9), ZCDP(0.005), ZCDP(2.0)], ids=str)
LOSSES = [LogisticLoss(), HuberHinge(0.25), SquaredLoss(3.0, 2.0), SquaredLoss(3.0, 2.0, by_length=True),
          MeanLoss(3.0, 2.0), Softmax(3), OneVsRest(LogisticLoss(), 3)]  # fmt: skip
NORM, CONSTANT, HEAVIEST, LIMIT = 2.0, 1.5, 3.0, 0.4
"""R = 2.5, weights of rows up to 3, slopes up to 0.4 of the largest: a wrong factor of any of them shows."""
RADIUS = math.hypot(NORM, CONSTANT)


def facts_of(neighbours=REPLACE, loss=None, n=8, d=2, persons=1, **given):
    """Public facts of a small problem."""
    return problem(
        n, d, loss=loss or LogisticLoss(), row_norm=NORM, intercept=CONSTANT, neighbours=neighbours, rows_per_person=persons,
        high=n if neighbours is REPLACE else n + 4, largest_weight=HEAVIEST, **given,
    )  # fmt: skip


def rows_of(facts, rng, n):
    """A source of hostile rows: of all lengths, with weights of rows, and any label or target."""
    loss = facts.loss
    rows = rng.normal(size=(n, facts.n_features)) * 10.0 ** rng.uniform(-2, 2, (n, 1))
    if loss.constants.n_outputs > 1:
        targets = rng.integers(loss.constants.n_outputs, size=n)
    else:
        targets = rng.choice([-1.0, 1.0], n) if loss.constants.monotone else rng.uniform(-4.0, 4.0, n)
    return MemorySource(ArrayBlocks(rows), targets, rng.uniform(0.0, 5.0, n))


def some(rows, which):
    """Some of the rows of a source."""
    return MemorySource(ArrayBlocks(rows.blocks.rows[which]), rows.labels[which], rows.row_weights[which])


@BOTH
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_no_neighbours_are_further_apart_than_the_sensitivity(neighbours, loss):
    """200 pairs of data sets that differ in one row, at points inside the radius."""
    facts, rng = facts_of(neighbours, loss), np.random.default_rng(0)
    descent = Descent(3, LIMIT * loss.constants.lipschitz, 4.0, Mean())
    row_sum, found = descent.row_sum(facts), []
    for _ in range(200):
        rows, at = rows_of(facts, rng, 6), rng.normal(size=(1, facts.n_weights))
        # The same five rows, and a sixth one that is replaced or left out.
        pair = (some(rows, np.arange(5)), some(rows, np.array([0, 1, 2, 3, 5]) if neighbours is REPLACE else np.arange(4)))
        one, other = (each.sum_over_rows(row_sum, at).gradient for each in pair)
        found.append(np.linalg.norm(one - other))
    assert max(found) <= descent.sensitivity(facts) + 2.0 * descent.rounding(facts)
    assert max(found) > 0.4 * descent.sensitivity(facts)


@BOTH
def test_the_sensitivity_is_attained(neighbours):
    """A heaviest, longest row with a slope above the limit, against its opposite or nothing: k 3 (0.4) 2.5."""
    facts = facts_of(neighbours, HuberHinge(0.5))
    descent = Descent(3, LIMIT, 4.0, Mean())
    row = np.array([[NORM, 0.0]]) * (1.0 - 2.0**-30)
    made = [MemorySource(ArrayBlocks(row), np.array([label]), np.array([HEAVIEST])) for label in (1.0, -1.0)]
    one, other = (each.sum_over_rows(descent.row_sum(facts), np.zeros((1, 3))).gradient for each in made)
    shift = np.linalg.norm(one - other) if neighbours is REPLACE else np.linalg.norm(one)
    assert shift == pytest.approx(descent.sensitivity(facts), rel=1e-8)
    assert descent.sensitivity(facts) == pytest.approx((2 if neighbours is REPLACE else 1) * 3.0 * 0.4 * 2.5, rel=1e-9)


def exact_sum(facts, limit, rows, at):
    """The sum of clipped gradients in extended precision, by the definition: each gradient is projected on the ball."""
    loss, wide = facts.loss, np.longdouble
    raw = rows.blocks.rows.astype(wide)
    inside = facts.row_bound._radius(raw.shape[1])
    x = raw * np.minimum(1, inside / np.sqrt((raw * raw).sum(axis=1)))[:, None]
    x = np.column_stack([x, np.full(len(x), facts.intercept, dtype=wide)])
    scores = x @ at.reshape(loss.constants.n_outputs, -1).T.astype(wide)
    lengths = np.sqrt((x * x).sum(axis=1))
    stretch = (np.hypot(wide(NORM), wide(CONSTANT)) / lengths)[:, None]
    slopes = loss.of_scores(scores, rows.labels, 1, stretch).slope
    largest = limit * np.hypot(wide(NORM), wide(CONSTANT))
    sizes = np.sqrt((slopes * slopes).sum(axis=1)) * lengths
    slopes = slopes * np.minimum(1, largest / np.where(sizes > 0, sizes, 1))[:, None]
    counts = np.clip(rows.row_weights, 0, HEAVIEST).astype(wide)
    return ((slopes * counts[:, None]).T @ x).ravel()


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs extended precision")
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
def test_computed_sums_are_within_the_rounding_bound_of_the_exact_ones(loss):
    """At points on the radius, where scores are large; and the bound is not thousands of times too large."""
    rng, worst = np.random.default_rng(3), 0.0
    for n, d in ((6, 2), (300, 12)):
        facts = facts_of(loss=loss, n=n, d=d)
        descent = Descent(3, LIMIT * loss.constants.lipschitz, 40.0, Mean())
        for _ in range(20):
            rows, at = rows_of(facts, rng, n), rng.normal(size=(1, facts.n_weights))
            at = at / np.linalg.norm(at) * descent.radius
            computed = rows.sum_over_rows(descent.row_sum(facts), at).gradient[0]
            error = np.linalg.norm(np.float64(computed - exact_sum(facts, descent.slope_limit, rows, at)))
            worst = max(worst, error / descent.rounding(facts))
    assert 1e-5 < worst <= 1.0


def test_the_rounding_bound_counts_slopes_scores_and_lengths():
    """The formula of proofs/gradient.md, theorem 2, with numbers put in by hand."""
    facts = facts_of(loss=LogisticHinge(0.5), n=1000, d=4)
    descent = Descent(3, LIMIT, 100.0, Mean())
    m, width = facts.summation_depth, 5
    expected = 1.01 * 2.0**-53 * 1000 * 3.0 * 2.5 * (
        (m + width + 5 + 13 + 2 * width + 12) + (2 * width + 5) * 0.25 * 2.5 * 100.0
    )  # fmt: skip
    assert descent.rounding(facts) == pytest.approx(expected, rel=1e-6)
    assert replace(descent, radius=200.0).rounding(facts) > 1.4 * descent.rounding(facts)


def test_a_hinge_without_a_joint_is_refused():
    """Scores are rounded, and a slope that jumps would turn that into whole rows: neighbours could be n steps apart."""
    with pytest.raises(ParameterError, match="too inexact"):
        mean_of_sums().plan(facts_of(loss=Hinge()), ZCDP(0.1))


def test_slopes_that_jump_would_turn_rounding_into_whole_rows():
    """4,000 rows with margin 1 up to rounding, and the same with other last bits: with a joint the sums stay together.

    The plain hinge flips hundreds of rows, each by its whole slope. So it is refused, and the joint is needed.
    """
    rng = np.random.default_rng(5)
    at, rows = rng.normal(size=(1, 24)), rng.normal(size=(4000, 24))
    rows = rows / (rows @ at[0])[:, None]
    sums = {}
    for loss in (Hinge(), HuberHinge(2.0**-12)):
        facts, descent = problem(4000, 24, loss=loss, row_norm=1e3), Descent(1, 1.0, 10.0, Mean())
        made = [
            rows_and_labels(rows[order]).sum_over_rows(descent.row_sum(facts), at * scale).gradient
            for order, scale in ((np.arange(4000), 1.0), (rng.permutation(4000), 1.0 + 2.0**-52))
        ]
        sums[loss.constants.name] = np.linalg.norm(made[0] - made[1]), descent.rounding(facts)
    assert sums["huber_hinge"][0] <= 2.0 * sums["huber_hinge"][1] < 1.0
    assert sums["hinge"][0] > 10.0 * np.linalg.norm(rows, axis=1).mean()


@BUDGETS
@BOTH
def test_all_sums_together_cost_the_budget_and_not_less(budget, neighbours):
    """T sums of deviation s and shift S are one Gaussian mechanism of mu sqrt(T) S / s: the budget to half a percent."""
    for n_steps in (1, 7, 80):
        facts = facts_of(neighbours)
        plan = mean_of_sums(n_steps, LIMIT).plan(facts, budget)
        shift = (2 if neighbours is REPLACE else 1) * HEAVIEST * LIMIT * RADIUS
        mu = math.sqrt(n_steps) * shift / plan.lattice.deviation
        promised = 1.0 / gaussian_multiplier(budget.epsilon, budget.delta) if isinstance(budget, ApproxDP) else (
            math.sqrt(2.0 * budget.rho)
        )  # fmt: skip
        assert 0.995 * promised <= mu <= promised
        assert isinstance(plan.event.curve, GaussianMechanism)
        assert mu <= plan.event.curve.mu <= mu_within(budget)
        assert plan.event.curve.mu == pytest.approx(promised, rel=1e-6)
        assert (plan.event.budget, plan.mechanism, plan.noise) == (budget, "gradient", None)
        if isinstance(budget, ZCDP):
            assert n_steps * plan.lattice.rho <= budget.rho
        else:
            assert gaussian_delta(budget.epsilon, plan.event.curve.mu) <= budget.delta


def test_what_was_released_before_is_paid_for():
    """mu 0.3 of 0.5 leaves 0.4, and the event has both."""
    alone = mean_of_sums(9).plan(facts_of(), ZCDP(0.08))
    plan = mean_of_sums(9).plan(replace(facts_of(), beside_mu=0.3), ZCDP(0.125))
    assert plan.lattice.deviation == pytest.approx(alone.lattice.deviation, rel=1e-6)
    assert plan.event.curve.mu == pytest.approx(0.5, rel=1e-6)
    assert plan.event.curve.mu <= mu_within(ZCDP(0.125))
    with pytest.raises(ParameterError, match="whole budget"):
        mean_of_sums(9).plan(replace(facts_of(), beside_mu=0.5), ZCDP(0.125))


def test_rows_of_one_person_are_paid_for_by_group_privacy():
    """Three rows a person: the noise for a third of epsilon, and no curve, which would describe one row."""
    for budget in (ApproxDP(1.0, 1e-6), ZCDP(0.1)):
        plan = mean_of_sums().plan(facts_of(persons=3), budget)
        alone = mean_of_sums().plan(facts_of(), budget_of_row(budget, 3))
        assert plan.lattice == alone.lattice
        assert plan.event.curve is None
        assert plan.event.rows_per_person == 3


@pytest.mark.parametrize("budget", [PureDP(1.0), PureDP(math.inf), ApproxDP(math.inf, 1e-6)], ids=str)
def test_other_budgets_are_refused_with_one_line(budget):
    """Pure privacy has no Gaussian noise."""
    with pytest.raises(ParameterError, match=r"needs a budget ApproxDP\(epsilon, delta\) or ZCDP\(rho\), and the budget is"):
        mean_of_sums().plan(facts_of(), budget)


@pytest.mark.parametrize(
    "given",
    [{"limit": 1.5}, {"limit": 0.0}, {"n_steps": 0}, {"limit": math.nan}, {"radius": 2.0**521}, {"radius": math.nan}],
    ids=str,
)
def test_a_descent_that_the_proof_does_not_cover_is_refused(given):
    """At least one step, and a limit of at most the largest slope."""
    with pytest.raises(ParameterError, match="at least one step"):
        mean_of_sums(**given).plan(facts_of(), ZCDP(0.1))


def test_too_many_rows_are_refused_from_public_facts():
    """The rounding of 10^14 rows would cost more than a tenth of the noise."""
    with pytest.raises(ParameterError, match="too inexact in double precision"):
        mean_of_sums().plan(facts_of(n=10**14), ZCDP(0.1))


def test_sums_whose_rounding_is_a_tenth_of_a_row_are_refused():
    """At nine hundredths of the sensitivity there is a plan, at eleven there is none."""
    descent = Descent(4, 0.5, 4.0, Mean())

    def with_share(share):
        n = 10**9
        for _ in range(20):
            n = round(n * share * descent.sensitivity(facts_of(n=n)) / (2.0 * descent.rounding(facts_of(n=n))))
        return facts_of(n=n)

    mean_of_sums().plan(with_share(0.09), ZCDP(0.1))
    with pytest.raises(ParameterError, match="too inexact in double precision"):
        mean_of_sums().plan(with_share(0.11), ZCDP(0.1))


def test_rounding_is_covered_by_the_noise():
    """2 r more sensitivity."""
    facts = facts_of(n=10**9)
    plan = mean_of_sums(radius=4.0).plan(facts, ZCDP(0.1))
    descent = plan.descent
    assert descent.rounding(facts) > 1e-4 * descent.sensitivity(facts)
    least = descent.sensitivity(facts) + 2.0 * descent.rounding(facts)
    assert least <= plan.lattice.l2_sensitivity <= least * (1.0 + 2.0**-30)


LARGE = problem(20, 2, row_norm=NORM, intercept=CONSTANT)
ROWS = source(20, 2, seed=4, length=3.0)
AT = (0.3, -0.2, 0.1)


def noise_of(n_fits, n_steps):
    """(fits, steps, D): what was added to the sums, in units of the deviation of the plan."""
    steps = Mean(AT)
    mechanism = mean_of_sums(n_steps, LIMIT, steps=steps)
    plan = mechanism.plan(LARGE, ZCDP(0.05))
    releases(mechanism, plan, ROWS, n_fits, entropy=7)
    exact = ROWS.sum_over_rows(plan.descent.row_sum(LARGE), np.array([AT])).gradient
    return ((np.vstack(steps.seen) - exact) / plan.lattice.deviation).reshape(n_fits, n_steps, 3)


def test_noise_on_each_sum_is_gaussian_of_the_deviation_of_the_plan():
    """100 fits of 10 sums: 3,000 numbers, whose law is normal and would not be with 30% less."""
    noise = noise_of(100, 10).ravel()
    check_law(noise, stats.norm.cdf)
    assert stats.kstest(noise * 0.7, stats.norm.cdf).pvalue < 1e-6


def test_every_sum_has_noise_of_its_own():
    """No two sums of one fit, or of two fits, have the same noise, and they are not correlated."""
    noise = noise_of(60, 12)
    assert len(np.unique(noise.reshape(-1, 3), axis=0)) == 60 * 12
    in_time = np.corrcoef(noise[:, :-1].ravel(), noise[:, 1:].ravel())[0, 1]
    assert abs(in_time) < 4.0 / math.sqrt(noise[:, 1:].size)


def test_noise_that_is_drawn_in_batches_is_used_once(monkeypatch):
    """Batches of 2 sums and of all of them: the same number of integers, each added once."""
    monkeypatch.setattr("confide.privacy.gradient._MOST_DRAWN", 6)
    noise = noise_of(150, 5)
    assert len(np.unique(noise.reshape(-1, 3), axis=0)) == 750
    check_law(noise.ravel(), stats.norm.cdf)


def test_all_scores_are_rounded_to_the_grid_and_paid_for():
    """Three classes: noise on each of 9 weights, and each of them moves by a grid step at most."""
    lattice = mean_of_sums(limit=0.5).plan(facts_of(loss=Softmax(3)), ZCDP(0.1)).lattice
    assert lattice.dimension == 9
    assert lattice.rounded_sensitivity >= lattice.l2_sensitivity + 3.0 * lattice.step


def test_no_more_than_65536_integers_wait_in_memory(monkeypatch):
    """A hundred sums of 1,001 weights: 65 of them, and then 35. Of 40,001 weights, one at a time."""
    drawn, integers = [], LatticeNoise.integers
    monkeypatch.setattr(LatticeNoise, "integers", lambda self, n, entropy: drawn.append(n) or integers(self, n, entropy))
    mechanism = mean_of_sums(100)
    plan = mechanism.plan(problem(20, 1000, intercept=1.0), ZCDP(0.1))
    mechanism.release(plan, source(20, 1000), NewtonThenFallback(), Entropy.seeded(0))
    assert drawn == [65 * 1001, 35 * 1001]
    drawn.clear()
    mechanism = mean_of_sums(2)
    plan = mechanism.plan(problem(4, 40_000, intercept=1.0), ZCDP(0.1))
    mechanism.release(plan, source(4, 40_000), NewtonThenFallback(), Entropy.seeded(0))
    assert drawn == [40_001, 40_001]


class Counting:
    """Rows that count the sums made of them, and remember where."""

    def __init__(self, rows):
        self.rows, self.asked = rows, []
        self.n_rows, self.n_features = rows.n_rows, rows.n_features

    def for_many_passes(self, row_sum):
        """These rows."""
        return self

    def sum_over_rows(self, row_sum, weights):
        """The sum."""
        self.asked.append((row_sum, weights.copy()))
        return self.rows.sum_over_rows(row_sum, weights)


class Stray(Mean):
    """Steps that lead far away, and to what is not finite."""

    def start(self, n_weights):
        """The walk before the first sum."""
        return StrayWalk([np.full((1, n_weights), v) for v in (0.0, 1.0, 1e300, np.inf, np.nan, -1e5)])


class StrayWalk:
    """A walk along given points."""

    def __init__(self, points):
        self.points, self.weights = points, points[0]
        self.point = points[0]

    def after(self, noisy):
        """The next point."""
        return StrayWalk(self.points[1:] or [self.point])


def test_sums_are_made_as_often_as_planned_and_at_points_within_the_radius():
    """Whatever the steps do: 6 sums, each clipped, none at a point beyond the radius."""
    mechanism = mean_of_sums(6, LIMIT, 4.0, steps=Stray())
    plan, rows = mechanism.plan(LARGE, ZCDP(0.1)), Counting(ROWS)
    mechanism.release(plan, rows, NewtonThenFallback(), Entropy.seeded(0))
    assert len(rows.asked) == 6
    assert {row_sum for row_sum, _ in rows.asked} == {plan.descent.row_sum(LARGE)}
    norms = [float(np.linalg.norm(at)) for _, at in rows.asked]
    assert max(norms) <= 4.0
    assert norms[5] == pytest.approx(4.0, rel=1e-5)
    assert norms[1] == pytest.approx(math.sqrt(3.0))
    assert norms[2:5] == [0.0, 0.0, 0.0]


def test_points_inside_the_radius_stay_as_they_are():
    """Bit for bit; those outside are scaled to it, in exact arithmetic."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        point, radius = rng.normal(size=(1, 7)) * 10.0 ** rng.uniform(-5, 5), 10.0 ** rng.uniform(-3, 3)
        found = _within(point, radius)
        exact = sum(Fraction(v) ** 2 for v in found[0].tolist())
        assert exact <= Fraction(radius) ** 2
        if np.linalg.norm(point) < 0.999 * radius:
            np.testing.assert_array_equal(found, point)
        else:
            assert float(exact) == pytest.approx(radius**2, rel=1e-5)


def test_points_and_weights_depend_on_noisy_sums_alone(monkeypatch):
    """Replayed with the noisy sums of another fit, over rows that pull in the other direction, not at all, or as before.

    The same points are asked for as often, and the same weights leave, to the bit.
    """
    steps = HeavyBall(12, 0.02, 0.9, 1.0)
    mechanism, solver = mean_of_sums(12, LIMIT, steps=steps), NewtonThenFallback()
    plan, release = mechanism.plan(LARGE, ZCDP(0.1)), LatticeNoise.release
    far = np.full((20, 2), NORM)
    others = [rows_and_labels(far), rows_and_labels(-far), rows_and_labels(0.0 * far, np.tile([1, -1], 10))]
    seen, noisy = [], []

    def recorded(lattice, sums, entropy, drawn=None):
        noisy.append(release(lattice, sums, entropy, drawn))
        return noisy[-1]

    monkeypatch.setattr(LatticeNoise, "release", recorded)
    for rows in (ROWS, ROWS, *others):
        counting = Counting(rows)
        weights = mechanism.release(plan, counting, solver, Entropy.seeded(0)).weights
        seen.append((weights, np.vstack([at for _, at in counting.asked])))
        left = iter(noisy[:12])
        monkeypatch.setattr(LatticeNoise, "release", lambda *_, left=left: next(left).copy())
    assert len(np.unique(seen[0][1], axis=0)) == 12
    for weights, points in seen[1:]:
        np.testing.assert_array_equal(weights, seen[0][0])
        np.testing.assert_array_equal(points, seen[0][1])


def test_another_mechanisms_plan_is_not_released():
    """Its noise may be too little, in either direction."""
    solver, entropy = NewtonThenFallback(), Entropy.seeded(0)
    own = mean_of_sums().plan(LARGE, ZCDP(0.1))
    others = ObjectivePerturbation().plan(LARGE, ApproxDP(1.0, 1e-6))
    with pytest.raises(ParameterError, match="another mechanism"):
        mean_of_sums().release(others, ROWS, solver, entropy)
    with pytest.raises(ParameterError, match="another mechanism"):
        ObjectivePerturbation().release(own, ROWS, solver, entropy)


def test_a_sum_that_is_not_finite_is_not_released(monkeypatch):
    """No data can cause it; what is charged stays charged."""
    mechanism = mean_of_sums()
    plan = mechanism.plan(LARGE, ZCDP(0.1))
    monkeypatch.setattr(
        ClippedSlopes, "of_scores", lambda self, scores, *_: LogisticLoss().of_scores(scores * np.nan, np.ones(20), 1)
    )
    with pytest.raises(NotCertified, match="not finite"), np.errstate(all="ignore"):
        mechanism.release(plan, ROWS, NewtonThenFallback(), Entropy.seeded(0))


@pytest.mark.parametrize("bound", [GROUPS, LINKED], ids=["groups", "linked"])
def test_rows_in_groups_are_clipped_in_the_l2_norm(bound):
    """Slopes may be larger for shorter rows: never more than the limit times the largest norm."""
    facts = problem(8, 6, row_bound=bound, intercept=CONSTANT)
    descent = Descent(1, LIMIT, 4.0, Mean())
    for row in group_rows(bound, 8):
        made = rows_and_labels([row], [-1])
        length = np.linalg.norm(made.sum_over_rows(descent.row_sum(facts), np.full((1, 7), 50.0)).gradient)
        assert length <= LIMIT * facts.row_norm * (1.0 + 1e-14)


def test_a_lattice_of_the_plan_is_gaussian_and_fine():
    """A thousandth of the noise or finer, for every number of steps and large budgets."""
    for budget in (ZCDP(1e-3), ZCDP(50.0)):
        for n_steps in (1, 500):
            lattice = mean_of_sums(n_steps).plan(facts_of(), budget).lattice
            assert isinstance(lattice, LatticeGaussian)
            assert lattice.step * 500.0 <= lattice.deviation


def test_where_the_noise_is_large_the_grid_is_a_thousandth_of_the_sensitivity():
    """Over the root of the number of weights, but for the next power of two."""
    lattice = mean_of_sums(500).plan(facts_of(d=5), ZCDP(1e-3)).lattice
    fine = lattice.l2_sensitivity / 1000.0 / math.sqrt(lattice.dimension)
    assert 0.5 * fine < lattice.step <= fine


def test_the_mechanism_is_a_value():
    """Frozen, so that no fit leaves anything in it for the next one."""
    with pytest.raises(AttributeError):
        mean_of_sums().decide = None
    assert NoisyGradients.__dataclass_params__.frozen
    assert Descent.__dataclass_params__.frozen


def centred_facts(n=60, d=8, limit_of=1.0):
    """Rows in a ball of norm 2 around a centre that is 1.6 long, with an intercept."""
    centre = np.zeros(d)
    centre[:2] = 1.6 / math.sqrt(2.0)
    bound = Centred(BallBound(NORM), tuple(centre), 1.2)
    return problem(n, d, row_bound=bound, intercept=limit_of * CONSTANT, largest_weight=HEAVIEST), centre


@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="needs extended precision")
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_sums_over_centred_rows_are_within_the_rounding_bound(kind):
    """Rows that nearly are the centre, among others, with a small constant: computed lengths lose their digits there."""
    rng, worst = np.random.default_rng(4), 0.0
    for constant in (1.0, 0.05):
        facts, centre = centred_facts(limit_of=constant)
        bound, wide = facts.row_bound, np.longdouble
        descent = Descent(3, 0.4, 40.0, Mean())
        raw = centre + rng.normal(size=(60, 8)) * 10.0 ** rng.uniform(-9, 0.5, (60, 1))
        labels, counts = rng.choice([-1, 1], 60).astype(np.int8), rng.uniform(0.0, 3.0, 60)
        blocks = ArrayBlocks(raw if kind == "dense" else csr_array(raw))
        at = rng.normal(size=(1, 9))
        at *= 40.0 / np.linalg.norm(at)
        computed = MemorySource(blocks, labels, counts).sum_over_rows(descent.row_sum(facts), at).gradient[0]
        inside = bound.inner._radius(8)
        x = raw.astype(wide)
        x = x * np.minimum(1, inside / np.sqrt((x * x).sum(axis=1)))[:, None] - np.array(bound.centre, dtype=wide)
        radius = bound.radius * (1.0 - max(2.0**-40, 16 * 2.0**-49))
        x = bound.magnification * x * np.minimum(1, radius / np.sqrt((x * x).sum(axis=1)))[:, None]
        x = np.column_stack([x, np.full(60, facts.intercept, dtype=wide)])
        slopes = labels * facts.loss.derivative(labels * (x @ at[0].astype(wide)))
        lengths = np.sqrt((x * x).sum(axis=1))
        slopes = slopes * np.minimum(1, wide(0.4) * facts.row_norm / (np.abs(slopes) * lengths + wide(1e-300)))
        error = np.linalg.norm(np.float64(computed - (slopes * counts) @ x))
        worst = max(worst, error / descent.rounding(facts))
    assert 1e-6 < worst <= 1.0


def test_the_largest_radius_is_covered_and_its_rounding_is_what_refuses_it():
    """2^520 itself is no fault of the descent."""
    with pytest.raises(ParameterError, match="too inexact"):
        mean_of_sums(radius=2.0**520).plan(facts_of(), ZCDP(0.1))


def test_points_outside_come_a_part_in_a_million_inside():
    """1 - 2^-20 of the radius, which is more than the norm of any number of weights may round."""
    found = _within(np.array([[3.0, 4.0]]), 2.0)
    np.testing.assert_allclose(found, np.array([[1.2, 1.6]]) * (1.0 - 2.0**-20), rtol=1e-12)


def test_rows_that_the_plan_is_not_for_are_refused():
    """Another number of columns, before any sum is made."""
    plan = mean_of_sums().plan(facts_of(d=2), ZCDP(0.1))
    with pytest.raises(ParameterError, match="the plan is for"):
        mean_of_sums().release(plan, rows_of(facts_of(d=3), np.random.default_rng(0), 8), None, Entropy.seeded(0))


def test_a_plan_of_gradients_has_no_minimiser_to_be_near_to():
    """Nothing is solved, so tolerance and radius are 0."""
    plan = mean_of_sums(9).plan(facts_of(), ZCDP(0.08))
    assert (plan.tolerance, plan.radius, plan.noise) == (0.0, 0.0, None)
