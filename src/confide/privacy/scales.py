"""What sums over the rows of either class say of random features before the weights: their scales, and whether they pay.

A function of all columns together changes fast along some columns and hardly along others. How much the shares of the
classes, or the numbers that are predicted, differ between the cells of a column tells which. One pass adds up the encoded
rows of each class, and exact Gaussian noise on a grid hides each row in both sums. The scales that follow multiply the
frequencies of the random features, whose norm stays as it is. So the plan of the weights, which was made before, holds for
all scales, and one charge covers both releases (`Problem.beside_mu`).

Two more sums, over coarse cells of pairs of columns, may say whether columns act together at all. Where they do not, the
weights are those of another plan, `Plan.without`, which has no features. Proof of both: proofs/scales.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from confide.array_types import Array
from confide.erm.group_bounds import GroupBound
from confide.erm.linear_sums import SumsOfTwoParts
from confide.erm.row_bounds import norm_with_intercept
from confide.erm.row_sums import RowSum
from confide.erm.source import RowSource
from confide.errors import wording
from confide.features.fourier import CELLS, ProductsOfPairs, public_numbers
from confide.plan_text import document_of_sum
from confide.privacy.budgets import Budget, Neighbours
from confide.privacy.certificate import GradientRounding
from confide.privacy.gaussian import gradient_shift
from confide.privacy.mechanism import Plan, ProblemFacts
from confide.privacy.noise import Entropy
from confide.privacy.noisy_sum import Before, SumPlan, SumQuery, computed_distances, planned_beside
from confide.privacy.objective_account import GaussianObjective

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
_DOWN = 1.0 - 2.0**-40
MOST_PAIRED = 12
"""Pairs are made of so many columns at most, those that tell most alone."""
_NEWTON_STEPS, _LARGEST_EFFECT, _HALVES = 8, 20.0, 4
_LEAST_GAIN, _DEVIATIONS = 0.012, 4.0
"""Columns act together if the gain is above the least one by so many deviations (benchmarks/notes/which_interactions.md)."""


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
        return wording("sentence of scales", split=split, share=part.share)

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

    def before(self, part: Any, plan: Plan, rows: Any, entropy: Entropy) -> Before:
        """Release the sums, and give the rows with the scales that follow. The event of the plan was charged before this.

        Where the plan asks whether columns act together and they do not, give its plan without features.
        """
        again = planned_beside(part, plan, self)
        sums = again.release(rows.remapped(lambda _: None), entropy)
        scales = scales_by(again, sums)
        pairs, found, without = plan.pairs, (again, sums, scales), plan.without
        if without is not None and not pairs.query.act_together(pairs, plan, rows, found, entropy):
            return without, rows.remapped(None), ()
        of_columns = tuple(np.repeat(scales, self.bound.sizes).tolist())
        return plan, rows.remapped(lambda features: features.scaled(of_columns)), of_columns


@dataclass(frozen=True, slots=True)
class PairsByTarget(SumsByTarget):
    """The sums over the rows of either class of the products of coarse cells, for all pairs of some columns.

    The bound of the problem is that of `ProductsOfPairs`, a ball. Columns and cells follow from sums that were released.
    """

    name = "pairs"
    pays_for = "whether columns act together"
    of_grid = "for pairs of columns"
    line = "interactions", "finds whether columns act together; if not, the function of all columns is left out"

    def sentence(self, part: SumPlan[SumsByTarget]) -> str:
        return wording("sentence of pairs", share=part.share)

    def before(self, part: Any, plan: Plan, rows: Any, entropy: Entropy) -> Before:
        return plan, rows, ()  # they were released after the sums from which their cells follow

    def act_together(self, part: Any, plan: Plan, rows: Any, found: tuple[Any, Array, Any], entropy: Entropy) -> bool:
        """Release the sums, for cells that follow from what was `found`. Whether they show that columns act together."""
        # k (k - 1) / 2 pairs of k columns
        n_columns = 1 + math.isqrt(2 * (self.size // (2 * CELLS**2)))
        again, products = planned_beside(part, plan, self), coarse_cells(*found, n_columns)
        gain, deviation = gain_of_pairs(again.release(rows.remapped(lambda _: products), entropy), again)
        return gain > _LEAST_GAIN + _DEVIATIONS * deviation


def mu_of_weights(plan: Plan) -> float:
    """Shift over deviation, for one row, of noise in the objective and its seal: theorem 5. 0 where there is none such."""
    curve = plan.event.curve
    if not (isinstance(curve, GaussianObjective) and curve.monotone and curve.n_outputs == 1 and plan.budget.is_approximate):
        return 0.0
    return math.hypot(gradient_shift(curve.mu, curve.neighbours), curve.seal_mu) * _DOWN


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
    squares = np.maximum([_difference_of_parts(*parts) for parts in _parts_of_columns(plan, released)], _LEAST)
    squares = _MEAN_SQUARE * ((1.0 - _EQUAL) * squares / squares.mean() + _EQUAL)
    return tuple(float(f"{scale:.{_DIGITS}g}") for scale in np.sqrt(squares))


def _parts_of_columns(plan: SumPlan[SumsByTarget], released: Array) -> Iterator[tuple[Array, Array]]:
    """For each group of columns: rows (2, c) of either part in each cell, with noise, and the deviations (c,) of that."""
    query, deviation = plan.query, plan.deviation
    bound, unit, (first, second), start = query.bound, query.row_sum.intercept, released.reshape(2, -1), 0
    for size, scale, signed in zip(bound.sizes, bound.scales, query.signed, strict=True):
        own = slice(start, start + size)
        parts, noise = np.array([first[own], second[own]]), np.full(size, deviation)
        if signed:
            # A number x in [-s, s] counts as (s - x) / 2 rows in one cell, and as (s + x) / 2 in another.
            counts = np.array([[first[-1]], [second[-1]]]) * (scale / unit)
            parts = 0.5 * np.hstack([counts - parts, counts + parts])
            noise = np.full(2 * size, 0.5 * deviation * math.hypot(1.0, scale / unit))
        yield parts, noise
        start += size


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


def coarse_cells(plan: SumPlan[SumsByTarget], released: Array, scales: Sequence[float], n_columns: int) -> ProductsOfPairs:
    """The products of pairs of the columns that tell most alone, in cells with about as many rows each. It uses no row.

    Parameters
    ----------
    plan, released : of the sums over two parts, and what was released
    scales : of each group of columns, which follow from it
    n_columns : of how many groups
    """
    query, most = plan.query, sorted(np.argsort(scales, kind="stable")[::-1][:n_columns].tolist())
    ends = np.cumsum([0, *query.bound.sizes])
    cells = np.zeros((ends[-1] + 1, n_columns, CELLS))
    for place, (parts, _) in enumerate(_parts_of_columns(plan, released)):
        if place not in most:
            continue
        own, start = cells[:, most.index(place)], ends[place]
        if query.signed[place]:
            own[[start, -1], 0], own[[start, -1], 1] = (-0.5, 0.5), 0.5
            continue
        rows = np.clip(parts.sum(axis=0), 1.0, 2.0**300)
        middles = (np.cumsum(rows) - 0.5 * rows) / rows.sum()
        own[start + np.arange(len(rows)), np.minimum(CELLS * middles, CELLS - 1).astype(int)] = 1.0
    return ProductsOfPairs(cells.reshape(len(cells), -1), np.repeat(query.bound.scales, query.bound.sizes))


def gain_of_pairs(released: Array, plan: SumPlan[PairsByTarget]) -> tuple[float, float]:
    """How much better cells of two columns tell the classes than sums of effects of both, and the deviation of its noise.

    Both are mean logarithms of probabilities, to the second order, added up over the pairs. It uses no row. What a sum of
    effects leaves in a cell is multiplied for released numbers with more noise and with as much noise less: the two have
    independent noise, so its square adds nothing to the mean. That noise has a public seed.
    """
    shape = plan.query.problem.n_features // CELLS**2, CELLS**2
    # In units of the heaviest row. No cell has more rows than there are, so nothing overflows, whatever was released.
    unit, most = plan.query.largest_weight, 2.0 * plan.problem.n_rows_high
    parts, noise = np.clip(released.reshape(2, -1)[:, :-1].reshape(2, 1, *shape) / unit, -most, most), plan.deviation / unit
    more = noise * public_numbers("rbf", 0, 2 * _HALVES * math.prod(shape), " for pairs").reshape(2, _HALVES, *shape)
    first, second = np.concatenate([parts, parts + more, parts - more], axis=1)
    rows, effects = first + second, np.hstack([np.repeat(np.eye(CELLS), CELLS, 0), np.tile(np.eye(CELLS), (CELLS, 1))])
    counts, weights = np.maximum(rows, 1.0), np.zeros((*first.shape[:2], 2 * CELLS))
    seen = np.clip(first, 0.0, counts)
    for _ in range(_NEWTON_STEPS):
        chances = expit(weights @ effects.T)
        bends = np.einsum("...c,ci,cj->...ij", counts * chances * (1.0 - chances), effects, effects) + np.eye(2 * CELLS)
        slopes = (seen - counts * chances) @ effects - weights
        weights = np.clip(weights + np.linalg.solve(bends, slopes[..., None])[..., 0], -_LARGEST_EFFECT, _LARGEST_EFFECT)
    chances = expit(weights @ effects.T)
    usual, left, free = counts * chances * (1.0 - chances), first - rows * chances, (1.0 - 1.0 / CELLS) ** 2
    expected = usual[0] + noise**2 * (chances[0] ** 2 + (1.0 - chances[0]) ** 2)
    squares = (left[1 : 1 + _HALVES] * left[1 + _HALVES :] - free * usual[1 : 1 + _HALVES]).mean(axis=0).sum(axis=1)
    scale = 2.0 * plan.problem.n_rows_low * np.maximum(usual[0].mean(axis=1), 1.0)
    deviations = np.sqrt(2.0 * free * (expected**2).sum(axis=1)) / scale
    return float((squares / scale).sum()), float(np.linalg.norm(deviations))


def scales_plan(query: SumsByTarget, budget: Budget, share: float) -> SumPlan[SumsByTarget]:
    """The plan for the sums by which scales are found, at this share of the budget, which is not pure."""
    return SumPlan.of(query, budget, ("gaussian",), share)
