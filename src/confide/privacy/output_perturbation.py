"""Output perturbation under pure differential privacy. Proof: proofs/output_perturbation.md.

Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1; the certified distance to the exact minimiser widens the
sensitivity.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from confide.data.source import RowSource
from confide.errors import InsufficientRegularisation, ParameterError
from confide.privacy.certificate import INSUFFICIENT, certify, planned_tolerance, solver_tolerance
from confide.privacy.guarantee import PureDP
from confide.privacy.mechanism import Plan, Problem, Release, zero_weights
from confide.privacy.noise import Entropy
from confide.privacy.sensitivity import output_sensitivity
from confide.solvers.solver import Solver

_LARGEST_INFLATION = 0.1


@dataclass(frozen=True, slots=True)
class OutputPerturbation:
    """Minimises and adds spherical Laplace noise to the weights. See `Mechanism`."""

    def plan(self, problem: Problem, budget: PureDP) -> Plan:
        if not math.isfinite(problem.loss.smoothness):
            raise ParameterError(f"{problem.loss.name} is not smooth: no certificate for its minimiser is available.")
        tolerance = planned_tolerance(problem.rounding(problem.l2), noise_bound=0.0)
        exact = output_sensitivity(problem.loss.lipschitz, problem.row_norm, problem.l2, problem.neighbours)
        inexact = 2.0 * tolerance / problem.l2 * (1.0 + 2.0**-40)
        if not inexact <= _LARGEST_INFLATION * exact:
            raise InsufficientRegularisation(INSUFFICIENT.format(problem.n_rows_high))
        rate = budget.epsilon / (exact + inexact) * (1.0 - 2.0**-40)
        return Plan(problem, budget, "output", problem.l2, rate, tolerance, seal=None)

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        problem = plan.problem
        objective = problem.objective(source, plan.l2, zero_weights(problem))
        solution = solver.solve(objective, zero_weights(problem), solver_tolerance(plan.tolerance))
        certify(objective, solution.weights, plan.tolerance, problem.rounding(plan.l2))
        noise = entropy.spherical_laplace(1, problem.n_weights, plan.noise_rate)
        return Release(solution.weights + noise, plan)
