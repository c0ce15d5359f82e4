"""What is audited: every combination of estimator, mechanism, currency, relation and kind of rows."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

import confide
from confide import GroupBound, Schema
from confide.audit.worst_pairs import Pair, candidates

BUDGETS = {"pure": confide.PureDP(1.0), "approximate": confide.ApproxDP(1.0, 0.05), "concentrated": confide.ZCDP(0.5)}
RELATIONS = {"replace": {}, "add or remove": {"neighbours": "add-or-remove-one", "n_rows_bounds": (20, 30)}}
N_ROWS = 30
COLUMNS = {"age": {"low": 0.0, "high": 80.0, "knots": 2}, "sex": {"categories": ["f", "m", "x"]}}
OF_CLASSES = Schema(columns=COLUMNS, target={"column": "y", "negative": "no", "positive": "yes"})
OF_NUMBERS = Schema(columns=COLUMNS, target={"column": "y", "low": -1.0, "high": 1.0})
OF_COUNTS = Schema(columns=COLUMNS, target={"column": "y", "low": 0.0, "high": 5.0})
BOX = GroupBound((1, 2), (1.0, 0.5))

USUAL = ("objective", "output", "output-laplace", "gradient")
CLASSES, NUMBERS = {"classes": [-1, 1]}, {"target_bound": 1.0}
# Name: estimator, its parameters, its mechanisms, its kinds of rows and the schema that it takes.
ESTIMATORS: dict[str, tuple[Callable[..., Any], dict[str, Any], tuple[str, ...], tuple[str, ...], Schema]] = {
    "LogisticRegression": (
        confide.LogisticRegression,
        CLASSES,
        USUAL,
        ("ball", "groups", "schema", "sparse", "file"),
        OF_CLASSES,
    ),
    "LogisticRegression, 3 classes": (
        confide.LogisticRegression,
        {"classes": [0, 1, 2]},
        ("objective", "output"),
        ("ball", "groups"),
        OF_CLASSES,
    ),
    "LinearSVC": (
        confide.LinearSVC,
        CLASSES | {"loss": "huber_hinge"},
        USUAL,
        ("ball", "groups", "schema", "sparse"),
        OF_CLASSES,
    ),
    "LinearSVC, hinge": (
        confide.LinearSVC,
        CLASSES | {"loss": "hinge"},
        ("output", "output-laplace"),
        ("ball", "groups"),
        OF_CLASSES,
    ),
    "KernelSVC": (
        confide.KernelSVC,
        CLASSES | {"n_features": 4},
        ("objective", "output", "gradient"),
        ("ball",),
        OF_CLASSES,
    ),
    "ERMClassifier": (
        confide.ERMClassifier,
        CLASSES | {"loss": "logistic"},
        ("objective", "output"),
        ("ball", "groups"),
        OF_CLASSES,
    ),
    "AdditiveClassifier": (
        confide.AdditiveClassifier,
        {},
        ("objective", "output", "gradient"),
        ("schema", "file"),
        OF_CLASSES,
    ),
    "AdditiveRegressor": (confide.AdditiveRegressor, {}, ("objective", "output", "gradient"), ("schema",), OF_NUMBERS),
    "Ridge": (
        confide.Ridge,
        NUMBERS,
        ("sufficient-statistics", "objective", "output"),
        ("ball", "groups", "schema"),
        OF_NUMBERS,
    ),
    "HuberRegressor": (confide.HuberRegressor, NUMBERS, ("objective", "output", "gradient"), ("ball", "schema"), OF_NUMBERS),
    "PoissonRegressor": (
        confide.PoissonRegressor,
        {"target_bound": 5.0},
        ("objective", "output", "gradient"),
        ("ball", "schema"),
        OF_COUNTS,
    ),
    "ERMRegressor": (confide.ERMRegressor, NUMBERS | {"loss": "huber"}, ("objective", "output"), ("ball",), OF_NUMBERS),
}
SEARCHES = ("permute-and-flip", "exponential", "repeated")


@dataclass(frozen=True)
class Case:
    """One combination.

    Attributes
    ----------
    estimator, mechanism, currency, relation, rows : the combination, in words
    release : an estimator, or a callable of the data
    pairs : gives neighbouring data sets
    is_attacked : whether releases are attacked too; otherwise there is a replay alone
    """

    estimator: str
    mechanism: str
    currency: str
    relation: str
    rows: str
    release: Any
    pairs: Callable[[], list[Pair]]
    is_attacked: bool = True

    @property
    def name(self) -> str:
        """The combination as one text."""
        return ", ".join((self.estimator, self.mechanism, self.currency, self.relation, self.rows))

    @property
    def budget(self) -> Any:
        """What is claimed."""
        return BUDGETS[self.currency]


def cases(folder: Path) -> Iterator[Case]:
    """Every combination. Files of rows are written to the folder."""
    for name, (make, parameters, mechanisms, kinds, schema) in ESTIMATORS.items():
        for mechanism, kind, currency, relation in itertools.product(mechanisms, kinds, BUDGETS, RELATIONS):
            own = parameters | {"mechanism": mechanism, "alpha": 1.0} | RELATIONS[relation]
            if kind in ("schema", "file"):
                own = {key: value for key, value in own.items() if key not in ("classes", "target_bound")} | {
                    "schema": schema
                }
            elif make is not confide.KernelSVC:
                own["row_norm"] = BOX if kind == "groups" else 1.0
            estimator = make(BUDGETS[currency], **own)
            pairs = partial(pairs_of, estimator, kind, folder)
            if kind == "file":
                estimator.set_params(schema=None)
            yield Case(name, mechanism, currency, relation, kind, estimator, pairs, kind not in ("sparse", "file"))
    for method, currency, relation in itertools.product(SEARCHES, BUDGETS, RELATIONS):
        inner = confide.LogisticRegression(alpha=1.0, classes=[-1, 1], **RELATIONS[relation])
        search = confide.PrivateSearchCV(
            inner, {"alpha": [1.0, 2.0]}, budget=BUDGETS[currency], method=method, expected_tries=2.0
        )
        yield Case(
            "PrivateSearchCV", method, currency, relation, "ball", search, partial(pairs_of, search, "ball", folder), False
        )
    yield from descriptions()


def descriptions() -> Iterator[Case]:
    """Releases that are no fits: descriptions, evaluations and bounds of columns."""
    frames = [frame_of([("f", age) for age in np.linspace(0.0, 80.0, 29)] + [last]) for last in (("m", 80.0), ("x", 0.0))]
    model = confide.LogisticRegression(float("inf"), schema=OF_CLASSES, alpha=1.0).fit(frames[0], frames[0]["y"])
    releases = {
        "describe": lambda budget, frame: confide.describe(frame, OF_CLASSES, budget=budget).to_dict(),
        "evaluate": lambda budget, frame: confide.evaluate(model, frame, frame["y"], budget=budget, n_bins=2).counts.ravel(),
        "private_bounds": lambda budget, frame: np.ravel(
            confide.private_bounds(frame, {"age": (0.0, 1000.0)}, budget=budget).chosen
        ),
    }
    for (name, release), currency in itertools.product(releases.items(), BUDGETS):
        pairs = partial(list, [Pair("a whole row", (frames[0],), (frames[1],))])
        yield Case(name, "counts", currency, "replace", "schema", partial(release, BUDGETS[currency]), pairs)


def frame_of(rows: list[tuple[str, float]]) -> pd.DataFrame:
    labels = np.where(np.arange(len(rows)) % 2, "yes", "no")
    return pd.DataFrame({"age": [age for _, age in rows], "sex": [sex for sex, _ in rows], "y": labels})


def pairs_of(estimator: Any, kind: str, folder: Path) -> list[Pair]:
    """Neighbouring data sets of an estimator, as arrays, frames, sparse arrays or files."""
    if kind == "file":
        # The schema comes with the file.
        estimator = type(estimator)(**(estimator.get_params(deep=False) | {"schema": OF_CLASSES}))
    found = []
    for number, pair in enumerate(candidates(estimator, N_ROWS)):
        sides: list[Any] = [pair.first, pair.second]
        if kind == "sparse":
            sides = [(csr_array(X), y) for X, y in sides]
        elif kind == "file":
            # Combinations run side by side, so each has files of its own.
            own = Path(tempfile.mkdtemp(dir=folder))
            paths = [own / f"{number}-{side}-{len(data[1])}.parquet" for side, data in enumerate(sides)]
            for path, (frame, _) in zip(paths, sides, strict=True):
                frame.to_parquet(path)
            sides = [(confide.open_rows(path, OF_CLASSES),) for path in paths]
        found.append(Pair(pair.name, *sides))
    return found
