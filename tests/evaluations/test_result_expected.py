"""What is said of the noise before an evaluation: compared with evaluations that were made."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide.estimators.evaluation import planned_evaluation
from confide.evaluations.result import Groups, expected_of_tables, noise_of_main_rate
from confide.privacy.budgets import PureDP
from tests.evaluations.examples import classifier, numbers, regressor, three_classes


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_noise_of_the_main_rate_is_that_of_releases(kind):
    """The scatter of 60 releases of the same rows."""
    model, rows = (classifier(), three_classes(1500, 1)) if kind == "classes" else (regressor(), numbers(1500, 1))
    planned = planned_evaluation(model, PureDP(0.5))
    name, margin = noise_of_main_rate(planned.plan, planned.layout, 1500, 0.95)
    rate = {"the accuracy": "accuracy", "the mean absolute error": "MAE"}[name]
    found = [confide.evaluate(model, *rows, budget=0.5, random_state=seed).rates[rate].value for seed in range(60)]
    assert np.std(found) == pytest.approx(margin / 1.959964, rel=0.3)


def test_what_is_hidden_is_said():
    planned = planned_evaluation(classifier(), PureDP(0.5))
    facts = (planned.plan, planned.layout, planned.groups)
    assert "moves the accuracy by about" in expected_of_tables(*facts, 2000, 0.95)
    assert "All rates will be hidden" in expected_of_tables(*facts, 100, 0.95)
    assert "All rates are hidden below about" in expected_of_tables(*facts, None, 0.95)
    named = expected_of_tables(planned.plan, planned.layout, Groups("sex", ("f", "m")), 2000, 0.95)
    assert "The rates of a group are hidden below about" in named
    without = planned_evaluation(classifier(), PureDP(math.inf))
    assert expected_of_tables(without.plan, without.layout, without.groups, 10, 0.95) == ""
