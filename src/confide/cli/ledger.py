"""`confide ledger`: create, show and check the file or database that records what was spent on a data set."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.budgets import chosen_budget
from confide.cli.options import Format, RowsPerPerson
from confide.errors import LedgerError

if TYPE_CHECKING:
    from confide.accounting.ledger import Ledger
    from confide.cli.display import Screen
    from confide.privacy.budgets import Budget

LedgerPlace = Annotated[
    str, typer.Argument(metavar="LEDGER.db", help="A file, or postgresql://user@host/database.", show_default=False)
]

ledger_app = typer.Typer(
    rich_markup_mode=None, epilog="\b\nExample:\n  confide ledger init study.db --epsilon 4\n  confide ledger show study.db"
)


@ledger_app.callback(invoke_without_command=True)
def ledger(context: typer.Context) -> None:
    """Create, show or check a ledger: a budget that several fits share."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@ledger_app.command(epilog="\b\nExample:\n  confide ledger init study.db --epsilon 4 --delta 1e-6")
def init(
    path: LedgerPlace,
    epsilon: Annotated[float | None, typer.Option(metavar="E", help="Limit on the sum of all charges.")] = None,
    delta: Annotated[float | None, typer.Option(metavar="D", help="With --epsilon: limit for approximate privacy.")] = None,
    rho: Annotated[float | None, typer.Option(metavar="R", help="Limit for zCDP, instead of --epsilon.")] = None,
    neighbours: Annotated[
        Literal["replace-one", "add-or-remove-one"], typer.Option(help="Which data sets count as neighbours.")
    ] = "replace-one",
    max_rows_per_person: RowsPerPerson = 1,
    accounting: Annotated[
        Literal["auto", "sum", "renyi"],
        typer.Option(help="How charges add up under an approximate limit. auto: the first charge decides."),
    ] = "auto",
) -> None:
    """Create a ledger. Its limit can never be changed, and an existing ledger is never replaced."""
    from confide.accounting.ledger import Ledger
    from confide.accounting.ledger_database import stored_records
    from confide.cli import display

    limit = chosen_budget(epsilon, delta, rho, "limit")
    if Path(path).is_symlink() or stored_records(path).exists():
        raise LedgerError(f"{path} exists already; show it with `confide ledger show`, or choose another name.")
    created = Ledger(
        path, limit=limit, neighbours=neighbours, max_rows_per_person=max_rows_per_person, accounting=accounting
    )
    screen = display.Screen()
    screen.verbatim(f"Created {path}.")
    screen.text(f"All charges together: at most {created.limit} ({created.neighbours}), for {_protected_persons(created)}.")


@ledger_app.command(epilog="\b\nExample:\n  confide ledger show study.db")
def show(path: LedgerPlace, output_format: Format = "text") -> None:
    """Show the limit, what is spent, what is left, and every charge."""
    from confide.accounting.ledger import Ledger
    from confide.cli import display

    opened = Ledger(path)
    if output_format == "json":
        display.print_json(_document(opened, path))
        return
    screen = display.Screen()
    screen.verbatim(f"{path}: {opened.neighbours}, {_protected_persons(opened)}, accounting {opened.accounting}")
    _show_totals(screen, opened)
    _show_charges(screen, opened)


@ledger_app.command(
    epilog="Exit code: 0 if the ledger is sound, 2 if it is damaged.\n\n\b\nExample:\n  confide ledger verify study.db"
)
def verify(
    path: LedgerPlace,
    head: Annotated[
        str | None, typer.Option(metavar="HASH", help="The head shown at an earlier time: it must still be in the chain.")
    ] = None,
    output_format: Format = "text",
) -> None:
    """Check every record, and show the head of the chain.

    Keep the head in another place. With --head it shows later that no record up to today was changed or lost.
    """
    from confide.accounting.ledger import Ledger
    from confide.cli import display

    opened = Ledger(path)
    count = opened.verify(None if head is None else head.strip().lower())
    if output_format == "json":
        display.print_json({"ledger": str(path), "charges": count, "head": opened.head})
        return
    screen = display.Screen()
    screen.verbatim(
        f"{path}: the chain is whole; charges: {count}" + ("" if head is None else ", the given head among them")
    )
    screen.verbatim(f"head: {opened.head}")


def _totals(ledger: Ledger) -> dict[str, Budget]:
    return {"limit": ledger.limit, "spent": ledger.spent(), "remaining": ledger.remaining()}


def _document(ledger: Ledger, path: str) -> dict[str, Any]:
    """The ledger, for programs. Numbers that a charge does not have are null."""
    charges = [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in ledger.entries().to_dict("records")
    ]
    unit = {"neighbours": str(ledger.neighbours), "max_rows_per_person": ledger.max_rows_per_person}
    facts = {"ledger": str(path), **unit, "accounting": ledger.accounting}
    totals = {name: budget.to_dict() for name, budget in _totals(ledger).items()}
    return {**facts, **totals, "head": ledger.head, "entries": charges}


def _show_totals(screen: Screen, ledger: Ledger) -> None:
    names = [name for name in ("epsilon", "delta", "rho") if hasattr(ledger.limit, name)]
    screen.heading("Budget")
    rows = [(title, *(f"{getattr(budget, name):.6g}" for name in names)) for title, budget in _totals(ledger).items()]
    screen.table(("", *names), rows)


def _show_charges(screen: Screen, ledger: Ledger) -> None:
    """A table of the charges, with the columns in which they differ or have a value."""
    frame = ledger.entries()
    screen.heading("Charges" if len(frame) else "No charges yet")
    if not len(frame):
        return
    shown = [name for name in frame if frame[name].notna().any()]
    if (frame["rows_per_person"] == ledger.max_rows_per_person).all():
        shown.remove("rows_per_person")
    frame["time"] = [datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%S UTC") for time in frame["time"]]
    rows = [tuple(_cell(value) for value in row) for row in frame[shown].itertuples(index=False)]
    screen.table(shown, rows, words=("time", "purpose"), wrapped="purpose")


def _protected_persons(ledger: Ledger) -> str:
    rows = ledger.max_rows_per_person
    return f"persons with at most {rows:,} row{'s' if rows > 1 else ''}"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)
