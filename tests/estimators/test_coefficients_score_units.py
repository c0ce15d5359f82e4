"""What scores and their exponentials are called."""

from __future__ import annotations

import numpy as np
import pytest

import confide
from confide.estimators.coefficients import depends_on_differences, ratio_of_scores, unit_of_scores


@pytest.mark.parametrize(
    ("made", "labels", "unit", "ratio"),
    [
        (confide.LogisticRegression(9.0), 2, "log-odds", "odds ratio"),
        (confide.LogisticRegression(9.0), 3, "log-odds", ""),
        (confide.LogisticRegression(9.0, multiclass="one-vs-rest"), 3, "log-odds", "odds ratio"),
        (confide.LinearSVC(9.0), 2, "score", ""),
        (confide.HuberRegressor(9.0, target_bound=1.0), 2, "prediction", ""),
        (confide.PoissonRegressor(9.0, target_bound=1.0), 2, "logarithm of the mean", "rate ratio"),
    ],
)
def test_units_and_ratios(made, labels, unit, ratio):
    """With softmax a coefficient is relative to all classes, so its exponential is no odds ratio."""
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (600, 2))
    model = made.fit(X, np.arange(600) % labels)
    assert (unit_of_scores(model), ratio_of_scores(model)) == (unit, ratio)
    assert depends_on_differences(model) == (labels == 3 and ratio == "")
