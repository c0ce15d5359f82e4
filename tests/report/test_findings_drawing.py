"""Drawings of the page: bars where the numbers say, labels that are text, and nothing that a reader must fetch."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pytest
from scipy.special import ndtri

from confide.estimators.released import ReleasedCoefficient
from confide.inference.table import Coefficient
from confide.report.findings import interval_plot, weight_plot

LIGHT, DARK = "var(--light)", "var(--dark)"
ONE = Coefficient(1.0, 0.0, 2.0, 0.25, 0.5, 0.56, 0.05, "age")


def table(*coefficients, level=0.95):
    """What a drawing asks of a table."""
    return SimpleNamespace(coefficients=coefficients, level=level)


def elements(drawing, tag):
    """All elements of a kind; reading fails unless the drawing is well-formed."""
    return list(ET.fromstring(f"<all>{drawing}</all>").iter(tag))  # noqa: S314 - the library's own drawing


def bars(drawing, colour):
    """(left, right) of each bar of a colour."""
    return [
        (float(bar.get("x")), float(bar.get("x")) + float(bar.get("width")))
        for bar in elements(drawing, "rect")
        if bar.get("style") == f"fill: {colour}"
    ]


def drawn(weights, **words):
    """The drawing of coefficients with these names and sizes."""
    return weight_plot([ReleasedCoefficient(size, None, None, name, "per 1") for name, size in weights], **words)


def zero_of(drawing):
    """The x of the line at 0."""
    return float(elements(drawing, "line")[0].get("x1"))


def test_bars_of_weights_begin_at_zero_and_are_as_long_as_the_weights():
    """To the right where positive, to the left where negative; the longest first."""
    drawing = drawn([("a", 1.0), ("b", -2.0), ("c", 0.5)])
    zero = zero_of(drawing)
    (b_left, b_right), (a_left, a_right), (c_left, c_right) = bars(drawing, DARK)
    assert b_right == pytest.approx(zero, abs=0.2)
    assert a_left == pytest.approx(zero, abs=0.2)
    assert c_left == pytest.approx(zero, abs=0.2)
    assert zero - b_left == pytest.approx(2.0 * (a_right - zero), abs=0.4)
    assert c_right - zero == pytest.approx(0.5 * (a_right - zero), abs=0.4)
    assert [text.text for text in elements(drawing, "text") if text.get("text-anchor") == "end"] == ["b", "a", "c"]


def test_forty_weights_are_drawn_and_the_caption_says_of_how_many():
    """The longest, whatever their sign; of forty all, without a word."""
    weights = [(f"w{i}", (-1.0) ** i * i) for i in range(1, 42)]
    drawing = drawn(weights)
    assert len(bars(drawing, DARK)) == 40
    assert "The 40 largest of 41 are drawn." in drawing
    assert ">w1<" not in drawing
    assert "largest" not in drawn(weights[:40])


def test_weights_that_are_all_zero_are_drawn():
    """A bar is one pixel wide at least, and nothing is divided by zero."""
    drawing = drawn([("a", 0.0)])
    ((left, right),) = bars(drawing, DARK)
    assert right - left == pytest.approx(1.0)
    assert "nan" not in drawing


def test_the_light_bar_is_the_interval_and_the_dark_one_what_sampling_alone_gives():
    """Both around the estimate, which has a tick; in one unit."""
    drawing = interval_plot(table(ONE))
    ((left, right),), ((inner_left, inner_right),) = bars(drawing, LIGHT), bars(drawing, DARK)
    unit = (right - left) / 2.0
    assert inner_right - inner_left == pytest.approx(2.0 * ndtri(0.975) * 0.25 * unit, abs=0.3)
    tick = float(elements(drawing, "line")[-1].get("x1"))
    assert tick == pytest.approx((left + right) / 2.0, abs=0.2)
    assert tick == pytest.approx((inner_left + inner_right) / 2.0, abs=0.2)
    assert zero_of(drawing) == pytest.approx(left, abs=0.2)


def test_the_dark_bar_never_leaves_the_light_one():
    """The quantile of sampling alone may pass that of the whole by rounding, and then the interval is shown."""
    drawing = interval_plot(table(replace(ONE, sampling_error=9.0)))
    assert bars(drawing, DARK) == bars(drawing, LIGHT)


def test_the_level_is_in_the_caption_and_in_the_bars():
    """A lower level has a shorter dark bar."""
    low, high = (interval_plot(table(ONE, level=level)) for level in (0.5, 0.95))
    assert "Intervals at level 0.5." in low
    ((a, b),), ((c, d),) = bars(low, DARK), bars(high, DARK)
    assert b - a < 0.5 * (d - c)


def test_coefficients_that_the_noise_hides_are_left_out():
    """And where it hides all of them there is no drawing."""
    hidden = replace(ONE, name="hidden", low=-math.inf, high=math.inf)
    drawing = interval_plot(table(ONE, hidden))
    assert len(bars(drawing, LIGHT)) == 1
    assert "hidden" not in drawing
    assert interval_plot(table(hidden)) == interval_plot(table()) == ""


def test_names_are_text_and_long_ones_are_shortened_in_the_middle():
    """35 letters are shown, and of more the first and the last 17; markup stays text."""
    long = "a" * 30 + "b" * 30
    drawing = drawn([("<b>&", 1.0), ("x" * 35, 1.0), (long, 1.0)])
    names = [text.text for text in elements(drawing, "text") if text.get("text-anchor") == "end"]
    assert names == ["<b>&", "x" * 35, "a" * 17 + "…" + "b" * 17]
    assert "<b>" not in drawing


def test_a_drawing_has_a_line_for_each_weight_and_even_numbers_below():
    """Height grows by line; 0 is written below its line, and the outcome below the numbers."""
    heights = [int(elements(drawn([("a", 1.0)] * n), "svg")[0].get("height")) for n in (1, 2, 5)]
    assert heights[2] - heights[1] == 3 * (heights[1] - heights[0]) > 0
    numbers = re.findall(r'text-anchor="middle">([^<]+)<', drawn([("a", 1.0), ("b", -1.0)]))
    assert numbers == ["-1", "-0.5", "0", "0.5", "1"]
    drawing = drawn([("a", 1.0), ("b", -1.0)], outcome="log-odds <")
    places = {text.text: float(text.get("x")) for text in elements(drawing, "text")}
    assert places["0.5"] - places["0"] == pytest.approx(places["1"] - places["0.5"], abs=0.2)
    assert places["0"] == pytest.approx(zero_of(drawing), abs=0.1)
    assert "log-odds <" in places


def test_screen_readers_are_told_what_is_drawn():
    """The caption is the title of the drawing and stands below it."""
    drawing = drawn([("a", 1.0)])
    (svg,) = elements(drawing, "svg")
    assert svg.get("role") == "img"
    assert svg.find("title").text == elements(drawing, "p")[0].text == "Released weights."
    assert "http" not in drawing
