"""Codes: read-only, small, and nothing of them is shown."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.features.tables import SECRET_NUMBER


def test_codes_are_frozen_and_print_no_data():
    """They hold data, so nothing of it is shown, and they are small."""
    encoder = Encoder(Schema(columns={"x": {"low": 0, "high": 1e10}, "y": {"categories": ["a", "b"]}}))
    codes = encoder.read(pd.DataFrame({"x": [SECRET_NUMBER] * 3, "y": ["a"] * 3}))
    assert repr(codes) == "Codes(Schema(2 columns))"
    assert codes.n_rows == 3
    assert (codes.numbers.dtype, codes.others[0].dtype) == (np.float64, np.int8)
    for column in (codes.numbers, *codes.others):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0
