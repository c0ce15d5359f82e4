"""Noisy gradients: T sums of clipped slopes over all rows, each with exact Gaussian noise. Proof: proofs/gradient.md.

Each sum is made at a point that follows from public facts and from the noisy sums before it. The weights are computed from
the noisy sums too, so they cost nothing more. There is no minimiser to certify. A sum differs from its exact counterpart by
rounding alone, and the noise covers that.

Sources: Abadi et al. (2016), for all rows in place of a sample; Dong, Roth and Su (2022) for the account.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from confide.array_types import Weights
from confide.blocks import Block
from confide.erm.objective import Solver
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.erm.transformed_losses import ClippedSlopes
from confide.errors import ParameterError, wording
from confide.plan_text import blocks_with, gradient_lines, multiples, plan_document
from confide.privacy.budgets import Budget, Neighbours, budget_of_row
from confide.privacy.gaussian import GaussianMechanism, mu_within
from confide.privacy.lattice import LatticeGaussian
from confide.privacy.mechanism import ANOTHERS, Plan, Problem, Release, made_by
from confide.privacy.noise import Entropy

_LARGEST_INFLATION = 0.1
"""Rounding may cost at most this share of the noise."""
_MOST_DRAWN = 2**16
"""So many integers of noise are drawn together. They wait in memory, and are overwritten by none of another fit."""
_LARGEST_RADIUS = 2.0**520
"""Points are at most this long, so that no product with a row overflows."""
_DOWN, _UP = 1.0 - 2.0**-40, 1.0 + 2.0**-40


class Walk(Protocol):
    """Where noisy sums have led so far. It is computed from public facts and noisy sums, so it is not trusted."""

    @property
    def point(self) -> Weights:
        """(1, D): where the next sum is made."""

    @property
    def weights(self) -> Weights:
        """(1, D): what is released if there are no more sums."""

    def after(self, noisy: Weights) -> Self:
        """The walk after one more noisy sum (1, D)."""


class Steps(Protocol):
    """How the points of a walk follow from noisy sums. A frozen value made of public facts; `str` says what it does."""

    def start(self, n_weights: int, n_problems: int = 1) -> Walk:
        """The walk before the first sum, or several walks at once."""

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""


@dataclass(frozen=True, slots=True)
class Descent:
    """What is decided for noisy gradients before any row is read.

    Attributes
    ----------
    n_steps : number T of noisy sums
    slope_limit : the largest norm of the slopes of a row as long as the bound on rows; shorter rows may have larger slopes
    radius : the largest L2 norm of a point at which a sum is made
    steps : how points and weights follow from the noisy sums
    """

    n_steps: int
    slope_limit: float
    radius: float
    steps: Steps

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        own = {name: getattr(self, name) for name in ("n_steps", "slope_limit", "radius")}
        return own | {"steps": self.steps.to_dict()}

    def row_sum(self, problem: Problem) -> RowSum:
        """The sum over rows that each step makes."""
        clipped = ClippedSlopes(problem.loss, self.slope_limit)
        return RowSum(clipped, problem.row_bound, problem.intercept, 1, problem.largest_weight)

    def sensitivity(self, problem: Problem) -> float:
        """Largest L2 distance of the exact sums of neighbours: once or twice the largest clipped gradient of a row."""
        rows = 2.0 if problem.neighbours is Neighbours.REPLACE_ONE else 1.0
        # The norm to which the sum itself clips, whatever norm a problem with a form of its own may have.
        return rows * problem.largest_weight * self.slope_limit * problem.summed_norm * _UP

    def rounding(self, problem: Problem) -> float:
        """Largest L2 distance between a computed sum and its exact counterpart, at all points within the radius."""
        clipped = self.row_sum(problem).loss.constants.weighted(problem.largest_weight)
        return replace(problem.rounding(0.0), loss=clipped).bound(self.radius, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class GradientPlan(Plan):
    """The plan of noisy gradients. Its `lattice` is the noise of each sum, and the weights are on no grid.

    Attributes
    ----------
    descent : Descent
        How noisy gradients lead to weights.
    """

    descent: Descent = field(kw_only=True)  # type: ignore[assignment]  # other plans have none
    minimises: ClassVar[bool] = False

    @property
    def noise_norm(self) -> float:
        """That of the noise in the mean of half of the sums, as if it stood in the objective."""
        return float(self.lattice.norm * math.sqrt(2.0 / self.descent.n_steps) / self.l2) if self.lattice else 0.0

    @property
    def largest_slope(self) -> float:
        """The limit to which slopes are clipped, for the heaviest row."""
        return self.problem.largest_weight * self.descent.slope_limit

    @property
    def n_passes(self) -> int:
        """Number of passes over the rows."""
        return self.descent.n_steps

    @property
    def longest_gradient(self) -> float:
        """The norm to which the gradient of a row of weight 1 is clipped."""
        return self.descent.slope_limit * self.problem.row_norm

    def grid_sentence(self) -> str:
        """Which numbers are multiples of a power of two, for the guarantee."""
        return f", {wording('grid of noisy gradients', plan=self, grids=multiples(self))}"

    def to_dict(self) -> dict[str, Any]:
        """A JSON form, for people and machines; the number of rows appears as its public bounds."""
        return plan_document(self) | {"descent": self.descent.to_dict()}

    def walked(self, rows: RowSource, n_walks: int, part: float, entropy: Entropy) -> Weights:
        """(n_walks, D): weights to which noise leads on made-up rows, whose sums are this part of those of the plan."""
        walk, row_sum = self.descent.steps.start(self.problem.n_weights, n_walks), self.descent.row_sum(self.problem)
        for _ in range(self.n_passes):
            sums = rows.sum_over_rows(row_sum, walk.point).gradient / part
            walk = walk.after(sums if self.lattice is None else self.lattice.release(sums, entropy))
        return walk.weights

    def blocks(self) -> tuple[Block]:
        """The facts of the plan."""
        return blocks_with(self, gradient_lines(self, self.descent))


@dataclass(frozen=True, slots=True)
class NoisyGradients:
    """Releases weights that are computed from noisy sums of clipped slopes. See `Mechanism`.

    Parameters
    ----------
    decide : from the public facts and the mu of the whole release to the facts that are used, whose ridge or loss it may
        have chosen, and to the descent
    """

    decide: Callable[[Problem, float], tuple[Problem, Descent]]

    def plan(self, problem: Problem, budget: Budget) -> Plan:
        """The plan with the least noise at which all sums together cost the budget."""
        if not budget.is_private or budget.is_pure:
            raise ParameterError(wording("gradients need Gaussian noise", budget=budget))
        mu = mu_within(budget_of_row(budget, problem.rows_per_person), problem.beside_mu)
        if not mu > 0.0:
            raise ParameterError("the releases beside the gradients cost the whole budget.")
        problem, descent = self.decide(problem, mu)
        limited = 0.0 < descent.slope_limit <= problem.loss.constants.lipschitz and descent.radius <= _LARGEST_RADIUS
        if not limited or descent.n_steps < 1:
            raise ParameterError(wording("steps of noisy gradients"))
        exact, rounding = descent.sensitivity(problem), descent.rounding(problem)
        if not 2.0 * rounding <= _LARGEST_INFLATION * exact:
            raise ParameterError(wording("inexact sums of slopes", n_rows_high=problem.n_rows_high))
        sensitivity = (exact + 2.0 * rounding) * _UP
        # T sums of the same mu are one Gaussian mechanism of mu sqrt(T): theorem 3.
        lattice = LatticeGaussian.of_mu(problem.n_weights, sensitivity, mu / math.sqrt(descent.n_steps) * _DOWN)
        together = math.hypot(problem.beside_mu, math.sqrt(descent.n_steps) / lattice.multiplier) * _UP
        event = problem.event(budget, GaussianMechanism(together))
        return GradientPlan(problem, budget, "gradient", problem.l2, None, 0.0, 0.0, lattice, event, descent=descent)

    def release(self, plan: Plan, source: RowSource, solver: Solver, entropy: Entropy) -> Release:
        """Make the sums, one after another. There is nothing to solve, so the solver is not used."""
        if not isinstance(plan, GradientPlan) or not made_by(plan, GradientPlan, "gradient") or plan.lattice is None:
            raise ParameterError(ANOTHERS)
        problem, descent = plan.problem, plan.descent
        problem.check_source(source)
        row_sum, walk = descent.row_sum(problem), descent.steps.start(problem.n_weights)
        rows = source.for_many_passes(row_sum)
        # Many integers are drawn much faster together. Each is used in one sum.
        at_once = max(1, _MOST_DRAWN // problem.n_weights)
        for first in range(0, descent.n_steps, at_once):
            n_steps = min(at_once, descent.n_steps - first)
            drawn = plan.lattice.integers(n_steps * problem.n_weights, entropy).reshape(n_steps, problem.n_weights)
            for noise in drawn:
                totals = rows.sum_over_rows(row_sum, _within(walk.point, descent.radius))
                # From here on, only what has noise is used.
                walk = walk.after(plan.lattice.release(totals.gradient, entropy, noise))
        return Release(walk.weights, plan)


def _within(point: Weights, radius: float) -> Weights:
    """The point, or the nearest one within the radius; zeros for what is not finite."""
    with np.errstate(all="ignore"):
        norm = float(np.linalg.norm(point))
    if not math.isfinite(norm):
        return np.zeros_like(point)
    # The computed norm of D numbers errs by a factor of less than 1 + D 2^-53.
    inside = radius * (1.0 - 2.0**-20)
    return point * (inside / max(norm, inside))
