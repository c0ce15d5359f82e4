"""`confide verify` and `confide inspect`: a model file checked against public facts, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from confide.cli.failures import NO_GUARANTEE
from confide.cli.options import Adjust, Format, ModelFile, exit_if_void
from confide.errors import ParameterError

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
        outcomes = [
            {"outcome": finding.outcome, "sentence": finding.sentence, "parts": list(finding.parts)} for finding in findings
        ]
        output.print_json({"model": str(model_file), "verified": is_verified, "findings": outcomes})
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


def inspect(model_file: ModelFile, adjust: Adjust = None, output_format: Format = "text") -> None:
    """Show the guarantee, effects and weights of a model file, with intervals if a share of the budget paid for them."""
    from confide.cli import output
    from confide.estimators.loading import load
    from confide.report.findings import has_interest, has_intervals

    model = load(model_file)
    if adjust is not None and not (has_intervals(model) or has_interest(model)):
        raise ParameterError("--adjust is for models with intervals, and this model released nothing for them.")
    if output_format == "json":
        output.print_json({"model": str(model_file), **output.model_document(model, adjust)})
    else:
        screen = output.Screen()
        screen.verbatim(f"{model_file}: {type(model).__name__}, alpha {model.alpha_:.6g}")
        screen.guarantee(model.guarantee_)
        screen.effects(model)
        if has_intervals(model):
            screen.coefficients(model, adjust)
        else:
            screen.weights(model)
            if has_interest(model):
                screen.coefficients(model, adjust)
        screen.text("The file was read, not checked: `confide verify` makes its plan again and compares.")
    exit_if_void(model.guarantee_.void)
