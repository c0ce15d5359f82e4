"""From frames to codes and rows: each row depends on the schema and itself alone, and obeys the bound."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, replace
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from confide.erm.coded_rows import dense
from confide.errors import InputError, ParameterError
from confide.features.codes import encodings_of
from confide.features.columns import CategoryColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.tables import SECRET, tables


@settings(deadline=None)
@given(tables())
def test_every_row_obeys_the_bound_in_exact_arithmetic(table):
    """The L1 norm of each group is at most 1 without rounding, so the L2 norm obeys the row bound."""
    schema, cells = table
    encoder = Encoder(schema)
    rows = encoder.transform(pd.DataFrame(cells))
    for row in rows:
        for group, scale in zip(encoder.groups, encoder.row_bound.scales, strict=True):
            norm = sum(Fraction(abs(value)) for value in row[group.start : group.start + group.size])
            assert norm <= Fraction(scale)
        assert sum(Fraction(value) ** 2 for value in row) <= Fraction(encoder.row_bound.l2_norm) ** 2
    # The bound agrees: it has nothing to clip, so no entry is ever rounded a second time.
    assert encoder.row_bound.clip(rows) is rows


@settings(deadline=None)
@given(tables())
def test_every_row_has_exactly_one_level_where_the_bound_says_so(table):
    """A linked group holds one 1 and zeros. Groups are linked if every cell has a level and each level a column."""
    schema, cells = table
    encoder = Encoder(schema)
    rows = encoder.transform(pd.DataFrame(cells))
    links = dict(zip([group.column for group in encoder.groups], encoder.row_bound.linked, strict=True))
    for column, group in zip(schema.columns, encoder.groups, strict=False):
        is_category = isinstance(column, CategoryColumn)
        assert links[column.name] == (is_category and group.size >= 3 and column.other is not False)
    for interaction in schema.interact:
        assert links[interaction.title] == all(links[name] for name in interaction.columns)
    for group, scale in zip(encoder.groups, encoder.row_bound.scales, strict=True):
        if links[group.column]:
            part = np.sort(rows[:, group.start : group.start + group.size], axis=1)
            assert (part == [0.0] * (group.size - 1) + [scale]).all()


# In pandas before 3, convert_dtypes itself warns of numbers beyond its integers.
@pytest.mark.filterwarnings("ignore:invalid value encountered in cast:RuntimeWarning")
@settings(deadline=None)
@given(tables(), st.randoms(use_true_random=False))
def test_pandas_polars_and_arrow_give_the_same_rows_in_any_order_of_columns(table, shuffler):
    """The library, the order of columns and further columns do not matter. The frame is not modified."""
    schema, cells = table
    encoder = Encoder(schema)
    expected = encoder.transform(pd.DataFrame(cells))
    for build in (
        pd.DataFrame,
        lambda cells: pd.DataFrame(cells).convert_dtypes(),
        lambda cells: pd.DataFrame(cells).astype(object),
        lambda cells: pd.DataFrame(cells).astype("category"),
        lambda cells: pl.DataFrame(cells, strict=False),
        pa.table,
    ):
        names = [*cells, "an extra column"]
        shuffler.shuffle(names)
        frame = build({name: cells.get(name, [SECRET] * len(cells["c0"])) for name in names})
        before = copy.deepcopy(frame)
        assert np.array_equal(encoder.transform(frame), expected)
        assert frame.equals(before)


@settings(deadline=None)
@given(tables(), st.data())
def test_a_row_is_encoded_alike_alone_and_in_any_block(table, data):
    """The encoding of a row depends only on that row and on the schema."""
    schema, cells = table
    frame, encoder = pd.DataFrame(cells), Encoder(schema)
    codes, rows = encoder.read(frame), encoder.transform(frame)
    start = data.draw(st.integers(0, len(frame)))
    stop = data.draw(st.integers(start, len(frame)))
    assert np.array_equal(encoder.expand(codes, start, stop), rows[start:stop])
    for position in range(len(frame)):
        assert np.array_equal(encoder.transform(frame.iloc[[position]]), rows[position : position + 1])


@settings(deadline=None)
@given(tables(), st.sampled_from(["float32", "float64"]))
def test_blocks_in_single_precision_are_the_same_to_six_digits(table, dtype):
    """It holds for every kind of column. Entries are between -1 and 1."""
    schema, cells = table
    encoder = Encoder(schema)
    codes = encoder.read(pd.DataFrame(cells))
    with np.errstate(over="ignore"):
        codes = replace(
            codes,
            columns=tuple(
                cells.astype(dtype) if encoding.is_kept_as_is else cells
                for encoding, cells in zip(encodings_of(schema), codes.columns, strict=True)
            ),
        )
    rows = encoder.block(codes, 0, codes.n_rows, np.float32)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, dense(encoder.block(codes, 0, codes.n_rows)), rtol=0, atol=1e-6)


def test_interactions_are_products_of_the_encoded_columns():
    """An unlisted category gives zeros, and a missing number takes part with its indicator."""
    columns = {
        "age": {"low": 0, "high": 100, "missing": True},
        "sex": {"categories": ["F", "M"]},
        "work": {"categories": ["a", "b", "c"]},
        "hours": {"low": 0, "high": 10},
    }
    interact = [["age", "hours"], ["sex", "hours"], ["sex", "work"], ["work", "age"]]
    encoder = Encoder(Schema(columns=columns, interact=interact))
    frame = pd.DataFrame({"age": [100, None], "sex": ["F", "M"], "work": ["b", "z"], "hours": [10, 2.5]})
    rows = pd.DataFrame(encoder.transform(frame), columns=list(encoder.feature_names))
    products = rows.iloc[:, 7:].to_dict("list")
    assert products == {
        "age:hours": [1, 0], "age=(missing):hours": [0, -0.5],
        "sex=M:hours": [-1, -0.5],
        "sex=M:work=a": [0, 0], "sex=M:work=b": [-1, 0], "sex=M:work=c": [0, 0],
        "work=a:age": [0, 0], "work=a:age=(missing)": [0, 0], "work=b:age": [1, 0], "work=b:age=(missing)": [0, 0],
        "work=c:age": [0, 0], "work=c:age=(missing)": [0, 0],
    }  # fmt: skip
    assert [(group.column, group.size) for group in encoder.groups[4:]] == [
        ("age:hours", 2), ("sex:hours", 1), ("sex:work", 3), ("work:age", 6),
    ]  # fmt: skip


def test_encoders_are_values():
    """They are equal if their schemas are, frozen, and the same after a copy or a pickle."""
    encoder = Encoder(Schema(columns={"x": {"categories": ["a", "b", "c"]}}))
    assert encoder == Encoder(Schema(columns={"x": {"categories": ["a", "b", "c"]}}))
    assert repr(encoder) == "Encoder(schema=Schema(1 column))"
    with pytest.raises(FrozenInstanceError):
        encoder.n_features = 3
    frame = pd.DataFrame({"x": ["a", "c"]})
    for twin in (copy.deepcopy(encoder), pickle.loads(pickle.dumps(encoder))):
        assert twin == encoder
        assert np.array_equal(twin.transform(frame), encoder.transform(frame))


def test_expanded_rows_are_fresh_and_contiguous():
    """Writing to one block does not change the next one."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}, "y": {"categories": ["a", "b", "c"]}}))
    codes = encoder.read(pd.DataFrame({"x": [0.25] * 3000, "y": ["b"] * 3000}))
    rows = encoder.expand(codes, 1, 2500)
    assert rows.dtype == np.float64
    assert rows.flags.c_contiguous
    assert rows.shape == (2499, 4)
    again = encoder.expand(codes, 1, 2500)
    rows[:] = 7.0
    assert (again == again[0]).all()
    assert np.array_equal(encoder.expand(codes, 1, 2500), again)


def test_expand_refuses_rows_that_do_not_exist_and_codes_of_another_schema():
    """It neither cuts rows at the end silently nor mixes up columns."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}}))
    codes = encoder.read(pd.DataFrame({"x": [0.5]}))
    for start, stop in ((0, 2), (-1, 1), (1, 0)):
        with pytest.raises(ParameterError, match="number of rows"):
            encoder.expand(codes, start, stop)
    with pytest.raises(ParameterError, match="another schema"):
        Encoder(Schema(columns={"x": {"low": 0, "high": 2}})).expand(codes, 0, 1)


@settings(deadline=None, max_examples=30)
@given(tables())
def test_columns_are_read_alike_by_any_number_of_threads(table):
    """Codes to the bit, which columns are used, and what is refused."""
    schema, cells = table
    encoder, frame = Encoder(schema), pd.DataFrame(cells)
    one = encoder.read(frame)
    for n_threads in (2, 7):
        several = encoder.read(frame, n_threads=n_threads)
        for first, second in zip(several.columns, one.columns, strict=True):
            np.testing.assert_array_equal(first, second)
            assert first.dtype == second.dtype
        assert several.used == one.used


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_the_first_column_that_is_refused_is_named_by_any_number_of_threads(n_threads):
    """Of two, in the order of the schema."""
    names = [f"x{i}" for i in range(6)]
    encoder = Encoder(Schema(columns={name: {"low": 0.0, "high": 1.0} for name in names}))
    frame = pd.DataFrame({name: [0.5, 0.25] for name in names})
    frame["x3"], frame["x1"] = [np.inf, 0.0], [np.nan, 0.0]
    with pytest.raises(InputError, match='column "x1"'):
        encoder.read(frame, n_threads=n_threads)
