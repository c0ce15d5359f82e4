"""Fits, searches, intervals from parts and evaluations take the same rows, and refuse the same with the same words."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import confide
from confide import ConfideError, Ledger, LogisticRegression, PrivateSearchCV, Schema, evaluate

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(400, 2))
Y = (X[:, 0] > 0.0).astype(int)
FRAME = pd.DataFrame({"a": X[:, 0], "c": np.where(X[:, 1] > 0.0, "u", "v")})
SCHEMA = Schema(
    columns={"a": {"low": -0.5, "high": 0.5}, "c": {"categories": ["u", "v"]}},
    target={"column": "y", "negative": 0, "positive": 1},
)
BAD = X.copy()
BAD[7, 1] = np.nan

NUMERIC = {
    "an array": (X, Y),
    "single precision": (X.astype(np.float32), Y),
    "columns in one piece": (np.asfortranarray(X), Y),
    "a list": (X.tolist(), Y.tolist()),
    "a pandas frame": (pd.DataFrame(X, columns=["a", "b"]), pd.Series(Y)),
    "a Polars frame": (pl.DataFrame(X, schema=["a", "b"]), pl.Series(Y)),
    "sparse rows": (scipy.sparse.csr_array(X), Y),
    "sparse columns": (scipy.sparse.csc_matrix(X), Y),
    "a column of labels": (X, Y[:, None]),
    "labels of text": (X, np.where(Y, "1", "0")),
    "a missing number": (BAD, Y),
    "too few labels": (X, Y[:-1]),
    "a label outside": (X, np.where(np.arange(400) == 3, 7, Y)),
    "no labels": (X, None),
    "one dimension": (X[:, 0], Y),
    "text": (X.astype(str), Y),
    "text cells": (FRAME, Y),
    "complex numbers": (X.astype(complex), Y),
    "a masked array": (np.ma.masked_array(X, X > 0.4), Y),
    "no rows": (X[:0], Y[:0]),
    "names that are numbers": (pd.DataFrame(X, columns=["3.5", "-1.2"]), Y),
    "dates": (pd.DataFrame({"a": pd.date_range("2020", periods=400), "b": X[:, 1]}), Y),
}
RAW = {
    "pandas": (FRAME, Y),
    "Polars": (pl.from_pandas(FRAME), Y),
    "Arrow": (pa.Table.from_pandas(FRAME), Y),
    "labels as text": (FRAME, Y.astype(str)),
    "more columns": (FRAME.assign(other=1), Y),
    "a missing column": (FRAME[["a"]], Y),
    "a missing cell": (FRAME.assign(a=FRAME["a"].where(FRAME.index != 9)), Y),
    "an unused column": (FRAME.assign(c="z"), Y),
    "an array": (X, Y),
    "a strange label": (FRAME, np.where(np.arange(400) == 3, 7, Y)),
}
WEIGHTS = {
    "ones": np.ones(400),
    "a list": [0.5] * 400,
    "none": None,
    "too large": np.full(400, 3.0),
    "negative": np.where(np.arange(400) == 5, -1.0, 1.0),
    "too few": np.ones(399),
    "all 0": np.zeros(400),
    "text": ["a"] * 400,
    "not a number": np.where(np.arange(400) == 5, np.nan, 1.0),
}


def outcome(use):
    """None where rows are taken, or what the refusal says; of a ledger nothing is spent by a refusal."""
    ledger = Ledger(limit=5.0)
    try:
        use(ledger)
    except (ConfideError, TypeError, ValueError) as refusal:
        assert ledger.spent().epsilon == 0.0
        return type(refusal), str(refusal)
    assert ledger.spent().epsilon > 0.0
    return None


def of_all_classifying(rows, labels, model, **facts):
    """Of a fit and a search, in this order."""

    def search(ledger):
        PrivateSearchCV(model, {"alpha": [0.1, 1.0]}, budget=1.0, method="permute-and-flip", ledger=ledger).fit(
            rows, labels, **facts
        )

    fit = confide.LogisticRegression(**(model.get_params() | {"budget": 1.0}))
    return [
        outcome(lambda ledger: fit.set_params(ledger=ledger).fit(rows, labels, **facts)),
        outcome(search),
    ]


@pytest.mark.filterwarnings("ignore:A column-vector y")
@pytest.mark.parametrize("name", NUMERIC)
def test_numeric_rows_are_taken_or_refused_alike(name):
    """By a fit and a search; and by an evaluation of a model of the same columns."""
    rows, labels = NUMERIC[name]
    declared = ["0", "1"] if name == "labels of text" else [0, 1]
    fit, *others = of_all_classifying(rows, labels, LogisticRegression(classes=declared))
    assert others == [fit]
    named = hasattr(rows, "columns") and name != "names that are numbers"
    train = pd.DataFrame(X, columns=list(rows.columns)) if named else X
    labels_of_training = np.array(declared)[Y]
    model = LogisticRegression(math.inf, classes=declared).fit(train, labels_of_training)
    assert outcome(lambda ledger: evaluate(model, rows, labels, budget=1.0, ledger=ledger)) == fit


@pytest.mark.parametrize("name", RAW)
def test_raw_rows_are_taken_or_refused_alike(name):
    """By all; an evaluation takes rows that leave a column unused, as it may be of a few rows."""
    rows, labels = RAW[name]
    fit, *others = of_all_classifying(rows, labels, LogisticRegression(schema=SCHEMA))
    assert others == [fit]
    model = LogisticRegression(math.inf, schema=SCHEMA).fit(FRAME, Y)
    found = outcome(lambda ledger: evaluate(model, rows, labels, budget=1.0, ledger=ledger))
    assert found == (None if name == "an unused column" else fit)


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights_are_taken_or_refused_alike(name):
    """By a fit and a search."""
    fit, *others = of_all_classifying(X, Y, LogisticRegression(classes=[0, 1]), sample_weight=WEIGHTS[name])
    assert others == [fit]
