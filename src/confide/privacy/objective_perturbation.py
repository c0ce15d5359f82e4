"""Objective perturbation under pure differential privacy. Proof: proofs/objective_perturbation.md.

Chaudhuri, Monteleoni and Sarwate (2011), algorithm 2, with the refined Jacobian term, a seal for the inexact minimiser,
and a slack branch that never leaves less than half the budget to the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from confide.data.source import RowSource
from confide.errors import InsufficientRegularisation, ParameterError
from confide.privacy.certificate import INSUFFICIENT, certify, planned_tolerance, solver_tolerance
from confide.privacy.guarantee import PureDP
from confide.privacy.mechanism import Plan, Problem, Release, zero_weights
from confide.privacy.noise import RELATIVE_ERROR, Entropy, spherical_laplace_bound
from confide.privacy.seal import Seal
from confide.privacy.sensitivity import calibrated_objective, gradient_shift
from confide.solvers.solver import Solver

_LEAST_SEAL_SHARE, _LARGEST_SEAL_SHARE = 1e-3, 0.25
_LARGEST_SEAL_NOISE = 0.1
"""Largest expected norm of the seal's noise over the largest displacement by the main noise."""


@dataclass(frozen=True, slots=True)
class ObjectivePerturbation:
    """Adds a random linear term to the objective, minimises, and seals. See `Mechanism`."""

    def plan(self, problem: Problem, budget: PureDP) -> Plan:
        shift = gradient_shift(problem.loss.lipschitz, problem.row_norm, problem.neighbours)
        # The seal's share follows from a first calibration; whatever it is, the second one decides all that the proof needs.
        # At share q the seal's noise over the main noise is 2 (1 - q) radius l2 / (shift q): the sum is least near the root.
        _, _, radius, l2 = self._calibrate(problem, budget, _LARGEST_SEAL_SHARE)
        share = min(max(math.sqrt(2.0 * radius * l2 / shift), _LEAST_SEAL_SHARE), _LARGEST_SEAL_SHARE)
        rate, tolerance, radius, l2 = self._calibrate(problem, budget, share)
        seal = Seal(epsilon=budget.epsilon * share, radius=radius)
        plan = Plan(problem, budget, "objective", l2, rate, tolerance, seal)
        if not plan.expected_seal_norm <= _LARGEST_SEAL_NOISE * plan.expected_noise_norm / l2:
            raise InsufficientRegularisation(INSUFFICIENT.format(problem.n_rows_high))
        return plan

    def _calibrate(self, problem: Problem, budget: PureDP, seal_share: float) -> tuple[float, float, float, float]:
        """Rate, tolerance, radius of the minimiser and total ridge when the seal takes this share of the budget."""
        epsilon = budget.epsilon * (1.0 - seal_share)
        rate, l2 = calibrated_objective(epsilon, problem.loss, problem.row_norm, problem.l2, problem.neighbours)
        noise_bound = spherical_laplace_bound(problem.n_weights, rate, budget.epsilon)
        tolerance = planned_tolerance(problem.rounding(l2), noise_bound)
        # The computed noise differs from a draw of the exact law by at most a relative error, which moves the exact
        # minimiser by that much over l2.
        radius = (tolerance + RELATIVE_ERROR * noise_bound) / l2 * (1.0 + 2.0**-40)
        return rate, tolerance, radius, l2

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        problem = plan.problem
        start = zero_weights(problem)
        if plan.seal is None:
            raise ParameterError("this plan was made by another mechanism.")
        noise = entropy.spherical_laplace(1, problem.n_weights, plan.noise_rate)
        objective = problem.objective(source, plan.l2, noise)
        solution = solver.solve(objective, start, solver_tolerance(plan.tolerance))
        certify(objective, solution.weights, plan.tolerance, problem.rounding(plan.l2))
        return Release(plan.seal.apply(solution.weights, entropy), plan)
