"""Rows of four classes, and the linear models that several classes have."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import LinearSVC, LogisticRegression


def rows_and_classes(n=3000, d=4, k=4, seed=0):
    """Rows and classes drawn from a softmax model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / math.sqrt(d)
    return X, np.argmax(4.0 * X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k)), axis=1)


X, Y = rows_and_classes()
MODELS = [LogisticRegression, lambda b, **k: LogisticRegression(b, multiclass="one-vs-rest", **k), LinearSVC]
models = pytest.mark.parametrize("make", MODELS, ids=["softmax", "one-vs-rest", "svm"])
