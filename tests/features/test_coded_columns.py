"""Columns of a table as coded rows: the entries are those that the description of each column says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.erm.coded_rows import CodedRows, dense
from confide.features.coded_columns import _repeated
from confide.features.encoder import Encoder
from confide.features.schema import Schema

COLUMNS = {
    "line": {"low": -2, "high": 6},
    "even": {"low": 0, "high": 10, "knots": 4},
    "category": {"categories": list("abcdefghijklmnopqrst")},
    "listed": {"low": 0, "high": 10, "knots": [1, 5]},
    "gaps": {"low": 10, "high": 20, "knots": 3, "missing": True},
    "log": {"low": 0, "high": 1000, "scale": "log", "missing": True},
    "log_gaps": {"low": 0, "high": 1000, "scale": "log", "knots": 2, "missing": True},
    "two": {"categories": ["no", "yes"]},
    "others": {"categories": ["x", "y"], "other": True, "missing": True},
    "line_gaps": {"low": 0, "high": 1, "missing": True},
    "counted_as": {"categories": ["p", "q", "r"], "other": "q"},
    "ends": {"low": 0, "high": 1000, "scale": "log", "knots": 2, "missing": True, "atoms": [0, 9, 1000]},
}
SCHEMA = Schema(columns=COLUMNS)
NAN = float("nan")
ROWS = {
    "line": [-2.0, 2.0, 6.0, NAN, 99.0, -99.0],
    "even": [0.0, 3.0, 10.0, NAN, np.inf, -np.inf],
    "category": ["a", "t", "unlisted", None, "b", "c"],
    "listed": [0.0, 3.0, 10.0, NAN, np.inf, -np.inf],
    "gaps": [10.0, 20.0, NAN, 15.0, np.inf, -np.inf],
    "log": [0.0, 1000.0, NAN, 1e9, 1000.0, 0.0],
    "log_gaps": [0.0, 1000.0, NAN, 1e9, -5.0, 9.0],
    "two": ["no", "yes", "other", None, "yes", "no"],
    "others": ["x", "y", "z", None, "x", "y"],
    "line_gaps": [0.0, 1.0, NAN, np.inf, 0.5, -np.inf],
    "counted_as": ["p", "q", "other", None, "r", "p"],
    "ends": [0.0, 1000.0, NAN, 1e9, -5.0, 9.0],
}
EXPECTED = {
    "line": [[-1], [0], [1], [0], [1], [-1]],
    "even": [np.eye(6)[0], [0, 0.5, 0.5, 0, 0, 0], np.eye(6)[5], *[[0, 0, 0.5, 0.5, 0, 0]] * 3],
    "category": [[1] + [0] * 19, [0] * 19 + [1], [0] * 20, [0] * 20, [0, 1] + [0] * 18, [0, 0, 1] + [0] * 17],
    "listed": [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 0, 0, 1], *[[0, 0, 1, 0]] * 3],
    "gaps": np.eye(6)[[0, 4, 5, 2, 5, 5]],
    "log": [[-1, 0], [1, 0], [0, 1], [1, 0], [1, 0], [-1, 0]],
    "two": [[-1], [1], [0], [0], [1], [-1]],
    "others": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]],
    "line_gaps": [[-1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 1]],
    "counted_as": [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 0]],
}


@pytest.fixture(scope="module")
def encoded():
    """The encoder, and the codes of rows that hold what no check lets pass."""
    encoder = Encoder(SCHEMA)
    return encoder, encoder.read(pd.DataFrame(ROWS), refuse=False)


@pytest.mark.parametrize("column", EXPECTED)
def test_each_cell_has_the_entries_that_its_description_says(encoded, column):
    """Missing and infinite numbers, numbers outside of bounds, and unlisted or missing categories among them."""
    encoder, codes = encoded
    rows = encoder.block(codes, 0, codes.n_rows)
    assert isinstance(rows, CodedRows)
    place = next(group.place for group in encoder.groups if group.column == column)
    np.testing.assert_allclose(rows.dense()[:, place], np.array(EXPECTED[column], dtype=float), rtol=0, atol=2.0**-35)


def test_rows_obey_the_row_bound_as_they_are(encoded):
    """No block has to be clipped, so none is made dense."""
    encoder, codes = encoded
    for start, stop in ((0, codes.n_rows), (2, 3), (4, 4)):
        rows = encoder.block(codes, start, stop)
        assert encoder.row_bound.clip(rows) is rows
        assert np.array_equal(encoder.row_bound.clip(rows.dense()), rows.dense())


def test_a_row_is_coded_alike_in_every_block(encoded):
    """Its entries depend on no other row, to the bit."""
    encoder, _ = encoded
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: [cells[i] for i in rng.integers(0, 6, 500)] for name, cells in ROWS.items()})
    frame["even"] = rng.uniform(-1, 11, 500)
    frame["listed"] = rng.uniform(-1, 11, 500)
    codes = encoder.read(frame, refuse=False)
    together = encoder.block(codes, 0, 500).dense()
    alone = np.concatenate([encoder.block(codes, row, row + 1).dense() for row in range(500)])
    assert np.array_equal(together, alone)
    assert np.array_equal(encoder.expand(codes, 0, 500), together)
    order = rng.permutation(500)
    assert np.array_equal(encoder.block(codes.taken(order), 0, 500).dense(), together[order])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("described", [{"knots": 6}, {"knots": [1000.5, 1003]}, {"knots": 4, "scale": "log"}])
def test_hats_are_one_minus_the_distance_to_their_points(dtype, described):
    """Against the definition, for numbers that are large compared with their range."""
    encoder = Encoder(Schema(columns={"x": {"low": 1000, "high": 1007} | described}))
    cells = np.concatenate([np.random.default_rng(1).uniform(998, 1009, 400), np.arange(999, 1009)]).astype(dtype)
    rows = dense(encoder.block(encoder.read(pd.DataFrame({"x": cells})), 0, cells.size))
    column = encoder.schema.columns[0]
    points = column.stretched(np.array(column.knots_with_bounds))
    positions = np.interp(column.stretched(cells.astype(float)), points, np.arange(points.size))
    hats = np.maximum(1 - np.abs(positions[:, None] - np.arange(points.size)), 0)
    np.testing.assert_allclose(rows, hats, rtol=0, atol=1e-10)
    assert np.abs(rows).sum(axis=1).max() < 1.0


def test_even_knots_on_a_linear_scale_keep_the_numbers_as_they_are():
    """Float32 cells take four bytes, and a range too short for the steps is encoded by its scale."""
    cells = np.array([0.1, 0.7], dtype=np.float32)
    codes = Encoder(Schema(columns={"x": {"low": 0, "high": 1, "knots": 6}})).read(pd.DataFrame({"x": cells}))
    assert codes.columns[0].dtype == np.float32
    assert codes.columns[0].tolist() == cells.tolist()
    narrow = Encoder(Schema(columns={"x": {"low": 0, "high": 5e-324 * 64, "knots": 6}}))
    rows = narrow.transform(pd.DataFrame({"x": [0.0, 1.0]}))
    np.testing.assert_allclose(rows, [[1] + [0] * 7, [0] * 7 + [1]], atol=1e-10)


def test_rows_with_few_columns_for_each_entry_or_interactions_stay_dense():
    """Both are decided by the schema alone."""
    plain = Encoder(Schema(columns={"x": {"low": 0, "high": 1}, "y": {"low": 0, "high": 1}}))
    pair = {"a": {"categories": list("abcdefg")}, "x": {"low": 0, "high": 1, "knots": 6}}
    assert not plain.codes_rows
    assert Encoder(Schema(columns=pair)).codes_rows
    crossed = Encoder(Schema(columns=pair, interact=[["a", "x"]]))
    assert not crossed.codes_rows
    frame = pd.DataFrame({"a": list("abz"), "x": [0.1, 0.5, 2.0]})
    rows = crossed.block(crossed.read(frame), 0, 3)
    coded = Encoder(Schema(columns=pair))
    np.testing.assert_allclose(rows[:, :15], coded.transform(frame), rtol=0, atol=1e-15)


def test_constants_that_are_kept_for_later_blocks_cannot_be_changed():
    """They are repeated for each row, and lie in memory that cannot be made writable."""
    repeated = _repeated((1.0, 2.0), 3)
    assert repeated.tolist() == [[1.0, 2.0]] * 3
    assert _repeated((1.0, 2.0), 3) is repeated
    with pytest.raises(ValueError, match="WRITEABLE"):
        repeated.setflags(write=True)
    assert _repeated((2.0, 2.0), 3) == 2.0


def test_curves_beside_lines_are_coded_as_they_are_written():
    """On every scale, with missing cells and cells outside; other interactions, and a scale of their own, are dense."""
    columns = {name: COLUMNS[name] for name in ("line", "log", "line_gaps", "gaps", "category")}
    schema = Schema(
        columns, interact=[{"columns": [name], "knots": k} for name, k in (("log", 3), ("line", 2), ("line_gaps", 1))]
    )
    encoder, other = Encoder(schema), Encoder(schema)
    codes = encoder.read(pd.DataFrame({name: ROWS[name] for name in columns}), refuse=False)
    object.__setattr__(other, "_coded", None)
    assert encoder.codes_rows
    written = other.block(codes, 0, codes.n_rows)
    assert isinstance(written, np.ndarray)
    np.testing.assert_allclose(dense(encoder.block(codes, 0, codes.n_rows)), written, atol=1e-12)
    assert encoder.feature_names[-4:] == (
        "line_gaps~0", "line_gaps~0.5", "line_gaps~1", "line_gaps~(missing)",
    )  # fmt: skip
    assert not Encoder(Schema(columns, interact=[{"columns": ["line"], "knots": 2, "scale": 0.5}])).codes_rows
    assert not Encoder(Schema(columns, interact=[["line", "category"], {"columns": ["log"], "knots": 3}])).codes_rows
