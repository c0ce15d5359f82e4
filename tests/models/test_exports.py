"""A model as an ONNX graph predicts in onnxruntime what the model predicts."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

import confide
from tests.exports.models import MAKERS, example

onnx = pytest.importorskip("onnx", reason="onnx is not installed")


def outputs_of(graph, rows):
    """What onnxruntime computes for an array, or for the columns of a frame."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    session = runtime.InferenceSession(graph.SerializeToString())
    fed = {}
    for each in session.get_inputs():
        if each.name == "X":
            fed["X"] = np.asarray(rows, dtype=np.float64)
        elif each.type == "tensor(double)":
            fed[each.name] = rows[[each.name]].to_numpy(np.float64)
        else:
            fed[each.name] = rows[[each.name]].fillna("").astype(str).to_numpy()
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, fed), strict=True))


@pytest.mark.parametrize("name", MAKERS)
def test_predictions_are_those_of_the_model(name):
    """Labels, scores and probabilities, on rows beyond the bounds and with missing cells."""
    model, rows = example(name)
    found = outputs_of(model.to_onnx(), rows)
    if not hasattr(model, "classes_"):
        np.testing.assert_allclose(found["prediction"][:, 0], model.predict(rows), rtol=1e-8)
        return
    scores = model.decision_function(rows).reshape(len(rows), -1)
    np.testing.assert_allclose(found["scores"], scores, atol=1e-7 * np.abs(scores).max())
    np.testing.assert_array_equal(found["label"], model.predict(rows))
    assert ("probabilities" in found) == hasattr(model, "predict_proba")
    if "probabilities" in found:
        np.testing.assert_allclose(found["probabilities"], model.predict_proba(rows), atol=1e-7)


def test_probabilities_stay_within_0_and_1_far_from_the_middle():
    """Scores at which the exponentials of the formula overflow."""
    model, rows = example("additive")
    far = confide.AdditiveClassifier(schema=model.schema_)
    far.__dict__ |= model.__dict__ | {"coef_": 1e4 * model.coef_}
    found = outputs_of(far.to_onnx(), rows)["probabilities"]
    np.testing.assert_allclose(found, far.predict_proba(rows), atol=1e-12)
    assert found.min() == 0.0


def test_the_graph_tells_its_guarantee():
    """In the metadata, which survive the file; and no input but the columns of the schema is asked for."""
    model, _ = example("additive")
    graph = onnx.load_from_string(model.to_onnx().SerializeToString())
    facts = {each.key: each.value for each in graph.metadata_props}
    assert json.loads(facts["guarantee"]) == model.guarantee_.to_dict()
    assert facts["statement"] == model.guarantee_.statement()
    assert [each.name for each in graph.graph.input] == list(model.schema_.column_names)


def test_a_bound_with_groups_is_refused():
    X = np.random.default_rng(0).uniform(-0.3, 0.3, size=(500, 3))
    model = confide.LogisticRegression(5.0, row_norm=confide.GroupBound((2, 1), (1.0, 1.0))).fit(X, X[:, 0] > 0.0)
    with pytest.raises(confide.ParameterError, match="to_sklearn can export it"):
        model.to_onnx()
    np.testing.assert_array_equal(model.to_sklearn().predict(X), model.predict(X))


def test_without_onnx_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(confide.ParameterError, match=r"pip install '\.\[onnx\]'"):
        example("logistic")[0].to_onnx()


def test_labels_keep_their_type():
    """Text, whole numbers and booleans."""
    found = {name: outputs_of(example(name)[0].to_onnx(), example(name)[1])["label"] for name in ("additive", "logistic")}
    assert set(found["additive"]) == {"no", "yes"}
    assert found["logistic"].dtype == np.int64
    model, rows = example("logistic of a frame")
    assert outputs_of(model.to_onnx(), rows)["label"].dtype == bool
    assert isinstance(rows, pd.DataFrame)
