"""Models, rows and tables for the tests of evaluations."""

from __future__ import annotations

import math

import numpy as np

import confide
from confide.inference.rates import NoisyTable
from confide.privacy.budgets import Neighbours, as_budget
from confide.privacy.noisy_sum import SumPlan
from confide.privacy.tables import Tables


def three_classes(n, seed, flat=1.0):
    """Rows in the unit ball and labels 0, 1 and 2."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    scores = X @ np.array([[4.0, -2.0, 0.0], [0.0, 3.0, -1.0], [1.0, 0.0, 2.0]]) + flat * rng.gumbel(size=(n, 3))
    return X, scores.argmax(axis=1)


def numbers(n, seed):
    """Rows in the unit ball and targets between about -1 and 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    X *= rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True)
    return X, X @ np.array([0.6, -0.3, 0.2]) + 0.15 * rng.normal(size=n)


def classifier(seed=0, n=3000, **more):
    return confide.LogisticRegression(math.inf, classes=[0, 1, 2], **more).fit(*three_classes(n, seed))


def regressor(seed=0, n=3000, **more):
    return confide.Ridge(math.inf, target_bound=1.0, **more).fit(*numbers(n, seed))


def plan_of(sizes, budget=math.inf, neighbours=Neighbours.REPLACE_ONE):
    return SumPlan.of(Tables(sizes, 0, neighbours), as_budget(budget))


def table(counts, deviation=0.0, total_is_public=True, level=0.95):
    return NoisyTable(np.array(counts, dtype=float), deviation, total_is_public, level)
