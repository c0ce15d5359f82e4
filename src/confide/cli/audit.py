"""`confide audit`: attacks on a release, and on the attack itself."""

from __future__ import annotations

from pathlib import Path

import typer

from confide.blocks import heading, text
from confide.cli.failures import NO_GUARANTEE
from confide.cli.option_values import chosen_budget
from confide.cli.options import Format, ModelOptions, options_of_command, schema_of


@options_of_command("audit", without=("jobs", "seed"))
def audit(
    release: str | None = None,
    epsilon: float | None = None,
    schema: Path | None = None,
    delta: float | None = None,
    rho: float | None = None,
    releases: int = 2000,
    confidence: float = 0.99,
    check_auditor: bool = False,
    plot: Path | None = None,
    force: bool = False,
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
    from confide.files import new_file

    screen = output.Screen(output_format)
    if check_auditor:
        with output.working("attacking releases of which the answer is known"):
            checks = own_checks()
        screen.answer(
            lambda: {"checks": [check.result.to_dict() | {"holds": check.holds} for check in checks]},
            [heading("The audit of the auditor"), text(*[f"  - {check}" for check in checks])],
        )
        raise typer.Exit(0 if all(check.holds for check in checks) else NO_GUARANTEE)
    given = None if (epsilon, delta, rho) == (None, None, None) else chosen_budget(epsilon, delta, rho)
    target = release if release is not None else options.estimator(chosen_budget(epsilon, delta, rho), schema_of(schema))
    with output.working("attacking"):
        report = audited(target, given, releases, confidence)
    if plot is not None:
        with new_file(plot, overwrite=force) as unfinished:
            report.plot().figure.savefig(unfinished, format=plot.suffix.lstrip(".") or "svg")
    verdict, *rest = report.sentences()
    screen.answer(report.to_dict, [heading(verdict), text(*rest)])
    if report.refuted or not report.is_sound:
        raise typer.Exit(NO_GUARANTEE)
