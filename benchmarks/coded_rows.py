"""Coded rows against dense rows and straight lines: passes in memory, fits of Adult, and fits of rows in a Parquet file.

CPU seconds, the least of several runs in turn. "Dense" makes the dense block that coded rows stand for and sums it up.

Run: OMP_NUM_THREADS=1 python benchmarks/coded_rows.py [--runs 5] [--rows 2000000] [--folder /tmp]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rows_on_disk import write

import confide
from confide import LinearSVC, LogisticRegression, Schema, open_rows
from confide.data.arrays import EncodedBlocks, MemorySource
from confide.data.streams import StreamedSource
from confide.erm.coded_rows import dense
from confide.erm.losses import LogisticLoss
from confide.erm.row_sums import RowSum
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.encoder import Encoder

COLUMNS, KNOTS = 20, 6


def seconds(runs: int, works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """CPU seconds of each work, the least of several runs in turn."""
    least = dict.fromkeys(works, float("inf"))
    for _ in range(runs):
        for name, work in works.items():
            begin = time.process_time()
            work()
            least[name] = min(least[name], time.process_time() - begin)
    return least


class DenseBlocks(EncodedBlocks):
    """The same blocks, made dense."""

    __slots__ = ()

    def block(self, start: int, stop: int) -> Any:
        return dense(super().block(start, stop))


def in_memory(runs: int, rows: int = 100_000) -> None:
    """Nanoseconds a row for a pass for gradients, by the number of knots and of problems."""
    rng = np.random.default_rng(0)
    table = pa.table({f"x{i}": rng.random(rows, dtype=np.float32) * 2 - 1 for i in range(COLUMNS)})
    labels = rng.choice([-1, 1], rows).astype(np.int8)
    for knots, n_problems in [(0, 1), (1, 1), (2, 1), (4, 1), (6, 1), (20, 1), (6, 4), (6, 8), (6, 16), (6, 32)]:
        encoder = Encoder(Schema(columns={f"x{i}": {"low": -1, "high": 1, "knots": knots} for i in range(COLUMNS)}))
        codes = encoder.read(table)
        weights = rng.normal(size=(n_problems, encoder.n_features + 1)) * 0.1
        row_sum = RowSum(LogisticLoss(), encoder.row_bound, 1.0, order=1)
        sources = {
            "as it is": MemorySource(EncodedBlocks(encoder, codes), labels),
            "dense": MemorySource(DenseBlocks(encoder, codes), labels),
        }
        works = {name: partial(source.sum_over_rows, row_sum, weights) for name, source in sources.items()}
        least = seconds(runs, works)
        shown = ", ".join(f"{name} {each / rows * 1e9:.0f}" for name, each in least.items())
        form = "coded" if encoder.codes_rows else "dense"
        print(f"{COLUMNS} numbers, {knots} knots, {n_problems} problems, {form}: ns a row {shown}")


def with_knots(column: NumberColumn | CategoryColumn) -> NumberColumn | CategoryColumn:
    """The column with even knots, if it is a number."""
    if isinstance(column, CategoryColumn):
        return column
    return NumberColumn(column.name, column.low, column.high, column.scale, column.missing, KNOTS)


def adult(runs: int) -> None:
    """Fits of Adult with and without knots."""
    data = confide.datasets.load_adult()
    lines = data.schema
    curves = Schema(columns=tuple(map(with_knots, lines.columns)), target=lines.target)
    for estimator in (LogisticRegression, LinearSVC):
        models = {name: estimator(1.0, schema=each, random_state=0) for name, each in (("lines", lines), ("curves", curves))}
        least = seconds(runs, {name: partial(model.fit, data.X_train, data.y_train) for name, model in models.items()})
        ratio = least["curves"] / least["lines"]
        shown = f"lines {least['lines']:.3f} s, {KNOTS} knots {least['curves']:.3f} s, {ratio:.2f} times"
        print(f"Adult, {estimator.__name__}: {shown}")


def on_disk(runs: int, rows: int, folder: Path) -> None:
    """Fits of rows in a Parquet file with and without knots, and their passes."""
    spent: list[float] = []
    original = StreamedSource.sum_over_rows

    def timed(self: Any, row_sum: Any, weights: Any) -> Any:
        begin = time.process_time()
        totals = original(self, row_sum, weights)
        spent.append(time.process_time() - begin)
        return totals

    StreamedSource.sum_over_rows = timed  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made, "rows.parquet")
        write(path, rows, COLUMNS)
        for turn in range(runs):
            for knots in (0, KNOTS):
                columns = {f"x{i}": {"low": -1, "high": 1, "knots": knots} for i in range(COLUMNS)}
                schema = Schema(columns=columns, target={"column": "y", "negative": 0, "positive": 1})
                spent.clear()
                begin = time.process_time()
                LogisticRegression(1.0, random_state=0).fit(open_rows(path, schema))
                fit = time.process_time() - begin
                print(
                    f"run {turn + 1}, {rows} x {COLUMNS} in Parquet, {knots} knots: fit {fit:.2f} s CPU, "
                    f"{len(spent)} passes of {np.mean(spent):.3f} s (least {min(spent):.3f} s)"
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    in_memory(arguments.runs)
    adult(arguments.runs)
    on_disk(max(1, arguments.runs // 2), arguments.rows, arguments.folder)


if __name__ == "__main__":
    main()
