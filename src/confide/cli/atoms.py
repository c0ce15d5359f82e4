"""`confide atoms`: numbers that many rows share, found privately, as atoms of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.blocks import Block, heading, table, text, verbatim
from confide.cli.options import (
    Format,
    NeighboursName,
    Spending,
    exit_if_void,
    files_of_ledger,
    options_of_command,
)

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.estimators.private_atoms import PrivateAtoms


@options_of_command(
    column="--column NAME  A column of numbers to look for atoms in; repeat it for several.  [default: those with a "
           "logarithmic scale]",
    schema="--schema FILE  Schema that the atoms are written into; its file stays as it is.",
    out="--out FILE.toml  File to write the schema with the atoms to.",
)  # fmt: skip
def atoms(
    data: str,
    column: list[str] | None = None,
    *,
    schema: Path,
    spending: Spending,
    neighbours: NeighboursName = "replace-one",
    max_rows_per_person: int = 1,
    out: Path = Path("atoms.toml"),
    seed: int | None = None,
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Find numbers that many rows share, where nothing public names them.

    Rows are counted by their exact number, with noise. Numbers that far more rows have than those around them get effects of
    their own. All columns are one release and one charge. Rows are read block by block, and checked before anything is
    charged.
    """
    from confide.cli import output
    from confide.data.files import files_of
    from confide.estimators.private_atoms import private_atoms
    from confide.features.schema import Schema

    budget, files, described = spending.budget, files_of(data), Schema.from_toml(schema)
    output.check_path(out, [*files, schema, *files_of_ledger(spending.ledger)], (".toml",), overwrite=force)
    charges = spending.charges(out, max_rows_per_person)
    with spending.charged(charges, "schema"):
        with output.working(f"reading {data}"):
            found = private_atoms(
                files, described, column or None, budget=budget, ledger=charges.ledger, neighbours=neighbours,
                max_rows_per_person=max_rows_per_person, random_state=seed,
            )  # fmt: skip
        charges.write(found.to_toml(), out, overwrite=force, released="schema")
        output.Screen(output_format).answer(
            lambda: _document(found) | {"schema": str(out), "charge": charges.document()}, _blocks(found, charges, out)
        )
    exit_if_void(found.void)


def _document(found: PrivateAtoms) -> dict[str, Any]:
    """What was released, for programs."""
    pairs = zip(found.columns, found.counts, strict=True)
    return {
        "atoms": {column.name: dict(zip(map(str, column.atoms), counts, strict=True)) for column, counts in pairs},
        "noise": found.plan.deviation,
        "void": found.void,
        "interrupted": list(found.interrupted),
    }


def _blocks(found: PrivateAtoms, charges: Charges, out: Path) -> Iterator[Block]:
    if found.void is not None:
        yield text(f"NOT PRIVATE. {found.void}", style="bold red")
    yield heading("Released atoms")
    rows = [
        (column.name, column.shown(atom), f"{count:,.0f}")
        for column, counts in zip(found.columns, found.counts, strict=True)
        for atom, count in zip(column.atoms, counts, strict=True)
    ]
    if rows:
        yield table(("column", "atom", "rows, about"), rows)
    else:
        yield text("No number stands out of the noise. A larger budget or fewer columns help.")
    yield text(f"The standard deviation of the noise on a number of rows is {found.plan.deviation:,.1f}.")
    yield heading("Done")
    yield text(*found.interrupted, charges.closing_sentence())
    named = " Statements of models that are fitted with it name this release and its price." if rows else ""
    yield verbatim(f"Wrote {out}.{named}")
