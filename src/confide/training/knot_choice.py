"""How many knots an additive model gives to each number column, where the user said nothing: from public facts alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TypeGuard

from confide.errors import ParameterError
from confide.expected_noise import noise_on_a_weight
from confide.features.columns import Column, NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from confide.training.plan import make_plan
from confide.training.settings import Settings

NUMBERS_OF_KNOTS = (6, 4, 3, 2, 1)
"""The numbers of knots that are tried, the largest first. More than six gain little (benchmarks/automatic_knots.py)."""
ENOUGH_ROWS = 8.0
"""A number of knots is taken if so many rows come to each hat for each unit of noise on a weight."""


def with_knots(schema: Schema, knots: int | Mapping[str, int | tuple[float, ...]]) -> Schema:
    """The schema with these knots in the number columns that say nothing about knots."""
    by_name = {column.name: knots for column in schema.columns} if isinstance(knots, int) else knots
    columns = tuple(
        replace(column, knots=by_name.get(column.name, ())) if _is_open(column) else column for column in schema.columns
    )
    return Schema(columns, schema.target, schema.person, schema.interact, schema.random_features)


def _is_open(column: Column) -> TypeGuard[NumberColumn]:
    """Whether the number of knots of a column is still to be chosen."""
    return isinstance(column, NumberColumn) and column.knots == ()


def with_chosen_knots(schema: Schema, settings_of: Callable[[Encoder], Settings], count: Callable[[], int] | None) -> Schema:
    """The schema in which every number column says its knots: those that said nothing get a chosen number.

    A schema in which all columns say their knots stays as it is.

    Parameters
    ----------
    schema : the public description of the columns
    settings_of : the checked parameters of the fit, for the encoder of a schema
    count : gives the number of rows, if it is public; None if the settings have public bounds on it
    """
    if not any(map(_is_open, schema.columns)):
        return schema
    n_rows = None if count is None else count()
    for number in NUMBERS_OF_KNOTS:
        tried = with_knots(schema, number)
        encoder = Encoder(tried)
        settings = replace(settings_of(encoder), inference_share=0.0)
        with suppress(ParameterError):
            plan = make_plan(settings, encoder.n_features, n_rows)
            if plan.problem.n_rows_low >= ENOUGH_ROWS * (number + 2) * noise_on_a_weight(plan):
                return tried
    return with_knots(schema, 0)
