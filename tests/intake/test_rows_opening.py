"""`open_rows` describes rows before any is read, and refuses options that contradict each other."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import confide
from confide import FileError, InputError, ParameterError
from confide.data.file_rows import ArrayRows, FileRows
from confide.intake.rows import open_rows
from tests.data.tables import SCHEMA

NO_TARGET = confide.Schema(columns=SCHEMA.columns)
OF_PERSONS = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="who")
OF_NUMBERS = confide.Schema(columns=SCHEMA.columns, target={"column": "visits", "low": 0, "high": 9})


@pytest.fixture
def folder(tmp_path):
    """A table and two arrays."""
    (tmp_path / "t.csv").write_text("who,age,debt,work,size,ill,visits\n")
    np.save(tmp_path / "X.npy", np.ones((3, 2)))
    np.save(tmp_path / "y.npy", np.array([0, 1, 1]))
    return tmp_path


def foreign(library: str) -> object:
    """An object that a class of another library made, as far as `open_rows` asks."""
    return type("Frame", (), {"__module__": f"{library}.core"})()


NEEDS_SCHEMA, NO_SCHEMA = "needs a schema with a target", "takes no schema"
DESCRIBED, NEITHER = "schema does not describe", "cache and progress are for files with a table"
REFUSED = {
    "a schema that is none": ("t.csv", {"schema": {"age": 1}}, "confide.Schema or the path"),
    "progress that is no function": ("t.csv", {"schema": SCHEMA, "progress": 1}, "progress must be"),
    "a table without a schema": ("t.csv", {}, NEEDS_SCHEMA),
    "a table without a target": ("t.csv", {"schema": NO_TARGET}, NEEDS_SCHEMA),
    "a table with a target and no schema": ("t.csv", {"target": "visits"}, NEEDS_SCHEMA),
    "a table with labels": ("t.csv", {"schema": SCHEMA, "labels": "y.npy"}, "schema's target"),
    "a target that is no name": ("t.csv", {"schema": SCHEMA, "target": 3}, DESCRIBED),
    "a target among the columns": ("t.csv", {"schema": SCHEMA, "target": "age"}, DESCRIBED),
    "the column of persons as target": ("t.csv", {"schema": OF_PERSONS, "target": "who"}, DESCRIBED),
    "a target beside that of the schema": ("t.csv", {"schema": OF_NUMBERS, "target": "debt"}, "so leave `target` out"),
    "a cache that is no folder": ("t.csv", {"schema": SCHEMA, "cache": "/no/such/folder"}, "folder that exists"),
    "arrays with a schema": ("X.npy", {"schema": SCHEMA, "labels": "y.npy"}, NO_SCHEMA),
    "arrays without labels": ("X.npy", {}, NO_SCHEMA),
    "arrays with a target": ("X.npy", {"labels": "y.npy", "target": "visits"}, NO_SCHEMA),
    "arrays with a cache": ("X.npy", {"labels": "y.npy", "cache": True}, NEITHER),
    "arrays with progress": ("X.npy", {"labels": "y.npy", "progress": print}, NEITHER),
    "arrays with a client": ("X.npy", {"labels": "y.npy", "client": object()}, NEITHER),
    "arrays with labels in memory": ("X.npy", {"labels": np.ones(3)}, "path of a NumPy file"),
    "Dask with a cache": ("dask", {"schema": SCHEMA, "cache": True}, NEITHER),
    "Dask with progress": ("dask_expr", {"schema": SCHEMA, "progress": print}, NEITHER),
    "Spark with a cache": ("pyspark", {"schema": SCHEMA, "cache": True}, NEITHER),
    "Spark with a client": ("pyspark", {"schema": SCHEMA, "client": object()}, NEITHER),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_do_not_go_together_are_refused(folder, name, monkeypatch):
    """In one line that names the option, before any row is read."""
    rows, options, words = REFUSED[name]
    monkeypatch.chdir(folder)
    given = foreign(rows) if "." not in rows else Path(rows)
    with pytest.raises(ParameterError, match=words) as refused:
        open_rows(given, **options)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(("library", "function"), [("dask", "rows_of_frame"), ("pyspark", "rows_of_frame")])
def test_frames_of_a_cluster_go_to_the_module_of_their_library(library, function, monkeypatch):
    """With the schema and the target; the module is imported no earlier."""
    seen = []
    module = ModuleType("confide.data.some")
    setattr(module, function, lambda *given: seen.append(given) or "rows")
    monkeypatch.setattr("importlib.import_module", lambda name: module if name.startswith("confide.data.") else None)
    frame = foreign(library)
    assert open_rows(frame, SCHEMA, target="visits") == "rows"
    assert seen == [(frame, SCHEMA, None, "visits") if library == "dask" else (frame, SCHEMA, "visits")]


def test_a_file_is_opened_with_the_types_of_its_schema(folder):
    """Numbers for numbers and the target of a regressor, text for categories, labels and persons; no other column."""
    (part,) = open_rows(folder / "t.csv", OF_PERSONS).parts
    numbers = {"age": "number", "debt": "number"}
    text = {"work": "text", "size": "text", "who": "text"}
    assert part.kinds == numbers | text | {"ill": "text"}
    (part,) = open_rows(folder / "t.csv", OF_PERSONS, target="visits").parts
    assert part.kinds == numbers | text | {"visits": "number"}
    for named in (None, "visits"):
        (part,) = open_rows(folder / "t.csv", OF_NUMBERS, target=named).parts
        assert part.kinds["visits"] == "number"


def test_a_schema_may_be_the_path_of_one(folder):
    """In TOML."""
    (folder / "schema.toml").write_text(SCHEMA.to_toml(), encoding="utf-8")
    rows = open_rows(folder / "t.csv", folder / "schema.toml", cache=folder)
    assert isinstance(rows, FileRows)
    assert rows.schema == SCHEMA
    assert rows.cache == folder
    assert open_rows(folder / "t.csv", SCHEMA).cache is None
    assert open_rows(folder / "t.csv", SCHEMA, cache=True).cache == ""


def test_numpy_files_are_mapped_without_their_pickles(folder):
    """Rows and labels; objects, which only pickles hold, and other numbers are refused with the name of the file."""
    rows = open_rows(folder / "X.npy", labels=folder / "y.npy")
    assert isinstance(rows, ArrayRows)
    assert isinstance(rows.rows, np.memmap)
    assert rows.labels.tolist() == [0, 1, 1]
    assert [stamp.path.name for stamp in rows.stamps] == ["X.npy", "y.npy"]
    np.save(folder / "objects.npy", np.array([[object()]]), allow_pickle=True)
    with pytest.raises(FileError, match=r"objects\.npy .* objects are not read"):
        open_rows(folder / "objects.npy", labels=folder / "y.npy")
    for wrong in (np.ones((3, 2), dtype=np.int64), np.ones(3)):
        np.save(folder / "wrong.npy", wrong)
        with pytest.raises(InputError, match=r"wrong\.npy must hold"):
            open_rows(folder / "wrong.npy", labels=folder / "y.npy")


class Opens:
    """What unpickles by calling a function."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_by_the_name_of_a_numpy_file_is_not_run(folder):
    """NumPy would load one where pickles are allowed, and so run code."""
    (folder / "X.npy").write_bytes(pickle.dumps(Opens(folder / "was run")))
    with pytest.raises(FileError, match="not a NumPy file"):
        open_rows(folder / "X.npy", labels=folder / "y.npy")
    assert not (folder / "was run").exists()
