"""Objectives with a penalty of the user's own: values, gradients and Hessians, by score, beside the intercept's ridge."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest
from confide.erm.losses import LogisticLoss
from confide.erm.objective import Objective, on_part
from confide.erm.penalties import Penalty, StronglyConvex, slopes_of
from confide.erm.row_bounds import BallBound
from tests.privacy.own_penalties import CONVEXITY, LOG_COSH, OF_LENGTH, hessian

RNG = np.random.default_rng(0)
L2 = 3.0


def objectives(loss, labels, linear, intercept=1.5):
    """With the penalty, and with a ridge that is next to nothing."""
    source = MemorySource(ArrayBlocks(RNG.normal(size=(20, 2))), labels.astype(np.int8))
    own = Objective(source, loss, BallBound(1.0), intercept, L2, linear, penalty=Penalty(function=OF_LENGTH))
    return own, Objective(source, loss, BallBound(1.0), intercept, 1e-300, linear)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_values_gradients_and_hessians_have_the_penalty_of_each_score(n_classes):
    """l2 / m (N(columns) + m / 2 of the intercept's square), of each score; Hessians to the error of differences."""
    loss = LogisticLoss() if n_classes == 1 else OneVsRest(LogisticLoss(), n_classes)
    labels = np.where(np.arange(20) % 2, 1, -1) if n_classes == 1 else np.arange(20) % 3
    linear = RNG.normal(size=(2, 3 * n_classes))
    own, bare = objectives(loss, labels, linear, 0.5)
    weights = RNG.normal(size=(2, 3 * n_classes))
    value, slope, curve = np.zeros(2), np.zeros_like(weights), np.zeros((2, 3 * n_classes, 3 * n_classes))
    for k in range(2):
        for score in range(n_classes):
            columns, constant = slice(3 * score, 3 * score + 2), 3 * score + 2
            w = weights[k, columns]
            value[k] += L2 / CONVEXITY * OF_LENGTH.value(w) + 0.5 * L2 * weights[k, constant] ** 2
            slope[k, columns], slope[k, constant] = L2 / CONVEXITY * OF_LENGTH.gradient(w), L2 * weights[k, constant]
            curve[k, columns, columns] = L2 / CONVEXITY * hessian(OF_LENGTH.name, w[None])[0]
            curve[k, constant, constant] = L2
    assert own.evaluate(weights, 0).value - bare.evaluate(weights, 0).value == pytest.approx(value, rel=1e-9)
    with_slopes = own.evaluate(weights, 2)
    assert with_slopes.gradient - bare.evaluate(weights, 1).gradient == pytest.approx(slope, rel=1e-9)
    assert with_slopes.hessian - bare.evaluate(weights, 2).hessian == pytest.approx(curve, rel=1e-5, abs=1e-6)
    assert np.array_equal(own.gradients(weights), with_slopes.gradient)


def test_what_a_solver_is_lent_and_its_parts_keep_the_penalty():
    """In proportion to the rows; and what is restricted, too."""
    own, _ = objectives(LogisticLoss(), np.where(np.arange(20) % 2, 1, -1), RNG.normal(size=(2, 3)), 1.5)
    weights = RNG.normal(size=(2, 3))
    lent = own.lent()
    assert np.array_equal(lent.gradients(weights), own.gradients(weights))
    assert np.array_equal(own.restrict(np.array([1])).gradients(weights[1:]), own.gradients(weights)[1:])
    half, share = on_part(lent, MemorySource(ArrayBlocks(np.zeros((10, 2))), np.ones(10, dtype=np.int8)))
    assert share == 0.5
    assert half.evaluate(weights, 1).gradient[:, 0] == pytest.approx(
        0.5 * (L2 / CONVEXITY * slopes_of(OF_LENGTH, weights[:, :2])[:, 0] + own.linear[:, 0]), rel=1e-12
    )


def test_the_smoothness_bounds_how_fast_gradients_change():
    """l2 M / m and n c R^2; half of the first is too small close to 0."""
    own, _ = objectives(LogisticLoss(), np.where(np.arange(20) % 2, 1, -1), np.zeros((1, 3)))
    own = replace(own, penalty=Penalty(function=LOG_COSH), l2=1e4)
    assert own.smoothness == pytest.approx(1e4 * 3.0 + 20 * 0.25 * 3.25, rel=1e-9)
    first, second = np.zeros((1, 3)), np.array([[1e-4, 0.0, 0.0]])
    rate = np.linalg.norm(own.gradients(first) - own.gradients(second)) / 1e-4
    assert 0.95 * own.smoothness <= rate <= own.smoothness


def test_differences_of_gradients_have_steps_of_the_size_of_the_weights():
    """A ridge written as a penalty: its Hessian is the identity at weights of 2^40 beside small ones, and at 0."""
    ridge = StronglyConvex(lambda w: 0.5 * w @ w, lambda w: w, 1.0, 1.0)
    own, bare = objectives(LogisticLoss(), np.where(np.arange(20) % 2, 1, -1), np.zeros((1, 3)), 1.0)
    own = replace(own, penalty=Penalty(function=ridge))
    for weights in (np.array([[2.0**40, 0.5, -1.0]]), np.array([[0.5, -1.0, 1.0]]), np.zeros((1, 3))):
        found = own.evaluate(weights, 2).hessian - bare.evaluate(weights, 2).hessian
        np.testing.assert_allclose(found[0], L2 * np.eye(3), rtol=1e-9, atol=1e-9)
        assert np.array_equal(found[0], found[0].T)
    assert own.evaluate(weights, 1).hessian.shape == (1, 0, 0)


def test_an_objective_without_an_intercept_has_the_penalty_alone():
    """Of all its weights; l2 / m times as strong, for a penalty of m = 1/2."""
    half = StronglyConvex(lambda w: 0.25 * w @ w + 0.25 * np.sum(w**4), lambda w: 0.5 * w + w**3, 0.5, 0.5)
    linear = np.array([[1.0, -1.0]])
    own, bare = objectives(LogisticLoss(), np.where(np.arange(20) % 2, 1, -1), linear, 0.0)
    own, weights = replace(own, penalty=Penalty(function=half)), np.array([[2.0, -4.0]])
    assert own.evaluate(weights, 0).value - bare.evaluate(weights, 0).value == pytest.approx(
        [2.0 * L2 * (5.0 + 68.0)], rel=1e-12
    )
    difference = own.evaluate(weights, 1).gradient - bare.evaluate(weights, 1).gradient
    np.testing.assert_allclose(difference, 2.0 * L2 * (0.5 * weights + weights**3), rtol=1e-13)
    np.testing.assert_allclose(own.gradients(weights) - bare.gradients(weights), difference, rtol=1e-13)


def test_the_smoothness_by_hand():
    """l2 M / m + n c (R^2 + intercept^2): 3 times as steep as the ridge within it, rounded upwards by twice 2^-40."""
    own, _ = objectives(LogisticLoss(), np.where(np.arange(20) % 2, 1, -1), np.zeros((1, 3)))
    own = replace(own, penalty=Penalty(function=LOG_COSH), l2=1e12)
    assert own.smoothness / (3e12 + 20 * 0.25 * 3.25) - 1.0 == pytest.approx(2.0**-39, rel=0.01, abs=0.0)
    other = replace(own, l2=1.0, largest_weight=1e12)
    assert other.smoothness / (3.0 + 20 * 0.25e12 * 3.25) - 1.0 == pytest.approx(2.0**-40, rel=0.01, abs=0.0)
    assert other.lent().largest_weight == 1e12
