"""A few cases in place of a whole grid: every pair of values of two factors stands together in at least one of them.

A fault that shows itself at one value of a factor, or where two values meet, fails a test as it does in the whole grid. A
whole grid is for what depends on three factors at a time.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations, product

import pytest


def pairs_of(**factors: Collection[object]) -> pytest.MarkDecorator:
    """A test of the cases, one value of each factor, that hold every pair: chosen greedily, the same ones each time."""
    places = product(*(range(len(each)) for each in factors.values()))
    grid = {case: set(combinations(enumerate(case), 2)) for case in places}
    missing, chosen = set().union(*grid.values()), []
    while missing:
        chosen.append(max(grid, key=lambda case: len(grid[case] & missing)))
        missing -= grid[chosen[-1]]
    values = [list(each) for each in factors.values()]
    cases = [tuple(of_factor[i] for of_factor, i in zip(values, case, strict=True)) for case in chosen]
    return pytest.mark.parametrize(tuple(factors), cases, ids=_name)


def _name(value: object) -> str | None:
    """What a test is called by: the name of a loss, or what pytest takes."""
    constants = getattr(value, "constants", None)
    return constants.name if constants else None
