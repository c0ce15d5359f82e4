"""Objective perturbation. Proof: proofs/objective_perturbation.md (Laplace noise) and proofs/gaussian.md (Gaussian noise).

Chaudhuri, Monteleoni and Sarwate (2011), algorithm 2. Four things differ: the term for the Jacobian is smaller, the noise
has the shape that the columns allow, a seal covers the inexact minimiser, and the slack branch leaves at least half the
budget to the noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

from confide.accounting.events import PureMechanism
from confide.data.source import RowSource
from confide.errors import InsufficientRegularisation, ParameterError
from confide.expected_noise import first_small_seal
from confide.privacy.budgets import Budget, PureDP, budget_of_row, pure_epsilon
from confide.privacy.certificate import certified_minimiser, insufficient
from confide.privacy.lattice import LatticeLaplace, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Noise, Plan, Problem, Release, made_by
from confide.privacy.noise import Entropy
from confide.privacy.objective_gaussian import gaussian_plan
from confide.privacy.seal import tolerance_and_radius
from confide.privacy.sensitivity import calibrated_objective
from confide.privacy.shapes import Shape
from confide.solvers.solver import Solver

_LAPLACE_SHARES = (1e-3, 3e-3, 1e-2, 5e-2, 0.25)
"""Shares of epsilon that the seal may take. The plan takes the first share at which the seal's noise is small."""
_GAUSSIAN_SHARES = (1e-2, 5e-2, 0.14)
"""Ratios of the seal's whitened sensitivity to that of the objective. The last one adds 1% to the Gaussian noise."""
_DOWN = 1.0 - 2.0**-40


@dataclass(frozen=True, slots=True)
class ObjectivePerturbation:
    """Adds a random linear term to the objective, minimises it, and seals the minimiser. See `Mechanism`.

    Parameters
    ----------
    largest_seal_share : the largest part of the budget that the seal may take; with Gaussian noise it takes less than 0.01
    """

    largest_seal_share: float = 1.0

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """The plan with the least noise in the objective among the laws, each in its best shape."""
        # All shapes of one bound on rows have the same L2 norm. So their calibrations agree, and their noise can be
        # compared.
        best = min(problem.shapes, key=lambda shape: shape.laplace_norm(1.0))
        # The account of Laplace noise knows no other releases.
        alone = problem.beside_mu == 0.0
        plans = [first_small_seal(partial(_laplace_plan, problem, budget, best), _LAPLACE_SHARES)] if alone else []
        if not isinstance(budget, PureDP):
            best = min(problem.shapes, key=lambda shape: shape.gaussian_norm(1.0))
            plans.append(first_small_seal(partial(gaussian_plan, problem, budget, best), _GAUSSIAN_SHARES))
        possible = [plan for plan in plans if plan is not None and plan.seal_share <= self.largest_seal_share]
        if not possible:
            raise InsufficientRegularisation(insufficient(problem.n_rows_high, has_prior=any(problem.prior)))
        return min(possible, key=lambda plan: plan.noise.norm if plan.noise else math.inf)

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        if not made_by(plan, Plan, "objective") or plan.noise is None or plan.lattice is None:
            raise ParameterError(ANOTHERS)
        problem = plan.problem
        objective = problem.objective(source, plan.l2, plan.noise.draw(entropy))
        weights = certified_minimiser(objective, solver, plan.tolerance, problem.rounding(plan.l2))
        return Release(plan.lattice.release(weights, entropy), plan)


def _laplace_plan(problem: Problem, budget: Budget, shape: Shape, share: float) -> Plan:
    epsilon = pure_epsilon(budget_of_row(budget, problem.rows_per_person))
    # Theorem 7: where weights have ridges of their own, a row bends the objective less beside the stronger ones.
    longest = getattr(problem, "curved_norm", shape.l2_norm)
    rate, l2 = calibrated_objective(epsilon * (1.0 - share), problem.loss_bounds, longest, problem.l2, problem.neighbours)
    noise = Noise(shape, "laplace", rate)
    tolerance, radius = tolerance_and_radius(problem, budget, l2, noise)
    exponent = lattice_exponent(2.0 * radius, problem.n_weights)
    seal = LatticeLaplace(problem.n_weights, exponent, 2.0 * radius, epsilon * share * _DOWN)
    event = problem.event(budget, PureMechanism(epsilon))
    return Plan(problem, budget, "objective", l2, noise, tolerance, radius, seal, event, share)
