"""Tables that are sorted by what they hold: one row is replaced, the table is sorted again, and every position changes.

The attacker knows everything but that row: all others, and how tables are sorted. The worst table is made for a division by
position that everybody knows: what a row says is a function of its place. Two sorted tables are released from many times.
Half of the releases teach the attacker a direction and a threshold (Fisher's linear rule), the other half are guessed. At
epsilon 1 guesses are right at most e / (1 + e) = .731 of the time.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import confide
from confide import Schema, open_rows
from confide.features.table import RowsPerPerson
from confide.privacy.noise import Entropy
from tests.audit.attacks import few_of, lower_bound

EPSILON = 1.0
MOST_RIGHT = math.exp(EPSILON) / (1.0 + math.exp(EPSILON))
FEW, SMALL, LARGE = 34, 60, 1000
"""Releases from either table."""
N_ROWS = 600


def in_turns(seed, n_rows=N_ROWS):
    """For every row of a table its part, as a public rule of positions gave it: ranks of words of a seeded stream."""
    words = np.frombuffer(Entropy.seeded(seed).read(8 * n_rows), dtype="<u8")
    return np.argsort(np.argsort(words)) * 5 // n_rows


def sorted_tables(n_rows=N_ROWS):
    """Two tables (X, y) sorted by the last column, which differ in one row: the first of one, the last of the other.

    A row says yes in the first part and no in the others, by its place in the first table. The last column tells the order.
    """
    labels = (in_turns(0, n_rows) == 0).astype(int)
    order = 1e-3 * np.arange(n_rows + 1) / n_rows
    labels, first = np.append(labels, 0), np.column_stack([np.full(n_rows + 1, 0.9), order])
    return (first[:-1], labels[:-1]), (first[1:], labels[1:])


def turned_tables(n_rows=N_ROWS):
    """The same, but for what decides the order: the table is sorted downwards where the row of interest says so."""
    (X, y), _ = sorted_tables(n_rows)
    other = X.copy()
    other[0, 0] = -0.9
    return (X, y), (other[::-1].copy(), y[::-1].copy())


def persons_tables(n_persons=N_ROWS // 2):
    """Frames of two visits of each person, one that says yes and one that says no, and one person who decides the order."""
    persons = np.repeat(np.arange(n_persons), 2)
    frame = pd.DataFrame({"who": persons, "age": 90.0, "visit": np.tile([1, 0], n_persons)})
    other = frame.copy()
    other.loc[0, "age"] = 10.0
    return frame, other[::-1].reset_index(drop=True)


SCHEMA = Schema(
    columns={"a": {"low": -1.0, "high": 1.0}, "b": {"low": 0.0, "high": 0.01}},
    target={"column": "y", "negative": 0, "positive": 1},
)
VISITS = Schema(
    columns={"age": {"low": 0.0, "high": 100.0}}, target={"column": "visit", "negative": 0, "positive": 1}, person="who"
)


def weights(model):
    """All that a fit releases, as a vector."""
    return np.append(np.ravel(model.coef_), np.ravel(model.intercept_))


def fit(model) -> Callable[..., np.ndarray]:
    """Releases the weights of the model."""
    return lambda X, y: weights(model.fit(X, y))


def searched(method):
    """Releases the weights that a search chooses, and its score."""

    def release(X, y):
        estimator = confide.LogisticRegression(classes=[0, 1])
        search = confide.PrivateSearchCV(
            estimator, {"alpha": [0.01, 0.02]}, budget=EPSILON, method=method, score_share=0.3, expected_tries=2.0
        ).fit(X, y)
        return np.append(weights(search.best_estimator_), search.best_score_)

    return release


def on_disk(release, folder):
    """The same from a file of the sorted table."""
    number = iter(range(10**9))

    def released(X, y):
        path = folder / f"{next(number) % 2}.parquet"
        pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y}).to_parquet(path)
        return release(open_rows(path, SCHEMA), None)

    return released


def on_partitions(X, y):
    """Releases the weights of a fit on two partitions, cut by the order of the table."""
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "y": y})
    parts = pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=2, sort=False)
    with pytest.importorskip("dask").config.set(scheduler="synchronous"):
        return weights(confide.LogisticRegression(EPSILON).fit(open_rows(parts, SCHEMA)))


def evaluated():
    """Releases the counts of a model that is public here."""
    model = confide.LogisticRegression(math.inf, classes=[0, 1], row_norm=1.0).fit([[0.5, 0.0], [-0.5, 0.0]], [1, 0])
    return lambda X, y: confide.evaluate(model, X, y, budget=EPSILON, n_bins=2).counts.ravel()


def of_visits(model):
    """Releases the weights of a fit in which one visit of each person counts."""
    return lambda frame: weights(model.fit(frame, frame["visit"]))


def visits_on_disk(folder):
    """The same from a file."""

    def release(frame):
        frame.to_parquet(folder / "visits.parquet")
        return weights(confide.LogisticRegression(EPSILON).fit(open_rows(folder / "visits.parquet", VISITS)))

    return release


def evaluated_visits():
    """Releases counts of one visit of each person."""
    model = confide.LogisticRegression(math.inf, schema=VISITS)
    model.fit(pd.DataFrame({"who": [1, 2], "age": [10.0, 90.0]}), [0, 1])
    return lambda frame: confide.evaluate(model, frame, frame["visit"], budget=EPSILON, n_bins=2).counts.ravel()


def entries(folder):
    """(name, what releases, its two tables as arguments)."""
    numeric, turned = sorted_tables(), turned_tables()
    people = tuple((frame,) for frame in persons_tables())
    target = tuple((X, 2.0 * y - 1.0) for X, y in numeric)
    classifiers = {
        "logistic": confide.LogisticRegression(EPSILON, classes=[0, 1]),
        "svc": confide.LinearSVC(EPSILON, classes=[0, 1]),
        "hinge": confide.LinearSVC(EPSILON, classes=[0, 1], loss="hinge"),
        "kernel": confide.KernelSVC(EPSILON, classes=[0, 1], n_features=8),
        "erm": confide.ERMClassifier(EPSILON, classes=[0, 1]),
    }
    regressors = {
        "ridge": confide.Ridge(EPSILON, target_bound=1.0),
        "huber": confide.HuberRegressor(EPSILON, target_bound=1.0),
        "erm regressor": confide.ERMRegressor(EPSILON, target_bound=1.0),
    }
    return {
        **{name: (fit(model), turned) for name, model in classifiers.items()},
        **{name: (fit(model), target) for name, model in regressors.items()},
        "counts": (fit(confide.PoissonRegressor(EPSILON, target_bound=1.0)), turned),
        **{f"search, {method}": (searched(method), numeric) for method in ("permute-and-flip", "exponential", "repeated")},
        "evaluation": (evaluated(), turned),
        "a fit on a file": (on_disk(fit(confide.LogisticRegression(EPSILON)), folder), turned),
        "a fit on partitions": (on_partitions, turned),
        "an evaluation on a file": (on_disk(evaluated_file(), folder), turned),
        "a search on a file": (on_disk(searched_file, folder), numeric),
        "persons": (of_visits(confide.LogisticRegression(EPSILON, schema=VISITS)), people),
        "persons of a file": (visits_on_disk(folder), people),
        "persons evaluated": (evaluated_visits(), people),
    }


def evaluated_file():
    """Releases the counts of a model of the file's schema."""
    model = confide.LogisticRegression(math.inf, schema=SCHEMA)
    model.fit(pd.DataFrame({"a": [0.5, -0.5], "b": [0.0, 0.01]}), [1, 0])
    return lambda rows, _: confide.evaluate(model, rows, budget=EPSILON, n_bins=2).counts.ravel()


def searched_file(rows, _):
    """Releases what a search on a file does."""
    search = confide.PrivateSearchCV(
        confide.LogisticRegression(), {"alpha": [0.01, 0.02]}, budget=EPSILON, method="permute-and-flip", score_share=0.3
    ).fit(rows)
    return np.append(weights(search.best_estimator_), search.best_score_)


NAMES = tuple(entries(None))


def right_guesses(release, tables, n):
    """Clopper and Pearson's lower bound, 99.9%, on how often guesses are right that were learned from other releases."""
    seen = np.array([[release(*table) for _ in range(n)] for table in tables])
    learned, guessed = seen[:, ::2], seen[:, 1::2]
    means = learned.mean(axis=1)
    within = np.concatenate([side - mean for side, mean in zip(learned, means, strict=True)])
    spread = within.T @ within / len(within)
    direction = np.linalg.lstsq(spread + 1e-9 * np.trace(spread) * np.eye(len(spread)), means[0] - means[1], rcond=None)[0]
    middle = 0.5 * (means[0] + means[1]) @ direction
    right = int((guessed[0] @ direction > middle).sum() + (guessed[1] @ direction <= middle).sum())
    return lower_bound(right, guessed.shape[0] * guessed.shape[1])


FEW_NAMES = ("logistic", "ridge", "search, repeated", "evaluation", "a fit on a file", "persons", "persons of a file")


@pytest.mark.parametrize("name", few_of(NAMES, *FEW_NAMES))
def test_an_order_that_changes_shows_no_more_than_a_row(name, tmp_path):
    """A few releases from either table: where all guesses are right, so few refute the guarantee."""
    release, tables = entries(tmp_path)[name]
    assert right_guesses(release, tables, FEW) <= MOST_RIGHT < lower_bound(FEW - 1, FEW)


@pytest.mark.parametrize("name", ["search, permute-and-flip", "persons", "persons of a file"])
def test_the_attack_sees_positions_that_decide(name, tmp_path, monkeypatch):
    """Power: where parts of a search and rows of persons go by positions and a public seed, nearly all guesses are right."""
    by_words = np.argsort(np.frombuffer(Entropy.seeded(0).read(8 * N_ROWS), dtype="<u8"), kind="stable")
    monkeypatch.setattr(Entropy, "permutation", lambda self, n: by_words[:n])
    drawn = RowsPerPerson.drawn
    monkeypatch.setattr(RowsPerPerson, "drawn", lambda self, persons: drawn(RowsPerPerson(self.most, np.arange), persons))
    release, tables = entries(tmp_path)[name]
    assert right_guesses(release, tables, SMALL) > MOST_RIGHT


@pytest.mark.audit
@pytest.mark.parametrize("name", NAMES)
def test_many_releases_show_no_more_than_a_row(name, tmp_path):
    """A thousand from either table."""
    release, tables = entries(tmp_path)[name]
    assert right_guesses(release, tables, LARGE) <= MOST_RIGHT
