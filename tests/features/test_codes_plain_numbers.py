"""Plain numbers that are encoded together equal those that are encoded column by column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.erm.coded_rows import dense
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema


@pytest.mark.parametrize("low", [0.0, 1900.0, 1e6, 1e6 + 0.3, -17.1])
def test_single_precision_loses_nothing_where_numbers_are_large_beside_their_range(low):
    """The lower bound is subtracted before anything is rounded."""
    encoder = Encoder(Schema({"x": {"low": low, "high": low + 1.0}}))
    numbers = np.float32(low) + np.linspace(0.25, 0.75, 9, dtype=np.float32)
    codes = encoder.read(pd.DataFrame({"x": numbers}))
    assert codes.columns[0].dtype == np.float32
    rows = encoder.block(codes, 0, 9, np.float32)
    np.testing.assert_allclose(rows, encoder.block(codes, 0, 9), rtol=0, atol=2e-7)


def test_numbers_encoded_together_are_those_of_each_column():
    """They agree to the bit, in both precisions, inside and outside the bounds, with and without missing numbers."""
    rng = np.random.default_rng(0)
    columns = [
        NumberColumn("a", -3, 0.7),
        NumberColumn("b", 17, 90, missing=True),
        NumberColumn("c", 1, 1e5, scale="log"),
        NumberColumn("d", 1e-3, 1e9),
        NumberColumn("e", 0, 1, knots=(0.5,)),
        NumberColumn("f", 0.1, 0.2, missing=True),
    ]
    encoder = Encoder(Schema(columns))
    places = {group.column: group.start for group in encoder.groups}
    for dtype in (np.float32, np.float64):
        for spread in (0.2, 2.0):
            frame = pd.DataFrame(
                {
                    c.name: ((c.low + c.high) / 2 + spread * (c.high - c.low) * rng.normal(size=2500)).astype(dtype)
                    for c in columns
                }
            )
            frame.loc[::7, "b"] = frame.loc[2000:, "f"] = np.nan
            codes = encoder.read(frame)
            assert {codes.columns[place].dtype for place in (0, 1, 3, 5)} == {np.dtype(dtype)}
            rows = encoder.expand(codes, 0, 2500)
            assert np.array_equal(rows[1000:2100], dense(encoder.block(codes, 1000, 2100)))
            for column in (c for c in columns if not c.knots):
                expected = column.stretched(frame[column.name].to_numpy().astype(np.float64))
                absent = np.isnan(expected)
                expected[absent] = 0.0
                assert np.array_equal(rows[:, places[column.name]], expected)
                assert column.missing or not absent.any()
                if column.missing:
                    assert np.array_equal(rows[:, places[column.name] + 1], absent.astype(float))
