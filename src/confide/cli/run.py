"""`confide run`: all of a study, as its file describes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from confide.cli.options import ForceBudget, Format, exit_if_void
from confide.errors import StudyError

if TYPE_CHECKING:
    from confide.cli.output import Screen
    from confide.cli.study_run import StudyRun

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY.toml", help="The study file.")]


def run(
    study_file: StudyFile,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan and what is left to do. Charges and writes nothing.")
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Charge anew for a step that was charged and whose result is lost, or that changed."),
    ] = False,
    release: Annotated[
        str | None,
        typer.Option(
            help="Name of a further release of the same study, such as 2026-12, when its table has grown. It is charged and "
            "fitted anew, and the names of its files have it too, as in model.2026-12.json."
        ),
    ] = None,
    force_budget: ForceBudget = False,
    output_format: Format = "text",
) -> None:
    """Plan, check the ledger, fit, evaluate and report, as a study file says.

    After a stop the same command goes on where it was, and nothing that is charged is charged again. What was done stands in
    a file beside the study: study.toml has study.state.json.
    """
    from confide.cli import output
    from confide.cli.charges import nothing_wasted
    from confide.cli.study_run import StudyRun
    from confide.studies.progress import only_run
    from confide.studies.study import Study

    study = Study.from_toml(study_file, release=release)
    with nullcontext() if dry_run else only_run(study):
        started = StudyRun.of(study, again=again)
        plan = started.planned()
        screen = output.Screen() if output_format == "text" else None
        document: dict[str, Any] = {"study": str(study_file), "steps": {name: str(how) for name, how, _ in started.left()}}
        if screen is not None:
            _show_steps(screen, started)
            if plan is not None and started.prepared is not None:
                started.prepared.show(plan, screen)
            if started.expected:
                screen.text(f"The evaluation: {started.expected}")
        if plan is not None and started.prepared is not None:
            document |= {"plan": plan.to_dict(), "verdict": started.prepared.judged(plan).to_dict()}
        document |= {"expected_of_evaluation": started.expected} if started.expected else {}
        if not dry_run:
            with nothing_wasted(force=force_budget):
                started.refuse_waste()
            _perform(started, screen, document, plan)
        elif screen is not None:
            screen.text("The ledger has enough left for what is to do. Nothing was charged.")
        if screen is None:
            output.print_json(document)


def _perform(started: StudyRun, screen: Screen | None, document: dict[str, Any], plan: Any) -> None:
    """Do what is left, and show what each step released."""
    from confide.cli import output
    from confide.cli.evaluate import show_rates
    from confide.cli.fit import show_release

    model = started.fitted()
    document.update(output.model_document(model))
    if screen is not None and started.prepared is not None:
        show_release(screen, model, plan, started.prepared.charges, with_intervals=started.options.intervals is not None)
    result = started.evaluated(model)
    rates = started.state.evaluation
    document["evaluation"] = None if rates is None else rates.result
    if screen is not None and result is not None:
        show_rates(screen, result)
        screen.text(started.paid)
    elif screen is not None and rates is not None and rates.result is not None:
        _show_released_rates(screen, rates.result)
    report = started.reported(model)
    later = started.came_later()
    if screen is not None:
        out = started.study.located(started.study.outputs.model)
        screen.heading("Study")
        if started.prepared is not None:
            screen.verbatim(f"Wrote {out}")
        if report is not None:
            screen.verbatim(f"Wrote {report}")
        whole = "All of it is done. " if not later else ""
        screen.verbatim(f"{whole}Show the model with: confide inspect {shlex.quote(str(out))}")
    if later:
        raise StudyError(later)
    exit_if_void(model.guarantee_.void)


def _show_released_rates(screen: Screen, rates: Mapping[str, Any]) -> None:
    """The rates that an earlier run released."""
    from confide.inference.rates import Rate

    screen.heading(f"Evaluation on rows kept aside, released by an earlier run, intervals at {rates['level']:g}")
    names = ("accuracy", "sensitivity", "specificity", "auc")
    screen.text("\n".join(f"{name:<12} {Rate(**rates[name])}" for name in names))


def _show_steps(screen: Screen, started: StudyRun) -> None:
    naming = started.study.study
    screen.heading(f"Study: {naming.name}")
    screen.table(("step", "how far", "what"), started.left(), words=("how far", "what"), wrapped="what")
