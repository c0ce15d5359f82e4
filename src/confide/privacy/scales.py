"""Length scales of random features, one for each column: found from two sums of encoded rows, released before the weights.

A function of all columns together changes fast along some columns and hardly along others. How much the shares of the
classes, or the numbers that are predicted, differ between the cells of a column tells which. One pass adds up the encoded
rows of each class, and exact Gaussian noise on a grid hides each row in both sums. The scales that follow multiply the
frequencies of the random features, whose norm stays as it is. So the plan of the weights, which was made before, holds for
all scales, and one charge covers both releases (`Problem.beside_mu`). Proof: proofs/scales.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.array_types import Array
from confide.erm.group_bounds import GroupBound
from confide.erm.linear_sums import SumsOfTwoParts
from confide.erm.row_bounds import norm_with_intercept
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import ParameterError
from confide.plan_text import document_of_sum
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.certificate import GradientRounding
from confide.privacy.mechanism import ANOTHERS, Plan, ProblemFacts
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import Before, SumPlan, SumQuery, computed_distances, planned_beside

COUNT_SCALE = 0.3
"""The constant that counts rows, as a share of the norm of an encoded row, as for the centre of the rows."""
_LEAST = 0.001
"""The least difference of a column, before differences are divided by their mean: where none is larger, all scales are
equal."""
_EQUAL = 0.2
"""The part of the mean squared scale that all columns have in common. A column by itself may tell nothing and together with
another one much. With parts of 0, .1 and .25 Covertype errs by .169, .172 and .177 at (4, 1e-5); where a class says which
of two numbers is large, but not both, errors are .20 and .16 with parts of .1 and .25, and .16 without scales."""
_MEAN_SQUARE = 2.25
"""The mean squared scale. Along fewer columns a function may change faster: with root mean squares of 1, 1.4 and 2 Covertype
errs by .205, .201 and .199 at (.5, 1e-5)."""
_DIGITS = 3
"""Scales have so many digits, because people read them."""


@dataclass(frozen=True, slots=True)
class SumsByTarget(SumQuery):
    """The sums of the encoded rows of either class, and the numbers of these rows.

    Parameters
    ----------
    problem : the public facts about encoded rows; the bound is one of groups of columns
    signed : for each group of columns, whether its entries may be negative, or are no cells in which every row lies
    target_bound : the bound on the numbers that are predicted; None for two classes
    largest_weight : the largest weight of a row
    """

    problem: ProblemFacts
    signed: tuple[bool, ...]
    target_bound: float | None = None
    largest_weight: float = 1.0

    name = "scaling"
    pays_for = "the length scales of interactions"
    of_grid = "for the length scales of interactions"
    line = "scales", "finds how fast the function of all columns together changes along each of them"

    def document(self, part: SumPlan[SumsByTarget]) -> dict[str, Any]:
        """A JSON form of a part of a plan."""
        return document_of_sum(part) | {"mu": part.mu}

    def sentence(self, part: SumPlan[SumsByTarget]) -> str:
        """What is released, for the guarantee."""
        split = (
            "of each class" if self.target_bound is None else "times their targets, brought to [0, 1], and times the rest,"
        )
        return (
            f"Before the weights, the sums of the encoded rows {split} are released with noise; they cost {part.share:.2g} "
            f"of the budget, which covers both. The scales of columns in random features follow from them and from public "
            f"facts alone."
        )

    @property
    def bound(self) -> GroupBound:
        """The bound on encoded rows."""
        bound: Any = self.problem.row_bound
        return bound  # type: ignore[no-any-return]

    @property
    def row_sum(self) -> RowSum:
        """The sums over rows."""
        return sums_by_target(self.bound, self.target_bound, self.largest_weight)

    @property
    def size(self) -> int:
        return self.row_sum.n_weights(self.problem.n_features)

    @property
    def distances(self) -> tuple[float, float]:
        """For Gaussian noise. proofs/scales.md, theorem 1: a row that comes, or two rows at once."""
        problem, row_sum, weight = self.problem, self.row_sum, self.largest_weight
        norm = norm_with_intercept(row_sum.row_bound, row_sum.intercept)
        longest = weight * norm
        if problem.neighbours is Neighbours.REPLACE_ONE:
            longest = weight * max(2.0 * row_sum.row_bound.l2_norm, math.sqrt(2.0) * norm)
        bounds, depth = row_sum.loss.constants.weighted(weight), problem.summation_depth
        width = problem.n_features + 1
        rounding = GradientRounding(bounds, norm, problem.n_rows_high, width, depth, 1.0).bound(0.0, 0.0, 0.0)
        return computed_distances(longest, math.inf, rounding, self.size)

    def summed(self, rows: RowSource) -> Array:
        return rows.sum_over_rows(self.row_sum, np.zeros((1, self.size))).gradient

    def decoded(self, plan: SumPlan[SumsByTarget], sums: Array) -> tuple[float, ...]:
        """The scale of each group of columns that follows."""
        return scales_by(plan, sums)

    def before(self, part: Any, plan: Plan, rows: Any, entropy: Entropy) -> Before:
        """Release the sums, and give the rows with the scales that follow. The event of the plan was charged before this."""
        problem, own = plan.problem, self.problem
        facts = (own.neighbours, own.rows_per_person, own.n_rows_low, own.n_rows_high, self.largest_weight)
        if facts != (
            problem.neighbours, problem.rows_per_person, problem.n_rows_low, problem.n_rows_high, problem.largest_weight
        ):  # fmt: skip
            raise ParameterError(ANOTHERS)
        scales = planned_beside(part, plan, self).release(rows.remapped(lambda _: None), entropy)
        of_columns = tuple(np.repeat(scales, self.bound.sizes).tolist())
        return plan, rows.remapped(lambda features: features.scaled(of_columns)), of_columns


def sums_by_target(bound: GroupBound, target_bound: float | None, largest_weight: float) -> RowSum:
    """The sums of encoded rows, and of a constant that counts them, over two parts of the rows."""
    return RowSum(SumsOfTwoParts(target_bound), bound, COUNT_SCALE * bound.l2_norm, 1, largest_weight)


def scales_by(plan: SumPlan[SumsByTarget], released: Array) -> tuple[float, ...]:
    """The scale of each group of columns that follows from released sums (2 D,). It uses no row.

    Parameters
    ----------
    plan : the plan by which the sums were released
    released : the noisy sums over both parts, each with its count last
    """
    query, deviation = plan.query, plan.deviation
    bound, unit, (first, second) = query.bound, query.row_sum.intercept, released.reshape(2, -1)
    differences, start = list[float](), 0
    for size, scale, signed in zip(bound.sizes, bound.scales, query.signed, strict=True):
        own = slice(start, start + size)
        parts, noise = np.array([first[own], second[own]]), np.full(size, deviation)
        if signed:
            # A number x in [-s, s] counts as (s - x) / 2 rows in one cell, and as (s + x) / 2 in another.
            counts = np.array([[first[-1]], [second[-1]]]) * (scale / unit)
            parts = 0.5 * np.hstack([counts - parts, counts + parts])
            noise = np.full(2 * size, 0.5 * deviation * math.hypot(1.0, scale / unit))
        differences.append(_difference_of_parts(parts, noise))
        start += size
    squares = np.maximum(differences, _LEAST)
    squares = _MEAN_SQUARE * ((1.0 - _EQUAL) * squares / squares.mean() + _EQUAL)
    return tuple(float(f"{scale:.{_DIGITS}g}") for scale in np.sqrt(squares))


def _difference_of_parts(parts: Array, deviations: Array) -> float:
    """How much two parts of the rows differ between the cells of a column: the variance of log-odds, less that of noise.

    Parameters
    ----------
    parts : (2, c), how many rows of either part lie in each cell, with noise
    deviations : (c,), of that noise
    """
    together = parts.sum(axis=0)
    whole, rows = np.maximum(together, 2.0 * deviations), np.maximum(together, 0.0)
    if not rows.any():
        return 0.0
    share = float(np.clip(parts[0].sum() / whole.sum(), 0.01, 0.99))
    shares = np.clip(parts[0] / whole, 0.0, 1.0)
    noise = (deviations / whole) ** 2 * (share**2 + (1.0 - share) ** 2)
    return float(rows @ ((shares - share) ** 2 - noise) / (rows.sum() * (share * (1.0 - share)) ** 2))


def scales_plan(query: SumsByTarget, budget: Budget, share: float) -> SumPlan[SumsByTarget]:
    """The plan for the sums by which scales are found, at this share of the budget, which is not pure."""
    return SumPlan.of(query, budget, ("gaussian",), share)
