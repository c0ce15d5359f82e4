"""Rows that are shortened before they are scored, in the norm of a form."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import confide
from confide import ApproxDP, BallBound, ParameterError, Schema, Smooth
from confide.erm.coded_rows import CodedRows
from confide.features.encoder import Encoder
from confide.features.forms import QuadraticForm, ShortenedInNorm
from confide.intake.penalties import checked_penalty, form_of
from confide.models.files import row_bound_from_dict

SCHEMA = Schema(
    columns={"age": {"low": 0, "high": 100, "knots": 9}, "level": {"categories": list("abcdefgh"), "other": True}},
    target={"column": "y", "negative": 0, "positive": 1},
)
ENCODER = Encoder(SCHEMA)
PENALTY = {"age": Smooth(30.0), "level": Smooth(5.0)}
FORM = form_of(checked_penalty(PENALTY), ENCODER, tuple)
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame({"age": RNG.uniform(0, 100, 400), "level": RNG.choice([*"abcdefgh", "z"], 400)})


def test_rows_are_shortened_to_the_norm_and_not_turned():
    """Coded rows stay coded and are what dense rows are; short rows stay as they are."""
    bound = ShortenedInNorm(ENCODER.row_bound, FORM, 1.2)
    coded = ENCODER.block(ENCODER.read(FRAME), 0, 400)
    assert type(coded) is CodedRows
    rows, found = coded.dense(), bound.clip(coded)
    assert type(found) is CodedRows
    assert found.dense() == pytest.approx(bound.clip(rows))
    lengths = np.linalg.norm(FORM.rows(rows), axis=1)
    assert np.linalg.norm(FORM.rows(found.dense()), axis=1) == pytest.approx(np.minimum(lengths, 1.2), rel=1e-6)
    assert 0.1 < (lengths > 1.2).mean() < 0.9
    short = lengths <= 1.2
    assert np.array_equal(found.dense()[short], rows[short])
    assert bound.l2_norm == ENCODER.row_bound.l2_norm
    with pytest.raises(ParameterError, match="20 columns"):
        bound.clip(np.ones((2, 3)))
    with pytest.raises(ParameterError, match="dense"):
        bound.clip(scipy.sparse.csr_array(np.ones((2, 20))))


def test_the_bound_is_written_and_read_to_the_bit():
    """Of a file that was changed, what is no map is refused."""
    bound = ShortenedInNorm(BallBound(2.0), FORM, 1.2)
    written = json.loads(json.dumps(bound.to_dict()))
    assert row_bound_from_dict(written) == bound
    for change in ({"start": -1}, {"map": [[0.0]]}, {"map": [[1.0, 1.0], [0.0, 1.0]]}, {"map": [1.0]}, {"start": 19}):
        form = written["form"] | {"blocks": [written["form"]["blocks"][0] | change]}
        with pytest.raises(ParameterError, match="penalty that is none"):
            QuadraticForm.from_dict(form)


def test_a_model_that_shortened_rows_predicts_the_same_from_its_file(tmp_path):
    """And as a pipeline of scikit-learn; scores are those of the rows in the norm of the form."""
    labels = (FRAME["age"] > 50.0).astype(int)
    model = confide.LogisticRegression(ApproxDP(1.0, 1e-6), schema=SCHEMA, penalty=PENALTY, random_state=0)
    model.fit(FRAME, labels)
    bound = model._row_bound
    assert type(bound) is ShortenedInNorm
    assert bound.norm < FORM.longest(ENCODER.row_bound)
    inside = BallBound(bound.norm).clip(FORM.rows(ENCODER.transform(FRAME)))
    expected = inside @ FORM.weights_in_norm(model.coef_)[0] + model.intercept_[0]
    assert model.decision_function(FRAME) == pytest.approx(expected, rel=1e-5, abs=1e-7)
    model.save(tmp_path / "model.json")
    read = confide.load(tmp_path / "model.json")
    assert np.array_equal(read.decision_function(FRAME), model.decision_function(FRAME))
    assert read.penalty["age"]["strength"] == 30.0
    assert np.array_equal(model.to_sklearn().predict(FRAME), model.predict(FRAME))
    assert confide.evaluate(read, FRAME, labels, budget=1.0, random_state=0) is not None
