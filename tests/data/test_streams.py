"""Rows larger than memory: the same sums to the bit, checked before a charge, never refused for their content after it."""

from __future__ import annotations

import gc
import os
import re
import signal
import stat
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import confide
from confide.compiled.gradient_sums import CompiledSum
from confide.data import streams
from confide.data.arrays import EncodedBlocks, MemorySource, rows_in_block, rows_in_group
from confide.data.streams import (
    KeptSample,
    PieceFile,
    Reading,
    StreamedSource,
    cut_to_size,
    read_ahead,
)
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import RowSum
from confide.features.cells import NumberTarget, read_labels
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.features.schema import Schema
from confide.intake.rows import open_rows
from confide.solvers.cheap_gradients import ApproximateSum
from tests.data.tables import SCHEMA, made_up, written


@pytest.fixture(autouse=True)
def read_again(monkeypatch):
    """These are tests of files that are read again in each pass, though they are small."""
    monkeypatch.setattr("confide.data.file_rows._HELD_FILES", -1)


ESTIMATORS = [
    lambda **more: confide.LogisticRegression(2.0, random_state=3, **more),
    lambda **more: confide.LinearSVC(2.0, random_state=3, class_weight={"no": 0.5, "yes": 2.0}, **more),
    lambda **more: confide.KernelSVC(2.0, random_state=3, n_features=20, **more),
]


@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
@pytest.mark.parametrize("cache", [False, True])
@pytest.mark.parametrize(("k", "n_threads"), [(2, 1), (200, 3)])
def test_a_sum_over_a_stream_is_that_over_the_same_rows_in_memory_to_the_bit(
    tmp_path, kind, cache, k, n_threads, monkeypatch
):
    """Whatever the files, their row groups and the threads; a few groups of blocks, cut in two for many problems."""
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 140)
    monkeypatch.setattr("confide.data.arrays._BLOCKS_IN_GROUP", 7)
    monkeypatch.setattr(streams, "_PIECE_BYTES", 8 * 6 * 300)
    frame = made_up(age="float64" if kind == "csv" else "float32")
    encoder = Encoder(SCHEMA)
    reading = Reading(encoder, ("no", "yes"))
    assert reading.rows_in_piece % (7 * rows_in_block(encoder.n_features)) == 0
    assert reading.rows_in_piece < 1000
    memory = MemorySource(EncodedBlocks(encoder, encoder.read(frame)), read_labels(frame["ill"], "no", "yes"))
    row_sum = RowSum(LogisticLoss(), encoder.row_bound, 1.0, 2)
    weights = np.random.default_rng(0).normal(size=(k, encoder.n_features + 1))
    expected = memory.sum_over_rows(row_sum, weights)
    with open_rows(written(frame, tmp_path, kind), SCHEMA, cache=cache).checked(reading, 1) as (source, n_rows):
        assert n_rows == source.n_rows == len(frame)
        for _ in range(2):
            totals = replace(source, n_threads=n_threads).sum_over_rows(row_sum, weights)
            for part in ("value", "gradient", "hessian"):
                np.testing.assert_array_equal(getattr(totals, part), getattr(expected, part))


@pytest.mark.parametrize(("columns", "classes"), [(1, 2), (1, 7), (40, 2), (3, 300), (300, 2), (1, 2000)])
def test_a_piece_is_as_large_as_its_columns_and_scores_may_be(columns, classes):
    """A whole number of groups: as many as there is memory for, and one in any case."""
    target = {"column": "y", "classes": [*range(classes)]} if classes > 2 else {"column": "y", "negative": 0, "positive": 1}
    schema = Schema(columns={f"x{i}": {"low": 0, "high": 1} for i in range(columns)}, target=target)
    reading = Reading(Encoder(schema), tuple(range(classes)))
    assert len(reading.names) == columns + 1
    step, room = rows_in_group(columns), streams._PIECE_BYTES // 8
    groups, rest = divmod(reading.rows_in_piece, step)
    most = max(columns + 1, classes)
    assert rest == 0
    assert groups == 1 or groups * step * most <= room
    assert (groups + 1) * step * most > room


def test_a_piece_does_not_shrink_with_encoded_columns():
    """A category of many levels takes a few bytes a row, however many columns it is encoded in."""
    schema = Schema(columns={"a": {"categories": [*range(2000)]}}, target={"column": "y", "negative": 0, "positive": 1})
    reading = Reading(Encoder(schema), (0, 1))
    assert reading.n_features == 2000
    assert reading.rows_in_piece > 2_000_000


@pytest.mark.parametrize("n", [1, 7, 8, 999, 3000])
def test_rows_that_pass_by_once_give_the_sample_of_rows_in_memory(tmp_path, n, monkeypatch):
    """To the bit, whatever the pieces, and for every size that solvers may ask for; never more than there is room for."""
    monkeypatch.setattr("confide.data.arrays._SAMPLE_BYTES", 8 * 6 * 500)
    monkeypatch.setattr("confide.data.arrays._FEWEST_SAMPLE_ROWS", 0)
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 100)
    monkeypatch.setattr(streams, "_PIECE_BYTES", 8 * 6 * 300)
    frame = made_up().iloc[:n]
    encoder = Encoder(SCHEMA)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    for fourier in (None, FourierMap(encoder.n_features, 6)):
        reading = Reading(encoder, ("no", "yes"), (0.5, 2.0), fourier)
        memory = reading.source(reading.piece(frame, refuse=True))
        with open_rows(tmp_path / "t.parquet", SCHEMA).checked(reading, 1) as (source, _):
            for wanted in (1, 50, 200, 700, n):
                found, expected = source.sample(wanted), memory.sample(wanted)
                assert np.array_equal(found.blocks.rows, expected.blocks.rows)
                assert np.array_equal(found.labels, expected.labels)
                assert np.array_equal(found.row_weights, expected.row_weights)
                assert 1 <= found.n_rows <= 720


def test_many_rows_on_disk_need_no_hessian_of_all(tmp_path, monkeypatch):
    """A sample, kept when they were checked, gives the metric; the release is still that in memory to the last bit."""
    frame = made_up(60_000)
    memory = confide.LogisticRegression(2.0, random_state=3, schema=SCHEMA).fit(frame, frame["ill"])
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    orders = []
    original = StreamedSource.sum_over_rows

    def counting(self, row_sum, weights):
        orders.append(getattr(row_sum, "row_sum", row_sum).order)
        return original(self, row_sum, weights)

    monkeypatch.setattr(StreamedSource, "sum_over_rows", counting)
    model = confide.LogisticRegression(2.0, random_state=3).fit(open_rows(tmp_path / "t.parquet", SCHEMA))
    assert set(orders) == {1}
    assert len(orders) <= 10
    assert np.array_equal(model.coef_, memory.coef_)
    assert np.array_equal(model.intercept_, memory.intercept_)


@pytest.mark.parametrize("by", ["by_numpy_alone", "compiled"])
def test_first_passes_over_many_columns_are_cheap(tmp_path, monkeypatch, request, by):
    """In memory and from files, with the same release to the last bit; the last passes are the objective's own.

    The first ones are in single precision, or those of the compiled kernel.
    """
    request.getfixturevalue(by)
    cheap = CompiledSum if by == "compiled" else ApproximateSum
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(30_000, 60)).astype(np.float32)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(60)])
    frame["ill"] = np.where(X @ rng.normal(size=60) + rng.logistic(size=len(X)) > 0, "yes", "no")
    schema = confide.Schema({f"x{j}": {"low": -1, "high": 1} for j in range(60)}, SCHEMA.target)
    frame.to_parquet(tmp_path / "t.parquet", index=False)
    kinds = []

    def counting(original):
        def counted(self, row_sum, weights):
            if self.n_rows == 30_000:
                kinds.append(type(getattr(row_sum, "row_sum", row_sum)))
            return original(self, row_sum, weights)

        return counted

    for source in (MemorySource, StreamedSource):
        monkeypatch.setattr(source, "sum_over_rows", counting(source.sum_over_rows))
    memory = confide.LogisticRegression(2.0, random_state=3, schema=schema).fit(frame, frame["ill"])
    in_memory = kinds.copy()
    kinds.clear()
    model = confide.LogisticRegression(2.0, random_state=3).fit(open_rows(tmp_path / "t.parquet", schema))
    assert kinds == in_memory
    assert kinds.count(cheap) >= 2
    assert 1 <= kinds.count(RowSum) < kinds.count(cheap)
    assert kinds[-1] is RowSum
    assert np.array_equal(model.coef_, memory.coef_)
    assert np.array_equal(model.intercept_, memory.intercept_)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_a_fit_on_files_is_the_fit_in_memory(tmp_path, estimator):
    """The same seed gives the same weights, intercept, guarantee and names; the schema may be given or left out."""
    frame = made_up()
    memory = estimator(schema=SCHEMA).fit(frame, frame["ill"])
    path = written(frame, tmp_path, "parquet")
    for schema in (SCHEMA, None):
        model = estimator(schema=schema).fit(open_rows(path, SCHEMA))
        assert np.array_equal(model.coef_, memory.coef_)
        assert model.intercept_ == memory.intercept_
        assert model.guarantee_ == memory.guarantee_
        assert list(model.coefficient_names_) == list(memory.coefficient_names_)
        assert list(model.feature_names_in_) == list(SCHEMA.column_names)
        assert model.score(frame, frame["ill"]) == memory.score(frame, frame["ill"])
        model.save(tmp_path / "model.json", overwrite=True)
        assert confide.load(tmp_path / "model.json").score(frame, frame["ill"]) == model.score(frame, frame["ill"])


@pytest.mark.parametrize("sizes", [[], [0, 0], [1], [10], [9, 1, 10], [3, 0, 25, 1, 1], [20, 20]])
def test_cutting_anew_keeps_every_row_once_and_in_order(sizes):
    """Tables of ten rows, the last one shorter, whatever the sizes were."""
    starts = np.cumsum([0, *sizes])
    tables = [pa.table({"x": np.arange(a, b)}) for a, b in pairwise(starts)]
    cut = [np.concatenate([table["x"].to_numpy() for table in piece]) for piece in cut_to_size(tables, 10)]
    assert [len(piece) for piece in cut[:-1]] == [10] * (len(cut) - 1)
    assert np.array_equal(np.concatenate([np.empty(0), *cut]), np.arange(sum(sizes)))


def test_after_the_check_no_cell_can_be_refused():
    """What could not be used counts as missing where gaps are declared, else as nothing; labels as the first one."""
    bad = pd.DataFrame(
        {
            "age": ["many", None, "inf", "50"],
            "debt": [np.inf, np.nan, -np.inf, 1.0],
            "work": [None, "z", "a", "b"],
            "size": [None, "x", "1", "2"],
            "ill": ["yes", "perhaps", None, "no"],
        }
    )
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    with pytest.raises(ValueError, match="some are missing"):
        reading.piece(bad, refuse=True)
    with pytest.raises(ValueError, match="numbers"):
        reading.piece(bad.assign(ill="no"), refuse=True)
    piece = reading.piece(bad, refuse=False)
    ((rows, labels, counts),) = reading.source(piece).counted_blocks()
    assert labels.tolist() == [1, -1, -1, -1]
    assert counts is None
    names = list(reading.encoder.feature_names)
    assert rows[:, names.index("age")].tolist() == [0.0, 0.0, 0.0, 0.0]
    assert rows[:, names.index("debt=(missing)")].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert rows[:, names.index("work=(other)")].tolist() == [1.0, 1.0, 0.0, 0.0]
    assert rows[:, names.index("size=(missing)")].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert np.isfinite(rows).all()
    assert np.array_equal(reading.encoder.row_bound.clip(rows), rows)
    plain = Encoder(confide.Schema(columns={"c": {"categories": ["a", "b", "c"]}}))
    codes = plain.read(pd.DataFrame({"c": [None, "a"]}), refuse=False)
    assert plain.expand(codes, 0, 2).tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_one_row_of_a_csv_file_cannot_change_how_others_are_read(tmp_path):
    """Types are the schema's: with text in one cell of `size`, all other rows count as they did."""
    frame = made_up(1000).astype({"size": object})
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))

    def blocks_of(name):
        folder = tmp_path / name
        folder.mkdir()
        rows = open_rows(written(frame, folder, "csv"), SCHEMA)
        pieces = reading.pieces(rows.tables, refuse=True)
        return np.vstack([block[0] for piece in pieces for block in reading.source(piece).counted_blocks()])

    before = blocks_of("before")
    frame.loc[999, "size"] = "1.5e0x"
    after = blocks_of("after")
    assert np.array_equal(before[:999], after[:999])
    assert not np.array_equal(before[999], after[999])


def test_a_pass_with_another_number_of_rows_is_refused():
    """Every row is counted once in every pass, or nothing is released."""
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    frame = made_up(100)
    source = StreamedSource(lambda: iter([reading.piece(frame, refuse=True)]), reading, 101, KeptSample(1))
    row_sum = RowSum(LogisticLoss(), reading.encoder.row_bound, 0.0, 0)
    with pytest.raises(ValueError, match="changed"):
        source.sum_over_rows(row_sum, np.zeros((1, reading.n_features)))


def test_the_cache_has_no_name_and_is_its_owners_alone(tmp_path):
    """Nobody can open it, its permissions are 0600, and the room is given back at the end, after errors too."""
    store = PieceFile(tmp_path)
    found = os.fstat(store._file.fileno())
    assert stat.S_IMODE(found.st_mode) == 0o600
    assert found.st_nlink == 0
    assert list(tmp_path.iterdir()) == []
    store.close()
    folder = tmp_path / "data"
    folder.mkdir()
    # Arrow closes a CSV file in a thread of its own, a little after its last row.
    rows = open_rows(written(made_up(500), folder, "parquet"), SCHEMA, cache=tmp_path)
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    descriptors = Path("/proc/self/fd")
    before = len(list(descriptors.iterdir())) if descriptors.exists() else None
    with pytest.raises(KeyboardInterrupt), rows.checked(reading, 1):
        raise KeyboardInterrupt
    assert before is None or len(list(descriptors.iterdir())) == before
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_passes_over_a_cache_do_not_disturb_each_other(tmp_path):
    """A second pass that begins in the middle of a first: both meet every row once, in order."""
    store, encoder = PieceFile(tmp_path), Encoder(SCHEMA)
    reading, made = Reading(encoder, ("no", "yes")), []
    for n_rows in (40, 50, 60):
        made.append(reading.piece(made_up(n_rows), refuse=True))
        store.append(made[-1])
    first = store.pieces()
    begun = [next(first)]
    second = list(store.pieces())
    for found in ([*begun, *first], second):
        assert len(found) == 3
        for piece, expected in zip(found, made, strict=True):
            for found_column, column in zip(piece.codes.columns, expected.codes.columns, strict=True):
                np.testing.assert_array_equal(found_column, column)
            np.testing.assert_array_equal(piece.labels, expected.labels)
    store.close()


def test_a_cache_keeps_the_types_of_columns(tmp_path):
    """Numbers in single and in double precision, in any order, which may differ from piece to piece; and none at all."""
    kinds = ["f4", "f8", "f8", "f4", "f4"]
    encoder = Encoder(Schema(columns={f"x{i}": {"low": 0, "high": 1} for i in range(5)} | {"c": {"categories": ["a", "b"]}}))
    store, made = PieceFile(tmp_path), []
    for types in (kinds, kinds[::-1], ["f4"] * 5):
        frame = pd.DataFrame(
            {f"x{i}": np.linspace(0, 1, 9).astype(kind) for i, kind in enumerate(types)} | {"c": list("abababbba")}
        )
        made.append(streams.LabelledCodes(encoder.read(frame), np.ones(9, np.int8), np.arange(9.0)))
        store.append(made[-1])
    for piece, expected in zip(store.pieces(), made, strict=True):
        for found, array in zip(piece.arrays, expected.arrays, strict=True):
            np.testing.assert_array_equal(found, array)
            assert found.dtype == array.dtype
    store.close()
    store, encoder = PieceFile(tmp_path), Encoder(Schema(columns={"c": {"categories": ["a", "b"]}}))
    store.append(streams.LabelledCodes(encoder.read(pd.DataFrame({"c": ["a", "b"]})), np.ones(2, np.int8)))
    assert [piece.codes.columns[0].tolist() for piece in store.pieces()] == [[0, 1]]
    store.close()


def test_progress_tells_rows_of_the_pass_and_what_is_done(tmp_path, monkeypatch):
    """Rising from 0 to the number of rows in each pass; nothing else is told."""
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 100)
    monkeypatch.setattr("confide.data.arrays._BLOCKS_IN_GROUP", 1)
    monkeypatch.setattr(streams, "_PIECE_BYTES", 1)
    told = []
    rows = open_rows(written(made_up(500), tmp_path, "csv"), SCHEMA, progress=lambda what, n: told.append((what, n)))
    confide.LogisticRegression(1.0).fit(rows)
    one_pass = [0, 100, 200, 300, 400, 500]
    assert told[:6] == [("checking", n) for n in one_pass]
    assert {what for what, _ in told[6:]} == {"training"}
    assert [n for _, n in told[6:12]] == one_pass


def test_an_error_of_the_reading_thread_comes_to_the_caller():
    """After the items before it; and a caller that stops early leaves no thread behind."""

    def items():
        yield 1
        raise ZeroDivisionError

    got = []
    with pytest.raises(ZeroDivisionError):
        got.extend(read_ahead(items()))
    before = threading.active_count()
    endless = read_ahead(iter(int, 1))
    next(endless)
    endless.close()
    assert threading.active_count() == before


@pytest.mark.parametrize("n_threads", [1, 2])
def test_an_exception_that_is_held_holds_no_thread(tmp_path, n_threads, monkeypatch):
    """Where rows are added up, for instance Ctrl-C in a notebook, which keeps the last traceback."""
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 140)
    monkeypatch.setattr("confide.data.arrays._BLOCKS_IN_GROUP", 7)
    monkeypatch.setattr(streams, "_PIECE_BYTES", 8 * 6 * 300)
    made_up(60_000).to_parquet(tmp_path / "t.parquet", index=False)
    reading = Reading(Encoder(SCHEMA), ("no", "yes"))
    row_sum = RowSum(LogisticLoss(), reading.encoder.row_bound, 0.0, 0)

    def interrupted(*_):
        raise KeyboardInterrupt

    before = threading.active_count()
    with open_rows(tmp_path / "t.parquet", SCHEMA).checked(reading, 1) as (source, _):
        monkeypatch.setattr(RowSum, "add_block", interrupted)
        with pytest.raises(KeyboardInterrupt) as held:
            replace(source, n_threads=n_threads).sum_over_rows(row_sum, np.zeros((1, reading.n_features)))
        assert threading.active_count() == before
    assert held.value.__traceback__ is not None


def test_an_abandoned_pass_that_is_collected_as_garbage_ends():
    """In the very thread that the reader waits for, which must not wait for the reader."""
    asked, abandoned = threading.Event(), threading.Event()

    def inner():
        yield 1
        abandoned.wait()
        gc.collect()
        yield 2

    def outer():
        for item in read_ahead(inner()):
            yield item
            asked.set()

    before = threading.active_count()
    cycle = [read_ahead(outer())]
    cycle.append(cycle)
    next(cycle[0])
    assert asked.wait(20.0)
    # The reader waits for the next item now, which takes it no time.
    time.sleep(0.2)
    del cycle
    abandoned.set()
    begun = time.monotonic()
    while threading.active_count() > before:
        assert time.monotonic() - begun < 20.0
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: open_rows(p / "no*.parquet", SCHEMA), "no file matches"),
        (lambda p: open_rows(p / "absent.parquet", SCHEMA), "cannot read"),
        (lambda p: open_rows([p / "table.csv", p / "../" / p.name / "table.csv"], SCHEMA), "same file twice"),
        (lambda p: open_rows([p / "table.csv", p / "x.parquet"], SCHEMA), "several kinds"),
        (lambda p: open_rows(p / "table.pkl", SCHEMA), "must end in"),
        (lambda p: open_rows([], SCHEMA), "no file"),
        (lambda p: open_rows(3, SCHEMA), "path of a file"),
        (lambda p: open_rows(p / "table.csv"), "needs a schema with a target"),
        (lambda p: open_rows(p / "table.csv", confide.Schema(columns=SCHEMA.columns)), "needs a schema with a target"),
        (lambda p: open_rows(p / "table.csv", SCHEMA, labels="y.npy"), "`labels` is only for arrays"),
        (lambda p: open_rows(p / "table.csv", SCHEMA, cache=p / "absent"), "folder that exists"),
        (lambda p: open_rows(p / "table.csv", SCHEMA, progress=1), "progress"),
        (lambda p: open_rows(p / "table.csv", SCHEMA, client=1), "distributed.Client"),
        (lambda p: open_rows(p / "x.npy"), "takes no schema and no target"),
        (lambda p: open_rows(p / "x.npy", labels=p / "x.npy", cache=True), "cache and progress are for files with a table"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_words_that_help(tmp_path, call, message):
    """Before any row is read."""
    (tmp_path / "table.csv").write_text("age,debt,work,size,ill\n")
    with pytest.raises(ValueError, match=message):
        call(tmp_path)


@pytest.mark.parametrize("rows_from", ["files", "files with a cache", "memory"])
@pytest.mark.parametrize("doing", ["checking", "training"])
def test_control_c_leaves_no_file_and_what_was_charged(tmp_path, rows_from, doing):
    """The process ends at once; a charge stays, and before it there is none; nothing lies in the folder of the cache."""
    if (rows_from, doing) == ("memory", "checking"):
        pytest.skip("rows in memory are not checked in a pass")
    made_up(2000).to_parquet(tmp_path / "t.parquet")
    (tmp_path / "cache").mkdir()
    (tmp_path / "schema.toml").write_text(SCHEMA.to_toml())
    program = f"""
        import pandas
        import time
        import confide

        def slowly(what, rows):
            if what == {doing!r}:
                print("there", flush=True)
                time.sleep(60)

        ledger = confide.Ledger({str(tmp_path / "l.db")!r}, limit=confide.PureDP(3.0))
        path, schema = {str(tmp_path / "t.parquet")!r}, confide.Schema.from_toml({str(tmp_path / "schema.toml")!r})
        if {rows_from == "memory"}:
            frame = pandas.read_parquet(path)
            given = frame, frame["ill"]
        else:
            given = (confide.open_rows(path, schema, cache={rows_from != "files"} and {str(tmp_path / "cache")!r}),)
        try:
            with confide.progress(slowly):
                confide.LogisticRegression(1.0, schema=schema, ledger=ledger).fit(*given)
        except KeyboardInterrupt:
            print("stopped", flush=True)
            raise
    """
    environment = os.environ | {"TMPDIR": str(tmp_path / "cache")}
    started = [sys.executable, "-c", textwrap.dedent(program)]
    with subprocess.Popen(started, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout.readline() == "there\n"
            asked = time.monotonic()
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "stopped\n"
            assert time.monotonic() - asked < 30.0
        finally:
            process.kill()
    assert list((tmp_path / "cache").iterdir()) == []
    assert len(confide.Ledger(tmp_path / "l.db").entries()) == (doing == "training")


def test_who_watches_sees_rows_and_a_log_no_number_of_passes(tmp_path, capsys, monkeypatch):
    """Of files and of memory; the line of its own speaks of speed alone, and goes at the end; releases stay the same."""
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 100)
    monkeypatch.setattr("confide.data.arrays._BLOCKS_IN_GROUP", 7)
    monkeypatch.setattr(streams, "_PIECE_BYTES", 1)
    frame = made_up()
    rows = open_rows(written(frame, tmp_path, "parquet"), SCHEMA)
    model = confide.LogisticRegression(2.0, random_state=3, schema=SCHEMA)
    expected = model.fit(frame, frame["ill"]).coef_
    steps = [0, 700, 1400, 2100, 2800, 3000]
    for given in ((rows,), (frame, frame["ill"])):
        seen = []
        with confide.progress(lambda *told, seen=seen: seen.append(told)):
            assert np.array_equal(model.fit(*given).coef_, expected)
        assert [n for what, n in seen if what == "checking"] == (steps if len(given) == 1 else [])
        trained = [n for what, n in seen if what == "training"]
        assert trained == steps * (len(trained) // 6)
        assert len(trained) >= 12
    monkeypatch.setattr("confide.threads._SECONDS_BETWEEN_LINES", 0.0)
    with confide.progress():
        model.fit(rows)
    written_lines = capsys.readouterr().err.split("\r")
    shown = [line.strip() for line in written_lines if line.strip()]
    assert all(re.fullmatch(r"(checking|training): ([0-9,]+ rows/s in this pass, )?[0-9]+ s", line) for line in shown)
    assert {line.partition(":")[0] for line in shown} == {"checking", "training"}
    assert written_lines[-1] == ""
    model.fit(rows)
    assert capsys.readouterr().err == ""
    with pytest.raises(ValueError, match="function"), confide.progress(1):
        pass


REGRESSORS = [
    lambda **more: confide.Ridge(confide.ApproxDP(2.0, 1e-6), random_state=3, target_bound=30.0, **more),
    lambda **more: confide.HuberRegressor(2.0, random_state=3, target_bound=30.0, threshold=5.0, **more),
    lambda **more: confide.PoissonRegressor(2.0, random_state=3, target_bound=10.0, **more),
    lambda **more: confide.ERMRegressor(2.0, random_state=3, loss="clipped_squared", target_bound=1.0, **more),
]


def with_visits(n=3000, age="float32"):
    """The table with a column of counts, and a schema without a target."""
    rng = np.random.default_rng(1)
    return made_up(n, age).assign(visits=rng.poisson(3.0, n)), confide.Schema(columns=SCHEMA.columns)


@pytest.mark.parametrize("regressor", REGRESSORS)
@pytest.mark.parametrize("kind", ["parquet", "csv", "feather"])
def test_a_regression_on_files_is_that_in_memory(tmp_path, regressor, kind):
    """To the last sealed digit, with the same guarantee; the schema may be left out, and labels in it do not matter."""
    frame, schema = with_visits(age="float64" if kind == "csv" else "float32")
    memory = regressor(schema=schema).fit(frame, frame["visits"])
    path = written(frame, tmp_path, kind)
    for given, opened in ((schema, schema), (None, schema), (None, SCHEMA)):
        model = regressor(schema=given).fit(open_rows(path, opened, target="visits"))
        assert np.array_equal(model.coef_, memory.coef_)
        assert model.intercept_ == memory.intercept_
        assert model.guarantee_ == memory.guarantee_
        assert list(model.coefficient_names_) == list(memory.coefficient_names_)
        assert np.array_equal(model.predict(frame), memory.predict(frame))


def test_a_regression_draws_a_persons_rows_and_maps_numpy_files(tmp_path):
    """As in memory."""
    frame, _ = with_visits(age="float64")
    frame = frame.assign(person=np.arange(3000) // 3 * 7 % 500)
    schema = confide.Schema(columns=SCHEMA.columns, person="person")
    parameters = {"max_rows_per_person": 2, "target_bound": 30.0, "random_state": 1}
    memory = confide.Ridge(5.0, schema=schema, **parameters).fit(frame, frame["visits"])
    rows = open_rows(written(frame, tmp_path, "csv"), schema, target="visits", cache=True)
    assert np.array_equal(confide.Ridge(5.0, **parameters).fit(rows).coef_, memory.coef_)
    X = np.random.default_rng(0).normal(size=(2000, 3))
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", X[:, 0])
    memory = confide.HuberRegressor(1.0, random_state=0, target_bound=1.0).fit(X, X[:, 0])
    rows = open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
    assert np.array_equal(confide.HuberRegressor(1.0, random_state=0, target_bound=1.0).fit(rows).coef_, memory.coef_)
    with pytest.raises(ValueError, match="leave y out"):
        confide.HuberRegressor(1.0, target_bound=1.0).fit(rows, X[:, 0])


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "missing or infinite"), (np.inf, "missing or infinite"), (-1.0, "counts and costs must not be")],
)
def test_a_bad_target_is_refused_before_the_charge(tmp_path, value, message):
    """In the check; the estimator stays as it was."""
    frame, schema = with_visits()
    frame = frame.astype({"visits": "float64"})
    frame.loc[2999, "visits"] = value
    ledger = confide.Ledger(limit=confide.PureDP(5.0))
    model = confide.PoissonRegressor(1.0, ledger=ledger, target_bound=10.0)
    with pytest.raises(ValueError, match=message):
        model.fit(open_rows(written(frame, tmp_path, "parquet"), schema, target="visits"))
    assert len(ledger.entries()) == 0
    assert not hasattr(model, "coef_")
    reading = Reading(Encoder(schema), (), numbers=NumberTarget("visits", counts=True))
    assert reading.piece(frame, refuse=False).labels[-1] == (value if np.isfinite(value) else 0.0)


def test_targets_and_labels_are_not_taken_for_each_other(tmp_path):
    """A regressor needs the column of its numbers, a classifier labels."""
    frame, schema = with_visits()
    path = written(frame, tmp_path, "parquet")
    with pytest.raises(ValueError, match="target=column"):
        confide.Ridge(1.0, target_bound=1.0).fit(open_rows(path, SCHEMA))
    with pytest.raises(ValueError, match="for a regressor"):
        confide.LogisticRegression(1.0).fit(open_rows(path, SCHEMA, target="visits"))
    with pytest.raises(ValueError, match="does not describe"):
        open_rows(path, schema, target="age")
    with pytest.raises(ValueError, match="leave y out"):
        confide.Ridge(1.0, target_bound=1.0).fit(open_rows(path, schema, target="visits"), frame["visits"])


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_an_evaluation_on_files_is_that_in_memory(tmp_path, neighbours, monkeypatch):
    """All counts, of several pieces, with persons and without, and of NumPy files; charged once, refused before."""
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 100)
    monkeypatch.setattr("confide.data.arrays._BLOCKS_IN_GROUP", 7)
    frame = made_up(age="float64").assign(person=np.arange(3000) // 2)
    with_persons = confide.Schema(columns=SCHEMA.columns, target=SCHEMA.target, person="person")
    asked = {"budget": 1.0, "neighbours": neighbours, "random_state": 5}
    path = written(frame, tmp_path, "csv")
    for schema in (SCHEMA, with_persons):
        for model in (confide.LogisticRegression(2.0, schema=schema), confide.KernelSVC(2.0, schema=schema, n_features=20)):
            model.fit(frame, frame["ill"])
            ledger = confide.Ledger(limit=confide.PureDP(5.0), neighbours=neighbours)
            memory = confide.evaluate(model, frame, frame["ill"], **asked)
            found = confide.evaluate(model, open_rows(path, schema), ledger=ledger, **asked)
            assert found.to_dict() == memory.to_dict() | {"charged_to": ledger.identity}
            assert len(ledger.entries()) == 1
    with pytest.raises(ValueError, match="leave y out"):
        confide.evaluate(model, open_rows(path, with_persons), frame["ill"], **asked)
    with pytest.raises(ValueError, match="with the schema that the model"):
        confide.evaluate(model, open_rows(path, SCHEMA), ledger=ledger, **asked)
    assert len(ledger.entries()) == 1
    X = np.random.default_rng(0).normal(size=(2000, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", y)
    model = confide.LogisticRegression(1.0).fit(X, y)
    memory = confide.evaluate(model, X, y, **asked)
    rows = open_rows(tmp_path / "X.npy", labels=tmp_path / "y.npy")
    assert confide.evaluate(model, rows, **asked).to_dict() == memory.to_dict()
    os.utime(tmp_path / "X.npy", ns=(1, 1))
    with pytest.raises(ValueError, match="changed"):
        confide.evaluate(model, rows, **asked)


def test_items_are_read_without_a_thread_where_none_can_be_started(monkeypatch):
    """They come one after the other."""

    def refused(_):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refused)
    assert list(read_ahead(iter(range(5)))) == [0, 1, 2, 3, 4]
