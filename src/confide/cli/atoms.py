"""`confide atoms`: numbers that many rows share, found privately, as atoms of a schema."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.options import Release, options_of_command

if TYPE_CHECKING:
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
