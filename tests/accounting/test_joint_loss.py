"""Joint losses of releases that were all fixed beforehand."""

from __future__ import annotations

import math

import dp_accounting
import pytest
from dp_accounting.pld import PLDAccountant

from confide.accounting.chargeable import as_events
from confide.accounting.events import Event
from confide.accounting.filter_choice import filter_for
from confide.accounting.filters import total_amount
from confide.accounting.joint_loss import joint_epsilon, joint_events
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.gaussian_objective import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


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


def test_a_batch_of_next_to_nothing_costs_the_least_budget_there_is():
    """Not zero, which is no budget."""
    batch = as_events(dp_accounting.GaussianDpEvent(1e5))
    (joint,) = joint_events(filter_for(ApproxDP(1.0, 0.1), "sum"), batch, 0.1)
    assert joint.budget == ApproxDP(1e-9, 0.1)
