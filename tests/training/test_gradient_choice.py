"""When "auto" stands for noisy gradients."""

from __future__ import annotations

import pytest

import confide
from confide import ZCDP, AdditiveClassifier, ApproxDP, HuberRegressor, KernelSVC, LinearSVC, LogisticRegression, Schema
from confide.erm.row_bounds import BallBound
from confide.training.alpha import strength
from confide.training.centring_choice import ENOUGH_FOR_GRADIENTS
from confide.training.loss_choice import ENOUGH_FOR_THE_HINGE
from confide.training.plan import make_plan
from tests.training.examples import settings

NUMBERS = Schema({f"x{i}": {"low": 0.0, "high": 1.0} for i in range(60)})
SOME = ApproxDP(0.5, 1e-5)


def plan_of(model, n_rows=20_000, **more):
    return model.plan(n_rows, **more)


@pytest.mark.parametrize("budget", [SOME, ZCDP(0.02)], ids=str)
@pytest.mark.parametrize("kind", [LinearSVC, LogisticRegression, AdditiveClassifier])
def test_with_some_noise_gradients_are_taken_and_rows_are_centred(kind, budget):
    """Rows stay as long as the schema lets them be, for gradients clip slopes."""
    model = kind(budget, schema=NUMBERS) if kind is not AdditiveClassifier else kind(budget, schema=NUMBERS, knots=0)
    plan = plan_of(model)
    assert plan.mechanism == "gradient"
    assert plan.centring is not None
    assert not isinstance(plan.problem.row_bound.inner, BallBound)
    assert plan.event.budget == budget
    assert "gradient" in str(plan)


def test_the_limits_are_those_of_the_strength():
    """Just below the lower limit and from the upper one on, noise lies in the objective; between them in gradients."""
    found = {}
    for thousandth in range(2, 400):
        budget = ApproxDP(thousandth / 50.0, 1e-5)
        given = settings(budget=budget, intercept=1.0, centres=True, mechanism="objective")
        plan = make_plan(given, 40, 20_000)
        if plan.noise is None or plan.noise.law != "gaussian":
            continue
        taken = make_plan(settings(budget=budget, intercept=1.0, centres=True), 40, 20_000)
        found[strength(plan, None)] = taken.mechanism
    assert {"gradient", "objective"} == set(found.values())
    for strong, mechanism in found.items():
        if strong < 0.97 * ENOUGH_FOR_GRADIENTS or strong >= 1.03 * ENOUGH_FOR_THE_HINGE:
            assert mechanism == "objective"
        elif 1.03 * ENOUGH_FOR_GRADIENTS < strong < 0.97 * ENOUGH_FOR_THE_HINGE:
            assert mechanism == "gradient"
    assert (ENOUGH_FOR_GRADIENTS, ENOUGH_FOR_THE_HINGE) == (1.6, 50.0)


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (LinearSVC(SOME, schema=NUMBERS, mechanism="objective"), {}),
        (LinearSVC(confide.PureDP(0.5), schema=NUMBERS), {}),
        (LinearSVC(ApproxDP(0.05, 1e-6), schema=NUMBERS), {"n_rows": 5_000}),
        (LinearSVC(SOME, schema=NUMBERS), {"n_rows": 10**7}),
        (LinearSVC(SOME, schema=NUMBERS), {"n_classes": 3}),
        (HuberRegressor(SOME, schema=NUMBERS, target_bound=1.0), {}),
        (KernelSVC(SOME, schema=NUMBERS), {}),
        (AdditiveClassifier(SOME, schema=NUMBERS, interactions="all"), {}),
        (LogisticRegression(ApproxDP(4.0, 1e-6), schema=NUMBERS, inference_share="auto"), {"n_rows": 100_000}),
    ],
    ids=["asked", "pure", "much noise", "next to none", "classes", "regression", "kernel", "features", "intervals"],
)
def test_other_fits_take_no_gradients(model, more):
    """They were not compared there, or another mechanism errs less often."""
    assert plan_of(model, **more).mechanism != "gradient"
