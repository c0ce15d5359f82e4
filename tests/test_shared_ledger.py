"""A small part of scripts/shared_ledger.py in each run of the tests, and that it would see what is wrong."""

from __future__ import annotations

import pytest
from scripts import shared_ledger

from confide.accounting.ledger import Ledger

# A forked child that exits is no test of its own; numpy's threads are idle.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

SMALL = {"processes": 6, "threads": 3, "seconds": 300.0}


def test_processes_with_threads_lose_no_charge_of_a_file_and_never_exceed_its_limit(tmp_path):
    """18 threads reach a limit of 150 charges together: each charge that returned is there once, and no other."""
    said = shared_ledger.charged_at_once(tmp_path / "study.db", **SMALL, most=150)
    assert ": 150 charges in" in said
    assert said.endswith("18 threads were refused at the limit")


@pytest.mark.server
def test_processes_with_threads_lose_no_charge_of_a_database_and_never_exceed_its_limit():
    """The same in PostgreSQL."""
    with shared_ledger.database() as place:
        if not place.startswith("postgresql:"):
            pytest.skip(place)
        said = shared_ledger.charged_at_once(place + "shared", **SMALL, most=100)
    assert ": 100 charges in" in said
    assert said.endswith("18 threads were refused at the limit")


@pytest.mark.parametrize(
    ("purposes", "most", "exceeded", "message"),
    [
        (["a", "b"], 9, 0, "others"),
        (["a", "b", "c", "c"], 9, 0, "others"),
        (["a", "b", "d"], 9, 0, "others"),
        (["a", "b", "c"], 2, 0, "where 2 are allowed"),
        (["a", "b", "c"], 9, 1, "refused as too much after 3 of 9"),
    ],
)
def test_a_charge_that_is_lost_or_made_twice_is_seen(purposes, most, exceeded, message):
    """A charge too many, too few, or of another name; more than the limit; a refusal before the limit."""
    ledger = Ledger(limit=1.0)
    for purpose in ("a", "b", "c"):
        ledger.charge(shared_ledger._COST, purpose=purpose)
    shared_ledger.compare(ledger, shared_ledger.Told(["a", "b", "c"]), 9)
    with pytest.raises(shared_ledger.Miscounted, match=message):
        shared_ledger.compare(ledger, shared_ledger.Told(purposes, exceeded), most)
