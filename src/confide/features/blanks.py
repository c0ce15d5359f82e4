"""Blanks in a schema that `confide new` has begun: what a person has still to fill in, said column by column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from confide.errors import SchemaError

BLANK = "FILL IN"
"""What stands in a TOML file in place of something that a person must say."""
_MOST_SHOWN = 6
"""How many blanks one message lists."""


def refuse_blanks(described: Mapping[str, Any]) -> None:
    """Refuse the mapping of a TOML file that has blanks.

    Parameters
    ----------
    described : what the file says, as in `Schema.from_dict`

    Raises
    ------
    SchemaError
        If something is still to be filled in. The message says what, for each of the first columns concerned.
    """
    blanks = list(_blanks(described))
    if not blanks:
        return
    more = f"; and {len(blanks) - _MOST_SHOWN} more" if len(blanks) > _MOST_SHOWN else ""
    raise SchemaError(f'not filled in yet, and marked "{BLANK}": {"; ".join(blanks[:_MOST_SHOWN])}{more}.')


def _blanks(described: Mapping[str, Any]) -> Iterator[str]:
    for key, value in described.items():
        if key != "columns" and (missing := "its value" if value == BLANK else _blank_keys(value)) is not None:
            yield f"{key}: fill in {missing}"
    columns = described.get("columns")
    for name, column in columns.items() if isinstance(columns, Mapping) else ():
        if (missing := _blank_keys(column)) is not None:
            yield f'column "{name}": fill in {missing}'


def _blank_keys(value: object) -> str | None:
    """What of a description is blank, for a sentence; None if nothing is."""
    if value == BLANK:
        return "its bounds or its categories, or delete its line"
    if not isinstance(value, Mapping):
        return None
    keys = [str(key) for key, part in value.items() if part == BLANK or (isinstance(part, list) and BLANK in part)]
    if not keys:
        return None
    return keys[0] if len(keys) == 1 else f"{', '.join(keys[:-1])} and {keys[-1]}"
