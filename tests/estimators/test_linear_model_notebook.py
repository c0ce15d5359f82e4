"""What a notebook shows of an estimator: its guarantee above scikit-learn's diagram."""

from __future__ import annotations

import re
from html import escape

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.utils import estimator_html_repr

from confide import LinearSVC, LogisticRegression, Ridge, Schema
from tests.estimators.people import SCHEMA


def html_of(model):
    """What a notebook shows, by either of the ways in which it asks."""
    shown = model._repr_mimebundle_()["text/html"]
    identities = re.compile(r"sk-[a-z0-9-]*\d+")  # scikit-learn numbers its diagrams
    assert identities.sub("", model._repr_html_()) == identities.sub("", shown)
    return shown


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, Ridge])
def test_a_notebook_shows_the_guarantee_above_the_diagram(rows, kind):
    """The statement of a fitted model, all of it; before the fit the diagram alone."""
    X, y = rows
    model = kind(1.0, target_bound=1.0) if kind is Ridge else kind(1.0)
    assert html_of(model).startswith("<style>") or "confide-guarantee" not in html_of(model)
    shown = html_of(model.fit(X, y))
    assert shown.index("released under pure differential privacy with epsilon = 1") < shown.index("sk-top-container")
    for sentence in model.guarantee_.assumptions:
        assert f"<li>{escape(sentence)}</li>" in shown
    assert shown.count("<ul>") >= 1
    assert "#b00020" not in shown


def test_a_void_guarantee_says_so_first(rows):
    """Its first line says NOT PRIVATE."""
    shown = html_of(LogisticRegression(1.0, random_state=0).fit(*rows))
    assert shown.index("<div><p>NOT PRIVATE.") < shown.index("<style")


def test_labels_do_not_become_markup(people):
    """A schema's labels and names come from a file."""
    frame, y = people
    labels = np.where(y == 1, "<script>x</script>", "b")
    schema = Schema(SCHEMA.columns, {"column": "<t>", "negative": "b", "positive": "<script>x</script>"})
    model = LogisticRegression(1.0, schema=schema).fit(frame, labels)
    assert "<script>x" not in model.guarantee_.to_html()
    assert model.guarantee_._repr_html_() == model.guarantee_.to_html()


def test_text_is_shown_where_scikit_learn_is_set_to_it(rows):
    """No HTML at all then, in the model or in a pipeline; and its own function draws the diagram."""
    model = LogisticRegression(1.0).fit(*rows)
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert set(model._repr_mimebundle_()) == {"text/plain"}
    assert "LogisticRegression" in estimator_html_repr(make_pipeline(model))
