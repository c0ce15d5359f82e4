"""Rows that a public map is applied to, block by block."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd
import pytest

import confide
from confide.data.arrays import ArrayBlocks, MappedBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.features.fourier import CurvesAndFeatures, FourierMap


def made_up(n_rows, n_inputs):
    rng = np.random.default_rng(1)
    return rng.normal(size=(n_rows, n_inputs)), rng.choice([-1, 1], size=n_rows).astype(np.int8)


def test_sums_over_mapped_blocks_are_those_over_the_mapped_rows():
    """They agree to the bit, because a mapped row does not depend on its block."""
    rows, labels = made_up(3000, 4)
    fourier_map = FourierMap(4, 50)
    row_sum = RowSum(LogisticLoss(), fourier_map.row_bound, 1.0, order=2)
    weights = np.random.default_rng(2).normal(size=(2, 51))
    mapped = MappedBlocks(ArrayBlocks(rows), fourier_map)
    assert (mapped.n_rows, mapped.n_features) == (3000, 50)
    totals = MemorySource(mapped, labels).sum_over_rows(row_sum, weights)
    expected = MemorySource(ArrayBlocks(fourier_map.transform(rows)), labels).sum_over_rows(row_sum, weights)
    for part in ("value", "gradient", "hessian"):
        np.testing.assert_array_equal(getattr(totals, part), getattr(expected, part))


def test_the_mapped_matrix_never_exists():
    """A pass over 80 MB of mapped rows needs less than 4 MB."""
    rows, labels = made_up(10_000, 5)
    source = MemorySource(MappedBlocks(ArrayBlocks(rows), FourierMap(5, 1000)), labels)
    row_sum = RowSum(LogisticLoss(), source.blocks.fourier_map.row_bound, 0.0, order=1)
    tracemalloc.start()
    source.sum_over_rows(row_sum, np.zeros((1, 1000)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000


def of_a_fit(n_rows, *, keeps=True):
    """Rows with their features, as a fit has them, and a sum over them."""
    rows, labels = made_up(n_rows, 4)
    blocks = MappedBlocks(ArrayBlocks(rows), CurvesAndFeatures(FourierMap(4, 50), 1.0, 2.0), keeps)
    return MemorySource(blocks, labels), RowSum(LogisticLoss(), BallBound(1.5), 1.0, order=1)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_fit_makes_the_features_of_each_row_once(monkeypatch, by_numpy_alone, n_threads):
    """Sums agree to the bit with those over rows that are made in each pass, also where a pass begins in the middle."""
    monkeypatch.setattr("confide.data.arrays._FEWEST_ROWS", 16)
    monkeypatch.setattr("confide.data.arrays._BLOCK_BYTES", 2**13)
    made, write = [], CurvesAndFeatures.write
    monkeypatch.setattr(CurvesAndFeatures, "write", lambda self, rows, to: made.append(len(rows)) or write(self, rows, to))
    (source, row_sum), (again, _) = of_a_fit(3000), of_a_fit(3000, keeps=False)
    source = MemorySource(source.blocks, source.labels, n_threads=n_threads)
    np.testing.assert_array_equal(source.blocks.block(50, 90), again.blocks.block(50, 90))
    before = sum(made)
    for weights in (np.zeros((1, 55)), np.linspace(-1.0, 1.0, 55)[None]):
        expected = again.sum_over_rows(row_sum, weights).gradient
        np.testing.assert_array_equal(source.sum_over_rows(row_sum, weights).gradient, expected)
    assert before + 2 * 3000 + 2900 <= sum(made) <= before + 3 * 3000
    np.testing.assert_array_equal(source.copied(np.arange(0, 3000, 7)).blocks.rows, again.blocks.block(0, 3000)[::7])


def test_rows_are_kept_up_to_a_bound_on_their_numbers(monkeypatch):
    """Beyond it, after other scales, and for parts of the rows, they are made again; the bytes are those of the bound."""
    monkeypatch.setattr("confide.data.arrays._MAPPED_NUMBERS", 3000 * 54)
    kept, more = of_a_fit(3000)[0].blocks, of_a_fit(3001)[0].blocks
    others = (more, kept.taken(np.arange(9)), of_a_fit(3000, keeps=False)[0].blocks)
    assert [blocks.made_anew for blocks in (kept, *others)] == [False, True, True, True]
    assert kept.block(0, 3000).nbytes == 4 * 3000 * 54
    assert np.shares_memory(kept.block(0, 10), kept.block(5, 9))
    assert not np.shares_memory(more.block(0, 10), more.block(0, 10))
    scaled = of_a_fit(3000)[0].remapped(lambda features: features.scaled((2.0,) * 4))
    assert not scaled.blocks.made_anew
    expected = scaled.blocks.fourier_map.transform(scaled.blocks.blocks.block(0, 9))
    np.testing.assert_array_equal(scaled.blocks.block(0, 9), expected)
    assert not np.array_equal(scaled.blocks.block(0, 9), kept.block(0, 9))


def test_other_scales_take_no_memory_beside_that_of_the_rows():
    """They are found after the charge. Both give their own rows, and what was read before stays as it was."""
    tracemalloc.start()
    before = of_a_fit(30_000)[0]
    one = tracemalloc.get_traced_memory()[0]
    scaled = before.remapped(lambda features: features.scaled((2.0,) * 4))
    assert tracemalloc.get_traced_memory()[1] < 1.1 * one
    tracemalloc.stop()
    read = scaled.blocks.block(0, 3000)
    for source in (scaled, before, scaled, scaled.remapped(lambda features: features.scaled((3.0,) * 4)), scaled):
        expected = source.blocks.fourier_map.transform(source.blocks.blocks.block(0, 3000))
        np.testing.assert_array_equal(source.blocks.block(0, 3000), expected)
        np.testing.assert_array_equal(read, scaled.blocks.block(0, 3000))


def test_rows_that_are_used_once_or_in_parts_are_not_kept(monkeypatch):
    """Memory for all rows would gain nothing where they are scored, or where each candidate of a search has a part."""
    asked = []
    monkeypatch.setattr(
        "confide.intake.rows.MappedBlocks", lambda *given, keeps: asked.append(keeps) or MappedBlocks(*given, keeps)
    )
    target = {"column": "y", "negative": "no", "positive": "yes"}
    schema = confide.Schema({"a": {"low": -1, "high": 1}}, target, random_features={"number": 6, "length_scale": 1.0})
    rows = pd.DataFrame({"a": np.linspace(-1.0, 1.0, 500)})
    labels = np.where(rows["a"] > 0.1, "yes", "no")
    model = confide.LogisticRegression(1.0, schema=schema, random_state=0).fit(rows, labels)
    assert asked == [True]
    confide.evaluate(model, rows, labels, budget=1.0, random_state=0)
    assert asked == [True, False]
    grid = {"alpha": [0.01, 1.0]}
    search = confide.PrivateSearchCV(
        confide.LogisticRegression(schema=schema), grid, budget=confide.ZCDP(1.0), random_state=0
    )
    search.fit(rows, labels)
    assert asked == [True, False, False, False]
