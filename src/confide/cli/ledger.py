"""`confide ledger`: create, show, check and charge the file or database that records what was spent on a data set."""

from __future__ import annotations

import math
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.option_values import Delta, Epsilon, Rho, chosen_budget, is_dialogue
from confide.cli.options import Format, RowsPerPerson
from confide.errors import LedgerError, ParameterError

if TYPE_CHECKING:
    from confide.accounting.ledger import Ledger
    from confide.cli.output import Screen
    from confide.privacy.budgets import Budget

LedgerPlace = Annotated[str, typer.Argument(metavar="LEDGER.db", help="A file, or postgresql://user@host/database.")]

ledger_app = typer.Typer(
    rich_markup_mode=None, epilog="\b\nExample:\n  confide ledger init study.db --epsilon 4\n  confide ledger show study.db"
)


@ledger_app.callback(invoke_without_command=True)
def ledger(context: typer.Context) -> None:
    """Create, show, check or charge a ledger: a budget that several releases share."""
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
        Literal["auto", "sum", "renyi"] | None,
        typer.Option(
            help="How charges add up under a limit with --delta: sum suits few releases, renyi many with Gaussian noise. "
            "auto: the first charge decides.  [default: a terminal asks; otherwise auto]",
        ),
    ] = None,
) -> None:
    """Create a ledger. Its limit can never be changed, and an existing ledger is never replaced.

    Under a limit with --delta there are two ways to add charges, and the choice is for good.
    """
    from confide.accounting.database_storage import stored_records
    from confide.accounting.ledger import Ledger
    from confide.cli import output

    limit = chosen_budget(epsilon, delta, rho, "limit")
    if Path(path).is_symlink() or stored_records(path).exists():
        raise LedgerError(f"{path} exists already; show it with `confide ledger show`, or choose another name.")
    has_choice = delta is not None
    chosen = accounting or (_asked_for_accounting() if has_choice and is_dialogue() else "auto")
    created = Ledger(path, limit=limit, neighbours=neighbours, max_rows_per_person=max_rows_per_person, accounting=chosen)
    screen = output.Screen()
    screen.verbatim(f"Created {path}.")
    screen.text(f"All charges together: at most {created.limit} ({created.neighbours}), for {_protected_persons(created)}.")
    screen.text(_EXPLAINED["pure" if epsilon is not None and not has_choice else created.accounting])


_EXPLAINED = {
    "pure": "The epsilons of all charges add up. So the ledger takes charges of --epsilon without --delta, and no others.",
    "sum": "The epsilons of all charges add up, and so do their deltas. A charge of --rho is refused.",
    "renyi": "Rényi divergences of all charges add up, which lets many releases with Gaussian noise cost less together than "
    "their epsilons say. A charge that has --delta but no such noise may take a hundredth of the delta alone.",
    "auto": "The first charge decides for good how charges add up: one of --rho by Rényi divergences, any other by sums of "
    "epsilons and deltas. Many releases with Gaussian noise cost less by Rényi divergences: --accounting renyi.",
}
"""Two sentences on each way in which charges add up."""


def _asked_for_accounting() -> str:
    """Ask how charges shall add up."""
    typer.echo("How shall charges add up? This is fixed for good.")
    typer.echo("  sum    epsilons and deltas add up: for pure charges, and for few releases")
    typer.echo("  renyi  Rényi divergences add up: for many releases with Gaussian noise")
    answer = typer.prompt("sum or renyi", default="sum")
    if answer not in ("sum", "renyi"):
        raise ParameterError("the answer must be sum or renyi; nothing was created.")
    return str(answer)


@ledger_app.command(epilog="\b\nExample:\n  confide ledger show study.db")
def show(path: LedgerPlace, output_format: Format = "text") -> None:
    """Show the limit, what is spent, what is left, and every charge."""
    from confide.accounting.ledger import Ledger
    from confide.cli import output

    opened = Ledger(path)
    if output_format == "json":
        output.print_json(_document(opened, path))
        return
    screen = output.Screen()
    screen.verbatim(f"{path}: {opened.neighbours}, {_protected_persons(opened)}, accounting {opened.accounting}")
    _show_totals(screen, opened)
    _show_charges(screen, opened)
    if unfinished := opened.unfinished():
        screen.heading("Not finished")
        screen.text(
            f"Nothing was released under the charges with these numbers, because they were interrupted or go on now: "
            f"{', '.join(map(str, unfinished))}. The same command with --finish, or `confide run`, makes the release and "
            f"charges nothing anew."
        )


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
    from confide.cli import output

    opened = Ledger(path)
    count = opened.verify(None if head is None else head.strip().lower())
    if output_format == "json":
        output.print_json({"ledger": str(path), "charges": count, "head": opened.head})
        return
    screen = output.Screen()
    screen.verbatim(
        f"{path}: the chain is whole; charges: {count}" + ("" if head is None else ", the given head among them")
    )
    screen.verbatim(f"head: {opened.head}")


@ledger_app.command(epilog="\b\nExample:\n  confide ledger charge study.db --epsilon 0.2 --purpose 'mean age'")
def charge(
    path: LedgerPlace,
    purpose: Annotated[str, typer.Option(metavar="TEXT", help="What was released, and by what; public.")],
    epsilon: Epsilon = None,
    delta: Delta = None,
    rho: Rho = None,
    neighbours: Annotated[
        Literal["replace-one", "add-or-remove-one"] | None,
        typer.Option(help="The neighbours of that guarantee, if they are not those of the ledger."),
    ] = None,
    output_format: Format = "text",
) -> None:
    """Charge what is released elsewhere from the same rows, for example by another program. There is no refund.

    The amounts are taken at their word: they must hold for a person with as many rows as the ledger says.
    """
    from confide.accounting.ledger import Ledger
    from confide.accounting.records import current_user
    from confide.cli import output
    from confide.cli.option_values import amounts_text

    budget, opened = chosen_budget(epsilon, delta, rho, "charge"), Ledger(path)
    details = {"release": "charged by hand", "user": current_user()} if opened.keeps_details else None
    opened.charge(budget, purpose=purpose, neighbours=neighbours, details=details)
    if output_format == "json":
        charged = {"number": opened.last_charge, "charged": budget.to_dict(), "remaining": opened.remaining().to_dict()}
        output.print_json({"ledger": str(path), **charged})
        return
    output.Screen().text(f"Charged {amounts_text(budget)} to {path} ({amounts_text(opened.remaining())} left).")


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
    return {**facts, **totals, "head": ledger.head, "entries": charges, "unfinished": ledger.unfinished()}


def _show_totals(screen: Screen, ledger: Ledger) -> None:
    names = [name for name in ("epsilon", "delta", "rho") if hasattr(ledger.limit, name)]
    screen.heading("Budget")
    rows = [(title, *(f"{getattr(budget, name):.6g}" for name in names)) for title, budget in _totals(ledger).items()]
    screen.table(("", *names), rows)


def _show_charges(screen: Screen, ledger: Ledger) -> None:
    """A table of the charges, with the columns in which they differ or have a value."""
    from confide.accounting.records import DETAILS

    frame = ledger.entries()
    screen.heading("Charges" if len(frame) else "No charges yet")
    if not len(frame):
        return
    shown = [name for name in frame if frame[name].notna().any() and name not in DETAILS]
    if (frame["rows_per_person"] == ledger.max_rows_per_person).all():
        shown.remove("rows_per_person")
    frame["time"] = [datetime.fromisoformat(time).strftime("%Y-%m-%d %H:%M:%S UTC") for time in frame["time"]]
    rows = [tuple(_cell(value) for value in row) for row in frame[shown].itertuples(index=False)]
    screen.table(shown, rows, words=("time", "purpose"), wrapped="purpose")
    described = [row for row in frame.to_dict("records") if any(isinstance(row[name], str) for name in DETAILS)]
    if described:
        screen.heading("What was bought, as whoever charged it says")
    for row in described:
        said = {name: row[name] for name in DETAILS if isinstance(row[name], str)}
        screen.text(
            f"{row['number']}  {said.get('release', 'no release named')}, charged by {said.get('user', 'nobody named')}"
        )
        for name in ("model", "sha256"):
            if name in said:
                screen.verbatim(f"   {name}  {said[name]}")


def _protected_persons(ledger: Ledger) -> str:
    rows = ledger.max_rows_per_person
    return f"persons with at most {rows:,} row{'s' if rows > 1 else ''}"


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.6g}"
    return str(value)
