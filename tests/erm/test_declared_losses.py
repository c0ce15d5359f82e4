"""Losses that a user wrote are held to what the user declared."""

from __future__ import annotations

import numpy as np
import pytest

from confide.erm.declared_losses import DeclaredLoss


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

    with pytest.raises(ValueError, match="read-only"):
        DeclaredLoss(Writer(), 1.0, "writer", 1.0, 2.0, 1.0, 1.0, False).of_scores(np.ones((2, 1)), np.ones(2), 1)
