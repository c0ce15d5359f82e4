"""`confide predict` and `confide export`: rows with the predictions of a model beside them, here and in other programs."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from confide.blocks import verbatim
from confide.cli.failures import printable
from confide.cli.options import Format, exit_if_void, options_of_command
from confide.errors import FileError, InputError, ParameterError, SchemaWarning

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.models.model import ShownClass

_STANDARD_OUTPUT = "-"


@options_of_command("predict")
def predict(
    model_file: Path,
    data: str,
    out: str,
    interval: float | None = None,
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Add the column `prediction`, and for classes `probability` (or `score`), to a table.

    The probability is that of the positive class of the schema; with three classes or more, that of the predicted class. A
    support vector machine has no probabilities: its `score` is high where the positive class is likely. All columns of the
    table are kept, and the cells of a CSV file stay as they are written; commas separate them in the file that is
    written, whatever separated them before. The target is not needed.

    With --interval, the columns `low` and `high` are an interval of the predicted mean, probability or score, if the model
    has intervals. It is not an interval for a single new target.

    The output is not private: it holds the rows of the table. Only the model is. Cells that the schema does not describe
    (numbers outside of their bounds, categories that are not listed) are counted on standard error, by column.
    """
    from confide.cli import output
    from confide.data.files import WRITABLE
    from confide.data.sources import files_of
    from confide.estimators.linear_model import released_model
    from confide.estimators.loading import load
    from confide.models.model import ShownClass, predicted_column, predicted_number

    if interval is not None and not 0.0 < interval < 1.0:
        raise ParameterError("--interval must be a number strictly between 0 and 1, for example 0.95.")
    if out == _STANDARD_OUTPUT and output_format == "json":
        raise ParameterError("--out - writes the table to standard output, so --format json is not possible; leave it out.")
    model = load(model_file)
    files = files_of(data, model.schema)
    if out != _STANDARD_OUTPUT:
        output.check_path(Path(out), (model_file, *files), WRITABLE, overwrite=force)
    released = released_model(model)
    shown = ShownClass.of(released) if released.domain else None
    with output.working("reading the rows"):
        kinds = _kinds_of_columns(model, model_file)
        rows = output.read_columns(files, kinds)
        table = output.read_all(files, kinds)
    score_name = None if shown is None else "probability" if hasattr(model, "predict_proba") else "score"
    names = ("prediction", *(() if score_name is None else (score_name,)), *(() if interval is None else ("low", "high")))
    if table.num_rows != rows.num_rows:
        raise FileError(f"{files[0]} changed while it was read; run the command again.")
    if set(names) & set(table.column_names):
        raise InputError(f"{files[0]} already has a column named {' or '.join(names)}; rename it.")
    with output.working("predicting"):
        table, outside = _with_predictions(table, rows, model, shown, score_name, interval)
    if model.guarantee_.void is not None:
        print(f"warning: this model is NOT PRIVATE. {printable(model.guarantee_.void)}", file=sys.stderr)
    if outside is not None:
        print(f"warning: {printable(str(outside))}", file=sys.stderr)
    if out == _STANDARD_OUTPUT:
        stream = typer.get_text_stream("stdout", encoding="utf-8")
        output.write_csv(table, stream)
        stream.flush()
        return
    with output.working(f"writing {out}"):
        output.write_table(table, Path(out), overwrite=force)
    document: dict[str, Any] = {"out": out, "rows": table.num_rows}
    document["cells_outside_schema"] = {} if outside is None else outside.cells
    if shown is None:
        document |= {"target": predicted_column(released)}
        words = f"Wrote {out}: prediction of {predicted_number(released)}."
    else:
        label = "prediction" if shown.position is None else shown.label
        document |= {"target": shown.column, f"{score_name}_of": label}
        words = f"Wrote {out}: prediction, and {score_name} of {shown}."
    output.Screen(output_format).answer(lambda: document, [verbatim(words)])


def _with_predictions(
    table: Any,
    rows: Any,
    model: PrivateLinearModel,
    shown: ShownClass | None,
    score_name: str | None,
    interval: float | None,
) -> tuple[Any, SchemaWarning | None]:
    """The table with the predictions and, for classes, their probabilities or scores; what the schema does not describe."""
    import pyarrow as pa

    X = rows if model.schema is not None else rows.to_pandas()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", SchemaWarning)
        table = table.append_column("prediction", pa.array(model.predict(X).tolist()))
    outside = next((warning.message for warning in given if isinstance(warning.message, SchemaWarning)), None)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # it was given for the same rows
        ends = None if interval is None else model.predict_interval(X, interval)
        if shown is not None:
            values = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
            table = table.append_column(score_name, pa.array(shown.of_rows(values)))
            ends = None if ends is None else shown.ends_of_rows(ends, values)
    for name, column in () if ends is None else (("low", ends[:, 0]), ("high", ends[:, 1])):
        table = table.append_column(name, pa.array(column))
    return table, outside


def _kinds_of_columns(model: PrivateLinearModel, path: Path) -> dict[str, Literal["number", "text"]]:
    """The columns that a model reads, and whether they hold numbers or text."""
    from confide.data.sources import kinds_of_columns

    if model.schema is not None:
        return kinds_of_columns(model.schema)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise FileError(
            f"{path} was trained on an array without names of columns; use confide.load in Python, or train with a schema."
        )
    return dict.fromkeys(map(str, names), "number")


@options_of_command("export")
def export(
    model_file: Path,
    out: Path,
    table: str = "people",
    dialect: Literal["postgresql", "duckdb", "spark"] = "postgresql",
    force: bool = False,
) -> None:
    """Write a model for programs that have no confide: a query in SQL, a file of Python, or an ONNX graph.

    The ending of the file says which. A query (.sql) gives the rows of a table in a database with the columns of `confide
    predict` beside them. A file of Python (.py) needs no library; as a program it reads CSV from standard input and writes
    CSV. An ONNX graph (.onnx) takes encoded or raw columns, see the documentation. All are made of what was released, so
    they cost nothing and have the guarantee of the model, which stands in them.
    """
    from confide.cli import output
    from confide.estimators.loading import load
    from confide.files import new_file

    makers: dict[str, Callable[[PrivateLinearModel], bytes]] = {
        ".sql": lambda model: model.to_sql(table, dialect).encode(),
        ".py": lambda model: model.to_python().encode(),
        ".onnx": lambda model: bytes(model.to_onnx().SerializeToString()),
    }
    output.check_path(out, (model_file,), tuple(makers), overwrite=force)
    model = load(model_file)
    text = makers[out.suffix.lower()](model)
    with new_file(out, overwrite=force) as path:
        path.write_bytes(text)
    output.Screen().show([verbatim(f"Wrote {out}.")])
    exit_if_void(model.guarantee_.void)
