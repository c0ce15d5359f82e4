"""Coefficients in the units of the table, from the weights of encoded columns.

Inside, numbers are stretched to [-1, 1] and categories become columns of zeros and ones. People read other numbers: how the
score changes when a number grows by 1, and how a category differs from a reference. Both are linear maps of the weights, so
this is post-processing, and intervals are transformed exactly.

Each column j has a base b_j and contrasts c_j, linear maps of its effect at the points of the column:

- A straight number: the base is its effect at 0, as in any regression on raw columns; the contrast is its slope, for a step
  of 1 or of a named power of ten. On a log scale the base is the low, and the slope is for each doubling of 1 + x - low, or
  of x itself on the log10 scale.
- A number with a curve: the base is a point in the middle, and each other point is compared with it.
- A category: the base is the reference, the first level; each other level is compared with it.

A score is a sum of functions f_S of some columns S. The coefficient of columns T is the sum over all S that contain T of the
contrasts of the columns in T and of the bases of the others, applied to f_S. This is treatment coding on raw columns, as in
statsmodels and R. A number that has interactions has its base in the middle of its bounds instead of at 0: its own
coefficient then speaks of a value that rows may have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from confide.effects.decomposition import effects_of_groups, members_of_groups, points_of
from confide.effects.points import MISSING, Points
from confide.errors import ParameterError
from confide.features.column_encodings import ColumnEncoding
from confide.features.columns import NumberColumn, with_unit
from confide.features.encoder import Encoder
from confide.inference.table import NamedUnit
from confide.known_words import words_of
from confide.types import Array

INTERCEPT = "(intercept)"
UNITS = ("original", "encoded")


@dataclass(frozen=True, slots=True, eq=False)
class _Axis:
    """The base (n_points,) and the contrasts (r, n_points) of one column. Each contrast has a name, a unit and a span."""

    base: Array
    contrasts: Array
    names: tuple[str, ...]
    units: tuple[str, ...]
    spans: tuple[float, ...]


def in_original_units(encoder: Encoder, weights: Array, intercepts: Array) -> tuple[tuple[NamedUnit, ...], Array]:
    """The coefficients in the units of the table.

    Parameters
    ----------
    encoder : the encoder of the schema
    weights : (n_features, vectors), weights of the encoded columns
    intercepts : (vectors,), which belong to these weights

    Returns
    -------
    (q units, array (q, vectors))
        The columns in the order of the schema, then interactions, and the intercept last.
    """
    names, points = encoder.schema.column_names, points_of(encoder)
    in_interactions = {name for each in encoder.schema.interact if not each.is_curve for name in each.columns}
    axes = {name: _axis_of(each, has_interactions=name in in_interactions) for name, each in points.items()}
    found: dict[tuple[str, ...], Array] = {}
    constant = np.asarray(intercepts, dtype=np.float64)
    for ordered, effects in effects_of_groups(encoder, points, weights):
        for kept in product((True, False), repeat=len(ordered)):
            part = effects
            for axis, (name, keeps) in enumerate(zip(ordered, kept, strict=True)):
                map_ = axes[name].contrasts if keeps else axes[name].base[None]
                part = np.moveaxis(np.tensordot(map_, part, axes=(1, axis)), 0, axis)
            key = tuple(name for name, keeps in zip(ordered, kept, strict=True) if keeps)
            part = part.reshape(-1, part.shape[-1])
            if key:
                found[key] = found[key] + part if key in found else part
            else:
                constant = constant + part[0]
    keys = sorted(found, key=lambda key: (len(key), [names.index(name) for name in key]))
    units = [unit for key in keys for unit in _named(key, [axes[name] for name in key])]
    return (*units, NamedUnit(INTERCEPT, "", ())), np.concatenate([*(found[key] for key in keys), constant[None]])


def checked_units(units: str | None, encoder: Encoder | None, *, is_mapped: bool = False) -> str:
    """The units that a user asked for; by default the original ones, where a schema says what they are.

    Parameters
    ----------
    units : "original", "encoded" or None
    encoder : the encoder of the schema, or None
    is_mapped : whether rows are mapped to random features, whose weights have no unit of the table

    Raises
    ------
    ParameterError
        If the name is unknown, or there are no original units.
    """
    if units not in (*UNITS, None):
        raise ParameterError(f"units must be one of {words_of(UNITS, units)}.")
    has_original = encoder is not None and not is_mapped
    if units == "original" and not has_original:
        raise ParameterError(
            "units='original' needs a schema, which says how columns were stretched, and a model without random features. "
            "Use units='encoded'; without a schema these are the units of the columns as they were given."
        )
    return units or ("original" if has_original else "encoded")


def encoded_units(encoder: Encoder) -> tuple[str, ...]:
    """(n_features,): what a weight of each encoded column is for, in words."""
    found: list[str] = []
    for members, factors in zip(members_of_groups(encoder), encoder.factors, strict=True):
        if len(members) == 1:
            found += _units_of_encoded(factors[0])
        else:
            found += ["product of encoded columns"] * math.prod(len(factor.names) for factor in factors)
    return tuple(found)


def _axis_of(points: Points, *, has_interactions: bool) -> _Axis:
    column = points.column
    if not isinstance(column, NumberColumn):
        return _axis_of_category(points)
    n, everywhere = points.n_numbers, np.eye(len(points.weights))
    size, unit = _step_of(column)
    if n == 2:
        base, middle, of_middle = _base_of_line(column, everywhere, has_interactions=has_interactions)
        contrasts, names, units = [size * (everywhere[1] - everywhere[0])], [column.name], [unit]
    else:
        base = middle = everywhere[n // 2]
        of_middle = with_unit(points.texts[n // 2], column.unit)
        others = [place for place in range(n) if place != n // 2]
        contrasts = [everywhere[place] - base for place in others]
        names = [f"{column.name} = {points.texts[place]}" for place in others]
        units = [f"against {of_middle}"] * len(others)
    if MISSING in points.values:
        contrasts.append(everywhere[n] - middle)
        names.append(f"{column.name}: {MISSING}")
        units.append(f"against {of_middle}")
    spans = [1.0 / size if n == 2 and place == 0 else 1.0 for place in range(len(names))]
    return _Axis(base, np.array(contrasts), tuple(names), tuple(units), tuple(spans))


def _axis_of_category(points: Points) -> _Axis:
    everywhere = np.eye(len(points.weights))
    if len(points.values) == 1:
        # The only level is compared with rows that have no level, if there can be any.
        base, places, unit = everywhere[-1], range(len(everywhere) - 1), "against no listed level"
    else:
        base, places, unit = everywhere[0], range(1, len(points.values)), f"against {points.values[0]}"
    names = tuple(f"{points.column.name}: {points.values[place]}" for place in places)
    contrasts = np.array([everywhere[place] - base for place in places]).reshape(len(names), len(everywhere))
    return _Axis(base, contrasts, names, (unit,) * len(names), (1.0,) * len(names))


def _step_of(column: NumberColumn) -> tuple[float, str]:
    """The step that a slope is for, as a share of the way from low to high on the column's own scale, and its name."""
    width = column.high - column.low
    if column.is_log:
        shift = column.doubling - column.low
        sign, distance = "+" if shift > 0.0 else "-", with_unit(f"{abs(shift):g}", column.unit)
        of_what = "" if shift == 0.0 else f" of {column.name} {sign} {distance}"
        return math.log(2.0) / math.log1p(width / column.doubling), f"per doubling{of_what}"
    # Per 1 wherever that is a readable step: from the whole width to a thousandth of it.
    step = 1.0 if 1.0 <= width <= 1000.0 else 10.0 ** (math.floor(math.log10(width)) - 1)
    return step / width, with_unit(f"per {step:,.0f}" if step >= 1.0 else f"per {step:.10g}", column.unit)


def _base_of_line(column: NumberColumn, everywhere: Array, *, has_interactions: bool) -> tuple[Array, Array, str]:
    """The base of a straight number, the middle of its scale, and that middle in the column's own unit, in words."""
    middle = 0.5 * (everywhere[0] + everywhere[1])
    width = column.high - column.low
    number = float(column.numbers_at(np.array([0.5]))[0])
    if has_interactions:
        base = middle
    elif column.is_log:
        base = everywhere[0]
    else:
        share = -column.low / width
        base = (1.0 - share) * everywhere[0] + share * everywhere[1]
    return base, middle, with_unit(f"{number:.6g}", column.unit)


def _named(key: tuple[str, ...], axes: list[_Axis]) -> list[NamedUnit]:
    parts = (product(*each) for each in zip(*((axis.names, axis.units, axis.spans) for axis in axes), strict=True))
    return [
        NamedUnit(" x ".join(names), ", ".join(units), key, math.prod(spans))
        for names, units, spans in zip(*parts, strict=True)
    ]


def _units_of_encoded(encoding: ColumnEncoding) -> tuple[str, ...]:
    column = getattr(encoding, "column", None)
    if not isinstance(column, NumberColumn):
        size = len(encoding.names)
        return ("half of the difference",) if getattr(encoding, "single", np.zeros(0)).size == 3 else ("the level",) * size
    missing = ("if missing",) * bool(column.missing)
    if column.knots_with_bounds:
        return (*("at the value",) * (len(encoding.names) - len(missing)), *missing)
    if column.is_log:
        return ("per half range of the logarithm", *missing)
    return (with_unit(f"per half range, {0.5 * (column.high - column.low):.6g}", column.unit), *missing)
