"""Tables in files: kinds, and refusals that show no cell."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as parquet
import pytest

from confide.cli.output import layout_of, whole_tables
from confide.data.files import FilePart, Stamp, separator_of
from tests.cli.commands import SENTINEL, SENTINEL_NUMBER, fit, read_rows, refused, rows_of, run, spoil

KINDS = {"age": "number", "hours [x]": "number", "work": "text", "income": "text"}


def whole_of(path):
    """All rows of a file, in the layout of that file."""
    part = FilePart(Stamp.of(path), KINDS)
    return pa.concat_tables(whole_tables(part, layout_of([part])))


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow"])
def test_binary_tables_train_and_score_like_csv(folder, suffix):
    """The same rows give the same model without noise, and the same predictions."""
    frame = pd.read_csv("people.csv", keep_default_na=False, dtype={"id": str})
    frame["hours [x]"] = pd.to_numeric(frame["hours [x]"])
    table = pa.Table.from_pandas(frame)
    path = f"people.{suffix}"
    if suffix == "parquet":
        parquet.write_table(table, path)
    else:
        feather.write_feather(table, path)
    options = ("--epsilon", "inf", "--format", "json")
    from_csv = json.loads(fit(*options, "--out", "a.json", code=3).stdout)
    from_table = json.loads(fit(*options, "--out", "b.json", data=path, code=3).stdout)
    assert from_csv["weights"] == from_table["weights"]
    run("predict", "a.json", "people.csv", "--out", "a.csv")
    run("predict", "a.json", path, "--out", f"b.{suffix}")
    scored = parquet.read_table(f"b.{suffix}") if suffix == "parquet" else feather.read_table(f"b.{suffix}")
    assert scored.column_names == [*table.column_names, "prediction", "probability"]
    assert scored["probability"].to_pylist() == [float(row["probability"]) for row in read_rows(Path("a.csv"))]


@pytest.mark.parametrize(
    ("content", "advice"),
    [
        (f"age,hours [x],work,income\n40,1,private,low,{SENTINEL}\n", "more or fewer cells"),
        (f"age,hours [x],work,income\n40,{SENTINEL}\n", "more or fewer cells"),
        (f'age,hours [x],work,income\n40,1,"{SENTINEL},low\n', 'a quote (") is not closed'),
        (f'age,hours [x],work,income\n40,1,"{SENTINEL},low\n41,2,b,low\n42,3,"c,low\n', 'a quote (") is not closed'),
        (f"age#hours [x]#work#income\n40#1#{SENTINEL}#low\n", "with commas, semicolons, tabs or vertical bars between them"),
        (f"{SENTINEL_NUMBER},1,{SENTINEL},low\n", 'lacks the columns "age", "hours [x]", "work", "income"'),
        (f"age,work,income\n40,{SENTINEL},low\n", 'lacks the columns "hours [x]"'),
        (f"age,hours [x],work,income,age\n40,1,{SENTINEL},low,2\n", 'more than one column of the name "age"'),
        ("age,hours [x],work,income\n", "no rows"),
        ("", "is empty"),
        (f"age,hours [x],work,income\n40,1,{SENTINEL}\xff,low\n".encode("latin-1"), "UTF-8"),
        ("age,income\n".encode("utf-16"), "text in UTF-8"),
        (b"\x00", "lacks the columns"),
        (f"age,hours [x],work,income\n{SENTINEL_NUMBER * 60},1,a,low\n", "holds infinite numbers"),
    ],
)
def test_a_bad_csv_file_is_refused_without_being_shown(folder, content, advice):
    """One line says what to correct, exit code 2."""
    Path("people.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    options = ("--schema", "people.toml", "--epsilon", 1, "--format", "json")
    assert advice in refused("fit", "people.csv", *options)


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_a_bad_binary_file_is_refused_without_being_shown(folder, suffix):
    """A file that is no table, one without a column, and one whose column is no number."""
    path = Path(f"people.{suffix}")
    options = ("--schema", "people.toml", "--epsilon", 1, "--format", "json")
    path.write_text(SENTINEL, encoding="utf-8")
    assert "damaged" in refused("fit", path, *options)
    write = parquet.write_table if suffix == "parquet" else feather.write_feather
    columns = {"age": [SENTINEL], "hours [x]": [1.0], "work": ["state"], "income": ["low"]}
    write(pa.table({name: cells for name, cells in columns.items() if name != "work"}), str(path))
    assert 'lacks the columns "work"' in refused("fit", path, *options)
    write(pa.table(columns), str(path))
    assert 'column "age": holds cells that are not numbers' in refused("fit", path, *options)


def test_files_that_cannot_be_read_are_named(folder):
    """Missing ones, folders, kinds that are not tables, and a schema that is no schema."""
    assert "nowhere.csv: No such file" in refused("fit", "nowhere.csv", "--schema", "people.toml", "--epsilon", 1)
    Path("folder.csv").mkdir()
    assert "folder.csv" in refused("fit", "folder.csv", "--schema", "people.toml", "--epsilon", 1)
    assert 'must end in ".csv"' in refused("fit", "people.pdf", "--schema", "people.toml", "--epsilon", 1)
    assert "nowhere.toml" in refused("fit", "people.csv", "--schema", "nowhere.toml", "--epsilon", 1)
    spoil(work=SENTINEL)
    assert "not valid TOML" in refused("fit", "people.csv", "--schema", "people.csv", "--epsilon", 1)


@pytest.mark.parametrize(
    ("name", "separator", "words"),
    [
        ("people.csv", ";", "The file is separated by semicolons, as the line of names shows."),
        ("people.csv", "|", "The file is separated by vertical bars"),
        ("people.csv", "\t", "The file is separated by tabs"),
        ("people.tsv", "\t", "The file is separated by tabs"),
        ("people.tsv.gz", "\t", "The file is separated by tabs"),
        ("people.csv.gz", ",", None),
    ],
)
def test_separators_and_packed_files_are_read_and_named(folder, name, separator, words):
    """The same rows, and so the same plan and predictions. Commas need no sentence."""
    fit()
    whole = whole_of(Path("people.csv"))
    rows = rows_of()
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), delimiter=separator, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    content = text.getvalue().encode()
    Path("people.csv").unlink()
    Path(name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert whole_of(Path(name)).equals(whole)
    shown = fit(data=name).stdout
    assert (words or "separated by") in shown if words else "separated by" not in shown
    run("predict", "model.json", name, "--out", "scored.csv")
    assert len(Path("scored.csv").read_text(encoding="utf-8").splitlines()) == len(rows) + 1


def test_the_separator_is_decided_by_the_line_of_names_alone(folder):
    """Whatever stands in the rows; a name may hold another separator."""
    Path("odd.csv").write_text('"age, in years";income;hours\n1,5;a,b,c,d;2\n', encoding="utf-8")
    assert separator_of(Path("odd.csv")) == ";"
    assert separator_of(Path("odd.csv"), ["age, in years", "hours"]) == ";"
    Path("few.csv").write_text("age;a;b,income\n1,2\n", encoding="utf-8")
    assert separator_of(Path("few.csv"), ["income"]) == ","


@pytest.mark.parametrize(
    "content", [b"no gzip", gzip.compress(b"age,income\n" + bytes(range(9)) * 999, mtime=0)[:60]], ids=["other", "cut"]
)
def test_a_damaged_packed_file_is_refused(folder, content):
    """In one line, before a charge."""
    Path("people.csv.gz").write_bytes(content)
    assert "not a file that gzip made" in refused("fit", "people.csv.gz", "--schema", "people.toml", "--epsilon", 1)
