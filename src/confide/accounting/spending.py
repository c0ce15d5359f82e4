"""What a ledger had spent after each of its charges."""

from __future__ import annotations

from itertools import accumulate

from confide.accounting import filters
from confide.accounting.ledger import Ledger
from confide.accounting.records import Entry
from confide.privacy.budgets import Budget


def spending_of(ledger: Ledger) -> tuple[tuple[Entry, Budget], ...]:
    """Each charge in order, with what it and all charges before it cost together, in the currency of the limit."""
    with ledger._up_to_date():
        entries, filter_ = tuple(ledger._entries), ledger._filter
    totals = accumulate((filters.total_amount(filter_, entry.events) for entry in entries), initial=filters.Amount())
    return tuple(zip(entries, map(filter_.spent, list(totals)[1:]), strict=True))
