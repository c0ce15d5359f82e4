"""Descents for tests of noisy gradients: all sums at one point, and what is released is their mean."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from confide.privacy.gradient import Descent, NoisyGradients


@dataclass(frozen=True)
class Mean:
    """All sums are made at one point, and the weights are the mean of the noisy sums: all that they tell of the rows."""

    at: tuple[float, ...] = ()
    seen: list[np.ndarray] = field(default_factory=list, compare=False)
    """Noisy sums of all walks, one after another."""

    def start(self, n_weights):
        """The walk before the first sum."""
        return MeanWalk(self, np.array([self.at or (0.0,) * n_weights]), 0, np.zeros((1, n_weights)))

    def to_dict(self):
        """A JSON form."""
        return {"kind": "mean"}


@dataclass(frozen=True)
class MeanWalk:
    """The walk of a `Mean`."""

    steps: Mean
    point: np.ndarray
    n_done: int
    total: np.ndarray

    @property
    def weights(self):
        """The mean of the noisy sums."""
        return self.total / max(1, self.n_done)

    def after(self, noisy):
        """One sum more."""
        self.steps.seen.append(noisy.copy())
        return MeanWalk(self.steps, self.point, self.n_done + 1, self.total + noisy)


def mean_of_sums(n_steps=4, limit=0.5, radius=4.0, at=(), steps=None):
    """The mechanism that releases the mean of noisy sums at one point."""
    descent = Descent(n_steps, limit, radius, steps or Mean(at))
    return NoisyGradients(lambda problem, _: (problem, descent))
