"""Events: what a release costs, and its form in a file."""

from __future__ import annotations

import json

import pytest

from confide.accounting.events import Event, PureMechanism
from confide.accounting.filter_choice import filter_for
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.gaussian_objective import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


@pytest.mark.parametrize("event", [GAUSSIAN, OBJECTIVE, Event(PureDP(1.0)), Event(ZCDP(0.5))], ids=lambda e: str(e.budget))
def test_events_survive_a_file(event):
    """To JSON and back."""
    assert Event.from_dict(json.loads(json.dumps(event.to_dict(), allow_nan=False))) == event
    with pytest.raises(ParameterError):
        Event.from_dict({"budget": {"kind": "pure", "epsilon": 1.0}, "curve": {"kind": "laplace", "mu": 1.0}})


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
