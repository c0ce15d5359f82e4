"""Black-box attacks on what is released for named coefficients, at pairs of rows that move it the most.

Spreads: two rows of opposite signs. Curvature and slopes in a frame: a row far out that bends as much as can be and none, or
two such rows with slopes of opposite signs. Sums along a direction: two rows with the steepest slope, of opposite signs, or
one of them. Sums for differences of risks: a row whose probability the step changes the most, and one whose it
does not change. Each audit refutes a correct mechanism with probability 0.1% at most (attacks.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.losses import LogisticLoss
from confide.erm.moment_sums import Frame
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.curvature import Curvature, length_of, scale_of_slopes
from confide.privacy.direction_sums import DirectionSums
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.mechanism import Release
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.spreads import Spreads
from confide.privacy.standardised_sums import RiskSums, largest_bend, largest_difference
from tests.audit.attacks import ADD, L2, REPLACE, Attack, promised_noise
from tests.privacy.problems import problem

CASES = [
    ("sums", PureDP(1.0), REPLACE),
    ("sums", ZCDP(0.1), REPLACE),
    ("spreads", ZCDP(0.1), REPLACE),
    ("curvature", ApproxDP(1.0, 0.05), ADD),
    ("curvature", ZCDP(0.1), REPLACE),
    ("risks", PureDP(1.0), ADD),
    ("risks", ZCDP(0.1), REPLACE),
]
QUERIES = {
    "spreads": Spreads,
    "sums": DirectionSums,
    "curvature": Curvature,
    "risks": RiskSums,
}
NAMES = [f"{name}, {budget.kind}, {neighbours}" for name, budget, neighbours in CASES]
FLAT = np.zeros((1, 2))


@dataclass(frozen=True)
class ReleasedAt:
    """One of the queries at fixed weights, as a mechanism whose release is its vector in the units of the noise."""

    query: Any

    def release(self, plan, source, _solver, entropy):
        if self.query is Curvature:
            frame = Frame((0.0, 0.0), (0.01, 0.01), 0.0, 0.0, length_of(plan.problem))
            curvature, slopes = plan.release(source, entropy, frame, FLAT)
            entries = np.array([curvature[0, 0], np.sqrt(2.0) * curvature[0, 1], curvature[1, 1]]) / 0.25
            vector = np.concatenate([entries, scale_of_slopes(plan.problem) * slopes])
        elif self.query is Spreads:
            totals = plan.query.summed(source)
            vector = totals if plan.lattice is None else plan.lattice.release(totals, entropy)
        elif self.query is RiskSums:
            vector = self._risks(plan, source, entropy)
        else:
            direction, weights = np.array([[0.0, 2.0]]), np.array([[-60.0, 0.0]])
            vector = plan.release(source, entropy, weights, direction) / plan.query.units
        return Release(vector.reshape(1, -1), plan)

    def _risks(self, plan, source, entropy):
        """In the units of theorem 1: the difference, the rate, the bends and the number of rows, if it is private."""
        step = np.array([1.0])
        sums = plan.release(source, entropy, np.array([[0.0, 400.0, -0.5]]), step)
        rates, bends, counts = plan.query.scales
        unit = largest_bend(step) * plan.problem.row_norm
        parts = [sums.differences / largest_difference(step), 4.0 * rates * sums.rates, bends * sums.bends[0] / unit]
        return np.concatenate([*parts, *([np.array([sums.n_rows])] if counts else [])])


def attack(name, budget, neighbours):
    """Rows of two columns, at the bound of 1, all of one label; a row in common."""
    query = QUERIES[name]
    # At weights of (-60, 0) all are wrong, and they pull along the second column.
    common, mine, theirs = [0.7, 0.1], [0.7, 0.7], [0.7, -0.7]
    if name == "risks":
        # A score of 400 times the second column: only a row with 0 there has a probability that a step changes.
        mine = [1.0, 0.0]
    pair = [[common, mine], [common] if neighbours is ADD else [common, theirs]]
    first, second = (MemorySource(ArrayBlocks(np.array(rows)), np.ones(len(rows), dtype=np.int8)) for rows in pair)
    facts = problem(
        second.n_rows, 2, loss=LogisticLoss(), row_norm=1.0, l2=L2, neighbours=neighbours, high=first.n_rows,
        intercept=float(name == "risks"),
    )  # fmt: skip
    training = ObjectivePerturbation().plan(facts, budget)
    plan = query.plan(training, budget) if name in ("curvature", "spreads") else query.plan(training, 1, budget)
    if name in ("curvature", "sums"):
        plan = replace(plan, query=replace(plan.query, largest_norm=np.inf))
    bare = replace(plan, lattice=None, budget=PureDP(np.inf))
    centres = [ReleasedAt(query).release(bare, source, None, None).weights[0] for source in (first, second)]
    order = 1 if budget.kind == "pure" else 2
    shift = float(np.linalg.norm(centres[0] - centres[1], ord=order))
    scale = promised_noise(budget, shift)

    def statistic(v):
        sizes = [np.linalg.norm(v - centre, ord=order, axis=1) / scale for centre in centres]
        return sizes[1] - sizes[0] if order == 1 else 0.5 * (sizes[1] ** 2 - sizes[0] ** 2)

    return Attack(ReleasedAt(query), plan, first, second, statistic)


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_a_few_releases_do_not_refute_the_guarantee(number):
    """100 releases from either data set: the lower bound on what was spent stays below the budget."""
    assert attack(*CASES[number]).excess(100, 100 + number) <= 0.0


@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_a_few_releases_refute_a_guarantee_with_much_less_noise(number):
    """The same attack has power: with 20% of the noise, 300 releases from each suffice at 99.9%."""
    made = attack(*CASES[number])
    lattice = made.plan.lattice
    less = (
        {"epsilon": lattice.epsilon / 0.2} if isinstance(lattice, LatticeLaplace) else {"deviation": 0.2 * lattice.deviation}
    )
    weak = replace(made, plan=replace(made.plan, lattice=replace(lattice, **less)))
    assert weak.excess(300, 200 + number, None if CASES[number][1].kind == "pure" else 0.0) > 0.0


@pytest.mark.audit
@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_many_releases_do_not_refute_the_guarantee(number):
    """Fresh noise, 25,000 releases from either data set."""
    assert attack(*CASES[number]).excess(25_000) <= 0.0
