"""Many processes that charge one ledger, wherever it is kept."""

from __future__ import annotations

import contextlib
import multiprocessing
import os

from confide.accounting.ledger import Ledger
from confide.errors import BudgetExceeded, LedgerError
from confide.privacy.budgets import PureDP

FORK = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")


def charge_and_count(place, times, start, results):
    ledger = Ledger(place)
    start.wait()
    granted = 0
    for _ in range(times):
        with contextlib.suppress(BudgetExceeded):
            ledger.charge(0.01, purpose=str(os.getpid()))
            granted += 1
    results.put(granted)


def charge_until_stopped(place, acknowledged):
    """Charge, and say so through a pipe, until this process is killed or the ledger fails."""
    ledger = Ledger(place)
    with contextlib.suppress(LedgerError):
        while True:
            ledger.charge(0.001)
            os.write(acknowledged, b".")


def assert_exact(place, *, limit, processes, times, expected):
    """Exactly `expected` charges of 0.01 are granted, and each is counted once, in a chain without holes."""
    ledger = Ledger(place, limit=limit)
    start, results = FORK.Barrier(processes), FORK.Queue()
    children = [FORK.Process(target=charge_and_count, args=(place, times, start, results)) for _ in range(processes)]
    for child in children:
        child.start()
    granted = [results.get(timeout=300) for _ in children]
    for child in children:
        child.join()
    assert sum(granted) == expected
    assert ledger.verify() == expected
    assert ledger.spent() == PureDP(expected / 100)
    entries = ledger.entries()
    assert entries["number"].tolist() == list(range(1, expected + 1))
    assert sorted(entries["purpose"].value_counts()) == sorted(filter(None, granted))
