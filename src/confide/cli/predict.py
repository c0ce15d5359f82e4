"""`confide predict` and `confide export`: rows with the predictions of a model beside them, here and in other programs."""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from confide.blocks import verbatim
from confide.cli.failures import printable
from confide.cli.options import Format, exit_if_void, options_of_command
from confide.errors import FileError, InputError, ParameterError, SchemaWarning
from confide.known_words import printable_lines

if TYPE_CHECKING:
    from confide.data.files import FilePart
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.models.model import ShownClass

_STANDARD_OUTPUT = "-"


@options_of_command("predict")
def predict(
    model_file: Path,
    data: str,
    out: str,
    interval: float | None = None,
    calibration: Path | None = None,
    on_error: Literal["refuse", "skip", "null"] = "refuse",
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Add the column `prediction`, and for classes `probability` (or `score`), to a table of any size.

    The probability is that of the positive class of the schema; with three classes or more, that of the predicted class. A
    support vector machine has no probabilities: its `score` is high where the positive class is likely. All columns of the
    table are kept, and the cells of a CSV file stay as they are written. But if the schema says how numbers are written
    (`table`), they get decimal points. Commas separate cells in the file that is written, whatever separated them before.
    The target is not needed.

    With --interval, the columns `low` and `high` are an interval of the predicted mean, probability or score, if the model
    has intervals. It is not an interval for a single new target.

    With --calibration, or of the file that `save` of a `CalibratedClassifier` wrote, the probability is the calibrated one.

    A row may hold a cell that cannot be read, such as text in a column of numbers. By default the table is refused then.
    With --on-error skip such rows are left out. With --on-error null they are kept without a prediction, and the column
    `reason` says why. Standard error says how many there were.

    The output is not private: it holds the rows of the table. Only the model is. Cells that the schema does not describe
    (numbers outside of their bounds, categories that are not listed) are counted on standard error, by column.
    """
    from confide.cli import output
    from confide.data.files import WRITABLE, FilePart, Stamp
    from confide.data.sources import files_of
    from confide.estimators.linear_model import released_model
    from confide.models.model import ShownClass, predicted_column, predicted_number

    if out == _STANDARD_OUTPUT and output_format == "json":
        raise ParameterError("--out - writes the table to standard output, so --format json is not possible; leave it out.")
    model, predicting = _predicting(model_file, calibration, interval)
    files = files_of(data, model.schema)
    if out != _STANDARD_OUTPUT:
        output.check_path(Path(out), (model_file, *files, *filter(None, [calibration])), WRITABLE, overwrite=force)
    released = released_model(model)
    shown = ShownClass.of(released) if released.domain else None
    types = _types_of_columns(predicting, released.domain, interval)
    parts = [FilePart(Stamp.of(path), _kinds_of_columns(model, model_file)) for path in files]
    for part in parts:
        part.check()
    layout, seen = output.layout_of(parts), _Seen(model, predicting, shown)
    if taken := {*types, *(["reason"] if on_error == "null" else [])} & set(layout.names):
        raise InputError(f"{files[0]} already has a column named {' or '.join(sorted(taken))}; rename it.")

    def tables() -> Iterator[Any]:
        for part in parts:
            for table in output.whole_tables(part, layout):
                yield _scored(seen, part, table, types, interval, on_error)
            if part.stamp != Stamp.of(part.path):
                raise FileError(f"{part.path} changed while it was read; run the command again.")
        if not seen.rows:
            raise InputError(f"{files[0]} has no rows below its line of names; at least one row is needed.")

    with output.working("predicting"):
        if out == _STANDARD_OUTPUT:
            output.write_csv(tables(), typer.get_text_stream("stdout", encoding="utf-8"))
        else:
            output.write_tables(tables(), Path(out), overwrite=force)
    seen.tell(on_error)
    if out == _STANDARD_OUTPUT:
        return
    n_rows = seen.rows - seen.faults.total() * (on_error == "skip")
    counts = {"cells_outside_schema": dict(seen.outside), "rows_without_prediction": dict(seen.faults)}
    document: dict[str, Any] = {"out": out, "rows": n_rows, **counts}
    if shown is None:
        document |= {"target": predicted_column(released)}
        words = f"Wrote {out}: prediction of {predicted_number(released)}."
    else:
        label = "prediction" if shown.position is None else shown.label
        document |= {"target": shown.column, f"{[*types][1]}_of": label}
        words = f"Wrote {out}: prediction, and {[*types][1]} of {shown}."
    output.Screen(output_format).answer(lambda: document, [verbatim(words)])


def _predicting(model_file: Path, calibration: Path | None, interval: float | None) -> tuple[Any, Any]:
    """The model of a file, and what predicts: itself, or what has its calibrated probabilities."""
    from confide.estimators.calibration import CalibratedClassifier
    from confide.estimators.evaluation import said_by_model
    from confide.estimators.linear_model import checksum_of_model
    from confide.estimators.loading import load
    from confide.evaluations.documents import checked_evaluation

    if interval is not None and not 0.0 < interval < 1.0:
        raise ParameterError("--interval must be a number strictly between 0 and 1, for example 0.95.")
    loaded: Any = load(model_file)
    predicting, own = loaded, getattr(loaded, "model", loaded)
    if calibration is not None:
        known = partial(said_by_model, own)
        facts = checked_evaluation(calibration, (checksum_of_model(own),), "--calibration", known)
        predicting = CalibratedClassifier(own, facts or {}).fit()
    if interval is not None and hasattr(predicting, "model"):
        raise ParameterError("--interval is for the model's own probability, and this one is calibrated; leave it out.")
    return own, predicting


def _types_of_columns(model: Any, domain: tuple[Any, ...], interval: float | None) -> dict[str, Any]:
    """The columns that are added, in order, and their Arrow types; after the prediction its probability or score."""
    import pyarrow as pa

    score = [] if not domain else ["probability" if hasattr(model, "predict_proba") else "score"]
    ends = [] if interval is None else ["low", "high"]
    return {"prediction": pa.array(list(domain) or [0.0]).type} | dict.fromkeys([*score, *ends], pa.float64())


class _Seen:
    """A model, what predicts by it, the class that is shown, and what was seen while rows were predicted.

    That is the number of rows, cells outside of the schema, and why rows cannot be read.
    """

    def __init__(self, model: PrivateLinearModel, predicting: Any, shown: ShownClass | None) -> None:
        self.model, self.predicting, self.shown = model, predicting, shown
        self.rows, self.outside, self.faults = 0, Counter[str](), Counter[str]()
        self.of_files, self.first = Counter[Path](), dict[str, str]()  # rows, and where each reason was met first

    def tell(self, on_error: str) -> None:
        """Say on standard error what whoever uses the predictions should know."""
        from confide.intake.arrays import text_of_cells_outside

        model, void = self.model, self.predicting.guarantee_.void
        n_faults, told = self.faults.total(), []
        if void is not None:
            told.append(f"this model is NOT PRIVATE. {void}")
        if model.schema is not None and self.outside:
            told.append(text_of_cells_outside(model.schema, self.rows - n_faults, self.outside))
        if n_faults:
            what = "are left out" if on_error == "skip" else "have no prediction"
            counts = ((count, printable(f"{self.first[why]}: {why}")) for why, count in self.faults.most_common())
            whys = "".join(f"\n  {count:,}, first in {reason}" for count, reason in counts)
            told.append(f"{n_faults:,} of {self.rows:,} rows {what}, because they cannot be read:{whys}")
        for words in told:
            print(f"warning: {printable_lines(words)}", file=sys.stderr)


def _scored(seen: _Seen, part: FilePart, table: Any, types: dict[str, Any], interval: float | None, on_error: str) -> Any:
    """The rows of a table with their predictions in columns of these types, and with the column `reason` for "null".

    Rows that cannot be read are left out for "skip".
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from confide.features.cells import POINT

    start = seen.of_files[part.path] + 1
    seen.rows, seen.of_files[part.path] = seen.rows + table.num_rows, start - 1 + table.num_rows
    reasons: list[str | None] = [None] * table.num_rows
    kept, places = table, None
    try:
        columns = _predictions(seen, _as_read(part, table), interval)
    except InputError as error:
        reasons = _reasons(seen.model, part, table)
        for row, reason in enumerate(reasons, start):
            if reason is not None:
                seen.first.setdefault(reason, f"row {row:,} of {part.path}")
                seen.faults[reason] += 1
        if on_error == "refuse":
            raise next((InputError(f"{place}: {reason}") for reason, place in seen.first.items()), error) from None
        readable = pa.array([reason is None for reason in reasons])
        kept = table.filter(readable)
        columns = _predictions(seen, _as_read(part, kept), interval) if kept.num_rows else [[] for _ in types]
        places = pc.if_else(readable, pc.subtract(pc.cumulative_sum(pc.cast(readable, "int64")), 1), None)
    table = kept if on_error == "skip" else table
    for (name, kind), column in zip(types.items(), columns, strict=True):
        values = pa.array(column, kind)
        table = table.append_column(name, values if places is None or on_error == "skip" else values.take(places))
    if on_error != "null":
        return table
    has_commas = getattr(seen.model.schema, "table", {}).get("decimal") == ","
    for place, name in enumerate(table.column_names) if has_commas else ():
        if part.kinds.get(name) == "number" and pa.types.is_string(table[name].type):
            table = table.set_column(place, name, pc.replace_substring(table[name], POINT, "."))
    return table.append_column("reason", pa.array(reasons, pa.string()))


def _predictions(seen: _Seen, rows: Any, interval: float | None) -> list[Any]:
    """The columns that are added to rows that can be read."""
    model, shown = seen.predicting, seen.shown
    X = rows if seen.model.schema is not None else rows.to_pandas()
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", SchemaWarning)
        columns = [model.predict(X).tolist()]
    for warning in given:
        seen.outside.update(getattr(warning.message, "cells", {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SchemaWarning)  # it was given for the same rows
        ends = None if interval is None else model.predict_interval(X, interval)
        if shown is not None:
            values = model.predict_proba(X) if hasattr(model, "predict_proba") else model.decision_function(X)
            columns.append(shown.of_rows(values))
            ends = None if ends is None else shown.ends_of_rows(ends, values)
    return columns if ends is None else [*columns, ends[:, 0], ends[:, 1]]


def _as_read(part: FilePart, table: Any) -> Any:
    """The columns of a table that a model reads: numbers as numbers, if they are text in the file."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from confide.data.files import CSV_MISSING, attempt, stated_by_folders, suffix_of

    columns, is_text = {}, suffix_of(part.path) == ".csv"
    for name, kind in part.kinds.items():
        cells = table[name]
        if kind == "number" and (is_text or name in stated_by_folders(part.path)) and pa.types.is_string(cells.type):
            given = pc.if_else(pc.is_in(cells, value_set=pa.array(CSV_MISSING)), None, pc.utf8_trim_whitespace(cells))
            refused = partial(_refused_text, part.path, name)
            cells = attempt(partial(pc.cast, given, pa.float64()), refused)
        columns[name] = cells
    return pa.table(columns)


def _refused_text(path: Path, name: str, complaint: str) -> InputError:
    """The refusal of text in a column of numbers. It shows no cell, and of the complaint of pyarrow only what kind it is."""
    from confide.features.cells import not_numbers

    given = complaint.split("'", 1)[1:]  # what pyarrow quotes
    return InputError(f'{path}: column "{name}" holds {not_numbers(given)}')


def _reasons(model: PrivateLinearModel, part: FilePart, table: Any) -> list[str | None]:
    """Why each of the rows of a table cannot be read; None where it can. Each cell that is written alike is tried once."""
    import numpy as np

    from confide.features.schema import Schema
    from confide.features.table import RawTable

    def tried(name: str, column: Any, cells: Any) -> list[str | None]:
        try:
            read = _as_read(replace(part, kinds={name: part.kinds[name]}), table.__class__.from_arrays([cells], [name]))
            if column is not None:
                RawTable.of(read, Schema([column]), choosing=False).checked_column(0, refuse=True)
            elif not np.isfinite(read[name].to_numpy(zero_copy_only=False).astype(float)).all():
                raise InputError(f'column "{name}": holds numbers that are missing or infinite.')
        except InputError as error:
            half = len(cells) // 2
            halves = (cells[:half], cells[half:]) if half else ()
            return (
                [reason for some in halves for reason in tried(name, column, some)]
                if half
                else [str(error).removeprefix(f"{part.path}: ")]
            )
        return [None] * len(cells)

    reasons = np.full(table.num_rows, None, dtype=object)
    columns: Any = () if model.schema is None else model.schema.columns
    for name, column in [(column.raw_name, column) for column in columns] or [(name, None) for name in part.kinds]:
        encoded = table[name].combine_chunks().dictionary_encode(null_encoding="encode")
        of_cells = np.array([*tried(name, column, encoded.dictionary), None], dtype=object)
        reasons = np.where(reasons == None, of_cells[encoded.indices.to_numpy()], reasons)  # noqa: E711 - cell by cell
    return list(reasons)


def _kinds_of_columns(model: PrivateLinearModel, path: Path) -> dict[str, Literal["number", "text"]]:
    """The columns that a model reads, and whether they hold numbers or text."""
    from confide.data.sources import kinds_of_columns

    if model.schema is not None:
        return kinds_of_columns(model.schema)
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        raise FileError(f"{path} was trained on an array without names; use confide.load in Python, or train with a schema.")
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

    makers: dict[str, Callable[[Any], bytes]] = {
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
