"""Is a default far off? Test error at the defaults of each classifier, and at the best of a small grid around them.

Each line is a data set, a classifier, a guarantee and an epsilon. It shows the mean error at the defaults, that of every
change of one parameter, and by how much the best change is better. The best of several noisy means is flattered, so a gain
of a few standard errors is none; a default is to be mended if one change gains on most data sets.

Rows are given with their schema, or as an array: the encoded rows, divided by the largest norm that the schema allows, a
public constant. Neighbours replace a row. A factor of alpha is one of the automatic alpha.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.defaults [--data adult covertype] [--models LinearSVC KernelSVC]
     [--rows schema array] [--guarantees approximate pure none] [--epsilons 0.5 1 4] [--draws 3] [--only length_scale alpha]
     [--neighbours replace-one add-or-remove-one] [--defaults-alone]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

import confide
from benchmarks.peers import problems
from benchmarks.public_data import folder, load

DELTA = 1e-6


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to learn from and rows to test on; with a schema, or as an array in the unit ball."""

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    schema: confide.Schema | None = None

    @property
    def n_rows_bounds(self) -> tuple[int, int]:
        """Round figures about the number of rows."""
        return int(0.92 * len(self.y_train)), int(1.23 * len(self.y_train))


def _with_schema(name: str) -> Rows:
    split = problems.problem(name).split
    return Rows(split.X_train, split.y_train, split.X_test, split.y_test, split.schema)


def _as_array(name: str) -> Rows:
    problem = problems.problem(name)
    largest = problem.norms["largest"]
    return Rows(problem.train / largest, problem.split.y_train, problem.test / largest, problem.split.y_test)


def _libsvm(name: str, ones: int) -> Rows:
    """A sparse set of the LIBSVM page, whose rows have at most so many ones."""
    stored = np.load(folder() / f"{name}.npz")
    parts = []
    for part in ("train", "test"):
        if f"{part}_data" in stored:
            entries = (stored[f"{part}_data"].astype(float), stored[f"{part}_indices"], stored[f"{part}_indptr"])
            parts.append((sp.csr_array(entries, shape=stored[f"{part}_shape"]).toarray(), stored[f"{part}_y"]))
    if len(parts) == 1:
        (X, y), cut = parts[0], 40_000
        order = np.random.default_rng(0).permutation(len(y))
        parts = [(X[order[:cut]], y[order[:cut]]), (X[order[cut:]], y[order[cut:]])]
    (X_train, y_train), (X_test, y_test) = parts
    size = math.sqrt(ones)
    return Rows(X_train / size, y_train, X_test / size, y_test)


def _mnist(*, odd: bool) -> Rows:
    """Pixels from 0 to 1, divided by 28: odd or even, or ten classes."""
    stored = np.load(folder() / "mnist.npz")
    rows = [stored[f"x_{part}"].reshape(-1, 784) / (255.0 * 28.0) for part in ("train", "test")]
    labels = [stored[f"y_{part}"].astype(int) % (2 if odd else 10) for part in ("train", "test")]
    return Rows(rows[0][:20_000], labels[0][:20_000], rows[1], labels[1])


def _covertype_of_seven() -> Rows:
    """The type of cover in seven classes, as an array."""
    split = load("covertype")
    classes = pd.read_parquet(folder() / "covertype_sample.parquet", columns=["Cover_Type"])["Cover_Type"]
    encoder, size = confide.SchemaEncoder(split.schema), math.sqrt(12.0)  # ten numbers, one wilderness and one soil
    train, test = split.X_train[:42_000], split.X_test[:18_000]
    rows = [encoder.fit(part).transform(part) / size for part in (train, test)]
    labels = [classes.loc[part.index].to_numpy() for part in (train, test)]
    return Rows(rows[0], labels[0], rows[1], labels[1])


NAMES = (*problems.NAMES, *problems.HELD_OUT)
_ARRAYS_ALONE: dict[str, Callable[[], Rows]] = {
    "a9a": lambda: _libsvm("a9a", 14),
    "w8a": lambda: _libsvm("w8a", 114),
    "mnist, odd": lambda: _mnist(odd=True),
    "mnist, ten classes": lambda: _mnist(odd=False),
    "covertype, seven classes": _covertype_of_seven,
}
"""Data sets that are arrays. A row of w8a has at most 114 ones."""


def rows_of(name: str, kind: str) -> Rows | None:
    """The rows of a data set with its schema or as an array; None if there is no schema."""
    if name in _ARRAYS_ALONE:
        return _ARRAYS_ALONE[name]() if kind == "array" else None
    return _with_schema(name) if kind == "schema" else _as_array(name)


_EACH = {"alpha": (0.3, 3.0), "intercept_scaling": (0.25, 0.5, 1.0, 2.0)}
_BY_KIND: dict[str, dict[str, tuple[Any, ...]]] = {"schema": {}, "array": {"row_norm": (0.25, 0.5, 0.7, 2.0)}}
_BY_MODEL: dict[str, dict[str, tuple[Any, ...]]] = {
    "LogisticRegression": {"multiclass": ("one-vs-rest",)},
    "LinearSVC": {"loss": ("huber_hinge", "logistic_hinge"), "smoothing": (0.25, 1.0)},
    "KernelSVC": {
        "length_scale": (0.5, 2.0), "n_features": (120, 250, 500, 1000), "loss": ("huber_hinge", "logistic_hinge"),
        "smoothing": (0.25, 1.0), "orthogonal": (True,), "map_seed": (1,),
    },
    "ERMClassifier": {"loss": ("huber_hinge", "logistic_hinge")},
    "AdditiveClassifier": {"loss": ("logistic", "logistic_hinge"), "knots": (0, 3, 6, 12), "interactions": ("auto",)},
}  # fmt: skip


def _changes(model: str, kind: str, rows: Rows) -> dict[str, tuple[Any, ...]]:
    """The grid: the values of each parameter, of which one is changed at a time."""
    grid = _EACH | (_BY_KIND[kind] if model not in ("KernelSVC", "AdditiveClassifier") else {}) | _BY_MODEL[model]
    if len(np.unique(rows.y_train)) == 2:
        grid.pop("multiclass", None)
    return grid


def _estimator(model: str, rows: Rows, guarantee: str, epsilon: float, neighbours: str) -> Any:
    budgets: dict[str, Any] = {"approximate": confide.ApproxDP(epsilon, DELTA), "pure": epsilon, "none": math.inf}
    facts: dict[str, Any] = {} if rows.schema is None else {"schema": rows.schema}
    if model == "AdditiveClassifier" and rows.schema is None:
        facts["bounds"] = (-1.0, 1.0)
    if neighbours == "add-or-remove-one":
        facts |= {"neighbours": neighbours, "n_rows_bounds": rows.n_rows_bounds}
    facts["classes"] = np.unique(rows.y_train).tolist()
    return getattr(confide, model)(budgets[guarantee], **facts)


def _changed(estimator: Any, rows: Rows, name: str, value: Any) -> Any:
    """The estimator with one parameter changed. Factors of alpha and of the length scale are those of the automatic ones."""
    shape = (
        None if estimator.n_rows_bounds else len(rows.y_train), None if rows.schema is not None else rows.X_train.shape[1]
    )  # fmt: skip
    if name == "alpha":
        value *= estimator.plan(*shape).alpha
    if name == "length_scale":
        with_features = type(estimator)(**estimator.get_params(deep=False) | {"n_features": 2})
        value *= with_features.chosen_map(*shape).length_scale
    return type(estimator)(**estimator.get_params(deep=False) | {name: value})


def mean_error(estimator: Any, rows: Rows, draws: int) -> tuple[float, float]:
    """The mean test error of some fits and its standard error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", confide.PrivacyWarning)
        errors = [1.0 - estimator.fit(rows.X_train, rows.y_train).score(rows.X_test, rows.y_test) for _ in range(draws)]
    return float(np.mean(errors)), float(np.std(errors, ddof=1) / math.sqrt(draws)) if draws > 1 else math.nan


def _line(estimator: Any, grid: dict[str, tuple[Any, ...]], rows: Rows, draws: int) -> str:
    default, deviation = mean_error(estimator, rows, draws)
    found = {}
    for name, values in grid.items():
        for value in values:
            if getattr(estimator, name) == value:
                continue
            try:
                found[f"{name}={value}"] = mean_error(_changed(estimator, rows, name, value), rows, draws)[0]
            except confide.ParameterError:
                found[f"{name}={value}"] = math.inf
    line = f"default {default:.4f} +- {deviation:.4f}"
    if not found:
        return line
    best = min(found, key=found.__getitem__)
    return f"{line}, best {best} {default - found[best]:+.4f} | " + " ".join(f"{k} {v:.4f}" for k, v in found.items())


def main() -> None:
    """Print one line for each cell."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=[*NAMES, *_ARRAYS_ALONE], default=list(problems.NAMES))
    parser.add_argument("--models", nargs="+", choices=_BY_MODEL, default=list(_BY_MODEL))
    parser.add_argument("--rows", nargs="+", choices=_BY_KIND, default=list(_BY_KIND))
    parser.add_argument("--guarantees", nargs="+", choices=["approximate", "pure", "none"], default=["approximate", "pure"])
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.5, 1.0, 4.0])
    parser.add_argument("--neighbours", choices=["replace-one", "add-or-remove-one"], default="replace-one")
    parser.add_argument("--only", nargs="+", default=None, help="names of the parameters that are changed")
    parser.add_argument("--defaults-alone", action="store_true", help="change nothing")
    parser.add_argument("--draws", type=int, default=3)
    given = parser.parse_args()
    for name in given.data:
        for kind in given.rows:
            rows = rows_of(name, kind)
            if rows is None:
                continue
            for model in given.models:
                grid = {} if given.defaults_alone else _changes(model, kind, rows)
                grid = {each: values for each, values in grid.items() if given.only is None or each in given.only}
                for guarantee in given.guarantees:
                    for epsilon in given.epsilons if guarantee != "none" else [math.inf]:
                        estimator = _estimator(model, rows, guarantee, epsilon, given.neighbours)
                        line = _line(estimator, grid, rows, 1 if guarantee == "none" else given.draws)
                        print(f"{name}, {kind}, {model}, {guarantee} {epsilon:g}: {line}", flush=True)


if __name__ == "__main__":
    main()
