"""How one column becomes a group of encoded columns: numbers, knots, categories and gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.errors import InputError
from confide.features.columns import CategoryColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.tables import encode


def test_numbers_are_clipped_and_stretched():
    """The bounds become -1 and 1, and numbers outside the bounds become the nearer one."""
    cells = [-5, 0, 2.5, 5, 10, 1e308]
    assert encode({"x": {"low": 0, "high": 10}}, x=cells)[:, 0].tolist() == [-1, -1, -0.5, 0, 1, 1]


def test_the_log_scale_is_the_documented_one():
    """A number becomes log(1 + x - low) / log(1 + high - low), stretched from [0, 1] to [-1, 1]."""
    encoded = encode({"x": {"low": 5, "high": 8, "scale": "log"}}, x=[5, 6, 8, 9])[:, 0]
    assert encoded == pytest.approx([-1, 0, 1, 1], abs=1e-15)
    assert encoded[[0, 2, 3]].tolist() == [-1, 1, 1]


def test_a_number_with_knots_becomes_hats():
    """Low, each knot and high have a column that is 1 there and 0 at the neighbours; lines between them add up to 1."""
    columns = {"age": {"low": 20, "high": 60, "knots": [30, 50]}}
    rows = encode(columns, age=[20, 30, 35, 50, 60, 99, -1])
    expected = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0.75, 0.25, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [1, 0, 0, 0]]
    assert rows == pytest.approx(np.array(expected), abs=1e-10)
    assert Encoder(Schema(columns=columns)).feature_names == ("age~20", "age~30", "age~50", "age~60")


def test_knots_on_the_log_scale_are_joined_by_lines_of_the_logarithm():
    """Knots are in the column's own unit; halfway between 0 and 99 on the scale of log(1 + x) lies 9."""
    rows = encode({"income": {"low": 0, "high": 9999, "scale": "log", "knots": [99]}}, income=[0, 9, 99, 999])
    assert rows == pytest.approx(np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 1, 0], [0, 0.5, 0.5]]), abs=1e-10)


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_a_number_of_knots_spaces_them_evenly_on_the_columns_scale(scale):
    """Three even knots give the encoding of the list of these three knots, which are written to the file as their number."""
    described = {"low": 5, "high": 85, "scale": scale}
    even = Schema(columns={"x": described | {"knots": 3}}).columns[0]
    share = np.array([0.25, 0.5, 0.75])
    points = 5 + (80 * share if scale == "linear" else np.expm1(share * np.log1p(80)))
    assert even.interior_knots == pytest.approx(points, rel=1e-12)
    cells = np.random.default_rng(0).uniform(0, 90, 200).tolist()
    rows = encode({"x": described | {"knots": 3}}, x=cells)
    assert rows == pytest.approx(encode({"x": described | {"knots": points.tolist()}}, x=cells), abs=1e-9)
    assert rows.shape == (200, 5)
    assert np.abs(rows).sum(axis=1).max() <= 1.0
    assert even.to_dict()["knots"] == 3


def test_no_even_knots_are_a_straight_line_that_is_said():
    """0 knots encode as no knots do, and are kept in the description, where an empty list is not."""
    straight = encode({"x": {"low": 0, "high": 10, "knots": 0}}, x=[0, 4, 10])
    assert straight.tolist() == encode({"x": {"low": 0, "high": 10}}, x=[0, 4, 10]).tolist()
    column = Schema(columns={"x": {"low": 0, "high": 10, "knots": 0}}).columns[0]
    assert column.to_dict() == {"low": 0, "high": 10, "knots": 0}
    assert column.is_straight
    assert "a straight line" in str(column)


def test_names_of_even_knots_are_short_and_different():
    """Four digits are shown where they tell the knots apart."""
    names = Encoder(Schema(columns={"age": {"low": 17, "high": 90, "knots": 6}})).feature_names
    assert names[:3] == ("age~17", "age~27.43", "age~37.86")
    near = Encoder(Schema(columns={"x": {"low": 1000.0, "high": 1000.1, "knots": 6}})).feature_names
    assert len(set(near)) == 8


def test_a_missing_number_with_knots_has_an_indicator_alone():
    """The indicator is 1 and all hats are 0."""
    columns = {"age": {"low": 20, "high": 60, "knots": [30], "missing": True}}
    rows = encode(columns, age=[None, 30.0])
    assert rows == pytest.approx(np.array([[0, 0, 0, 1], [0, 1, 0, 0]]), abs=1e-10)
    with pytest.raises(InputError, match='column "age": holds missing values'):
        encode({"age": {"low": 20, "high": 60, "knots": [30]}}, age=[None, 30.0])


def test_knots_fit_a_curve_that_a_straight_line_cannot():
    """A least-squares fit on hats follows a bend at a declared knot."""
    values = np.linspace(0.0, 10.0, 41)
    rows = encode({"x": {"low": 0, "high": 10, "knots": [3]}}, x=values)
    curve = np.abs(values - 3.0)
    weights = np.linalg.lstsq(rows, curve, rcond=None)[0]
    assert rows @ weights == pytest.approx(curve, abs=1e-8)
    assert weights == pytest.approx([3.0, 0.0, 7.0], abs=1e-8)  # a weight is the effect at its value


def test_a_number_that_may_be_missing_has_an_indicator():
    """The value and its indicator are one group, and one of the two is zero."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1, "missing": True}}))
    rows = encoder.transform(pd.DataFrame({"x": [1.0, None, 0.5]}))
    assert rows.tolist() == [[1, 0], [0, 1], [0, 0]]
    assert encoder.feature_names == ("x", "x=(missing)")
    assert [group.size for group in encoder.groups] == [2]


LEVELS = {
    "two levels, either side of zero": ({"categories": ["a", "b"]}, ["x=b"], {"a": [-1], "b": [1], "z": [0]}),
    "two levels by other": ({"categories": ["a"], "other": True}, ["x=(other)"], {"a": [-1], "z": [1], None: [1]}),
    "two levels by missing": (
        {"categories": ["a"], "missing": True},
        ["x=(missing)"],
        {"a": [-1], "z": [0], None: [1]},
    ),
    "one level": ({"categories": ["a"]}, ["x=a"], {"a": [1], "z": [0]}),
    "three levels": (
        {"categories": ["a", "b", 3]},
        ["x=a", "x=b", "x=3"],
        {"a": [1, 0, 0], "b": [0, 1, 0], "3.0": [0, 0, 1], "z": [0, 0, 0]},
    ),
    "all kinds of levels": (
        {"categories": ["a"], "other": True, "missing": True},
        ["x=a", "x=(other)", "x=(missing)"],
        {"a": [1, 0, 0], "z": [0, 1, 0], None: [0, 0, 1], " ": [0, 0, 1]},
    ),
    "others count as a listed level": (
        {"categories": ["a", "b", 3], "other": "3.0"},
        ["x=a", "x=b", "x=3"],
        {"a": [1, 0, 0], "3": [0, 0, 1], "z": [0, 0, 1], None: [0, 0, 1]},
    ),
    "others count as a listed level, gaps do not": (
        {"categories": ["a", "b"], "other": "a", "missing": True},
        ["x=a", "x=b", "x=(missing)"],
        {"a": [1, 0, 0], "z": [1, 0, 0], None: [0, 0, 1]},
    ),
    "others count as one of two levels": (
        {"categories": ["a", "b"], "other": "b"},
        ["x=b"],
        {"a": [-1], "b": [1], "z": [1], None: [1]},
    ),
    "others count as the only level": ({"categories": ["a"], "other": "a"}, ["x=a"], {"a": [1], "z": [1], None: [1]}),
    "missing goes to other": (
        {"categories": ["a", "b"], "other": True},
        ["x=a", "x=b", "x=(other)"],
        {"a": [1, 0, 0], "z": [0, 0, 1], None: [0, 0, 1]},
    ),
}


@pytest.mark.parametrize(("column", "feature_names", "rows"), LEVELS.values(), ids=LEVELS)
def test_categories_become_levels(column, feature_names, rows):
    """Listed, unlisted and missing cells have the expected columns, for every combination of levels."""
    encoder = Encoder(Schema(columns={"x": column}))
    assert encoder.feature_names == tuple(feature_names)
    encoded = encoder.transform(pd.DataFrame({"x": list(rows)}))
    assert encoded.tolist() == list(rows.values())


@pytest.mark.parametrize("n_levels", [3, 126, 127, 128, 40_000])
def test_many_categories_have_room(n_levels):
    """Levels are held in the smallest integers that can count them all."""
    column = CategoryColumn("x", tuple(range(n_levels)), other=True, missing=True)
    encoder = Encoder(Schema([column]))
    codes = encoder.read(pd.DataFrame({"x": ["0", str(n_levels - 1), "unlisted", None]}))
    assert codes.columns[0].tolist() == [0, n_levels - 1, n_levels, n_levels + 1]
