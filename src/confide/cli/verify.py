"""`confide verify` and `confide inspect`: a model file checked against public facts, and what it says."""

from __future__ import annotations

from pathlib import Path

import typer

from confide.blocks import heading, json_value, text, verbatim
from confide.cli.failures import NO_GUARANTEE
from confide.cli.options import Adjust, Format, exit_if_void, options_of_command, schema_of
from confide.errors import ParameterError


@options_of_command("verify")
def verify(model_file: Path, ledger: str | None = None, schema: Path | None = None, output_format: Format = "text") -> None:
    """Check a model file: its checksum, its plan, and if they are given its ledger and its schema.

    The plan of a fit follows from public facts, and the file holds them. So the plan is made again and compared. What no
    program can check is named too.
    """
    from confide.cli import output
    from confide.estimators.loading import load_with_calibration
    from confide.files import sha256_of
    from confide.report import verification
    from confide.report.writing import ledger_at

    model, calibrated = load_with_calibration(model_file)
    own = None if ledger is None else ledger_at(ledger)
    sha256, agreed = sha256_of(model_file), schema_of(schema)
    findings = verification.verify(model, calibrated=calibrated, sha256=sha256, ledger=own, schema=agreed)
    is_verified, blocks = verification.is_verified(findings), []
    for outcome in (verification.FAILED, verification.VERIFIED, verification.UNCHECKED):
        if sentences := [f"  - {finding.sentence}" for finding in findings if finding.outcome == outcome]:
            blocks += [heading(outcome.capitalize()), text(*sentences)]
    blocks.append(heading("Verified: what can be checked holds." if is_verified else "NOT VERIFIED: see what failed."))
    document = {"model": str(model_file), "verified": is_verified, "findings": json_value(findings)}
    output.Screen(output_format).answer(lambda: document, blocks)
    if not is_verified:
        raise typer.Exit(NO_GUARANTEE)


@options_of_command("inspect")
def inspect(model_file: Path, adjust: Adjust | None = None, output_format: Format = "text") -> None:
    """Show the guarantee, effects and weights of a model file, with intervals if a share of the budget paid for them."""
    from confide.cli import output
    from confide.estimators.loading import load_with_calibration
    from confide.report.findings import has_tests

    (model, calibrated), screen = load_with_calibration(model_file), output.Screen(output_format)
    if adjust is not None and not has_tests(model):
        raise ParameterError("--adjust is for models with intervals, and this model released nothing for them.")
    screen.show([verbatim(f"{model_file}: {type(calibrated or model).__name__}, alpha {model.alpha_:.6g}")])
    screen.show(output.blocks_of_guarantee(calibrated or model))
    screen.show(output.blocks_of_effects(model))
    screen.show(output.blocks_of_model(model, adjust=adjust))
    note = text("The file was read, not checked: `confide verify` makes its plan again and compares.")
    screen.answer(lambda: {"model": str(model_file), **output.model_document(model, adjust, calibrated)}, [note])
    exit_if_void((calibrated or model).guarantee_.void)
