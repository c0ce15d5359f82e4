"""The study file and the commands."""

from __future__ import annotations

import shlex
import tomllib
from dataclasses import replace

from confide.studies.templates import check_command, ledger_command, plan_command, study_text
from tests.starting.studies import STUDY


def test_the_study_file_holds_every_setting() -> None:
    """With any characters in names."""
    assert tomllib.loads(study_text(STUDY)) == {
        "study": {"name": 'A "study"\n[x]'},
        "data": {"file": "people, 1.csv", "schema": "people.toml"},
        "budget": {"epsilon": 0.5, "delta": 1e-6, "neighbours": "replace-one", "max_rows_per_person": 3},
        "ledger": {"file": "study.db"},
        "model": {"kind": "additive"},
        "outputs": {"model": "model.json", "report": "report.html"},
    }


def test_a_private_number_of_rows_has_bounds() -> None:
    """And another neighbour relation; pure privacy has no delta."""
    budget = tomllib.loads(study_text(replace(STUDY, n_rows_bounds=(10, 99), delta=None)))["budget"]
    assert (budget["neighbours"], budget["n_rows_bounds"], "delta" in budget) == ("add-or-remove-one", [10, 99], False)


def test_commands_name_what_the_study_says() -> None:
    """Quoted as a shell needs it."""
    assert ledger_command(STUDY) == "confide ledger init study.db --epsilon 2 --delta 4e-06 --max-rows-per-person 3"
    assert check_command(STUDY) == "confide check 'people, 1.csv' --schema people.toml --max-rows-per-person 3"
    assert shlex.split(plan_command(replace(STUDY, schema="a b.toml")))[3] == "a b.toml"
    assert "--rows 10000 --epsilon 0.5 --delta 1e-06 --max-rows-per-person 3" in plan_command(STUDY)
    private = replace(STUDY, n_rows_bounds=(10, 99))
    assert "--neighbours add-or-remove-one --n-rows-bounds 10 99" in plan_command(private)
    assert "--neighbours add-or-remove-one" in ledger_command(private)
