"""The share of a budget that is kept for intervals, and the plan that holds both releases."""

from __future__ import annotations

import math

import pytest

from confide import ZCDP, ApproxDP, BudgetExceeded, Ledger, LogisticRegression, ParameterError
from tests.inference.test_intervals import sample


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
