"""Effects as SVG."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd

from confide import AdditiveClassifier, Schema
from confide.effects.effects import Effect
from confide.estimators.released import effects_of
from confide.report.findings import effect_drawings
from confide.report.page import report_page
from tests.effects.examples import model


def test_every_column_is_drawn_within_its_frame():
    """Four bands for each curve, two of them of noise; one line; points for levels and missing cells. Nothing leaves it."""
    found = list(effects_of(model(0.4, with_interactions=False)).with_bands())
    page = effect_drawings(found)
    assert page.count("<figure>") == 6
    assert page.count("<polyline") == 3
    assert page.count("<polygon") == 12
    assert page.count("<circle") == 1 + 3 + 2 + 4  # missing income, work, sex, city
    for drawing in page.split("<figure>")[1:]:
        frame = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', drawing)
        width, height = float(frame[1]), float(frame[2])
        paths = " ".join(re.findall(r'points="([^"]+)"', drawing))
        corners = [tuple(map(float, pair.split(","))) for pair in paths.split()]
        assert all(0 <= x <= width and 0 <= y <= height for x, y in corners)


def test_a_rising_curve_rises_on_the_page():
    page = effect_drawings(list(effects_of(model()).with_bands()))
    line = re.search(r'<polyline class="curve" points="([^"]+)"', page)[1]
    heights = [float(pair.split(",")[1]) for pair in line.split()]
    assert (np.diff(heights) < 0).all()  # y grows downwards
    assert page.count("<polygon") == page.count('<polygon class="at-most"') + page.count('<polygon class="if-even"')


def test_names_are_text_and_interactions_are_left_out():
    one = next(effects_of(model()).with_bands())
    assert "<b>" not in effect_drawings([Effect(("<b>",), one.points, "<i>", one.values)])
    assert effect_drawings([Effect(("a", "b"), one.points * 2, None, ())]) == ""
    page = report_page(model(with_interactions=True))
    assert "What pairs of columns add" in page
    assert page.count("<polyline") == 3 + 3  # in the part that is signed, and in the appendix


def test_the_page_follows_the_colours_of_the_screen():
    """No colour of a drawing is fixed, or it would vanish on a dark screen."""
    page = report_page(model(0.4))
    assert "prefers-color-scheme: dark" in page
    assert not re.search(r'(fill|stroke)="#', page)
    assert "outer one for all values of a column together" in page


def test_the_page_says_what_a_point_beside_a_curve_is():
    """Where the schema has atoms, and only there."""
    columns = {"gain": {"low": 0, "high": 100, "atoms": [50]}, "sex": {"categories": ["f", "m"]}}
    rows = pd.DataFrame({"gain": [0.0, 50.0] * 100, "sex": ["f", "m"] * 100})
    words = "A point beside a curve is the effect of exactly this number"
    for atoms in ([50], []):
        schema = Schema(columns | {"gain": columns["gain"] | {"atoms": atoms}})
        fitted = AdditiveClassifier(1.0, schema=schema, knots=3, classes=["n", "p"]).fit(rows, ["n", "p"] * 100)
        assert (words in report_page(fitted)) == bool(atoms)
