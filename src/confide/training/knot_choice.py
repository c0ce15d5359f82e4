"""How many knots an additive model gives to each number column, where the user said nothing: from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from confide.errors import ParameterError
from confide.expected_noise import noise_on_a_weight
from confide.features.columns import Column, NumberColumn
from confide.features.encoder import Encoder
from confide.features.interactions import Interaction
from confide.features.schema import Schema
from confide.privacy.bundled_shapes import Bundles
from confide.training.alpha import usual_norm_of_rows
from confide.training.plan import make_plan
from confide.training.settings import ScoreLoss, Settings

NUMBERS_OF_KNOTS = (12, 6, 3)
"""The numbers of knots that are tried beside straight lines, the largest first. One or two knots were worse than none or
three on most data."""
_LEAST_STRENGTH = {12: 10_000.0, 6: 150.0, 3: 100.0}
"""A number of knots is taken if there are so many rows for each unit of noise on a weight. Compared by
benchmarks/automatic_knots.py, as are the constants below."""
_STRENGTH_OF_CHEAP = {12: 10_000.0, 6: 100.0, 3: 0.0}
"""The same where the knots cost little."""
_LEAST_OF_STRAIGHT = 0.5
"""A number of knots is not tried if straight lines have less than this share of the strength that it needs. Strength with
knots is seldom much larger than with straight lines, and a plan takes time."""
_CHEAP = 0.83
"""Knots cost little if the sum of typical rows over the noise is at least this share of that with straight lines. At 0.81,
three knots were worse than straight lines on KDD Cup 99 with all its columns at a pure epsilon of 0.05 and 0.1, and at 0.855
they were much better on Covertype."""
_LEAST_OF_NUMBERS = 55.0
"""Knots that cost little are taken if so many rows come for each unit of noise on a weight, bundles of columns included,
times the share of the columns that are numbers: the others gain nothing by knots. Adult has 47 at a pure epsilon of 0.1,
where straight lines are better, and Covertype 68 at 0.05, where curves are."""
_TYPICAL_SLOPE = 0.5
"""The slope of a typical row of a regression, as a share of the largest one. For classes it is nearly 1."""
_BESIDE = ((600.0, 6, 1.0), (75.0, 3, 1.0), (45.0, 3, 0.5))
"""Regressions have curves beside straight lines: from so many rows for each unit of noise on a weight of lines alone on, so
many knots at this scale. Where few rows lie, the ridge draws a curve alone to 0, and one beside a line to the line. At half
the scale it takes less of the norm of a row, and so of the noise (benchmarks/notes/which_knots_of_regressions.md)."""
_MOST_WEIGHTS = 5000
"""The largest number of weights of all curves together, as many as pairs of columns may have."""
_MOST_NEAR_NUMBERS = 13
"""Whole numbers between bounds as near as this get no more knots than there are numbers between the bounds."""


def with_knots(schema: Schema, knots: int | Mapping[str, int | tuple[float, ...]]) -> Schema:
    """The schema with these knots in the number columns that say nothing about knots."""
    by_name = {column.name: knots for column in schema.columns} if isinstance(knots, int) else knots
    columns = tuple(
        replace(column, knots=by_name.get(column.name, ())) if _is_open(column) else column for column in schema.columns
    )
    return replace(schema, columns=columns)


def with_knots_of(schema: Schema, other: Schema) -> Schema:
    """The schema in which number columns that say nothing about knots have those of the same columns of another schema."""
    theirs = {column.name: column for column in other.columns if isinstance(column, NumberColumn)}

    def found(column: Column) -> Column:
        its = theirs.get(column.name)
        return its if _is_open(column) and its is not None and replace(its, knots=()) == column else column

    return replace(schema, columns=tuple(map(found, schema.columns)))


def with_curves_of(schema: Schema, other: Schema) -> Schema:
    """The schema with the curves beside straight lines of another one, where it says nothing about such a column itself."""
    named = {name for interaction in schema.interact for name in interaction.columns if interaction.is_curve}
    more = [each for each in other.interact if each.is_curve and each.columns[0] not in named]
    return replace(schema, interact=(*schema.interact, *more)) if more else schema


def with_interactions_of(schema: Schema, other: Schema) -> Schema:
    """The schema with the interactions and the random features of another one."""
    return replace(schema, interact=other.interact, random_features=other.random_features)


def refuse_too_many(schema: Schema) -> None:
    """Refuse curves with more weights in all than a fit can take in reasonable time."""
    n_weights = sum(len(column.knots_with_bounds) for column in schema.columns if isinstance(column, NumberColumn))
    if n_weights > _MOST_WEIGHTS:
        raise ParameterError(
            f"knots: the curves would have {n_weights:,} weights, and at most {_MOST_WEIGHTS:,} are allowed. Take fewer "
            f"knots; more than 12 in a column seldom help."
        )


def _is_open(column: Column) -> TypeGuard[NumberColumn]:
    """Whether the number of knots of a column is still to be chosen."""
    return isinstance(column, NumberColumn) and column.knots == ()


def with_chosen_knots(
    schema: Schema, settings_of: Callable[[Encoder], Settings], count: Callable[[], int] | None, *, may_bend: bool = False
) -> Schema:
    """The schema in which every number column says its knots: those that said nothing get a chosen number.

    A schema in which all columns say their knots stays as it is.

    Parameters
    ----------
    schema : the public description of the columns
    settings_of : the checked parameters of the fit, for the encoder of a schema
    count : gives the number of rows, if it is public; None if the settings have public bounds on it
    may_bend : whether curves may stand beside straight lines
    """
    if not any(map(_is_open, schema.columns)):
        return schema
    n_rows = None if count is None else count()

    def tried(number: int) -> _Tried | None:
        made = with_even_knots(schema, number)
        encoder = Encoder(made)
        settings = _with_noise_in_the_objective(settings_of(encoder))
        try:
            plan = make_plan(settings, encoder.n_features, n_rows)
        except ParameterError:
            # The plan of the chosen knots is made again, and then it says what is wrong.
            return None
        bundled = _without_bundles(plan)
        noise = noise_on_a_weight(plan) * bundled
        slope = 1.0 if getattr(settings.minimised, "score_size", 1.0) is None else _TYPICAL_SLOPE
        strength = slope * plan.problem.n_rows_low / noise if noise else math.inf
        norm = usual_norm_of_rows(encoder)
        share = sum(isinstance(column, NumberColumn) for column in schema.columns) / len(schema.columns)
        of_numbers = strength * bundled * share if bundled > 1.0 else math.inf
        by_itself = all(each.is_curve or each.knots is not None for each in schema.interact)
        bends = may_bend and slope < 1.0 and by_itself and not settings.has_intervals
        return _Tried(made, strength, strength * norm / math.sqrt(plan.problem.n_weights), of_numbers, bends)

    straight = tried(0)
    if straight is None:
        # Curves have more columns, so there is no plan for them either.
        return with_knots(schema, 0)
    beside, scale = next(((k, scale) for least, k, scale in _BESIDE if straight.strength >= least), (0, 1.0))
    for number in NUMBERS_OF_KNOTS:
        if straight.bends and number < max(NUMBERS_OF_KNOTS):
            return _beside(schema, straight.schema, beside, scale)
        if straight.strength < _LEAST_OF_STRAIGHT * _STRENGTH_OF_CHEAP[number]:
            continue
        curved = tried(number)
        if curved is not None:
            is_cheap = curved.signal >= _CHEAP * straight.signal
            if is_cheap and curved.of_numbers < _LEAST_OF_NUMBERS:
                continue
            if curved.strength >= (_STRENGTH_OF_CHEAP if is_cheap else _LEAST_STRENGTH)[number]:
                return curved.schema
    return straight.schema


def _with_noise_in_the_objective(settings: Settings) -> Settings:
    """The settings under which numbers of knots were compared: for two classes without noisy gradients."""
    found = settings.minimised
    of_two_classes = isinstance(found, ScoreLoss) and found.score_size is None and found.loss.n_outputs == 1
    return replace(settings, mechanism="objective") if of_two_classes and settings.mechanism == "auto" else settings


def _without_bundles(plan: Any) -> float:
    """How much larger noise for all groups of columns at once would be: numbers of knots were compared with such noise."""
    noise = getattr(plan, "noise", None)
    if noise is None or not isinstance(noise.shape, Bundles):
        return 1.0
    together = min(shape.laplace_norm(1.0) for shape in plan.problem.shapes if not isinstance(shape, Bundles))
    return float(together / noise.shape.laplace_norm(1.0))


@dataclass(frozen=True, slots=True)
class _Tried:
    """A schema with a number of knots, and how the rows compare with the noise of its plan.

    Attributes
    ----------
    schema : the schema
    strength : rows for each unit of noise on a weight
    signal : norm of the sum of typical rows, over that of the noise
    of_numbers : with bundles of columns, rows for each unit of noise as it is, times the share of columns that are numbers
    bends : whether curves may stand beside straight lines
    """

    schema: Schema
    strength: float
    signal: float
    of_numbers: float
    bends: bool


def _beside(schema: Schema, straight: Schema, number: int, scale: float) -> Schema:
    """Straight lines, with curves beside those of the columns that say nothing about knots."""
    bent = {column.name: _sensible(column, number) for column in schema.columns if _is_open(column)}
    named = {name for interaction in schema.interact for name in interaction.columns if interaction.is_curve}
    made = [Interaction((name,), knots, scale) for name, knots in bent.items() if knots and name not in named]
    return replace(straight, interact=(*schema.interact, *made)) if made else straight


def with_even_knots(schema: Schema, number: int) -> Schema:
    """The schema in which number columns that say nothing about knots get this number, or as many as they can use."""
    return with_knots(schema, {column.name: _sensible(column, number) for column in schema.columns if _is_open(column)})


def _sensible(column: Column, number: int) -> int:
    """At most so many knots as the column can use: of near whole numbers, those between the bounds."""
    if not isinstance(column, NumberColumn) or column.scale != "linear":
        return number
    between = column.high - column.low - 1.0
    is_near_and_whole = column.low.is_integer() and column.high.is_integer() and between < _MOST_NEAR_NUMBERS
    return min(number, int(between)) if is_near_and_whole else number
