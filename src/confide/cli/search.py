"""`confide search`: choose options of a model privately, and release the choice and the chosen model as one release."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from confide.blocks import Block, heading, table, text, verbatim
from confide.cli.option_values import OPTION_OF, classes_of_kinds
from confide.cli.options import (
    MODEL_OPTIONS,
    Format,
    ModelOptions,
    Spending,
    exit_if_void,
    files_of_ledger,
    options_of_command,
    schema_with_target,
    value_of,
)
from confide.errors import FileError, ParameterError, wording
from confide.known_words import listed_unknown

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.estimators.search import PrivateSearchCV, SearchPlan


@options_of_command("search", without=("row_norm", "intervals", "interest", "risk_differences", "jobs"))
def search(
    data: str,
    schema: Path,
    grid: list[str],
    *,
    spending: Spending,
    method: Literal["auto", "permute-and-flip", "exponential", "repeated"] = "auto",
    held_out: float | None = None,
    score_share: float = 0.0,
    clip: float | None = None,
    expected_tries: float | None = None,
    options: ModelOptions,
    out: Path = Path("model.json"),
    force: bool = False,
    dry_run: bool = False,
    output_format: Format = "text",
    context: typer.Context,
) -> None:
    """Choose options of a model from a public list, and release the choice with the model under one budget.

    The whole search is one charge. What it learns about the other candidates stays private. The ridge (--alpha) needs no
    search: its automatic value costs nothing. The plan says how much noise the search adds.
    """
    from confide.cli import output
    from confide.cli.fit import MOST_WEIGHTS_SHOWN
    from confide.data.sources import files_of
    from confide.estimators.search import PrivateSearchCV
    from confide.intake.rows import open_rows

    budget, columns = spending.budget, schema_with_target(schema)
    files = files_of(data, columns)
    output.check_path(out, [*files, schema, *options.files, *files_of_ledger(spending.ledger)], overwrite=force or dry_run)
    points = grid_of(grid)
    _refuse_typed(context, points[0])
    models, points = models_of(
        points, lambda **kind: ModelOptions(**vars(options) | {"seed": None} | kind).estimator(budget, columns)
    )
    charges = spending.charges(out, options.max_rows_per_person)
    searched = PrivateSearchCV(
        models, points, budget=budget, method=method, held_out=held_out,
        score_share=score_share, clip=clip, expected_tries=expected_tries, ledger=charges.ledger, random_state=options.seed,
    )  # fmt: skip
    screen = output.Screen(output_format)
    with nullcontext() if dry_run else spending.charged(charges):
        rows: Any = open_rows(files, columns)
        with output.working("counting the rows"):
            n_rows = rows.count()
        planned = _planned(searched, points, n_rows)
        screen.show(output.blocks_of_plan(planned))
        if dry_run:
            charges.checked([planned.event], columns)
            plans = [{"candidate": name} | plan.to_dict() for name, plan in zip(planned.names, planned.plans, strict=True)]
            screen.answer(lambda: {"candidates": plans}, [text("A dry run: nothing was charged, and nothing written.")])
            return
        with output.working("searching"):
            searched.fit(rows)
        *_, best = getattr(searched.best_estimator_, "named_steps", {"": searched.best_estimator_}).values()
        charges.write_model(best, out, overwrite=force)
        screen.show(_blocks_of_choice(searched))
        screen.show([*output.blocks_of_guarantee(best), *output.blocks_of_model(best, MOST_WEIGHTS_SHOWN)])
        shown = [heading("Done"), text(charges.closing_sentence()), verbatim(f"Wrote {out}")]
        screen.answer(lambda: _document(searched, best, out) | {"charge": charges.document()}, shown)
    exit_if_void(best.guarantee_.void)


def _refuse_typed(context: typer.Context, point: dict[str, Any]) -> None:
    """Refuse an option that was typed beside a grid that lists its values, and would be ignored."""
    for row in MODEL_OPTIONS.values():
        source = context.get_parameter_source(row.key)
        if row.name in point and source is not None and source.name == "COMMANDLINE":
            raise ParameterError(f"{row.flag} has one value, and --grid lists several for it; leave one of both out.")


def _planned(searched: PrivateSearchCV, points: list[dict[str, list[Any]]], n_rows: int) -> SearchPlan:
    """The plan, whose candidates are called as the grid states them, such as "additive, knots 4"."""
    from confide.estimators.search import ParameterGrid

    options = [_options_of(point).items() for point in ParameterGrid(points)]
    named = (", ".join(f"{option[2:]} {value}" for option, value in own).removeprefix("model ") for own in options)
    planned = replace(searched.plan(n_rows), names=tuple(named))
    if len(planned.plans) == 1:
        raise ParameterError("--grid has a single candidate, and `confide fit` has the whole budget for it.")
    return planned


_NOT_SEARCHED = ("prior", "public_prior", "effects", "jobs", "seed", "intervals", "interest", "risk_differences")


def grid_of(given: list[str]) -> list[dict[str, list[Any]]]:
    """The grid that --grid states, in parameters of Python.

    Raises
    ------
    ParameterError, FileError
        If it names what no option of a model is, or a value cannot be read.
    """
    from confide.estimators.search import FIXED

    texts: dict[str, list[str]] = {}
    for entry in given:
        name, equals, values = entry.partition("=")
        listed = {name: [value.strip() for value in values.split(",")]} if equals else _of_file(Path(entry))
        for option, values_of_option in listed.items():
            field = option.strip().removeprefix("--").replace("-", "_")
            if field in texts:
                raise ParameterError(f"--grid names {option} twice; give all its values at once.")
            texts[field] = values_of_option
    fixed = {*_NOT_SEARCHED, *FIXED}
    known = [row.flag.removeprefix("--") for name, row in MODEL_OPTIONS.items() if not {name, row.name} & fixed]
    unknown = [name for name in texts if name.replace("_", "-") not in known]
    if unknown or not texts:
        which = f"{listed_unknown(unknown, known)} cannot be chosen; these can: {', '.join(known)}." if unknown else ""
        raise ParameterError(f"--grid must name options of a model and their values, as in --grid alpha=.001,.01. {which}")
    rows = {name: MODEL_OPTIONS["kind" if name == "model" else name] for name in texts}
    return [{row.name: [value_of(row, value) for value in texts[name]] for name, row in rows.items()}]


def models_of(points: list[dict[str, list[Any]]], estimator: Callable[..., Any]) -> tuple[Any, list[dict[str, list[Any]]]]:
    """What is searched over, and its grid: a model; or, where the grid names kinds of models, a pipeline of one step.

    Parameters
    ----------
    points : what --grid states
    estimator : makes the model of a `kind`, or else that of --model
    """
    from confide.estimators.search import Pipeline

    ((kinds, values),) = [(point.pop("kind", None), point) for point in points]
    if kinds is None:
        return estimator(), points
    if unknown := [kind for kind in kinds if kind not in MODEL_OPTIONS["kind"].also]:
        raise ParameterError(f"--model has no value {listed_unknown(unknown, MODEL_OPTIONS['kind'].also)}; correct --grid.")
    models, grid = {kind: estimator(kind=kind) for kind in kinds}, []
    # A parameter that none of them has is left to be refused.
    strange = values.keys() - {name for model in models.values() for name in model.get_params()}
    for model in models.values():
        own = strange | model.get_params().keys()
        grid.append({"model": [model]} | {f"model__{name}": values[name] for name in values if name in own})
    return Pipeline([("model", model)]), grid


def _of_file(path: Path) -> dict[str, list[str]]:
    """Values by option, from a TOML file."""
    if path.suffix.lower() != ".toml":
        raise ParameterError("--grid must be a name with values, as in --grid alpha=.001,.01, or the path of a TOML file.")
    from confide.features.toml_form import read_toml

    listed = read_toml(path)
    if not all(isinstance(values, list) and values for values in listed.values()):
        raise FileError(f"{path} must have a list of values for each option, such as alpha = [0.001, 0.01].")
    return {name: [str(value) for value in values] for name, values in listed.items()}


def _blocks_of_choice(searched: PrivateSearchCV) -> Iterator[Block]:
    yield heading("Choice")
    yield table(("option", "value"), list(_options_of(searched.best_params_).items()), words=("value",))
    if hasattr(searched, "best_score_"):
        name = "Minus the mean clipped error" if searched.plan_.errors else "Accuracy"
        score, deviation = searched.best_score_, searched.best_score_deviation_
        yield text(wording("score of the winner", name=name, score=score, deviation=deviation))


def _options_of(values: dict[str, Any]) -> dict[str, str]:
    """The chosen options; the kind of a model by its value of --model."""
    kinds = {of_kind: kind for kind, classes in classes_of_kinds().items() for of_kind in classes}
    named = {name.removeprefix("model__"): kinds.get(type(value), value) for name, value in values.items()}
    return {OPTION_OF.get(name, f"--{name}"): str(value) for name, value in named.items()}


def _document(searched: PrivateSearchCV, best: PrivateLinearModel, out: Path) -> dict[str, Any]:
    from confide.cli import output

    score = None
    if hasattr(searched, "best_score_"):
        name = "minus_clipped_error" if searched.plan_.errors else "accuracy"
        score = {name: searched.best_score_, "deviation": searched.best_score_deviation_}
    return {"model": str(out), "choice": _options_of(searched.best_params_), "score": score} | output.model_document(best)
