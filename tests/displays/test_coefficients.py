"""The picture of coefficients."""

from __future__ import annotations

import numpy as np
import pytest

import confide
from confide import CoefficientsDisplay, ParameterError
from confide.displays.coefficients import coefficients_to_draw
from tests.effects.examples import labels, model, table
from tests.exports.models import example

plt = pytest.importorskip("matplotlib.pyplot", reason="Matplotlib is not installed")
plt.switch_backend("Agg")


def test_numbers_are_drawn_over_their_bounds_and_levels_against_a_reference():
    """The step of a straight number is its coefficient per unit times the width of its bounds, and so are its ends."""
    fitted = model(0.3)
    over = {each.name: each for each in coefficients_to_draw(fitted, None, 0.9, None)[0]}
    single = {each.name: each for each in coefficients_to_draw(fitted, "original", 0.9, None)[0]}
    assert over["rank"].title == "rank, from 0 to 1"
    in_table = {each.name: each for each in fitted.summary(level=0.9).coefficients}
    name = "sex: m"
    assert (single[name].low, single[name].high) == (in_table[name].low, in_table[name].high)
    assert over[name] == single[name]
    assert over[name].title == "sex: m, against f"
    plain = confide.LogisticRegression(
        confide.ApproxDP(50.0, 1e-6), schema=confide.Schema({"age": {"low": 20, "high": 80}}), inference_share=0.3
    )
    frame = table()
    plain.fit(frame, labels(frame) == "no")
    (of_bounds,), (of_unit,) = (coefficients_to_draw(plain, units, 0.95, None)[0] for units in ("bounds", "original"))
    factor = of_bounds.estimate / of_unit.estimate
    assert factor == pytest.approx(60.0 if of_unit.unit == "per 1" else 6.0)
    np.testing.assert_allclose([of_bounds.low, of_bounds.high], [factor * of_unit.low, factor * of_unit.high])
    assert of_bounds.estimate == pytest.approx(2.0 * plain.coef_[0, 0])


def test_the_picture_shows_the_largest_and_says_how_many_there_are():
    display = CoefficientsDisplay.from_estimator(model(0.3), most=4)
    assert "(4 of" in display.ax_.get_title(loc="left")
    assert "intervals at 0.95" in display.ax_.get_title(loc="left")
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == [each.title for each in display.coefficients]
    sizes = [abs(each.estimate) for each in display.coefficients]
    assert sizes == sorted(sizes, reverse=True)
    assert "buys" in display.ax_.get_xlabel()
    assert display.ratio == "odds ratio"
    assert display.figure_ is display.ax_.figure
    _, ax = plt.subplots()
    assert display.plot(ax=ax).ax_ is ax
    plt.close("all")


def test_models_without_intervals_or_without_a_schema():
    """No bars; encoded units."""
    display = CoefficientsDisplay.from_estimator(example("logistic")[0])
    assert all(each.low is None for each in display.coefficients)
    assert display.ax_.get_title(loc="left") == "Coefficients"
    assert {each.unit for each in display.coefficients} == {"per 1, as given"}
    assert CoefficientsDisplay.from_estimator(example("ridge")[0]).ratio == ""
    plt.close("all")


def test_each_of_several_classes_has_a_picture():
    fitted = example("one against rest")[0]
    with pytest.raises(ParameterError, match="give label=, one of the classes: 3, 5, 9"):
        CoefficientsDisplay.from_estimator(fitted)
    found = CoefficientsDisplay.from_estimator(fitted, label=5).coefficients
    expected = dict(zip(fitted.coefficient_names_, fitted.coef_[1], strict=True))
    assert {each.name: each.estimate for each in found} == pytest.approx(expected)
    with pytest.raises(ParameterError, match="leave label out"):
        CoefficientsDisplay.from_estimator(example("logistic")[0], label=1)
    plt.close("all")


def test_random_features_and_impossible_parameters_are_refused():
    """No bars of cos0."""
    with pytest.raises(ParameterError, match="single weights of random features mean nothing"):
        CoefficientsDisplay.from_estimator(example("kernel")[0])
    with pytest.raises(ParameterError, match="units must be"):
        CoefficientsDisplay.from_estimator(example("logistic")[0], units="metres")
    with pytest.raises(ParameterError, match="most must be"):
        CoefficientsDisplay.from_estimator(example("logistic")[0], most=0)


@pytest.mark.parametrize("has_intercept", [True, False])
def test_each_class_has_its_own_intervals(has_intercept):
    """Whether or not there are intercepts among the coefficients."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, size=(4000, 2))
    fitted = confide.LogisticRegression(
        confide.ApproxDP(50.0, 1e-6), classes=[0, 1, 2], inference_share=0.3, fit_intercept=has_intercept, centre=False
    ).fit(X, np.digitize(X[:, 0] + 0.1 * rng.normal(size=4000), [-0.2, 0.2]))
    ends = fitted.conf_int()
    for place in range(3):
        found = coefficients_to_draw(fitted, None, 0.95, place)[0]
        drawn = {each.name: (each.low, each.high) for each in found}
        assert all(each.low < each.estimate < each.high for each in found)
        assert drawn == {str(name): tuple(ends[place, column]) for column, name in enumerate(fitted.coefficient_names_)}
