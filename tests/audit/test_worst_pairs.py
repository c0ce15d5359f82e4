"""The attack that needs an estimator alone."""

from __future__ import annotations

import pytest
from sklearn.naive_bayes import GaussianNB

import confide
from confide.audit.worst_pairs import worst_pair
from confide.privacy.noise import Entropy


def test_a_private_estimator_is_not_refuted_and_without_noise_it_is(monkeypatch):
    """The same 100 fits, with a tenth of the noise, show more than twice the claim."""
    estimator = confide.LinearSVC(1.0, alpha=1.0, fit_intercept=False, loss="huber_hinge")
    found = worst_pair(estimator, n_fits=100, n_rows=20, confidence=0.9999)
    assert not found.refuted
    assert found.budget == confide.PureDP(1.0)
    assert found.statistic == "likelihood ratio"
    draw = Entropy.laplace
    monkeypatch.setattr(Entropy, "laplace", lambda self, *given: 0.1 * draw(self, *given))
    assert worst_pair(estimator, n_fits=100, n_rows=20).epsilon > 2.0


def test_a_model_without_any_privacy_is_refuted():
    """One of scikit-learn, at a claim of 1."""
    found = worst_pair(GaussianNB(), n_fits=60, budget=1.0)
    assert found.refuted
    assert found.epsilon == pytest.approx(found.separation.epsilon())
