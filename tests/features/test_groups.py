"""Products of interacting columns: what coarse effects are, and how they are scaled."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from confide.features.codes import HAT_HEIGHT
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema

JOB = {"categories": ["a", "b", "c"], "other": True}


@pytest.mark.parametrize("scale", ["linear", "log"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("own", [(), 0, 1, 6, (3.0, 40.0)])
@pytest.mark.parametrize("knots", [0, 1, 3])
def test_coarse_hats_are_those_of_the_column_with_so_many_knots(scale, missing, own, knots):
    """However the number is encoded beside the products, it enters them as a column with `knots` even knots would."""
    values = [0.0, 0.4, 3.0, 17.3, 40.0, 50.0, 99.9, 100.0, 140.0, *([None] if missing else [])]
    columns = [NumberColumn("x", 0, 100, scale, missing, own), NumberColumn("y", -1, 1)]
    schema = Schema(columns, interact=[{"columns": ["x", "y"], "knots": knots, "scale": 0.5}])
    frame = pd.DataFrame({"x": values, "y": [1.0] * len(values)}, dtype=float)
    encoder = Encoder(schema)
    products = encoder.transform(frame)[:, encoder.groups[-1].place]
    alone = Encoder(Schema([NumberColumn("x", 0, 100, scale, missing, knots)])).transform(frame)
    # y is 1: it enters as a line of value 1, or as hats of which the last is HAT_HEIGHT and the others are 0.
    last = products.reshape(len(values), alone.shape[1], -1)[:, :, -1]
    np.testing.assert_allclose(last, 0.5 * (HAT_HEIGHT if knots else 1.0) * alone, rtol=0, atol=1e-12)


def test_names_say_where_the_coarse_knots_are():
    """Names of products hold those of the coarse hats, in the unit of the column. Categories keep their levels."""
    columns = {"age": {"low": 0, "high": 80, "knots": 6}, "job": JOB}
    encoder = Encoder(Schema(columns, interact=[{"columns": ["job", "age"], "knots": 1, "scale": 0.25}]))
    levels, hats = ("job=a", "job=b", "job=c", "job=(other)"), ("age~0", "age~40", "age~80")
    assert encoder.feature_names[-12:] == tuple(map(":".join, itertools.product(levels, hats)))
    assert encoder.groups[-1].column == "job:age"
    assert encoder.row_bound.scales == (1.0, 1.0, 0.25)
    row = encoder.transform(pd.DataFrame({"age": [60.0], "job": ["b"]}))[0, -12:].reshape(4, 3)
    np.testing.assert_allclose(row, np.outer([0, 1, 0, 0], [0, 0.125, 0.125]), atol=1e-9)


def test_products_of_linked_categories_stay_linked_at_their_scale():
    """Exactly one product is the scale. The bound finds nothing to clip."""
    columns = {"one": JOB, "two": JOB}
    encoder = Encoder(Schema(columns, interact=[{"columns": ["one", "two"], "scale": 0.3}]))
    assert encoder.row_bound.linked == (True, True, True)
    rows = encoder.transform(pd.DataFrame({"one": ["a", "z"], "two": ["b", "c"]}))
    assert sorted(rows[0, 8:])[-2:] == [0.0, 0.3]
    assert encoder.row_bound.clip(rows) is rows


@given(st.floats(0.01, 1.0), st.integers(0, 4), st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_the_scale_multiplies_the_products_alone(scale, knots, values):
    """Encoded columns beside the products do not change, and products are those of scale 1 times the scale."""
    frame = pd.DataFrame({"x": values, "y": values[::-1]})
    columns = {name: {"low": 0, "high": 100, "knots": 2} for name in frame}
    whole, scaled = (
        Encoder(Schema(columns, interact=[{"columns": ["x", "y"], "knots": knots, "scale": by}])).transform(frame)
        for by in (1.0, scale)
    )
    assert np.array_equal(whole[:, :8], scaled[:, :8])
    assert np.array_equal(whole[:, 8:] * scale, scaled[:, 8:])
