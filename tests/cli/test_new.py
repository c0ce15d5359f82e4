"""`confide new`, as in a shell and as in a terminal."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import confide
from confide.cli import new as new_module
from confide.cli.application import app
from tests.cli.commands import SENTINEL, SENTINEL_NUMBER, refused, rows_of, run, write_rows

WRITTEN = ["people.toml", "study.toml", "study.ipynb", "study.py"]


def begin(*options, code=0):
    """Begin a study of people.csv in the folder `study`."""
    return run("new", "people.csv", "--out-dir", "study", *options, code=code)


def test_a_study_begins_with_blanks_that_are_refused(folder):
    """And every file names the table and each other."""
    printed = begin("--target", "income").stdout
    assert [path.name for path in sorted(Path("study").iterdir())] == sorted(WRITTEN)
    for words in (
        "confide plan --schema people.toml",
        "confide ledger init study.db --epsilon 1",
        "confide check ../people.csv",
    ):
        assert words in printed
    message = refused("plan", "--schema", "study/people.toml", "--rows", "100", "--epsilon", "1")
    assert 'column "age": fill in low and high' in message
    study = tomllib.loads(Path("study/study.toml").read_text())
    assert study["data"] == {"file": "../people.csv", "schema": "people.toml"}


def test_no_value_of_a_row_is_read(folder):
    """A table of secrets gives the same files and the same words as its line of names alone."""
    rows = [dict.fromkeys(rows_of(1)[0], SENTINEL) | {"age": SENTINEL_NUMBER} for _ in range(50)]
    write_rows(Path("people.csv"), rows)
    first = begin()
    Path("people.csv").write_text(Path("people.csv").read_text().splitlines()[0] + "\n")
    second = begin("--force")
    assert first.output == second.output
    written = [Path("study", name).read_text() for name in WRITTEN]
    assert not any(secret in text for text in (*written, first.output) for secret in (SENTINEL, SENTINEL_NUMBER))


def test_typed_files_give_names_and_types_alone(folder):
    """No value of a Parquet file is shown, nor its statistics."""
    pd.DataFrame({"age": [987654321, 3], "flag": [True, False], "name": [SENTINEL, "b"]}).to_parquet("people.parquet")
    result = run("new", "people.parquet", "--out-dir", "study")
    texts = [result.output, *(Path("study", name).read_text() for name in WRITTEN)]
    assert not any(secret in text for text in texts for secret in (SENTINEL, SENTINEL_NUMBER))
    assert "flag = { categories = [false, true] }" in texts[1]


def test_names_that_look_like_data_are_taken_where_the_curator_says_that_they_are_names(folder):
    """A year or an answer may be the name of a column; a name that comes twice may not."""
    Path("people.csv").write_text("2015,Yes,age\n1,2,3\n")
    assert "say so with --header" in refused("new", "people.csv")
    run("new", "people.csv", "--header", "--out-dir", "study")
    assert "\n2015 = " in Path("study/people.toml").read_text()
    Path("people.csv").write_text("2015,2015,age\n1,2,3\n")
    assert 'the name "2015" twice' in refused("new", "people.csv", "--header", "--out-dir", "other")


def test_a_line_of_data_is_refused_without_being_shown(folder):
    """It looks like data."""
    Path("people.csv").write_text(f"{SENTINEL},{SENTINEL_NUMBER}\nb,2\n")
    assert "looks like data" in refused("new", "people.csv")
    assert sorted(path.name for path in Path().iterdir()) == ["people.csv", "people.toml"]


def test_nothing_is_overwritten_unasked(folder):
    """The schema of the folder is there already."""
    before = Path("people.toml").read_text()
    assert "exists already" in refused("new", "people.csv")
    assert Path("people.toml").read_text() == before
    run("new", "people.csv", "--force")
    assert "FILL IN" in Path("people.toml").read_text()


def test_names_can_be_given_without_a_file(folder):
    """With any characters."""
    run("new", "--columns", 'age,"a, b",[red]x,y\\z', "--target", "age", "--out-dir", "o")
    columns = tomllib.loads(Path("o/data.toml").read_text())["columns"]
    assert list(columns) == ["a, b", "[red]x", "y\\z"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["new"], "give a table, or the names of its columns as --columns A,B,C"),
        (["new", "people.csv", "--target", "incomes"], '--target: there is no column "incomes"'),
        (["new", "people.csv", "--person", "x"], '--person: there is no column "x"'),
        (["new", "people.csv", "--target", "id", "--person", "id"], "the same column"),
        (["new", "--columns", "a,b", "--public-file"], "--public-file"),
        (["new", "missing.csv"], "cannot read missing.csv"),
        (["new", "people.toml"], "the name of a table must end in"),
        (["new", "people.csv", "--epsilon", "1", "--rho", "1"], "--epsilon and --rho both state the budget"),
        (["new", "people.csv", "--epsilon", "0"], "--epsilon must be a positive number"),
    ],
)
def test_usage_is_explained(folder, options, words):
    """In one line."""
    assert words in refused(*options)


def test_a_budget_in_rho_goes_through_all_files(folder):
    """Study, script and the ledger's command speak of rho; the study runs as it stands."""
    shown = begin("--public-file", "--target", "income", "--rho", "0.5").stdout
    assert "confide ledger init study.db --rho 0.5" in " ".join(shown.split())
    assert "--rho 0.5" in " ".join(shown.split())
    assert "confide.ZCDP(0.5)" in Path("study/study.py").read_text()
    study = tomllib.loads(Path("study/study.toml").read_text())
    assert (study["budget"]["rho"], "epsilon" in study["budget"], "delta" in study["budget"]) == (0.5, False, False)
    run("ledger", "init", "study/study.db", "--rho", "0.5")
    assert "rho = 0.5" in " ".join(run("run", "study/study.toml", "--dry-run").stdout.split())


def test_a_public_file_fills_the_schema_and_says_so(folder):
    """Its bounds and levels are those of the rows, and a plan can be made."""
    begin("--public-file", "--target", "income", "--person", "id")
    text = Path("study/people.toml").read_text()
    assert text.startswith("# Types, bounds and levels were suggested from the rows of people.csv")
    schema = confide.Schema.from_toml("study/people.toml")
    assert schema.to_dict()["columns"]["age"] == {"low": 17, "high": 90}
    assert schema.person == "id"
    run("plan", "--schema", "study/people.toml", "--rows", "200", "--epsilon", "1")


def test_a_terminal_is_asked(folder, monkeypatch):
    """One line for each column; then every command and the script work from the new folder."""
    monkeypatch.setattr(new_module, "is_dialogue", lambda: True)
    answers = ["1", "income", "low, high", "", "skip", "17 90", "0 60 empty", "private, state, *", "200", "20", "none", "40"]
    result = CliRunner().invoke(app, ["new", "people.csv", "--out-dir", "o"], input="\n".join(answers) + "\n")
    assert result.exit_code == 0, result.output
    assert "a number from 17 to 90" in result.output
    assert "at most? [1] > \n" in result.output.replace("> ", "> \n", 1)
    assert "[] >" not in result.output
    schema = confide.Schema.from_toml("o/people.toml")
    assert schema.column_names == ("age", "hours [x]", "work")
    monkeypatch.chdir("o")
    run("check", "../people.csv", "--schema", "people.toml")
    run("ledger", "init", "study.db", "--epsilon", "40")
    namespace = {"__file__": str(Path("study.py").resolve())}
    monkeypatch.setattr("sys.argv", ["study.py"])
    exec(compile(Path("study.py").read_text(), "study.py", "exec"), namespace)  # noqa: S102 - written by the command
    assert not Path("model.json").exists()
    monkeypatch.setattr("sys.argv", ["study.py", "--fit"])
    exec(compile(Path("study.py").read_text(), "study.py", "exec"), namespace)  # noqa: S102 - written by the command
    assert confide.load("model.json").guarantee_.void is None
    Path("model.json").unlink()
    Path("report.html").unlink()
    run("run", "study.toml")
    assert confide.load("model.json").guarantee_.void is None
    assert Path("report.html").exists()
    assert confide.Ledger("study.db").spent().epsilon == 40


def test_nothing_is_asked_without_input(folder, monkeypatch):
    """Also in a terminal."""
    monkeypatch.setattr(new_module, "is_dialogue", lambda: True)
    assert ">" not in begin("--no-input").stdout


GERMAN = ["Alter;Saldo;Datum;Kontakt;Kündigung", *(
    f"{20 + n % 50};{n % 9}.{n % 7}59,{n % 90 + 10};{n % 28 + 1:02}.{n % 12 + 1:02}.2024;{n % 28 + 1}/{n % 12 + 1}/2024;"
    f"{'ja' if n % 3 else 'nein'}" for n in range(300)
)]  # fmt: skip


def test_a_table_with_decimal_commas_and_german_dates_becomes_a_model(folder):
    """A public file is described as it is written, so that it is checked and fitted without a change of the schema."""
    Path("konten.csv").write_text("\n".join(GERMAN), encoding="latin-1")
    run("new", "konten.csv", "--public-file", "--no-input", "--target", "Kündigung", "--out-dir", "study")
    described = tomllib.loads(Path("study/konten.toml").read_text(encoding="utf-8"))
    assert described["table"] == {"encoding": "latin-1", "decimal": ",", "thousands": "."}
    assert described["columns"]["Saldo"] == {"low": 59.1, "high": 8659.81}
    forms = [described["columns"][name]["format"] for name in ("Datum", "Kontakt")]
    assert forms == ["%d.%m.%Y", "%d/%m/%Y"]
    run("check", "konten.csv", "--schema", "study/konten.toml")
    run("ledger", "init", "study/study.db", "--epsilon", "1")
    run("run", "study/study.toml", "--force-budget")
    run("predict", "study/model.json", "konten.csv", "--out", "p.csv")


def test_a_table_of_windows_with_the_sign_of_the_euro_becomes_a_model(folder):
    """The encoding is told and stands in the schema, and fits and predictions read it."""
    lines = [GERMAN[0].replace("Saldo", "Saldo in \u20ac"), *GERMAN[1:]]
    Path("konten.csv").write_text("\n".join(lines), encoding="cp1252")
    told = run("new", "konten.csv", "--public-file", "--no-input", "--target", "Kündigung", "--out-dir", "study").stdout
    assert "The table is written in Windows-1252; the schema says so." in told
    described = tomllib.loads(Path("study/konten.toml").read_text(encoding="utf-8"))
    assert described["table"] == {"encoding": "cp1252", "decimal": ",", "thousands": "."}
    assert "Saldo in \u20ac" in described["columns"]
    run("fit", "konten.csv", "--schema", "study/konten.toml", "--epsilon", "1", "--no-ledger", "--out", "m.json")
    run("predict", "m.json", "konten.csv", "--out", "p.csv")
    assert "Saldo in \u20ac" in Path("p.csv").read_text(encoding="utf-8").splitlines()[0]


def test_semicolons_in_the_first_line_propose_decimal_commas(folder):
    """No row is read for it, a column that is called a date has blanks for dates, and the proposal can be deleted."""
    Path("konten.csv").write_text("\n".join([GERMAN[0], SENTINEL * 9]), encoding="latin-1")
    run("new", "konten.csv", "--target", "Kündigung", "--out-dir", "study")
    text = Path("study/konten.toml").read_text(encoding="utf-8")
    assert 'table = { encoding = "latin-1", decimal = "," }' in text
    assert "between cells, decimals are taken to have commas; delete what is not so." in text
    (line,) = [line for line in text.splitlines() if line.startswith("Datum")]
    assert 'format = "%d.%m.%Y" where cells are written so' in line
