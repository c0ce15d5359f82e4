"""Effects as attributes and methods of a fitted model."""

from __future__ import annotations

import pytest
from sklearn.exceptions import NotFittedError

from confide import EffectsDisplay
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
