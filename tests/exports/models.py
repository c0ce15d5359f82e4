"""One fitted model of each kind that can be exported, with rows to predict."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

import confide
from tests.effects.examples import COLUMNS, INTERACTIONS, TARGET, labels, table

ATOMS = {"low": 20, "high": 80, "knots": [30, 50], "atoms": [20, 40.5, 80], "missing": [10]}
COARSE = {"columns": ["age", "income"], "knots": 1, "scale": 0.5}
BUDGET = confide.ApproxDP(50.0, 1e-6)
THREE = {"column": "place", "classes": ["east", "north", "south"]}


def rows_of_numbers(n=600, seed=0):
    """Some of them are longer than 1, and are clipped."""
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size=(n, 3))


def places(n, seed=1):
    return np.random.default_rng(seed).choice(["east", "north", "south"], n)


def _schema(interact=(), target=TARGET, **others):
    return confide.Schema(**({"columns": COLUMNS, "target": target, "interact": interact} | others))


def _plain(kind, **parameters):
    X = rows_of_numbers()
    return getattr(confide, kind)(BUDGET, **parameters).fit(X, (X[:, 0] > 0.1).astype(int)), rows_of_numbers(200, 7)


def _three(kind, **parameters):
    X = rows_of_numbers()
    return getattr(confide, kind)(BUDGET, classes=[3, 5, 9], **parameters).fit(
        X, np.arange(600) % 3 * 2 + 3 + (np.arange(600) % 3 == 2) * 2
    ), rows_of_numbers(200, 7)


def _table(kind, target=TARGET, interact=(), schema=None, **parameters):
    frame = table(900)
    described = _schema(interact, target, **(schema or {}))
    y = labels(frame) if target is TARGET else places(900)
    return getattr(confide, kind)(BUDGET, schema=described, **parameters).fit(frame, y), table(300, 5)


def _numbers(kind, **parameters):
    X = rows_of_numbers()
    y = np.round(np.clip(2.0 + X[:, 0], 0.0, 4.0))
    return getattr(confide, kind)(BUDGET, target_bound=4.0, **parameters).fit(X, y), rows_of_numbers(200, 7)


def _of_a_frame():
    X = pd.DataFrame(rows_of_numbers(), columns=["a", "b", "c"])
    return confide.LogisticRegression(BUDGET).fit(X, X["a"] > 0.0), X.head(200)


MAKERS = {
    "logistic": lambda: _plain("LogisticRegression", row_norm=1.0),
    "logistic in a box": lambda: _plain("LogisticRegression", row_norm=confide.BoxBound([0.5, 0.7, 1.0])),
    "logistic of a frame": _of_a_frame,
    "svm": lambda: _plain("LinearSVC"),
    "softmax": lambda: _three("LogisticRegression"),
    "one against rest": lambda: _three("LogisticRegression", multiclass="one-vs-rest"),
    "svm of three": lambda: _three("LinearSVC"),
    "kernel": lambda: _plain("KernelSVC", n_features=32, length_scale=0.7),
    "kernel of three": lambda: _three("KernelSVC", n_features=32),
    "erm": lambda: _plain("ERMClassifier"),
    "table": lambda: _table("LogisticRegression", centre=False),
    "table, short rows": lambda: _table("LogisticRegression", interact=INTERACTIONS),
    "table with interactions": lambda: _table("LogisticRegression", interact=[*INTERACTIONS, COARSE], centre=False),
    "table with features": lambda: _table(
        "LogisticRegression", schema={"random_features": {"number": 20, "length_scale": 1.5}}
    ),
    "kernel of a table": lambda: _table("KernelSVC", n_features=24),
    "additive": lambda: _table("AdditiveClassifier"),
    "additive, logistic": lambda: _table("AdditiveClassifier", loss="logistic"),
    "additive of three": lambda: _table("AdditiveClassifier", target=THREE),
    "additive hinge of three": lambda: _table("AdditiveClassifier", target=THREE, loss="logistic_hinge"),
    "additive of an array": lambda: _plain("AdditiveClassifier", bounds=(-1, 1), knots=3),
    "curves beside lines": lambda: _table(
        "LogisticRegression", interact=[{"columns": ["rank"], "knots": 3}, ["work", "sex"]], centre=False
    ),
    "atoms": lambda: _table("LogisticRegression", schema={"columns": COLUMNS | {"age": ATOMS}}, centre=False),
    "ridge": lambda: _numbers("Ridge"),
    "huber": lambda: _numbers("HuberRegressor"),
    "poisson": lambda: _numbers("PoissonRegressor"),
    "additive counts": lambda: _numbers("AdditiveRegressor", bounds=(-1, 1), loss="poisson", knots=2),
}


@cache
def example(name):
    """The model of this name, and rows that it did not see."""
    return MAKERS[name]()
