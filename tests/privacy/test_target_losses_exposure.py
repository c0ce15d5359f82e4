"""Privacy of counts with an exposure: neighbours, the laws of the weights, rounding, and lengths of minimisers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from confide.array_types import COUNT_AND_EXPOSURE
from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import MeanLoss
from confide.privacy.budgets import ApproxDP, Neighbours, PureDP
from confide.privacy.certificate import GradientRounding
from confide.privacy.matching import sum_of_residuals
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.problems import objective_plan, problem, releases

LOSS = MeanLoss(4.0, 0.5, (0.1, 1.9))


def pairs(counts, exposures):
    """Counts beside their exposures, as a loss takes them."""
    made = np.empty(len(counts), COUNT_AND_EXPOSURE)
    made["count"], made["exposure"] = counts, exposures
    return made


def slope_of(score, count, exposure):
    """The slope of a row by its definition, of any counts and exposures."""
    mean = np.clip(exposure, 0.1, 1.9) * np.exp(np.minimum(score, 700.0))
    return np.clip(mean - np.clip(count, 0.0, 4.0), -0.5, 0.5)


def test_one_row_moves_the_sum_of_gradients_by_at_most_the_threshold_times_its_bound():
    """Neighbours with any count and any exposure: 2 L R is never exceeded, and reached; L R where a row is left out."""
    rng = np.random.default_rng(0)
    rows, row_sum = rng.normal(size=(6, 2)), RowSum(LOSS, BallBound(2.0), 0.0, 1)
    longest = {"replaced": 0.0, "left out": 0.0}
    for case in range(400):
        counts, exposures = rng.uniform(-5.0, 9.0, 6), np.exp(rng.uniform(-9.0, 9.0, 6))
        w = rng.normal(size=(1, 2)) * np.exp(rng.uniform(-2.0, 3.0))
        other_row, other = rng.normal(size=2) * 9.0, pairs([rng.uniform(-5.0, 9.0)], [math.exp(rng.uniform(-9.0, 9.0))])
        if case == 0:  # opposite rows: a count far above its mean, and a mean far above its count
            w = np.array([[3.0, 0.0]])
            rows[0], counts[0], exposures[0], other_row, other = (-9.0, 0.0), 4.0, 1e-9, (9.0, 0.0), pairs([0.0], [1e9])
        neighbour, targets = np.vstack([other_row, rows[1:]]), pairs(counts, exposures)
        sums = [
            MemorySource(ArrayBlocks(some), own).sum_over_rows(row_sum, w).gradient[0]
            for some, own in ((rows, targets), (neighbour, np.append(other, targets[1:])), (rows[1:], targets[1:]))
        ]
        for name, sum_of_neighbour in zip(longest, sums[1:], strict=True):
            longest[name] = max(longest[name], float(np.linalg.norm(sums[0] - sum_of_neighbour)))
    assert 0.999 * 2.0 * 0.5 * 2.0 <= longest["replaced"] <= 2.0 * 0.5 * 2.0 * (1 + 1e-9)
    assert 0.999 * 0.5 * 2.0 <= longest["left out"] <= 0.5 * 2.0 * (1 + 1e-9)


def test_the_sum_for_the_mean_of_predictions_moves_by_at_most_the_bound_on_counts():
    """A residual lies within the bound on counts whatever the exposure is, and it is that of the expected count."""
    facts = problem(8, 1, loss=LOSS, intercept=1.0)
    row_sum = sum_of_residuals(facts)
    assert row_sum.loss == MeanLoss(4.0, 4.0, LOSS.exposure)
    w = np.array([[0.0, 0.4]])
    for count, exposure in ((0.0, 1.9), (4.0, 0.1), (2.0, 1.0), (0.0, 1e9)):
        source = MemorySource(ArrayBlocks(np.zeros((1, 1))), pairs([count], [exposure]))
        found = source.sum_over_rows(row_sum, w).gradient[0, -1]
        assert found == pytest.approx(np.clip(min(exposure, 1.9) * math.exp(0.4) - count, -4.0, 4.0), rel=1e-12)


@pytest.mark.parametrize("gaussian", [False, True])
def test_weights_invert_to_the_noise_of_the_plan(gaussian):
    """The noise behind released weights, by the definition of the loss; 30% less or more noise is rejected."""
    facts = problem(8, 2, loss=LOSS, row_norm=2.0, intercept=1.5, l2=600.0)
    budget = ApproxDP(1.0, 0.01) if gaussian else PureDP(0.8)
    plan = objective_plan(facts, budget, "gaussian" if gaussian else "laplace", "ball")
    rng = np.random.default_rng(1)
    raw, counts, exposures = rng.normal(size=(8, 2)) * 3.0, rng.integers(0, 6, 8), np.exp(rng.uniform(-4.0, 2.0, 8))
    sample = releases(ObjectivePerturbation(), plan, MemorySource(ArrayBlocks(raw), pairs(counts, exposures)), 600, 7)
    shortened = raw * np.minimum(1.0, 2.0 / np.linalg.norm(raw, axis=1))[:, None]
    rows = np.hstack([shortened, np.full((8, 1), 1.5)])
    noise = -(600.0 * sample + slope_of(sample @ rows.T, counts, exposures) @ rows)
    left = 0.8 * (1.0 - plan.seal_share) - math.log1p(4.5 * 2.5**2 / 600.0)
    scale, law = (plan.noise.scale, stats.chi(3)) if gaussian else (2.0 * 0.5 / left, stats.gamma(3))
    lengths = np.linalg.norm(noise, axis=1) / (2.5 * scale)
    assert stats.kstest(lengths, law.cdf).pvalue > 1e-3
    for wrong in (0.7, 1 / 0.7):
        assert stats.kstest(lengths * wrong, law.cdf).pvalue < 1e-8


def test_output_perturbation_covers_the_distance_of_minimisers():
    """A row and its opposite, the largest count in the shortest time: nearly 2 threshold R / l2, and never more."""
    facts = problem(3, 1, loss=LOSS, row_norm=2.0, l2=40.0)
    bound = 2.0 * 0.5 * 2.0 / 40.0
    plan = OutputPerturbation().plan(facts, ApproxDP(0.1, 1e-3))
    assert bound <= plan.lattice.l2_sensitivity <= 1.01 * bound
    ends = []
    for sign in (1.0, -1.0):
        source = MemorySource(ArrayBlocks(np.array([[2.0 * sign], [0.0], [0.0]])), pairs([4.0, 0.0, 0.0], [0.1, 1.0, 1.9]))
        objective = facts.objective(source, 40.0, np.zeros((1, 1)))
        ends.append(NewtonThenFallback().solve(objective, np.zeros((1, 1)), 1e-9).weights[0, 0])
    assert 0.99 * bound <= abs(ends[0] - ends[1]) <= bound * (1 + 1e-9)


def test_the_rounding_bound_covers_adversarial_rows():
    """Against 60 digits, with cancelling scores and exposures of all sizes: the error over the bound is at most 1."""
    mpmath = pytest.importorskip("mpmath")
    mp, rng, worst = mpmath.mp, np.random.default_rng(4), 0.0
    for case in range(40):
        loss = MeanLoss(4.0, 0.5, (2.0**-40, 2.0**40)) if case % 2 else LOSS
        n, d, row_norm = int(rng.integers(1, 30)), int(rng.integers(1, 6)), float(np.exp(rng.uniform(-3, 3)))
        rows = rng.normal(size=(n, d))
        rows *= row_norm / np.linalg.norm(rows, axis=1)[:, None] * rng.uniform(0.0, 0.99, size=(n, 1))
        w = rng.normal(size=d) * np.exp(rng.uniform(-4, 5)) / row_norm
        targets = pairs(rng.uniform(0.0, 4.0, n), np.exp(rng.uniform(-20, 20, n)))
        l2, linear = float(np.exp(rng.uniform(-4, 4))), rng.normal(size=d)
        objective = Objective(MemorySource(ArrayBlocks(rows), targets), loss, BallBound(row_norm), 0.0, l2, linear[None])
        computed = objective.evaluate(w[None], order=1).gradient[0]
        rounding = GradientRounding(loss.constants, row_norm, n, d, summation_depth(n, d), l2)
        bound = rounding.bound(float(np.linalg.norm(w)), float(np.linalg.norm(linear)), float(np.linalg.norm(computed)))
        with mpmath.workdps(60):
            total = [mp.mpf(l2) * mp.mpf(float(v)) + mp.mpf(float(b)) for v, b in zip(w, linear, strict=True)]
            for row, (count, exposure) in zip(rows, targets.tolist(), strict=True):
                x = [mp.mpf(float(v)) for v in row]
                e = max(mp.mpf(loss.exposure[0]), min(mp.mpf(loss.exposure[1]), mp.mpf(exposure)))
                mean = e * mp.exp(min(mp.fsum(v * mp.mpf(float(u)) for v, u in zip(x, w, strict=True)), mp.mpf(1000)))
                slope = max(mp.mpf(-0.5), min(mp.mpf(0.5), mean - mp.mpf(count)))
                total = [s + slope * v for s, v in zip(total, x, strict=True)]
            error = mp.sqrt(mp.fsum((mp.mpf(float(c)) - t) ** 2 for c, t in zip(computed, total, strict=True)))
        worst = max(worst, float(error) / bound)
    assert 1e-5 < worst <= 1.0


def test_the_minimiser_is_shorter_than_its_public_bound():
    """|w*| <= W, also where the exposures of all rows are the least: that is what the value at score 0 is for."""
    loss = MeanLoss(4.0, 4.0, (1e-6, 2.0))
    rows, targets = np.ones((30, 1)), pairs(np.full(30, 4.0), np.full(30, 1e-6))
    objective = Objective(MemorySource(ArrayBlocks(rows), targets), loss, BallBound(1.0), 0.0, 0.01, np.zeros((1, 1)))
    w = NewtonThenFallback().solve(objective, np.zeros((1, 1)), 1e-8).weights
    facts = GradientRounding(loss.constants, 1.0, 30, 1, 31, 0.01)
    assert np.linalg.norm(w) <= facts.minimiser_norm(0.0)
    plain = GradientRounding(MeanLoss(4.0, 4.0).constants, 1.0, 30, 1, 31, 0.01)
    assert plain.minimiser_norm(0.0) < 0.7 * facts.minimiser_norm(0.0)


def test_neighbours_may_differ_in_their_exposure_alone():
    """An exposure is a part of the row: with add-or-remove-one the shift is that of one row, with replace-one of two."""
    for neighbours, rows in ((Neighbours.REPLACE_ONE, 2.0), (Neighbours.ADD_OR_REMOVE_ONE, 1.0)):
        high = 12 if neighbours is Neighbours.ADD_OR_REMOVE_ONE else None
        plans = [
            objective_plan(
                problem(8, 2, loss=own, l2=600.0, neighbours=neighbours, high=high), PureDP(0.8), "laplace", "ball"
            )
            for own in (LOSS, MeanLoss(4.0, 0.5))
        ]
        left = 0.8 * (1.0 - plans[0].seal_share) - math.log1p(4.5 / 600.0)
        assert plans[0].noise.scale == pytest.approx(left / (rows * 0.5), rel=1e-3)
        assert plans[0].noise.scale == pytest.approx(plans[1].noise.scale, rel=1e-3)
