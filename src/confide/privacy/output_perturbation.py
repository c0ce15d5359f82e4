"""Output perturbation. Proof: proofs/output_perturbation.md.

Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1, on a grid. The noise is exact and discrete, for a sensitivity that
includes the certified distance to the exact minimiser; or it is spherical Laplace noise, which is smaller, under a seal. For
the hinge this is the mechanism of Rubinstein, Bartlett, Huang and Taft (2012).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace

from confide.erm.objective import Solver
from confide.erm.source import RowSource
from confide.errors import InsufficientRegularisation, ParameterError, wording
from confide.privacy.budgets import Budget, budget_of_row, pure_epsilon
from confide.privacy.certificate import certified_minimiser, insufficient, planned_tolerance
from confide.privacy.events import PureMechanism
from confide.privacy.gaussian import GaussianMechanism, mu_within, output_sensitivity
from confide.privacy.lattice import LatticeGaussian, LatticeLaplace, LatticeNoise, lattice_exponent
from confide.privacy.mechanism import ANOTHERS, Noise, Plan, Problem, Release, log_failure, made_by, zero_weights
from confide.privacy.noise import Entropy
from confide.privacy.shapes import Ball

_LARGEST_INFLATION = 0.1
_JOINTS = tuple(2.0**-k for k in range(12, 4, -1))
_INFLATIONS_BY_A_JOINT = (1e-3, 1e-2, 5e-2)
_SEAL_SHARE = 0.01
_UNIT = 2.0**-53
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


@dataclass(frozen=True, slots=True)
class OutputPerturbation:
    """Minimises and adds noise to the weights. See `Mechanism`.

    Parameters
    ----------
    laplace_alone : for pure budgets, whether to use independent Laplace noise, as Rubinstein et al. (2012) do, even where
        other noise is smaller
    """

    laplace_alone: bool = False

    @property
    def name(self) -> str:
        """The mechanism's name in plans."""
        return "output-laplace" if self.laplace_alone else "output"

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """The plan with the least expected distance among exact Laplace, exact Gaussian and sealed spherical noise.

        In place of the hinge the plan has a hinge with the narrowest joint whose minimiser can be certified.
        """
        if self.laplace_alone and not budget.is_pure:
            raise ParameterError(wording("output-laplace is pure", budget=budget))
        problem = _with_joint(problem)
        loss = problem.loss_bounds
        if not math.isfinite(loss.smoothness):
            raise ParameterError(f"{loss.name} is not smooth: no certificate for its minimiser is available.")
        tolerance = planned_tolerance(problem.rounding(problem.l2), noise_bound=0.0)
        exact = output_sensitivity(loss.lipschitz, problem.row_norm, problem.l2, problem.neighbours)
        radius = tolerance / problem.l2 * _UP
        if not 2.0 * radius <= _LARGEST_INFLATION * exact:
            raise InsufficientRegularisation(insufficient(problem.n_rows_high, has_prior=any(problem.prior)))
        dimension, sensitivity = problem.n_weights, (exact + 2.0 * radius) * _UP
        exponent = lattice_exponent(sensitivity, dimension)

        def on_grid(noise: LatticeNoise, curve: GaussianMechanism | PureMechanism | None) -> Plan:
            event = problem.event(budget, curve)
            return Plan(problem, budget, self.name, problem.l2, None, tolerance, radius, noise, event)

        of_row = budget_of_row(budget, problem.rows_per_person)
        epsilon = pure_epsilon(of_row)
        # The accounts of the Laplace law and of spherical noise know no other releases.
        alone = problem.beside_mu == 0.0
        laplace = LatticeLaplace(dimension, exponent, sensitivity, epsilon * _DOWN)
        plans = [on_grid(laplace, PureMechanism(epsilon))] if alone else []
        if of_row.is_pure:
            if alone and not self.laplace_alone:
                plans.append(self._spherical(problem, budget, epsilon, exact, tolerance))
        elif (left := mu_within(of_row, problem.beside_mu)) > 0.0:
            gaussian = LatticeGaussian.of_multiplier(dimension, exponent, sensitivity, 1.0 / left)
            together = GaussianMechanism(math.hypot(1.0 / gaussian.multiplier, problem.beside_mu) * _UP)
            plans.append(on_grid(gaussian, together if of_row.is_approximate else None))
        if not plans:
            raise InsufficientRegularisation("the releases beside the weights leave nothing of the budget.")
        return min(plans, key=lambda plan: plan.expected_distance)

    def _spherical(self, problem: Problem, budget: Budget, epsilon: float, exact: float, tolerance: float) -> Plan:
        """The plan with spherical noise for the sensitivity of the exact minimiser. The seal covers all inexactness."""
        noise = Noise(Ball(problem.n_weights, exact), "laplace", epsilon * (1.0 - _SEAL_SHARE) * _DOWN)
        failure = log_failure(budget, problem)
        # Each coordinate of the sum of weights and noise is rounded once, by at most u times its size.
        longest = 2.0 * problem.rounding(problem.l2).minimiser_norm(0.0) + 2.0 * noise.bound(failure)
        radius = (tolerance / problem.l2 + noise.error(failure) + _UNIT * longest) * _UP
        exponent = lattice_exponent(2.0 * radius, problem.n_weights)
        seal = LatticeLaplace(problem.n_weights, exponent, 2.0 * radius, epsilon * _SEAL_SHARE * _DOWN)
        event = problem.event(budget)
        return Plan(problem, budget, self.name, problem.l2, noise, tolerance, radius, seal, event, _SEAL_SHARE)

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        in_objective = isinstance(plan, Plan) and plan.noise is not None and plan.noise.in_objective
        if not made_by(plan, Plan, self.name) or plan.lattice is None or in_objective:
            raise ParameterError(ANOTHERS)
        problem = plan.problem
        objective = problem.objective(source, plan.l2, zero_weights(problem))
        weights = certified_minimiser(objective, solver, plan.tolerance, problem.rounding(plan.l2))
        if plan.noise is not None:
            weights = weights + plan.noise.draw(entropy)
        return Release(plan.lattice.release(weights, entropy), plan)


def _with_joint(problem: Problem) -> Problem:
    """The problem itself; for a loss with kinks, the one with the narrowest joint at which inexactness costs a thousandth.

    If there is none, inexactness may cost a hundredth, and then a twentieth. The joint follows from public facts alone. So
    neighbours have the same convex loss, whose slopes are no steeper than before. Proof: proofs/output_perturbation.md,
    section 7, for the hinge, and proofs/declared_slopes.md for other losses.
    """
    if not problem.loss.constants.has_kinks:
        return problem
    exact = output_sensitivity(problem.loss_bounds.lipschitz, problem.row_norm, problem.l2, problem.neighbours)
    for inflation in _INFLATIONS_BY_A_JOINT:
        for half_width in _JOINTS:
            joined = replace(problem, loss=problem.loss.with_joint(half_width * problem.loss.constants.unit))
            with suppress(InsufficientRegularisation):
                tolerance = planned_tolerance(joined.rounding(joined.l2), noise_bound=0.0)
                if 2.0 * tolerance / joined.l2 <= inflation * exact:
                    return joined
    raise InsufficientRegularisation(insufficient(problem.n_rows_high, has_prior=any(problem.prior)))
