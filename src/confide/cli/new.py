"""`confide new`: begin a study, from the names of the columns of a table, which its first line holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from confide.blocks import Block, heading, text, verbatim
from confide.cli.failures import printable
from confide.cli.option_values import chosen_budget, is_dialogue
from confide.cli.options import options_of_command
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.studies.drafts import SchemaDraft, StudyDraft
    from confide.studies.text_tables import TableNames


@options_of_command("new")
def new(
    data: Path | None = None,
    columns: str | None = None,
    target: str | None = None,
    person: str | None = None,
    name: str | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    rows: int = 10_000,
    max_rows_per_person: int | None = None,
    public_file: bool = False,
    no_input: bool = False,
    header: bool = False,
    out_dir: Path = Path(),
    force: bool = False,
) -> None:
    """Begin a study: write a schema, a study file, a notebook and a script.

    No value of a row is used if the first line of the table holds names. In a terminal it asks what is publicly known of
    each column. Otherwise it leaves blanks in the schema, and every other command names what is still to be filled in.
    """
    from confide.cli.output import Screen
    from confide.known_words import listed_absent
    from confide.studies.drafts import StudyDraft, drafted
    from confide.studies.interview import Interview
    from confide.studies.templates import check_files, write_files
    from confide.studies.text_tables import stem_of

    table, suggested = _table(data, columns, public_file=public_file, has_header=header)
    for option, column in (("--target", target), ("--person", person)):
        if column is not None and column not in table.names:
            near = listed_absent([column], table.names)
            raise ParameterError(f"{option}: there is no column {near}; give the name of a column of the table.")
    if target is not None and target == person:
        raise ParameterError("--target and --person name the same column; give two different ones.")
    usual = 1.0 if epsilon is None and rho is None else epsilon
    chosen_budget(usual, delta, rho)
    stem = "data" if data is None else stem_of(data)
    path = "data.csv" if data is None else os.path.relpath(data, out_dir)
    limit, title = (usual if rho is None else rho) or 1.0, f"Study of {stem}" if name is None else name
    study = StudyDraft(
        title, path, "columns.toml" if stem == "study" else f"{stem}.toml", usual or 1.0, delta, rho, limit=limit,
        n_rows=rows, max_rows_per_person=max_rows_per_person or 1,
    )  # fmt: skip
    names = {"schema": study.schema, "study": "study.toml", "notebook": "study.ipynb", "script": "study.py"}
    files = {what: out_dir / file for what, file in names.items()}
    check_files(files, [] if data is None else [data], overwrite=force)
    screen = Screen()
    if is_dialogue() and not no_input:
        interview = Interview(_ask, lambda words: screen.show([text(words)]), table, suggested)
        n_rows_of_one, person = interview.person(max_rows_per_person, person)
        schema = interview.schema(target, person)
        study = interview.study(replace(study, max_rows_per_person=n_rows_of_one))
    else:
        schema = drafted(table, suggested, target, person)
    schema = replace(schema, from_rows=str(data) if public_file else "")
    write_files(files, schema, study, overwrite=force)
    Screen().show(_blocks(files, schema, study, table))


def _table(
    data: Path | None, columns: str | None, *, public_file: bool, has_header: bool
) -> tuple[TableNames, dict[str, str]]:
    """The names of the columns, and suggestions if the file is public."""
    from confide.studies.drafts import typed
    from confide.studies.text_tables import names_given, names_of_table

    if columns is not None:
        if public_file:
            raise ParameterError("--public-file suggests from the rows of a table; leave --columns out, or --public-file.")
        return names_given(columns), {}
    if data is None:
        raise ParameterError("give a table, or the names of its columns as --columns A,B,C.")
    table = names_of_table(data, has_header=has_header)
    if not public_file:
        return table, {name: typed({"categories": labels}) for name, labels in table.labels.items()}
    from confide.studies.interview import suggested_answers

    answers, written = suggested_answers(data, table)
    return replace(table, written=written), answers


def _ask(question: str, default: str) -> str:
    """The answer from standard input to a question on standard output."""
    shown = printable(question) + (f" [{printable(default)}]" if default else "")
    return str(typer.prompt(shown, default="", show_default=False, prompt_suffix=" > ")) or default


def _blocks(files: Mapping[str, Path], schema: SchemaDraft, study: StudyDraft, names: TableNames) -> Iterator[Block]:
    """What was written, and what to do next."""
    from confide.studies.templates import check_command, ledger_command, plan_command
    from confide.studies.text_tables import ENCODING_NAMES

    yield verbatim(*[f"Wrote {path}" for path in files.values()])
    if names.n_unnamed:
        yield text("A column without name was left out." if names.n_unnamed == 1 else "Columns without names were left out.")
    if encoding := ENCODING_NAMES.get(str(names.written.get("encoding"))):
        yield text(f"The table is written in {encoding}; the schema says so.")
    folder = files["study"].parent
    yield heading("What to do next" + ("" if folder == Path() else f", in the folder {folder}"))
    if schema.n_blank:
        yield text(f"Fill in {study.schema}: {schema.n_blank} places are marked FILL IN. Do not look at the rows for it.")
    elif schema.from_rows:
        yield text(f"Correct {study.schema}: its suggestions come from rows of {schema.from_rows}, declared to be public.")
    for sentence, command in (
        ("Show the cost and the yield of a fit; this reads no row and spends nothing:", plan_command(study)),
        ("Let the curator see how the table fits the schema; the answer is not for release:", check_command(study)),
        ("Create the ledger, once for each body of data:", ledger_command(study)),
        ("Fit the model and write its report, which spends the budget:", "confide run study.toml"),
    ):
        yield text(sentence)
        yield verbatim(f"  {command}")
