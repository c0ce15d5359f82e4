"""The test that noise follows a law, and that the same noise 30% larger or smaller does not."""

from __future__ import annotations

from scipy import stats

ACCEPT, REJECT = 1e-3, 1e-8


def check_law(values, law):
    """Kolmogorov-Smirnov: the law is accepted, and rejected where the values are 30% too small or too large."""
    assert stats.kstest(values, law).pvalue > ACCEPT
    for wrong in (0.7, 1 / 0.7):
        assert stats.kstest(values * wrong, law).pvalue < REJECT
