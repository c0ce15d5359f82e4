"""Whether least squares takes noisy sums or a perturbed objective: from public facts, and the better one on rows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from confide import ApproxDP, PureDP, Ridge
from confide.erm.target_losses import SquaredLoss
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP
from confide.privacy.sufficient_statistics import StatisticsPlan
from confide.training.auto_loss import squared_error
from confide.training.plan import STEPS, Draft, make_plan
from confide.training.plan import decided as decide
from tests.training.examples import settings

BUDGETS = [PureDP(1.0), ApproxDP(1.0, 1e-6), ZCDP(0.1)]


def decided(n_rows, n_features=10, *, mechanism="auto", budget=BUDGETS[1], **facts):
    """What comes of least squares with targets up to 1."""
    given = settings(minimised=squared_error(1.0, **facts), mechanism=mechanism, budget=budget, intercept=1.0)
    return make_plan(given, n_features, n_rows)


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind)
def test_sums_are_kept_where_their_noise_hides_next_to_nothing(budget):
    """Many rows: the plan of sums, with a ratio of at most .005. Fewer: losses with clipped slopes."""
    many = decided(10**8, budget=budget)
    assert isinstance(many, StatisticsPlan)
    assert many.forecast.ratio <= 0.005
    sizes = [10**power for power in range(3, 9)]
    kinds = [isinstance(decided(n_rows, budget=budget), StatisticsPlan) for n_rows in sizes]
    assert kinds == sorted(kinds)
    few = decided(10**4, budget=budget)
    assert isinstance(few.problem.loss, SquaredLoss)
    assert few.problem.loss.threshold < 1.0
    assert "noisy sums of products would hide more" in few.why()
    by_name = decided(10**4, budget=budget, mechanism="sufficient-statistics")
    assert by_name.forecast.ratio > 0.005


def test_names_intervals_and_infinite_budgets_decide():
    """Whatever the noise is."""
    assert isinstance(decided(10**3, mechanism="sufficient-statistics"), StatisticsPlan)
    assert not isinstance(decided(10**8, mechanism="objective"), StatisticsPlan)
    assert isinstance(decided(10**6, with_square=True), StatisticsPlan)
    assert Ridge(math.inf, target_bound=1.0).plan(100, 3).mechanism == "none"
    assert isinstance(Ridge(math.inf, target_bound=1.0).plan(100, 3), StatisticsPlan)
    with pytest.raises(ParameterError, match="no intervals"):
        decided(10**6, with_square=True, mechanism="objective")


def test_sums_that_are_too_inexact_give_way():
    """For 10^14 rows double precision cannot add up the sums, and the reason is told where they were asked for by name."""
    with pytest.raises(ParameterError):
        decided(10**14, n_features=2_000, mechanism="sufficient-statistics")
    given = settings(minimised=squared_error(1.0), budget=BUDGETS[1], intercept=1.0)
    objective = Draft(given, replace(given, minimised=given.minimised.of_scores), 2_000, 10**14)
    assert decide(objective, STEPS[:1]).made is None
    assert decide(replace(objective, n_features=10, n_rows=10**8), STEPS[:1]).made is not None


@pytest.mark.parametrize("budget", [PureDP(0.5), ApproxDP(0.2, 1e-6)], ids=lambda budget: budget.kind)
def test_the_choice_is_the_better_one_by_far_where_noise_is_large(budget):
    """20 independent columns, 10,000 rows, half signal: sums lose .1 of R^2 or more, the choice less than half as much."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 20)) / math.sqrt(20)
    signal = X @ rng.normal(size=20)
    y = 0.3 * signal / signal.std() + 0.3 * rng.normal(size=20_000)
    best = Ridge(math.inf, target_bound=1.0).fit(X[:10_000], y[:10_000]).score(X[10_000:], y[10_000:])
    lost = {}
    for mechanism in ("auto", "sufficient-statistics"):
        model = Ridge(budget, target_bound=1.0, mechanism=mechanism, random_state=0).fit(X[:10_000], y[:10_000])
        lost[mechanism] = best - model.score(X[10_000:], y[10_000:])
    assert lost["sufficient-statistics"] > 0.1
    assert lost["auto"] < 0.5 * lost["sufficient-statistics"]
