"""How many knots the number columns of an additive model get, as commands show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide.features.columns import NumberColumn, shown_number

if TYPE_CHECKING:
    from confide.features.schema import Schema


_MOST_NAMED = 10
"""The largest number of interactions that are named."""


def chosen_schema(model: Any, n_rows: int | None) -> Schema | None:
    """The schema with the knots that the model chooses for this number of rows; None if it is no additive model."""
    if not hasattr(model, "chosen_schema"):
        return None
    schema: Schema = model.chosen_schema(n_rows)
    return schema


def curves_document(chosen: Schema | None) -> dict[str, Any]:
    """For programs: the knots of each number column, as their number if they are evenly spaced, otherwise as a list."""
    if chosen is None:
        return {}
    described = {column.name: column.to_dict().get("knots", 0) for column in _numbers(chosen)} | _beside(chosen)
    whole = chosen.to_dict()
    interactions = {"interact": whole.get("interact", []), "random_features": whole.get("random_features")}
    return {"knots": described, **interactions}


def rows_of_curves(chosen: Schema | None) -> list[tuple[str, str, str]]:
    """For people: the name of each number column, its knots, and the bounds that they lie between."""
    return [] if chosen is None else [_row(column, _beside(chosen).get(column.name)) for column in _numbers(chosen)]


def sentences_of_interactions(chosen: Schema | None) -> list[str]:
    """For people: which interactions a model has."""
    if chosen is None:
        return []
    found = []
    if named := [" x ".join(interaction.columns) for interaction in chosen.interact if not interaction.is_curve]:
        more = f" and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
        found.append(f"Interactions: {', '.join(named[:_MOST_NAMED])}{more}.")
    if chosen.random_features is not None:
        found.append(f"Interactions of all columns together, by {chosen.random_features.number:,} random features.")
    return found


def _numbers(schema: Schema) -> list[NumberColumn]:
    return [column for column in schema.columns if isinstance(column, NumberColumn)]


def _beside(schema: Schema) -> dict[str, int]:
    """The numbers of knots of curves beside straight lines."""
    return {each.columns[0]: each.knots for each in schema.interact if each.is_curve and each.knots}


def _row(column: NumberColumn, beside: int | None) -> tuple[str, str, str]:
    return column.name, _knots_text(column, beside), f"{shown_number(column.low)} and {column.shown(column.high)}"


def _knots_text(column: NumberColumn, beside: int | None) -> str:
    if beside:
        return f"{beside}, evenly spaced" + (" in the logarithm" if column.is_log else "") + ", beside a straight line"
    if not column.knots:
        return "none: a straight line" + (" in the logarithm" if column.is_log else "")
    if isinstance(column.knots, tuple):
        return f"{len(column.knots)}, as in the schema"
    return f"{column.knots}, evenly spaced" + (" in the logarithm" if column.is_log else "")
