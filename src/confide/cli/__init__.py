"""The command line: `confide demo`, `fit`, `predict`, `plan`, `inspect`, `report` and `ledger`.

A command decides nothing itself. It calls the library as a user would, and shows the result: public facts and released
weights. Whatever else a fit learns from the rows (its accuracy on them, iterations, run time) is never shown, and no message
holds a value from the data.

Each command has a module of its own, which is named for it. Typer is imported in this package alone. The library is imported
only when a command needs it, so that `confide --help` is quick.
"""

from __future__ import annotations

import sys

from confide.errors import lacking
from confide.first_use import is_installed

if missing := [library for library in ("pandas", "pyarrow", "rich", "typer") if not is_installed(library)]:
    sys.stderr.write(f"{lacking('the command line', ' and '.join(missing), 'cli')}\n")
    sys.exit(2)

from confide.cli.application import app, main

__all__ = ["app", "main"]
