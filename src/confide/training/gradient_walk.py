"""How noisy gradients lead to weights: gradient descent with momentum. None of it is trusted.

A privacy proof needs that a step uses noisy sums and public facts alone (`confide.privacy.gradient`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.types import Array, Weights


@dataclass(frozen=True, slots=True)
class HeavyBall:
    """Gradient descent with momentum. What is released is the mean of the points of the second half.

    Attributes
    ----------
    n_steps : number T of noisy sums
    step : length of a step, for sums of losses
    momentum : the largest part of a step that the next one repeats; at first it is (t + 1) / (t + 3) after t steps
    l2 : ridge of the sum form
    prior : the public weights at which the walk begins and towards which the ridge pulls; empty for zeros
    """

    n_steps: int
    step: float
    momentum: float
    l2: float
    prior: tuple[float, ...] = ()

    def __str__(self) -> str:
        return (
            f"heavy ball with momentum {self.momentum:g} and steps of {self.step:.4g} times the sum; the weights are the "
            f"mean of the points of the second half"
        )

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        return {"kind": "heavy-ball", "step": self.step, "momentum": self.momentum}

    def start(self, n_weights: int, n_problems: int = 1) -> HeavyBallWalk:
        """The walk before the first sum, at the prior. A forecast makes several walks at once."""
        nothing = np.zeros((n_problems, n_weights))
        return HeavyBallWalk(self, 0, nothing + self.pull, nothing, nothing)

    @property
    def pull(self) -> Array:
        """(D,), or 0: the weights towards which the ridge pulls."""
        return np.array(self.prior or 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class HeavyBallWalk:
    """Where noisy sums have led so far.

    Attributes
    ----------
    steps : how to go on
    n_done : number of sums so far
    point : (1, D), where the next sum is made
    velocity : (1, D), the last step
    total : (1, D), sum of the points of the second half
    """

    steps: HeavyBall
    n_done: int
    point: Weights
    velocity: Weights
    total: Weights

    @property
    def weights(self) -> Weights:
        """(1, D): the mean of the points of the second half."""
        counted = self.n_done - self.steps.n_steps // 2
        return self.total / counted if counted > 0 else self.point

    def after(self, noisy: Array) -> HeavyBallWalk:
        """The walk after one more noisy sum of slopes (1, D)."""
        steps = self.steps
        momentum = min(steps.momentum, (self.n_done + 1.0) / (self.n_done + 3.0))
        velocity = momentum * self.velocity - steps.step * (noisy + steps.l2 * (self.point - steps.pull))
        point = self.point + velocity
        total = self.total + point if self.n_done >= steps.n_steps // 2 else self.total
        return HeavyBallWalk(steps, self.n_done + 1, point, velocity, total)
