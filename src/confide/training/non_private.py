"""No privacy at all: the same problem without noise, for comparison. Its guarantee is void and says so."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from confide.data.source import RowSource
from confide.erm.hinges import Hinge, HuberHinge
from confide.errors import ParameterError
from confide.privacy.budgets import Budget
from confide.privacy.mechanism import ANOTHERS, Plan, Problem, Release, made_by, zero_weights
from confide.privacy.noise import Entropy
from confide.solvers.solver import Solver

_JOINT = HuberHinge(2.0**-20)
"""For the hinge: a mean loss at most 2^-22 larger, and a minimiser that Newton's method finds."""


@dataclass(frozen=True, slots=True)
class NonPrivate:
    """Minimises as exactly as doubles allow and releases the minimiser. See `Mechanism`."""

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        if budget.is_private:
            raise ParameterError("a finite budget needs a mechanism that adds noise.")
        if isinstance(problem.loss, Hinge):
            problem = replace(problem, loss=_JOINT)
        return Plan(
            problem, budget, "none", problem.l2, None, tolerance=0.0, radius=0.0, lattice=None, event=problem.event(budget)
        )

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        if not made_by(plan, Plan, "none") or plan.budget.is_private:
            raise ParameterError(ANOTHERS)
        problem = plan.problem
        objective = problem.objective(source, plan.l2, zero_weights(problem))
        solution = solver.solve(objective.lent(), zero_weights(problem), tolerance=0.0)
        if not np.isfinite(solution.gradient_norm).all():
            raise ParameterError("rows this large overflow without a row norm; scale them, or give a finite row_norm.")
        return Release(solution.weights, plan)
