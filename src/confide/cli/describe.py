"""`confide describe`: counts, means, quantiles and cross tables of private rows, in one charge."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.cli.options import Release, options_of_command
from confide.errors import ParameterError

if TYPE_CHECKING:
    from confide.features.schema import Schema


@options_of_command("describe")
def describe(
    data: str,
    schema: Path,
    *,
    release: Release,
    column: list[str] | None = None,
    cross: list[str] | None = None,
    quantile: list[float] | None = None,
    correlations: bool = False,
    level: float = 0.95,
    out: Path = Path("description.json"),
) -> None:
    """Describe private rows: counts, means, standard deviations, quantiles, cross tables and correlations, with intervals.

    All of it is one release and one charge. Rows are read block by block, and checked before anything is charged.
    """
    from confide.estimators.description import describe as described
    from confide.features.schema import Schema
    from confide.files import json_text

    known = Schema.from_toml(schema)
    files = release.checked_files(data, out, [schema], ".json", known)
    pairs, shares = _pairs(cross or [], known), tuple(quantile or (0.25, 0.5, 0.75))
    wanted: dict[str, Any] = {"cross_tables": pairs, "quantiles": shares, "correlations": correlations, "level": level}
    make, told = partial(described, files, known, columns=column or None, **wanted), {"file": str(out)}
    release.written("description", out, make, lambda made: (json_text(made.to_dict()), made.to_dict() | told))


def _pairs(given: list[str], schema: Schema) -> list[tuple[str, str]]:
    """Pairs of names of columns. A name may hold colons."""
    from confide.known_words import listed_unknown

    names = {*schema.column_names, *(() if schema.target is None else (schema.target.column,))}
    pairs = []
    for words in given:
        ends = [place for place, sign in enumerate(words) if sign == ":"]
        divisions = [(words[:place], words[place + 1 :]) for place in ends if {words[:place], words[place + 1 :]} <= names]
        if len(divisions) != 1:
            unknown = [name for name in words.split(":") if name not in names]
            which = f" No columns are {listed_unknown(unknown, names)}." if unknown else ""
            raise ParameterError(f"--cross must name two columns with a colon between them: sex:income.{which}")
        pairs += divisions
    return pairs
