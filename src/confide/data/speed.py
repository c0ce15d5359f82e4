"""How fast rows pass by, for whoever waits for a fit.

What is shown is a matter of the curator's screen: how often rows pass depends on them. So no pass is numbered, and the line
that `progress` writes by itself does not tell how many rows there are, which may be private.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

from confide.errors import ParameterError

Progress: TypeAlias = Callable[[str, int], None]
"""Told what is done, "checking" or "training", and how many rows of this pass have been used."""

_SECONDS_BETWEEN_LINES = 0.5

_watching: ContextVar[Progress | None] = ContextVar("confide_progress", default=None)


@contextmanager
def progress(told: Progress | None = None) -> Iterator[None]:
    """Show that fits go on, for as long as the `with` lasts.

    Parameters
    ----------
    told : callable or None
        Called with "checking" or "training" and the number of rows of this pass that have been used. None writes a line on
        standard error: what is done, rows a second in this pass, and the time since the `with` began.

    Notes
    -----
    Keep it on the curator's screen. How often rows pass depends on them, so who counts passes, or reads the clock, learns
    something that no budget covers; so do logs. Only fits of this thread are shown, and nothing changes what they release.

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
        raise ParameterError("progress takes a function of what is done and a number of rows, or nothing.")
    line = _Line() if told is None else None
    token = _watching.set(told or line)
    try:
        yield
    finally:
        _watching.reset(token)
        if line is not None:
            line.end()


def watching() -> Progress | None:
    """Who is to be told of passes that begin in this thread."""
    return _watching.get()


class _Line:
    """One line on standard error, written over."""

    def __init__(self) -> None:
        self._begun = self._pass_begun = time.monotonic()
        self._written, self._width, self._seen, self._first = -float("inf"), 0, ("", 0), 0

    def __call__(self, what: str, n_rows: int) -> None:
        now = time.monotonic()
        if what != self._seen[0] or n_rows <= self._seen[1]:
            # The first rows of a pass are there: the speed is that of those after them.
            self._pass_begun, self._first = now, n_rows
        self._seen = what, n_rows
        seconds = now - self._pass_begun
        if now - self._written < _SECONDS_BETWEEN_LINES or seconds <= 0.0:
            return
        self._written = now
        self._write(f"{what}: {(n_rows - self._first) / seconds:,.0f} rows/s in this pass, {now - self._begun:.0f} s")

    def end(self) -> None:
        """Clear the line."""
        if self._width:
            self._write("")

    def _write(self, text: str) -> None:
        stream: Any = sys.stderr
        stream.write("\r" + text.ljust(self._width) if text else "\r" + " " * self._width + "\r")
        stream.flush()
        self._width = len(text)
