"""What a fit demands of rows, and what it knows of rows that met the demand."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from types import SimpleNamespace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.intake.specification import CheckedRows, Columns, coefficient_names
from tests.data.tables import SCHEMA
from tests.intake.specifications import specification

X = np.arange(12.0).reshape(6, 2)


def test_a_specification_counts_rows_alike_unless_it_says_otherwise():
    """No class weights, weights up to 1 and one thread; and it cannot be changed on the way."""
    asked = specification()
    assert (asked.largest_sample_weight, asked.class_weight, asked.n_threads) == (1.0, None, 1)
    with pytest.raises(FrozenInstanceError):
        asked.n_threads = 2


def test_columns_are_those_that_were_recorded():
    """Their number, and their names where X has names."""
    without = Columns.recorded_by(SimpleNamespace(n_features_in_=3))
    assert (without.n_features_in, without.feature_names_in) == (3, None)
    names = np.array(["a", "b"], dtype=object)
    assert Columns.recorded_by(SimpleNamespace(n_features_in_=2, feature_names_in_=names)).feature_names_in is names


def test_columns_of_a_schema_are_its_raw_ones():
    """Four, however many columns encode them; the target is none of them."""
    columns = Columns.of_schema(Encoder(SCHEMA))
    assert columns.n_features_in == 4
    assert columns.feature_names_in.tolist() == ["age", "debt", "work", "size"]
    assert columns.feature_names_in.dtype == object


def test_coefficients_are_named_by_what_enters_the_fit():
    """Random features before encoded columns, those before names, and positions where there is nothing else."""
    encoder, fourier = Encoder(SCHEMA), FourierMap(2, 4, "rbf", 1.0, 0, False)
    named = Columns(2, np.array(["east", "north"], dtype=object))
    assert coefficient_names(named, encoder, fourier).tolist() == ["cos0", "cos1", "sin0", "sin1"]
    assert coefficient_names(named, encoder, None).tolist() == list(encoder.feature_names)
    assert coefficient_names(named, None, None).tolist() == ["east", "north"]
    assert coefficient_names(Columns(3, None), None, None).tolist() == ["x0", "x1", "x2"]


def test_a_part_of_checked_rows_has_its_rows_and_the_facts_of_all():
    """Rows, labels and weights at the positions, in their order; domain, names and sentence stay."""
    labels, weights = np.array([-1, 1, 1, -1, 1, -1]), np.arange(1.0, 7.0)
    rows = CheckedRows(
        source=MemorySource(ArrayBlocks(X), labels, weights),
        n_rows=6,
        domain=(0, 1),
        target_sentence="said",
        has_weights=True,
        columns=Columns(2, None),
        coefficient_names=np.array(["x0", "x1"], dtype=object),
        encoder=None,
        fourier=None,
    )
    part = rows.part(np.array([4, 0, 3]))
    assert part.n_rows == part.source.n_rows == 3
    assert part.source.labels.tolist() == [1, -1, -1]
    assert part.source.row_weights.tolist() == [5.0, 1.0, 4.0]
    np.testing.assert_array_equal(part.source.blocks.block(0, 3), X[[4, 0, 3]])
    assert (part.domain, part.target_sentence, part.has_weights) == ((0, 1), "said", True)
    assert part.columns is rows.columns
    assert rows.n_rows == rows.source.n_rows == 6
