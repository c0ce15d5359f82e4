"""`confide check`: show the curator of a table how its rows fit a schema, before anything is spent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from confide.cli.failures import BAD_INPUT
from confide.cli.options import Force, Format, RowsPerPerson

if TYPE_CHECKING:
    from confide.features.schema import Schema
    from confide.studies.table_check import Finding, TableCheck

_LARGEST = 8e307
"""Bounds that clip no number, for a target without bounds."""

DataToCheck = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Table of text (.csv, .tsv, .csv.gz), Parquet or Feather file, or a quoted pattern.",
    ),
]
SchemaToCheck = Annotated[Path, typer.Option(metavar="FILE", help="TOML file that describes columns and target.")]
TargetInstead = Annotated[
    str | None, typer.Option(metavar="NAME", help="Column of numbers to be predicted, if the schema has no target.")
]
CheckOut = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write the check to this file, which ends in .html or .json.")
]
ShowValues = Annotated[
    bool,
    typer.Option(
        "--show-values",
        help="Also show unlisted categories and what may be codes for missing cells, which are values of the rows.",
    ),
]


def check(
    data: DataToCheck,
    schema: SchemaToCheck,
    target: TargetInstead = None,
    max_rows_per_person: RowsPerPerson = 1,
    show_values: ShowValues = False,
    out: CheckOut = None,
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Show how the rows of a table fit its schema. Spends nothing.

    For the curator alone: beside predict, this is the one command whose answers are computed from the rows without noise.
    They are not for release, and a schema must not be fitted to them. Use them to find mistakes in the file,
    such as a wrong separator, and mistakes in the schema that public knowledge explains, such as a misspelled category.
    """
    from confide.cli import output
    from confide.data.files import files_named
    from confide.studies.table_check import check_document, check_table, findings_of

    files = files_named(data)
    if out is not None:
        from confide.cli import output

        output.check_path(out, [*files, schema], (".html", ".htm", ".json"), overwrite=force)
    described = _schema_of(schema, target)
    with output.working(f"reading {data}"):
        check = check_table(files, described, rows_per_person=max_rows_per_person, show_values=show_values)
    findings = findings_of(check)
    if out is not None:
        _write(check, findings, data, out, force=force)
    if output_format == "json":
        output.print_json(check_document(check, findings))
    else:
        _show(check, findings, out)
    if any(finding.refused for finding in findings):
        raise typer.Exit(BAD_INPUT)


def _schema_of(path: Path, target: str | None) -> Schema:
    """The schema, with --target as a column of numbers to be predicted if the schema has no target."""
    from confide.errors import ParameterError
    from confide.features.schema import Schema, Target

    schema = Schema.from_toml(path)
    if target is None or (schema.target is not None and schema.target.column == target):
        return schema
    if schema.target is not None:
        raise ParameterError(
            f'the schema has the target "{schema.target.column}"; leave --target out, or correct the schema.'
        )
    unbounded = Target(target, low=-_LARGEST, high=_LARGEST)
    return replace(schema, target=unbounded)


def _write(check: TableCheck, findings: list[Finding], data: str, out: Path, *, force: bool) -> None:
    import json

    from confide.files import write_text
    from confide.studies.table_check import check_document, check_page

    if out.suffix.lower() == ".json":
        text = json.dumps(check_document(check, findings), indent=2, ensure_ascii=False) + "\n"
    else:
        text = check_page(check, findings, f"Check of {Path(data).name}")
    write_text(out, text, overwrite=force)


def _show(check: TableCheck, findings: list[Finding], out: Path | None) -> None:
    from confide.cli import output
    from confide.studies.table_check import HEADS, NOT_FOR_RELEASE, rows_of_table, unlisted_levels, verdict

    screen = output.Screen()
    screen.text(NOT_FOR_RELEASE, style="bold red")
    screen.text(f"{verdict(findings)} {check.n_rows:,} rows were read.", style="bold")
    for finding in findings:
        screen.text(f" - {'REFUSED: ' if finding.refused else ''}{finding.text}")
    if check.n_rows and check.counted:
        screen.heading("Shares of the cells")
        screen.table(HEADS, rows_of_table(check))
    levels = unlisted_levels(check)
    if levels:
        screen.heading("Unlisted levels, with the number of their rows")
        for name, counts in levels.items():
            screen.text(f"{name}: {', '.join(f'{level} ({count:,})' for level, count in counts)}")
    if out is not None:
        screen.verbatim(f"Wrote {out}")
