"""Attacks on a mechanism: the worst pair of neighbours fixed by hand, the attacker's statistic, and what releases show.

The statistic of a released w is the logarithm of its likelihood under the first data set over that under the second, by the
law that the mechanism's theorem states, written in tests/privacy/densities.py. The event is that it exceeds a threshold
fixed beforehand; confidence bounds on the probability of the event under either data set are Clopper and Pearson's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from confide.audit import attacks
from confide.erm.group_bounds import GroupBound
from confide.erm.losses import Hinge, HuberHinge, LogisticHinge
from confide.erm.row_bounds import BallBound
from confide.privacy.budgets import ApproxDP, Budget, Neighbours, PureDP
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.mechanism import Plan
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.output_perturbation import OutputPerturbation
from tests.privacy.densities import (
    exact_minimiser,
    gaussian_multiplier,
    least_variance_covariance,
    noise_behind,
    shape_norm,
    signed,
)
from tests.privacy.problems import objective_plan, problem, releases, rows_and_labels


def few_of(cases: Iterable[Any], *always: Any) -> list[Any]:
    """Cases of an attack by a few releases: these always, the others where `-m` names the mark `attack`, as `.ci/run` does.

    Replays and detectors of 15% of the noise take a tenth of the time for the same mechanisms and see smaller faults.
    """
    return [case if case in always else pytest.param(case, marks=pytest.mark.attack) for case in cases]


REPLACE, ADD = Neighbours.REPLACE_ONE, Neighbours.ADD_OR_REMOVE_ONE
LOSS = HuberHinge(0.5)
"""Slope -1 below margin 1/2, which no weight here comes near: the whole shift of the gradient is seen, and no curvature."""
L2 = 1000.0
CONFIDENCE = 0.999


lower_bound, upper_bound = (partial(bound, confidence=CONFIDENCE) for bound in (attacks.lower_bound, attacks.upper_bound))
"""Clopper and Pearson's bounds, each with half of 1 - CONFIDENCE beyond it."""


@dataclass(frozen=True)
class Attack:
    """A mechanism at its worst pair of neighbours."""

    mechanism: Any
    plan: Plan
    first: Any
    second: Any
    statistic: Callable[[np.ndarray], np.ndarray]
    """(n, D) releases -> (n,) log-likelihood ratios, by the theorem."""

    def hits(self, n: int, seed: int | None, threshold: float) -> tuple[int, int]:
        """How many of n releases from either data set the event holds, from two streams that share nothing.

        Without a seed the noise is the operating system's and OpenDP's, as in every real release.
        """
        counts = []
        for side, rows in enumerate((self.first, self.second)):
            entropy = None if seed is None else (seed, side)
            counts.append(int((self.statistic(releases(self.mechanism, self.plan, rows, n, entropy)) > threshold).sum()))
        return counts[0], counts[1]

    def excess(self, n: int, seed: int | None = None, threshold: float | None = None) -> float:
        """Lower bound on what was spent, less what the budget allows: above 0 the guarantee is refuted at 99.9%.

        Pure: of log P / Q at the event that the statistic exceeds 0.8 epsilon, or outside of it. Approximate: of P -
        exp(epsilon) Q - delta where it exceeds epsilon / 2, the best event against noise 30% too small. Concentrated: of the
        Rényi divergence of the event that it exceeds 0, over the order (`confide.audit.attacks`).
        """
        budget = self.plan.budget
        if threshold is None:
            threshold = {"pure": 0.8, "approximate": 0.5, "zcdp": 0.0}[budget.kind] * getattr(budget, "epsilon", 0.0)
        first, second = self.hits(n, seed, threshold)
        separation = attacks.Separation(float(lower_bound(first, n)), float(upper_bound(second, n)))
        if isinstance(budget, ApproxDP):
            return separation.delta(budget.epsilon) - budget.delta
        return attacks.amount_shown(separation, budget) - budget.amount

    def with_less_noise(self, factor: float) -> Attack:
        """The same attack on a mechanism whose main noise is this part of what it should be."""
        noise, lattice = self.plan.noise, self.plan.lattice
        if noise is not None:
            plan = replace(
                self.plan, noise=replace(noise, scale=noise.scale * (1 / factor if noise.law == "laplace" else factor))
            )
        elif isinstance(lattice, LatticeLaplace):
            plan = replace(self.plan, lattice=replace(lattice, epsilon=lattice.epsilon / factor))
        else:
            plan = replace(self.plan, lattice=replace(lattice, deviation=lattice.deviation * factor))
        return replace(self, plan=plan)


BOUNDS = {
    "ball 1": BallBound(1.3),
    "ball 2": BallBound(1.3),
    "ball 5": BallBound(1.3),
    "cylinder 2": BallBound(1.3),
    "cylinder 5": BallBound(1.3),
    "groups 1": GroupBound((1,), (1.3,)),
    "groups 2": GroupBound((1, 1), (1.3, 0.6)),
    "groups 5": GroupBound((1, 2, 1), (1.3, 0.9, 0.6)),
    "linked 2": GroupBound((2,), (1.3,), (True,)),
    "linked 5": GroupBound((3, 2), (1.3, 0.6), (True, True)),
}
"""Row bounds by shape and number of weights; groups of 5, cylinders, and those that are linked, have an
intercept of 0.7 besides; a cylinder counts it."""


def shortest_pair(bound: str, neighbours: Neighbours, persons: int = 1) -> tuple[Any, Any, float, int]:
    """(first rows, second rows, intercept, columns): `persons` rows at the edge of the bound, and what becomes of them.

    Replace-one: the same rows with the other label, so that the gradient moves by twice a row. Add-or-remove-one: no such
    rows. A row of zeros and one the other way around are in both, so that no data set is empty.
    """
    kind, dimension = bound.split()
    intercept = 0.7 if kind in ("linked", "cylinder") or bound == "groups 5" else 0.0
    if kind in ("ball", "cylinder"):
        # Along the diagonal, where noise of independent coordinates would be too short.
        columns = int(dimension) - (kind == "cylinder")
        row = np.full(columns, BOUNDS[bound].norm / math.sqrt(columns))
    else:
        row = np.concatenate(
            [[scale] + [0.0] * (k - 1) for k, scale in zip(BOUNDS[bound].sizes, BOUNDS[bound].scales, strict=True)]
        )
    # Not a floating-point hair beyond the bound, which would be clipped to below it.
    row = row * (1.0 - 2.0**-30) if kind in ("ball", "cylinder") else row
    mine, common = [row] * persons, [row, row]
    first = rows_and_labels([*common, *mine], [1, -1] + [1] * persons)
    if neighbours is REPLACE:
        second = rows_and_labels([*common, *mine], [1, -1] + [-1] * persons)
    else:
        second = rows_and_labels(common, [1, -1])
    return first, second, intercept, len(row)


def facts_of(bound: str, neighbours: Neighbours, persons: int = 1) -> tuple[Any, Any, Any]:
    """(facts, first rows, second rows)."""
    first, second, intercept, columns = shortest_pair(bound, neighbours, persons)
    low, high = second.n_rows, first.n_rows
    facts = problem(
        low, columns, loss=LOSS, row_bound=BOUNDS[bound], intercept=intercept, l2=L2, neighbours=neighbours,
        high=high, rows_per_person=persons,
    )  # fmt: skip
    return facts, first, second


def promised_noise(budget: Budget, shift: float) -> float:
    """Scale of Laplace noise, or deviation of Gaussian noise, that the budget asks for at this shift."""
    if isinstance(budget, PureDP):
        return shift / budget.epsilon
    # For a rho the event is that the statistic is positive, whatever its scale.
    return shift * (gaussian_multiplier(budget.epsilon, budget.delta) if isinstance(budget, ApproxDP) else 1.0)


def objective_attack(
    bound: str, law: str, budget: Budget, neighbours: Neighbours, persons: int = 1, *, loss: Any = LOSS
) -> Attack:
    """Objective perturbation: b(w) under either data set, and the law of b."""
    facts, first, second = facts_of(bound, neighbours, persons)
    facts = replace(facts, loss=loss)
    plan = objective_plan(facts, budget, law, bound.split()[0])
    pair = [signed(rows.blocks.rows, rows.labels, facts.intercept) for rows in (first, second)]
    shape, scale = plan.noise.shape, promised_noise(budget, (2 if neighbours is REPLACE else 1) * persons)
    inverse = np.linalg.pinv(least_variance_covariance(shape.sizes, shape.scales, shape.linked, scale), rcond=1e-9)

    def log_density(b: np.ndarray) -> np.ndarray:
        if law == "gaussian":
            return -0.5 * np.einsum("ni,ij,nj->n", b, inverse, b)
        if shape.name == "ball":
            return -np.linalg.norm(b, axis=1) / shape.scales[0] / scale
        if shape.name == "cylinder":
            lengths = np.linalg.norm(b[:, :-1], axis=1) / shape.scales[0]
            return -np.maximum(lengths, np.abs(b[:, -1]) / shape.scales[1]) / scale
        return -shape_norm(b, shape.sizes, shape.scales) / scale

    def statistic(w: np.ndarray) -> np.ndarray:
        # The determinants are equal: no weight reaches the curved part of the loss.
        behind = [noise_behind(loss, rows, L2, w) for rows in pair]
        return log_density(behind[0]) - log_density(behind[1])

    return Attack(ObjectivePerturbation(), plan, first, second, statistic)


def logistic_attack(bound: str, law: str, budget: Budget, neighbours: Neighbours) -> Attack:
    """The logistic hinge with its corner where no weight comes."""
    return objective_attack(bound, law, budget, neighbours, loss=LogisticHinge(2.0**-9))


def output_attack(
    bound: str, budget: Budget, neighbours: Neighbours, persons: int = 1, *, loss: Any = LOSS, laplace_alone: bool = False
) -> Attack:
    """Output perturbation: exact minimisers, and the law of the noise around them."""
    facts, first, second = facts_of(bound, neighbours, persons)
    mechanism = OutputPerturbation(laplace_alone)
    plan, zero = mechanism.plan(replace(facts, loss=loss), budget), np.zeros(facts.n_weights)
    # No weight comes near the joint, so the hinge has the minimisers of LOSS.
    centres = [
        np.float64(exact_minimiser(LOSS, signed(rows.blocks.rows, rows.labels, facts.intercept), L2, zero))
        for rows in (first, second)
    ]
    shift = (2 if neighbours is REPLACE else 1) * persons * facts.row_norm / L2
    scale = promised_noise(budget, shift)

    def log_density(z: np.ndarray) -> np.ndarray:
        if laplace_alone:
            return -np.abs(z).sum(axis=1) / scale / math.sqrt(facts.n_weights)
        # Spherical Laplace noise, which in one dimension is that of the grid, or Gaussian noise.
        return -np.linalg.norm(z, axis=1) / scale if isinstance(budget, PureDP) else -0.5 * (z * z).sum(axis=1) / scale**2

    def statistic(w: np.ndarray) -> np.ndarray:
        return log_density(w - centres[0]) - log_density(w - centres[1])

    return Attack(mechanism, plan, first, second, statistic)


def hinge_attack(bound: str, budget: Budget, neighbours: Neighbours, persons: int = 1) -> Attack:
    """Output perturbation of the hinge itself."""
    return output_attack(bound, budget, neighbours, persons, loss=Hinge())


def laplace_attack(bound: str, budget: Budget, neighbours: Neighbours, persons: int = 1) -> Attack:
    """The same with independent Laplace noise: the worst pair lies along the diagonal, where its L1 distance is longest."""
    return output_attack(bound, budget, neighbours, persons, loss=Hinge(), laplace_alone=True)
