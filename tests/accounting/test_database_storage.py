"""The ledger in PostgreSQL: exact under many clients, whole after kills on both sides, in doubt without an answer."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import pickle
import socket
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from confide import LogisticRegression
from confide.accounting import database_storage
from confide.accounting.ledger import Ledger
from confide.accounting.records import Record
from confide.cli.application import app
from confide.errors import BudgetExceeded, LedgerError, ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.events import Event
from confide.privacy.gaussian import GaussianMechanism
from tests.accounting.many_processes import charge_until_stopped
from tests.accounting.network import COMMIT

# A forked child that exits is no test of its own; numpy's threads are idle.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")

FORK = multiprocessing.get_context("fork")
SECRET = "correct-horse-battery"  # noqa: S105 - made up


def schema_of(url):
    return url.partition("schema=")[2].partition("&")[0]


@pytest.fixture
def place(url):
    """Where `charged` is."""
    return url


# Creating and opening


def test_a_missing_ledger_is_refused_with_advice(server, url):
    """Opening never creates; a schema that something else lives in is left alone."""
    with pytest.raises(LedgerError, match=r"has no ledger.*confide ledger init"):
        Ledger(url)
    server.execute(f"CREATE SCHEMA {schema_of(url)}", f"CREATE TABLE {schema_of(url)}.records (number bigint)")
    for options in ({}, {"limit": 1.0}):
        with pytest.raises(LedgerError, match="not those of a ledger"):
            Ledger(url, **options)


def test_a_server_that_is_not_there_is_refused_with_advice(server):
    """Nothing was charged."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(LedgerError, match=r"cannot be reached.*Nothing was used or charged"):
            Ledger(server.url("study", port=free.getsockname()[1]))
    with pytest.raises(LedgerError, match="cannot be reached"):
        Ledger(server.url("study", database="nowhere"), limit=1.0)


def test_who_comes_second_finds_the_ledger_of_the_first(charged, monkeypatch):
    """It saw none, and could not make one because it was there by then."""
    seen, look = [], database_storage.RecordsInDatabase._is_there

    def not_there_at_first(self):
        seen.append(look(self))
        return len(seen) > 1 and seen[-1]

    monkeypatch.setattr(database_storage.RecordsInDatabase, "_is_there", not_there_at_first)
    database_storage.stored_records(charged).create("another header", "study")
    assert seen == [True, True]
    assert Ledger(charged).verify() == 3


# Secrets


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://user:{SECRET}@127.0.0.1/db",
        f"postgresql://127.0.0.1/db?user=user&password={SECRET}",
        f"postgresql://user@127.0.0.1/db?sslpassword={SECRET}",
        f"postgresql://user@127.0.0.1/db?options=-c%20x={SECRET}",
        f"postgresql://user@127.0.0.1/db?sslmode=require&options=-c%20x={SECRET}",
        f"postgres://user:{SECRET}@127.0.0.1/db",
        f"mysql://user:{SECRET}@127.0.0.1/db",
        f"postgresql+psycopg://user:{SECRET}@127.0.0.1/db",
        f"postgresql://user:{SECRET}@127.0.0.1:port/db",
        f"postgresql://user:{SECRET}@127.0.0.1",
        f"postgresql://user@127.0.0.1/db?schema={SECRET}",
        "postgresql://user@127.0.0.1/db?schema=a&schema=b",
        Path(f"postgresql://user:{SECRET}@127.0.0.1/db"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"limit": 1.0}])
def test_a_url_with_a_password_is_refused_and_not_repeated(text, options):
    """Nor is any other that cannot be used, since it may hold one by mistake."""
    pytest.importorskip("sqlalchemy")
    pytest.importorskip("psycopg")
    with pytest.raises(ParameterError) as refusal:
        Ledger(text, **options)
    assert "URL" in str(refusal.value) or "schema" in str(refusal.value)
    assert SECRET not in str(refusal.value)
    assert refusal.value.__context__ is None or refusal.value.__suppress_context__


def test_without_the_extra_a_url_is_refused_with_advice(monkeypatch):
    """No file of that name is made instead."""
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(ParameterError, match=r"pip install '\.\[postgres\]'"):
        Ledger("postgresql://user@127.0.0.1/db", limit=1.0)


def test_the_password_stays_in_the_environment(server, url, monkeypatch):
    """It lets the user in, and is in no repr, message, pickle or record; a wrong one is refused."""
    server.execute(f"CREATE ROLE guarded LOGIN PASSWORD '{SECRET}'", "GRANT CREATE ON DATABASE ledgers TO guarded")
    url = url.replace("owner@", "guarded@")
    with pytest.raises(LedgerError, match="does not let this user in"):
        Ledger(url, limit=1.0)
    monkeypatch.setenv("PGPASSWORD", SECRET)
    ledger = Ledger(url, limit=1.0)
    ledger.charge(0.5)
    with pytest.raises(BudgetExceeded) as exceeded:
        ledger.charge(1.0)
    model = LogisticRegression(ledger=ledger)
    shown = [repr(ledger), repr(model), str(exceeded.value), ledger.entries().to_csv(), str(ledger.__reduce__())]
    assert SECRET not in "".join(shown)
    assert SECRET.encode() not in pickle.dumps(model)
    assert pickle.loads(pickle.dumps(model)).ledger.spent() == PureDP(0.5)
    monkeypatch.setenv("PGPASSWORD", "wrong-" + SECRET)
    with pytest.raises(LedgerError, match="cannot be reached, or does not let this user in") as refusal:
        ledger.charge(0.25)
    assert SECRET not in str(refusal.value)


def test_rights_are_those_of_the_server(server, charged):
    """Who may read sees all and charges nothing; who may charge deletes nothing."""
    schema = schema_of(charged)
    for role in ("reader", "analyst"):
        with contextlib.suppress(Exception):
            server.execute(f"CREATE ROLE {role} LOGIN")
        server.execute(
            f"GRANT USAGE ON SCHEMA {schema} TO {role}", f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        )
    server.execute(f"GRANT INSERT ON {schema}.records TO analyst", f"GRANT UPDATE ON {schema}.tip TO analyst")
    with pytest.raises(LedgerError, match="to create one, CREATE on the database"):
        Ledger(charged.replace("owner@", "reader@").replace(schema, f"{schema}_more"), limit=1.0)
    reader, analyst = (Ledger(charged.replace("owner@", f"{role}@")) for role in ("reader", "analyst"))
    assert reader.verify() == 3
    with pytest.raises(LedgerError, match="does not let this user do that"):
        reader.charge(0.25)
    analyst.charge(0.25)
    assert reader.spent() == ApproxDP(2.0, 1e-7)
    for statement in (f"DELETE FROM {schema}.records", f"DROP TRIGGER kept ON {schema}.records"):  # noqa: S608 - made up here
        with pytest.raises(Exception, match=r"permission denied|must be owner"):
            server.execute(statement, user="analyst")


# Tampering


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM records WHERE number = 3",
        "DELETE FROM records WHERE number = 2",
        "DELETE FROM records WHERE number = 0",
        "DELETE FROM records",
        "DELETE FROM tip",
        "INSERT INTO tip VALUES (3, '')",
        "UPDATE tip SET number = 2, hash = (SELECT hash FROM records WHERE number = 2)",
        "UPDATE records SET text = replace(text, 'age', 'agf') WHERE number = 1",
        "UPDATE records SET text = replace(text, '0.5', '0.25') WHERE number = 1",
        "UPDATE records SET text = replace(text, '4.0', '9.0') WHERE number = 0",
        "UPDATE records SET hash = upper(hash) WHERE number = 2",
        "UPDATE records SET number = 4 WHERE number = 3",
        "INSERT INTO records VALUES (-1, 'x', 'y')",
        "INSERT INTO records SELECT number + 1, text, hash FROM records WHERE number = 3",
        "DROP TABLE tip",
        "ALTER TABLE records ADD COLUMN more text",
        "ALTER TABLE records ALTER COLUMN text SET DEFAULT ''",
        "ALTER TABLE records DROP CONSTRAINT records_pkey",
        "ALTER TABLE records SET UNLOGGED",
        "ALTER TABLE records ENABLE ROW LEVEL SECURITY",
        "ALTER TABLE records DISABLE TRIGGER kept",
        "DROP TRIGGER appended ON records",
        "CREATE TABLE more (x int)",
        "CREATE RULE nothing AS ON INSERT TO records DO INSTEAD NOTHING",
        "CREATE OR REPLACE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'",
    ],
)
def test_tampering_through_sql_is_refused(server, charged, change):
    """Deleted, edited, reordered and added rows, tables, triggers and rules, for one who opens and one who has it open."""
    open_before = Ledger(charged)
    server.execute(f"SET search_path = {schema_of(charged)}", "SET session_replication_role = replica", change)
    for ask in (lambda: Ledger(charged), open_before.verify):
        with pytest.raises(LedgerError, match="damaged or was changed by hand"):
            ask()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE records SET text = ''",
        "DELETE FROM records",
        "TRUNCATE records",
        "INSERT INTO records VALUES (7, '', '')",
        "INSERT INTO records VALUES (3, '', '')",
        "UPDATE tip SET number = 1",
        "DELETE FROM tip",
        "TRUNCATE tip",
        "INSERT INTO tip VALUES (0, '')",
    ],
)
def test_triggers_forbid_changes_by_mistake(server, charged, change):
    """Rows are appended in order, and nothing else."""
    with pytest.raises(Exception, match=r"records stay|in order"):
        server.execute(f"SET search_path = {schema_of(charged)}", change)
    assert Ledger(charged).verify() == 3


def test_a_ledger_that_was_set_back_or_exchanged_is_seen(server, charged):
    """By who has it open and by a pickle; by others only with the head at hand."""
    schema = schema_of(charged)
    ledger = Ledger(charged)
    ledger.charge(0.125)
    head, pickled = ledger.head, pickle.dumps(ledger)
    server.execute(
        f"SET search_path = {schema}",
        "SET session_replication_role = replica",
        "DELETE FROM records WHERE number = 4",
        "UPDATE tip SET number = 3, hash = (SELECT hash FROM records WHERE number = 3)",
    )
    with pytest.raises(LedgerError, match="older copy"):
        ledger.charge(0.125)
    with pytest.raises(LedgerError, match="no record of this ledger has the given head"):
        Ledger(charged).verify(head)
    server.execute(f"DROP SCHEMA {schema} CASCADE")
    Ledger(charged, limit=ApproxDP(4.0, 1e-6)).charge(0.5)
    for ask in (lambda: ledger.charge(0.1), lambda: pickle.loads(pickled)):
        with pytest.raises(LedgerError, match="another ledger"):
            ask()


# Durability


def test_each_charge_waits_for_the_disk_whatever_the_role_says(server, url, monkeypatch):
    """As the server itself reports it, at the moment of COMMIT."""
    seen = []
    commit = database_storage.RecordsInDatabase._commit

    def look_and_commit(self, last):
        seen.extend(self._session.exec_driver_sql("SHOW synchronous_commit").scalars())
        commit(self, last)

    monkeypatch.setattr(database_storage.RecordsInDatabase, "_commit", look_and_commit)
    server.execute("ALTER ROLE owner SET synchronous_commit = off")
    try:
        Ledger(url, limit=1.0).charge(0.5)
    finally:
        server.execute("ALTER ROLE owner RESET synchronous_commit")
    assert seen == ["on", "on"]


@pytest.mark.parametrize("setting", ["fsync", "full_page_writes"])
def test_a_server_that_does_not_sync_is_refused(server, charged, setting):
    """A charge might not survive a crash; what was charged may still be read."""

    def switch(value):
        server.execute(f"ALTER SYSTEM SET {setting} = {value}", "SELECT pg_reload_conf()")
        deadline = time.monotonic() + 30
        while server.execute(f"SHOW {setting}") != [(value,)]:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    switch("off")
    try:
        ledger = Ledger(charged)
        with pytest.raises(LedgerError, match=f"{setting} switched off"):
            ledger.charge(0.25)
        assert ledger.spent() == ApproxDP(1.75, 1e-7)
    finally:
        switch("on")
    assert Ledger(charged).verify() == 3


def test_no_acknowledged_charge_is_lost_when_the_server_is_killed(server, url):
    """Three times, amid the charges of four clients: what was acknowledged is there, and at most one more of each client.

    The role asks for commits that do not wait for the log, so that the test fails if the ledger does not overrule it.
    """
    rng = np.random.default_rng(8)
    server.execute("ALTER ROLE owner SET synchronous_commit = off", "ALTER SYSTEM SET wal_writer_delay = '10s'")
    Ledger(url, limit=1e6)
    before = 0
    try:
        for _ in range(3):
            pipes = [os.pipe() for _ in range(4)]
            children = [FORK.Process(target=charge_until_stopped, args=(url, writer)) for _, writer in pipes]
            for child in children:
                child.start()
            for reader, writer in pipes:
                os.close(writer)
                assert os.read(reader, 1) == b"."
            time.sleep(float(rng.uniform(0.0, 0.3)))
            server.kill()
            acknowledged = before + len(pipes)
            for child, (reader, _) in zip(children, pipes, strict=True):
                child.join()
                assert child.exitcode == 0
                acknowledged += sum(len(piece) for piece in iter(lambda: os.read(reader, 65536), b""))  # noqa: B023
                os.close(reader)
            server.start()
            before = Ledger(url).verify()
            assert acknowledged <= before <= acknowledged + len(pipes)
    finally:
        server.execute("ALTER ROLE owner RESET synchronous_commit", "ALTER SYSTEM RESET wal_writer_delay")


@pytest.mark.parametrize(("fails", "recorded"), [("before", 1), ("after", 2)])
def test_a_charge_without_an_answer_is_in_doubt_and_counts_if_it_is_there(network, url, fails, recorded):
    """It raises, is not tried again, and the ledger goes on from what the server has."""
    ledger = Ledger(network.between(url), limit=4.0)
    ledger.charge(1.0)
    network.fail(fails, COMMIT)
    with pytest.raises(LedgerError, match=r"in doubt.*Nothing was used.*may charge twice") as doubt:
        ledger.charge(1.0)
    assert not isinstance(doubt.value, BudgetExceeded)
    network.work()
    assert ledger.verify() == Ledger(url).verify() == recorded
    ledger.charge(1.0)
    assert ledger.spent() == PureDP(recorded + 1.0)


def test_a_fit_whose_charge_is_in_doubt_uses_no_row(network, url, monkeypatch):
    """Nothing is released; the charge counts."""
    ledger = Ledger(network.between(url), limit=4.0)
    network.fail("after", COMMIT)
    model = LogisticRegression(1.0, ledger=ledger)
    monkeypatch.setattr("confide.privacy.objective_perturbation.ObjectivePerturbation.release", None)
    with pytest.raises(LedgerError, match="in doubt"):
        model.fit(np.arange(40.0).reshape(20, 2), np.arange(20) % 2)
    assert not hasattr(model, "coef_")
    assert Ledger(url).spent() == PureDP(1.0)


def test_a_commit_that_recorded_nothing_is_no_charge(url, monkeypatch):
    """Some poolers, and transactions that failed before, answer COMMIT without an error and without a commit."""
    ledger = Ledger(url, limit=1.0)
    commit = database_storage.RecordsInDatabase._commit

    def roll_back_and_commit(self, last):
        self._run("ROLLBACK")
        commit(self, last)

    monkeypatch.setattr(database_storage.RecordsInDatabase, "_commit", roll_back_and_commit)
    with pytest.raises(LedgerError, match="in doubt"):
        ledger.charge(0.5)
    assert ledger.verify() == 0


# One at a time


def test_a_ledger_that_stays_locked_is_refused_with_advice(server, charged, monkeypatch):
    """After a while; the charge was not made, and reading does not wait."""
    import psycopg

    monkeypatch.setitem(database_storage._SETTINGS, "lock_timeout", "100ms")
    ledger = Ledger(charged)
    with psycopg.connect(f"host=127.0.0.1 port={server.port} dbname=ledgers user=owner") as other:
        other.execute(f"SELECT * FROM {schema_of(charged)}.tip FOR UPDATE")  # noqa: S608
        with pytest.raises(LedgerError, match=r"another process.*Nothing was used or charged"):
            ledger.charge(0.25)
        assert ledger.spent() == ApproxDP(1.75, 1e-7)
    ledger.charge(0.25)


def test_a_charge_waits_before_it_reads_what_was_spent(server, charged):
    """It asks for the lock first, so what another has charged when the lock comes is counted."""
    import psycopg

    of_owner = f"host=127.0.0.1 port={server.port} dbname=ledgers user=owner"
    with psycopg.connect(of_owner) as holder, psycopg.connect(of_owner, autocommit=True) as other:
        holder.execute(f"SELECT * FROM {schema_of(charged)}.tip FOR UPDATE")  # noqa: S608
        child = FORK.Process(target=Ledger(charged).charge, args=(0.25,))
        child.start()
        waiting = "SELECT query FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = 'ledgers'"
        end = time.monotonic() + 60.0
        while not (found := other.execute(waiting).fetchall()) and time.monotonic() < end:
            time.sleep(0.02)
    child.join()
    assert [query.split()[-2:] for (query,) in found] == [["FOR", "UPDATE"]]
    assert child.exitcode == 0
    assert Ledger(charged).verify() == 4


def test_a_tip_that_moves_within_a_charge_is_refused(charged, monkeypatch):
    """Nobody else can move it while it is locked; should it happen all the same, nothing is charged."""
    run = database_storage.RecordsInDatabase._run

    def found_none(self, statement, values=None):
        """The statement that moves the tip finds none of this number."""
        return [] if statement.startswith("UPDATE") else run(self, statement, values)

    ledger = Ledger(charged)
    with monkeypatch.context() as patched:
        patched.setattr(database_storage.RecordsInDatabase, "_run", found_none)
        with pytest.raises(LedgerError, match="its tip moved while it was locked"):
            ledger.charge(0.25)
    assert Ledger(charged).verify() == 3


def append_after_a_pause(url, locked, results):
    ledger = Ledger(url)
    try:
        with ledger._up_to_date(writing=True) as session:
            locked.set()
            time.sleep(2.0)
            session.append(Record.after(ledger._last, "too late"))
    except LedgerError as error:
        results.put(str(error))
    else:
        results.put("")


def test_a_client_that_falls_silent_is_cut_off(charged, monkeypatch):
    """Others need not wait for it, and what it does afterwards is no charge."""
    monkeypatch.setitem(database_storage._SETTINGS, "idle_in_transaction_session_timeout", "500ms")
    locked, results = FORK.Event(), FORK.Queue()
    child = FORK.Process(target=append_after_a_pause, args=(charged, locked, results))
    child.start()
    assert locked.wait(60)
    Ledger(charged).charge(0.25)
    assert "Nothing was used or charged" in results.get(timeout=60)
    child.join()
    assert Ledger(charged).verify() == 4


def test_the_end_of_the_chain_is_compared_at_the_charge(charged):
    """A second lock, should the first one ever fail: who believes in another last record changes nothing."""
    ledger = Ledger(charged)
    earlier = ledger._last
    with pytest.raises(LedgerError), ledger._up_to_date(writing=True) as session:
        session.append(Record.after(Record(4, "", earlier.hash), "x"))
    assert ledger.verify() == 3


# The same decisions as a file


def random_charges():
    """Sixty charges of all currencies, most of them small."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        size = float(rng.choice([0.01, 0.03, 0.1, 0.3])) * float(rng.integers(1, 4))
        kind = rng.integers(4)
        if kind == 0:
            yield PureDP(size)
        elif kind == 1:
            yield ApproxDP(size, float(rng.choice([1e-9, 1e-8, 1e-7])))
        elif kind == 2:
            yield ZCDP(size**2 / 4)
        else:
            yield Event(ApproxDP(size, 1e-8), GaussianMechanism(size / 8))


@pytest.mark.parametrize(
    "options",
    [
        {"limit": PureDP(2.0)},
        {"limit": ApproxDP(2.0, 1e-6), "accounting": "sum"},
        {"limit": ApproxDP(2.0, 1e-6), "accounting": "renyi"},
        {"limit": ZCDP(0.5)},
    ],
)
def test_a_database_admits_exactly_what_a_file_admits(url, tmp_path, options):
    """The same refusals with the same words, the same sums, the same records but for their times."""
    ledgers = [Ledger(url, **options), Ledger(tmp_path / "study.db", **options)]
    outcomes = {True: 0, False: 0}
    for number, budget in enumerate(random_charges()):
        answers = []
        for ledger in ledgers:
            try:
                ledger.charge(budget)
            except LedgerError as refusal:
                answers.append((type(refusal), str(refusal)))
            else:
                answers.append(None)
        assert answers[0] == answers[1]
        outcomes[answers[0] is None] += 1
        if number % 6 == 5:
            assert ledgers[0].spent() == ledgers[1].spent()
    assert min(outcomes.values()) >= 5
    texts = []
    for ledger in ledgers:
        with ledger._up_to_date() as session:
            facts = [json.loads(record.text) for record in session.records_after(None)]
        texts.append([{name: value for name, value in fact.items() if name not in ("time", "identity")} for fact in facts])
    assert texts[0] == texts[1]


# Wrappers and the command line


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="confide")
    assert result.exit_code == code, result.output
    return result


def test_the_command_line_takes_a_url(url, tmp_path, monkeypatch):
    """init, show, verify and fit; an existing ledger is never replaced."""
    monkeypatch.chdir(tmp_path)
    run("ledger", "init", url, "--epsilon", 2, "--max-rows-per-person", 3)
    assert Ledger(url).max_rows_per_person == 3
    assert "exists already" in run("ledger", "init", url, "--epsilon", 2, code=2).stderr
    rows = [f"{17 + i % 70},{'high' if i % 70 > 30 else 'low'}" for i in range(140)]
    Path("people.csv").write_text("\n".join(["age,income", *rows, ""]), encoding="utf-8")
    Path("people.toml").write_text(
        'target = { column = "income", negative = "low", positive = "high" }\n[columns]\nage = { low = 17, high = 90 }\n',
        encoding="utf-8",
    )
    fit = ("fit", "people.csv", "--schema", "people.toml", "--ledger", url, "--force")
    assert "--max-rows-per-person 3" in run(*fit, "--epsilon", 1.5, code=2).stderr
    fit += ("--max-rows-per-person", 3)
    run(*fit, "--epsilon", 1.5)
    assert "1.5" in run("ledger", "show", url).stdout
    facts = json.loads(run("ledger", "verify", url, "--format", "json").stdout)
    assert (facts["ledger"], facts["charges"]) == (url, 1)
    assert "has epsilon 0.5 left" in run(*fit, "--epsilon", 1.5, code=3).stderr
    missing = run("ledger", "show", url.replace("study_", "other_"), code=2).stderr
    assert "has no ledger" in missing
    refused = run("ledger", "show", f"postgresql://user:{SECRET}@127.0.0.1/db", code=2)
    assert SECRET not in refused.output
