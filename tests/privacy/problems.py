"""Small training problems for tests of mechanisms."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from confide.data.arrays import ArrayBlocks, MemorySource, summation_depth
from confide.erm.group_bounds import GroupBound, groups_of
from confide.erm.losses import LogisticLoss
from confide.erm.penalties import Penalty
from confide.erm.row_bounds import BallBound
from confide.expected_noise import first_small_seal
from confide.privacy import objective_perturbation
from confide.privacy.budgets import Neighbours
from confide.privacy.mechanism import Problem
from confide.privacy.noise import Entropy
from confide.solvers.fallback import NewtonThenFallback

GROUPS = GroupBound((3, 2, 1), (0.8, 1.3, 0.6))
LINKED = GroupBound((3, 2, 1), (0.8, 1.3, 0.6), (True, True, False))


def problem(
    n=20,
    d=2,
    *,
    loss=None,
    row_norm=1.0,
    row_bound=None,
    intercept=0.0,
    l2=30.0,
    neighbours=Neighbours.REPLACE_ONE,
    high=None,
    rows_per_person=1,
    largest_weight=1.0,
):
    """Public facts of a small problem; `high` makes the number of rows private, between n and high."""
    return Problem(
        loss=loss or LogisticLoss(),
        row_bound=row_bound or BallBound(row_norm),
        intercept=intercept,
        n_features=d,
        n_rows_low=n,
        n_rows_high=high or n,
        summation_depth=summation_depth(high or n, d),
        l2=l2,
        neighbours=neighbours,
        rows_per_person=rows_per_person,
        largest_weight=largest_weight,
    )


def with_penalty(facts, **parts):
    """The same facts with a penalty of these parts."""
    return replace(facts, penalty=Penalty(**parts))


def with_ridges(facts, factors):
    """The same facts with a ridge for each group of weights, or an objective with one for each weight."""
    sizes = groups_of(facts.row_bound, facts.intercept)[0] if isinstance(facts, Problem) else (1,) * len(factors)
    return with_penalty(facts, factors=tuple(factors), sizes=sizes)


def source(n=20, d=2, seed=0, length=1.0):
    """Rows of about this length and fair labels."""
    rng = np.random.default_rng(seed)
    return rows_and_labels(rng.normal(size=(n, d)) * length, rng.choice([-1, 1], size=n))


def rows_and_labels(rows, labels=None, row_weights=None):
    """A source of these rows; without labels all of them are +1."""
    rows = np.asarray(rows, dtype=np.float64)
    labels = np.ones(len(rows)) if labels is None else np.asarray(labels)
    return MemorySource(ArrayBlocks(rows), labels.astype(np.int8), row_weights)


def group_rows(bound, n, seed=0):
    """Rows at the edge of a GroupBound: one active column a group, its sign free where the group is not linked."""
    rng = np.random.default_rng(seed)
    rows, start = np.zeros((n, bound.n_features)), 0
    for size, scale, linked in zip(bound.sizes, bound.scales, bound.linked, strict=True):
        signs = 1.0 if linked else rng.choice([-1, 1], n)
        rows[np.arange(n), start + rng.integers(size, size=n)] = scale * signs
        start += size
    return rows


def shape_named(facts, name):
    """The shape of this name that the facts allow."""
    return next(shape for shape in facts.shapes if shape.name == name)


def objective_plan(facts, budget, law, shape):
    """The plan of objective perturbation with one law and one shape, whatever the best of them would be."""
    planned, shares = {
        "laplace": (objective_perturbation._laplace_plan, objective_perturbation._LAPLACE_SHARES),
        "gaussian": (objective_perturbation.gaussian_plan, objective_perturbation._GAUSSIAN_SHARES),
    }[law]
    plan = first_small_seal(partial(planned, facts, budget, shape_named(facts, shape)), shares)
    assert plan is not None, "the seal would drown the noise"
    return plan


class SummedOnce:
    """A source that gives its last sums again where the same ones are asked for: releases of one data set share a pass."""

    def __init__(self, source):
        self.source, self.asked, self.sums = source, None, None

    def __getattr__(self, name):
        return getattr(self.source, name)

    def sum_over_rows(self, row_sum, weights):
        """The source's own sums, or those of the last call where the kind of sum and the weights are the same."""
        asked = (row_sum, weights.tobytes())
        if self.asked != asked:
            self.asked, self.sums = asked, self.source.sum_over_rows(row_sum, weights)
        return self.sums


class SolvedOnce:
    """A solver that gives its last answer again to the same problem: without noise in the objective all releases have one.

    The certificate checks each answer. It serves the releases from one source of rows.
    """

    def __init__(self, solver):
        self.solver, self.problem, self.solution = solver, None, None

    def solve(self, objective, start, tolerance):
        """The solver's own answer, or that of the last call where linear terms, start and tolerance are the same."""
        problem = (objective.linear.tobytes(), start.tobytes(), tolerance)
        if self.problem != problem:
            self.problem, self.solution = problem, self.solver.solve(objective, start, tolerance)
        return self.solution


def releases(mechanism, plan, rows, n, entropy=None, solver=None):
    """(n, D): released weights, one after another from one stream: given, of a seed, or fresh."""
    stream = entropy if hasattr(entropy, "read") else Entropy.fresh() if entropy is None else Entropy.seeded(entropy)
    solver = solver or SolvedOnce(NewtonThenFallback())
    return np.vstack([mechanism.release(plan, rows, solver, stream).weights for _ in range(n)])
