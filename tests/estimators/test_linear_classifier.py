"""What all linear classifiers have in common: classes, scores, plans and what they refuse."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

import confide
from confide import ApproxDP, ERMClassifier, KernelSVC, LinearSVC, LogisticRegression, ParameterError, Schema
from confide.erm.row_bounds import BallBound
from confide.estimators.linear_classifier import classes_of
from confide.intake.targets import Classes
from tests.estimators.own_losses import Hyperbola
from tests.estimators.several_classes import X, Y, models


@models
def test_the_surface_of_a_model_of_several_classes(make):
    """Shapes, sorted classes, argmax, names, a score well above chance; text labels."""
    names = np.array(["d", "b", "a", "c"])[Y]
    model = make(ApproxDP(2.0, 1e-6), classes=["d", "c", "b", "a"]).fit(X, names)
    assert model.coef_.shape == (4, 4)
    assert model.intercept_.shape == (4,)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, BallBound(1.0).clip(X) @ model.coef_.T + model.intercept_, atol=1e-12)
    assert (model.predict(X) == model.classes_[scores.argmax(axis=1)]).all()
    accuracy = np.mean(model.predict(X) == names)
    assert model.score(X, names) == pytest.approx(accuracy)
    assert accuracy > 0.4
    assert model.score(X, names, sample_weight=(names == "a") * 1.0) == pytest.approx(
        np.mean(model.predict(X)[names == "a"] == "a")
    )
    assert len(model.coefficient_names_) == 4
    assert 'The labels "a", "b", "c" and "d" were declared' in model.guarantee_.statement()


def test_plans_know_the_number_of_classes():
    """From declared classes or n_classes, 2 by default; the plan is that of the fit; nonsense is refused."""
    model = LogisticRegression(1.0)
    assert [model.plan(3000, 4, **k).problem.n_weights for k in ({}, {"n_classes": 4}, {"n_classes": 2})] == [5, 20, 5]
    fitted = LogisticRegression(1.0).fit(X, Y)
    assert fitted.alpha_ == model.plan(3000, 4, n_classes=4).alpha
    declared = LogisticRegression(1.0, classes=range(4))
    assert declared.plan(3000, 4) == declared.plan(3000, 4, n_classes=4)
    assert declared.plan(3000, 4).to_dict()["n_scores"] == 4
    for bad in (1, 101, 2.5, True, "4"):
        with pytest.raises(ParameterError, match="n_classes"):
            model.plan(3000, 4, n_classes=bad)
    with pytest.raises(ParameterError, match="n_classes"):
        declared.plan(3000, 4, n_classes=3)


def test_a_score_is_in_favour_of_the_second_class():
    """Positive where `predict` says so, and one number a row."""
    model = LogisticRegression(1.0, random_state=0).fit(X, np.where(Y > 1, "b", "a"))
    scores = model.decision_function(X)
    assert scores.shape == (3000,)
    assert np.array_equal(model.predict(X), np.where(scores > 0.0, "b", "a"))
    np.testing.assert_allclose(scores, BallBound(1.0).clip(X) @ model.coef_[0] + model.intercept_[0], atol=1e-12)


def test_accuracy_is_read_with_the_labels_and_weights_of_its_rows():
    """Another label than those of the fit is refused without being shown, and no rows that are not there are scored."""
    model = LogisticRegression(1.0, random_state=0).fit(X, Y > 1)
    right = model.predict(X) == (Y > 1)
    assert model.score(X, Y > 1) == right.mean()
    assert model.score(X, Y > 1, sample_weight=right * 2.0) == 1.0
    with pytest.raises(confide.InputError, match="outside the declared") as refused:
        model.score(X, np.full(3000, 98765))
    assert "98765" not in str(refused.value)
    with pytest.raises(confide.InputError, match="one label or target for each row"):
        model.score(X[:10], Y > 1)


def test_the_labels_of_a_frame_to_score_are_the_schemas():
    """As in a fit; also those of an Arrow stream, which is read once, where rows and labels come together."""
    frame = pd.DataFrame({"x": X[:, 0], "ill": (Y > 1).astype(int)})
    schema = Schema({"x": {"low": -1, "high": 1}}, {"column": "ill", "negative": 0, "positive": 1})
    model = LogisticRegression(1.0, schema=schema).fit(frame)
    expected = model.score(frame[["x"]], frame["ill"])
    assert model.score(frame) == expected
    assert model.score(pa.Table.from_pandas(frame).to_reader()) == expected
    with pytest.raises(confide.InputError, match="ill"):
        model.score(frame[["x"]])


@pytest.mark.parametrize("made", [LinearSVC(), ERMClassifier(), confide.Ridge(), confide.AdditiveRegressor()])
def test_models_without_probabilities_say_what_has_some(made):
    """`hasattr` is false, as scikit-learn asks."""
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(made, name)
        with pytest.raises(AttributeError, match=r"LogisticRegression has some, and confide\.CalibratedClassifier makes"):
            getattr(made, name)
    assert hasattr(LogisticRegression(), "predict_proba")


def test_labels_of_a_fitted_model_are_read_as_in_its_fit():
    """By its classes; however a file wrote them where a schema declared them."""
    assert classes_of(LogisticRegression(1.0).fit(X, Y > 1)) == Classes((False, True), matched_as_text=False)
    schema = Schema(columns={"x": {"low": -1, "high": 1}}, target={"column": "ill", "negative": 0, "positive": 1})
    frame = pd.DataFrame({"x": X[:, 0]})
    model = LogisticRegression(1.0, schema=schema).fit(frame, (Y > 1).astype(int))
    assert classes_of(model) == Classes((0, 1), matched_as_text=True)
    assert model.score(frame, np.where(Y > 1, "1", " 0")) == model.score(frame, (Y > 1).astype(int))


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, KernelSVC, ERMClassifier])
def test_scikit_learn_is_told_which_losses_take_several_classes(kind):
    """All by default; not the plain hinge, nor a loss of a user's own."""
    assert kind().__sklearn_tags__().classifier_tags.multi_class
    assert not LinearSVC(loss="hinge").__sklearn_tags__().classifier_tags.multi_class
    assert not ERMClassifier(loss=Hyperbola()).__sklearn_tags__().classifier_tags.multi_class


def test_weights_of_rows_are_in_the_signature_of_fit():
    """Where scikit-learn looks for them: by name, by position, and by metadata routing."""
    model, weights = LogisticRegression(math.inf), np.linspace(0.1, 1.0, 3000)
    assert has_fit_parameter(model, "sample_weight")
    assert not has_fit_parameter(confide.Ridge(), "sample_weight")
    with sklearn.config_context(enable_metadata_routing=True):
        assert model.set_fit_request(sample_weight=True).get_metadata_routing().fit.requests == {"sample_weight": True}
    assert np.array_equal(model.fit(X, Y, weights).coef_, clone(model).fit(X, Y, sample_weight=weights).coef_)


@pytest.mark.parametrize("make", [confide.AdditiveClassifier, confide.LogisticRegression, confide.KernelSVC])
@pytest.mark.parametrize("schema", ["loans.toml", Path("loans.toml"), {"columns": {}}, 3])
def test_what_is_no_schema_is_refused_by_plan_as_by_fit(make, schema):
    """Before anything else is read of it. A path is one of a file."""
    model = make(budget=1.0, schema=schema)
    frame = pd.DataFrame({"age": [1.0, 2.0] * 50})
    words = r"schema must be a confide\.Schema|loans\.toml: there is no such file"
    for attempt in (lambda: model.plan(100), lambda: model.plan(100, 3), lambda: model.fit(frame, [0, 1] * 50)):
        with pytest.raises(confide.ConfideError, match=words):
            attempt()
