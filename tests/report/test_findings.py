"""What the model says: the largest effects first, everything in the appendix, and nothing for kernels."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
import pandas as pd

from confide import AdditiveClassifier, KernelSVC, Schema
from confide.blocks import html_of
from confide.effects.effects import Value
from confide.estimators.released import effects_of
from confide.report.findings import all_findings, has_curves, has_intervals, main_findings
from tests.report.released import additive, logistic, people, schema, with_intervals


def test_effects_of_curves_come_largest_first():
    found = [effect for effect in effects_of(additive()).with_bands() if len(effect.columns) == 1]
    sizes = {effect.name: max(v.effect for v in effect.values) - min(v.effect for v in effect.values) for effect in found}
    captions = re.findall(r"<figcaption>(\w+)", html_of(*main_findings(additive(), 0.95)).partition("What pairs")[0])
    assert captions == sorted(sizes, key=lambda name: -sizes[name])
    assert "What pairs of columns add" in html_of(*main_findings(additive(), 0.95))


def test_captions_of_long_names_break_after_underscores():
    """Of curves and of pairs; the names that follow are as they are."""
    rows = {"distance_to_roads": {"low": 0, "high": 1, "knots": 2}, "height_of_place": {"low": 0, "high": 1, "knots": 2}}
    numbers = pd.DataFrame(np.random.default_rng(0).uniform(size=(200, 2)), columns=list(rows))
    model = AdditiveClassifier(1.0, schema=Schema(rows), interactions=[list(rows)])
    page = html_of(*main_findings(model.fit(numbers, [0, 1] * 100), 0.95))
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert sorted(captions)[:2] == [
        "distance_<wbr>to_<wbr>roads",
        "distance_<wbr>to_<wbr>roads and height_<wbr>of_<wbr>place",
    ]


def test_an_effect_that_noise_may_have_made_comes_after_a_smaller_one_that_is_sure():
    """By intervals where they were bought, and otherwise by what noise alone makes."""
    effect = next(effects_of(additive()).with_bands())

    def size_of(*values):
        return replace(effect, values=values).size

    n = len(effect.values)
    unsure = size_of(*[Value(3.0, -5.0, 11.0, 0, ())] * n)
    sure = size_of(*[Value(1.0, 0.9, 1.1, 0, ())] * n)
    assert sure > unsure
    assert size_of(*[Value(1.0, None, None, 0, (0.5, 2.0))] * n) > size_of(*[Value(3.0, None, None, 0, (4.0, 5.0))] * n)
    assert "those that stand out come first" in html_of(*main_findings(additive(), 0.95))


def test_straight_lines_are_shown_as_coefficients_with_units():
    assert has_curves(additive())
    assert not has_curves(logistic()[0])
    text = unescape(html_of(*main_findings(logistic()[0], 0.95)))
    assert "against private" in text
    assert "Odds ratio" in text
    assert "log-odds of income" in text
    assert not has_intervals(logistic()[0])
    with_ends = unescape(html_of(*main_findings(with_intervals(), 0.9)))
    assert "[0.05" in with_ends
    assert "<0.001" in with_ends
    assert "Encoded coefficients" in html_of(*all_findings(with_intervals(), 0.9))


def test_features_of_kernels_are_not_shown_one_by_one():
    model = KernelSVC(1.0, schema=schema(), n_features=10).fit(*people())
    text = html_of(*main_findings(model, 0.95, whole=True))
    assert "mean nothing by themselves" in text
    # Their effects together are drawn by column.
    drawn = html_of(*main_findings(model, 0.95))
    assert "compared with the mean of the curve" in drawn
    assert "cos0" not in text + drawn
    assert "<svg" not in text
