"""Scores as probabilities."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from confide.models.model import KINDS, Link

SCORES = np.array([-800.0, -3.0, 0.0, 0.5, 800.0])


def test_the_logistic_function_is_the_hinge_without_a_margin():
    """To the bit what scipy says, and the limit of small margins."""
    found = np.exp(Link("logistic").log_probabilities(SCORES))
    np.testing.assert_array_equal(found[:, 1], np.exp(np.log(expit(SCORES), where=SCORES > -700, out=np.copy(SCORES))))
    np.testing.assert_allclose(np.exp(Link("logistic", 1e-9).log_probabilities(SCORES)), found, atol=1e-9)


@pytest.mark.parametrize("margin", [0.5, 2.0])
def test_scores_at_probabilities_are_the_way_back(margin):
    link, wanted = Link("logistic", margin), np.array([0.001, 0.3, 0.5, 0.9, 0.9999])
    np.testing.assert_allclose(np.exp(link.log_probabilities(link.scores_at(wanted)))[:, 1], wanted, rtol=1e-9)


def test_probabilities_of_several_classes_add_up_to_1():
    """Softmax, and one against the rest, which is not softmax."""
    scores = np.array([[1.0, -2.0, 0.3], [700.0, -700.0, 0.0]])
    np.testing.assert_allclose(np.exp(Link("softmax").log_probabilities(scores)), softmax(scores, axis=1))
    against = np.exp(Link("one-vs-rest").log_probabilities(scores))
    np.testing.assert_allclose(against, expit(scores) / expit(scores).sum(axis=1, keepdims=True))
    assert not np.allclose(against, softmax(scores, axis=1))


def test_which_kinds_have_probabilities():
    assert [kind for kind in KINDS if Link(kind).has_probabilities] == ["logistic", "softmax", "one-vs-rest"]


def test_means_of_scores():
    """Of each kind that has one score: a probability, a number, the exponential, which never overflows, or the score."""
    np.testing.assert_allclose(Link("logistic").mean(SCORES), expit(SCORES))
    link = Link("logistic", 2.0)
    np.testing.assert_allclose(link.mean(SCORES), np.exp(link.log_probabilities(SCORES))[:, 1])
    for kind in ("identity", "none"):
        assert np.array_equal(Link(kind).mean(SCORES), SCORES)
    found = Link("exponential").mean(SCORES)
    np.testing.assert_allclose(found[:4], np.exp(SCORES[:4]))
    assert found[4] == np.finfo(float).max


@pytest.mark.parametrize("link", [Link("softmax"), Link("one-vs-rest"), Link("one-vs-rest", 2.0)], ids=repr)
def test_log_odds_of_classes_and_their_derivatives(link):
    """Those of the probabilities, by differences."""
    scores, step = np.array([[1.0, -2.0, 0.3], [0.1, 0.2, 3.0]]), 1e-5
    found, derivatives = link.log_odds(scores)
    np.testing.assert_allclose(found, logit(np.exp(link.log_probabilities(scores))), rtol=1e-9)
    for place, unit in enumerate(step * np.eye(3)):
        change = (link.log_odds(scores + unit)[0] - link.log_odds(scores - unit)[0]) / (2.0 * step)
        np.testing.assert_allclose(derivatives[:, :, place], change, rtol=1e-4, atol=1e-6)
