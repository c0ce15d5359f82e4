"""`confide check`: show the curator of a table how its rows fit a schema, before anything is spent."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from confide.blocks import verbatim
from confide.cli.failures import BAD_INPUT
from confide.cli.options import Format, options_of_command
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.features.schema import Schema

_LARGEST = 8e307
"""Bounds that clip no number, for a target without bounds."""


@options_of_command("check")
def check(
    data: str,
    schema: Path,
    target: str | None = None,
    cohort: str | None = None,
    max_rows_per_person: int = 1,
    show_values: bool = False,
    out: Path | None = None,
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Show how the rows of a table fit its schema. Spends nothing.

    For the curator alone: beside predict, this is the one command whose answers are computed from the rows without noise.
    They are not for release, and a schema must not be fitted to them. Use them to find mistakes in the file,
    such as a wrong separator, and mistakes in the schema that public knowledge explains, such as a misspelled category.
    """
    from confide.cli import output
    from confide.data.sources import files_of
    from confide.files import write_text
    from confide.studies.table_check import blocks_of_check, check_document, check_page, check_table, findings_of

    described = _schema_of(schema, target)
    if cohort is not None:
        described = replace(described, cohort=cohort.partition("=")[::2])
    files = files_of(data, described)
    if out is not None:
        output.check_path(out, [*files, schema], (".html", ".htm", ".json"), overwrite=force)
    with output.working("reading the rows"):
        check = check_table(files, described, rows_per_person=max_rows_per_person, show_values=show_values)
    findings = findings_of(check)
    if out is not None:
        is_json, title = out.suffix.lower() == ".json", f"Check of {Path(f'{data}').name}"
        document = json.dumps(check_document(check, findings), indent=2, ensure_ascii=False) + "\n" if is_json else ""
        write_text(out, document or check_page(check, findings, title), overwrite=force)
    shown = chain(blocks_of_check(check, findings), [] if out is None else [verbatim(f"Wrote {out}")])
    output.Screen(output_format).answer(lambda: check_document(check, findings), shown)
    if findings[0]:
        raise typer.Exit(BAD_INPUT)


def _schema_of(path: Path, target: str | None) -> Schema:
    """The schema, with --target as a column of numbers to be predicted if the schema has no target."""
    from confide.features.schema import Schema, Target

    schema = Schema.from_toml(path)
    if target is None or (schema.target is not None and schema.target.column == target):
        return schema
    if schema.target is not None:
        raise ParameterError(f'the schema has the target "{schema.target.column}"; leave --target out, or correct it.')
    return replace(schema, target=Target(target, low=-_LARGEST, high=_LARGEST))
