"""A few cases in place of a whole grid: every pair of values of two factors stands together in at least one of them.

A fault that shows itself at one value of a factor, or where two values meet, fails a test as it does in the whole grid. A
whole grid is for what depends on three factors at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product


def pairs_of(*factors: Sequence[object]) -> list[tuple[object, ...]]:
    """Cases, one value of each factor, that hold every pair: chosen greedily, the same ones each time."""
    places = [range(len(factor)) for factor in factors]
    grid = {case: set(combinations(enumerate(case), 2)) for case in product(*places)}
    missing, chosen = set().union(*grid.values()), []
    while missing:
        chosen.append(max(grid, key=lambda case: len(grid[case] & missing)))
        missing -= grid[chosen[-1]]
    return [tuple(factor[i] for factor, i in zip(factors, case, strict=True)) for case in chosen]
