"""The records of a ledger. They are chained by hashes and only ever appended, wherever they are kept.

This module keeps records in memory, `file_storage` in a file, and `database_storage` in a database. The ledger computes what
they cost together. Proof: proofs/ledger.md, section 8.
"""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self

from confide.errors import LedgerError, ParameterError, is_text, wording
from confide.privacy.budgets import Budget, Neighbours, budget_from_dict, shown_amounts
from confide.privacy.events import Event, checked_rows

FORMAT_VERSION = 3
"""The format of ledgers. No other is read."""

DETAILS = ("release", "user", "model", "sha256")
"""What may stand beside a charge: what was released, by whom, into which file, and the SHA-256 checksum of that file."""
INTENT = "intent"
"""The detail that says, as a checksum, what decides the release, so that an interrupted one can be finished."""
NOTED = ("model", "sha256")
"""What a note may add, where the charge does not say it."""
_LONGEST_DETAIL = 1000
_LONGEST_PURPOSE = 10_000


_Reentrant: Any = type(threading.RLock())


class _Turns(_Reentrant):  # type: ignore[misc]  # a class that is written in C
    """A lock that no thread gets twice while another waits, and that no interrupt leaves held.

    With a plain lock, a thread that asks again at once is served before those that wait, for minutes. An interrupt, such as
    Ctrl-C, is raised where a function of Python begins or after it called another. So the end of a `with` block must be no
    function of Python: `__exit__` is that of the class in C, and the thread that holds a lock of this class is known.

    Attributes
    ----------
    endings : what must be called at the end of the session that has its turn, the last first; to call it twice does no harm
    """

    def __init__(self) -> None:
        self._next = threading.Lock()
        self.endings: list[Callable[[], object]] = []

    def end(self) -> None:
        """End what the session opened. After an interrupt the next turn, or the next fork, ends the rest first.

        A connection that stayed open after the lock of its file was dropped could write over what others charged since.
        """
        while self.endings:
            self.endings[-1]()
            self.endings.pop()

    def before_fork(self) -> None:
        """Wait until no session of another thread goes on, and end what an interrupted one left."""
        goes_on = self._is_owned()
        self.acquire()
        if not goes_on:
            self.end()

    def forget(self) -> None:
        """Be free again, as in a process that was forked, which has none of the threads that held it or waited."""
        self._next = threading.Lock()
        self._at_fork_reinit()

    def __enter__(self) -> None:
        """Wait for a turn. One thread waits for the lock, and all others, who may have just had it, wait behind that one."""
        if self._is_owned():
            raise LedgerError(wording("ledger in use"))
        try:
            with self._next:
                self.acquire()
            self.end()
        except BaseException:
            if self._is_owned():
                self.release()
            raise


one_at_a_time = _Turns()
"""Held while any ledger of this process is read or written, so that no fork happens while a connection is open."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=one_at_a_time.before_fork, after_in_parent=one_at_a_time.release, after_in_child=one_at_a_time.forget
    )


@dataclass(frozen=True, slots=True)
class Header:
    """What is fixed when a ledger is created; record 0."""

    identity: str
    limit: Budget
    neighbours: Neighbours
    accounting: str
    max_rows_per_person: int
    format: int = FORMAT_VERSION
    cohorts: str | None = None

    def __post_init__(self) -> None:
        if not self.limit.is_private:
            raise ParameterError("the limit of a ledger must be finite.")
        counts_alone = self.neighbours is Neighbours.ADD_OR_REMOVE_ONE and self.max_rows_per_person == 1
        if self.cohorts is not None and not (counts_alone and is_text(self.cohorts) and self.cohorts.strip()):
            raise ParameterError(wording("cohorts need disjoint persons"))

    @property
    def text(self) -> str:
        """Canonical JSON."""
        facts = asdict(self) | {"limit": self.limit.to_dict()}
        if self.cohorts is None:
            del facts["cohorts"]
        return canonical(facts)

    @classmethod
    def from_text(cls, text: str) -> Header:
        """Read `text`."""
        facts = json.loads(text)
        neighbours = Neighbours.parse(facts["neighbours"])
        rows = checked_rows(facts["max_rows_per_person"])
        if type(facts["format"]) is not int or facts["format"] != FORMAT_VERSION:
            raise ValueError
        if not re.fullmatch("[0-9a-f]{32}", facts["identity"]) or facts["accounting"] not in ("auto", "sum", "renyi"):
            raise ValueError
        limit = budget_from_dict(facts["limit"])
        return cls(facts["identity"], limit, neighbours, facts["accounting"], rows, facts["format"], facts.get("cohorts"))

    def refuse_others(
        self, place: object, asked: Header | None, relation: Neighbours, rows: int, cohorts: str | None
    ) -> None:
        """Refuse to open a ledger that does not agree with what the caller asks for, or would create."""
        if asked is not None and asked.limit != self.limit:
            own, other = shown_amounts(self.limit), shown_amounts(asked.limit)
            raise LedgerError(wording("another limit", place=place, own=own, other=other))
        if relation is not self.neighbours and (asked is not None or relation is not Neighbours.REPLACE_ONE):
            raise LedgerError(wording("ledger of another relation", place=place, own=self.neighbours, other=relation))
        if rows > self.max_rows_per_person:
            raise LedgerError(wording("more rows than of a ledger", place=place, own=self.max_rows_per_person, rows=rows))
        if cohorts not in (None, self.cohorts):
            own = "no cohorts" if self.cohorts is None else f'cohorts by the column "{self.cohorts}"'
            raise LedgerError(f"{place} has {own}, fixed once. Leave cohorts out, or give another path.")


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge, for all or for one cohort alone. `accounting` is the way of adding, which the first charge fixed."""

    number: int
    time: str
    purpose: str
    accounting: str
    events: tuple[Event, ...]
    details: Mapping[str, str] = field(default_factory=dict)
    cohort: str | None = None

    @property
    def text(self) -> str:
        """Canonical JSON."""
        facts = {name: getattr(self, name) for name in ("number", "time", "purpose", "accounting")}
        details: dict[str, object] = {"details": dict(self.details)} if self.details else {}
        details |= {} if self.cohort is None else {"cohort": self.cohort}
        return canonical(facts | {"events": [event.to_dict() for event in self.events]} | details)

    @classmethod
    def from_text(cls, text: str) -> Entry:
        """Read `text`."""
        facts = json.loads(text)
        details = checked_details(facts.get("details", {}), (*DETAILS, INTENT))
        if type(facts["number"]) is not int or facts["accounting"] not in ("sum", "renyi") or not facts["events"]:
            raise ValueError
        if datetime.fromisoformat(facts["time"]).utcoffset() != timedelta(0) or not isinstance(facts["events"], list):
            raise ValueError
        for text in (facts["purpose"], facts.get("cohort", "")):
            text.encode()  # text, and without half a surrogate pair
        return cls(**facts | {"events": tuple(map(Event.from_dict, facts["events"])), "details": details})


def text_of_charge(entry: Entry) -> str:
    """The text of a charge, refused unless it can be read again: a record that cannot would close its ledger for good."""
    with suppress(ArithmeticError, AttributeError, KeyError, TypeError, ValueError):
        text = entry.text
        if Entry.from_text(text).text == text:
            return text
    raise ParameterError("this charge has an amount or a time that no ledger holds. Charge a budget. Nothing was charged.")


def note_text(charge: int, details: Mapping[str, str]) -> str:
    """The text of a note: what became known of a charge after it was recorded. It has no events, so it changes no amount.

    It has no time: the time from a charge to its note would tell how long the release took, which depends on the rows.
    """
    return canonical({"note_on": charge, "details": dict(details)})


def checked_details(details: Mapping[str, str], names: Sequence[str] = DETAILS) -> dict[str, str]:
    """The details, if their names are among these and each is a text that is not too long.

    Raises
    ------
    ParameterError
        If they are not.
    """
    if not isinstance(details, Mapping) or not set(details) <= set(names):
        what = "note" if names is NOTED else "charge"
        raise ParameterError(f"the details of a {what} may have the names {', '.join(names)}, and no other.")
    if not all(isinstance(text, str) and len(text) <= _LONGEST_DETAIL for text in details.values()):
        raise ParameterError(f"a detail of a charge must be a text of at most {_LONGEST_DETAIL} characters.")
    # Half a surrogate pair cannot be shown.
    return {name: text.encode(errors="replace").decode() for name, text in details.items()}


def checked_purpose(purpose: object) -> str:
    """A purpose as text, if it is not too long.

    Raises
    ------
    ParameterError
        If it is.
    """
    text = str(purpose)
    if len(text) > _LONGEST_PURPOSE:
        raise ParameterError(wording("long purpose", most=_LONGEST_PURPOSE, length=len(text)))
    return text.encode(errors="replace").decode()  # half a surrogate pair cannot be shown


def now() -> str:
    """The time, in whole seconds: the exact time between two charges would tell how long a fit took."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def current_user() -> str:
    """The name of the user, for the ledger; "unknown" where the system knows none."""
    try:
        return getpass.getuser()
    except (ImportError, KeyError, OSError):
        return "unknown"


class Record(NamedTuple):
    """A link of the chain; number 0 is the header."""

    number: int
    text: str
    hash: str

    @classmethod
    def after(cls, previous: Record | None, text: str) -> Record:
        """The record of `text` that follows another, or begins a chain."""
        content = f"{previous.hash if previous else ''}\n{text}"
        return cls(previous.number + 1 if previous else 0, text, hashlib.sha256(content.encode()).hexdigest())


# Where a chain is kept. `path` is where any process finds it again. `session` gives the records while nobody else changes
# them: `records_after` are those after `last`, or all, and it raises LedgerError unless `last` is still there and the chain
# holds from there on; `append` adds one, once in a session, as its last step, and when it returns, the record stays. A chain
# that outlives the process has `exists`, whether something is there already, a ledger or not, and `create`, which begins one
# unless something is: in one step, so that nobody sees half of it, and nothing is replaced. Its `name` is unique.


class RecordsInMemory:
    """Records that live as long as the process that made them."""

    path = None

    def __init__(self, header: str) -> None:
        self._records = [Record.after(None, header)]
        self._process = os.getpid()

    @contextmanager
    def session(self, *, writing: bool) -> Iterator[Self]:
        """Records, while nobody else changes them."""
        if writing and os.getpid() != self._process:
            raise LedgerError(wording("ledger in memory in another process"))
        with one_at_a_time:
            yield self

    def records_after(self, last: Record | None) -> list[Record]:
        return self._records[0 if last is None else last.number + 1 :]

    def append(self, record: Record) -> None:
        self._records.append(record)


def following(
    place: object, last: Record | None, rows: Sequence[Sequence[Any]], tip: Sequence[Sequence[Any]]
) -> list[Record]:
    """The records after `last`, among rows that begin with it, or all rows if it is None; refused unless the chain holds."""
    records = [Record(*row) for row in rows]
    if last is not None and records[:1] != [last]:
        raise damaged(place, "it is another ledger or an older copy, and lacks what this program read or wrote")
    new = records if last is None else records[1:]
    for record in new:
        if not isinstance(record.text, str) or record != Record.after(last, record.text):
            raise damaged(place, "a record does not follow from the one before")
        last = record
    if last is None or [tuple(row) for row in tip] != [(last.number, last.hash)]:
        raise damaged(place, "records are missing at its end")
    return new


def damaged(place: object, what: str) -> LedgerError:
    """The error for a ledger that was damaged or changed by hand."""
    return LedgerError(wording("ledger is damaged", place=place, what=what))


def canonical(facts: dict[str, Any]) -> str:
    """The text of a record: JSON that the same facts always give."""
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)
