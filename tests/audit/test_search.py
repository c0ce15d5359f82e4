"""A whole search at its worst pair of neighbours, as a black box: what is released never shows more than was promised.

One column of ones, and a ridge so large that no weight leaves the straight part of the loss: a model knows the sum of the
labels of its part, and errs by the sign of its weight. One row changes its label, in a part for training or among those held
out, where it turns the majority. Events are fixed beforehand. The attacker knows the order that is drawn, here always that
of the table: the guarantee holds given the order. Of numbers one row is held out, whose target is as far
from 0 as noise drives the predictions, so that its error is nearly 0 or 1.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from confide import HuberRegressor, LinearSVC, PrivateSearchCV
from confide.privacy.noise import Entropy
from confide.privacy.selection import Repetition, Selection
from confide.training.charge import ErrorsOfNumbers, divided
from tests.audit.attacks import few_of, lower_bound, upper_bound

EPSILON, N_ROWS = 0.3, 27
METHODS = ("permute-and-flip", "exponential", "repeated")
CASES = [
    (method, where, kind) for kind in ("classes", "numbers") for method in METHODS for where in ("training", "held out")
]
NAMES = [", ".join(case) for case in CASES]
SMALL, LARGE = 60, 1_000


@pytest.fixture(autouse=True)
def known_order(monkeypatch):
    """Rows are divided in the order of the table."""
    monkeypatch.setattr(Entropy, "permutation", lambda self, n: np.arange(n))


def audited(method, seed=None, kind="classes"):
    """The search, quick."""
    of_numbers = HuberRegressor(target_bound=1.0, fit_intercept=False)
    return PrivateSearchCV(
        LinearSVC(classes=[-1, 1], fit_intercept=False) if kind == "classes" else of_numbers,
        {"alpha": [50.0, 60.0]} if kind == "classes" else {"threshold": [0.3, 1.0]},
        budget=EPSILON,
        method=method,
        held_out=1 / 3 if kind == "classes" else 1 / N_ROWS,
        expected_tries=2.0,
        random_state=seed,
    )


def neighbours(method, where, kind):
    """Labels of two data sets: in every part as many of either class, or one more; then one of those changed.

    Where training differs, no row held out has the other class, so that a positive weight has no mistakes.
    """
    parts = divided(audited(method, kind=kind).plan(N_ROWS, 1).part_sizes, Entropy.fresh())
    labels = np.empty(N_ROWS, dtype=int)
    for part in parts:
        labels[part] = np.resize([1, -1], len(part))
    training, *_, held_out = parts
    if where == "training":
        labels[held_out] = 1
    other = labels.copy()
    other[(training if where == "training" else held_out)[0]] = -1
    return labels, other


def weights(method, labels, n, seed, kind):
    """(n,) released weights."""
    searches = (audited(method, None if seed is None else 10_000 * seed + k, kind) for k in range(n))
    rows, targets = np.ones((N_ROWS, 1)), labels if kind == "classes" else 0.25 * labels
    return np.array([float(np.ravel(one.fit(rows, targets).best_estimator_.coef_)[0]) for one in searches])


def excess(method, where, kind, n, seed):
    """Lower bound on the log-ratio of an event and of its complement, less epsilon: above 0 refutes it at 99.8%."""
    first, second = (
        weights(method, labels, n, None if seed is None else 2 * seed + side, kind)
        for side, labels in enumerate(neighbours(method, where, kind))
    )
    p, q = int((first > 0.0).sum()), int((second > 0.0).sum())
    ratios = (lower_bound(p, n) / upper_bound(q, n), lower_bound(n - q, n) / upper_bound(n - p, n))
    return math.log(max(*ratios, 1e-300)) - EPSILON


@pytest.mark.parametrize("number", few_of(range(len(CASES)), 0, 5, 9), ids=NAMES)
def test_a_few_searches_do_not_refute_the_guarantee(number):
    """60 searches from either data set."""
    assert excess(*CASES[number], SMALL, seed=number) <= 0.0


@pytest.mark.attack
def test_a_few_searches_refute_tries_that_cost_too_much(monkeypatch):
    """The same attack has power: tries at 40 times the budget of the search."""
    monkeypatch.setattr(Repetition, "pure_base", lambda self, epsilon: 40.0 * epsilon)
    assert excess("repeated", "training", "classes", SMALL, seed=9) > 0.0


@pytest.mark.attack
def test_a_few_searches_refute_a_choice_that_costs_too_much(monkeypatch):
    """And a choice among rows held out at 40 times its epsilon."""
    original = Selection.choose
    monkeypatch.setattr(Selection, "choose", lambda self, *a: original(Selection(self.law, 40.0 * self.epsilon), *a))
    assert excess("permute-and-flip", "held out", "classes", 3 * SMALL, seed=10) > 0.0


@pytest.mark.attack
def test_a_few_searches_refute_errors_that_count_too_much(monkeypatch):
    """Those of numbers, if a row held out could change their sum by 40."""
    original = ErrorsOfNumbers.of
    monkeypatch.setattr(ErrorsOfNumbers, "of", lambda self, *a: 40 * original(self, *a))
    assert excess("permute-and-flip", "held out", "numbers", 12 * SMALL, seed=11) > 0.0


@pytest.mark.audit
@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_a_thousand_searches_do_not_refute_the_guarantee(number):
    """With fresh noise, a thousand from either data set: each trains several models."""
    assert excess(*CASES[number], LARGE, seed=None) <= 0.0
