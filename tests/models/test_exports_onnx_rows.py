"""Encoded rows in ONNX are those of the encoder."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from confide import BallBound, BoxBound, Schema
from confide.features.encoder import Encoder
from confide.features.fourier import FourierMap
from confide.models.exports import OnnxGraph, clipped_rows, encoded_rows, mapped_rows
from tests.effects.examples import COLUMNS, table

pytest.importorskip("onnx", reason="onnx is not installed")
MORE = {
    "code": {"categories": [1, 2, 10], "other": 2},
    "flag": {"categories": [True, False]},
    "lone": {"categories": ["only"]},
    "bent": {"low": 1, "high": 1000, "scale": "log", "knots": [3, 10, 500], "missing": True},
    "pay": {"low": 20, "high": 5000, "scale": "log10", "missing": True},
    "flat": {"low": -5, "high": 5, "knots": 0, "missing": True},
}
INTERACT = [
    ["work", "age"],
    ["income", "city", "sex"],
    {"columns": ["bent", "age"], "knots": 1, "scale": 0.25},
    {"columns": ["flat", "rank"], "knots": 0},
]


def computed(graph, value, n_columns, fed):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    graph.output("rows", value, "double", n_columns)
    session = runtime.InferenceSession(graph.model("test", "rows", {}).SerializeToString())
    return session.run(None, fed)[0]


def test_encoded_rows_are_those_of_the_encoder():
    """Every kind of column and of product; cells beyond the bounds, unlisted, missing, and at a knot."""
    rng = np.random.default_rng(3)
    frame = table(400).assign(
        code=rng.choice([1, 2, 10, 77], 400),
        flag=rng.choice([True, False], 400),
        lone=rng.choice(["only", "others"], 400),
        bent=rng.choice([-2.0, 1.0, 3.0, 7.5, 10.0, 999.0, 2e3, np.nan], 400),
        pay=rng.choice([-2.0, 20.0, 33.3, 5000.0, 1e9, np.nan], 400),
        flat=rng.choice([-5.0, 0.25, 5.0, 8.0, np.nan], 400),
    )
    encoder = Encoder(Schema(columns=COLUMNS | MORE, interact=INTERACT))
    graph = OnnxGraph()
    rows = encoded_rows(graph, encoder)
    fed = {
        column.name: frame[[column.name]].to_numpy(np.float64)
        if hasattr(column, "low")
        else frame[[column.name]].fillna("").astype(str).to_numpy()
        for column in encoder.schema.columns
    }
    np.testing.assert_allclose(computed(graph, rows, encoder.n_features, fed), encoder.transform(frame), atol=1e-12)


def test_labels_are_recognised_as_other_programs_write_them():
    """1, 1.0 and True, TRUE, true are the labels that the schema knows."""
    encoder = Encoder(Schema(columns={"code": MORE["code"], "flag": MORE["flag"]}))
    graph = OnnxGraph()
    rows = encoded_rows(graph, encoder)
    fed = {
        "code": np.array([["1"], ["1.0"], ["10"]], object),
        "flag": np.array([["True"], ["TRUE"], ["false"]], object),
    }
    expected = encoder.transform(pd.DataFrame({"code": [1, 1.0, 10], "flag": ["true", "true", "false"]}))
    np.testing.assert_array_equal(computed(graph, rows, encoder.n_features, fed), expected)


def test_words_for_missing_cells_are_missing_unless_they_are_listed():
    """As in every table that the encoder reads."""
    columns = {"land": {"categories": ["DE", "NA"], "missing": True}, "work": {"categories": ["a", "b"], "missing": [-9]}}
    encoder = Encoder(Schema(columns=columns))
    graph = OnnxGraph()
    rows = encoded_rows(graph, encoder)
    frame = pd.DataFrame({"land": ["NA", "null", "", "DE"], "work": ["NA", "-9.0", "a", "b"]})
    fed = {name: frame[[name]].to_numpy(object) for name in frame}
    np.testing.assert_array_equal(computed(graph, rows, encoder.n_features, fed), encoder.transform(frame))
    assert encoder.transform(frame).sum(axis=0).tolist() == [1, 1, 2, 1, 1, 2]


def test_codes_for_missing_numbers_are_missing():
    """Within the bounds and outside of them, in a line and in a curve."""
    columns = {
        name: {"low": 0, "high": 110, "missing": [999, -9, 99], "knots": knots} for name, knots in (("a", 0), ("b", 3))
    }
    encoder = Encoder(Schema(columns=columns))
    graph = OnnxGraph()
    rows = encoded_rows(graph, encoder)
    numbers = [30.0, 999.0, -9.0, 99.0, 98.0, 200.0, np.nan]
    frame = pd.DataFrame({"a": numbers, "b": numbers})
    fed = {name: frame[[name]].to_numpy() for name in frame}
    np.testing.assert_allclose(computed(graph, rows, encoder.n_features, fed), encoder.transform(frame), atol=1e-12)


@pytest.mark.parametrize("bound", [BallBound(0.5), BallBound(float("inf")), BoxBound([0.3, 0.6])])
def test_clipped_rows_obey_the_bound(bound):
    rows = np.random.default_rng(0).uniform(-1.0, 1.0, size=(50, 2))
    graph = OnnxGraph()
    clipped = clipped_rows(graph, graph.input("X", "double", 2), bound)
    np.testing.assert_allclose(computed(graph, clipped, 2, {"X": rows}), bound.clip(rows), atol=1e-9)


def test_mapped_rows_are_those_of_the_map():
    """Cosines first, then sines; also for rows far from the origin."""
    rows = np.random.default_rng(0).uniform(-50.0, 50.0, size=(20, 3))
    fourier, graph = FourierMap(3, 10, "laplacian", 0.5), OnnxGraph()
    mapped = mapped_rows(graph, graph.input("X", "double", 3), fourier)
    np.testing.assert_allclose(computed(graph, mapped, 10, {"X": rows}), fourier.transform(rows), atol=1e-4)
