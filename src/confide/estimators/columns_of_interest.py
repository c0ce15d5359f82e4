"""The parameter `interest`: which combinations of weights the named columns stand for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from confide.effects.decomposition import members_of_groups
from confide.effects.original_units import in_original_units
from confide.errors import ParameterError
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.inference.interest import Combination
from confide.known_words import listed, listed_unknown

_MOST = 20
"""The largest number of coefficients. The noise on each sum grows with the root of their number."""


def checked_interest(given: Any, encoder: Encoder | None, names: Callable[[], Sequence[str]]) -> tuple[Combination, ...]:
    """The combinations of weights of the named columns; empty if none is named.

    Parameters
    ----------
    given : what the user gave: names of columns of the table, or of an array of numbers
    encoder : the encoder of the schema, or None
    names : gives the names of the columns of an array or a frame of numbers

    Raises
    ------
    ParameterError
        If it is no list of names, a name is unknown or comes twice, or its coefficient is not one number for each level.
    """
    if given is None or (isinstance(given, tuple | list) and not given):
        return ()
    if isinstance(given, str):
        raise ParameterError(f'interest must be a list of names of columns, also for one: ["{given}"].')
    if not isinstance(given, tuple | list) or not all(isinstance(each, str) for each in given):
        raise ParameterError('interest must be a list of names of columns, for example ["treatment"].')
    if len(set(given)) < len(given):
        raise ParameterError("interest names a column twice; name it once.")
    known = list(map(str, names())) if encoder is None else list(encoder.schema.column_names)
    unknown = [each for each in given if each not in known]
    if unknown:
        what = "is no column" if len(unknown) == 1 else "are no columns"
        raise ParameterError(
            f"interest names {listed_unknown(unknown, known)}, which {what}. The columns are {listed(known)}."
        )
    if encoder is None:
        found = [Combination(each, "per 1, as given", (each,), 1.0, ((known.index(each), 1.0),)) for each in given]
    else:
        found = [one for each in given for one in _of_column(each, encoder)]
    if len(found) > _MOST:
        raise ParameterError(
            f"interest is for at most {_MOST} coefficients, and these columns have {len(found)}. Name fewer columns."
        )
    return tuple(found)


def _of_column(name: str, encoder: Encoder) -> list[Combination]:
    """The coefficients of one column in units of the table: one for a number, one for each level of a category."""
    column = encoder.schema.columns[encoder.schema.column_names.index(name)]
    if any(name in each.columns for each in encoder.schema.interact):
        raise ParameterError(
            f'interest names "{name}", whose effect depends on other columns: the schema has an interaction with it. Leave '
            f"out the interaction, or the name."
        )
    if isinstance(column, NumberColumn) and column.knots_with_bounds:
        raise ParameterError(
            f'interest names "{name}", whose effect is a curve, and a curve has no single coefficient. Give the column '
            f"knots = 0 in the schema for a straight line, or leave out the name."
        )
    each_weight = np.eye(encoder.n_features + 1)
    units, combinations = in_original_units(encoder, each_weight[:-1], each_weight[-1])
    found, has_levels = [], not isinstance(column, NumberColumn)
    own, base = _places_of_levels(name, encoder, combinations[-1]) if has_levels else ((), ())
    n_levels = sum(unit.columns == (name,) for unit in units) + 1
    for unit, row in zip(units, combinations, strict=True):
        if unit.columns != (name,):
            continue
        places = np.flatnonzero(row).tolist()
        factors = tuple((-1 if place == encoder.n_features else place, float(row[place])) for place in places)
        found.append(
            Combination(
                unit.name,
                unit.unit,
                unit.columns,
                float(unit.span),
                factors,
                has_levels,
                *_usual(factors, n_levels if has_levels else 0),
                own,
                base,
            )
        )
    return found


def _places_of_levels(name: str, encoder: Encoder, intercept: Any) -> tuple[tuple[int, ...], tuple[tuple[int, float], ...]]:
    """The places of a category in a row, and the entries of its reference there.

    `intercept` is the combination of weights of the intercept in units of the table: the score of a row at its references.
    """
    (group,) = (
        group for members, group in zip(members_of_groups(encoder), encoder.groups, strict=True) if members == (name,)
    )
    own = tuple(range(*group.place.indices(encoder.n_features)))
    return own, tuple((place, float(intercept[place])) for place in own if intercept[place])


def _usual(factors: tuple[tuple[int, float], ...], n_levels: int) -> tuple[float, float]:
    """The usual variance of rows along a direction along which the combination has the size 1, and its clip.

    Levels are taken to be equally frequent: the rows of the two that are compared lie at -1/2 and 1/2. Encoded numbers are
    taken to be uniform in [-1, 1].
    """
    if n_levels:
        return 0.5 / n_levels, 0.5
    factor = max(abs(factor) for place, factor in factors if place >= 0)
    return 1.0 / (3.0 * factor**2), 3.0**0.5 / factor
