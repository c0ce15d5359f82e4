"""Sums of the compiled kernel are those of `RowSum` to rounding, in every layout, loss and precision."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from confide.compiled.gradient_sums import CompiledSum, code_of
from confide.compiled.stored_rows import LEVELS, LINE, StoredArray, StoredCodes, StoredColumn
from confide.data.arrays import ArrayBlocks, EncodedBlocks, MemorySource
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import MeanLoss, SquaredLoss
from confide.features.encoder import Encoder
from confide.features.schema import Schema

LOSSES = [
    LogisticLoss(),
    LogisticHinge(0.25),
    HuberHinge(0.3),
    SmoothHinge(2.0**-12),
    SquaredLoss(2.0, 1.5),
    MeanLoss(3.0, 2.0),
]


@pytest.fixture(params=["", "plain"])
def instructions(request, monkeypatch):
    """Sums by the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


def made_up(n, d, dtype, seed=0):
    """Rows of several lengths, and labels."""
    rng = np.random.default_rng(seed)
    rows = (rng.normal(size=(n, d)) * rng.uniform(0.1, 2.0, size=(n, 1)) / np.sqrt(d)).astype(dtype)
    return rows, rng.choice([-1, 1], size=n).astype(np.int8)


def compared(kernel, source, row_sum, weights, radius=np.inf):
    """The gradient of the kernel must be that of the row sum."""
    stored = source.as_stored(np.isfinite(radius))
    asked = CompiledSum(kernel, code_of(row_sum.loss), row_sum.intercept, row_sum.largest_weight, radius)
    found = stored.sum_over_rows(asked, weights).gradient
    expected = source.sum_over_rows(row_sum, weights).gradient
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12 * (1 + source.n_rows))
    assert np.abs(expected).max() > 1e-6
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(1, 1), (3, 2), (5, 3), (2, 4), (259, 5), (700, 20), (300, 27), (65, 103)])
@pytest.mark.parametrize("order", ["rows", "columns", "gaps", "odd"])
def test_dense_rows_of_every_shape(compiled, instructions, dtype, shape, order):
    """Rows that lie one after the other, columns that do, rows with gaps between, and an odd start in memory."""
    rows, labels = made_up(*shape, dtype)
    if order == "columns":
        rows = np.asfortranarray(rows)
    elif order == "gaps":
        wide = np.full((shape[0] * 2, shape[1] * 2), np.nan, dtype)
        wide[::2, : shape[1]] = rows
        rows = wide[::2, : shape[1]]
    elif order == "odd":
        room = np.empty(rows.nbytes + rows.itemsize, np.uint8)[rows.itemsize :].view(dtype)
        room[...] = rows.ravel()
        rows = room.reshape(shape)
    weights = np.random.default_rng(1).normal(size=(1, shape[1] + 1))
    before = rows.copy()
    source = MemorySource(ArrayBlocks(rows), labels)
    compared(compiled, source, RowSum(LogisticLoss(), BallBound(np.inf), 0.7, 1), weights)
    # Shortened rows are those of the bound.
    compared(compiled, source, RowSum(LogisticLoss(), BallBound(0.6), 0.7, 1), weights, 0.6 * (1.0 - 2.0**-40))
    np.testing.assert_array_equal(rows, before)


@pytest.mark.parametrize("order", ["rows", "columns", "gaps"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("loss", [*LOSSES[:3], SmoothHinge(0.5), *LOSSES[4:]], ids=lambda loss: loss.constants.name)
def test_hessians_of_every_loss_that_the_kernel_knows(compiled, instructions, loss, dtype, order):
    """In single precision; of weighted and of shortened rows, in every order of memory."""
    rows, labels = made_up(300, 13, dtype)
    rng = np.random.default_rng(4)
    rows = {"rows": rows, "columns": np.asfortranarray(rows), "gaps": np.repeat(rows, 2, axis=1)[:, ::2]}[order]
    targets = labels if loss.constants.monotone else rng.normal(size=300) * 3.0
    counts = rng.uniform(-0.5, 2.5, size=300)
    weights = rng.normal(size=(1, 14))
    row_sum = RowSum(loss, BallBound(0.6), 0.7, 2, largest_weight=1.5)
    source = MemorySource(ArrayBlocks(rows), targets, counts)
    asked = CompiledSum(compiled, code_of(loss), 0.7, 1.5, 0.6 * (1.0 - 2.0**-40), order=2)
    found, expected = source.as_stored(True).sum_over_rows(asked, weights), source.sum_over_rows(row_sum, weights)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-5, atol=1e-5 * expected.hessian.max())
    assert expected.hessian.max() > 0.1


@pytest.mark.parametrize("n_rows", [3, 50, 300])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_hessian_of_a_part_of_the_rows_stands_for_all_of_them(compiled, instructions, n_rows, weighted):
    """That of the first rows of each block, in proportion; gradients are those of all rows."""
    rows, labels = made_up(n_rows, 13, "float64")
    counts = np.random.default_rng(3).uniform(0.0, 1.5, n_rows) if weighted else None
    part, weights = slice(0, -(-n_rows // 8)), np.linspace(-1.0, 1.0, 14)[None]
    asked = CompiledSum(compiled, code_of(LogisticLoss()), 0.7, 1.5, 0.6, order=2)
    found, whole, of_part = (asked.start(1, 13) for _ in range(3))
    replace(asked, share=8).add_block(found, StoredArray(rows), labels, weights, counts)
    asked.add_block(whole, StoredArray(rows), labels, weights, counts)
    asked.add_block(of_part, StoredArray(rows[part]), labels[part], weights, None if counts is None else counts[part])
    np.testing.assert_allclose(found.gradient, whole.gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.hessian, of_part.hessian * (n_rows / part.stop), rtol=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_loss_that_the_kernel_knows(compiled, instructions, loss, weighted):
    """Targets beyond their bounds, and weights of rows that are no numbers or beyond their bound."""
    rows, labels = made_up(900, 6, "float64")
    rng = np.random.default_rng(2)
    targets = labels if loss.constants.monotone else rng.normal(size=900) * 3.0
    if not loss.constants.monotone:
        targets[5] = np.nan
    counts = None
    if weighted:
        counts = rng.uniform(-0.5, 2.5, size=900)
        counts[::50] = np.nan
    row_sum = RowSum(loss, BallBound(np.inf), 0.0, 1, largest_weight=1.5 if weighted else 0.5)
    compared(compiled, MemorySource(ArrayBlocks(rows), targets, counts), row_sum, rng.normal(size=(1, 6)) * 2.0)


@pytest.mark.parametrize("order", [1, 2])
def test_counts_with_exposures_are_those_of_numpy(compiled, instructions, order):
    """Of arrays and of codes, in several blocks; exposures beyond their bounds, and one that is no number, the least."""
    rng, n = np.random.default_rng(5), 901
    loss, bound = MeanLoss(6.0, 4.0, exposure=(0.5, 20.0)), BallBound(np.inf)
    targets = np.zeros(n, [("count", float), ("exposure", float)])
    targets["count"], targets["exposure"] = rng.normal(size=n) * 5.0, rng.uniform(0.1, 30.0, n)
    targets["exposure"][::50] = np.nan
    weights, counts = rng.normal(size=(1, 14)), rng.uniform(-0.5, 2.5, n)
    frame = pd.DataFrame({name: rng.normal(size=n) for name in "abcdefghijklm"})
    schema = Schema({name: {"low": -2.0, "high": 2.0} for name in frame})
    encoder = Encoder(schema)
    rows, _ = made_up(n, 13, "float64")
    for blocks in (ArrayBlocks(rows), EncodedBlocks(encoder, encoder.read(frame))):
        source = MemorySource(blocks, targets, counts)
        asked = CompiledSum(compiled, code_of(loss), 0.7, 1.5, np.inf, order=order, exposure=loss.exposure)
        found = source.as_stored(False).sum_over_rows(asked, weights)
        expected = source.sum_over_rows(RowSum(loss, bound, 0.7, order, 1.5), weights)
        np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-10, atol=1e-9)
        np.testing.assert_allclose(
            found.hessian, expected.hessian, rtol=1e-5, atol=1e-5 * np.abs(expected.hessian).max(initial=0)
        )
        assert np.abs(expected.gradient).max() > 1.0
        alike = replace(asked, exposure=(1.0, 1.0))
        assert np.abs(source.as_stored(False).sum_over_rows(alike, weights).gradient - expected.gradient).max() > 1.0


def test_scores_of_any_size_have_the_right_slopes(compiled, instructions):
    """The exponential neither overflows nor loses digits; weights that are no numbers give none."""
    scores = np.concatenate([np.linspace(-40.0, 40.0, 4001), [-1e300, 1e300, -800.0, 800.0, 0.0]])
    labels = np.ones(scores.size, np.int8)
    asked = CompiledSum(compiled, code_of(LogisticLoss()), 0.0, 1.0, np.inf)
    for score, label in zip(scores, labels, strict=True):
        totals = asked.start(1, 1)
        asked.add_block(totals, StoredArray(np.array([[1.0]])), np.array([label]), np.array([[score]]))
        with np.errstate(over="ignore"):
            expected = -1.0 / (1.0 + np.exp(score))
        assert abs(totals.gradient[0, 0] - expected) <= 1e-15 * abs(expected) + 1e-300
    totals = asked.start(1, 1)
    asked.add_block(totals, StoredArray(np.ones((9, 1))), np.ones(9, np.int8), np.array([[np.nan]]))
    assert np.isnan(totals.gradient).all()


def table(n, seed=3):
    """A frame of all kinds of columns, and its schema."""
    rng = np.random.default_rng(seed)
    gaps = rng.uniform(-1.5, 1.5, n)
    gaps[rng.random(n) < 0.1] = np.nan
    frame = {
        "line": rng.uniform(-3, 3, n),
        "curve": rng.uniform(-3, 3, n).astype(np.float32),
        "gaps": gaps,
        "bent_gaps": np.roll(gaps, 7),
        "log": np.exp(rng.normal(size=n)),
        "listed": rng.uniform(0, 1, n),
        "two": rng.choice(["a", "b"], n),
        "many": rng.choice([f"c{i}" for i in range(300)], n),
        "few": rng.choice(["x", "y", "z"], n),
    }
    columns = {
        "line": {"low": -2, "high": 2},
        "curve": {"low": -2, "high": 2, "knots": 6},
        "gaps": {"low": -1, "high": 1, "missing": True},
        "bent_gaps": {"low": -1, "high": 1, "missing": True, "knots": 3},
        "log": {"low": 0, "high": 20, "scale": "log"},
        "listed": {"low": 0, "high": 1, "knots": [0.1, 0.5]},
        "two": {"categories": ["a", "b"]},
        "many": {"categories": [f"c{i}" for i in range(250)], "other": True},
        "few": {"categories": ["x", "y"], "other": False},
    }
    return pd.DataFrame(frame), Schema(columns=columns)


def encoded(n, n_threads=1):
    """A source of coded rows."""
    frame, schema = table(n)
    encoder = Encoder(schema)
    labels = np.random.default_rng(4).choice([-1, 1], size=n).astype(np.int8)
    return MemorySource(EncodedBlocks(encoder, encoder.read(frame, refuse=False)), labels, n_threads=n_threads), encoder


@pytest.mark.parametrize("n", [1, 300, 30_000])
def test_codes_of_every_kind_of_column(compiled, instructions, n):
    """Lines, curves, gaps, categories with one column and with many: what is never expanded is summed all the same."""
    source, encoder = encoded(n)
    row_sum = RowSum(LogisticLoss(), encoder.row_bound, 1.0, 1)
    compared(compiled, source, row_sum, np.random.default_rng(5).normal(size=(3, encoder.n_features + 1)))


@pytest.mark.parametrize("loss", [*LOSSES[:3], SmoothHinge(0.5), *LOSSES[4:]], ids=lambda loss: loss.constants.name)
@pytest.mark.parametrize("intercept", [0.0, 0.7])
def test_hessians_of_every_kind_of_column(compiled, instructions, loss, intercept):
    """Lines, curves, gaps and categories, each beside each other, with weighted rows; nothing is expanded for them."""
    source, encoder = encoded(3000)
    rng = np.random.default_rng(4)
    targets = source.labels if loss.constants.monotone else rng.normal(size=3000) * 3.0
    source = replace(source, labels=targets, row_weights=rng.uniform(-0.5, 2.5, size=3000))
    row_sum = RowSum(loss, encoder.row_bound, intercept, 2, largest_weight=1.5)
    weights = rng.normal(size=(1, row_sum.n_weights(encoder.n_features))) * 0.3
    asked = CompiledSum(compiled, code_of(loss), intercept, 1.5, np.inf, order=2)
    found, expected = source.as_stored(False).sum_over_rows(asked, weights), source.sum_over_rows(row_sum, weights)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(found.hessian, expected.hessian, rtol=1e-5, atol=1e-6 * expected.hessian.max())
    # Few rows have a rare level, and none of these may lie in the joint of a hinge.
    assert np.mean(np.diag(expected.hessian[0]) > 0.0) > 0.6


def test_sums_are_equal_to_the_bit_for_any_number_of_threads(compiled):
    """Groups are added in their order, whichever thread summed them."""
    asked = CompiledSum(compiled, code_of(LogisticLoss()), 1.0, 1.0, np.inf)
    for make in (lambda k: encoded(60_000, k)[0], lambda k: MemorySource(ArrayBlocks(ROWS), LABELS, n_threads=k)):
        weights = np.random.default_rng(6).normal(size=(1, make(1).n_features + 1))
        found = [make(k).as_stored(False).sum_over_rows(asked, weights).gradient for k in (1, 2, 3)]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])


ROWS, LABELS = made_up(300_000, 4, "float64")


def test_losses_that_the_kernel_does_not_know_have_no_code():
    """A subclass, and a loss that asks for lengths of rows, may have other slopes."""
    assert code_of(Hinge()) is None
    assert code_of(SquaredLoss(1.0, 1.0, by_length=True)) is None

    class Other(LogisticLoss):
        """A loss of somebody else."""

    assert code_of(Other()) is None


def test_what_does_not_fit_is_refused_before_memory_is_read(compiled):
    """Lengths, types, levels and places of columns."""
    rows, labels = made_up(10, 4, "float64")
    out, weights, loss = np.zeros(5), np.zeros(4), (0, 0.0, 0.0, 0.0)

    def dense(rows=rows, labels=labels, counts=None, weights=weights, loss=loss, out=out, products=None):
        compiled.dense_sums(rows, np.inf, labels, counts, 1.0, weights, 0.0, *loss, out, products, False)

    dense()
    for wrong in (
        {"labels": labels[:9]},
        {"labels": labels.astype(np.int16)},
        {"counts": np.ones(9)},
        {"counts": np.ones(10, np.float32)},
        {"weights": np.zeros(3)},
        {"out": np.zeros(4)},
        {"rows": rows.astype(int)},
        {"rows": rows.ravel()},
        {"products": np.zeros(15)},
        {"products": np.zeros(36)},
        {"products": np.zeros((4, 4))},
        {"products": np.zeros(16, np.float32)},
        {"rows": np.zeros((10, 65)), "weights": np.zeros(65), "out": np.zeros(66), "products": np.zeros(65 * 65)},
        {"rows": np.zeros((10, 64)), "weights": np.zeros(64), "out": np.zeros(65), "products": np.zeros(65 * 65)},
        {"loss": (9, 0.0, 0.0, 0.0)},
        {"loss": (-1, 0.0, 0.0, 0.0)},
    ):
        with pytest.raises(ValueError, match="kernel"):
            dense(**wrong)
    out.setflags(write=False)
    with pytest.raises((ValueError, BufferError)):
        dense()


def test_columns_that_do_not_fit_are_refused_and_unknown_levels_count_as_none(compiled):
    """A place outside of the weights would lead outside of an array."""
    codes = np.array([0, 1, 2, -1, 99, -128], np.int8)
    labels, weights, out = np.ones(6, np.int8), np.zeros(3), np.zeros(4)

    def coded(column, codes=codes, n=6, block=6, products=None):
        return compiled.coded_sums(
            (column.with_codes(codes),), n, block, labels, None, 1.0, weights, 0.0, 3, 9.0, -1.0, 1.0, out, products, False
        )

    assert coded(StoredColumn(LEVELS, 0, 4)) is True
    # Each slope is 0 - 1.
    np.testing.assert_array_equal(out, [-1.0, -1.0, -1.0, -6.0])
    height = np.ones(1)
    for wrong in (
        StoredColumn(LEVELS, 1, 4),
        StoredColumn(LEVELS, -1, 4),
        StoredColumn(LEVELS, 0, 0),
        StoredColumn(LEVELS, 0, 4, values=np.ones(3)),
        StoredColumn(LEVELS, 0, 4, indicator=0),
        StoredColumn(7, 0, 1),
    ):
        with pytest.raises(ValueError, match="kernel"):
            coded(wrong)
    numbers = np.zeros(6)
    for wrong in (
        StoredColumn(LINE, 3, 1),
        StoredColumn(LINE, 0, 1, indicator=3),
        StoredColumn(1, 0, 3, high=2.0, values=height),
        StoredColumn(1, 0, 3, high=1.9, middle=5.0, values=height),
        StoredColumn(1, 1, 3, high=1.9, values=height),
        StoredColumn(1, 0, 3, high=1.9),
    ):
        with pytest.raises(ValueError, match="kernel"):
            coded(wrong, numbers)
    for others in (numbers[:5], numbers.astype(int), codes):
        with pytest.raises(ValueError, match="kernel"):
            coded(StoredColumn(LINE, 0, 1), others)
    for block in (0, -1):
        with pytest.raises(ValueError, match="blocks of one row or more"):
            coded(StoredColumn(LEVELS, 0, 4), block=block)
    for products in (np.zeros(8), np.zeros(15), np.zeros(25), np.zeros(9, np.float32)):
        with pytest.raises(ValueError, match="kernel"):
            coded(StoredColumn(LEVELS, 0, 4), products=products)


def test_products_of_many_columns_are_refused(compiled):
    """The kernel has room for those of few lines and few encoded columns."""
    numbers, labels = np.zeros(6), np.ones(6, np.int8)
    rest = labels, None, 1.0

    def coded(columns, d, width):
        given = tuple(column.with_codes(numbers if column.kind == LINE else labels) for column in columns)
        out, products = np.zeros(d + 1), np.zeros(width * width)
        compiled.coded_sums(given, 6, 6, *rest, np.zeros(d), 0.0, 3, 9.0, -1.0, 1.0, out, products, False)

    lines = [StoredColumn(LINE, place, 1) for place in range(65)]
    coded(lines[:64], 64, 64)
    coded(lines[:63], 63, 64)
    coded([StoredColumn(LEVELS, 0, 513)], 512, 512)
    for columns, d, width in ((lines, 65, 65), (lines[:64], 64, 65), ([StoredColumn(LEVELS, 0, 513)], 512, 513)):
        with pytest.raises(ValueError, match="products"):
            coded(columns, d, width)


def test_rows_of_no_block_add_nothing(compiled):
    """A block without rows is possible where rows were divided."""
    asked = CompiledSum(compiled, code_of(LogisticLoss()), 1.0, 1.0, np.inf)
    totals = asked.start(1, 4)
    asked.add_block(totals, StoredArray(np.empty((0, 4))), np.empty(0, np.int8), np.ones((1, 5)))
    asked.add_block(totals, StoredCodes(4, (), (), 0), np.empty(0, np.int8), np.ones((1, 5)))
    np.testing.assert_array_equal(totals.gradient, np.zeros((1, 5)))
    assert asked.completed(totals) is totals
