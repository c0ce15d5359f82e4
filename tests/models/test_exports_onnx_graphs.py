"""ONNX graphs while they are built."""

from __future__ import annotations

import numpy as np
import pytest

from confide.models.exports import OnnxGraph

pytest.importorskip("onnx", reason="onnx is not installed")


def test_a_graph_computes_in_double_precision():
    """Inputs, nodes, constants, casts and outputs; the model names confide as its maker."""
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    graph = OnnxGraph()
    rows = graph.input("X", "double", 2)
    tripled = graph.node("Mul", rows, graph.constant(3.0))
    graph.output("tripled", tripled, "double", 2)
    graph.output("whole", graph.cast(tripled, "integer"), "integer", 2)
    graph.output("word", graph.node("Gather", graph.constant(np.array(["a", "b"])), graph.constant(np.array([1]))), "text")
    model = graph.model("test", "three times", {"fact": "public"})
    found = runtime.InferenceSession(model.SerializeToString()).run(None, {"X": np.array([[1.0, 1.0 + 2.0**-50]])})
    np.testing.assert_array_equal(found[0], [[3.0, 3.0 * (1.0 + 2.0**-50)]])
    np.testing.assert_array_equal(found[1], [[3, 3]])
    assert found[2].tolist() == ["b"]
    assert (model.producer_name, model.metadata_props[0].value) == ("confide", "public")


def test_an_output_never_has_the_name_of_an_input():
    """A column may be called label."""
    graph = OnnxGraph()
    graph.output("label", graph.node("Neg", graph.input("label", "double", 1)), "double", 1)
    graph.output("scores", graph.constant(np.zeros((1, 1))), "double", 1)
    model = graph.model("test", "two names", {})
    assert [each.name for each in model.graph.output] == ["model_label", "scores"]
