"""What commands show: blocks on a terminal for people, one document of JSON for programs, and tables in files."""

from __future__ import annotations

import csv
import math
import os
import re
import textwrap
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import chain
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from confide.blocks import Block, heading, table, text
from confide.cli.failures import printable
from confide.cli.option_values import in_words_of_options
from confide.data.files import (
    SEPARATORS,
    FilePart,
    arrow_schema,
    attempt,
    check_names,
    separator_of,
    stated_by_folders,
    suffix_of,
)
from confide.effects.effects import has_effects
from confide.effects.picture import common_limits, extremes, sparkline
from confide.errors import FileError, InputError, wording
from confide.estimators.linear_model import PrivateLinearModel, released_model
from confide.estimators.released import ReleasedCoefficients, effects_of, words_on_noise
from confide.features.columns import NumberColumn
from confide.files import check_output, json_text, new_file
from confide.inference.table import Method
from confide.known_words import listed, printable_lines
from confide.models.model import ShownClass, predicted_column, weights_by_class
from confide.report.findings import coefficient_cells, has_interest, has_intervals, has_risks, has_tests, more_heads
from confide.threads import Pace

if TYPE_CHECKING:
    from confide.estimators.calibration import CalibratedClassifier
    from confide.features.fourier import FourierMap
    from confide.features.schema import Schema

_MAX_TEXT_WIDTH = 100
"""Widest line of prose, in characters: longer lines are hard to read."""
_GAP = 2
"""Spaces between two columns of a table."""
_UNBROKEN_WIDTH = 10**6
"""Width of a table that goes to a pipe or a file, so that no row is broken."""


class Screen:
    """Where a command answers: blocks as text on standard output, without colours if that is not a terminal, or JSON.

    Text may come from a file, so nothing in it is read as markup or can control the terminal.

    Parameters
    ----------
    output_format : "text" for people, or "json" for programs, who get the document alone and no block
    """

    def __init__(self, output_format: str = "text") -> None:
        self._console, self._is_empty, self._is_text = _console(), True, output_format == "text"

    def show(self, blocks: Iterable[Block]) -> None:
        """Show blocks to people. For programs the blocks are not even made, if a generator gives them."""
        for block in blocks if self._is_text else ():
            if block.kind != "heading" and not block.lines:
                continue  # a drawing, or sentences of which there are none
            if block.kind == "heading":
                if not self._is_empty:
                    self._console.print()
                self._prose(block.title, "bold")
            elif block.kind == "group":
                self.show(block.lines)
            elif block.heads:
                self._table(block)
            elif block.kind == "verbatim":
                for line in block.lines:
                    self._console.print(Text(printable(line)), soft_wrap=True)
            else:
                bullet = "- " if block.kind in ("list", "numbered", "confirm") else ""
                for sentence in block.lines:
                    self._prose(bullet + sentence, block.style)
            self._is_empty = False

    def answer(self, document: Callable[[], Mapping[str, Any]], blocks: Iterable[Block]) -> None:
        """End with blocks for people, or with one document for programs."""
        self.show(blocks)
        if not self._is_text:
            print(json_text(document()), end="")

    def _prose(self, words: str, style: str = "") -> None:
        """Text that wraps. Continued lines of a list item, a "name  value" pair or an indented line are indented."""
        width = min(self._console.width, _MAX_TEXT_WIDTH)
        for line in printable_lines(words).split("\n"):
            hanging = re.match(r" *- | *\S+( \S+)*  +(?=\S)|  +(?=\S)", line)
            indent = " " * min(len(hanging[0]), width // 2) if hanging else ""
            # Two spaces or more separate a name from its value. textwrap keeps them.
            wrapped = textwrap.fill(line, width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False)
            self._console.print(Text(wrapped, style="" if self._console.no_color else style), soft_wrap=True)

    def _table(self, block: Block) -> None:
        """A table in which no number and no name is ever cut.

        The first column and those of words are aligned left, all others right. On a terminal that is too narrow, the
        column `wrapped` is broken between words; then optional columns are left out, one by one; and then rows are stacked,
        one line for each cell. In a pipe or a file each row is one line, unless the variable COLUMNS says how wide lines
        may be.
        """
        heads, wrapped = block.heads, block.wrapped or block.heads[0]
        is_narrow = self._console.is_terminal or "COLUMNS" in os.environ
        width = self._console.width if is_narrow else _UNBROKEN_WIDTH
        shown = shown_columns(heads, block.lines, wrapped, block.optional, width)
        if shown is None:
            # Rows as blocks: the first cell, and below it one line for each other cell that holds something.
            longest = max(map(len, heads[1:]), default=0)
            for row in block.lines:
                self._prose(printable(row[0]))
                for name, cell in zip(heads[1:], row[1:], strict=True):
                    if cell.strip():
                        self._prose(f"  {name:<{longest}}  {printable(cell)}")
            return
        made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for position in shown:
            name = heads[position]
            left, title = position == 0 or name in block.words, Text(name, style="" if self._console.no_color else "bold")
            made.add_column(title, justify="left" if left else "right", overflow="fold", no_wrap=name != wrapped)
        for row in block.lines:
            made.add_row(*[Text(printable(row[position])) for position in shown])
        (self._console if is_narrow else _console(width=_UNBROKEN_WIDTH)).print(made)
        if left_out := [name for position, name in enumerate(heads) if position not in shown and name]:
            self._prose(f"Not shown on a screen this narrow: {', '.join(left_out)}.")


def shown_columns(
    columns: Sequence[str], rows: Sequence[Sequence[str]], wrapped: str, optional: Sequence[str], width: int
) -> list[int] | None:
    """The positions of the columns that fit a width; None if rows must be stacked.

    Parameters
    ----------
    columns, rows : a table
    wrapped : the column whose cells may be broken between words
    optional : the columns that may be left out, in this order
    width : in characters
    """
    widths = []
    for position, name in enumerate(columns):
        cells = [name, *[printable(row[position]) for row in rows]]
        widths.append(max(map(cell_len, " ".join(cells).split(" ") if name == wrapped else cells)))
    for n_left_out in range(len(optional) + 1):
        shown = [position for position, name in enumerate(columns) if name not in optional[:n_left_out]]
        if sum([widths[position] + _GAP for position in shown]) - _GAP <= width:
            return shown
    return None


# What a model chooses from public facts: the knots of the number columns of an additive model, and random features.

_MOST_NAMED = 10
"""The largest number of interactions that are named."""


def chosen_schema(model: Any, n_rows: int | None) -> Schema | None:
    """The schema with the knots that the model chooses for this number of rows; None if it is no additive model."""
    return model.chosen_schema(n_rows) if hasattr(model, "chosen_schema") else None


def chosen_map(model: Any, n_rows: int | None, n_features: int | None = None) -> FourierMap | None:
    """The map to random features that the model chooses for so many rows and columns; None if it has none."""
    return model.chosen_map(n_rows, n_features) if hasattr(model, "chosen_map") else None


def choices_document(chosen: Schema | None, features: FourierMap | None) -> dict[str, Any]:
    """For programs: the knots of each number column, as their number if they are evenly spaced, otherwise as a list."""
    document: dict[str, Any] = {}
    if chosen is not None:
        knots = {column.name: column.to_dict().get("knots", 0) for column in chosen.columns if column.is_number}
        whole = chosen.to_dict()
        document = {"knots": knots | _knots_beside_lines(chosen), "interact": whole.get("interact", [])}
        document["random_features"] = whole.get("random_features")
    return document if features is None else document | {"fourier_map": features.to_dict()}


def blocks_of_choices(model: Any, chosen: Schema | None, features: FourierMap | None) -> Iterator[Block]:
    """For people: the knots of each number column and the bounds between which they lie, interactions, and the kernel."""
    if chosen is not None:
        beside = _knots_beside_lines(chosen)
        if rows := [
            (column.name, _knots_text(column, beside), f"{column.texts_of([column.low])[0]} and {column.shown(column.high)}")
            for column in chosen.columns
            if column.is_number
        ]:
            yield heading("Curves, chosen from public facts")
            yield table(("column", "knots", "between"), rows, words=("knots", "between"))
            bent = ", unless random features bend it" if chosen.random_features else ""
            numbers = (column for column in chosen.columns if column.is_number and column.low >= 0.0)
            is_near = any(column.knots == column.high - column.low - 1.0 for column in numbers)
            near = [wording("knots of near whole numbers")] * is_near
            yield text(
                f"Between neighbouring knots a curve is a straight line{bent}.",
                *near,
                "The schema, or --knots, may say other knots.",
            )
        if named := [" x ".join(interaction.columns) for interaction in chosen.interact if not interaction.is_curve]:
            more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
            yield text(f"Interactions: {', '.join(named[:_MOST_NAMED])}{more}.")
        if chosen.random_features is not None:
            where = ", if the fit finds that columns act together" if chosen.random_features.if_found else ""
            yield text(f"Interactions of all columns together, by {chosen.random_features.number:,} random features{where}.")
    if hasattr(model, "chosen_map"):
        are_beside = model.schema is not None and model.feature_norm is not None
        start = "The encoded columns of a row stand beside" if are_beside else "Rows are mapped to"
        none = "The model has no random features of a kernel, because the noise would be too large: it is linear."
        yield text(none if features is None else f"{start} {features}.")


def _knots_beside_lines(schema: Schema) -> dict[str, int]:
    """The numbers of knots of curves beside straight lines, by column."""
    return {curve.columns[0]: curve.knots for curve in schema.interact if curve.is_curve and curve.knots}


def _knots_text(column: NumberColumn, beside: Mapping[str, int]) -> str:
    scale, known = " in the logarithm" if column.is_log else "", beside.get(column.name)
    if known:
        return f"{known}, evenly spaced{scale}, beside a straight line"
    if not column.knots:
        return f"none: a straight line{scale}"
    if isinstance(column.knots, tuple):
        return f"{len(column.knots)}, as in the schema"
    return f"{column.knots}, evenly spaced{scale}"


# A released model: its guarantee, its coefficients and effects, as blocks and as a document.


def blocks_of_plan(plan: object) -> Iterator[Block]:
    """The plan, which was made before any row was used."""
    yield heading("Plan, made from public facts before any row is used")
    yield text(in_words_of_options(str(plan)))


def blocks_of_model(
    model: PrivateLinearModel, max_shown: int | None = None, adjust: Method | None = None
) -> Iterator[Block]:
    """Coefficients with intervals, or without them the `max_shown` weights that matter most, or all."""
    if has_intervals(model):
        yield from _blocks_of_intervals(model, adjust)
        return
    coefficients = ReleasedCoefficients.of(model)
    shown = [*coefficients.of_columns]
    title = "Released coefficients"
    by_size = sorted([one for one in shown if one.unit], key=attrgetter("size"), reverse=True)
    if max_shown is not None and len(by_size) > max_shown:
        title = f"The {max_shown} largest of {len(by_size)} released coefficients"
        shown = [*by_size[:max_shown], *[one for one in shown if not one.unit]]
    yield heading(f"{title}, in {coefficients.outcome}")
    heads, cells = more_heads(coefficients), [coefficient_cells(one, coefficients) for one in shown]
    yield table(("column", "unit", "coefficient", *heads), cells, words=("unit",), optional=heads[::-1])
    yield text(*words_on_noise(model), *coefficients.words_of_features)
    if has_interest(model):
        yield from _blocks_of_intervals(model, adjust)


def _blocks_of_intervals(model: PrivateLinearModel, adjust: Method | None) -> Iterator[Block]:
    """Coefficients with their intervals, in units of the table; corrected for their family if a method is named."""
    for made in (model.summary, *[model.average_risk_differences] * has_risks(model)):
        title, *tables, notes = made(adjust=adjust).blocks()
        yield from (title, *tables, text(*notes.lines[:-1]))


def blocks_of_guarantee(model: PrivateLinearModel | CalibratedClassifier) -> Iterator[Block]:
    """The statement of a guarantee. If the guarantee is void, the first line is bold and red."""
    yield heading("Guarantee")
    first, _, rest = model.guarantee_.statement().partition("\n")
    yield text(in_words_of_options(first), style="bold red" if model.guarantee_.void else "")
    yield text(rest)


def blocks_of_effects(model: Any) -> Iterator[Block]:
    """The effects of columns, if some number has a curve: its shape, and where it is least and largest."""
    if not has_effects(released_model(model)):
        return
    effects = effects_of(model)
    curves = list(effects.with_bands())
    if all(len(effect.curve) == 2 for effect in curves if effect.is_curve):
        return
    yield heading(f"Effects on the {effects.outcome}, on one scale, from the low of each number to its high")
    limits, rows = common_limits(curves), []
    for effect in sorted(curves, key=lambda effect: effect.size, reverse=True):
        name = effect.name if effect.label is None else f"{effect.label}: {effect.name}"
        rows.append((name, sparkline(effect, limits), *extremes(effect)))
    yield table(("column", "curve", "least at", "largest at"), rows, words=("curve",))
    if effects.words_of_interactions:
        yield text(effects.words_of_interactions)


def model_document(
    model: PrivateLinearModel, adjust: Method | None = None, calibrated: CalibratedClassifier | None = None
) -> dict[str, Any]:
    """A released model, for programs; with p-values corrected by the method `adjust`, if it is given.

    If it is the model of a calibrated classifier, guarantee, statement and name of the estimator are those of that.
    """
    guarantee, released = (calibrated or model).guarantee_, released_model(model)
    shown, by_class = ShownClass.of(released) if released.domain else None, weights_by_class(released)
    weights: dict[str, Any] = {str(label): weights for label, (weights, _) in by_class.items()}
    intercept: Any = {str(label): intercept for label, (_, intercept) in by_class.items()}
    if len(by_class) == 1:
        ((weights, intercept),) = by_class.values()
    return {
        "private": guarantee.void is None,
        "guarantee": guarantee.to_dict(),
        "statement": guarantee.statement(),
        "estimator": type(calibrated or model).__name__,
        "alpha": model.alpha_,
        "target": predicted_column(released) if shown is None else shown.column,
        "weights_speak_of": None if shown is None else shown.label,
        "weights": weights,
        "coefficients": ReleasedCoefficients.of(model).to_dict(),
        "intercept": intercept,
        "effects": effects_of(model).to_dict() if has_effects(released) else None,
        "intervals": model.summary(adjust=adjust).to_dict() if has_tests(model) else None,
        **({"risk_differences": model.average_risk_differences(adjust=adjust).to_dict()} if has_risks(model) else {}),
        **choices_document(getattr(model, "schema_", None), getattr(model, "fourier_map_", None)),
    }


def _console(*, stderr: bool = False, width: int | None = None) -> Console:
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


@contextmanager
def working(on: str) -> Iterator[Callable[[str], object]]:
    """Show what the command does meanwhile, if standard error is a terminal; not its progress, nor the time it takes.

    What it gives shows another text, which may tell of work without rows.
    """
    console = _console(stderr=True)
    if not console.is_terminal:
        yield str
        return
    with console.status(on) as status:
        yield status.update


@contextmanager
def row_progress(
    n_rows: int | None, clock: Callable[[], float] = time.monotonic, *, n_passes: int | None = None
) -> Iterator[Callable[[str, int], None] | None]:
    """Show a progress bar if standard error is a terminal: the pass, its progress, rows a second, and the time that is left.

    The number of passes usually depends on the rows, so the bar is removed at the end, and the time that is left is that of
    one pass. Where the plan fixes the number of passes, it is that of all.

    Parameters
    ----------
    n_rows : number of rows in a pass; None if it is private, and then there is no bar
    clock : a monotonic clock, in seconds
    n_passes : number of passes of training, if the plan fixes it
    """
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    if n_rows is None or not console.is_terminal:
        with working("training"):
            yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[speed]}"))
    with RichProgress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("checking the rows", total=n_rows, speed="")
        pace = Pace(clock)

        def show_progress(what: str, rows: int) -> None:
            pace(what, rows)
            of_all = "" if n_passes is None else f" of {max(n_passes, pace.number)}"
            description = "checking the rows" if what == "checking" else f"training, pass {pace.number}{of_all}"
            several = n_passes is not None and what != "checking"
            left = time_left(rows, n_rows, pace.seconds, (n_passes or 0) - pace.number + 1 if several else 1)
            whose = "" if several else " of this pass"
            told = f"{pace.speed}, {left}{whose} left" if pace.speed and left else pace.speed
            bar.update(task, completed=rows, description=description, speed=told)

        yield show_progress


def time_left(rows: int, n_rows: int, seconds: float, n_passes: int) -> str:
    """The time that is left at the speed of this pass, rounded up; empty before the speed is known.

    Parameters
    ----------
    rows, n_rows : rows used in this pass, and in a whole one
    seconds : since this pass began
    n_passes : passes that are left, this one included
    """
    if rows <= 0 or seconds <= 0.0:
        return ""
    left = math.ceil(seconds * (n_rows * max(n_passes, 1) - rows) / rows)
    return f"{timedelta(seconds=max(left, 0))}"


# Reading and writing of tables by declared types: nothing about types is learned from the data.
#
# From a CSV file, declared numbers are read as float64 and everything else as text. Parquet and Feather files state their
# own types. The encoder (`confide.features.encoder`) decides what a cell means.
#
# Messages of pyarrow quote cells, so they are never passed on.

_ROWS_PER_BATCH = 10_000


def layout_of(parts: Sequence[FilePart]) -> Any:
    """The names and types of all columns of files, as one Arrow schema. All columns of a CSV file are text.

    Raises
    ------
    InputError
        If two columns have one name, or columns of one name have types that cannot be one.
    """
    import pyarrow as pa

    schemas = []
    for part in parts:
        names, stated, is_csv = part.names(), stated_by_folders(part.path), suffix_of(part.path) == ".csv"
        check_names(part.path, names, names)
        kinds = dict.fromkeys(names, pa.string()) if is_csv else {one.name: one.type for one in arrow_schema(part.path)}
        kinds |= dict.fromkeys(stated.keys() - kinds.keys(), pa.string())
        # Each batch has a dictionary of its own, which not every kind of file can hold.
        plain = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in kinds.values())
        schemas.append(pa.schema(zip(kinds, plain, strict=True)))
    refusal = InputError(f"{parts[0].path}: a column has another type in another one of these files; write them alike.")
    return attempt(lambda: pa.unify_schemas(schemas, promote_options="permissive"), lambda _: refusal)


def whole_tables(part: FilePart, layout: Any) -> Iterator[Any]:
    """All columns of a file, as Arrow tables of a layout, in the order of its rows. Cells of a CSV file are unchanged."""
    import pyarrow as pa

    names = list(dict.fromkeys([*part.names(), *stated_by_folders(part.path)]))
    for batch in FilePart(part.stamp, dict.fromkeys(names, "text")).tables(names):
        given, size = set(names), batch.num_rows
        columns = [batch[one.name].cast(one.type) if one.name in given else pa.nulls(size, one.type) for one in layout]
        yield pa.Table.from_arrays(columns, schema=layout)


def separator_sentences(files: Sequence[Path], kinds: Collection[str]) -> list[str]:
    """What stands between the cells of CSV files, if it is not a comma: decided from their first lines alone.

    Parameters
    ----------
    files : the files of a table
    kinds : the columns that are read
    """
    if suffix_of(files[0]) != ".csv":
        return []
    separators = sorted({SEPARATORS[separator_of(path, kinds)] for path in files} - {SEPARATORS[","]})
    what = "The file is" if len(files) == 1 else "Files are"
    return [f"{what} separated by {' and '.join(separators)}, as the line of names shows."] if separators else []


def write_tables(tables: Iterator[Any], path: Path, *, overwrite: bool = False) -> None:
    """Write a CSV, Parquet or Feather file, as the ending of its name says, in one step (`confide.files.new_file`).

    Parameters
    ----------
    tables : of one layout, written one after the other
    path, overwrite : as for `new_file`
    """
    import pyarrow as pa
    import pyarrow.parquet as parquet

    with new_file(path, overwrite=overwrite) as unfinished:
        if suffix_of(path) == ".csv":
            with unfinished.open("w", encoding="utf-8", newline="") as stream:
                write_csv(tables, stream)
            return
        first = next(tables)
        writes_parquet = suffix_of(path) == ".parquet"
        with (parquet.ParquetWriter if writes_parquet else pa.ipc.new_file)(str(unfinished), first.schema) as writer:
            for rows in chain([first], tables):
                writer.write_table(rows)


def write_csv(tables: Iterator[Any], stream: TextIO) -> None:
    """Write tables of one layout as CSV, with quotes only where they are needed."""
    writer = csv.writer(stream, lineterminator="\n")
    for number, rows in enumerate(tables):
        writer.writerows([rows.column_names] * (not number))
        for batch in rows.to_batches(max_chunksize=_ROWS_PER_BATCH):
            writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    stream.flush()


def check_path(
    path: Path, others: Collection[Path], endings: Collection[str] | None = None, *, overwrite: bool = False
) -> None:
    """Refuse, before any work, an output that could not be written, or would replace an input or another output."""
    if endings is not None and path.suffix.lower() not in endings:
        raise FileError(f"{path}: the name of the output file must end in {listed(endings)}.")
    if any(_is_same(path, other) for other in others):
        raise FileError(f"{path} is an input of this command, or its other output, and would be lost; choose another name.")
    check_output(path, overwrite=overwrite)


def _is_same(one: Path, other: Path) -> bool:
    """Whether two paths lead to the same file, also if by different names or links."""
    place = Path(f"{other}")  # a private file has the name of what its rows came from
    with suppress(OSError, RuntimeError):  # a file that does not exist, or links that form a circle
        return one.resolve() == place.resolve() or one.samefile(place)
    return False
