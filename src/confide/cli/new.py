"""`confide new`: begin a study, from the names of the columns of a table, which its first line holds."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from confide.cli.option_values import is_dialogue
from confide.cli.options import Force
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.studies.drafts import SchemaDraft, StudyDraft
    from confide.studies.text_tables import TableNames

Table = Annotated[
    Path | None,
    typer.Argument(
        metavar="[DATA]",
        help="Table of text (.csv, .tsv, .csv.gz), Parquet or Feather file. Only its first line, of names, is used.",
    ),
]
ColumnNames = Annotated[
    str | None, typer.Option("--columns", metavar="A,B,C", help="Names of the columns; then no file is opened.")
]
TargetName = Annotated[str | None, typer.Option(metavar="NAME", help="Column to be predicted.")]
PersonName = Annotated[str | None, typer.Option(metavar="NAME", help="Column that identifies the person a row belongs to.")]
StudyName = Annotated[
    str | None, typer.Option(metavar="TEXT", help="What the study is called.  [default: the table's name]")
]
StudyEpsilon = Annotated[float | None, typer.Option(metavar="E", min=0.0, help="Privacy budget of the fit.  [default: 1.0]")]
StudyDelta = Annotated[float | None, typer.Option(metavar="D", help="For approximate privacy, for example 1e-6.")]
StudyRho = Annotated[
    float | None, typer.Option(metavar="R", min=0.0, help="Budget in zero-concentrated privacy, instead of --epsilon.")
]
StudyRows = Annotated[int, typer.Option(metavar="N", min=1, help="About how many rows there are: a public guess for plans.")]
PersonRows = Annotated[
    int | None,
    typer.Option(
        "--max-rows-per-person", min=1, metavar="K", help="The largest number of rows of one person.  [default: 1]"
    ),
]
OutFolder = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the files that are written.")]
PublicFile = Annotated[
    bool,
    typer.Option("--public-file", help="The table is public: suggest types, bounds and levels from its rows, and say so."),
]
HasHeader = Annotated[
    bool,
    typer.Option("--header", help="The first line of the table holds names, even if some look like data, such as 2015."),
]
NoInput = Annotated[bool, typer.Option("--no-input", help="Ask nothing; leave blanks in the schema to be filled in.")]


def new(
    data: Table = None,
    columns: ColumnNames = None,
    target: TargetName = None,
    person: PersonName = None,
    name: StudyName = None,
    epsilon: StudyEpsilon = None,
    delta: StudyDelta = None,
    rho: StudyRho = None,
    rows: StudyRows = 10_000,
    max_rows_per_person: PersonRows = None,
    public_file: PublicFile = False,
    no_input: NoInput = False,
    header: HasHeader = False,
    out_dir: OutFolder = Path(),
    force: Force = False,
) -> None:
    """Begin a study: write a schema, a study file, a notebook and a script.

    No value of a row is used if the first line of the table holds names. In a terminal it asks what is publicly known of
    each column. Otherwise it leaves blanks in the schema, and every other command names what is still to be filled in.
    """
    from confide.known_words import listed_absent
    from confide.studies.drafts import drafted
    from confide.studies.templates import check_files, write_files

    table, suggested = _table(data, columns, public_file=public_file, has_header=header)
    for option, column in (("--target", target), ("--person", person)):
        if column is not None and column not in table.names:
            raise ParameterError(
                f"{option}: there is no column {listed_absent([column], table.names)}; give the name of a column of the "
                f"table."
            )
    if target is not None and target == person:
        raise ParameterError("--target and --person name the same column; give two different ones.")
    study = replace(_first_settings(data, out_dir, name, epsilon, delta, rho), n_rows=rows)
    study = replace(study, max_rows_per_person=max_rows_per_person or 1)
    names = {"schema": study.schema, "study": "study.toml", "notebook": "study.ipynb", "script": "study.py"}
    files = {what: out_dir / file for what, file in names.items()}
    check_files(files, [] if data is None else [data], overwrite=force)
    if no_input or not is_dialogue():
        schema = drafted(table, suggested, target, person)
    else:
        schema, study = _asked(table, suggested, target, person, max_rows_per_person, study)
    schema = replace(schema, from_rows=str(data) if suggested else "")
    write_files(files, schema, study, overwrite=force)
    _show(files, schema, study, table)


def _table(
    data: Path | None, columns: str | None, *, public_file: bool, has_header: bool
) -> tuple[TableNames, dict[str, str]]:
    """The names of the columns, and suggestions if the file is public."""
    from confide.studies.text_tables import names_given, names_of_table

    if columns is not None:
        if public_file:
            raise ParameterError("--public-file suggests from the rows of a table; leave --columns out, or --public-file.")
        return names_given(columns), {}
    if data is None:
        raise ParameterError("give a table, or the names of its columns as --columns A,B,C.")
    table = names_of_table(data, has_header=has_header)
    if not public_file:
        return table, {}
    from confide.studies.interview import suggested_answers

    return table, suggested_answers(data, table)


def _first_settings(
    data: Path | None,
    folder: Path,
    name: str | None,
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
) -> StudyDraft:
    from confide.cli.option_values import chosen_budget
    from confide.studies.drafts import StudyDraft
    from confide.studies.text_tables import stem_of

    usual = 1.0 if epsilon is None and rho is None else epsilon
    chosen_budget(usual, delta, rho)
    stem = "data" if data is None else stem_of(data)
    path = "data.csv" if data is None else os.path.relpath(data, folder)
    schema = "columns.toml" if stem == "study" else f"{stem}.toml"
    title = f"Study of {stem}" if name is None else name
    return StudyDraft(title, path, schema, usual or 1.0, delta, rho, limit=(usual if rho is None else rho) or 1.0)


def _ask(question: str, default: str) -> str:
    """The answer from standard input to a question on standard output."""
    from confide.cli.failures import printable

    shown = printable(question) + (f" [{printable(default)}]" if default else "")
    return str(typer.prompt(shown, default="", prompt_suffix=" > ")) or default


def _asked(
    table: TableNames,
    suggested: dict[str, str],
    target: str | None,
    person: str | None,
    rows_per_person: int | None,
    study: StudyDraft,
) -> tuple[SchemaDraft, StudyDraft]:
    from confide.cli import output
    from confide.studies.interview import Interview

    interview = Interview(_ask, output.Screen().text, table, suggested)
    rows, person = interview.person(rows_per_person, person)
    schema = interview.schema(target, person)
    return schema, interview.study(replace(study, max_rows_per_person=rows))


def _show(files: Mapping[str, Path], schema: SchemaDraft, study: StudyDraft, table: TableNames) -> None:
    """What was written, and what to do next."""
    from confide.cli import output
    from confide.studies.templates import check_command, ledger_command, plan_command

    screen = output.Screen()
    for path in files.values():
        screen.verbatim(f"Wrote {path}")
    if table.n_unnamed:
        screen.text(
            "A column without a name was left out." if table.n_unnamed == 1 else "Columns without names were left out."
        )
    folder = files["study"].parent
    screen.heading("What to do next" + ("" if folder == Path() else f", in the folder {folder}"))
    if schema.n_blank:
        screen.text(f"Fill in {study.schema}: {schema.n_blank} places are marked FILL IN. Do not look at the rows for it.")
    elif schema.from_rows:
        screen.text(
            f"Correct {study.schema}: its suggestions come from the rows of {schema.from_rows}, declared to be public."
        )
    screen.text("Show the cost and the yield of a fit; this reads no row and spends nothing:")
    screen.verbatim(f"  {plan_command(study)}")
    screen.text("Let the curator see how the table fits the schema; the answer is not for release:")
    screen.verbatim(f"  {check_command(study)}")
    screen.text("Create the ledger, once for each body of data:")
    screen.verbatim(f"  {ledger_command(study)}")
    screen.text("Fit the model and write its report, which spends the budget:")
    screen.verbatim("  confide run study.toml")
