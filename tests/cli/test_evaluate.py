"""`confide evaluate`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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

    def fail(ledger):
        if ledger.last_charge is None:
            return remaining(ledger)
        raise LedgerError("the disk is gone.")

    monkeypatch.setattr(Ledger, "remaining", fail)
    result = run(*EVALUATE, "--ledger", "held_out.db", "--format", form, code=4)
    assert "accuracy" in result.stdout
    assert "the disk is gone. Charged epsilon = 1 to held_out.db. The evaluation is above." in " ".join(
        result.stderr.split()
    )


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


def test_models_of_numbers_are_refused(folder):
    """There are no rates."""
    write_prices(300)
    assert "price" in PRICES
    run("fit", "prices.csv", "--schema", "prices.toml", "--epsilon", "1")
    assert "predicts numbers" in refused("evaluate", "model.json", "prices.csv", "--epsilon", "1")


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
