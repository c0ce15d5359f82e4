"""`confide bounds`: private quantiles of columns as bounds of a schema, and their levels, for those who have no codebook."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from confide.blocks import Block, heading, table, text, verbatim
from confide.cli.options import (
    Format,
    NeighboursName,
    Spending,
    exit_if_void,
    files_of_ledger,
    options_of_command,
    schema_of,
)
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.cli.charges import Charges
    from confide.estimators.private_bounds import PrivateBounds
    from confide.features.schema import Schema

_LEVEL = 0.95
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


@options_of_command(
    column="--column NAME[:LOW:HIGH[:SCALE]]  A column of numbers; repeat it for several. With outer bounds and a scale of "
           "its own as age:0:150 or income:0:1e7:log.",
    levels="--levels NAME  A column of categories whose levels are to be found, because nobody can list them; repeat it for "
           "several. Needs --delta. Levels that few rows have count as (other).",
    outer="--outer LOW HIGH  Public bounds within which the bounds are looked for, for columns that name none of their "
          "own. Choose them without looking at the rows.  [default: those of the schema]",
    quantiles="--quantiles LOW HIGH  The quantiles that become low and high. 0 keeps the outer low and 1 the outer high, "
              "and they cost nothing.",
    scale="--scale  How candidates are spaced. log: for long right tails from 0 on; log10: for incomes and the like, with "
          "an outer low above 0.  [default: as in the schema]",
    missing="--missing  Cells of the columns may be missing; they count for no quantile and no level.",
    schema="--schema FILE  Schema that the bounds are written into; its file stays as it is.",
    out="--out FILE.toml  File to write the schema with the bounds to.",
)  # fmt: skip
def bounds(
    data: str,
    *,
    spending: Spending,
    column: list[str] | None = None,
    levels: list[str] | None = None,
    outer: tuple[float, float] | None = None,
    quantiles: tuple[float, float] = (0.01, 0.99),
    scale: Literal["linear", "log", "log10"] | None = None,
    missing: bool = False,
    schema: Path | None = None,
    neighbours: NeighboursName = "replace-one",
    max_rows_per_person: int = 1,
    out: Path = Path("bounds.toml"),
    seed: int | None = None,
    force: bool = False,
    output_format: Format = "text",
) -> None:
    """Release bounds and levels of columns, where no codebook states them.

    Bounds are quantiles of the rows, chosen privately between public outer bounds, where round numbers are likelier.
    Levels are those that many rows have, with noisy counts. All columns are one release and one charge. Rows are read block
    by block, and checked before anything is charged.
    """
    from confide.cli import output
    from confide.data.files import files_of
    from confide.estimators.private_bounds import private_bounds
    from confide.features.columns import PRIVATE

    budget, files = spending.budget, files_of(data)
    inputs = [*files, *([] if schema is None else [schema]), *files_of_ledger(spending.ledger)]
    output.check_path(out, inputs, (".toml",), overwrite=force)
    described, columns = _described(schema, column or [], outer, scale, missing=missing)
    for name in levels or []:
        if name in columns:
            raise ParameterError(f'--levels names "{name}" twice, or after --column; name it once.')
        columns[name] = {"categories": PRIVATE, **({"missing": True} if missing else {})}
    if not columns:
        raise ParameterError("name a column of numbers with --column, or one of categories with --levels.")
    charges = spending.charges(out, max_rows_per_person)
    with spending.charged(charges, "schema"):
        with output.working(f"reading {data}"):
            bounds = private_bounds(
                files, columns, budget=budget, quantiles=quantiles, schema=described, ledger=charges.ledger,
                neighbours=neighbours, max_rows_per_person=max_rows_per_person, random_state=seed,
            )  # fmt: skip
        charges.write(bounds.to_toml(), out, overwrite=force, released="schema")
        output.Screen(output_format).answer(
            lambda: _document(bounds) | {"schema": str(out), "charge": charges.document()}, _blocks(bounds, charges, out)
        )
    exit_if_void(bounds.void)


def _described(
    path: Path | None, named: list[str], outer: tuple[float, float] | None, scale: str | None, *, missing: bool
) -> tuple[Schema | None, Any]:
    """The schema, if there is one, and the description of each column."""
    schema = schema_of(path)
    known = {} if schema is None else {column.name: column for column in schema.columns}
    columns: dict[str, Any] = {}
    for given in named:
        # Outer bounds and a scale may stand behind the name, which may hold colons too.
        behind = re.fullmatch(rf"(.+?):({_NUMBER}):({_NUMBER})(?::(linear|log|log10))?", given)
        name, own_scale = (given, None) if behind is None else (behind[1], behind[4])
        if name in columns:
            raise ParameterError(f'--column names "{name}" twice; name it once.')
        ends = outer if behind is None else (float(behind[2]), float(behind[3]))
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


def _document(bounds: PrivateBounds) -> dict[str, Any]:
    """What was released, for programs."""
    return {
        "columns": {column.name: column.to_dict() for column in bounds.columns},
        "levels": {name: dict(found) for name, found in bounds.levels.items()},
        "quantiles": {name: {f"{q:g}": value for q, value in values.items()} for name, values in bounds.quantiles.items()},
        "rows_off": {"level": _LEVEL, "rows": bounds.rows_off(_LEVEL)},
        "rows_needed": bounds.rows_needed,
        "void": bounds.void,
        "interrupted": list(bounds.interrupted),
    }


def _blocks(bounds: PrivateBounds, charges: Charges, out: Path) -> Iterator[Block]:
    if bounds.void is not None:
        yield text(f"NOT PRIVATE. {bounds.void}", style="bold red")
    pairs = list(zip(bounds.columns, bounds.described, strict=True))
    if bounds.plan is not None:
        yield heading("Released bounds")
        low, high = [f"quantile {share:g}" for share in bounds.release.quantiles]
        rows = [
            (column.name, f"{column.low:.10g}", f"{column.high:.10g}", f"{old.low:.10g} to {old.high:.10g}")
            for column, old in pairs
            if column.is_number and old.is_number
        ]
        yield table(("column", f"low ({low})", f"high ({high})", "outer bounds"), rows, optional=("outer bounds",))
        yield text(
            f"With probability {_LEVEL:g} none of them is off by more than {bounds.rows_off(_LEVEL):,.0f} rows, counted by "
            f"rank, beside the distance between neighbouring candidates. In a table of fewer than {bounds.rows_needed:,} "
            f"rows a bound may lie beyond all rows; a larger budget, fewer columns or quantiles further inside help."
        )
    for name, found in bounds.levels.items():
        yield heading(f"Released levels of {name}")
        yield table(("level", "rows (noisy)"), [(level, f"{rows:,.0f}") for level, rows in found.items()])
        yield text(
            *([] if found else ["No level has enough rows for this budget. Leave the column out."]),
            bounds.sentence_of_levels,
        )
    yield heading("Done")
    yield text(*bounds.interrupted, charges.closing_sentence())
    yield verbatim(f"Wrote {out}. Statements of models that are fitted with it name this release and its price.")
