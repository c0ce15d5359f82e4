"""Codes are read-only and small, and repr shows none of their data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.tables import SECRET_NUMBER


def test_codes_are_frozen_and_print_no_data():
    """Codes hold data, so repr shows none of it. They are read-only and small."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1e10}, "y": {"categories": ["a", "b"]}}))
    codes = encoder.read(pd.DataFrame({"x": [SECRET_NUMBER] * 3, "y": ["a"] * 3}))
    assert repr(codes) == "Codes(Schema(2 columns))"
    assert codes.n_rows == 3
    assert tuple(column.dtype for column in codes.columns) == (np.float64, np.int8)
    for column in codes.columns:
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_some_of_the_rows_are_taken_from_every_column():
    """Rows are taken by positions or by a slice. A part does not say which columns are used."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 9}, "y": {"categories": ["a", "b"]}}))
    codes = encoder.read(pd.DataFrame({"x": range(5), "y": list("ababa")}))
    assert codes.used == {"x", "y"}
    for which in (np.array([0, 3]), slice(0, 4, 3)):
        taken = codes.taken(which)
        assert taken.n_rows == 2
        assert taken.columns[0].tolist() == [0.0, 3.0]
        assert taken.columns[1].tolist() == [0, 1]
        assert taken.used == frozenset()


def test_codes_do_not_share_the_memory_of_the_frame():
    """A frame, or a file that is mapped to memory, may change while its rows are used."""
    encoder = Encoder(Schema(columns={name: {"low": 0, "high": 9} for name in "xyz"}))
    x, y = np.arange(5.0), np.arange(5, dtype=np.float32)
    columns = {"x": pa.array(x), "y": pa.chunked_array([pa.array(y[:2]), pa.array(y[2:])]), "z": pa.array(range(5))}
    codes = encoder.read(pa.table(columns))
    assert [numbers.dtype.name for numbers in codes.columns] == ["float64", "float32", "float64"]
    x[:], y[:] = 7.0, 7.0
    for numbers in codes.columns:
        assert numbers.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]
        assert numbers.flags.owndata
    # Each column keeps its precision, and a row is the same as if all were in double precision.
    in_doubles = encoder.read(pa.table({name: pa.array(np.arange(5.0)) for name in "xyz"}))
    np.testing.assert_array_equal(encoder.expand(codes, 0, 5), encoder.expand(in_doubles, 0, 5))
