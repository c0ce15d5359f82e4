"""The centre of the rows: its sensitivity by search, the law of its noise, what follows from it, and rounding of sums."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from scipy import stats

from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import LEAST_RADIUS, BallBound, Centred
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import SquaredLoss
from confide.erm.transformed_losses import ClippedSlopes
from confide.errors import ParameterError
from confide.models.scores import LinearModel
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, budget_of_row
from confide.privacy.centring import centred_by, centring_plan
from confide.privacy.certificate import GradientRounding
from confide.privacy.gaussian import gaussian_delta, mu_within
from confide.privacy.lattice import LatticeNoise
from confide.privacy.noise import Entropy
from confide.privacy.objective_account import concentrated_rho
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import NewtonThenFallback
from tests.covering import pairs_of
from tests.privacy.laws import mu_of
from tests.privacy.problems import GROUPS, problem, rows_and_labels, source

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BUDGETS = {"approximate": ApproxDP(1.0, 1e-5), "concentrated": ZCDP(0.1)}
ACCEPT, REJECT = 1e-3, 1e-8
OBJECTIVE = ObjectivePerturbation()


def facts(neighbours=REPLACE, **others):
    """A small problem whose rows can be centred."""
    high = others.pop("high", 30 if neighbours is ADD else None)
    return problem(intercept=1.0, neighbours=neighbours, high=high, **others)


def centred_plan(neighbours=REPLACE, budget=BUDGETS["approximate"], mechanism=OBJECTIVE, share=0.02, **others):
    """A plan of weights with its centre."""
    plain = facts(neighbours, **others)
    centring = centring_plan(plain, budget, share)
    bound = Centred.unmoved(plain.row_bound, plain.n_features)
    plan = mechanism.plan(replace(plain, row_bound=bound, beside_mu=centring.mu), budget)
    return replace(plan, parts=(centring,))


def with_centre(plan, rows, entropy):
    """The plan with the centre that its part releases."""
    (part,) = plan.parts
    return part.query.before(part, plan, rows, entropy)[0]


def exact_sum(plan, rows, row_weights=None):
    """The sum that is released, without noise."""
    row_sum = plan.query.row_sum
    width = row_sum.n_weights(np.shape(rows)[1])
    return rows_and_labels(rows, None, row_weights).sum_over_rows(row_sum, np.zeros((1, width))).gradient[0]


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours, weight):
    """Over rows at the edge of the ball and weights of rows; the bound is attained, and no more than 0.1% above that."""
    plan = centring_plan(facts(neighbours, d=2, largest_weight=weight), ApproxDP(1.0, 1e-5), 0.02)
    angles = np.linspace(0.0, 2.0 * math.pi, 13)
    edge = [(9.0 * math.cos(a), 9.0 * math.sin(a)) for a in angles]
    weights = (0.0, 0.5 * weight, weight)
    one = [exact_sum(plan, [row], np.array([w])) for row in edge for w in weights]
    others = one if neighbours is REPLACE else [np.zeros_like(one[0])]
    largest = max(float(np.linalg.norm(a - b)) for a in one for b in others)
    assert largest <= plan.lattice.l2_sensitivity <= 1.001 * largest


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], persons=[1, 3])
def test_released_sums_scatter_by_the_theorems_law(name, neighbours, persons):
    """400 releases of a centre; noise 0.7 or 1.4 times as large would be rejected. The law is computed here again."""
    budget, share = BUDGETS[name], 0.05
    plan = centring_plan(facts(neighbours, d=6, rows_per_person=persons), budget, share)
    entropy = Entropy.seeded(3)
    noise = np.vstack([plan.lattice.release(np.zeros((1, plan.lattice.dimension)), entropy) for _ in range(400)]).ravel()
    of_row = budget_of_row(budget, persons)
    mu = mu_of(of_row)
    longest = 2.0 if neighbours is REPLACE else math.hypot(1.0, 0.3)
    law = stats.norm(scale=longest / (math.sqrt(share) * mu))
    assert stats.kstest(noise, law.cdf).pvalue > ACCEPT
    for factor in (0.7, 1.4):
        assert stats.kstest(factor * noise, law.cdf).pvalue < REJECT
    assert plan.mu == pytest.approx(math.sqrt(share) * mu, rel=1e-3)


@pytest.mark.parametrize("mechanism", [ObjectivePerturbation(), OutputPerturbation()], ids=["objective", "output"])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("name", BUDGETS)
def test_one_charge_covers_the_centre_and_the_weights(name, neighbours, mechanism):
    """The curve of the event knows the centre's mu, costs the budget, and would exceed it were that mu not subtracted."""
    budget = BUDGETS[name]
    plan = centred_plan(neighbours, budget, mechanism, share=0.3, l2=300.0)
    alone = mechanism.plan(facts(neighbours, l2=300.0), budget)
    assert plan.problem.beside_mu == plan.centring.mu > 0.5 * mu_within(budget)
    of_weights = plan.noise.norm if plan.noise else plan.lattice.norm
    of_weights_alone = alone.noise.norm if alone.noise else alone.lattice.norm
    assert of_weights > 1.1 * of_weights_alone
    curve = plan.event.curve
    if plan.noise and plan.noise.in_objective and name == "approximate":
        assert curve.beside_mu == plan.centring.mu
        assert 0.99 * budget.delta <= curve.delta(budget.epsilon) <= budget.delta
        # At the same noise, a centre of twice the mu costs more than the budget.
        assert replace(curve, beside_mu=2.0 * curve.beside_mu).delta(budget.epsilon) > budget.delta
    elif plan.noise and plan.noise.in_objective:
        assert concentrated_rho(curve) <= budget.rho < concentrated_rho(replace(curve, beside_mu=2.0 * curve.beside_mu))
    else:
        both = math.hypot(1.0 / plan.lattice.multiplier, plan.centring.mu)
        cost = gaussian_delta(budget.epsilon, both) / budget.delta if name == "approximate" else both**2 / 2.0 / budget.rho
        assert 0.99 <= cost <= 1.0


def test_the_plan_of_the_weights_is_the_same_for_every_centre():
    """Noise, ridge, tolerance and grid depend on the inner bound alone; the release replaces centre and radius."""
    plan = centred_plan(d=3, n=200, budget=ApproxDP(8.0, 1e-5))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3)) * 0.1 + [0.5, 0.3, 0.0]
    released = with_centre(plan, rows_and_labels(rows), Entropy.seeded(1))
    bound = released.problem.row_bound
    assert np.linalg.norm(np.array(bound.centre) - rows.mean(axis=0)) < 0.2
    assert bound.radius == pytest.approx(math.sqrt(1.0 - np.linalg.norm(bound.centre) ** 2), rel=0.1)
    assert replace(released, problem=plan.problem) == plan
    assert released.problem.rounding(1.0) == plan.problem.rounding(1.0)
    assert released.problem.shapes == plan.problem.shapes
    again = ObjectivePerturbation().plan(released.problem, plan.budget)
    assert replace(again, parts=plan.parts) == released


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_the_centre_depends_on_the_noisy_sum_alone(neighbours, monkeypatch):
    """Replayed with one noisy sum over rows that lie elsewhere: the same centre and radius, to the bit."""
    plan = centred_plan(neighbours, d=3, n=200, high=None if neighbours is REPLACE else 300, budget=ApproxDP(8.0, 1e-5))
    noisy = np.array([[80.0, 40.0, -20.0] + [60.0] * (neighbours is ADD)])
    monkeypatch.setattr(LatticeNoise, "release", lambda *_: noisy.copy())
    middle = np.array([0.5, 0.3, 0.0])
    found = {
        with_centre(plan, rows_and_labels(np.tile(sign * middle, (200, 1))), Entropy.seeded(seed)).problem.row_bound
        for seed, sign in enumerate((1.0, -1.0, 0.0))
    }
    assert found == {centred_by(plan.centring, noisy[0])}
    assert found != {plan.problem.row_bound}


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_a_centre_is_the_mean_where_the_noise_is_small_and_0_where_it_is_all(neighbours):
    """The count is noisy where it is private, and the mean is shortened by what of its length is expected to be noise."""
    rng = np.random.default_rng(0)
    rows = BallBound(1.0).clip(rng.normal(size=(5000, 4)) * 0.2 + [0.6, 0.0, 0.2, 0.0])
    loud = centring_plan(facts(neighbours, d=4, n=5000, high=None if neighbours is REPLACE else 9000), ZCDP(1e-9), 0.02)
    clear = centring_plan(facts(neighbours, d=4, n=5000, high=None if neighbours is REPLACE else 9000), ZCDP(10.0), 0.02)
    found = centred_by(clear, exact_sum(clear, rows))
    assert np.linalg.norm(np.array(found.centre) - rows.mean(axis=0)) < 1e-3
    assert found.radius == pytest.approx(math.sqrt(1.0 - rows.mean(axis=0) @ rows.mean(axis=0)), rel=1e-3)
    lengths = []
    for seed in range(20):
        noisy = exact_sum(loud, rows) + loud.lattice.release(np.zeros((1, loud.lattice.dimension)), Entropy.seeded(seed))[0]
        lengths.append(np.linalg.norm(centred_by(loud, noisy).centre))
    assert min(lengths) == 0.0


def test_the_mean_is_shortened_by_the_noise_in_its_square():
    """(|m|^2 - D (deviation / n)^2) / |m|^2 times m, and the radius is what is left of the norm beside that square."""
    plan = centring_plan(facts(d=4, n=50), ZCDP(0.5), 0.02)
    mean = np.array([0.6, -0.5, 0.3, 0.1])
    noise = 4 * (plan.lattice.deviation / 50) ** 2
    square = mean @ mean - noise
    assert 0.1 < noise < 0.9 * (mean @ mean)
    found = centred_by(plan, np.append(50 * mean, 50.0)[: plan.lattice.dimension])
    np.testing.assert_allclose(found.centre, square / (mean @ mean) * mean, rtol=1e-9)
    assert found.radius == pytest.approx(math.sqrt(1.0 - square**2 / (mean @ mean)), rel=1e-9)


def test_whatever_was_released_gives_a_centre_and_a_radius_for_which_everything_is_proven():
    """Nothing after the charge may fail: sums of any size and direction, counts below 0, nothing at all."""
    for neighbours in (REPLACE, ADD):
        for bound in (BallBound(1e-80), BallBound(3.0), BallBound(2.0**299), GROUPS):
            plan = centring_plan(facts(neighbours, d=6, row_bound=bound), ApproxDP(0.1, 1e-5), 0.02)
            rng = np.random.default_rng(0)
            for size in (0.0, 1e-300, 1e-3, 1.0, 1e3, 1e12):
                for _ in range(20):
                    released = rng.normal(size=plan.lattice.dimension) * size * bound.l2_norm
                    found = centred_by(plan, released)
                    assert LEAST_RADIUS * bound.l2_norm <= found.radius <= bound.l2_norm
                    assert np.isfinite(found.centre).all()


def test_the_sum_of_weights_takes_the_place_of_the_count():
    """Rows that weigh little are divided by the sum of their weights, also where rows are replaced."""
    rng = np.random.default_rng(0)
    rows, weights = rng.normal(size=(5000, 2)) * 0.1 + [0.5, 0.0], rng.uniform(0.0, 0.2, 5000)
    plan = centring_plan(facts(n=5000, d=2, largest_weight=2.0), ZCDP(10.0), 0.1)
    found = centred_by(plan, exact_sum(plan, rows, weights))
    np.testing.assert_allclose(found.centre, [0.5, 0.0], atol=0.01)


def test_a_plan_whose_charge_does_not_cover_the_centre_is_not_released():
    """A smaller mu, the noise of another centre, rows that stay where they are, or a plan without one."""
    plan, rows = centred_plan(), source()
    too_cheap = replace(plan, problem=replace(plan.problem, beside_mu=0.99 * plan.centring.mu))
    more_precise = replace(plan, parts=(centring_plan(facts(), BUDGETS["approximate"], 0.04),))
    of_others = replace(plan, parts=(centring_plan(facts(row_norm=0.5), BUDGETS["approximate"], 0.02),))
    uncentred = replace(plan, problem=facts())
    for wrong in (too_cheap, more_precise, of_others, uncentred):
        with pytest.raises(ParameterError, match="another mechanism"):
            with_centre(wrong, rows, Entropy.seeded(0))
    with pytest.raises(ParameterError, match="another mechanism"):
        plan.centring.query.before(plan.centring, replace(plan, parts=()), rows, Entropy.seeded(0))


@pytest.mark.parametrize("weight", [1.0, 2.0])
def test_the_centre_of_the_other_relation_is_not_released(weight):
    """Rows of several weights are counted under both relations, so their sums are alike and their distances are not."""
    own, other = (facts(neighbours=relation, largest_weight=weight) for relation in (REPLACE, ADD))
    plan, centring = (
        centred_plan(neighbours=REPLACE, largest_weight=weight),
        centring_plan(other, BUDGETS["approximate"], 0.02),
    )
    assert centring.lattice.deviation < centring_plan(own, BUDGETS["approximate"], 0.02).lattice.deviation
    with pytest.raises(ParameterError, match="another mechanism"):
        with_centre(replace(plan, parts=(centring,)), source(), Entropy.seeded(0))


def test_what_cannot_be_centred_is_refused_when_it_is_planned():
    """Pure budgets, and losses whose slopes are bounded by the lengths of rows."""
    with pytest.raises(ParameterError, match="pays for no gaussian noise"):
        centring_plan(facts(), PureDP(1.0), 0.02)
    with pytest.raises(ParameterError, match="rows of all lengths"):
        facts(row_bound=Centred.unmoved(BallBound(1.0), 2), loss=SquaredLoss(1.0, 1.0, by_length=True))
    with pytest.raises(ParameterError, match="need an intercept"):
        problem(row_bound=Centred.unmoved(BallBound(1.0), 2))


def test_weights_are_reported_for_rows_as_they_were():
    """Scores of rows within the radius are those of the moved rows."""
    plan = centred_plan(d=3, n=200, budget=ApproxDP(8.0, 1e-5))
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3)) * 0.1 + [0.5, 0.3, 0.0]
    made = with_centre(plan, rows_and_labels(rows), Entropy.seeded(1))
    weights = ObjectivePerturbation().release(made, rows_and_labels(rows), NewtonThenFallback(), Entropy.seeded(2)).weights
    moved = made.problem.row_bound.clip(rows) @ weights[0, :3] + weights[0, 3]
    scores = LinearModel.of(weights, made.problem).scores(ArrayBlocks(rows))
    inside = np.linalg.norm(rows - made.problem.row_bound.centre, axis=1) < made.problem.row_bound.radius
    assert inside.mean() > 0.9
    np.testing.assert_allclose(scores[inside], moved[inside], rtol=1e-10)
    assert LinearModel.of(weights, made.problem).row_bound == BallBound(1.0)


def exact_gradient(mp, bound, rows, labels, counts, l2, linear, w, intercept, limit):
    """Gradient of the logistic loss over rows that are clipped, moved and shortened in real arithmetic, in 60 digits."""
    d, norm, centre = rows.shape[1], bound.inner.norm, [mp.mpf(m) for m in bound.centre]
    first = mp.mpf(norm * (1.0 - max(2.0**-40, (d + 8) * 2.0**-52)))
    second = mp.mpf(bound.radius * (1.0 - max(2.0**-40, (d + 8) * 2.0**-49)))
    total = [mp.mpf(float(l2)) * mp.mpf(float(v)) + mp.mpf(float(b)) for v, b in zip(w, linear, strict=True)]
    for row, label, count in zip(rows, labels, counts, strict=True):
        x = [mp.mpf(float(v)) for v in row]
        for radius, point in ((first, [0] * d), (second, centre)):
            x = [v - p for v, p in zip(x, point, strict=True)]
            length = mp.sqrt(mp.fsum(v * v for v in x))
            x = [v * radius / length for v in x] if length > radius else x
        x = [v * mp.mpf(norm) / mp.mpf(bound.radius) for v in x] + [mp.mpf(intercept)]
        z = int(label) * mp.fsum(v * mp.mpf(float(u)) for v, u in zip(x, w, strict=True))
        slope = max(-1 / (1 + mp.exp(z)), -mp.mpf(limit) / mp.sqrt(mp.fsum(v * v for v in x)))
        total = [t + mp.mpf(float(count)) * slope * int(label) * v for t, v in zip(total, x, strict=True)]
    return total


@pytest.mark.parametrize("limit", [math.inf, 0.4], ids=["slopes as they are", "clipped slopes"])
@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_rounding_bound_covers_centred_rows(layout, limit):
    """Rows near a centre as long as the bound, cancelling margins, all sizes: error over bound at most 1, and not tiny."""
    mpmath = pytest.importorskip("mpmath")
    rng = np.random.default_rng(4)
    worst = 0.0
    for case in range(40):
        n, d = int(rng.integers(1, 40)), int(rng.integers(1, 6))
        norm, intercept = float(np.exp(rng.uniform(-3, 3))), float(np.exp(rng.uniform(-3, 1)))
        centre = rng.normal(size=d)
        centre = BallBound(norm).clip(centre[None] * norm * 10.0)[0]
        rows = centre * (1.0 - 1e-3 * rng.random((n, 1))) + rng.normal(size=(n, d)) * norm * np.exp(rng.uniform(-12, 1))
        bound = Centred(BallBound(norm), tuple(centre), norm * rng.choice([0.5, 0.7, 1.0]))
        w = rng.normal(size=d + 1) * np.exp(rng.uniform(-2, 8))
        if case % 3 == 0:
            w[:-1] -= centre * (centre @ w[:-1]) / (centre @ centre) * (1 - 1e-9)
        labels, counts = rng.choice([-1, 1], size=n).astype(np.int8), 2.0 * rng.random(n)
        l2, linear = float(np.exp(rng.uniform(-4, 4))), rng.normal(size=d + 1) * 10
        blocks = ArrayBlocks(scipy.sparse.csr_array(rows) if layout == "sparse" else rows)
        loss = LogisticLoss() if limit == math.inf else ClippedSlopes(LogisticLoss(), limit)
        public = problem(n, d, loss=loss, row_bound=bound, intercept=intercept, largest_weight=2.0)
        objective = Objective(MemorySource(blocks, labels, counts), loss, bound, intercept, l2, linear[None], 2.0)
        computed = objective.evaluate(w[None], order=1).gradient[0]
        size = (float(np.linalg.norm(v)) for v in (w, linear, computed))
        allowed = public.rounding(l2).bound(*size)
        with mpmath.workdps(60):
            exact = exact_gradient(mpmath.mp, bound, rows, labels, counts, l2, linear, w, intercept, limit * public.row_norm)
            error = mpmath.sqrt(mpmath.fsum((mpmath.mpf(float(c)) - e) ** 2 for c, e in zip(computed, exact, strict=True)))
        worst = max(worst, float(error) / allowed)
    assert 1e-4 < worst <= 1.0


def test_the_bound_for_centred_rows_is_the_theorems_formula():
    """Written out: of sums 4 m + 11 D + 58, of scores 15 D + 57."""
    depth = summation_depth(1000, 10)
    plain, centred = (GradientRounding(LogisticLoss().constants, 2.0, 1000, 11, depth, 1e-9, each) for each in (False, True))
    unit = 1.01 * 2.0**-53 * 1000 * 2.0
    assert centred.bound(0.0, 0.0, 0.0) == pytest.approx(unit * (4 * depth + 11 * 11 + 58 + 12))
    extra = unit * (15 * 11 + 57) * 0.25 * 2.0 * 1e6
    assert centred.bound(1e6, 0.0, 0.0) - centred.bound(0.0, 0.0, 0.0) == pytest.approx(extra, rel=1e-6)
    assert centred.worst(1.0) > 3.0 * plain.worst(1.0)
    clipped = replace(centred, loss=ClippedSlopes(LogisticLoss(), 0.5).constants, intercept=0.5)
    of_lengths = unit * (2 * 11 + 12 + 10 * (11 + 3) * 16)
    assert clipped.bound(0.0, 0.0, 0.0) - centred.bound(0.0, 0.0, 0.0) == pytest.approx(of_lengths)


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_slopes_of_centred_rows_are_clipped_to_their_length(layout):
    """The gradient of each row is at most the limit times R, and is that limit where its slope is larger."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 3)) * 0.2 + 0.5
    bound = Centred(BallBound(1.2), tuple(rows.mean(axis=0)), 0.7)
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), bound, 0.4, 1)
    largest, norm = 0.0, math.hypot(1.2, 0.4)
    for row in rows:
        given = scipy.sparse.csr_array(row[None]) if layout == "sparse" else row[None]
        totals = row_sum.start(1, 3)
        row_sum.add_block(totals, given, np.ones(1), np.full((1, 4), -30.0))
        moved = np.append(bound.clip(row[None])[0], 0.4)
        slope = min(1.0 / (1.0 + math.exp(-30.0 * moved.sum())), 0.3 * norm / np.linalg.norm(moved))
        np.testing.assert_allclose(totals.gradient[0], -slope * moved, rtol=1e-9, atol=1e-12)
        largest = max(largest, float(np.linalg.norm(totals.gradient)))
    assert largest == pytest.approx(0.3 * norm)


def test_the_sum_has_one_constant_and_no_curvature():
    """Slopes alone are summed: of rows that are replaced, and beside three tenths of a row where their number is private."""
    for neighbours, constant in ((REPLACE, 0.0), (ADD, 0.3 * 4.0)):
        row_sum = centring_plan(facts(neighbours, row_norm=4.0), ZCDP(0.1), 0.02).query.row_sum
        assert (row_sum.order, row_sum.intercept, row_sum.largest_weight) == (1, pytest.approx(constant), 1.0)


@pytest.mark.parametrize("norm", [0.25, 4.0])
def test_a_radius_is_never_below_its_least_share_of_the_norm(norm):
    """Where all rows are one point at the edge of the bound, and hardly any noise hides it."""
    plan = centring_plan(facts(n=10**6, row_norm=norm), ZCDP(1e6), 0.5)
    found = centred_by(plan, np.array([2.0 * norm, 0.0]) * 10**6)
    assert found.radius == LEAST_RADIUS * norm
    assert np.linalg.norm(found.centre) == pytest.approx(norm)


@pytest.mark.parametrize("rho", [1e-4, 1.0, 1e4, 1e8])
def test_the_grid_is_fine_beside_sensitivity_and_noise(rho):
    """A thousandth of the smaller of both over the root of the dimension, but for the next power of two."""
    lattice = centring_plan(facts(), ZCDP(rho), 0.5).lattice
    fine = lattice.l2_sensitivity * min(1.0, 1.0 / math.sqrt(rho)) / 1000.0 / math.sqrt(lattice.dimension)
    assert 0.499 * fine <= lattice.step <= 1.001 * fine
    assert lattice.deviation == pytest.approx(lattice.l2_sensitivity / math.sqrt(rho), rel=0.01)


def test_rows_of_the_largest_norm_that_is_allowed_can_be_centred():
    """2^300 is, and two groups of which each is nearly as long are not."""
    assert centring_plan(facts(row_norm=2.0**300), ZCDP(0.1), 0.02).lattice.l2_sensitivity >= 2.0**301
    with pytest.raises(ParameterError, match="2\\^300"):
        centring_plan(facts(row_bound=GroupBound((1, 1), (2.0**299.9, 2.0**299.9))), ZCDP(0.1), 0.02)


@pytest.mark.parametrize(("neighbours", "longest"), [(REPLACE, 2.0), (ADD, math.hypot(1.0, 0.3))], ids=["replace", "add"])
def test_the_noise_pays_twice_for_the_rounding_of_the_sum(neighbours, longest):
    """For two data sets, each of 10^12 rows of norm 2, off by 1.01 u n R (m + D + 6) at most."""
    high = None if neighbours is REPLACE else 2 * 10**12
    given = facts(neighbours, d=3, n=10**12, high=high, row_norm=2.0)
    plan = centring_plan(given, ZCDP(0.1), 0.02)
    n, width = (10**12, 3) if neighbours is REPLACE else (2 * 10**12, 4)
    norm = 2.0 * (1.0 if neighbours is REPLACE else math.hypot(1.0, 0.3))
    rounding = 1.01 * 2.0**-53 * n * norm * (given.summation_depth + width + 5 + 1)
    assert rounding > 0.01
    assert plan.lattice.l2_sensitivity == pytest.approx(2.0 * longest + 2.0 * rounding, rel=1e-9)


@pytest.mark.parametrize("rows", [source(21), source(20, d=3)], ids=["rows", "columns"])
def test_rows_that_the_plan_is_not_for_are_not_centred(rows):
    """Their number and that of their columns are public facts, which the noise was planned for."""
    with pytest.raises(ParameterError, match="the plan is for"):
        with_centre(centred_plan(), rows, Entropy.seeded(0))
