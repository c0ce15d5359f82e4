"""The attack that needs an estimator and nothing else: worst neighbours, and releases from both."""

from __future__ import annotations

from typing import Any

from confide.audit.attacks import attack, claim_of
from confide.audit.neighbours import worst_neighbours
from confide.audit.results import AuditResult
from confide.privacy.budgets import Budget


def worst_pair(
    estimator: Any,
    *,
    n_fits: int = 2000,
    n_rows: int | None = None,
    budget: Budget | float | None = None,
    confidence: float = 0.99,
) -> AuditResult:
    """Fit an estimator many times to either of its worst neighbours, and bound from below what was spent.

    Parameters
    ----------
    estimator : estimator
        One of this package, or any classifier or regressor with `fit(X, y)`. It is copied and stays as it is. Copies of ours
        get fresh noise and charge no ledger.
    n_fits : int, default 2000
        Number of fits to either data set, at least 40.
    n_rows : int or None
        Number of rows, see `worst_neighbours`.
    budget : budget, float or None
        What is claimed; None takes the estimator's own.
    confidence : float in (0, 1), default 0.99
        The lower bound is too high with at most probability 1 - confidence.

    Returns
    -------
    AuditResult

    Raises
    ------
    ParameterError
        If an argument is outside its range, or no fit with these parameters is possible.

    Notes
    -----
    Guarantee: none. The rows are made up from public facts, and no row of a user is read. An attack can refute a claim of
    privacy and can never prove one.

    Source: Jagielski, Ullman and Oprea (2020); Nasr et al. (2021).

    Examples
    --------
    >>> import confide
    >>> found = confide.audit.worst_pair(confide.LogisticRegression(1.0, alpha=1.0), n_fits=100)
    >>> found.refuted
    False
    """
    pair = worst_neighbours(estimator, n_rows)
    return attack(
        estimator,
        pair.first,
        pair.second,
        budget=claim_of(estimator, budget),
        n_releases=n_fits,
        statistic=pair.statistic,
        confidence=confidence,
        name=f"{type(estimator).__name__}, {pair.name}",
    )
