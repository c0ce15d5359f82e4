"""`confide search`: choose options of a model privately, and release the choice and the chosen model as one release."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from confide.blocks import Block, heading, table, text, verbatim
from confide.cli.option_values import OPTION_OF
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
from confide.errors import FileError, ParameterError
from confide.known_words import listed_unknown

if TYPE_CHECKING:
    from confide.estimators.search import PrivateSearchCV


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
    output_format: Format = "text",
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
    output.check_path(out, [*files, schema, *options.files, *files_of_ledger(spending.ledger)], overwrite=force)
    points = grid_of(grid)
    charges = spending.charges(out, options.max_rows_per_person)
    searched_model = ModelOptions(**vars(options) | {"seed": None}).estimator(budget, columns)
    searched = PrivateSearchCV(
        searched_model, points, budget=budget, method=method, held_out=held_out,
        score_share=score_share, clip=clip, expected_tries=expected_tries, ledger=charges.ledger, random_state=options.seed,
    )  # fmt: skip
    screen = output.Screen(output_format)
    with spending.charged(charges):
        rows: Any = open_rows(files, columns)
        with output.working("counting the rows"):
            n_rows = rows.count()
        screen.show(output.blocks_of_plan(searched.plan(n_rows)))
        with output.working("searching"):
            searched.fit(rows)
        best = searched.best_estimator_
        charges.write_model(best, out, overwrite=force)
        screen.show(_blocks_of_choice(searched))
        screen.show([*output.blocks_of_guarantee(best), *output.blocks_of_model(best, MOST_WEIGHTS_SHOWN)])
        screen.answer(
            lambda: _document(searched, out) | {"charge": charges.document()},
            [heading("Done"), text(charges.closing_sentence()), verbatim(f"Wrote {out}")],
        )
    exit_if_void(best.guarantee_.void)


_NOT_SEARCHED = ("kind", "prior", "public_prior", "effects", "jobs", "seed", "intervals", "interest", "risk_differences")


def grid_of(given: list[str]) -> list[dict[str, list[Any]]]:
    """The grid that --grid states, in parameters of Python.

    Raises
    ------
    ParameterError, FileError
        If it names what no option of a model is, or a value cannot be read.
    """
    texts: dict[str, list[str]] = {}
    for entry in given:
        name, equals, values = entry.partition("=")
        listed = {name: [value.strip() for value in values.split(",")]} if equals else _of_file(Path(entry))
        for option, values_of_option in listed.items():
            field = option.strip().removeprefix("--").replace("-", "_")
            if field in texts:
                raise ParameterError(f"--grid names {option} twice; give all its values at once.")
            texts[field] = values_of_option
    known = [name.replace("_", "-") for name in MODEL_OPTIONS if name not in _NOT_SEARCHED]
    unknown = [name for name in texts if name.replace("_", "-") not in known]
    if unknown or not texts:
        which = f"{listed_unknown(unknown, known)} cannot be chosen; these can: {', '.join(known)}." if unknown else ""
        raise ParameterError(
            f"--grid must name options of a model and values for each, as in --grid alpha=.001,.01. {which}"
        )
    rows = {name: MODEL_OPTIONS[name] for name in texts}
    return [{row.name: [value_of(row, value) for value in texts[name]] for name, row in rows.items()}]


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
        yield text(
            f"{name} of the winner on the rows held out: {searched.best_score_:.4g}, with noise of standard deviation "
            f"{searched.best_score_deviation_:.2g}. It is the best of several, so on average too high."
        )


def _options_of(values: dict[str, Any]) -> dict[str, str]:
    return {OPTION_OF.get(name, name): str(value) for name, value in values.items()}


def _document(searched: PrivateSearchCV, out: Path) -> dict[str, Any]:
    from confide.cli import output

    score = None
    if hasattr(searched, "best_score_"):
        name = "minus_clipped_error" if searched.plan_.errors else "accuracy"
        score = {name: searched.best_score_, "deviation": searched.best_score_deviation_}
    choice = {"model": str(out), "choice": _options_of(searched.best_params_), "score": score}
    return choice | output.model_document(searched.best_estimator_)
