"""What a solver owes. Solvers are not trusted: the certificate checks a copy of their answer by sums out of their reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from confide.solvers.objectives import Objectives
from confide.types import Array, Weights


@dataclass(frozen=True, slots=True)
class Solution:
    """A solver's answer. Data: only its certified and sealed form leaves the package."""

    weights: Weights
    """(k, D)"""
    gradient_norm: Array
    """(k,): the solver's own claim."""


class Solver(Protocol):
    """Finds the minimisers of k objectives.

    The certificate refuses a wrong answer, so it is never released. But a refusal that the rows can provoke would tell of
    them. `NewtonThenFallback` makes it impossible: it believes no claim, and it ends with a method that has a theorem.
    """

    def solve(self, objective: Objectives, start: Weights, tolerance: float) -> Solution:
        """Weights (k, D) whose gradient norms are at most `tolerance`, or the best found.

        `start` is (k, D) and is not written to. A tolerance of 0 asks for the best that doubles allow.
        """
