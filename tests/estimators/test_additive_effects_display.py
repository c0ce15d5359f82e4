"""The display of effects, by scikit-learn's convention."""

from __future__ import annotations

import pytest

from confide import EffectsDisplay, LogisticRegression, ParameterError
from tests.effects.examples import labels, model, schema, table

pytest.importorskip("matplotlib").use("Agg")


def test_any_linear_model_with_a_schema_can_be_drawn():
    frame = table(500)
    fitted = LogisticRegression(5.0, schema=schema()).fit(frame, labels(frame))
    display = EffectsDisplay.from_estimator(fitted, columns="age")
    assert [ax.get_title() for ax in display.axes_] == ["age"]
    assert display.axes_[0].figure is display.figure_
    assert display.ax_ is display.axes_[0]
    assert display.outcome == 'log-odds of buys = "no"'
    assert display.plot() is display


@pytest.mark.parametrize("columns", [[], ["size"], "size"])
def test_unknown_columns_are_refused(columns):
    with pytest.raises(ParameterError, match='columns must be some of the model\'s columns, which are "age"'):
        EffectsDisplay.from_estimator(model(), columns=columns)


def test_a_class_is_refused_where_there_is_one_score():
    with pytest.raises(ParameterError, match="leave label out"):
        EffectsDisplay.from_estimator(model(), label="no")
