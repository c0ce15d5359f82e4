"""Effects add up to the score of every row, and their means are 0 by the public weights."""

from __future__ import annotations

import numpy as np

from confide.effects.effects import MISSING, decomposition
from confide.features.encoder import Encoder
from tests.effects.examples import INTERACTIONS, schema, table


def mixtures(points, cells):
    """(rows, points): how the effect of each cell of a raw column is made of the effects at the points."""
    rows = []
    for cell in cells:
        if points.n_numbers and cell == cell:
            rows.append(points.mixture(min(max(cell, points.column.low), points.column.high)))
        elif cell in points.values or (MISSING in points.values and (cell is None or cell != cell)):
            rows.append(points.mixture(cell))
        elif "(other)" in points.values:
            rows.append(points.mixture("(other)"))
        else:  # a category that is no level has a point of its own, the last
            rows.append(np.eye(len(points.weights))[-1])
    return np.array(rows)


def added_up(found, frame):
    """(rows, vectors): the constant and all effects."""
    total = np.tile(found[0], (len(frame), 1))
    for term in found[1]:
        part = term.effects[None].repeat(len(frame), axis=0)
        for name, points in zip(term.columns, term.points, strict=True):
            part = np.einsum("rp,rp...->r...", mixtures(points, frame[name].tolist()), part)
        total += part
    return total


def test_effects_and_constant_add_up_to_the_score_of_every_row():
    """With interactions of two and three columns, missing cells, clipped numbers and unheard-of categories."""
    encoder, frame = Encoder(schema(INTERACTIONS)), table(300)
    weights = np.random.default_rng(0).normal(size=(encoder.n_features, 2))
    found = decomposition(encoder, weights)
    np.testing.assert_allclose(added_up(found, frame), encoder.transform(frame) @ weights, atol=1e-8)


def test_every_effect_has_mean_0_along_each_of_its_columns():
    encoder = Encoder(schema(INTERACTIONS))
    found = decomposition(encoder, np.random.default_rng(1).normal(size=(encoder.n_features, 1)))
    for term in found[1]:
        for axis, points in enumerate(term.points):
            np.testing.assert_allclose(np.tensordot(points.weights, term.effects, axes=(0, axis)), 0.0, atol=1e-12)


def test_interactions_give_their_main_effects_to_the_columns():
    """A weight of an interaction alone has effects of both columns; subsets of three columns get terms of their own."""
    encoder = Encoder(schema(INTERACTIONS))
    weights = np.zeros((encoder.n_features, 1))
    weights[encoder.groups[-2].place] = 1.0  # work:age, the same for all: the effect of having a listed kind of work
    terms = {term.columns: term.effects for term in decomposition(encoder, weights)[1]}
    assert list(terms) == [
        *((name,) for name in encoder.schema.column_names),
        *(("age", "work"), ("income", "sex"), ("income", "city"), ("sex", "city"), ("income", "sex", "city")),
    ]
    np.testing.assert_allclose(terms["work",][:, 0], [0, 0, 0, -1], atol=1e-9)
    np.testing.assert_allclose(terms["age", "work"], 0.0, atol=1e-9)


def test_a_decomposition_is_a_linear_map():
    encoder = Encoder(schema(INTERACTIONS))
    weights = np.random.default_rng(2).normal(size=(encoder.n_features, 1))
    for one, map_of in zip(
        decomposition(encoder, weights)[1], decomposition(encoder, np.eye(encoder.n_features))[1], strict=True
    ):
        np.testing.assert_allclose(map_of.effects @ weights, one.effects, atol=1e-12)
