"""Narrow joints are reached by way of wider ones in few passes; other losses are solved at once."""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest
from confide.erm.losses import HuberHinge, LogisticLoss, SmoothHinge
from confide.erm.objective import Objective
from confide.erm.row_bounds import BallBound
from confide.solvers.fallback import Narrowing
from confide.solvers.lbfgs import LimitedMemory
from confide.solvers.newton import Newton
from tests.solvers.problems import CountingSource, objective, planned_tolerance


def adversarial(seed, least_ridge=2.0**-20):
    """A small problem of one of seven kinds, with a narrow or wide joint and a ridge near the least that a plan admits."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 120)), int(rng.integers(1, 12))
    rows, labels = rng.normal(size=(n, d)), rng.choice([-1, 1], size=n)
    kind = seed % 7
    if kind == 1:  # nearly parallel
        rows = np.outer(rng.normal(size=n), rng.normal(size=d)) + 10.0 ** rng.uniform(-8, 0) * rng.normal(size=(n, d))
    if kind == 2:  # duplicates, some with both labels
        rows = rows[rng.integers(0, max(1, n // 4), size=n)]
    if kind in (3, 4):  # separable, at any scale
        labels = np.where(rows @ rng.normal(size=d) > 0, 1, -1)
        rows *= 10.0 ** rng.uniform(-6, 3) if kind == 4 else 1.0
    if kind == 5:
        rows *= 10.0 ** rng.uniform(-6, 3, size=(n, 1))
    if kind == 6:
        rows *= 10.0 ** rng.uniform(-6, 3, size=d)
    largest = 1000.0 if rng.random() < 0.3 else 1.0
    counts = np.where(labels > 0, 1000.0, 1e-4) if largest > 1.0 else None
    loss = (HuberHinge, SmoothHinge)[rng.integers(0, 2)](float(10.0 ** rng.uniform(-3, 0)))
    noise = rng.choice([0.0, 1e-3, 1.0, 10.0]) * largest
    source = CountingSource(MemorySource(ArrayBlocks(rows), labels.astype(np.int8), counts))
    l2 = least_ridge * 10.0 ** rng.uniform(0, 5) * largest * 2.0
    return Objective(source, loss, BallBound(1.0), 1.0, l2, rng.laplace(size=(1, d + 1)) * noise, largest)


def test_hinges_with_the_least_ridge_take_a_bounded_number_of_passes():
    """Newton's method reaches the tolerance of a plan in 150 adversarial problems; 1,700 such took 294 passes at most."""
    with np.errstate(all="ignore"):
        for seed in range(150):
            problems = adversarial(seed)
            tolerance = planned_tolerance(problems, 3.0 * float(np.linalg.norm(problems.linear)) + 1e-300)
            solution = Narrowing(Newton()).solve(problems, np.zeros_like(problems.linear), tolerance)
            assert solution.gradient_norm[0] <= tolerance, seed
            assert len(problems.source.orders) <= 500, seed


def test_a_narrow_joint_takes_a_bounded_number_of_passes():
    """The rows are separable and the ridge is the least. Without wider joints on the way this took hundreds of Hessians."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(1000, 20)) / math.sqrt(20)
    labels = np.where(rows @ rng.normal(size=20) > 0, 1, -1).astype(np.int8)
    for l2 in (2.0**-19, 2e-3):
        source = CountingSource(MemorySource(ArrayBlocks(rows), labels))
        problems = Objective(source, HuberHinge(1e-3), BallBound(1.0), 1.0, l2, rng.laplace(size=(1, 21)))
        tolerance = planned_tolerance(problems, 100.0)
        assert Narrowing(Newton()).solve(problems, np.zeros((1, 21)), tolerance).gradient_norm[0] <= tolerance
        assert source.orders.count(2) <= 80


@pytest.mark.parametrize("inner", [Newton(), LimitedMemory()], ids=["newton", "lbfgs"])
def test_narrow_joints_are_reached_by_way_of_wider_ones(inner):
    """Four problems with a joint of half-width 2^-12 are solved. Newton's method needs fewer than 150 passes."""
    problems = objective(HuberHinge(2.0**-12), n=3000, l2=1.0, k=4)
    start = np.zeros((4, 7))
    solution = Narrowing(inner).solve(problems, start, 1e-3)
    passes = len(problems.source.orders)
    assert (np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient, axis=1) <= 1.01e-3).all()
    assert not start.any()
    if isinstance(inner, Newton):
        assert passes < 150


@pytest.mark.parametrize("hinge", [HuberHinge(1e-3), SmoothHinge(1e-3)], ids=lambda loss: loss.constants.name)
def test_narrow_joints_of_several_classes_are_reached_by_way_of_wider_ones(hinge):
    """Without wider joints Newton's method ends 100,000 times above the tolerance, and gradient descent may take days."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 10)) / math.sqrt(10)
    classes = (rows[:, :3] + 0.05 * rng.normal(size=(300, 3))).argmax(axis=1)
    linear = rng.laplace(size=(1, 33)) * 0.3
    source = CountingSource(MemorySource(ArrayBlocks(rows), classes))
    problems = Objective(source, OneVsRest(hinge, 3), BallBound(1.0), 1.0, 0.03, linear)
    tolerance = planned_tolerance(problems, 10.0)
    solution = Narrowing(Newton()).solve(problems, np.zeros((1, 33)), tolerance)
    assert np.linalg.norm(problems.evaluate(solution.weights, order=1).gradient) <= tolerance
    assert len(source.orders) <= 200


def test_wide_joints_and_other_losses_take_no_way():
    """Such losses are solved by the inner method alone, without a further pass."""
    for loss in (LogisticLoss(), HuberHinge(0.5), SmoothHinge(0.2)):
        problems = objective(loss)
        alone = Newton().solve(problems, np.zeros((1, 7)), 1e-8)
        passes = len(problems.source.orders)
        through = Narrowing(Newton()).solve(problems, np.zeros((1, 7)), 1e-8)
        assert np.array_equal(through.weights, alone.weights)
        assert len(problems.source.orders) == 2 * passes
