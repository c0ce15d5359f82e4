"""`confide bounds`: private quantiles of columns as bounds of a schema, for those who have no codebook."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from confide.cli.fit import DataFiles
from confide.cli.options import (
    Force,
    Format,
    NeighboursName,
    RowsPerPerson,
    Seed,
    Spending,
    exit_if_void,
    files_of_ledger,
    takes_spending,
)
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.cli.output import Screen
    from confide.estimators.private_bounds import PrivateBounds
    from confide.features.schema import Schema

ColumnNames = Annotated[
    list[str],
    typer.Option(
        "--column",
        metavar="NAME[:LOW:HIGH[:SCALE]]",
        help="A column of numbers; repeat it for several. With outer bounds and a scale of its own as age:0:150 or "
        "income:0:1e7:log.",
    ),
]
OuterBounds = Annotated[
    tuple[float, float] | None,
    typer.Option(
        metavar="LOW HIGH",
        help="Public bounds within which the bounds are looked for, for columns that name none of their own. Choose them "
        "without looking at the rows.  [default: those of the schema]",
    ),
]
Quantiles = Annotated[
    tuple[float, float],
    typer.Option(
        metavar="LOW HIGH",
        help="The quantiles that become low and high. 0 keeps the outer low and 1 the outer high, and they cost nothing.",
    ),
]
Scale = Annotated[
    Literal["linear", "log", "log10"] | None,
    typer.Option(
        help="How candidates are spaced. log: for long right tails from 0 on; log10: for incomes and the like, with an "
        "outer low above 0.  [default: as in the schema]"
    ),
]
Missing = Annotated[bool, typer.Option("--missing", help="Cells of the columns may be missing; they count for no quantile.")]
SchemaToComplete = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Schema that the bounds are written into; its file stays as it is."),
]
BoundsOut = Annotated[Path, typer.Option(metavar="FILE.toml", help="File to write the schema with the bounds to.")]

_LEVEL = 0.95


@takes_spending()
def bounds(
    data: DataFiles,
    column: ColumnNames,
    *,
    spending: Spending,
    outer: OuterBounds = None,
    quantiles: Quantiles = (0.01, 0.99),
    scale: Scale = None,
    missing: Missing = False,
    schema: SchemaToComplete = None,
    neighbours: NeighboursName = "replace-one",
    max_rows_per_person: RowsPerPerson = 1,
    out: BoundsOut = Path("bounds.toml"),
    seed: Seed = None,
    force: Force = False,
    output_format: Format = "text",
) -> None:
    """Release bounds of columns, where no codebook states them.

    They are quantiles of the rows, chosen privately among round numbers between public outer bounds. All columns are one
    release and one charge. Rows are read block by block, and checked before anything is charged.
    """
    from confide.cli import output
    from confide.data.files import files_of
    from confide.estimators.private_bounds import private_bounds

    budget, files = spending.budget, files_of(data)
    inputs = [*files, *([] if schema is None else [schema]), *files_of_ledger(spending.ledger)]
    output.check_path(out, inputs, (".toml",), overwrite=force)
    described, columns = _described(schema, column, outer, scale, missing=missing)
    charges = spending.charges(out, max_rows_per_person)
    screen = output.Screen() if output_format == "text" else None
    with spending.charged(charges, "schema"):
        with output.working(f"reading {data}"):
            bounds = private_bounds(
                files, columns, budget=budget, quantiles=quantiles, schema=described, ledger=charges.ledger,
                neighbours=neighbours, max_rows_per_person=max_rows_per_person, random_state=seed,
            )  # fmt: skip
        charges.write(bounds.to_toml(), out, overwrite=force, released="schema")
        if screen is None:
            output.print_json(_document(bounds) | {"schema": str(out), "charge": charges.document()})
        else:
            _show(screen, bounds, charges, out)
    exit_if_void(bounds.void)


def _described(
    path: Path | None, named: list[str], outer: tuple[float, float] | None, scale: str | None, *, missing: bool
) -> tuple[Schema | None, Any]:
    """The schema, if there is one, and the description of each column."""
    from confide.features.schema import Schema

    schema = None if path is None else Schema.from_toml(path)
    known = {} if schema is None else {column.name: column for column in schema.columns}
    columns: dict[str, Any] = {}
    for text in named:
        name, own, own_scale = _with_own_bounds(text)
        if name in columns:
            raise ParameterError(f'--column names "{name}" twice; name it once.')
        ends = own or outer
        if ends is None and name not in known:
            raise ParameterError(
                f'column "{name}" has no outer bounds; give --outer LOW HIGH or --column {name}:LOW:HIGH, from public '
                f"knowledge alone."
            )
        columns[name] = {} if ends is None else {"low": ends[0], "high": ends[1]}
        if own_scale or scale:
            columns[name]["scale"] = own_scale or scale
        if missing:
            columns[name]["missing"] = True
    return schema, columns


def _with_own_bounds(text: str) -> tuple[str, tuple[float, float] | None, str | None]:
    """The name of a column, and its outer bounds and its scale if they stand behind it. A name may hold colons."""
    number = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
    match = re.fullmatch(rf"(.+?):({number}):({number})(?::(linear|log|log10))?", text)
    return (text, None, None) if match is None else (match[1], (float(match[2]), float(match[3])), match[4])


def _document(bounds: PrivateBounds) -> dict[str, Any]:
    """What was released, for programs."""
    return {
        "columns": {column.name: column.to_dict() for column in bounds.columns},
        "quantiles": {name: {f"{q:g}": value for q, value in values.items()} for name, values in bounds.quantiles.items()},
        "rows_off": {"level": _LEVEL, "rows": bounds.rows_off(_LEVEL)},
        "rows_needed": bounds.rows_needed,
        "void": bounds.void,
        "interrupted": list(bounds.interrupted),
    }


def _show(screen: Screen, bounds: PrivateBounds, charges: Charges, out: Path) -> None:
    if bounds.void is not None:
        screen.text(f"NOT PRIVATE. {bounds.void}", style="bold red")
    screen.heading("Released bounds")
    low, high = (f"quantile {share:g}" for share in bounds.release.quantiles)
    rows = [
        (column.name, f"{column.low:.10g}", f"{column.high:.10g}", f"{old.low:.10g} to {old.high:.10g}")
        for column, old in zip(bounds.columns, bounds.described, strict=True)
    ]
    screen.table(("column", f"low ({low})", f"high ({high})", "outer bounds"), rows, optional=("outer bounds",))
    screen.text(
        f"With probability {_LEVEL:g} none of them is off by more than {bounds.rows_off(_LEVEL):,.0f} rows, counted by "
        f"rank, beside the distance between neighbouring candidates. In a table of fewer than {bounds.rows_needed:,} rows a "
        f"bound may lie beyond all rows; a larger budget, fewer columns or quantiles further inside help."
    )
    screen.heading("Done")
    for sentence in (*bounds.interrupted, charges.closing_sentence()):
        screen.text(sentence)
    screen.verbatim(f"Wrote {out}. Statements of models that are fitted with it name this release and its price.")
