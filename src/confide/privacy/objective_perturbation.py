"""Objective perturbation. Proof: proofs/objective_perturbation.md (Laplace noise) and proofs/gaussian.md (Gaussian noise).

Chaudhuri, Monteleoni and Sarwate (2011), algorithm 2, with the refined Jacobian term, noise shaped by the columns, a seal
for the inexact minimiser, and a slack branch that never leaves less than half the budget to the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from confide.accounting.events import PureMechanism
from confide.data.source import RowSource
from confide.errors import InsufficientRegularisation, ParameterError
from confide.expected_noise import first_small_seal
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP, budget_of_row, pure_epsilon
from confide.privacy.certificate import INSUFFICIENT, certified_minimiser, planned_tolerance
from confide.privacy.gaussian import GaussianObjective, concentrated_rho, largest_mu
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Noise, Plan, Problem, Release, log_failure, made_by
from confide.privacy.noise import Entropy
from confide.privacy.sensitivity import calibrated_objective, curvature_cost, gradient_shift, least_l2
from confide.privacy.shapes import Shape
from confide.solvers.solver import Solver

_LAPLACE_SHARES = (1e-3, 3e-3, 1e-2, 5e-2, 0.25)
"""Shares of epsilon that the seal may take; the first at which it is small is taken."""
_GAUSSIAN_SHARES = (1e-2, 5e-2, 0.14)
"""The seal's whitened sensitivity over the objective's. The last adds 1% to the Gaussian noise."""
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class ObjectivePerturbation:
    """Adds a random linear term to the objective, minimises, and seals. See `Mechanism`.

    Parameters
    ----------
    largest_seal_share : the most that the seal may take of the budget, which that of Gaussian noise keeps below 0.01
    """

    largest_seal_share: float = 1.0

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """The plan with the least noise in the objective among the laws, each in its best shape."""
        # All shapes of one bound on rows have its L2 norm, so the calibration is the same and their noise can be compared.
        best = min(problem.shapes, key=lambda shape: shape.laplace_norm(1.0))
        plans = [first_small_seal(partial(_laplace_plan, problem, budget, best), _LAPLACE_SHARES)]
        if not isinstance(budget, PureDP):
            best = min(problem.shapes, key=lambda shape: shape.gaussian_norm(1.0))
            plans.append(first_small_seal(partial(_gaussian_plan, problem, budget, best), _GAUSSIAN_SHARES))
        possible = [plan for plan in plans if plan is not None and plan.seal_share <= self.largest_seal_share]
        if not possible:
            raise InsufficientRegularisation(INSUFFICIENT.format(problem.n_rows_high))
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
    rate, l2 = calibrated_objective(
        epsilon * (1.0 - share), problem.loss_bounds, shape.l2_norm, problem.l2, problem.neighbours
    )
    noise = Noise(shape, "laplace", rate)
    tolerance, radius = _tolerance_and_radius(problem, budget, l2, noise)
    exponent = lattice_exponent(2.0 * radius, problem.n_weights)
    seal = LatticeLaplace(problem.n_weights, exponent, 2.0 * radius, epsilon * share * _DOWN)
    event = problem.event(budget, PureMechanism(epsilon))
    return Plan(problem, budget, "objective", l2, noise, tolerance, radius, seal, event, share)


def _gaussian_plan(problem: Problem, budget: Budget, shape: Shape, share: float) -> Plan:
    loss, of_row = problem.loss_bounds, budget_of_row(budget, problem.rows_per_person)
    # A ridge at which the curvature costs at most half.
    room = of_row.rho if isinstance(of_row, ZCDP) else of_row.epsilon
    l2 = max(problem.l2, least_l2(room, loss, shape.l2_norm))
    curvature = curvature_cost(loss, shape.l2_norm, l2)
    shift = gradient_shift(1.0, problem.neighbours)

    def curve_at(mu: float) -> GaussianObjective:
        kappa = _kappa(shape, problem.largest_weight, loss.lipschitz / mu, l2) if loss.tapered else math.inf
        seal_mu = share * shift * mu
        if loss.n_outputs == 1:
            return GaussianObjective(mu, curvature, kappa, seal_mu, problem.neighbours, loss.monotone)
        # Of several scores, what the curvature costs whichever corner the slope is near: proofs/multiclass.md, theorem 4.
        cost, scores = min(curvature, loss.trace / problem.largest_weight * kappa * _UP), (loss.n_outputs, loss.separable)
        return GaussianObjective(mu, cost, math.inf, seal_mu, problem.neighbours, loss.monotone, *scores)

    curve = _largest(curve_at, _ideal_mu(of_row) / shift, of_row)
    noise = Noise(shape, "gaussian", loss.lipschitz / curve.mu)
    tolerance, radius = _tolerance_and_radius(problem, budget, l2, noise)
    exponent = lattice_exponent(2.0 * radius, problem.n_weights)
    seal = LatticeGaussian.of_multiplier(problem.n_weights, exponent, 2.0 * radius, 1.0 / curve.seal_mu)
    event = problem.event(budget, curve)
    return Plan(problem, budget, "objective", l2, noise, tolerance, radius, seal, event, math.hypot(1.0, share) - 1.0)


def _tolerance_and_radius(problem: Problem, budget: Budget, l2: float, noise: Noise) -> tuple[float, float]:
    """The tolerance, and how far from the exact minimiser for noise of the exact law the certified weights may lie."""
    failure = log_failure(budget, problem)
    tolerance = planned_tolerance(problem.rounding(l2), noise.bound(failure))
    return tolerance, (tolerance + noise.error(failure)) / l2 * _UP


def _kappa(shape: Shape, largest_weight: float, scale: float, l2: float) -> float:
    """Sum over the pieces of rho^2 max(0, W / l2 - (W / t)^2 / 2), rounded up. Proof: proofs/gaussian.md, theorem 3."""
    weight, pairs = largest_weight, zip(shape.pieces, shape.gaussian_deviations(scale), strict=True)
    excess = math.fsum(rho**2 * max(0.0, weight / l2 - 0.5 * (weight / t) ** 2 * _DOWN) for (rho, _), t in pairs)
    return excess * _UP


def _ideal_mu(budget: Budget) -> float:
    """The most that a whole shift may be, over the deviation, if the curvature and the seal cost nothing."""
    if isinstance(budget, ZCDP):
        return math.sqrt(2.0 * budget.rho)
    return largest_mu(budget.epsilon, budget.delta) if isinstance(budget, ApproxDP) else 0.0


def _largest(curve_at: Callable[[float], GaussianObjective], high: float, budget: Budget) -> GaussianObjective:
    """The curve at the largest mu below `high` that the budget admits, by bisection that ends on the private side."""

    def admitted(mu: float) -> bool:
        curve = curve_at(mu)
        if isinstance(budget, ZCDP):
            return concentrated_rho(curve) <= budget.rho * _DOWN
        return isinstance(budget, ApproxDP) and curve.delta(budget.epsilon) <= budget.delta * _DOWN

    low = high
    while not admitted(low):
        low, high = 0.5 * low, low
        if not low > 1e-30:
            raise InsufficientRegularisation("the curvature alone exceeds the budget; raise alpha or the budget.")
    while low < high * (1.0 - 1e-7):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return curve_at(low)
