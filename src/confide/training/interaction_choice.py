"""Which interactions an additive model has: from public facts alone, written out in its schema.

Pairs are products of coarse effects of two columns. "All" interactions are random Fourier features of the whole encoded row
(`confide.features.random_features`). Both take a part of the norm of a row, and so of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import combinations
from typing import Any

from confide.errors import ParameterError
from confide.features.columns import Column, NumberColumn
from confide.features.encoder import Encoder
from confide.features.interactions import Interaction
from confide.features.random_features import RandomFeatures
from confide.features.schema import Schema
from confide.features.schema_checks import is_list
from confide.known_words import suggestion
from confide.privacy.mechanism import Plan
from confide.training.alpha import usual_norm
from confide.training.kernel_choice import features_pay, is_of_numbers
from confide.training.knot_choice import with_even_knots
from confide.training.plan import AnyPlan, make_plan
from confide.training.settings import Settings

CHOICES = ("pairs", "all", "auto")
"""The interactions that a user may ask for by a word."""
COARSE_KNOTS = 1
"""The number of knots with which numbers enter products: three hats a number."""
MOST_PRODUCTS = 16
"""Pairs with more products are left out of "pairs", such as a number with a category of many levels."""
MOST_WEIGHTS = 5000
"""The largest number of weights of the pairs together."""
NUMBERS_OF_FEATURES = {"gaussian": 1000, "laplace": 100}
"""The number of random features, by the law of the noise. Laplace noise grows with the number of weights; 50, 100 and 200
features were compared, and 500 and 1,000 under Gaussian noise, on the data of benchmarks/peers."""
NORM_OF_FEATURES = {"gaussian": 1.15, "laplace": 0.8}
"""The norm of the random features over the norm of a typical encoded row. Compared were 0.6, 1.15 and 1.7 under Gaussian
noise, and 0.6, 1.15 and 2.3 under Laplace noise, where Covertype was best with the least and Skin with the middle one."""
KNOTS_WITH_FEATURES = 6
"""The number of knots beside random features. It decides how far apart rows are, and so what a length scale means: with 12
knots, 100 features erred twice as often on Skin as with 6. All lengths were compared with 6."""
SettingsOf = Callable[[Encoder], Settings]


def with_interactions(
    described: Schema, schema: Schema, interactions: Any, settings_of: SettingsOf, count: Callable[[], int] | None
) -> Schema:
    """The schema in which the interactions of an additive model are written out.

    Parameters
    ----------
    described : the public description of the columns, as the user gave it
    schema : the same, in which knots are chosen
    interactions : lists of names of columns, mappings as in a schema or `Interaction` objects; or one of `CHOICES`
    settings_of : the checked parameters of the fit, for the encoder of a schema
    count : gives the number of rows, if it is public; None if the settings have public bounds on it

    Raises
    ------
    ParameterError
        If the parameter cannot be used, or there would be too many weights.
    SchemaError
        If an interaction is of an unknown column, or of a column with itself.
    """
    if isinstance(interactions, str):
        if interactions not in CHOICES:
            raise ParameterError(
                f"interactions must be a list of lists of names of columns, or {_listed_choices()}"
                f"{suggestion(interactions, CHOICES)}."
            )
        if interactions == "pairs":
            return with_pairs(schema)
        if interactions == "all":
            return schema if schema.random_features else with_features(described, settings_of, count)
        return _with_automatic(described, schema, settings_of, count)
    if not is_list(interactions):
        raise ParameterError(f"interactions must be a list of lists of names of columns, or {_listed_choices()}.")
    return _with_named(schema, list(interactions))


def _listed_choices() -> str:
    return ", ".join(f'"{choice}"' for choice in CHOICES[:-1]) + f' or "{CHOICES[-1]}"'


def with_pairs(schema: Schema) -> Schema:
    """The schema with coarse products of all pairs of columns that have few products, beside those that it names itself."""
    sizes = {column.name: _coarse_size(column) for column in schema.columns}
    named = {frozenset(interaction.columns) for interaction in schema.interact}
    pairs = [pair for pair in combinations(schema.columns, 2) if frozenset(column.name for column in pair) not in named]
    few = [pair for pair in pairs if math.prod(sizes[column.name] for column in pair) <= MOST_PRODUCTS]
    n_weights = sum(math.prod(sizes[column.name] for column in pair) for pair in few)
    if n_weights > MOST_WEIGHTS:
        raise ParameterError(
            f'interactions="pairs" would give {len(few):,} pairs of columns {n_weights:,} weights, and at most '
            f"{MOST_WEIGHTS:,} are allowed. Name the pairs that matter, or take fewer columns."
        )
    scale = _scale_of(len(schema.columns), len(few))
    bent = {name for interaction in schema.interact if interaction.is_curve for name in interaction.columns}
    made = [Interaction(tuple(column.name for column in pair), _coarse_knots(pair, bent), scale) for pair in few]
    return _with(schema, (*schema.interact, *made))


def _with_named(schema: Schema, interactions: list[Any]) -> Schema:
    """The schema with the interactions that a user named. Lists of names become coarse products."""
    is_whole = [isinstance(entry, (Interaction, Mapping)) for entry in interactions]
    scale = _scale_of(len(schema.columns), is_whole.count(False))
    made = [
        entry if whole else Interaction(_names(entry), COARSE_KNOTS, scale)
        for entry, whole in zip(interactions, is_whole, strict=True)
    ]
    # The user's entries are checked with each other first. Then those that the schema describes stay as they are there.
    checked = Schema(schema.columns, interact=made).interact
    described = {frozenset(interaction.columns) for interaction in schema.interact}
    more = [interaction for interaction in checked if frozenset(interaction.columns) not in described]
    return _with(schema, (*schema.interact, *more)) if more else schema


def _names(entry: Any) -> tuple[Any, ...]:
    if not is_list(entry):
        raise ParameterError('each interaction must be a list of names of columns, as in interactions=[["age", "hours"]].')
    return tuple(entry)


def with_features(described: Schema, settings_of: SettingsOf, count: Callable[[], int] | None) -> Schema:
    """The schema with random features of all columns together, and knots where the user said nothing about them."""
    return _planned_features(described, settings_of, None if count is None else count())[0]


def _with_automatic(described: Schema, schema: Schema, settings_of: SettingsOf, count: Callable[[], int] | None) -> Schema:
    """The schema with random features where they are expected to help, otherwise the schema itself.

    A schema that names interactions stays as it is. Pairs are never taken: on the data sets where they helped much, random
    features helped more (benchmarks/automatic_interactions.py). Neither are random features if intervals are asked for,
    because there are none for random features.
    """
    if described.interact or schema.random_features or not is_of_numbers(schema):
        return schema
    if settings_of(Encoder(schema)).has_intervals:
        return schema
    n_rows = None if count is None else count()
    with suppress(ParameterError):
        made, plan = _planned_features(described, settings_of, n_rows)
        if features_pay(plan, schema):
            return made
    return schema


def _planned_features(described: Schema, settings_of: SettingsOf, n_rows: int | None) -> tuple[Schema, AnyPlan]:
    """The schema with random features, and its plan. The number of features depends on the law of the noise of the plan.

    Raises
    ------
    ParameterError
        If there is no plan.
    """
    schema = with_even_knots(described, KNOTS_WITH_FEATURES)
    with suppress(ParameterError):
        made, plan = _planned_with(schema, "gaussian", settings_of, n_rows)
        if not isinstance(plan, Plan) or plan.noise is None or plan.noise.law == "gaussian":
            return made, plan
    return _planned_with(schema, "laplace", settings_of, n_rows)


def _planned_with(schema: Schema, law: str, settings_of: SettingsOf, n_rows: int | None) -> tuple[Schema, AnyPlan]:
    """The schema with the random features that suit a law of noise, and its plan, whose noise may have another law."""
    number = NUMBERS_OF_FEATURES[law]
    features = _features(schema, number, NORM_OF_FEATURES[law])
    made = replace(schema, random_features=features)
    encoder = Encoder(made)
    return made, make_plan(settings_of(encoder), encoder.n_features + number, n_rows)


def _features(schema: Schema, number: int, norm: float) -> RandomFeatures:
    """Random features whose length scale and norm follow from the columns."""
    bound = Encoder(schema).row_bound
    # Distances between rows grow with the number of groups, though not quite with its root: in wide tables, many columns
    # are the same in most rows. Rounded, because people read these numbers in the schema.
    length_scale = round(0.5 * len(bound.sizes) ** 0.4, 2)
    return RandomFeatures(number, length_scale, round(norm * usual_norm(bound, 0.0), 2))


def _with(schema: Schema, interact: tuple[Interaction, ...]) -> Schema:
    return replace(schema, interact=interact)


def _scale_of(n_columns: int, n_products: int) -> float:
    """The scale at which so many interactions take at most as much of the norm of a row as the columns do."""
    return round(min(1.0, math.sqrt(n_columns / max(n_products, 1))), 2)


def _coarse_knots(columns: Iterable[Column], bent: Collection[str]) -> int:
    """The knots of a pair: none if all its numbers are straight lines alone. `bent` has curves beside their lines."""
    numbers = [column for column in columns if isinstance(column, NumberColumn)]
    straight = [column.knots == 0 and column.name not in bent for column in numbers]
    return 0 if numbers and all(straight) else COARSE_KNOTS


def _coarse_size(column: Column) -> int:
    """How many columns a column enters a product with."""
    coarse = replace(column, knots=COARSE_KNOTS) if isinstance(column, NumberColumn) else column
    return Encoder(Schema([coarse])).n_features
