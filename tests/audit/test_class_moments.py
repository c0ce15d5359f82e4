"""Black-box attacks on released second moments of three classes, at two orthogonal rows that are as steep as can be.

One-vs-rest moves by its whole shift, sqrt(2 o) R^2; softmax, at weights where each row bends and pulls as theorem 4 of
proofs/moments.md says, by sqrt(2) G R^2. Each audit refutes a correct mechanism with probability 0.1% at most (attacks.py).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from confide.data.arrays import ArrayBlocks, MemorySource
from confide.erm.class_losses import OneVsRest, Softmax
from confide.erm.losses import LogisticLoss
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.mechanism import Release
from confide.privacy.moments import Moments
from confide.privacy.objective_perturbation import ObjectivePerturbation
from tests.audit.attacks import ADD, L2, REPLACE, Attack, few_of, promised_noise
from tests.privacy.class_densities import slope_and_curvature
from tests.privacy.problems import problem

CASES = [
    ("softmax", PureDP(1.0), REPLACE),
    ("softmax", ApproxDP(1.0, 0.05), ADD),
    ("softmax", ZCDP(0.1), REPLACE),
    ("one-vs-rest", PureDP(1.0), ADD),
    ("one-vs-rest", ApproxDP(1.0, 0.05), REPLACE),
]
NAMES = [f"{name}, {budget.kind}, {neighbours}" for name, budget, neighbours in CASES]
ROW = 1.3 * (1.0 - 2.0**-30)


@dataclass(frozen=True)
class MomentsAt:
    """The release of moments at fixed weights, as a mechanism whose release is the scaled vector."""

    weights: np.ndarray

    def release(self, plan, source, _solver, entropy):
        return Release(scaled(plan, *plan.release(source, entropy, self.weights)), plan)


def scaled(plan, curvature, slope):
    """(1, N): entries of the blocks that are released, off-diagonal ones times sqrt(2)."""
    o, separable = plan.problem.loss.constants.n_outputs, plan.problem.loss.constants.separable
    width = len(curvature) // (o if separable else 1)
    parts = []
    for matrix, unit in ((curvature, plan.query.unit_of_curvature), (slope, plan.query.unit_of_slope)):
        for start in range(0, len(matrix), width):
            block = matrix[start : start + width, start : start + width] / unit
            parts += [np.diagonal(block), np.sqrt(2.0) * block[np.triu_indices(width, 1)]]
    return np.concatenate(parts)[None]


def attack(name, budget, neighbours):
    """Rows of class 0 along the two axes, one for the other or none; a row in common."""
    first = MemorySource(ArrayBlocks(np.array([[ROW, ROW], [ROW, 0.0]])), np.array([0, 0]))
    if neighbours is REPLACE:
        second = MemorySource(ArrayBlocks(np.array([[ROW, ROW], [0.0, ROW]])), np.array([0, 0]))
    else:
        second = MemorySource(ArrayBlocks(np.array([[ROW, ROW]])), np.array([0]))
    loss = Softmax(3) if name == "softmax" else OneVsRest(LogisticLoss(), 3)
    facts = problem(second.n_rows, 2, loss=loss, row_norm=1.3, l2=L2, neighbours=neighbours, high=first.n_rows)
    plan = Moments.plan(ObjectivePerturbation().plan(facts, budget), budget)
    # At softmax's usual scale the worst row has two other classes at 1/2 each; one-vs-rest's is wrong for every class.
    far = np.array([-30.0, 0.0, 0.0]) if name == "softmax" else np.array([-30.0, 30.0, 30.0])
    weights = np.repeat(far[:, None] / ROW, 2, axis=1)
    longest = replace(plan, query=replace(plan.query, largest_norm=np.inf))

    def exact(source):
        curvature, slope = np.zeros((2, 6, 6))
        for x, y in zip(source.blocks.rows, source.labels, strict=True):
            x = x * min(1.0, 1.3 / np.linalg.norm(x))
            s, C = slope_and_curvature("softmax" if name == "softmax" else loss.loss, weights @ x, y)
            curvature += np.kron(C, np.outer(x, x))
            slope += np.kron(np.diag(s**2) if loss.constants.separable else np.outer(s, s), np.outer(x, x))
        if not loss.constants.separable:
            contrasts = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
            turn = np.kron(contrasts, np.eye(2))
            curvature, slope = (turn @ matrix @ turn.T for matrix in (curvature, slope))
        return scaled(plan, curvature, slope)[0]

    centres = exact(first), exact(second)
    # Theorem 4, written out.
    G = np.sqrt(max(1.0, plan.query.curvature_scale**2 + 9 / 16)) if name == "softmax" else np.sqrt(3.0)
    shift = (np.sqrt(2.0) if neighbours is REPLACE else 1.0) * G * 1.3**2
    assert np.linalg.norm(centres[0] - centres[1]) == pytest.approx(shift, rel=0.01)
    scale = promised_noise(budget, shift)

    def statistic(v):
        lengths = [np.linalg.norm(v - centre, axis=1) / scale for centre in centres]
        if budget.kind == "pure":
            return lengths[1] - lengths[0]
        return 0.5 * (lengths[1] ** 2 - lengths[0] ** 2)

    return Attack(MomentsAt(weights.reshape(1, -1)), longest, first, second, statistic)


def threshold(_, budget, *__):
    """The event is that the statistic exceeds this. In many dimensions pure noise shows little of a shift."""
    return 0.1 if budget.kind == "pure" else None


@pytest.mark.parametrize("number", few_of(range(len(CASES)), 0, 4), ids=NAMES)
def test_a_few_releases_do_not_refute_the_guarantee(number):
    """300 releases from either data set: the lower bound on what was spent stays below the budget."""
    assert attack(*CASES[number]).excess(300, 100 + number, threshold(*CASES[number])) <= 0.0


@pytest.mark.parametrize("number", few_of(range(len(CASES)), 0, 4), ids=NAMES)
def test_a_few_releases_refute_a_guarantee_with_much_less_noise(number):
    """The same attack has power: with 40% of Gaussian noise, 10% of the other, 400 releases from each suffice at 99.9%."""
    factor = 0.1 if CASES[number][1].kind == "pure" else 0.4
    assert attack(*CASES[number]).with_less_noise(factor).excess(400, 200 + number, threshold(*CASES[number])) > 0.0


@pytest.mark.audit
@pytest.mark.parametrize("number", range(len(CASES)), ids=NAMES)
def test_many_releases_do_not_refute_the_guarantee(number):
    """Fresh noise, 25,000 releases from either data set."""
    assert attack(*CASES[number]).excess(25_000, threshold=threshold(*CASES[number])) <= 0.0
