"""Databases on which the published lower bounds rest: a sensitivity below what they show would be wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest

import confide
from confide.erm.losses import Hinge
from confide.privacy.budgets import Neighbours
from confide.privacy.gaussian import output_sensitivity


def minimiser(rows, labels, l2):
    """Minimises the sum of hinge losses + l2 w^2 / 2 over numbers w, by bisection of its rising derivative."""
    hinge = Hinge()
    low, high = -1e6, 1e6
    for _ in range(200):
        middle = (low + high) / 2.0
        slope = (labels * rows * hinge.derivative(labels * rows * middle)).sum() + l2 * middle
        low, high = (low, middle) if slope > 0.0 else (middle, high)
    return (low + high) / 2.0


@pytest.mark.parametrize("n", [4, 7, 30])
@pytest.mark.parametrize("share", [0.5, 1e-2, 1e-6])
def test_the_sensitivity_of_output_perturbation_is_attained(n, share):
    """Lemma 22 of Rubinstein et al. (2012): one label differs, and the support vector machines are 2C(M - m)/n apart.

    That is the share 1 - m/M of our bound 2LR / l2, with l2 = n / C, and twice as much of half of it (m = share M).
    """
    C, M = 0.7, 0.3
    m = share * M
    assert C * (M * n - m) / n < 1.0 / M  # the condition of the lemma
    rows = np.array([-M] * (n // 2) + [M] * (n - 1 - n // 2) + [M - m])
    labels = np.sign(rows)
    changed = labels.copy()
    changed[-1] = -1.0
    here, there = minimiser(rows, labels, n / C), minimiser(rows, changed, n / C)
    assert (there, here) == pytest.approx((C * (M * (n - 2) + m) / n, C * (M * n - m) / n), rel=1e-9)
    bound = output_sensitivity(1.0, M, n / C, Neighbours.REPLACE_ONE)
    assert here - there <= bound
    assert here - there == pytest.approx((1.0 - share) * bound, rel=1e-9)


@pytest.mark.parametrize("n", [4, 30])
def test_the_sensitivity_is_attained_by_the_estimator(n):
    """Lemma 22 again, by fits, m = M / 10^6: without privacy, and at a budget that leaves the rounding to the grid alone."""
    C, M = 0.7, 0.3
    rows = np.array([-M] * (n // 2) + [M] * (n - 1 - n // 2) + [M * (1.0 - 1e-6)])[:, None]
    labels = np.sign(rows[:, 0])
    changed = labels.copy()
    changed[-1] = -1.0
    for budget in (math.inf, 1e9):
        # At this budget independent noise is the smaller one: beside it a seal would be large.
        model = confide.LinearSVC(
            budget, loss="hinge", alpha=1.0 / C, row_norm=M, fit_intercept=False, classes=[-1, 1],
            mechanism="auto" if budget == math.inf else "output-laplace",
        )  # fmt: skip
        here, there = (float(model.fit(rows, y).coef_[0, 0]) for y in (labels, changed))
        assert here - there == pytest.approx(2.0 * C * M / n, rel=1e-5 if budget == math.inf else 2e-3)
