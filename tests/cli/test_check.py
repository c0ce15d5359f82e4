"""`confide check`, the one command whose answers are computed from the rows without noise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.commands import SENTINEL, SENTINEL_NUMBER, refused, rows_of, run, spoil, write_rows

CHECK = ("check", "people.csv", "--schema", "people.toml")
MARK = "Computed from the rows; not for release."


def test_a_table_that_a_fit_takes(folder):
    """The mark stands first, and shares for every column follow."""
    result = run(*CHECK)
    assert result.stdout.startswith(f"{MARK}\nA fit would take this table. 200 rows were read.")
    for name in ("age", "hours [x]", "work", "income (target)"):
        assert name in result.stdout


def test_a_table_that_a_fit_refuses(folder):
    """The exit code says so, and no cell is shown."""
    spoil(age=SENTINEL, income=SENTINEL_NUMBER)
    result = run(*CHECK, code=2)
    assert "A fit would refuse this table, for 2 reasons." in result.stdout
    assert SENTINEL not in result.output
    assert SENTINEL_NUMBER not in result.output


def test_no_value_is_shown_unless_it_is_asked_for(folder):
    """Neither on the screen nor in a file, in any format."""
    spoil(work=SENTINEL, age=SENTINEL_NUMBER)
    outputs = [run(*CHECK).output, run(*CHECK, "--format", "json").output]
    for name in ("check.html", "check.json"):
        run(*CHECK, "--out", name)
        outputs.append(Path(name).read_text(encoding="utf-8"))
    for text in outputs:
        assert MARK in text
        assert SENTINEL not in text
        assert SENTINEL_NUMBER not in text
    assert f"{SENTINEL} (1)" in run(*CHECK, "--show-values").stdout
    run(*CHECK, "--show-values", "--out", "shown.html")
    assert SENTINEL in Path("shown.html").read_text(encoding="utf-8")
    assert SENTINEL_NUMBER not in run(*CHECK, "--show-values").output


def test_json_is_for_programs(folder):
    """Counts and shares of each column. NA is a missing cell of a column that does not list it."""
    document = json.loads(run(*CHECK, "--format", "json").stdout)
    assert document["columns"]["hours [x]"]["missing"] == {"cells": 20, "share": 0.1}
    assert document["columns"]["work"]["unlisted"] == {"cells": 50, "share": 0.25}
    assert document["columns"]["work"]["missing"] == {"cells": 50, "share": 0.25}


@pytest.mark.parametrize("how", ["semicolons", "utf-16", "no header"])
def test_files_written_otherwise_are_explained(folder, how):
    """And nothing of them is shown."""
    text = Path("people.csv").read_text(encoding="utf-8").replace("Zoë", SENTINEL)
    if how == "semicolons":
        Path("people.csv").write_text(text.replace(",", ";"), encoding="utf-8")
    elif how == "utf-16":
        Path("people.csv").write_text(text, encoding="utf-16")
    else:
        Path("people.csv").write_text(text.partition("\n")[2], encoding="utf-8")
    result = run(*CHECK, code=0 if how == "semicolons" else 2)
    assert {"semicolons": "semicolons", "utf-16": "UTF-16", "no header": "looks like data"}[how] in result.stdout
    assert SENTINEL not in result.output


def test_a_misspelled_name_is_suggested(folder):
    """In the words of the table."""
    write_rows(Path("people.csv"), [{name.upper(): cell for name, cell in row.items()} for row in rows_of()])
    assert 'Did you mean "AGE"?' in run(*CHECK, code=2).stdout


def test_a_target_of_numbers_can_be_named(folder):
    """If the schema has none."""
    Path("people.toml").write_text("[columns]\nage = { low = 17, high = 90 }\n")
    assert "hours [x] (target)" in run(*CHECK, "--target", "hours [x]", code=2).stdout
    Path("people.toml").write_text(
        'target = { column = "income", low = 0, high = 1 }\n[columns]\nage = { low = 17, high = 90 }\n'
    )
    assert 'the schema has the target "income"' in refused(*CHECK, "--target", "age")


def test_files_are_not_replaced_unasked(folder):
    """Neither an older check nor an input."""
    Path("check.html").write_text("mine")
    assert "exists already" in refused(*CHECK, "--out", "check.html")
    run(*CHECK, "--out", "check.html", "--force")
    assert MARK in Path("check.html").read_text(encoding="utf-8")
    assert "must end in" in refused(*CHECK, "--out", "people.csv", "--force")
