"""Rates from a noisy histogram: scikit-learn's without noise, and intervals that hold what they claim with it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.metrics import confusion_matrix, roc_auc_score

import confide
from confide import KernelSVC, LinearSVC, LogisticRegression, ParameterError

WEIGHTS = np.array([2.0, -1.5, 0.7])


def population(n, seed):
    """Rows within the unit ball, and labels 0 and 1 of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, (rng.uniform(size=n) < expit(3.0 * X @ WEIGHTS)).astype(int)


@pytest.fixture(scope="module")
def model():
    """Trained on other rows."""
    return LogisticRegression(float("inf"), classes=[0, 1]).fit(*population(4000, 0))


def test_without_noise_rates_are_scikit_learns(model):
    """Accuracy and confusion to the last digit, the area under the curve but for ties within bins."""
    X, y = population(3000, 1)
    answer = confide.evaluate(model, X, y, budget=math.inf, n_bins=1000)
    assert answer.accuracy.value == pytest.approx(model.score(X, y), abs=1e-12)
    table = confusion_matrix(y, model.predict(X), normalize="all")
    np.testing.assert_allclose([[rate.value for rate in row] for row in answer.confusion], table, atol=1e-12)
    rows = confusion_matrix(y, model.predict(X), normalize="true")
    assert answer.specificity.value == pytest.approx(rows[0, 0], abs=1e-12)
    assert answer.sensitivity.value == pytest.approx(rows[1, 1], abs=1e-12)
    assert answer.auc.value == pytest.approx(roc_auc_score(y, model.decision_function(X)), abs=2e-3)
    assert answer.void is not None
    assert answer.counts.sum() == 3000


def test_calibration_of_a_true_model_lies_in_its_bins(model):
    """Rates of the positive class by bin of the probability."""
    X, y = population(40_000, 2)
    answer = confide.evaluate(model, X, y, budget=math.inf, n_bins=10)
    chances = model.predict_proba(X)[:, 1]
    for place, rate in enumerate(answer.calibration):
        inside = (chances > place / 10) & (chances <= (place + 1) / 10)
        assert rate.value == pytest.approx(y[inside].mean(), abs=1e-12)
        assert rate.low <= rate.value <= rate.high


@pytest.mark.parametrize("neighbours", ["replace-one", "add-or-remove-one"])
def test_intervals_hold_what_they_claim(model, neighbours):
    """300 samples of 1,500 rows with noise that matters: coverage of the population's rates near 0.9."""
    X, y = population(300_000, 3)
    truth = confide.evaluate(model, X, y, budget=math.inf)
    names = ("accuracy", "sensitivity", "specificity", "auc")
    hits, rng, shares = dict.fromkeys(names, 0), np.random.default_rng(4), []
    for trial in range(300):
        drawn = rng.integers(300_000, size=1500)
        answer = confide.evaluate(
            model, X[drawn], y[drawn], budget=0.4, level=0.9, neighbours=neighbours, random_state=trial
        )
        for name in names:
            rate = getattr(answer, name)
            hits[name] += rate.low <= getattr(truth, name).value <= rate.high
        without = confide.evaluate(model, X[drawn], y[drawn], budget=math.inf, level=0.9)
        shares.append((without.accuracy.high - without.accuracy.low) / (answer.accuracy.high - answer.accuracy.low))
    # The noise is a good part of the intervals.
    assert np.mean(shares) < 0.8
    for name in names:
        assert 0.84 <= hits[name] / 300 <= 0.96, name


def test_where_noise_hides_everything_nothing_is_claimed(model):
    """A rate whose denominator is lost in the noise is None, and prints so."""
    X, y = population(200, 6)
    answer = confide.evaluate(model, X, y, budget=0.01, random_state=0)
    assert answer.sensitivity.value is None
    assert answer.auc.value is None
    assert "hidden by the noise" in str(answer)
    assert "random_state" in str(answer)
    assert answer.to_dict()["auc"] == {"value": None, "low": None, "high": None}
    assert answer.to_frame().loc["auc"].isna().all()


@pytest.mark.parametrize("kind", [LinearSVC, KernelSVC])
def test_machines_without_probabilities_have_no_calibration(kind):
    """Their scores pass through the logistic function to find a bin."""
    X, y = population(1500, 8)
    fitted = kind(math.inf, classes=[0, 1]).fit(X, y)
    answer = confide.evaluate(fitted, X, y, budget=math.inf)
    assert answer.accuracy.value == pytest.approx(fitted.score(X, y))
    assert answer.to_dict()["calibration"] is None
    with pytest.raises(ParameterError, match="no probabilities"):
        _ = answer.calibration
