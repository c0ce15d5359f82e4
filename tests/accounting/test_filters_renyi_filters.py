"""Filters that add Rényi divergences: what they admit, and what they do not."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from confide.accounting import filters
from confide.accounting.filters import Amount, ConcentratedFilter, RenyiFilter, cost, exact, filter_for
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, concentrated_epsilon
from confide.privacy.events import Event
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


def test_a_concentrated_ledger_adds_rhos_of_every_kind_of_charge():
    """Pure by epsilon tanh(epsilon / 2), Gaussian curves by mu^2 / 2."""
    filter_ = ConcentratedFilter(ZCDP(1.0))
    events = (Event(PureDP(0.5)), Event(ZCDP(0.25)), GAUSSIAN)
    total = cost(filter_, events)
    assert filter_.spent(total).rho == pytest.approx(0.5 * math.tanh(0.25) + 0.25 + 0.02, rel=1e-9)
    assert filter_.remaining(total).rho == pytest.approx(1.0 - filter_.spent(total).rho, rel=1e-9)
    assert filter_.amount(OBJECTIVE).rho > Fraction(0.02)


def test_a_renyi_ledger_admits_what_its_order_allows_and_not_a_hundredth_more():
    """Charges of rho in sum up to the largest that converts to the limit at 99% of delta."""
    limit = ApproxDP(2.0, 1e-6)
    filter_ = filter_for(limit, "renyi")
    step = Event(ZCDP(1e-3))
    n = 0
    total = Amount()
    while filter_.admits(total + filter_.amount(step)):
        total, n = total + filter_.amount(step), n + 1
    assert concentrated_epsilon(n * 1e-3, 0.99e-6) <= 2.0 < concentrated_epsilon((n + 1) * 1e-3 * 1.01, 0.99e-6)
    assert filter_.spent(total).epsilon == pytest.approx(concentrated_epsilon(n * 1e-3, 0.99e-6), rel=1e-9)
    assert filter_.spent(total).delta == 1e-6


def test_the_largest_rho_that_a_renyi_ledger_admits_leaves_the_slack_of_delta():
    """It converts to the limit at 99% of delta, and to less than the limit at the whole of delta."""
    filter_, low, high = RenyiFilter(ApproxDP(2.0, 1e-6)), 0.0, 1.0
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if filter_.admits(filter_.amount(Event(ZCDP(middle)))) else (low, middle)
    assert 2.0 - 1e-8 < concentrated_epsilon(low, 0.99e-6) <= 2.0
    assert concentrated_epsilon(low, 1e-6) < 2.0 - 1e-5


def test_a_concentrated_ledger_never_counts_a_bare_approximate_charge():
    """It has no rho: that of its epsilon alone would leave out its delta. The same charge with a curve has one."""
    filter_ = ConcentratedFilter(ZCDP(1.0))
    assert filter_.amount(Event(ApproxDP(0.1, 1e-8))).rho == math.inf
    assert not filter_.admits(filter_.amount(Event(ApproxDP(0.1, 1e-8))))
    assert filter_.admits(filter_.amount(GAUSSIAN))


def test_a_renyi_ledger_takes_pure_charges_up_to_their_sum():
    """Five times 0.4 fills a limit of 2 by the sum, which Rényi divergences alone would refuse; then nothing else fits."""
    filter_ = RenyiFilter(ApproxDP(2.0, 1e-6))
    total = cost(filter_, (Event(PureDP(0.4)),) * 5)
    assert filter_.admits(total)
    assert filter_.spent(total) == ApproxDP.of_sum(2.0, 0.0)
    assert not filter_.admits(total + filter_.amount(Event(ZCDP(1e-6))))
    assert not filter_.admits(total + filter_.amount(Event(PureDP(0.01))))


def test_bare_approximate_charges_use_the_slack_of_a_renyi_ledger():
    """A hundredth of delta is kept for them, and not more."""
    filter_ = RenyiFilter(ApproxDP(2.0, 1e-6))
    assert filter_.admits(filter_.amount(Event(ApproxDP(0.1, 1e-8))))
    assert not filter_.admits(filter_.amount(Event(ApproxDP(0.1, 1.1e-8))))
    assert filter_.admits(filter_.amount(GAUSSIAN))


def test_amounts_and_limits_are_of_one_order_at_99_percent_of_delta(monkeypatch):
    """The order at which the limit admits the most decides both, and what was spent is said at the same delta."""
    asked, converted = [], []
    whole, back = filters._concentrated, filters.concentrated_epsilon
    monkeypatch.setattr(filters, "_concentrated", lambda *limit: asked.append(limit) or whole(*limit))
    monkeypatch.setattr(filters, "concentrated_epsilon", lambda *at: converted.append(at) or back(*at))
    filter_ = RenyiFilter(ApproxDP(2.0, 1e-6))
    amount = filter_.amount(OBJECTIVE)
    assert filter_.admits(amount)
    filter_.spent(amount)
    assert asked == [(2.0, pytest.approx(0.99e-6, rel=1e-12))] * 2
    assert [delta for _, delta in converted] == [pytest.approx(0.99e-6, rel=1e-12)]
    _, order = whole(2.0, 0.99e-6)
    assert float(amount.rho) == pytest.approx(OBJECTIVE.renyi(order) / order, rel=1e-12)


@pytest.mark.parametrize(("slack", "is_admitted"), [(0.99e-8, True), (1.01e-8, False)])
def test_a_hundredth_of_delta_is_for_approximate_charges(slack, is_admitted):
    """Their deltas add up within it, however little of rho they use."""
    filter_ = RenyiFilter(ApproxDP(2.0, 1e-6))
    assert filter_.admits(filter_.amount(Event(ApproxDP(1e-3, slack)))) == is_admitted


@pytest.mark.parametrize(
    "event",
    [OBJECTIVE, GAUSSIAN, Event(PureDP(0.3)), Event(ApproxDP(0.1, 1e-8))],
    ids=["objective", "gaussian", "pure", "approximate"],
)
def test_what_a_charge_costs_is_rounded_up_by_one_part_in_two_to_the_fifty(event):
    """Its divergence over the order; a quotient and a product are off by half a unit of 2^-53 each."""
    _, order = filters._concentrated(2.0, 0.99e-6)
    cost = RenyiFilter(ApproxDP(2.0, 1e-6)).amount(event).rho
    assert 0.7 * 2.0**-50 < cost * Fraction(order) / Fraction(event.renyi(order)) - 1 < 1.3 * 2.0**-50


def test_a_concentrated_charge_with_a_curve_is_counted_by_the_curve():
    """And one without a curve by its rho, exactly."""
    filter_ = RenyiFilter(ApproxDP(2.0, 1e-6))
    assert float(filter_.amount(Event(ZCDP(0.5), GaussianMechanism(0.2))).rho) == pytest.approx(0.02, rel=1e-9)
    assert filter_.amount(Event(ZCDP(0.5))).rho == Fraction(1, 2)


def test_a_renyi_ledger_may_be_filled_to_the_last_digit():
    """Exactly the largest rho is admitted, and nothing above it; what is left then is nothing, and before the difference."""
    filter_ = RenyiFilter(ApproxDP(2.0, 1e-6))
    most, _ = filters._concentrated(2.0, 1e-6 - 0.01 * 1e-6)
    full = Amount(math.inf, Fraction(0), exact(most))
    assert filter_.admits(full)
    assert not filter_.admits(full + Amount(math.inf, Fraction(0), Fraction(1, 10**30)))
    part = filter_.amount(Event(ZCDP(0.01)))
    assert filter_.remaining(part).epsilon == pytest.approx(2.0 - concentrated_epsilon(0.01, 0.99e-6), rel=1e-9)
    assert filter_.remaining(part).delta == 0.0
    assert filter_.remaining(Amount(math.inf, Fraction(0), Fraction(2))).epsilon == 0.0


def test_a_charge_without_privacy_has_no_rho():
    """So that no limit, however large, admits it."""
    ledger = ConcentratedFilter(ZCDP(100.0))
    amount = ledger.amount(Event(PureDP(math.inf)))
    assert amount.rho == math.inf
    assert not ledger.admits(amount)
    assert ledger.amount(Event(ZCDP(4.0))).rho == 4
