"""Numbers on axes, and which levels are drawn."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from confide.effects.effects import Effect, Points, Value
from confide.effects.picture import effect_limits, even_ticks, number_text, shown_levels, spaced_ticks, tick_text, ticks_of
from confide.features.codes import encoding_of
from confide.features.columns import CategoryColumn, NumberColumn


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (17, 90, [20, 40, 60, 80]),
        (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-1.3, 2.1, [-1, 0, 1, 2]),
        (1e6, 3e6, [1e6, 1.5e6, 2e6, 2.5e6, 3e6]),
    ],
)
def test_even_ticks_are_round_and_few(low, high, ticks):
    assert even_ticks(low, high, 6) == pytest.approx(ticks)


def test_log_scales_have_powers_of_ten_that_do_not_touch():
    points = Points.of([encoding_of(NumberColumn("gain", 0, 99_999, scale="log", knots=6))])
    assert ticks_of(points) == [0, 10, 100, 1000, 10_000]
    narrow = Points.of([encoding_of(NumberColumn("x", 200, 900, scale="log", knots=2))])
    assert ticks_of(narrow) == [200, 900]
    assert ticks_of(Points.of([encoding_of(CategoryColumn("x", ("a", "b")))])) == []


def test_the_scale_log10_has_round_numbers_from_its_low_on():
    def ticks(low, high):
        return ticks_of(Points.of([encoding_of(NumberColumn("pay", low, high, scale="log10", knots=2))]))

    assert ticks(1000, 10**6) == [1000, 10_000, 100_000, 1_000_000]
    assert ticks(100, 10**4) == [100, 1000, 10_000]
    assert ticks(0.001, 10**4) == [0.001, 0.01, 0.1, 1, 10, 100, 1000, 10_000]
    assert ticks(20_000, 500_000) == [20_000, 50_000, 100_000, 200_000, 500_000]


@pytest.mark.parametrize("limits", [(-11_500, 7_600), (-0.9, 1.3), (-123_456, 99), (0.001, 0.0032)])
@pytest.mark.parametrize("inches", [1.2, 2.4, 5.0])
def test_numbers_of_effects_stand_apart_as_they_are_drawn(limits, inches):
    """By the widths that Matplotlib measures; what would touch is left out, and nothing that has room."""
    figure = Figure(figsize=(inches, 1.0))
    axes = figure.add_axes((0.0, 0.5, 1.0, 0.4))
    ticks = spaced_ticks(*limits, 72.0 * inches)
    axes.set_xlim(*limits)
    axes.set_xticks(list(ticks), list(ticks.values()))
    axes.tick_params(labelsize="small")
    FigureCanvasAgg(figure).draw()
    boxes = [label.get_window_extent() for label in axes.get_xticklabels()]
    assert all(one.x1 + 2.0 < other.x0 for one, other in pairwise(boxes))
    assert len(boxes) >= (3 if inches > 2.0 else 1)


def test_numbers_are_short():
    assert [number_text(x) for x in (0.0, 0.25, 9000.0, 12_500.0, 2e6, 3e9)] == ["0", "0.25", "9000", "12.5k", "2M", "3G"]


def test_a_column_that_reaches_ten_thousand_has_all_its_thousands_in_k():
    """So that 1k stands beside 10k; a column of years is no such column."""

    def texts(low, high, **more):
        points = Points.of([encoding_of(NumberColumn("pay", low, high, **more))])
        return [tick_text(points, tick) for tick in ticks_of(points)]

    assert texts(100, 10**5, scale="log10", knots=2) == ["100", "1k", "10k", "100k"]
    assert texts(0, 10_000) == ["0", "2k", "4k", "6k", "8k", "10k"]
    assert texts(1900, 2100)[:2] == ["1900", "1950"]


@pytest.mark.parametrize(
    ("low", "high", "missing", "texts"),
    [
        ("2010-01-01", "2024-12-31", False, ["2010", "2015", "2020"]),
        ("2021-02-10", "2024-01-20", False, ["2022", "2023", "2024"]),
        ("2024-01-10", "2024-12-21", False, ["2024-05", "2024-09"]),
        ("2024-01-10", "2024-12-21", True, ["2024-01-10", "2024-07", "2024-12-21"]),
        ("2024-01-10", "2024-01-20", False, ["2024-01-10", "2024-01-20"]),
        ("1000-01-01", "9000-12-31", False, ["2000", "4000", "6000", "8000"]),
    ],
)
def test_dates_have_years_or_months_that_do_not_touch(low, high, missing, texts):
    """Where none has room, the ends; missing cells take a part of the axis."""
    points = Points.of([encoding_of(NumberColumn("since", low, high, missing=missing, knots=2))])
    assert [tick_text(points, tick) for tick in ticks_of(points)] == texts


def levels(effects, bands=()):
    points = Points.of([encoding_of(CategoryColumn("x", tuple(f"l{i}" for i in range(len(effects)))))])
    values = [Value(effect, None, None, f"l{i}") for i, effect in enumerate(effects)]
    if bands:
        values = [replace(value, joint_low=-band, joint_high=band) for value, band in zip(values, bands, strict=True)]
    return Effect(("x",), (points,), None, tuple(values))


def test_levels_are_ranked_and_the_middle_is_left_out():
    ranked = shown_levels(levels([0.0, 3.0, -1.0, 2.0, 1.0]), 3)
    assert [value.effect for value in ranked] == [3.0, 2.0, -1.0]
    assert len(shown_levels(levels([1.0, 2.0]), 3)) == 2


def test_a_band_that_is_very_wide_does_not_hide_the_effects():
    """Nor does one that is infinite."""
    low, high = effect_limits([levels([-1.0, 1.0], bands=[100.0, math.inf])])
    assert -2.5 < low < -1.9
    assert 1.9 < high < 2.5
    assert effect_limits([levels([0.0, 0.0])]) == (-0.5, 0.5)
