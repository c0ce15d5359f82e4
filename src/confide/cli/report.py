"""`confide report`: a model file as a report that people can sign, in several formats."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import typer

from confide.blocks import text, verbatim
from confide.cli.failures import NO_GUARANTEE
from confide.cli.options import Adjust, options_of_command
from confide.errors import ParameterError

_ENDING_OF = {"html": ".html", "pdf": ".pdf", "markdown": ".md", "json": ".json"}


@options_of_command("report")
def report(
    model_file: Path,
    out: Path | None = None,
    output_format: Literal["html", "pdf", "markdown", "json"] | None = None,
    ledger: str | None = None,
    analyst: str = "",
    data_name: str = "",
    fingerprint: Path | None = None,
    evaluation: Path | None = None,
    error: float | None = None,
    positive_rate: float = 0.5,
    level: float = 0.95,
    adjust: Adjust | None = None,
    as_zip: bool = False,
    force: bool = False,
) -> None:
    """Write a report about a model, for the people who must approve its release and sign.

    It says whether the model is private and what that means, what the ledger has spent, what the model says about each
    column, and what the signer confirms. All of it comes from the model file, from the ledger and from these options.
    """
    from confide.accounting.ledger import Ledger
    from confide.cli import output
    from confide.estimators.calibration import counts_of
    from confide.estimators.loading import load_with_calibration
    from confide.files import sha256_of
    from confide.report.accuracy import forecasts_of, place_without_password
    from confide.report.contents import contents_of
    from confide.report.writing import ENDINGS, write_bundle, write_contents

    if as_zip and output_format is not None:
        raise ParameterError("--zip writes every format; leave --format out.")
    kind = output_format or ENDINGS.get("" if out is None else out.suffix.lower(), "html")
    endings = [ending for ending, its_kind in ENDINGS.items() if output_format is None or its_kind == output_format]
    place = out or Path("report.zip" if as_zip else f"report{_ENDING_OF[kind]}")
    inputs = [model_file, *(path for path in (fingerprint, evaluation) if path is not None)]
    if ledger is not None and "://" not in ledger:
        inputs.append(Path(ledger))
    output.check_path(place, inputs, (".zip",) if as_zip else tuple(endings), overwrite=force)
    model, calibrated = load_with_calibration(model_file)
    if calibrated is not None and evaluation is not None:
        raise ParameterError("--evaluation is not for a calibrated classifier, whose own rates are shown; leave it out.")
    with output.working("simulating fits") if error is not None else output.working("writing the report"):
        forecasts = () if error is None else forecasts_of(model, error, positive_rate)
    contents = contents_of(
        model, level=level, adjust=adjust, ledger=None if ledger is None else Ledger(ledger),
        ledger_name=place_without_password(ledger or ""), analyst=analyst, data_name=data_name, forecasts=forecasts,
        fingerprint="" if fingerprint is None else sha256_of(fingerprint),
        evaluation=evaluation if calibrated is None else counts_of(calibrated), sha256=sha256_of(model_file),
        model_name=model_file.name,
    )  # fmt: skip
    written = f"Wrote {place}"
    if as_zip:
        model_text = model_file.read_text(encoding="utf-8")
        written += f": {', '.join(write_bundle(contents, place, model_text=model_text, overwrite=force))}"
    else:
        write_contents(contents, place, kind, overwrite=force)
    output.Screen().show([verbatim(written), text(contents.verdict.headline)])
    if not contents.is_sound:
        raise typer.Exit(NO_GUARANTEE)
