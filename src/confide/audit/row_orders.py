"""Attacks on the order of rows: a table is sorted by what it holds, so one row may move all others.

The attacker knows how the table is sorted. If a position decides anything, such as which rows are held out, then replacing
one row changes far more than one row's part.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from confide.audit.attacks import attack
from confide.audit.neighbours import Pair
from confide.audit.results import AuditResult
from confide.errors import ParameterError
from confide.privacy.budgets import Budget


def turned_neighbours(X: Any, y: Any) -> Pair:
    """A table and a neighbour in reverse order: a table may be sorted downwards where one row says so.

    Parameters
    ----------
    X : array (n, d), or frame
    y : array (n,)

    Returns
    -------
    Pair
        The second data set has the first row changed to a copy of the last, and all rows in reverse order.

    Raises
    ------
    ParameterError
        If there are fewer than two rows.
    """
    targets = np.asarray(y)
    if len(targets) < 2:
        raise ParameterError("an order needs at least two rows.")
    places = np.arange(len(targets))
    places[0] = places[-1]
    places = places[::-1]
    rows = X.iloc[places].reset_index(drop=True) if hasattr(X, "iloc") else np.asarray(X)[places]
    return Pair("the order of all rows, which one row decides", (X, y), (rows, targets[places]))


def order(
    release: Any,
    X: Any,
    y: Any,
    *,
    budget: Budget | float | None = None,
    n_releases: int = 500,
    confidence: float = 0.99,
) -> AuditResult:
    """Attack the order of rows: release from a table, and from a neighbour in which all rows stand in reverse order.

    Parameters
    ----------
    release : callable or estimator
        As for `attack`.
    X, y : (n, d) and (n,)
        Made-up rows, sorted by what the attacker is to learn: for instance all rows of one class first.
    budget : budget, float or None
        What is claimed; None takes the estimator's own.
    n_releases : int, default 500
        Number of releases from either table, at least 40.
    confidence : float in (0, 1), default 0.99
        The lower bound is too high with at most probability 1 - confidence.

    Returns
    -------
    AuditResult

    Raises
    ------
    ParameterError
        If an argument is outside its range.

    Notes
    -----
    Guarantee: none; as for `attack`. Where no position decides anything, the two tables differ in one row alone.

    Source: the threat model of this package, on tables that are sorted by a column.
    """
    pair = turned_neighbours(X, y)
    name = f"{getattr(release, '__name__', type(release).__name__)}, {pair.name}"
    return attack(release, pair.first, pair.second, budget=budget, n_releases=n_releases, confidence=confidence, name=name)
