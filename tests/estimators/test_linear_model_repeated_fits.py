"""Warnings before a budget is spent more than once, or outside of every ledger."""

from __future__ import annotations

import math
import os
import subprocess
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    KFold,
    LeaveOneOut,
    RandomizedSearchCV,
    ShuffleSplit,
    cross_val_score,
    learning_curve,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import confide
from confide import ApproxDP, BudgetWarning, Ledger, LogisticRegression, PrivateSearchCV, Ridge

ALPHAS = {"alpha": [0.1, 1.0]}


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(200, 2))
    return X, (X[:, 0] > 0).astype(int)


def model(budget=0.5, **facts):
    return LogisticRegression(budget, classes=[0, 1], **facts)


def told(ask):
    """The messages of the warnings that a call gives, each as often as it comes, and where they point to."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        ask()
    budgets = [(str(warning.message), warning.filename) for warning in given if warning.category is BudgetWarning]
    # Loops are the matter of tests/test_callers.py, and budgets that buy nothing that of tests/test_budget_warnings.py.
    others = ("this line asks", "The noise hides")
    return [(message, place) for message, place in budgets if not message.startswith(others)]


def one(ask):
    """The message of the one warning, which points to the caller's line."""
    ((message, place),) = told(ask)
    assert place == __file__
    return message


# Searches and cross-validation


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("search", "names"),
    [
        (lambda **jobs: GridSearchCV(model(), ALPHAS, cv=3, **jobs), "GridSearchCV makes many fits of LogisticRegression. "),
        (
            lambda **jobs: RandomizedSearchCV(model(), ALPHAS, n_iter=2, cv=ShuffleSplit(4), **jobs),
            "RandomizedSearchCV makes many fits of LogisticRegression. ",
        ),
        (
            lambda **jobs: GridSearchCV(
                make_pipeline(FunctionTransformer(), model(ApproxDP(1.0, 1e-7))),
                {"logisticregression__alpha": [0.1]},
                **jobs,
            ),
            "many fits of LogisticRegression. Each is a release of its own under approximate",
        ),
    ],
)
def test_a_search_tells_once_that_its_fits_add_up(rows, search, names, n_jobs):
    """In this process however many work; a second fit of it tells nothing new."""
    asked = search(n_jobs=n_jobs)
    message = one(lambda: asked.fit(*rows))
    assert names in message
    assert "charged to no ledger, and the costs add up" in message
    assert "confide.PrivateSearchCV" in message
    assert told(lambda: asked.fit(*rows)) == []


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_cross_validation_tells_once_that_its_fits_add_up(rows, tmp_path, n_jobs):
    """Of classifiers, regressors and private searches; and whether there is a ledger."""
    ledger = Ledger(tmp_path / "study.db", limit=10.0)
    scored = model(ledger=ledger)
    message = one(lambda: cross_val_score(scored, *rows, cv=3, n_jobs=n_jobs))
    assert "cross_val_score makes many fits of LogisticRegression" in message
    assert "epsilon = 0.5" in message
    assert told(lambda: cross_val_score(scored, *rows, cv=3, n_jobs=n_jobs)) == []
    assert ledger.spent().epsilon == 3.0
    X = rows[0]
    assert "many fits of Ridge" in one(lambda: cross_val_score(Ridge(target_bound=1.0), X, X[:, 0], n_jobs=n_jobs))
    search = PrivateSearchCV(model(), ALPHAS, budget=2.0)
    message = one(lambda: cross_val_score(search, *rows, cv=KFold(2), n_jobs=n_jobs))
    assert "many fits of PrivateSearchCV" in message


@pytest.mark.parametrize(
    "ask",
    [
        lambda X, y: cross_val_score(GridSearchCV(model(), ALPHAS, cv=2), X, y, cv=2),
        lambda X, y: GridSearchCV(model(), {"budget": [1.0, 2.0]}, cv=2).fit(X, y),
        lambda X, y: cross_val_score(model(), X, y, cv=KFold(2).split(X)),
        lambda X, y: cross_val_score(model(), X[::20], y[::20], cv=LeaveOneOut()),
        lambda X, y: learning_curve(model(), X, y, cv=2, train_sizes=[0.5, 1.0]),
    ],
)
def test_fits_are_told_of_however_they_are_asked_for(rows, ask):
    """Nested searches, grids of budgets, folds that are given or counted on the rows."""
    assert "makes many fits of LogisticRegression" in one(lambda: ask(*rows))


@pytest.mark.parametrize(
    "ask",
    [
        lambda X, y: model().fit(X, y),
        lambda X, y: clone(model()),
        lambda X, y: FixedThresholdClassifier(model()).fit(X, y),
        lambda X, y: PrivateSearchCV(model(), ALPHAS, method="permute-and-flip").fit(X, y),
        lambda X, y: GridSearchCV(model(math.inf), ALPHAS, cv=2).fit(X, y),
    ],
)
def test_what_is_one_release_or_none_tells_nothing(rows, ask):
    """One fit, one search of confide, and fits without privacy."""
    assert told(lambda: ask(*rows)) == []


@pytest.mark.filterwarnings("error::confide.errors.BudgetWarning")
def test_the_warning_comes_before_the_first_charge(rows):
    """Who makes an error of it spends nothing."""
    ledger = Ledger(limit=10.0)
    for ask in (
        lambda: GridSearchCV(model(ledger=ledger), ALPHAS).fit(*rows),
        lambda: cross_val_score(model(ledger=ledger), *rows),
    ):
        with pytest.raises(BudgetWarning):
            ask()
    assert len(ledger.entries()) == 0


def test_parameters_that_a_fit_refuses_are_left_to_the_fit(rows):
    """A budget that is none."""
    with pytest.raises(confide.ParameterError, match="budget"):
        cross_val_score(model("much"), *rows, error_score="raise")


# Models from files


def test_a_model_from_a_file_tells_once_that_it_has_no_ledger(rows, tmp_path):
    """Before it is fitted again, whatever its kind; not where it predicts, got a ledger, or promises nothing."""
    X, y = rows
    path = tmp_path / "model.json"
    for kind, targets in ((model, y), (partial(Ridge, target_bound=1.0), X[:, 0])):
        kind(1.0, ledger=Ledger(limit=1.0)).fit(X, targets).save(path, overwrite=True)
        loaded = confide.load(path)
        assert told(lambda: loaded.predict(X)) == []  # noqa: B023 - called here
        message = one(lambda: loaded.fit(X, targets))  # noqa: B023
        assert "charged to none" in message
        assert "set_params(ledger=" in message
        assert told(lambda: loaded.fit(X, targets)) == []  # noqa: B023
        ledger = Ledger(limit=1.0)
        again = confide.load(path).set_params(ledger=ledger)
        assert told(lambda: again.fit(X, targets)) == []  # noqa: B023
        assert ledger.spent().epsilon == 1.0
    model(math.inf).fit(X, y).save(path, overwrite=True)
    assert told(lambda: confide.load(path).fit(X, y)) == []


@pytest.mark.filterwarnings("error::confide.errors.BudgetWarning")
def test_a_model_from_a_file_is_not_fitted_where_the_warning_is_an_error(rows, tmp_path):
    """It stays the model of the file."""
    model().fit(*rows).save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    before = loaded.coef_.copy()
    with pytest.raises(BudgetWarning):
        loaded.fit(*rows)
    assert np.array_equal(loaded.coef_, before)


def test_warnings_are_seen_by_default(tmp_path):
    """A script without any filter prints it once."""
    script = tmp_path / "script.py"
    script.write_text(
        "import numpy as np, confide\n"
        "from sklearn.model_selection import GridSearchCV\n"
        "X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(100, 2))\n"
        "GridSearchCV(confide.LogisticRegression(classes=[0, 1]), {'alpha': [0.1]}, cv=2).fit(X, X[:, 0] > 0)\n",
        encoding="utf-8",
    )
    environment = os.environ | {"PYTHONPATH": str(Path(confide.__file__).parents[1])}
    environment.pop("PYTHONWARNINGS", None)
    run = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True, env=environment)
    assert run.stderr.count("BudgetWarning") == 1
    assert "script.py:4: BudgetWarning: GridSearchCV makes many fits" in run.stderr
