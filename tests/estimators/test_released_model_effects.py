"""What the scores of each estimator are called."""

from __future__ import annotations

import pytest

import confide
from confide.estimators.released import effects_of, unit_of_scores
from tests.effects.examples import labels, schema, table


@pytest.mark.parametrize(
    ("made", "unit"),
    [
        (lambda: confide.LogisticRegression(5.0, schema=schema()), "log-odds"),
        (lambda: confide.AdditiveClassifier(5.0, schema=schema()), "score"),
        (lambda: confide.AdditiveClassifier(5.0, schema=schema(), loss="logistic"), "log-odds"),
        (lambda: confide.LinearSVC(5.0, schema=schema()), "score"),
        (lambda: confide.HuberRegressor(5.0, schema=schema(target=None), target_bound=1.0), "prediction"),
        (lambda: confide.PoissonRegressor(5.0, schema=schema(target=None), target_bound=1.0), "logarithm of the mean"),
    ],
)
def test_units_of_scores(made, unit):
    frame = table(500)
    y = labels(frame)
    fitted = made()
    fitted.fit(frame, y if hasattr(fitted, "classes") else (y == "no").astype(float))
    assert unit_of_scores(fitted) == unit
    assert effects_of(fitted).outcome.startswith(unit)
