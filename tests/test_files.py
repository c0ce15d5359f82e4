"""Files that confide writes: checked documents, written in one step, which replace no other file unasked."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import threading
from pathlib import Path

import pytest

import confide
from confide.errors import FileError
from confide.files import (
    FORMAT_VERSION,
    check_output,
    document_text,
    new_file,
    read_document,
    rescued,
    write_document,
    write_text,
)

CONTENT = {"b": [1, 2.5, None, True], "a": {"text": "é"}}


def test_a_document_is_read_as_it_was_written(tmp_path):
    """Values and the order of keys, which has a meaning, are the same."""
    path = tmp_path / "model.json"
    write_document(path, CONTENT)
    found = read_document(path)
    assert found == CONTENT
    assert list(found) == ["b", "a"]
    assert path.read_text(encoding="utf-8") == document_text(CONTENT)


def test_numbers_that_json_lacks_are_refused_before_the_file_is_there(tmp_path):
    """JSON has neither NaN nor infinity."""
    with pytest.raises(ValueError, match="JSON"):
        write_document(tmp_path / "model.json", {"a": float("nan")})
    assert list(tmp_path.iterdir()) == []


def changed(**parts):
    """The text of a document in which some parts are replaced."""
    return json.dumps(json.loads(document_text(CONTENT)) | parts)


NO_DOCUMENTS = {
    "no JSON": ("age,sex\n", "not a model file, or was cut short"),
    "cut short": (document_text(CONTENT)[:-20], "cut short"),
    "nested too deep": ("[" * 100_000, "cut short"),
    "a part twice": (document_text(CONTENT).replace('"kind"', '"content": {}, "kind"'), "part twice"),
    "another kind": (changed(kind="other"), r"not a model file of confide\.$"),
    "no object": ("[]", r"not a model file of confide\.$"),
    "another version": (changed(format_version=FORMAT_VERSION + 1), "format version"),
    "another part": (changed(more=1), "holds parts"),
    "content of another type": (changed(content=[]), "damaged"),
    "changed content": (changed(content=CONTENT | {"a": 1}), "damaged: its checksum"),
    "keys in another order": (changed(content=dict(reversed(CONTENT.items()))), "damaged: its checksum"),
}


@pytest.mark.parametrize(("text", "message"), NO_DOCUMENTS.values(), ids=NO_DOCUMENTS)
def test_what_is_no_document_is_refused(tmp_path, text, message):
    """A FileError names the file and says what is wrong."""
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=message) as refusal:
        read_document(path)
    assert str(path) in str(refusal.value)


def test_files_that_cannot_be_read_are_named(tmp_path):
    """The file is missing, is a folder, or is not text."""
    with pytest.raises(FileError, match=r"cannot read .*none"):
        read_document(tmp_path / "none")
    with pytest.raises(FileError, match="cannot read"):
        read_document(tmp_path)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="not text"):
        read_document(tmp_path / "bytes")


def test_addresses_are_no_places_for_files():
    for use in (check_output, read_document):
        with pytest.raises(FileError, match=r"is an address \(s3\)"):
            use("s3://bucket/model.json")


@pytest.mark.posix
def test_no_file_replaces_another_unasked(tmp_path):
    """If a file is replaced, the new one has the permissions of the old one."""
    path = tmp_path / "a.txt"
    write_text(path, "old")
    path.chmod(0o640)
    with pytest.raises(FileError, match="exists already"):
        write_text(path, "new")
    assert path.read_text() == "old"
    write_text(path, "new", overwrite=True)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_without_write_permission_is_never_replaced(tmp_path):
    """Not even the superuser replaces it."""
    path = tmp_path / "a.txt"
    write_text(path, "old")
    path.chmod(0o444)
    with pytest.raises(FileError, match="no write permission"):
        write_text(path, "new", overwrite=True)
    assert path.read_text() == "old"


@pytest.mark.posix
def test_a_link_keeps_pointing_at_its_file(tmp_path):
    """The file that the link points to is replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new", overwrite=True)
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_a_failure_while_writing_leaves_what_was_there(tmp_path):
    """Neither a part of the new file nor a temporary file is left."""
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail_while_writing():
        with new_file(path, overwrite=True) as unfinished:
            unfinished.write_text("half")
            assert path.read_text() == "old"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail_while_writing()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_that_came_in_the_meantime_is_not_replaced(tmp_path):
    """Whether the file exists is checked again before the new one takes its name."""
    path = tmp_path / "a.txt"

    def write_too_late():
        with new_file(path) as unfinished:
            unfinished.write_text("ours")
            path.write_text("theirs")

    with pytest.raises(FileError, match="exists already"):
        write_too_late()
    assert path.read_text() == "theirs"


def unwritable(folder):
    """Paths where no file can be written, each with words of the refusal."""
    loop = folder / "loop"
    loop.symlink_to(loop)
    fifo = folder / "fifo"
    os.mkfifo(fifo)
    return {
        folder / "none" / "a.txt": "its folder does not exist",
        folder: "it is a folder",
        fifo: "not an ordinary file",
        loop / "a.txt": "cannot write",
        folder / "a\0b": "a file is named by its path",
        folder / ("a" * 5000): "cannot write",
    }


@pytest.mark.posix
def test_places_where_no_file_can_be_are_refused(tmp_path):
    """They are refused before any work, with the reason, and no file is left behind."""
    places = unwritable(tmp_path)
    before = sorted(tmp_path.iterdir())
    for path, words in places.items():
        with pytest.raises(FileError, match=words):
            check_output(path, overwrite=True)
    check_output(tmp_path / "a.txt")
    assert sorted(tmp_path.iterdir()) == before


def test_text_that_cannot_be_written_where_it_should_be_is_rescued(tmp_path):
    """Beside it, under a name that is free; no earlier file is replaced."""
    assert rescued("one", tmp_path / "model.json", "model").startswith(f"in {tmp_path / 'rescued-model.json'}:")
    assert "rescued-model-2.json" in rescued("two", tmp_path / "model.json", "model")
    assert (tmp_path / "rescued-model.json").read_text() == "one"
    assert (tmp_path / "rescued-model-2.json").read_text() == "two"


def ledger_beside(folder):
    """A ledger with a charge, and all names that no file may take because of it; and the log of a ledger that is gone."""
    ledger, orphan = folder / "other.db", folder / "gone.db-wal"
    confide.Ledger(ledger, limit=1.0).charge(0.5)
    orphan.write_bytes(bytes.fromhex("377f0682") + bytes(28))
    link = folder / "link.json"
    link.symlink_to(ledger)
    hard = folder / "hard.json"
    return ledger, [
        ledger,
        link,
        orphan,
        hard,
        *(ledger.with_name(f"other.db{end}") for end in ("-wal", "-shm", "-journal")),
    ]


@pytest.mark.posix
@pytest.mark.parametrize("overwrite", [False, True])
def test_nothing_replaces_a_ledger(tmp_path, overwrite):
    """Whatever is forced, by whatever name; a database of another program is a file like any other."""
    ledger, names = ledger_beside(tmp_path)
    (tmp_path / "hard.json").hardlink_to(ledger)
    before = ledger.read_bytes()
    for name in names:
        for write in (check_output, lambda path, overwrite: write_text(path, "new", overwrite=overwrite)):
            with pytest.raises(FileError, match="is a ledger of confide, or a name that SQLite needs beside one"):
                write(name, overwrite=overwrite)
    assert ledger.read_bytes() == before
    (tmp_path / "hard.json").unlink()
    assert confide.Ledger(ledger).spent() == confide.PureDP(0.5)
    foreign = tmp_path / "foreign.db"
    with contextlib.closing(sqlite3.connect(foreign)) as connection:
        connection.execute("CREATE TABLE a (b)")
    write_text(foreign, "new", overwrite=True)


def test_a_ledger_that_is_in_use_by_another_thread_keeps_its_locks_while_a_file_is_written(tmp_path):
    """Whoever looks at a file closes it, and the system then drops the locks of the process: so the look has to wait."""
    ledger = confide.Ledger(tmp_path / "other.db", limit=1.0)
    refused = []

    def write():
        with pytest.raises(FileError):
            write_text(tmp_path / "other.db", "new", overwrite=True)
        refused.append(True)

    other = threading.Thread(target=write)
    with ledger._records.session(writing=True):
        other.start()
        other.join(0.2)
        assert refused == []
        outsider = contextlib.closing(sqlite3.connect(tmp_path / "other.db", timeout=0.0))
        with outsider as connection, pytest.raises(sqlite3.OperationalError, match="locked"):
            connection.execute("BEGIN IMMEDIATE")
    other.join()
    assert refused == [True]


@pytest.mark.posix
def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path):
    """Those that the process gives to what it makes, and those of the file that is replaced; never more in between."""
    plain, path = tmp_path / "plain", tmp_path / "a.txt"
    plain.touch()
    write_text(path, "one")
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o600)
    with new_file(path, overwrite=True) as unfinished:
        assert stat.S_IMODE(unfinished.stat().st_mode) == 0o600
        unfinished.write_text("two")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.posix
def test_files_that_threads_write_at_once_leave_the_mask_of_the_process_alone(tmp_path):
    """Whoever asks the system for the mask has to change it, and other threads see that."""
    mask, seen, done = os.umask(0o027), set(), threading.Event()
    status = Path("/proc/self/status")

    def watch():
        while not done.is_set():
            seen.update(line for line in status.read_text().splitlines() if line.startswith("Umask:"))

    def write(name):
        for _ in range(50):
            write_text(tmp_path / name, "text", overwrite=True)
            seen.add(stat.S_IMODE((tmp_path / name).stat().st_mode))
            (tmp_path / name).unlink()

    threads = [threading.Thread(target=write, args=(str(number),)) for number in range(2)]
    watcher = threading.Thread(target=watch)
    try:
        for thread in (watcher, *threads) if status.exists() else threads:
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        assert seen <= {0o640, "Umask:\t0027"}
    finally:
        assert os.umask(mask) == 0o027
