"""Random Fourier features and encoders as scikit-learn meets them."""

from __future__ import annotations

import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.exceptions import SkipTestWarning
from sklearn.pipeline import make_pipeline

from confide import BallBound, InputError, LogisticRegression, ParameterError, RandomFourierFeatures, SchemaEncoder
from confide.features.fourier import FourierMap
from tests.estimators.conventions import failed_checks
from tests.estimators.people import SCHEMA


@pytest.fixture
def ring():
    """3,000 points of a square, and whether they lie in a ring: no line tells."""
    points = np.random.default_rng(4).uniform(-1.0, 1.0, (3000, 2))
    radii = np.hypot(*points.T)
    return points, (radii > 0.4) & (radii < 0.9)


def test_scikit_learns_checks_pass():
    """check_estimator."""
    assert failed_checks(RandomFourierFeatures(n_features=10)) == ""


@pytest.mark.parametrize("orthogonal", [False, True])
def test_the_rows_are_those_of_the_map_of_the_parameters(ring, orthogonal):
    """And of nothing else: what fit sees but the number of columns does not matter."""
    X, _ = ring
    features = RandomFourierFeatures(20, kernel="rbf", length_scale=0.3, orthogonal=orthogonal, random_state=9)
    expected = FourierMap(2, 20, "rbf", 0.3, 9, orthogonal)
    assert features.fit(X[:1]).fourier_map_ == expected
    assert np.array_equal(features.transform(X), expected.transform(X))
    assert np.array_equal(clone(features).fit_transform(-5.0 * X[:3]), expected.transform(-5.0 * X[:3]))
    assert np.array_equal(pickle.loads(pickle.dumps(features)).transform(X), expected.transform(X))
    assert features.row_bound == BallBound(1.0)


def test_frames_give_frames_with_names(ring):
    """set_output and get_feature_names_out, cosines first."""
    frame = pd.DataFrame(ring[0], columns=["east", "north"])
    features = RandomFourierFeatures(4).set_output(transform="pandas")
    mapped = features.fit_transform(frame)
    assert list(mapped.columns) == list(features.get_feature_names_out()) == ["cos0", "cos1", "sin0", "sin1"]
    assert list(features.feature_names_in_) == ["east", "north"]


def test_a_pipeline_is_kernel_logistic_regression(ring):
    """It learns a ring, privately too, where a linear model is hardly better than a coin; the guarantee is untouched."""
    X, y = ring
    linear = LogisticRegression(math.inf).fit(X, y).score(X, y)
    features = RandomFourierFeatures(100, length_scale=0.4, orthogonal=True)
    without_privacy = make_pipeline(features, LogisticRegression(math.inf, alpha=1e-4)).fit(X, y)
    private = make_pipeline(features, LogisticRegression(4.0, random_state=0)).fit(X, y)
    assert linear < 0.65
    assert without_privacy.score(X, y) > 0.95
    assert private.score(X, y) > 0.8
    assert private[-1].guarantee_.budget.epsilon == 4.0
    assert private[-1].coefficient_names_.shape == (100,)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_features": 5}, "even"),
        ({"kernel": "poly"}, "kernel"),
        ({"length_scale": -1.0}, "length_scale"),
        ({"random_state": None}, "seed"),
        ({"kernel": "laplacian", "orthogonal": True}, "'rbf'"),
    ],
)
def test_parameters_are_refused_before_any_row(parameters, message):
    """Even where the rows are no rows."""
    with pytest.raises(ParameterError, match=message):
        RandomFourierFeatures(**parameters).fit("not rows")


def test_rows_that_cannot_be_used_are_refused_without_a_value():
    """As everywhere in the package."""
    for rows in ([[1.0, math.nan]], [["SECRET", "1"]], [[1.0], [2.0, 3.0]]):
        with pytest.raises(InputError) as refusal:
            RandomFourierFeatures(4).fit(rows)
        assert "SECRET" not in str(refusal.value)
    with pytest.raises(InputError, match="features"):
        RandomFourierFeatures(4).fit(np.zeros((3, 2))).transform(np.zeros((3, 5)))


def test_the_encoder_passes_the_checks_that_are_for_frames():
    """Arrays have no names, so scikit-learn can test its parameters, its clones and its tags."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkipTestWarning)
        assert failed_checks(SchemaEncoder(SCHEMA)) == ""


@pytest.mark.parametrize(("output", "library"), [("pandas", pd), ("polars", pl)])
@pytest.mark.parametrize("build", [pd.DataFrame, pl.DataFrame, pa.table])
def test_transformers_give_the_frames_that_are_asked_for(people, output, library, build):
    """set_output, with names, whatever library the rows come from; values are those of the array."""
    frame = build(people[0].to_dict("list"))
    encoder = SchemaEncoder(SCHEMA)
    plain = encoder.fit_transform(frame)
    encoded = clone(encoder).set_output(transform=output).fit_transform(frame)
    assert isinstance(encoded, library.DataFrame)
    assert list(encoded.columns) == encoder.get_feature_names_out().tolist()
    assert "age~30:job=b" in list(encoded.columns)
    assert np.array_equal(np.asarray(encoded), plain)
    mapped = RandomFourierFeatures(4).set_output(transform=output).fit_transform(encoded)
    assert isinstance(mapped, library.DataFrame)
    assert list(mapped.columns) == ["cos0", "cos1", "sin0", "sin1"]


def test_transformers_survive_clone_pickle_and_parameters(people):
    """As scikit-learn's own do."""
    encoder = SchemaEncoder(SCHEMA).fit(people[0])
    again = pickle.loads(pickle.dumps(encoder))
    assert np.array_equal(again.transform(people[0]), encoder.transform(people[0]))
    assert clone(encoder).get_params() == {"schema": SCHEMA}
    assert encoder.row_bound == encoder.set_params(schema=SCHEMA).row_bound


def test_a_pipeline_of_encoder_and_model_is_the_model_with_the_schema(people):
    """Without privacy, to the last digit but for the order of sums."""
    frame, y = people
    pipeline = make_pipeline(SchemaEncoder(SCHEMA), LogisticRegression(math.inf, row_norm=SchemaEncoder(SCHEMA).row_bound))
    whole = LogisticRegression(math.inf, schema=SCHEMA).fit(frame, y)
    assert pipeline.fit(frame, y)[-1].coef_ == pytest.approx(whole.coef_)
    assert whole.coefficient_names_.tolist() == pipeline[0].get_feature_names_out().tolist()
