"""Losses that a user wrote are held to what the user declared."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.transformed_losses import DeclaredLoss
from confide.errors import NotCertified


class Liar:
    """A loss whose functions exceed what it declared, and say nonsense at some scores."""

    def value(self, score, target):
        """Negative and not a number."""
        return np.where(score > 0.0, -5.0, np.nan)

    def derivative(self, score, target):
        """Far beyond 1."""
        return np.where(score > 0.0, 1e6, np.nan)

    def second_derivative(self, score, target):
        """Negative and far beyond 1."""
        return np.where(score > 0.0, 1e6, -1e6)


class Riser(Liar):
    """Of the margin; its slope rises beyond 0."""

    def derivative(self, margin):
        """Between -1 and 1."""
        return np.tanh(margin)


@pytest.mark.parametrize("monotone", [True, False])
def test_a_loss_of_the_users_own_is_held_to_its_sign(monotone):
    """For both labels: where no slope in the margin was to be positive, none is."""
    declared = DeclaredLoss(Riser(), None, "riser", 1.0, 2.0, 1.0, 1.0, monotone)
    labels = np.array([-1, 1, -1, 1])
    slopes = labels * declared.of_scores(np.array([[-2.0], [-2.0], [2.0], [2.0]]), labels, 1).slope[:, 0]
    np.testing.assert_allclose(slopes, np.tanh([2.0, -2.0, -2.0, 2.0]) if not monotone else np.tanh([0.0, -2.0, -2.0, 0.0]))


def test_a_loss_of_the_users_own_is_held_to_its_constants():
    """Slopes and curvatures are clipped to what was declared; arguments cannot be written to; targets are clipped."""
    declared = DeclaredLoss(Liar(), 1.0, "liar", 1.0, 2.0, 1.0, 1.0, False)
    found = declared.of_scores(np.array([[-1.0], [1.0]]), np.array([5.0, 5.0]), 2)
    assert found.slope.tolist() == [[-1.0], [1.0]]
    assert found.curvature.tolist() == [[0.0], [2.0]]
    assert (declared.of_scores(np.array([[-1.0], [1.0]]), np.array([5.0, 5.0]), 0).value >= 0.0).all()

    class Writer(Liar):
        def derivative(self, score, target):
            score += 1.0
            return score

    with pytest.raises(NotCertified):
        DeclaredLoss(Writer(), 1.0, "writer", 1.0, 2.0, 1.0, 1.0, False).of_scores(np.ones((2, 1)), np.ones(2), 1)


class Square:
    """Half the squared residual."""

    def value(self, score, target):
        """r^2 / 2."""
        return 0.5 * (score - target) ** 2

    def derivative(self, score, target):
        """r."""
        return score - target

    def second_derivative(self, score, target):
        """1, or what is no number far away."""
        return np.where(np.abs(score) < 50.0, 1.0, np.nan)


def test_terms_of_an_honest_loss_are_its_own():
    """For two problems; targets are clipped to either end, and one that is no number is the lower one."""
    declared = DeclaredLoss(Square(), 2.0, "square", 100.0, 1.5, 2.0, 1.0, False)
    scores, targets = np.array([[10.0, -3.0]] * 4), np.array([1.0, 7.0, -7.0, np.nan])
    residuals = scores - np.array([[1.0], [2.0], [-2.0], [-2.0]])
    assert declared.of_scores(scores, targets, 0).value.tolist() == (0.5 * residuals**2).tolist()
    found = declared.of_scores(scores, targets, 2)
    assert (found.slope.tolist(), found.curvature.tolist()) == (residuals.tolist(), np.ones((4, 2)).tolist())
    far = declared.of_scores(np.array([[150.0], [-150.0]]), np.zeros(2), 2)
    assert (far.slope.tolist(), far.curvature.tolist()) == ([[100.0], [-100.0]], [[0.0], [0.0]])


def test_a_value_that_is_no_number_is_the_least_and_none_is_cut_above():
    """Values are for solvers alone; a loss is nowhere negative."""
    declared = DeclaredLoss(Liar(), 1.0, "liar", 1.0, 2.0, 1.0, 1.0, False)
    assert declared.of_scores(np.array([[-1.0], [1.0]]), np.zeros(2), 0).value.tolist() == [[0.0], [0.0]]
    assert (
        DeclaredLoss(Square(), 1.0, "s", 1.0, 1.0, 1.0, 1.0, False).of_scores(np.full((1, 1), 1e3), np.zeros(1), 0).value
        == 5e5
    )


def test_only_what_is_asked_for_is_called():
    """A loss without second derivatives has slopes, and one of the margin sees the label's sign times the score."""
    declared = DeclaredLoss(Riser(), None, "riser", 0.5, 2.0, 1.0, 1.0, True)
    found = declared.of_scores(np.array([[3.0], [-0.25]]), np.array([-1, 1]), 1)
    assert (found.value, found.curvature) == (None, None)
    np.testing.assert_allclose(found.slope, [[0.5], [np.tanh(-0.25)]])
    own = declared.constants
    flags = (own.by_length, own.tapered, own.self_concordant, own.separable, own.n_outputs)
    assert flags == (False, False, False, True, 1)
    np.testing.assert_array_equal(own.curvature_at_slope(np.array([0.0, 0.5])), [2.0, 2.0])
    assert own.trace == 2.0
