"""Fits without privacy: the same problem without noise, for comparison. Their guarantee is void and says so."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from confide.data.source import RowSource
from confide.erm.joints import has_kinks, unit_of_scores, with_joint
from confide.errors import ParameterError
from confide.privacy.budgets import Budget
from confide.privacy.mechanism import ANOTHERS, Plan, Problem, Release, made_by, zero_weights
from confide.privacy.noise import Entropy
from confide.solvers.solver import Solver

_NARROW_JOINT = 2.0**-20
"""Half the width of the joint that takes the place of a kink. The mean loss of a hinge is at most 2^-22 larger with it, and
Newton's method finds its minimiser."""


@dataclass(frozen=True, slots=True)
class NonPrivate:
    """Minimises as exactly as double precision allows, and releases the minimiser. See `Mechanism`."""

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        if budget.is_private:
            raise ParameterError("a finite budget needs a mechanism that adds noise.")
        if has_kinks(problem.loss):
            problem = replace(problem, loss=with_joint(problem.loss, _NARROW_JOINT * unit_of_scores(problem.loss)))
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
            raise ParameterError("sums over the rows overflow. Scale rows and targets, or give a finite row_norm.")
        return Release(solution.weights, plan)
