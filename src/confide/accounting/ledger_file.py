"""The records of a ledger and where they are kept: in memory, or in one SQLite file that several processes share.

Records are chained by hashes and only ever appended. What they cost together is for the ledger to say.
Proof of durability: proofs/ledger.md, section 8.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from confide.accounting.events import Event
from confide.errors import LedgerError, ParameterError
from confide.privacy.budgets import Budget, Neighbours, budget_from_dict

if TYPE_CHECKING:
    import sqlite3

FORMAT_VERSION = 1
_APPLICATION_ID = 0x636F6E66  # "conf"
_PATIENCE = 60.0
"""Seconds to wait for other processes."""

_ALONE = "ro&immutable=1"
"""SQLite then reads the file without its log and without locks; whether somebody else wrote meanwhile is for us to see."""

_SCHEMA = (
    "CREATE TABLE records (number INTEGER PRIMARY KEY, text TEXT NOT NULL, hash TEXT NOT NULL)",
    # A second copy of where the chain ends, so that a lost last record is seen.
    "CREATE TABLE tip (number INTEGER NOT NULL, hash TEXT NOT NULL)",
    (
        "CREATE TRIGGER records_are_appended BEFORE INSERT ON records WHEN NEW.number IS NOT (SELECT number + 1 FROM tip) "
        "BEGIN SELECT RAISE(ABORT, 'records are appended in order'); END"
    ),
    "CREATE TRIGGER records_are_not_changed BEFORE UPDATE ON records BEGIN SELECT RAISE(ABORT, 'records stay'); END",
    "CREATE TRIGGER records_are_not_deleted BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'records stay'); END",
    "CREATE TRIGGER tip_is_one_row BEFORE INSERT ON tip BEGIN SELECT RAISE(ABORT, 'there is one tip'); END",
    (
        "CREATE TRIGGER tip_moves_on BEFORE UPDATE ON tip WHEN NEW.number IS NOT OLD.number + 1 "
        "BEGIN SELECT RAISE(ABORT, 'the tip moves on by one'); END"
    ),
    "CREATE TRIGGER tip_is_not_deleted BEFORE DELETE ON tip BEGIN SELECT RAISE(ABORT, 'there is one tip'); END",
)

_PRAGMAS = (
    "synchronous = EXTRA",  # in write-ahead mode: the log is synced before COMMIT returns
    "fullfsync = ON",  # on macOS, fsync alone leaves the data in the drive's cache
    "checkpoint_fullfsync = ON",
    # The log is moved into the file by the last connection to close, alone. Before SQLite 3.51.3, a checkpoint while others
    # write can lose commits ("WAL-reset bug").
    "wal_autocheckpoint = 0",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)

_lock = threading.Lock()
"""Held while any ledger of this process is read or written. SQLite does not survive a fork with an open connection."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@dataclass(frozen=True, slots=True)
class Header:
    """What is fixed when a ledger is created; record 0."""

    identity: str
    limit: Budget
    neighbours: Neighbours
    accounting: str

    @property
    def text(self) -> str:
        """Canonical JSON."""
        facts = {"format": FORMAT_VERSION, "identity": self.identity, "limit": self.limit.to_dict()}
        return _canonical(facts | {"neighbours": str(self.neighbours), "accounting": self.accounting})

    @classmethod
    def from_text(cls, text: str) -> Header:
        """Read `text`."""
        facts = json.loads(text)
        neighbours = Neighbours.parse(facts["neighbours"])
        return cls(facts["identity"], budget_from_dict(facts["limit"]), neighbours, facts["accounting"])


@dataclass(frozen=True, slots=True)
class Entry:
    """One charge. `accounting` is the way of adding, which the first charge fixed for all."""

    number: int
    time: str
    purpose: str
    accounting: str
    events: tuple[Event, ...]

    @property
    def text(self) -> str:
        """Canonical JSON."""
        facts = {name: getattr(self, name) for name in ("number", "time", "purpose", "accounting")}
        return _canonical(facts | {"events": [event.to_dict() for event in self.events]})

    @classmethod
    def from_text(cls, text: str) -> Entry:
        """Read `text`."""
        facts = json.loads(text)
        return cls(**facts | {"events": tuple(map(Event.from_dict, facts["events"]))})


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


class Session(Protocol):
    """Records, while nobody else changes them."""

    def records_after(self, last: Record | None) -> list[Record]:
        """What follows `last`, or everything; LedgerError unless `last` still stands and the chain holds from there on."""

    def append(self, record: Record) -> None:
        """Add a record. It is there to stay once the session has ended without an exception."""


class RecordsInMemory:
    """Records that live as long as the process that made them."""

    path = None

    def __init__(self, header: str) -> None:
        self._records = [Record.after(None, header)]
        self._process = os.getpid()

    @contextmanager
    def session(self, *, writing: bool) -> Iterator[Session]:
        """Records, while nobody else changes them."""
        if writing and os.getpid() != self._process:
            raise LedgerError(
                "an in-memory ledger cannot be charged from another process: its charges would be lost. Use a ledger in a "
                "file, confide.Ledger(path, limit=...). Nothing was used or charged."
            )
        with _lock:
            yield self

    def records_after(self, last: Record | None) -> list[Record]:
        return self._records[0 if last is None else last.number + 1 :]

    def append(self, record: Record) -> None:
        self._records.append(record)


class RecordsInFile:
    """Records in an SQLite file with a write-ahead log.

    A connection lives as long as one session: between charges the file is whole without its log, and no connection is
    carried into a forked process.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.path = Path(path).resolve()
        except (TypeError, ValueError, RuntimeError, OSError):
            raise ParameterError("the path of a ledger must be the name of a file.") from None

    def create(self, header: str, name: str) -> None:
        """Begin a chain, unless the file is there already. In one step: nobody sees half a file, and none is replaced.

        `name` makes the temporary file's name unique.
        """
        # A log that a deleted ledger left behind would be taken for that of the new one. The log is looked for first: of a
        # ledger that another process creates meanwhile, the file comes before the log.
        log_is_there = os.path.lexists(f"{self.path}-wal")
        if os.path.lexists(self.path):
            return
        if log_is_there:
            raise LedgerError(
                f"{self.path} is missing, but {self.path.name}-wal is there, which may hold its last charges. Put the "
                f"ledger back beside it, or choose another name for a new one."
            )
        new = self.path.with_name(f".{self.path.name}.{name}.part")
        try:
            with _lock, _explained(self.path), closing(_connection(new, "rwc")) as connection:
                for statement in (f"PRAGMA application_id = {_APPLICATION_ID}", f"PRAGMA user_version = {FORMAT_VERSION}"):
                    connection.execute(statement)
                connection.execute("BEGIN")
                for table in _SCHEMA[:2]:
                    connection.execute(table)
                first = Record.after(None, header)
                connection.execute("INSERT INTO records VALUES (?, ?, ?)", first)
                connection.execute("INSERT INTO tip VALUES (?, ?)", (first.number, first.hash))
                for trigger in _SCHEMA[2:]:
                    connection.execute(trigger)
                connection.execute("COMMIT")
                connection.execute("PRAGMA journal_mode = WAL")
            with suppress(FileExistsError):  # another process was faster
                self.path.hardlink_to(new)
            new.unlink()
            _sync_folder(self.path.parent)
        except OSError as error:
            raise LedgerError(f"{self.path} cannot be created: {error.strerror}. Use a folder on a local disk.") from None
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)

    @contextmanager
    def session(self, *, writing: bool) -> Iterator[Session]:
        """Records, while nobody else changes them."""
        try:
            status = self.path.stat()
        except OSError:
            status = None
        if status is None or not stat.S_ISREG(status.st_mode):
            raise LedgerError(
                f"{self.path} is missing, or is not a file that this user may see. If it was moved, bring it back: a new "
                f"one would not know what was spent. The first is made by confide.Ledger(path, limit=...) or `confide "
                f"ledger init`."
            )
        if status.st_size == 0:
            raise self.damaged("it is empty")
        mode = "rw" if writing or self._is_writable() else self._reading_mode()
        with _lock, _explained(self.path), closing(_connection(self.path, mode)) as connection:
            connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
            self._check_kind(connection)
            yield _FileSession(self, connection)
            connection.execute("COMMIT")
        if mode == _ALONE and (self._log_is_there() or self._last_change() != _moment(status)):
            raise LedgerError(f"{self.path} was charged by another user while it was read. Try again.")

    def _is_writable(self) -> bool:
        return os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK)

    def _reading_mode(self) -> str:
        """How a user who may not write can read: with the log, if there is one, and otherwise this file alone."""
        return "ro" if self._log_is_there() else _ALONE

    def _log_is_there(self) -> bool:
        return os.path.lexists(f"{self.path}-wal")

    def _last_change(self) -> tuple[int, int, int]:
        return _moment(self.path.stat())

    def damaged(self, what: str) -> LedgerError:
        """The refusal of a file that is not as it was left."""
        return LedgerError(
            f"{self.path} is damaged or was changed by hand: {what}. Nothing was used or charged. Put back the newest "
            f"copy; a new ledger would not know what was spent."
        )

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        if _single(connection, "PRAGMA application_id") != _APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger of confide. Give the path of a ledger, or a new name.")
        if _single(connection, "PRAGMA user_version") != FORMAT_VERSION:
            raise LedgerError(
                f"{self.path} has a format that this version of confide does not understand (it reads {FORMAT_VERSION}). "
                f"Use the version that wrote it, or a newer one."
            )
        if {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")} != set(_SCHEMA):
            raise self.damaged("its tables or triggers are not those of a ledger")


class _FileSession:
    def __init__(self, file: RecordsInFile, connection: sqlite3.Connection) -> None:
        self._file = file
        self._connection = connection

    def records_after(self, last: Record | None) -> list[Record]:
        if last is None and _single(self._connection, "PRAGMA integrity_check") != "ok":
            raise self._file.damaged("SQLite finds it inconsistent")
        first = -(2**63) if last is None else last.number
        query = "SELECT number, text, hash FROM records WHERE number >= ? ORDER BY number"
        records = [Record(*row) for row in self._connection.execute(query, (first,))]
        if last is not None and records[:1] != [last]:
            raise self._file.damaged("it is another ledger, or an older copy, than it was before")
        new = records if last is None else records[1:]
        for record in new:
            if not isinstance(record.text, str) or record != Record.after(last, record.text):
                raise self._file.damaged("a record does not follow from the one before")
            last = record
        if last is None or list(self._connection.execute("SELECT number, hash FROM tip")) != [(last.number, last.hash)]:
            raise self._file.damaged("records are missing at its end")
        return new

    def append(self, record: Record) -> None:
        self._connection.execute("INSERT INTO records VALUES (?, ?, ?)", record)
        self._connection.execute("UPDATE tip SET number = ?, hash = ?", (record.number, record.hash))


def _moment(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_mtime_ns, status.st_size


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    import sqlite3

    # As a URI, because the plain form would create a missing file.
    connection = sqlite3.connect(f"{path.as_uri()}?mode={mode}", uri=True, timeout=_PATIENCE, isolation_level=None)
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _canonical(facts: dict[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _single(connection: sqlite3.Connection, query: str) -> object:
    return connection.execute(query).fetchone()[0]


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_CAUSES = {
    ("SQLITE_BUSY", "SQLITE_LOCKED"): f"is held by another process for more than {_PATIENCE:g} seconds. Try again later",
    ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"): (
        "cannot be opened. To charge it, or to show it while others charge it, this user needs to write to the file and to "
        "its folder, which must exist and be on a local disk"
    ),
    ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOLFS"): (
        "cannot be read or written: the disk is full, fails, or is not a local one. A charge that was being written counts, "
        "if it is there afterwards"
    ),
}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """LedgerError with advice in place of what SQLite raises."""
    import sqlite3

    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the second where SQLite quotes what it cannot read
        name = getattr(error, "sqlite_errorname", None) or ""
        cause = next((cause for names, cause in _CAUSES.items() if name.startswith(names)), None)
        if cause is None:
            cause = "is damaged, or is not a ledger of confide. Put back the newest copy, or give the path of a ledger"
        raise LedgerError(f"{path} {cause}. Nothing was used.") from None
