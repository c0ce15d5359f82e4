"""How noisy gradients lead to weights: steps, limits and ridge from public facts, and weights that are as good as others."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge, LogisticLoss
from confide.erm.objective import Objective
from confide.erm.row_bounds import Centred
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.erm.transformed_losses import DeclaredLoss, InterpolatedSlopes
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback
from confide.training.alpha import AlphaRule, balanced_l2, usual_norm
from confide.training.gradient_steps import N_STEPS, HeavyBall, descent_of, gradient_mechanism
from tests.privacy.problems import problem, source

RULE = AlphaRule(is_automatic=True, score_size=None, is_raised=False, for_intervals=False)
GIVEN = replace(RULE, is_automatic=False)


def test_a_walk_from_a_prior_begins_there_and_is_pulled_back_to_it():
    """Without slopes it stays; the ridge pulls towards the prior and not towards 0. Several walks begin at one prior."""
    walk = HeavyBall(4, 0.5, 0.9, 2.0, (3.0, -1.0)).start(2, 3)
    np.testing.assert_array_equal(walk.point, [[3.0, -1.0]] * 3)
    np.testing.assert_array_equal(walk.after(np.zeros((3, 2))).point, walk.point)
    away = replace(walk, point=walk.point + 1.0).after(np.zeros((3, 2)))
    np.testing.assert_array_equal(away.point, walk.point)
    facts = replace(problem(1000, 2), prior=(3.0, -4.0))
    _, descent = decided(facts)
    _, without = decided(problem(1000, 2))
    assert descent.steps.prior == (3.0, -4.0)
    assert descent.radius == pytest.approx(without.radius + 5.0)
    assert without.steps.prior == ()


def decided(facts, rule=RULE, mu=0.1):
    """What the rule decides."""
    return descent_of(rule, facts, mu)


@pytest.mark.parametrize("bound", [None, GroupBound((3, 2, 1), (1.0, 1.0, 1.0))], ids=["ball", "groups"])
@pytest.mark.parametrize(("loss", "share"), [(LogisticLoss(), 0.45), (LogisticHinge(), 0.85)], ids=["logistic", "margin"])
def test_the_limit_is_a_part_of_what_typical_rows_reach(loss, share, bound):
    """In units of a slope of 1: .45 of the norm of a typical row for the logistic loss, .85 for others; 1 at most."""
    facts = problem(1000, 6, loss=loss, row_norm=2.0, intercept=1.0, row_bound=bound)
    _, descent = decided(facts)
    assert descent.slope_limit * facts.row_norm == pytest.approx(share * usual_norm(facts.row_bound, 1.0))
    assert descent.n_steps == descent.steps.n_steps == N_STEPS["lines"]
    _, told = decided(facts, replace(RULE, usual_norm=100.0))
    assert told.slope_limit == 1.0


def test_where_noise_is_small_the_logistic_loss_is_clipped_as_other_losses_are():
    """From 4 rows on for the noise of each weight, so that probabilities are not too sure of themselves."""
    facts = problem(1000, 6, row_norm=2.0, intercept=1.0, neighbours=Neighbours.ADD_OR_REMOVE_ONE)
    typical = usual_norm(facts.row_bound, 1.0)
    # The noise of slopes up to 1 in 7 weights, for rows up to sqrt(5) long.
    at_four = 4.0 * 7.0 * math.sqrt(7.0) * math.hypot(2.0, 1.0) / (1000 * typical)
    for mu, share in ((0.99 * at_four, 0.45), (1.01 * at_four, 0.85)):
        _, descent = decided(facts, mu=mu)
        assert descent.slope_limit * facts.row_norm == pytest.approx(share * typical)
        _, margin = decided(replace(facts, loss=LogisticHinge()), mu=mu)
        assert margin.slope_limit * facts.row_norm == pytest.approx(0.85 * typical)


def test_the_logistic_loss_is_clipped_on_the_wrong_side_only():
    """At scores of 0 its slope is .5, which a row of nine tenths of the typical norm keeps."""
    facts = problem(1000, 6, row_norm=2.0)
    _, descent = decided(facts)
    clipped = descent.row_sum(facts).loss
    typical = usual_norm(facts.row_bound, 0.0)
    slope = clipped.of_scores(np.zeros((1, 1)), np.ones(1), 1, np.full((1, 1), 2.0 / (0.9 * typical))).slope
    assert slope[0, 0] == -0.5


def test_the_automatic_ridge_balances_the_noise_in_the_mean_of_all_sums():
    """.6 of the ridge that other mechanisms would have, and all of it for residuals; a ridge that is given is kept."""
    facts = problem(1000, 6, row_norm=2.0, intercept=1.0, neighbours=Neighbours.REPLACE_ONE)
    typical = usual_norm(facts.row_bound, 1.0)
    expected = balanced_l2(0.45 * 2.0 * typical / 0.1 * math.sqrt(7.0), 1000.0, typical, on_weights=False)
    chosen, descent = decided(facts)
    assert chosen.l2 == pytest.approx(0.6 * expected, rel=1e-9)
    residuals = problem(1000, 6, loss=SquaredLoss(2.0, 0.5), row_norm=2.0, intercept=1.0)
    of_noise = 0.85 * 2.0 * 0.5 * typical / 0.1 * math.sqrt(7.0)
    ridge = balanced_l2(of_noise, 1000.0, typical, on_weights=False, score_size=2.0)
    assert decided(residuals, replace(RULE, score_size=2.0))[0].l2 == pytest.approx(ridge, rel=1e-9)
    assert descent.steps.l2 == chosen.l2
    assert decided(facts, GIVEN)[0].l2 == facts.l2


def test_the_unit_of_the_weights_of_rows_does_not_matter():
    """Twice the cap on weights: twice the ridge, half the step."""
    one, other = (decided(problem(1000, 6, largest_weight=weight)) for weight in (1.0, 2.0))
    assert other[0].l2 == pytest.approx(2.0 * one[0].l2)
    assert other[1].steps.step == pytest.approx(0.5 * one[1].steps.step)
    assert other[1].slope_limit == one[1].slope_limit


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticHinge(0.25), SquaredLoss(2.0, 0.5), MeanLoss(5.0, 2.0)], ids=str)
def test_steps_are_short_enough_to_converge(loss):
    """Largest curvature of the mean, if all rows have one direction: heavy balls converge below 2 (1 + momentum).

    Rows in a ball may all be as long as the bound; rows in groups are as long as the groups say.
    """
    for bound, longest in ((None, 2.0), (GroupBound((3, 3), (1.0, 1.0)), math.sqrt(2.0))):
        for mu in (0.001, 10.0):
            facts = problem(1000, 6, loss=loss, row_norm=2.0, row_bound=bound)
            chosen, descent = decided(facts, mu=mu)
            largest = 1000 * loss.constants.smoothness * longest**2
            assert 0.0 < descent.steps.step * largest <= 2.0 * (1.0 + descent.steps.momentum)
            assert descent.steps.step / (1.0 - descent.steps.momentum) * chosen.l2 * descent.n_steps <= 1.5 * (1.0 + 1e-12)


def test_the_ridge_limits_steps_where_noise_is_large_and_the_curvature_where_it_is_small():
    """With much noise all steps together are 1.5 over the balanced ridge; with little each is 3.75 over the curvature."""
    facts = problem(1000, 6, row_norm=2.0, row_bound=GroupBound((3, 3), (1.0, 1.0)))
    chosen, noisy = decided(facts, mu=0.001)
    assert noisy.steps.step * noisy.n_steps / (1.0 - noisy.steps.momentum) == pytest.approx(1.5 / (chosen.l2 / 0.6))
    _, exact = decided(facts, mu=10.0)
    assert exact.steps.step == pytest.approx(3.75 / (0.25 * 2.0 * 1000))
    assert (noisy.n_steps, exact.n_steps) == (80, 80)


def test_curves_have_more_sums_and_longer_steps():
    """96 sums with a momentum of .97. Centred rows are three quarters as long, which is used for curves alone."""
    groups = GroupBound((3, 3), (1.0, 1.0))
    as_they_are, centred = (
        problem(1000, 6, row_norm=math.sqrt(2.0), row_bound=bound, intercept=1.0)
        for bound in (groups, Centred.unmoved(groups, 6))
    )
    curves = replace(RULE, usual_norm=math.sqrt(2.0), has_curves=True)
    lengths = {}
    for rule in (RULE, curves):
        for facts in (as_they_are, centred):
            _, descent = decided(facts, rule, mu=30.0)
            lengths[rule.has_curves, facts is centred] = descent.steps.step
            expected = (96, 0.97) if rule.has_curves else (80, 0.94)
            assert (descent.n_steps, descent.steps.momentum) == expected
    assert lengths[True, False] == pytest.approx(5.6 / 3.75 * lengths[False, False], rel=1e-12)
    assert lengths[False, True] == lengths[False, False]
    assert lengths[True, True] == pytest.approx(5.6 / (0.25 * (0.75**2 * 3.0) * 1000))
    chosen, noisy = decided(centred, curves, mu=0.001)
    assert noisy.steps.step * noisy.n_steps / (1.0 - noisy.steps.momentum) == pytest.approx(2.4 / (chosen.l2 / 0.6))


@pytest.mark.parametrize("neighbours", Neighbours)
def test_curves_beside_little_noise_have_more_sums(neighbours):
    """160 from 20,000 rows for each unit of noise on, of which a replaced row has two. All together they lead further."""
    curves, hinge = replace(RULE, has_curves=True), LogisticHinge(0.5)
    units = 2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0
    for rows, n_steps, share in ((19_900, 96, 0.85), (20_100, 160, 0.75)):
        _, descent = decided(problem(rows, 6, loss=hinge, neighbours=neighbours), curves, mu=units)
        assert (descent.n_steps, descent.steps.momentum) == (n_steps, 0.97)
        assert descent.slope_limit == pytest.approx(share * math.sqrt(1.0 / 3.0))
        # Straight lines, the logistic loss without a margin, numbers and several classes were not compared.
        for loss, rule in (
            (hinge, RULE),
            (LogisticLoss(), curves),
            (SquaredLoss(1.0, 0.5), replace(curves, score_size=1.0)),
            (Softmax(3), curves),
            (OneVsRest(hinge, 3), curves),
        ):
            _, other = decided(problem(rows, 6, loss=loss, neighbours=neighbours), rule, mu=units)
            assert other.n_steps == N_STEPS["curves" if rule.has_curves else "lines"]
        # Rows that come for each unit of noise count, and not rows.
        _, noisy = decided(problem(rows * 10, 6, loss=hinge, neighbours=neighbours), curves, mu=0.01 * units)
        assert noisy.n_steps == 96
    # All steps together, with much noise on many weights.
    chosen, many = decided(
        problem(20_100, 3000, loss=hinge, neighbours=neighbours), replace(curves, usual_norm=1.0), mu=units
    )
    assert many.n_steps == 160
    assert many.steps.step * 160 / (1.0 - many.steps.momentum) == pytest.approx(4.0 / (chosen.l2 / 0.6))


def test_large_tables_have_fewer_sums():
    """1,000,000 x 100 is one, KDD Cup 99 is none."""
    small, large = (decided(problem(n, 100), mu=10.0)[1].steps for n in (6 * 10**5, 10**6))
    assert (small.n_steps, large.n_steps) == (80, 48)
    assert (small.momentum, large.momentum) == (0.94, 0.96)
    curved = decided(problem(10**6, 100), replace(RULE, has_curves=True), mu=10.0)[1].steps
    assert (curved.n_steps, curved.momentum) == (48, 0.96)


def test_kinks_get_joints_from_public_facts():
    """The narrowest at which rounding costs at most a thousandth of the noise, and wider ones for more rows."""
    widths = []
    for n in (1000, 10**6, 10**7, 10**9):
        chosen, descent = decided(problem(n, 6, loss=Hinge()))
        assert isinstance(chosen.loss, HuberHinge)
        assert 2.0 * descent.rounding(chosen) <= 0.09 * descent.sensitivity(chosen)
        widths.append(chosen.loss.smoothing)
    assert widths[0] == 2.0**-12
    assert widths[1] > widths[0]
    assert max(widths) <= 2.0**-5
    smooth, _ = decided(problem(1000, 6))
    assert smooth.loss == LogisticLoss()


class Kinked:
    """A loss of the margin whose slopes alone are known."""

    def derivative(self, margin):
        """The slope."""
        return np.where(margin <= 1.0, -1.0, 0.0)


def test_a_users_loss_gets_joints_everywhere():
    """Whatever it declares: its slopes at multiples of a power of two."""
    own = DeclaredLoss(Kinked(), None, "own", 1.0, math.inf, math.inf, 1024.0, False)
    for given in (own, replace(own, smoothness=0.25)):
        chosen, _ = decided(problem(1000, 6, loss=given))
        assert isinstance(chosen.loss, InterpolatedSlopes)
        assert chosen.loss.loss == given
        assert math.frexp(chosen.loss.width)[0] == 0.5
        assert chosen.loss.width <= 2.0**-11


def test_too_many_rows_are_refused():
    """From public facts, with what to do."""
    with pytest.raises(ParameterError, match="Narrow n_rows_bounds"):
        decided(problem(10**14, 6, loss=Hinge()))


@pytest.mark.parametrize("loss", [LogisticLoss(), LogisticHinge(), HuberHinge(0.5)], ids=lambda loss: loss.constants.name)
def test_with_little_noise_the_weights_are_near_the_minimiser(loss):
    """A budget of rho 1e6: what is lost is within 3% of what the minimiser gains over 0."""
    rows, facts = source(2000, 4, seed=1, length=0.6), problem(2000, 4, loss=loss, row_norm=2.0, l2=2.0)
    rows.labels[...] = np.where(rows.blocks.rows[:, 0] + 0.3 * rows.blocks.rows[:, 1] > 0.1, 1, -1)
    mechanism = gradient_mechanism(replace(GIVEN, usual_norm=2.0))
    plan = mechanism.plan(facts, ZCDP(1e6))
    found = mechanism.release(plan, rows, NewtonThenFallback(), Entropy.seeded(0)).weights
    objective = Objective(rows, loss, facts.row_bound, 0.0, 2.0, np.zeros((1, 4)))
    best = NewtonThenFallback().solve(objective, np.zeros((1, 4)), 1e-6).weights
    at = [float(objective.evaluate(w, 0).value[0]) for w in (np.zeros((1, 4)), found, best)]
    assert at[1] - at[2] <= 0.03 * (at[0] - at[2])


def test_the_mechanism_of_a_rule_is_planned_at_every_currency_it_serves():
    """The rule is asked with the mu of the whole budget."""
    asked = []

    def decide(facts, mu):
        asked.append(mu)
        return descent_of(RULE, facts, mu)

    mechanism = replace(gradient_mechanism(RULE), decide=decide)
    mechanism.plan(problem(1000, 3), ZCDP(0.02))
    mechanism.plan(problem(1000, 3), ApproxDP(1.0, 1e-6))
    assert asked[0] == pytest.approx(0.2, rel=1e-6)
    assert asked[1] == pytest.approx(0.2368, rel=1e-2)


def test_a_walk_without_sums_stays_at_its_prior():
    """Noise and rows alone move it."""
    walk = HeavyBall(80, 0.05, 0.9, 2.0, (4.0, -2.0)).start(2)
    for _ in range(80):
        walk = walk.after(np.zeros((1, 2)))
    np.testing.assert_allclose(walk.weights, [[4.0, -2.0]], rtol=1e-12)
