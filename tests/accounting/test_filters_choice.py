"""The filter of a limit, and the way of adding that a first charge fixes."""

from __future__ import annotations

import math

import pytest

from confide import Ledger
from confide.accounting.filters import filter_for, why_foreign
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

GAUSSIAN = Event(ApproxDP(1.0, 1e-6), GaussianMechanism(0.2))


OBJECTIVE = Event(ApproxDP(1.0, 1e-6), GaussianObjective(0.1, 0.02, 0.3, 0.01, Neighbours.REPLACE_ONE, True))


@pytest.mark.parametrize(
    ("event", "accounting"), [(Event(ZCDP(0.1)), "renyi"), (Event(PureDP(0.1)), "sum"), (GAUSSIAN, "sum")]
)
def test_the_first_charge_tells_how_a_ledger_adds(event, accounting):
    """Concentrated ones by Rényi divergence, all others by the sum."""
    ledger = Ledger(limit=ApproxDP(4.0, 1e-5))
    assert ledger.accounting == "auto"
    ledger.charge(event)
    assert ledger.accounting == accounting


def test_an_unknown_way_of_adding_and_an_infinite_limit_are_refused():
    """Before there is a ledger."""
    with pytest.raises(ParameterError, match="accounting must be one of"):
        Ledger(limit=PureDP(1.0), accounting="advanced")
    with pytest.raises(ParameterError, match="finite"):
        Ledger(limit=PureDP(math.inf))


def test_one_charge_without_a_rho_is_foreign_to_a_concentrated_limit_among_others():
    """Others may have one."""
    filter_ = filter_for(ZCDP(1.0), "sum")
    assert "no rho" in why_foreign(filter_, (Event(ZCDP(0.1)), Event(ApproxDP(0.1, 1e-7)), GAUSSIAN))
    assert why_foreign(filter_, (Event(ZCDP(0.1)), GAUSSIAN)) is None
