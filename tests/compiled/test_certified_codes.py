"""Gradients for certificates by the kernel, over codes of a schema: within theorem 2, and those of NumPy."""

from __future__ import annotations

import math
from dataclasses import replace

import mpmath
import numpy as np
import pandas as pd
import pytest

import confide
from confide.compiled.stored_rows import StoredCodes
from confide.compiled.sums import ClippedSum, by_kernel
from confide.data import streams
from confide.data.arrays import ArrayBlocks, EncodedBlocks, MemorySource
from confide.data.streams import KeptSample, LabelledCodes, Reading, StreamedSource
from confide.erm.coded_rows import dense
from confide.erm.group_bounds import GroupBound
from confide.erm.linear_sums import SumsOfTwoParts
from confide.erm.losses import HuberHinge, LogisticHinge, LogisticLoss, SmoothHinge
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.erm.target_losses import SquaredLoss
from confide.features.columns import NumberColumn
from confide.features.encoder import Encoder
from confide.features.schema import Schema
from tests.compiled.test_sums import exact_rows, exact_total
from tests.features.test_coded_columns import COLUMNS, ROWS, SCHEMA

UNIT = 2.0**-53
LOSSES = [LogisticLoss(), LogisticHinge(0.5), HuberHinge(0.3), SmoothHinge(0.2), SquaredLoss(0.8, 1.0)]
LINES = {f"x{i}": {"low": -0.3 * i - 0.1, "high": 1.7 * i + 0.9} for i in range(6)}
HATS = {f"x{i}": {"low": -0.3, "high": 1.7, "knots": 3 + i} for i in range(4)}


@pytest.fixture(params=["", "plain"], autouse=True)
def instructions(request, monkeypatch, compiled):
    """Sums by the instructions of this processor, and by those that every processor has."""
    monkeypatch.setenv("CONFIDE_COMPILED", request.param)


def encoded(columns, frame, row_weights=None, n_threads=1, labels=None):
    """A source of the rows of a frame, and the bound on them."""
    encoder = Encoder(Schema(columns=columns))
    codes = encoder.read(pd.DataFrame(frame), refuse=False)
    if labels is None:
        labels = np.where(np.arange(codes.n_rows) % 3 > 0, 1, -1)
    return MemorySource(EncodedBlocks(encoder, codes), labels.astype(np.int8), row_weights, n_threads), encoder.row_bound


def many(columns, n_rows, seed=0):
    """A frame of numbers about their bounds and of levels."""
    rng, frame = np.random.default_rng(seed), {}
    for name, column in columns.items():
        if "categories" in column:
            frame[name] = rng.choice(column["categories"], n_rows)
        else:
            width = column["high"] - column["low"]
            frame[name] = rng.uniform(column["low"] - 0.1 * width, column["high"] + 0.1 * width, n_rows)
    return frame


def in_groups(source, row_sum):
    """The blocks that a pass by the kernel meets, each as long as a group of others."""
    compiled_sum = by_kernel(row_sum, 1, source.blocks.rows_in_block)
    assert type(compiled_sum) is ClippedSum
    return [rows for rows, _, _ in source.rows_for(compiled_sum).counted_blocks()]


def by_both(monkeypatch, source, row_sum, weights):
    """The sum by the kernel and by NumPy."""
    assert {type(rows) for rows in in_groups(source, row_sum)} == {StoredCodes}
    found = source.sum_over_rows(row_sum, weights).gradient[0]
    with monkeypatch.context() as numpy_alone:
        numpy_alone.setenv("CONFIDE_COMPILED", "0")
        return found, source.sum_over_rows(row_sum, weights).gradient[0]


@pytest.mark.parametrize("loss", [*LOSSES, SumsOfTwoParts(), SumsOfTwoParts(4.0)], ids=str)
def test_sums_are_those_of_numpy(monkeypatch, loss):
    """Over columns of every kind, cells that no check lets pass, and weights of rows below 0, too large and not a number."""
    frame = {name: values * 40 for name, values in ROWS.items()}
    counts = np.random.default_rng(1).uniform(-0.5, 2.5, 240)
    counts[::7] = np.nan
    for intercept, of_rows, largest in ((0.0, None, 1.5), (0.7, counts, 1.5), (0.7, None, 0.8)):
        source, bound = encoded(COLUMNS, frame, of_rows)
        row_sum = RowSum(loss, bound, intercept, 1, largest)
        weights = np.random.default_rng(2).normal(size=(1, row_sum.n_weights(source.n_features)))
        # A category without a level is not within a linked group, so those rows are left out here.
        whole = MemorySource(
            source.blocks.taken(np.flatnonzero(np.arange(240) % 6 != 3)), np.delete(source.labels, range(3, 240, 6))
        )
        if of_rows is not None:
            whole = MemorySource(whole.blocks, whole.labels, np.delete(of_rows, range(3, 240, 6)))
        for each in (source, whole):
            found, expected = by_both(monkeypatch, each, row_sum, weights)
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-11)


def test_groups_of_short_blocks_are_short(monkeypatch):
    """Rows without their features are in blocks as long as those with them, so chains of additions are no longer."""
    source, bound = encoded(HATS, many(HATS, 5000))
    short, row_sum = (
        replace(source, blocks=replace(source.blocks, rows_in_block=64)),
        RowSum(SumsOfTwoParts(), bound, 0.5, 1),
    )
    assert [rows.n_rows for rows in in_groups(short, row_sum)] == [2048, 2048, 904]
    found, expected = by_both(monkeypatch, short, row_sum, np.zeros((1, row_sum.n_weights(source.n_features))))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_adult_has_the_same_sums(monkeypatch):
    """Real rows in several groups of blocks, with straight lines and with knots."""
    data = confide.datasets.load_adult()
    with_knots = tuple(replace(each, knots=6) if isinstance(each, NumberColumn) else each for each in data.schema.columns)
    for columns in (data.schema.columns, with_knots):
        encoder = Encoder(Schema(columns=columns))
        source = MemorySource(
            EncodedBlocks(encoder, encoder.read(data.X_train)),
            np.where(data.y_train == data.y_train.iloc[0], 1, -1).astype(np.int8),
        )
        row_sum = RowSum(LogisticLoss(), encoder.row_bound, 1.0, 1)
        weights = np.random.default_rng(3).normal(size=(1, encoder.n_features + 1))
        found, expected = by_both(monkeypatch, source, row_sum, weights)
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-9)
        assert (found != expected).any()


def cancelling(weights):
    """Weights that nearly cancel each other in pairs."""
    weights[0, 1::2] = -weights[0, : weights.size // 2 * 2 : 2] * (1.0 + 2.0**-30)
    return weights


WEIGHTS = {"moderate": lambda w: 3.0 * w, "large": lambda w: 1e4 * w, "cancelling": lambda w: cancelling(40.0 * w)}


@pytest.mark.parametrize("change", WEIGHTS.values(), ids=WEIGHTS)
@pytest.mark.parametrize(
    "loss", [LogisticLoss(), HuberHinge(2.0**-12), SmoothHinge(0.2)], ids=lambda loss: loss.constants.name
)
@pytest.mark.parametrize("columns", [LINES, HATS, COLUMNS], ids=["lines", "hats", "all kinds"])
def test_the_error_is_within_theorem_2(columns, loss, change):
    """Against 60 digits, with the allowance of one block: no ridge, no noise, and the numbers of the theorem."""
    worst = 0.0
    for n, seed in ((1, 0), (9, 1), (60, 2)):
        rng = np.random.default_rng(seed)
        source, bound = encoded(columns, many(columns, n, seed), rng.uniform(0.0, 2.0, n))
        row_sum = RowSum(loss, bound, 0.5, 1, 1.5)
        size = row_sum.n_weights(source.n_features)
        weights = change(rng.normal(size=(1, size)))
        assert {type(rows) for rows in in_groups(source, row_sum)} == {StoredCodes}
        found, rows = source.sum_over_rows(row_sum, weights).gradient[0], dense(source.blocks.block(0, n))
        with mpmath.workdps(60):
            exact = exact_total(row_sum, exact_rows(row_sum, rows), source.labels, weights, source.row_weights)
            apart = mpmath.fsum((mpmath.mpf(float(one)) - other) ** 2 for one, other in zip(found, exact, strict=True))
            longest = math.hypot(bound.l2_norm, 0.5)
            scores = (2 * size + 5) * loss.constants.smoothness * longest * float(np.linalg.norm(weights))
            allowed = 1.01 * UNIT * n * 1.5 * longest * (n + size + 5 + 13 + scores)
            worst = max(worst, float(mpmath.sqrt(apart) / allowed))
    # At large weights most slopes are 0 or 1, without an error.
    assert 0.0 < worst <= 1.0


def entries_of(source, place):
    """(n, d): the entries for which the kernel stands, but for one rounding: rows one by one at weights 0."""
    row_sum, d = RowSum(LogisticLoss(), source.blocks.encoder.row_bound, 0.0, 1), source.n_features
    found = [
        MemorySource(source.blocks.taken(np.array([row])), np.ones(1, np.int8)).sum_over_rows(row_sum, np.zeros((1, d)))
        for row in range(source.n_rows)
    ]
    return -2.0 * np.array([each.gradient[0] for each in found])[:, place]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-0.1, 0.7), (1e6, 1e6 + 0.3), (3e-7, 2e5), (-1e300, 1e300)])
def test_a_line_errs_by_at_most_eight_units(kind, low, high):
    """Range and number are subtracted alike, so what is lost there is lost by both."""
    columns = {**LINES, "x": {"low": low, "high": high}}
    rng = np.random.default_rng(0)
    with np.errstate(over="ignore"):
        frame = {name: np.zeros(60) for name in LINES} | {"x": (low + (high - low) * rng.uniform(0.0, 1.0, 60)).astype(kind)}
    source, _ = encoded(columns, frame)
    place = source.n_features - 1
    apart = np.abs(entries_of(source, place) - dense(source.blocks.block(0, 60))[:, place])
    assert apart.max() <= 8.1 * UNIT


def test_hats_err_by_at_most_two_units():
    """Their heights add up to a little less than 1."""
    source, _ = encoded(HATS, many(HATS, 150))
    apart = np.abs(entries_of(source, slice(None)) - dense(source.blocks.block(0, 150)))
    assert 0.0 < apart.max() <= 2.5 * UNIT


CHAINS = {
    "a line": ({"x": {"low": -1, "high": 1}}, np.ones(2048), -1),
    "few levels": ({"x": {"categories": list("abc")}}, np.repeat("c", 2048), -1),
    "many levels": ({"x": {"categories": [f"l{i}" for i in range(300)]}}, np.repeat("l299", 2048), -1),
    "two levels": ({"x": {"categories": list("ab")}}, np.repeat("b", 2048), -1),
    "hats": ({"x": {"low": -1, "high": 1, "knots": 3}}, np.zeros(2048), -3),
    "many hats": ({"x": {"low": -1, "high": 1, "knots": 299}}, np.zeros(2048), -151),
}


@pytest.mark.parametrize(("column", "cells", "place"), CHAINS.values(), ids=CHAINS)
def test_chains_of_additions_are_no_longer_than_those_of_numpy(column, cells, place):
    """Terms just below half a unit are lost, one by one, beside a large one: as many as the longest chain has additions.

    With blocks no more are lost than the allowance has room for. In one long chain of many bins more would be lost.
    """
    frame = {name: np.zeros(2048) for name in LINES} | {"x": cells}
    counts = np.full(2048, 0.24 * 2.0**-53)
    counts[0] = 2.0
    source, bound = encoded({**LINES, **column}, frame, counts, labels=np.ones(2048))
    row_sum, d = RowSum(LogisticLoss(), bound, 0.0, 1, 2.0), source.n_features
    whole = in_groups(source, row_sum)[0]

    def lost(block):
        compiled_sum = by_kernel(row_sum, 1, block)
        totals = compiled_sum.start(1, d)
        compiled_sum.add_block(totals, whole, source.labels[: whole.shape[0]], np.zeros((1, d)), counts[: whole.shape[0]])
        height = float(dense(source.blocks.block(0, 1))[0, place])
        exact = -0.5 * height * (2.0 + (whole.shape[0] - 1) * 0.24 * 2.0**-53)
        return abs(totals.gradient[0, place] - exact) / UNIT

    assert lost(64) <= 64 + 32
    if column["x"].get("knots", 0) > 256 or len(column["x"].get("categories", ())) > 256:
        assert lost(2048) > 1.5 * lost(64)


def test_sums_are_equal_to_the_bit_in_memory_in_a_stream_and_for_any_number_of_threads(monkeypatch):
    """Pieces of a stream are whole groups of blocks."""
    monkeypatch.setattr(streams, "_PIECE_BYTES", 1)
    schema = Schema(columns=COLUMNS, target={"column": "y", "negative": 0, "positive": 1})
    reading = Reading(Encoder(schema), (0, 1))
    n = 2 * reading.rows_in_piece + 4321
    frame = pd.DataFrame(many(COLUMNS, n)).assign(y=np.arange(n) % 2)
    whole = reading.piece(frame, refuse=True)

    def pieces():
        for first in range(0, n, reading.rows_in_piece):
            yield whole.taken(slice(first, first + reading.rows_in_piece))

    row_sum = RowSum(LogisticLoss(), reading.encoder.row_bound, 1.0, 1)
    weights = np.random.default_rng(4).normal(size=(1, reading.n_features + 1))
    assert isinstance(whole, LabelledCodes)
    found = reading.source(whole).sum_over_rows(row_sum, weights).gradient
    for n_threads in (1, 2, 3):
        stream = StreamedSource(pieces, reading, n, KeptSample(1), n_threads)
        np.testing.assert_array_equal(stream.sum_over_rows(row_sum, weights).gradient, found)
        memory = MemorySource(reading.source(whole).blocks, whole.labels, None, n_threads)
        np.testing.assert_array_equal(memory.sum_over_rows(row_sum, weights).gradient, found)


@pytest.mark.parametrize("place", [0, 70, 199])
def test_a_row_without_a_level_in_a_linked_category_is_summed_by_numpy(monkeypatch, place):
    """The bound gives it the first level. The kernel would leave the category out."""
    columns = {**LINES, "c": {"categories": list("abc"), "other": True, "missing": True}}
    source, bound = encoded(columns, many(columns, 200))
    codes = source.blocks.codes
    levels = codes.columns[-1].copy()
    levels[place] = -1
    lacking = type(codes)(codes.schema, (*codes.columns[:-1], levels))
    source = MemorySource(EncodedBlocks(source.blocks.encoder, lacking), source.labels)
    row_sum = RowSum(LogisticLoss(), bound, 0.0, 1)
    found, expected = by_both(monkeypatch, source, row_sum, np.ones((1, source.n_features)))
    np.testing.assert_array_equal(found, expected)
    clipped = bound.clip(dense(source.blocks.block(0, 200)))
    assert clipped[place, 6] == 1.0
    np.testing.assert_allclose(
        found, (source.labels * row_sum.loss.derivative(source.labels * clipped.sum(axis=1))) @ clipped
    )


def changed_bound(bound, **changes):
    fields = {"sizes": bound.sizes, "scales": bound.scales, "linked": bound.linked, **changes}
    return GroupBound(**fields)


def test_numpy_makes_sums_that_the_kernel_is_not_trusted_with():
    """Of rows with another bound, of narrow tables, of interactions, and of ranges at the ends of doubles."""
    source, bound = encoded(LINES, many(LINES, 20))
    assert source.blocks.as_certified(bound) is not None
    smaller = changed_bound(bound, scales=(0.5, *bound.scales[1:]))
    for other in (smaller, changed_bound(bound, linked=(True,) * 6), BallBound(9.0), BallBound(np.inf), None):
        assert source.blocks.as_certified(other) is None
    narrow = {f"x{i}": {"low": 0, "high": 1} for i in range(4)}
    for columns in (
        narrow,
        {**LINES, "x": {"low": 0, "high": 2.0**-901}},
        {**LINES, "x": {"low": 0, "high": 1.5 * 2.0**902}},
    ):
        blocks = encoded(columns, many(columns, 3))[0].blocks
        assert blocks.as_certified(blocks.encoder.row_bound) is None
    for columns in (
        {**narrow, "x": {"low": 0, "high": 1}},
        {**LINES, "x": {"low": 0, "high": 2.0**-899}},
        {**LINES, "x": {"low": 0, "high": 1.5 * 2.0**900}},
        {**LINES, "x": {"low": 0, "high": 1, "knots": 1000}},
    ):
        blocks = encoded(columns, many(columns, 3))[0].blocks
        assert blocks.as_certified(blocks.encoder.row_bound) is not None
    crossed = Encoder(Schema(columns=LINES, interact=[{"columns": ["x0", "x1"]}]))
    blocks = EncodedBlocks(crossed, crossed.read(pd.DataFrame(many(LINES, 3))))
    assert blocks.as_certified(crossed.row_bound) is None
    assert ArrayBlocks(dense(source.blocks.block(0, 20)), are_copies=True).as_certified(bound) is None
    assert source.blocks.in_single_precision().as_certified(bound) is None
    assert (
        type("Other", (EncodedBlocks,), {"__slots__": ()})(source.blocks.encoder, source.blocks.codes).as_certified(bound)
        is None
    )


@pytest.mark.parametrize("weight", [2.0**401, np.nan])
def test_weights_that_are_too_large_for_the_kernel_are_left_to_numpy(monkeypatch, weight):
    source, bound = encoded(LINES, many(LINES, 20))
    weights = np.full((1, 6), weight)
    with np.errstate(over="ignore", invalid="ignore"):
        found, expected = by_both(monkeypatch, source, RowSum(LogisticLoss(), bound, 0.0, 1), weights)
    np.testing.assert_array_equal(found, expected)


def test_rows_that_were_cut_know_their_place():
    """A part of a part reads the rows that it holds, by NumPy too; a solver is given the codes alone."""
    source, bound = encoded(LINES, many(LINES, 90))
    rows = in_groups(source, RowSum(LogisticLoss(), bound, 0.0, 1))[0][10:60][5:40]
    assert rows.shape == (35, 6)
    np.testing.assert_array_equal(dense(rows.as_numpy_reads(slice(2, 9))), dense(source.blocks.block(17, 24)))
    np.testing.assert_array_equal(rows.codes[0], source.blocks.codes.columns[0][15:50])
    assert rows.lent(lambda array: array).expanded is None


@pytest.mark.parametrize("mechanism", ["objective", "output"])
def test_seeded_releases_are_those_without_the_kernel(monkeypatch, mechanism):
    """To a few steps of the grid: the tolerance of the certificate is below what the seal covers."""
    frame = pd.DataFrame(many(COLUMNS, 3000))
    labels = (frame["line"] + np.random.default_rng(5).logistic(size=3000) > 2.0).astype(int)
    model = confide.LogisticRegression(2.0, schema=SCHEMA, classes=[0, 1], centre=False, mechanism=mechanism, random_state=1)
    found = model.fit(frame, labels).coef_
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
    np.testing.assert_allclose(found, model.fit(frame, labels).coef_, rtol=0.0, atol=1e-6)
