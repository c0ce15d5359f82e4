"""The table of coefficients: what it says, and that names from files cannot do anything in it."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from confide import LogisticRegression, ParameterError, Schema

NASTY = "a<b>&\\_{$%#~^"
COLUMNS = {NASTY: {"low": 0, "high": 1}, "job": {"categories": ["x", "y_z"]}}


def fitted(positive="yes", budget=3.0, n=4000, **parameters):
    """A model from a schema, with noise from a seed."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({NASTY: rng.uniform(size=n), "job": rng.choice(["x", "y_z"], n)})
    label = np.where(rng.uniform(size=n) < 0.2 + 0.6 * frame[NASTY], "yes", "no")
    target = {"column": "y", "positive": positive, "negative": "no" if positive == "yes" else "yes"}
    schema = Schema(columns=COLUMNS, target=target)
    return LogisticRegression(budget, schema=schema, inference_share=0.3, random_state=1, **parameters).fit(frame, label)


@pytest.fixture(scope="module")
def table():
    return fitted().summary(level=0.9)


def test_the_notes_say_that_the_sampling_error_is_an_estimate(table):
    """Under noise only."""
    note = "The sampling error is itself an estimate under noise."
    assert note in table.notes
    assert note not in fitted(budget=math.inf).summary().notes


def test_the_frame_holds_what_uncertainty_says(table):
    """Estimates, errors, intervals and p-values, the intercept last."""
    model = fitted()
    known, frame = model.uncertainty(), model.summary(level=0.9, units="encoded").to_frame()
    assert frame.index.tolist() == [NASTY, "job=y_z", "(intercept)"]
    np.testing.assert_array_equal(frame["estimate"], np.append(model.coef_[0], model.intercept_))
    np.testing.assert_array_equal(frame["sampling_error"], known.sampling_error)
    np.testing.assert_array_equal(frame["privacy_error"], known.privacy_error)
    np.testing.assert_allclose(frame["total_error"] ** 2, known.sampling_error**2 + known.privacy_error**2)
    np.testing.assert_allclose(frame[["low", "high"]], known.intervals(0.9))
    np.testing.assert_array_equal(frame["p_value"], known.p_values())


def test_it_speaks_of_the_schemas_positive_class():
    """The other class turns signs and ends around, and leaves errors and p-values."""
    one, two = (fitted(positive=label, budget=math.inf).summary() for label in ("yes", "no"))
    assert 'y = "yes"' in str(one)
    assert 'y = "no"' in str(two)
    one, two = one.to_frame(), two.to_frame()
    np.testing.assert_allclose(one["estimate"], -two["estimate"])
    np.testing.assert_allclose(one["low"], -two["high"])
    np.testing.assert_allclose(one["p_value"], two["p_value"])


def test_text_has_columns_and_the_guarantee(table):
    """Two parts with one line a coefficient each; level, target and statement below."""
    lines = str(table).split("\n")
    assert lines[1].split() == ["column", "unit", "coef", "total", "err", "[0.05", "0.95]", "p"]
    assert lines[5].split() == ["column", "unit", "sampling", "err", "privacy", "err", "odds", "ratio", "[0.05", "0.95]"]
    for shown, full in zip(lines[2:5], table.cells, strict=True):
        assert shown.split()[-5:] == [full[place] for place in (2, 5, 6, 7, 8)]
    text = " ".join(lines)
    assert "with probability 0.9 by itself" in text
    assert "NOT PRIVATE" in text  # random_state was set
    assert "without a ridge" in str(fitted().summary(target="unregularised")).replace("\n", " ")


def test_long_names_and_units_are_broken_and_never_cut():
    """No line of a table is longer than 130 characters, and all words and numbers are there, for one class and three."""
    level = "Handlers and cleaners of machines in factories of a town"
    columns = {"occupation of both parents": {"categories": [level, "b", "c"]}, "x" * 70: {"low": 0, "high": 1e-9}}
    frame = pd.DataFrame({"occupation of both parents": ["b", level] * 600, "x" * 70: [0.0, 1e-9] * 600})
    for classes in (["no", "yes"], ["no", "yes", "perhaps"]):
        y = np.resize(classes, 1200)
        model = LogisticRegression(math.inf, schema=Schema(columns=columns), classes=classes, inference_share=0.3)
        text = str(model.fit(frame, y).summary())
        lines = text.split("\nEach interval contains")[0].split("\n")
        assert max(map(len, lines)) <= 130
        table = " ".join(lines)
        for word in (*level.split(), "occupation", "parents:"):
            assert word in table
        assert table.count("x") >= 140


def test_text_and_html_and_latex_escape_names(table):
    """Markup in a column's name stays text."""
    html = table.to_html()
    assert "a&lt;b&gt;&amp;" in html
    assert "<b>" not in html
    assert html.count("<tr>") == 8  # two tables
    assert table._repr_html_() == html
    latex = table.to_latex()
    assert r"{a\textless{}b\textgreater{}\&\textbackslash{}\_\{\$\%\#\textasciitilde{}\textasciicircum{}}" in latex
    assert r"job: y\_z" in latex
    for line in latex.split("\n")[4:7]:
        assert line.count(" & ") == 11
        assert line.endswith(r" \\")
    assert latex.count(r"\begin") == latex.count(r"\end") == 1


def test_a_name_cannot_steer_a_terminal():
    """Letters that do not print are shown as question marks."""
    frame = pd.DataFrame({"a\x1b[31m": np.linspace(0, 1, 4000), "b": np.linspace(1, 0, 4000) ** 2})
    model = LogisticRegression(3.0, inference_share=0.3, classes=[0, 1]).fit(frame, np.arange(4000) % 2)
    assert "\x1b" not in str(model.summary())


def test_a_document_holds_everything(table):
    """For files and machines."""
    document = table.to_dict()
    assert document["level"] == 0.9
    assert document["target"] == "regularised"
    assert [row["name"] for row in document["coefficients"]] == table.to_frame().index.tolist()
    assert set(document["coefficients"][0]) == {
        "name", "unit", "estimate", "sampling_error", "privacy_error", "total_error", "low", "high", "p_value", "span",
        "odds_ratio", "odds_ratio_low", "odds_ratio_high",
    }  # fmt: skip


def test_the_plot_shows_both_parts_of_each_interval(table):
    """Two bars a coefficient: the inner one is what sampling alone would give, the outer one the interval."""
    matplotlib = pytest.importorskip("matplotlib", reason="Matplotlib is not installed")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, ax = plt.subplots()
    assert table.plot(ax) is ax
    both = ax.collections
    assert both[0].get_color().tolist() != both[1].get_color().tolist()
    bars = [[bar[:, 0] for bar in bars.get_segments()] for bars in both]
    for coefficient, outer, inner in zip(table.coefficients[:-1], *bars, strict=True):
        assert outer.tolist() == [coefficient.low, coefficient.high]
        assert coefficient.low <= inner[0] < coefficient.estimate < inner[1] <= coefficient.high
        assert np.diff(inner)[0] == pytest.approx(2 * 1.644854 * coefficient.sampling_error, rel=1e-6)
    figure.canvas.draw()  # a name is no formula
    assert table.coefficients[-1].name == "(intercept)"  # which would hide the others
    assert len(ax.get_yticklabels()) == len(table.coefficients) - 1
    assert ax.get_xlabel().endswith("\nIntercepts are in the table alone.")
    plt.close(figure)


def test_without_matplotlib_a_plot_says_what_to_install(table, monkeypatch):
    """Instead of an ImportError."""
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ParameterError, match=r"run pip install '\.\[plot\]'"):
        table.plot()
