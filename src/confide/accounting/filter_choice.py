"""The filter of a limit, the charges that a filter can never count, and the header of a ledger with a limit."""

from __future__ import annotations

import uuid
from functools import lru_cache

from confide.accounting.batches import amounts_of, costs_of, listed
from confide.accounting.filters import Amount, ConcentratedFilter, Filter, RenyiFilter, SumFilter, total_amount
from confide.accounting.records import Header
from confide.errors import BudgetExceeded, LedgerError, ParameterError
from confide.known_words import words_of
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, Neighbours, PureDP
from confide.privacy.events import Event

ACCOUNTINGS = ("sum", "renyi")


def unknown_accounting(name: object) -> ParameterError:
    """The refusal of a way of adding that does not exist."""
    return ParameterError(f"accounting must be one of {words_of(('auto', *ACCOUNTINGS), name)}.")


def filter_for(limit: Budget, accounting: str) -> Filter:
    """The filter of a limit. "sum" and "renyi" differ for approximate limits alone."""
    if not limit.is_private:
        raise ParameterError("the limit of a ledger must be finite.")
    if accounting not in ACCOUNTINGS:
        raise unknown_accounting(accounting)
    if isinstance(limit, ZCDP):
        return ConcentratedFilter(limit)
    return RenyiFilter(limit) if accounting == "renyi" and isinstance(limit, ApproxDP) else SumFilter(limit)


def accounting_of(event: Event) -> str:
    """What "auto" means for a ledger with this first charge: the way of adding that suits the currency of the charge."""
    return "renyi" if isinstance(event.budget, ZCDP) else "sum"


def why_foreign(filter_: Filter, events: tuple[Event, ...]) -> str | None:
    """Why this filter can never count charges of this currency, and what to do; None if it can."""
    kinds = {type(event.budget) for event in events}
    if isinstance(filter_, ConcentratedFilter) and any(event.slack for event in events):
        return (
            "an approximate charge without a finer account has no rho, which is what this ledger adds. Charge a plan or a "
            "ZCDP budget, or use a ledger with an ApproxDP limit."
        )
    if isinstance(filter_.limit, PureDP) and kinds != {PureDP}:
        return (
            "this ledger has a pure limit, and the charge is not pure: no epsilon covers it without a delta. Use a "
            "mechanism with pure privacy, or a ledger with an ApproxDP or ZCDP limit."
        )
    if isinstance(filter_, SumFilter) and ZCDP in kinds:
        return (
            "this ledger adds epsilons and deltas, and a ZCDP charge has neither. Charge its joint epsilon at a delta with "
            "`ledger.plan([...])` if delta is left, or use a new ledger with accounting='renyi' for what is left."
        )
    return None


def accounting_for(limit: Budget, accounting: str) -> str:
    """The way of adding. It is the one asked for where the limit leaves a choice."""
    if isinstance(limit, ApproxDP):
        return accounting
    return "sum" if isinstance(limit, PureDP) else "renyi"


def refusal(filter_: Filter, events: tuple[Event, ...], total: Amount) -> LedgerError:
    """Why a filter does not admit events after a total."""
    foreign = why_foreign(filter_, events)
    if foreign is not None:
        return LedgerError(f"{foreign} Nothing was used or charged.")
    share = ""
    if isinstance(filter_, RenyiFilter) and any(event.slack for event in events):
        share = (
            " Where Rényi divergences add up, a hundredth of the limit's delta is for charges that are approximate "
            "without a finer account."
        )
    return BudgetExceeded(
        f"this asks for {listed(costs_of(events))}; the ledger has {amounts_of(filter_.remaining(total))} left of "
        f"{amounts_of(filter_.limit)}.{share} Lower `budget`; a limit is fixed once. Nothing was used or charged."
    )


def new_header(limit: Budget, neighbours: Neighbours, rows: int, accounting: str) -> Header:
    """The first record of a new ledger with this limit."""
    filter_for(limit, "sum")  # refuses what is no limit
    return Header(uuid.uuid4().hex, limit, neighbours, accounting_for(limit, accounting), rows)


@lru_cache(maxsize=256)
def cost(limit: Budget, accounting: str, events: tuple[Event, ...]) -> Amount:
    """What events cost together under a limit."""
    # Cached, since a process that shares a file adds up the charges of all others, which are often equal.
    return total_amount(filter_for(limit, accounting), events)
