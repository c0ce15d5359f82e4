"""Axes to draw on."""

from __future__ import annotations

import sys

import pytest

import confide
from confide import ParameterError
from confide.effects.picture import Display, axes_for, plain, pyplot_for, shortened

pytest.importorskip("matplotlib", reason="Matplotlib is not installed").use("Agg")


def test_axes_that_were_given_are_used_and_otherwise_a_new_figure_is_made():
    plt = pyplot_for("a test")
    _, ax = plt.subplots()
    assert axes_for("a test", ax, (1.0, 1.0)) is ax
    made = axes_for("a test", None, (3.0, 2.0))
    assert made is not ax
    assert made.figure.get_size_inches().tolist() == [3.0, 2.0]
    assert not made.spines["top"].get_visible()
    plt.close("all")


def test_without_matplotlib_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match=r"RocDisplay needs the library matplotlib, .* pip install '\.\[plot\]'"):
        pyplot_for("RocDisplay")


def test_texts_hold_no_formula_and_are_cut_with_a_mark():
    assert plain("a $ b") == r"a \$ b"
    assert shortened("abcdef", 6) == "abcdef"
    assert shortened("abcdefg", 6) == "abcde…"


def test_all_pictures_are_drawn_and_explained_by_one_method():
    """A display says what it shows; how it is drawn again stands once, for all of them."""
    displays = [getattr(confide, name) for name in confide.__all__ if name.endswith("Display")]
    assert len(displays) >= 6
    assert {display.plot for display in displays} == {Display.plot}
