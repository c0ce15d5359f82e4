"""A ridge for each column, larger where its noise is larger, where bundles of columns have noise of different sizes.

Laplace noise in bundles (`confide.privacy.bundled_shapes`) may be several times as large on a number as on a level of a
long category. One ridge for all weights lets the first move too far, or holds the second too short. All of this follows from
the shape of the noise, which is public: sizes and scales of groups of columns.

Symbols: r_d the factor of the ridge of weight d over the least ridge, b the noise in the summed objective.
"""

from __future__ import annotations

import math

from confide.erm.group_bounds import GroupBound
from confide.privacy.budgets import Budget, PureDP
from confide.privacy.bundled_shapes import Bundles, squares_of_groups
from confide.privacy.mechanism import Mechanism, Plan, Problem
from confide.privacy.objective_perturbation import ObjectivePerturbation
from confide.privacy.ridges_of_columns import LARGEST_RIDGE_FACTOR, ProblemWithRidges

_POWER = 0.75
"""The factor of a ridge is this power of the noise on its column, over the least noise. Chosen on Bank, Adult and Covertype
with Laplace noise (benchmarks/notes/which_ridges_of_columns.md). In proportion to the noise, Bank with economic indicators,
whose numbers tell much, errs more often by .001; with the root of the noise Bank gains half as much."""
SHARE_OF_BALANCED = 0.8
"""The least ridge, as a share of the one that would balance noise and shrinkage beside these factors. With the whole of it
Adult errs more often by .002 at an epsilon of 0.05."""


def with_ridges_by_noise(problem: Problem, mechanism: Mechanism, budget: Budget) -> Problem:
    """The problem in which columns with more noise have a larger ridge, or the problem that was given.

    Only noise in bundles, for two classes under pure budgets, was compared with one ridge for all columns.
    """
    is_pure = isinstance(budget, PureDP) and budget.is_private and isinstance(mechanism, ObjectivePerturbation)
    if not is_pure or type(problem) is not Problem or problem.prior or problem.loss.n_outputs > 1:
        return problem
    shape = min(problem.shapes, key=lambda shape: shape.laplace_norm(1.0))
    return ProblemWithRidges.of(problem, factors_by_noise(shape)) if isinstance(shape, Bundles) else problem


def factors_by_noise(shape: Bundles) -> tuple[float, ...]:
    """For each group a power of the root mean square of the noise on its entries, over that of the least of them."""
    groups = zip(squares_of_groups(shape), shape.sizes, strict=True)
    sizes_of_noise = [math.sqrt(square / size) for square, size in groups]
    least = min(sizes_of_noise)
    return tuple(min((noise / least) ** _POWER, LARGEST_RIDGE_FACTOR) for noise in sizes_of_noise)


def noise_beside_ridges(plan: Plan) -> float:
    """The root mean square norm of the noise where each entry counts over the root of its ridge's factor."""
    noise, problem = plan.noise, plan.problem
    assert noise is not None  # noqa: S101 - such ridges are made for noise in bundles
    assert isinstance(noise.shape, Bundles)  # noqa: S101 - for the same reason
    assert isinstance(problem, ProblemWithRidges)  # noqa: S101 - as the name says
    squares = zip(squares_of_groups(noise.shape), problem.group_factors, strict=True)
    return math.sqrt(math.fsum(square / factor for square, factor in squares)) / noise.scale


def typical_norm_beside_ridges(problem: ProblemWithRidges, usual: float) -> float:
    """The norm of a typical row with its intercept, where each entry counts over the root of its ridge's factor.

    Parameters
    ----------
    problem : the problem with its ridges
    usual : the L2 norm of a typical row without the intercept
    """
    bound, factors = problem.row_bound, problem.group_factors
    assert isinstance(bound, GroupBound)  # noqa: S101 - such ridges are made for groups
    of_groups = usual_squares_of_groups(bound)
    counted = math.fsum(square / factor for square, factor in zip(of_groups, factors, strict=False))
    square = usual**2 * counted / math.fsum(of_groups)
    return math.sqrt(square + (problem.intercept**2 / factors[-1] if problem.intercept > 0.0 else 0.0))


def usual_squares_of_groups(bound: GroupBound) -> list[float]:
    """For each group of columns the squared norm of its part of a typical row, guessed from the bound.

    A category has exactly one level, which counts in full. A number is taken to be uniform below its bound, so its mean
    square is a third of the squared bound.
    """
    groups = zip(bound.sizes, bound.scales, bound.linked, strict=True)
    return [scale**2 / (1.0 if linked or size > 1 else 3.0) for size, scale, linked in groups]
