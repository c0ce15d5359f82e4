"""Public facts, plans and the shapes that a bound on rows allows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound, Centred
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.mechanism import log_failure, shapes_of, zero_weights
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from confide.privacy.shapes import Ball, Cylinder
from tests.privacy.problems import GROUPS, problem, source


def test_the_shapes_of_a_bound():
    """Always a ball; for a ball with an intercept a cylinder; groups with the intercept last; linked only with both."""
    tight = GroupBound((3, 1, 1), (1.0, 1.0, 2.0), (True, True, False))
    names = [[shape.name for shape in shapes_of(GroupBound((3, 1, 1), (1.0, 1.0, 2.0)), c, 5)] for c in (0.0, 1.0)]
    assert names == [["ball", "groups"]] * 2
    assert shapes_of(BallBound(2.0), 0.0, 5) == (Ball(5, 2.0),)
    ball, cylinder = shapes_of(BallBound(2.0), 1.5, 5)
    assert cylinder == Cylinder(5, 2.0, 1.5)
    assert ball.dimension == cylinder.dimension == 6
    assert ball.l2_norm >= 2.5
    ball, groups, linked = shapes_of(tight, 0.5, 5)
    assert ball.dimension == groups.dimension == linked.dimension == 6
    assert groups.sizes == linked.sizes == (3, 1, 1, 1)
    assert linked.scales == (1.0, 1.0, 2.0, 0.5)
    assert linked.linked == (True, False, False, False)
    assert linked.free_dimension == 5
    assert [shape.name for shape in shapes_of(tight, 0.0, 5)] == ["ball", "groups"]


@pytest.mark.parametrize(
    ("mechanism", "inside"),
    [(ObjectivePerturbation(), True), (OutputPerturbation(), False), (OutputPerturbation(laplace_alone=True), False)],
)
def test_a_plan_says_whether_its_noise_lies_in_the_objective(mechanism, inside):
    """Of the three ways to add noise one perturbs the objective."""
    assert mechanism.plan(problem(), PureDP(1.0)).perturbs_objective == inside


def test_a_plan_for_other_rows_is_refused_with_the_public_bounds():
    """The message names what the plan is for, and nothing of the rows that came."""
    facts = problem(n=20, d=2, neighbours=Neighbours.ADD_OR_REMOVE_ONE, high=30)
    facts.check(25, 2)
    for n_rows, n_features in [(25, 3), (19, 2), (31, 2)]:
        with pytest.raises(ParameterError, match="20 to 30 rows of 2 columns"):
            facts.check(n_rows, n_features)


def test_one_row_beyond_the_cap_of_a_person_may_be_missing_from_a_source():
    """A source may have fewer rows than planned, never more."""
    facts = problem(n=20, d=2)
    facts.check_source(source(n=15, d=2))
    with pytest.raises(ParameterError, match="other rows came"):
        facts.check_source(source(n=21, d=2))


@pytest.mark.parametrize(
    ("persons", "budget", "kept"), [(1, ApproxDP(1.0, 1e-6), True), (2, ApproxDP(1.0, 1e-6), False), (1, PureDP(1.0), False)]
)
def test_an_event_keeps_a_curve_for_single_rows_alone(persons, budget, kept):
    """A curve describes one row, and a pure budget needs none."""
    event = problem(rows_per_person=persons).event(budget, GaussianMechanism(0.1))
    assert (event.curve is not None) == kept
    assert event.rows_per_person == persons


def test_the_largest_weight_of_a_row_lies_between_two_powers():
    """From 2^-100 to 2^100, both included, so that no product overflows or underflows; a hair outside is refused."""
    for end, outwards in ((2.0**-100, 0.0), (2.0**100, math.inf)):
        assert problem(largest_weight=end).largest_weight == end
        with pytest.raises(ParameterError, match="largest weight"):
            problem(largest_weight=math.nextafter(end, outwards))


@pytest.mark.parametrize("loss", [Softmax(2), OneVsRest(LogisticLoss(), 2), Softmax(5)], ids=["two", "two apart", "five"])
def test_several_scores_have_one_ball_around_all_their_weights(loss):
    """From two scores on, also where columns or an intercept would allow another shape for one."""
    facts = problem(loss=loss, d=3, intercept=1.5, row_norm=2.0)
    assert facts.shapes == (Ball(4 * loss.constants.n_outputs, facts.row_norm),)
    assert facts.row_norm == pytest.approx(2.5, rel=1e-12)
    assert facts.n_weights == 4 * loss.constants.n_outputs
    assert len(problem(d=3, intercept=1.5).shapes) == 2


@pytest.mark.parametrize("changed", [{"l2": 0.0}, {"l2": -1.0}, {"l2": math.inf}, {"l2": math.nan}, {"beside_mu": -0.1},
                                     {"beside_mu": math.inf}, {"beside_mu": math.nan}, {"prior": (0.0,)},
                                     {"prior": (0.0, 2.0**201)}, {"prior": (math.nan, 0.0)}], ids=str)  # fmt: skip
def test_facts_that_no_proof_covers_are_refused(changed):
    """A ridge or releases beside the weights that are no finite number, and a prior that is too short or too large."""
    with pytest.raises(ParameterError, match=r"alpha must|beside_mu must|a prior needs 2 weights"):
        replace(problem(d=2), **changed)


def test_facts_have_no_prior_no_weights_of_rows_and_nothing_beside_unless_they_say_so():
    """The largest prior is 2^200 in each weight; the ridge pulls to 0 otherwise."""
    facts = problem(d=2)
    assert (facts.prior, facts.largest_weight, facts.beside_mu) == ((), 1.0, 0.0)
    assert replace(facts, prior=(2.0**200, -(2.0**200))).prior == (2.0**200, -(2.0**200))
    rows, noise = source(20, 2), np.array([[0.5, -1.0]])
    assert facts.objective(rows, 3.0, noise).linear.tolist() == noise.tolist()
    pulled = replace(facts, prior=(1.0, 2.0)).objective(rows, 3.0, noise)
    assert pulled.linear.tolist() == [[0.5 - 3.0, -1.0 - 6.0]]
    assert replace(facts, prior=(3.0, 4.0)).rounding(3.0).prior_norm == 5.0
    assert zero_weights(facts).tolist() == [[0.0, 0.0]]


def test_gradients_of_rows_that_are_moved_lose_more_digits():
    """Whether rows are moved is asked of their bound."""
    moved = problem(d=2, intercept=1.0, row_bound=Centred(BallBound(1.0), (0.1, 0.2), 0.7))
    assert (moved.rounding(3.0).centred, problem(d=2).rounding(3.0).centred) == (True, False)


@pytest.mark.parametrize("budget", [PureDP(0.7), ApproxDP(3.0, 1e-6), ZCDP(0.5)], ids=lambda budget: budget.kind)
def test_what_is_set_aside_for_draws_beyond_their_bound_is_2_to_the_minus_199(budget):
    """(1 + exp(epsilon)) p, with half of it or more used; a concentrated budget asks for p alone."""
    facts = problem()
    epsilon = 0.0 if isinstance(budget, ZCDP) else budget.epsilon
    assert log_failure(budget, facts) + epsilon == pytest.approx(log_failure(ZCDP(1.0), facts), abs=1e-12)
    spent = (1.0 + math.exp(epsilon)) * math.exp(log_failure(budget, facts))
    assert 0.25 * 2.0**-199 < spent <= 2.0**-199


def test_a_problem_has_rows_of_the_width_of_its_bound():
    """A bound on six columns is none for five of them."""
    assert problem(20, 6, row_bound=GROUPS).n_features == 6
    with pytest.raises(ParameterError, match="describes 6 columns"):
        problem(20, 5, row_bound=GROUPS)


def test_releases_beside_the_weights_may_cost_any_finite_mu():
    """The budget decides whether it pays for them."""
    assert replace(problem(20, 2), beside_mu=50.0).beside_mu == 50.0
    for wrong in (-0.1, math.inf, math.nan):
        with pytest.raises(ParameterError, match="beside_mu"):
            replace(problem(20, 2), beside_mu=wrong)
