"""Every estimator through its public face, at a worst pair: what `fit` publishes shows no more than was promised.

Nothing is known here of mechanisms, shapes or grids, so that labels, weights, bounds and budgets are followed from the
constructor to the attribute. One column, a ridge so large that weights stay short, and rows that cancel each other but for
one, which changes. The event is that the released weight exceeds the middle of what a first few fits showed; confidence
bounds are Clopper and Pearson's at 99.9%. A loss whose slope is short at short weights shows a part of what it may.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import (
    ApproxDP,
    ERMClassifier,
    ERMRegressor,
    HuberRegressor,
    KernelSVC,
    LinearSVC,
    LogisticRegression,
    PoissonRegressor,
    Ridge,
    StronglyConvex,
)
from tests.audit.attacks import few_of, lower_bound, upper_bound
from tests.estimators.own_losses import Hyperbola, Pseudo

PURE, APPROXIMATE = 1.0, (1.0, 0.05)
N_ROWS = 20
COMMON = {"alpha": 20.0, "fit_intercept": False, "row_norm": 1.0}
MAPPED = {"alpha": 20.0, "fit_intercept": False, "n_features": 2}
CLASSES = ([-1, 1], 1, -1)
TARGETS = ([0.0, 0.0], 1.0, -1.0)
STEEP = StronglyConvex(lambda w: w @ w, lambda w: 2.0 * w, strong_convexity=2.0, smoothness=2.0)
CASES = {
    # Estimator; targets of the rows that stay, and of the row that goes and comes; how many times the budget is refuted.
    "logistic": (LogisticRegression, COMMON, *CLASSES, 8.0),
    "penalty": (LogisticRegression, COMMON | {"penalty": [0.01], "alpha": 2000.0}, *CLASSES, 8.0),
    "penalty of one's own": (LogisticRegression, COMMON | {"penalty": STEEP}, *CLASSES, 8.0),
    "softmax": (LogisticRegression, COMMON | {"classes": [0, 1, 2]}, [0, 1, 2], 0, 1, 8.0),
    "one against the rest": (LinearSVC, COMMON | {"classes": [0, 1, 2]}, [0, 1, 2], 0, 1, 4.0),
    "huber hinge": (LinearSVC, COMMON | {"loss": "huber_hinge"}, *CLASSES, 3.0),
    "logistic hinge": (LinearSVC, COMMON | {"loss": "logistic_hinge"}, *CLASSES, 6.0),
    "automatic loss": (LinearSVC, COMMON, *CLASSES, 6.0),
    "smooth hinge": (LinearSVC, COMMON | {"loss": "smooth_hinge"}, *CLASSES, 3.0),
    "hinge": (LinearSVC, COMMON | {"loss": "hinge"}, *CLASSES, 3.0),
    "kernel": (KernelSVC, MAPPED | {"loss": "huber_hinge"}, *CLASSES, 6.0),
    "kernel, laplace noise": (KernelSVC, MAPPED | {"mechanism": "output-laplace"}, *CLASSES, 6.0),
    "least squares": (Ridge, COMMON | {"target_bound": 1.0}, *TARGETS, 4.0),
    "huber": (HuberRegressor, COMMON | {"target_bound": 1.0}, *TARGETS, 3.0),
    "clipped square": (HuberRegressor, COMMON | {"target_bound": 1.0} | {"loss": "clipped_squared"}, *TARGETS, 3.0),
    "counts": (PoissonRegressor, COMMON | {"target_bound": 10.0}, [1.0, 1.0], 10.0, 0.0, 6.0),
    "own loss of classes": (ERMClassifier, COMMON | {"loss": Hyperbola()}, *CLASSES, 6.0),
    "own loss of targets": (ERMRegressor, COMMON | {"target_bound": 1.0} | {"loss": Pseudo(0.1)}, *TARGETS, 4.0),
}
AUDITS = [(name, PURE) for name in CASES] + [
    (name, APPROXIMATE) for name in ("huber hinge", "automatic loss", "softmax", "huber", "least squares")
]
NAMES = [f"{name}, {'pure' if budget == PURE else 'approximate'}" for name, budget in AUDITS]
FIRST = 40
"""Fits from the first data set that decide the threshold; they are not counted."""


def released(name, budget, times, n, side, seed):
    """(n,) released weights along the row, of n fits to one of the two data sets at some times the budget."""
    make, parameters, others, *changed, _ = CASES[name]
    estimator = make(ApproxDP(budget[0] * times, budget[1]) if isinstance(budget, tuple) else budget * times, **parameters)
    X = np.zeros((N_ROWS, 1))
    X[0] = 1.0
    y = np.resize(others, N_ROWS)
    y[0] = changed[side]
    if make is KernelSVC:
        X[1:3], y[1:3] = 1.0, (1, -1)
    found = np.empty(n)
    for k in range(n):
        fitted = estimator.set_params(random_state=None if seed is None else 100_000 * (2 * seed + side) + k).fit(X, y)
        # Of three classes the two between which the row changes.
        score = np.ravel(fitted.decision_function(X[:1]) if hasattr(fitted, "classes_") else fitted.coef_)
        found[k] = score[0] - score[1] if len(score) == 3 else score[0]
    return found


def excess(name, budget, n, seed=None, times=1.0):
    """Lower bound on what the event shows, less what the budget allows: above 0 the guarantee is refuted at 99.8%."""
    threshold = np.median(released(name, budget, times, FIRST, 0, None if seed is None else seed + 500))
    p, q = (int((released(name, budget, times, n, side, seed) > threshold).sum()) for side in (0, 1))
    epsilon, delta = budget if isinstance(budget, tuple) else (budget, 0.0)
    seen = []
    for inside, outside in ((p, q), (n - q, n - p)):
        low, high = lower_bound(inside, n), upper_bound(outside, n)
        seen.append(low - math.exp(epsilon) * high - delta if delta else math.log(max(low, 1e-300) / high) - epsilon)
    return max(seen)


@pytest.mark.parametrize(
    "number",
    few_of([n for n, (name, _) in enumerate(AUDITS) if "own" not in name], 0, 3, 10, 12, 15, 21),
    ids=lambda number: NAMES[number],
)
def test_a_few_fits_do_not_refute_the_guarantee(number):
    """100 from either data set. A loss of the user's own is searched for faults in every fit, which takes time."""
    assert excess(*AUDITS[number], 100, seed=number) <= 0.0


@pytest.mark.parametrize(
    "name",
    few_of(
        ["logistic", "one against the rest", "kernel", "least squares", "counts", "hinge", "logistic hinge"],
        "logistic",
        "least squares",
    ),
)
def test_a_few_fits_at_several_times_the_budget_refute_it(name):
    """The same attack has power: 100 fits from either data set suffice, or 200."""
    n = 200 if name == "one against the rest" else 100
    assert excess(name, PURE, n, seed=len(name), times=CASES[name][-1]) > 0.0


@pytest.mark.audit
@pytest.mark.parametrize("number", range(len(AUDITS)), ids=NAMES)
def test_ten_thousand_fits_do_not_refute_the_guarantee(number):
    """Fresh noise, 5,000 from either data set."""
    assert excess(*AUDITS[number], 5_000) <= 0.0


@pytest.mark.audit
@pytest.mark.parametrize("number", range(len(AUDITS)), ids=NAMES)
def test_many_fits_at_several_times_the_budget_refute_it(number):
    """1,000 from either data set."""
    name, budget = AUDITS[number]
    assert excess(name, budget, 1_000, times=CASES[name][-1]) > 0.0
