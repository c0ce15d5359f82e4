"""Groups of an evaluation: their rates, their differences, and what is shown of them."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import confide
from confide import ParameterError, Schema
from confide.evaluations.result import digits_of
from confide.inference.rates import Rate
from tests.inference.test_rates import population


@pytest.fixture(scope="module")
def found():
    """A model that is right more often in one of two groups, without noise."""
    X, y = population(6000, 1)
    groups = np.where(np.arange(6000) % 3 == 0, "a", "b")
    y = np.where((groups == "a") & (np.random.default_rng(0).uniform(size=6000) < 0.2), 1 - y, y)
    frame = pd.DataFrame(X, columns=["u", "v", "w"]).assign(part=groups)
    columns = {name: {"low": -1.0, "high": 1.0} for name in "uvw"} | {"part": {"categories": ["a", "b"]}}
    schema = Schema(columns=columns, target={"column": "y", "negative": 0, "positive": 1})
    model = confide.LogisticRegression(math.inf, schema=schema).fit(frame, y)
    return model, frame, y, groups


def test_rates_of_groups_are_those_of_their_rows(found):
    model, frame, y, groups = found
    answer = confide.evaluate(model, frame, y, budget=math.inf, groups="part")
    for name in ("a", "b"):
        of = groups == name
        assert answer.by_group[name]["accuracy"].value == pytest.approx(model.score(frame[of], y[of]))
        predicted = (model.predict(frame[of]) == 1).mean()
        assert answer.by_group[name]["predicted 1"].value == pytest.approx(predicted)
    assert answer.accuracy.value == pytest.approx(model.score(frame, y))
    assert answer.by_group["(not listed)"]["accuracy"].value is None
    gap = answer.difference("accuracy", "b", "a")
    assert (
        gap.low < gap.value == pytest.approx(answer.by_group["b"]["accuracy"].value - answer.by_group["a"]["accuracy"].value)
    )
    assert gap.low > 0.0
    assert "Rows with part = a" in str(answer)
    assert "Differences: part = b less a" in str(answer)
    assert "Rows with part = (not listed)" not in str(answer)
    assert answer.to_frame().loc[("b", "accuracy"), "value"] == answer.by_group["b"]["accuracy"].value


def test_groups_cost_no_more_noise(found):
    """Each row lies in one group."""
    model, frame, y, _ = found
    plans = [confide.evaluate(model, frame, y, budget=1.0, n_bins=0, clip=1.0, groups=each).plan for each in (None, "part")]
    assert plans[0].deviation == pytest.approx(plans[1].deviation, rel=1e-3)
    assert plans[0].event == plans[1].event


def test_wrong_names_are_refused_with_the_right_ones(found):
    model, frame, y, _ = found
    answer = confide.evaluate(model, frame, y, budget=math.inf, groups="part")
    for wrong in (("accuracy", "a", "c"), ("accuracy", "a", "a")):
        with pytest.raises(ParameterError, match=r"two different groups out of a, b, \(not listed\)"):
            answer.difference(*wrong)
    with pytest.raises(ParameterError, match="rate must be one of accuracy"):
        answer.difference("auc", "a", "b")


@pytest.mark.parametrize(
    ("rate", "text"),
    [(Rate(0.5, 0.25, 0.75), "0.5000"), (Rate(12_345.6, 12_000.0, 13_000.0), "12,346"), (Rate(None, None, None), "hidden")],
)
def test_numbers_are_shown_with_digits_that_matter(rate, text):
    assert digits_of(rate)[0] == text


def test_no_level_looks_like_another_line():
    """In an evaluation and in a description as text."""
    evil = "x\nsensitivity  0.99  0.98  1.00\x1b[31m"
    schema = confide.Schema({"w": {"categories": [evil, "b"]}}, target={"column": "t", "positive": "p", "negative": "n"})
    frame = pd.DataFrame({"w": np.where(np.arange(600) % 2, evil, "b")})
    labels = np.where(np.arange(600) % 3, "p", "n")
    model = confide.LogisticRegression(math.inf, schema=schema).fit(frame, labels)
    rates = confide.evaluate(model, frame, labels, budget=math.inf, groups="w")
    described = confide.describe(frame.assign(t=labels), schema, budget=math.inf)
    for text in (str(rates), str(described)):
        assert "sensitivity  0.99" in text
        assert not any(line.startswith("sensitivity  0.99") for line in text.split("\n"))
        assert "\x1b" not in text
