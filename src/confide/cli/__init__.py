"""The command line: `confide fit`, `predict`, `plan`, `inspect` and `demo`.

Nothing is decided here: each command calls the library as a user would, and shows what came of it. What is shown are
public facts and released weights. What a fit learned beside them (accuracy on its rows, iterations, run time) has no
place on the screen, and a message never holds a value of the data.

Typer is imported here alone, and the library only when a command needs it, so that `confide --help` is quick.
"""

from __future__ import annotations

from confide.cli.commands import app, main

__all__ = ["app", "main"]
