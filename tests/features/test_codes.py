"""Codes are read-only and small, and repr shows none of their data."""

from __future__ import annotations

import numpy as np
import pandas as pd
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
    assert (codes.numbers.dtype, codes.others[0].dtype) == (np.float64, np.int8)
    for column in (codes.numbers, *codes.others):
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
        assert taken.numbers.tolist() == [[0.0, 3.0]]
        assert taken.others[0].tolist() == [0, 1]
        assert taken.used == frozenset()
