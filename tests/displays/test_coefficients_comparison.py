"""Released models side by side."""

from __future__ import annotations

from functools import cache

import pytest

import confide
from confide import ComparisonDisplay, ParameterError
from tests.effects.examples import labels, model, schema, table
from tests.exports.models import example

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
plt.switch_backend("Agg")


@cache
def additive():
    """The same columns, with other knots."""
    frame = table()
    described = confide.Schema(
        {"age": {"low": 20, "high": 80, "knots": 4}, "sex": {"categories": ["f", "m"]}}, schema().target
    )
    return confide.LogisticRegression(5.0, schema=described).fit(frame, labels(frame))


def test_effects_of_common_columns_are_drawn_over_each_other():
    """Each with its own knots, and a legend."""
    display = ComparisonDisplay.from_estimators({"first": model(0.3), "second": additive()})
    assert display.kind == "effects"
    assert [ax.get_title() for ax in display.axes_] == ["age", "sex"]
    assert [text.get_text() for text in display.axes_[0].get_legend().get_texts()] == ["first", "second"]
    curves = [line for line in display.axes_[0].get_lines() if line.get_label() in ("first", "second")]
    assert [len(line.get_xdata()) for line in curves] == [4, 6]
    assert display.ax_ is display.axes_[0]
    plt.close("all")


def test_coefficients_of_the_same_name_and_unit_are_drawn():
    """In the order of the first model, on axes that were given."""
    models = {"low": example("logistic")[0], "high": example("logistic in a box")[0]}
    _, ax = plt.subplots()
    display = ComparisonDisplay.from_estimators(models, ax=ax)
    assert display.kind == "coefficients"
    assert (display.ax_, display.axes_, display.figure_) == (ax, [ax], ax.figure)
    drawn = {name: {each.name: each.estimate for each in found} for name, found in display.drawn.items()}
    for name, fitted in models.items():
        assert drawn[name] == dict(zip(fitted.coefficient_names_, fitted.coef_[0], strict=True))
    plt.close("all")


def test_what_cannot_be_compared_is_refused():
    one = model(0.3)
    with pytest.raises(ParameterError, match="two to four models"):
        ComparisonDisplay.from_estimators({"one": one})
    with pytest.raises(ParameterError, match="kind must be"):
        ComparisonDisplay.from_estimators({"one": one, "two": one}, kind="bars")
    with pytest.raises(ParameterError, match=r'These are "age" and "sex"|These are "age", "sex"'):
        ComparisonDisplay.from_estimators({"one": one, "two": additive()}, columns=["city"])
    with pytest.raises(ParameterError, match="no coefficient of the same name"):
        ComparisonDisplay.from_estimators({"one": one, "two": example("logistic")[0]})
    other = example("table")[0]
    turned = confide.Schema(other.schema.columns, {"column": "buys", "negative": "no", "positive": "yes"})
    frame = table(500)
    against = confide.LogisticRegression(50.0, schema=turned).fit(frame, labels(frame))
    with pytest.raises(ParameterError, match="different outcomes"):
        ComparisonDisplay.from_estimators({"one": other, "two": against})
