"""Which length scale suits a kernel over columns without a schema? Accuracy by factors of the root of the number of columns.

Columns are standardised ("standard"), or divided by one number so that the longest rows have norm 1 ("longest"), or each row
is brought to norm 1 ("each"). The rows used here scale the columns, which no private fit may do.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.kernel_lengths [--data rings-4 skin] [--draws 2]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.datasets import make_classification

import confide
from benchmarks.public_data import load
from confide.features.columns import NumberColumn

FACTORS = (0.25, 0.35, 0.5, 0.6, 0.71, 1.0)
BUDGETS = {"(1, 1e-6)": confide.ApproxDP(1.0, 1e-6), "4": confide.PureDP(4.0)}
N_ROWS, N_TRAIN, N_FEATURES = 10_000, 7_000, 120


def rings(n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard normal columns, and whether a row is longer than the median one."""
    X = np.random.default_rng(2).normal(size=(N_ROWS, n_columns))
    lengths = np.linalg.norm(X, axis=1)
    return X, lengths > np.median(lengths)


def spiral() -> tuple[np.ndarray, np.ndarray]:
    """Two arms of one and a half turns."""
    rng = np.random.default_rng(3)
    angle, arm = np.sqrt(rng.random(N_ROWS)) * 3.0 * math.pi, rng.integers(0, 2, N_ROWS)
    radius = angle + rng.normal(0.0, 0.4, N_ROWS)
    return np.c_[radius * np.cos(angle + math.pi * arm), radius * np.sin(angle + math.pi * arm)], arm == 1


def clusters() -> tuple[np.ndarray, np.ndarray]:
    """Six clusters in eight columns."""
    X, y = make_classification(N_ROWS, 8, n_informative=6, n_redundant=0, n_clusters_per_class=3, random_state=1)
    return X, y == 1


def numbers_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The number columns of a data set, on the scales of its schema, and its labels."""
    split = load(name)
    columns = [column for column in split.schema.columns if isinstance(column, NumberColumn)]
    frame, y = split.X_train[[column.name for column in columns]], split.y_train > 0
    X = frame.to_numpy(dtype=float)
    for position, column in enumerate(columns):
        if column.is_log:
            X[:, position] = np.log1p((X[:, position] - column.low) / column.doubling)
    chosen = np.random.default_rng(0).permutation(len(X))[:N_ROWS]
    X = X[chosen]
    varies = X.std(axis=0) > 0.0
    return X[:, varies], y[chosen]


DATA: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
    **{f"rings-{number}": lambda number=number: rings(number) for number in (2, 4, 8)},
    "clusters": clusters,
    "spiral": spiral,
    **{name: lambda name=name: numbers_of(name) for name in ("skin", "covertype", "adult", "bank-additional", "kddcup99")},
}


def main() -> None:
    """One line for each data set, size of rows and budget."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", nargs="+", default=list(DATA), choices=DATA)
    parser.add_argument("--draws", type=int, default=2)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    print("data, rows, budget:", *FACTORS, sep="  ")
    for name in arguments.data:
        X, y = DATA[name]()
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        for kind, rows in {"standard": X, "longest": X / np.quantile(norms, 0.999), "each": X / norms}.items():
            for named, budget in BUDGETS.items():
                scores = []
                for factor in FACTORS:
                    model = confide.KernelSVC(
                        budget, length_scale=factor * math.sqrt(X.shape[1]), n_features=N_FEATURES, classes=[False, True]
                    )
                    of_draws = [
                        model.fit(rows[:N_TRAIN], y[:N_TRAIN]).score(rows[N_TRAIN:], y[N_TRAIN:])
                        for _ in range(arguments.draws)
                    ]
                    scores.append(f"{np.mean(of_draws):.3f}")
                print(f"{name}, {kind}, {named}:", *scores, sep="  ", flush=True)


if __name__ == "__main__":
    main()
