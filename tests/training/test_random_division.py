"""Rows divided at random: parts of the sizes asked for, uniform among all divisions."""

from __future__ import annotations

from collections import Counter

import numpy as np
from scipy.stats import chisquare

from confide.privacy.noise import Entropy
from confide.training.random_division import divided


def test_the_split_is_drawn_for_every_fit():
    """Every position in one part, of the size asked for; uniform: each of 24 orders of 4 rows as often, by chi-square."""
    sizes = (7, 6, 6, 5)
    parts = divided(sizes, Entropy.fresh())
    assert [len(part) for part in parts] == list(sizes)
    assert sorted(np.concatenate(parts)) == list(range(24))
    assert not np.array_equal(np.concatenate(parts), np.concatenate(divided(sizes, Entropy.fresh())))
    entropy = Entropy.seeded(2)
    orders = Counter(tuple(np.concatenate(divided((1, 2, 1), entropy)).tolist()) for _ in range(4800))
    assert len(orders) == 24
    assert chisquare(list(orders.values())).pvalue > 1e-3
