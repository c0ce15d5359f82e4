"""Made-up problems that tests of solvers share."""

from __future__ import annotations

import numpy as np

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import HuberHinge, LogisticLoss, SmoothHinge
from confide.erm.objective import Objective, Solution
from confide.erm.row_bounds import BallBound
from confide.erm.source import SummableRows
from confide.privacy.certificate import GradientRounding, solver_tolerance

LOSSES = [LogisticLoss(), HuberHinge(0.5), SmoothHinge(0.5)]


class CountingSource(SummableRows):
    """A source that keeps the order of each pass: 1 for gradients, 2 for Hessians."""

    def __init__(self, source):
        self.source, self.orders = source, []

    @property
    def n_rows(self):
        """That of the source behind it."""
        return self.source.n_rows

    @property
    def n_features(self):
        """That of the source behind it."""
        return self.source.n_features

    def sum_over_rows(self, row_sum, weights):
        """Take note of the order, and sum over the source behind it."""
        self.orders.append(row_sum.order)
        return self.source.sum_over_rows(row_sum, weights)

    def sample(self, n_rows):
        """A sample of the source behind it, passes over which are not counted."""
        return self.source.sample(n_rows)


def objective(loss, n=400, d=6, l2=0.5, k=1, noise=5.0, seed=0, scale=1.0):
    """k perturbed objectives over random rows of norm at most 1."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d)) * scale
    source = MemorySource(ArrayBlocks(rows), rng.choice([-1, 1], size=n).astype(np.int8))
    return Objective(CountingSource(source), loss, BallBound(1.0), 1.0, l2, rng.normal(size=(k, d + 1)) * noise)


def planned_tolerance(problems, noise_bound):
    """The tolerance that a plan would hand to the solver."""
    loss, n, d = problems.loss.constants.weighted(problems.largest_weight), problems.source.n_rows, problems.linear.shape[1]
    rounding = GradientRounding(loss, problems.row_norm, n, d, n + 1, problems.l2)
    return solver_tolerance(8.0 * rounding.worst(noise_bound))


class Idle:
    """A first method that does nothing, so that other methods have all the work."""

    def solve(self, objective, start, tolerance):
        """Return weights and norms of NaN."""
        return Solution(start + np.nan, np.full(len(start), np.nan))
