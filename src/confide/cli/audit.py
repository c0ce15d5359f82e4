"""`confide audit`: attacks on a release, and on the attack itself."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from confide.cli.failures import NO_GUARANTEE
from confide.cli.option_values import Delta, Epsilon, Rho, chosen_budget
from confide.cli.options import Force, Format, ModelOptions, takes_model_options


@takes_model_options(without=("jobs", "seed"))
def audit(
    release: Annotated[
        str | None,
        typer.Argument(
            metavar="[RELEASE]",
            help="A file of Python with release, first and second; or module:Class of an estimator. Without it, the model "
            "that the options describe.",
        ),
    ] = None,
    epsilon: Epsilon = None,
    schema: Annotated[Path | None, typer.Option(metavar="FILE", help="TOML file that describes the columns.")] = None,
    delta: Delta = None,
    rho: Rho = None,
    releases: Annotated[int, typer.Option(min=40, metavar="N", help="Releases from either data set.")] = 2000,
    confidence: Annotated[float, typer.Option(metavar="P", help="Of the lower bound.")] = 0.99,
    check_auditor: Annotated[
        bool, typer.Option("--check-auditor", help="Attack releases of which the answer is known, and nothing else.")
    ] = False,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw detections against false alarms, as .svg or .png.")
    ] = None,
    force: Force = False,
    *,
    options: ModelOptions,
    output_format: Format = "text",
) -> None:
    """Try to refute a claim of privacy: release many times from two neighbouring data sets, and tell them apart.

    No file of rows is read: neighbours are made up from public facts. A claim that is not refuted is not proven.
    """
    from confide.audit.known_answers import own_checks
    from confide.audit.worst_pairs import audited
    from confide.cli import output
    from confide.cli.plan import schema_of
    from confide.files import new_file

    screen = output.Screen()
    if check_auditor:
        with output.working("attacking releases of which the answer is known"):
            checks = own_checks()
        if output_format == "json":
            output.print_json({"checks": [check.result.to_dict() | {"holds": check.holds} for check in checks]})
        else:
            screen.heading("The audit of the auditor")
            for check in checks:
                screen.text(f"  - {check}")
        raise typer.Exit(0 if all(check.holds for check in checks) else NO_GUARANTEE)
    given = None if (epsilon, delta, rho) == (None, None, None) else chosen_budget(epsilon, delta, rho)
    target = release if release is not None else options.estimator(chosen_budget(epsilon, delta, rho), schema_of(schema))
    with output.working("attacking"):
        report = audited(target, given, releases, confidence)
    if plot is not None:
        with new_file(plot, overwrite=force) as unfinished:
            report.plot().figure.savefig(unfinished, format=plot.suffix.lstrip(".") or "svg")
    if output_format == "json":
        output.print_json(report.to_dict())
    else:
        verdict, *rest = report.sentences()
        screen.heading(verdict)
        for sentence in rest:
            screen.text(sentence)
    if report.refuted or not report.is_sound:
        raise typer.Exit(NO_GUARANTEE)
