"""`confide search`: choose options of a model privately, and release the choice and the chosen model as one release."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.fit import DataFiles, SchemaFile, show_model
from confide.cli.option_values import OPTION_OF
from confide.cli.options import (
    MODEL_OPTIONS,
    Force,
    Format,
    ModelOptions,
    ModelOut,
    Spending,
    exit_if_void,
    files_of_ledger,
    takes_model_options,
    takes_spending,
    value_of,
)
from confide.errors import FileError, ParameterError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.output import Screen
    from confide.estimators.search import PrivateSearchCV

Grid = Annotated[
    list[str],
    typer.Option(
        metavar="NAME=A,B,...|FILE.toml",
        help="Values to choose from, by the name of an option, as alpha=.001,.01; once for each option. Or a TOML file with "
        "lines such as alpha = [0.001, 0.01].",
    ),
]


@takes_spending()
@takes_model_options(without=("row_norm", "intervals", "interest", "risk_differences", "jobs"))
def search(
    data: DataFiles,
    schema: SchemaFile,
    grid: Grid,
    *,
    spending: Spending,
    method: Annotated[
        Literal["auto", "permute-and-flip", "exponential", "repeated"],
        typer.Option(help="How candidates are tried: once each on a part of the rows, or repeatedly on all but a few."),
    ] = "auto",
    held_out: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Share of the rows on which mistakes are counted."),
    ] = None,
    score_share: Annotated[
        float, typer.Option(metavar="SHARE", help="Share of the budget of the choice that releases the winner's score.")
    ] = 0.0,
    expected_tries: Annotated[float | None, typer.Option(metavar="N", help="For repeated: mean number of tries.")] = None,
    options: ModelOptions,
    out: ModelOut = Path("model.json"),
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Choose options of a model from a public list, and release the choice with the model under one budget.

    The whole search is one charge. What it learns about the other candidates stays private. The ridge (--alpha) needs no
    search: its automatic value costs nothing. Models of classes alone can be searched.
    """
    from confide.cli import output
    from confide.cli.fitting import schema_with_target
    from confide.data.files import files_of
    from confide.estimators.search import PrivateSearchCV

    budget, files = spending.budget, files_of(data)
    priors = [path for path in (options.prior, options.public_prior) if path is not None]
    output.check_path(out, [*files, schema, *priors, *files_of_ledger(spending.ledger)], overwrite=force)
    columns, points = schema_with_target(schema), grid_of(grid)
    charges = spending.charges(out, options.max_rows_per_person)
    searched_model = ModelOptions(**vars(options) | {"seed": None}).estimator(budget, columns)
    searched = PrivateSearchCV(
        searched_model, points, budget=budget, method=method, held_out=held_out,
        score_share=score_share, expected_tries=expected_tries, ledger=charges.ledger, random_state=options.seed,
    )  # fmt: skip
    screen = output.Screen() if output_format == "text" else None
    with spending.charged(charges):
        _fit(searched, files, columns, screen)
        charges.write_model(searched.best_estimator_, out, overwrite=force)
        if screen is None:
            output.print_json(_document(searched, out) | {"charge": charges.document()})
        else:
            _show(screen, searched, charges, out)
    exit_if_void(searched.best_estimator_.guarantee_.void)


_NOT_SEARCHED = ("kind", "prior", "public_prior", "jobs", "seed", "intervals", "interest", "risk_differences")


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
        table = {name: [value.strip() for value in values.split(",")]} if equals else _of_file(Path(entry))
        for option, values_of_option in table.items():
            field = option.strip().removeprefix("--").replace("-", "_")
            if field in texts:
                raise ParameterError(f"--grid names {option} twice; give all its values at once.")
            texts[field] = values_of_option
    unknown = [name for name in texts if name not in MODEL_OPTIONS or name in _NOT_SEARCHED]
    if unknown or not texts:
        raise ParameterError("--grid must name options of a model and values for each, as in --grid alpha=.001,.01.")
    rows = {name: MODEL_OPTIONS[name] for name in texts}
    return [{row.name: [value_of(row, text) for text in texts[name]] for name, row in rows.items()}]


def _of_file(path: Path) -> dict[str, list[str]]:
    """Values by option, from a TOML file."""
    if path.suffix.lower() != ".toml":
        raise ParameterError("--grid must be a name with values, as in --grid alpha=.001,.01, or the path of a TOML file.")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}.") from None
    except ValueError:
        raise FileError(f"{path} is not TOML; write lines such as alpha = [0.001, 0.01].") from None
    if not all(isinstance(values, list) and values for values in table.values()):
        raise FileError(f"{path} must have a list of values for each option, such as alpha = [0.001, 0.01].")
    return {name: [str(value) for value in values] for name, values in table.items()}


def _fit(searched: PrivateSearchCV, files: Any, columns: Any, screen: Screen | None) -> None:
    from confide.cli import output
    from confide.intake.rows import open_rows

    rows: Any = open_rows(files, columns)
    with output.working("counting the rows"):
        n_rows = rows.count()
    plan = searched.plan(n_rows)
    if screen is not None:
        screen.plan(plan)
    with output.working("searching"):
        searched.fit(rows)


def _show(screen: Screen, searched: PrivateSearchCV, charges: Charges, out: Path) -> None:
    screen.heading("Choice")
    screen.table(("option", "value"), list(_options_of(searched.best_params_).items()), words=("value",))
    if hasattr(searched, "best_score_"):
        screen.text(
            f"Accuracy of the winner on the rows held out: {searched.best_score_:.4f}, with noise of standard deviation "
            f"{searched.best_score_deviation_:.2g}. It is the best of several, so on average too high."
        )
    show_model(screen, searched.best_estimator_, with_intervals=False)
    screen.heading("Done")
    screen.text(charges.closing_sentence())
    screen.verbatim(f"Wrote {out}")


def _options_of(values: dict[str, Any]) -> dict[str, str]:
    return {OPTION_OF.get(name, name): str(value) for name, value in values.items()}


def _document(searched: PrivateSearchCV, out: Path) -> dict[str, Any]:
    from confide.cli import output

    score = getattr(searched, "best_score_", None)
    deviation = getattr(searched, "best_score_deviation_", None)
    return {
        "model": str(out),
        "choice": _options_of(searched.best_params_),
        "score": None if score is None else {"accuracy": score, "deviation": deviation},
        **output.model_document(searched.best_estimator_),
    }
