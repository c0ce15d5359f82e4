"""How charges add up under each limit, and what the joint loss of a fixed batch costs."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from confide.accounting.chargeable import as_events
from confide.accounting.events import Event, PureMechanism
from confide.accounting.filter_choice import accounting_of, filter_for
from confide.accounting.filters import Amount, SumFilter, total_amount
from confide.accounting.joint_loss import joint_epsilon, joint_events
from confide.accounting.renyi_filters import ConcentratedFilter, RenyiFilter
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.conversions import concentrated_epsilon
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.gaussian_objective import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))
OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


def test_ten_tenths_are_one():
    """Sums are exact in the decimals that were written."""
    filter_ = SumFilter(PureDP(1.0))
    total = total_amount(filter_, [Event(PureDP(0.1))] * 10)
    assert filter_.admits(total)
    assert filter_.spent(total) == PureDP(1.0)
    assert filter_.remaining(total) == PureDP.of_sum(0.0)
    assert not filter_.admits(total + filter_.amount(Event(PureDP(1e-9))))


def test_epsilons_and_deltas_add_up_to_the_limit_exactly():
    """Ten of (0.4, 1e-7) fit (4, 1e-6); an eleventh does not, nor one with its delta alone too large."""
    filter_ = filter_for(ApproxDP(4.0, 1e-6), "sum")
    part = filter_.amount(Event(ApproxDP(0.4, 1e-7)))
    total = sum([part] * 10, Amount())
    assert filter_.admits(total)
    assert filter_.spent(total) == ApproxDP(4.0, 1e-6)
    assert not filter_.admits(total + part)
    assert not filter_.admits(filter_.amount(Event(ApproxDP(0.4, 1.1e-6))))
    assert filter_.remaining(part) == ApproxDP(3.6, 9e-7)


def test_what_a_currency_cannot_hold_is_never_admitted():
    """Deltas in a pure ledger, rho in a sum, bare deltas in a concentrated ledger, and no privacy anywhere."""
    for limit, accounting, event in (
        (PureDP(9.0), "sum", Event(ApproxDP(0.1, 1e-9))),
        (PureDP(9.0), "sum", Event(ZCDP(1e-6))),
        (ApproxDP(9.0, 1e-3), "sum", Event(ZCDP(1e-6))),
        (ZCDP(9.0), "sum", Event(ApproxDP(0.1, 1e-9))),
    ):
        filter_ = filter_for(limit, accounting)
        assert not filter_.admits(filter_.amount(event))
    for limit in (PureDP(9.0), ApproxDP(9.0, 0.1), ZCDP(9.0)):
        for accounting in ("sum", "renyi"):
            filter_ = filter_for(limit, accounting)
            for event in (Event(PureDP(math.inf)), Event(ZCDP(math.inf)), Event(ApproxDP(math.inf, 1e-6))):
                assert not filter_.admits(filter_.amount(event))


def test_a_concentrated_ledger_adds_rhos_of_every_kind_of_charge():
    """Pure by epsilon tanh(epsilon / 2), Gaussian curves by mu^2 / 2."""
    filter_ = ConcentratedFilter(ZCDP(1.0))
    events = [Event(PureDP(0.5)), Event(ZCDP(0.25)), GAUSSIAN]
    total = total_amount(filter_, events)
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


def test_a_renyi_ledger_takes_pure_charges_up_to_their_sum():
    """Five times 0.4 fills a limit of 2 by the sum, which Rényi divergences alone would refuse; then nothing else fits."""
    filter_ = RenyiFilter(ApproxDP(2.0, 1e-6))
    total = total_amount(filter_, [Event(PureDP(0.4))] * 5)
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


def test_the_first_charge_tells_how_a_ledger_adds():
    """Concentrated ones by Rényi divergence, all others by the sum."""
    assert accounting_of(Event(ZCDP(0.1))) == "renyi"
    assert accounting_of(Event(PureDP(0.1))) == accounting_of(GAUSSIAN) == "sum"
    with pytest.raises(ParameterError):
        filter_for(PureDP(1.0), "advanced")
    with pytest.raises(ParameterError, match="finite"):
        filter_for(PureDP(math.inf), "sum")


@pytest.mark.parametrize("deviation", [10.0, 30.0, 100.0, 300.0])
def test_a_hundred_gaussian_releases_cost_what_their_joint_loss_costs(deviation):
    """A batch fixed beforehand: within 5% of dp_accounting's own answer; the adaptive filter: within 11%."""
    batch = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(deviation), 100)
    own = PLDAccountant()
    own.compose(batch)
    own_epsilon = own.get_epsilon(1e-6)
    (joint,) = joint_events(filter_for(ApproxDP(10.0, 1e-6), "sum"), as_events(batch), 1e-6)
    assert own_epsilon * (1 - 1e-6) <= joint.budget.epsilon <= 1.05 * own_epsilon
    renyi = filter_for(ApproxDP(10.0, 1e-6), "renyi")
    assert own_epsilon <= renyi.spent(total_amount(renyi, as_events(batch))).epsilon <= 1.11 * own_epsilon


def test_a_batch_costs_no_more_than_its_sum():
    """Pure charges keep their sum without a delta; mixed ones get one event at the joint delta."""
    filter_ = filter_for(ApproxDP(4.0, 1e-5), "sum")
    few = (Event(PureDP(0.1)),)
    assert joint_events(filter_, few, 1e-6) == few
    mixed = (GAUSSIAN,) * 5 + (Event(PureDP(0.2)),) * 5
    (joint,) = joint_events(filter_, mixed, 1e-5)
    assert joint.budget.epsilon < 2.5
    assert joint.budget.delta == 1e-5
    for other in (filter_for(ZCDP(1.0), "sum"), filter_for(PureDP(1.0), "sum"), filter_for(ApproxDP(1.0, 1e-6), "renyi")):
        assert joint_events(other, mixed, 1e-5) == mixed


def test_concentrated_charges_have_no_loss_distribution():
    """Their joint epsilon comes from Rényi divergences alone."""
    sealed = Event(ZCDP(0.5), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))
    for event in (Event(ZCDP(0.1)), sealed):
        assert joint_epsilon((event,), 1e-6) == math.inf
    (joint,) = joint_events(filter_for(ApproxDP(9.0, 1e-6), "sum"), (sealed,), 1e-6)
    assert joint.budget.epsilon == pytest.approx(ZCDP(sealed.rho).to_approx(1e-6).epsilon, rel=1e-9)
    (joint,) = joint_events(filter_for(ApproxDP(9.0, 1e-6), "sum"), (Event(ZCDP(0.05)),) * 2, 1e-6)
    assert joint.budget.epsilon == pytest.approx(ZCDP(0.1).to_approx(1e-6).epsilon, rel=1e-9)


def test_events_of_dp_accounting_are_translated_and_the_unknown_is_refused():
    """Gaussian, Laplace, zCDP, composed; sampling and the like have no entry."""
    gaussian, laplace = dp_accounting.GaussianDpEvent(4.0), dp_accounting.LaplaceDpEvent(2.0)
    assert as_events(gaussian) == (Event(ZCDP(1 / 32), GaussianMechanism(0.25)),)
    assert as_events(laplace) == (Event(PureDP(0.5)),)
    assert as_events(dp_accounting.ZCDpEvent(0.3)) == (Event(ZCDP(0.3)),)
    assert as_events(dp_accounting.NoOpDpEvent()) == ()
    both = dp_accounting.ComposedDpEvent([gaussian, dp_accounting.SelfComposedDpEvent(laplace, 2)])
    assert as_events(both) == as_events(gaussian) + 2 * as_events(laplace)
    for unknown in (
        dp_accounting.NonPrivateDpEvent(),
        dp_accounting.PoissonSampledDpEvent(0.1, gaussian),
        dp_accounting.GaussianDpEvent(0.0),
        dp_accounting.ZCDpEvent(0.3, 0.1),
        *(dp_accounting.SelfComposedDpEvent(laplace, count) for count in (-1, 2.9, True, "3")),
    ):
        with pytest.raises(ParameterError, match="cannot be counted"):
            as_events(unknown)
    with pytest.raises(ParameterError):
        as_events("epsilon")


@pytest.mark.parametrize("event", [GAUSSIAN, OBJECTIVE, Event(PureDP(1.0)), Event(ZCDP(0.5))], ids=lambda e: str(e.budget))
def test_events_survive_a_file(event):
    """To JSON and back."""
    assert Event.from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False))) == event
    with pytest.raises(ParameterError):
        Event.from_dict({"budget": {"kind": "pure", "epsilon": 1.0}, "curve": {"kind": "laplace", "mu": 1.0}})


def test_a_batch_of_next_to_nothing_costs_the_least_budget_there_is():
    """Not zero, which is no budget."""
    batch = as_events(dp_accounting.GaussianDpEvent(1e5))
    (joint,) = joint_events(filter_for(ApproxDP(1.0, 0.1), "sum"), batch, 0.1)
    assert joint.budget == ApproxDP(1e-9, 0.1)


def test_a_pure_release_for_an_approximate_budget_needs_no_slack():
    """Its curve is pure: Rényi and zCDP ledgers take it, and a sum is charged the budget that was asked for."""
    event = Event(ApproxDP(0.5, 1e-6), PureMechanism(0.5))
    assert event.slack == 0.0
    assert event.rho == PureDP(0.5).to_zcdp().rho
    for limit in (ZCDP(0.2), ApproxDP(1.0, 1e-6)):
        filter_ = filter_for(limit, "renyi")
        assert filter_.admits(filter_.amount(event))
    filter_ = filter_for(ApproxDP(1.0, 1e-5), "sum")
    assert filter_.spent(filter_.amount(event)) == ApproxDP(0.5, 1e-6)
    assert Event.from_dict(json.loads(json.dumps(event.to_dict()))) == event
