"""Plans for objective perturbation with Gaussian noise. Proof: proofs/gaussian.md."""

from __future__ import annotations

import math
from collections.abc import Callable

from confide.errors import InsufficientRegularisation
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, budget_of_row, pure_epsilon
from confide.privacy.gaussian import largest_mu
from confide.privacy.gaussian_objective import GaussianObjective
from confide.privacy.lattice import LatticeGaussian, lattice_exponent
from confide.privacy.mechanism import Noise, Plan, Problem
from confide.privacy.renyi import concentrated_rho
from confide.privacy.seal import tolerance_and_radius
from confide.privacy.sensitivity import curvature_cost, gradient_shift, least_l2
from confide.privacy.shapes import Shape

_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40
_TOO_CURVED = "the curvature alone exceeds the budget; raise alpha or the budget."


def gaussian_plan(problem: Problem, budget: Budget, shape: Shape, share: float) -> Plan:
    """The plan with Gaussian noise of this shape, whose seal takes this share: proofs/gaussian.md, section on the plan.

    The budget also pays for the Gaussian releases beside it, `Problem.beside_mu`.
    """
    loss, of_row = problem.loss_bounds, budget_of_row(budget, problem.rows_per_person)
    shift = gradient_shift(1.0, problem.neighbours)
    # At this ridge the curvature costs at most half of the budget, or of the epsilon that is as strong as rho. If the
    # account knows the curvature slope by slope, it may cost as much as the shift of one row.
    slopes_known = isinstance(of_row, ZCDP) and loss.tapered and loss.n_outputs == 1
    l2 = max(problem.l2, least_l2(pure_epsilon(of_row) * (2.0 / shift if slopes_known else 1.0), loss, shape.l2_norm))
    curvature = curvature_cost(loss, shape.l2_norm, l2)

    def curve_at(mu: float) -> GaussianObjective:
        kappa = _kappa(shape, problem.largest_weight, loss.lipschitz / mu, l2) if loss.tapered else math.inf
        seal_mu = share * shift * mu
        others = (loss.n_outputs, loss.separable, problem.beside_mu, *bend)
        if loss.n_outputs == 1:
            return GaussianObjective(mu, curvature, kappa, seal_mu, problem.neighbours, loss.monotone, *others)
        # With several scores, this is what the curvature costs near any corner of the slopes: proofs/multiclass.md, theorem
        # 4.
        cost = min(curvature, loss.trace / problem.largest_weight * kappa * _UP)
        return GaussianObjective(mu, cost, math.inf, seal_mu, problem.neighbours, loss.monotone, *others)

    bend = _bend(shape, loss.lipschitz, l2) if loss.tapered else (math.inf, 1.0, 1.0)
    high = _ideal_mu(of_row) / shift
    curve = _largest_concentrated(curve_at, high, of_row) if isinstance(of_row, ZCDP) else _largest(curve_at, high, of_row)
    noise = Noise(shape, "gaussian", loss.lipschitz / curve.mu)
    tolerance, radius = tolerance_and_radius(problem, budget, l2, noise)
    exponent = lattice_exponent(2.0 * radius, problem.n_weights)
    seal = LatticeGaussian.of_multiplier(problem.n_weights, exponent, 2.0 * radius, 1.0 / curve.seal_mu)
    event = problem.event(budget, curve)
    return Plan(problem, budget, "objective", l2, noise, tolerance, radius, seal, event, math.hypot(1.0, share) - 1.0)


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


def _ideal_mu(budget: Budget) -> float:
    """The largest ratio of a whole shift to the deviation, if the curvature and the seal cost nothing."""
    if isinstance(budget, ZCDP):
        return math.sqrt(2.0 * budget.rho)
    return largest_mu(budget.epsilon, budget.delta) if isinstance(budget, ApproxDP) else 0.0


def _largest(curve_at: Callable[[float], GaussianObjective], high: float, budget: Budget) -> GaussianObjective:
    """The curve at the largest mu below `high` that the budget admits. The bisection ends on the private side."""

    def admitted(mu: float) -> bool:
        return isinstance(budget, ApproxDP) and curve_at(mu).delta(budget.epsilon) <= budget.delta * _DOWN

    low = high
    while not admitted(low):
        low, high = 0.5 * low, low
        if not low > 1e-30:
            raise InsufficientRegularisation(_TOO_CURVED)
    while low < high * (1.0 - 1e-7):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if admitted(middle) else (low, middle)
    return curve_at(low)


def _largest_concentrated(curve_at: Callable[[float], GaussianObjective], high: float, budget: ZCDP) -> GaussianObjective:
    """The same for rho, within 1e-4 of the budget. An evaluation takes milliseconds, so logarithms are interpolated.

    The search is the method of false position (Illinois), aimed a little below the budget. It ends with an admitted curve.
    """

    def excess(mu: float) -> float:
        return math.log(concentrated_rho(curve_at(mu)) / (budget.rho * _DOWN))

    low, above = high, excess(high)
    # Written so that what is not a number is not admitted.
    while not (below := excess(low)) <= 0.0:
        low, high, above = 0.5 * low, low, below
        if not low > 1e-30:
            raise InsufficientRegularisation(_TOO_CURVED)
    side, known = 0, below
    while known < -1e-4 and low < high * (1.0 - 1e-5):
        middle = low * (high / low) ** min(0.999, max(0.001, (-5e-5 - below) / (above - below)))
        found = excess(middle)
        # An end that stays for a second time counts half, so that the search does not creep up to it.
        if found <= 0.0:
            low, below, above, side, known = middle, found, above * (0.5 if side < 0 else 1.0), -1, found
        else:
            high, above, below, side = middle, found, below * (0.5 if side > 0 else 1.0), 1
    return curve_at(low)
