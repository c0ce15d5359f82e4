"""Rates of several classes: scikit-learn's without noise, hidden by noise, and as text, JSON and frame."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score

import confide
from confide import LinearSVC, ParameterError
from confide.evaluations.class_rates import usual_clip
from tests.evaluations.examples import classifier, three_classes


@pytest.fixture(scope="module")
def model():
    return classifier()


@pytest.fixture(scope="module")
def exact(model):
    return confide.evaluate(model, *three_classes(3000, 1), budget=math.inf)


def test_without_noise_rates_are_scikit_learns(model, exact):
    X, y = three_classes(3000, 1)
    predicted = model.predict(X)
    assert exact.accuracy.value == pytest.approx(model.score(X, y))
    np.testing.assert_allclose(
        [[rate.value for rate in row] for row in exact.confusion],
        confusion_matrix(y, predicted, normalize="all"),
        atol=1e-12,
    )
    for of_classes, macro, score in (
        (exact.recall, exact.rates["macro recall"], recall_score),
        (exact.precision, exact.rates["macro precision"], precision_score),
        (exact.f1, exact.rates["macro F1"], f1_score),
    ):
        expected = score(y, predicted, average=None)
        assert [rate.value for rate in of_classes.values()] == pytest.approx(expected.tolist())
        assert macro.value == pytest.approx(expected.mean())
    losses = np.minimum(-model.predict_log_proba(X)[np.arange(3000), y], usual_clip(3))
    assert exact.log_loss.value == pytest.approx(losses.mean(), abs=1e-5)
    half = 1.959964 * losses.std() / math.sqrt(3000)
    assert exact.log_loss.high - exact.log_loss.low == pytest.approx(2.0 * half, rel=0.01)


def test_calibration_is_that_of_the_predicted_class(model, exact):
    """Of rows whose predicted class has a probability in the bin, the share that is right; the band is wider."""
    X, y = three_classes(3000, 1)
    chances, right = model.predict_proba(X).max(axis=1), model.predict(X) == y
    inside = (chances >= exact.edges[4]) & (chances < exact.edges[5])
    assert exact.calibration[4].value == pytest.approx(right[inside].mean())
    assert exact.calibration_band[4].low < exact.calibration[4].low < right[inside].mean() < exact.calibration_band[4].high
    assert (exact.edges[0], exact.edges[-1]) == pytest.approx((1.0 / 3.0, 1.0))


def test_a_smaller_clip_has_less_noise_and_tables_can_be_left_out(model):
    rows = three_classes(2000, 2)
    widths = {}
    for clip in (0.5, 4.0):
        found = confide.evaluate(model, *rows, budget=0.5, clip=clip, random_state=0)
        widths[clip] = found.log_loss.high - found.log_loss.low
    assert widths[0.5] < 0.5 * widths[4.0]
    fewer = confide.evaluate(model, *rows, budget=0.5, n_bins=0, random_state=0)
    assert fewer.plan.deviation < 0.7 * found.plan.deviation
    with pytest.raises(ParameterError, match="n_bins is 0"):
        _ = fewer.calibration
    machine = LinearSVC(math.inf, classes=[0, 1, 2]).fit(*rows)
    of_machine = confide.evaluate(machine, *rows, budget=math.inf)
    assert of_machine.accuracy.value == pytest.approx(machine.score(*rows))
    with pytest.raises(ParameterError, match="no probabilities"):
        _ = of_machine.log_loss
    assert "log loss" not in of_machine.rates


def test_text_json_and_frame_say_the_same(exact):
    document = json.loads(json.dumps(exact.to_dict(), allow_nan=False))
    assert document["rates"]["accuracy"]["value"] == exact.accuracy.value
    assert document["kind"] == "rates of classes"
    assert exact.to_frame().loc[("all rows", "macro F1"), "value"] == exact.rates["macro F1"].value
    text = str(exact)
    assert f"{exact.accuracy.value:.4f}" in text
    assert "recall of 2" in text
    assert "0, predicted 1" in text
    assert "NOT PRIVATE" in text
