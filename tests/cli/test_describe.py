"""`confide describe`: what it shows and writes, one charge, refusals, and nothing of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import confide
from tests.cli.commands import SENTINEL, refused, run, spent, spoil


@pytest.fixture
def charged(folder):
    """A working folder with people.csv, people.toml and a ledger of epsilon 2."""
    confide.Ledger("study.db", limit=2.0)
    return folder


GIVEN = ("describe", "people.csv", "--schema", "people.toml", "--epsilon", "0.5")


def test_a_description_is_shown_written_and_charged_once(charged):
    """Tables on the screen, the same numbers in the file, and one charge with its purpose."""
    text = run(*GIVEN, "--cross", "work:income", "--ledger", "study.db", "--purpose", "Table 1").stdout
    for words in (
        "Description of",
        "standard deviation",
        "quantile 0.5",
        "work by income",
        "(other)",
        "Wrote description.json",
    ):
        assert words in text
    written = json.loads(Path("description.json").read_text(encoding="utf-8"))
    assert set(written["numbers"]) == {"age", "hours [x]"}
    assert set(written["categories"]) == {"work", "income"}
    assert written["cross_tables"][0]["columns"] == ["work", "income"]
    assert confide.Ledger("study.db").entries()["purpose"].tolist() == ["Table 1"]
    assert spent() == 0.5


def test_programs_get_json_with_the_charge(charged):
    """The numbers, and what is left."""
    options = ("--column", "age", "--quantile", "0.9", "--level", "0.8", "--ledger", "study.db", "--format", "json")
    found = json.loads(run(*GIVEN, *options).stdout)
    assert list(found["numbers"]["age"]["quantiles"]) == ["0.9"]
    assert found["level"] == 0.8
    assert found["charge"]["charged"]["epsilon"] == 0.5


def test_correlations_are_shown_and_written(charged):
    """Of columns of numbers without missing cells, by name; where there are fewer than two nothing is charged."""
    assert "at least two columns of numbers" in refused(*GIVEN, "--correlations", "--ledger", "study.db")
    assert spent() == 0.0
    Path("two.csv").write_text("age,[x]\n" + "20,1\n40,9\n60,3\n" * 100, encoding="utf-8")
    Path("two.toml").write_text('[columns]\nage = { low = 0, high = 99 }\n"[x]" = { low = 0, high = 9 }\n', encoding="utf-8")
    given = ("two.csv", "--schema", "two.toml", "--epsilon", "1", "--correlations", "--ledger", "study.db")
    assert "Correlations" in run("describe", *given).stdout
    written = json.loads(Path("description.json").read_text(encoding="utf-8"))
    assert [pair["columns"] for pair in written["correlations"]["pairs"]] == [["age", "[x]"]]
    assert spent() == 1.0


def test_a_seed_makes_it_void(folder):
    """Exit code 3, and it is said first."""
    assert run(*GIVEN, "--seed", 3, code=3).stdout.lstrip().startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--cross", "work"), "a colon between them"),
        (("--cross", "work:weight"), "a colon between them"),
        (("--cross", "work:age"), "is a number; cross tables"),
        (("--column", "weight"), "names of columns"),
        (("--quantile", "1.5"), "strictly between 0 and 1"),
        (("--rho", "0.1"), "both state the budget; give one of them"),
        (("--out", "a.csv"), ".json"),
    ],
)
def test_what_cannot_be_is_refused(charged, given, message):
    """In one line, and nothing is charged."""
    assert message in refused(*GIVEN, *given, "--ledger", "study.db")
    assert spent() == 0.0


def test_no_message_holds_a_cell(charged):
    """A cell that is no number."""
    spoil(age=SENTINEL)
    message = refused(*GIVEN, "--ledger", "study.db")
    assert SENTINEL not in message
    assert spent() == 0.0
