"""The plan of a fit: made from public facts, checked against the rows, and remembered where it cannot change."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import confide
from confide import BallBound, LogisticRegression
from confide.erm.class_losses import Softmax
from confide.erm.losses import Hinge, LogisticLoss
from confide.erm.transformed_losses import DeclaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import Neighbours, PureDP
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.plan import Draft, Step, decided, make_plan, plan_for
from confide.training.settings import ScoreLoss
from tests.training.examples import RICH, checked_rows, least_squares, settings


class Changing:
    """A row bound of a user's own, whose norm may change between two fits."""

    def __init__(self, norm):
        self.norm = norm

    @property
    def l2_norm(self):
        return self.norm

    def clip(self, rows):
        return BallBound(self.norm).clip(rows)

    def check_width(self, n_features):
        pass

    def to_dict(self):
        return {"kind": "changing"}


def test_a_row_bound_that_changed_gets_a_new_plan():
    """A cached plan would keep the noise of the old norm."""
    bound = Changing(1.0)
    model = LogisticRegression(1.0, row_norm=bound, alpha=0.1)
    first = model.plan(500, 3).noise.norm
    bound.norm = 10.0
    assert model.plan(500, 3).noise.norm > 5 * first


@pytest.mark.parametrize("norm", [-1.0, 0.0, math.nan, 1e200, np.float32(1.0), "wide", None])
def test_a_row_bound_with_an_impossible_norm_is_refused(norm):
    """Before any row, in words."""
    with pytest.raises(confide.ParameterError, match="l2_norm"):
        LogisticRegression(1.0, row_norm=Changing(norm)).plan(500, 3)


def test_the_number_of_rows_decides_a_plan_under_replace_one_alone():
    """It is public there. Under add-or-remove-one any number within the bounds has the same plan."""
    public = [plan_for(settings(), checked_rows(n_rows)) for n_rows in (300, 301)]
    assert [plan.problem.n_rows_low for plan in public] == [300, 301]
    assert public[0].noise != public[1].noise or public[0].alpha != public[1].alpha
    private = settings(neighbours=Neighbours.ADD_OR_REMOVE_ONE, n_rows_bounds=(200, 400))
    one, other = (plan_for(private, checked_rows(n_rows)) for n_rows in (201, 399))
    assert one == other
    assert (one.problem.n_rows_low, one.problem.n_rows_high) == (200, 400)


@pytest.mark.parametrize("make", [settings, least_squares], ids=["a loss of the score", "least squares"])
def test_rows_outside_of_the_declared_bounds_are_refused(make):
    """By the words of the plan, which name no number of rows but the bounds."""
    private = make(neighbours=Neighbours.ADD_OR_REMOVE_ONE, n_rows_bounds=(200, 400))
    for n_rows in (199, 401):
        with pytest.raises(ParameterError, match="200 to 400 rows") as caught:
            plan_for(private, checked_rows(n_rows))
        assert str(n_rows) not in str(caught.value)


def test_a_plan_is_for_the_classes_of_the_rows():
    """Three classes of a loss with a joint form have three scores."""
    softmax = settings(minimised=ScoreLoss(LogisticLoss(), softmax=True))
    assert plan_for(softmax, checked_rows(300, domain=(0, 1, 2))).problem.loss == Softmax(3)
    assert plan_for(softmax, checked_rows(300)).problem.loss == LogisticLoss()


def test_a_plan_of_frozen_facts_is_remembered():
    """A search asks for the same plan many times. Threads change no plan, but other settings have another."""
    assert make_plan(settings(), 2, 300) is make_plan(settings(), 2, 300)
    assert make_plan(settings(), 2, 300) is not make_plan(settings(budget=PureDP(2.0)), 2, 300)


def test_the_plan_of_a_users_loss_is_made_anew():
    """The object of the user may change between two fits, and be equal to itself all the same."""
    loss = DeclaredLoss(object(), None, "mine", 1.0, 0.25, 0.7, 4.0, True)
    facts = settings(minimised=ScoreLoss(loss))
    first, second = (make_plan(facts, 2, 300) for _ in range(2))
    assert first == second
    assert first is not second


def test_intervals_without_a_proof_are_refused_before_a_plan_is_made():
    """The hinge has no curvature."""
    with pytest.raises(ParameterError, match="a loss that bends"):
        make_plan(settings(minimised=ScoreLoss(Hinge()), inference_share=0.3), 2, 300)


def test_each_way_to_train_has_its_plan():
    """Weights alone, weights with moments, and sums of least squares."""
    assert make_plan(settings(), 2, 300).intervals is None
    assert make_plan(settings(budget=RICH, inference_share=0.3), 2, 3000).intervals.share == 0.3
    assert isinstance(make_plan(least_squares(), 2, 300), StatisticsPlan)


def test_a_private_number_of_rows_without_bounds_is_not_used_in_their_place():
    """The plan would show it."""
    with pytest.raises(ParameterError, match="needs the number of rows"):
        plan_for(settings(neighbours=Neighbours.ADD_OR_REMOVE_ONE), checked_rows(300))


@pytest.mark.parametrize("budget", [confide.PureDP(0.123), confide.ApproxDP(0.123, 1e-6), confide.ZCDP(0.0123)])
def test_a_plan_does_not_obey_what_a_caller_asks_numpy_to_raise(budget):
    """Numbers overflow and underflow on purpose where plans are compared."""
    with np.errstate(all="raise"):
        assert LogisticRegression(budget).plan(12_345, 7).alpha > 0.0


def test_the_table_of_steps_is_read_in_order(monkeypatch):
    """A step that does not apply is passed over; of the candidates the best is taken, and one without a plan is not."""
    said = {name: f"{name} is taken.\n\n{name} is left.\n" for name in ("more", "fewer", "never")}
    monkeypatch.setattr(confide.training.plan, "_SAID", said)
    facts = settings()
    start = Draft(facts, facts, 2, 300)

    def better(candidate, best):
        if candidate.n_rows == 1:
            raise ParameterError("there is no such plan")
        return candidate.n_rows > best.n_rows

    def step(name, *sizes, applies=True):
        drafts = [replace(start, n_rows=n_rows) for n_rows in sizes]
        return Step(name, lambda _: applies, lambda _: drafts, better)

    draft = decided(start, (step("more", 400, 600, 1, 500), step("fewer", 200), step("never", 900, applies=False)))
    assert draft.n_rows == 600
    assert [sentence for _, sentence in draft.said] == ["more is taken.", "fewer is left."]
    made = replace(start, made=start.plan)
    assert decided(made, (step("more", 400),)) is made


NUMBERS = confide.Schema({f"x{i}": {"low": 0.0, "high": 1.0} for i in range(60)})
SOME = confide.ApproxDP(0.5, 1e-5)


@pytest.mark.parametrize(
    ("model", "n_rows", "words"),
    [
        (LogisticRegression(1.0), 1000, ["added to the objective", "cost about as much there as the shrinkage"]),
        (LogisticRegression(1.0, mechanism="output", alpha=0.25), 1000, ['"output", because it was', "alpha is 0.25, wh"]),
        (LogisticRegression(math.inf), 1000, ["No noise is added", "as C = 1 is in scikit-learn"]),
        (confide.LinearSVC(SOME, schema=NUMBERS), 20_000, ["added to the gradient of each", "finds the middle of the rows"]),
        (confide.LinearSVC(SOME, schema=NUMBERS), 10**7, ["The hinge is kept: all", "added to the objective"]),
        (LogisticRegression(confide.ZCDP(0.001)), 500, ["2% of the budget finds the middle of the rows"]),
        (LogisticRegression(SOME, l1_ratio=0.5), 1000, ["there is no proof of noise in the objective"]),
        (LogisticRegression(50.0, inference_share="auto"), 3000, ["Weights and intervals share the budget"]),
        (confide.PoissonRegressor(1.0, target_bound=20.0), 20_000, ["right in the mean, which", "threshold of the loss"]),
        (confide.PoissonRegressor(1.0, target_bound=20.0), 3_000, ["are not made right in the mean"]),
        (confide.Ridge(1.0, target_bound=1.0), 1000, ["noisy sums of products would hide more"]),
        (confide.Ridge(1.0, target_bound=1.0), 10**8, ["is made of noisy sums", "added to sums over the rows"]),
    ],
    ids=[
        "logistic", "output", "no privacy", "gradients", "hinge", "centre", "l1", "intervals", "counts", "few counts",
        "ridge", "sums",
    ],
)  # fmt: skip
def test_a_plan_says_why_it_is_so(model, n_rows, words):
    """Whole sentences, one a line, that name what was decided and on what grounds; each is said once."""
    plan = model.plan(n_rows) if model.schema is not None else model.plan(n_rows, 5)
    lines = plan.why().splitlines()
    for word in words:
        assert sum(word in line for line in lines) == 1
    assert len(lines) == len({*lines})
    assert all(line.endswith(".") for line in lines)
    assert any(f"{plan.alpha:.4g}" in line for line in lines)


def test_reasons_are_no_part_of_what_a_plan_is():
    """Neither of its text nor of its JSON form nor of what it equals, by which interrupted releases are known again."""
    plan = make_plan(settings(), 2, 300)
    other = replace(plan, reasons=())
    assert (other, str(other), repr(other), other.to_dict()) == (plan, str(plan), repr(plan), plan.to_dict())
    assert other.why() == ""
    assert plan.why() != ""
