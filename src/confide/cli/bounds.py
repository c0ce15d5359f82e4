"""`confide bounds`: private quantiles of columns as bounds of a schema, and their levels, for those who have no codebook."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from confide.blocks import as_json, json_value
from confide.cli.options import Release, options_of_command, schema_of
from confide.errors import ParameterError, wording

if TYPE_CHECKING:
    from confide.estimators.private_bounds import PrivateBounds
    from confide.features.schema import Schema

_LEVEL = 0.95
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


@options_of_command("bounds")
def bounds(
    data: str,
    *,
    release: Release,
    column: list[str] | None = None,
    levels: list[str] | None = None,
    outer: tuple[float, float] | None = None,
    quantiles: tuple[float, float] = (0.01, 0.99),
    scale: Literal["linear", "log", "log10"] | None = None,
    missing: bool = False,
    schema: Path | None = None,
    out: Path = Path("bounds.toml"),
) -> None:
    """Release bounds and levels of columns, where no codebook states them.

    Bounds are quantiles of the rows, chosen privately between public outer bounds, where round numbers are likelier.
    Levels are those that many rows have, with noisy counts. All columns are one release and one charge. Rows are read block
    by block, and checked before anything is charged.
    """
    from confide.estimators.private_bounds import private_bounds
    from confide.features.columns import PRIVATE

    files = release.checked_files(data, out, [] if schema is None else [schema], ".toml", schema_of(schema))
    described, columns = _described(schema, column or [], outer, scale, missing=missing)
    for name in levels or []:
        if name in columns:
            raise ParameterError(f'--levels names "{name}" twice, or after --column; name it once.')
        columns[name] = {"categories": PRIVATE, **({"missing": True} if missing else {})}
    if not columns:
        raise ParameterError("name a column of numbers with --column, or one of categories with --levels.")
    make = partial(private_bounds, files, columns, quantiles=quantiles, schema=described)
    release.written("schema", out, make, lambda made: (made.to_toml(), _document(made) | {"schema": str(out)}))


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
            raise ParameterError(wording("no outer bounds", name=name))
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
        "levels": json_value(bounds.levels),
        "quantiles": {name: {f"{q:g}": value for q, value in values.items()} for name, values in bounds.quantiles.items()},
        "rows_off": {"level": _LEVEL, "rows": bounds.rows_off(_LEVEL)},
        **as_json(bounds, "rows_needed void interrupted"),
    }
