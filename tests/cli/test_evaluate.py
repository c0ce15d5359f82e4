"""`confide evaluate`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import confide
from confide import Ledger
from confide.errors import LedgerError
from tests.cli.commands import PRICES, SENTINEL, fit, refused, rows_of, run, spoil, write_prices, write_rows

EVALUATE = ("evaluate", "model.json", "held_out.csv", "--epsilon", "1")


@pytest.fixture
def model(folder):
    """A model of people.csv, rows kept aside, and a ledger for them."""
    fit("--epsilon", "4")
    write_rows(Path("held_out.csv"), rows_of(300, reverse=True))
    Ledger("held_out.db", limit=2.0)
    return folder


def test_an_evaluation_is_charged_shown_and_written(model):
    """Rates of rows whose labels are turned round are bad; the ledger says which model was evaluated."""
    options = ("--ledger", "held_out.db", "--purpose", "how good", "--bins", "4", "--out", "rates.json")
    text = run(*EVALUATE, *options).stdout
    assert "Rates on 300 private rows" in text
    assert "Charged epsilon = 1 to held_out.db (epsilon = 1 left)" in " ".join(text.split())
    written = json.loads(Path("rates.json").read_text(encoding="utf-8"))
    assert written["accuracy"]["high"] < 0.5
    assert f"{written['accuracy']['value']:.4f}" in text
    assert len(written["calibration"]) == 4
    assert written["charge"]["ledger"] == "held_out.db"
    (entry,) = Ledger("held_out.db").entries().to_dict("records")
    assert (entry["purpose"], entry["release"], entry["model"]) == ("how good", "evaluate", "model.json")
    document = json.loads(run(*EVALUATE, "--bins", "2", "--level", "0.5", "--format", "json").stdout)
    assert (document["level"], document["charge"]["ledger"]) == (0.5, None)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_ledger_that_cannot_be_read_afterwards_loses_no_rates(model, monkeypatch, form):
    """They are paid for: they are shown, and the error says what was charged."""
    remaining = Ledger.remaining

    def fail(ledger, cohort=None):
        if ledger.last_charge is None:
            return remaining(ledger, cohort)
        raise LedgerError("the disk is gone.")

    monkeypatch.setattr(Ledger, "remaining", fail)
    result = run(*EVALUATE, "--ledger", "held_out.db", "--format", form, code=4)
    assert "accuracy" in result.stdout
    assert "the disk is gone. Charged epsilon = 1 to held_out.db. The evaluation is above." in " ".join(
        result.stderr.split()
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no file that is always full")
@pytest.mark.parametrize(("options", "place"), [((), "rescued-evaluation.json"), (("--out", "rates.json"), "rates.json")])
def test_rates_that_standard_output_does_not_take_are_not_lost(model, options, place):
    """As where it is a file on a disk that is full: they are in a file, and the error says in which one."""
    command = (sys.executable, "-m", "confide", *EVALUATE, "--ledger", "held_out.db", "--format", "json", *options)
    environment = os.environ | {"PYTHONPATH": str(Path(confide.__file__).parents[1])}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=environment)
    assert done.returncode == 4
    assert f"Charged epsilon = 1 to held_out.db. The evaluation is in {place}" in done.stderr.replace(f"{Path.cwd()}/", "")
    assert done.stderr.count("\n") == 1
    written = json.loads(Path(place).read_text(encoding="utf-8"))
    assert (written["n_rows"], written["charge"]["ledger"]) == (300, "held_out.db")


def test_a_seed_makes_an_evaluation_void(model):
    """With exit code 3, and the words in the output."""
    assert "NOT PRIVATE" in run(*EVALUATE, "--seed", "1", code=3).stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--bins", "3"), "--bins must be"),
        (("--level", "2"), "--level must"),
        (("--max-rows-per-person", "0"), "--max-rows-per-person"),
        (("--out", "rates.txt"), "must end in"),
        (("--out", "model.json"), "would be lost"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_a_charge(model, options, words):
    """In words of options."""
    assert words in refused(*EVALUATE, "--ledger", "held_out.db", *options)
    assert Ledger("held_out.db").spent().epsilon == 0.0


def test_no_value_of_the_rows_is_shown(model):
    """A cell that is no number is refused before the charge and not repeated."""
    spoil(age=SENTINEL)
    assert "not numbers" in refused("evaluate", "model.json", "people.csv", "--epsilon", "1", "--ledger", "held_out.db")
    assert Ledger("held_out.db").spent().epsilon == 0.0


def test_models_of_numbers_have_errors(folder):
    """In the unit of the target, with a public clip."""
    write_prices(600)
    assert "price" in PRICES
    run("fit", "prices.csv", "--schema", "prices.toml", "--epsilon", "1")
    text = run("evaluate", "model.json", "prices.csv", "--epsilon", "1", "--clip", "20", "--bins", "4").stdout
    for words in ("RMSE", "R^2", "MAE", "Calibration", "in 2 tables"):
        assert words in text
    document = json.loads(run("evaluate", "model.json", "prices.csv", "--epsilon", "1", "--format", "json").stdout)
    assert document["rates"]["RMSE"]["value"] > 0.0
    assert document["kind"] == "errors of predicted numbers"


def test_groups_are_a_column_of_the_schema_or_described(model):
    """The rates of each level; a column that the model does not use is given with its levels."""
    text = run(*EVALUATE, "--groups", "work", "--ledger", "held_out.db").stdout
    assert "Rows with work = private" in text
    assert Ledger("held_out.db").spent().epsilon == 1.0
    lines = Path("held_out.csv").read_text(encoding="utf-8").splitlines()
    marked = [f"{line},{'region' if not place else 'ns'[place % 2]}" for place, line in enumerate(lines)]
    Path("marked.csv").write_text("\n".join(marked) + "\n", encoding="utf-8")
    asked = ("evaluate", "model.json", "marked.csv", "--epsilon", "5", "--groups", "region=n,s", "--format", "json")
    document = json.loads(run(*asked).stdout)
    assert document["group_column"] == "region"
    assert set(document["by_group"]) == {"n", "s", "(not listed)"}
    assert document["by_group"]["n"]["accuracy"]["value"] is not None
    assert "--groups must be the name of a column" in refused(*EVALUATE, "--groups", "nothing")


def test_two_models_are_compared_on_the_same_rows(model):
    """Also where they read rows in different ways; the document names both."""
    fit("--epsilon", "4", "--model", "svm", "--out", "other.json")
    text = run(*EVALUATE, "--other", "other.json").stdout
    assert "Differences of two models, on 300 private rows" in text
    assert "The second model alone" in text
    document = json.loads(run(*EVALUATE, "--other", "other.json", "--format", "json").stdout)
    assert document["other"] == "other.json"
    difference = document["rates"]["accuracy"]
    assert difference["low"] < difference["value"] < difference["high"]
    assert document["first"]["accuracy"]["value"] is not None


def test_what_the_noise_would_hide_is_refused_before_the_charge(model):
    """The sentence says what would suffice; --allow-hidden goes on."""
    asked = ("evaluate", "model.json", "held_out.csv", "--epsilon", "0.02", "--ledger", "held_out.db")
    message = run(*asked, code=2).stderr
    assert "the noise would hide every rate. Nothing was charged." in message
    assert "Give at least 3,600 rows or epsilon = 0.24" in message
    assert "--allow-hidden" in message
    assert "allow_hidden" not in message
    assert Ledger("held_out.db").spent().epsilon == 0.0
    assert "hidden" in run(*asked, "--allow-hidden").stdout
    assert Ledger("held_out.db").spent().epsilon == 0.02


def test_the_ledger_of_the_fit_brings_a_note(model):
    """It may be that the rows are those of the fit; a ledger of other rows has no charge of the model."""
    Ledger("study.db", limit=9.0)
    fit("--ledger", "study.db")
    assert "must not be those of the fit" in run(*EVALUATE, "--ledger", "study.db").stderr
    assert "note:" not in run(*EVALUATE, "--ledger", "held_out.db").stderr


def test_how_precise_the_rates_will_be_is_said_before_the_charge(model):
    """Also if the ledger then refuses."""
    Ledger("small.db", limit=0.5)
    result = run(*EVALUATE, "--ledger", "small.db", code=3)
    assert "Expect noise of about 2.83 rows in each of 40 counts." in " ".join(result.output.split())
