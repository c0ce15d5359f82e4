"""Middles and spreads of columns: sensitivity by search, the law of the noise, rounding, and the frame that follows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.curvature import length_of
from confide.privacy.gaussian import largest_mu
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.mechanism import Problem
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.spreads import Spreads, _distances, frame_of

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BOTH = pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
BUDGETS = {"pure": PureDP(0.7), "approximate": ApproxDP(0.7, 0.1), "zcdp": ZCDP(0.1)}
N = 40
GROUPS = GroupBound((1, 1, 3), (1.0, 2.0, 0.5))


def problem_of(neighbours=REPLACE, persons=1, **changed):
    """Two numbers and a category of three levels, with a constant of 1."""
    bounds = (N, N) if neighbours is REPLACE else (N // 2, 2 * N)
    facts = {
        "loss": LogisticLoss(), "row_bound": GROUPS, "intercept": 1.0, "n_features": 5, "n_rows_low": bounds[0],
        "n_rows_high": bounds[1], "summation_depth": 60, "neighbours": neighbours, "rows_per_person": persons, "l2": 8.0,
    }  # fmt: skip
    return Problem(**(facts | changed))


def plan_of(budget, neighbours=REPLACE, persons=1, **changed):
    return Spreads.plan(ObjectivePerturbation().plan(problem_of(neighbours, persons, **changed), PureDP(1.0)), budget)


def source_of(rows):
    return MemorySource(ArrayBlocks(np.asarray(rows, dtype=np.float64)), np.ones(len(rows), dtype=np.int8))


def sums_of(rows, **changed):
    """The sums without noise, in the units of the release."""
    return plan_of(ZCDP(0.1), **changed).query.summed(source_of(rows))[0]


@BOTH
def test_no_pair_of_rows_is_farther_apart_than_the_theorem_says(neighbours):
    """A search over random rows and corners; rows of opposite signs attain the bound of numbers."""
    rng, apart = np.random.default_rng(0), []
    for _ in range(4000):
        sharp = rng.choice([1.0, 4.0, 30.0])
        pair = (
            np.sign(rng.normal(size=(2, 5))) * np.abs(rng.normal(size=(2, 5))) ** (1.0 / sharp) * (rng.random((2, 5)) < 0.8)
        )
        own = GROUPS.clip(3.0 * pair) / np.array([1.0, 2.0, 0.5, 0.5, 0.5])
        entries = [np.concatenate([each, each**2]) for each in own]
        apart.append(
            np.linalg.norm(entries[0] - entries[1]) if neighbours is REPLACE else math.hypot(np.linalg.norm(entries[0]), 1.0)
        )
    bound, _ = _distances((1, 1, 3), neighbours)
    assert max(apart) <= bound
    assert bound == pytest.approx(math.sqrt(14.25) if neighbours is REPLACE else math.sqrt(7.0))
    mine, other = [1.0, 2.0, 0.5, 0.0, 0.0], [-1.0, -2.0, 0.0, 0.5, 0.0]
    found = sums_of([mine], neighbours=neighbours) - (sums_of([other]) if neighbours is REPLACE else 0.0)
    assert np.linalg.norm(found) == pytest.approx(math.sqrt(12.0) if neighbours is REPLACE else bound)


def test_columns_of_a_ball_are_no_farther_apart_than_the_theorem_says():
    """A sum of products A (5 - A) with A = |a|^2; a search comes to 4 of at most 6.25."""
    rng = np.random.default_rng(1)
    pairs = rng.normal(size=(20_000, 2, 3))
    pairs *= rng.uniform(size=(20_000, 2, 1)) ** 0.2 / np.linalg.norm(pairs, axis=2, keepdims=True)
    apart = np.sum((pairs[:, 0] - pairs[:, 1]) ** 2 + (pairs[:, 0] ** 2 - pairs[:, 1] ** 2) ** 2, axis=1)
    assert 3.5 < apart.max() <= 6.25
    assert _distances((3,), REPLACE)[0] == 2.5
    assert _distances((3,), ADD)[0] == math.sqrt(3.0)


@pytest.mark.parametrize("name", BUDGETS)
@BOTH
@pytest.mark.parametrize("persons", [1, 2])
def test_released_sums_scatter_by_the_theorems_law(name, neighbours, persons):
    """The deviation is that of theorem 3, and that of 60 releases; noise 15% larger or smaller fails."""
    plan = plan_of(BUDGETS[name], neighbours, persons)
    bound = math.sqrt(14.25) if neighbours is REPLACE else math.sqrt(7.0)
    entries = 10 if neighbours is REPLACE else 11
    if name == "pure":
        deviation = math.sqrt(2.0) * math.sqrt(entries) * bound / (0.7 / persons)
    elif name == "zcdp":
        deviation = bound * persons / math.sqrt(0.2)
    else:
        epsilon = 0.7 / persons
        delta = 0.1 * (1.0 if persons == 1 else math.expm1(epsilon) / math.expm1(0.7))
        deviation = bound / largest_mu(epsilon, delta)
    assert plan.deviation == pytest.approx(deviation, rel=3e-3)
    draws = np.array([plan.lattice.release(np.zeros((1, 11)), Entropy.seeded(seed))[0] for seed in range(60)])
    assert np.sqrt(np.mean(draws**2)) == pytest.approx(deviation, rel=0.12)


def test_the_noise_costs_what_the_ledger_counts():
    """The curve of the event is that of the noise."""
    gaussian = plan_of(ZCDP(0.1))
    assert isinstance(gaussian.lattice, LatticeGaussian)
    assert gaussian.event.curve.mu == 1.0 / gaussian.lattice.multiplier <= math.sqrt(0.2)


def test_the_noise_covers_rounding_to_the_last_of_its_constants():
    """And where rounding would be a little more than a tenth of the effect of a row there is no plan."""
    exact = math.sqrt(14.25)

    def rounding(n):
        return 1.02 * 2.0**-53 * n * math.sqrt(7.0) * (60 + 12 + 12)

    def plan(n):
        training = ObjectivePerturbation().plan(problem_of(), PureDP(1.0))
        facts = replace(training.problem, n_rows_low=n, n_rows_high=n)
        return Spreads.plan(replace(training, problem=facts), ZCDP(0.1))

    most = round(0.05 * exact / rounding(1))
    assert plan(most // 2).lattice.l2_sensitivity == pytest.approx(exact + 2.0 * rounding(most // 2), rel=1e-8)
    plan(round(0.99 * most))
    with pytest.raises(ParameterError, match="too inexact"):
        plan(round(1.01 * most))


def test_without_noise_the_frame_has_the_means_and_spreads_of_the_columns():
    """And where a column does not vary, a small spread instead of none."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.uniform(0.2, 0.4, N), rng.uniform(-2.0, 2.0, N), np.full((N, 3), [0.5, 0.0, 0.0])])
    plan = plan_of(PureDP(math.inf))
    frame = plan.release(source_of(rows), Entropy.seeded(0))
    np.testing.assert_allclose(frame.centre, rows.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(frame.spreads[:2], rows.std(axis=0)[:2], rtol=1e-9)
    assert frame.spreads[2] == pytest.approx(0.5 * 2.0**-12)
    assert (frame.constant, frame.intercept, frame.length) == (1.0, 1.0, math.inf)
    without = plan_of(PureDP(math.inf), intercept=0.0)
    frame = without.release(source_of(rows), Entropy.seeded(0))
    assert (frame.centre, frame.constant) == ((0.0,) * 5, 0.0)
    np.testing.assert_allclose(frame.spreads[:2], np.sqrt(np.mean(rows**2, axis=0))[:2], rtol=1e-9)


@BOTH
def test_what_the_noise_hides_of_a_spread_is_not_believed(neighbours):
    """A variance below its own noise becomes that of the noise, and a level one quarter of usual levels."""
    plan = plan_of(ZCDP(1e4), neighbours, n_rows_low=N, n_rows_high=N)
    sums = np.concatenate([N * np.array([0.5, 0.0, 1.0, 0.0, 0.0]), N * np.array([0.25, 9.0, 1.0, 0.0, 0.0]), [N]])
    frame = frame_of(plan, sums)
    noise = plan.deviation / N
    assert frame.spreads[0] == pytest.approx(math.sqrt(noise * math.sqrt(2.0)))
    assert frame.spreads[1] == 2.0
    assert frame.spreads[2] == pytest.approx(0.5 * math.sqrt(0.25 * 2.0 / 9.0))
    assert frame.length == length_of(plan.problem)
    wild = frame_of(plan, np.full(11, -1e9))
    assert np.abs(wild.centre).max() <= 2.0
    assert min(wild.spreads) > 0.0


def test_a_private_number_of_rows_is_put_within_its_bounds():
    """Means are over the noisy number."""
    plan = plan_of(ZCDP(0.1), ADD)
    for released, expected in ((30.0, 30.0), (1e6, 2.0 * N), (-5.0, N / 2.0)):
        frame = frame_of(plan, np.concatenate([[3.0], np.zeros(9), [released]]))
        assert frame.centre[0] == pytest.approx(3.0 / expected)


def test_other_rows_and_losses_are_refused():
    """Before any noise is drawn."""
    with pytest.raises(ParameterError, match="the plan is for 40 to 40 rows"):
        plan_of(ZCDP(0.1)).release(source_of(np.zeros((N + 1, 5))), Entropy.seeded(0))
    training = ObjectivePerturbation().plan(problem_of(), PureDP(1.0))
    changed = replace(training.problem, row_bound=BallBound(2.0**260))
    with pytest.raises(ParameterError, match="interest needs a smooth loss"):
        Spreads.plan(replace(training, problem=changed), ZCDP(0.1))
