"""Noisy tables of counts that agree with each other: no count is negative, and all totals are the same.

Post-processing: everything here is a function of released numbers and of public facts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from confide.types import Array

_ROUNDS = 500
_CLOSE = 1e-9
_LEAST_CELL = 1e-3
"""In rows: what a cell of a cross table has at least before it is scaled to its margins, so that every margin can be met."""


def with_total(counts: Array, total: float) -> Array:
    """The nearest counts (k,) that are not negative and have this total, a number of at least 0.

    The projection onto a simplex: each count is lowered or raised by the same number, and none falls below 0.
    """
    falling = np.sort(counts)[::-1]
    excess = (np.cumsum(falling) - total) / np.arange(1, counts.size + 1)
    kept = np.flatnonzero(falling - excess > 0.0)
    # With a total of 0 no count is kept.
    level = excess[kept[-1]] if kept.size else falling[0]
    found: Array = np.maximum(counts - level, 0.0)
    return found


def common_total(tables: Sequence[Array]) -> float:
    """The number of rows, from tables in which each row lies in one cell; the fewer cells, the less noise in a total."""
    weights = np.array([1.0 / table.size for table in tables])
    totals = np.array([table.sum() for table in tables])
    return max(0.0, float(weights @ totals / weights.sum()))


def with_margins(counts: Array, rows: Array, columns: Array) -> Array:
    """A cross table (r, c) whose margins are these; `rows` and `columns` are not negative and have one total.

    Iterative proportional fitting (Deming and Stephan 1940), from the counts without negative ones.
    """
    found = np.maximum(counts, _LEAST_CELL)
    for _ in range(_ROUNDS):
        found = found * _shares(rows, found.sum(axis=1))[:, None]
        found = found * _shares(columns, found.sum(axis=0))[None, :]
        if np.abs(found.sum(axis=1) - rows).max() <= _CLOSE * max(1.0, rows.sum()):
            break
    return np.asarray(found)


def _shares(wanted: Array, sums: Array) -> Array:
    return np.divide(wanted, sums, out=np.zeros_like(wanted), where=sums > 0.0)
