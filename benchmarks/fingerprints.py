"""What the fingerprint of a partition costs beside a pass over it: CPU time with and without, the best of several.

Run: OMP_NUM_THREADS=1 python benchmarks/fingerprints.py
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import confide
from confide.data.partitions import NumericReading, Task
from confide.data.streams import Fingerprint, Reading
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.erm.row_sums import RowSum
from confide.features.encoder import Encoder

N_ROWS, N_COLUMNS, REPETITIONS = 250_000, 50, 7


def best(work: Callable[[], Any]) -> float:
    """The least CPU time of several."""
    seconds = []
    for _ in range(REPETITIONS):
        begun = time.process_time()
        work()
        seconds.append(time.process_time() - begun)
    return min(seconds)


def main() -> None:
    """One line for each kind of partition and pass."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(N_ROWS, N_COLUMNS)).astype(np.float32)
    labels = (rows[:, 0] > 0).astype(int)
    adult = confide.datasets.load_adult()
    frame = adult.X_train.assign(**{adult.schema.target.column: adult.y_train})
    frame = pd.concat([frame] * 6, ignore_index=True)
    numeric = NumericReading(N_COLUMNS, (0, 1))
    target = adult.schema.target
    encoded = Reading(Encoder(adult.schema), (target.negative, target.positive))
    for name, reading, given, bound in (
        ("float32, 50 columns", numeric, (rows, labels), BallBound(1.0)),
        ("float64, 50 columns", numeric, (rows.astype(np.float64), labels), BallBound(1.0)),
        ("frame of Adult", encoded, frame, encoded.encoder.row_bound),
    ):
        weights = np.full((1, reading.n_features + 1), 0.01)
        arrays = reading.piece(given, refuse=True).arrays
        alone = best(lambda arrays=arrays: Fingerprint().add(arrays))
        blake2b = best(lambda arrays=arrays: [hashlib.blake2b(np.ascontiguousarray(array)).digest() for array in arrays])
        for what, task in (
            ("check", Task(reading)),
            ("gradient", Task(reading, RowSum(LogisticLoss(), bound, 1.0, 1), weights)),
            ("Hessian", Task(reading, RowSum(LogisticLoss(), bound, 1.0, 2), weights)),
        ):
            whole = best(
                lambda task=task, given=given: task.run(
                    0, lambda refuse, task=task, given=given: iter([task.reading.piece(given, refuse=refuse)])
                )
            )
            without = whole - alone
            print(
                f"{name:20} {what:9} {whole / without:5.2f} times; with blake2b alone {(without + blake2b) / without:5.2f}"
            )


if __name__ == "__main__":
    main()
