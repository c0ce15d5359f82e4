"""The filter of a limit, and the way of adding that a first charge fixes."""

from __future__ import annotations

import math

import pytest

from confide.accounting.filter_choice import accounting_of, filter_for, why_foreign
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


def test_the_first_charge_tells_how_a_ledger_adds():
    """Concentrated ones by Rényi divergence, all others by the sum."""
    assert accounting_of(Event(ZCDP(0.1))) == "renyi"
    assert accounting_of(Event(PureDP(0.1))) == accounting_of(GAUSSIAN) == "sum"
    with pytest.raises(ParameterError):
        filter_for(PureDP(1.0), "advanced")
    with pytest.raises(ParameterError, match="finite"):
        filter_for(PureDP(math.inf), "sum")


def test_one_charge_without_a_rho_is_foreign_to_a_concentrated_limit_among_others():
    """Others may have one."""
    filter_ = filter_for(ZCDP(1.0), "sum")
    assert "no rho" in why_foreign(filter_, (Event(ZCDP(0.1)), Event(ApproxDP(0.1, 1e-7)), GAUSSIAN))
    assert why_foreign(filter_, (Event(ZCDP(0.1)), GAUSSIAN)) is None
