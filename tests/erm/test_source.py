"""Sources of rows as trusted code and solvers know them: closed sums for the one, lent rows for the others."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, EncodedBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.source import LentSource, SummableRows, lent
from confide.features.encoder import Encoder
from tests.data.tables import SCHEMA, made_up

RNG = np.random.default_rng(0)
ROWS, LABELS = RNG.normal(size=(300, 4)), RNG.choice([-1, 1], 300).astype(np.int8)
WEIGHTS, ROW_SUM = RNG.normal(size=(2, 4)), RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)


class OnlySums(SummableRows):
    """A source that knows its two numbers and its sums, and inherits the rest."""

    n_rows, n_features = 300, 4

    def __init__(self):
        self.behind = MemorySource(ArrayBlocks(ROWS), LABELS)

    def sum_over_rows(self, row_sum, weights):
        return self.behind.sum_over_rows(row_sum, weights)


def test_a_source_of_sums_alone_has_no_sample_and_no_single_precision():
    """Solvers then make do with its sums."""
    for source in (OnlySums(), OnlySums().lent()):
        assert source.sample(10) is None
        assert source.in_single_precision() is None
        assert source.as_stored(shortened=False) is None


@pytest.mark.parametrize("make", [OnlySums, lambda: MemorySource(ArrayBlocks(ROWS), LABELS)], ids=["own", "memory"])
def test_lent_rows_have_the_sums_of_their_source_to_the_bit(make):
    """And its numbers of rows and columns."""
    source = make()
    found = lent(source)
    assert (found.n_rows, found.n_features) == (300, 4)
    totals, expected = (each.sum_over_rows(ROW_SUM, WEIGHTS) for each in (found, source))
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_array_equal(getattr(totals, part), getattr(expected, part))


def test_lent_rows_have_no_attribute_of_their_source():
    """They are five functions and two numbers, and what is lent already is lent as it is."""
    found = lent(OnlySums())
    assert {field.name for field in dataclasses.fields(found)} == {
        "n_features",
        "n_rows",
        "sum_over_rows",
        "sample",
        "in_single_precision",
        "as_stored",
    }
    assert not hasattr(found, "behind")
    assert not hasattr(found, "__dict__")
    assert found.lent() is found


def test_rows_in_single_precision_are_lent_too():
    """Blocks that are encoded in each pass can be made of half the size, and are lent; stored ones cannot."""
    encoder, frame = Encoder(SCHEMA), made_up(300)
    encoded = MemorySource(EncodedBlocks(encoder, encoder.read(frame)), LABELS)
    found = lent(encoded).in_single_precision()
    assert found.blocks.block(0, 10).dtype == np.float32
    assert not isinstance(found.blocks, EncodedBlocks)
    assert lent(MemorySource(ArrayBlocks(ROWS), LABELS)).in_single_precision() is None


class Writer:
    """A solver's sum that writes to the rows it is shown."""

    def __init__(self, part):
        self.part = part

    def start(self, n_problems, n_features):
        return ROW_SUM.start(n_problems, n_features)

    def add_block(self, totals, rows, labels, weights, row_weights=None):
        {"rows": rows, "labels": labels, "row_weights": row_weights}[self.part][...] = 0

    def completed(self, totals):
        return totals


@pytest.mark.parametrize("part", ["rows", "labels", "row_weights"])
def test_a_sum_of_a_solver_cannot_write_to_what_it_is_shown(part):
    """Rows, labels and their weights are as before."""
    source = MemorySource(ArrayBlocks(ROWS), LABELS, np.ones(300))
    before = source.sum_over_rows(ROW_SUM, WEIGHTS).gradient
    with pytest.raises(ValueError, match="read-only"):
        lent(source).sum_over_rows(Writer(part), WEIGHTS)
    np.testing.assert_array_equal(source.sum_over_rows(ROW_SUM, WEIGHTS).gradient, before)


def test_a_sample_of_lent_rows_is_a_copy():
    """A solver may do with it what it likes."""
    before = ROWS.copy()
    sample = LentSource.lent(lent(MemorySource(ArrayBlocks(ROWS), LABELS))).sample(300)
    for rows, _, _ in sample.counted_blocks():
        rows[...] = 0.0
    np.testing.assert_array_equal(ROWS, before)
