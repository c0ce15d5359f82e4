"""A PostgreSQL server for the ledgers in a database, where one can be started."""

from __future__ import annotations

import itertools

import pytest

from confide.accounting.ledger import Ledger
from confide.privacy.budgets import ApproxDP
from tests.accounting import postgres_server
from tests.accounting.network import Network


@pytest.fixture(scope="session")
def server():
    """A running server with an empty database `ledgers`."""
    with postgres_server.running_with("ledgers") as running:
        yield running


_NUMBERS = itertools.count()


@pytest.fixture
def url(server):
    """The URL of a ledger that is not there yet."""
    return server.url(f"study_{next(_NUMBERS)}")


@pytest.fixture
def charged(place):
    """Where a ledger with three charges is: each module of tests says which places it is about."""
    ledger = Ledger(place, limit=ApproxDP(4.0, 1e-6), accounting="sum")
    for budget, purpose in ((0.5, "mean age"), (ApproxDP(1.0, 1e-7), "fit"), (0.25, "SECOND MEAN")):
        ledger.charge(budget, purpose=purpose)
    return place


@pytest.fixture
def network(server):
    """What stands between a client and the server, and fails when it is told to."""
    between = Network(server.port)
    yield between
    between.close()
