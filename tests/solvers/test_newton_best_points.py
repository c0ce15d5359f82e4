"""The best points of several problems, and when each problem is finished."""

from __future__ import annotations

import numpy as np

from confide.solvers.newton import BestPoints

ALL = np.arange(3)


def gradients(*norms):
    """Gradients of these norms."""
    return np.array(norms)[:, None] * np.array([[0.6, 0.8]])


def points(value):
    """One point for each of three problems."""
    return np.full((3, 2), float(value))


def test_the_best_point_is_kept_and_not_the_last():
    """Each problem has a best point of its own, and the start is copied."""
    start = points(0)
    best = BestPoints(start, gradients(4.0, 4.0, 4.0), 1e-3)
    np.testing.assert_allclose(best.arrive(ALL, points(1), gradients(1.0, 5.0, 2.0)), [1.0, 5.0, 2.0])
    best.arrive(np.array([0, 2]), points(2)[:2], gradients(3.0, 0.5))
    solution = best.solution()
    np.testing.assert_array_equal(solution.weights[:, 0], [1.0, 0.0, 2.0])
    np.testing.assert_allclose(solution.gradient_norm, [1.0, 4.0, 0.5])
    assert not start.any()


def test_a_problem_is_finished_at_its_tolerance_or_where_nothing_can_be_computed():
    """Each may have a tolerance of its own; NaN and infinity end a problem, whose best point stays."""
    best = BestPoints(points(0), gradients(4.0, 4.0, 4.0), np.array([1.0, 0.1, 0.1]))
    assert list(best.unfinished()) == [0, 1, 2]
    best.arrive(ALL, points(1), gradients(0.9, 0.9, np.nan))
    assert list(best.unfinished()) == [1]
    assert best.solution().weights[2, 0] == 0.0
    assert list(BestPoints(points(0), gradients(np.inf, 1.0, np.nan), 0.5).unfinished()) == [1]


def test_a_problem_is_finished_after_four_idle_steps_near_its_floor():
    """Far from the floor, steps that gain nothing are no sign of rounding. A step that halves the norm resets the count."""
    best = BestPoints(points(0), gradients(1.0, 1.0, 1.0), 0.0)
    best.arrive(ALL, points(1), gradients(1e-11, 1e-11, 0.5))
    assert list(best.near_floor(ALL)) == [True, True, False]
    for step in range(3):
        best.arrive(ALL, points(step), gradients(1e-11, 1e-11, 0.5))
        assert list(best.unfinished()) == [0, 1, 2]
    best.arrive(ALL, points(9), gradients(1e-11, 1e-12, 0.5))
    assert list(best.unfinished()) == [1, 2]


def test_norms_of_another_objective_can_be_forgotten():
    """The next point counts, whatever its norm, and idle steps count from there."""
    best = BestPoints(points(0), gradients(1.0, 1.0, 1.0), 1e-3)
    best.arrive(ALL, points(1), gradients(1e-6, 1e-6, 1e-6))
    best.forget_norms()
    assert np.isinf(best.solution().gradient_norm).all()
    best.arrive(ALL, points(2), gradients(0.5, 0.5, 0.5))
    assert (best.solution().weights == 2.0).all()
    assert list(best.unfinished()) == [0, 1, 2]
