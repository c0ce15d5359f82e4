"""Differences of two models on the same rows: exact without noise, and narrower than two evaluations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import r2_score, recall_score

import confide
from confide.evaluations.class_rates import usual_clip
from tests.evaluations.examples import classifier, numbers, regressor, three_classes


@pytest.fixture(scope="module")
def two():
    return classifier(), classifier(seed=7, n=400, alpha=0.05)


def test_without_noise_differences_are_those_of_the_rows(two):
    X, y = three_classes(3000, 1)
    found = confide.evaluate(two[0], X, y, other=two[1], budget=math.inf)
    accuracies = [model.score(X, y) for model in two]
    recalls = [recall_score(y, model.predict(X), average=None) for model in two]
    losses = [np.minimum(-m.predict_log_proba(X)[np.arange(3000), y], usual_clip(3)).mean() for m in two]
    differences = found.differences
    assert differences["accuracy"].value == pytest.approx(accuracies[0] - accuracies[1], abs=1e-12)
    assert differences["recall of 1"].value == pytest.approx(recalls[0][1] - recalls[1][1], abs=1e-12)
    assert differences["macro recall"].value == pytest.approx((recalls[0] - recalls[1]).mean(), abs=1e-12)
    assert differences["log loss"].value == pytest.approx(losses[0] - losses[1], abs=1e-4)
    assert found.first["accuracy"].value == pytest.approx(accuracies[0])
    assert found.second["macro recall"].value == pytest.approx(recalls[1].mean())
    outcomes = (two[0].predict(X) == y).astype(float) - (two[1].predict(X) == y)
    assert differences["accuracy"].high - differences["accuracy"].low == pytest.approx(
        2 * 1.959964 * outcomes.std() / math.sqrt(3000), rel=0.02
    )


def test_a_difference_is_at_most_seven_tenths_as_wide_as_that_of_two_evaluations(two):
    """At the same budget in all: each of the two evaluations has half of it, and their intervals are independent."""
    X, y = three_classes(4000, 2)
    pair = confide.evaluate(two[0], X, y, other=two[1], budget=1.0, random_state=0)
    alone = [confide.evaluate(model, X, y, budget=0.5, n_bins=0, random_state=0) for model in two]
    for name in ("accuracy", "macro recall", "log loss"):
        widths = [each.rates[name].high - each.rates[name].low for each in alone]
        assert pair.rates[name].high - pair.rates[name].low <= 0.7 * math.hypot(*widths), name


def test_differences_of_regressions_are_those_of_the_rows():
    X, y = numbers(3000, 3)
    y = np.clip(y, -1.0, 1.0)
    two = regressor(), regressor(seed=5, n=100, alpha=0.1)
    found = confide.evaluate(two[0], X, y, other=two[1], budget=math.inf)
    predicted = [model.predict(X) for model in two]
    sizes = [np.abs(y - each) for each in predicted]
    assert found.rates["MAE"].value == pytest.approx((sizes[0] - sizes[1]).mean(), abs=1e-4)
    assert found.rates["mean squared error"].value == pytest.approx((sizes[0] ** 2 - sizes[1] ** 2).mean(), abs=1e-4)
    assert found.rates["R^2"].value == pytest.approx(r2_score(y, predicted[0]) - r2_score(y, predicted[1]), abs=1e-3)
    assert found.to_dict()["target"] == "the target"
    pair = confide.evaluate(two[0], X, y, other=two[1], budget=1.0, random_state=0)
    alone = [confide.evaluate(model, X, y, budget=0.5, n_bins=0, random_state=0) for model in two]
    for name in ("MAE", "R^2"):
        widths = [each.rates[name].high - each.rates[name].low for each in alone]
        assert pair.rates[name].high - pair.rates[name].low <= 0.7 * math.hypot(*widths), name
