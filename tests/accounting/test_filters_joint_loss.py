"""Joint losses of releases that were all fixed beforehand."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant, common, privacy_loss_distribution

from confide.accounting import filters
from confide.accounting.filters import _dominating, cost, filter_for, joint_epsilon, joint_events
from confide.accounting.ledger import Ledger
from confide.errors import BudgetExceeded
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP, concentrated_epsilon
from confide.privacy.events import Event, PureMechanism, as_events
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


@pytest.mark.parametrize("deviation", [10.0, 30.0, 100.0, 300.0])
def test_a_hundred_gaussian_releases_cost_what_their_joint_loss_costs(deviation):
    """A batch fixed beforehand: within 5% of dp_accounting's own answer; the adaptive filter: within 11%."""
    batch = dp_accounting.SelfComposedDpEvent(dp_accounting.GaussianDpEvent(deviation), 100)
    own = PLDAccountant()
    own.compose(batch)
    own_epsilon = own.get_epsilon(1e-6)
    (joint,) = joint_events(ApproxDP(10.0, 1e-6), as_events(batch), 1e-6)
    assert own_epsilon * (1 - 1e-6) <= joint.budget.epsilon <= 1.05 * own_epsilon
    renyi = filter_for(ApproxDP(10.0, 1e-6), "renyi")
    assert own_epsilon <= renyi.spent(cost(renyi, as_events(batch))).epsilon <= 1.11 * own_epsilon


def test_a_batch_costs_no_more_than_its_sum():
    """Pure charges keep their sum without a delta; mixed ones get one event at the joint delta."""
    limit = ApproxDP(4.0, 1e-5)
    few = (Event(PureDP(0.1)),)
    assert joint_events(limit, few, 1e-6) == few
    mixed = (GAUSSIAN,) * 5 + (Event(PureDP(0.2)),) * 5
    (joint,) = joint_events(limit, mixed, 1e-5)
    assert joint.budget.epsilon < 2.5
    assert joint.budget.delta == 1e-5


def test_concentrated_charges_have_no_loss_distribution():
    """Their joint epsilon comes from Rényi divergences alone."""
    sealed = Event(ZCDP(0.5), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))
    for event in (Event(ZCDP(0.1)), sealed):
        assert joint_epsilon((event,), 1e-6) == math.inf
    (joint,) = joint_events(ApproxDP(9.0, 1e-6), (sealed,), 1e-6)
    assert joint.budget.epsilon == pytest.approx(ZCDP(sealed.rho).to_approx(1e-6).epsilon, rel=1e-9)
    (joint,) = joint_events(ApproxDP(9.0, 1e-6), (Event(ZCDP(0.05)),) * 2, 1e-6)
    assert joint.budget.epsilon == pytest.approx(ZCDP(0.1).to_approx(1e-6).epsilon, rel=1e-9)


def test_a_batch_of_next_to_nothing_costs_the_least_budget_there_is():
    """Not zero, which is no budget."""
    batch = as_events(dp_accounting.GaussianDpEvent(1e5))
    (joint,) = joint_events(ApproxDP(1.0, 0.1), batch, 0.1)
    assert joint.budget == ApproxDP(1e-9, 0.1)


def test_the_joint_epsilon_is_that_of_the_distributions_rounded_up():
    """Two Gaussian releases and a pure one, at 0.999 delta - 1e-11; the factor is 1 + 2^-40."""
    delta = 1e-6
    laws = [privacy_loss_distribution.from_gaussian_mechanism(5.0)] * 2
    laws.append(privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(0.3, 0.0)))
    expected = laws[0].compose(laws[1]).compose(laws[2]).get_epsilon_for_delta(0.999 * delta - 1e-11)
    for curve in (None, PureMechanism(0.3)):
        events = (GAUSSIAN, Event(PureDP(0.3) if curve is None else ApproxDP(5.0, 1e-3), curve), GAUSSIAN)
        assert joint_epsilon(events, delta) == pytest.approx(expected, rel=1e-6)
    alone = privacy_loss_distribution.from_gaussian_mechanism(5.0)
    alone = privacy_loss_distribution.identity().compose(alone.self_compose(1)).get_epsilon_for_delta(0.999 * delta - 1e-11)
    assert joint_epsilon((GAUSSIAN,), delta) / alone - 1.0 == pytest.approx(2.0**-40, rel=0.01, abs=0.0)


@pytest.mark.parametrize(("delta", "is_known"), [(1.0005e-11, False), (1.5e-11, True)])
def test_a_delta_of_the_size_of_the_transforms_rounding_has_no_joint_epsilon(delta, is_known):
    """1e-11 and a thousandth of delta are kept; what is left must be above 0."""
    assert (joint_epsilon((GAUSSIAN,), delta) < math.inf) == is_known


@pytest.mark.parametrize(("rho", "is_computed"), [(49.0, True), (51.0, False)])
def test_a_joint_loss_of_more_than_rho_50_is_not_computed(rho, is_computed, monkeypatch):
    """No grid is made for it, however many events add up to it."""

    class ComputedError(Exception):
        """The first grid was asked for."""

    def identity():
        raise ComputedError

    monkeypatch.setattr(privacy_loss_distribution, "identity", identity)
    events = (Event(PureDP(9.0), GaussianMechanism(math.sqrt(2.0 * rho / 10.0))),) * 10
    if is_computed:
        with pytest.raises(ComputedError):
            joint_epsilon(events, 1e-6)
    else:
        assert joint_epsilon(events, 1e-6) == math.inf


def test_a_concentrated_budget_alone_has_no_dominating_pair():
    """It is not read as something else."""
    assert _dominating(Event(ZCDP(0.1))) is None


def test_the_delta_of_charges_without_a_curve_is_taken_from_that_of_the_batch():
    """What is left of it converts the sum of the rhos."""
    events = (Event(ZCDP(0.05)), Event(ApproxDP(0.1, 4e-7)), Event(ApproxDP(0.1, 2e-7)))
    (joint,) = joint_events(ApproxDP(9.0, 1e-6), events, 1e-6)
    expected = concentrated_epsilon(math.fsum(event.rho for event in events), 4e-7)
    assert joint.budget.epsilon == pytest.approx(expected, rel=1e-12)
    assert joint.budget.epsilon < concentrated_epsilon(math.fsum(event.rho for event in events), 1.5e-7)


@pytest.mark.parametrize(("saved", "is_joint"), [(0.995, False), (1.0 / 1.01 - 1e-6, True), (0.7, True)])
def test_a_joint_account_needs_to_save_a_hundredth(saved, is_joint, monkeypatch):
    """Else its delta is not worth it."""
    monkeypatch.setattr(filters, "joint_epsilon", lambda *_: saved)
    events = (Event(PureDP(0.5)),) * 2
    found = joint_events(ApproxDP(9.0, 1e-6), events, 1e-6)
    assert found == ((Event(ApproxDP(saved, 1e-6)),) if is_joint else events)


def test_one_charge_of_unknown_law_leaves_a_batch_without_a_joint_loss():
    """Whatever else is in it."""
    assert joint_epsilon((GAUSSIAN, Event(ZCDP(0.1))), 1e-6) == math.inf


def test_the_answer_of_the_distributions_is_rounded_up(monkeypatch):
    """By one part in 2^40, more than the product loses."""

    def answer(self, delta):
        return 0.75

    monkeypatch.setattr(privacy_loss_distribution.PrivacyLossDistribution, "get_epsilon_for_delta", answer)
    assert joint_epsilon((GAUSSIAN,), 1e-6) == 0.75 * (1.0 + 2.0**-40)


def test_a_plan_that_has_no_finite_epsilon_is_refused():
    """A concentrated guarantee has none beside an approximate one that takes all of delta."""
    ledger = Ledger(limit=ApproxDP(10.0, 1e-6))
    for batch in ([ZCDP(0.001), ApproxDP(0.1, 1e-8)], [ApproxDP(0.1, 1e-8), ZCDP(0.001)]):
        with pytest.raises(BudgetExceeded):
            ledger.plan(batch, delta=1e-8)


@pytest.mark.parametrize("limit", [ZCDP(1.0), ApproxDP(1.0, 1e-6)])
@pytest.mark.parametrize("accounting", ["auto", "renyi"])
def test_an_event_of_infinite_rho_is_refused(limit, accounting):
    """A curve that was written by hand may say so."""
    ledger = Ledger(limit=limit) if limit == ZCDP(1.0) else Ledger(limit=limit, accounting=accounting)
    with pytest.raises(BudgetExceeded):
        ledger.charge(Event(PureDP(2.0), PureMechanism(math.inf)))
