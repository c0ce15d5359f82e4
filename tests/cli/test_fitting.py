"""One fit of a table on disk, as `confide fit` and `confide run` do it."""

from __future__ import annotations

from pathlib import Path

import pytest

import confide
from confide.cli.fitting import prepared_fit, schema_with_target
from confide.cli.options import ModelOptions, Spending
from confide.errors import FileError, ParameterError
from tests.cli.commands import spent


def prepared(**changes):
    asked = {
        "data": "people.csv",
        "schema": Path("people.toml"),
        "options": ModelOptions(kind="logistic"),
        "spending": Spending(epsilon=0.5, ledger="study.db"),
        "out": Path("model.json"),
    }
    return prepared_fit(**(asked | changes))


def test_a_fit_is_prepared_planned_and_released(folder_with_ledger):
    """Nothing is charged before the release; the plan and the model have the same budget."""
    fit = prepared()
    plan = fit.planned()
    assert fit.public_rows == 140
    assert spent() == 0.0
    assert not Path("model.json").exists()
    fit.release(plan)
    assert spent() == 0.5
    assert confide.load("model.json").guarantee_.budget == plan.event.budget


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"out": Path("people.csv")}, "is an input of this command"),
        ({"out": Path("study.db-wal")}, "is an input of this command"),
        ({"report": Path("model.json")}, "must end in"),
        ({"data": "none*.csv"}, "no file matches"),
    ],
)
def test_files_are_checked_before_any_work(folder_with_ledger, changes, message):
    with pytest.raises(FileError, match=message):
        prepared(**changes)


def test_a_schema_needs_a_target(folder_with_ledger):
    Path("people.toml").write_text("[columns]\nage = { low = 0, high = 1 }\n")
    with pytest.raises(ParameterError, match="names no target"):
        schema_with_target(Path("people.toml"))
