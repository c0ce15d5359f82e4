"""The kernel makes of codes the same rows as the encoder, also of cells that no check lets pass."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide.compiled.gradient_sums import CompiledSum, code_of
from confide.erm.coded_rows import dense
from confide.erm.target_losses import SquaredLoss
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
        assert any(np.shares_memory(array, own) for own in (codes.numbers, *codes.others))


@pytest.mark.parametrize("interactions", [(), (("a", "b"),)])
def test_a_schema_with_interactions_has_no_such_form(interactions):
    """Products of columns are made by NumPy alone."""
    columns = {"a": {"low": 0, "high": 1}, "b": {"low": 0, "high": 1}}
    encoder = Encoder(Schema(columns=columns, interact=[{"columns": list(pair)} for pair in interactions]))
    codes = encoder.read(pd.DataFrame({"a": [0.5], "b": [0.25]}))
    assert encoder.is_storable == (not interactions)
    assert (encoder.as_stored(codes) is None) == bool(interactions)
