"""Rows as they are stored are views: slices share memory, and lent ones cannot be written to."""

from __future__ import annotations

import numpy as np
import pytest

from confide.compiled.stored_rows import LEVELS, LINE, StoredArray, StoredCodes, StoredColumn
from confide.erm.source import unwritable


def both():
    """Rows of an array, and rows of codes."""
    codes = (np.arange(10.0), np.arange(10, dtype=np.int8))
    return StoredArray(np.arange(30.0).reshape(10, 3)), StoredCodes(
        11, (StoredColumn(LINE, 0, 1), StoredColumn(LEVELS, 1, 11)), codes, 10
    )


def arrays_of(rows):
    """The arrays behind rows."""
    return (rows.rows,) if isinstance(rows, StoredArray) else rows.codes


@pytest.mark.parametrize("rows", both(), ids=["array", "codes"])
def test_slices_and_lent_rows_share_memory(rows):
    """Nothing is copied."""
    for some in (rows[2:7], rows.lent(unwritable)[2:7], rows[:100][2:7]):
        assert some.shape == (5, rows.shape[1])
        for part, whole in zip(arrays_of(some), arrays_of(rows), strict=True):
            np.testing.assert_array_equal(part, whole[2:7])
            assert np.shares_memory(part, whole)
    for array in arrays_of(rows.lent(unwritable)):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
