"""How precise an evaluation will be, before it is charged: compared with evaluations that were made."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtri

from confide.inference.forecast import expected_precision, margin_of_accuracy
from confide.inference.rates import Evaluation
from confide.privacy.budgets import Neighbours, PureDP
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Counts

N_BINS = 20


def plan_at(epsilon, neighbours=Neighbours.REPLACE_ONE, rows_per_person=1):
    return SumPlan.of(Counts(2 * N_BINS, neighbours, rows_per_person), PureDP(epsilon))


def evaluation(plan, counts, n_rows):
    return Evaluation(counts, plan, 0.95, "yes", n_rows, True, None)


def test_the_margin_is_that_of_an_evaluation_at_an_accuracy_of_one_half():
    """There it is widest; at other accuracies the sample doubts less."""
    plan = plan_at(0.5)
    found = evaluation(plan, np.full((2, N_BINS), 100.0), 4000).accuracy
    assert margin_of_accuracy(plan, 4000, 0.95) == pytest.approx((found.high - found.low) / 2.0, rel=1e-3)


def test_the_margin_holds_the_noise_that_is_drawn():
    """The standard deviation of the noise in the accuracy, over many draws, is the noise in the margin."""
    plan, rng, n_rows = plan_at(0.1), np.random.default_rng(0), 2415
    noise = rng.laplace(scale=plan.deviation / math.sqrt(2.0), size=(20_000, 2 * N_BINS))
    noise -= noise.mean(axis=1, keepdims=True)
    in_accuracy = noise[:, :N_BINS].sum(axis=1).std() / n_rows
    margin = margin_of_accuracy(plan, n_rows, 0.95) / float(ndtri(0.975))
    assert math.sqrt(margin**2 - 0.25 / n_rows) == pytest.approx(in_accuracy, rel=0.03)


def test_what_is_said_to_be_hidden_is_hidden():
    """Classes of equal size, the best case of the AUC."""
    plan, n_rows = plan_at(0.1, rows_per_person=2), 2000
    said = expected_precision(plan, n_rows, 0.95)
    assert "noise of about 56.6 rows in each of 40 counts" in said
    assert "The AUC will be hidden." in said
    even = evaluation(plan, np.full((2, N_BINS), n_rows / (2.0 * N_BINS)), n_rows)
    assert even.auc.value is None
    assert even.accuracy.value is not None
    enough = plan_at(1.0)
    assert "The AUC is hidden unless each class has about 51 rows" in expected_precision(enough, n_rows, 0.95)
    assert evaluation(enough, np.full((2, N_BINS), n_rows / (2.0 * N_BINS)), n_rows).auc.value is not None
    hidden = expected_precision(plan, 800, 0.95)
    assert "All rates will be hidden" in hidden
    assert "with fewer bins the accuracy and the AUC need fewer rows" in hidden
    assert evaluation(plan, np.full((2, N_BINS), 800 / (2.0 * N_BINS)), 800).accuracy.value is None


def test_a_private_number_of_rows_is_not_needed():
    said = expected_precision(plan_at(0.5, Neighbours.ADD_OR_REMOVE_ONE), None, 0.95)
    assert "The accuracy is hidden below about" in said
    assert expected_precision(plan_at(math.inf), 100, 0.95) == ""
