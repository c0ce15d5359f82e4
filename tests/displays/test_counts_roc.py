"""The picture of the ROC curve from private counts."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from confide import Ledger, LogisticRegression, ParameterError, RocDisplay
from confide.inference.rates import roc_curve
from tests.inference.test_rates import population

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
plt.switch_backend("Agg")


@pytest.fixture(scope="module")
def model():
    """Trained on other rows."""
    return LogisticRegression(float("inf"), classes=[0, 1]).fit(*population(4000, 0))


def test_one_release_is_charged_and_drawn(model):
    """Curve, band and area are those of the counts."""
    ledger = Ledger(limit=2.0)
    display = RocDisplay.from_estimator(model, *population(3000, 1), budget=1.0, ledger=ledger)
    assert ledger.entries()["purpose"].tolist() == ["evaluate"]
    (line,) = [line for line in display.ax_.get_lines() if line.get_label().startswith("this model")]
    curve = roc_curve(display.evaluation)
    np.testing.assert_array_equal(line.get_xdata(), curve.false_positive_rates)
    assert f"area {display.evaluation.auc.value:.3f}" in line.get_label()
    # The band of the whole curve, and the intervals by themselves.
    assert len(display.ax_.collections) == 2
    again = RocDisplay.from_counts(display.evaluation, ax=plt.subplots()[1])
    assert again.figure_ is again.ax_.figure
    assert ledger.remaining().epsilon == 1.0
    plt.close("all")


def test_where_the_noise_hides_a_class_the_picture_says_so(model):
    """What was paid for is not lost in an error."""
    display = RocDisplay.from_estimator(model, *population(100, 2), budget=0.05, allow_hidden=True)
    assert "The noise hides" in display.ax_.texts[0].get_text()
    plt.close("all")


def test_without_axes_or_matplotlib_nothing_is_charged(model, monkeypatch):
    ledger = Ledger(limit=2.0)
    with pytest.raises(ParameterError, match="ax must be Matplotlib axes"):
        RocDisplay.from_estimator(model, *population(100, 2), budget=1.0, ledger=ledger, ax=plt.subplots(1, 2)[1])
    plt.close("all")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match="RocDisplay needs the library matplotlib"):
        RocDisplay.from_estimator(model, *population(100, 2), budget=1.0, ledger=ledger)
    assert len(ledger.entries()) == 0
