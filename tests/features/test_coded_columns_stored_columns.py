"""The kernel makes of codes the same rows as the encoder, also of cells that no check lets pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.compiled.gradient_sums import CompiledSum, code_of
from confide.erm.coded_rows import dense
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.features.codes import Codes
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.test_coded_columns import ROWS, SCHEMA


def test_each_row_is_that_of_the_encoder(compiled):
    """Of one row, the gradient of a squared loss is score less target times the row, so it shows both."""
    encoder = Encoder(SCHEMA)
    codes = encoder.read(pd.DataFrame(ROWS), refuse=False)
    expected, stored = dense(encoder.block(codes, 0, codes.n_rows)), encoder.as_stored(codes)
    asked = CompiledSum(compiled, code_of(SquaredLoss(1e3, 1e6)), 0.0, 1.0, np.inf)
    weights = np.random.default_rng(0).normal(size=(1, encoder.n_features))
    assert stored.shape == expected.shape
    for row, entries in enumerate(expected):
        totals = asked.start(1, encoder.n_features)
        asked.add_block(totals, stored[row : row + 1], np.array([-1.5]), weights)
        np.testing.assert_allclose(totals.gradient[0], (weights[0] @ entries + 1.5) * entries, rtol=1e-12, atol=1e-13)


def test_codes_are_read_where_they_lie():
    """No copy is made of columns."""
    encoder = Encoder(SCHEMA)
    codes = encoder.read(pd.DataFrame(ROWS), refuse=False)
    stored = encoder.as_stored(codes)
    for array in stored.codes:
        assert any(np.shares_memory(array, own) for own in codes.columns)


def test_codes_of_another_schema_are_refused():
    """As they are where rows are expanded."""
    codes = Encoder(SCHEMA).read(pd.DataFrame(ROWS), refuse=False)
    other = Encoder(Schema(columns={"line": {"low": 0, "high": 1}}))
    with pytest.raises(ParameterError, match="another schema"):
        other.as_stored(codes)


@pytest.mark.parametrize(
    ("numbers", "level"),
    [
        (np.float16, np.int8),
        (">f8", np.int8),
        ("g", np.int8),
        (float, np.int64),
        (float, np.uint8),
        (float, ">i2"),
        (float, float),
    ],
)
def test_types_that_the_kernel_does_not_read_are_left_to_numpy(numbers, level):
    """It would refuse them, which may be after the charge."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1}, "c": {"categories": list("abc")}}))
    codes = Codes(encoder.schema, (np.zeros(4, numbers), np.zeros(4, level)))
    assert encoder.as_stored(codes) is None


def test_some_of_the_rows_keep_each_column_in_one_piece():
    """So nothing is copied in each pass."""
    encoder = Encoder(SCHEMA)
    codes = encoder.read(pd.DataFrame(ROWS), refuse=False)
    for which in (np.array([0, 2, 5]), slice(1, 4)):
        some = codes.taken(which)
        assert all(column.flags.c_contiguous for column in some.columns)
        assert all(any(np.shares_memory(one, own) for own in some.columns) for one in encoder.as_stored(some).codes)


@pytest.mark.parametrize("interactions", [(), (("a", "b"),)])
def test_a_schema_with_interactions_has_no_such_form(interactions):
    """Products of columns are made by NumPy alone."""
    columns = {"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}}
    encoder = Encoder(Schema(columns=columns, interact=[{"columns": list(pair)} for pair in interactions]))
    codes = encoder.read(pd.DataFrame({"a": [0.5], "b": [0.25]}))
    assert encoder.is_storable == (not interactions)
    assert (encoder.as_stored(codes) is None) == bool(interactions)
