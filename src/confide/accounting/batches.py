"""Releases that were planned and charged together, and what a charge to a ledger or to such a batch is made of."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import accumulate
from typing import Any, NoReturn, Self, cast

from confide.accounting import filters
from confide.accounting.records import DETAILS, Entry, Header, canonical, checked_purpose, now
from confide.blocks import Block, frame_of, heading, table, text
from confide.errors import BudgetExceeded, LedgerError, wording
from confide.known_words import suggest_keywords_of
from confide.privacy.budgets import Budget, Neighbours, with_amount
from confide.privacy.events import Event, as_events


class Shared:
    """What a charge must agree with: a ledger, or a batch of one.

    Copies, deep copies and scikit-learn's clones of it are the object itself, so that no wrapper can spend twice.
    """

    _header: Header

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def blocks(self: Any) -> Iterator[Block]:
        """Of a ledger: limit, sum and rest, and its charges, with the columns in which they differ or have a value."""
        totals = {"limit": self.limit, "spent": self.spent(), "remaining": self.remaining()}
        yield heading("Budget")
        cells = [(title, *map(_cell, budget.amounts.values())) for title, budget in totals.items()]
        yield table(("", *self.limit.amounts), cells)
        if self.cohorts is not None:
            yield heading("Cohorts")
            yield text(wording("cohorts of a ledger", cohorts=self.cohorts))
            with self._up_to_date():
                own, paid = self._filter, filters.of_each(self._totals).items()
            cells = [(c or "all others", _cell(own.spent(t).amount), _cell(own.remaining(t).amount)) for c, t in paid]
            yield table(("cohort", "spent", "left"), cells, words=("cohort",))
        if caps := sublimits_of(self):
            yield heading("Sub-limits")
            heads = ("purpose", "for", self.limit.symbol, "spent", "left")
            rows = [(cap, "each year" if per_year else "in all", *map(_cell, amounts)) for cap, per_year, *amounts in caps]
            yield table(heads, rows, words=("for",))
        charges = charges_of(self)
        yield heading("Charges" if charges else "No charges yet")
        usual = {"rows_per_person": self.max_rows_per_person}
        shown = [n for n in _OF_CHARGE if n not in DETAILS and {c[n] for c in charges} - {None, usual.get(n)}]
        for charge in charges:
            charge["time"] = f"{charge['time'][:10]} {charge['time'][11:19]} UTC"
        lines = [[_cell(charge[name]) for name in shown] for charge in charges]
        yield table(shown, lines, words=("time", "purpose"), wrapped="purpose")

    def to_frame(self: Any) -> Any:
        """The charges, as `entries` gives them."""
        return self.entries()

    @property
    def identity(self) -> str:
        """A random text, drawn when the ledger was created. Copies of the ledger, and its batches, have the same one."""
        return self._header.identity

    @property
    def limit(self) -> Budget:
        """The most that all charges to the ledger together may cost."""
        return self._header.limit

    @property
    def neighbours(self) -> Neighbours:
        """The neighbour relation of every charge."""
        return self._header.neighbours

    @property
    def cohorts(self) -> str | None:
        """The column whose value says to which cohort a row belongs; None where every charge is for everybody."""
        return self._header.cohorts

    @property
    def max_rows_per_person(self) -> int:
        """The largest number of rows of a person for whom `limit` and `spent` hold."""
        return self._header.max_rows_per_person

    @property
    def last_charge(self) -> int | None:
        """The number of the last charge that this thread made through this object; None before the first.

        Each thread has its own, so that what a fit notes of its model stands on the charge of this very fit.
        """
        return getattr(self._of_thread, "last_charge", None)

    @property
    def last_attempt(self) -> int:
        """The number of the attempt that the last charge of this thread began; above 1 if it finished an earlier charge."""
        return getattr(self._of_thread, "last_attempt", 1)

    def __copy__(self, memo: object = None) -> Self:
        return self

    __deepcopy__ = __sklearn_clone__ = __copy__


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


@suggest_keywords_of
class Batch(Shared):
    """Releases that were planned and charged together (`Ledger.plan`). Each can be made once, by whoever holds the batch.

    It lives in the process that planned it. What is not used stays charged.
    """

    def __init__(self, ledger: Shared, releases: tuple[tuple[Event, ...], ...]) -> None:
        super().__init__()
        self._header = ledger._header
        self._place = repr(ledger)
        self._size = len(releases)
        self._unused = Counter(releases)
        self._lock = threading.Lock()
        self._process = os.getpid()

    def charge(
        self, budget: object, *, purpose: str = "", neighbours: Neighbours | str | None = None, cohort: str | None = None
    ) -> None:
        """Use up one release that was planned and is equal to this one, or raise and use up nothing.

        The batch was charged for everybody, so a release for one cohort is paid too.

        Raises
        ------
        BudgetExceeded
            If no such release was planned, or all such are used up.
        LedgerError
            If the neighbour relation is another one, or this is another process.
        """
        if os.getpid() != self._process:
            raise LedgerError(wording("batch in another process"))
        release = events_of_charge(self, budget, neighbours)
        own = filters.listed(filters.costs_of(release))
        with self._lock:
            if not self._unused[release]:
                raise BudgetExceeded(wording("batch without such a release", own=own))
            self._unused[release] -= 1

    def __repr__(self) -> str:
        return f"<Batch of {self._size} releases, {self._unused.total()} of them unused, in {self._place}>"

    def __reduce__(self) -> NoReturn:
        raise LedgerError(wording("batch pickled"))


def events_of_charge(account: Shared, value: object, neighbours: Neighbours | str | None) -> tuple[Event, ...]:
    """The events of a charge. Both the events and the caller must name the relation of the ledger."""
    own = account.neighbours
    asked = own if neighbours is None else Neighbours.parse(neighbours)
    events = as_events(value, asked, account.max_rows_per_person)
    for relation in (asked, *(event.neighbours for event in events)):
        if relation is not own:
            raise LedgerError(wording("another relation", own=own, relation=relation))
    return events


_OF_CHARGE = ("number", "time", "purpose", *filters.CURRENCIES, "rows_per_person", "cohort", *DETAILS)


def charges_of(ledger: Any) -> list[dict[str, Any]]:
    """What is known of each charge in order, under the names of the columns of `Ledger.entries`; None where nothing is."""
    with ledger._up_to_date():
        entries = [(entry, ledger._known(entry.number)) for entry in ledger._entries]
    rows = []
    for e, known in entries:
        costs, protected = filters.costs_of(e.events).values(), filters.least_rows(e.events)
        rows.append((e.number, e.time, e.purpose, *costs, protected, e.cohort, *map(known.get, DETAILS)))
    return [dict(zip(_OF_CHARGE, row, strict=True)) for row in rows]


def listed_charges(ledger: Any) -> Any:
    """Charges with what is known of each, as a pandas frame."""
    # As text, an absent detail would be NaN beside others.
    frame = frame_of(charges_of(ledger), columns=_OF_CHARGE, dtype=object)
    return frame.astype({"number": int, "rows_per_person": int} | dict.fromkeys(filters.CURRENCIES, float))


def spending_of(ledger: Any) -> tuple[tuple[Entry, Budget], ...]:
    """Each charge in order, with what it and all charges before it cost together, in the currency of the limit."""
    with ledger._up_to_date():
        entries, filter_ = tuple(ledger._entries), ledger._filter
    _, *totals = accumulate(entries, partial(filters.with_charge, filter_), initial=cast("filters.Totals", {}))
    return tuple(zip(entries, map(partial(filters.shown, max, filter_.spent), totals), strict=True))


# Sub-limits: what the charges of one purpose may cost together. They reserve nothing, and no guarantee rests on them.


@dataclass(frozen=True, slots=True)
class Sublimit:
    """The most that charges of one purpose may cost together, in all or in each calendar year (UTC)."""

    purpose: str
    limit: Budget
    per_year: bool

    @property
    def text(self) -> str:
        """The text of its record, canonical JSON."""
        # A value of another type that is equal, such as 1 for true, could not be read again.
        return canonical({"sublimit_on": self.purpose, "amount": self.limit.amount, "per_year": self.per_year is True})

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any], limit: Budget) -> Self:
        """What a record says, in a ledger of this limit."""
        return cls(checked_purpose(facts["sublimit_on"]), with_amount(limit, facts["amount"]), facts["per_year"])

    def refuse_excess(self, charge: Entry, entries: Sequence[Entry]) -> None:
        """Raise if a charge that counts here costs more at its time than is left."""
        if is_of_purpose(charge.purpose, self.purpose):
            filters.refuse_excess(*self.at(charge.time, charge.accounting, entries), charge, self.purpose)

    def at(self, time: str, accounting: str, entries: Iterable[Entry]) -> tuple[filters.Filter, filters.Totals]:
        """The filter of the sub-limit, and what counts under it at a time."""
        filter_, year = filters.filter_for(self.limit, accounting), time[:4] if self.per_year else ""
        counted = (e for e in entries if is_of_purpose(e.purpose, self.purpose) and e.time.startswith(year))
        return filter_, reduce(partial(filters.with_charge, filter_), counted, cast("filters.Totals", {}))


def is_of_purpose(purpose: str, whole: str) -> bool:
    """Whether a purpose is another one or a part of it, such as "Waiting times, release 2026-12" of "Waiting times"."""
    return purpose == whole or purpose.startswith((f"{whole},", f"{whole}:", f"{whole} [", f"{whole} ("))


def sublimits_of(ledger: Any) -> list[tuple[str, bool, float, float, float]]:
    """The sub-limits of a ledger: purpose, whether for each year, limit, and what is spent and left of each now."""
    with ledger._up_to_date():
        return [
            (cap.purpose, cap.per_year, cap.limit.amount, *(filters.shown(*how, totals).amount for how in ways))
            for cap in ledger._sublimits.values()
            for filter_, totals in [cap.at(now(), ledger._accounting, ledger._entries)]
            for ways in [((max, filter_.spent), (min, filter_.remaining))]
        ]
