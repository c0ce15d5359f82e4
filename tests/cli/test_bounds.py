"""`confide bounds`: what it shows and writes, one charge, refusals, and nothing of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import confide
from confide.cli import charges as charges_module
from tests.cli.commands import SENTINEL, SENTINEL_NUMBER, line_of, refused, rows_of, run, spent, spoil, write_rows

AGE = ("bounds", "people.csv", "--column", "age", "--outer", "0", "150", "--epsilon", "0.5")


def test_bounds_are_shown_written_and_charged_once(folder_with_ledger):
    """A table, what it cost, and a schema that is read again."""
    text = run(*AGE, "--ledger", "study.db", "--purpose", "Ages").stdout
    for words in ("Released bounds", "quantile 0.01", "0 to 150", "epsilon = 1.5 left", "Wrote bounds.toml"):
        assert words in text
    schema = confide.Schema.from_toml("bounds.toml")
    assert schema.columns[0].released.epsilon == 0.5
    assert schema.columns[0].released.ledger == confide.Ledger("study.db").identity
    entries = confide.Ledger("study.db").entries()
    assert entries["purpose"].tolist() == ["Ages"]
    assert entries["model"].tolist() == ["bounds.toml"]
    assert spent() == 0.5


def test_several_columns_with_bounds_and_scales_of_their_own(folder):
    """One release; --outer is for those that name none."""
    columns = ("--column", "age:0:150", "--column", "hours [x]:0:1e3:log", "--missing")
    document = json.loads(
        run("bounds", "people.csv", *columns, "--epsilon", 9, "--quantiles", 0, 0.9, "--format", "json").stdout
    )
    assert list(document["columns"]) == ["age", "hours [x]"]
    age, hours = document["columns"].values()
    assert (age["low"], age["released"]["outer"]) == (0, [0.0, 150.0])
    assert (hours["scale"], hours["missing"], hours["released"]["columns"]) == ("log", True, ["age", "hours [x]"])
    assert document["charge"]["ledger"] is None
    assert document["rows_off"]["level"] == 0.95


def test_a_schema_is_completed_and_stays_as_it_is(folder):
    """The bounds of the schema are the outer ones; a model that is fitted with the result names the release."""
    before = Path("people.toml").read_text(encoding="utf-8")
    run("bounds", "people.csv", "--column", "age", "--schema", "people.toml", "--epsilon", 2, "--out", "found.toml")
    assert Path("people.toml").read_text(encoding="utf-8") == before
    schema, found = confide.Schema.from_toml("people.toml"), confide.Schema.from_toml("found.toml")
    assert found.columns[1:] == schema.columns[1:]
    assert found.target == schema.target
    text = run("fit", "people.csv", "--schema", "found.toml", "--epsilon", 1).stdout
    assert 'The bounds of "age" were not declared' in " ".join(text.split())
    assert "epsilon = 2 (replace-one)" in " ".join(text.split())
    inspected = run("inspect", "model.json").stdout
    assert "were not declared" in " ".join(inspected.split())
    assert "another set of assumptions" not in run("verify", "model.json", "--schema", "found.toml").output
    run("report", "model.json")
    assert "were not declared" in Path("report.html").read_text(encoding="utf-8")


def test_a_seed_makes_the_bounds_void(folder):
    """Exit code 3, and it is said first; the same seed gives the same."""
    first = run(*AGE, "--seed", 3, code=3).stdout
    assert first.lstrip().startswith("NOT PRIVATE")
    assert run(*AGE, "--seed", 3, "--force", code=3).stdout == first


def test_files_in_several_pieces_are_read(folder):
    rows = rows_of(400)
    write_rows(Path("a.csv"), rows[:150])
    write_rows(Path("b.csv"), rows[150:])
    found = [
        json.loads(run("bounds", data, *AGE[2:], "--seed", 1, "--force", "--format", "json", code=3).stdout)["quantiles"]
        for data in ("[ab].csv", "people.csv")
    ]
    write_rows(Path("people.csv"), rows)
    again = json.loads(run(*AGE, "--seed", 1, "--force", "--format", "json", code=3).stdout)["quantiles"]
    assert found[0] == again


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--column", "age", "--epsilon", 1), 'column "age" has no outer bounds; give --outer'),
        (("--column", "age:150:0", "--epsilon", 1), "low must be below high"),
        (("--column", "age:0:150", "--column", "age", "--epsilon", 1), 'names "age" twice'),
        (("--column", "age:0:150"), "give a budget"),
        (("--column", "age:0:150", "--epsilon", "inf"), "must be finite"),
        (("--column", "age:0:150", "--epsilon", 1, "--quantiles", 0.9, 0.1), "rising order"),
        (("--column", "work:0:1", "--epsilon", 1), "not numbers"),
        (("--column", "agee:0:1", "--epsilon", 1), "lacks the columns"),
        (("--column", "hours [x]:0:1", "--epsilon", 1), "missing values"),
        (("--column", "income:0:1", "--epsilon", 1, "--schema", "people.toml"), "is the target of the schema"),
        (("--column", "age:0:150", "--epsilon", 1, "--out", "people.csv"), "must end in"),
        (("--column", "age:0:150", "--epsilon", 1, "--schema", "people.toml", "--out", "people.toml"), "is an input"),
    ],
)
def test_what_cannot_be_done_is_one_line(folder, arguments, message):
    assert message in refused("bounds", "people.csv", *arguments)
    assert not Path("bounds.toml").exists()


def test_no_refusal_shows_a_cell(folder):
    """Cells that are no numbers, and a number that is far outside."""
    spoil(age=SENTINEL)
    assert "not numbers" in refused(*AGE)
    spoil(age=SENTINEL_NUMBER)
    text = run(*AGE).output + Path("bounds.toml").read_text(encoding="utf-8")
    assert SENTINEL_NUMBER not in text


def test_a_ledger_with_too_little_left_charges_nothing(folder_with_ledger):
    assert "the ledger has epsilon 2 left" in refused(*AGE[:-1], "3", "--ledger", "study.db", code=3)
    assert spent() == 0.0


def test_bounds_that_cannot_be_written_are_not_lost(folder_with_ledger, monkeypatch):
    """They are paid for, so they are written elsewhere, and the message says where."""
    write = charges_module.write_text

    def failing(path, text, **options):
        if Path(path).name == "bounds.toml":
            raise confide.FileError("cannot write bounds.toml: the disk is full.")
        write(path, text, **options)

    monkeypatch.setattr(charges_module, "write_text", failing)
    line = line_of(*AGE, "--ledger", "study.db", code=4)
    assert "Charged epsilon = 0.5 to study.db. The schema is in" in line
    assert confide.Schema.from_toml("rescued-schema.toml").columns[0].released.epsilon == 0.5


def test_the_number_of_rows_stays_private(folder):
    """Under add-or-remove-one nothing that is shown or written depends on it beside the quantiles themselves."""
    private = ("--neighbours", "add-or-remove-one", "--format", "json", "--force")
    document = json.loads(run(*AGE, *private).stdout)
    write_rows(Path("people.csv"), rows_of(187))
    other = json.loads(run(*AGE, *private).stdout)
    for each in (document, other):
        each["columns"]["age"].pop("low"), each["columns"]["age"].pop("high"), each.pop("quantiles")
    assert document == other
    assert Path("bounds.toml").exists()
    assert pd.read_csv("people.csv").shape[0] == 187


def test_levels_and_bounds_are_one_charge(folder):
    """Shown with noisy numbers, written into the completed schema, in JSON too; the file is one that fits take."""
    frame = pd.read_csv("people.csv").assign(shop="north")
    frame.loc[: len(frame) // 2, "shop"] = "south"
    frame.loc[0, "shop"] = SENTINEL
    frame.to_csv("shops.csv", index=False)
    run("ledger", "init", "levels.db", "--epsilon", 500, "--delta", 1e-3)
    priced = ("--epsilon", 200, "--delta", 1e-6, "--schema", "people.toml", "--ledger", "levels.db", "--force")
    shown = run("bounds", "shops.csv", "--column", "age", "--levels", "shop", *priced).stdout
    for words in ("Released bounds", "Released levels of shop", "south", "rows (noisy)", "A level is released if"):
        assert words in shown
    assert SENTINEL not in shown + Path("bounds.toml").read_text(encoding="utf-8")
    shop = confide.Schema.from_toml("bounds.toml").columns[-1]
    assert (shop.name, shop.categories, shop.other) == ("shop", ("north", "south"), True)
    document = json.loads(run("bounds", "shops.csv", "--levels", "shop", *priced, "--format", "json").stdout)
    assert list(document["levels"]["shop"]) == ["north", "south"]
    assert len(confide.Ledger("levels.db").entries()) == 2
    text = run("fit", "shops.csv", "--schema", "bounds.toml", "--epsilon", 1).stdout
    assert 'The levels of "shop" were not declared' in " ".join(text.split())
    assert "another set of assumptions" not in run("verify", "model.json", "--schema", "bounds.toml").output


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--levels", "shop", "--epsilon", 1), "need a budget with a delta"),
        (("--levels", "age", "--column", "age:0:150", "--epsilon", 1, "--delta", 1e-6), "name it once"),
        (("--epsilon", 1), "--levels"),
    ],
)
def test_levels_that_cannot_be_found_are_refused(folder, options, words):
    """Without a delta, for a column named twice, and without any column."""
    assert words in " ".join(refused("bounds", "people.csv", *options).split())
