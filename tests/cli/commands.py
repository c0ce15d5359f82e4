"""Running commands in tests, and the tables that they read."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import confide
from confide import Ledger
from confide.cli.application import app
from confide.datasets import SplitData, load_adult

COMMANDS = [
    "demo",
    "new",
    "check",
    "fit",
    "predict",
    "export",
    "plan",
    "sample-size",
    "search",
    "evaluate",
    "inspect",
    "report",
    "verify",
    "family",
    "run",
    "bounds",
    "describe",
    "audit",
]
SENTINEL = "SECRETVALUE"
SENTINEL_NUMBER = "987654321"


SCHEMA = """
target = { column = "income", negative = "low", positive = "high" }
[columns]
age = { low = 17, high = 90 }
"hours [x]" = { low = 0, high = 100, missing = true }
work = { categories = ["private", "state", "[red]none[/red]"], other = true }
"""


FEW_SCHEMA = """
target = { column = "income", negative = "low", positive = "high" }
[columns]
age = { low = 17, high = 90 }
"""


PRICES = """
target = { column = "price", low = 0, high = 100 }
[columns]
age = { low = 17, high = 90 }
"""


FIT = ("fit", "people.csv", "--schema", "people.toml", "--epsilon", "0.5", "--ledger", "study.db")


def rows_of(n_rows=200, *, reverse=False):
    """Made-up people whose income grows with age. Names, and the leading zeros of id, are not in the schema."""
    rng = np.random.default_rng(7)
    ages = rng.integers(17, 91, n_rows)
    return [
        {
            "id": f"{i:05d}",
            "name": f'Zoë "{i}", of Ärö',
            "age": str(age),
            "hours [x]": "" if i % 10 == 0 else f"{age % 60}.50",
            "work": ["private", "state", "elsewhere", "NA"][i % 4],
            "income": "high" if (age > 50) != reverse else "low",
        }
        for i, age in enumerate(ages)
    ]


def write_rows(path, rows):
    """A CSV file of rows, which are dictionaries."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_rows(path):
    """The rows of a CSV file."""
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def spoil(**cells):
    """people.csv with some cells of one row replaced."""
    rows = rows_of()
    rows[17] |= {key.replace("hours", "hours [x]"): value for key, value in cells.items()}
    write_rows(Path("people.csv"), rows)


def write_few_people(n_rows=140):
    """people.csv and people.toml with one column."""
    rows = [f"{17 + i % 70},{'high' if i % 70 > 30 else 'low'}" for i in range(n_rows)]
    Path("people.csv").write_text("\n".join(["age,income", *rows, ""]), encoding="utf-8")
    Path("people.toml").write_text(FEW_SCHEMA, encoding="utf-8")


def write_kinds():
    """The rows of people.csv with three classes, and their schema."""
    described = SCHEMA.replace(SCHEMA.splitlines()[1], 'target = { column = "species", classes = ["x", "y", "z"] }')
    assert "classes" in described
    Path("kinds.toml").write_text(described, encoding="utf-8")
    rows = pd.read_csv("people.csv")
    rows["species"] = np.array(["x", "y", "z"])[np.arange(len(rows)) % 3]
    rows.to_csv("kinds.csv", index=False)
    return rows


def write_prices(n_rows=2000):
    """prices.csv and prices.toml: a price that rises and falls with age."""
    ages = 17 + np.arange(n_rows) % 74
    prices = 90.0 - np.abs(ages - 50.0) * 2.0
    pd.DataFrame({"age": ages, "price": prices}).to_csv("prices.csv", index=False)
    Path("prices.toml").write_text(PRICES, encoding="utf-8")
    return prices


def small_adult():
    """500 rows of each part of Adult."""
    adult = load_adult()
    return SplitData(adult.X_train[:500], adult.y_train[:500], adult.X_test[:500], adult.y_test[:500], adult.schema)


def run(*arguments, code=0, given=None):
    """Run a command in this process, with these bytes on standard input, and check its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="confide", input=given)
    assert result.exit_code == code, result.output
    return result


def run_elsewhere(*arguments, **environment):
    """Run a command in a process of its own, as from a shell."""
    command = [sys.executable, "-m", "confide", *arguments]
    environment["PYTHONPATH"] = str(Path(confide.__file__).parents[1])
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", check=False, env=os.environ | environment
    )


def fit(*options, data="people.csv", code=0):
    """Fit people.csv at epsilon 1, over an existing model."""
    return run("fit", data, "--schema", "people.toml", "--epsilon", "1", "--force", *options, code=code)


def refused(*arguments, code=2):
    """The one line of a command that fails. Nothing else is shown, and no value of the data."""
    result = run(*arguments, code=code)
    assert result.stdout == ""
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
    assert SENTINEL not in result.output
    assert SENTINEL_NUMBER not in result.output
    return result.stderr


def line_of(*arguments, code):
    """The one line of a command that fails."""
    result = run(*arguments, code=code)
    assert re.fullmatch(r"error: [^\n]+\n", result.stderr)
    return result.stderr


def spent():
    """The epsilon that was charged to study.db."""
    return Ledger("study.db").spent().epsilon
