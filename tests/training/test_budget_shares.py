"""The share of a budget that is kept for intervals, and the plan that holds both releases."""

from __future__ import annotations

import math

import pytest

from confide import ZCDP, ApproxDP, BudgetExceeded, Ledger, LogisticRegression, ParameterError, PureDP
from confide.erm.class_losses import Softmax
from confide.erm.losses import Hinge, LogisticLoss
from confide.erm.target_losses import SquaredLoss
from confide.privacy.budgets import Neighbours, budget_of_row, share_of
from confide.privacy.gaussian import mu_within
from confide.training.budget_shares import beside_weights, refuse_intervals
from confide.training.plan import make_plan
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
        refuse_intervals("auto", loss.constants, n_weights)


def test_losses_with_intervals_are_accepted():
    """Two classes may have any number of weights; several classes up to 1,000 together."""
    refuse_intervals("auto", LogisticLoss().constants, 10**6)
    refuse_intervals("auto", Softmax(4).constants, 1000)


@pytest.mark.parametrize("budget", [RICH, PureDP(50.0), ZCDP(2.0)], ids=lambda budget: budget.kind)
def test_both_releases_are_one_event_of_the_whole_budget(budget):
    """Each part has its share of the budget, and the ledger is charged once. With few columns that is the better way."""
    facts = settings(budget=budget, inference_share=0.25)
    plan = make_plan(facts, 2, 3000)
    assert plan.event.budget == budget
    assert plan.budget == share_of(budget, 0.75)
    assert plan.intervals.moments.budget == share_of(budget, 0.25)
    assert not plan.intervals.is_joint


@pytest.mark.parametrize("persons", [1, 3])
@pytest.mark.parametrize("share", [0.05, 0.3, 0.6])
def test_moments_beside_weights_get_a_share_of_the_squared_ratio(share, persons):
    """mu^2 of a row is divided, and the budget of a person stands for that part of it, rounded down."""
    budget = ApproxDP(1.0, 1e-6)
    mu, of_moments = beside_weights(budget, persons, share)
    assert mu**2 == pytest.approx(share * mu_within(budget_of_row(budget, persons)) ** 2)
    assert mu * (1.0 - 1e-9) <= mu_within(budget_of_row(of_moments, persons)) <= mu


@pytest.mark.parametrize("persons", [1, 2])
@pytest.mark.parametrize("neighbours", list(Neighbours), ids=lambda relation: relation.value)
def test_one_account_for_weights_and_moments_spends_the_budget_once(neighbours, persons):
    """The squared ratios of weights, seal and moments add up to nearly that of the budget, and noise 30% less exceeds it."""
    budget = ApproxDP(1.0, 1e-6)
    facts = settings(
        budget=budget, inference_share=0.3, neighbours=neighbours, rows_per_person=persons, alpha=0.1,
        n_rows_bounds=(200_000, 200_000),
    )  # fmt: skip
    plan = make_plan(facts, 20, 200_000)
    moments, of_row = plan.intervals.moments, budget_of_row(budget, persons)
    assert plan.intervals.is_joint
    assert plan.budget == plan.event.budget == budget
    shift = 2.0 if neighbours is Neighbours.REPLACE_ONE else 1.0
    # The ridge is large enough for the curvature to be free.
    of_weights, of_moments = shift / plan.noise.scale, 1.0 / moments.lattice.multiplier
    of_seal = 2.0 * plan.radius / plan.lattice.deviation
    together = math.hypot(of_weights, of_seal, of_moments)
    assert 0.98 * mu_within(of_row) <= together <= mu_within(of_row)
    assert math.hypot(of_weights, of_seal, of_moments / 0.7) > mu_within(of_row)
    assert math.hypot(of_weights / 0.7, of_seal, of_moments) > mu_within(of_row)
    if persons == 1:
        assert plan.event.curve.delta(1.0) <= 1e-6
        assert plan.event.curve.beside_mu >= of_moments


@pytest.mark.parametrize("share", [0.1, 0.3])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_one_account_is_taken_where_it_makes_shorter_intervals(share, epsilon):
    """With 30 columns; parts of the budget, each by itself, would make intervals longer by up to a half."""
    budget = ApproxDP(epsilon, 1e-6)
    facts = settings(budget=budget, inference_share=share)
    joint = make_plan(facts, 30, 100_000)
    assert joint.intervals.is_joint
    parts = ApproxDP(0.7 * epsilon, 0.7e-6), ApproxDP(0.3 * epsilon, 0.3e-6)
    if share == 0.3:
        # What basic composition leaves of the ratio of either release.
        assert joint.noise.scale < 0.9 * 2.0 / mu_within(parts[0])
        assert 1.0 / joint.intervals.moments.lattice.multiplier > 1.6 * mu_within(parts[1])


def test_without_privacy_an_automatic_share_is_the_first():
    """It costs nothing, so there is nothing to choose."""
    facts = settings(budget=PureDP(math.inf), inference_share="auto")
    assert make_plan(facts, 2, 300).intervals.share == 0.3
