"""Statistics that are learned from releases."""

from __future__ import annotations

import numpy as np
import pytest

from confide.audit.releases import learned


def gap(one, other):
    return float((one[:, None] > other).mean())


@pytest.mark.parametrize("law", ["shifted", "wider", "one value"])
def test_what_differs_is_learned(law):
    """A shift by a linear rule, a width by a quadratic one or trees, an atom by trees."""
    rng = np.random.default_rng(0)
    one, other, new, newer = rng.normal(size=(4, 200, 2))
    if law == "shifted":
        one, new = one + np.array([1.5, 0.0]), new + np.array([1.5, 0.0])
    elif law == "wider":
        one, new = 4.0 * one, 4.0 * new
    else:
        one[::2, 0] = new[::2, 0] = 0.25
    statistic, _, _, name = learned(one, other, gap)
    assert name.startswith("learned (")
    assert gap(statistic(new), statistic(newer)) > 0.7


def test_scores_come_from_classifiers_that_others_taught():
    """Noise alone is ranked no better than by chance; a classifier that scored its own teachers would excel."""
    one, other = np.random.default_rng(1).normal(size=(2, 200, 8))
    _, first, second, _ = learned(one, other, lambda a, b: -abs(gap(a, b) - 0.5))
    assert abs(gap(first, second) - 0.5) < 0.1
