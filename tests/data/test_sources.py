"""Every way in gives the model of the same rows in a Parquet file, to the bit, and none quotes a cell or a secret."""

from __future__ import annotations

import http.server
import importlib
import sqlite3
import subprocess
import sys
import threading
import traceback
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
import pytest

import confide
from confide.data import sources
from confide.data.sources import STATISTICS, facts_of_statistics, files_of, shown_address
from confide.errors import ConfideError, FileError, InputError, ParameterError
from confide.studies.text_tables import names_of_table
from tests.data.tables import SCHEMA, made_up

CELL = "secret 4711"


def needs(library: str) -> Any:
    """The library, or a skipped test that says why."""
    return pytest.importorskip(library, reason=f"{library} is not installed")


def _chunks(frame: pd.DataFrame, folder: Any) -> Any:
    frame.to_csv(folder / "t.csv", index=False)
    return pd.read_csv(folder / "t.csv", chunksize=331, dtype={"work": "str"}), {}


def _relation(frame: pd.DataFrame, folder: Any) -> Any:
    frame.to_parquet(folder / "t.parquet")
    return needs("duckdb").connect().read_parquet(str(folder / "t.parquet")), {}


def _scan(frame: pd.DataFrame, folder: Any) -> Any:
    frame.to_parquet(folder / "t.parquet")
    return pl.scan_parquet(folder / "t.parquet"), {}


def _dataset(frame: pd.DataFrame, folder: Any) -> Any:
    frame.to_parquet(folder / "t.parquet")
    return pa.dataset.dataset(folder / "t.parquet"), {}


def _query(frame: pd.DataFrame, folder: Any) -> Any:
    needs("sqlalchemy")
    connection = sqlite3.connect(folder / "t.db")
    frame.astype({"size": object}).to_sql("people", connection, index=False)
    connection.close()
    return f"sqlite:///{folder / 't.db'}", {"query": "SELECT * FROM people ORDER BY rowid;\n"}


def _partition(frame: pd.DataFrame, folder: Any) -> Any:
    """Folders state the category and, in parts of one row each where it varies, the number."""
    for number, (work, size) in enumerate(
        (work, size) for work in frame["work"].unique() for size in frame["size"].unique()
    ):
        part = frame[(frame["work"] == work) & (frame["size"] == size)].drop(columns=["work", "size"])
        inside = folder / "data" / f"work={work}" / f"size={size}"
        inside.mkdir(parents=True)
        part.to_parquet(inside / f"part{number}.parquet")
    (folder / "data" / "_SUCCESS").touch()
    return folder / "data", {}


def _stata(frame: pd.DataFrame, folder: Any) -> Any:
    needs("pyreadstat").write_dta(frame.astype({"size": "float64"}), str(folder / "t.dta"))
    return folder / "t.dta", {}


def _workbook(frame: pd.DataFrame, folder: Any) -> Any:
    needs("python_calamine")
    needs("openpyxl")
    frame.to_excel(folder / "t.xlsx", index=False)
    return folder / "t.xlsx", {}


WAYS = {
    "an Arrow stream": lambda frame, _: (pa.Table.from_pandas(frame).to_reader(max_chunksize=100), {}),
    "an iterator of frames": lambda frame, _: ((frame[at : at + 200] for at in range(0, len(frame), 200)), {}),
    "an iterator of Polars": lambda frame, _: (pl.from_pandas(frame).iter_slices(130), {}),
    "coded columns": lambda frame, _: (iter([frame[:200].astype({"work": "category"}), frame[200:]]), {}),
    "chunks of pandas": _chunks,
    "a lazy frame": _scan,
    "a data set": _dataset,
    "a relation": _relation,
    "a query": _query,
    "a partition": _partition,
    "Stata": _stata,
    "a workbook": _workbook,
}


def in_parquet(frame: pd.DataFrame, folder: Any, schema: confide.Schema = SCHEMA) -> Any:
    """The rows of the frame, opened in a Parquet file."""
    (folder / "plain").mkdir(exist_ok=True)
    frame.to_parquet(folder / "plain" / "people.parquet")
    return confide.open_rows(folder / "plain" / "people.parquet", schema)


def coef_of(rows: Any, **given: Any) -> list[Any]:
    """The weights of a private fit whose noise has a seed."""
    return confide.LogisticRegression(2.0, random_state=3, **given).fit(rows).coef_.tolist()  # type: ignore[no-any-return]


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_model_is_that_of_a_parquet_file(tmp_path, way):
    """To the bit, from rows that were opened and from rows that fit was given; and what was kept is gone afterwards."""
    frame = made_up(700, age="float64")
    source, more = way(frame, tmp_path)
    if way is _partition:  # files come in the order of their names
        frame = pd.concat([pd.read_parquet(path, partitioning=None).assign(**_stated(path)) for path in files_of(source)])
        frame = frame.assign(size=frame["size"].astype("int64"))
    expected = coef_of(in_parquet(frame, tmp_path))
    assert coef_of(confide.open_rows(source, SCHEMA, **more)) == expected
    if not more and way not in (_partition, _stata, _workbook):
        assert coef_of(way(frame, tmp_path)[0], schema=SCHEMA) == expected


def _stated(path: Any) -> dict[str, str]:
    return dict(part.split("=") for part in path.parent.parts if part.startswith(("work=", "size=")))


_READ_BY_DUCKDB = """
import sys, duckdb, confide
from pathlib import Path
def resident():
    return int(next(line for line in Path("/proc/self/status").open() if line.startswith("VmRSS")).split()[1]) / 1000
connection = duckdb.connect(config={"threads": 2})
schema = confide.Schema({f"x{i}": {"low": -1, "high": 1} for i in range(20)}, {"column": "y", "negative": 0, "positive": 1})
relation = connection.read_parquet(sys.argv[1])
confide.open_rows(relation.limit(5), schema)
before = resident()
rows = confide.open_rows(relation, schema)
print(resident() - before, connection.execute("SELECT current_setting('threads')").fetchall()[0][0])
connection.execute("SET lock_configuration = true")
confide.open_rows(relation.limit(5), schema)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is counted as Linux does")
def test_duckdb_gives_back_what_its_threads_kept(tmp_path):
    """It would keep 48 of 64 MB; and its settings are as they were, or as they are locked."""
    needs("duckdb")
    rng = np.random.default_rng(0)
    columns = {f"x{i}": rng.uniform(-1, 1, 400_000) for i in range(20)} | {"y": rng.integers(0, 2, 400_000)}
    pa.parquet.write_table(pa.table(columns), tmp_path / "t.parquet", row_group_size=50_000)
    command = [sys.executable, "-c", _READ_BY_DUCKDB, str(tmp_path / "t.parquet")]
    growth, threads = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-2:]
    assert float(growth) < 20.0
    assert threads == "2"


def test_a_connection_that_is_busy_says_what_to_do():
    connection = needs("duckdb").connect()
    connection.execute("CREATE TABLE people AS SELECT range AS age, range % 2 AS ill FROM range(100)")
    relation = connection.sql("SELECT * FROM people")
    connection.execute("SELECT * FROM people")
    with pytest.raises(InputError, match="its connection still gives another result; fetch that one to its end, or take"):
        confide.open_rows(relation, SCHEMA)
    connection.fetchall()
    confide.open_rows(relation, SCHEMA)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_bad_rows_are_refused_before_a_charge(tmp_path, way):
    """One label that is none is enough, and no message or traceback quotes a cell."""
    frame = made_up(400, age="float64")
    frame.loc[377, "ill"] = CELL
    source, more = way(frame, tmp_path)
    ledger = confide.Ledger(limit=5.0)
    with pytest.raises(ConfideError) as caught:
        confide.LogisticRegression(1.0, ledger=ledger).fit(confide.open_rows(source, SCHEMA, **more))
    assert len(ledger.entries()) == 0
    assert CELL not in "".join(traceback.format_exception(caught.value))


def test_predictions_and_evaluations_take_what_fit_takes(tmp_path):
    """A stream, a lazy frame and a relation are scored as the same rows in memory, and so are frames of Dask."""
    frame = made_up(500)
    model = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3).fit(frame, frame["ill"])
    expected = model.predict_proba(frame)
    for rows in (pa.Table.from_pandas(frame).to_reader(), pl.from_pandas(frame).lazy(), iter([frame[:9], frame[9:]])):
        np.testing.assert_array_equal(model.predict_proba(rows), expected)
    asked = {"budget": 1.0, "random_state": 1}
    rates = confide.evaluate(model, frame, frame["ill"], **asked)
    assert confide.evaluate(model, pa.Table.from_pandas(frame).to_reader(), **asked).accuracy == rates.accuracy
    dask = needs("dask.dataframe")
    np.testing.assert_array_equal(model.predict_proba(dask.from_pandas(frame, npartitions=3)), expected)


def test_dask_collections_go_to_fit_as_they_are():
    """With labels in the schema's column, with labels beside them, and as arrays."""
    dask, frame = needs("dask.dataframe"), made_up(900)
    rows = dask.from_pandas(frame, npartitions=4)
    expected = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3).fit(frame, frame["ill"]).coef_.tolist()
    assert coef_of(rows, schema=SCHEMA) == expected
    given = confide.LogisticRegression(2.0, schema=SCHEMA, random_state=3)
    assert given.fit(rows.drop(columns="ill"), rows["ill"]).coef_.tolist() == expected
    array = importlib.import_module("dask.array")
    X, y = np.random.default_rng(1).uniform(-1, 1, (500, 3)), np.arange(500) % 2
    plain = confide.LogisticRegression(2.0, random_state=3).fit(X, y)
    found = confide.LogisticRegression(2.0, random_state=3).fit(array.from_array(X, 100), array.from_array(y, 100))
    assert found.coef_.tolist() == plain.coef_.tolist()


def test_describe_and_bounds_take_sources(tmp_path):
    """What has no target is read in the same way."""
    frame = made_up(600, age="float64")
    asked = {"budget": 1.0, "random_state": 1}
    expected = confide.describe(frame, SCHEMA, **asked)
    reader = pa.Table.from_pandas(frame).to_reader()
    assert confide.describe(reader, SCHEMA, **asked).to_dict() == expected.to_dict()
    bounds = confide.private_bounds(frame, {"age": (0, 150)}, **asked)
    lazy = pl.from_pandas(frame).lazy()
    assert str(confide.private_bounds(lazy, {"age": (0, 150)}, **asked)) == str(bounds)


# Text as it is written.

WRITTEN = {
    "decimal commas": ({"decimal": ",", "separator": ";"}, {"sep": ";", "decimal": ","}, ""),
    "the separator is found": ({"decimal": ","}, {"sep": ";", "decimal": ","}, ""),
    "another encoding": ({"encoding": "utf-16"}, {"encoding": "utf-16"}, ""),
    "title lines": ({"header": 3, "encoding": "latin-1"}, {"encoding": "latin-1"}, "Größen\n,,,\n"),
    "no line of names": ({"header": ["age", "note", "debt", "work", "size", "ill"]}, {"header": False}, ""),
}


@pytest.mark.parametrize(("table", "options", "above"), WRITTEN.values(), ids=WRITTEN)
def test_text_is_read_as_the_schema_says_it_is_written(tmp_path, table, options, above):
    """The model is that of the plain file."""
    frame = made_up(500, age="float64").assign(note="Größe; 'x', \"y\"")
    text = frame.to_csv(index=False, **{key: value for key, value in options.items() if key != "encoding"})
    (tmp_path / "t.csv").write_text(above + text, encoding=options.get("encoding", "utf-8"))
    schema = replace(SCHEMA, table=table)
    assert coef_of(confide.open_rows(tmp_path / "t.csv", schema)) == coef_of(in_parquet(frame, tmp_path))


NUMBERS = {
    "1.234,5": ({"decimal": ",", "thousands": "."}, 1234.5),
    "-12.345.678": ({"decimal": ",", "thousands": "."}, -12345678.0),
    "1'234.5": ({"thousands": "'"}, 1234.5),
    "12,5": ({"decimal": ","}, 12.5),
    "1.5": ({"decimal": ",", "thousands": "."}, None),
    "12.34,5": ({"decimal": ",", "thousands": "."}, None),
    "1,5": ({"thousands": "'"}, None),
    "1.234": ({"decimal": ","}, None),
}


@pytest.mark.parametrize(("cell", "table", "number"), [(cell, *rest) for cell, rest in NUMBERS.items()], ids=NUMBERS)
def test_signs_of_numbers_are_read_as_declared_or_refused(tmp_path, cell, table, number):
    """A sign that is not declared, or thousands in groups of other sizes, could mean two numbers."""
    (tmp_path / "t.csv").write_text(f'x;ill\n"{cell}";yes\n')
    schema = confide.Schema(
        {"x": {"low": -1e9, "high": 1e9}}, {"column": "ill", "negative": "no", "positive": "yes"}, table=table
    )
    rows: Any = confide.open_rows(tmp_path / "t.csv", schema)
    if number is not None:
        (batch,) = rows.tables(["x"])
        assert batch["x"].to_pylist() == [number]
        return
    signs = "numbers with a point.* that a comma stands before decimals" if "decimal" in table else "numbers with a comma"
    with pytest.raises(InputError, match=signs) as caught:
        list(rows.tables(["x"]))
    assert cell not in str(caught.value)


def test_a_file_that_contradicts_its_description_is_refused(tmp_path):
    """With the reason, and without a cell."""
    (tmp_path / "t.csv").write_bytes('x,ill\n"Gr\xf6\xdfe,yes\n'.encode("latin-1"))
    for table, reason in (({"decimal": "."}, "another encoding than"), ({"encoding": "latin-1"}, "a quote is not closed")):
        with pytest.raises(InputError, match=reason) as caught:
            confide.open_rows(tmp_path / "t.csv", replace(SCHEMA, table=table))
        assert "Gr" not in "".join(traceback.format_exception(caught.value))


# Files of other programs.


def labelled(folder: Any, kind: str) -> Any:
    """A file of three columns: a labelled one, one with a code that the file declares to be missing, and the target."""
    library = needs("pyreadstat")
    frame = pd.DataFrame({"sex": [1.0, 2, 2, 1], "age": [30.5, 99, 50, 61], "ill": [0.0, 1, 1, 0]})
    labels: Any = {"sex": {1: "male", 2: "female"}, "ill": {0: "no", 1: "yes"}}
    path = folder / f"people.{kind}"
    if kind == "sav":
        library.write_sav(frame, str(path), variable_value_labels=labels, missing_ranges={"age": [99]})
    else:
        library.write_dta(frame.replace({"age": {99: np.nan}}), str(path), variable_value_labels=labels)
    return path


@pytest.mark.parametrize("kind", ["sav", "dta"])
def test_cells_are_labels_where_the_schema_lists_labels(tmp_path, kind):
    """And codes where it lists codes. What the file declares to be missing is missing."""
    path = labelled(tmp_path, kind)
    columns: Any = {"age": {"low": 0, "high": 100, "missing": True}}
    target: Any = {"column": "ill", "negative": "no", "positive": "yes"}
    by_label = confide.Schema(columns | {"sex": {"categories": ["male", "female"]}}, target)
    by_code = confide.Schema(columns | {"sex": {"categories": [1, 2]}}, target | {"negative": 0, "positive": 1})
    for schema, sex, ill in ((by_label, "male", "no"), (by_code, "1", "0")):
        rows: Any = confide.open_rows(path, schema)
        (batch,) = rows.tables(["sex", "age", "ill"])
        assert [batch["sex"].to_pylist()[0], batch["ill"].to_pylist()[0]] == [sex, ill]
        assert batch["age"].to_pylist() == [30.5, None, 50.0, 61.0]
    assert facts_of_statistics(path).variable_value_labels["sex"] == {1: "male", 2: "female"}


def test_files_of_statistics_are_read_in_pieces(tmp_path, monkeypatch):
    """The pieces meet: no row is lost or read twice."""
    needs("pyreadstat").write_dta(pd.DataFrame({"x": np.arange(50.0)}), str(tmp_path / "t.dta"))
    monkeypatch.setattr(sources, "_ROWS_AT_ONCE", 10)
    (path,) = files_of(tmp_path / "t.dta")
    assert path.read_text().split() == ["x", *map(str, range(50))]
    assert {*STATISTICS} == {".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"}


def test_a_sheet_is_named_and_may_have_title_lines(tmp_path):
    """A workbook of several sheets is refused until the schema names one."""
    needs("python_calamine")
    book = needs("openpyxl").Workbook()
    sheet = book.create_sheet("People")
    for row in (["Our people"], [], ["age", "ill"], [41, "yes"], [None, None], [2.5, "no"]):
        sheet.append(row)
    book.save(tmp_path / "t.xlsx")
    schema = confide.Schema({"age": {"low": 0, "high": 99}}, {"column": "ill", "negative": "no", "positive": "yes"})
    with pytest.raises(InputError, match="several sheets"):
        confide.open_rows(tmp_path / "t.xlsx", schema)
    with pytest.raises(InputError, match='no sheet "Persons"'):
        confide.open_rows(tmp_path / "t.xlsx", replace(schema, table={"sheet": "Persons"}))
    rows: Any = confide.open_rows(tmp_path / "t.xlsx", replace(schema, table={"sheet": "People", "header": 3}))
    assert [batch["age"].to_pylist() for batch in rows.tables(["age"])] == [[41.0, 2.5]]


# Folders.


def test_what_folders_state_are_columns(tmp_path):
    """A number, a category, a missing cell, and a name that the file itself has too: the file's own column counts."""
    schema = confide.Schema(
        {
            "year": {"low": 2000, "high": 2030},
            "place": {"categories": ["a b", "c"], "missing": True},
            "x": {"low": 0, "high": 1},
        },
        {"column": "ill", "negative": 0, "positive": 1},
    )
    for folder in ("year=2024/place=a%20b", "year=2025/place=__HIVE_DEFAULT_PARTITION__"):
        (tmp_path / folder).mkdir(parents=True)
        pd.DataFrame({"x": [0.5, 1.0], "ill": [0, 1]}).to_csv(tmp_path / folder / "x=3.csv", index=False)
    rows: Any = confide.open_rows(tmp_path, schema)
    assert rows.count() == 4
    tables = list(rows.tables(["x", "place", "year"]))
    assert [table["year"].to_pylist() for table in tables] == [[2024.0] * 2, [2025.0] * 2]
    assert [table["place"].to_pylist() for table in tables] == [["a b"] * 2, [None] * 2]
    assert [table["x"].to_pylist() for table in tables] == [[0.5, 1.0]] * 2
    (tmp_path / "year=late").mkdir()
    pd.DataFrame({"x": [0.5], "place": "c", "ill": [0]}).to_csv(tmp_path / "year=late" / "t.csv", index=False)
    with pytest.raises(InputError, match='"year", which the names of folders state'):
        confide.open_rows(tmp_path, schema).count()
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="holds no table"):
        files_of(tmp_path / "empty")


# Addresses and databases.


@contextmanager
def serving(folder: Any) -> Any:
    """A server of the files of a folder, by its address."""
    handler = partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_address_is_read_once_and_keeps_its_secrets(tmp_path):
    """Over HTTP, and in whatever fsspec opens. No message has the password or the parameters of an address."""
    remote = needs("fsspec")
    frame = made_up(300, age="float64")
    rows = in_parquet(frame, tmp_path)
    memory = remote.filesystem("memory")
    for part in ("a", "b"):
        memory.pipe(f"/bucket/year=2024/{part}.parquet", (tmp_path / "plain" / "people.parquet").read_bytes())
    both: Any = confide.open_rows("memory://bucket/year=2024/*.parquet", SCHEMA)
    assert both.count() == 600
    assert [part.path.parent.name for part in both.parts] == ["year=2024"] * 2
    memory.rm("/bucket", recursive=True)
    assert both.count() == 600
    needs("aiohttp")
    with serving(tmp_path / "plain") as address:
        assert coef_of(confide.open_rows(f"{address}/people.parquet?signature={CELL}", SCHEMA)) == coef_of(rows)
        with pytest.raises(ConfideError) as caught:
            confide.open_rows(address.replace("//", f"//me:{CELL}@") + f"/absent.parquet?signature={CELL}", SCHEMA)
    text = "".join(traceback.format_exception(caught.value))
    assert "absent.parquet" in text
    assert CELL not in text
    assert shown_address("s3:/key:pass@bucket/a.csv?x=y#z") == "s3://bucket/a.csv"
    assert shown_address("sqlite:///people.db") == "sqlite:///people.db"


@pytest.mark.parametrize("end", ["hidden/4711", "4711?hidden", "4711#hidden", "4711\u2100hidden"])
def test_a_password_with_signs_of_addresses_stays_secret(end):
    """Where an address is opened and where one is refused, also one of several kinds in a row."""
    for kind in ("postgresql", "nothing", "file", "simplecache::nothing"):
        for refused in (lambda path: confide.open_rows(path, SCHEMA), names_of_table):
            with pytest.raises(ConfideError) as caught:
                refused(Path(f"{kind}://me:{end}@host/people.csv"))
            text = "".join(traceback.format_exception(caught.value))
            assert "4711" not in text
            assert "hidden" not in text


def test_a_query_is_asked_once_and_only_reads(tmp_path):
    """Rows that come later do not count. What writes is refused, and no message has the password or a cell."""
    needs("sqlalchemy")
    address, asked = _query(made_up(200, age="float64"), tmp_path)
    rows: Any = confide.open_rows(address, SCHEMA, **asked)
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.execute("DELETE FROM people WHERE rowid > 10")
    connection.close()
    assert rows.count() == 200
    for query in ("DELETE FROM people", "SELECT nothing FROM nowhere"):
        with pytest.raises(InputError, match=r"t\.db could not be read to its end \(OperationalError\)"):
            confide.open_rows(address, SCHEMA, query=query)
    with pytest.raises(FileError, match="no such file"):
        confide.open_rows(f"sqlite:///{tmp_path / 'absent.db'}", SCHEMA, query="SELECT 1")
    assert not (tmp_path / "absent.db").exists()
    with pytest.raises(ConfideError) as caught:
        confide.open_rows(f"nowhere://me:{CELL}@host/db", SCHEMA, query=f"SELECT '{CELL}'")
    assert "nowhere://host/db" in str(caught.value)
    assert CELL not in "".join(traceback.format_exception(caught.value))
    with pytest.raises(ParameterError, match="text of a query"):
        confide.open_rows(address, SCHEMA)
    with pytest.raises(ParameterError, match="text in SQL"):
        confide.open_rows(tmp_path / "t.db", SCHEMA, query="SELECT 1")


@pytest.mark.parametrize(
    ("library", "extra", "source"),
    [
        ("fsspec", "remote", "s3://bucket/t.parquet"),
        ("sqlalchemy", "postgres", None),
        ("pyreadstat", "statistics", "t.dta"),
        ("python_calamine", "excel", "t.xlsx"),
    ],
)
def test_what_is_not_installed_is_named(tmp_path, monkeypatch, library, extra, source):
    """With the part of the package that brings it."""
    monkeypatch.setitem(__import__("sys").modules, library, None)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ParameterError, match=rf"pip install '\.\[{extra}\]'"):
        files_of(source) if source else files_of("postgresql://host/db", query="SELECT 1")
