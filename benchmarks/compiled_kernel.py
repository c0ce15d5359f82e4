"""The compiled kernel against NumPy: passes, threads, fits, and where the time of files goes.

CPU seconds, the median of several runs in turn; threads are timed by the wall. "Reading" adds up the numbers of an array.
What one and several threads take to find the largest number, which NumPy does faster, is what memory allows.

Run: OMP_NUM_THREADS=1 python benchmarks/compiled_kernel.py [--runs 5] [--scale 1.0] [--folder /tmp]
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
from coded_rows import with_knots
from rows_on_disk import write
from sklearn.base import clone

import confide
from confide import LogisticRegression, Schema
from confide.compiled.gradient_sums import CompiledSum, code_of
from confide.compiled.loading import Kernel, kernel
from confide.data.arrays import ArrayBlocks, EncodedBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.features.encoder import Encoder

THREADS = sorted({1, 2, os.cpu_count() or 1})


def threads(n: int) -> str:
    """So many threads, in words."""
    return "1 thread" if n == 1 else f"{n} threads"


def medians(
    runs: int, works: dict[str, Callable[[], Any]], clock: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Seconds of each work, the median of several runs in turn."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(runs):
        for name, work in works.items():
            begin = clock()
            work()
            taken[name].append(clock() - begin)
    return {name: statistics.median(each) for name, each in taken.items()}


def passes(
    runs: int, name: str, source: Callable[[int], MemorySource], row_sum: RowSum, module: Kernel, read: Any = None
) -> dict[int, float]:
    """One line: a pass by NumPy, by the kernel, and for a certificate; over that of reading, and what more threads gain.

    Returns the seconds that memory needs for the rows, by number of threads.
    """
    weights = np.random.default_rng(1).normal(size=(1, row_sum.n_weights(source(1).n_features))) * 0.1
    asked = CompiledSum(module, (code_of(row_sum.loss) or (0, 0.0, 0.0, 0.0)), row_sum.intercept, 1.0, np.inf)
    stored = {threads: source(threads).as_stored(shortened=False) for threads in THREADS}

    def exact(setting: str) -> None:
        os.environ["CONFIDE_COMPILED"] = setting
        source(1).sum_over_rows(row_sum, weights)

    works = {
        "NumPy": lambda: exact("0"),
        "kernel": lambda: stored[1].sum_over_rows(asked, weights),  # type: ignore[union-attr]
        "for a certificate": lambda: exact("1"),
    }
    if read is not None:
        works["reading"] = lambda: np.add.reduce(read, axis=None)
    found = medians(runs, works)
    by_threads = {str(n): (lambda n=n: stored[n].sum_over_rows(asked, weights)) for n in THREADS}
    walls = medians(runs, by_threads, time.perf_counter)
    shown = ", ".join(f"{each} {taken * 1e3:.1f} ms" for each, taken in found.items())
    over = f", kernel {found['kernel'] / found['reading']:.2f} times reading" if read is not None else ""
    gains = ", ".join(f"{n} threads {walls['1'] / walls[str(n)]:.2f} times" for n in THREADS[1:])
    print(f"{name}: {shown}: {found['NumPy'] / found['kernel']:.1f} times as fast{over}; wall: {gains}")
    if read is None:
        return {}
    alone = medians(runs, {str(n): (lambda n=n: read_by(read, n)) for n in THREADS}, time.perf_counter)
    for n in THREADS:
        print(f"  {threads(n)}: a pass {walls[str(n)] * 1e3:.1f} ms, memory allows {alone[str(n)] * 1e3:.1f} ms by the wall")
    return {n: alone[str(n)] for n in THREADS}


def read_by(read: Any, n_threads: int) -> None:
    """Find the largest number of an array, each thread among its own rows."""
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(np.max, np.array_split(read, n_threads)))


def over_arrays(runs: int, scale: float, module: Kernel) -> None:
    """Passes over dense rows."""
    rng = np.random.default_rng(0)
    for rows, columns in ((5_000_000, 20), (1_000_000, 100)):
        X = rng.standard_normal((int(rows * scale), columns))
        y = rng.choice([-1, 1], len(X)).astype(np.int8)
        X /= 1.3 * np.sqrt(columns)  # a few of a hundred rows are longer than 1
        row_sum = RowSum(LogisticLoss(), BallBound(1.0), 0.0, 1)
        made = {n: MemorySource(ArrayBlocks(X), y, n_threads=n) for n in THREADS}
        reading = passes(runs, f"{len(X)} x {columns} doubles", made.__getitem__, row_sum, module, X)
        model = LogisticRegression(
            confide.ApproxDP(1.0, 1e-8), classes=[-1, 1], mechanism="objective", centre=False, random_state=0
        )
        labels = np.where(X[:, 0] + rng.logistic(size=len(X)) > 0, 1, -1)
        fits(runs, f"  {len(X)} x {columns} doubles", model, X, labels, reading=reading)
        del X, made


def fits(runs: int, name: str, model: Any, *given: Any, reading: dict[int, float] | None = None) -> None:
    """One line: a fit with the kernel and without it; and the share of it that memory needs for so many passes."""

    def fit(setting: str) -> None:
        os.environ["CONFIDE_COMPILED"] = setting
        model.fit(*given)

    def by_threads(n_threads: int) -> None:
        os.environ["CONFIDE_COMPILED"] = "1"
        clone(model).set_params(n_jobs=n_threads).fit(*given)

    found = medians(runs, {"with": lambda: fit("1"), "without": lambda: fit("0")})
    ratio = found["without"] / found["with"]
    print(f"{name}: fit with the kernel {found['with']:.2f} s, without {found['without']:.2f} s: {ratio:.2f} times as fast")
    walls = medians(runs, {str(n): (lambda n=n: by_threads(n)) for n in THREADS}, time.perf_counter)
    print("    wall: " + ", ".join(f"{n} threads {walls['1'] / walls[str(n)]:.2f} times" for n in THREADS[1:]))
    if reading:
        # The check for finite numbers reads the rows too, and reports nothing.
        n_passes = 1 + number_of_passes(lambda: by_threads(1))
        for n in THREADS:
            share = n_passes * reading[n] / walls[str(n)]
            print(f"    {threads(n)}: {walls[str(n)]:.3f} s, of which memory needs {share:.0%} for {n_passes} passes")


def number_of_passes(fit: Callable[[], Any]) -> int:
    """How many passes over the rows a fit reports."""
    begun = 0

    def told(_what: str, n_rows: int) -> None:
        nonlocal begun
        begun += n_rows == 0

    with confide.progress(told):
        fit()
    return begun


def over_codes(runs: int, scale: float, module: Kernel) -> None:
    """Passes and fits of Adult, repeated, and of a category with many levels."""
    data = confide.datasets.load_adult()
    times = max(1, round(92 * scale))
    frame, y = pd.concat([data.X_train] * times, ignore_index=True), np.tile(np.asarray(data.y_train), times)
    curves = Schema(columns=tuple(map(with_knots, data.schema.columns)), target=data.schema.target)
    for name, schema in (("lines", data.schema), ("6 knots", curves)):
        encoder = Encoder(schema)
        codes, labels = encoder.read(frame), np.where(y == y[0], -1, 1).astype(np.int8)
        made = {n: MemorySource(EncodedBlocks(encoder, codes), labels, n_threads=n) for n in THREADS}
        passes(
            runs,
            f"Adult, {len(y)} rows, {name}",
            made.__getitem__,
            RowSum(LogisticLoss(), encoder.row_bound, 1.0, 1),
            module,
        )
        read = medians(runs, {"read": lambda encoder=encoder: encoder.read(frame)})["read"]
        print(f"  reading the frame as codes takes {read:.2f} s of the fit:")
        fits(runs, f"  Adult, {len(y)} rows, {name}", LogisticRegression(1.0, schema=schema, random_state=0), frame, y)
    rng = np.random.default_rng(0)
    for levels in (2000, 20_000):
        names = np.array([f"c{i}" for i in range(levels)])
        at, x = rng.integers(0, levels, 200_000), rng.uniform(-1, 1, 200_000)
        y = rng.normal(size=levels)[at] + x + rng.logistic(size=at.size) > 0
        schema = Schema(columns={"c": {"categories": list(names)}, "x": {"low": -1, "high": 1}})
        for budget in (confide.ApproxDP(1.0, 1e-6), float("inf")):
            model = LogisticRegression(budget, schema=schema, classes=[False, True], random_state=0)
            fits(runs, f"200000 rows, {levels} levels, {budget}", model, pd.DataFrame({"c": names[at], "x": x}), y)


def over_files(runs: int, scale: float, folder: Path, module: Kernel) -> None:
    """Where the time of a pass over a Parquet file goes: decoded, read as codes, summed up."""
    with tempfile.TemporaryDirectory(dir=folder) as made:
        path = Path(made, "rows.parquet")
        write(path, int(2_000_000 * scale), 20)
        for knots in (0, 6):
            encoder = Encoder(Schema(columns={f"x{i}": {"low": -1, "high": 1, "knots": knots} for i in range(20)}))
            tables = [pa.Table.from_batches([each]) for each in parquet.ParquetFile(path).iter_batches(2**16)]
            codes = [encoder.read(table) for table in tables]
            weights, row_sum = np.zeros((1, encoder.n_features + 1)), RowSum(LogisticLoss(), encoder.row_bound, 1.0, 1)
            asked = CompiledSum(module, (0, 0.0, 0.0, 0.0), 1.0, 1.0, np.inf)
            labels = np.ones(2**16, np.int8)
            sources = [MemorySource(EncodedBlocks(encoder, each), labels[: each.n_rows]) for each in codes]

            def summed(kind: Any, sources: Any = sources, weights: Any = weights) -> None:
                for source in sources:
                    (source if isinstance(kind, RowSum) else source.as_stored(False)).sum_over_rows(kind, weights)

            found = medians(
                runs,
                {
                    "decode": lambda path=path: list(parquet.ParquetFile(path, pre_buffer=False).iter_batches(2**16)),
                    "read as codes": lambda encoder=encoder, tables=tables: [encoder.read(table) for table in tables],
                    "sum by NumPy": lambda summed=summed, row_sum=row_sum: summed(row_sum),
                    "sum by the kernel": lambda summed=summed, asked=asked: summed(asked),
                },
            )
            print(
                f"Parquet, 20 numbers, {knots} knots: " + ", ".join(f"{name} {each:.2f} s" for name, each in found.items())
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rows, for smaller machines")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    module = kernel()
    if module is None:
        raise SystemExit("the compiled kernel was not built, or is switched off: python hatch_build.py builds it.")
    print(f"instructions: {module.processor()}; {os.cpu_count()} cores")
    over_arrays(arguments.runs, arguments.scale, module)
    over_files(arguments.runs, arguments.scale, arguments.folder, module)
    over_codes(arguments.runs, arguments.scale, module)


if __name__ == "__main__":
    main()
