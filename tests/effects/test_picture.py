"""What is on a picture of effects."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from confide import ParameterError
from confide.effects.picture import draw_effects
from confide.estimators.released import effects_of
from tests.effects.examples import model

pytest.importorskip("matplotlib").use("Agg")


def drawn(share=0.0, names=None, ax=None):
    effects = [each for each in effects_of(model(share)).with_bands() if names is None or each.name in names]
    return effects, *draw_effects(effects, 'log-odds of "no" for $5', 0.95, ax)


def test_curves_stand_on_their_own_scale_with_their_knots_and_share_one_scale_of_effects():
    effects, figure, axes = drawn(0.4)
    figure.canvas.draw()  # fails where a text or a scale cannot be drawn
    assert [ax.get_title() for ax in axes] == ["age", "income", "rank", "work", "sex", "city"]
    age, income, rank, work = axes[:4]
    assert age.get_ylim() == income.get_ylim() == rank.get_ylim() == work.get_xlim()
    assert age.xaxis.get_minorticklocs().tolist() == [30, 50]
    line = next(line for line in age.lines if len(line.get_xdata()) == 4)
    np.testing.assert_allclose(line.get_xydata(), [(v.value, v.effect) for v in effects[0].curve])
    assert len(age.collections) == 4  # two bands of noise, and two for sampling and noise
    # On the log scale the knots are evenly spaced.
    at = income.transData.transform([(v.value, 0.0) for v in effects[1].curve])[:, 0]
    np.testing.assert_allclose(np.diff(at), np.diff(at)[0], rtol=1e-6)
    assert "missing" in [text.get_text() for text in income.get_xticklabels()]
    assert sorted(text.get_text() for text in work.get_yticklabels()) == ["a", "b", "c"]


def test_without_intervals_there_are_no_bands():
    _, figure, axes = drawn()
    assert [len(ax.collections) for ax in axes[:3]] == [2, 2, 2]  # those of noise alone
    assert "bands" not in figure.get_suptitle()


def test_axes_of_the_caller_are_used():
    from matplotlib import pyplot as plt

    fig, (left, right) = plt.subplots(1, 2)
    _, figure, axes = drawn(names=["age"], ax=left)
    assert axes == [left]
    assert figure is fig
    _, figure, axes = drawn(names=["age", "work"], ax=right)
    assert len(axes) == 2
    assert figure is fig
    alone = plt.figure().add_axes((0, 0, 1, 1))
    with pytest.raises(ParameterError, match=r"axes from plt\.subplots"):
        drawn(ax=alone)
    plt.close("all")


def test_a_missing_matplotlib_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match=r"pip install '\.\[plot\]'"):
        drawn()
