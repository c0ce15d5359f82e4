"""How public facts and released weights are shown: as wrapped text and tables for people, as JSON for programs."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import textwrap
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from confide.cli.failures import printable
from confide.cli.option_values import in_words_of_options
from confide.data.files import (
    CSV_MISSING,
    SEPARATORS,
    Kind,
    attempt,
    check_names,
    csv_refusal,
    csv_types,
    header_of,
    opened,
    separator_of,
    suffix_of,
)
from confide.effects.effects import has_effects
from confide.effects.picture import common_limits, extremes, sparkline
from confide.errors import FileError, InputError
from confide.estimators.linear_model import PrivateLinearModel, released_model
from confide.estimators.released import RANDOM_FEATURE, ReleasedCoefficients, effects_of, outcome_of
from confide.features.columns import NumberColumn, shown_number
from confide.files import check_output, new_file
from confide.inference.table import CoefficientTable, readable
from confide.known_words import listed
from confide.models.model import ShownClass, predicted_column, weights_by_class
from confide.report.findings import has_interest, has_intervals, has_risks
from confide.threads import Pace

if TYPE_CHECKING:
    from confide.estimators.search import SearchPlan
    from confide.features.fourier import FourierMap
    from confide.features.schema import Schema
    from confide.guarantee import Guarantee
    from confide.training.plan import AnyPlan


# How many knots the number columns of an additive model get, as commands show it.

_MOST_NAMED = 10
"""The largest number of interactions that are named."""


def chosen_schema(model: Any, n_rows: int | None) -> Schema | None:
    """The schema with the knots that the model chooses for this number of rows; None if it is no additive model."""
    if not hasattr(model, "chosen_schema"):
        return None
    schema: Schema = model.chosen_schema(n_rows)
    return schema


def curves_document(chosen: Schema | None) -> dict[str, Any]:
    """For programs: the knots of each number column, as their number if they are evenly spaced, otherwise as a list."""
    if chosen is None:
        return {}
    described = {column.name: column.to_dict().get("knots", 0) for column in _numbers(chosen)} | _beside(chosen)
    whole = chosen.to_dict()
    interactions = {"interact": whole.get("interact", []), "random_features": whole.get("random_features")}
    return {"knots": described, **interactions}


def rows_of_curves(chosen: Schema | None) -> list[tuple[str, str, str]]:
    """For people: the name of each number column, its knots, and the bounds that they lie between."""
    return [] if chosen is None else [_row(column, _beside(chosen).get(column.name)) for column in _numbers(chosen)]


def sentences_of_interactions(chosen: Schema | None) -> list[str]:
    """For people: which interactions a model has."""
    if chosen is None:
        return []
    sentences = []
    if named := [" x ".join(interaction.columns) for interaction in chosen.interact if not interaction.is_curve]:
        more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
        sentences.append(f"Interactions: {', '.join(named[:_MOST_NAMED])}{more}.")
    if chosen.random_features is not None:
        sentences.append(f"Interactions of all columns together, by {chosen.random_features.number:,} random features.")
    return sentences


def _numbers(schema: Schema) -> list[NumberColumn]:
    return [column for column in schema.columns if column.is_number]


def _beside(schema: Schema) -> dict[str, int]:
    """The numbers of knots of curves beside straight lines."""
    return {
        interaction.columns[0]: interaction.knots
        for interaction in schema.interact
        if interaction.is_curve and interaction.knots
    }


def _row(column: NumberColumn, beside: int | None) -> tuple[str, str, str]:
    return column.name, _knots_text(column, beside), f"{shown_number(column.low)} and {column.shown(column.high)}"


def _knots_text(column: NumberColumn, beside: int | None) -> str:
    if beside:
        return f"{beside}, evenly spaced" + (" in the logarithm" if column.is_log else "") + ", beside a straight line"
    if not column.knots:
        return "none: a straight line" + (" in the logarithm" if column.is_log else "")
    if isinstance(column.knots, tuple):
        return f"{len(column.knots)}, as in the schema"
    return f"{column.knots}, evenly spaced" + (" in the logarithm" if column.is_log else "")


# The random features of a kernel, as commands show them.


@dataclass(frozen=True, slots=True)
class ShownKernel:
    """The public map of a kernel.

    Attributes
    ----------
    features : the map to the random features, or None if the model has none
    beside_columns : whether encoded columns stand beside the features
    """

    features: FourierMap | None
    beside_columns: bool

    @property
    def n_features(self) -> int:
        """The number of random features."""
        return 0 if self.features is None else self.features.n_features


def chosen_map(model: Any, n_rows: int | None, n_features: int | None = None) -> ShownKernel | None:
    """The public map that the model chooses for so many rows and columns; None if it has no kernel."""
    if not hasattr(model, "chosen_map"):
        return None
    return ShownKernel(model.chosen_map(n_rows, n_features), model.schema is not None and model.feature_norm is not None)


def map_document(features: FourierMap | None) -> dict[str, Any]:
    """For programs: the description of the map to random features."""
    return {} if features is None else {"fourier_map": features.to_dict()}


def sentences_of_map(kernel: ShownKernel | None) -> list[str]:
    """For people: how many random features there are, and of which kernel."""
    if kernel is None:
        return []
    if kernel.features is None:
        return ["The model has no random features of a kernel, because the noise would be too large: it is linear."]
    start = "The encoded columns of a row stand beside" if kernel.beside_columns else "Rows are mapped to"
    return [f"{start} {kernel.features}."]


_MAX_TEXT_WIDTH = 100
"""Widest line of prose, in characters: longer lines are hard to read."""
_GAP = 2
"""Spaces between two columns of a table."""
_UNBROKEN_WIDTH = 10**6
"""Width of a table that goes to a pipe or a file, so that no row is broken."""


class Screen:
    """Where a command shows its results: text on standard output, without colours if that is not a terminal.

    Text may come from a file, so nothing in it is read as markup or can control the terminal.
    """

    def __init__(self) -> None:
        self._console = _console()
        self._is_empty = True

    def heading(self, text: str) -> None:
        """The title of a section."""
        if not self._is_empty:
            self._console.print()
        self.text(text, style="bold")

    def text(self, text: str, style: str = "") -> None:
        """Text that wraps. Continued lines of a list item, a "name  value" pair or an indented line are indented."""
        self._is_empty = False
        width = min(self._console.width, _MAX_TEXT_WIDTH)
        for line in text.split("\n"):
            hanging = re.match(r" *- | *\S+( \S+)*  +(?=\S)|  +(?=\S)", line)
            wrapped = textwrap.fill(
                # Two spaces or more separate a name from its value. textwrap keeps them.
                "".join(letter if letter.isprintable() else "?" for letter in line),
                width,
                subsequent_indent=" " * min(len(hanging[0]), width // 2) if hanging else "",
                break_on_hyphens=False,
                break_long_words=False,
            )
            self._console.print(Text(wrapped, style="" if self._console.no_color else style), soft_wrap=True)

    def verbatim(self, text: str) -> None:
        """One line that is never broken, such as a command or a path, so that it can be copied."""
        self._is_empty = False
        self._console.print(Text(printable(text)), soft_wrap=True)

    def table(
        self,
        columns: Sequence[str],
        rows: Sequence[Sequence[str]],
        words: Collection[str] = (),
        wrapped: str | None = None,
        optional: Sequence[str] = (),
    ) -> None:
        """A table in which no number and no name is ever cut.

        The first column and those named in `words` are aligned left, all others right. On a terminal that is too narrow,
        the column `wrapped` (by default the first) is broken between words; then columns in `optional` are left out, one by
        one; and then rows are stacked, one line for each cell. In a pipe or a file each row is one line, unless the variable
        COLUMNS says how wide lines may be.
        """
        wrapped, is_narrow = columns[0] if wrapped is None else wrapped, self._console.is_terminal or "COLUMNS" in os.environ
        shown = shown_columns(columns, rows, wrapped, optional, self._console.width if is_narrow else _UNBROKEN_WIDTH)
        if shown is None:
            self._stacked(columns, rows)
            return
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for position in shown:
            name, left = columns[position], position == 0 or columns[position] in words
            heading = Text(name, style="" if self._console.no_color else "bold")
            table.add_column(heading, justify="left" if left else "right", overflow="fold", no_wrap=name != wrapped)
        for row in rows:
            table.add_row(*(Text(printable(row[position])) for position in shown))
        console = self._console if is_narrow else _console(width=_UNBROKEN_WIDTH)
        console.print(table)
        self._is_empty = False
        if left_out := [name for position, name in enumerate(columns) if position not in shown and name]:
            self.text(f"Not shown on a screen this narrow: {', '.join(left_out)}.")

    def _stacked(self, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Rows as blocks: the first cell, and below it one line for each other cell that holds something."""
        width = max(map(len, columns[1:]), default=0)
        for row in rows:
            self.text(printable(row[0]))
            for name, cell in zip(columns[1:], row[1:], strict=True):
                if cell.strip():
                    self.text(f"  {name:<{width}}  {printable(cell)}")

    def plan(self, plan: AnyPlan | SearchPlan) -> None:
        """The plan, which was made before any row was used."""
        self.heading("Plan, made from public facts before any row is used")
        self.text(in_words_of_options(str(plan)))

    def curves(self, chosen: Schema | None) -> None:
        """How many knots each number column gets, if the model is an additive one."""
        if rows := rows_of_curves(chosen):
            self.heading("Curves, chosen from public facts")
            self.table(("column", "knots", "between"), rows, words=("knots", "between"))
            self.text("Between neighbouring knots a curve is a straight line. The schema, or --knots, may say other knots.")
        for sentence in sentences_of_interactions(chosen):
            self.text(sentence)

    def kernel(self, kernel: ShownKernel | None) -> None:
        """The random features, if the model has a kernel."""
        for sentence in sentences_of_map(kernel):
            self.text(sentence)

    def guarantee(self, guarantee: Guarantee) -> None:
        """The statement of a guarantee. If the guarantee is void, the first line is bold and red."""
        self.heading("Guarantee")
        first, _, rest = guarantee.statement().partition("\n")
        self.text(in_words_of_options(first), style="bold red" if guarantee.void else "")
        self.text(rest)

    def weights(self, model: PrivateLinearModel, max_shown: int | None = None) -> None:
        """The released coefficients in units of the table: all, or the `max_shown` that matter most and the intercepts."""
        coefficients = ReleasedCoefficients.of(model)
        shown = [one for one in coefficients.coefficients if one.unit != RANDOM_FEATURE]
        title = "Released coefficients"
        by_size = sorted((one for one in shown if one.unit), key=lambda one: -abs(one.estimate * one.span))
        if max_shown is not None and len(by_size) > max_shown:
            title = f"The {max_shown} largest of {len(by_size)} released coefficients"
            shown = [*by_size[:max_shown], *(one for one in shown if not one.unit)]
        self.heading(f"{title}, in {coefficients.outcome}")
        headings = ("column", "unit", "coefficient", *([coefficients.ratio] if coefficients.ratio else []))
        rows = [
            (one.name, one.unit, readable(one.estimate), *([_shown_ratio(one.ratio)] if coefficients.ratio else []))
            for one in shown
        ]
        self.table(headings, rows, words=("unit",))
        if max_shown is not None and len(by_size) > max_shown and not has_intervals(model):
            self.text("The noise alone may make coefficients of this size, above all for levels that few rows have.")
        if n_features := len(coefficients.coefficients) - sum(
            one.unit != RANDOM_FEATURE for one in coefficients.coefficients
        ):
            self.text(f"The weights of {n_features} random features are not shown: they mean nothing one by one.")

    def coefficients(self, model: PrivateLinearModel, adjust: str | None = None) -> None:
        """All coefficients with their intervals, in units of the table; corrected for their family if a method is named."""
        table = model.summary(adjust=adjust)
        together = " together" if adjust else ""
        self.heading(f"Coefficients in {outcome_of(model)}, with intervals of {table.level:g}{together}")
        names = ("column", "unit", "coef", "sampling err", "privacy err", "total err", "low", "high", table.heading_of_p)
        cells = [row[: len(names)] for row in table.cells]
        self.table(names, cells, words=("unit",), optional=("sampling err", "privacy err", "total err"))
        if table.ratio:
            self.heading(f"{table.ratio.capitalize()}s, with intervals of {table.level:g}{together}")
            ratios = [(row[0], row[1], *row[len(names) :]) for row in table.cells if row[1]]
            self.table(("column", "unit", table.ratio, "low", "high"), ratios, words=("unit",))
        for note in table.notes[:-1]:
            self.text(note)
        if has_risks(model):
            self._risk_differences(model.average_risk_differences(adjust=adjust))

    def _risk_differences(self, table: CoefficientTable) -> None:
        """Differences of risks with their intervals."""
        together = " together" if table.adjust else ""
        title = f"Risk differences for {table.outcome}, standardised over the rows"
        self.heading(f"{title}, with intervals of {table.level:g}{together}")
        errors = ("sampling err", "privacy err", "total err")
        names = ("column", "unit", "risk diff", *errors, "low", "high", table.heading_of_p)
        self.table(names, table.cells, words=("unit",), optional=errors)
        self.text(table.notes[0])

    def effects(self, model: Any) -> None:
        """The effects of columns, if some number has a curve: its shape, and where it is least and largest."""
        if not has_effects(released_model(model)):
            return
        effects = effects_of(model)
        curves = list(effects.with_bands())
        if all(len(effect.curve) == 2 for effect in curves if effect.is_curve):
            return
        self.heading(f"Effects on the {effects.outcome}, on one scale, from the low of each number to its high")
        limits = common_limits(curves)
        prefix = {label: f"{label}: " if label is not None else "" for label in effects.labels}
        rows = [(prefix[effect.label] + effect.name, sparkline(effect, limits), *extremes(effect)) for effect in curves]
        self.table(("column", "curve", "least at", "largest at"), rows, words=("curve",))
        if not has_intervals(model):
            self.text("The noise alone may make such effects, above all for levels and stretches that few rows have.")


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

    def needed(position: int) -> int:
        cells = [columns[position], *(printable(row[position]) for row in rows)]
        if columns[position] == wrapped:
            cells = [word for cell in cells for word in cell.split(" ")]
        return max(map(cell_len, cells))

    widths = {position: needed(position) for position in range(len(columns))}
    for n_left_out in range(len(optional) + 1):
        shown = [position for position, name in enumerate(columns) if name not in optional[:n_left_out]]
        if sum(widths[position] for position in shown) + _GAP * (len(shown) - 1) <= width:
            return shown
    return None


def _shown_ratio(ratio: float | None) -> str:
    return "" if ratio is None else readable(ratio)


def _console(*, stderr: bool = False, width: int | None = None) -> Console:
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


@contextmanager
def working(on: str) -> Iterator[None]:
    """Show what the command does meanwhile, if standard error is a terminal; not its progress, nor the time it takes."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(on):
        yield


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
    minutes, rest = divmod(max(left, 0), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def model_document(model: PrivateLinearModel, adjust: str | None = None) -> dict[str, Any]:
    """A released model, for programs; with p-values corrected by the method `adjust`, if it is given."""
    guarantee, released = model.guarantee_, released_model(model)
    shown, by_class = ShownClass.of(released) if released.domain else None, weights_by_class(released)
    if len(by_class) == 1:
        weights: Any
        intercept: Any
        ((weights, intercept),) = by_class.values()
    else:
        weights = {str(label): weights for label, (weights, _) in by_class.items()}
        intercept = {str(label): intercept for label, (_, intercept) in by_class.items()}
    return {
        "private": guarantee.void is None,
        "guarantee": guarantee.to_dict(),
        "statement": guarantee.statement(),
        "estimator": type(model).__name__,
        "alpha": model.alpha_,
        "target": predicted_column(released) if shown is None else shown.column,
        "weights_speak_of": None if shown is None else shown.label,
        "weights": weights,
        "coefficients": ReleasedCoefficients.of(model).to_dict(),
        "intercept": intercept,
        "effects": effects_of(model).to_dict() if has_effects(released) else None,
        "intervals": model.summary(adjust=adjust).to_dict() if has_intervals(model) or has_interest(model) else None,
        **({"risk_differences": model.average_risk_differences(adjust=adjust).to_dict()} if has_risks(model) else {}),
        **curves_document(getattr(model, "schema_", None)),
        **map_document(getattr(model, "fourier_map_", None)),
    }


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(document, indent=2, allow_nan=False))


# Reading and writing of tables by declared types: nothing about types is learned from the data.
#
# From a CSV file, declared numbers are read as float64 and everything else as text. Parquet and Feather files state their
# own types. The encoder (`confide.features.encoder`) decides what a cell means.
#
# Messages of pyarrow quote cells, so they are never passed on.

_ROWS_PER_BATCH = 10_000


def read_columns(path: Path, kinds: Mapping[str, Kind]) -> Any:
    """The named columns of a file, as an Arrow table.

    Parameters
    ----------
    path : a CSV file in UTF-8 with a line of names and one separator between cells, or a Parquet or Feather file
    kinds : the columns to read, and whether a CSV file holds numbers or text in them. An empty cell is missing;
        so is a word such as NA or NaN, unless it is a listed level.

    Raises
    ------
    FileError, InputError
        With a message of one line, which names only columns in `kinds`: if a file lacks its line of names, what looks like
        other names are cells.
    """
    if suffix_of(path) == ".csv":
        check_names(path, header_of(path, kinds), kinds)
        table = _read_csv(path, csv_types(kinds), list(kinds), separator_of(path, kinds))
    else:
        table = _read_arrow(path, kinds)
    if table.num_rows == 0:
        raise InputError(f"{path} has no rows below its line of names; at least one row is needed.")
    return table


def read_all(path: Path, wanted: Collection[str] = ()) -> Any:
    """All columns of a file as an Arrow table, in order. Cells of a CSV file are text, unchanged.

    Parameters
    ----------
    path : the file
    wanted : columns that it has, by which the separator of a CSV file is found
    """
    import pyarrow as pa

    if suffix_of(path) != ".csv":
        return _read_arrow(path, None)
    return _read_csv(path, dict.fromkeys(header_of(path, wanted), pa.string()), None, separator_of(path, wanted))


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


def write_table(table: Any, path: Path, *, overwrite: bool = False) -> None:
    """Write a CSV, Parquet or Feather file, as the ending of its name says, in one step (`confide.files.new_file`)."""
    with new_file(path, overwrite=overwrite) as unfinished:
        if suffix_of(path) == ".csv":
            with unfinished.open("w", encoding="utf-8", newline="") as stream:
                write_csv(table, stream)
        elif suffix_of(path) == ".parquet":
            import pyarrow.parquet as parquet

            parquet.write_table(table, unfinished)
        else:
            import pyarrow.feather as feather

            feather.write_feather(table, str(unfinished))


def write_csv(table: Any, stream: TextIO) -> None:
    """Write a table as CSV, with quotes only where they are needed."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table.column_names)
    for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH):
        writer.writerows(zip(*(column.to_pylist() for column in batch.columns), strict=True))


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
    with suppress(OSError, RuntimeError):  # a file that does not exist, or links that form a circle
        return one.resolve() == other.resolve() or one.samefile(other)
    return False


def _read_arrow(path: Path, kinds: Mapping[str, Kind] | None) -> Any:
    import pyarrow as pa
    import pyarrow.feather as feather
    import pyarrow.parquet as parquet

    wanted = None if kinds is None else list(kinds)
    with suppress(pa.ArrowException, OSError), opened(path) as stream:
        if suffix_of(path) == ".parquet":
            file = parquet.ParquetFile(stream)
            check_names(path, file.schema_arrow.names, wanted or [])
            return file.read(columns=wanted)
        table = feather.read_table(stream)
        check_names(path, table.column_names, wanted or [])
        return table if wanted is None else table.select(wanted)
    raise FileError(f"{path} is damaged, or is not a file of the type that its name states.")


def _read_csv(path: Path, types: dict[str, Any], wanted: list[str] | None, separator: str) -> Any:
    import pyarrow.csv as arrow_csv

    options = {
        "parse_options": arrow_csv.ParseOptions(newlines_in_values=True, delimiter=separator),
        "convert_options": arrow_csv.ConvertOptions(
            column_types=types, include_columns=wanted, null_values=list(CSV_MISSING)
        ),
    }
    return attempt(lambda: arrow_csv.read_csv(path, **options), partial(csv_refusal, path, types))
