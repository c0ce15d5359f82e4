"""How far a certified minimiser may lie from the exact one: what the seal has to cover. Proof: proofs/seal.md."""

from __future__ import annotations

from confide.privacy.budgets import Budget
from confide.privacy.certificate import planned_tolerance
from confide.privacy.mechanism import Noise, Problem, log_failure

_UP = 1.0 + 2.0**-40


def tolerance_and_radius(problem: Problem, budget: Budget, l2: float, noise: Noise) -> tuple[float, float]:
    """The tolerance, and the largest distance of certified weights from the exact minimiser for noise of the exact law."""
    failure, rounding = log_failure(budget, problem), problem.rounding(l2)
    tolerance = planned_tolerance(rounding, noise.bound(failure))
    error = noise.error(failure) + rounding.linear_error(noise.bound(failure))
    return tolerance, (tolerance + error) / l2 * _UP
