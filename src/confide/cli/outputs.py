"""What commands have in common at their ends: outputs that are checked before any work, and the exit code."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from confide.cli.failures import NO_GUARANTEE

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel


def is_dialogue() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def check_model_out(out: Path, inputs: Collection[Path] = (), *, force: bool) -> None:
    """Refuse, before any work, a model file that could not be written or would replace an input."""
    from confide.cli import tables

    tables.check_path(out, inputs, overwrite=force)


def check_report_out(out: Path, inputs: Collection[Path] = (), *, force: bool) -> None:
    """Refuse, before any work, a page of HTML that could not be written or would replace an input."""
    from confide.cli import tables

    tables.check_path(out, inputs, (".html", ".htm"), overwrite=force)


def files_of_ledger(ledger: str | None) -> list[Path]:
    """The files of a ledger, which no output may replace: its own, and those that SQLite keeps beside it."""
    return [] if ledger is None else [Path(ledger + ending) for ending in ("", "-wal", "-shm", "-journal")]


def exit_without_guarantee(model: PrivateLinearModel) -> None:
    """End the command with exit code 3 if the guarantee of the model is void."""
    if model.guarantee_.void is not None:
        raise typer.Exit(NO_GUARANTEE)
