"""What was spent on one body of data, and the limit: in memory, or in a file or database that is shared.

`filters` decides how charges add up. `records`, `file_storage` and `database_storage` keep them.
Proof: proofs/ledger.md.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, TypeAlias

from confide.accounting import filters
from confide.accounting.attempts import Attempts, mark_text
from confide.accounting.batches import Batch, Shared, Sublimit, events_of_charge, listed_charges, sublimits_of
from confide.accounting.database_storage import RecordsInDatabase, stored_records
from confide.accounting.file_storage import RecordsInFile
from confide.accounting.records import (
    DETAILS,
    INTENT,
    NOTED,
    Entry,
    Header,
    Record,
    RecordsInMemory,
    checked_details,
    checked_purpose,
    note_text,
    now,
    text_of_charge,
)
from confide.blocks import Shown, frame_of
from confide.errors import LedgerError, ParameterError, checked_flag, checked_list, is_text, wording
from confide.features.canonical_labels import canonical_label
from confide.features.checks import plain_label
from confide.parameters import checked_choice
from confide.privacy.budgets import ApproxDP, Budget, Neighbours, as_budget, with_amount
from confide.privacy.events import Event, checked_rows

__all__ = ["Batch", "Ledger"]
Records: TypeAlias = RecordsInMemory | RecordsInFile | RecordsInDatabase


class Ledger(Shared, Shown):
    """A budget shared by all releases from the same rows. Charge first, then read; there is no refund.

    A charge is durable when `charge` returns, and stays after a crash. Copies, clones and deep copies are the ledger
    itself. With a path it is a file that processes and threads share, with a URL a database that machines share; it pickles
    as its path or URL and identity. Without one it lives in memory and remembers its process: pickling it, or charging it
    after a fork, raises LedgerError.

    Parameters
    ----------
    path : path-like, str or None
        A file on a local disk (SQLite's write-ahead log needs one; network file systems lose charges). With a limit it is
        created where it is missing, and must agree with all parameters where it is not; without a limit it must exist.
        Move or copy it together with the files of the same name that end in -wal and -shm, if any. Who may read it, but not
        write, sees what was spent.
        Or the URL of a PostgreSQL database, "postgresql://user@host/database?schema=study&sslmode=verify-full" (extra
        `postgres`); the ledger is a schema of it, `confide_ledger` if none is named. It holds no password: that stands in
        ~/.pgpass or in PGPASSWORD.
        None: in memory.
    limit : PureDP, ApproxDP, ZCDP, float or None
        The most that all charges together may cost; finite. A number is an epsilon.
    neighbours : str or Neighbours
        The relation that every charge must have.
    max_rows_per_person : int, default 1
        The unit of protection, fixed for good: the limit is for what a person pays who has so many rows at most. A charge
        that protects fewer rows of a person together is refused, because such a person would pay more for it. One that
        protects more counts in full. A budget alone, charged by hand, counts as one for this unit. A ledger that exists may
        be for more rows than are asked for here.
    cohorts : str or None
        The column whose value says to which cohort a row belongs, fixed for good, such as the month in which a person came.
        A charge for one cohort then costs the persons of that cohort alone. The limit bounds what each person pays: charges
        for everybody, and those for the person's own cohort. Needs "add-or-remove-one" and one row a person.
        None: every charge is for everybody.
    accounting : "auto", "sum" or "renyi"
        How charges add up under an ApproxDP limit. "sum" adds epsilons and deltas, and suits pure charges and few
        approximate ones. "renyi" adds Rényi divergences of one order, and suits many releases with Gaussian noise.
        "auto" is fixed by the first charge: "renyi" for a ZCDP charge, "sum" for others and for a plan. It is fixed once,
        because whoever could take the better of the two after seeing outcomes might spend delta twice.
    finish : bool, default False
        Whether releases through this object finish charges in place of making new ones: fits, searches, evaluations,
        descriptions and bounds. One is then refused unless the ledger holds a charge for this very release whose run was
        interrupted before anything of it was seen, such as by a kill. What it shows says so, and rests on an interruption
        that depended neither on the rows nor on the noise (confide/accounting/proofs/finishing.md).

    Raises
    ------
    ParameterError
        If an argument is outside its range, or a new ledger has no limit.
    LedgerError
        If the ledger is missing, damaged, or of another limit or relation.

    Notes
    -----
    Guarantee: all releases that were charged are together private at the limit, even if each was chosen after seeing earlier
    ones. Proof: confide/accounting/proofs/ledger.md.

    Examples
    --------
    >>> import confide
    >>> ledger = confide.Ledger(limit=2.0)
    >>> ledger.charge(confide.PureDP(0.5), purpose="mean age")
    >>> ledger.remaining().epsilon
    1.5
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        limit: Budget | float | None = None,
        neighbours: Neighbours | str = Neighbours.REPLACE_ONE,
        max_rows_per_person: int = 1,
        cohorts: str | None = None,
        accounting: Literal["auto", "sum", "renyi"] = "auto",
        finish: bool = False,
    ) -> None:
        relation, rows = Neighbours.parse(neighbours), checked_rows(max_rows_per_person)
        self.finish = checked_flag("finish", finish)
        checked_choice("accounting", accounting, ("auto", *filters.ACCOUNTINGS))
        header = None
        if limit is not None:
            limit = as_budget(limit)
            rules = filters.accounting_for(limit, accounting)
            header = Header(uuid.uuid4().hex, limit, relation, rules, rows, cohorts=cohorts)
        self._records: Records
        if path is not None:
            self._records = stored = stored_records(path)
            if header is not None:
                stored.create(header.text, header.identity)
        elif header is not None:
            self._records = RecordsInMemory(header.text)
        else:
            raise ParameterError("give a limit for a ledger in memory, or the path of a ledger that exists.")
        self._forget()
        super().__init__()
        self.dated_like: str | None = None  # the time that charges through this object are given
        with self._up_to_date():
            self._header.refuse_others(self._records.path, header, relation, rows, cohorts)
            if accounting != "auto" and filters.accounting_for(self.limit, accounting) != self._accounting:
                place, own = self._records.path, self._accounting
                raise LedgerError(wording("another accounting", place=place, own=own, other=accounting))

    @property
    def accounting(self) -> str:
        """How charges add up: "sum" or "renyi", or "auto" until the first charge fixes it."""
        with self._up_to_date():
            return self._accounting

    @property
    def head(self) -> str:
        """Hash of the last record. Kept elsewhere, it shows later that no record up to it was changed or lost (`verify`)."""
        with self._up_to_date() as session:
            return session.records_after(None)[-1].hash

    def unfinished(self) -> list[int]:
        """The numbers of the charges under which nothing was released: the runs were interrupted, or still go on.

        A charge without an intent, such as one by hand, is not among them.

        Returns
        -------
        list of int
        """
        with self._up_to_date():
            return self._attempts.charges

    def attempts(self, event: object, intent: str) -> int:
        """The number of the attempt at a release that its charge will begin: 1, unless an interrupted one is finished.

        Parameters
        ----------
        event : plan, event or budget
            What the release costs.
        intent : str
            A checksum of what decides it.

        Returns
        -------
        int

        Raises
        ------
        LedgerError
            If the ledger is to finish a charge, and has none for this release.
        """
        with self._up_to_date():
            events = events_of_charge(self, event, None)
            return self._attempts.next(self._entries, events, intent)[1] if self.finish else 1

    def end(self, charge: int, attempt: int) -> None:
        """Mark that an attempt under a charge ends: before what it made, or its error, is seen. It cannot be finished then.

        Parameters
        ----------
        charge : int
            The number of the charge, such as `last_charge`.
        attempt : int
            The number of the attempt, such as `last_attempt`.

        Raises
        ------
        LedgerError
            If another attempt took the charge up meanwhile, or the ledger cannot be written. Then nothing may be shown.
        """
        with self._up_to_date(writing=True) as session:
            self._add(session, self._attempts.end(charge, attempt))

    def charge(
        self,
        budget: object,
        *,
        purpose: str = "",
        neighbours: Neighbours | str | None = None,
        details: Mapping[str, str] | None = None,
        cohort: str | None = None,
    ) -> None:
        """Record a charge, or raise and record nothing. When it returns, the charge is on the disk.

        Where a database does not answer, LedgerError says that the charge is in doubt: it counts if it was recorded.

        Parameters
        ----------
        budget : PureDP, ApproxDP, ZCDP, float, a plan, or an event of confide or dp_accounting
        purpose : str
            What it is for, in at most 10,000 characters; public, shown in `entries` with the time.
        neighbours : str, Neighbours or None
            The relation the release is private under; None means what a plan or an event says, or else the ledger's own.
        details : mapping or None
            What was bought, as texts: "release", "user", "model" (a file) and "sha256" (its checksum). Public like the
            purpose; they change no amount, and nothing checks that they are true. "intent", a checksum of what decides the
            release, is for releases of confide: whoever gives it calls `end` before the release is seen.
        cohort : str or None
            The one value of the column of cohorts that all rows have which the release may depend on. None: all rows.

        Raises
        ------
        BudgetExceeded
            If the total would exceed the limit. Nothing was charged.
        ParameterError
            If the purpose or a detail is too long, or `budget` is none of these.
        LedgerError
            If the charge has another neighbour relation, protects fewer rows of a person than `max_rows_per_person`, or has
            a currency that this ledger does not count; if the file or database is missing, damaged or in doubt, or if this
            is another process.
        """
        checked = checked_details({} if details is None else details, (*DETAILS, INTENT))
        self._append(events_of_charge(self, budget, neighbours), purpose, checked, cohort)

    def check(self, items: Iterable[object], purpose: str = "", cohort: str | None = None) -> None:
        """Raise what charging all these one after the other would raise. Records nothing, and promises nothing for later.

        Parameters
        ----------
        items : budgets, plans or events
        purpose : str
            What they are for, since the purpose may have a sub-limit.
        cohort : str or None
            The cohort that they concern alone, as in `charge`.

        Raises
        ------
        BudgetExceeded, LedgerError
            As in `charge`.
        """
        releases = [events_of_charge(self, item, None) for item in checked_list("items", items, "budgets")]
        if events := sum(releases, ()):
            with self._up_to_date():
                self._admitted(events, checked_purpose(purpose), {}, cohort)

    def sublimit(self, purpose: str, amount: float, *, per_year: bool = False) -> None:
        """Cap what all charges of one purpose may cost together, such as those of one study of several.

        A sub-limit reserves nothing, and takes nothing from the limit: both must admit a charge. It replaces an earlier one
        of the same purpose, and the earlier one stays among the records. No guarantee rests on it.

        Parameters
        ----------
        purpose : str
            Charges of this very purpose count, and those whose purpose goes on with ",", ":", " [" or " (", such as
            "Waiting times, release 2026-12" for "Waiting times".
        amount : float, above 0
            The most epsilon, or rho where the ledger has a rho, at the limit's delta.
        per_year : bool, default False
            Whether it holds for the charges of each calendar year (UTC) by themselves.

        Raises
        ------
        ParameterError
            If the purpose is blank or too long, or the amount is not positive or exceeds the limit.
        """
        cap = Sublimit(checked_purpose(purpose), with_amount(self.limit, amount), checked_flag("per_year", per_year))
        if not cap.purpose.strip() or cap.limit.amount > self.limit.amount:
            raise ParameterError("a sub-limit needs a purpose, and an amount of at most the limit of the ledger.")
        with self._up_to_date(writing=True) as session:
            self._add(session, cap.text)

    def sublimits(self) -> Any:
        """The sub-limits, a pandas frame: purpose, per_year, limit, spent and remaining, in epsilon or rho.

        What is spent of a sub-limit for each year is that of this year (UTC).
        """
        return frame_of(sublimits_of(self), columns=["purpose", "per_year", "limit", "spent", "remaining"])

    def note(self, charge: int, details: Mapping[str, str]) -> None:
        """Write down what became known of a charge after it was made, such as the checksum of a model. Changes no amount.

        Parameters
        ----------
        charge : int
            The number of the charge, for example `last_charge`.
        details : mapping
            "model" (a file) and "sha256" (its checksum), as texts. A note adds what is not known yet; it replaces nothing.

        Raises
        ------
        ParameterError
            If a detail has another name, or is no text.
        LedgerError
            If there is no such charge, or the charge or an earlier note says something else.

        Notes
        -----
        The record says nothing of when it was written: that would tell how long the release took.
        """
        checked = checked_details(details, NOTED)
        with self._up_to_date(writing=True) as session:
            if type(charge) is not int or not 1 <= charge <= len(self._entries):
                raise LedgerError(f"{self._records.path or 'this ledger'} has no charge of this number; see its entries.")
            if self._contradicts(charge, checked):
                raise LedgerError(wording("another note", charge=charge, names=" or ".join(checked)))
            self._add(session, note_text(charge, checked))

    def _known(self, charge: int) -> dict[str, str]:
        """The details of a charge, with what notes add to them."""
        return {**self._notes.get(charge, {}), **self._entries[charge - 1].details}

    def _contradicts(self, charge: int, details: Mapping[str, str]) -> bool:
        return any(self._known(charge).get(name, text) != text for name, text in details.items())

    def plan(self, items: Iterable[object], *, delta: float | None = None, purpose: str = "") -> Batch:
        """Charge releases that are all fixed beforehand, once, at their joint cost.

        Where epsilons and deltas add up under an ApproxDP limit, that is the epsilon of their joint privacy loss at `delta`:
        far below the sum for many Gaussian releases. Elsewhere it is their sum.

        Parameters
        ----------
        items : budgets, plans or events, one for each release
        delta : float or None
            What the batch takes of the limit's delta; None means all that is left.
        purpose : str
            What it is for; public.

        Returns
        -------
        Batch
            To be given to estimators as their `ledger`, or charged by hand, once for each item.

        Raises
        ------
        ParameterError
            If the batch is empty, or `delta` does not suit this ledger.
        BudgetExceeded, LedgerError
            As for `charge`. Nothing was charged.
        """
        releases = tuple(events_of_charge(self, item, None) for item in checked_list("items", items, "budgets"))
        events = tuple(event for release in releases for event in release)
        if not events:
            raise ParameterError("a plan needs at least one release that costs something.")
        if self.limit.is_approximate and self.accounting != "renyi":
            with self._up_to_date():
                left = filters.exact(self.limit.slack) - max(total.delta for total in filters.of_each(self._totals).values())
            delta = filters.rounded_down(left) if delta is None else ApproxDP(1.0, delta).delta
            if delta >= ApproxDP.ranges["delta"][0] and all(event.budget.is_private for event in events):
                events = filters.joint_events(self.limit, events, delta)
        elif delta is not None:
            raise ParameterError("delta is for ledgers that add epsilons and deltas under an ApproxDP limit; leave it out.")
        self._append(events, purpose, {})
        return Batch(self, releases)

    def spent(self, cohort: str | None = None) -> Budget:
        """What all charges cost a person with at most `max_rows_per_person` rows, in the currency of the limit.

        Parameters
        ----------
        cohort : str or None
            One cohort, for what its persons paid. None: the persons who paid most.

        Returns
        -------
        PureDP, ApproxDP or ZCDP

        Raises
        ------
        LedgerError
            If a cohort is named, and the ledger has none.
        """
        with self._up_to_date():
            return filters.shown(max, self._filter.spent, self._totals, self._named(cohort))

    def remaining(self, cohort: str | None = None) -> Budget:
        """What is left under the limit for everybody, in its currency.

        Parameters
        ----------
        cohort : str or None
            One cohort, for what is left for its persons, who pay what is charged to it and what is charged to everybody.

        Returns
        -------
        PureDP, ApproxDP or ZCDP

        Raises
        ------
        LedgerError
            If a cohort is named, and the ledger has none.
        """
        with self._up_to_date():
            return filters.shown(min, self._filter.remaining, self._totals, self._named(cohort))

    def _named(self, cohort: str | None) -> str | None:
        """The name by which a cohort counts, "1" for "01" too; refused where the ledger has none."""
        if cohort is not None and self.cohorts is None:
            raise LedgerError(wording("no cohorts"))
        return cohort if cohort is None else str(canonical_label(plain_label("cohort", cohort)))

    def entries(self) -> Any:
        """The charges in order, a pandas frame: number, time (UTC), purpose, epsilon, delta and rho (NaN where absent).

        "rows_per_person" is the most rows of one person that the release protects together. The last columns are the details
        of the charge, None where there are none: release, user, model and sha256.
        """
        return listed_charges(self)

    def verify(self, head: str | None = None) -> int:
        """Check every record anew, and that `head`, of this ledger at an earlier time, is the hash of one of them.

        Parameters
        ----------
        head : str or None
            What `head` was at an earlier time, 64 hexadecimal digits.

        Returns
        -------
        int
            The number of charges.

        Raises
        ------
        LedgerError
            If a record was changed or lost.
        """
        with self._up_to_date() as session:
            hashes, n_charges = [record.hash for record in session.records_after(None)], len(self._entries)
        if head is not None and not (is_text(head) and head in hashes):
            raise LedgerError(wording("no record has this head"))
        return n_charges

    def _append(
        self, events: tuple[Event, ...], purpose: str, details: Mapping[str, str], cohort: str | None = None
    ) -> None:
        said = checked_purpose(purpose)
        if not events:
            return  # the empty event of dp_accounting costs nothing
        with self._up_to_date(writing=True) as session:
            if self.finish:
                number, attempt = self._attempts.next(self._entries, events, details.get(INTENT))
                text = mark_text(number, attempt, ended=False)
            else:
                charge = self._admitted(events, said, details, cohort)
                number, attempt, text = charge.number, 1, text_of_charge(charge)
            self._add(session, text)
        self._of_thread.last_charge, self._of_thread.last_attempt = number, attempt

    def _admitted(self, events: tuple[Event, ...], purpose: str, details: Mapping[str, str], cohort: str | None) -> Entry:
        """The next charge. Raise unless it fits under the limit and those of its purpose."""
        accounting = self._accounting
        if accounting == "auto":  # the way that suits the currency of the first charge
            accounting = "renyi" if events[0].budget.is_concentrated else "sum"
        cohort = self._named(cohort)
        if filters.least_rows(events) < self.max_rows_per_person:
            protected = filters.least_rows(events)
            raise LedgerError(wording("fewer rows than of a ledger", own=self.max_rows_per_person, protected=protected))
        charge = Entry(len(self._entries) + 1, self.dated_like or now(), purpose, accounting, events, details, cohort)
        filters.refuse_excess(filters.filter_for(self.limit, accounting), self._totals, charge)
        for cap in self._sublimits.values():
            cap.refuse_excess(charge, self._entries)
        return charge

    @property
    def _accounting(self) -> str:
        return self._entries[0].accounting if self._entries else self._header.accounting

    @property
    def _filter(self) -> filters.Filter:
        return filters.filter_for(self.limit, self._accounting)  # "auto" is "sum" as long as there is no charge

    @contextmanager
    def _up_to_date(self, *, writing: bool = False) -> Iterator[Records]:
        """A session that begins by reading and checking the records added since the last session."""
        with self._records.session(writing=writing) as session:
            for record in session.records_after(self._last):
                self._count(record)
            if not all(map(self._filter.admits, filters.of_each(self._totals).values())):
                raise LedgerError(wording("charges exceed the limit", path=self._records.path))
            yield session

    def _add(self, session: Records, text: str) -> None:
        """Add a record for good, and count it at once: each later session sees to it that it still stands."""
        record = Record.after(self._last, text)
        session.append(record)
        self._count(record)

    def _forget(self) -> None:
        """Have counted nothing, so that the next session counts all records."""
        self._last: Record | None = None
        self._entries, self._notes = list[Entry](), dict[int, dict[str, str]]()
        self._attempts, self._sublimits = Attempts(), dict[str, Sublimit]()
        self._totals: filters.Totals = {}

    def _count(self, record: Record) -> None:
        try:
            if understood := self._take(record):
                self._last = record
        except (ArithmeticError, AttributeError, KeyError, RecursionError, TypeError, ValueError):
            understood = False
        except BaseException:
            # An interrupt may leave a record half counted. A file is refused then, and can be opened anew.
            if self._records.path is None:
                self._forget()
            raise
        if not understood:
            raise LedgerError(wording("record not understood", number=record.number, path=self._records.path))

    def _take(self, record: Record) -> bool:
        """Count a record. False unless this version would have written the same record."""
        if record.number == 0:
            self._header = Header.from_text(record.text)
            way = self._header.accounting
            return self._header.text == record.text and way == filters.accounting_for(self.limit, way)
        facts = json.loads(record.text)
        if "note_on" in facts:
            charge, details = facts["note_on"], checked_details(facts["details"], NOTED)
            is_on_charge = type(charge) is int and 1 <= charge <= len(self._entries)
            if note_text(charge, details) != record.text or not is_on_charge or self._contradicts(charge, details):
                return False
            self._notes[charge] = {**self._notes.get(charge, {}), **details}
            return True
        if "sublimit_on" in facts:
            cap = Sublimit.from_dict(facts, self.limit)
            self._sublimits[cap.purpose] = cap
            return cap.text == record.text
        if "mark_on" in facts:
            charge, attempt, ended = facts["mark_on"], facts["attempt"], facts["ended"]
            return mark_text(charge, attempt, ended=ended) == record.text and self._attempts.take(charge, attempt, ended)
        entry, number = Entry.from_text(record.text), len(self._entries) + 1
        if (entry.text, entry.number) != (record.text, number) or self._accounting not in ("auto", entry.accounting):
            return False
        is_known = entry.cohort is None or (self.cohorts is not None and canonical_label(entry.cohort) == entry.cohort)
        if filters.least_rows(entry.events) < self.max_rows_per_person or not is_known:
            return False
        self._totals = filters.with_charge(filters.filter_for(self.limit, entry.accounting), self._totals, entry)
        self._entries.append(entry)
        if INTENT in entry.details:
            self._attempts.begin(number)
        return True

    def __repr__(self) -> str:
        place = "in memory" if self._records.path is None else repr(str(self._records.path))
        unit = f"{self.neighbours}, max_rows_per_person={self.max_rows_per_person}"
        return f"<Ledger {place}: limit {filters.listed(self.limit.amounts)}, {unit}>"

    def __reduce__(self) -> tuple[Callable[..., Ledger], tuple[str, str, bool, str | None]]:
        if self._records.path is None:
            raise LedgerError(wording("ledger in memory pickled"))
        return _reopened, (str(self._records.path), self._header.identity, self.finish, self._last and self._last.hash)


def _reopened(path: str, identity: str, finish: bool = False, head: str | None = None) -> Ledger:
    """The ledger that was pickled, if its file is still the same and has all that it had."""
    ledger = Ledger(path, finish=finish)
    if ledger._header.identity != identity:
        raise LedgerError(f"{path} is another ledger than the one that was pickled. Put the right one back.")
    ledger.verify(head or None)
    return ledger
