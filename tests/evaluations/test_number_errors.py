"""Errors of regressions: scikit-learn's without noise, clipped as declared, with calibration by bins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import r2_score

import confide
from tests.evaluations.examples import numbers, regressor


@pytest.fixture(scope="module")
def model():
    return regressor()


def test_without_noise_errors_are_those_of_the_rows(model):
    """R^2, the root of the mean squared error and the mean absolute error, in the unit of the target."""
    X, y = numbers(3000, 1)
    y = np.clip(y, -1.0, 1.0)
    found = confide.evaluate(model, X, y, budget=math.inf)
    errors = np.abs(y - model.predict(X))
    assert found.r2.value == pytest.approx(r2_score(y, model.predict(X)), abs=1e-4)
    assert found.rmse.value == pytest.approx(math.sqrt((errors**2).mean()), abs=1e-4)
    assert found.mae.value == pytest.approx(errors.mean(), abs=1e-4)
    assert found.mae.high - found.mae.low == pytest.approx(2 * 1.959964 * errors.std() / math.sqrt(3000), rel=0.02)
    clipped = confide.evaluate(model, X, y, budget=math.inf, clip=0.1)
    assert clipped.mae.value == pytest.approx(np.minimum(errors, 0.1).mean(), abs=1e-4)
    ratio = 1.0 - (np.minimum(errors, 0.1) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    assert clipped.r2.value == pytest.approx(ratio, abs=1e-4)


def test_the_interval_of_r2_is_that_of_its_influence(model):
    """By the delta method, of which the interval is the quotient's form."""
    X, y = numbers(3000, 2)
    y = np.clip(y, -1.0, 1.0)
    found = confide.evaluate(model, X, y, budget=math.inf).r2
    squares, spread = (y - model.predict(X)) ** 2, (y - y.mean()) ** 2
    influence = (squares - (1.0 - found.value) * spread) / spread.mean()
    assert found.high - found.low == pytest.approx(2 * 1.959964 * influence.std() / math.sqrt(3000), rel=0.03)


def test_calibration_is_the_mean_target_of_each_bin_of_the_prediction(model):
    X, y = numbers(4000, 3)
    found = confide.evaluate(model, X, np.clip(y, -1, 1), budget=math.inf, n_bins=8)
    predicted = model.predict(X)
    inside = (predicted >= found.edges[4]) & (predicted < found.edges[5])
    rate, band = found.calibration[4], found.calibration_band[4]
    assert rate.value == pytest.approx(np.clip(y[inside], -1, 1).mean(), abs=1e-4)
    assert band.low < rate.low < rate.value < rate.high < band.high


def test_noise_is_shown_in_intervals_and_hides_what_it_drowns(model):
    X, y = numbers(2000, 4)
    exact = confide.evaluate(model, X, y, budget=math.inf)
    noisy = confide.evaluate(model, X, y, budget=0.5, random_state=1)
    for name in ("R^2", "RMSE", "MAE"):
        assert noisy.rates[name].high - noisy.rates[name].low > exact.rates[name].high - exact.rates[name].low
        assert noisy.rates[name].low < exact.rates[name].value < noisy.rates[name].high
    few = [confide.evaluate(model, X[:100], y[:100], budget=20.0, random_state=seed).r2 for seed in range(20)]
    assert all(rate.value is None or (rate.low < rate.high <= 1.0 and rate.value <= 1.0) for rate in few)
    hidden = confide.evaluate(model, X, y, budget=0.01, allow_hidden=True, random_state=1)
    assert {rate.value for rate in hidden.rates.values()} == {None}
    assert "hidden" in str(hidden)
    assert hidden.to_dict()["rates"]["MAE"]["value"] is None
