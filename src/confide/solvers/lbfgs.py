"""Limited-memory BFGS: for so many weights that no Hessian can be formed. One pass over the rows for each trial point."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from confide.erm.objective import Evaluation, Objective
from confide.solvers.solver import Solution
from confide.types import Array, Weights

_SUFFICIENT_DECREASE = 1e-4
_VALUE_ROUNDING = 2.0**-46
"""Relative error of a summed value: differences below it say nothing."""


class _Curvature:
    """The last few steps and what they did to the gradient: an approximation of the inverse Hessian."""

    def __init__(self, most_pairs: int) -> None:
        self.pairs: deque[tuple[Array, Array, float]] = deque(maxlen=most_pairs)

    def learn(self, step: Array, change: Array) -> None:
        product = float(step @ change)
        # Positive for a strongly convex objective; below rounding it would teach nonsense.
        if product > 1e-14 * float(np.linalg.norm(step)) * float(np.linalg.norm(change)):
            self.pairs.append((step, change, 1.0 / product))

    def direction(self, gradient: Array) -> Array:
        """Minus the approximate inverse Hessian times the gradient: the two loops of Nocedal (1980)."""
        direction, shares = -gradient, []
        for step, change, inverse in reversed(self.pairs):
            shares.append(inverse * float(step @ direction))
            direction = direction - shares[-1] * change
        if self.pairs:
            _, change, inverse = self.pairs[-1]
            direction = direction / (inverse * float(change @ change))
        for (step, change, inverse), share in zip(self.pairs, reversed(shares), strict=True):
            direction = direction + (share - inverse * float(change @ direction)) * step
        return direction


@dataclass(frozen=True, slots=True)
class LimitedMemory:
    """L-BFGS with backtracking, one problem after the other. Without a theorem, as `Newton` is."""

    most_passes: int = 2000
    most_pairs: int = 10
    most_blind_passes: int = 20
    """Passes without a smaller gradient where values no longer tell, before a problem counts as at its floor."""

    def solve(self, objective: Objective, start: Weights, tolerance: float) -> Solution:
        solved = [self._solve_one(objective.restrict(np.array([j])), start[[j]], tolerance) for j in range(len(start))]
        return Solution(np.vstack([weights for weights, _ in solved]), np.array([norm for _, norm in solved]))

    def _solve_one(self, objective: Objective, start: Weights, tolerance: float) -> tuple[Weights, float]:
        weights, state = start.copy(), objective.evaluate(start, order=1)
        best, least = weights, _norm(state)
        curvature, blind_passes = _Curvature(self.most_pairs), 0
        direction, length = -state.gradient[0], 1.0 / objective.smoothness
        for _ in range(self.most_passes):
            if not least > tolerance or blind_passes >= self.most_blind_passes:
                break
            trial = weights + length * direction
            trial_state = objective.evaluate(trial, order=1)
            slope = float(state.gradient[0] @ direction)
            rounding = _VALUE_ROUNDING * abs(float(state.value[0]))
            blind = -length * slope <= rounding
            bound = state.value[0] + _SUFFICIENT_DECREASE * length * slope + rounding
            if not trial_state.value[0] <= bound:
                # Where the parabola through the two slopes is least, and never less than a tenth.
                new_slope = float(trial_state.gradient[0] @ direction)
                length *= min(0.5, max(0.1, slope / (slope - new_slope))) if new_slope > 0.0 else 0.5
                if length < 2.0**-60:
                    break
                continue
            curvature.learn((trial - weights)[0], (trial_state.gradient - state.gradient)[0])
            weights, state = trial, trial_state
            norm = _norm(state)
            blind_passes = blind_passes + 1 if blind and not norm < least else 0
            if norm < least:
                best, least = weights, norm
            direction, length = curvature.direction(state.gradient[0]), 1.0
            if not float(state.gradient[0] @ direction) < 0.0:
                curvature = _Curvature(self.most_pairs)
                direction, length = -state.gradient[0], 1.0 / objective.smoothness
        return best, least


def _norm(state: Evaluation) -> float:
    return float(np.linalg.norm(state.gradient))
