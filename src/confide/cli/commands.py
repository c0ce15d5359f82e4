"""What can be typed: the commands, their options, and what each does with them."""

from __future__ import annotations

import io
import math
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide._version import __version__
from confide.cli.budgets import Delta, Epsilon, Rho, chosen_budget, named
from confide.cli.failures import EXIT_CODES, NO_GUARANTEE, FailingInOneLine, printable
from confide.cli.ledger import ledger_app
from confide.cli.options import (
    Alpha,
    Force,
    Format,
    Intervals,
    KernelName,
    LengthScale,
    MechanismName,
    ModelName,
    NeighboursName,
    RandomFeatures,
    RowsBounds,
    RowsPerPerson,
    alpha_of,
    estimator_of,
    inference_share,
    kernel_parameters,
)
from confide.cli.planning import plan
from confide.errors import FileError, InputError, ParameterError

if TYPE_CHECKING:
    from confide.estimators.linear_classifier import LinearClassifier
    from confide.features.schema import Schema

LARGEST_WEIGHTS = 10
_ENDINGS_OF_LEDGERS = ("", "-wal", "-shm", "-journal")
"""Of the files that SQLite keeps beside a ledger."""

ModelOut = Annotated[Path, typer.Option(metavar="FILE", help="Where the model goes.")]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL.json", show_default=False)]

app = typer.Typer(
    cls=FailingInOneLine,
    add_completion=False,
    rich_markup_mode=None,  # plain help: the same on a terminal, in a pipe and in a log
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The entry point `confide`."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name may hold letters that the terminal does not know
    app(prog_name="confide")


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"confide {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True, epilog=EXIT_CODES)
def confide(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Train models on data about people, and release them with a privacy guarantee that a sceptic can check.

    `confide demo` is a place to begin.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(epilog="\b\nExample:\n  confide demo --epsilon 0.5")
def demo(
    epsilon: Epsilon = 1.0,
    delta: Delta = None,
    out: ModelOut = Path("model.json"),
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Train on real data and see what privacy costs.

    The data are the Adult census of 1994, which ship with confide. The model is compared with one without privacy.
    """
    from confide.cli import display
    from confide.cli.charges import Charges
    from confide.datasets import load_adult

    budget = chosen_budget(epsilon, delta, None)
    _check_model_out(out, force=force)
    with display.working("reading the Adult data"):
        adult = load_adult()
        n_rows = len(adult.X_train)
    model = estimator_of("logistic", budget, schema=adult.schema)
    plan = model.plan(n_rows)
    screen = display.Screen() if output_format == "text" else None
    if screen:
        screen.text(
            f"Adult: census income in the United States, 1994. {n_rows:,} people to learn from, "
            f"{len(adult.X_test):,} to test on. Who earns more than 50,000 dollars a year?"
        )
        screen.plan(plan)
    with display.working("training the private model"):
        model.fit(adult.X_train, adult.y_train)
        model.save(out, overwrite=force)
    with display.working("training a model without privacy, to compare"):
        without_privacy = estimator_of("logistic", chosen_budget(math.inf, None, None), schema=adult.schema).fit(
            adult.X_train, adult.y_train
        )
    with display.working("testing"):
        majority = adult.y_train.mode()[0]
        accuracies = {
            "released": float(model.score(adult.X_test, adult.y_test)),
            "without_privacy": float(without_privacy.score(adult.X_test, adult.y_test)),
            "majority_class": float((adult.y_test == majority).mean()),
        }
    commands = [
        f"confide inspect {shlex.quote(str(out))}",
        f"confide plan --rows {n_rows} --features {plan.problem.n_features} --epsilon 0.5",
    ]
    if screen is None:
        document = {"model": str(out), "plan": plan.to_dict(), **display.model_document(model)}
        display.print_json(document | {"charge": Charges(None).document(), "test_accuracy": accuracies, "next": commands})
        _leave(model)
        return
    screen.guarantee(model.guarantee_)
    names = {
        "released": f"private, {named(budget)}" if plan.budget.is_private else "the model written, NOT PRIVATE",
        "without_privacy": "without privacy (its guarantee is void)",
        "majority_class": f'always "{majority}"',
    }
    screen.heading("On the test part")
    screen.table(
        ("model", "accuracy", "error"),
        [(names[key], f"{value:.1%}", f"{1 - value:.1%}") for key, value in accuracies.items()],
    )
    screen.text(
        "These data are public, so that their scores may be shown. A score on private rows is outside the guarantee."
    )
    screen.heading("Next")
    screen.text("Charged to no ledger: these data are public. Rows of your own need one; `confide ledger init` makes it.")
    screen.verbatim(f"Wrote {out}. Try:")
    for command in commands:
        screen.verbatim(f"  {command}")
    _leave(model)


@app.command(epilog="\b\nExample:\n  confide fit adult.csv --schema adult.toml --epsilon 1 --out model.json")
def fit(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="CSV, Parquet or Feather file, or a quoted pattern such as 'data/*.parquet'.",
            show_default=False,
        ),
    ],
    schema: Annotated[Path, typer.Option(metavar="FILE", help="TOML file that describes columns and target.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    kind: ModelName = "logistic",
    kernel: KernelName = None,
    length_scale: LengthScale = None,
    n_features: RandomFeatures = None,
    alpha: Alpha = "auto",
    mechanism: MechanismName = "auto",
    neighbours: NeighboursName = "replace-one",
    n_rows_bounds: RowsBounds = None,
    max_rows_per_person: RowsPerPerson = 1,
    intervals: Intervals = None,
    ledger: Annotated[
        str | None, typer.Option(metavar="FILE", help="Ledger to charge, a file or URL; see `confide ledger init`.")
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep encoded rows there while the command runs: private data, faster passes."),
    ] = None,
    out: ModelOut = Path("model.json"),
    report: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write a page too: guarantee, coefficients, columns.")
    ] = None,
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Train a private model and write it to a file.

    Rows are read block by block and need not fit into memory. All are checked before anything is charged.

    Nothing about columns is learned from the data: types, bounds, categories and labels are those of the schema. Beside
    the released weights, nothing is shown that depends on the rows.
    """
    from confide.cli import display
    from confide.cli.charges import Charges
    from confide.data.on_disk import files_of
    from confide.features.schema import Schema
    from confide.intake.opening import open_rows

    budget = chosen_budget(epsilon, delta, rho)
    files = files_of(data)
    inputs = [*files, schema, *([] if ledger is None else [Path(ledger + end) for end in _ENDINGS_OF_LEDGERS])]
    _check_model_out(out, *inputs, force=force)
    if report is not None:
        _check_report(report, *inputs, out, force=force)
    described = Schema.from_toml(schema)
    target = described.target
    if target is None:
        raise ParameterError(
            f'{schema} names no target; add a line such as target = {{ column = "income", negative = "no", positive = '
            f'"yes" }} above its columns.'
        )
    charges = Charges(ledger)
    model = estimator_of(
        kind,
        budget,
        kernel_parameters(kind, kernel=kernel, length_scale=length_scale, n_features=n_features)
        | inference_share(kind, intervals),
        schema=described,
        alpha=alpha_of(alpha),
        mechanism=mechanism,
        neighbours=neighbours,
        n_rows_bounds=n_rows_bounds,
        max_rows_per_person=max_rows_per_person,
        ledger=charges.ledger,
    )
    with charges.told():
        with display.working(f"counting the rows of {data}"):
            rows: Any = open_rows(files, described)
            n_rows = rows.count()
        plan = model.plan(None if n_rows_bounds else n_rows)
        screen = display.Screen() if output_format == "text" else None
        if screen:
            screen.plan(plan)
        # How far a bar has come would tell the number of rows, where that is private.
        with display.rows_passing(None if n_rows_bounds else n_rows) as passing:
            model.fit(open_rows(files, described, cache=False if cache is None else cache, progress=passing))
        charges.keep(model, out, overwrite=force)
        if report is not None:
            from confide.report import write_report

            write_report(model, report, overwrite=force)
        if screen is None:
            document = {"model": str(out), "plan": plan.to_dict(), **display.model_document(model)}
            display.print_json(document | {"charge": charges.document()})
        else:
            screen.guarantee(model.guarantee_)
            if intervals is None:
                screen.weights(model, LARGEST_WEIGHTS)
            else:
                screen.coefficients(model)
            screen.heading("Done")
            screen.text(charges.sentence())
            if report is not None:
                screen.verbatim(f"Wrote {report}")
            screen.verbatim(f"Wrote {out}; show it with: confide inspect {shlex.quote(str(out))}")
    _leave(model)


@app.command(epilog="\b\nExample:\n  confide predict model.json new.csv --out scored.csv")
def predict(
    model_file: ModelFile,
    data: Annotated[Path, typer.Argument(metavar="DATA", help="CSV, Parquet or Feather file.", show_default=False)],
    out: Annotated[str, typer.Option(metavar="FILE", help="CSV, Parquet or Feather file to write, or - to show CSV.")],
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Add the columns `prediction` and `probability`, or `score`, to a table.

    The probability is that of the schema's positive class, or of three classes and more that of the predicted one; a support
    vector machine has a score in its favour. All columns of the table are kept, those of a CSV file as they are written
    there. The target is not needed.
    """
    import pyarrow as pa

    from confide.cli import display, tables
    from confide.data.on_disk import READABLE
    from confide.estimators.linear_model import released_model
    from confide.released_models.shown_class import ShownClass
    from confide.saved_models.loading import load

    to_stdout = out == "-"
    if to_stdout and output_format == "json":
        raise ParameterError(
            "--out - shows the table on standard output, so --format json has no place there; leave it out."
        )
    if not to_stdout:
        tables.check_path(Path(out), (model_file, data), READABLE, overwrite=force)
    model = load(model_file)
    direction = ShownClass.of(released_model(model))
    with display.working(f"reading {data}"):
        rows = tables.read_columns(data, _kinds_of(model, model_file))
        table = tables.read_all(data)
    if table.num_rows != rows.num_rows:
        raise FileError(f"{data} changed while it was read; run the command again.")
    has_probability = hasattr(model, "predict_proba")
    name = "probability" if has_probability else "score"
    if {"prediction", name} & set(table.column_names):
        raise InputError(f"{data} has a column prediction or {name} already; rename it.")
    with display.working("predicting"):
        X = rows if model.schema is not None else rows.to_pandas()
        table = table.append_column("prediction", pa.array(model.predict(X).tolist()))
        values = model.predict_proba(X) if has_probability else direction.sign * model.decision_function(X)
        if direction.position is None:
            values = values.max(axis=1)
        elif has_probability:
            values = values[:, direction.position]
        table = table.append_column(name, pa.array(values))
    if model.guarantee_.void is not None:
        print(f"warning: this model is NOT PRIVATE. {printable(model.guarantee_.void)}", file=sys.stderr)
    if to_stdout:
        stream = typer.get_text_stream("stdout", encoding="utf-8")
        tables.write_csv(table, stream)
        stream.flush()
        return
    with display.working(f"writing {out}"):
        tables.write_table(table, Path(out), overwrite=force)
    if output_format == "json":
        label = "prediction" if direction.position is None else direction.label
        display.print_json({"out": out, "rows": table.num_rows, "target": direction.column, f"{name}_of": label})
        return
    display.Screen().verbatim(f"Wrote {out}: prediction, and {name} of {direction}.")


app.command(epilog="\b\nExample:\n  confide plan --rows 45000 --features 105 --epsilon 0.5")(plan)


@app.command(epilog=f"Exit code: 0 private, {NO_GUARANTEE} void.\n\n\b\nExample:\n  confide inspect model.json")
def inspect(model_file: ModelFile, output_format: Format = "text") -> None:
    """Show the guarantee and the weights of a model file, with intervals if a share of the budget was kept for them."""
    from confide.cli import display
    from confide.saved_models.loading import load

    model = load(model_file)
    if output_format == "json":
        display.print_json({"model": str(model_file), **display.model_document(model)})
    else:
        screen = display.Screen()
        screen.verbatim(f"{model_file}: {type(model).__name__}, alpha {model.alpha_:.6g}")
        screen.guarantee(model.guarantee_)
        if display.has_intervals(model):
            screen.coefficients(model)
        else:
            screen.weights(model)
    _leave(model)


@app.command(epilog="\b\nExample:\n  confide report model.json --out report.html")
def report(
    model_file: ModelFile,
    out: Annotated[Path, typer.Option(metavar="FILE.html", help="Where the page goes.")] = Path("report.html"),
    level: Annotated[float, typer.Option(metavar="L", help="Of intervals, between 0 and 1.")] = 0.95,
    force: Force = False,
) -> None:
    """Write a model as a page of HTML, for those who must sign it.

    The page holds the guarantee, the coefficients with intervals if a share of the budget was kept for them, and what the
    schema says of the columns: nothing that is not in the model file.
    """
    from confide.cli import display
    from confide.report import write_report
    from confide.saved_models.loading import load

    _check_report(out, model_file, force=force)
    write_report(load(model_file), out, level=level, overwrite=force)
    display.Screen().verbatim(f"Wrote {out}")


app.add_typer(ledger_app, name="ledger")


def _leave(model: LinearClassifier) -> None:
    """The exit code says whether there is a guarantee."""
    if model.guarantee_.void is not None:
        raise typer.Exit(NO_GUARANTEE)


def _check_report(out: Path, *others: Path, force: bool) -> None:
    from confide.cli import tables

    tables.check_path(out, others, (".html", ".htm"), overwrite=force)


def _check_model_out(out: Path, *inputs: Path, force: bool) -> None:
    from confide.cli import tables

    tables.check_path(out, inputs, overwrite=force)


def _kinds(schema: Schema) -> dict[str, Literal["number", "text"]]:
    from confide.features.columns import NumberColumn

    return {column.name: "number" if isinstance(column, NumberColumn) else "text" for column in schema.columns}


def _kinds_of(model: LinearClassifier, path: Path) -> dict[str, Literal["number", "text"]]:
    """The columns that a model reads."""
    if model.schema is not None:
        return _kinds(model.schema)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise FileError(
            f"{path} was trained on an array without names of columns; use confide.load in Python, or train with a schema."
        )
    return dict.fromkeys(map(str, names), "number")
