"""Effects as attributes and methods of a fitted model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from confide import AdditiveClassifier, EffectsDisplay, ParameterError
from tests.effects.examples import Curves, model, schema


def test_a_fitted_model_has_effects_and_one_that_is_not_fitted_has_none():
    """`hasattr` says so too, as for scikit-learn's own attributes."""
    noise = ["noise_if_even", "noise_at_most"]
    assert model().effects_.columns.tolist() == ["column", "value", "effect", *noise]
    fresh = Curves(1.0, schema=schema())
    with pytest.raises(NotFittedError):
        _ = fresh.effects_
    assert not hasattr(fresh, "effects_")
    with pytest.raises(NotFittedError):
        fresh.contrast("age", 30, 40)


def test_plot_effects_gives_a_display():
    pytest.importorskip("matplotlib").use("Agg")
    display = model(0.4).plot_effects(columns=["age", "sex"], level=0.9)
    assert isinstance(display, EffectsDisplay)
    assert len(display.axes_) == 2
    assert display.level == 0.9


def test_a_wrong_column_of_a_picture_is_named_and_its_knots_are_explained():
    """With the column that was meant; a text is one column."""
    fitted = model(0.4)
    with pytest.raises(ParameterError, match=r'"Age" \(did you mean "age"\?\) is none'):
        fitted.plot_effects(columns="Age")
    with pytest.raises(ParameterError, match="columns must be some of the model's columns"):
        fitted.plot_effects(columns=[])
    display = fitted.plot_effects(columns="age")
    assert len(display.axes_) == 1
    assert "blue ticks: knots" in display.figure_._suptitle.get_text().replace("\n", " ")


def test_bounds_with_a_scale_are_told_of_schemas():
    """An array has pairs of numbers, and a schema everything else."""
    with pytest.raises(ParameterError, match=r"A logarithmic scale.* described in a schema"):
        AdditiveClassifier(1.0, bounds=[(1, 1000, "log")]).fit(np.ones((5, 1)), [0, 1, 0, 1, 0])
