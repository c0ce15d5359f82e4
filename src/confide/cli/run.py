"""`confide run`: all of a study, as its file describes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.blocks import heading, table, text, verbatim
from confide.cli.options import Format, exit_if_void, options_of_command
from confide.errors import StudyError, wording

if TYPE_CHECKING:
    from confide.cli.output import Screen
    from confide.cli.study_run import StudyRun
    from confide.estimators.linear_model import PrivateLinearModel


@options_of_command("run")
def run(
    study_file: Path,
    dry_run: bool = False,
    again: bool = False,
    release: str | None = None,
    force_budget: bool = False,
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
        started = StudyRun.of(study, again=again, dry_run=dry_run)
        started.keep_to_schedule(dry_run=dry_run)
        plan, prepared, left = started.planned(), started.prepared, started.left()
        screen = output.Screen(output_format)
        document: dict[str, Any] = {"study": str(study_file), "steps": {name: str(how) for name, how, _ in left}}
        screen.show([heading(f"Study: {study.study.name}")])
        screen.show([table(("step", "how far", "what"), left, words=("how far", "what"), wrapped="what")])
        if plan is not None and prepared is not None:
            screen.show(prepared.blocks(plan))
            document |= {"plan": plan.to_dict(), "verdict": prepared.judged(plan).to_dict()}
        if started.expected:
            screen.show([text(f"The evaluation: {started.expected}")])
            document["expected_of_evaluation"] = started.expected
        if dry_run:
            enough = "The ledger has enough left for what is to do. Nothing was charged."
            said = [wording("ledger to be made", place=place) for place in started.absent] or [enough]
            screen.answer(lambda: document | {"absent_ledgers": list(started.absent)}, [text(*said)])
            return
        with nothing_wasted(force=force_budget):
            started.refuse_waste()
        model = _performed(started, screen, document)
        if later := started.came_later():
            raise StudyError(later)
        exit_if_void(model.guarantee_.void)
        screen.answer(lambda: document, ())


def _performed(started: StudyRun, screen: Screen, document: dict[str, Any]) -> PrivateLinearModel:
    """Do what is left, and show what each step released."""
    from confide.cli import output
    from confide.cli.evaluate import blocks_of_rates
    from confide.cli.fit import blocks_of_release
    from confide.inference.rates import Rate, digits_of

    model, prepared = started.fitted(), started.prepared
    document.update(output.model_document(model))
    if prepared is not None and started.plan is not None:
        screen.show(blocks_of_release(model, started.plan, prepared.charges))
    result = started.evaluated(model)
    kept: Mapping[str, Any] | None = None if started.state.evaluation is None else started.state.evaluation.result
    document["evaluation"] = kept
    if result is not None:
        screen.show(blocks_of_rates(result))
        screen.show([text(started.paid)])
    elif kept is not None:
        title = f"Evaluation on rows kept aside, released by an earlier run, intervals at {kept['level']:g}"
        names = ("accuracy", "sensitivity", "specificity", "auc")
        rates = [(name, *digits_of(Rate(*map(kept[name].get, ("value", "low", "high"))))) for name in names]
        screen.show([heading(title), table(("rate", "value", "low", "high"), rates)])
    report = started.reported(model)
    out = started.study.located(started.study.outputs.model)
    written = [] if prepared is None else [f"Wrote {out}"]
    written += [] if report is None else [f"Wrote {report}"]
    whole = "" if started.came_later() else "All of it is done. "
    shown = f"{whole}Show the model with: confide inspect {shlex.quote(str(out))}"
    screen.show([heading("Study"), verbatim(*written, shown)])
    return model
