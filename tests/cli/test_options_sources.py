"""Commands take rows from wherever they come: queries, workbooks, folders, addresses, and files of other programs."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import confide
from tests.cli.commands import line_of, refused, run


@pytest.fixture
def sources(folder):
    """The rows of people.csv in every form that the tests name."""
    people = pd.read_csv("people.csv")
    with sqlite3.connect("people.db") as connection:
        people.to_sql("people", connection, index=False)
    connection.close()
    Path("people.sql").write_text("SELECT * FROM people ORDER BY rowid\n")
    Path("data/part=1").mkdir(parents=True)
    people.to_parquet("data/part=1/people.parquet")
    return people


def trained(data, *options):
    """The weights of a fit whose noise has a seed."""
    schema = () if "--schema" in options else ("--schema", "people.toml")
    run("fit", data, *options, *schema, "--epsilon", "1", "--seed", "1", "--force", "--no-ledger", code=3)
    return confide.load("model.json").coef_.tolist()


def test_fit_gives_the_model_of_the_plain_file(sources):
    """From a query, a folder and a workbook."""
    expected = trained("people.csv")
    assert trained("data") == expected
    pytest.importorskip("sqlalchemy", reason="the optional part postgres is not installed")
    assert trained("sqlite:///people.db", "--query", "people.sql") == expected
    pytest.importorskip("python_calamine", reason="the optional part excel is not installed")
    pytest.importorskip("openpyxl", reason="openpyxl, which makes workbooks, is not installed")
    sources.to_excel("people.xlsx", index=False)
    assert trained("people.xlsx") == expected


def test_predict_keeps_the_columns_of_every_source(sources):
    """What a folder states is a column too."""
    trained("people.csv")
    run("predict", "model.json", "people.csv", "--out", "plain.csv")
    run("predict", "model.json", "data", "--out", "scored.csv")
    plain, scored = pd.read_csv("plain.csv"), pd.read_csv("scored.csv")
    assert set(scored) == {*plain, "part"}
    pd.testing.assert_series_equal(scored["probability"], plain["probability"])
    pytest.importorskip("sqlalchemy", reason="the optional part postgres is not installed")
    run("predict", "model.json", "sqlite:///people.db", "--query", "people.sql", "--out", "asked.csv")
    pd.testing.assert_frame_equal(pd.read_csv("asked.csv"), plain)


def test_a_password_in_an_address_is_refused(folder):
    """Everybody could read it in the list of processes. Nothing repeats it."""
    for address in (
        "postgresql://me:4711@host/db",
        "https://me:4711@host/a.csv",
        "s3://me:a/4711@host/a.csv",
        "postgresql://host/db?password=4711",
    ):
        error = refused("fit", address, "--schema", "people.toml", "--epsilon", "1")
        assert "holds a password" in error
        assert "4711" not in error


def test_a_database_needs_a_query_and_a_query_its_file(folder):
    """Each refusal names what is missing."""
    assert "--query FILE" in refused("fit", "postgresql://host/db", "--schema", "people.toml", "--epsilon", "1")
    error = line_of("check", "sqlite:///p.db", "--query", "absent.sql", "--schema", "people.toml", code=2)
    assert "cannot read absent.sql" in error


def test_check_reads_a_workbook_as_a_fit_does(sources):
    """It says what the cells are, whatever the file is."""
    pytest.importorskip("python_calamine", reason="the optional part excel is not installed")
    pytest.importorskip("openpyxl", reason="openpyxl, which makes workbooks, is not installed")
    sources.to_excel("people.xlsx", index=False)
    plain = json.loads(run("check", "people.csv", "--schema", "people.toml", "--format", "json").stdout)
    found = json.loads(run("check", "people.xlsx", "--schema", "people.toml", "--format", "json").stdout)
    assert found["columns"] == plain["columns"]


def test_new_drafts_a_schema_of_what_a_file_declares(folder):
    """Labels without those of missing codes, missing codes, dates; no cell of a row is used."""
    library = pytest.importorskip("pyreadstat", reason="the optional part statistics is not installed")
    people = pd.DataFrame(
        {"sex": [1.0, 2, 9], "age": [50.0, 60, 999], "born": pd.to_datetime(["1990-01-01"] * 3), "ill": [0.0, 1, 1]}
    )
    labels = {"sex": {1: "male", 2: "female", 9: "refused"}, "age": {999: "refused"}, "ill": {0: "no", 1: "yes"}}
    library.write_sav(
        people, "p.sav", variable_value_labels=labels, missing_ranges={"age": [999], "sex": [{"lo": 9, "hi": 99}]}
    )
    run("new", "p.sav", "--target", "ill", "--no-input")
    text = Path("p.toml").read_text()
    assert 'target = { column = "ill", negative = "no", positive = "yes" }' in text
    assert 'sex = { categories = ["male", "female"], missing = true }' in text
    assert 'age = { low = "FILL IN", high = "FILL IN", missing = true }' in text
    assert 'born = { low = "FILL IN", high = "FILL IN" }  # dates' in text
    assert "999" not in text.partition("[columns]")[2]


def test_new_reads_the_line_of_names_of_a_workbook(folder):
    """And refuses one that looks like data."""
    pytest.importorskip("python_calamine", reason="the optional part excel is not installed")
    pytest.importorskip("openpyxl", reason="openpyxl, which makes workbooks, is not installed")
    pd.DataFrame({"town": ["a"], "rent": [1.5]}).to_excel("rents.xlsx", index=False)
    run("new", "rents.xlsx", "--no-input")
    assert "rent = " in Path("rents.toml").read_text()
    pd.DataFrame([[4711.5, "b"]]).to_excel("raw.xlsx", index=False, header=False)
    assert "looks like data" in refused("new", "raw.xlsx", "--no-input")


def test_a_model_of_text_with_commas_reads_more_of_it(folder):
    """The model's file keeps how its table was written, so new rows may be written alike."""
    Path("comma.toml").write_text(
        Path("people.toml").read_text().replace("[columns]", 'table = { decimal = "," }\n[columns]', 1)
    )
    people = pd.read_csv("people.csv")
    people.to_csv("comma.csv", sep=";", decimal=",", index=False)
    expected = trained("people.csv")
    assert trained("comma.csv", "--schema", "comma.toml") == expected
    run("predict", "model.json", "comma.csv", "--out", "scored.csv")
    assert trained("people.csv") == expected
    run("predict", "model.json", "people.csv", "--out", "plain.csv")
    assert np.allclose(pd.read_csv("scored.csv")["probability"], pd.read_csv("plain.csv")["probability"])
