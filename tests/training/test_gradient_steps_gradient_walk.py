"""Gradient descent with momentum, from noisy sums."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from confide.training.gradient_steps import HeavyBall


def test_a_heavy_ball_does_what_it_says():
    """Four steps by hand, with a momentum that grows; the weights are the mean of the points of the second half."""
    steps, walk = HeavyBall(4, 0.5, 0.9, 2.0), None
    walk = steps.start(1)
    point, velocity, points = 0.0, 0.0, []
    for noisy, momentum in ((1.0, 1 / 3), (-3.0, 2 / 4), (0.5, 3 / 5), (2.0, 4 / 6)):
        walk = walk.after(np.array([[noisy]]))
        velocity = momentum * velocity - 0.5 * (noisy + 2.0 * point)
        point += velocity
        points.append(point)
        assert walk.point[0, 0] == pytest.approx(point)
    assert walk.weights[0, 0] == pytest.approx(np.mean(points[2:]))


def test_momentum_does_not_grow_beyond_its_limit():
    """After 40 steps (t + 1) / (t + 3) is above .9."""
    walk = replace(HeavyBall(100, 0.5, 0.9, 0.0).start(1), n_done=40, velocity=np.ones((1, 1)))
    assert walk.after(np.zeros((1, 1))).velocity[0, 0] == 0.9


def test_a_walk_without_sums_ends_where_it_is():
    """Before the second half the weights are the last point."""
    walk = HeavyBall(10, 0.5, 0.9, 2.0).start(2).after(np.ones((1, 2)))
    np.testing.assert_array_equal(walk.weights, walk.point)


def test_steps_keep_nothing_for_the_next_fit():
    """Frozen values, and each walk begins at 0."""
    steps = HeavyBall(4, 0.5, 0.9, 2.0)
    steps.start(2).after(np.ones((1, 2)))
    np.testing.assert_array_equal(steps.start(2).point, np.zeros((1, 2)))
    np.testing.assert_array_equal(steps.start(2).velocity, np.zeros((1, 2)))
    with pytest.raises(FrozenInstanceError):
        steps.momentum = 0.5
    assert str(steps).startswith("heavy ball with momentum 0.9 and steps of 0.5")
    assert steps.to_dict() == {"kind": "heavy-ball", "step": 0.5, "momentum": 0.9}


def test_a_walk_with_a_prior_starts_there_and_ends_between_it_and_the_rows():
    """For sums of 3 (w - c) and a ridge of 2 towards p the points settle at (3 c + 2 p) / 5, whatever the start."""
    prior, target = (4.0, -2.0), np.array([[1.0, 1.0]])
    walk = HeavyBall(400, 0.05, 0.5, 2.0, prior).start(2)
    assert np.array_equal(walk.point, [prior])
    assert np.array_equal(HeavyBall(400, 0.05, 0.5, 2.0).start(2).point, [[0.0, 0.0]])
    several = HeavyBall(400, 0.05, 0.5, 2.0, prior).start(2, 3)
    assert several.point.shape == (3, 2)
    for _ in range(400):
        walk = walk.after(3.0 * (walk.point - target))
    np.testing.assert_allclose(walk.weights, (3.0 * target + 2.0 * np.array([prior])) / 5.0, rtol=1e-6)
