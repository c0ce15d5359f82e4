"""Leaks: planted in every place that is searched, and none in ours."""

from __future__ import annotations

import logging
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.naive_bayes import GaussianNB

import confide
from confide.audit.leak_search import leaks
from confide.errors import ParameterError
from tests.audit.test_replays import SCHEMA

RNG = np.random.default_rng(1)
X = RNG.normal(size=(40, 3))
Y = (X[:, 0] > 0).astype(int)


@pytest.mark.parametrize(
    "estimator",
    [
        confide.LogisticRegression(1.0, classes=[0, 1]),
        confide.LinearSVC(1.0, mechanism="output", classes=[0, 1]),
        confide.LogisticRegression(confide.ZCDP(0.5), mechanism="gradient", classes=[0, 1]),
        confide.Ridge(confide.ApproxDP(1.0, 1e-4), target_bound=1.0),
    ],
)
def test_ours_leak_nothing(estimator):
    """Neither values of rows nor differences."""
    found = leaks(estimator, X, Y)
    found.check()
    assert {"attributes", "pickle", "files", "repr", "logs", "warnings", "printed", "error"} <= set(found.searched)


def test_ours_with_a_schema_leak_nothing():
    """A frame."""
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=Y)
    leaks(confide.AdditiveClassifier(1.0, schema=SCHEMA), frame, Y).check()


class Careful:
    """A model without any leak: noise alone."""

    def fit(self, X, y):
        self.coef_ = np.random.default_rng().normal(size=2)
        return self

    def __repr__(self):
        return "Careful()"


class Norm(Careful):
    """Keeps a norm of the rows, as some libraries do."""

    def fit(self, X, y):
        self.data_norm = float(np.linalg.norm(X[0]))
        return super().fit(X, y)


class Logs(Careful):
    """Tells the log about a row."""

    def fit(self, X, y):
        logging.getLogger("theirs").info("first row %s", X[0].tolist())
        return super().fit(X, y)


class Warns(Careful):
    """Warns with a value."""

    def fit(self, X, y):
        warnings.warn(f"a row is {X[0, 0]!r}", stacklevel=2)
        return super().fit(X, y)


class Prints(Careful):
    """Prints a value."""

    def fit(self, X, y):
        print(X[0, 1])
        return super().fit(X, y)


class Pickles(Careful):
    """Keeps its rows where only a pickle shows them."""

    rows = None

    def __getstate__(self):
        return vars(self) | {"rows": self.__class__.rows}

    def fit(self, X, y):
        self.__class__.rows = X.copy()
        return super().fit(X, y)


class Refuses(Careful):
    """Quotes the row that it refuses."""

    def fit(self, X, y):
        if not np.isfinite(X).all():
            raise ValueError(f"bad row {X[0].tolist()}")
        return super().fit(X, y)


class Saves(Careful):
    """Writes a value into its file."""

    def fit(self, X, y):
        Saves.kept = X[0, 0]
        return super().fit(X, y)

    def save(self, path):
        path.write_text(f"{Saves.kept!r}")


class Named(Careful):
    """Shows a value in its repr."""

    def fit(self, X, y):
        Named.kept = X[0, 0]
        return super().fit(X, y)

    def __repr__(self):
        return f"Named({getattr(Named, 'kept', None)!r})"


@pytest.mark.parametrize(
    ("theirs", "where"),
    [
        (Norm, "attributes.data_norm"), (Logs, "logs"), (Warns, "warnings"), (Prints, "printed"), (Pickles, "pickle"),
        (Refuses, "error"), (Saves, "files.model.json"), (Named, "repr"),
    ],
)  # fmt: skip
def test_planted_leaks_are_found(theirs, where):
    """Each where it is, and nothing where there is none."""
    assert leaks(Careful(), X, Y).holds
    found = leaks(theirs(), X, Y)
    assert where in {leak.where for leak in found.leaks}
    with pytest.raises(AssertionError, match="leak"):
        found.check()


def test_a_model_without_noise_leaks_everything():
    """Its means stay the same in every fit and differ between neighbours."""
    found = leaks(GaussianNB(), X, Y)
    assert any(leak.where.startswith("attributes.theta_") for leak in found.leaks)
    assert found.to_dict()["holds"] is False
    assert not any(f"{value:.6f}"[:6] in str(found) for value in X[0])


def test_leaks_after_the_noise_are_found_in_ours(monkeypatch):
    """An attribute with the number of positive labels."""
    fit = confide.LogisticRegression.fit

    def peeking(self, X, y, **given):
        fitted = fit(self, X, y, **given)
        fitted.n_positive_ = float(np.asarray(X)[0, 0] > 0.5)
        return fitted

    monkeypatch.setattr(confide.LogisticRegression, "fit", peeking)
    other = X.copy()
    first = X.copy()
    first[0], other[0] = 1.0, -1.0
    found = leaks(confide.LogisticRegression(1.0, classes=[0, 1]), first, Y, neighbour=(-np.abs(other), Y))
    assert "attributes.n_positive_" in {leak.where for leak in found.leaks}


def test_rows_without_fractions_are_refused():
    """A canary needs digits."""
    with pytest.raises(ParameterError):
        leaks(Careful(), pd.DataFrame({"a": ["x", "y"]}), [0, 1])
