"""The ledger's file: durable charges, several processes, and refusal of every file that is not as it was left."""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import json
import multiprocessing
import os
import pickle
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score

from confide import LogisticRegression
from confide.accounting import file_storage
from confide.accounting.ledger import Ledger
from confide.errors import BudgetExceeded, LedgerError, ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from tests.accounting.many_processes import FORK

# A forked child that exits is no test of its own; numpy's threads are idle.
pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def place(path):
    """Where `charged` is."""
    return path


def content(path):
    """All that a ledger says."""
    ledger = Ledger(path)
    entries = ledger.entries()
    return (ledger.limit, ledger.neighbours, ledger.accounting, ledger.head, ledger.spent(), entries.to_csv())


def beside(path, ending):
    return path.with_name(path.name + ending)


def statements(path, *texts):
    """Change a file through SQL, with the triggers out of the way."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        triggers = list(connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"))
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for text in texts:
            connection.execute(text)
        for _, sql in triggers:
            connection.execute(sql)
        connection.commit()


# Creating and opening


@pytest.mark.parametrize(
    "options",
    [
        {"limit": PureDP(2.0)},
        {"limit": 2},
        {"limit": ZCDP(0.5), "neighbours": "add-or-remove-one"},
        {"limit": ApproxDP(1.0, 1e-6), "accounting": "renyi"},
    ],
)
def test_the_same_call_creates_and_opens(path, options):
    """A script can be run again; what was charged stays."""
    Ledger(path, **options).charge(0.1)
    ledger = Ledger(path, **options)
    assert len(ledger.entries()) == 1
    assert Ledger(path).limit == ledger.limit


def test_a_ledger_of_the_other_relation_opens_by_its_path_alone(path):
    """The default of an argument that was not given is no claim."""
    Ledger(path, limit=1.0, neighbours="add-or-remove-one")
    Ledger(path).charge(0.1, neighbours="add-or-remove-one")
    with pytest.raises(LedgerError, match="add-or-remove-one guarantees, not replace-one"):
        Ledger(path, limit=1.0)


def test_the_way_of_adding_that_the_first_charge_fixed_is_durable(path):
    """It is the same after reopening, and for a ledger that was open before."""
    first, second = (Ledger(path, limit=ApproxDP(1.0, 1e-6)) for _ in range(2))
    first.charge(ZCDP(0.001))
    assert second.accounting == Ledger(path).accounting == "renyi"
    with pytest.raises(LedgerError, match="accounting"):
        Ledger(path, accounting="sum")


def test_a_missing_file_is_refused_with_advice(path):
    """Opening never creates; neither does a folder that is not there."""
    with pytest.raises(LedgerError, match=r"is missing.*confide ledger init"):
        Ledger(path)
    assert not path.exists()
    with pytest.raises(LedgerError, match="folder"):
        Ledger(path / "below" / "study.db", limit=1.0)


def test_creating_leaves_one_file(path):
    """Nothing temporary, no log; others may read it as any new file."""
    Ledger(path, limit=1.0).charge(0.5)
    assert [entry.name for entry in path.parent.iterdir()] == ["study.db"]
    plain = path.with_name("plain")
    plain.touch()
    assert path.stat().st_mode & 0o444 == plain.stat().st_mode & 0o444


def test_names_that_mean_something_to_sqlite_are_just_names(tmp_path, monkeypatch):
    """No ledger in memory, no parameters of a URI."""
    monkeypatch.chdir(tmp_path)
    for name in (":memory:", "file:a.db?mode=memory", "a b%20#?.db", "Zoë.db", "study"):
        Ledger(name, limit=1.0).charge(0.25)
        assert (tmp_path / name).is_file()
        assert Ledger(tmp_path / name).spent() == PureDP(0.25)
    for name in ("a\0b", 3, b"bytes"):
        with pytest.raises(ParameterError):
            Ledger(name, limit=1.0)


def test_links_and_relative_paths_lead_to_the_same_ledger(path, monkeypatch):
    """Also after the working folder has changed."""
    monkeypatch.chdir(path.parent)
    link = path.with_name("link.db")
    link.symlink_to("study.db")
    ledger = Ledger("link.db", limit=1.0)
    monkeypatch.chdir("/")
    ledger.charge(0.25)
    Ledger(link).charge(0.25)
    assert Ledger(path).spent() == PureDP(0.5)
    assert link.is_symlink()
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["link.db", "study.db"]


def test_a_log_without_its_ledger_is_not_adopted_by_a_new_one(path):
    """SQLite would take it for that of the new file."""
    beside(path, "-wal").write_bytes(b"charges")
    with pytest.raises(LedgerError, match=r"study\.db-wal"):
        Ledger(path, limit=1.0)
    assert not path.exists()


# One file by two names


def charge_until_refused(path, start, results):
    ledger = Ledger(path)
    start.wait()
    granted = 0
    with contextlib.suppress(LedgerError):
        for _ in range(100):
            ledger.charge(0.01)
            granted += 1
    results.put(granted)


def test_a_ledger_with_a_second_hard_link_is_refused_by_both_names(charged):
    """By whoever opens it, charges it, reads it or verifies it; once the second name is gone, all is as it was."""
    ledger, other = Ledger(charged), charged.with_name("other.db")
    other.hardlink_to(charged)
    for ask in (lambda: Ledger(charged), lambda: Ledger(other), lambda: ledger.charge(0.1), ledger.spent, ledger.verify):
        with pytest.raises(LedgerError, match=r"has a second name \(a hard link\).*Nothing was used or charged"):
            ask()
    other.unlink()
    ledger.charge(0.25)
    assert Ledger(charged).verify() == 4


def test_a_hard_link_that_is_made_while_processes_charge_loses_nothing(path):
    """Each charge that returned is there, whatever name it was made by."""
    Ledger(path, limit=1e6)
    start, results = FORK.Barrier(2), FORK.Queue()
    child = FORK.Process(target=charge_until_refused, args=(path, start, results))
    child.start()
    start.wait()
    time.sleep(0.1)
    path.with_name("other.db").hardlink_to(path)
    with contextlib.suppress(LedgerError):
        Ledger(path.with_name("other.db")).charge(0.01)
    granted = results.get(timeout=60)
    child.join()
    path.with_name("other.db").unlink()
    assert Ledger(path).verify() == granted


def test_two_names_of_one_file_have_one_lock(charged):
    """Whoever has a session by one name keeps out who comes by another, such as that of a file that was moved meanwhile."""
    ledger, moved = Ledger(charged), charged.with_name("moved.db")
    start, results = FORK.Barrier(2), FORK.Queue()
    child = FORK.Process(target=charge_until_refused, args=(moved, start, results))
    with ledger._records.session(writing=True) as session:
        charged.rename(moved)
        child.start()
        child.join(0.5)
        assert child.is_alive()
        assert results.empty()
        assert len(session.records_after(None)) == 4
    child.kill()
    child.join()


def test_a_file_that_is_mounted_by_itself_is_refused(charged, monkeypatch, tmp_path):
    """As the system lists mounts: the fifth word of a line, with octal codes for blanks. Other words are no mounts."""
    mounts = tmp_path / "mountinfo"
    line = "36 35 98:0 {} {} rw,noatime - ext3 /dev/root rw\n"
    monkeypatch.setattr(file_storage, "_MOUNTS", mounts)
    spaced = charged.with_name("a study.db")
    charged.rename(spaced)
    mounts.write_text(line.format(str(spaced).replace(" ", r"\040"), "/mnt") + line.format("/", spaced.parent))
    ledger = Ledger(spaced)
    ledger.charge(0.1)
    mounts.write_text(line.format("/", "/") + line.format("/l.db", str(spaced).replace(" ", r"\040")))
    for ask in (lambda: Ledger(spaced), lambda: ledger.charge(0.1), ledger.verify):
        with pytest.raises(LedgerError, match=r"mounted by itself.*Mount its folder instead"):
            ask()


def test_a_name_that_a_dying_process_left_while_it_created_the_ledger_is_removed(path):
    """It died between the link to the final name and the end of the first one; nobody else knows that name."""
    identity = Ledger(path, limit=1.0).identity
    left, foreign = (path.with_name(f".study.db.{name}.part") for name in (identity, "0" * 32))
    left.hardlink_to(path)
    foreign.touch()
    Ledger(path).charge(0.25)
    assert not left.exists()
    assert foreign.exists()
    assert Ledger(path).spent() == PureDP(0.25)


# Files that are no ledger, or not the one that was left


def foreign_database(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE records (number, text, hash)")
        connection.commit()


def newer_ledger(path):
    Ledger(path, limit=1.0)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 4")


@pytest.mark.parametrize(
    ("write", "advice"),
    [
        (lambda path: path.touch(), "it is empty"),
        (lambda path: path.mkdir(), "is not a file"),
        pytest.param(lambda path: os.mkfifo(path), "is not a file", marks=pytest.mark.posix),
        (lambda path: path.write_text("number,purpose\n1,fit\n" * 100), "is not a ledger of confide"),
        (lambda path: path.write_bytes(b"SQLite format 3\0" + bytes(4080)), "is not a ledger of confide"),
        (foreign_database, "is not a ledger of confide"),
        (newer_ledger, "format that this version of confide does not understand"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"limit": 1.0}])
def test_what_is_no_ledger_is_refused_and_left_alone(path, write, advice, options):
    """With a limit as without: a ledger is created where there is nothing, and nowhere else."""
    write(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(LedgerError, match=advice):
        Ledger(path, **options)
    if before is not None:
        assert path.read_bytes() == before


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
        "UPDATE tip SET hash = (SELECT hash FROM records WHERE number = 2)",
        "UPDATE records SET text = replace(text, 'age', 'agf') WHERE number = 1",
        "UPDATE records SET text = replace(text, '0.5', '0.25') WHERE number = 1",
        "UPDATE records SET text = replace(text, '4.0', '9.0') WHERE number = 0",
        "UPDATE records SET text = CAST(text AS BLOB) WHERE number = 1",
        "UPDATE records SET hash = upper(hash) WHERE number = 2",
        "UPDATE records SET number = 4 WHERE number = 3",
        "UPDATE records SET number = 3 - number + 100",
        "INSERT INTO records VALUES (-1, 'x', 'y')",
        "INSERT INTO records SELECT number + 1, text, hash FROM records WHERE number = 3",
        "UPDATE records SET text = (SELECT text FROM records r WHERE r.number = 3 - records.number) WHERE number IN (1, 2)",
        "DROP TABLE tip",
        "ALTER TABLE records ADD COLUMN more TEXT",
        "CREATE TABLE more (x)",
        "CREATE TRIGGER more AFTER INSERT ON records BEGIN SELECT 1; END",
        "PRAGMA application_id = 1",
    ],
)
def test_tampering_through_sql_is_refused(charged, change):
    """Deleted, edited, reordered and added rows, tables and triggers, for one who opens and one who has it open."""
    open_before = Ledger(charged)
    with contextlib.suppress(sqlite3.OperationalError):  # a trigger on a table that is gone
        statements(charged, change)
    for ask in (lambda: Ledger(charged), open_before.verify):
        with pytest.raises(LedgerError) as refusal:
            ask()
        assert "sqlite" not in str(refusal.value).lower()


def test_deleting_the_last_row_is_seen_by_the_next_charge(charged):
    """By a ledger that was open, without reading everything anew."""
    ledger = Ledger(charged)
    statements(charged, "DELETE FROM records WHERE number = 3")
    for ask in (lambda: ledger.charge(0.1), ledger.spent, ledger.entries):
        with pytest.raises(LedgerError, match="damaged or was changed by hand"):
            ask()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE records SET text = ''",
        "DELETE FROM records",
        "INSERT INTO records VALUES (7, '', '')",
        "INSERT OR REPLACE INTO records VALUES (3, '', '')",
        "UPDATE tip SET number = 1",
        "DELETE FROM tip",
        "INSERT INTO tip VALUES (0, '')",
    ],
)
def test_triggers_forbid_changes_by_mistake(charged, change):
    """Rows are appended in order, and nothing else."""
    with contextlib.closing(sqlite3.connect(charged)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(change)
    assert len(Ledger(charged).entries()) == 3


def test_dropped_triggers_are_refused(charged):
    """Whoever dropped them had something in mind."""
    with contextlib.closing(sqlite3.connect(charged)) as connection:
        connection.execute("DROP TRIGGER records_are_not_changed")
    with pytest.raises(LedgerError, match="tables or triggers"):
        Ledger(charged)


def rewritten(path, change):
    """Change the facts of the last record and give it the hash that it should then have."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (number, text), previous = (
            connection.execute("SELECT number, text FROM records ORDER BY number DESC").fetchone(),
            connection.execute("SELECT hash FROM records ORDER BY number DESC LIMIT 1 OFFSET 1").fetchone(),
        )
    facts = change(json.loads(text))
    text = facts if isinstance(facts, str) else json.dumps(facts, sort_keys=True, separators=(",", ":"))
    digest = hashlib.sha256(f"{previous[0] if previous else ''}\n{text}".encode()).hexdigest()
    escaped = text.replace("'", "''")
    statements(
        path,
        f"UPDATE records SET text = '{escaped}', hash = '{digest}' WHERE number = {number}",  # noqa: S608 - made up here
        f"UPDATE tip SET hash = '{digest}'",  # noqa: S608
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: "[]",
        lambda facts: "not JSON",
        lambda facts: "[" * 100_000,
        lambda facts: json.dumps(facts),
        lambda facts: facts | {"more": 1},
        lambda facts: facts | {"number": 7},
        lambda facts: facts | {"accounting": "renyi"},
        lambda facts: facts | {"events": [facts["events"][0] | {"rows_per_person": 0}]},
        lambda facts: facts | {"events": [facts["events"][0] | {"rows_per_person": 10**30}]},
        lambda facts: facts | {"events": [{"budget": {"kind": "magic"}, "curve": None}]},
        lambda facts: facts | {"events": [{"budget": {"kind": "pure", "epsilon": -3.0}, "curve": None}]},
        lambda facts: facts | {"events": [{"budget": {"kind": "pure", "epsilon": "inf"}, "curve": None}]},
        lambda facts: facts | {"events": [{"budget": {"kind": "pure", "epsilon": 9.0}, "curve": None}]},
        lambda facts: facts | {"events": [{"budget": {"kind": "zcdp", "rho": 0.1}, "curve": None}]},
        lambda facts: facts | {"events": [{"budget": {"kind": "pure", "epsilon": 0.1}, "curve": {"kind": "magic"}}]},
    ],
)
def test_records_with_a_right_hash_and_a_wrong_content_are_refused(charged, change):
    """What cannot be understood never costs zero, and what exceeds the limit was never admitted."""
    rewritten(charged, change)
    with pytest.raises(LedgerError, match=r"cannot be understood|exceed its limit"):
        Ledger(charged)


@pytest.mark.parametrize(
    "change",
    [
        *(lambda facts, form=form: facts | {"format": form} for form in (1, 2, 4, 3.0)),
        lambda facts: {name: fact for name, fact in facts.items() if name != "max_rows_per_person"},
        lambda facts: facts | {"limit": {"kind": "pure"}},
        *(lambda facts, rows=rows: facts | {"max_rows_per_person": rows} for rows in (None, 0, True, 2.0, "2")),
    ],
)
def test_a_header_with_a_right_hash_and_a_wrong_content_is_refused(path, change):
    """It may come from a newer version."""
    Ledger(path, limit=1.0)
    rewritten(path, change)
    with pytest.raises(LedgerError, match="cannot be understood"):
        Ledger(path)


# Details, notes and sub-limits


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts | {"note_on": 4},
        lambda facts: facts | {"note_on": 0},
        lambda facts: facts | {"details": {"colour": "red"}},
        lambda facts: facts | {"events": []},
        lambda facts: facts | {"number": 5},
        lambda facts: facts | {"time": "2026-01-01T00:00:00+00:00"},
        lambda facts: facts | {"details": {"release": "fit"}},
    ],
)
def test_a_note_with_a_right_hash_and_a_wrong_content_is_refused(charged, change):
    """No note on a charge that is not there, and nothing beside its own fields: no charge can pass for a note."""
    Ledger(charged).note(3, {"sha256": "ab"})
    assert Ledger(charged).spent() == ApproxDP(1.75, 1e-7)
    rewritten(charged, change)
    with pytest.raises(LedgerError, match="cannot be understood"):
        Ledger(charged)


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts | {"amount": 0.0},
        lambda facts: facts | {"amount": "1.0"},
        lambda facts: facts | {"per_year": 1},
        lambda facts: facts | {"colour": "red"},
        lambda facts: facts | {"sublimit_on": 3},
        lambda facts: {name: fact for name, fact in facts.items() if name != "per_year"},
        lambda facts: facts | {"events": []},
    ],
)
def test_a_sublimit_with_a_right_hash_and_a_wrong_content_is_refused(charged, change):
    """Nor does anything pass for one that has other fields beside its own."""
    Ledger(charged).sublimit("study", 1.0, per_year=True)
    assert Ledger(charged).spent() == ApproxDP(1.75, 1e-7)
    rewritten(charged, change)
    with pytest.raises(LedgerError, match="cannot be understood"):
        Ledger(charged)


def test_charges_above_the_limit_with_right_hashes_are_refused(charged):
    """No ledger admitted them."""

    def larger(facts):
        (event,) = facts["events"]
        return facts | {"events": [event | {"budget": event["budget"] | {"epsilon": 9.0}}]}

    rewritten(charged, larger)
    with pytest.raises(LedgerError, match="exceed its limit, so it was changed by hand"):
        Ledger(charged)


def test_a_second_note_that_contradicts_the_first_is_refused(charged):
    """Put in by hand, with a right hash: no checksum is replaced by another one."""
    ledger = Ledger(charged)
    ledger.note(3, {"sha256": "ab"})
    ledger.note(3, {"sha256": "ab"})
    assert Ledger(charged).entries()["sha256"].iloc[2] == "ab"
    rewritten(charged, lambda facts: facts | {"details": {"sha256": "cd"}})
    with pytest.raises(LedgerError, match="cannot be understood"):
        Ledger(charged)


def test_a_charge_that_calls_itself_a_note_is_refused(charged):
    """It is not taken out of the total."""
    rewritten(charged, lambda facts: facts | {"note_on": 1})
    with pytest.raises(LedgerError, match="cannot be understood"):
        Ledger(charged)


def test_the_persons_are_part_of_the_file(path):
    """Stated at its creation; a record for fewer rows, put in by hand, is not understood."""
    Ledger(path, limit=1.0, max_rows_per_person=5).charge(0.25)
    assert Ledger(path).max_rows_per_person == Ledger(path, limit=1.0).max_rows_per_person == 5
    assert pickle.loads(pickle.dumps(Ledger(path))).max_rows_per_person == 5
    rewritten(path, lambda facts: facts | {"events": [facts["events"][0] | {"rows_per_person": 4}]})
    with pytest.raises(LedgerError, match="cannot be understood"):
        Ledger(path)


def test_a_flipped_byte_is_refused_or_means_nothing(charged, tmp_path):
    """At 300 random places: the ledger refuses, or says what it said, byte for byte."""
    rng = np.random.default_rng(11)
    whole, expected = charged.read_bytes(), content(charged)
    copied = tmp_path / "copy.db"
    refused = 0
    for position in rng.choice(len(whole), 300, replace=False):
        damaged = bytearray(whole)
        damaged[position] ^= int(rng.integers(1, 256))
        copied.write_bytes(damaged)
        try:
            assert content(copied) == expected
        except LedgerError:
            refused += 1
        for ending in ("-wal", "-shm", "-journal"):
            beside(copied, ending).unlink(missing_ok=True)
    assert refused > 10


def test_each_flipped_byte_of_a_record_is_refused(charged, tmp_path):
    """Text, hash and tip hold nothing that means nothing."""
    whole = charged.read_bytes()
    copied = tmp_path / "copy.db"
    with contextlib.closing(sqlite3.connect(charged)) as connection:
        parts = [part for row in connection.execute("SELECT text, hash FROM records") for part in row]
    for part in parts:
        start = whole.index(part.encode())
        for position in range(start, start + len(part), 5):
            damaged = bytearray(whole)
            damaged[position] ^= 1
            copied.write_bytes(damaged)
            with pytest.raises(LedgerError):
                Ledger(copied)


def test_a_truncated_file_is_refused(charged, tmp_path):
    """At every length tried, with a limit given or not."""
    whole = charged.read_bytes()
    copied = tmp_path / "copy.db"
    for length in [0, 1, 15, 16, 100, *range(512, len(whole), 1500), len(whole) - 1]:
        copied.write_bytes(whole[:length])
        with pytest.raises(LedgerError):
            Ledger(copied, limit=ApproxDP(4.0, 1e-6))


def test_a_file_that_was_set_back_is_seen_by_who_has_it_open(charged, tmp_path):
    """By others only with the head at hand."""
    older = shutil.copy(charged, tmp_path / "older.db")
    ledger = Ledger(charged)
    ledger.charge(0.125)
    head = ledger.head
    assert ledger.verify(head) == 4
    shutil.copy(older, charged)
    with pytest.raises(LedgerError, match="older copy"):
        ledger.charge(0.125)
    with pytest.raises(LedgerError, match="no record of this ledger has the given head"):
        Ledger(charged).verify(head)
    assert Ledger(charged).verify() == 3


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "others charged since"])
@pytest.mark.parametrize("moved", [True, False], ids=["replaced", "overwritten"])
@pytest.mark.parametrize("what", ["charge", "end", "note", "pickled"])
def test_an_object_misses_its_own_last_record(charged, tmp_path, moved, what, others):
    """If the copy was made just before it, whether the file is replaced or overwritten, and whoever charged since."""
    ledger = Ledger(charged)
    ledger.charge(0.125, details={"intent": "a release"})
    older = Path(shutil.copy(charged, tmp_path / "older.db"))
    {"charge": lambda: ledger.charge(0.125), "end": lambda: ledger.end(4, 1), "pickled": lambda: ledger.charge(0.125)}.get(
        what, lambda: ledger.note(4, {"sha256": "c"})
    )()
    pickled = pickle.dumps(ledger)
    older.replace(charged) if moved else shutil.copy(older, charged)
    for _ in range(others):
        Ledger(charged).charge(0.25)
    with pytest.raises(LedgerError, match=r"an older copy|records up to it were changed or lost"):
        pickle.loads(pickled) if what == "pickled" else ledger.charge(0.125)
    assert Ledger(charged).verify() == 4 + others


def test_a_file_that_was_exchanged_or_removed_is_seen(charged, tmp_path):
    """Charges of one study do not go to the ledger of another."""
    ledger = Ledger(charged)
    pickled = pickle.dumps(ledger)
    Ledger(tmp_path / "other.db", limit=ApproxDP(4.0, 1e-6)).charge(0.5)
    (tmp_path / "other.db").replace(charged)
    with pytest.raises(LedgerError, match="another ledger"):
        ledger.charge(0.1)
    with pytest.raises(LedgerError, match="another ledger"):
        pickle.loads(pickled)
    charged.unlink()
    with pytest.raises(LedgerError, match="is missing"):
        ledger.charge(0.1)
    assert not charged.exists()


def test_earlier_heads_are_part_of_the_chain(path):
    """Each head that was ever shown verifies, and no other."""
    ledger = Ledger(path, limit=1.0)
    heads = [ledger.head]
    for _ in range(3):
        ledger.charge(0.25)
        heads.append(ledger.head)
    assert len(set(heads)) == 4
    assert [Ledger(path).verify(head) for head in heads] == [3] * 4
    with pytest.raises(LedgerError, match="newer copy"):
        ledger.verify("0" * 64)


# What the system refuses


def refusal_without_rights(ask):
    """The message of the LedgerError that `ask` raises in a process that may not do everything."""

    def run(queue):
        if os.geteuid() == 0:
            os.seteuid(65534)
        try:
            ask()
        except LedgerError as error:
            queue.put(str(error))
        else:
            queue.put("")

    queue = FORK.Queue()
    child = FORK.Process(target=run, args=(queue,))
    child.start()
    message = queue.get(timeout=60)
    child.join()
    return message


def test_a_read_only_file_or_folder_is_refused_with_advice():
    """Charges need to write to both; nothing is left behind."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "study.db"
        Ledger(path, limit=1.0).charge(0.25)
        for mode_of_file, mode_of_folder in ((0o444, 0o777), (0o666, 0o555), (0o444, 0o555), (0o000, 0o777)):
            path.chmod(mode_of_file)
            folder.chmod(mode_of_folder)
            message = refusal_without_rights(lambda: Ledger(path).charge(0.25))
            assert "needs to write to the file and to its folder" in message, (mode_of_file, mode_of_folder)
        folder.chmod(0o555)
        message = refusal_without_rights(lambda: Ledger(folder / "new.db", limit=1.0))
        assert "needs to write" in message
        folder.chmod(stat.S_IRWXU)
        path.chmod(0o600)
        assert Ledger(path).spent() == PureDP(0.25)


@pytest.mark.parametrize(("mode_of_file", "mode_of_folder"), [(0o444, 0o777), (0o666, 0o555), (0o444, 0o555)])
def test_who_may_read_alone_sees_all_and_leaves_nothing(mode_of_file, mode_of_folder):
    """What was spent, the entries and the head; no file appears that would stand in the way of who may charge."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "study.db"
        Ledger(path, limit=1.0).charge(0.25)
        expected = content(path)
        path.chmod(mode_of_file)
        folder.chmod(mode_of_folder)

        def read():
            assert content(path) == expected
            assert Ledger(path).verify(expected[3]) == 1
            raise LedgerError("read")

        assert refusal_without_rights(read) == "read"
        assert [entry.name for entry in folder.iterdir()] == ["study.db"]
        folder.chmod(stat.S_IRWXU)


def test_who_may_read_alone_sees_the_newest_charges_in_the_log():
    """While others have the file open; and where a crash left a log without its index, of which a copy is read."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "study.db"
        ledger = Ledger(path, limit=1.0)
        with contextlib.closing(sqlite3.connect(path)) as connection:
            connection.execute("SELECT * FROM tip").fetchall()  # the last to close moves the log into the file
            ledger.charge(0.25)
            assert beside(path, "-wal").stat().st_size > 0
            for file in (path, beside(path, "-wal"), beside(path, "-shm")):
                file.chmod(0o444)
            folder.chmod(0o555)

            def read():
                raise LedgerError(str(Ledger(path).spent().epsilon))

            assert refusal_without_rights(read) == "0.25"
            folder.chmod(stat.S_IRWXU)
            aside = shutil.copytree(folder, folder / "crashed")
            beside(aside / "study.db", "-shm").unlink()
            folder.chmod(0o755)
            aside.chmod(0o555)

            def read_aside():
                assert Ledger(aside / "study.db").verify() == 1
                raise LedgerError(str(Ledger(aside / "study.db").spent().epsilon))

            assert refusal_without_rights(read_aside) == "0.25"
            assert sorted(entry.name for entry in aside.iterdir()) == ["study.db", "study.db-wal"]
            beside(aside / "study.db", "-wal").chmod(0o000)
            assert "cannot be opened" in refusal_without_rights(read_aside)
            beside(aside / "study.db", "-wal").chmod(0o644)
            with pytest.MonkeyPatch.context() as patched:
                copied = shutil.copyfile

                def copied_while_it_is_charged(source, target):
                    with beside(aside / "study.db", "-wal").open("ab") as log:
                        log.write(b"more")
                    return copied(source, target)

                patched.setattr(os, "access", lambda path, mode, **options: False)
                patched.setattr(shutil, "copyfile", copied_while_it_is_charged)
                with pytest.raises(LedgerError, match="was charged by another user while it was read"):
                    Ledger(aside / "study.db")
            aside.chmod(stat.S_IRWXU)
            assert Ledger(aside / "study.db").spent() == PureDP(0.25)


def test_a_file_that_is_charged_while_it_is_read_without_locks_is_refused():
    """There is no lock that its reader may take."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "study.db"
        Ledger(path, limit=1.0).charge(0.25)
        path.chmod(0o644)

        def read():
            os.access = lambda path, mode, **options: mode != os.W_OK  # its owner asks where the tests do not run as root
            ledger = Ledger(path)
            with ledger._records.session(writing=False) as session:
                go.set()
                assert charged.wait(60)
                session.records_after(None)

        go, charged = FORK.Event(), FORK.Event()
        Path(name).chmod(0o755)

        def charge():
            go.wait(60)
            Ledger(path).charge(0.25)
            charged.set()

        child = FORK.Process(target=charge)
        child.start()
        assert "was charged by another user while it was read" in refusal_without_rights(read)
        child.join()


def test_a_file_that_stays_locked_is_refused_with_advice(charged, monkeypatch):
    """After a while; the charge was not made."""
    monkeypatch.setattr("confide.accounting.file_storage._PATIENCE", 0.05)
    with contextlib.closing(sqlite3.connect(charged, isolation_level=None)) as connection:
        ledger = Ledger(charged)
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError, match="another process"):
            ledger.charge(0.25)
        assert ledger.spent() == ApproxDP(1.75, 1e-7)
    ledger.charge(0.25)


def test_each_charge_is_synced_before_it_returns(path, monkeypatch):
    """The settings that durability rests on, as SQLite itself reports them."""
    from confide.accounting import file_storage

    Ledger(path, limit=1.0)
    with contextlib.closing(file_storage._connection(path, "rw")) as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "fullfsync", "checkpoint_fullfsync", "wal_autocheckpoint")
        }
    assert settings == {
        "journal_mode": "wal",
        "synchronous": 3,
        "fullfsync": 1,
        "checkpoint_fullfsync": 1,
        "wal_autocheckpoint": 0,
    }


# Several processes


def test_creating_survives_a_kill(path):
    """Killed at any moment, there is a ledger or there is none, and the same call goes on."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        child = FORK.Process(target=Ledger, args=(path,), kwargs={"limit": 1.0})
        child.start()
        time.sleep(float(rng.uniform(0.0, 0.02)))
        os.kill(child.pid, signal.SIGKILL)
        child.join()
        Ledger(path, limit=1.0).charge(0.5)
        path.unlink()


# Wrappers that do not know about privacy


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 2))
    return X, (X[:, 0] > 0).astype(int)


def test_a_ledger_pickles_as_its_path_and_identity(charged):
    """The copy charges the same file."""
    ledger = Ledger(charged)
    again = pickle.loads(pickle.dumps(ledger))
    again.charge(0.25)
    assert ledger.spent() == again.spent() == ApproxDP(2.0, 1e-7)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # numpy's threads are idle
@pytest.mark.filterwarnings("ignore::confide.errors.BudgetWarning")
def test_nested_fits_clones_and_deep_copies_charge_the_one_file(path, rows):
    """A search inside a cross-validation, with worker processes outside, which are forked: joblib's own import all anew."""
    X, y = rows
    ledger = Ledger(path, limit=100.0)
    search = GridSearchCV(LogisticRegression(0.5, ledger=ledger), {"alpha": [0.1, 1.0]}, cv=2)
    with parallel_backend("multiprocessing"):
        cross_val_score(clone(search), X, y, cv=2, n_jobs=2)
    assert ledger.spent() == PureDP(2 * 5 * 0.5)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
@pytest.mark.filterwarnings("ignore::confide.errors.BudgetWarning")
def test_a_search_beyond_the_limit_stops_there(path, rows):
    """The fits that no longer fit raise; what was granted stays within the limit."""
    X, y = rows
    ledger = Ledger(path, limit=2.0)
    search = GridSearchCV(LogisticRegression(0.5, ledger=ledger), {"alpha": [0.1, 1.0]}, cv=3, n_jobs=2, error_score="raise")
    with parallel_backend("multiprocessing"), pytest.raises(BudgetExceeded):
        search.fit(X, y)
    assert ledger.spent().epsilon <= 2.0


def test_a_batch_serves_estimators(path, rows):
    """Each fit uses up one planned release."""
    X, y = rows
    ledger = Ledger(path, limit=1.0)
    model = LogisticRegression(0.5)
    event = model.plan(*X.shape).event
    batch = ledger.plan([event, event], purpose="two models")
    model.set_params(ledger=batch)
    for _ in range(2):
        clone(model).fit(X, y)
    with pytest.raises(BudgetExceeded):
        clone(model).fit(X, y)
    assert ledger.entries()["purpose"].tolist() == ["two models"]
    assert ledger.spent() == PureDP(1.0)


def test_the_next_charge_reads_what_is_new_and_not_everything(path, monkeypatch):
    """Rows that a charge of one ledger reads after 60 of its own, and after one that another ledger on the file made."""
    read = []
    whole = file_storage.following

    def counted(place, last, rows, tips):
        read.append(len(rows))
        return whole(place, last, rows, tips)

    monkeypatch.setattr(file_storage, "following", counted)
    ledger, other = Ledger(path, limit=1e6), Ledger(path, limit=1e6)
    for _ in range(60):
        ledger.charge(0.5)
    read.clear()
    ledger.charge(0.5)
    assert 1 <= max(read) <= 2
    other.charge(0.5)
    assert max(read) > 60
    read.clear()
    ledger.charge(0.5)
    assert 2 <= max(read) <= 3


def test_a_ledger_is_known_by_four_bytes_of_its_header(path):
    """SQLite keeps the kind of a file at byte 68: "conf". Files of every version have it."""
    Ledger(path, limit=1.0)
    assert path.read_bytes()[68:72] == b"conf"


def test_a_ledger_that_cannot_be_put_in_place_leaves_nothing_behind(path, monkeypatch):
    """A disk without hard links, say: the part that was made is gone, and the message names the way out."""

    def refused(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", refused)
    with pytest.raises(LedgerError, match=r"cannot be created: Operation not supported\. Use a folder"):
        Ledger(path, limit=1.0)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("folder_is_writable", "beside_it", "mode"),
    [
        (True, {}, "rw"),
        (False, {}, "ro&immutable=1"),
        (False, {"-wal": b""}, "ro&immutable=1"),
        (False, {"-wal": b"log"}, "rw&copied=1"),
        (False, {"-wal": b"log", "-shm": b"index"}, "ro"),
    ],
)
def test_how_a_file_is_read_depends_on_its_log_and_on_the_rights(path, folder_is_writable, beside_it, mode, monkeypatch):
    """Without locks where there is no log, in a copy where the log has no index, and as usual otherwise."""
    records = file_storage.RecordsInFile(path)
    Ledger(path, limit=1.0)
    for ending, text in beside_it.items():
        beside(path, ending).write_bytes(text)
    monkeypatch.setattr(os, "access", lambda place, *_, **__: folder_is_writable or place != path.parent)
    assert records._mode_of_reading() == mode


@pytest.mark.parametrize("writing", [True, False])
def test_a_session_for_writing_never_reads_a_copy(path, writing, monkeypatch):
    """A charge asks for the file itself and for its lock, whatever this user may do."""
    Ledger(path, limit=1.0)
    records, opened = file_storage.RecordsInFile(path), []
    whole = file_storage._connection
    monkeypatch.setattr(os, "access", lambda *_, **__: False)
    monkeypatch.setattr(file_storage, "_connection", lambda place, mode: opened.append(mode) or whole(place, mode))
    with records.session(writing=writing) as session, contextlib.suppress(sqlite3.OperationalError):
        assert session._session.in_transaction
        other = sqlite3.connect(path, timeout=0.0, isolation_level=None)
        with contextlib.closing(other):
            if writing:
                with pytest.raises(sqlite3.OperationalError, match="locked"):
                    other.execute("BEGIN IMMEDIATE")
    assert opened == ["rw" if writing else "ro&immutable=1"]


def test_a_connection_that_cannot_be_set_up_is_closed(path, monkeypatch):
    """It would hold the file open otherwise."""
    Ledger(path, limit=1.0)
    closed = []

    class Connection(sqlite3.Connection):
        def execute(self, *_):
            raise sqlite3.OperationalError("no pragma")

        def close(self):
            closed.append(self)
            super().close()

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *place, **options: connect(*place, factory=Connection, **options))
    with pytest.raises(LedgerError, match="Nothing was used"):
        Ledger(path).spent()
    assert len(closed) == 1


def test_an_interrupt_before_a_session_is_closed_loses_no_charge(path, monkeypatch):
    """Its lock is held until the connection is closed, by the next session of the process, in whichever thread that is.

    A connection that is left without its lock goes on in a log that another process deletes.
    """
    monkeypatch.setattr(file_storage, "_PATIENCE", 0.2)
    ledger, turns = Ledger(path, limit=10.0), file_storage.one_at_a_time

    def interrupt(self):
        if self.endings:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(type(turns), "end", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge(1.0, purpose="interrupted")
    assert len(turns.endings) == 2
    elsewhere = concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
    elsewhere.submit(patience_of, 0.2).result()
    with elsewhere, pytest.raises(LedgerError, match="held by another process"):
        elsewhere.submit(charge_once, path, "too early").result()
    with concurrent.futures.ThreadPoolExecutor(1) as another:
        another.submit(ledger.charge, 1.0, purpose="after it").result()
    assert turns.endings == []
    with concurrent.futures.ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as elsewhere:
        elsewhere.submit(charge_once, path, "elsewhere").result()
    ledger.charge(1.0, purpose="at the end")
    assert list(Ledger(path).entries().purpose) == ["interrupted", "after it", "elsewhere", "at the end"]


def test_a_fork_ends_what_an_interrupt_left_open(path, monkeypatch):
    """The child has neither the connection nor the file."""
    ledger, turns = Ledger(path, limit=10.0), file_storage.one_at_a_time
    with monkeypatch.context() as patch:
        patch.setattr(type(turns), "end", lambda self: None)
        ledger.charge(1.0)
    child = FORK.Process(target=lambda: os._exit(len(turns.endings)))
    child.start()
    child.join()
    assert (child.exitcode, turns.endings) == (0, [])


def patience_of(seconds):
    """In another process: wait so long for others."""
    file_storage._PATIENCE = seconds


def charge_once(path, purpose):
    """In another process."""
    Ledger(path).charge(1.0, purpose=purpose)


@pytest.mark.parametrize("statement", ["DROP TRIGGER tip_is_not_deleted", "CREATE INDEX more ON records (hash)"])
def test_tables_and_triggers_of_another_kind_are_refused(charged, statement):
    """A trigger that is gone, or an index more: each is no longer what makes a ledger safe."""
    with contextlib.closing(sqlite3.connect(charged)) as connection:
        connection.execute(statement)
        connection.commit()
    with pytest.raises(LedgerError, match="its tables or triggers are not those of a ledger"):
        Ledger(charged)


def test_the_whole_file_is_checked_once_and_rows_before_the_first_are_seen(charged, monkeypatch):
    """SQLite's own check, when records are read from the start; numbers from -2^63 on."""
    asked, connect = [], sqlite3.connect

    class Connection(sqlite3.Connection):
        def execute(self, statement, *values):
            asked.append(statement)
            return super().execute(statement, *values)

    monkeypatch.setattr(sqlite3, "connect", lambda *place, **options: connect(*place, factory=Connection, **options))
    ledger = Ledger(charged)
    assert asked.count("PRAGMA integrity_check") == 1
    asked.clear()
    ledger.charge(0.1)
    assert "PRAGMA integrity_check" not in asked
    statements(charged, "INSERT INTO records VALUES (-9223372036854775808, 'x', 'y')")
    with pytest.raises(LedgerError, match="damaged or was changed by hand"):
        Ledger(charged)


def test_a_copy_in_another_thread_lets_no_other_process_in(path, monkeypatch):
    """Whoever closes the file anywhere drops the byte that this process locked, but not the lock of the opening."""
    ledger = Ledger(path, limit=PureDP(0.1))
    charge = (
        "import sys; from confide.accounting import file_storage; from confide import Ledger, PureDP\n"
        "file_storage._PATIENCE = 0.2\nLedger(sys.argv[1]).charge(PureDP(0.1))"
    )
    append, ends = file_storage.RecordsInFile.append, []

    def copied_meanwhile(records, record):
        path.read_bytes()
        ends.append(subprocess.run([sys.executable, "-c", charge, str(path)], capture_output=True, text=True, check=False))
        append(records, record)

    monkeypatch.setattr(file_storage.RecordsInFile, "append", copied_meanwhile)
    ledger.charge(PureDP(0.1))
    assert "Nothing was used" in ends[0].stderr
    assert len(Ledger(path).entries()) == 1
