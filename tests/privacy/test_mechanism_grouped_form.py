"""A quadratic form with noise of the columns' groups: the law of what is released, the certificate, and attacks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from confide.erm.class_losses import OneVsRest
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import HuberHinge, LogisticLoss
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.features.forms import QuadraticForm
from confide.privacy.budgets import ZCDP, Neighbours, PureDP
from confide.privacy.certificate import GradientRounding
from confide.privacy.gaussian import calibrated_objective, objective_noise_rate
from confide.privacy.moments import Moments, joint_bound
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.shapes import may_keep_groups
from confide.solvers.fallback import NewtonThenFallback
from tests.privacy.densities import linked_basis, log_determinant, noise_behind, shape_norm, signed
from tests.privacy.descents import mean_of_sums
from tests.privacy.laws import check_law
from tests.privacy.problems import GROUPS, LINKED, group_rows, problem, releases, rows_and_labels, with_penalty

OBJECTIVE, SOLVER = ObjectivePerturbation(), NewtonThenFallback()
MATRIX = np.array([[2.0, -0.9, 0.3], [-0.9, 1.5, 0.1], [0.3, 0.1, 0.2]])
FORM = QuadraticForm.of(np.array([1.0, 1.0, 1.0, 4.0, 0.25, 9.0]), [(0, MATRIX)])
MAP = FORM.sums_in_norm(np.eye(7)).T
"""M, with 1 for the constant."""
SIZES, SCALES, L2, CONSTANT = (3, 2, 1, 1), (0.8, 1.3, 0.6, 1.5), 60.0, 1.5


def facts_of(bound, **others):
    """A small problem in the norm of the form."""
    return with_penalty(problem(12, 6, row_bound=bound, intercept=CONSTANT, l2=L2, **others), form=FORM)


@pytest.mark.parametrize(("bound", "name"), [(GROUPS, "groups"), (LINKED, "linked")])
def test_released_weights_invert_to_the_noise_of_groups(bound, name):
    """M^-1 (l2 v + sum of slopes M x) is Laplace noise of the rows' own shape: 30% more or less noise fails."""
    facts = facts_of(bound)
    plan = OBJECTIVE.plan(facts, PureDP(0.8))
    shape = next(shape for shape in facts.shapes if shape.base.name == name)
    plan = replace(plan, noise=replace(plan.noise, shape=shape))
    rows, labels = group_rows(bound, 12, seed=3), np.where(np.arange(12) % 3, 1, -1)
    sample = releases(OBJECTIVE, plan, rows_and_labels(rows, labels), 200, 6, SOLVER)
    mapped = signed(rows, labels, CONSTANT) @ MAP.T
    noise = noise_behind(LogisticLoss(), mapped, plan.l2, sample) @ np.linalg.inv(MAP).T
    rate = (1.0 - plan.seal_share) * 0.8 / 2.0
    check_law(shape_norm(noise, SIZES, SCALES) * rate, stats.gamma(7 - sum(shape.base.linked)).cdf)
    if name == "linked":
        basis = linked_basis(SIZES, SCALES, (True, True, False, False))
        assert np.abs(noise - noise @ basis @ basis.T).max() < 1e-2


@pytest.mark.parametrize("factor", [1.0, 0.25])
def test_the_budget_is_reached_by_the_longest_row_and_exceeded_if_rows_were_longer(factor):
    """Its label changes at weights along it, where the loss bends: the noise and the curvature cost all they may.

    A norm that is a quarter of the true one would be a violation. Random pairs stay below the budget.
    """
    facts, loss, epsilon, l2 = facts_of(GROUPS), HuberHinge(0.5), 1.0, 60.0
    rate = objective_noise_rate(epsilon, loss.constants, factor * facts.row_norm, l2, Neighbours.REPLACE_ONE)

    def shown(first, second, v):
        logs = []
        for each in (first, second):
            noise = noise_behind(loss, each, l2, v) @ np.linalg.inv(MAP).T
            logs.append(-rate * shape_norm(noise, SIZES, SCALES) + log_determinant(loss, each, l2, v))
        return float(np.abs(logs[0] - logs[1]).max())

    # Of each group the column that is longest in the norm.
    longest = np.array([[0.0, 0.0, 0.8, 0.0, 1.3, 0.6, CONSTANT]]) @ MAP.T
    assert np.linalg.norm(longest) == pytest.approx(facts.row_norm, rel=1e-6)
    at = (0.5 + 1e-9) * longest / (longest @ longest.T)
    assert (shown(longest, -longest, at) <= epsilon * (1.0 + 1e-6)) == (factor == 1.0)
    assert shown(longest, -longest, at) > 0.99 * epsilon
    rng = np.random.default_rng(4)
    for case in range(10):
        rows = np.hstack([group_rows(GROUPS, 5, seed=case), np.full((5, 1), CONSTANT)]) * rng.choice([-1.0, 1.0], (5, 1))
        v = rng.normal(size=(200, 7)) * 10.0 ** rng.uniform(-1.5, 1.5, size=(200, 1))
        assert shown(rows[:4] @ MAP.T, rows[1:] @ MAP.T, v) <= epsilon or factor < 1.0


def test_the_plan_is_that_of_the_ridge_for_rows_as_long_as_in_the_norm():
    """Rate and ridge are those of a ball of that radius; the noise is smaller than in a ball or cylinder."""
    facts = facts_of(LINKED)
    norm = math.hypot(FORM.longest(LINKED), CONSTANT)
    assert facts.row_norm == pytest.approx(norm, rel=1e-9)
    ball = problem(12, 6, row_norm=FORM.longest(LINKED), intercept=CONSTANT, l2=L2)
    own, plain = OBJECTIVE.plan(facts, PureDP(1.0)), OBJECTIVE.plan(ball, PureDP(1.0))
    assert own.noise.scale * (1.0 - plain.seal_share) == pytest.approx(plain.noise.scale * (1.0 - own.seal_share))
    assert own.l2 == plain.l2
    assert own.noise.norm < 0.8 * plain.noise.norm
    assert own.noise.shape.name == "groups in the norm of the penalty"


@pytest.mark.parametrize("l2", [1.0, 60.0])
def test_the_curvature_is_paid_for_rows_as_long_as_in_the_norm(l2):
    """For a loss that bends at its steepest rows: at a small ridge, which is raised, and at a large one."""
    norm, loss = math.hypot(FORM.longest(GROUPS), CONSTANT), HuberHinge(0.5)
    assert norm > 1.3 * math.hypot(GROUPS.l2_norm, CONSTANT)
    facts = with_penalty(problem(12, 6, row_bound=GROUPS, intercept=CONSTANT, l2=l2, loss=loss), form=FORM)
    assert [shape.l2_norm for shape in facts.shapes] == pytest.approx([norm] * len(facts.shapes), rel=1e-9)
    plan = OBJECTIVE.plan(facts, PureDP(1.0))
    expected = calibrated_objective(1.0 - plan.seal_share, facts.loss_bounds, norm, l2, Neighbours.REPLACE_ONE)
    assert (plan.noise.scale, plan.l2) == pytest.approx(expected, rel=1e-6)
    assert (plan.l2 > l2) == (l2 == 1.0)


def test_the_rounding_bound_is_that_of_theorem_5():
    """To the last of its constants."""
    facts = facts_of(GROUPS)
    found, own_norm = facts.rounding(L2), facts.row_norm
    plain_norm = math.hypot(GROUPS.l2_norm, CONSTANT)
    stretch = FORM.longest_map
    loss, depth = facts.loss_bounds, facts.summation_depth
    for weights, noise, gradient in ((0.0, 0.0, 1e9), (1e12, 3.0, 2.0), (2.0, 1.0, 0.0)):
        rows = GradientRounding(loss, plain_norm, 12, 7, depth, 0.0).bound(1.01 * stretch * weights, 0.0, 0.0)
        usual = GradientRounding(loss, own_norm, 12, 7, depth, L2).bound(weights, noise, gradient)
        of_map = 1.03 * 2.0**-53 * 256 * 12 * own_norm * (1.0 + 2.0 * 0.25 * own_norm * weights)
        assert found.bound(weights, noise, gradient) == pytest.approx(stretch * rows + of_map + usual, rel=1e-9, abs=0.0)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_the_rounding_bound_covers_gradients(size):
    """Against 60 digits, on rows that cancel, with blocks whose entries cancel too."""
    mp = pytest.importorskip("mpmath").MPContext()
    mp.dps = 60
    rng, facts, worst = np.random.default_rng(9), facts_of(GROUPS), 0.0
    for case in range(6):
        rows, labels = group_rows(GROUPS, 12, seed=case), np.where(np.arange(12) % 2, 1, -1)
        v = rng.normal(size=(1, 7)) * size
        objective = facts.objective(rows_and_labels(rows, labels), L2, np.zeros((1, 7)))
        found = objective.gradients(v)[0]
        exact = [mp.mpf(L2) * mp.mpf(float(x)) for x in v[0]]
        for x, y in zip(signed(rows, labels, CONSTANT), labels, strict=True):
            z = [mp.fsum(mp.mpf(float(a)) * mp.mpf(float(b)) for a, b in zip(row, x, strict=True)) for row in MAP]
            score = mp.fsum(a * mp.mpf(float(b)) for a, b in zip(z, v[0], strict=True))
            exact = [g - a / (1 + mp.exp(score)) for g, a in zip(exact, z, strict=True)]
            del y
        error = float(mp.sqrt(mp.fsum((mp.mpf(float(a)) - b) ** 2 for a, b in zip(found, exact, strict=True))))
        bound = facts.rounding(L2).bound(float(np.linalg.norm(v)), 0.0, float(np.linalg.norm(found)))
        worst = max(worst, error / bound)
    assert 0.0 < worst <= 1.0


def test_forms_across_groups_and_losses_by_length_are_refused():
    """And so are bounds that are no groups, blocks that are too large, and several scores."""
    across = QuadraticForm.of(np.ones(6), [(2, np.array([[1.0, 0.2], [0.2, 1.0]]))])
    assert may_keep_groups(FORM, GROUPS)
    assert not may_keep_groups(across, GROUPS)
    assert not may_keep_groups(FORM, problem(12, 6).row_bound)
    wide = GroupBound((300,), (1.0,))
    assert not may_keep_groups(QuadraticForm.of(np.ones(300), [(0, 2.0 * np.eye(300))]), wide)
    plain = problem(12, 6, row_bound=GROUPS, intercept=CONSTANT, l2=L2)
    by_length, of_classes = SquaredLoss(1.0, 2.0, by_length=True), OneVsRest(LogisticLoss(), 2)
    for facts, form in ((plain, across), (replace(plain, loss=by_length), FORM), (replace(plain, loss=of_classes), FORM)):
        with pytest.raises(ParameterError, match="within groups"):
            with_penalty(facts, form=form)


@pytest.mark.parametrize("strength", [1.0, 100.0])
def test_sums_over_rows_as_they_are_have_the_noise_of_such_rows(strength):
    """Noisy gradients and moments know no form. A strong one makes rows shorter in its norm, not in the sums."""
    facts = with_penalty(
        problem(12, 6, row_bound=GROUPS, intercept=CONSTANT, l2=L2), form=QuadraticForm.of(np.full(6, strength))
    )
    plain = math.sqrt(0.8**2 + 1.3**2 + 0.6**2 + CONSTANT**2)
    assert (facts.row_norm < 0.7 * plain) == (strength > 1.0)
    plan = mean_of_sums(limit=0.5).plan(facts, ZCDP(0.1))
    row, row_sum = [[0.8, 0.0, 0.0, 1.3, 0.0, 0.6]], plan.descent.row_sum(facts)
    one, other = (rows_and_labels(row, [y]).sum_over_rows(row_sum, np.zeros((1, 7))).gradient for y in (1, -1))
    assert 0.99 * plain <= np.linalg.norm(one - other) <= plan.descent.sensitivity(facts) <= 1.001 * plain
    moments = Moments.plan(OBJECTIVE.plan(facts, PureDP(1.0)), PureDP(1.0))
    bound = math.sqrt(2.0) * joint_bound(facts.loss_bounds, moments.query.curvature_scale) * plain**2
    assert moments.noise.shape.l2_norm == pytest.approx(bound, rel=1e-6)


def test_a_block_may_have_256_columns():
    """One more is too large."""
    for size in (256, 257):
        form = QuadraticForm.of(np.ones(size), [(0, 2.0 * np.eye(size))])
        assert may_keep_groups(form, GroupBound((size,), (1.0,))) == (size == 256)


def test_what_no_problem_may_be_is_refused_in_the_norm_of_a_form_too():
    with pytest.raises(ParameterError):
        replace(facts_of(GROUPS), rows_per_person=0)
