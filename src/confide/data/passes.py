"""Passes over the rows: who is told how many rows were used, and how fast that is.

The number of passes depends on the rows, so it may be shown on the curator's screen only. The line that `progress` writes by
itself therefore numbers passes only on a terminal, and never tells how many rows there are, which may be private.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias

from confide.errors import ParameterError

Progress: TypeAlias = Callable[[str, int], None]
"""Is called with what is done ("checking", "training" or "scoring") and how many rows of this pass were used, at first 0."""

_SECONDS_BETWEEN_LINES = 0.5

_told: ContextVar[Progress | None] = ContextVar("confide_progress", default=None)
"""Who is told of passes that begin in this thread."""


@contextmanager
def progress(told: Progress | None = None) -> Iterator[None]:
    """Show the progress of fits for as long as the `with` block lasts.

    Parameters
    ----------
    told : callable or None
        Called with "checking", "training" or "scoring" and the number of rows of this pass that have been used: 0 when a
        pass begins, and the number of all rows when it ends. None writes a line on standard error: what is done, the
        number of the pass (only on a terminal), rows a second in this pass, and the time since the `with` block began.
        No fit stops where the function raises: a line on standard error names the kind of its error, and it is not called
        again.

    Notes
    -----
    A row counts once a pass, however many problems are solved at once. Passes over a sample in memory are not shown. Workers
    of a cluster report when a pass ends, and parties report one by one. Fits with a smooth loss usually take 5 to 20 passes.
    Fits with a hinge take 10 to 60 passes, or hundreds where the joint of the hinge is narrow. `Ridge` takes one pass.

    Keep the output on the curator's screen. The number of passes depends on the rows, so whoever counts passes, or reads the
    clock, learns something that no budget covers. Logs tell the same. Only fits of this thread are shown, and nothing here
    changes what they release.

    Returns
    -------
    A context manager, for a `with` block.

    Raises
    ------
    ParameterError
        If it is given anything but a function or None.

    Examples
    --------
    >>> import numpy as np
    >>> import confide
    >>> X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(5_000, 2))
    >>> done = []
    >>> with confide.progress(lambda what, n_rows: done.append((what, n_rows))):
    ...     model = confide.LogisticRegression(1.0).fit(X, X[:, 0] > 0.0)
    >>> done[-1]
    ('training', 5000)
    """
    if told is not None and not callable(told):
        raise ParameterError("progress must be given a function of what is done and a number of rows, or None.")
    line = _Line()
    token = _told.set(Told(told or line))
    try:
        yield
    finally:
        _told.reset(token)
        Told(lambda *_: line.end())("", 0)


class Told:
    """A function that is told of passes until it raises: its error must not stop a fit whose budget is spent.

    Parameters
    ----------
    told : the function
    """

    def __init__(self, told: Progress) -> None:
        self._told: Progress | None = told

    def __call__(self, what: str, n_rows: int) -> None:
        try:
            if self._told is not None:
                self._told(what, n_rows)
        except Exception as error:  # noqa: BLE001 - a user's code may raise anything
            self._told = None
            with suppress(Exception):  # standard error may be closed, and is None without a console
                sys.stderr.write(f"confide: no more progress is shown: its function raised {type(error).__name__}.\n")


class Pass:
    """One pass over the rows, reported as the rows are used.

    Parameters
    ----------
    what : "checking", "training" or "scoring"
    told : who is told, or None for whoever `progress` names
    """

    def __init__(self, what: str, told: Progress | None = None) -> None:
        self._what, self._told, self._n_rows = what, told or _told.get(), 0
        self.used(0)

    def used(self, n_rows: int) -> None:
        """Report that `n_rows` more rows have been used."""
        self._n_rows += n_rows
        if self._told is not None:
            self._told(self._what, self._n_rows)


class Pace:
    """The number of the current pass and its speed, computed from the reports of passes.

    Parameters
    ----------
    clock : gives seconds that never decrease

    Attributes
    ----------
    number : number of this pass among consecutive passes that do the same, from 1
    seconds : time since this pass began
    speed : rows a second in this pass, as text; empty if no row was used or no time has passed
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._what = clock, clock(), ""
        self.number, self.seconds, self.speed = 0, 0.0, ""

    def __call__(self, what: str, n_rows: int) -> None:
        now = self._clock()
        if n_rows == 0:
            self.number = self.number + 1 if what == self._what else 1
            self._begun, self._what = now, what
        self.seconds = now - self._begun
        self.speed = f"{n_rows / self.seconds:,.0f} rows/s" if n_rows and self.seconds > 0.0 else ""


class _Line:
    """One line on standard error, which is written over."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun, self._pace = clock, clock(), Pace(clock)
        self._written, self._width = -float("inf"), 0

    def __call__(self, what: str, n_rows: int) -> None:
        self._pace(what, n_rows)
        now = self._clock()
        if now - self._written < _SECONDS_BETWEEN_LINES:
            return
        self._written = now
        # Output that does not go to a terminal may be kept in a log, which must not hold the number of passes.
        number = f", pass {self._pace.number}" if sys.stderr.isatty() else ""
        speed = f"{self._pace.speed} in this pass, " if self._pace.speed else ""
        self._write(f"{what}{number}: {speed}{now - self._begun:.0f} s")

    def end(self) -> None:
        """Clear the line."""
        if self._width:
            self._write("")

    def _write(self, text: str) -> None:
        stream: Any = sys.stderr
        stream.write("\r" + text.ljust(self._width) if text else "\r" + " " * self._width + "\r")
        stream.flush()
        self._width = len(text)
