"""What a file says that a model released, without the estimator."""

from __future__ import annotations

import json

import numpy as np
import pytest

import confide
from confide import FileError, LogisticRegression
from confide.estimators.linear_model import released_model
from confide.saved_models.reading import read_model, released_of, understood


def test_what_a_model_released_is_read_from_its_file(rows, tmp_path):
    """Weights to the bit, guarantee, classes and columns, as the model itself has them."""
    X, y = rows
    model = LogisticRegression(2.0).fit(X, y)
    model.save(tmp_path / "model.json")
    read, own = read_model(tmp_path / "model.json"), released_model(model)
    assert np.array_equal(read.scoring.coef, own.scoring.coef)
    assert np.array_equal(read.scoring.intercept, own.scoring.intercept)
    assert (read.guarantee, read.domain, read.alpha, read.prior) == (own.guarantee, own.domain, own.alpha, None)
    assert read.columns.n_features_in == own.columns.n_features_in


def test_a_file_that_is_not_understood_is_refused(rows, tmp_path):
    """A missing file, a part that is missing, one too many, and one of another kind."""
    X, y = rows
    path = tmp_path / "model.json"
    with pytest.raises(FileError, match="cannot read"):
        read_model(path)
    LogisticRegression(2.0, prior=(np.ones(X.shape[1]), 0.5)).fit(X, y).save(path)
    content = json.loads(path.read_text())["content"]
    assert released_of(content).prior.intercept == (0.5,)
    changes = ({"coef": None}, {"more": 1}, {"classes": [0]}, {"prior": {"coef": [[1.0]]}}, {"n_features_in": 99})
    for change in (*changes, {"n_features_in": 10**15}):
        damaged = content | change
        confide.files.write_document(path, damaged, overwrite=True)
        with pytest.raises(FileError):
            read_model(path)
    with pytest.raises(FileError), understood(path):
        released_of(content | {"n_features_in": np.inf})
    del content["alpha"]
    confide.files.write_document(path, content, overwrite=True)
    with pytest.raises(FileError, match="lacks parts of a model: alpha"):
        read_model(path)
