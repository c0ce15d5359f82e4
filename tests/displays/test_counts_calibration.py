"""The picture of calibration from private counts."""

from __future__ import annotations

import math
import sys

import pytest

import confide
from confide import CalibrationDisplay, Ledger, LinearSVC, LogisticRegression, ParameterError
from tests.evaluations.examples import classifier, numbers, regressor, three_classes
from tests.inference.test_rates import population

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
plt.switch_backend("Agg")


@pytest.fixture(scope="module")
def model():
    """Trained on other rows."""
    return LogisticRegression(float("inf"), classes=[0, 1]).fit(*population(4000, 0))


def test_one_release_is_charged_and_drawn(model):
    """Its points are the rates of the evaluation; a second picture of the same counts costs nothing."""
    ledger, rows = Ledger(limit=2.0), population(3000, 1)
    display = CalibrationDisplay.from_estimator(model, *rows, budget=1.0, ledger=ledger, n_bins=8)
    assert ledger.remaining().epsilon == 1.0
    (line,) = [line for line in display.ax_.get_lines() if line.get_label().startswith("this model")]
    rates = display.evaluation.calibration
    known = [(place + 0.5) / 8 for place, rate in enumerate(rates) if rate.value is not None]
    assert line.get_xdata().tolist() == known
    assert line.get_ydata().tolist() == [rate.value for rate in rates if rate.value is not None]
    bars = [line for line in display.ax_.get_lines() if line.get_linewidth() == 5.0]
    assert [tuple(bar.get_ydata()) for bar in bars] == [(rate.low, rate.high) for rate in rates if rate.value is not None]
    assert "epsilon = 1" in display.ax_.get_title(loc="left")
    again = CalibrationDisplay.from_counts(display.evaluation, ax=plt.subplots()[1])
    assert again.figure_ is again.ax_.figure
    assert ledger.remaining().epsilon == 1.0
    plt.close("all")


def test_what_the_noise_hides_is_counted(model):
    """With few rows and a small budget."""
    display = CalibrationDisplay.from_estimator(model, *population(300, 2), budget=0.2, n_bins=20, allow_hidden=True)
    assert "the noise hides" in display.ax_.get_title(loc="left")
    plt.close("all")


def test_what_cannot_be_drawn_is_refused_before_the_charge(model, monkeypatch):
    """A model without probabilities, and a machine without Matplotlib."""
    ledger, rows = Ledger(limit=2.0), population(300, 1)
    machine = LinearSVC(float("inf"), classes=[0, 1]).fit(*rows)
    with pytest.raises(ParameterError, match="gives no probabilities"):
        CalibrationDisplay.from_estimator(machine, *rows, budget=1.0, ledger=ledger)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match="needs the library matplotlib"):
        CalibrationDisplay.from_estimator(model, *rows, budget=1.0, ledger=ledger)
    assert len(ledger.entries()) == 0


def test_counts_without_a_guarantee_say_so(model):
    answer = confide.evaluate(model, *population(300, 1), budget=float("inf"))
    assert "not private" in CalibrationDisplay.from_counts(answer).ax_.get_title(loc="left")
    plt.close("all")


def test_other_models_have_a_calibration_too():
    """The predicted class of several, and the mean of a number; both with a band."""
    for make, rows, across in (
        (classifier, three_classes, "predicted class"),
        (regressor, numbers, "predicted: the target"),
    ):
        found = confide.evaluate(make(), *rows(2000, 1), budget=math.inf)
        display = CalibrationDisplay.from_counts(found)
        assert across in display.ax_.get_xlabel()
        lines = [line for line in display.ax_.get_lines() if line.get_linewidth() == 1.0 and line.get_linestyle() == "-"]
        known = [rate for rate in found.calibration_band if rate.value is not None]
        assert [tuple(line.get_ydata()) for line in lines] == [(rate.low, rate.high) for rate in known]
        assert display.ax_.get_xlim() == (found.edges[0], found.edges[-1])
    ledger = Ledger(limit=1.0)
    with pytest.raises(ParameterError, match="for one model of two classes"):
        CalibrationDisplay.from_estimator(classifier(), *three_classes(100, 1), budget=0.5, ledger=ledger)
    assert len(ledger.entries()) == 0
    plt.close("all")
