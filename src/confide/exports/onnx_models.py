"""A released model as an ONNX graph: encoding, clipping, scores and predictions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from confide.exports.onnx_graphs import OnnxGraph
from confide.exports.onnx_rows import clipped_rows, encoded_rows, mapped_rows
from confide.released_models.links import Link
from confide.released_models.model import ReleasedModel


def onnx_model_of(released: ReleasedModel, link: Link) -> Any:
    """The graph of a released model.

    Parameters
    ----------
    released : the model
    link : how its scores become predictions

    Returns
    -------
    onnx.ModelProto
        Its inputs and outputs are described at `to_onnx` of the models.

    Raises
    ------
    ParameterError
        If onnx is not installed, or the bound on rows has groups of several columns and no schema.
    """
    graph = OnnxGraph()
    rows = _rows(graph, released)
    coef, intercept = released.scoring.coef, released.scoring.intercept
    products = graph.node("MatMul", rows, graph.constant(np.ascontiguousarray(coef.T)))
    scores = graph.node("Add", products, graph.constant(intercept))
    if released.domain:
        _classes(graph, scores, released.domain, link)
    else:
        _numbers(graph, scores, link)
    statement = released.guarantee.statement()
    facts = {"guarantee": json.dumps(released.guarantee.to_dict()), "statement": statement}
    return graph.model("confide", statement.split("\n")[0], facts)


def _rows(graph: OnnxGraph, released: ReleasedModel) -> str:
    """The rows (n, d) as they are scored."""
    bound, encoder = released.scoring.row_bound, released.encoder
    if encoder is None:
        rows = graph.input("X", "double", int(released.columns.n_features_in))
    else:
        rows = encoded_rows(graph, encoder)
    if released.fourier is not None:
        rows = mapped_rows(graph, rows, released.fourier)
    elif encoder is not None and bound == encoder.row_bound:
        return rows  # encoded rows obey the bound of their encoder
    return clipped_rows(graph, rows, bound)


def _numbers(graph: OnnxGraph, scores: str, link: Link) -> None:
    if link.kind == "exponential":
        scores = graph.node("Min", graph.node("Exp", scores), graph.constant(np.finfo(np.float64).max))
    graph.output("prediction", scores, "double", 1)


def _classes(graph: OnnxGraph, scores: str, domain: tuple[Any, ...], link: Link) -> None:
    labels, several = np.array(domain), len(domain) > 2
    if several:
        favoured = graph.node("ArgMax", scores, axis=1, keepdims=0)
    else:
        is_second = graph.cast(graph.node("Greater", scores, graph.constant(0.0)), "integer")
        favoured = graph.node("Reshape", is_second, graph.constant(np.array([-1])))
    kind = {"U": "text", "i": "integer", "b": "boolean"}.get(labels.dtype.kind, "double")
    graph.output("label", graph.node("Gather", graph.constant(labels), favoured, axis=0), kind)
    graph.output("scores", scores, "double", len(domain) if several else 1)
    if link.has_probabilities:
        graph.output("probabilities", _probabilities(graph, scores, link, several), "double", len(domain))


def _probabilities(graph: OnnxGraph, scores: str, link: Link, several: bool) -> str:
    """The probability of each class, (n, k)."""
    if link.kind == "softmax":
        return graph.node("Softmax", scores, axis=1)
    odds = scores
    if link.margin:
        margin = graph.constant(link.margin)
        favour = _softplus(graph, graph.node("Sub", scores, margin))
        against = _softplus(graph, graph.node("Neg", graph.node("Add", scores, margin)))
        # The probability for a score is the logistic function of this difference.
        odds = graph.node("Sub", favour, against)
    if several:
        logs = graph.node("Neg", _softplus(graph, graph.node("Neg", odds)))
        return graph.node("Softmax", logs, axis=1)
    return graph.node("Concat", graph.node("Sigmoid", graph.node("Neg", odds)), graph.node("Sigmoid", odds), axis=1)


def _softplus(graph: OnnxGraph, value: str) -> str:
    """log(1 + e^x), from functions that are there for doubles, without overflow."""
    small = graph.node("Log", graph.node("Add", graph.node("Exp", graph.node("Neg", graph.node("Abs", value))), _one(graph)))
    return graph.node("Add", graph.node("Max", value, graph.constant(0.0)), small)


def _one(graph: OnnxGraph) -> str:
    return graph.constant(1.0)
