"""Interactions: columns whose encoded columns are multiplied with each other, and how coarsely they enter the products."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from confide.errors import SchemaError
from confide.features.columns import MOST_EVEN_KNOTS, Column, NumberColumn, shown_number
from confide.features.schema_checks import check_fields, column_title, is_list
from confide.known_words import suggestion

_SHAPE = (
    'interact must be a list of lists of names of columns, as in interact = [["age", "sex"]]; in place of a list of names '
    'there may be a table, as in { columns = ["age", "sex"], knots = 1, scale = 0.3 }.'
)
SMALLEST_SCALE = 2.0**-20
MOST_PRODUCTS = 10**6
"""The largest number of products of all interactions together: names and weights of so many still take seconds and little
memory, and no table tells so many effects apart."""


@dataclass(frozen=True, slots=True)
class Interaction:
    """Columns whose effects depend on each other: all products of their encoded columns enter the model.

    Parameters
    ----------
    columns : names of two or more columns, all different; or the name of one number, which then has a curve beside its
        straight line. Where few rows lie, the ridge draws such an effect to the line, and not to 0
    knots : the number of evenly spaced knots with which numbers enter the products, on the scale of each column: 1 gives
        three columns a number, and 0 a straight line. None: numbers enter as they are encoded beside the products.
        Categories always enter with all their levels
    scale : the products are multiplied by this number above 0 and up to 1. A smaller scale takes a smaller part of the norm
        of a row, and so of the noise. It also shrinks the effect of the products more: it says beforehand that interactions
        are small beside the effects of single columns

    Raises
    ------
    SchemaError
        If a value contradicts this description.
    """

    columns: tuple[str, ...]
    knots: int | None = None
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not is_list(self.columns):
            raise SchemaError("interact: the columns of an interaction must be a list of names.")
        names = tuple(self.columns)
        for name in names:
            column_title(name, "interact: the name of a column")
        if len(set(names)) != len(names) or len(names) < (1 if self.knots else 2):
            raise SchemaError(
                "interact: each list needs two or more names of columns, all different; or one name of a number, with knots."
            )
        where = f"interact: {' and '.join(names)}"
        knots, scale = self.knots, self.scale
        if knots is not None:
            if not isinstance(knots, Integral) or isinstance(knots, bool) or not 0 <= int(knots) <= MOST_EVEN_KNOTS:
                raise SchemaError(
                    f"{where}: knots must be a whole number from 0 to {MOST_EVEN_KNOTS}; without it, numbers "
                    f"enter as they are encoded beside the products."
                )
            object.__setattr__(self, "knots", int(knots))
        if not isinstance(scale, Real) or isinstance(scale, bool) or not SMALLEST_SCALE <= scale <= 1.0:
            raise SchemaError(f"{where}: scale must be a number from 2^-20 to 1.")
        object.__setattr__(self, "columns", names)
        object.__setattr__(self, "scale", float(scale))

    @property
    def title(self) -> str:
        """The names of the columns with colons between."""
        return ":".join(self.columns)

    @property
    def is_curve(self) -> bool:
        """Whether it is the curve of one number, beside its straight line."""
        return len(self.columns) == 1

    def described(self) -> list[str] | dict[str, Any]:
        """The form that a schema in JSON or TOML has: a list of names if nothing else is said, otherwise a table."""
        if self.knots is None and self.scale == 1.0:
            return list(self.columns)
        knots = {} if self.knots is None else {"knots": self.knots}
        scale = {} if self.scale == 1.0 else {"scale": shown_number(self.scale)}
        return {"columns": list(self.columns)} | knots | scale

    def __str__(self) -> str:
        knots = (
            ""
            if self.knots is None
            else f", {self.knots} even knot{'s'[: self.knots != 1]}"
            if self.knots
            else ", straight lines"
        )
        scale = "" if self.scale == 1.0 else f", scale {shown_number(self.scale)}"
        kind = "curve beside the line" if self.is_curve else "interact"
        return f"{' x '.join(self.columns)}  {kind}{knots}{scale}"


def interactions_of(described: Any, columns: Mapping[str, Column]) -> tuple[Interaction, ...]:
    """The interactions of a schema, checked.

    Parameters
    ----------
    described : for each interaction a list of names of columns, a mapping with the fields of `Interaction`, or an
        `Interaction`
    columns : the columns of the schema by their names

    Raises
    ------
    SchemaError
        If an interaction names an unknown column, has fewer than two columns or names one twice, or is given twice; or if
        a column cannot have so many knots.
    """
    if not is_list(described):
        raise SchemaError(_SHAPE)
    interactions: list[Interaction] = []
    for entry in described:
        interaction = _interaction(entry)
        for name in interaction.columns:
            if name not in columns:
                known = suggestion(name, tuple(columns))
                raise SchemaError(
                    f"interact: {column_title(name)}{known} is not among the columns; describe it below [columns]."
                )
            column = columns[name]
            if interaction.is_curve and not (isinstance(column, NumberColumn) and not column.knots):
                raise SchemaError(
                    f"interact: a curve beside a straight line is for a number without knots, and {column_title(name)} is "
                    f"none; name two or more columns."
                )
            if interaction.knots is not None and isinstance(column, NumberColumn):
                replace(column, knots=interaction.knots)  # refuses knots that double precision cannot tell apart
        if any(set(interaction.columns) == set(earlier.columns) for earlier in interactions):
            names = " and ".join(interaction.columns)
            raise SchemaError(f"interact: {names} are listed together twice; keep one of the lists.")
        interactions.append(interaction)
        if (found := n_products(interactions, columns)) > MOST_PRODUCTS:
            raise SchemaError(
                f"interact: {' and '.join(interaction.columns)} bring the number of products to {_shown_count(found)}, and "
                f"{MOST_PRODUCTS:,} are the most. Name fewer columns, list fewer categories, or give numbers fewer knots."
            )
    return tuple(interactions)


def n_products(interactions: Iterable[Interaction], columns: Mapping[str, Column]) -> int:
    """The number of encoded columns that interactions add, found without making any of them."""
    return sum(math.prod(_width(columns[name], each.knots) for name in each.columns) for each in interactions)


def _width(column: Column, knots: int | None) -> int:
    """The number of encoded columns with which a column enters products."""
    absent = int(bool(column.missing))
    if not isinstance(column, NumberColumn):
        levels = len(column.categories) + int(column.other is True) + absent
        return 1 if levels == 2 else levels  # which are -1 and 1
    own = column.knots if knots is None else knots
    n_knots = own if isinstance(own, int) else len(own)
    return (n_knots + 2 if n_knots else 1) + absent


def _shown_count(count: int) -> str:
    return f"{count:,}" if count < 10**15 else "more than 10^15"


def _interaction(entry: Any) -> Interaction:
    """One entry of `interact`."""
    if isinstance(entry, Interaction):
        return entry
    if isinstance(entry, Mapping):
        check_fields("interact", entry, Interaction)
        return Interaction(**entry)
    if not is_list(entry):
        raise SchemaError(_SHAPE)
    return Interaction(tuple(entry))
