"""The records of a ledger in a PostgreSQL database that several machines share.

Needs the extra `postgres`. SQLAlchemy reads the URL, connects and binds parameters; every statement is written here.
Proof of durability: proofs/ledger.md, section 9.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from confide.accounting.file_storage import RecordsInFile
from confide.accounting.records import Record, damaged, following, one_at_a_time
from confide.errors import LedgerError, ParameterError, imported, wording

if TYPE_CHECKING:
    from sqlalchemy import URL, Connection, Engine, Row


_PATIENCE = 60
"""Seconds to wait for other processes, or for a network that is silent."""

_OPTIONS = (
    r"host|port|passfile|service|connect_timeout|application_name|target_session_attrs|tcp_user_timeout|keepalives\w*"
    r"|ssl(mode|rootcert|cert|key|crl)|channel_binding|require_auth|gssencmode|krbsrvname"
)
"""The options of libpq that a URL may have. None is secret, and none changes a setting that durability rests on."""

_TABLES = (
    "CREATE TABLE {0}.records (number bigint PRIMARY KEY, text text NOT NULL, hash text NOT NULL)",
    "CREATE TABLE {0}.tip (number bigint NOT NULL, hash text NOT NULL)",
)
_FUNCTIONS = {
    "stay": "BEGIN RAISE EXCEPTION 'records stay, and there is one tip'; END",
    "in_order": (
        "BEGIN IF NEW.number IS DISTINCT FROM (SELECT number + 1 FROM {0}.tip) "
        "THEN RAISE EXCEPTION 'records are appended in order'; END IF; RETURN NEW; END"
    ),
}
_TRIGGERS = (
    "CREATE TRIGGER kept BEFORE DELETE OR UPDATE OR TRUNCATE ON {0}.records FOR EACH STATEMENT EXECUTE FUNCTION {0}.stay()",
    "CREATE TRIGGER one BEFORE INSERT OR DELETE OR TRUNCATE ON {0}.tip FOR EACH STATEMENT EXECUTE FUNCTION {0}.stay()",
    "CREATE TRIGGER appended BEFORE INSERT ON {0}.records FOR EACH ROW EXECUTE FUNCTION {0}.in_order()",
    "CREATE TRIGGER moves_on BEFORE UPDATE ON {0}.tip FOR EACH ROW EXECUTE FUNCTION {0}.in_order()",
)
_AS_CREATED = (
    # Permanent tables (p) without policies, rules, children or defaults, and triggers that fire (O).
    *("i records_pkey p f f f", "r records p f f f", "r tip p f f f"),
    *("records number bigint t f", "records text text t f", "records hash text t f"),
    *("tip number bigint t f", "tip hash text t f"),
    "CREATE UNIQUE INDEX records_pkey ON {0}.records USING btree (number)",
    *(f"{trigger} O" for trigger in _TRIGGERS),
    *(f"{name} {body}" for name, body in _FUNCTIONS.items()),
)
"""What `_CATALOG` finds in the schema of a ledger."""
_CATALOG = """
SELECT format('%s %s %s %s %s %s', relkind, relname, relpersistence, relrowsecurity, relhasrules, relhassubclass)
FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('{0}')
UNION ALL SELECT format('%s %s %s %s %s', relname, attname, format_type(atttypid, atttypmod), attnotnull, atthasdef)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute ON attrelid = c.oid
WHERE relnamespace = to_regnamespace('{0}') AND relkind <> 'i' AND attnum > 0
UNION ALL SELECT pg_get_indexdef(indexrelid) FROM pg_catalog.pg_class c JOIN pg_catalog.pg_index ON indexrelid = c.oid
WHERE relnamespace = to_regnamespace('{0}')
UNION ALL SELECT format('%s %s', pg_get_triggerdef(t.oid), tgenabled)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_trigger t ON tgrelid = c.oid
WHERE relnamespace = to_regnamespace('{0}') AND NOT tgisinternal
UNION ALL SELECT format('%s %s', proname, prosrc) FROM pg_catalog.pg_proc WHERE pronamespace = to_regnamespace('{0}')
"""

# They hold for one transaction and override server, database and role. With synchronous_commit, COMMIT returns after the log
# was synced. A client that falls silent while others wait is cut off before anything is committed.
_SETTINGS = {
    "search_path": "pg_catalog, pg_temp",
    "synchronous_commit": "on",
    "statement_timeout": "0",
    "lock_timeout": f"{_PATIENCE}s",
    "idle_in_transaction_session_timeout": f"{_PATIENCE // 2}s",
}
_NEEDED_OF_THE_SERVER = ("fsync", "full_page_writes")


def stored_records(path: str | os.PathLike[str]) -> RecordsInFile | RecordsInDatabase:
    """The records at a path or URL."""
    # Whatever looks like a URL is read as one, also if pathlib made one slash of two. As a path it would be shown with its
    # password.
    return RecordsInDatabase(str(path)) if re.match(r"\w[\w+.-]+:/", str(path)) else RecordsInFile(path)


class RecordsInDatabase:
    """Records in two tables of a schema of their own. Each session is a connection and a transaction."""

    _session: Connection

    def __init__(self, url: str) -> None:
        self.path = url
        self._url, self._schema = _read(url)

    @cached_property
    def _engine(self) -> Engine:
        import sqlalchemy

        options = {"connect_timeout": _PATIENCE, "tcp_user_timeout": 1000 * _PATIENCE, "keepalives_idle": _PATIENCE}
        asked: Any = {name: value for name, value in options.items() if name not in self._url.query}
        # With autocommit SQLAlchemy adds no statements of its own. Text is UTF-8, whatever encoding the server has.
        how: Any = {"poolclass": sqlalchemy.NullPool, "isolation_level": "AUTOCOMMIT"}
        return sqlalchemy.create_engine(self._url, **how, connect_args=asked | {"client_encoding": "utf8"})

    def exists(self) -> bool:
        with self._connected():
            return self._is_there()

    def create(self, header: str, name: str) -> None:
        first = Record.after(None, header)
        with self._connected():
            if self._is_there():
                return
            self._begin("READ COMMITTED READ WRITE")
            try:
                self._run("CREATE SCHEMA {0}")
            except LedgerError:
                # Another process may have been faster. If not, opening says that there is no ledger.
                self._run("ROLLBACK")
                if self._is_there():
                    return
                raise
            for table in _TABLES:
                self._run(table)
            self._run("INSERT INTO {0}.records VALUES (:number, :text, :hash)", first._asdict())
            self._run("INSERT INTO {0}.tip VALUES (:number, :hash)", first._asdict())
            for function, body in _FUNCTIONS.items():
                self._run(f"CREATE FUNCTION {{0}}.{function}() RETURNS trigger LANGUAGE plpgsql AS $${body}$$")
            for trigger in _TRIGGERS:
                self._run(trigger)
            self._commit(first)

    @contextmanager
    def session(self, *, writing: bool) -> Iterator[Self]:
        with self._connected():
            # A reader sees the state at one moment. A writer sees everything that others committed before it got the lock.
            self._begin("READ COMMITTED READ WRITE" if writing else "REPEATABLE READ READ ONLY")
            columns = {row[0] for row in self._run(_CATALOG)}
            if not columns:
                raise LedgerError(wording("no ledger in the database", path=self.path))
            if columns != {text.format(self._schema) for text in _AS_CREATED}:
                raise damaged(self.path, "its tables, triggers or functions are not those of a ledger")
            if writing:
                self._run("SELECT FROM {0}.tip FOR UPDATE")
            yield self

    @contextmanager
    def _connected(self) -> Iterator[None]:
        with one_at_a_time:
            with _explained(self.path):
                self._session = connection = self._engine.connect()
            # Invalidating a connection closes it, and the server rolls back what was not committed.
            one_at_a_time.endings += [connection.close, connection.invalidate]
            try:
                yield
            finally:
                one_at_a_time.end()

    def _run(self, statement: str, values: dict[str, Any] | None = None) -> list[Row[Any]]:
        """The rows of a statement. What fails here fails before COMMIT was sent, so nothing was charged."""
        import sqlalchemy

        with _explained(self.path):
            result = self._session.execute(sqlalchemy.text(statement.format(self._schema)), values or {})
            return list(result) if result.returns_rows else []

    def _is_there(self) -> bool:
        return bool(self._run("SELECT WHERE pg_catalog.to_regnamespace('{0}') IS NOT NULL"))

    def _begin(self, kind: str) -> None:
        self._run(f"BEGIN ISOLATION LEVEL {kind}")
        settings = ", ".join(f"set_config('{name}', '{value}', true)" for name, value in _SETTINGS.items())
        self._run(f"SELECT {settings}")
        if kind.endswith("READ ONLY"):
            return
        checked = (*_NEEDED_OF_THE_SERVER, "synchronous_commit")
        rows = self._run(f"SELECT {', '.join(f'current_setting({name!r})' for name in checked)}")
        off = [name for name, value in zip(checked, rows[0], strict=True) if value != "on"]
        if off:
            raise LedgerError(wording("database may lose charges", path=self.path, off=" and ".join(off)))

    def _commit(self, last: Record) -> None:
        """Commit, then check from outside of the transaction that its last record is there."""
        import sqlalchemy

        try:
            self._session.exec_driver_sql("COMMIT")
            query = f"SELECT hash FROM {self._schema}.records WHERE number = :number"  # noqa: S608 - a checked name
            stored_hash = self._session.execute(sqlalchemy.text(query), {"number": last.number}).scalar()
        except Exception:  # noqa: BLE001 - whatever it is, the answer to COMMIT is not known
            stored_hash = None
        if stored_hash != last.hash:
            raise LedgerError(wording("database did not confirm", path=self.path))

    def records_after(self, last: Record | None) -> list[Record]:
        query = "SELECT number, text, hash FROM {0}.records WHERE number >= :first ORDER BY number"
        rows = self._run(query, {"first": -(2**63) if last is None else last.number})
        return following(self.path, last, rows, self._run("SELECT number, hash FROM {0}.tip"))

    def append(self, record: Record) -> None:
        self._run("INSERT INTO {0}.records VALUES (:number, :text, :hash)", record._asdict())
        move = "UPDATE {0}.tip SET number = :number, hash = :hash WHERE number = :number - 1 RETURNING number"
        if len(self._run(move, record._asdict())) != 1:
            raise damaged(self.path, "its tip moved while it was locked")
        self._commit(record)


def _read(url: str) -> tuple[URL, str]:
    """The URL as SQLAlchemy wants it, and the schema. Messages do not repeat it: it may hold a password."""
    imported("psycopg", "a ledger in PostgreSQL", "postgres")  # SQLAlchemy imports it by its name
    sqlalchemy: Any = imported("sqlalchemy", "a ledger in PostgreSQL", "postgres")
    parsed = None
    with suppress(sqlalchemy.exc.ArgumentError, ValueError):
        parsed = sqlalchemy.make_url(url) if url.startswith("postgresql://") else None
    if parsed is None or not parsed.database:
        raise ParameterError(wording("ledger is a file or a URL"))
    query = dict(parsed.query)
    schema = query.pop("schema", "confide_ledger")
    if parsed.password is not None or not all(re.fullmatch(_OPTIONS, name) for name in query):
        raise ParameterError(wording("password in the URL of a ledger"))
    if not isinstance(schema, str) or not re.fullmatch(r"(?!pg_)[a-z_][a-z0-9_]{0,62}", schema):
        raise ParameterError("schema must be a name of at most 63 small letters, digits and _, not beginning with pg_.")
    return parsed.set(drivername="postgresql+psycopg", query=query), schema


_CAUSES = {
    ("55P03", "57014", "40"): f"is held by another process for more than {_PATIENCE} seconds. Try again later",
    ("42501",): wording("database lacks rights"),
    ("25006", "0A000"): "is on a server that can only be read, such as a standby. Give the URL of the primary server",
    ("53", "58", "XX"): "cannot be written: its disk is full or fails, or the server is overloaded",
    ("P0001", "22", "23", "42"): "refuses what belongs into a ledger, so it was changed by hand. Put back the newest copy",
}


@contextmanager
def _explained(place: str) -> Iterator[None]:
    """Raise LedgerError with advice in place of the errors of the driver."""
    from sqlalchemy.exc import DBAPIError, SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, UnicodeDecodeError) as error:
        code = (getattr(error.orig, "sqlstate", None) or "") if isinstance(error, DBAPIError) else "22"
        cause = next((cause for codes, cause in _CAUSES.items() if code.startswith(codes)), None)
        if cause is None:
            cause = wording("database cannot be reached")
        raise LedgerError(f"{place}: the ledger {cause}. Nothing was used or charged.") from None
