"""What the calls on the stack say of a release: whether it is asked for again, and what was learned before it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel, SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)

import confide
from confide import BudgetWarning, Ledger, LogisticRegression
from confide.callers import learned_before

X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(90, 3))
Y = (X[:, 0] > 0).astype(int)
THREE = np.arange(90) % 3


def model(ledger=None, budget=0.5, **facts):
    return LogisticRegression(budget, row_norm=1.0, ledger=ledger, **facts)


def told(ask):
    """The messages of the warnings of repeated releases, and where they point to."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        ask()
    found = [(str(each.message), each.filename) for each in given if each.category is BudgetWarning]
    # Budgets that buy nothing are the matter of tests/test_budget_warnings.py.
    return [(message, place) for message, place in found if "The budget is wasted." not in message]


MANY = {
    "calibration": lambda m: CalibratedClassifierCV(m, cv=2).fit(X, Y),
    "one-vs-rest": lambda m: OneVsRestClassifier(m).fit(X, THREE),
    "bagging": lambda m: BaggingClassifier(clone(m).set_params(max_sample_weight=20.0), n_estimators=3).fit(X, Y),
    "elimination": lambda m: RFE(m, n_features_to_select=1).fit(X, Y),
    "voting": lambda m: VotingClassifier([("a", m), ("b", clone(m))]).fit(X, Y),
    "several outputs": lambda m: MultiOutputClassifier(m).fit(X, np.c_[Y, 1 - Y]),
    "voting in a pipeline": lambda m: make_pipeline(VotingClassifier([("a", m), ("b", clone(m))])).fit(X, Y),
}


@pytest.mark.parametrize("charged", [False, True])
@pytest.mark.parametrize("kind", MANY)
def test_a_class_of_scikit_learn_that_fits_several_models_tells_once(kind, charged):
    """Before the second charge, with a ledger or without one, and it points to the caller's line."""
    ledger = Ledger(limit=10.0) if charged else None
    ((message, place),) = told(lambda: MANY[kind](model(ledger)))
    assert place == __file__
    assert "asks for several releases, LogisticRegression.fit among them" in message
    assert ("charged to the ledger, one by one" if charged else "charged to no ledger") in message
    ledger = Ledger(limit=10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", BudgetWarning)
        with pytest.raises(BudgetWarning):
            MANY[kind](model(ledger))
    assert len(ledger.entries()) <= 1


def test_stacking_tells_of_several_fits():
    """Of those of its own, and of those of its cross-validation."""
    given = told(lambda: StackingClassifier([("a", model())], cv=2).fit(X, Y))
    assert any("StackingClassifier asks for several releases" in message for message, _ in given)


def test_clones_for_other_processes_are_told_here():
    """The warning comes where the call was made, though the fits lie elsewhere; threads stand for processes here."""
    voting = VotingClassifier([("a", model()), ("b", model())], n_jobs=2)
    with parallel_config("threading"):
        assert "VotingClassifier" in told(lambda: voting.fit(X, Y))[0][0]


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.fit(X, Y),
        lambda m: clone(m).fit(X, Y),
        lambda m: make_pipeline(Normalizer(), m).fit(X, Y),
        lambda m: FixedThresholdClassifier(m).fit(X, Y),
        lambda m: VotingClassifier([("a", m)]).fit(X, Y),
        lambda m: OneVsRestClassifier(m).fit(X, Y),
        lambda m: SelectFromModel(m).fit(X, Y),
        lambda m: clone(VotingClassifier([("a", m), ("b", m)])),
        lambda m: VotingClassifier([("a", confide.PrivateSearchCV(m, {"alpha": [0.1, 1.0]}))]).fit(X, Y),
        lambda m: [VotingClassifier([("a", m), ("b", m)]).fit(X, Y) for m in [m.set_params(budget=math.inf)]],
    ],
)
def test_one_release_tells_nothing(ask):
    """Nor do clones without a fit, what confide fits for one release, and fits without privacy."""
    assert told(lambda: ask(model())) == []


def test_a_loop_tells_once_unless_a_ledger_counts():
    """Of fits, descriptions and evaluations, at the second one; two lines that ask once are no loop."""

    def fits(ledger, n):
        for alpha in range(1, n + 1):
            model(ledger, alpha=alpha).fit(X, Y)

    assert told(lambda: fits(None, 1)) == []
    ((message, place),) = told(lambda: fits(None, 3))
    assert place == __file__
    assert message.startswith("this line asks for LogisticRegression.fit again. Each is a release of its own under")
    assert "ledger=confide.Ledger" in message
    assert told(lambda: fits(Ledger(limit=10.0), 3)) == []
    assert told(lambda: (model().fit(X, Y), model().fit(X, Y))) == []
    fitted = model().fit(X, Y)
    ((message, _),) = told(lambda: [confide.evaluate(fitted, X, Y, budget=4.0) for _ in range(3)])
    assert "asks for evaluate again" in message


def learned(made, target=Y, rows=X):
    """What a fit says of earlier steps."""
    seen = []

    class Watch(BaseEstimator):
        def fit(self, X, y=None):
            seen.append(learned_before(getattr(X, "columns", ())))
            return self

        def predict(self, X):
            return np.zeros(len(X))

        def transform(self, X):
            return X

    made(Watch()).fit(rows, target)
    return seen[0]


class Own(TransformerMixin, BaseEstimator):
    """A transformer of a user."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


@pytest.mark.parametrize(
    ("made", "names"),
    [
        (lambda m: make_pipeline(StandardScaler(), m), ("StandardScaler",)),
        (lambda m: make_pipeline(SimpleImputer(), PCA(2), m), ("SimpleImputer", "PCA")),
        (lambda m: make_pipeline(make_pipeline(MinMaxScaler()), SelectKBest(k=1), m), ("MinMaxScaler", "SelectKBest")),
        (lambda m: make_pipeline(StandardScaler(), make_pipeline(PCA(), m)), ("PCA", "StandardScaler")),
        (
            lambda m: make_pipeline(ColumnTransformer([("a", StandardScaler(), [0]), ("b", "passthrough", [1])]), m),
            ("StandardScaler",),
        ),
        (lambda m: make_pipeline(FeatureUnion([("a", PCA()), ("b", Normalizer())]), m), ("PCA",)),
        (
            lambda m: make_pipeline(ColumnTransformer([("b", "passthrough", [1])], remainder=StandardScaler()), m),
            ("StandardScaler",),
        ),
        (lambda m: make_pipeline(SimpleImputer(strategy="constant", add_indicator=True), m), ("SimpleImputer",)),
        (
            lambda m: make_pipeline(
                OneHotEncoder(categories=[[0, 1]] * 3, handle_unknown="ignore", max_categories=2, sparse_output=False), m
            ),
            ("OneHotEncoder",),
        ),
        (lambda m: make_pipeline(SplineTransformer(), m), ("SplineTransformer",)),
        (lambda m: make_pipeline(SplineTransformer(knots=np.array([[-9.0] * 3, [0.0] * 3, [9.0] * 3])), m), ()),
        (lambda m: make_pipeline(ColumnTransformer([("b", "passthrough", [1])], remainder="passthrough"), m), ()),
        (lambda m: make_pipeline(Own(), m), ("Own",)),
        (lambda m: TransformedTargetRegressor(m, transformer=StandardScaler()), ("StandardScaler",)),
        (lambda m: make_pipeline(StandardScaler(), m, PCA()), ("StandardScaler",)),
        (lambda m: make_pipeline(OneHotEncoder(sparse_output=False), m), ("OneHotEncoder",)),
        (lambda m: m, ()),
        (lambda m: make_pipeline(m, StandardScaler()), ()),
        (lambda m: make_pipeline(Normalizer(), FunctionTransformer(), "passthrough", m), ()),
        (lambda m: make_pipeline(confide.RandomFourierFeatures(n_features=10), m), ()),
        (lambda m: make_pipeline(SimpleImputer(strategy="constant"), m), ()),
        (
            lambda m: make_pipeline(OneHotEncoder(categories=[[0, 1]] * 3, handle_unknown="ignore", sparse_output=False), m),
            (),
        ),
    ],
)
def test_earlier_steps_that_learn_are_named(made, names):
    """Of pipelines, and of targets; steps that learn nothing and later steps are not."""
    assert learned(made) == names


@pytest.mark.parametrize("step", [PCA(2), ColumnTransformer([("standardscaler", StandardScaler(), [0, 1])])])
def test_columns_carry_the_names_of_what_was_learned(step):
    """As scikit-learn writes them; other names are those of columns."""
    frame = step.set_output(transform="pandas").fit_transform(pd.DataFrame(X, columns=list("abc")))
    assert learned_before(frame.columns) == (type(step).__name__.lower().replace("columntransformer", "standardscaler"),)
    assert learned_before(["age", "pca", "pca_score", "num__age"]) == ()
