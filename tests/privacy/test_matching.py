"""The mean of predicted counts: sensitivity of its two sums by search, the law of their noise, rounding, and the factor."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from confide.erm.row_bounds import BallBound, Centred
from confide.erm.target_losses import MeanLoss
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, budget_of_row
from confide.privacy.gaussian import gaussian_delta
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace
from confide.privacy.matching import (
    COUNT_SCALE,
    LARGEST_FACTOR,
    USUAL_ERROR,
    CountsAndResiduals,
    _is_paid,
    factor_of,
    matching_plan,
    sum_of_residuals,
)
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from tests.privacy.laws import mu_of
from tests.privacy.problems import problem, rows_and_labels

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BOUND, CONSTANT = 5.0, 1.5
BUDGETS = {"pure": PureDP(1.0), "approximate": ApproxDP(1.0, 1e-5), "concentrated": ZCDP(0.1)}
LAWS = {("pure", "laplace"), ("approximate", "laplace"), ("approximate", "gaussian"), ("concentrated", "gaussian")}
ACCEPT, REJECT = 1e-3, 1e-8


def facts(neighbours=REPLACE, **others):
    """A small problem of counts up to 5, whose rows have an intercept."""
    high = others.pop("high", 60 if neighbours is ADD else None)
    given = {"loss": MeanLoss(BOUND, 2.0), "n": 40, "intercept": CONSTANT, "neighbours": neighbours, "high": high}
    return problem(**(given | others))


def with_matching(neighbours=REPLACE, kind="approximate", law="gaussian", share=0.1, **others):
    """A plan of weights that leaves what the two sums cost."""
    plain, budget = facts(neighbours, l2=60.0, **others), BUDGETS[kind]
    matching = matching_plan(plain, budget, share, law)
    if kind == "approximate" and law == "gaussian":
        plan = ObjectivePerturbation().plan(replace(plain, beside_mu=matching.mu * (1.0 + 2.0**-30)), budget)
    else:
        left = replace(budget, **{name: 0.9 * getattr(budget, name) * (1.0 - 2.0**-40) for name in ("epsilon", "rho")
                                  if hasattr(budget, name)})  # fmt: skip
        plan = ObjectivePerturbation().plan(plain, left)
    event = plan.event if plan.budget == budget else plain.event(budget)
    return replace(plan, parts=(matching,), event=event)


def matched(plan, weights, rows, entropy):
    """The weights with the intercept that the last part of a plan leads to."""
    part = plan.parts[-1]
    return part.query.after(part, plan, weights, rows, entropy)


class Silent:
    """Noise that is 0, in place of what a plan draws, and the sums that came to it."""

    def __init__(self, monkeypatch):
        self.sums = []
        for kind in (LatticeGaussian, LatticeLaplace):
            monkeypatch.setattr(kind, "release", lambda _, sums, *__: self.sums.append(sums.copy()) or sums)


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours, weight, monkeypatch):
    """Over counts, scores of rows and weights of rows, in both norms; the bound is attained to within a few percent."""
    silent, pairs = Silent(monkeypatch), itertools.product((-1.0, 0.0, 1.0), (0.0, 1.0, BOUND, 99.0), (0.0, 0.5, 1.0))
    found = []
    plan = with_matching(neighbours, d=1, n=1, high=None if neighbours is REPLACE else 2, largest_weight=weight)
    # Some weights predict 0 for the row and others far more than the bound.
    for (x, count, w), size in itertools.product(pairs, (-3.0, 0.0, 4.0)):
        rows = rows_and_labels([[x]], np.array([count]), np.array([w * weight]))
        matched(plan, np.array([[size, 0.0]]), rows, Entropy.seeded(0))
        found.append((size, silent.sums.pop()[0]))
    apart = [a - (b if neighbours is REPLACE else 0.0) for (s, a), (t, b) in itertools.product(found, found) if s == t]
    unit = CONSTANT * weight * BOUND
    rows = 2.0 if neighbours is REPLACE else 1.0
    for law, order, exact in (
        ("gaussian", 2, math.hypot(rows, COUNT_SCALE)),
        ("laplace", 1, rows + COUNT_SCALE),
    ):
        largest = max(float(np.linalg.norm(each, order)) for each in apart)
        lattice = matching_plan(facts(neighbours, d=1, largest_weight=weight), BUDGETS["approximate"], 0.1, law).lattice
        allowed = lattice.l2_sensitivity * (math.sqrt(2.0) if law == "laplace" else 1.0)
        assert largest <= allowed
        assert 0.93 * exact * unit <= largest
        assert allowed <= exact * unit * (1.0 + 1e-9)


@pytest.mark.parametrize(("kind", "law"), sorted(LAWS))
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
@pytest.mark.parametrize("persons", [1, 3])
def test_released_sums_scatter_by_the_theorems_law(kind, law, neighbours, persons):
    """6,000 numbers; noise 0.7 or 1.4 times as large would be rejected. The law is computed here again."""
    budget, share = BUDGETS[kind], 0.05
    matching = matching_plan(facts(neighbours, rows_per_person=persons), budget, share, law)
    noise = matching.lattice.release(np.zeros((3000, 2)), Entropy.seeded(3)).ravel()
    of_row, unit, rows = budget_of_row(budget, persons), CONSTANT * BOUND, 2.0 if neighbours is REPLACE else 1.0
    if law == "laplace":
        expected = stats.laplace(scale=unit * (rows + COUNT_SCALE) / (share * budget.epsilon / persons))
    else:
        mu = mu_of(of_row)
        assert matching.mu == pytest.approx(math.sqrt(share) * mu, rel=1e-3)
        expected = stats.norm(scale=unit * math.hypot(rows, COUNT_SCALE) / (math.sqrt(share) * mu))
    assert stats.kstest(noise, expected.cdf).pvalue > ACCEPT
    for factor in (0.7, 1.4):
        assert stats.kstest(factor * noise, expected.cdf).pvalue < REJECT


@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_one_gaussian_account_covers_the_weights_and_the_sums(neighbours):
    """The curve of the event knows the mu of the sums, costs the budget, and would exceed it were the sums less noisy."""
    plan, budget = with_matching(neighbours, share=0.3), BUDGETS["approximate"]
    curve = plan.event.curve
    assert plan.matching.mu <= curve.beside_mu <= plan.matching.mu * (1.0 + 1e-6)
    assert 0.99 * budget.delta <= curve.delta(budget.epsilon) <= budget.delta
    assert replace(curve, beside_mu=2.0 * curve.beside_mu).delta(budget.epsilon) > budget.delta
    assert gaussian_delta(budget.epsilon, plan.matching.mu) < budget.delta


def test_laplace_noise_on_the_sums_has_no_gaussian_account():
    """No shift over deviation is finite for it, so nobody can add it to a Gaussian account by mistake."""
    assert matching_plan(facts(), PureDP(1.0), 0.1, "laplace").mu == math.inf


@pytest.mark.parametrize(("kind", "law"), sorted(LAWS))
def test_the_best_attack_on_worst_neighbours_finds_no_more_than_the_share_allows(kind, law):
    """Its privacy loss, by the exact law on the grid, is within the share of the budget and no less than 98% of it."""
    share, budget = 0.3, BUDGETS[kind]
    lattice = matching_plan(facts(), budget, share, law).lattice
    worst = np.array([2.0, COUNT_SCALE]) * CONSTANT * BOUND / lattice.step
    if law == "laplace":
        assert 0.99 * share <= np.abs(worst).sum() * lattice.step / lattice.scale <= share * budget.epsilon
    else:
        mu = float(np.linalg.norm(worst)) * lattice.step / lattice.deviation
        allowed = math.sqrt(2.0 * share * 0.1) if kind == "concentrated" else None
        if allowed is None:
            cost = gaussian_delta(budget.epsilon, mu / math.sqrt(share))
            assert 0.98 * budget.delta <= cost <= budget.delta
        else:
            assert 0.99 * allowed <= mu <= allowed


@pytest.mark.parametrize(("kind", "law"), sorted(LAWS))
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_the_intercept_alone_moves_by_what_the_noisy_sums_say(kind, law, neighbours, monkeypatch):
    """Replayed with the same two noisy sums over other rows: the same intercept to the bit, and the other weights stay."""
    plan = with_matching(neighbours, kind, law)
    noisy = np.array([[-40.0, 100.0]])
    for lattice in (LatticeGaussian, LatticeLaplace):
        monkeypatch.setattr(lattice, "release", lambda *_: noisy.copy())
    weights, rng = np.array([[0.3, -0.2, 0.1]]), np.random.default_rng(0)
    found = [
        matched(plan, weights, rows_and_labels(rng.normal(size=(40, 2)), rng.poisson(2.0, 40) * 1.0), Entropy.seeded(seed))
        for seed in range(3)
    ]
    assert all((each == found[0]).all() for each in found)
    assert (found[0][0, :2] == weights[0, :2]).all()
    shift = (found[0][0, 2] - weights[0, 2]) * CONSTANT
    assert shift == pytest.approx(math.log(factor_of(plan.matching, noisy[0])))


def test_predictions_become_right_in_the_mean_where_noise_is_small(monkeypatch):
    """At weights that predict a quarter too few, the factor is that of the sums, less what is drawn off it for noise."""
    rng = np.random.default_rng(0)
    rows = BallBound(1.0).clip(rng.normal(size=(4000, 2)))
    means = np.exp(rows @ [0.5, -0.3] + 0.2)
    counts = np.minimum(rng.poisson(means), BOUND).astype(float)
    given = np.array([[0.5, -0.3, (0.2 + math.log(0.75)) / CONSTANT]])
    plan = with_matching(n=4000, d=2)
    Silent(monkeypatch)
    moved = matched(plan, given, rows_and_labels(rows, counts), Entropy.seeded(0))
    predicted = np.exp(rows @ moved[0, :2] + CONSTANT * moved[0, 2])
    assert predicted.mean() == pytest.approx(counts.mean(), rel=0.02)
    assert 0.75 * means.mean() < 0.8 * counts.mean()


def rounding_of(given):
    """Theorem 2 with numbers put in by hand: slopes up to B that bend by 2 B, 18 + 3 + 1 roundings each, |w| <= 1000 / s."""
    heaviest, width, m = given.largest_weight * BOUND, given.n_features + 1, given.summation_depth
    longest = math.hypot(1.0, CONSTANT)
    slopes, scores = heaviest * (m + width + 5 + 22), (2 * width + 5) * 2.0 * heaviest * longest * 1000.0 / CONSTANT
    return 1.01 * 2.0**-53 * given.n_rows_high * longest * (slopes + scores)


@pytest.mark.parametrize("weight", [1.0, 2.5])
@pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
def test_the_noise_pays_twice_for_rounding_in_both_sums(neighbours, weight):
    """Of a billion rows: what rounding adds to the distance is known to a thousandth, so half of it would be missed."""
    n, rows = 10**9, 2.0 if neighbours is REPLACE else 1.0
    given = facts(neighbours, n=n, high=n if neighbours is ADD else None, largest_weight=weight)
    unit, rounding = CONSTANT * weight * BOUND, 2.0 * rounding_of(given)
    assert rounding > 1e-3 * unit
    residual, count = rows * unit + rounding, COUNT_SCALE * (unit + rounding)
    of_residual, of_count = residual - rows * unit, count - COUNT_SCALE * unit
    laplace = matching_plan(given, BUDGETS["pure"], 0.1, "laplace").lattice
    added = math.sqrt(2.0) * laplace.l2_sensitivity - (rows + COUNT_SCALE) * unit
    assert added == pytest.approx(of_residual + of_count, rel=1e-3)
    gaussian = matching_plan(given, BUDGETS["concentrated"], 0.1, "gaussian").lattice
    assert gaussian.l2_sensitivity - math.hypot(rows, COUNT_SCALE) * unit == pytest.approx(
        math.hypot(residual, count) - math.hypot(rows, COUNT_SCALE) * unit, rel=1e-3
    )


def test_sums_whose_rounding_is_a_tenth_of_a_row_are_refused():
    """At nine hundredths there is a plan, at eleven there is none."""

    def with_share(share):
        n = 10**9
        for _ in range(20):
            n = round(n * share * CONSTANT * BOUND / (2.0 * rounding_of(facts(n=n))))
        return facts(n=n)

    matching_plan(with_share(0.09), BUDGETS["pure"], 0.1, "laplace")
    with pytest.raises(ParameterError, match="too inexact"):
        matching_plan(with_share(0.11), BUDGETS["pure"], 0.1, "laplace")


class Asked:
    """Rows that remember at which points sums were made."""

    def __init__(self, rows):
        self.rows, self.n_rows, self.n_features, self.points = rows, rows.n_rows, rows.n_features, []

    def sum_over_rows(self, row_sum, points):
        """The sum."""
        self.points.append(points.copy())
        return self.rows.sum_over_rows(row_sum, points)


@pytest.mark.parametrize("size", [0.9, 1.1])
def test_sums_are_made_once_and_within_the_radius(size, monkeypatch):
    """At weights nine tenths of 1000 / s long as they are, at longer ones not; counts are read where no mean is left.

    The second sum is minus the exact sum of the counts, to the bit, even where the bound on counts is 2^-290.
    """
    bound = 2.0**-290
    plan, silent = with_matching(), Silent(monkeypatch)
    assert plan.matching.query.radius == pytest.approx(1000.0 / CONSTANT, rel=1e-9)
    weights = np.array([[0.0, 0.0, size * 1000.0 / CONSTANT]])
    asked = Asked(rows_and_labels(np.zeros((40, 2)), np.ones(40)))
    matched(plan, weights, asked, Entropy.seeded(0))
    (points,) = asked.points
    none = [0.0, 0.0, -1000.0 / CONSTANT]
    np.testing.assert_allclose(points, [weights[0] if size < 1.0 else none, none], rtol=1e-15)
    assert (np.linalg.norm(points, axis=1) <= plan.matching.query.radius).all()
    assert silent.sums.pop()[0, 1] == COUNT_SCALE * CONSTANT * 40.0
    tiny = facts(loss=MeanLoss(bound, bound))
    at_none = rows_and_labels(np.zeros((40, 2)), np.ones(40)).sum_over_rows(sum_of_residuals(tiny), points[1:])
    assert at_none.gradient[0, -1] == -CONSTANT * 40.0 * bound


def test_the_factor_is_that_of_the_sums_drawn_towards_one_by_their_noise():
    """By hand: with a noise of 15% of the predictions half of what is missing is added, and a factor is at most 2."""
    plan = matching_plan(facts(), BUDGETS["pure"], 0.1, "laplace")
    total = plan.lattice.deviation / 0.15
    for missing in (-0.4, 0.3, 0.9):
        sums = np.array([-missing * total, COUNT_SCALE * (1.0 + missing) * total])
        assert factor_of(plan, sums) == pytest.approx(1.0 + missing / 2.0)
    for missing, factor in ((9.0, 2.0), (-0.9, 0.5)):
        sums = np.array([-missing, COUNT_SCALE * (1.0 + missing)]) * 1e6 * total
        assert factor_of(plan, sums) == factor


def test_sums_below_one_have_a_factor_too():
    """The unit of the counts is not known, so 1 is a number as any other."""
    plan = matching_plan(facts(), BUDGETS["pure"], 0.1, "laplace")
    counts, predictions = 0.5, 0.8
    sums = np.array([predictions - counts, COUNT_SCALE * counts])
    square = predictions**2 + (plan.lattice.deviation / USUAL_ERROR) ** 2
    less = (predictions - counts) * predictions / square
    assert less > 1e-13
    assert factor_of(plan, sums) == 1.0 - less


def test_whatever_was_released_gives_a_factor_between_a_half_and_two():
    """Nothing after the charge may fail: sums of any size and sign."""
    rng = np.random.default_rng(0)
    for budget, bound in itertools.product(BUDGETS.values(), (2.0**-290, BOUND, 2.0**290)):
        law = "gaussian" if isinstance(budget, ZCDP) else "laplace"
        plan = matching_plan(facts(loss=MeanLoss(bound, bound)), budget, 0.1, law)
        for size in (0.0, 1e-300, 1e-3, 1.0, 1e3, 1e12):
            for _ in range(20):
                factor = factor_of(plan, rng.normal(size=2) * size * bound)
                assert 1.0 / LARGEST_FACTOR <= factor <= LARGEST_FACTOR


def test_weights_beyond_the_radius_are_released_as_they_are():
    """Their sums would be made where nothing is proven of rounding. The two sums are drawn all the same."""
    plan = with_matching()
    far = np.array([[0.0, 0.0, 2.0 * plan.matching.query.radius]])
    rows = rows_and_labels(np.zeros((40, 2)), np.ones(40))
    assert matched(plan, far, rows, Entropy.seeded(0)) is far


@pytest.mark.parametrize(("kind", "law"), sorted(LAWS))
def test_a_plan_whose_charge_does_not_cover_the_sums_is_not_released(kind, law):
    """Less left for the sums, noise of other counts or shares, sums of no plan, or a plan without them."""
    plan = with_matching(kind=kind, law=law)
    budget = BUDGETS[kind]
    rows, weights = rows_and_labels(np.zeros((40, 2)), np.ones(40)), np.zeros((1, 3))
    beside = replace(plan.problem, beside_mu=0.99 * plan.problem.beside_mu)
    wrong = [
        replace(plan, parts=(matching_plan(facts(), budget, 0.12, law),)),
        replace(plan, parts=(matching_plan(facts(loss=MeanLoss(2.0, 2.0)), budget, 0.1, law),)),
        replace(plan, parts=(replace(plan.matching, share=0.05),)),
        replace(plan, problem=beside) if plan.problem.beside_mu else replace(plan, budget=budget),
    ]
    for each in wrong:
        with pytest.raises(ParameterError, match="another mechanism"):
            matched(each, weights, rows, Entropy.seeded(0))
    with pytest.raises(ParameterError, match="another mechanism"):
        plan.matching.query.after(plan.matching, replace(plan, parts=()), weights, rows, Entropy.seeded(0))


@pytest.mark.parametrize(
    ("kind", "law", "of_weights"),
    [
        ("approximate", "laplace", ApproxDP(0.5, 2e-5)),
        ("approximate", "laplace", ZCDP(0.5)),
        ("pure", "laplace", ZCDP(0.5)),
        ("approximate", "gaussian", ApproxDP(2.0, 1e-5)),
        ("approximate", "gaussian", ApproxDP(1.0, 2e-5)),
        ("concentrated", "gaussian", ApproxDP(0.05, 1e-5)),
        ("pure", "laplace", ApproxDP(0.5, 1e-5)),
    ],
)
def test_weights_that_cost_another_delta_or_currency_are_not_released_with_sums(kind, law, of_weights):
    """Their epsilon alone would be within the budget, and a delta is no part of a pure or concentrated one."""
    plan = with_matching(kind=kind, law=law)
    rows, weights = rows_and_labels(np.zeros((40, 2)), np.ones(40)), np.zeros((1, 3))
    matched(plan, weights, rows, Entropy.seeded(0))
    with pytest.raises(ParameterError, match="another mechanism"):
        matched(replace(plan, budget=of_weights), weights, rows, Entropy.seeded(0))


def test_sums_that_were_planned_for_another_charge_are_not_released():
    """A budget twice as large, of which the same weights leave even more, but the event charges the smaller one."""
    plan = with_matching(kind="pure", law="laplace")
    larger = matching_plan(facts(), PureDP(2.0), 0.1, "laplace")
    with pytest.raises(ParameterError, match="another mechanism"):
        matched(
            replace(plan, parts=(larger,)),
            np.zeros((1, 3)),
            rows_and_labels(np.zeros((40, 2)), np.ones(40)),
            Entropy.seeded(0),
        )


def test_a_centre_and_the_sums_share_what_is_beside_the_weights():
    """Both squared mus must fit into that of the problem."""
    plan = with_matching()
    rows = rows_and_labels(np.zeros((40, 2)), np.ones(40))

    class Centre:
        mu = 0.5 * plan.matching.mu

    with pytest.raises(ParameterError, match="another mechanism"):
        matched(replace(plan, parts=(Centre(), *plan.parts)), np.zeros((1, 3)), rows, Entropy.seeded(0))
    both = replace(plan.problem, beside_mu=1.2 * plan.matching.mu)
    matched(replace(plan, parts=(Centre(), *plan.parts), problem=both), np.zeros((1, 3)), rows, Entropy.seeded(0))


def test_what_cannot_be_matched_is_refused_when_it_is_planned():
    """Other losses, no intercept, a law that the budget does not pay for, and sums that are too inexact."""
    wrong = [
        (problem(intercept=1.0), BUDGETS["pure"], "laplace"),
        (facts(intercept=0.0), BUDGETS["pure"], "laplace"),
        (facts(), BUDGETS["pure"], "gaussian"),
        (facts(), BUDGETS["concentrated"], "laplace"),
        (facts(intercept=1e-9, n=10**9), BUDGETS["pure"], "laplace"),
    ]
    for given, budget, law in wrong:
        with pytest.raises(ParameterError):
            matching_plan(given, budget, 0.1, law)


@pytest.mark.parametrize("is_centred", [False, True])
def test_computed_sums_are_as_exact_as_the_plan_allows_for(is_centred):
    """Against 60 digits, at weights near the radius and elsewhere: error over bound at most 1, and not tiny."""
    rng, largest = np.random.default_rng(0), 0.0
    for scale in (1e-3, 1.0, 300.0):
        n, d = 30, 4
        rows = rng.normal(size=(n, d)) * rng.uniform(0.1, 3.0)
        counts = rng.poisson(2.0, n).astype(float)
        centre = BallBound(1.0).clip(rng.normal(size=(1, d)))[0] * 0.4
        bound = Centred(BallBound(1.0), tuple(centre), 0.7) if is_centred else BallBound(1.0)
        given = facts(d=d, n=n, row_bound=bound)
        w = rng.normal(size=(1, d + 1))
        w *= scale / np.linalg.norm(w)
        computed = rows_and_labels(rows, counts).sum_over_rows(sum_of_residuals(given), w).gradient[0, -1]
        with mp.workdps(60):
            exact = mp.mpf(0)
            for row, count in zip(bound.clip(rows), counts, strict=True):
                score = mp.fdot(map(mp.mpf, row), map(mp.mpf, w[0, :-1])) + CONSTANT * mp.mpf(float(w[0, -1]))
                slope = mp.exp(score) - mp.mpf(min(count, BOUND))
                exact += CONSTANT * min(max(slope, -BOUND), BOUND)
            error = float(abs(mp.mpf(float(computed)) - exact))
        matching = matching_plan(given, BUDGETS["pure"], 0.1, "laplace")
        allowed = (matching.lattice.l2_sensitivity * math.sqrt(2.0) - 2.25 * CONSTANT * BOUND) / 2.5
        largest = max(largest, error / allowed)
    assert 1e-9 < largest <= 1.0


@pytest.mark.parametrize("released", [(0.0, 0.0), (3.0, -1.0), (-5.0, 1.0), (1.0, 0.0), (-0.5, 0.1), (math.nan, 1.0)])
def test_sums_without_a_ratio_leave_the_predictions_as_they_are(released):
    """Counts or predictions that are 0, negative or no number are all noise: the factor is 1."""
    plan = matching_plan(facts(), BUDGETS["pure"], 0.1, "laplace")
    assert factor_of(plan, np.array(released)) == 1.0


@pytest.mark.parametrize("bound", [5.0 * 2.0 ** (eighths / 8.0) for eighths in range(8)])
@pytest.mark.parametrize("share", [0.05, 0.99])
def test_the_grid_of_both_sums_is_fine_beside_sensitivity_and_noise(share, bound):
    """The largest power of two of at most a thousandth of the smaller one, over sqrt(2) for two sums."""
    lattice = matching_plan(facts(loss=MeanLoss(bound, bound)), ZCDP(2.0), share, "gaussian").lattice
    multiplier = 1.0 / math.sqrt(2.0 * share * 2.0)
    finest = lattice.l2_sensitivity * min(1.0, multiplier) / (1000.0 * math.sqrt(2.0))
    assert lattice.dimension == 2
    assert lattice.step <= finest * (1.0 + 1e-9)
    assert lattice.step > 0.5 * finest * (1.0 - 1e-9)


def test_rounding_knows_no_ridge_and_no_prior():
    """For one row and counts of at most 1e-6, where a ridge of 1 or a prior would decide."""
    given = replace(facts(n=1, loss=MeanLoss(1e-6, 1e-6)), prior=(3.0, 0.0, 1.0))
    plain = facts(n=1, loss=MeanLoss(BOUND, BOUND))
    found = CountsAndResiduals(given).rounding
    assert found == pytest.approx(rounding_of(plain) * 1e-6 / BOUND, rel=1e-3, abs=0.0)


def test_rows_of_another_table_are_refused():
    """More rows than the plan knows of would void its bound on rounding."""
    plan = with_matching()
    for rows in (rows_and_labels(np.zeros((41, 2)), np.ones(41)), rows_and_labels(np.zeros((40, 3)), np.ones(40))):
        with pytest.raises(ParameterError, match=r"rows|features|columns"):
            matched(plan, np.zeros((1, 3)), rows, Entropy.seeded(0))


@pytest.mark.parametrize("share", [0.1, 0.3, 0.7])
def test_the_share_of_epsilon_is_rounded_down_by_one_part_in_two_to_the_forty(share):
    """So that sums and weights together cost no more than the budget, whatever a product of doubles is rounded to."""
    spent = matching_plan(facts(), PureDP(0.9), share, "laplace").lattice.epsilon
    assert 0.9 * 2.0**-40 < 1 - Fraction(spent) / (Fraction(share) * Fraction(0.9)) < 1.1 * 2.0**-40


@pytest.mark.parametrize(("beyond", "is_near"), [(-1.1 * 2.0**-20, True), (-0.9 * 2.0**-20, False), (0.5 * 2.0**-20, False)])
def test_weights_count_as_near_up_to_a_part_in_a_million_below_the_radius(beyond, is_near):
    """The proof speaks of weights within the radius, and the norm that is computed is off by a few roundings."""
    plan = with_matching()
    weights = np.array([[0.0, 0.0, plan.matching.query.radius * (1.0 + beyond)]])
    asked = Asked(rows_and_labels(np.zeros((40, 2)), np.ones(40)))
    matched(plan, weights, asked, Entropy.seeded(0))
    assert (asked.points[0][0, -1] == weights[0, -1]) == is_near


def test_what_is_left_of_an_epsilon_may_be_spent_to_the_last_digit():
    """Three quarters for the weights and a quarter for the sums are the whole; the next larger number is refused."""
    plan = with_matching(kind="pure", law="laplace", share=0.25)
    for of_weights, is_paid in ((0.75, True), (math.nextafter(0.75, 1.0), False)):
        assert _is_paid(replace(plan, budget=PureDP(of_weights)), plan.matching) == is_paid


def test_slopes_alone_are_summed():
    """A pass that made curvatures too would take longer."""
    assert sum_of_residuals(facts()).order == 1
