"""Reports of passes: each row once a pass, from 0 to all rows, and the speed by the time that a pass took."""

from __future__ import annotations

import io
import re
import sys
import threading
from multiprocessing import Pipe

import numpy as np
import pytest

import confide
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.data.federated import FederatedRows
from confide.data.partitions import NumericReading, PartitionedSource, sum_of_outcomes
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.estimators.evaluation import evaluate
from confide.estimators.parties import take_part
from confide.intake.rows import open_rows
from confide.threads import Pace, Pass, _Line
from tests.data.tables import SCHEMA, made_up


class Clock:
    """Stands still until it is told to go on."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def small_blocks(monkeypatch):
    """Groups hold 200 rows."""
    monkeypatch.setattr("confide.data.arrays._MOST_ROWS", 100)
    monkeypatch.setattr("confide.data.arrays._BLOCKS_IN_GROUP", 2)
    monkeypatch.setattr("confide.data.streams._PIECE_BYTES", 1)


def numeric(n=1000, n_features=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    return X, np.where(X[:, 0] + rng.logistic(size=n) > 0, 1, -1).astype(np.int8)


ROW_SUM = RowSum(LogisticLoss(), BallBound(1.0), 1.0, 1)


def passes_of(seen):
    """For each pass, what was done and the numbers of rows that were reported."""
    passes = []
    for what, n_rows in seen:
        if n_rows == 0:
            passes.append((what, []))
        assert passes[-1][0] == what
        passes[-1][1].append(n_rows)
    return passes


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_problems", [1, 50])
def test_a_row_counts_once_a_pass_when_it_has_been_used(small_blocks, n_threads, n_problems):
    """It holds for any number of problems, of parts of a block, and of threads."""
    X, y = numeric(1000)
    summed, seen = [], []
    lock = threading.Lock()

    class Counting(ArrayBlocks):
        def block(self, start, stop):
            with lock:
                summed.append(stop - start)
            return super().block(start, stop)

    source = MemorySource(Counting(X), y, None, n_threads)
    with confide.progress(lambda what, n_rows: seen.append((what, n_rows, sum(summed)))):
        source.sum_over_rows(ROW_SUM, np.zeros((n_problems, 4)))
    assert [(what, n_rows) for what, n_rows, _ in seen] == [("training", n) for n in (0, 200, 400, 600, 800, 1000)]
    assert all(n_used >= n_rows for _, n_rows, n_used in seen)
    if n_threads == 1:
        assert all(n_used == n_rows for _, n_rows, n_used in seen)


def test_a_sample_in_memory_is_no_pass(small_blocks):
    """Passes over samples are not reported; fetching a sample from partitions is a pass."""
    X, y = numeric(16_000)
    halves = [(X[:8000], y[:8000]), (X[8000:], y[8000:])]

    def run(task):
        return sum_of_outcomes(
            [
                task.run(number, lambda refuse, pair=pair: iter([task.reading.piece(pair, refuse=refuse)]))
                for number, pair in enumerate(halves)
            ]
        )

    sources = [MemorySource(ArrayBlocks(X), y), PartitionedSource.checked(run, NumericReading(3, (-1, 1)))[0]]
    for source, fetched in zip(sources, ([], [("training", [0, 16_000])]), strict=True):
        seen = []
        with confide.progress(lambda *told, seen=seen: seen.append(told)):
            sample = source.sample(1000)
            sample.sum_over_rows(ROW_SUM, np.zeros((1, 4)))
            sample.sample(100).sum_over_rows(ROW_SUM, np.zeros((1, 4)))
        assert passes_of(seen) == fetched


def test_every_kind_of_rows_tells_each_pass_from_nothing_to_all(small_blocks, tmp_path):
    """Rows in memory, in files with and without a cache, and of parties report each pass, and the check if there is one."""
    frame = made_up(500)
    frame.to_parquet(tmp_path / "t.parquet")
    ours, theirs = zip(*(Pipe() for _ in range(2)), strict=True)
    threads = [
        threading.Thread(
            target=take_part, args=(end, confide.LogisticRegression(schema=SCHEMA), part := frame.iloc[rows], part["ill"])
        )
        for end, rows in zip(theirs, (slice(0, 120), slice(120, 500)), strict=True)
    ]
    for thread in threads:
        thread.start()
    steps = [0, 200, 400, 500]
    for given, checks, expected in (
        ((frame, frame["ill"]), 0, steps),
        ((open_rows(tmp_path / "t.parquet", SCHEMA),), 1, steps),
        ((open_rows(tmp_path / "t.parquet", SCHEMA, cache=True),), 1, steps),
        ((FederatedRows(SCHEMA, ours),), 1, [0, 120, 500]),
    ):
        seen = []
        with confide.progress(lambda *told, seen=seen: seen.append(told)):
            confide.LogisticRegression(1.0, schema=SCHEMA).fit(*given)
        passes = passes_of(seen)
        assert [what for what, _ in passes] == ["checking"] * checks + ["training"] * (len(passes) - checks)
        assert len(passes) - checks >= 3
        assert all(n_rows == expected for _, n_rows in passes)
    for thread in threads:
        thread.join(60)


def test_scoring_is_not_called_training(small_blocks, tmp_path):
    """An evaluation of rows in a file has one pass that checks and one that scores."""
    frame = made_up(500)
    frame.to_parquet(tmp_path / "t.parquet")
    model = confide.LogisticRegression(1.0, schema=SCHEMA).fit(frame, frame["ill"])
    seen = []
    with confide.progress(lambda *told: seen.append(told)):
        evaluate(model, open_rows(tmp_path / "t.parquet", SCHEMA), budget=1.0)
    assert passes_of(seen) == [("checking", [0, 200, 400, 500]), ("scoring", [0, 200, 400, 500])]


def test_partitions_tell_their_passes_and_how_long_they_took():
    """They report when a pass ends, and the speed is over the time since the pass began."""
    X, y = numeric(300)
    clock = Clock()
    pace = Pace(clock)
    speeds = []

    def run(task):
        clock.now += 4.0
        return task.run(0, lambda refuse: iter([task.reading.piece((X, y), refuse=refuse)]))

    def told(what, n_rows):
        pace(what, n_rows)
        speeds.append((what, pace.number, n_rows, pace.speed))

    with confide.progress(told):
        source = PartitionedSource.checked(run, NumericReading(3, (-1, 1)))[0]
        for _ in range(2):
            clock.now += 50.0  # what the driver does meanwhile
            source.sum_over_rows(ROW_SUM, np.zeros((1, 4)))
    assert speeds == [
        ("checking", 1, 0, ""),
        ("checking", 1, 300, "75 rows/s"),
        ("training", 1, 0, ""),
        ("training", 1, 300, "75 rows/s"),
        ("training", 2, 0, ""),
        ("training", 2, 300, "75 rows/s"),
    ]


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_the_line_counts_rows_of_this_pass_and_passes_on_a_terminal_alone(stream, monkeypatch):
    """Other output may be kept in a log, and the number of passes depends on the rows. Without time there is no speed."""
    written = stream()
    monkeypatch.setattr(sys, "stderr", written)
    clock = Clock()
    line = _Line(clock)
    for what, n_passes, seconds in (("checking", 1, 2.0), ("training", 3, 5.0)):
        for _ in range(n_passes):
            passing = Pass(what, line)
            for n_rows in (1000, 1000, 500):
                clock.now += seconds
                passing.used(n_rows)
            clock.now += 10.0
    shown = [text.strip() for text in written.getvalue().split("\r") if text.strip()]
    if stream is io.StringIO:
        assert not any("pass 1" in text or "pass 2" in text for text in shown)
    else:
        shown = [text.replace(", pass 1:", ":", 1) for text in shown]
        assert [text for text in shown if "pass 3" in text] == [
            "training, pass 3: 66 s",
            "training, pass 3: 200 rows/s in this pass, 71 s",
            "training, pass 3: 200 rows/s in this pass, 76 s",
            "training, pass 3: 167 rows/s in this pass, 81 s",
        ]
    assert shown[:5] == [
        "checking: 0 s",
        "checking: 500 rows/s in this pass, 2 s",
        "checking: 500 rows/s in this pass, 4 s",
        "checking: 417 rows/s in this pass, 6 s",
        "training: 16 s",
    ]


def test_no_speed_is_made_of_no_time():
    """A pass in one call, during which the clock stands still, has no speed."""
    pace = Pace(Clock())
    pace("training", 0)
    pace("training", 34_000)
    assert (pace.number, pace.speed) == (1, "")


def test_a_line_of_a_real_fit_shows_no_speed_beyond_what_a_machine_can_do(capsys, monkeypatch):
    """With few rows in one block, the whole time of a pass is counted."""
    monkeypatch.setattr("confide.threads._SECONDS_BETWEEN_LINES", 0.0)
    X, y = numeric(30_000)
    with confide.progress():
        confide.LogisticRegression(1.0).fit(X, y)
    speeds = [int(text.replace(",", "")) for text in re.findall(r"([0-9,]+) rows/s", capsys.readouterr().err)]
    assert len(speeds) >= 5
    assert max(speeds) < 1e9
