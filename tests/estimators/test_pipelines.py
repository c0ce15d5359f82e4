"""A model as a pipeline of scikit-learn predicts what the model predicts."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

import confide
from tests.exports.models import MAKERS, example, rows_of_numbers


@pytest.mark.parametrize("name", MAKERS)
def test_predictions_are_those_of_the_model(name):
    """Predictions, scores and probabilities, on rows beyond the bounds and with missing cells, also after pickling."""
    model, rows = example(name)
    pipeline = pickle.loads(pickle.dumps(model.to_sklearn()))
    assert type(pipeline) is Pipeline
    assert pipeline[-1].__class__.__module__.startswith(("sklearn", "confide.estimators.pipelines"))
    if not hasattr(model, "classes_"):
        np.testing.assert_allclose(pipeline.predict(rows), model.predict(rows), rtol=1e-9)
        assert np.ptp(model.predict(rows)) > 0.01
        return
    np.testing.assert_array_equal(pipeline.predict(rows), model.predict(rows))
    assert len(set(model.predict(rows))) > 1
    np.testing.assert_array_equal(pipeline.classes_, model.classes_)
    assert hasattr(pipeline, "predict_proba") == hasattr(model, "predict_proba")
    if hasattr(pipeline, "decision_function"):
        np.testing.assert_allclose(pipeline.decision_function(rows), model.decision_function(rows), atol=1e-9)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(pipeline.predict_proba(rows), model.predict_proba(rows), atol=1e-9)


def test_sparse_rows_stay_sparse():
    model, rows = example("logistic")
    pipeline, sparse = model.to_sklearn(), scipy.sparse.csr_array(10.0 * rows)
    assert scipy.sparse.issparse(pipeline[:-1].transform(sparse))
    np.testing.assert_array_equal(pipeline.predict(sparse), model.predict(sparse))


def test_columns_are_compared_by_their_names():
    """As the model does it."""
    model, rows = example("logistic of a frame")
    with pytest.raises(ValueError, match="feature names should match"):
        model.to_sklearn().predict(rows.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="features"):
        example("logistic")[0].to_sklearn().predict(rows_of_numbers()[:, :2])


def test_the_weights_are_copies():
    """What is done to the pipeline leaves the model as it was."""
    model, _ = example("logistic")
    before = model.coef_.copy()
    model.to_sklearn()[-1].coef_ += 1.0
    np.testing.assert_array_equal(model.coef_, before)


def test_steps_say_what_happens_to_rows():
    names = {name: [step for step, _ in example(name)[0].to_sklearn().steps] for name in MAKERS}
    assert names["logistic"] == ["rows", "model"]
    assert names["kernel"] == ["rows", "features", "clip", "model"]
    assert names["additive, logistic"] == ["encode", "model"]
    assert names["table with features"] == ["encode", "features", "clip", "model"]


def test_an_unfitted_model_is_refused_and_a_search_exports_its_choice():
    with pytest.raises(NotFittedError):
        confide.LogisticRegression().to_sklearn()
    X = rows_of_numbers(900)
    search = confide.PrivateSearchCV(
        confide.LogisticRegression(classes=[0, 1]), {"alpha": [0.01, 1.0]}, budget=8.0, method="permute-and-flip"
    ).fit(X, X[:, 0] > 0.0)
    np.testing.assert_array_equal(search.to_sklearn().predict(X), search.predict(X))


def test_the_pipeline_can_be_cloned():
    model, _ = example("additive")
    assert clone(model.to_sklearn())[-1].margin == 2.0
