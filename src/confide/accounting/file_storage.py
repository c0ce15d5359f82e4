"""The records of a ledger in one SQLite file that several processes share.

Proof of durability: proofs/ledger.md, section 8.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from glob import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from confide.accounting.records import FORMAT_VERSION, Record, damaged, following, one_at_a_time
from confide.errors import LedgerError, ParameterError, wording
from confide.threads import IS_WINDOWS, lock

if TYPE_CHECKING:
    import sqlite3


_APPLICATION_ID = 0x636F6E66  # "conf"
_MAGIC, _MAGIC_OF_LOGS = b"SQLite format 3\0", (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")
_PATIENCE = 60.0
"""Seconds to wait for other processes."""
_PAUSE = 0.001
"""Seconds between two attempts to lock a file, at first; they grow to 5 times as many (benchmarks/ledger_rate.py)."""
_MOUNTS = Path("/proc/self/mountinfo")
_ALONE = "ro&immutable=1"
"""SQLite then reads the file without its log and without locks. The session checks whether somebody else wrote meanwhile."""
_COPIED = "rw&copied=1"
"""A crash may leave a log without its index. Then file and log are copied to a folder in which an index may be made."""

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
    # The log is moved into the file by a connection that closes, alone. Before SQLite 3.51.3, a checkpoint while others
    # write can lose commits ("WAL-reset bug").
    "wal_autocheckpoint = 0",
    "trusted_schema = OFF",
    "cell_size_check = ON",
)


def belongs_to_ledger(path: Path) -> bool:
    """Whether a file is a ledger or has the name of a log of one; also a log whose ledger is gone.

    Raises
    ------
    OSError
        If a file that is there cannot be read.
    """
    ledgers = [path.with_name(path.name.removesuffix(ending)) for ending in ("", "-wal", "-shm", "-journal")]
    existing = {place for place in ledgers if place.is_file()}
    if not existing:
        return False
    # Where this process closes a file, the system drops the locks that another thread may have on it.
    beginnings = {}
    for place in existing:
        with one_at_a_time, place.open("rb") as opened:
            beginnings[place] = opened.read(72)
    kind = _APPLICATION_ID.to_bytes(4, "big")
    is_ledger = any(text[:16] == _MAGIC and text[68:] == kind for text in beginnings.values())
    return is_ledger or beginnings.get(path, b"")[:4] in _MAGIC_OF_LOGS


class RecordsInFile:
    """Records in an SQLite file with a write-ahead log.

    A connection lives as long as one session, and a session that may write has the file to itself: between charges the file
    is whole without its log, and no connection is carried into a forked process.
    """

    _session: sqlite3.Connection

    def __init__(self, path: str | os.PathLike[str]) -> None:
        try:
            self.path = Path(path).resolve()
        except (TypeError, ValueError, RuntimeError, OSError):
            raise ParameterError("the path of a ledger must be the name of a file.") from None

    def exists(self) -> bool:
        return os.path.lexists(self.path)

    def create(self, header: str, name: str) -> None:
        # SQLite would take a log that a deleted ledger left behind for the log of the new one. The log is looked for first,
        # since a ledger that another process creates meanwhile has its file before its log.
        log_is_there = os.path.lexists(f"{self.path}-wal")
        if self.exists():
            return
        if log_is_there:
            raise LedgerError(wording("log of a ledger alone", path=self.path, name=self.path.name))
        new = self.path.with_name(f".{self.path.name}.{name}.part")
        try:
            with _explained(self.path), one_at_a_time:
                try:
                    _write_new(_connection(new, "rwc"), Record.after(None, header))
                finally:
                    one_at_a_time.end()
            # Whoever finds the file has to wait for its lock until it has one name.
            with one_at_a_time:
                try:
                    with suppress(FileExistsError):  # another process was faster
                        if IS_WINDOWS:  # a file that is open cannot be removed, and a rename replaces none
                            new.rename(self.path)
                        else:
                            _lock(new)
                            self.path.hardlink_to(new)
                    new.unlink(missing_ok=True)
                finally:
                    one_at_a_time.end()
            if not IS_WINDOWS:  # there no folder can be opened
                _sync_folder(self.path.parent)
        except OSError as error:
            raise LedgerError(f"{self.path} cannot be created: {error.strerror}. Use a folder on a local disk.") from None
        finally:
            with suppress(OSError):
                new.unlink(missing_ok=True)

    @contextmanager
    def session(self, *, writing: bool) -> Iterator[Self]:
        """Records, while nobody else changes them."""
        status = self._status()
        if status is None or not stat.S_ISREG(status.st_mode):
            raise LedgerError(wording("ledger is missing", path=self.path))
        if status.st_size == 0:
            raise damaged(self.path, "it is empty")
        before, mode = self._content(), "rw" if writing else self._mode_of_reading()
        with _explained(self.path), one_at_a_time, TemporaryDirectory() if mode == _COPIED else nullcontext() as folder:
            try:
                if mode == "rw":
                    _lock(self.path)
                self._session = connection = _connection(self._place(folder), mode)
                self._refuse_second_name()
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                self._check_kind(connection)
                yield self
                if connection.in_transaction:  # nothing was appended
                    connection.execute("COMMIT")
            finally:
                one_at_a_time.end()
        if mode in (_ALONE, _COPIED) and self._content() != before:
            raise LedgerError(f"{self.path} was charged by another user while it was read. Try again.")

    def _refuse_second_name(self) -> None:
        """Each name of a file has a log of its own, and a charge in the log of one name is not seen by the other."""
        status = self._status()
        if status is not None and status.st_nlink > 1:
            raise LedgerError(wording("ledger with a second name", path=self.path))
        if _is_mount(self.path):
            raise LedgerError(wording("ledger mounted by itself", path=self.path))

    def _mode_of_reading(self) -> str:
        """A user who may not write must not leave a log or its index behind, since nobody else could write to them."""
        effective = os.access in os.supports_effective_ids
        if all(os.access(place, os.W_OK, effective_ids=effective) for place in (self.path, self.path.parent)):
            return "rw"
        return _ALONE if len(self._content()) == 1 else _COPIED if self._status("-shm") is None else "ro"

    def _content(self) -> list[tuple[int, int, int]]:
        """Marks of the file, and of its log if there is one. As long as they stay the same, nobody writes."""
        statuses = [self._status(ending) for ending in ("", "-wal")]
        return [(status.st_ino, status.st_mtime_ns, status.st_size) for status in statuses if status and status.st_size > 0]

    def _place(self, folder: str | None) -> Path:
        """The file that is opened: that of the ledger, or its copy in a folder, together with that of its log."""
        place = self.path
        for ending in ("-wal", "") if folder else ():
            place = Path(shutil.copyfile(f"{self.path}{ending}", f"{folder}/ledger{ending}"))
        return place

    def _status(self, ending: str = "") -> os.stat_result | None:
        try:
            return self.path.with_name(self.path.name + ending).stat()
        except OSError:
            return None

    def _check_kind(self, connection: sqlite3.Connection) -> None:
        names = ("application_id", "user_version")
        kind, version = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in names)
        if kind != _APPLICATION_ID:
            raise LedgerError(f"{self.path} is not a ledger of confide. Give the path of a ledger, or a new name.")
        if version != FORMAT_VERSION:
            raise LedgerError(wording("ledger of another format", path=self.path, format_version=FORMAT_VERSION))
        if {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master")} != set(_SCHEMA):
            raise damaged(self.path, "its tables or triggers are not those of a ledger")

    def records_after(self, last: Record | None) -> list[Record]:
        if last is None and self._session.execute("PRAGMA integrity_check").fetchone()[0] != "ok":
            raise damaged(self.path, "SQLite finds it inconsistent")
        first = -(2**63) if last is None else last.number
        query = "SELECT number, text, hash FROM records WHERE number >= ? ORDER BY number"
        rows = self._session.execute(query, (first,)).fetchall()
        return following(self.path, last, rows, self._session.execute("SELECT number, hash FROM tip").fetchall())

    def append(self, record: Record) -> None:
        self._session.execute("INSERT INTO records VALUES (?, ?, ?)", record)
        self._session.execute("UPDATE tip SET number = ?, hash = ?", (record.number, record.hash))
        self._session.execute("COMMIT")


def _lock(path: Path) -> None:
    """Lock a file for this process until its turn ends, by whatever name others open it.

    It is taken before SQLite opens the file. The system drops it, with SQLite's own, as soon as this process closes the
    file anywhere, as a copy in another thread does. The second lock belongs to this opening, and holds until it is closed.
    """
    deadline, pause = time.monotonic() + _PATIENCE, _PAUSE
    while True:
        file = path.open("r+b", buffering=0)
        one_at_a_time.endings.append(file.close)
        try:
            lock(file.fileno(), for_process=True)
            if not IS_WINDOWS:  # where the first lock belongs to this opening
                lock(file.fileno())
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                break
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise LedgerError(f"{path} {_CAUSES[_BUSY]}. Nothing was used.") from None
        one_at_a_time.end()
        time.sleep(pause)
        pause = min(1.5 * pause, 5.0 * _PAUSE)
    if os.fstat(file.fileno()).st_nlink > 1:
        # A process that died while it created the ledger left the name under which it had begun.
        for part in path.parent.glob(f".{escape(path.name)}.*.part"):
            if os.path.samestat(part.stat(), os.fstat(file.fileno())):
                part.unlink()


def _is_mount(path: Path) -> bool:
    """Whether a file is mounted by itself; False where the system does not say."""
    try:
        mounts = _MOUNTS.read_bytes()
    except OSError:
        return False
    name = re.sub(rb"[ \t\n\\]", lambda letter: b"\\%03o" % ord(letter[0]), os.fsencode(path))
    # Nearly always the name is nowhere, and then no line is taken apart.
    return name in mounts and any(mount.split(b" ")[4] == name for mount in mounts.splitlines())


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    """A connection until the turn of this process ends. What an interrupt leaves open, another thread may have to close."""
    import sqlite3

    # As a URI, because the plain form would create a missing file.
    place = f"{path.as_uri()}?mode={mode}"
    connection = sqlite3.connect(place, timeout=_PATIENCE, isolation_level=None, check_same_thread=False, uri=True)
    one_at_a_time.endings.append(connection.close)
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _write_new(connection: sqlite3.Connection, first: Record) -> None:
    """Write the tables of a ledger and its first record."""
    for statement in (f"PRAGMA application_id = {_APPLICATION_ID}", f"PRAGMA user_version = {FORMAT_VERSION}"):
        connection.execute(statement)
    connection.execute("BEGIN")
    for table in _SCHEMA[:2]:
        connection.execute(table)
    connection.execute("INSERT INTO records VALUES (?, ?, ?)", first)
    connection.execute("INSERT INTO tip VALUES (?, ?)", (first.number, first.hash))
    for trigger in _SCHEMA[2:]:
        connection.execute(trigger)
    connection.execute("COMMIT")
    connection.execute("PRAGMA journal_mode = WAL")


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED")
_CAUSES = {
    _BUSY: f"is held by another process for more than {_PATIENCE:g} seconds. Try again later",
    ("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM"): wording("ledger cannot be opened"),
    ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_NOLFS"): wording("ledger cannot be read"),
}


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Raise LedgerError with advice in place of the errors of SQLite."""
    import sqlite3

    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:  # the last where SQLite quotes what it cannot read
        name = "SQLITE_CANTOPEN" if isinstance(error, OSError) else getattr(error, "sqlite_errorname", None) or ""
        cause = next((cause for names, cause in _CAUSES.items() if name.startswith(names)), None)
        if cause is None:
            cause = "is damaged, or is not a ledger of confide. Put back the newest copy, or give the path of a ledger"
        raise LedgerError(f"{path} {cause}. Nothing was used.") from None
