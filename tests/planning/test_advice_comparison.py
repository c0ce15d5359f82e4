"""Mechanisms and currencies side by side."""

from __future__ import annotations

import pytest

from confide import ZCDP, ApproxDP, LinearSVC, LogisticRegression, ParameterError, PureDP, Ridge
from confide.planning.advice import compare_mechanisms, equivalent_budgets
from confide.planning.made_up_fits import estimator_with
from confide.privacy.gaussian import gaussian_delta
from confide.training.auto_mechanism import MECHANISMS


def test_mechanisms_are_ordered_by_what_they_cost():
    """At one alpha, with the reason where one cannot be used."""
    rows = compare_mechanisms(LogisticRegression(1.0, alpha=0.01), 10_000, 5)
    distances = [row.plan.expected_distance for row in rows if row.plan]
    assert {row.mechanism for row in rows} == {"objective", "output", "output-laplace", "gradient"}
    assert distances == sorted(distances)
    hinge = {row.mechanism: row for row in compare_mechanisms(LinearSVC(1.0, alpha=0.01, loss="hinge"), 10_000, 5)}
    assert hinge["objective"].plan is None
    assert "smooth" in hinge["objective"].refusal


@pytest.mark.parametrize("budget", [PureDP(0.5), ApproxDP(0.5, 1e-6), ZCDP(0.02)], ids=lambda budget: budget.kind)
def test_equivalent_budgets_have_the_same_noise(budget):
    """Of three currencies; the one that was given is itself."""
    estimator = LogisticRegression(budget, mechanism="objective", centre=False)
    plan = estimator.plan(20_000, 30)
    budgets = equivalent_budgets(estimator, 20_000, 30)
    assert [one.kind for one in budgets] == ["pure", "approximate", "zcdp"]
    assert budget in budgets
    for one in budgets:
        other = LogisticRegression(one, alpha=plan.alpha, mechanism="objective", centre=False).plan(20_000, 30)
        assert other.noise_norm * other.l2 == pytest.approx(plan.noise_norm * plan.l2, rel=1e-4)


def test_budgets_of_noisy_gradients_keep_limit_and_steps():
    """The noise on each sum is that of the plan; no pure budget has such noise, so there are two."""
    estimator = LogisticRegression(ZCDP(0.02), mechanism="gradient")
    approximate, own = equivalent_budgets(estimator, 20_000, 30)
    assert own == ZCDP(0.02)
    plan = estimator.plan(20_000, 30)
    assert approximate.delta == 1e-6
    # All sums together are one Gaussian mechanism of mu 0.2.
    assert gaussian_delta(approximate.epsilon, 0.2) == pytest.approx(1e-6, rel=1e-3)
    assert plan.event.curve.mu == pytest.approx(0.2, rel=1e-6)


def test_equivalent_budgets_hold_the_loss_fixed_and_are_whole_where_intervals_have_a_share():
    """An automatic loss would be another at some of the budgets tried; the estimator's own budget is the whole one."""
    estimator = LinearSVC(ApproxDP(0.3, 1e-6), centre=False)
    plan = estimator.plan(20_000, 20)
    # Budgets are compared without a centre of the rows, also of an estimator whose fit has one.
    centred = estimator_with(estimator, centre="auto")
    assert centred.plan(20_000, 20).centring is not None
    assert equivalent_budgets(centred, 20_000, 20) == equivalent_budgets(estimator, 20_000, 20)
    for one in equivalent_budgets(estimator, 20_000, 20):
        other = MECHANISMS[plan.mechanism].plan(plan.problem, one)
        assert other.noise_norm * other.l2 == pytest.approx(plan.noise_norm * plan.l2, rel=1e-4)
    whole = ApproxDP(1.0, 1e-6)
    shared = LogisticRegression(whole, inference_share=0.3)
    alone = shared.plan(100_000, 3)
    pure, own, _ = equivalent_budgets(shared, 100_000, 3)
    assert own == whole
    given_pure = LogisticRegression(pure, alpha=alone.alpha, inference_share=0.3).plan(100_000, 3)
    assert given_pure.noise_norm * given_pure.l2 == pytest.approx(alone.noise_norm * alone.l2, rel=1e-4)


def test_noise_that_no_other_budget_has_is_refused():
    """At a budget beyond the range of the search."""
    with pytest.raises(ParameterError, match="no budget"):
        equivalent_budgets(LogisticRegression(1e8), 20_000, 30)


@pytest.mark.parametrize("ask", [compare_mechanisms, equivalent_budgets])
@pytest.mark.parametrize(
    "estimator",
    [Ridge(10.0, target_bound=1.0, intervals=True), LogisticRegression(float("inf"))],
    ids=["sums", "no privacy"],
)
def test_models_without_noise_of_this_kind_are_refused(ask, estimator):
    """With the estimators that it is for."""
    with pytest.raises(ParameterError, match="loss of the score"):
        ask(estimator, 1000, 5)


def test_a_mechanism_that_the_budget_does_not_admit_is_compared_with_the_others():
    """Though it is the estimator's own: the refusal stands beside the plans."""
    rows = compare_mechanisms(LogisticRegression(ApproxDP(1.0, 1e-6), mechanism="output-laplace"), 10_000, 5)
    assert {row.mechanism for row in rows if row.plan} == {"objective", "output", "gradient"}
    assert "pure" in next(row.refusal for row in rows if row.mechanism == "output-laplace")
