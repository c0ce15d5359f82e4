"""Noisy curvature and slopes in a frame: their sensitivity by search, the law of the noise, and what leaves."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest
from confide.erm.losses import Hinge, LogisticLoss
from confide.erm.moment_sums import Frame
from confide.erm.row_bounds import BallBound
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.curvature import (
    Curvature,
    deviations_of_curvature,
    distance_in_frame,
    largest_bend,
    length_of,
    refuse_other_losses,
    scale_of_slopes,
)
from confide.privacy.direction_sums import DirectionSums
from confide.privacy.gaussian import largest_mu
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.mechanism import Problem
from confide.privacy.moments import largest_norm
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation
from tests.covering import pairs_of

REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
BOTH = pytest.mark.parametrize("neighbours", [REPLACE, ADD], ids=["replace", "add"])
BUDGETS = {"pure": PureDP(0.7), "approximate": ApproxDP(0.7, 0.1), "zcdp": ZCDP(0.1)}
N, D = 40, 2


def problem_of(neighbours=REPLACE, persons=1, **changed):
    """Rows of two columns in the unit ball, with a constant of 1."""
    bounds = (N, N) if neighbours is REPLACE else (N // 2, 2 * N)
    facts = {
        "loss": LogisticLoss(), "row_bound": BallBound(1.0), "intercept": 1.0, "n_features": D, "n_rows_low": bounds[0],
        "n_rows_high": bounds[1], "summation_depth": 60, "neighbours": neighbours, "rows_per_person": persons, "l2": 8.0,
    }  # fmt: skip
    return Problem(**(facts | changed))


def plan_of(budget, neighbours=REPLACE, persons=1, **changed):
    """A plan of the curvature beside weights of a pure budget."""
    training = ObjectivePerturbation().plan(problem_of(neighbours, persons, **changed), PureDP(1.0))
    return Curvature.plan(training, budget)


def source_of(rows, labels):
    return MemorySource(ArrayBlocks(np.asarray(rows, dtype=np.float64)), np.asarray(labels, dtype=np.int8))


def some_rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.6, 0.6, size=(n, D)), rng.choice([-1, 1], size=n)


WEIGHTS = np.array([[0.4, -0.3, 0.2]])


FRAME = Frame((0.1, -0.2), (0.3, 0.5), 1.0, 1.0, math.sqrt(1.4 * D + 1.0))


def released(plan, rows, labels, weights=WEIGHTS, frame=FRAME, seed=0):
    return plan.release(source_of(rows, labels), Entropy.seeded(seed), frame, weights)


def exact(rows, labels, weights=WEIGHTS, frame=FRAME):
    """Curvature and slopes without noise, through the release itself."""
    plan = plan_of(PureDP(math.inf), n_rows_low=len(rows), n_rows_high=len(rows))
    return released(plan, rows, labels, weights, frame)


def vector_of(plan, curvature, slopes):
    """What left, in the units of the noise."""
    multiples = np.where(np.eye(3) > 0, 1.0, math.sqrt(2.0))[np.triu_indices(3)]
    return np.concatenate([multiples * curvature[np.triu_indices(3)] / 0.25, scale_of_slopes(plan.problem) * slopes])


def test_without_privacy_they_are_curvature_and_slopes_of_the_rows_in_the_frame():
    """Long rows count less, and scores are those of the rows as they are."""
    rows, labels = some_rows()
    margins = labels * (np.hstack([rows, np.ones((N, 1))]) @ WEIGHTS[0])
    w = 2.0**-6
    bends = (np.tanh((margins + w) / 2.0) - np.tanh((margins - w) / 2.0)) / (4.0 * w)
    own = np.hstack([(rows - FRAME.centre) / FRAME.spreads, np.ones((N, 1))])
    share = np.minimum(1.0, FRAME.length**2 / np.sum(own**2, axis=1))
    assert 0.1 < np.mean(share < 1.0) < 0.9
    curvature, slopes = exact(rows, labels)
    np.testing.assert_allclose(curvature, (own * (share * bends)[:, None]).T @ own, rtol=1e-9)
    np.testing.assert_allclose(slopes, (-np.sqrt(share) * labels / (1.0 + np.exp(margins))) @ own, rtol=1e-9)


@BOTH
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours):
    """Rows as long as the frame, of slopes and angles at which both parts add up to the most, attain the bound.

    The logistic curve bends by 4 a (1 - a) at a slope of a; the window lets it bend by at most e^(1/64) times as much.
    """
    plan = plan_of(ZCDP(0.1), neighbours)
    frame = Frame((0.0, 0.0), (1.0 / math.sqrt(1.4 * D),) * 2, 1.0, 1.0, length_of(plan.problem))
    largest, bound = 0.0, distance_in_frame(plan.problem)
    for slope in np.linspace(0.4, 0.9, 21):
        weights = np.array([[0.0, 0.0, -math.log(slope / (1.0 - slope))]])
        first = exact(np.array([[1.0, 0.0]]), np.ones(1), weights, frame)
        # Slopes pull rows apart that point the same way or opposite ones, and curvatures of orthogonal ones add up.
        for angle in np.linspace(0.5, 1.0, 15) * math.pi if neighbours is REPLACE else (0.0,):
            other = np.array([[math.cos(angle), math.sin(angle)]])
            second = exact(other, np.ones(1), weights, frame) if neighbours is REPLACE else (0.0, 0.0)
            parts = [np.linalg.norm(one - two) for one, two in zip(first, second, strict=True)]
            largest = max(largest, math.hypot(parts[0] / 0.25, scale_of_slopes(plan.problem) * parts[1]))
    assert 0.98 * bound <= largest <= bound
    for budget in BUDGETS.values():
        assert bound <= plan_of(budget, neighbours).lattice.l2_sensitivity <= 1.001 * bound
    squared = (1.4 * D + 1.0) ** 2 * _largest_square(neighbours)
    assert math.sqrt(squared) <= bound <= 1.01 * math.sqrt(squared)


def _largest_square(neighbours):
    """The maximum of theorem 1 on a grid of slopes, of angles and of curvatures that are none or the largest."""
    grid = np.linspace(0.0, 1.0, 161)
    bends = np.minimum(1.0, math.exp(2.0**-6) * 4.0 * grid * (1.0 - grid))
    if neighbours is ADD:
        return float((bends**2 + (0.7 * grid) ** 2).max())
    found = 0.0
    for kept in (0.0, 1.0):
        one, two = bends[:, None, None], kept * bends[None, :, None]
        mine, other, cosine = grid[:, None, None], grid[None, :, None], np.linspace(0.0, 1.0, 81)
        slopes = 0.49 * (mine**2 + other**2 + 2.0 * mine * other * cosine)
        found = max(found, float((one**2 + two**2 - 2.0 * one * two * cosine**2 + slopes).max()))
    return found


def test_no_pair_of_rows_is_farther_apart_than_the_theorem_says():
    """Random rows of any length, in random frames at random weights; and most of the bound is reached."""
    plan, rng, largest = plan_of(ZCDP(0.1)), np.random.default_rng(0), 0.0
    bound, scale = distance_in_frame(plan.problem), scale_of_slopes(plan.problem)
    for _ in range(150):
        spreads = tuple(np.exp(rng.uniform(-3.0, 0.0, size=2)).tolist())
        frame = Frame(tuple(rng.uniform(-0.5, 0.5, size=2).tolist()), spreads, 1.0, 1.0, length_of(plan.problem))
        weights = rng.normal(size=(1, 3))
        first, second = (exact(rng.normal(size=(1, 2)), rng.choice([-1, 1], size=1), weights, frame) for _ in range(2))
        parts = [np.linalg.norm(one - two) for one, two in zip(first, second, strict=True)]
        largest = max(largest, math.hypot(parts[0] / 0.25, scale * parts[1]))
    assert 0.8 * bound <= largest <= bound


@pairs_of(name=BUDGETS, neighbours=[REPLACE, ADD], persons=[1, 2])
def test_released_matrices_scatter_by_the_theorems_law(name, neighbours, persons):
    """The deviation is that of theorem 3, and that of 240 releases, of curvature and of slopes; 15% more or less fails."""
    plan = plan_of(BUDGETS[name], neighbours, persons)
    bound = distance_in_frame(plan.problem)
    if name == "pure":
        deviation = math.sqrt(2.0) * math.sqrt(9) * bound / (0.7 / persons)
    elif name == "zcdp":
        deviation = bound * persons / math.sqrt(0.2)
    else:
        epsilon = 0.7 / persons
        delta = 0.1 * (1.0 if persons == 1 else math.expm1(epsilon) / math.expm1(0.7))
        deviation = bound / largest_mu(epsilon, delta)
    assert deviations_of_curvature(plan)[0] == pytest.approx(0.25 * deviation / math.sqrt(2.0), rel=3e-3)
    assert deviations_of_curvature(plan)[1] == pytest.approx(deviation / (0.7 * math.sqrt(1.4 * D + 1.0)), rel=3e-3)
    rows, labels = some_rows()
    centre = vector_of(plan, *exact(rows, labels))
    noises = np.array([vector_of(plan, *released(plan, rows, labels, seed=seed)) for seed in range(240)]) - centre
    for part in (noises[:, :6], noises[:, 6:]):
        assert np.sqrt(np.mean(part**2)) == pytest.approx(deviation, rel=0.12)


def test_the_noise_costs_what_the_ledger_counts():
    """The curve of the event is that of the noise."""
    gaussian = plan_of(ZCDP(0.1))
    assert isinstance(gaussian.lattice, LatticeGaussian)
    assert gaussian.event.curve.mu == 1.0 / gaussian.lattice.multiplier <= math.sqrt(0.2)


def many_rows(neighbours, n):
    """A plan of weights for so many rows that rounding is a few hundredths of the effect of a row."""
    training = ObjectivePerturbation().plan(problem_of(neighbours), PureDP(1.0))
    low = n if neighbours is REPLACE else n // 2
    return replace(training, l2=1e12, problem=replace(training.problem, n_rows_low=low, n_rows_high=n))


def with_rounding(neighbours, n):
    """The distance of neighbours and the same with twice the rounding of theorem 2, written out."""
    width, norm, window, unit = D + 1, math.sqrt(2.0), 2.0**-6, 2.0**-53
    facts = many_rows(neighbours, n)
    longest = largest_norm(facts, ZCDP(0.1))
    # The rounding of the loss is 12, and 1 for the weight of a row.
    slopes = 13.0 + 0.25 * ((2 * width + 8) * norm * longest + window)
    of_rows = slopes / (window * 0.25) + slopes + 2.0 * 2**13 * (width + 8) + 2.0 * 62
    exact = distance_in_frame(facts.problem)
    return exact, exact + 2.0 * 1.02 * unit * n * (1.4 * D + 1.0) * of_rows


@BOTH
def test_the_noise_covers_rounding_to_the_last_of_its_constants(neighbours):
    """And where rounding would be a little more than a tenth of the effect of a row there is no plan."""
    exact, expected = with_rounding(neighbours, 2**31)
    assert 1.01 * exact < expected < 1.09 * exact
    for budget in (PureDP(0.7), ZCDP(0.1)):
        plan = Curvature.plan(many_rows(neighbours, 2**31), budget)
        assert plan.lattice.l2_sensitivity == pytest.approx(expected, rel=1e-8)
    n = 2**31
    for _ in range(20):
        exact, expected = with_rounding(neighbours, n)
        n = round(0.1 / (expected / exact - 1.0) * n)
    Curvature.plan(many_rows(neighbours, round(0.99 * n)), ZCDP(0.1))
    with pytest.raises(ParameterError, match="too inexact"):
        Curvature.plan(many_rows(neighbours, round(1.01 * n)), ZCDP(0.1))


def test_noise_is_smaller_off_the_diagonal():
    """By the root of 2, since those entries stand twice in the matrix; 15% more or less fails."""
    plan, (rows, labels) = plan_of(ZCDP(0.1)), some_rows()
    noises = np.array([released(plan, rows, labels, seed=seed)[0] for seed in range(200)]) - exact(rows, labels)[0]
    off, on = noises[:, *np.triu_indices(3, 1)], noises[:, range(3), range(3)]
    assert off.std() == pytest.approx(deviations_of_curvature(plan)[0], rel=0.12)
    assert on.std() == pytest.approx(math.sqrt(2.0) * deviations_of_curvature(plan)[0], rel=0.12)


UNCOVERED = {
    "two scores": {"loss": OneVsRest(LogisticLoss(), 2)},
    "slopes by length": {"loss": SquaredLoss(1.0, 2.0, by_length=True)},
    "a corner": {"loss": Hinge()},
    "rows too long": {"row_bound": BallBound(2.0**260)},
    "rows too short": {"row_bound": BallBound(2.0**-260), "intercept": 0.0},
}


@pytest.mark.parametrize("name", UNCOVERED)
def test_other_losses_and_rows_are_refused_in_words_of_interest(name):
    """Theorem 1 needs a smooth loss of one score with one bound on its slopes, and a fourth power that is a double."""
    with pytest.raises(ParameterError, match="interest needs a smooth loss of one score"):
        refuse_other_losses(problem_of(**UNCOVERED[name]))
    refuse_other_losses(problem_of())


def test_long_weights_are_shortened_to_the_norm_that_rounding_was_counted_for():
    """By a function of the weights alone."""
    plan = replace(plan_of(ZCDP(0.1)), lattice=None, budget=PureDP(math.inf))
    short = WEIGHTS * plan.query.largest_norm / np.linalg.norm(WEIGHTS)
    found = [released(plan, *some_rows(), each) for each in (1e3 * short, short)]
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-9)
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-9)
    assert np.abs(exact(*some_rows(), 1e3 * short)[0] - found[0][0]).max() > 1e-3


def test_a_frame_that_is_longer_than_the_noise_allows_for_is_refused():
    """Or one of another width."""
    plan = plan_of(ZCDP(0.1))
    for changed in ({"length": 1.01 * FRAME.length}, {"length": math.inf}, {"centre": (0.0,) * 3}):
        with pytest.raises(ParameterError, match="another mechanism"):
            released(plan, *some_rows(), frame=replace(FRAME, **changed))


@pytest.mark.parametrize("rows", [np.zeros((N + 1, D)), np.zeros((N, D + 1))], ids=["more rows", "more columns"])
def test_rows_that_the_plan_is_not_for_are_refused(rows):
    """More rows round by more than the noise covers."""
    with pytest.raises(ParameterError, match="the plan is for 40 to 40 rows of 2 columns"):
        released(plan_of(ZCDP(0.1)), rows, np.ones(len(rows)))


@pytest.mark.parametrize("changed", [{"row_bound": BallBound(2.0**260)}, {"n_rows_low": 2**50, "n_rows_high": 2**50}])
def test_what_the_proof_does_not_cover_is_refused(changed):
    """A norm whose fourth power is no double, and so many rows that rounding would be larger than a row."""
    training = ObjectivePerturbation().plan(problem_of(), PureDP(1.0))
    facts = replace(training, problem=replace(training.problem, **changed))
    with pytest.raises(ParameterError):
        Curvature.plan(facts, PureDP(1.0))


@pytest.mark.parametrize(("norm", "covered"), [(2.0**250, True), (2.0**251, False), (2.0**-250, True), (2.0**-251, False)])
def test_the_norms_of_rows_that_are_covered_end_where_the_message_says(norm, covered):
    """From 2^-250 to 2^250, ends included."""
    facts = problem_of(row_bound=BallBound(norm), intercept=0.0)
    if covered:
        refuse_other_losses(facts)
    else:
        with pytest.raises(ParameterError, match="row norm from"):
            refuse_other_losses(facts)


def test_without_privacy_no_weights_are_shortened():
    plan = plan_of(PureDP(math.inf))
    assert (plan.query.largest_norm, plan.lattice) == (math.inf, None)


def test_losses_that_the_proof_does_not_cover_are_refused_when_curvature_is_planned():
    """Several scores, and slopes that are bounded by the lengths of rows."""
    training = ObjectivePerturbation().plan(problem_of(), PureDP(1.0))
    for loss in (OneVsRest(LogisticLoss(), 3), SquaredLoss(1.0, 1.0, by_length=True)):
        facts = replace(training, problem=replace(training.problem, loss=loss))
        for plan in (Curvature.plan, lambda *given: DirectionSums.plan(given[0], 1, given[1])):
            with pytest.raises(ParameterError, match="one score and bounded slope"):
                plan(facts, ZCDP(0.1))


def test_a_row_with_a_weight_bends_in_its_own_units():
    """Q = e^w (L / c) a (1 - a), which is e^w 4 a (1 - a) for a logistic loss of any weight; at most 1."""
    for weight in (0.2, 1.0, 3.0):
        loss, ends = LogisticLoss().constants.weighted(weight), np.array([0.0, 0.1, 0.8, 0.9])
        found = largest_bend(loss, ends, ends + 0.05)
        at = np.array([0.05, 0.15, 0.8, 0.9])
        assert found == pytest.approx(np.minimum(1.0, math.exp(2.0**-6) * 4.0 * at * (1.0 - at)))
