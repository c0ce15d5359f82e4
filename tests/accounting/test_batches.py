"""What a charge is made of. `test_ledger.py` tests batches of ledgers."""

from __future__ import annotations

import math

import pytest

from confide.accounting.batches import Batch, events_of_charge
from confide.accounting.filters import costs_of, listed
from confide.accounting.ledger import Ledger
from confide.errors import BudgetExceeded, LedgerError
from confide.privacy.budgets import ZCDP, ApproxDP, Neighbours, PureDP
from confide.privacy.events import Event


def test_costs_add_up_by_currency_and_absent_ones_are_left_out():
    """As they are shown."""
    costs = costs_of((Event(PureDP(0.1)), Event(ApproxDP(0.2, 1e-6)), Event(PureDP(0.3))))
    assert math.isclose(costs["epsilon"], 0.6)
    assert (costs["delta"], costs["rho"]) == (1e-6, None)
    assert listed(costs) == "epsilon 0.6, delta 1e-06"
    assert listed(ZCDP(0.25).amounts) == "rho 0.25"


def test_a_charge_gets_the_relation_and_the_persons_of_its_account():
    """What says nothing of them is taken at its word; what says another relation is refused."""
    ledger = Ledger(limit=1.0, max_rows_per_person=3)
    (event,) = events_of_charge(ledger, 0.5, None)
    assert (event.neighbours, event.rows_per_person) == (Neighbours.REPLACE_ONE, 3)
    for asked, value in (("add-or-remove-one", 0.5), (None, Event(PureDP(0.5), None, 1, Neighbours.ADD_OR_REMOVE_ONE))):
        with pytest.raises(LedgerError, match="Use one ledger for each relation"):
            events_of_charge(ledger, value, asked)


def test_a_batch_speaks_for_its_ledger():
    """Its identity, limit, relation and persons; each release once."""
    ledger = Ledger(limit=1.0)
    batch = Batch(ledger, (events_of_charge(ledger, 0.25, None),))
    assert (batch.identity, batch.limit, batch.max_rows_per_person) == (ledger.identity, PureDP(1.0), 1)
    assert str(batch) == repr(batch)
    assert not hasattr(batch, "_repr_html_")
    batch.charge(0.25)
    with pytest.raises(BudgetExceeded, match="no release left"):
        batch.charge(0.25)
    # The charge was the ledger's, when the batch was planned.
    assert batch.last_charge is None
