"""`confide atoms`: what it shows and writes, one charge, refusals, and nothing of the rows."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import confide
from tests.cli.commands import refused, run, spent

SCHEMA = """
target = { column = "income", negative = "low", positive = "high" }
[columns]
age = { low = 17, high = 90 }
gain = { low = 0, high = 5000, scale = "log", unit = "USD" }
"""
ASKED = ("atoms", "gains.csv", "--schema", "gains.toml", "--epsilon", "1.5")


@pytest.fixture
def gains(folder_with_ledger):
    random = np.random.default_rng(0)
    gain = random.integers(0, 5000, 3000)
    gain[:400] = 777
    frame = pd.DataFrame({"age": random.integers(17, 91, 3000), "gain": gain, "income": ["low", "high"] * 1500})
    frame.to_csv("gains.csv", index=False)
    Path("gains.toml").write_text(SCHEMA, encoding="utf-8")


def test_atoms_are_shown_written_and_charged_once(gains):
    """A table, what it cost, and a schema with which a fit names the release."""
    shown = run(*ASKED, "--ledger", "study.db", "--purpose", "Gains").stdout
    for words in ("Released atoms", "777 USD", "epsilon = 0.5 left", "Wrote atoms.toml"):
        assert words in shown
    schema = confide.Schema.from_toml("atoms.toml")
    assert 777.0 in schema.columns[1].atoms
    assert schema.columns[1].released_atoms.ledger == confide.Ledger("study.db").identity
    assert confide.Ledger("study.db").entries()["purpose"].tolist() == ["Gains"]
    assert spent() == 1.5
    text = " ".join(
        run("fit", "gains.csv", "--schema", "atoms.toml", "--epsilon", 0.5, "--ledger", "study.db").stdout.split()
    )
    assert 'The atoms of "gain" were not declared' in text
    assert "another set of assumptions" not in run("verify", "model.json", "--schema", "atoms.toml").output


def test_programs_get_the_atoms_and_the_noise(gains):
    """As JSON, of the columns that were named."""
    document = json.loads(run(*ASKED, "--column", "gain", "--no-ledger", "--format", "json").stdout)
    assert abs(document["atoms"]["gain"]["777.0"] - 400) < 6 * document["noise"]
    assert document["schema"] == "atoms.toml"


def test_a_seed_makes_the_atoms_void(gains):
    """Exit code 3, and it is said first."""
    assert run(*ASKED, "--seed", 3, "--no-ledger", code=3).stdout.lstrip().startswith("NOT PRIVATE")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--column", "gian"), '"gian"'),
        (("--out", "gains.csv"), "must end in"),
        (("--out", "gains.toml"), "is an input"),
    ],
)
def test_what_cannot_be_done_is_one_line(gains, arguments, message):
    """Before anything is charged."""
    assert message in refused(*ASKED, "--ledger", "study.db", *arguments)
    assert spent() == 0.0
    assert not Path("atoms.toml").exists()
