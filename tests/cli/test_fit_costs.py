"""Costs and counts that vary more on the command line: the loss, its public number, and what a refusal says."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import run

SCHEMA = 'target = {{ column = "{}", low = {}, high = {} }}\n[columns]\nage = {{ low = 20, high = 80 }}\n'
MODEL = ("--epsilon", "4", "--delta", "1e-6", "--no-ledger", "--out", "model.json")


@pytest.fixture
def bills(tmp_path, monkeypatch):
    """A folder with a table of costs and visits, and a schema for each."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(20, 81, 5000)})
    means = np.exp((table["age"] - 50) / 40)
    table["visits"] = rng.poisson(2.0 * means * rng.gamma(2.0, 0.5, 5000))
    table["cost"] = [rng.gamma(2.0, 20.0, visits).sum() for visits in table["visits"]]
    table["price"] = 30.0 * means * rng.gamma(2.0, 0.5, 5000)
    table.to_csv("bills.csv", index=False)
    for column, low, high in (("visits", 0, 30), ("cost", 0, 1000), ("price", 1, 500)):
        Path(f"{column}.toml").write_text(SCHEMA.format(column, low, high), encoding="utf-8")
    return table


@pytest.mark.parametrize(
    ("column", "options", "named"),
    [
        ("cost", ("--loss", "tweedie", "--power", "1.4"), "tweedie, power 1.4"),
        ("price", ("--loss", "gamma"), "gamma"),
        ("visits", ("--loss", "negative-binomial", "--dispersion", "0.5"), "negative-binomial, dispersion 0.5"),
        ("cost", ("--model", "erm", "--loss", "tweedie"), "tweedie, power 1.5"),
    ],
)
def test_fit_takes_the_loss_and_its_public_number(bills, column, options, named):
    """Plan, fit, predict and verify: the loss is named, and predictions are right in the mean."""
    given = ("--schema", f"{column}.toml", *options)
    assert named in run("plan", *given, *MODEL[:4], "--rows", "5000", "--details").output
    run("fit", "bills.csv", *given, *MODEL)
    run("predict", "model.json", "bills.csv", "--out", "p.csv")
    predicted = pd.read_csv("p.csv")["prediction"]
    assert predicted.mean() == pytest.approx(bills[column].mean(), rel=0.15)
    assert np.corrcoef(predicted, np.exp((bills["age"] - 50) / 40))[0, 1] > 0.9
    run("verify", "model.json")


def test_refusals_name_options(bills):
    """A gamma loss of costs that may be 0, and a power that is another loss."""
    said = run("fit", "bills.csv", "--schema", "cost.toml", "--loss", "gamma", *MODEL, code=2).output
    assert "--loss tweedie" in " ".join(said.split())
    said = run("fit", "bills.csv", "--schema", "cost.toml", "--loss", "tweedie", "--power", "2", *MODEL, code=2).output
    assert "--power must be a number above 1 and below 2" in " ".join(said.split())
