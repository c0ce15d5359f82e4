"""How long somebody waits for a private model of Adult: from arrays, from a CSV file, and with all imports.

CPU seconds are what to compare on a machine with other work; wall time is what is waited. Each line is the best of its runs.

Run: OMP_NUM_THREADS=1 python benchmarks/adult_latency.py [--runs 15]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import confide
from confide import LogisticRegression, SchemaEncoder

FROM_NOTHING = """
import time
wall, cpu = time.perf_counter(), time.process_time()
from confide import LogisticRegression
imported = time.perf_counter(), time.process_time()
import pandas as pd
from confide.datasets import load_adult
schema = load_adult().schema
frame = pd.read_csv({path!r})
LogisticRegression(1.0, schema=schema).fit(frame, frame[schema.target.column])
print(imported[1] - cpu, imported[0] - wall, time.process_time() - cpu, time.perf_counter() - wall)
"""


def best(run: Callable[[], Any], runs: int) -> tuple[float, float]:
    """CPU and wall seconds, each the least of several calls."""
    measured = []
    for _ in range(runs):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        measured.append((time.process_time() - cpu, time.perf_counter() - wall))
    return min(cpu for cpu, _ in measured), min(wall for _, wall in measured)


def shown(what: str, cpu: float, wall: float, aim: float) -> None:
    """One line."""
    print(f"{what:48} {cpu:7.3f} s CPU {wall:7.3f} s wall   aim {aim:.3f} s")


def main() -> None:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    adult = confide.datasets.load_adult()
    target = adult.schema.target.column
    X = SchemaEncoder(adult.schema).fit(adult.X_train).transform(adult.X_train)
    X, y = np.asarray(X), (np.asarray(adult.y_train) == adult.schema.target.labels[1]).astype(np.int64)
    print(f"Adult: {X.shape[0]} rows, {X.shape[1]} encoded columns")
    shown("arrays", *best(lambda: LogisticRegression(1.0).fit(X, y), runs), 0.060)
    bound = float(np.sqrt(14.0))
    shown(
        "arrays, row_norm=sqrt(14): no row is clipped",
        *best(lambda: LogisticRegression(1.0, row_norm=bound).fit(X, y), runs),
        0.060,
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.csv"
        adult.X_train.assign(**{target: adult.y_train}).to_csv(path, index=False)

        def read_and_fit() -> None:
            frame = pd.read_csv(path)
            LogisticRegression(1.0, schema=adult.schema).fit(frame, frame[target])

        shown("CSV by pandas, through the shipped schema", *best(read_and_fit, max(3, runs // 3)), 1.0)
        opened = lambda: LogisticRegression(1.0).fit(confide.open_rows(path, adult.schema))  # noqa: E731
        shown("CSV by open_rows, read in each pass", *best(opened, max(3, runs // 3)), 1.0)
        code = FROM_NOTHING.format(path=str(path))
        fresh = np.array(
            [
                subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()  # noqa: S603
                for _ in range(max(3, runs // 5))
            ],
            dtype=float,
        ).min(axis=0)
        shown("a new process: imports", fresh[0], fresh[1], 2.5)
        shown("a new process: imports, CSV and fit", fresh[2], fresh[3], 2.5)


if __name__ == "__main__":
    main()
