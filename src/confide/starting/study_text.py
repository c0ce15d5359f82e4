"""The text of a study file: everything that a colleague needs to repeat the study, in TOML."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from confide.features.toml_form import toml_value
from confide.starting.drafts import StudyDraft

_TEXT = """\
# A study: its data, its budget and what comes out of it. Paths are relative to this file.
# Run it with `confide run study.toml`, after `{ledger_command}`.

[study]
name = {name}
# analyst = "A. Name"            # shown in the report
# purpose = "What it is for"     # written into the ledger

[data]
file = {data}
schema = {schema}

[budget]
{amounts}
neighbours = {neighbours}{bounds}
max_rows_per_person = {rows_per_person}

[ledger]
file = {ledger}

[model]
kind = "additive"                # a curve for each number; the names of --model of `confide fit`

[outputs]
model = "model.json"
report = "report.html"

# Rates on rows kept aside, in a file of their own. If they are other people than those of the fit, they have a ledger of
# their own, made by `{evaluation_ledger_command}`.
# Without the line "ledger", the ledger of the study is charged, and must have room for both.
# [evaluation]
# file = "held_out.csv"
# {evaluation} = 0.5
# ledger = "held_out.db"
"""


def study_text(study: StudyDraft) -> str:
    """The text of `study.toml`."""
    bounds, evaluation = study.n_rows_bounds, next(iter(study.amounts))
    return _TEXT.format(
        ledger_command=ledger_command(study),
        evaluation_ledger_command=f"confide ledger init held_out.db --{evaluation} 0.5{_relation(study)}",
        evaluation=evaluation,
        name=toml_value(study.name),
        data=toml_value(study.data),
        schema=toml_value(study.schema),
        amounts="\n".join(f"{name} = {toml_value(amount)}" for name, amount in study.amounts.items()),
        neighbours=toml_value(study.neighbours),
        bounds="" if bounds is None else f"\nn_rows_bounds = {toml_value(list(bounds))}",
        rows_per_person=study.max_rows_per_person,
        ledger=toml_value(study.ledger),
    )


def ledger_command(study: StudyDraft) -> str:
    """The command that creates the ledger of the study."""
    return f"confide ledger init {study.ledger}{_options(study.limits)}{_relation(study)}"


def _options(amounts: Mapping[str, float]) -> str:
    return "".join(f" --{name} {amount:g}" for name, amount in amounts.items())


def _relation(study: StudyDraft) -> str:
    """The options that say whom a ledger protects."""
    neighbours = "" if study.n_rows_bounds is None else " --neighbours add-or-remove-one"
    rows = "" if study.max_rows_per_person == 1 else f" --max-rows-per-person {study.max_rows_per_person}"
    return f"{neighbours}{rows}"


def check_command(study: StudyDraft) -> str:
    """The command that shows the curator how the table fits the schema."""
    rows = "" if study.max_rows_per_person == 1 else f" --max-rows-per-person {study.max_rows_per_person}"
    return f"confide check {shlex.quote(study.data)} --schema {shlex.quote(study.schema)}{rows}"


def plan_command(study: StudyDraft) -> str:
    """The command that shows what a fit would cost and yield. It reads no row."""
    if study.n_rows_bounds is None:
        rows = f"--rows {study.n_rows}"
    else:
        low, high = study.n_rows_bounds
        rows = f"--neighbours add-or-remove-one --n-rows-bounds {low} {high}"
    persons = "" if study.max_rows_per_person == 1 else f" --max-rows-per-person {study.max_rows_per_person}"
    return f"confide plan --schema {shlex.quote(study.schema)} {rows}{_options(study.amounts)}{persons}"
