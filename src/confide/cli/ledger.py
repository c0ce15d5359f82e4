"""`confide ledger`: create, show, check and charge the file or database that records what was spent on a data set."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import typer

from confide.blocks import Block, heading, text, verbatim
from confide.cli.option_values import chosen_budget, is_dialogue
from confide.cli.options import Format, NeighboursName, epilog_of, options_of_command
from confide.errors import LedgerError, ParameterError, wording

if TYPE_CHECKING:
    from confide.accounting.ledger import Ledger

_ADD_UP = {"pure": "pure sums", "sum": "plain sums", "renyi": "sums of divergences", "auto": "sums not fixed"}
"""The sentences on how the charges of a ledger add up, by name."""
ledger_app = typer.Typer(rich_markup_mode=None, epilog=epilog_of("ledger"))


@ledger_app.callback(invoke_without_command=True)
def ledger(context: typer.Context) -> None:
    """Create, show, check or charge a ledger: a budget that several releases share."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@ledger_app.command(epilog=epilog_of("ledger init"))
@options_of_command("ledger init")
def init(
    path: str,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    neighbours: NeighboursName = "replace-one",
    max_rows_per_person: int = 1,
    cohorts: str | None = None,
    accounting: Literal["auto", "sum", "renyi"] | None = None,
) -> None:
    """Create a ledger. Its limit can never be changed, and an existing ledger is never replaced.

    Under a limit with --delta there are two ways to add charges, and the choice is for good.
    """
    from confide.accounting.database_storage import stored_records
    from confide.accounting.ledger import Ledger
    from confide.cli import output

    limit, chosen = chosen_budget(epsilon, delta, rho, "limit"), accounting or "auto"
    if Path(path).is_symlink() or stored_records(path).exists():
        raise LedgerError(f"{path} exists already; show it with `confide ledger show`, or choose another name.")
    if delta is not None and accounting is None and is_dialogue():
        typer.echo("How shall charges add up? This is fixed for good.")
        typer.echo("  sum    epsilons and deltas add up: for pure charges, and for few releases")
        typer.echo("  renyi  Rényi divergences add up: for many releases with Gaussian noise")
        chosen = typer.prompt("sum or renyi", default="sum")
        if chosen not in ("sum", "renyi"):
            raise ParameterError("the answer must be sum or renyi; nothing was created.")
    created = Ledger(
        path, limit=limit, neighbours=neighbours, max_rows_per_person=max_rows_per_person, cohorts=cohorts, accounting=chosen
    )
    whom = f"{created.neighbours}), for {_protected_persons(created)}"
    what = "All charges together" if cohorts is None else "All charges that one person pays"
    how = wording(_ADD_UP["pure" if epsilon is not None and delta is None else created.accounting])
    blocks = [verbatim(f"Created {path}."), text(f"{what}: at most {created.limit} ({whom}."), text(how)]
    output.Screen().show([*blocks, *([] if cohorts is None else [text(wording("limit of cohorts", column=cohorts))])])


@ledger_app.command(epilog=epilog_of("ledger show"))
@options_of_command("ledger show")
def show(path: str, cohort: str | None = None, output_format: Literal["text", "json", "csv"] = "text") -> None:
    """Show the limit, what is spent, what is left, and every charge; as CSV the charges alone."""
    from confide.accounting.ledger import Ledger
    from confide.cli import output

    opened = Ledger(path)
    if output_format == "csv":
        # Spreadsheets run a cell that begins so as a formula, and an apostrophe stops them.
        entries = opened.entries().replace(r"^(?=[=+@\t\r\n-])", "'", regex=True)
        output.Screen().show([verbatim(*entries.to_csv(index=False).rstrip("\n").split("\n"))])
        return
    cohort = cohort and cohort.removeprefix(f"{opened.cohorts}=")
    left = None if cohort is None else opened.remaining(cohort)
    more = {} if left is None else {"remaining_of_cohort": left.to_dict()}
    own = [] if left is None or cohort in [*opened.entries()["cohort"]] else ["Nothing was charged to it alone."]
    shown = [] if left is None else [text(f'Left for the persons of the cohort "{cohort}": {left}.', *own)]
    output.Screen(output_format).answer(lambda: _document(opened, path) | more, chain(_blocks(opened, path), shown))


@ledger_app.command(epilog=epilog_of("ledger verify"))
@options_of_command("ledger verify")
def verify(path: str, head: str | None = None, output_format: Format = "text") -> None:
    """Check every record, and show the head of the chain.

    Keep the head in another place. With --head it shows later that no record up to today was changed or lost.
    """
    from confide.accounting.ledger import Ledger
    from confide.cli import output

    opened = Ledger(path)
    count = opened.verify(None if head is None else head.strip().lower())
    among = "" if head is None else ", the given head among them"
    shown = [verbatim(f"{path}: the chain is whole; charges: {count}{among}", f"head: {opened.head}")]
    output.Screen(output_format).answer(lambda: {"ledger": str(path), "charges": count, "head": opened.head}, shown)


@ledger_app.command(epilog=epilog_of("ledger charge"))
@options_of_command("ledger charge")
def charge(
    path: str,
    purpose: str,
    epsilon: float | None = None,
    delta: float | None = None,
    rho: float | None = None,
    neighbours: NeighboursName | None = None,
    cohort: str | None = None,
    output_format: Format = "text",
) -> None:
    """Charge what is released elsewhere from the same rows, for example by another program. There is no refund.

    The amounts are taken at their word: they must hold for a person with as many rows as the ledger says.
    """
    from confide.accounting.ledger import Ledger
    from confide.accounting.records import current_user
    from confide.cli import output
    from confide.privacy.budgets import shown_amounts

    budget, opened = chosen_budget(epsilon, delta, rho, "charge"), Ledger(path)
    details = {"release": "charged by hand", "user": current_user()}
    opened.charge(budget, purpose=purpose, neighbours=neighbours, details=details, cohort=cohort)
    left, charged = opened.remaining(cohort), {"number": opened.last_charge, "charged": budget.to_dict()}
    shown = [text(f"Charged {shown_amounts(budget)} to {path} ({shown_amounts(left)} left).")]
    output.Screen(output_format).answer(lambda: {"ledger": str(path), **charged, "remaining": left.to_dict()}, shown)


@ledger_app.command(epilog=epilog_of("ledger sublimit"))
@options_of_command("ledger sublimit")
def sublimit(
    path: str, purpose: str, epsilon: float | None = None, rho: float | None = None, per_year: bool = False
) -> None:
    """Cap what all charges of one purpose may cost together, such as those of one study.

    It reserves nothing of the limit, and replaces an earlier cap of the same purpose; both stay among the records.
    """
    from confide.accounting.ledger import Ledger
    from confide.cli import output

    opened = Ledger(path)
    symbol = opened.limit.symbol
    amount = {"epsilon": epsilon, "rho": rho}[symbol]
    if amount is None or None not in (epsilon, rho):
        raise ParameterError(f"the limit of {path} is in {symbol}, so give --{symbol} and no other.")
    opened.sublimit(purpose, amount, per_year=per_year)
    output.Screen().show(opened.blocks())


@ledger_app.command(epilog=epilog_of("ledger page"))
@options_of_command("ledger page")
def page(path: str, out: Path = Path("ledger.html"), force: bool = False) -> None:
    """Write limit, sub-limits, what is left and every charge to one page of HTML, for those who may only read."""
    from confide.accounting.ledger import Ledger
    from confide.cli import output
    from confide.cli.options import files_of_ledger
    from confide.files import write_text
    from confide.report.page import page_of_ledger

    output.check_path(out, files_of_ledger(path), (".html", ".htm"), overwrite=force)
    write_text(out, page_of_ledger(Ledger(path), "in a database" if "://" in path else Path(path).name), overwrite=force)
    output.Screen().show([verbatim(f"Wrote {out}")])


def _document(ledger: Ledger, path: str) -> dict[str, Any]:
    """The ledger, for programs. Numbers that a charge does not have are null."""
    from confide.accounting.batches import charges_of

    unit = {name: getattr(ledger, name) for name in ("neighbours", "max_rows_per_person", "cohorts")}
    totals = {"limit": ledger.limit.to_dict(), "spent": ledger.spent().to_dict(), "remaining": ledger.remaining().to_dict()}
    facts = {"ledger": str(path), **unit, "accounting": ledger.accounting, **totals}
    facts["sublimits"] = ledger.sublimits().to_dict("records")
    return {**facts, "head": ledger.head, "entries": charges_of(ledger), "unfinished": ledger.unfinished()}


def _blocks(ledger: Ledger, path: str) -> Iterator[Block]:
    """Limit, sum and rest, and a table of the charges, with the columns in which they differ or have a value."""
    from confide.accounting.batches import charges_of
    from confide.accounting.records import DETAILS

    yield verbatim(f"{path}: {ledger.neighbours}, {_protected_persons(ledger)}, accounting {ledger.accounting}")
    yield from ledger.blocks()
    told = {row["number"]: {name: row[name] for name in DETAILS if row[name] is not None} for row in charges_of(ledger)}
    if any(told.values()):
        yield heading("What was bought, as whoever charged it says")
    for number, said in ((number, said) for number, said in told.items() if said):
        release, user = said.get("release", "no release named"), said.get("user", "nobody named")
        yield text(f"{number}  {release}, charged by {user}")
        yield verbatim(*[f"   {name}  {said[name]}" for name in ("model", "sha256") if name in said])
    if unfinished := ledger.unfinished():
        yield heading("Not finished")
        yield text(wording("unfinished charges", numbers=", ".join(map(str, unfinished))))


def _protected_persons(ledger: Ledger) -> str:
    rows = ledger.max_rows_per_person
    return f"persons with at most {rows:,} row{'s' if rows > 1 else ''}"
