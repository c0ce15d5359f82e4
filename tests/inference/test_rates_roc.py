"""The ROC curve of private counts: scikit-learn's without noise, and a band that holds what it claims with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import roc_curve as curve_of_scikit_learn

import confide
from confide import LogisticRegression, ParameterError
from confide.inference.rates import Evaluation, roc_curve
from confide.privacy.budgets import Neighbours, as_budget
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Counts, counted
from tests.inference.test_rates import population

CHANCES = np.array([[0.30, 0.18, 0.08, 0.04], [0.03, 0.07, 0.12, 0.18]])
"""Of a row to have each class and to lie in each bin."""


def test_without_noise_the_curve_is_scikit_learns():
    """At each threshold between bins."""
    model = LogisticRegression(float("inf"), classes=[0, 1]).fit(*population(4000, 0))
    X, y = population(3000, 1)
    found = roc_curve(confide.evaluate(model, X, y, budget=float("inf"), n_bins=10))
    binned = np.ceil(10.0 * model.predict_proba(X)[:, 1])
    false, true, _ = curve_of_scikit_learn(y, binned, drop_intermediate=False)
    occupied = np.isin(found.false_positive_rates.round(12), false.round(12))
    np.testing.assert_allclose(np.interp(false, found.false_positive_rates, found.sensitivities), true, atol=1e-12)
    assert occupied.sum() >= len(false)
    assert (found.places[0], found.places[-1], found.band[-1].value) == (0.0, 1.0, 1.0)


def _true_sensitivity(place):
    above = np.cumsum(CHANCES[:, ::-1], axis=1) / CHANCES.sum(axis=1, keepdims=True)
    return np.interp(place, *np.concatenate([np.zeros((2, 1)), above], axis=1))


def _covered(n_rows, epsilon, factor):
    """How often the band holds the truth at its places, if it knows the noise times this factor."""
    rng, entropy = np.random.default_rng(5), Entropy.seeded(5)
    plan = SumPlan.of(Counts(8, Neighbours.ADD_OR_REMOVE_ONE), as_budget(epsilon))
    told = replace(plan, lattice=SumPlan.of(Counts(8, Neighbours.ADD_OR_REMOVE_ONE), as_budget(epsilon / factor)).lattice)
    held = []
    for _ in range(120):
        cells = rng.choice(8, size=n_rows, p=CHANCES.ravel())
        counts = plan.release(counted(cells, 8), entropy).reshape(2, 4)
        curve = roc_curve(Evaluation(counts, told, 0.95, "yes", None, True, None), n_places=7, simultaneous=False)
        held += [curve.band[at].low <= _true_sensitivity(curve.places[at]) <= curve.band[at].high for at in (1, 2, 3)]
    return np.mean(held)


def test_the_band_holds_the_truth_as_often_as_it_claims():
    """With noise that matters beside 500 rows. With the noise of another budget, the band is too narrow or too wide."""
    assert 0.91 < _covered(500, 0.25, 1.0) < 0.985
    assert _covered(500, 0.25, 0.4) < 0.88
    assert _covered(500, 0.25, 2.0) > 0.985


def _covered_as_a_whole(factor, n_curves):
    """How often the simultaneous band holds the whole curve, if it knows the noise times this factor."""
    rng, entropy = np.random.default_rng(7), Entropy.seeded(7)
    plan = SumPlan.of(Counts(8, Neighbours.ADD_OR_REMOVE_ONE), as_budget(0.25))
    told = replace(plan, lattice=SumPlan.of(Counts(8, Neighbours.ADD_OR_REMOVE_ONE), as_budget(0.25 / factor)).lattice)
    held = []
    for _ in range(n_curves):
        cells = rng.choice(8, size=500, p=CHANCES.ravel())
        counts = plan.release(counted(cells, 8), entropy).reshape(2, 4)
        curve = roc_curve(Evaluation(counts, told, 0.95, "yes", None, True, None), n_places=11)
        truth = [_true_sensitivity(place) for place in curve.places]
        pairs = zip(curve.simultaneous_band, truth, strict=True)
        held.append(all(rate.low - 1e-9 <= true <= rate.high + 1e-9 for rate, true in pairs))
    return np.mean(held)


def test_the_simultaneous_band_holds_the_whole_curve():
    """With the noise of another budget it does not, or is too wide."""
    assert 0.91 <= _covered_as_a_whole(1.0, 80) <= 0.99
    assert _covered_as_a_whole(0.25, 40) < 0.85


def test_a_class_that_the_noise_hides_is_refused():
    plan = SumPlan.of(Counts(8, Neighbours.REPLACE_ONE), as_budget(0.1))
    hidden = Evaluation(np.array([[500.0] * 4, [1.0] * 4]), plan, 0.95, "yes", 2004, True, None)
    with pytest.raises(ParameterError, match="too few rows beside the noise"):
        roc_curve(hidden)
