"""The share of a budget that is kept for intervals, and the plan that holds both releases."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from confide import ZCDP, ApproxDP, BudgetExceeded, Ledger, LogisticRegression, ParameterError, PureDP
from confide.erm.class_losses import Softmax
from confide.erm.hinges import Hinge
from confide.erm.losses import LogisticLoss
from confide.erm.target_losses import SquaredLoss
from confide.training.interval_share import plan_with_intervals, refuse_intervals, share_of
from tests.inference.test_intervals import sample
from tests.training.examples import RICH, settings


@pytest.mark.parametrize("budget", [ApproxDP(2.0, 1e-6), ZCDP(0.5)])
def test_every_part_of_a_budget_is_shared(budget):
    """Epsilon and delta, or rho; and the ledger is charged the sum."""
    ledger = Ledger(limit=budget)
    X, y = sample(3000, 1)
    model = LogisticRegression(budget, inference_share=0.25, classes=[0, 1], ledger=ledger).fit(X, y)
    plan = model.plan(3000, 3)
    for name in budget.ranges:
        parts = getattr(plan.budget, name), getattr(plan.intervals.moments.budget, name)
        assert parts == pytest.approx((0.75 * getattr(budget, name), 0.25 * getattr(budget, name)))
        assert math.fsum(parts) <= getattr(budget, name)
    assert model.guarantee_.budget == budget
    with pytest.raises(BudgetExceeded):
        model.fit(X, y)


@pytest.mark.parametrize("share", [-0.1, 0.95, "some", True, None, math.nan])
def test_a_share_is_a_number_or_auto(share):
    """Others are refused."""
    with pytest.raises(ParameterError, match="inference_share must be"):
        LogisticRegression(1.0, inference_share=share).plan(1000, 3)


def test_the_automatic_share_is_the_best_of_those_it_chooses_from():
    """By the forecast, among those that can be trusted; where none can, the refusal says how near the best one is."""
    for n, budget in ((2000, 1.0), (100_000, 1.0), (5000, ZCDP(0.1))):
        best = LogisticRegression(budget, inference_share="auto", classes=[0, 1]).plan(n, 4).intervals
        assert best.is_valid
        for share in (0.1, 0.3, 0.5):
            try:
                other = LogisticRegression(budget, inference_share=share, classes=[0, 1]).plan(n, 4).intervals
            except ParameterError:
                continue
            assert best.margin <= other.margin * (1.0 + 1e-9)
    with pytest.raises(ParameterError, match="not be trustworthy"):
        LogisticRegression(0.1, inference_share="auto", classes=[0, 1]).plan(500, 20)
    assert LogisticRegression(math.inf, inference_share="auto").plan(500, 20).intervals is not None


@pytest.mark.parametrize("budget", [PureDP(0.3), ApproxDP(0.7, 1e-6), ZCDP(0.1)], ids=lambda budget: budget.kind)
@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 0.7])
def test_two_parts_of_a_budget_cost_at_most_the_whole(budget, share):
    """In exact arithmetic, for every number of the budget; and almost nothing is lost."""
    parts = share_of(budget, share), share_of(budget, 1.0 - share)
    for name in budget.ranges:
        total = sum(Fraction(getattr(part, name)) for part in parts)
        assert 1 - Fraction(1, 2**48) <= total / Fraction(getattr(budget, name)) <= 1


def test_a_whole_budget_and_an_infinite_one_are_not_made_smaller():
    """A share of 1 is the budget itself; without privacy there is nothing to share."""
    assert share_of(PureDP(0.3), 1.0) == PureDP(0.3)
    assert share_of(PureDP(math.inf), 0.3) == PureDP(math.inf)


@pytest.mark.parametrize(
    ("loss", "n_weights", "words"),
    [
        (Hinge(), 3, "a loss that bends"),
        (Softmax(4), 1001, "at most 1,000 weights"),
        (SquaredLoss(0.1, 1.0, by_length=True), 3, "use loss='huber'"),
    ],
    ids=["hinge", "too many weights of classes", "slopes that grow"],
)
def test_losses_without_intervals_are_refused(loss, n_weights, words):
    """In words that name another loss or a smaller problem."""
    with pytest.raises(ParameterError, match=words):
        refuse_intervals(loss, n_weights)


def test_losses_with_intervals_are_accepted():
    """Two classes may have any number of weights; several classes up to 1,000 together."""
    refuse_intervals(LogisticLoss(), 10**6)
    refuse_intervals(Softmax(4), 1000)


def test_both_releases_are_one_event_of_the_whole_budget():
    """Each part has its share of the budget, and the ledger is charged once."""
    facts = settings(budget=RICH, inference_share=0.25)
    plan = plan_with_intervals(facts, facts.minimised, 2, 3000)
    assert plan.event.budget == RICH
    assert plan.budget == share_of(RICH, 0.75)
    assert plan.intervals.moments.budget == share_of(RICH, 0.25)


def test_without_privacy_an_automatic_share_is_the_first():
    """It costs nothing, so there is nothing to choose."""
    facts = settings(budget=PureDP(math.inf), inference_share="auto")
    assert plan_with_intervals(facts, facts.minimised, 2, 300).intervals.share == 0.3
