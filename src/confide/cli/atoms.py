"""`confide atoms`: numbers that many rows share, found privately, as atoms of a schema."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.blocks import Block, heading, table, text, verbatim
from confide.cli.options import Release, options_of_command

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.estimators.private_atoms import PrivateAtoms


@options_of_command("atoms")
def atoms(
    data: str,
    column: list[str] | None = None,
    *,
    schema: Path,
    release: Release,
    out: Path = Path("atoms.toml"),
) -> None:
    """Find numbers that many rows share, where nothing public names them.

    Rows are counted by their exact number, with noise. Numbers that far more rows have than those around them get effects of
    their own. All columns are one release and one charge. Rows are read block by block, and checked before anything is
    charged.
    """
    from confide.estimators.private_atoms import private_atoms
    from confide.features.schema import Schema

    described = Schema.from_toml(schema)
    files = release.checked_files(data, out, [schema], ".toml", described)
    release.written(
        "schema",
        out,
        partial(private_atoms, files, described, column or None),
        lambda found: (found.to_toml(), _document(found) | {"schema": str(out)}),
        partial(_blocks, out),
    )


def _document(found: PrivateAtoms) -> dict[str, Any]:
    """What was released, for programs."""
    pairs = zip(found.columns, found.counts, strict=True)
    return {
        "atoms": {column.name: dict(zip(map(str, column.atoms), counts, strict=True)) for column, counts in pairs},
        "noise": found.plan.deviation,
        "void": found.void,
        "interrupted": list(found.interrupted),
    }


def _blocks(out: Path, found: PrivateAtoms, charges: Charges) -> Iterator[Block]:
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
