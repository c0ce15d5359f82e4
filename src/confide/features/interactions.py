"""Interactions: lists of columns whose encoded columns are multiplied with each other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from confide.errors import SchemaError
from confide.features.schema_checks import column_title, is_list, suggestion

_SHAPE = 'interact must be a list of lists of names of columns, as in interact = [["age", "sex"]].'


def interactions_of(described: Any, columns: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """The members of each interaction, checked.

    Parameters
    ----------
    described : lists of names of columns
    columns : names of the columns of the schema

    Raises
    ------
    SchemaError
        If an interaction names an unknown column, has fewer than two columns or names one twice, or is given twice.
    """
    if not is_list(described):
        raise SchemaError(_SHAPE)
    interactions: list[tuple[str, ...]] = []
    for listed in described:
        names = _members(listed, columns)
        if any(set(names) == set(earlier) for earlier in interactions):
            raise SchemaError(f"interact: {' and '.join(names)} are listed together twice; keep one of the lists.")
        interactions.append(names)
    return tuple(interactions)


def _members(listed: Any, columns: Collection[str]) -> tuple[str, ...]:
    """The members of one interaction."""
    if not is_list(listed):
        raise SchemaError(_SHAPE)
    names = tuple(listed)
    for name in names:
        title = column_title(name, "interact: the name of a column")
        if name not in columns:
            known = suggestion(name, tuple(columns))
            raise SchemaError(f"interact: {title} is not among the columns{known}; describe it below [columns].")
    if len(set(names)) != len(names) or len(names) < 2:
        raise SchemaError("interact: each list needs two or more names of columns, all different.")
    return names
