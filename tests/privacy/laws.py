"""The test that noise follows a law, and that the same noise 30% larger or smaller does not."""

from __future__ import annotations

import math

from scipy import stats

from confide.privacy.budgets import ZCDP

ACCEPT, REJECT = 1e-3, 1e-8


def check_law(values, law):
    """Kolmogorov-Smirnov: the law is accepted, and rejected where the values are 30% too small or too large."""
    assert stats.kstest(values, law).pvalue > ACCEPT
    for wrong in (0.7, 1 / 0.7):
        assert stats.kstest(values * wrong, law).pvalue < REJECT


def mu_of(budget):
    """The largest shift over deviation of Gaussian noise within a budget, by halving an interval of the exact formula."""
    if isinstance(budget, ZCDP):
        return math.sqrt(2.0 * budget.rho)
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        cost = stats.norm.cdf(middle / 2 - budget.epsilon / middle)
        cost -= math.exp(budget.epsilon) * stats.norm.cdf(-middle / 2 - budget.epsilon / middle)
        low, high = (middle, high) if cost <= budget.delta else (low, middle)
    return low
