"""The noisy curvature: its sensitivity by search in exact arithmetic, the law of the noise, and what leaves."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest
from confide.erm.hinges import Hinge
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.privacy import curvature
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.curvature import NoisyCurvature, refuse_other_losses
from confide.privacy.direction_sums import NoisyDirectionSums
from confide.privacy.gaussian import largest_mu
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.mechanism import Problem
from confide.privacy.moments import largest_norm
from confide.privacy.noise import Entropy
from confide.privacy.objective_perturbation import ObjectivePerturbation

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
    return NoisyCurvature().plan(training, budget)


def source_of(rows, labels):
    return MemorySource(ArrayBlocks(np.asarray(rows, dtype=np.float64)), np.asarray(labels, dtype=np.int8))


def some_rows(n=N, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(-0.6, 0.6, size=(n, D)), rng.choice([-1, 1], size=n)


WEIGHTS = np.array([[0.4, -0.3, 0.2]])


def exact(rows, labels, weights=WEIGHTS):
    """The matrix without noise, through the release itself."""
    plan = plan_of(PureDP(math.inf), n_rows_low=len(rows), n_rows_high=len(rows))
    return NoisyCurvature().release(plan, weights, source_of(rows, labels), Entropy.seeded(0))


def test_without_privacy_the_matrix_is_the_curvature_of_rows_with_a_shortened_constant():
    """The constant of 1 counts as two fifths, in its row and its column."""
    rows, labels = some_rows()
    margins = labels * (np.hstack([rows, np.ones((N, 1))]) @ WEIGHTS[0])
    w = 2.0**-6
    bends = (np.tanh((margins + w) / 2.0) - np.tanh((margins - w) / 2.0)) / (4.0 * w)
    short = np.hstack([rows, np.full((N, 1), 0.4)])
    np.testing.assert_allclose(exact(rows, labels), (short * bends[:, None]).T @ short, rtol=1e-9)


@BOTH
def test_neighbours_are_as_far_apart_as_the_theorem_says(neighbours):
    """Two orthogonal longest rows at a score of 0 attain the bound. All products of rows are exact, in rational numbers."""
    # With the constant 2/5, a row (a, b) of length 1 is orthogonal to (3/5, 4/5) if 3a/5 + 4b/5 = -4/25.
    x = (Fraction(3, 5), Fraction(4, 5))
    angle = math.acos(-0.16) + math.atan2(0.8, 0.6)
    y = (Fraction(math.cos(angle)), Fraction(math.sin(angle)))
    k = Fraction(2, 5)

    def term(row):
        full = (*row, k)
        return [[first * second for second in full] for first in full]

    difference = [term(x)[i][j] - (term(y)[i][j] if neighbours is REPLACE else 0) for i in range(3) for j in range(3)]
    attained = math.sqrt(sum(each * each for each in difference))
    for budget in BUDGETS.values():
        # Laplace noise is planned for the L1 distance, root 6 times this, and its lattice knows it over root 6.
        assert attained <= plan_of(budget, neighbours).lattice.l2_sensitivity <= 1.001 * attained
    # The same pair through the release, without noise. The window makes the curvature a little less than the largest.
    rows, labels = some_rows()
    mine, other = rows.copy(), rows.copy()
    mine[0], other[0] = (0.6, 0.8), (float(y[0]), float(y[1]))
    zero = np.zeros((1, 3))
    if neighbours is ADD:
        other, labels_of_other = np.delete(mine, 0, axis=0), np.delete(labels, 0)
    else:
        labels_of_other = labels
    apart = np.linalg.norm(exact(mine, labels, zero) - exact(other, labels_of_other, zero)) / 0.25
    assert 0.999 * attained <= apart <= attained * (1 + 1e-12)


@pytest.mark.parametrize("name", BUDGETS)
@BOTH
@pytest.mark.parametrize("persons", [1, 2])
def test_released_matrices_scatter_by_the_theorems_law(name, neighbours, persons):
    """The deviation is that of theorem 3, and that of 40 releases of 6 entries; noise 0.7 or 1.4 times as large fails."""
    plan = plan_of(BUDGETS[name], neighbours, persons)
    bound = 1.16 * (math.sqrt(2.0) if neighbours is REPLACE else 1.0) * 0.25
    if name == "pure":
        deviation = math.sqrt(2.0) * math.sqrt(6) * bound / (0.7 / persons)
    elif name == "zcdp":
        deviation = bound * persons / math.sqrt(0.2)
    else:
        epsilon = 0.7 / persons
        delta = 0.1 * (1.0 if persons == 1 else math.expm1(epsilon) / math.expm1(0.7))
        deviation = bound / largest_mu(epsilon, delta)
    assert plan.entry_deviation == pytest.approx(deviation / math.sqrt(2.0), rel=3e-3)
    rows, labels = some_rows()
    entropy, source, centre = Entropy.seeded(3), source_of(rows, labels), exact(rows, labels)
    noises = np.array([NoisyCurvature().release(plan, WEIGHTS, source, entropy) for _ in range(40)]) - centre
    scaled = noises * np.where(np.eye(3) > 0, 1.0, math.sqrt(2.0)) / deviation
    spread = np.mean(np.array([each[np.triu_indices(3)] for each in scaled]) ** 2)
    assert 0.6 < spread < 1.6


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
    longest = largest_norm(many_rows(neighbours, n), ZCDP(0.1))
    # The rounding of the loss is 12, and 1 for the weight of a row.
    slopes = 13.0 + 0.25 * ((2 * width + 8) * norm * longest + window)
    sums = 60 + 2 * width + 24
    of_matrices = 1.02 * unit * n * norm**2 * (slopes / (window * 0.25) + sums + 2.0 * slopes + sums)
    exact = 1.16 * (math.sqrt(2.0) if neighbours is REPLACE else 1.0)
    return exact, exact + 2.0 * (of_matrices + 2.0 * unit * n * norm**2)


@BOTH
def test_the_noise_covers_rounding_to_the_last_of_its_constants(neighbours):
    """And where rounding would be a little more than a tenth of the effect of a row there is no plan."""
    exact, expected = with_rounding(neighbours, 2**35)
    assert 1.01 * exact < expected < 1.09 * exact
    for budget in (PureDP(0.7), ZCDP(0.1)):
        plan = NoisyCurvature().plan(many_rows(neighbours, 2**35), budget)
        assert plan.lattice.l2_sensitivity == pytest.approx(expected, rel=1e-8)
    n = 2**35
    for _ in range(20):
        exact, expected = with_rounding(neighbours, n)
        n = round(0.1 / (expected / exact - 1.0) * n)
    NoisyCurvature().plan(many_rows(neighbours, round(0.99 * n)), ZCDP(0.1))
    with pytest.raises(ParameterError, match="too inexact"):
        NoisyCurvature().plan(many_rows(neighbours, round(1.01 * n)), ZCDP(0.1))


def test_noise_is_smaller_off_the_diagonal():
    """By the root of 2, since those entries stand twice in the matrix; 15% more or less fails."""
    plan, (rows, labels) = plan_of(ZCDP(0.1)), some_rows()
    entropy, source, centre = Entropy.seeded(4), source_of(rows, labels), exact(rows, labels)
    noises = np.array([NoisyCurvature().release(plan, WEIGHTS, source, entropy) for _ in range(200)]) - centre
    off, on = noises[:, *np.triu_indices(3, 1)], noises[:, range(3), range(3)]
    assert off.std() == pytest.approx(plan.entry_deviation, rel=0.12)
    assert on.std() == pytest.approx(math.sqrt(2.0) * plan.entry_deviation, rel=0.12)


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
    plan = replace(plan_of(ZCDP(0.1)), lattice=None)
    source, short = source_of(*some_rows()), WEIGHTS * plan.largest_norm / np.linalg.norm(WEIGHTS)
    released = [NoisyCurvature().release(plan, each, source, Entropy.seeded(0)) for each in (1e3 * short, short)]
    np.testing.assert_allclose(*released, rtol=1e-9)
    assert np.abs(exact(*some_rows(), 1e3 * short) - released[0]).max() > 1e-3


@pytest.mark.parametrize("rows", [np.zeros((N + 1, D)), np.zeros((N, D + 1))], ids=["more rows", "more columns"])
def test_rows_that_the_plan_is_not_for_are_refused(rows):
    """More rows round by more than the noise covers."""
    with pytest.raises(ParameterError, match="the plan is for 40 to 40 rows of 2 columns"):
        NoisyCurvature().release(plan_of(ZCDP(0.1)), WEIGHTS, source_of(rows, np.ones(len(rows))), Entropy.seeded(0))


@pytest.mark.parametrize("changed", [{"row_bound": BallBound(2.0**260)}, {"n_rows_low": 2**50, "n_rows_high": 2**50}])
def test_what_the_proof_does_not_cover_is_refused(changed):
    """A norm whose fourth power is no double, and so many rows that rounding would be larger than a row."""
    training = ObjectivePerturbation().plan(problem_of(), PureDP(1.0))
    facts = replace(training, problem=replace(training.problem, **changed))
    with pytest.raises(ParameterError):
        NoisyCurvature().plan(facts, PureDP(1.0))


def test_a_plan_of_another_mechanism_is_refused():
    with pytest.raises(ParameterError, match="another mechanism"):
        NoisyCurvature().release(ObjectivePerturbation().plan(problem_of(), PureDP(1.0)), WEIGHTS, None, Entropy.seeded(0))


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
    assert (plan.largest_norm, plan.lattice) == (math.inf, None)


def test_losses_that_the_proof_does_not_cover_are_refused_when_curvature_is_planned():
    """Several scores, and slopes that are bounded by the lengths of rows."""
    training = ObjectivePerturbation().plan(problem_of(), PureDP(1.0))
    for loss in (OneVsRest(LogisticLoss(), 3), SquaredLoss(1.0, 1.0, by_length=True)):
        facts = replace(training, problem=replace(training.problem, loss=loss))
        for plan in (NoisyCurvature().plan, lambda *given: NoisyDirectionSums().plan(given[0], 1, given[1])):
            with pytest.raises(ParameterError, match="one score and bounded slope"):
                plan(facts, ZCDP(0.1))


@pytest.mark.parametrize("constant", [0.2, 0.5, 2.0])
def test_the_constant_of_the_matrix_is_that_of_the_plan_whatever_the_intercept_has(constant):
    """At most two fifths of the bound on a row, and less where the intercept has less."""
    rows, labels = some_rows()
    margins = labels * (np.hstack([rows, np.full((N, 1), constant)]) @ WEIGHTS[0])
    w = 2.0**-6
    bends = (np.tanh((margins + w) / 2.0) - np.tanh((margins - w) / 2.0)) / (4.0 * w)
    short = np.hstack([rows, np.full((N, 1), min(constant, 0.4))])
    plan = plan_of(PureDP(math.inf), n_rows_low=N, n_rows_high=N, intercept=constant)
    found = NoisyCurvature().release(plan, WEIGHTS, source_of(rows, labels), Entropy.seeded(0))
    np.testing.assert_allclose(found, (short * bends[:, None]).T @ short, rtol=1e-9)


@pytest.mark.parametrize("norm", [0.25, 3.0])
def test_a_long_constant_is_shortened_beside_the_row_norm(norm):
    """A shorter one stays as it is."""
    for intercept in (1e-3, 1e3):
        training = SimpleNamespace(problem=problem_of(row_bound=BallBound(norm), intercept=intercept))
        plan = NoisyCurvature().plan(training, PureDP(math.inf))
        assert plan.constant == min(intercept, curvature._SHORT_CONSTANT * norm)
