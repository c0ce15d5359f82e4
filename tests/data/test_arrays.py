"""Samples of rows in memory, which are the same rows for every kind of block."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from confide.compiled.stored_rows import StoredArray
from confide.data import arrays
from confide.data.arrays import (
    ArrayBlocks,
    EncodedBlocks,
    KeptBlocks,
    MappedBlocks,
    MemorySource,
    StoredBlocks,
)
from confide.erm.class_losses import Softmax
from confide.erm.clipped_rows import ScaledRows, clipped_once
from confide.erm.coded_rows import dense
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.row_sums import RowSum
from confide.erm.transformed_losses import ClippedSlopes
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema
from tests.data.tables import SCHEMA, made_up


@pytest.mark.parametrize("n_rows", [1, 3, 7, 8, 9, 15, 16, 17, 999])
def test_a_sample_is_of_different_rows_with_their_own_labels_and_weights(n_rows):
    """Rows are in order, about as many as wanted, and come from all parts of the data."""
    numbers = np.arange(n_rows)
    source = MemorySource(ArrayBlocks(numbers[:, None] * 1.0), numbers, numbers * 1.0, 2)
    for wanted in (1, 8, 9, n_rows // 16 + 1, n_rows, 10 * n_rows):
        sample = source.sample(wanted)
        picked = sample.blocks.block(0, sample.n_rows)[:, 0]
        assert (np.diff(picked) > 0).all()
        # Within a root of two, and a run of a few rows.
        asked = min(max(wanted, 8), n_rows)
        assert asked / 1.5 - 8 < len(picked) < 1.5 * asked + 8
        # One run is the first; of several the last lies in the second half.
        assert picked[0] == 0
        assert len(picked) <= 8 or picked[-1] + 8 >= n_rows // 2
        np.testing.assert_array_equal(sample.labels, picked)
        np.testing.assert_array_equal(sample.row_weights, picked)
        assert sample.n_threads == 2
        # A sample of a sample is one.
        assert np.isin(sample.sample(wanted // 2 + 1).labels, picked).all()


def test_every_kind_of_block_gives_the_same_rows_for_a_sample():
    """Arrays, sparse rows, encoded frames and mapped rows give the rows that their blocks hold at the same positions."""
    encoder, frame = Encoder(SCHEMA), made_up()
    encoded = EncodedBlocks(encoder, encoder.read(frame))
    whole = encoded.block(0, len(frame))
    fourier = FourierMap(encoder.n_features, 6)
    numbers = np.arange(len(frame))
    for blocks, expected in (
        (encoded, whole),
        (ArrayBlocks(whole), whole),
        (ArrayBlocks(np.asfortranarray(whole, dtype=np.float32)), whole.astype(np.float32)),
        (ArrayBlocks(scipy.sparse.csr_array(whole)), whole),
        (MappedBlocks(encoded, fourier), fourier.transform(whole)),
    ):
        sample = MemorySource(blocks, numbers).sample(500)
        rows = sample.blocks.block(0, sample.n_rows)
        dense = rows.toarray() if scipy.sparse.issparse(rows) else rows
        np.testing.assert_allclose(dense, expected[sample.labels], rtol=0, atol=1e-15)
        assert rows.dtype == expected.dtype
        assert not np.shares_memory(dense, expected)


def made_anew(n_rows=5000):
    """Sources whose blocks are made in each pass, dense and coded."""
    encoder = Encoder(SCHEMA)
    encoded = EncodedBlocks(encoder, encoder.read(made_up(n_rows)))
    mapped = MappedBlocks(ArrayBlocks(np.random.default_rng(1).normal(size=(n_rows, 3))), FourierMap(3, 40))
    labels = np.where(np.arange(n_rows) % 3, 1, -1).astype(np.int8)
    return [MemorySource(blocks, labels, np.linspace(0.0, 1.0, n_rows)) for blocks in (encoded, mapped)]


def many_kinds():
    """The same, and arrays, sparse rows and centred rows, each with a sum over them."""
    encoded, mapped = made_anew()
    rows = np.random.default_rng(3).normal(size=(5000, 6))
    plain, sparse = (
        MemorySource(blocks, encoded.labels) for blocks in (ArrayBlocks(rows), ArrayBlocks(scipy.sparse.csr_array(rows)))
    )
    n_features = encoded.n_features
    centred = Centred(
        encoded.blocks.encoder.row_bound, (0.2,) + (0.0,) * (n_features - 1), 0.9 * encoded.blocks.encoder.row_bound.l2_norm
    )
    loss = ClippedSlopes(LogisticLoss(), 0.5)
    return [
        (encoded, RowSum(loss, encoded.blocks.encoder.row_bound, 1.0, 1)),
        (encoded, RowSum(loss, centred, 1.0, 1)),
        (mapped, RowSum(LogisticLoss(), BallBound(0.5), 0.0, 1)),
        (plain, RowSum(loss, BallBound(1.0), 1.0, 1)),
        (plain, RowSum(ClippedSlopes(Softmax(40), 0.1), BallBound(1.0), 1.0, 1)),
        (sparse, RowSum(loss, BallBound(1.0), 1.0, 1)),
    ]


@pytest.mark.parametrize(
    ("source", "row_sum"), many_kinds(), ids=["encoded", "centred", "mapped", "array", "classes", "sparse"]
)
def test_blocks_for_many_passes_are_clipped_once_and_give_the_same_sums(source, row_sum, monkeypatch):
    """Bit for bit, and no block is made or clipped in a later pass; parts of a block are made when they are asked for."""
    if row_sum.loss.constants.n_outputs > 1:
        source = MemorySource(source.blocks, np.arange(source.n_rows) % row_sum.loss.constants.n_outputs)
    kept = source.for_many_passes(row_sum)
    weights = np.random.default_rng(2).normal(size=(1, row_sum.n_weights(source.n_features)))
    expected = source.sum_over_rows(row_sum, weights).gradient
    assert (kept.n_rows, kept.n_features) == (source.n_rows, source.n_features)
    positions = np.array([1, 7, 4000])
    for ours, theirs in (
        (kept.blocks.block(3, 20), source.blocks.block(3, 20)),
        (kept.copied(positions).blocks.rows, source.copied(positions).blocks.rows),
        (kept.taken(positions).blocks.block(0, 3), source.taken(positions).blocks.block(0, 3)),
    ):
        ours, theirs = (each.toarray() if scipy.sparse.issparse(each) else dense(each) for each in (ours, theirs))
        np.testing.assert_array_equal(ours, theirs)

    def not_again(*_):
        raise AssertionError("a block was made or clipped again")

    monkeypatch.setattr(type(source.blocks), "block", not_again)
    monkeypatch.setattr(type(row_sum.row_bound), "clip", not_again)
    np.testing.assert_array_equal(kept.sum_over_rows(row_sum, weights).gradient, expected)


def coded_rows(loss, moved, monkeypatch):
    """A source of coded rows in blocks of 64, and a sum over them."""
    monkeypatch.setattr("confide.data.arrays.rows_in_sparse_block", lambda n_features: 64)
    columns = {"age": {"low": 17, "high": 90, "knots": 6}, "work": {"categories": list("abcdefgh"), "other": "a"}}
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(17, 90, 5000), "work": rng.choice(list("abcdefgh"), 5000)})
    encoder = Encoder(Schema(columns=columns))
    blocks = EncodedBlocks(encoder, encoder.read(frame))
    several = loss.constants.n_outputs > 1
    labels = rng.integers(3, size=5000) if several else rng.choice([-1, 1], 5000).astype(np.int8)
    source = MemorySource(blocks, labels, rng.uniform(0.0, 2.0, 5000), n_threads=2)
    bound = encoder.row_bound
    middle = (0.1,) * encoder.n_features
    return source, RowSum(
        ClippedSlopes(loss, 0.3), Centred(bound, middle, 0.8 * bound.l2_norm) if moved else bound, 1.0, 1, 1.5
    )


KINDS_OF_CODED_SUMS = (
    pytest.mark.parametrize("loss", [LogisticLoss(), Softmax(3)], ids=["margin", "classes"]),
    pytest.mark.parametrize("moved", [False, True], ids=["as they are", "centred"]),
)


@KINDS_OF_CODED_SUMS[0]
@KINDS_OF_CODED_SUMS[1]
def test_coded_blocks_are_joined(loss, moved, monkeypatch):
    """The same sums up to rounding, over groups of as many rows, eight blocks at a time."""
    source, row_sum = coded_rows(loss, moved, monkeypatch)
    kept = source.for_many_passes(row_sum)
    assert kept.blocks.joined == 8
    assert [block.shape[0] for block in kept.blocks.made] == [512] * 9 + [392]
    assert [(first, end) for _, first, end in kept.groups()] == [(0, 2048), (2048, 4096), (4096, 5000)]
    weights = np.random.default_rng(2).normal(size=(1, row_sum.n_weights(source.n_features)))
    expected = source.sum_over_rows(row_sum, weights).gradient
    np.testing.assert_allclose(kept.sum_over_rows(row_sum, weights).gradient, expected, rtol=1e-12, atol=1e-10)


@KINDS_OF_CODED_SUMS[0]
@KINDS_OF_CODED_SUMS[1]
@pytest.mark.parametrize("n_problems", [7, 8, 300])
def test_blocks_that_were_clipped_once_are_summed_for_many_problems(loss, moved, n_problems, monkeypatch):
    """As many at a time as other blocks have scores in their parts, in joined blocks and in others."""
    source, row_sum = coded_rows(loss, moved, monkeypatch)
    monkeypatch.setattr("confide.data.arrays._SCORE_BYTES", 8 * 512 * 4)
    joined, seen, add_block = source.for_many_passes(row_sum), [], RowSum.add_block
    apart = KeptBlocks(source.blocks, tuple(clipped_once(row_sum, rows) for rows, _, _ in source.counted_blocks()))
    weights = np.random.default_rng(2).normal(size=(n_problems, row_sum.n_weights(source.n_features)))
    expected = source.sum_over_rows(row_sum, weights).gradient

    def noted(self, totals, rows, labels, weights, row_weights=None):
        seen.append(rows.shape[0] * len(weights))
        add_block(self, totals, rows, labels, weights, row_weights)

    monkeypatch.setattr(RowSum, "add_block", noted)
    for kept in (joined, replace(source, blocks=apart)):
        found = kept.sum_over_rows(row_sum, weights).gradient
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-10)
    assert max(seen) <= max(2 * 512 * 4, 64 * n_problems)


def test_blocks_of_which_one_was_clipped_otherwise_are_not_joined():
    """A bound that the rows do not obey makes them dense."""
    encoder = Encoder(Schema(columns={"age": {"low": 17, "high": 90, "knots": 6}}))
    blocks = EncodedBlocks(encoder, encoder.read(pd.DataFrame({"age": np.linspace(17.0, 90.0, 100)})))
    source = MemorySource(blocks, np.ones(100, np.int8))
    row_sum = RowSum(ClippedSlopes(LogisticLoss(), 0.3), GroupBound((encoder.n_features,), (0.5,)), 0.0, 1)
    blocks = source.for_many_passes(row_sum).blocks
    assert type(blocks) is KeptBlocks
    assert blocks.joined == 1


@pytest.mark.parametrize("bound", [BallBound(1.0), BallBound(100.0), Centred(BallBound(2.0), (0.5,) * 6, 1.3)], ids=str)
@pytest.mark.parametrize(
    "loss", [ClippedSlopes(LogisticLoss(), 0.5), ClippedSlopes(Softmax(3), 0.3)], ids=["margin", "classes"]
)
def test_large_arrays_are_clipped_without_a_copy(bound, loss, monkeypatch):
    """The same sums up to rounding, and rows that are clipped nowhere in memory; a block with a huge row stays as it is."""
    monkeypatch.setattr("confide.data.arrays._KEPT_BYTES", 0)
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(9000, 6))
    rows[4096 + 7, 2] = 1e200
    labels = rng.integers(3, size=9000) if loss.constants.n_outputs > 1 else rng.choice([-1, 1], 9000).astype(np.int8)
    row_sum = RowSum(loss, bound, 1.0, 1, 2.0)
    source = MemorySource(ArrayBlocks(rows), labels, rng.uniform(0.0, 3.0, 9000))
    kept = source.for_many_passes(row_sum)
    first, huge, last = kept.blocks.made
    assert type(first.rows) is type(last.rows) is ScaledRows
    assert all(np.shares_memory(block, rows) for block in (first.rows.rows, huge, last.rows.rows))
    weights = rng.normal(size=(1, row_sum.n_weights(6)))
    np.testing.assert_allclose(
        kept.sum_over_rows(row_sum, weights).gradient,
        source.sum_over_rows(row_sum, weights).gradient,
        rtol=1e-12,
        atol=1e-10,
    )
    # The rows that the code multiplies with obey the bound in exact arithmetic.
    block = kept.blocks.made[0].rows
    exact = block.scales.astype(np.longdouble) * rows[:4096]
    if isinstance(bound, Centred):
        exact -= block.shifts * block.centre.astype(np.longdouble)
    else:
        assert block.shifts is None
        assert block.centre is None
    assert np.sqrt((exact * exact).sum(axis=1)).max() <= bound.l2_norm


def test_large_arrays_of_other_kinds_are_read_as_they_are(monkeypatch):
    """Bounds on groups, and single precision: nothing is kept."""
    monkeypatch.setattr("confide.data.arrays._KEPT_BYTES", 0)
    rows, labels = np.ones((10, 2)), np.ones(10, np.int8)
    for given, bound in ((rows, GroupBound((1, 1), (1.0, 1.0))), (rows.astype(np.float32), BallBound(1.0))):
        source = MemorySource(ArrayBlocks(given), labels)
        assert source.for_many_passes(RowSum(LogisticLoss(), bound, 0.0, 1)) is source


def test_too_large_blocks_are_not_kept(monkeypatch):
    """Blocks that need more memory than the limit are made in each pass; no rows, nothing to keep."""
    source, row_sum = made_anew()[1], RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1)
    nothing = source.taken(np.array([], dtype=np.intp))
    assert nothing.for_many_passes(row_sum) is nothing
    needed = 2 * source.blocks.rows_in_block * (40 * 8 + 32)
    monkeypatch.setattr("confide.data.arrays._KEPT_BYTES", needed)
    assert source.for_many_passes(row_sum) is not source
    monkeypatch.setattr("confide.data.arrays._KEPT_BYTES", needed - 1)
    assert source.for_many_passes(row_sum) is source


LEVELS = [f"v{level}" for level in range(60)]


def test_threads_share_a_pass_where_it_gains_by_them(monkeypatch):
    """Not a short one of the kernel, nor rows that Python makes or that SciPy holds. The sums are the same."""
    asked, original = [], arrays.sum_over_groups

    def noted(row_sum, groups, n_features, weights, n_threads, passing):
        asked.append(n_threads)
        return original(row_sum, groups, n_features, weights, n_threads, passing)

    monkeypatch.setattr(arrays, "sum_over_groups", noted)
    encoder, rows = Encoder(Schema(columns={"c": {"categories": LEVELS}})), np.random.default_rng(0).normal(size=(3000, 5))
    short = StoredBlocks(StoredArray(rows), rows_in_block=500)
    assert not short.gains_by_threads(1)
    assert StoredBlocks(StoredArray(np.broadcast_to(rows[:1], (400_000, 5))), rows_in_block=500).gains_by_threads(1)
    wide = StoredBlocks(StoredArray(np.broadcast_to(rows[:1, :1], (30_000, 40))), rows_in_block=500)
    assert (wide.gains_by_threads(1), wide.gains_by_threads(2)) == (False, True)
    sparse, coded = (
        ArrayBlocks(scipy.sparse.csr_array(rows)),
        EncodedBlocks(encoder, encoder.read(pd.DataFrame({"c": LEVELS}))),
    )
    assert encoder.codes_rows
    for blocks, expected in ((ArrayBlocks(rows), 3), (sparse, 1), (coded, 1), (coded.lent(), 1), (sparse.lent(), 1)):
        labels = np.ones(blocks.n_rows, np.int8)
        row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 2)
        weights = np.linspace(-1.0, 1.0, blocks.n_features)[None]
        found = [MemorySource(blocks, labels, n_threads=n).sum_over_rows(row_sum, weights).gradient for n in (1, 3)]
        np.testing.assert_array_equal(*found)
        assert asked[-2:] == [1, expected]
