"""Small training problems for tests of mechanisms."""

from __future__ import annotations

import numpy as np

from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.losses import LogisticLoss
from confide.erm.row_bounds import BallBound
from confide.privacy.guarantee import Neighbours
from confide.privacy.mechanism import Problem


def problem(n=20, d=2, *, loss=None, row_norm=1.0, intercept=0.0, l2=30.0, neighbours=Neighbours.REPLACE_ONE, high=None):
    """Public facts of a small problem; `high` makes the number of rows private, between n and high."""
    return Problem(
        loss=loss or LogisticLoss(),
        row_bound=BallBound(row_norm),
        intercept=intercept,
        n_features=d,
        n_rows_low=n,
        n_rows_high=high or n,
        summation_depth=summation_depth(high or n, d),
        l2=l2,
        neighbours=neighbours,
    )


def source(n=20, d=2, seed=0, length=1.0):
    """Rows of about this length and fair labels."""
    rng = np.random.default_rng(seed)
    return MemorySource(ArrayBlocks(rng.normal(size=(n, d)) * length), rng.choice([-1, 1], size=n).astype(np.int8))
