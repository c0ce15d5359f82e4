"""Public bounds on what two models can say differently of a row: they hold, and are used where they are smaller."""

from __future__ import annotations

import numpy as np
import pytest

from confide.estimators.evaluation import planned_evaluation
from confide.evaluations.tables import largest_difference_of_losses, largest_difference_of_numbers
from confide.privacy.budgets import PureDP
from tests.evaluations.examples import classifier, numbers, regressor, three_classes


def scorers_of(*models):
    return [planned_evaluation(model, PureDP(1.0)).scorers[0] for model in models]


def test_losses_of_similar_models_differ_little():
    X, y = three_classes(2000, 1)
    two = classifier(alpha=0.05), classifier(alpha=0.06)
    losses = [-model.predict_log_proba(X)[np.arange(2000), y] for model in two]
    largest = largest_difference_of_losses(*scorers_of(*two), 50.0)
    assert np.abs(losses[0] - losses[1]).max() <= largest < 2.0
    assert largest_difference_of_losses(*scorers_of(*two), 0.01) == 0.01
    assert largest_difference_of_losses(*scorers_of(two[0], two[0]), 3.0) == 3.0


def test_predictions_of_similar_regressions_differ_little():
    X, _ = numbers(2000, 1)
    two = regressor(alpha=0.02), regressor(alpha=0.03)
    largest = largest_difference_of_numbers(*scorers_of(*two), 2.0)
    assert np.abs(two[0].predict(X) - two[1].predict(X)).max() <= largest < 0.5
    assert largest_difference_of_numbers(*scorers_of(*two), 1e-6) == pytest.approx(1e-6)
