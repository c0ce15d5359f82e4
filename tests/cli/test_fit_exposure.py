"""Rates on the command line: every command reads the column of exposures that the schema names, and says so."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.cli.commands import run

SCHEMA = """
target = { column = "visits", low = 0, high = 20, exposure = { column = "years", low = 0.2, high = 4.8 } }
[columns]
age = { low = 20, high = 80 }
"""


@pytest.fixture
def clinic(tmp_path, monkeypatch):
    """A folder with a table of visits in a number of years, and its schema."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.integers(20, 81, 3000), "years": rng.uniform(0.2, 4.8, 3000)})
    table["visits"] = rng.poisson(table["years"] * np.exp((table["age"] - 50) / 40))
    table.to_csv("clinic.csv", index=False)
    Path("clinic.toml").write_text(SCHEMA, encoding="utf-8")
    return table


def test_commands_read_the_column_of_exposures(clinic):
    """Check, plan, fit, predict, evaluate and report."""
    given = ("--schema", "clinic.toml")
    assert "years" in run("check", "clinic.csv", *given).output
    of_model = (*given, "--model", "poisson", "--epsilon", "4", "--delta", "1e-6")
    assert "Verdict" in run("plan", *of_model, "--rows", "3000").output
    fitted = run("fit", "clinic.csv", *of_model, "--out", "model.json", "--no-ledger").output
    assert "Every exposure is clipped to its declared range, 0.2 to 4.8" in " ".join(fitted.split())
    assert "logarithm of the mean of visits per unit of years" in fitted
    assert "prediction of visits per unit of years" in run("predict", "model.json", "clinic.csv", "--out", "p.csv").output
    rates = pd.read_csv("p.csv")["prediction"]
    assert np.corrcoef(rates, np.exp((clinic["age"] - 50) / 40))[0, 1] > 0.9
    assert rates.mean() == pytest.approx(clinic["visits"].sum() / clinic["years"].sum(), rel=0.2)
    shown = run("evaluate", "model.json", "clinic.csv", "--epsilon", "4", "--no-ledger").output
    assert "the mean of visits\n" in shown
    run("report", "model.json", "--out", "card.md")
    assert "It predicts the number visits per unit of years." in Path("card.md").read_text(encoding="utf-8")
    run("verify", "model.json")


# Weights of rows change nothing for the cells of other columns, so each of those is tried with or without them.
@pytest.mark.parametrize(
    ("column", "cell", "weighted"),
    [
        ("years", 0.0, False),
        ("years", -1.0, True),
        ("years", np.inf, False),
        ("years", np.nan, True),
        ("years", 1e-3, False),
        ("years", 1e3, True),
        ("visits", -1.0, False),
        ("visits", 30.0, True),
        *(("share", cell, weighted) for cell in (-1.0, np.nan, 0.0, 9.0) for weighted in (False, True)),
    ],
)
def test_the_check_refuses_what_a_fit_refuses(clinic, column, cell, weighted):
    """In exposures, counts and weights; outside of their bounds they are clipped. In CSV and in Parquet."""
    weight = 'weight = { column = "share", high = 2 }\n' if weighted else ""
    Path("clinic.toml").write_text(weight + SCHEMA, encoding="utf-8")
    table = clinic.assign(share=1.0).astype({"visits": float})
    table.loc[17, column] = cell
    is_wrong = not 0.0 <= cell < np.inf or (column == "years" and cell == 0.0)
    code = 2 if is_wrong and (column != "share" or weighted) else 0
    table.to_csv("spoiled.csv", index=False)
    table.to_parquet("spoiled.parquet", index=False)
    given = ("--schema", "clinic.toml")
    for name in ("spoiled.csv", "spoiled.parquet"):
        shown = " ".join(run("check", name, *given, code=code).output.split())
        assert (f'"{column}": below 0.1% of the cells are' in shown) == (code == 2)
        assert "Declare missing = true" not in shown
    fitted = (*given, "--model", "poisson", "--epsilon", "4", "--out", "m.json", "--no-ledger", "--force")
    run("fit", "spoiled.csv", *fitted, code=code)


def test_a_table_without_exposures_is_refused(clinic):
    """Before anything is charged; the column is named."""
    clinic.drop(columns="years").to_csv("lacks.csv", index=False)
    clinic.assign(years=0.0).to_csv("zeros.csv", index=False)
    given = ("--schema", "clinic.toml", "--model", "poisson", "--epsilon", "1", "--out", "m.json", "--no-ledger")
    for name in ("lacks.csv", "zeros.csv"):
        assert "column" in (shown := run("fit", name, *given, code=2).stderr)
        assert "years" in shown
