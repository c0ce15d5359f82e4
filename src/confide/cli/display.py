"""What people and machines see of public facts and released weights: text that wraps, tables, and JSON."""

from __future__ import annotations

import json
import re
import textwrap
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn
from rich.progress import Progress as RichProgress
from rich.table import Table
from rich.text import Text

from confide.cli.failures import printable
from confide.data.passes import Pace
from confide.estimators.linear_model import released_model
from confide.released_models.shown_class import ShownClass, weights_by_class

if TYPE_CHECKING:
    from confide.estimators.linear_classifier import LinearClassifier
    from confide.guarantee import Guarantee
    from confide.privacy.mechanism import Plan

_WIDEST = 100
"""Columns. Lines of prose become hard to read beyond."""
_UNBROKEN = 10**6
"""Columns of a table that is not for a screen."""


class Screen:
    """Where a command shows its results: text on standard output, plain where that is not a terminal.

    Text may come from a file, so nothing in it is taken for markup and nothing steers the terminal.
    """

    def __init__(self) -> None:
        self._console = _console()
        self._is_empty = True

    def heading(self, text: str) -> None:
        """A line that begins a part."""
        if not self._is_empty:
            self._console.print()
        self.text(text, style="bold")

    def text(self, text: str, style: str = "") -> None:
        """Lines that wrap; items and tables of words hang below their second part."""
        self._is_empty = False
        width = min(self._console.width, _WIDEST)
        for line in text.split("\n"):
            hanging = re.match(r" *- | *\S+( \S+)*  +(?=\S)", line)
            wrapped = textwrap.fill(
                # Two blanks or more part a word from its meaning, and textwrap keeps them.
                "".join(letter if letter.isprintable() else "?" for letter in line),
                width,
                subsequent_indent=" " * len(hanging[0]) if hanging else "",
                break_on_hyphens=False,
            )
            self._console.print(Text(wrapped, style=style), soft_wrap=True)

    def verbatim(self, text: str) -> None:
        """One line that is not broken, so that it can be copied: a command or a path."""
        self._is_empty = False
        self._console.print(Text(printable(text)), soft_wrap=True)

    def table(
        self, columns: Sequence[str], rows: Sequence[Sequence[str]], words: Collection[str] = (), wrapped: str | None = None
    ) -> None:
        """A table. Its first column and those of words stand to the left, numbers to the right.

        On a terminal that is too narrow the column `wrapped` (the first, if none is named) is broken between words. In a
        pipe or a file nothing is: a row is a line.
        """
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
        wrapped = columns[0] if wrapped is None else wrapped
        for position, name in enumerate(columns):
            left = position == 0 or name in words
            table.add_column(Text(name), justify="left" if left else "right", overflow="fold", no_wrap=name != wrapped)
        for row in rows:
            table.add_row(*(Text(printable(cell)) for cell in row))
        console = self._console if self._console.is_terminal else _console(width=_UNBROKEN)
        console.print(table)

    def plan(self, plan: Plan) -> None:
        """What was decided before any row."""
        self.heading("Plan, made from public facts before any row is used")
        self.text(str(plan))

    def guarantee(self, guarantee: Guarantee) -> None:
        """The statement, with a loud first line where it is void."""
        self.heading("Guarantee")
        first, _, rest = guarantee.statement().partition("\n")
        self.text(first, style="bold red" if guarantee.void else "")
        self.text(rest)

    def weights(self, model: LinearClassifier, most: int | None = None) -> None:
        """The released weights: all, or the largest few."""
        direction = ShownClass.of(released_model(model))
        by_class = weights_by_class(released_model(model))
        before = {label: f"{label}: " if len(by_class) > 1 else "" for label in by_class}
        pairs = [(before[label] + name, w) for label, (weights, _) in by_class.items() for name, w in weights.items()]
        if most is None or len(pairs) <= most:
            title = "Released weights"
        else:
            title = f"The {most} largest of {len(pairs)} released weights"
            pairs = sorted(pairs, key=lambda pair: -abs(pair[1]))[:most]
        unit = "log-odds" if hasattr(model, "predict_proba") else "score"
        if direction.position is None:
            self.heading(f"{title}, by class")
        else:
            self.heading(f"{title}, in {unit} of {direction}")
        intercepts = [(f"{before[label]}(intercept)", intercept) for label, (_, intercept) in by_class.items()]
        rows = [(name, f"{value:+.4f}") for name, value in [*pairs, *intercepts]]
        self.table(("column", "weight"), rows)

    def coefficients(self, model: LinearClassifier) -> None:
        """All coefficients with their intervals."""
        table = model.summary()
        unit, direction = "log-odds" if hasattr(model, "predict_proba") else "score", ShownClass.of(released_model(model))
        of_what = "by class" if direction.position is None else f"in {unit} of {direction}"
        self.heading(f"Coefficients {of_what}, with intervals of {table.level:g}")
        self.table(
            ("column", "coef", "sampling err", "privacy err", "total err", "low", "high", "p"),
            table.cells,
        )
        for note in table.notes[:-1]:
            self.text(note)


def has_intervals(model: LinearClassifier) -> bool:
    """Whether the release holds what intervals are made of."""
    return model._evidence is not None


def _console(*, stderr: bool = False, width: int | None = None) -> Console:
    return Console(stderr=stderr, width=width, markup=False, emoji=False, highlight=False)


@contextmanager
def working(on: str) -> Iterator[None]:
    """A sign of life on standard error, where that is a terminal. It tells what is done, not how far or how long."""
    console = _console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(on):
        yield


@contextmanager
def rows_passing(
    n_rows: int | None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[str, int], None] | None]:
    """A bar on standard error, where that is a terminal: what is done, in which pass, how far it is, and rows a second.

    How many passes there are depends on the rows: the bar is gone when they have ended.

    Parameters
    ----------
    n_rows : number of rows of a pass; None where it is private, for a sign of life alone
    clock : seconds that only rise
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

        def passing(what: str, rows: int) -> None:
            pace(what, rows)
            description = "checking the rows" if what == "checking" else f"training, pass {pace.number}"
            bar.update(task, completed=rows, description=description, speed=pace.speed)

        yield passing


def model_document(model: LinearClassifier) -> dict[str, Any]:
    """A released model, for machines."""
    guarantee = model.guarantee_
    direction, by_class = ShownClass.of(released_model(model)), weights_by_class(released_model(model))
    if direction.position is None:
        weights: Any = {str(label): weights for label, (weights, _) in by_class.items()}
        intercept: Any = {str(label): intercept for label, (_, intercept) in by_class.items()}
    else:
        weights, intercept = by_class[direction.label]
    return {
        "private": guarantee.void is None,
        "guarantee": guarantee.to_dict(),
        "statement": guarantee.statement(),
        "estimator": type(model).__name__,
        "alpha": model.alpha_,
        "target": direction.column,
        "weights_speak_of": direction.label,
        "weights": weights,
        "intercept": intercept,
        "intervals": model.summary().to_dict() if has_intervals(model) else None,
    }


def print_json(document: dict[str, Any]) -> None:
    """One JSON document on standard output, and nothing else."""
    print(json.dumps(document, indent=2, allow_nan=False))
