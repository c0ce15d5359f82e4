"""The sentences of a guarantee: what must be true of rows, parameters and noise for it to hold."""

from __future__ import annotations

import numpy as np

from confide import LogisticRegression


def test_the_guarantee_names_the_cap_and_the_class_weights(rows):
    """And says nothing of weights where every row counts 1."""
    X, y = rows
    model = LogisticRegression(1.0, max_sample_weight=2.5, class_weight={0: 1.0, 1: 3.0})
    statement = model.fit(X, y, sample_weight=np.ones(len(y))).guarantee_.statement()
    assert "cap 2.5" in statement
    assert "{0: 1, 1: 3}" in statement
    assert "cap 1; not all are 0." in LogisticRegression(1.0).fit(X, y, sample_weight=np.ones(len(y))).guarantee_.statement()
    assert "weight of a row" not in LogisticRegression(1.0).fit(X, y).guarantee_.statement()
