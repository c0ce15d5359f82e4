"""`confide verify`: a model file checked against public facts, a ledger and a schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from confide.cli.failures import NO_GUARANTEE
from confide.cli.options import Format, ModelFile

LedgerToCheck = Annotated[
    str | None, typer.Option("--ledger", metavar="LEDGER.db", help="Check that this ledger holds the charge of the model.")
]
SchemaToCheck = Annotated[
    Path | None, typer.Option("--schema", metavar="FILE.toml", help="Check that the model was fitted with this schema.")
]


def verify(
    model_file: ModelFile,
    ledger: LedgerToCheck = None,
    schema: SchemaToCheck = None,
    output_format: Format = "text",
) -> None:
    """Check a model file: its checksum, its plan, and if they are given its ledger and its schema.

    The plan of a fit follows from public facts, and the file holds them. So the plan is made again and compared. What no
    program can check is named too.
    """
    from confide.cli import output
    from confide.estimators.loading import load
    from confide.features.schema import Schema
    from confide.files import sha256_of
    from confide.report import verification
    from confide.report.writing import ledger_at

    model = load(model_file)
    findings = verification.verify(
        model,
        sha256=sha256_of(model_file),
        written_by=str(json.loads(model_file.read_text(encoding="utf-8-sig"))["content"]["version"]),
        ledger=None if ledger is None else ledger_at(ledger),
        schema=None if schema is None else Schema.from_toml(schema),
    )
    is_verified = verification.is_verified(findings)
    if output_format == "json":
        found = [
            {"outcome": finding.outcome, "sentence": finding.sentence, "parts": list(finding.parts)} for finding in findings
        ]
        output.print_json({"model": str(model_file), "verified": is_verified, "findings": found})
    else:
        screen = output.Screen()
        for outcome in (verification.FAILED, verification.VERIFIED, verification.UNCHECKED):
            own = [finding for finding in findings if finding.outcome == outcome]
            if own:
                screen.heading(outcome.capitalize())
            for finding in own:
                screen.text(f"  - {finding.sentence}")
        screen.heading("Verified: what can be checked holds." if is_verified else "NOT VERIFIED: see what failed.")
    if not is_verified:
        raise typer.Exit(NO_GUARANTEE)
