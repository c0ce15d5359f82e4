"""Rows that come once are kept in a file that its owner alone can read, for as long as they are used and no longer."""

from __future__ import annotations

import gc
import os
import pickle
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

import confide
from confide.data import spooled as module
from confide.data.spooled import SpooledFile, as_frame, pieces_of, spooled, spooled_cells, spooled_pieces
from confide.errors import FileError, InputError
from tests.data.tables import SCHEMA, made_up

CELL = "secret 4711"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """The folder of temporary files of these tests."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.posix
def test_only_its_owner_can_read_it_and_it_goes_with_its_rows(folder):
    """In messages it has the name of its source; a copy that a worker gets is a path as any other."""
    rows = confide.open_rows(pa.Table.from_pandas(made_up(50)).to_reader(), SCHEMA)
    path = rows.parts[0].path
    assert f"{path}" == "the RecordBatchReader"
    assert pickle.loads(pickle.dumps(path)) == Path(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert path.parent.parent == folder
    del rows, path
    gc.collect()
    assert not list(folder.iterdir())


def test_a_frame_of_it_holds_no_name():
    """The table is read from a file that is already removed."""
    table = as_frame(iter([pd.DataFrame({"x": [1, 2]}, index=[7, 8]), pd.DataFrame({"x": [0.5]})]))
    assert table.to_pydict() == {"x": [1.0, 2.0, 0.5]}
    assert as_frame(table) is table
    gc.collect()
    assert not list(Path(tempfile.gettempdir()).iterdir())


def test_a_source_that_fails_leaves_nothing(folder):
    """Neither a file nor a word of the error, which may quote a cell."""

    def failing():
        yield pd.DataFrame({"x": [1.0]})
        raise ValueError(CELL)

    with pytest.raises(InputError, match=r"the generator could not be read to its end \(ValueError\)") as caught:
        spooled_pieces(failing())
    assert CELL not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(InputError, match="has no rows"):
        spooled_pieces(iter([pd.DataFrame({"x": []})]))
    with pytest.raises(KeyboardInterrupt):
        spooled("a", "the rows", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
    del caught
    gc.collect()
    assert not list(folder.iterdir())


@pytest.mark.posix
def test_a_full_disk_is_named(folder, monkeypatch):
    """With what to do."""

    def full(_):
        raise OSError(28, "No space left on device")

    with pytest.raises(FileError, match=r"No space left on device.*TMPDIR"):
        spooled("a", "the rows", full)
    monkeypatch.setattr(tempfile, "tempdir", str(folder / "absent"))
    with pytest.raises(FileError, match="No such file"):
        spooled("a", "the rows", lambda _: None)


KILLED = """
import os, sys, tempfile
from confide.data.spooled import spooled
kept = spooled("rows.csv", "the rows", lambda stream: stream.write(b"a"))
if sys.argv[1] == "fork":
    child = os.fork()
    if not child:
        sys.exit()
    os.waitpid(child, 0)
    print(kept.exists(), flush=True)
if sys.argv[1] == "interrupt":
    raise KeyboardInterrupt
if sys.argv[1] == "kill":
    os._exit(9)
"""


@pytest.mark.parametrize("end", ["exit", "interrupt", "kill", pytest.param("fork", marks=pytest.mark.posix)])
def test_it_is_gone_after_the_program(folder, end, monkeypatch):
    """Also after an interruption. A killed program's file is removed by the next one; a copy of a process removes none."""
    run = subprocess.run(
        [sys.executable, "-c", KILLED, end],
        env=os.environ | {"TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.stdout == ("True\n" if end == "fork" else "")
    assert len(list(folder.iterdir())) == (end == "kill")
    kept = spooled("rows.csv", "the rows", lambda stream: stream.write(b"a"))
    monkeypatch.setattr(module, "_SECONDS_TO_LOCK", -1)
    again = spooled("rows.csv", "the rows", lambda stream: stream.write(b"a"))
    assert {path.name for path in folder.iterdir()} == {kept.parent.name, again.parent.name}


def test_cells_come_back_as_they_were():
    """Whatever separators, quotes and ends of lines they hold."""
    cells = ["a,b", 'say "no"', "two\nlines", "back\rwards", "\r\n", " blank ", "ümlaut"]
    path = spooled_cells("rows.csv", "the rows", lambda: [["x", "y"], *([cell, 0.1] for cell in cells), [None, 2**53 + 1]])
    read = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[])
    assert read["x"].tolist() == [*cells, ""]
    assert read["y"].tolist() == ["0.1"] * len(cells) + [str(2**53 + 1)]
    (batch,) = confide.open_rows(
        path, confide.Schema({"x": {"categories": ["a"]}}, {"column": "y", "low": 0, "high": 1})
    ).tables(["x"])
    assert batch["x"].to_pylist()[:-1] == cells


def test_a_lazy_frame_of_an_old_polars_is_refused_with_what_to_do():
    """It could be read only as a whole."""
    old = type("LazyFrame", (), {"collect": None, "__module__": "polars.lazyframe.frame"})
    with pytest.raises(InputError, match=r"update it, or call \.collect\(\)"):
        pieces_of(old())


def test_what_lies_in_memory_comes_in_no_pieces():
    """Arrays, frames, tables, paths and lists are read where they are."""
    frame = pd.DataFrame({"x": [1.0]})
    for rows in (
        frame,
        frame.to_numpy(),
        pa.Table.from_pandas(frame),
        "t.csv",
        Path("t.csv"),
        [frame],
        {"x": 1},
        None,
        frame["x"],
    ):
        assert pieces_of(rows) is None
    assert isinstance(SpooledFile("/x"), Path)
