"""Random Fourier features as scikit-learn meets them."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from confide import BallBound, InputError, LogisticRegression, ParameterError, RandomFourierFeatures
from confide.features.fourier import FourierMap
from tests.estimators.conventions import failed_checks


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
