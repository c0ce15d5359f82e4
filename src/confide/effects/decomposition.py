"""From weights to effects: a score as an intercept, an effect of each column, and what interactions add to these.

Weights alone do not determine effects: a constant may move from a curve to the intercept, and a curve from an interaction to
a column, without a change of any score. Effects are made unique by the public weights of `points`: each effect has weighted
mean 0 along each of its columns. For an interaction this is called purification (Lengerich, Tan, Chang, Hooker and Caruana,
*Purifying interaction effects with the functional ANOVA*, AISTATS 2020). With P_j the mean over column j,

    f = sum over subsets S of its columns of  product of (1 - P_j) for j in S  and of P_j for the other j,  applied to f,

and the term of S is the part of f that belongs to the columns in S; the term of the empty set is a constant. The terms add
up to f. Each is a linear map of the weights, so weights may be given as many vectors at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from confide.effects.points import Points
from confide.features.column_encodings import ColumnEncoding
from confide.features.encoder import Encoder
from confide.types import Array


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """What some columns together add to the score, beyond what fewer of them add.

    Attributes
    ----------
    columns : names of the columns, in the order of the schema
    points : the points of each column
    effects : (points of the first column, ..., points of the last, vectors of weights)
    """

    columns: tuple[str, ...]
    points: tuple[Points, ...]
    effects: Array


@dataclass(frozen=True, slots=True, eq=False)
class Decomposition:
    """A score as a sum.

    Attributes
    ----------
    constant : (vectors of weights,), to be added to the intercept
    terms : those of single columns first, in the order of the schema
    """

    constant: Array
    terms: tuple[Term, ...]


def decomposition(encoder: Encoder, weights: Array) -> Decomposition:
    """The effects of vectors of weights (n_features, vectors) of the encoded columns."""
    names = encoder.schema.column_names
    points = points_of(encoder)
    constant = np.zeros(weights.shape[1])
    found: dict[tuple[str, ...], Array] = {}
    for ordered, effects in effects_of_groups(encoder, points, weights):
        for kept in product((True, False), repeat=len(ordered)):
            part = effects
            for axis, (name, keeps) in enumerate(zip(ordered, kept, strict=True)):
                mean = np.expand_dims(np.tensordot(points[name].weights, part, axes=(0, axis)), axis)
                part = part - mean if keeps else mean
            key = tuple(name for name, keeps in zip(ordered, kept, strict=True) if keeps)
            part = part.reshape(*(len(points[name].weights) for name in key), -1)
            if key:
                found[key] = found[key] + part if key in found else part
            else:
                constant = constant + part
    ordered_keys = sorted(found, key=lambda key: (len(key), [names.index(name) for name in key]))
    return Decomposition(constant, tuple(Term(key, tuple(points[name] for name in key), found[key]) for key in ordered_keys))


def members_of_groups(encoder: Encoder) -> list[tuple[str, ...]]:
    """The names of the columns of each group of encoded columns: one, or those of an interaction."""
    return [*((name,) for name in encoder.schema.column_names), *(each.columns for each in encoder.schema.interact)]


def points_of(encoder: Encoder) -> dict[str, Points]:
    """The points of each column, with the knots that it has by itself and in interactions."""
    encodings: dict[str, list[ColumnEncoding]] = {name: [] for name in encoder.schema.column_names}
    for members, factors in zip(members_of_groups(encoder), encoder.factors, strict=True):
        for name, encoding in zip(members, factors, strict=True):
            encodings[name].append(encoding)
    return {name: Points.of(found) for name, found in encodings.items()}


def effects_of_groups(
    encoder: Encoder, points: dict[str, Points], weights: Array
) -> Iterator[tuple[tuple[str, ...], Array]]:
    """What each group of encoded columns adds to the score, at the points of its columns.

    The names of the columns are in the order of the schema, and the effects have the shape (points of the first column, ...,
    points of the last, vectors of weights).
    """
    names = encoder.schema.column_names
    groups = zip(members_of_groups(encoder), encoder.factors, encoder.groups, encoder.row_bound.scales, strict=True)
    for members, factors, group, scale in groups:
        places = [names.index(name) for name in members]
        effects = (scale * weights[group.place]).reshape(*(len(factor.names) for factor in factors), -1)
        for axis, (name, factor) in enumerate(zip(members, factors, strict=True)):
            effects = np.moveaxis(points[name].effects(factor, np.moveaxis(effects, axis, 0)), 0, axis)
        in_order = np.argsort(places).tolist()
        yield tuple(members[i] for i in in_order), effects.transpose(*in_order, len(in_order))
