"""When "auto" stands for noisy gradients."""

from __future__ import annotations

import numpy as np
import pytest

import confide
from confide import (
    ZCDP,
    AdditiveClassifier,
    AdditiveRegressor,
    ApproxDP,
    HuberRegressor,
    KernelSVC,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    PureDP,
    Schema,
)
from confide.erm.losses import LogisticHinge, LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.training.alpha import strength
from confide.training.plan import ENOUGH_FOR_GRADIENTS, ENOUGH_FOR_THE_HINGE, make_plan
from confide.training.settings import ScoreLoss
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


@pytest.mark.parametrize(
    ("loss", "usual_norm", "curves", "least", "enough"),
    [
        (LogisticHinge(), None, False, 1.6, 50.0),
        (LogisticLoss(), None, False, 0.0, 8.0),
        (LogisticHinge(), 0.8, False, 1.6, 3.0),
        (LogisticHinge(), 0.8, True, 1.6, 250.0),
        (LogisticLoss(), 0.8, True, 1.6, 3.0),
    ],
    ids=["margin", "logistic", "knots", "curves", "logistic curves"],
)
def test_the_limits_are_those_of_the_strength(loss, usual_norm, curves, least, enough):
    """Below the lower limit and from the upper one on, noise lies in the objective; between them in gradients."""
    found = {}
    facts = {"minimised": ScoreLoss(loss), "intercept": 1.0, "usual_norm": usual_norm, "has_curves": curves}
    for epsilon in np.geomspace(0.04, 40.0 if curves else 8.0, 24):
        budget = ApproxDP(float(epsilon), 1e-5)
        plan = make_plan(settings(budget=budget, mechanism="objective", **facts), 40, 20_000)
        if plan.noise is None or plan.noise.law != "gaussian":
            continue
        taken = make_plan(settings(budget=budget, centre=True, **facts), 40, 20_000)
        found[strength(plan, usual_norm)] = taken.mechanism
    assert set(found.values()) == {"gradient", "objective"}
    for strong, mechanism in found.items():
        # A centre takes a part of the budget, which moves the lower limit a little.
        if strong < 0.97 * least or strong >= 1.03 * enough:
            assert mechanism == "objective"
        elif 1.03 * least < strong < 0.97 * enough:
            assert mechanism == "gradient"
    assert (ENOUGH_FOR_GRADIENTS, ENOUGH_FOR_THE_HINGE) == (1.6, 50.0)


@pytest.mark.parametrize("curves", [False, True])
def test_concentrated_budgets_take_gradients_from_a_smaller_strength_on(curves):
    """1.1 in place of 1.6, for the account of an objective asks for more noise there."""
    found = {}
    facts = {"minimised": ScoreLoss(LogisticHinge()), "intercept": 1.0}
    facts |= {"has_curves": True, "usual_norm": 0.8} if curves else {}
    for rho in np.geomspace(0.001, 0.005, 8):
        plan = make_plan(settings(budget=ZCDP(float(rho)), mechanism="objective", **facts), 40, 10_000)
        taken = make_plan(settings(budget=ZCDP(float(rho)), centre=True, **facts), 40, 10_000)
        found[strength(plan, facts.get("usual_norm"))] = taken.mechanism
    assert all(mechanism == ("gradient" if strong > 1.1 else "objective") for strong, mechanism in found.items())
    assert len({mechanism for strong, mechanism in found.items() if strong < 1.6}) == 2


def test_tables_of_many_numbers_leave_curves_to_the_objective():
    """They have fewer sums, which do not reach the weights of curves where noise is small."""
    facts = {
        "minimised": ScoreLoss(LogisticHinge()),
        "intercept": 1.0,
        "usual_norm": 0.8,
        "has_curves": True,
        "centre": True,
    }
    budget = ApproxDP(0.1, 1e-5)
    for n_features, expected in ((40, "gradient"), (400, "objective")):
        plan = make_plan(settings(budget=budget, n_rows_bounds=(400_000, 400_000), **facts), n_features, None)
        assert plan.mechanism == expected


def test_curves_take_gradients_in_place_of_noise_of_another_law():
    """Four numbers have few weights, for which Laplace noise in the shape of the columns is smaller than Gaussian noise."""
    columns = {f"x{i}": {"low": 0.0, "high": 0.5} for i in range(4)}
    facts = {"neighbours": "add-or-remove-one", "n_rows_bounds": (40_000, 50_000), "interactions": ()}
    little = ApproxDP(0.1, 1e-5)
    asked = AdditiveClassifier(little, schema=Schema(columns), mechanism="objective", **facts)
    assert asked.plan().noise.law == "laplace"
    assert AdditiveClassifier(little, schema=Schema(columns), **facts).plan().mechanism == "gradient"
    assert AdditiveClassifier(confide.PureDP(0.1), schema=Schema(columns), **facts).plan().mechanism == "objective"
    assert AdditiveClassifier(little, schema=Schema(columns), knots=0, **facts).plan().mechanism == "objective"


def test_curves_in_a_schema_count_as_curves_whatever_the_estimator():
    """Straight lines of the same columns take gradients at a strength at which knots do not."""
    knotted = Schema({f"x{i}": {"low": 0.0, "high": 1.0, "knots": 1} for i in range(40)})
    lines = Schema({f"x{i}": {"low": 0.0, "high": 1.0} for i in range(40)})
    for kind, n_rows in ((LinearSVC, 150_000), (LogisticRegression, 30_000)):
        assert plan_of(kind(SOME, schema=lines), n_rows).mechanism == "gradient"
        assert plan_of(kind(SOME, schema=knotted), n_rows).mechanism == "objective"


@pytest.mark.parametrize(
    ("model", "more"),
    [
        (LinearSVC(SOME, schema=NUMBERS, mechanism="objective"), {}),
        (LinearSVC(confide.PureDP(0.5), schema=NUMBERS), {}),
        (LinearSVC(ApproxDP(0.05, 1e-6), schema=NUMBERS), {"n_rows": 5_000}),
        (LinearSVC(SOME, schema=NUMBERS), {"n_rows": 10**7}),
        (LinearSVC(SOME, schema=NUMBERS), {"n_classes": 3, "n_rows": 10**7}),
        (HuberRegressor(SOME, schema=NUMBERS, target_bound=1.0), {}),
        (KernelSVC(ApproxDP(4.0, 1e-6), schema=NUMBERS), {"n_rows": 100_000}),
        (AdditiveClassifier(SOME, schema=NUMBERS, interactions="all"), {}),
        (LogisticRegression(ApproxDP(4.0, 1e-6), schema=NUMBERS, inference_share="auto"), {"n_rows": 100_000}),
    ],
    ids=["asked", "pure", "much noise", "next to none", "classes", "regression", "kernel", "features", "intervals"],
)
def test_other_fits_take_no_gradients(model, more):
    """They were not compared there, or another mechanism errs less often."""
    assert plan_of(model, **more).mechanism != "gradient"


@pytest.mark.parametrize("budget", [SOME, ApproxDP(1.0, 1e-6), ZCDP(0.005), ZCDP(0.3)], ids=str)
def test_counts_take_gradients_unless_there_is_next_to_no_noise(budget):
    """Straight lines and curves; what a user asks for by name stays, and so does the objective of a pure budget."""
    schema = Schema({f"x{i}": {"low": 0.0, "high": 1.0} for i in range(10)})
    facts = {"schema": schema, "target_bound": 20.0}
    assert plan_of(PoissonRegressor(budget, **facts)).mechanism == "gradient"
    assert plan_of(AdditiveRegressor(budget, loss="poisson", **facts)).mechanism == "gradient"
    for others in ({"mechanism": "objective"}, {"centre": False}, {"prior": (np.zeros(10), 0.0)}):
        assert plan_of(PoissonRegressor(budget, **facts, **others)).mechanism == "objective"
    for large in (PureDP(1.0), ApproxDP(8.0, 1e-6), ZCDP(3.0)):
        assert plan_of(PoissonRegressor(large, **facts)).mechanism == "objective"


@pytest.mark.parametrize("make", [ApproxDP, ZCDP])
def test_other_numbers_take_gradients_where_noise_in_the_objective_is_large(make):
    """Above a share of what all rows can pull together, which is smaller under concentrated budgets."""
    limit = 0.05 if make is ApproxDP else 0.002
    found = set()
    for size in np.geomspace(0.02, 2.0, 12):
        budget = ApproxDP(float(size), 1e-6) if make is ApproxDP else ZCDP(float(size))
        model = HuberRegressor(budget, schema=NUMBERS, target_bound=1.0, mechanism="objective")
        plan, taken = plan_of(model), plan_of(model.set_params(mechanism="auto")).mechanism
        share = plan.to_dict()["noise_in_rows"] / 20_000
        if plan.centring is None and plan.noise.law == "gaussian":
            assert (taken == "gradient") == (share > limit)
        found.add(taken)
    assert found == {"gradient", "objective"}


@pytest.mark.parametrize("budget", [SOME, ZCDP(0.005)], ids=str)
@pytest.mark.parametrize("kind", [LinearSVC, LogisticRegression])
def test_three_classes_take_gradients_unless_there_is_next_to_no_noise(kind, budget):
    """Not where a user asks for something else, and not for pure budgets, random features or a prior."""
    facts = {"schema": Schema({f"x{i}": {"low": 0.0, "high": 1.0} for i in range(10)}), "classes": ["a", "b", "c"]}
    assert plan_of(kind(budget, **facts), n_classes=3).mechanism == "gradient"
    for others in ({"mechanism": "objective"}, {"mechanism": "output"}, {"centre": False}):
        assert plan_of(kind(budget, **facts, **others), n_classes=3).mechanism != "gradient"
    assert plan_of(kind(PureDP(1.0), **facts), n_classes=3).mechanism != "gradient"
    assert plan_of(kind(ApproxDP(50.0, 1e-5), **facts), n_classes=3).mechanism == "objective"
    assert plan_of(KernelSVC(budget, n_features=64, **facts), n_classes=3).mechanism != "gradient"
