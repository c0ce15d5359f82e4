"""Living with scikit-learn: metadata routing and searches."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from confide import (
    BudgetExceeded,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PureDP,
    SchemaEncoder,
)
from tests.estimators.people import SCHEMA

# Routing and searches


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_weights_are_routed_through_a_pipeline(people, kind):
    """With set_fit_request they reach the last step and change the model; unasked they are refused by scikit-learn."""
    frame, y = people
    weights = np.linspace(0.0, 1.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = kind(math.inf, row_norm=2.0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        routed = make_pipeline(SchemaEncoder(SCHEMA), model).fit(frame, y, sample_weight=weights)
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            make_pipeline(SchemaEncoder(SCHEMA), kind(math.inf)).fit(frame, y, sample_weight=weights)
        ignored = make_pipeline(SchemaEncoder(SCHEMA), kind(math.inf, row_norm=2.0).set_fit_request(sample_weight=False))
        search = GridSearchCV(model, {"alpha": [0.1]}, cv=2).fit(
            SchemaEncoder(SCHEMA).fit_transform(frame), y, sample_weight=weights
        )
    by_hand = kind(math.inf, row_norm=2.0).fit(SchemaEncoder(SCHEMA).fit_transform(frame), y, sample_weight=weights)
    without = ignored.fit(frame, y)[-1]
    assert routed[-1].coef_ == pytest.approx(by_hand.coef_)
    assert not np.allclose(routed[-1].coef_, without.coef_)
    assert search.best_estimator_.coef_.shape == by_hand.coef_.shape


@pytest.mark.filterwarnings("ignore::confide.errors.BudgetWarning")
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_every_fit_of_a_search_is_charged_to_the_file(people, tmp_path, n_jobs):
    """Folds, candidates and the last fit, from one process or several; cross_val_score too."""
    frame, y = people
    ledger = Ledger(tmp_path / "study.db", limit=PureDP(3.0))
    model = LogisticRegression(0.25, schema=SCHEMA, ledger=ledger)
    search = GridSearchCV(model, {"alpha": [0.05, 0.1]}, cv=3, n_jobs=n_jobs).fit(frame, y)
    assert len(ledger.entries()) == 7
    assert len(search.best_estimator_.ledger.entries()) == 7
    assert cross_val_score(model, frame, y, cv=3, n_jobs=n_jobs).shape == (3,)
    assert ledger.spent() == PureDP(2.5)
    with pytest.raises(BudgetExceeded):
        cross_val_score(model, frame, y, cv=3, error_score="raise")
    assert ledger.spent() == PureDP(3.0)
