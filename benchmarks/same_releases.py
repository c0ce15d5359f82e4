"""Whether two revisions release the same, to the bit: a table of fits with fixed seeds, run by each and compared.

A change that is to alter no release, such as code that moves, is checked by it. What is compared: coefficients, what
they predict, intervals, plans, guarantees and saved models, also after they were read again; and that what is refused is
refused by the same kind of error. Sentences (plans in words, statements, warnings, messages) are listed where they differ,
and are no failure without --texts. Noisy weights are rounded to a grid, which hides the order in which numbers were added;
so rows of every kind are fitted without privacy too, where it shows.

Only the public API is used, so that names of modules may change; the rows are made up. Where Dask or Polars is not
installed, its fits are left out.

Run: python benchmarks/same_releases.py main HEAD [--only WORD] [--texts]; in place of a revision a folder is the working
tree, such as `.`. It ends with 1 where something differs.
"""

from __future__ import annotations

import argparse
import difflib
import importlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from compare import checked_out, commit, environment

SEED = 3
ADD_OR_REMOVE = {"neighbours": "add-or-remove-one", "n_rows_bounds": (8_000, 10_000)}
ATTRIBUTES = (
    "coef_", "intercept_", "alpha_", "classes_", "coefficient_names_", "n_features_in_", "feature_names_in_",
    "best_index_", "best_params_", "best_score_", "best_score_deviation_",
)  # fmt: skip
METHODS = ("predict", "decision_function", "predict_proba", "predict_log_proba")
SENTENCES = {"assumptions", "void", "cautions", "version", "checksum", "identity"}
"""Of documents: what may be said otherwise, and what is drawn anew, without a number that differs."""
REFUSED = "refused: "
MOST_SHOWN = 4
MECHANISMS = ("auto", "objective", "output", "gradient")
PLANNED: dict[str, dict[str, Any]] = {
    "LogisticRegression": {"row_norm": 1.0},
    "LinearSVC": {"row_norm": 1.0},
    "HuberRegressor": {"row_norm": 1.0, "target_bound": 1.0},
    "PoissonRegressor": {"row_norm": 1.0, "target_bound": 20.0},
    "Ridge": {"row_norm": 1.0, "target_bound": 1.0},
    "KernelSVC": {},
    "AdditiveClassifier": {},
    "AdditiveRegressor": {"target_low": 0.0, "target_high": 10.0},
}
"""The estimators whose plans are compared over a grid."""


class Rows(NamedTuple):
    """What a fit is given, and new rows to predict. The width is None where a schema knows it."""

    X: Any
    y: Any
    new: Any
    n_rows: int
    width: int | None


class Facts(NamedTuple):
    """What a fit released: numbers, which have to be the same, and sentences."""

    numbers: dict[str, Any]
    texts: dict[str, str]


Fit = Callable[[Path], Facts]
"""Given an empty folder."""
Table = dict[str, Fit]


class HyperbolicHinge:
    """A user's loss of the margin: a hinge with a hyperbola for its corner."""

    lipschitz, smoothness, monotone = 1.0, 0.5, True

    def value(self, margin: Any) -> Any:
        return 0.5 * (np.hypot(1.0, 1.0 - margin) + (1.0 - margin))

    def derivative(self, margin: Any) -> Any:
        return -0.5 * ((1.0 - margin) / np.hypot(1.0, 1.0 - margin) + 1.0)

    def second_derivative(self, margin: Any) -> Any:
        return 0.5 / np.hypot(1.0, 1.0 - margin) ** 3


class SteeperThanSaid(HyperbolicHinge):
    """The same with a wrong constant."""

    lipschitz = 0.5


class PseudoHuber:
    """A user's loss of score and target: Huber's without a kink."""

    lipschitz, smoothness = 0.1, 1.0

    def value(self, score: Any, target: Any) -> Any:
        return 0.01 * (np.hypot(1.0, (score - target) / 0.1) - 1.0)

    def derivative(self, score: Any, target: Any) -> Any:
        return (score - target) / np.hypot(1.0, (score - target) / 0.1)

    def second_derivative(self, score: Any, target: Any) -> Any:
        return np.hypot(1.0, (score - target) / 0.1) ** -3.0


def facts_of(model: Any, rows: Rows, folder: Path) -> Facts:
    """Everything that a fitted model tells, before and after it was saved."""
    numbers, texts = told_by(model, rows.new)
    if hasattr(model, "plan_"):
        plan = model.plan_
        numbers["plans"] = [without_sentences(each.to_dict()) for each in plan.plans]
        numbers["search"] = {"method": plan.method, "part_sizes": plan.part_sizes, "noise": plan.noise}
    else:
        public = None if getattr(model, "n_rows_bounds", None) else rows.n_rows
        classes = {"n_classes": len(model.classes_)} if hasattr(model, "classes_") else {}
        plan = model.plan(public, rows.width, **classes)
        numbers["plan"] = without_sentences(plan.to_dict())
    texts["plan"] = str(plan)
    path = folder / "model.json"
    model.save(path)
    numbers["file"] = without_sentences(json.loads(path.read_text()))
    loaded = told_by(importlib.import_module("confide").load(path), rows.new)
    numbers["loaded"], texts["loaded"] = loaded.numbers, "\n".join(loaded.texts.values())
    return Facts(numbers, texts)


def told_by(model: Any, new: Any) -> Facts:
    """What one object tells: attributes, predictions, guarantee and intervals."""
    numbers = {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    numbers |= {name: getattr(model, name)(new) for name in METHODS if hasattr(model, name)}
    numbers["guarantee"] = without_sentences(model.guarantee_.to_dict())
    texts = {"statement": model.guarantee_.statement()}
    if hasattr(model, "conf_int"):
        for target in ("regularised", "unregularised"):
            try:
                numbers[target] = intervals_of(model, target)
                texts[target] = str(model.summary(target=target))
            except ValueError as error:
                numbers[target], texts[target] = type(error).__name__, str(error)
    return Facts(numbers, texts)


def intervals_of(model: Any, target: str) -> dict[str, Any]:
    """Intervals of the coefficients, and what they are made of."""
    law = model.uncertainty(target)
    parts = {name: getattr(law, name) for name in ("estimates", "sampling_error", "total_error")}
    return {"conf_int": model.conf_int(target=target), **parts, "p_values": law.p_values()}


def without_sentences(document: Any) -> Any:
    """A document without what may be said otherwise."""
    if isinstance(document, Mapping):
        return {name: without_sentences(value) for name, value in document.items() if name not in SENTENCES}
    return [without_sentences(value) for value in document] if isinstance(document, list) else document


def fit(
    kind: Any, rows: Rows | Callable[[Path], Rows], *budget: Any, weights: Any = None, seed: Any = SEED, **parameters: Any
) -> Fit:
    """A fit of an estimator with these parameters, to rows or to what opens them."""

    def run(folder: Path) -> Facts:
        given = rows(folder) if callable(rows) else rows
        model = kind(*budget, random_state=seed, **parameters)
        facts = {} if weights is None else {"sample_weight": weights}
        return facts_of(model.fit(given.X, *([] if given.y is None else [given.y]), **facts), given, folder)

    return run


def statement(kind: Any, rows: Rows, *budget: Any, **parameters: Any) -> Fit:
    """What a fit without a seed says: its weights are other ones each time, and its guarantee is not void."""

    def run(folder: Path) -> Facts:  # noqa: ARG001 - writes nothing
        model = kind(*budget, **parameters).fit(rows.X, rows.y)
        guarantee = model.guarantee_
        numbers = {"guarantee": without_sentences(guarantee.to_dict()), "alpha": model.alpha_}
        return Facts(numbers, {"statement": guarantee.statement(), "page": guarantee.to_html().replace("><", ">\n<")})

    return run


def search(make: Callable[[], Any], rows: Rows | Callable[[Path], Rows], **parameters: Any) -> Fit:
    """A private search, its estimator new in every fit."""

    def kind(random_state: int) -> Any:
        return importlib.import_module("confide").PrivateSearchCV(make(), random_state=random_state, **parameters)

    return fit(kind, rows)


def made_up_arrays() -> dict[str, Rows]:
    """Rows without a schema, of every kind. Some are longer than 1, so that clipping shows."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(9_000, 8)) / 3.0
    long = rng.normal(size=(20_000, 30)) / 6.0
    longest = rng.normal(size=(1_200_000, 3)) / 2.0
    wide = rng.normal(size=(400, 700)) / 27.0
    sparse = scipy.sparse.random_array((3_000, 400), density=0.02, format="csr", rng=rng)
    scattered = scipy.sparse.random_array((600, 2_500), density=0.01, format="csr", rng=rng)
    many = scipy.sparse.random_array((40_000, 2_500), density=0.002, format="csr", rng=rng)
    number, three = X @ np.array([1.0, -1.0, 0.5, 0, 0, 0, 0.3, 0]), np.stack([X[:, 0], X[:, 1], -X[:, 0] - X[:, 1]])
    y = (number + rng.normal(size=9_000) / 2 > 0).astype(np.int64)
    three = (three + rng.normal(size=three.shape) / 3).argmax(axis=0)
    target = np.clip(number + rng.normal(size=9_000) / 4, -3.0, 3.0)

    def rows(X: Any, y: Any, new: Any = None) -> Rows:
        new = X[:40] if new is None else new
        return Rows(X, y, new, len(y), new.shape[1])

    names = [f"column {place}" for place in range(8)]
    frame = pd.DataFrame(X, columns=names)
    return {
        "float64": rows(X, y),
        "float32": rows(X.astype(np.float32), y),
        "not contiguous": rows(np.asfortranarray(X)[::-1], y[::-1]),
        "list": rows(X[:8_200].tolist(), y[:8_200].tolist(), X[:40]),
        "frame of numbers": rows(frame, y, frame[:40]),
        "1,200,000 rows": rows(longest, (longest[:, 0] > longest[:, 1] * longest[:, 2]).astype(np.int64)),
        "20,000 rows": rows(long, (long[:, 0] + long[:, 1] > 0).astype(np.int64)),
        "very wide": rows(scattered, (scattered[:, :1_250].sum(axis=1) > scattered[:, 1_250:].sum(axis=1)).astype(np.int64)),
        "many and wide": rows(many, (many[:, :1_250].sum(axis=1) > many[:, 1_250:].sum(axis=1)).astype(np.int64)),
        "wide, three classes": rows(wide, wide[:, :3].argmax(axis=1)),
        "wide": rows(wide, (wide[:, :50].sum(axis=1) > 0).astype(np.int64)),
        "sparse": rows(sparse, (sparse[:, :200].sum(axis=1) > sparse[:, 200:].sum(axis=1)).astype(np.int64)),
        "three classes": rows(X, three),
        "words": rows(X, np.array(["ash", "elm", "fir"])[three]),
        "truths": rows(X, y == 1),
        "targets": rows(X, target),
        "targets, 1,200,000 rows": rows(longest, longest[:, 0] - 0.5 * longest[:, 2]),
        "targets, float32": rows(X.astype(np.float32), target),
        "targets, sparse": rows(sparse, np.asarray(sparse[:, :100].sum(axis=1))),
        "counts": rows(X, rng.poisson(np.exp(0.5 * number)).astype(np.float64)),
    }


def made_up_frame() -> pd.DataFrame:
    """Raw columns with gaps and values that no schema lists, two targets, counts and a column of persons."""
    rng = np.random.default_rng(12)
    n = 9_000
    age = rng.uniform(-10, 110, n)
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 20))
    return pd.DataFrame(
        {
            "age": age,
            "debt": np.where(rng.random(n) < 0.1, np.nan, rng.lognormal(8, 2, n)),
            "work": rng.choice(["a", "b", "c", "d"], n),
            "size": pd.array(rng.choice([1, 2, 3], n), dtype="Int64"),
            "sex": rng.choice(["f", "m"], n),
            "ill": np.where(ill, "yes", "no"),
            "grade": rng.choice(["high", "low", "middle"], n),
            "visits": rng.poisson(np.exp(ill * 1.0)).astype(np.float64),
            "person": rng.integers(0, 4_000, n),
        }
    )


def schema_of(target: str | None = "ill", *, bends: bool = False, person: str | None = None) -> Any:
    """What is known of these columns; with knots and interactions on request."""
    columns: dict[str, Any] = {
        "age": {"low": 0, "high": 100} | ({"knots": [30, 60]} if bends else {}),
        "debt": {"low": 0, "high": 1e5, "scale": "log", "missing": True},
        "work": {"categories": ["a", "b", "c"], "other": True},
        "size": {"categories": [1, 2, 3], "missing": True},
        "sex": {"categories": ["f", "m"]},
    }
    targets = {
        "ill": {"column": "ill", "negative": "no", "positive": "yes"},
        "grade": {"column": "grade", "classes": ["high", "low", "middle"]},
    }
    interact = [["sex", "age"], ["work", "sex"]] if bends else []
    known = {"target": targets[target]} if target else {}
    return importlib.import_module("confide").Schema(columns, person=person, interact=interact, **known)


def of_frame(frame: Any, target: str = "ill") -> Rows:
    """Rows with a schema, in memory."""
    return Rows(frame, frame[target], frame[:40], len(frame), None)


def opened(kind: str, schema: Any, *, target: str | None = None, **more: Any) -> Callable[[Path], Rows]:
    """The same in files of a kind, opened."""

    def open_in(folder: Path) -> Rows:
        frame = made_up_frame()
        if kind == "csv":
            frame.to_csv(folder / "table.csv", index=False)
        elif kind == "feather":
            frame.to_feather(folder / "table.feather")
        else:
            for place, part in enumerate((frame[:5_000], frame[5_000:5_001], frame[5_001:])):
                part.to_parquet(folder / f"table{place}.parquet", row_group_size=1_611)
        rows = importlib.import_module("confide").open_rows(str(folder / f"table*.{kind}"), schema, target=target, **more)
        return Rows(rows, None, frame[:40], len(frame), None)

    return open_in


def opened_long(folder: Path) -> Rows:
    """Several groups of blocks of two columns in a file, opened."""
    confide, frame = importlib.import_module("confide"), pd.concat([made_up_frame()[["age", "sex", "ill"]]] * 40)
    frame.to_parquet(folder / "long.parquet", row_group_size=50_000)
    there = confide.open_rows(folder / "long.parquet", schema_of_two())
    return Rows(there, None, frame[:40], len(frame), None)


def schema_of_two() -> Any:
    """Of that file."""
    known = {column.name: column for column in schema_of().columns}
    return importlib.import_module("confide").Schema([known["age"], known["sex"]], target=schema_of().target)


def opened_arrays(rows: Rows) -> Callable[[Path], Rows]:
    """The same in NumPy files, opened."""

    def open_in(folder: Path) -> Rows:
        np.save(folder / "X.npy", rows.X)
        np.save(folder / "y.npy", rows.y)
        there = importlib.import_module("confide").open_rows(folder / "X.npy", labels=folder / "y.npy")
        return rows._replace(X=there, y=None)

    return open_in


def arrays_and_files() -> Table:
    """Each kind of rows, with privacy and without."""
    import confide

    arrays, frame, infinite = made_up_arrays(), made_up_frame(), float("inf")
    logistic, schema, bends = confide.LogisticRegression, schema_of(), schema_of(bends=True)
    table: Table = {}
    kinds = (
        "float64", "float32", "not contiguous", "list", "frame of numbers", "20,000 rows", "1,200,000 rows",
        "wide", "very wide", "many and wide", "sparse", "truths",
    )  # fmt: skip
    for name in kinds:
        for budget in (1.0, infinite):
            table[f"{name}, epsilon {budget:g}"] = fit(logistic, arrays[name], budget)
    with_schema: dict[str, tuple[Any, Any]] = {
        "pandas": (of_frame(frame), schema),
        "pandas, knots and interactions": (of_frame(frame), bends),
        "CSV": (opened("csv", bends), bends),
        "Parquet": (opened("parquet", bends), bends),
        "Parquet with a cache": (opened("parquet", bends, cache=True), bends),
        "Feather": (opened("feather", schema), schema),
    }
    other_types = frame.astype({"age": "float32", "work": "category", "size": "float64", "sex": object, "ill": "category"})
    with_schema["pandas, other types"] = of_frame(other_types), bends
    if find_spec("polars"):
        import polars as pl

        with_schema["Polars"] = of_frame(pl.from_pandas(frame)), bends
    for name, (rows, its_schema) in with_schema.items():
        for budget in (1.0, infinite):
            table[f"{name}, epsilon {budget:g}"] = fit(logistic, rows, budget, schema=its_schema)
    person, grade, numbers = schema_of(person="person"), schema_of("grade"), schema_of(None)
    huber, poisson = {"schema": numbers, "target_bound": 4.0}, {"schema": numbers, "target_bound": 6.0}
    for threads in (1, 2):
        table[f"Parquet, 360,000 rows, {threads} at a time, epsilon inf"] = fit(
            logistic, opened_long, infinite, schema=schema_of_two(), n_jobs=threads
        )
    table |= {
        "NumPy files": fit(logistic, opened_arrays(arrays["float64"]), 1.0),
        "NumPy files, epsilon inf": fit(logistic, opened_arrays(arrays["float32"]), infinite),
        "NumPy files, Ridge": fit(confide.Ridge, opened_arrays(arrays["targets"]), 1.0, target_bound=3.0),
        "persons": fit(logistic, of_frame(frame), 1.0, schema=person, max_rows_per_person=2),
        "persons, one row each": fit(logistic, of_frame(frame), 1.0, schema=person),
        "persons, epsilon inf": fit(logistic, of_frame(frame), infinite, schema=person, max_rows_per_person=2),
        "persons in Parquet": fit(logistic, opened("parquet", person), 1.0, schema=person, max_rows_per_person=2),
        "three classes of a schema": fit(logistic, of_frame(frame, "grade"), 4.0, schema=grade),
        "three classes in CSV": fit(logistic, opened("csv", grade), 4.0, schema=grade, multiclass="one-vs-rest"),
        "Ridge of a schema": fit(confide.Ridge, of_frame(frame, "visits"), 2.0, **huber),
        "Ridge, Parquet": fit(confide.Ridge, opened("parquet", numbers, target="visits"), 2.0, **huber),
        "HuberRegressor, CSV": fit(confide.HuberRegressor, opened("csv", numbers, target="visits"), 2.0, **huber),
        "HuberRegressor, Parquet, epsilon inf": fit(
            confide.HuberRegressor, opened("parquet", numbers, target="visits"), infinite, **huber
        ),
        "PoissonRegressor, Parquet": fit(
            confide.PoissonRegressor, opened("parquet", numbers, target="visits"), 2.0, **poisson
        ),
        "LinearSVC, Parquet": fit(confide.LinearSVC, opened("parquet", bends), 1.0, schema=bends),
        "KernelSVC of a schema": fit(confide.KernelSVC, of_frame(frame), 2.0, schema=schema, n_features=32),
        "KernelSVC, Parquet": fit(confide.KernelSVC, opened("parquet", schema), 2.0, schema=schema, n_features=32),
        "intervals, Parquet": fit(logistic, opened("parquet", schema), 8.0, schema=schema, inference_share=0.3),
    }
    return table


def classifiers() -> Table:
    """Estimators by mechanisms, currencies, losses and parameters."""
    import confide

    arrays, infinite = made_up_arrays(), float("inf")
    two, three, frame = arrays["float64"], arrays["three classes"], of_frame(made_up_frame())
    logistic, svc, kernel, erm = confide.LogisticRegression, confide.LinearSVC, confide.KernelSVC, confide.ERMClassifier
    approximate, concentrated = confide.ApproxDP(1.0, 1e-6), confide.ZCDP(0.5)
    weights = np.random.default_rng(13).uniform(0.0, 1.5, 9_000)
    table: Table = {}
    for name, budget in {"pure": 1.0, "approximate": approximate, "concentrated": concentrated}.items():
        for mechanism in ("auto", "objective", "output"):
            table[f"logistic, {name}, {mechanism}"] = fit(logistic, two, budget, classes=[0, 1], mechanism=mechanism)
        table[f"logistic, {name}, add or remove"] = fit(logistic, two, budget, **ADD_OR_REMOVE)
        table[f"LinearSVC, {name}"] = fit(svc, two, budget)
        table[f"softmax, {name}"] = fit(logistic, three, budget, classes=[0, 1, 2])
        table[f"intervals, {name}"] = fit(logistic, two, four_times(budget), inference_share=0.3)
    for loss in ("auto", "huber_hinge", "smooth_hinge", "logistic_hinge", "hinge"):
        table[f"{loss}, epsilon 4"] = fit(svc, two, 4.0, loss=loss)
        table[f"{loss}, output"] = fit(svc, two, approximate, loss=loss, mechanism="output")
        table[f"{loss}, epsilon inf"] = fit(svc, two, infinite, loss=loss)
    return table | {
        "output-laplace": fit(logistic, two, 1.0, mechanism="output-laplace"),
        "output-laplace, huber_hinge": fit(svc, two, 1.0, mechanism="output-laplace", loss="huber_hinge"),
        "output-laplace of a schema": fit(logistic, frame, 1.0, schema=schema_of(), mechanism="output-laplace"),
        "seed 4": fit(logistic, two, 1.0, seed=4),
        "no seed, epsilon inf": fit(logistic, two, infinite, seed=None),
        "alpha 0.01": fit(logistic, two, 1.0, alpha=0.01),
        "alpha that is raised": fit(logistic, two, 0.1, alpha=1e-9),
        "no intercept": fit(logistic, two, 1.0, fit_intercept=False),
        "intercept_scaling 2": fit(logistic, two, 1.0, intercept_scaling=2.0),
        "row_norm 0.5": fit(logistic, two, 1.0, row_norm=0.5),
        "row_norm inf, epsilon inf": fit(logistic, two, infinite, row_norm=infinite),
        "BallBound": fit(logistic, two, 1.0, row_norm=confide.BallBound(2.0)),
        "BoxBound": fit(logistic, two, approximate, row_norm=confide.BoxBound([0.5] * 8)),
        "BoxBound of sparse rows": fit(logistic, arrays["sparse"], 1.0, row_norm=confide.BoxBound([0.5] * 400)),
        "GroupBound": fit(logistic, two, 1.0, row_norm=confide.GroupBound((3, 1, 4), (1.0, 0.5, 0.7))),
        "GroupBound, epsilon inf": fit(logistic, two, infinite, row_norm=confide.GroupBound((3, 1, 4), (1.0, 0.5, 0.7))),
        "GroupBound, linked": fit(logistic, two, 1.0, row_norm=confide.GroupBound((4, 4), (1.0, 1.0), (True, False))),
        "two rows a person": fit(logistic, two, 2.0, max_rows_per_person=2),
        "three rows a person, add or remove": fit(logistic, two, approximate, max_rows_per_person=3, **ADD_OR_REMOVE),
        "sample_weight": fit(logistic, two, 1.0, weights=weights, max_sample_weight=1.5),
        "sample_weight, epsilon inf": fit(logistic, two, infinite, weights=weights, max_sample_weight=1.5),
        "class_weight": fit(logistic, two, 1.0, class_weight={0: 1.0, 1: 3.0}),
        "class_weight and sample_weight, three classes": fit(
            logistic, three, 4.0, weights=weights, max_sample_weight=1.5, class_weight={0: 1.0, 1: 0.5, 2: 2.0}
        ),
        "two threads": fit(logistic, arrays["1,200,000 rows"], 1.0, n_jobs=2),
        "two threads, epsilon inf": fit(logistic, arrays["1,200,000 rows"], infinite, n_jobs=2),
        "two threads, LinearSVC, epsilon inf": fit(svc, arrays["1,200,000 rows"], infinite, n_jobs=2),
        "softmax, output": fit(logistic, three, 4.0, mechanism="output"),
        "softmax, epsilon inf": fit(logistic, three, infinite),
        "softmax of words": fit(logistic, arrays["words"], 4.0, classes=["ash", "elm", "fir"]),
        "one-vs-rest": fit(logistic, three, 4.0, multiclass="one-vs-rest"),
        "one-vs-rest, output": fit(logistic, three, approximate, multiclass="one-vs-rest", mechanism="output"),
        "one-vs-rest, epsilon inf": fit(logistic, three, infinite, multiclass="one-vs-rest"),
        "LinearSVC, three classes": fit(svc, three, 4.0),
        "LinearSVC, three classes, epsilon inf": fit(svc, three, infinite),
        "LinearSVC, auto gives way": fit(svc, two, 0.2),
        "LinearSVC, auto gives way and clips": fit(svc, frame, confide.ApproxDP(0.5, 1e-5), schema=schema_of(bends=True)),
        "LinearSVC, auto of a schema, epsilon inf": fit(svc, frame, infinite, schema=schema_of(bends=True)),
        "LinearSVC, add or remove": fit(svc, frame, 0.5, schema=schema_of(), **ADD_OR_REMOVE),
        "LinearSVC, narrow joint": fit(svc, two, 4.0, loss="huber_hinge", smoothing=0.05),
        "LinearSVC, 20,000 rows, epsilon inf": fit(svc, arrays["20,000 rows"], infinite),
        "hinge, 20,000 rows": fit(svc, arrays["20,000 rows"], 1.0, loss="hinge"),
        "LinearSVC, very wide": fit(svc, arrays["very wide"], 4.0),
        "softmax, wide, epsilon inf": fit(logistic, arrays["wide, three classes"], infinite),
        "LinearSVC, sparse": fit(svc, arrays["sparse"], 4.0),
        "LinearSVC, intervals": fit(svc, two, 8.0, loss="huber_hinge", inference_share=0.3),
        "hinge, add or remove": fit(svc, two, 1.0, loss="hinge", **ADD_OR_REMOVE),
        "KernelSVC": fit(kernel, two, 2.0, n_features=64),
        "KernelSVC, auto": fit(kernel, two, 0.3, n_features=64, loss="auto"),
        "KernelSVC, laplacian, epsilon inf": fit(kernel, two, infinite, n_features=64, kernel="laplacian"),
        "KernelSVC, cauchy, output": fit(kernel, two, approximate, n_features=64, kernel="cauchy", mechanism="output"),
        "KernelSVC, orthogonal, three classes": fit(kernel, three, 8.0, n_features=32, orthogonal=True, map_seed=5),
        "KernelSVC, 20,000 rows": fit(kernel, arrays["20,000 rows"], 2.0, n_features=64, n_jobs=2),
        "ERMClassifier": fit(erm, two, 1.0),
        "ERMClassifier, smooth_hinge, three classes": fit(erm, three, 4.0, loss="smooth_hinge"),
        "ERMClassifier, a user's loss": fit(erm, two, 1.0, loss=HyperbolicHinge()),
        "ERMClassifier, a user's loss, Gaussian": fit(erm, two, approximate, loss=HyperbolicHinge()),
        "ERMClassifier, a user's loss, output": fit(erm, two, 1.0, loss=HyperbolicHinge(), mechanism="output"),
        "ERMClassifier, a user's loss, epsilon inf": fit(erm, two, infinite, loss=HyperbolicHinge()),
        "intervals, output": fit(logistic, two, 8.0, inference_share=0.4, mechanism="output"),
        "intervals, automatic share": fit(logistic, two, 8.0, inference_share="auto"),
        "intervals, epsilon inf": fit(logistic, two, infinite, inference_share=0.3),
        "intervals, softmax": fit(logistic, three, 20.0, inference_share=0.4),
        "intervals, one-vs-rest": fit(logistic, three, 20.0, inference_share="auto", multiclass="one-vs-rest"),
        "intervals, schema": fit(logistic, frame, 8.0, schema=schema_of(), inference_share=0.3),
        "intervals, add or remove": fit(logistic, frame, 8.0, schema=schema_of(), inference_share=0.3, **ADD_OR_REMOVE),
    }


def four_times(budget: Any) -> Any:
    """A budget that leaves enough for intervals."""
    import confide

    if isinstance(budget, confide.ApproxDP):
        return confide.ApproxDP(4.0 * budget.epsilon, budget.delta)
    return confide.ZCDP(4.0 * budget.rho) if isinstance(budget, confide.ZCDP) else 4.0 * budget


def regressors() -> Table:
    """The same for numbers and counts."""
    import confide

    arrays, infinite = made_up_arrays(), float("inf")
    numbers, counts = arrays["targets"], arrays["counts"]
    ridge, huber, poisson, erm = confide.Ridge, confide.HuberRegressor, confide.PoissonRegressor, confide.ERMRegressor
    budgets = {"pure": 2.0, "approximate": confide.ApproxDP(2.0, 1e-6), "concentrated": confide.ZCDP(1.0), "none": infinite}
    weights = np.random.default_rng(14).uniform(0.0, 1.5, 9_000)
    table: Table = {}
    for name, budget in budgets.items():
        table[f"Ridge, {name}"] = fit(ridge, numbers, budget, target_bound=3.0)
        table[f"HuberRegressor, {name}"] = fit(huber, numbers, budget, target_bound=3.0)
        table[f"PoissonRegressor, {name}"] = fit(poisson, counts, budget, target_bound=6.0)
    for name, kind in (("float32", ridge), ("float32", huber), ("sparse", huber)):
        rows = arrays[f"targets, {name}"]
        table[f"{kind.__name__}, {name}, epsilon inf"] = fit(kind, rows, infinite, target_bound=3.0)
    return table | {
        "Ridge, add or remove": fit(ridge, numbers, 2.0, target_bound=3.0, **ADD_OR_REMOVE),
        "Ridge, alpha and no intercept": fit(ridge, numbers, 2.0, target_bound=3.0, alpha=0.01, fit_intercept=False),
        "Ridge, intervals": fit(ridge, numbers, 20.0, target_bound=3.0, intervals=True),
        "Ridge, intervals, concentrated": fit(ridge, numbers, confide.ZCDP(10.0), target_bound=3.0, intervals=True),
        "Ridge, intervals, add or remove": fit(ridge, numbers, 40.0, target_bound=3.0, intervals=True, **ADD_OR_REMOVE),
        "Ridge, intervals, epsilon inf": fit(ridge, numbers, infinite, target_bound=3.0, intervals=True),
        "Ridge, two threads, two rows a person": fit(ridge, numbers, 4.0, target_bound=3.0, n_jobs=2, max_rows_per_person=2),
        "Ridge, BoxBound": fit(ridge, numbers, 2.0, target_bound=3.0, row_norm=confide.BoxBound([0.5] * 8)),
        "HuberRegressor, output": fit(huber, numbers, 2.0, target_bound=3.0, mechanism="output"),
        "HuberRegressor, clipped_squared": fit(huber, numbers, 2.0, target_bound=3.0, loss="clipped_squared"),
        "HuberRegressor, intervals": fit(huber, numbers, 20.0, target_bound=3.0, inference_share=0.3),
        "HuberRegressor, add or remove": fit(huber, numbers, 2.0, target_bound=3.0, threshold=0.5, **ADD_OR_REMOVE),
        "HuberRegressor, sample_weight": fit(huber, numbers, 2.0, weights=weights, target_bound=3.0, max_sample_weight=1.5),
        "PoissonRegressor, output": fit(poisson, counts, 2.0, target_bound=6.0, threshold=2.0, mechanism="output"),
        "HuberRegressor, two threads, epsilon inf": fit(
            huber, arrays["targets, 1,200,000 rows"], infinite, target_bound=3.0, n_jobs=2
        ),
        "Ridge, two threads, epsilon inf": fit(
            ridge, arrays["targets, 1,200,000 rows"], infinite, target_bound=3.0, n_jobs=2
        ),
        "ERMRegressor": fit(erm, numbers, 2.0, target_bound=3.0),
        "ERMRegressor, poisson": fit(erm, counts, 2.0, loss="poisson", target_bound=6.0),
        "ERMRegressor, a user's loss": fit(erm, numbers, 2.0, loss=PseudoHuber(), target_bound=3.0),
        "ERMRegressor, a user's loss, epsilon inf": fit(erm, numbers, infinite, loss=PseudoHuber(), target_bound=3.0),
    }


def other_releases() -> Table:
    """Searches, evaluations, transformers and what a ledger counts."""
    import confide

    arrays, frame = made_up_arrays(), of_frame(made_up_frame())
    two, three, numbers = (arrays[name] for name in ("float64", "three classes", "targets"))
    approximate, grid = confide.ApproxDP(2.0, 1e-6), {"alpha": [0.001, 0.1, 1.0]}

    def logistic(**more: Any) -> Callable[[], Any]:
        return lambda: confide.LogisticRegression(**more)

    table: Table = {}
    for method in ("auto", "permute-and-flip", "exponential", "repeated"):
        for name, budget in (("pure", 2.0), ("approximate", approximate)):
            tries = {"expected_tries": 6.0} if method == "repeated" else {}
            how = {"param_grid": grid, "budget": budget, "method": method, **tries}
            table[f"search, {method}, {name}"] = search(logistic(classes=[0, 1]), two, **how)
    table["search, score"] = search(
        logistic(), three, param_grid=grid, budget=8.0, method="permute-and-flip", score_share=0.2, held_out=0.3
    )
    table["search of a schema"] = search(
        logistic(schema=schema_of()), frame, param_grid=grid, budget=confide.ZCDP(1.0), method="exponential"
    )
    table["search, Parquet"] = search(
        logistic(schema=schema_of()), opened("parquet", schema_of()), param_grid=grid, budget=2.0, method="repeated"
    )
    table["search, kernels"] = search(
        lambda: confide.KernelSVC(n_features=16), two, param_grid={"length_scale": [0.5, 2.0]}, budget=approximate
    )
    return table | {
        "evaluate": evaluated(logistic(), two, budget=0.5),
        "evaluate, Gaussian": evaluated(logistic(), two, budget=approximate, n_bins=8),
        "evaluate, add or remove": evaluated(logistic(), two, budget=0.5, neighbours="add-or-remove-one"),
        "evaluate, no privacy": evaluated(logistic(), two, budget=float("inf")),
        "evaluate, LinearSVC of a schema": evaluated(lambda: confide.LinearSVC(schema=schema_of()), frame, budget=1.0),
        "evaluate, persons": evaluated(
            logistic(schema=schema_of(person="person")), frame, budget=1.0, max_rows_per_person=2
        ),
        "evaluate, Parquet": evaluated(
            logistic(schema=schema_of()), frame, opened("parquet", schema_of()), budget=confide.ZCDP(0.1)
        ),
        "evaluate, NumPy files": evaluated(logistic(), two, opened_arrays(two), budget=0.5),
        "evaluate, three classes": evaluated(logistic(), three, budget=1.0),
        "evaluate, numbers": evaluated(lambda: confide.Ridge(4.0, target_bound=3.0), numbers, budget=approximate, clip=1.0),
        "evaluate, KernelSVC": evaluated(lambda: confide.KernelSVC(n_features=32), two, budget=1.0),
        "random Fourier features": transformed(
            lambda: confide.RandomFourierFeatures(64, length_scale=0.7, random_state=SEED), two
        ),
        "random Fourier features, orthogonal": transformed(lambda: confide.RandomFourierFeatures(64, orthogonal=True), two),
        "random Fourier features, float32": transformed(
            lambda: confide.RandomFourierFeatures(32, kernel="laplacian"), arrays["float32"]
        ),
        "SchemaEncoder": transformed(lambda: confide.SchemaEncoder(schema_of(bends=True)), frame),
        "a ledger": charged(confide.PureDP(10.0), [1.0, 2.0]),
        "a ledger, approximate": charged(confide.ApproxDP(10.0, 1e-5), [1.0, confide.ApproxDP(1.0, 1e-6)]),
        "a ledger, concentrated": charged(confide.ZCDP(10.0), [confide.ZCDP(0.5), confide.ZCDP(0.25)]),
        "a ledger, Renyi": charged(confide.ApproxDP(20.0, 1e-5), [confide.ZCDP(0.5), 1.0], accounting="renyi"),
        "a ledger, a batch": planned_batch(confide.ApproxDP(20.0, 1e-5), [approximate, approximate, confide.PureDP(0.5)]),
        "a ledger, a batch, concentrated": planned_batch(confide.ZCDP(9.0), [confide.ZCDP(0.5), confide.ZCDP(0.25)]),
        "planning": planned(),
        "statement, pure": statement(confide.LogisticRegression, two, 1.0, classes=[0, 1]),
        "statement, approximate": statement(confide.LogisticRegression, two, approximate, mechanism="output"),
        "statement, concentrated": statement(confide.LinearSVC, two, confide.ZCDP(0.5), max_rows_per_person=2),
        "statement, add or remove": statement(confide.LogisticRegression, two, 1.0, **ADD_OR_REMOVE),
        "statement, intervals": statement(confide.LogisticRegression, two, 8.0, inference_share=0.3),
        "statement, Ridge": statement(confide.Ridge, numbers, 2.0, target_bound=3.0),
        "statement, a user's loss": statement(confide.ERMClassifier, two, 1.0, loss=HyperbolicHinge()),
        "statement, a schema and a ledger": statement(
            confide.LogisticRegression, frame, 1.0, schema=schema_of(person="person"), ledger=confide.Ledger(limit=9.0)
        ),
    }


def evaluated(make: Callable[[], Any], rows: Rows, there: Callable[[Path], Rows] | None = None, **parameters: Any) -> Fit:
    """Rates of a model of the first half of the rows on the second half, or on what is opened."""

    def run(folder: Path) -> Facts:
        half = rows.n_rows // 2
        model = make().set_params(random_state=SEED).fit(rows.X[:half], rows.y[:half])
        held_out = [there(folder).X] if there else [rows.X[half:], rows.y[half:]]
        found = importlib.import_module("confide").evaluate(model, *held_out, random_state=SEED, **parameters)
        return Facts(without_sentences(found.to_dict()), {"text": str(found)})

    return run


def transformed(make: Callable[[], Any], rows: Rows) -> Fit:
    """Mapped rows, and a model of them."""

    def run(folder: Path) -> Facts:
        mapping = make().fit(rows.X)
        X = np.asarray(mapping.transform(rows.X))
        again = rows._replace(X=X, new=X[:40], width=X.shape[1])
        found = fit(importlib.import_module("confide").LogisticRegression, again, 1.0, row_norm=mapping.row_bound)(folder)
        numbers = {"rows": X, "names": mapping.get_feature_names_out(), "row_bound": mapping.row_bound.to_dict()}
        return Facts(found.numbers | numbers, found.texts)

    return run


def charged(limit: Any, budgets: list[Any], accounting: str = "auto") -> Fit:
    """What is left in a ledger after fits of these budgets, and what it says of them."""

    def run(folder: Path) -> Facts:
        import confide

        rows = made_up_arrays()["float64"]
        ledger = confide.Ledger(folder / "ledger.jsonl", limit=limit, accounting=accounting)
        fits = [fit(confide.LogisticRegression, rows, budget, ledger=ledger) for budget in budgets]
        weights = []
        for place, its_fit in enumerate(fits):
            (folder / str(place)).mkdir()
            weights.append(its_fit(folder / str(place)).numbers["coef_"])
        told = counted_by(ledger)
        return Facts(told.numbers | {"weights": weights}, told.texts)

    return run


def planned_batch(limit: Any, budgets: list[Any]) -> Fit:
    """What a ledger counts for releases that were planned together."""

    def run(folder: Path) -> Facts:  # noqa: ARG001 - writes nothing
        import confide

        ledger = confide.Ledger(limit=limit)
        rows = made_up_arrays()["float64"]
        plans = [confide.LogisticRegression(budget).plan(rows.n_rows, rows.width) for budget in budgets]
        batch = ledger.plan(plans, purpose="all at once")
        confide.LogisticRegression(budgets[0], ledger=batch, random_state=SEED).fit(rows.X, rows.y)
        return counted_by(ledger)

    return run


def counted_by(ledger: Any) -> Facts:
    """What a ledger says, but for the time."""
    entries = ledger.entries()
    numbers = {"spent": ledger.spent().to_dict(), "remaining": ledger.remaining().to_dict()}
    numbers["entries"] = {name: entries[name].to_numpy() for name in entries if name not in ("time", "purpose", "sha256")}
    return Facts(numbers, {"purposes": "\n".join(entries["purpose"])})


def planned() -> Fit:
    """Answers of `confide.planning`, which see no rows."""

    def run(folder: Path) -> Facts:  # noqa: ARG001 - writes nothing
        import confide

        planning, model = confide.planning, confide.LogisticRegression(1.0)
        forecasts = [
            planning.simulate(model, 5_000, 8, error=0.1, seed=SEED),
            planning.simulate(confide.LinearSVC(0.5, schema=schema_of()), 5_000, error=0.2, positive_rate=0.3),
        ]
        enough = planning.sample_size(model, 8, excess=0.05)
        bounds = planning.optimal_privacy(10_000, 8, 0.01, accuracy=0.5)
        of_kernel = planning.optimal_privacy_of_kernel(10_000, 2, 0.01, accuracy=0.5)
        numbers = {
            "forecasts": [[each.error, each.low, each.high, each.constant_error] for each in forecasts],
            "enough": [enough.n_rows, enough.plan.alpha],
            "optimal": [bounds.lower, bounds.upper, of_kernel.lower, of_kernel.upper],
            "features": planning.features_for_kernel(2, accuracy=0.5, failure=0.05, alpha=0.01),
            "scale": planning.laplace_scale_for_accuracy(0.5, 0.05, 8),
        }
        return Facts(numbers, {"bound": str(planning.utility_bound(model.plan(5_000, 8)))})

    return run


def plans() -> Table:
    """Plans without a fit, over a grid of budgets, rows and columns: one entry a setting, with all its plans."""
    own: Table = {}
    for name, parameters in PLANNED.items():
        for mechanism in MECHANISMS:
            own[f"plans of {name} {parameters}, {mechanism}".replace(" {}", "")] = grid_of_plans(
                name, mechanism, **parameters
            )
    return own


def grid_of_plans(name: str, mechanism: str, **parameters: Any) -> Fit:
    """Every plan of the grid, or the kind of its refusal."""

    def run(folder: Path) -> Facts:  # noqa: ARG001 - writes nothing
        import confide

        kind, found = getattr(confide, name), dict[str, Any]()
        budgets = [1.0 * each for each in (0.1, 0.5, 1.0, 3.0)]
        budgets += [confide.ApproxDP(each, 1e-6) for each in (0.1, 0.5, 1.0, 3.0)] + [
            confide.ZCDP(each) for each in (0.02, 0.5)
        ]
        for budget in budgets:
            for n_rows in (300, 3_000, 30_000, 300_000):
                for width in (None,) if name.startswith("Additive") else (2, 12, 60):
                    known = {"schema": schema_of("ill" if "Classifier" in name else None)} if width is None else {}
                    model = kind(budget, mechanism=mechanism, **known, **parameters)
                    try:
                        plan = without_sentences(model.plan(n_rows, width).to_dict())
                    except Exception as error:  # noqa: BLE001 - whatever is raised is compared
                        plan = type(error).__name__
                    found[f"{budget}, {n_rows} rows, {width} columns"] = plan
        return Facts(found, {})

    return run


def named(name: str) -> Any:
    """An object without a public place, where older and newer revisions have it."""
    for place in ("confide", "confide.federated", "confide.data.federated", "confide.estimators.federated"):
        with suppress(ImportError, AttributeError):
            return getattr(importlib.import_module(place), name)
    raise LookupError(f"no module is known that has {name}.")


def over_parties(kind: Any, *budget: Any, **parameters: Any) -> Fit:
    """A fit over three parties, each in a thread. Their sums are added in the order of the parties, whoever ends first."""

    def run(folder: Path) -> Facts:
        frame, schema = made_up_frame(), schema_of(bends=True)
        pipes = [Pipe() for _ in range(3)]

        def party(place: int) -> None:
            part, (_, theirs) = frame[(0, 400, 5_000)[place] : (400, 5_000, 9_000)[place]], pipes[place]
            rows, labels = part, part["ill"]
            if place == 1:
                part.to_parquet(folder / "party.parquet")
                rows, labels = importlib.import_module("confide").open_rows(folder / "party.parquet", schema), None
            # A fit that fails says so itself.
            with suppress(ValueError, OSError):
                named("take_part")(theirs, kind(schema=schema, **parameters), rows, labels)

        threads = [threading.Thread(target=party, args=(place,)) for place in range(3)]
        for thread in threads:
            thread.start()
        try:
            there = named("FederatedRows")(schema, [ours for ours, _ in pipes])
            rows = Rows(there, None, frame[:40], len(frame), None)
            return fit(kind, rows, *budget, schema=schema, **parameters)(folder)
        finally:
            for ours, _ in pipes:
                ours.close()
            for thread in threads:
                thread.join()

    return run


def other_places() -> Table:
    """Rows of parties and on a Dask cluster."""
    import confide

    logistic, svc, infinite = confide.LogisticRegression, confide.LinearSVC, float("inf")
    table: Table = {
        "parties": over_parties(logistic, 2.0, class_weight={"no": 1.0, "yes": 0.5}),
        "parties, epsilon inf": over_parties(logistic, infinite),
        "parties, LinearSVC": over_parties(svc, 0.3),
        "parties, LinearSVC, epsilon inf": over_parties(svc, infinite),
        "parties, hinge": over_parties(svc, 2.0, loss="hinge"),
        "parties, add or remove": over_parties(logistic, 2.0, **ADD_OR_REMOVE),
    }
    if not find_spec("distributed"):
        return table
    arrays, bends, numbers = made_up_arrays(), schema_of(bends=True), schema_of(None)
    from_arrays = {"dense": on_dask(arrays["float64"]), "targets": on_dask(arrays["targets"])}
    for budget in (1.0, infinite):
        table[f"Dask frame, epsilon {budget:g}"] = fit(logistic, on_dask(bends), budget, schema=bends)
        table[f"Dask arrays, epsilon {budget:g}"] = fit(logistic, from_arrays["dense"], budget)
    return table | {
        "Dask frame, LinearSVC": fit(svc, on_dask(bends), 0.5, schema=bends),
        "Dask arrays, KernelSVC": fit(confide.KernelSVC, from_arrays["dense"], 2.0, n_features=16),
        "Dask arrays, Ridge, epsilon inf": fit(confide.Ridge, from_arrays["targets"], infinite, target_bound=3.0),
        "Dask frame, PoissonRegressor": fit(
            confide.PoissonRegressor, on_dask(numbers, "visits"), 2.0, schema=numbers, target_bound=6.0
        ),
        "Parquet read by workers": fit(logistic, read_by_workers(bends), 1.0, schema=bends),
        "Parquet read by workers, epsilon inf": fit(logistic, read_by_workers(bends), infinite, schema=bends),
    }


def on_dask(what: Any, target: str | None = None) -> Callable[[Path], Rows]:
    """Arrays, or the frame of a schema, as collections of Dask, in partitions that do not fit each other."""

    def open_in(folder: Path) -> Rows:  # noqa: ARG001 - writes nothing
        open_rows = importlib.import_module("confide").open_rows
        if isinstance(what, Rows):
            import dask.array as arrays

            labels = arrays.from_array(what.y, chunks=4_333)
            return what._replace(X=open_rows(arrays.from_array(what.X, chunks=(2_500, 5)), labels=labels), y=None)
        import dask.dataframe as frames

        frame = made_up_frame()
        there = open_rows(frames.from_pandas(frame, npartitions=11), what, target=target)
        return Rows(there, None, frame[:40], len(frame), None)

    return open_in


def read_by_workers(schema: Any) -> Callable[[Path], Rows]:
    """Parquet files that the workers of the cluster read."""

    def open_in(folder: Path) -> Rows:
        return opened("parquet", schema, client=importlib.import_module("distributed").get_client())(folder)

    return open_in


def refusals() -> Table:
    """What has to be refused, by the same kind of error."""
    import confide

    arrays, frame = made_up_arrays(), of_frame(made_up_frame())
    two, three, numbers, sparse = (arrays[name] for name in ("float64", "three classes", "targets", "sparse"))
    logistic, svc, ridge, schema = confide.LogisticRegression, confide.LinearSVC, confide.Ridge, schema_of()
    gaps = np.where(np.arange(8) == 3, np.nan, two.X)

    def spent_twice(folder: Path) -> Facts:
        return fit(logistic, two, 2.0, ledger=confide.Ledger(limit=confide.PureDP(1.0)))(folder)

    def damaged(folder: Path) -> Facts:
        (folder / "damaged.json").write_text('{"kind": "confide-model"}')
        confide.load(folder / "damaged.json")
        return Facts({}, {})

    table: Table = {
        "gaps in numbers": fit(logistic, two._replace(X=gaps), 1.0),
        "fewer labels than rows": fit(logistic, two._replace(y=two.y[:-1]), 1.0),
        "no labels": fit(logistic, two._replace(y=None), 1.0),
        "one class": fit(logistic, two._replace(y=np.full(9_000, 5)), 1.0),
        "a label outside the domain": fit(logistic, three, 1.0, classes=[0, 1]),
        "text as numbers": fit(logistic, two._replace(X=[["a"] * 8] * 9_000), 1.0),
        "a negative budget": fit(logistic, two, -1.0),
        "delta 1": lambda folder: fit(logistic, two, confide.ApproxDP(1.0, 1.0))(folder),
        "alpha 0": fit(logistic, two, 1.0, alpha=0.0),
        "an unknown mechanism": fit(logistic, two, 1.0, mechanism="magic"),
        "an unknown loss": fit(svc, two, 1.0, loss="magic"),
        "row_norm inf with privacy": fit(logistic, two, 1.0, row_norm=float("inf")),
        "a bound of another width": fit(logistic, two, 1.0, row_norm=confide.BoxBound([1.0] * 3)),
        "groups of sparse rows": fit(logistic, sparse, 1.0, row_norm=confide.GroupBound((200, 200), (1.0, 1.0))),
        "schema and row_norm": fit(logistic, frame, 1.0, schema=schema, row_norm=1.0),
        "a missing column": fit(logistic, frame._replace(X=frame.X.drop(columns="age")), 1.0, schema=schema),
        "an array with a schema": fit(logistic, two, 1.0, schema=schema),
        "add or remove without bounds": fit(logistic, two, 1.0, neighbours="add-or-remove-one"),
        "more rows than their bound": fit(logistic, two, 1.0, neighbours="add-or-remove-one", n_rows_bounds=(10, 100)),
        "balanced classes": fit(logistic, two, 1.0, class_weight="balanced"),
        "negative weights": fit(logistic, two, 1.0, weights=-np.ones(9_000)),
        "three classes with the hinge": fit(svc, three, 1.0, loss="hinge"),
        "intervals of the hinge": fit(svc, two, 1.0, loss="hinge", inference_share=0.3),
        "intervals that noise hides": fit(logistic, two, 0.01, inference_share=0.3),
        "output-laplace, approximate": fit(logistic, two, confide.ApproxDP(1.0, 1e-6), mechanism="output-laplace"),
        "a user's loss with a wrong constant": fit(confide.ERMClassifier, two, 1.0, loss=SteeperThanSaid()),
        "KernelSVC of sparse rows": fit(confide.KernelSVC, sparse, 1.0),
        "no target_bound": fit(ridge, numbers, 1.0),
        "infinite targets": fit(ridge, numbers._replace(y=np.where(numbers.y > 0, np.inf, 0.0)), 1.0, target_bound=1.0),
        "a ledger that is spent": spent_twice,
        "no file": fit(logistic, lambda folder: two._replace(X=confide.open_rows(folder / "none.csv", schema), y=None), 1.0),
        "text as targets in a file": fit(ridge, opened("csv", schema_of(None), target="ill"), 1.0, target_bound=1.0),
        "a damaged model": damaged,
        "a search without privacy": search(logistic, two, param_grid={"alpha": [0.1, 1.0]}, budget=float("inf")),
    }
    return {REFUSED + name: its_fit for name, its_fit in table.items()}


def run_all(only: str) -> dict[str, Any]:
    """What each fit of the table released in this process, as JSON holds it."""
    imported = Path(importlib.import_module("confide").__file__ or "").resolve()
    assert imported.is_relative_to(Path(os.environ["PYTHONPATH"]).resolve()), imported
    table: Table = {}
    for more in (arrays_and_files(), classifiers(), regressors(), other_releases(), other_places(), refusals(), plans()):
        assert not table.keys() & more.keys(), table.keys() & more.keys()
        table |= more
    found = {}
    with cluster_if_needed(name for name in table if only in name):
        for name, its_fit in table.items():
            if only in name:
                found[name] = recorded(its_fit)
    return found


@contextmanager
def cluster_if_needed(names: Iterator[str]) -> Iterator[None]:
    """A Dask cluster in this process, where a fit needs one."""
    with ExitStack() as until_done:
        if any("Dask" in name or "workers" in name for name in names):
            import distributed

            quiet = {"dashboard_address": None, "silence_logs": "CRITICAL"}
            cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, **quiet)
            until_done.enter_context(cluster)
            until_done.enter_context(distributed.Client(cluster))
        yield


def recorded(its_fit: Fit) -> dict[str, Any]:
    """One fit, in a folder of its own: what it released, or the kind of error; warnings and messages are texts."""
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        refused = None
        try:
            numbers, texts = its_fit(Path(folder))
        except Exception as error:  # noqa: BLE001 - whatever is raised is compared
            refused = type(error).__name__
            numbers, texts = {"refused": refused}, {"message": str(error)}
        said = sorted({f"{each.category.__name__}: {each.message}" for each in warned})
        texts = {name: text.replace(folder, "FOLDER") for name, text in (texts | {"warnings": "\n".join(said)}).items()}
    seconds = time.perf_counter() - begin
    return {"numbers": written(numbers), "texts": texts, "refused": refused, "seconds": seconds}


def written(value: Any) -> Any:
    """A value as JSON holds it to the bit: arrays with their type and shape, numbers in hexadecimal."""
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        array = {"dtype": str(value.dtype), "shape": list(value.shape)}
        if value.dtype.kind in "OUS":
            return array | {"values": written(value.tolist())}
        return array | {"bytes": value.tobytes().hex()}
    if isinstance(value, Mapping):
        return {str(name): written(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [written(each) for each in value]
    if isinstance(value, float):
        return value.hex()
    if value is None or isinstance(value, (str, int)):
        return value
    raise TypeError(f"{type(value).__name__} is nothing that can be compared to the bit.")


def differences(base: Any, head: Any, where: str = "") -> Iterator[str]:
    """Where two records differ, and how."""
    if base == head and type(base) is type(head):
        return
    if isinstance(base, dict) and isinstance(head, dict):
        if "bytes" in base and "bytes" in head:
            yield f"{where}: {between_arrays(base, head)}"
            return
        for name in base | head:
            path = f"{where}.{name}" if where else name
            if name in base and name in head:
                yield from differences(base[name], head[name], path)
            else:
                yield f"{path}: only in {'base' if name in base else 'head'}"
    elif isinstance(base, list) and isinstance(head, list) and len(base) == len(head):
        for place, (before, after) in enumerate(zip(base, head, strict=True)):
            yield from differences(before, after, f"{where}[{place}]")
    else:
        before, after = (shown(value) for value in (base, head))
        yield f"{where}: {before} and {after}"


def between_arrays(base: dict[str, Any], head: dict[str, Any]) -> str:
    """How two arrays differ."""
    kinds = [f"{array['dtype']} {tuple(array['shape'])}" for array in (base, head)]
    if kinds[0] != kinds[1]:
        return f"{kinds[0]} and {kinds[1]}"
    a, b = (np.frombuffer(bytes.fromhex(array["bytes"]), dtype=array["dtype"]) for array in (base, head))
    # Entries that are no number, or zeros of another sign, differ in their bytes alone.
    differ = a.view(f"V{a.itemsize}") != b.view(f"V{a.itemsize}")
    with np.errstate(invalid="ignore"):
        size = np.abs(a.astype(float) - b.astype(float))
    return f"{differ.sum()} of {a.size} entries, by at most {np.nanmax(size):.3g}"


def shown(value: Any) -> str:
    """A value for people: numbers in decimal."""
    with suppress(ValueError, TypeError):
        return f"{float.fromhex(value):.17g}"
    text = json.dumps(value)
    return text if len(text) < 60 else f"{text[:57]}..."


def run_both(trees: list[Path], folder: Path, only: str) -> list[dict[str, Any]]:
    """A process of each tree, both at the same time. Both use the compiled kernel, or neither if one has none."""
    paths = [folder / f"{place}.json" for place in range(2)]
    have_kernel = all(any((tree / "src/confide/compiled").glob("_kernel*")) for tree in trees)
    kernel = {} if have_kernel else {"CONFIDE_COMPILED": "0"}
    running = [
        subprocess.Popen(  # noqa: S603
            [sys.executable, __file__, "--write", str(path), "--only", only], cwd=folder, env=environment(tree) | kernel
        )
        for tree, path in zip(trees, paths, strict=True)
    ]
    codes = [process.wait() for process in running]
    if any(codes):
        sys.exit("a table of fits did not come to its end.")
    return [json.loads(path.read_text()) for path in paths]


def compared(base: dict[str, Any], head: dict[str, Any]) -> tuple[int, int]:
    """Print a line for each fit, then the sentences that differ; how many fits differ in numbers, and in texts."""
    bad, sentences = 0, Counter[tuple[str, ...]]()
    texts_differ = 0
    for name in base | head:
        if name not in base or name not in head:
            found = [f"only {'base' if name in base else 'head'} has this fit"]
        else:
            found = list(differences(base[name]["numbers"], head[name]["numbers"]))
            refused = [each["refused"] for each in (base[name], head[name])]
            if not found and (refused[0] is None) == name.startswith(REFUSED):
                said = base[name]["texts"].get("message", "")
                found = [f"compares nothing: {refused[0] or 'not refused'} in both. {said}"]
            texts = [each["texts"] for each in (base[name], head[name])]
            changed = sorted(key for key in texts[0] | texts[1] if texts[0].get(key) != texts[1].get(key))
            sentences.update({changed_lines(*(each.get(key, "") for each in texts)) for key in changed})
            texts_differ += bool(changed)
        bad += bool(found)
        more = [f"and {len(found) - MOST_SHOWN} more"] if len(found) > MOST_SHOWN else []
        words = f"   texts differ: {', '.join(changed)}" if name in base and name in head and changed else ""
        print(f"{name:48} {'DIFFERENT  ' + '; '.join(found[:MOST_SHOWN] + more) if found else 'equal'}{words}")
    for change, count in sentences.most_common():
        print(f"\nin {count} fit{'s' * (count > 1)}:", *change, sep="\n  ")
    return bad, texts_differ


def changed_lines(base: str, head: str) -> tuple[str, ...]:
    """The lines in which two texts differ."""
    lines = difflib.unified_diff(base.splitlines(), head.splitlines(), lineterm="", n=0)
    return tuple(line for line in lines if not line.startswith(("---", "+++", "@@")))


def main() -> int:
    """Print the table; 1 if something differs that must not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", nargs="?", default="main")
    parser.add_argument("head", nargs="?", default="HEAD")
    parser.add_argument("--only", default="", help="the fits whose names hold this")
    parser.add_argument("--texts", action="store_true", help="sentences that differ are a failure too")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        arguments.write.write_text(json.dumps(run_all(arguments.only)))
        return 0
    names = [arguments.base, arguments.head]
    with tempfile.TemporaryDirectory() as scratch, checked_out([commit(n) for n in names if not Path(n).is_dir()]) as trees:
        folder, sides, left = Path(scratch), [], iter(trees)
        for place, name in enumerate(names):
            if Path(name).is_dir():
                # A copy, so that work may go on.
                shutil.copytree(
                    Path(name) / "src", folder / str(place) / "src", ignore=shutil.ignore_patterns("__pycache__")
                )
                sides.append(folder / str(place))
            else:
                sides.append(next(left))
        base, head = run_both(sides, folder, arguments.only)
    if not base | head:
        parser.error("no fit has such a name.")
    bad, texts = compared(base, head)
    seconds = [sum(each["seconds"] for each in side.values()) for side in (base, head)]
    print(f"\n{arguments.base} and {arguments.head}: {len(base | head)} fits, {bad} different, {texts} with other texts; "
          f"{seconds[0]:.0f} and {seconds[1]:.0f} seconds")  # fmt: skip
    return int(bad > 0 or (arguments.texts and texts > 0))


if __name__ == "__main__":
    sys.exit(main())
