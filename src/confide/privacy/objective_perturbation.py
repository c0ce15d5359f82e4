"""Objective perturbation. Proof: proofs/objective_perturbation.md (Laplace noise) and proofs/gaussian.md (Gaussian noise).

Chaudhuri, Monteleoni and Sarwate (2011), algorithm 2. Four things differ: the term for the Jacobian is smaller, the noise
has the shape that the columns allow, a seal covers the inexact minimiser, and the slack branch leaves at least half the
budget to the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from confide.erm.objective import Solver
from confide.erm.source import RowSource
from confide.errors import InsufficientRegularisation, ParameterError
from confide.expected_noise import LARGEST_SEAL_NOISE, first_small_seal
from confide.privacy.budgets import Budget, budget_of_row, pure_epsilon
from confide.privacy.certificate import certified_minimiser, insufficient
from confide.privacy.events import PureMechanism
from confide.privacy.gaussian import calibrated_objective, curvature_cost, gradient_shift, ideal_mu, least_l2
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Noise, Plan, Problem, Release, made_by, tolerance_and_radius
from confide.privacy.noise import Entropy
from confide.privacy.objective_account import GaussianObjective, concentrated_rho
from confide.privacy.shapes import Shape

# Plans for objective perturbation with Gaussian noise. Proof: proofs/gaussian.md.

_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40
_TOO_CURVED = "the curvature alone exceeds the budget; raise alpha or the budget."


def gaussian_plan(problem: Problem, budget: Budget, shape: Shape, share: float, largest_seal: float = math.inf) -> Plan:
    """The plan with Gaussian noise of this shape, whose seal takes this share: proofs/gaussian.md, section on the plan.

    The budget also pays for the Gaussian releases beside it, `Problem.beside_mu`. There is no plan if at the largest mu the
    seal's noise is above `largest_seal` times the main noise. As mu falls this quotient grows, and the search takes time.
    """
    loss, of_row = problem.loss_bounds, budget_of_row(budget, problem.rows_per_person)
    shift = gradient_shift(1.0, problem.neighbours)
    # At this ridge the curvature costs at most half of the budget, or of the epsilon that is as strong as rho. If the
    # account knows the curvature slope by slope, it may cost as much as the shift of one row.
    slopes_known = of_row.is_concentrated and loss.tapered and loss.n_outputs == 1
    l2 = max(problem.l2, least_l2(pure_epsilon(of_row) * (2.0 / shift if slopes_known else 1.0), loss, shape.l2_norm))
    curvature = curvature_cost(loss, shape.l2_norm, l2)
    bend = _bend(shape, loss.lipschitz, l2) if loss.tapered else (math.inf, 1.0, 1.0)

    def curve_at(mu: float) -> GaussianObjective:
        costs = curvature, _kappa(shape, problem.largest_weight, loss.lipschitz / mu, l2) if loss.tapered else math.inf
        if loss.n_outputs > 1:
            # This is what the curvature costs near any corner of the slopes: proofs/multiclass.md, theorem 4.
            costs = min(curvature, loss.trace / problem.largest_weight * costs[1] * _UP), math.inf
        return GaussianObjective(mu, costs[0], costs[1], share * shift * mu, problem.neighbours, loss.monotone, *others)

    def sealed(curve: GaussianObjective) -> tuple[Noise, float, float, LatticeGaussian]:
        noise = Noise(shape, "gaussian", loss.lipschitz / curve.mu, in_objective=True)
        tolerance, radius = tolerance_and_radius(problem, budget, l2, noise)
        grid = problem.n_weights, lattice_exponent(2.0 * radius, problem.n_weights), 2.0 * radius
        return noise, tolerance, radius, LatticeGaussian.of_multiplier(*grid, 1.0 / curve.seal_mu)

    others = (loss.n_outputs, loss.separable, problem.beside_mu, *bend)
    high = ideal_mu(of_row) / shift  # as if curvature and seal cost nothing
    noise, _, _, seal = sealed(curve_at(high))
    if seal.norm * l2 > largest_seal * noise.norm:
        raise InsufficientRegularisation(_TOO_CURVED)
    curve = (_largest_concentrated if of_row.is_concentrated else _largest)(curve_at, high, of_row)
    return Plan(problem, budget, "objective", l2, *sealed(curve), problem.event(budget, curve), math.hypot(1.0, share) - 1.0)


def _kappa(shape: Shape, largest_weight: float, scale: float, l2: float) -> float:
    """Sum over the pieces of rho^2 max(0, W / l2 - (W / t)^2 / 2), rounded up. Proof: proofs/gaussian.md, theorem 3."""
    weight, pairs = largest_weight, zip(shape.pieces, shape.gaussian_deviations(scale), strict=True)
    return _UP * math.fsum(rho**2 * max(0.0, weight / l2 - 0.5 * (weight / t) ** 2 * _DOWN) for (rho, _), t in pairs)


def _bend(shape: Shape, lipschitz: float, l2: float) -> tuple[float, float, float]:
    """`bend`, `evenness` and `even_bend` of a `GaussianObjective`: theorem 5', on shorter rows.

    As shares of the largest, the squared norm of a row is at most steepest t^2, and at most 1 - flattest (1 - t^2), t its
    whitened length; the slopes are those of the pieces with the most and the least noise. The two lines meet at the answer.
    """
    square = shape.l2_norm**2
    slopes = [deviation**2 / square for deviation in shape.gaussian_deviations(1.0)]
    steepest, flattest = max(1.0, max(slopes) * _UP), min(1.0, min(slopes) * _DOWN)
    bend = lipschitz * square / l2 * _UP
    if steepest < 1.0 + 2.0**-30:
        return bend * steepest, 1.0, 1.0
    even_bend = min(1.0, steepest * (1.0 - flattest) / (steepest - flattest) * _UP)
    return bend, math.sqrt(even_bend / steepest) * _DOWN, even_bend


def _largest(curve_at: Callable[[float], GaussianObjective], high: float, budget: Budget) -> GaussianObjective:
    """The curve at the largest mu below `high` that the budget admits. The bisection ends on the private side."""

    def admitted(mu: float) -> bool:
        return curve_at(mu).delta(budget.amount) <= budget.slack * _DOWN

    low = high
    while not admitted(low):
        low, high = 0.5 * low, low
        if not low > 1e-30:
            raise InsufficientRegularisation(_TOO_CURVED)
    while low < high * (1.0 - 1e-7):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return curve_at(low)


def _largest_concentrated(curve_at: Callable[[float], GaussianObjective], high: float, budget: Budget) -> GaussianObjective:
    """The same for rho, within 1e-4 of the budget. An evaluation takes milliseconds, so logarithms are interpolated.

    The search is the method of false position (Illinois), aimed a little below the budget. It ends with an admitted curve.
    """

    def excess(mu: float) -> float:
        return math.log(concentrated_rho(curve_at(mu)) / (budget.amount * _DOWN))

    low, above = high, excess(high)
    # Written so that what is not a number is not admitted.
    while not (below := excess(low)) <= 0.0:
        low, high, above = 0.5 * low, low, below
        if not low > 1e-30:
            raise InsufficientRegularisation(_TOO_CURVED)
    side, known = 0, below
    while known < -1e-4 and low < high * (1.0 - 1e-5):
        middle = low * (high / low) ** min(0.999, max(0.001, (-5e-5 - below) / (above - below)))
        value = excess(middle)
        # An end that stays for a second time counts half, so that the search does not creep up to it.
        if value <= 0.0:
            low, below, above, side, known = middle, value, above * (0.5 if side < 0 else 1.0), -1, value
        else:
            high, above, below, side = middle, value, below * (0.5 if side > 0 else 1.0), 1
    return curve_at(low)


_LAPLACE_SHARES = (1e-3, 3e-3, 1e-2, 2e-2, 5e-2, 0.25)
"""Shares of epsilon that the seal may take. The plan takes the first share at which the seal's noise is small."""
_GAUSSIAN_SHARES = (1e-2, 5e-2, 0.14)
"""Ratios of the seal's whitened sensitivity to that of the objective. The last one adds 1% to the Gaussian noise."""


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
        shapes = problem.shapes
        best = min(shapes, key=lambda shape: shape.laplace_norm(1.0))
        # The account of Laplace noise knows no other releases.
        laplace = partial(_laplace_plan, problem, budget, best)
        plans = [first_small_seal(laplace, _LAPLACE_SHARES)] if problem.beside_mu == 0.0 else []
        if not budget.is_pure:
            best = min(shapes, key=lambda shape: shape.gaussian_norm(1.0))
            gaussian = partial(gaussian_plan, problem, budget, best, largest_seal=1.01 * LARGEST_SEAL_NOISE)
            plans.append(first_small_seal(gaussian, _GAUSSIAN_SHARES))
        possible = [plan for plan in plans if plan is not None and plan.seal_share <= self.largest_seal_share]
        if not possible:
            raise InsufficientRegularisation(insufficient(problem.n_rows_high, has_prior=any(problem.prior)))
        return min(possible, key=lambda plan: plan.noise.norm if plan.noise else math.inf)

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        noise = plan.noise if made_by(plan, Plan, "objective") else None
        if noise is None or not noise.in_objective or plan.lattice is None or plan.problem.penalty.l1_ratio > 0.0:
            raise ParameterError(ANOTHERS)
        objective = plan.problem.objective(source, plan.l2, noise.draw(entropy))
        weights = certified_minimiser(objective, solver, plan.tolerance, plan.problem.rounding(plan.l2))
        return Release(plan.lattice.release(weights, entropy), plan)


def _laplace_plan(problem: Problem, budget: Budget, shape: Shape, share: float) -> Plan:
    epsilon = pure_epsilon(budget_of_row(budget, problem.rows_per_person))
    # Theorem 7: where weights have ridges of their own, a row bends the objective less beside the stronger ones.
    longest = problem.curved_norm if problem.penalty.factors else shape.l2_norm
    rate, l2 = calibrated_objective(epsilon * (1.0 - share), problem.loss_bounds, longest, problem.l2, problem.neighbours)
    noise = Noise(shape, "laplace", rate, in_objective=True)
    tolerance, radius = tolerance_and_radius(problem, budget, l2, noise)
    exponent = lattice_exponent(2.0 * radius, problem.n_weights)
    seal = LatticeLaplace(problem.n_weights, exponent, 2.0 * radius, epsilon * share * _DOWN)
    event = problem.event(budget, PureMechanism(epsilon))
    return Plan(problem, budget, "objective", l2, noise, tolerance, radius, seal, event, share)
