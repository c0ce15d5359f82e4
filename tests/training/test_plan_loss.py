"""Which loss an automatic one stands for: the hinge where noise is small, the logistic hinge where it is large."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from functools import partial

import pytest

import confide
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge
from confide.erm.row_bounds import BallBound
from confide.errors import ParameterError
from confide.features.encoder import Encoder
from confide.training.alpha import usual_norm
from confide.training.auto_mechanism import plan_of_weights
from confide.training.plan import STEPS, Draft, decided
from confide.training.settings import ScoreLoss
from tests.training.examples import settings

LinearSVC, KernelSVC = (partial(each, centre=False) for each in (confide.LinearSVC, confide.KernelSVC))


def columns(n_numbers, n_levels=6):
    """A schema of so many numbers and as many categories: rows are usually shorter than the longest."""
    numbers = {f"number {i}": {"low": -1, "high": 1} for i in range(n_numbers)}
    levels = {f"level {i}": {"categories": [str(k) for k in range(n_levels)]} for i in range(n_numbers)}
    return confide.Schema(columns=numbers | levels)


APPROXIMATE, CONCENTRATED = confide.ApproxDP(0.5, 1e-5), confide.ZCDP(0.02)


@pytest.mark.parametrize("budget", [1.0, APPROXIMATE, CONCENTRATED], ids=["pure", "approximate", "zcdp"])
def test_an_automatic_loss_is_the_hinge_where_noise_is_small_and_logistic_where_it_is_large(budget):
    """From 50 usual rows over the noise for each weight on, by the plan of the hinge; below and above it is found.

    Nothing but public facts is needed, and a plan with a schema clips rows to their usual norm if its noise is Gaussian.
    """
    schema = columns(4 if budget == 1.0 else 12)
    model = LinearSVC(budget, schema=schema, mechanism="objective", centre=False)
    bound = Encoder(schema).row_bound
    usual = usual_norm(bound, 1.0)
    strengths = {}
    for n_rows in (3_000, 30_000, 300_000, 3_000_000, 30_000_000):
        hinge = LinearSVC(budget, schema=schema, loss="huber_hinge", mechanism="objective", centre=False).plan(n_rows)
        strengths[n_rows] = n_rows * usual / hinge.noise.norm / hinge.problem.n_weights
        plan = model.plan(n_rows)
        if strengths[n_rows] >= 50.0:
            assert plan == hinge
        else:
            assert plan.problem.loss == LogisticHinge(0.5)
            smooth = LinearSVC(budget, schema=schema, loss="logistic_hinge", mechanism="objective", centre=False)
            gaussian = smooth.plan(n_rows).noise.law == "gaussian"
            assert gaussian or budget != APPROXIMATE
            assert plan.problem.row_bound == (BallBound(usual_norm(bound, 0.0)) if gaussian else bound)
            assert plan.noise.norm < hinge.noise.norm
    assert min(strengths.values()) < 20.0
    assert max(strengths.values()) > 80.0


def test_the_threshold_of_the_automatic_loss_is_fifty():
    """Rows at which the hinge has 48 for each weight, and 52."""
    schema = columns(12)
    usual = usual_norm(Encoder(schema).row_bound, 1.0)

    def strength(n_rows):
        plan = LinearSVC(APPROXIMATE, schema=schema, loss="huber_hinge").plan(n_rows)
        return n_rows * usual / plan.noise.norm / plan.problem.n_weights

    for wanted, name in ((48.0, "logistic_hinge"), (52.0, "huber_hinge")):
        sizes = [int(1e4 * 1.01**k) for k in range(1500)]
        n_rows = sizes[bisect_left(sizes, wanted, key=strength)]
        assert strength(n_rows) == pytest.approx(wanted, rel=0.02)
        assert LinearSVC(APPROXIMATE, schema=schema).plan(n_rows).problem.loss.constants.name == name


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (LinearSVC(math.inf, schema=columns(12)), "huber_hinge"),
        (LinearSVC(APPROXIMATE, schema=columns(12), mechanism="output"), "huber_hinge"),
        (LinearSVC(APPROXIMATE, schema=columns(12), classes=[0, 1, 2]), "one-vs-rest huber_hinge"),
        (LinearSVC(APPROXIMATE, schema=columns(12), loss="huber_hinge"), "huber_hinge"),
        (LinearSVC(APPROXIMATE, schema=columns(12), loss="logistic_hinge"), "logistic_hinge"),
        (LinearSVC(confide.ApproxDP(2.0, 1e-5), schema=columns(12), inference_share=0.3), "logistic_hinge"),
    ],
    ids=["no privacy", "on the weights", "three classes", "hinge", "logistic hinge", "intervals"],
)
def test_rows_of_a_schema_are_clipped_for_an_automatic_loss_alone(model, name):
    """Not where a loss was asked for, nor for intervals, whose coefficients speak of rows as they are."""
    plan = model.plan(100_000)
    assert plan.problem.loss.constants.name == name
    assert plan.problem.row_bound == Encoder(model.schema).row_bound


HUBER, SMOOTH, SHORT = HuberHinge(0.5), LogisticHinge(0.5), BallBound(0.4)
AUTOMATIC = ScoreLoss(HUBER, one_vs_rest=HUBER, if_noisy=SMOOTH, bound_if_noisy=SHORT)
ASKED_FOR = replace(AUTOMATIC, if_noisy=None)
FEW, MANY = 3_000, 3_000_000


def chosen(n_rows, **changes):
    """What an automatic loss stands for, on 30 columns."""
    facts = settings(**({"minimised": AUTOMATIC} | changes))
    return facts, decided(Draft(facts, facts, 30, n_rows), STEPS)


def test_small_noise_keeps_the_hinge():
    """The plan is that of the hinge on the same rows."""
    facts, draft = chosen(MANY)
    assert (draft.loss.loss, draft.settings.row_bound) == (HUBER, facts.row_bound)
    assert draft.plan == plan_of_weights(facts, 30, MANY)


def test_large_laplace_noise_brings_the_logistic_hinge_on_the_same_rows():
    """Rows are clipped under Gaussian noise alone, which grows with the longest row in every direction alike."""
    facts, draft = chosen(FEW)
    assert (draft.loss.loss, draft.settings.row_bound) == (SMOOTH, facts.row_bound)
    assert draft.plan == plan_of_weights(replace(facts, minimised=ScoreLoss(SMOOTH)), 30, FEW)
    assert draft.plan.noise.law == "laplace"


def test_large_gaussian_noise_brings_shorter_rows_too():
    """The bound of the settings is the one that the loss brought, and the plan is made for it."""
    _, draft = chosen(FEW, budget=APPROXIMATE)
    assert (draft.loss.loss, draft.settings.row_bound, draft.plan.problem.row_bound) == (SMOOTH, SHORT, SHORT)


def test_intervals_keep_the_rows_as_they_are():
    """Their coefficients speak of rows as they are."""
    facts, draft = chosen(30_000, budget=APPROXIMATE, inference_share=0.2)
    assert (draft.loss.loss, draft.plan.problem.row_bound) == (SMOOTH, facts.row_bound)
    assert draft.plan.intervals is not None


@pytest.mark.parametrize("changes", [{"budget": confide.PureDP(math.inf)}, {"mechanism": "output"}], ids=str)
def test_without_noise_in_the_objective_the_hinge_is_kept(changes):
    """Curvature costs nothing there."""
    facts, draft = chosen(FEW, **changes)
    assert draft.settings == facts


def test_a_loss_that_was_asked_for_is_kept():
    """Whatever the noise is."""
    facts, draft = chosen(FEW, minimised=ASKED_FOR)
    assert draft.settings == facts


@pytest.mark.parametrize("budget", [confide.PureDP(1.0), APPROXIMATE], ids=str)
def test_where_the_hinge_has_no_plan_the_other_loss_is_tried(budget):
    """The plain hinge cannot have noise in the objective, and the logistic hinge can, on the same rows."""
    plain = replace(AUTOMATIC, loss=Hinge())
    facts, draft = chosen(FEW, minimised=plain, mechanism="objective", budget=budget)
    with pytest.raises(ParameterError):
        plan_of_weights(facts, 30, FEW)
    assert (draft.loss.loss, draft.plan.problem.row_bound) == (SMOOTH, facts.row_bound)
