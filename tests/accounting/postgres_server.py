"""A PostgreSQL server of the tests' own: in a temporary folder, on 127.0.0.1 alone, with fsync on."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PACKAGES = ("sqlalchemy", "psycopg")
PROGRAMS = ("initdb", "postgres")
PLACES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


def reason_to_skip() -> str | None:
    """What is missing here; None if a server can be started."""
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        return f"the extra postgres is not installed: no {', '.join(missing)}"
    absent = [name for name in PROGRAMS if program(name) is None]
    if absent:
        return f"no PostgreSQL server on this machine: no {', '.join(absent)}"
    if os.geteuid() == 0 and owner() is None:
        return "a PostgreSQL server refuses to run as root, and there is no user postgres or nobody"
    return None


@contextlib.contextmanager
def running_with(database: str) -> Iterator[Server]:
    """A running server with an empty database of this name. Where none can be started, the tests skip with the reason."""
    import pytest  # scripts/shared_ledger.py starts a server without it

    if reason := reason_to_skip():
        pytest.skip(reason)
    server = Server()
    try:
        server.execute(f"CREATE DATABASE {database}", database="postgres")
        yield server
    finally:
        server.stop()


def program(name: str) -> str | None:
    """Where a program of PostgreSQL is: on the path, or where systems keep it."""
    places = [str(path) for place in PLACES for path in sorted(Path("/").glob(place.lstrip("/")), reverse=True)]
    return shutil.which(name, path=os.pathsep.join([*places, os.environ.get("PATH", "")]))


def owner() -> Any:
    """An ordinary user for the server."""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return importlib.import_module("pwd").getpwnam(name)
    return None


class Server:
    """One server. The tests are its superuser `owner`; anybody on this machine may log in."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="confide-postgres-"))
        self.user: dict[str, object] = {}
        if os.geteuid() == 0:
            account = owner()
            os.chown(self.folder, account.pw_uid, account.pw_gid)
            self.user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": ()}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        options = ("--username=owner", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions")
        command = [program("initdb"), *options, f"--pgdata={self.folder / 'data'}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"host all guarded 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
        self.start()

    def start(self) -> None:
        """Start, or start again, and wait until it takes connections."""
        options = {"port": self.port, "listen_addresses": "127.0.0.1", "unix_socket_directories": ""}
        from psycopg import OperationalError

        command = [program("postgres"), "-D", str(self.folder / "data")]
        command += [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", start_new_session=True, **self.user)
        deadline = time.monotonic() + 60.0
        while True:
            try:
                self.execute("SELECT 1", database="postgres")
            except OperationalError:  # starting, or recovering
                assert self.process.poll() is None, (self.folder / "log").read_text()
                assert time.monotonic() < deadline, (self.folder / "log").read_text()
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        """As a failing machine would: the postmaster and every process that serves a client, at once."""
        children = [row[0] for row in self.execute("SELECT pid FROM pg_stat_activity")]
        for process in (self.process.pid, *children):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """Stop for good, and leave nothing behind."""
        self.process.send_signal(signal.SIGQUIT)
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def execute(self, *statements: str, database: str = "ledgers", user: str = "owner") -> list[tuple]:
        """Run statements past the ledger; the rows of the last."""
        import psycopg

        rows = []
        where = f"host=127.0.0.1 port={self.port} dbname={database} user={user}"
        with psycopg.connect(where, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
        return rows

    def url(self, schema: str, *, user: str = "owner", port: int | None = None, database: str = "ledgers") -> str:
        """The URL of a ledger, without encryption, so that a stand-in for the network can read what passes."""
        query = f"schema={schema}&sslmode=disable&gssencmode=disable"
        return f"postgresql://{user}@127.0.0.1:{port or self.port}/{database}?{query}"
