"""Scores that depend on their rows alone: right, and the same to the bit wherever a row lies and whoever lies beside it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from confide import BoxBound, GroupBound, KernelSVC, LinearSVC, LogisticRegression, Schema
from confide.data.arrays import MappedBlocks, rows_in_block
from confide.estimators.linear_model import released_model
from confide.intake.arrays import rows_to_score


def blocks_of(model, rows):
    """The rows as the model scores them."""
    blocks = rows_to_score(rows, model, model._encoder, accepts_sparse=model._accepts_sparse)
    return blocks if model._fourier is None else MappedBlocks(blocks, model._fourier)


def scores_of(model, rows):
    """Scores, each a function of its row alone."""
    return released_model(model).scoring.scores_alone(blocks_of(model, rows))


def models():
    """(name, model, what makes its rows of an array (n, 4), labels for so many classes)."""
    schema = Schema(
        columns={
            "a": {"low": -1.0, "high": 1.0, "knots": [0.0, 0.5]},
            "b": {"low": 0.001, "high": 2.0, "scale": "log"},
            "c": {"low": -1.0, "high": 1.0},
            "d": {"categories": [0, 1, 2], "other": True},
        }
    )

    def frame(rows):
        columns = dict(zip("abc", rows[:, :3].T, strict=True))
        return pd.DataFrame(columns | {"d": np.abs(np.rint(3 * rows[:, 3])).astype(int)})

    return {
        "a ball": (LogisticRegression(math.inf, classes=[0, 1]), np.array, 2),
        "columns in one piece": (LogisticRegression(math.inf, classes=[0, 1]), np.asfortranarray, 2),
        "single precision": (LogisticRegression(math.inf, classes=[0, 1]), np.float32, 2),
        "three classes": (LogisticRegression(math.inf, classes=[0, 1, 2]), np.array, 3),
        "a box": (LogisticRegression(math.inf, classes=[0, 1], row_norm=BoxBound([0.5] * 4)), np.array, 2),
        "groups": (LogisticRegression(math.inf, classes=[0, 1], row_norm=GroupBound((2, 2), (0.7, 0.7))), np.array, 2),
        "sparse rows": (LogisticRegression(math.inf, classes=[0, 1]), scipy.sparse.csr_array, 2),
        "a kernel": (KernelSVC(math.inf, classes=[0, 1], n_features=32), np.array, 2),
        "a schema": (LinearSVC(math.inf, classes=[0, 1], schema=schema), frame, 2),
    }


@pytest.mark.parametrize("name", models())
def test_a_score_is_that_of_its_row_alone(name):
    """Right to 1e-12; and equal to the bit in another order, beside a huge row, and in a table of one row."""
    model, make, n_classes = models()[name]
    rng = np.random.default_rng(3)
    n_rows = 2 * rows_in_block(4) + 7
    rows = rng.uniform(-1.0, 1.0, size=(n_rows, 4)) * rng.choice([0.1, 0.5, 1.0], size=(n_rows, 1))
    model.fit(make(rows), np.arange(n_rows) % n_classes)
    if model._encoder is None and name not in ("sparse rows", "single precision"):
        rows[5] = [1e200, -1e200, 3.0, 0.0]
    scores = scores_of(model, make(rows))
    np.testing.assert_allclose(scores, model.decision_function(make(rows)), rtol=0, atol=1e-12 * np.abs(scores).max())
    shuffled = rng.permutation(n_rows)
    assert np.array_equal(scores_of(model, make(rows[shuffled])), scores[shuffled])
    shifted = np.concatenate([rows[1:], 0.01 * rows[:1]])
    assert np.array_equal(scores_of(model, make(shifted))[:-1], scores[1:])
    for position in (0, 5, 11, n_rows - 1):
        alone = scores_of(model, make(rows[position : position + 1]))
        assert np.array_equal(alone[0], scores[position])


def test_scores_of_a_product_depend_on_the_place_of_their_row():
    """What `scores_alone` is for: BLAS adds up the last rows of a block in another order. This attack has power here."""
    rng = np.random.default_rng(0)
    rows = np.repeat(rng.uniform(-1.0, 1.0, (1, 50)), rows_in_block(50), axis=0)
    coefficients = rng.uniform(-1.0, 1.0, 50)
    if len(set((rows @ coefficients[:, None])[:, 0])) == 1:
        pytest.skip("this BLAS adds up all rows of a block in one order")
    model = LogisticRegression(math.inf, classes=[0, 1], row_norm=100.0).fit(rows[:10], np.arange(10) % 2)
    model.coef_ = coefficients[None]
    assert len(set(scores_of(model, rows))) == 1
