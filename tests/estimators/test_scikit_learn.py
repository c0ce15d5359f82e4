"""Living with scikit-learn: metadata routing, searches and ensembles."""

from __future__ import annotations

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

import confide
from confide import (
    BudgetExceeded,
    InputError,
    Ledger,
    LinearSVC,
    LogisticRegression,
    PrivacyWarning,
    PrivateSearchCV,
    PureDP,
    Schema,
    SchemaEncoder,
)
from confide.report.contents import points_to_confirm
from confide.report.verification import failures_of_plan
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


# Labels that scikit-learn encodes


def labelled(n_classes):
    """Rows of one column and text labels, in an order that is not that of the alphabet, with a schema that declares them."""
    x = np.random.default_rng(0).uniform(-1.0, 1.0, 600)
    labels = np.array(["well", "ill"] if n_classes == 2 else ["well", "ill", "odd"])
    y = labels[np.digitize(x, [0.0] if n_classes == 2 else [-0.4, 0.4])]
    named = {"negative": "well", "positive": "ill"} if n_classes == 2 else {"classes": labels.tolist()}
    columns = {"x0": {"low": -1.0, "high": 1.0, "knots": [-0.4, 0.0, 0.4]}}
    return pd.DataFrame({"x0": x}), y, Schema.from_dict({"target": {"column": "state"} | named, "columns": columns})


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("with_schema", [True, False])
def test_ensembles_take_text_labels(n_classes, with_schema):
    """They hand over positions in place of labels. What they predict are labels again, and mostly the right ones."""
    frame, y, schema = labelled(n_classes)
    facts = {"schema": schema} if with_schema else {"classes": sorted(set(y)), "row_norm": 1.0}
    model = LogisticRegression(math.inf, alpha=1e-4, **facts)
    rows = frame if with_schema else np.c_[frame.to_numpy(), frame.to_numpy() ** 2] / 1.5
    for ensemble in (
        VotingClassifier([("a", model), ("b", clone(model))]),
        VotingClassifier([("a", model)], voting="soft"),
        StackingClassifier([("a", model)], cv=2, stack_method="predict_proba"),
        BaggingClassifier(clone(model).set_params(max_sample_weight=20.0), n_estimators=2),
        AdaBoostClassifier(model, n_estimators=2),
        make_pipeline(FunctionTransformer(), VotingClassifier([("a", make_pipeline(FunctionTransformer(), model))])),
    ):
        assert ensemble.fit(rows, y).score(rows, y) > 0.9
    probabilities = cross_val_predict(model, rows, y, cv=2, method="predict_proba")
    assert (np.array(sorted(set(y)))[probabilities.argmax(axis=1)] == y).mean() > 0.9


def test_a_model_of_an_ensemble_keeps_its_labels(tmp_path):
    """In its file, its statement and the weights of its classes, though it predicts positions for the ensemble."""
    frame, y, schema = labelled(2)
    model = LogisticRegression(1.0, schema=schema, class_weight={"well": 1.0, "ill": 2.0})
    fitted = VotingClassifier([("a", model)]).fit(frame, y).estimators_[0]
    assert fitted.classes_.tolist() == [0, 1]
    assert 'The labels "ill" and "well" were declared' in fitted.guarantee_.statement()
    fitted.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.classes_.tolist() == ["ill", "well"]
    assert np.array_equal(loaded.predict_proba(frame), fitted.predict_proba(frame))
    assert fitted.fit(frame, y).classes_.tolist() == ["ill", "well"]
    search = PrivateSearchCV(LogisticRegression(schema=schema), {"alpha": [0.01, 0.1]}, budget=8.0)
    assert VotingClassifier([("a", search)]).fit(frame, y).predict(frame)[0] in ("ill", "well")


def test_numbers_of_a_user_are_no_positions():
    """Where no ensemble encodes labels, numbers in place of declared text are refused: they may mean anything."""
    frame, y, schema = labelled(2)
    model = LogisticRegression(1.0, schema=schema)
    for ask in (
        lambda: model.fit(frame, (y == "ill").astype(int)),
        lambda: make_pipeline(FunctionTransformer(), model).fit(frame, (y == "ill").astype(int)),
        lambda: cross_val_score(model, frame, (y == "ill").astype(int), cv=2, error_score="raise"),
    ):
        with pytest.raises(InputError, match="neither 'ill' nor 'well'"):
            ask()


# Steps before a fit


def test_a_step_that_learned_is_told_stated_and_kept(tmp_path):
    """Before the charge, in the statement, in the file and its verification, and among the points to confirm."""
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    ledger = Ledger(limit=10.0)
    for model in (
        LogisticRegression(1.0, classes=[0, 1], row_norm=3.0, ledger=ledger),
        PrivateSearchCV(LogisticRegression(classes=[0, 1], row_norm=3.0), {"alpha": [0.1, 1.0]}, ledger=ledger),
    ):
        for ask in (
            lambda: make_pipeline(StandardScaler(), model).fit(X, y),  # noqa: B023
            lambda: model.fit(pd.DataFrame(X, columns=["pca0", "pca1", "pca2"]), y),  # noqa: B023
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("error", PrivacyWarning)
                with pytest.raises(PrivacyWarning, match="learned from the rows before this fit, without noise"):
                    ask()
    assert len(ledger.entries()) == 0
    fitted = make_pipeline(StandardScaler(), LogisticRegression(1.0, classes=[0, 1], row_norm=3.0)).fit(X, y)[-1]
    sentence = "What StandardScaler learned from the rows before the fit, without noise, is public anyway."
    assert sentence in fitted.guarantee_.assumptions
    fitted.save(tmp_path / "model.json")
    loaded = confide.load(tmp_path / "model.json")
    assert loaded.guarantee_ == fitted.guarantee_
    assert sentence in points_to_confirm(loaded.guarantee_, None, None)
    assert not failures_of_plan(loaded)
    content = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))["content"]
    assert content["guarantee"]["circumstances"]["learned_steps"] == ["StandardScaler"]


@pytest.mark.parametrize("step", [Normalizer(), FunctionTransformer(), SchemaEncoder(SCHEMA)])
def test_steps_that_learn_nothing_are_not_told(people, step):
    """The statement asks the signer that no other step learned from the rows."""
    rows, y = (
        people if isinstance(step, SchemaEncoder) else (np.random.default_rng(0).normal(size=(200, 3)), np.arange(200) % 2)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyWarning)
        fitted = make_pipeline(step, LogisticRegression(1.0, classes=sorted(set(y)), row_norm=3.0)).fit(rows, y)[-1]
    assert any("No step before the fit" in sentence for sentence in fitted.guarantee_.assumptions)
    assert any("No step before the fit" in point for point in points_to_confirm(fitted.guarantee_, None, None))
