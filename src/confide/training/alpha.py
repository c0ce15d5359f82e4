"""How alpha, the ridge, is chosen: from public facts only, and only in this module.

An alpha that the user gives is kept. "auto" balances the noise against the shrinkage (`balanced_l2`), but keeps the ridge
large enough that the curvature of the loss costs little of the privacy budget (`curvature_free_l2`). Both are raised if the
proof of privacy or double precision needs more, and the plan says by how much.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, repeat, zip_longest
from operator import mul
from typing import Any

from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LossConstants
from confide.erm.penalties import Penalty
from confide.erm.row_bounds import RowBound, before_moving
from confide.errors import InsufficientRegularisation, ParameterError, wording
from confide.features.encoder import Encoder
from confide.privacy.budgets import Budget, Neighbours, budget_of_row, pure_epsilon
from confide.privacy.bundles import Bundles, squares_of_groups
from confide.privacy.gaussian import gradient_shift
from confide.privacy.mechanism import LARGEST_RIDGE_FACTOR, Mechanism, Plan, Problem
from confide.privacy.objective_perturbation import ObjectivePerturbation

# A ridge for each column, larger where its noise is larger, where bundles of columns have noise of different sizes.
#
# Laplace noise in bundles (`confide.privacy.bundles`) may be several times as large on a number as on a level of a
# long category. One ridge for all weights lets the first move too far, or holds the second too short. All of this follows
# from the shape of the noise, which is public: sizes and scales of groups of columns.
#
# Symbols: r_d the factor of the ridge of weight d over the least ridge, b the noise in the summed objective.

_POWER = 0.75
"""The factor of a ridge is this power of the noise on its column, over the least noise. Chosen on Bank, Adult and Covertype
with Laplace noise (benchmarks/notes/which_ridges_of_columns.md). In proportion to the noise, Bank with economic indicators,
whose numbers tell much, errs more often by .001; with the root of the noise Bank gains half as much."""
SHARE_OF_BALANCED = 0.8
"""The least ridge, as a share of the one that would balance noise and shrinkage beside these factors. With the whole of it
Adult errs more often by .002 at an epsilon of 0.05. The whole is taken where curves have smaller ridges."""


_DECADES, _LEAST_RIDGE_OF_A_CURVE = 2.0, 0.2
"""The ridge of a curve over more powers of ten is smaller, in proportion to the square of their number, but not below this
share: its weights have more to tell than those of a category, or of a curve over a small factor. Without a least share KDD
Cup 99 with all its columns errs by .013 to .019 at an epsilon of .5, and by .011 with it."""


def ridges_of_curves(encoder: Encoder) -> tuple[float, ...]:
    """For each group of columns the ridge over that of others with as much noise: below 1 for curves over powers of ten.

    It is empty where no effect of a number is a curve.
    """
    if not has_curves(encoder):
        return ()
    shares = [1.0] * len(encoder.groups)
    for group, column in enumerate(encoder.schema.columns):
        if column.is_number and column.is_log and column.knots:
            decades = math.log1p((column.high - column.low) / column.doubling) / math.log(10.0)
            shares[group] = max(_LEAST_RIDGE_OF_A_CURVE, min(1.0, (_DECADES / decades) ** 2))
    return tuple(shares)


def with_ridges_by_noise(problem: Problem, mechanism: Mechanism, budget: Budget, curves: tuple[float, ...] = ()) -> Problem:
    """The problem in which columns with more noise have a larger ridge, or the problem that was given.

    Only noise in bundles, for two classes under pure budgets, was compared with one ridge for all columns. `curves` are
    those of `ridges_of_curves`.
    """
    is_pure = budget.is_pure and budget.is_private and isinstance(mechanism, ObjectivePerturbation)
    is_plain = type(problem) is Problem and problem.penalty.is_ridge and not problem.prior
    if not is_pure or not is_plain or problem.loss.constants.n_outputs > 1:
        return problem
    shape = min(problem.shapes, key=lambda shape: shape.laplace_norm(1.0))
    if not isinstance(shape, Bundles):
        return problem
    return replace(problem, penalty=Penalty(factors=factors_by_noise(shape, curves), sizes=shape.sizes))


def factors_by_noise(shape: Bundles, of_curves: tuple[float, ...] = ()) -> tuple[float, ...]:
    """For each group a power of the root mean square of the noise on its entries, times its `of_curves`, over the least."""
    groups = zip_longest(squares_of_groups(shape), shape.sizes, of_curves, fillvalue=1.0)
    ridges = [share * math.sqrt(square / size) ** _POWER for square, size, share in groups]
    return tuple(min(ridge / min(ridges), LARGEST_RIDGE_FACTOR) for ridge in ridges)


def noise_beside_ridges(plan: Any) -> float:
    """The root mean square norm of the noise where each entry counts over the root of its ridge's factor."""
    squares = zip(squares_of_groups(plan.noise.shape), plan.problem.penalty.factors, strict=True)
    return math.sqrt(math.fsum(square / factor for square, factor in squares)) / float(plan.noise.scale)


def typical_norm_beside_ridges(problem: Problem, usual: float) -> float:
    """The norm of a typical row with its intercept, where each entry counts over the root of its ridge's factor.

    Parameters
    ----------
    problem : the problem with its ridges
    usual : the L2 norm of a typical row without the intercept
    """
    bound: Any = problem.row_bound  # of groups, for which such ridges are made
    of_groups, factors = usual_squares_of_groups(bound), problem.penalty.factors
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


# How much the mean loss of typical rows bends: a guess from public facts, on which no proof rests.

_USUAL_CURVATURE = {True: 8.0, False: 0.5}
"""Curvature of the mean of losses with kinks over many rows, in units of the slope over the size of scores. Residuals (True)
are spread over a small part of the range of targets, and margins (False) over a few units."""

_USUAL_SLOPE = 0.5
"""The root mean square of the slopes of most losses over typical rows, in units of the largest slope."""


def usual_curvature(loss: LossConstants, unit: float, *, has_residuals: bool) -> float:
    """The curvature of the mean loss in the score, over typical rows."""
    if not loss.has_kinks and not (loss.has_straight_joints and loss.n_outputs == 1):
        return loss.smoothness
    return min(loss.smoothness, _USUAL_CURVATURE[has_residuals] * loss.lipschitz / unit)


def usual_slope(loss: LossConstants) -> float:
    """The root mean square of the slopes of typical rows. Residuals are seldom so small that a kink is near."""
    has_kinks = loss.has_kinks or loss.has_straight_joints or loss.is_declared
    return loss.lipschitz * (1.0 if has_kinks and loss.target_bound is not None else _USUAL_SLOPE)


WEIGHT_NORM_FACTOR = 3.5
"""Factor of the expected norm of the weights under noise in the objective, see `balanced_l2`. Chosen on public data sets and
budgets by benchmarks/automatic_alpha.py."""
WEIGHT_NORM_ON_WEIGHTS = 2.5
"""The same factor under noise on the weights. Chosen by benchmarks/automatic_alpha.py."""
SHARE_WITH_PRIOR = 0.5
"""With a prior, the expected distance of the weights from it, over their expected norm without one, where noise is large.
With this share and the ratio below, the mean test error changed by -.0026 in the 16 cells in which t (see `balanced_l2`) was
below 60, and by -.0003 from 60 to 200; in the 18 cells of two data sets that had no part in the choice by -.0016.
With this share for every t it was +.0004 where t was above 200 (benchmarks/public_prior.py)."""
RATIO_WITHOUT_SHARE = 200.0
"""t from which on the expected distance from a prior is no shorter than the norm without one."""
SCORE_FACTOR = 2.0
"""The expected norm of the weights of a regression, in units of the declared size of its scores over the norm of a typical
row. Of the factors 1/4 to 16, 2 is the best or within 2% of the best for Huber's loss, the clipped square and counts, on the
data sets and budgets of benchmarks/regression_error.py."""
MOST_BALANCED_FEATURES = 256
"""The largest number of random features of a kernel whose noise is balanced against the shrinkage. The noise of a score does
not grow with the number of features, and neither does what they tell together. With 1,000 features at (1, 1e-6), the test
error on Covertype is .228 at three tenths of the ridge that balances them all, and .234 at that ridge
(benchmarks/defaults.py)."""
NOISE_SHARE = 0.7
"""The ridge of least squares over the standard deviation of the noise, see `noise_l2`. Compared on made-up designs with
3,000 to 100,000 rows (columns that are independent, correlated, one-hot, short, or of decaying size)."""
_LEAST_HINGE_L2 = 1e-2
"""The least automatic ridge for a hinge, over the squared norm of the longest row. A hinge has no curvature if all rows are
far from its corner, and then only the ridge limits the effect of the noise."""
_LARGEST_SEAL_SHARE = 0.01
"""The automatic ridge is raised until the seal, which covers inexact minimisers, costs at most this share of the budget."""
_LARGEST_BESIDE_CURVES, _LITTLE_RAISED = 0.02, 2.0
"""The same where curves have smaller ridges, the least of which decides the seal. With .05 Adult eight times over errs by
.18 in place of .135, since no number of rows damps the noise of the seal. Several ridges are kept if double precision raises
them by no more than the second factor."""
_RIDGE_STEP = 1.1
"""Ratio of each ridge that is tried to the one before."""
_MOST_RIDGES, _STRIDE = 600, 8
"""The largest number of ridges that are tried, and the steps in which the first search goes through them."""
_LEAST_SHARE_OF_CURVATURE_FREE = {"laplace": 0.7, "gaussian": 1.0}
"""The least automatic ridge, as a share of the ridge at which the curvature of the loss costs nothing, for each law of
noise. The share is divided by the margin of the loss, but never falls below one half. A share of one half costs 3 to 7% more
Laplace noise under replace-one and 4 to 17% more under add-or-remove-one, and about as much more Gaussian noise. Compared on
the data of benchmarks/peers."""
_LEAST_SHARE_BESIDE_MOMENTS = 2.0
"""The same share for weights that share an account with moments for intervals. The account charges what the curvature may
cost beside noise that pays for the moments too. With a share of 0.3, noise under replace-one is 1% larger than without any
curvature, and with half of this ridge 15 to 20% larger."""
_SHARE_BESIDE_FEATURES = 0.8
"""The least such share for the ridge of encoded columns that have random features of all columns beside them, with two
classes and Gaussian noise. The features have a larger ridge, because of their noise. As the ridge of all weights it would
shrink the effects of single columns too (benchmarks/notes/which_interactions.md). Under Laplace noise, and for numbers, one
ridge is better."""
_ROWS_FOR_TWO_RIDGES = 2_500.0
"""Two ridges are taken if so many rows come for each unit of noise on a weight. Skin has 1,300 at (.1, 1e-5), and errs by
.012 with one ridge and .014 with two; ten independent columns have 5,100 at (.5, 1e-5), where two are better."""
_LEAST_SHARE_UNDER_RHO = {Neighbours.REPLACE_ONE: 0.4, Neighbours.ADD_OR_REMOVE_ONE: 0.32}
"""The same share for two classes, Gaussian noise and concentrated budgets, whatever the margin. Such a ridge costs up to 15%
more noise than the ideal. Of the shares 1, 0.6, 0.35, 0.25 and 0.18, those of 0.35 and below had the least error under
replace-one on Adult, Bank and Covertype at rho of 0.001, 0.005 and 0.05. They hardly differed, but 0.18 costs up to 46% more
noise."""
_LEAST_SHARE_FOR_CLASSES = 0.7
"""The same share for three or more classes, if the loss has a margin of 1 / 0.7 or more, under any law of noise; without a
margin the share is 1. It costs 1 to 6% more noise under replace-one and 3 to 14% more under add-or-remove-one. One half was
better with little noise and worse with much noise. Compared on Covertype, MNIST and made-up classes."""
_KNOTS_OF_A_CURVE = 3
"""The least number of knots of a curve."""
USUAL_RADIUS = 0.75
"""The norm of rows that were moved by a centre, over their norm before: 0.65 to 0.72 in benchmarks/centring.py."""

_HATS = 2.0 / 3.0
"""The mean square of the norm of two neighbouring hats, of which one is f and the other 1 - f."""
_LINE = 1.0 / 3.0
"""The mean square of a number that is uniform in [-1, 1]."""
_AT_ATOMS = 0.25
"""The mean square of the atoms of a column: the share of the rows that have one of them. It is 0.1 or less on Adult."""


@dataclass(frozen=True, slots=True)
class AlphaRule:
    """How the alpha of one plan is found.

    Attributes
    ----------
    is_automatic : whether alpha is chosen here; otherwise the ridge of the problem is the user's
    score_size : a public guess of the size of the scores of a regression; None for margins
    is_raised : whether a user's alpha that double precision cannot certify is raised instead of refused. It is raised for
        losses of counts: their curvature can be as large as `target_bound`, so the alpha that suffices depends on a
        parameter that scikit-learn's estimator does not have
    usual_norm : the L2 norm of a typical row without its intercept, if more is known of it than the bound on rows says
    has_curves : whether the effect of a number may be a curve, with three knots or more
    ridges_of_curves : of the function of this name, where there is an encoder
    random_features : whether rows are random features of a kernel, and nothing else
    n_slots : how many columns are slots for atoms. Most stay empty, so their noise is not balanced against anything
    n_encoded : how many encoded columns stand beside random features of all columns; 0 where there are none
    has_near_prior : whether weights are expected to be nearer to a prior than to 0, as they are to those of a model
    for_intervals : whether intervals are made from the release. They must cover the noise, so it does not pay to take a
        smaller ridge at the price of a little more noise
    """

    is_automatic: bool
    score_size: float | None
    is_raised: bool
    for_intervals: bool
    usual_norm: float | None = None
    has_curves: bool = False
    ridges_of_curves: tuple[float, ...] = ()
    random_features: bool = False
    n_slots: int = 0
    n_encoded: int = 0
    has_near_prior: bool = True


def plan_with_alpha(mechanism: Mechanism, problem: Problem, budget: Budget, rule: AlphaRule) -> Plan:
    """The plan of a mechanism at the alpha that the rule gives. The problem holds the user's ridge, if there is one."""
    if rule.is_automatic:
        return _automatic_plan(mechanism, problem, budget, rule)
    try:
        return mechanism.plan(problem, budget)
    except InsufficientRegularisation:
        if not rule.is_raised:
            raise
    # The plan keeps the problem with the user's ridge, so that it states how much was added.
    return replace(_first_possible_plan(mechanism, problem, budget, 1.0), problem=problem)


def _automatic_plan(mechanism: Mechanism, problem: Problem, budget: Budget, rule: AlphaRule) -> Plan:
    """The plan at the automatic ridge, or ridges, raised until double precision costs at most 1% of the budget.

    Where that raises the least of several ridges far, one ridge for all weights is smaller for most of them and is taken.
    """
    if rule.n_encoded and rule.score_size is None and problem.loss.constants.tapered and not problem.prior:
        return _with_ridge_of_features(mechanism, problem, budget, rule)
    if rule.score_size is None and not rule.for_intervals:
        apart = with_ridges_by_noise(problem, mechanism, budget, rule.ridges_of_curves)
        # There may be no plan with several ridges and still one with a single ridge.
        with suppress(ParameterError):
            if apart is not problem and not (balanced := _balanced_plan(mechanism, apart, budget, rule))[1]:
                return balanced[0]
    return _balanced_plan(mechanism, problem, budget, rule)[0]


def _with_ridge_of_features(mechanism: Mechanism, problem: Problem, budget: Budget, rule: AlphaRule) -> Plan:
    """The plan in which random features keep the ridge of all weights, and the encoded columns beside them have less."""
    together, _ = _balanced_plan(mechanism, problem, budget, rule)
    noise, is_plain = together.noise, problem.penalty.is_ridge and problem.loss.constants.n_outputs == 1
    if noise is None or noise.law != "gaussian" or not noise.in_objective or not is_plain:
        return together
    if problem.n_rows_low * problem.row_norm * math.sqrt(problem.n_weights) < _ROWS_FOR_TWO_RIDGES * noise.norm:
        return together
    row_budget = budget_of_row(budget, problem.rows_per_person)
    least = curvature_free_l2(row_budget, problem.loss_bounds, problem.curved_norm, problem.neighbours)
    l2 = least * max(_SHARE_BESIDE_FEATURES, _share_of_curvature_free(together, for_intervals=False))
    sizes = rule.n_encoded, problem.n_features - rule.n_encoded, problem.n_weights - problem.n_features
    penalty = Penalty(factors=(1.0, together.l2 / l2, 1.0)[: 2 + (sizes[2] > 0)], sizes=tuple(filter(None, sizes)))
    with suppress(ParameterError):
        plan = _first_possible_plan(mechanism, replace(problem, penalty=penalty, l2=l2), budget)
        return plan if plan.l2 < together.l2 else together
    return together


def _balanced_plan(mechanism: Mechanism, problem: Problem, budget: Budget, rule: AlphaRule) -> tuple[Plan, bool]:
    """The plan at the automatic least ridge, and whether double precision raised it far."""
    # The ridge at which the curvature costs nothing, or for hinges at least that which limits the effect of the noise.
    row_budget, longest = budget_of_row(budget, problem.rows_per_person), problem.curved_norm
    # The slopes of a regression have the units of its target, and a ridge has not.
    least = curvature_free_l2(row_budget, problem.loss_bounds, longest, problem.neighbours) / (rule.score_size or 1.0)
    if not problem.loss.constants.self_concordant and math.isfinite(problem.loss.constants.smoothness):
        least = max(least, _LEAST_HINGE_L2 * longest**2)
    start = replace(problem, l2=max(least, problem.largest_weight * longest**2))
    of_seal = _LARGEST_SEAL_SHARE if min(rule.ridges_of_curves, default=1.0) == 1.0 else _LARGEST_BESIDE_CURVES
    plan = _first_possible_plan(mechanism, start, budget, of_seal)
    # The size of the noise, and perhaps its law, depend a little on the ridge. So a second round starts from the noise of
    # the first.
    for _ in range(2):
        l2 = max(_share_of_curvature_free(plan, for_intervals=rule.for_intervals) * least, _balanced_l2_of(plan, rule))
        plan = _first_possible_plan(mechanism, replace(problem, l2=l2), budget, of_seal)
    return plan, plan.l2 > _LITTLE_RAISED * l2


def _balanced_l2_of(plan: Plan, rule: AlphaRule) -> float:
    """`balanced_l2` for the noise of this plan and the norm of a typical row with its intercept."""
    problem = plan.problem
    # The weights of several scores are balanced score by score, each as a problem of two classes would be.
    noise_norm = plan.noise_norm * plan.l2 / math.sqrt(problem.loss.constants.n_outputs)
    row_norm = typical_norm(problem, rule.usual_norm)
    if problem.penalty.factors:
        noise_norm = noise_beside_ridges(plan)
        usual = math.sqrt(row_norm**2 - problem.intercept**2) if rule.usual_norm is None else rule.usual_norm
        row_norm = typical_norm_beside_ridges(problem, usual)
    # All other fits keep the ridge that they have had.
    loss = problem.loss.constants
    has_joints = loss.joint is not None and loss.convex and (loss.is_declared or loss.target_bound is not None)
    bends = problem.penalty.l1_ratio > 0.0 or has_joints
    is_damped = plan.noise is not None and plan.noise.in_objective
    if bends and not is_damped:
        return l2_beside_curvature(noise_norm, problem)
    if rule.random_features:
        noise_norm *= math.sqrt(min(1.0, MOST_BALANCED_FEATURES / problem.n_features))
    noise_norm *= math.sqrt(1.0 - rule.n_slots / problem.row_width)
    # As if every row had the largest weight, so that the unit of the weights of rows does not matter.
    weight = problem.largest_weight * problem.n_rows_low
    facts: dict[str, Any] = {"on_weights": not is_damped, "score_size": rule.score_size, "margin": loss.margin}
    part = SHARE_OF_BALANCED if problem.penalty.factors and min(rule.ridges_of_curves, default=1.0) == 1.0 else 1.0
    return part * balanced_l2(noise_norm, weight, row_norm, **facts, has_prior=rule.has_near_prior and any(problem.prior))


def _share_of_curvature_free(plan: Plan, *, for_intervals: bool) -> float:
    """The least automatic ridge, as a share of the ridge at which the curvature costs nothing."""
    problem, noise = plan.problem, plan.noise
    if noise is None or not noise.in_objective:
        return 1.0
    if for_intervals:
        return _LEAST_SHARE_BESIDE_MOMENTS if problem.beside_mu else 1.0
    if not problem.loss.constants.tapered:
        return 1.0
    # With a larger margin the scores have to be larger, and a ridge shrinks them more.
    margin = max(1.0, problem.loss.constants.margin)
    if problem.loss.constants.n_outputs > 1:
        return max(_LEAST_SHARE_FOR_CLASSES, 1.0 / margin)
    if noise.law == "gaussian" and plan.budget.is_concentrated:
        return _LEAST_SHARE_UNDER_RHO[problem.neighbours]
    in_parts = plan.budget.is_approximate and problem.neighbours is Neighbours.ADD_OR_REMOVE_ONE
    if noise.law == "gaussian" and not in_parts:
        # This bound has no intermediate case: curvature is either free or charged in full.
        return 1.0
    return max(0.5, _LEAST_SHARE_OF_CURVATURE_FREE[noise.law] / margin)


def _first_possible_plan(mechanism: Mechanism, problem: Problem, budget: Budget, most: float = _LARGEST_SEAL_SHARE) -> Plan:
    """The plan at the ridge of the problem, or at the first larger one that allows it.

    The ridges that allow a plan lie between two ends, since doubles are too coarse for ridges that are too small or too
    large. So the search first tries every eighth ridge, and then halves the interval before the first that works. Only where
    every eighth ridge fails does it try all of them.
    """
    if isinstance(mechanism, ObjectivePerturbation):
        # Give the mechanism the limit, so that it does not prefer a law of noise whose seal costs too much.
        mechanism = ObjectivePerturbation(most)
    ridges = list(accumulate(repeat(_RIDGE_STEP, _MOST_RIDGES - 1), mul, initial=problem.l2))

    @cache
    def plan_at(step: int) -> Plan | None:
        with suppress(InsufficientRegularisation):
            plan = mechanism.plan(replace(problem, l2=ridges[step]), budget)
            if plan.seal_share <= most:
                return plan
        return None

    for stride in (_STRIDE, 1):
        for step in range(0, _MOST_RIDGES, stride):
            if chosen := plan_at(step):
                between = range(max(0, step - stride), step + 1)
                return plan_at(between[bisect_left(between, True, key=lambda k: plan_at(k) is not None)]) or chosen
    shorter = ", a shorter prior" if any(problem.prior) else ""
    raise ParameterError(wording("no alpha is large enough", rows=problem.n_rows_high, shorter=shorter))


def curvature_free_l2(budget: Budget, loss: LossConstants, row_norm: float, neighbours: Neighbours) -> float:
    """A little more than the ridge of the sum form at which the curvature of the loss costs Laplace noise nothing.

    That ridge is t shift R^2 / epsilon. The shift is that of a row with the largest weight, R is the largest norm of a row,
    and t is the `tail` of the loss, which is 1 for the logistic loss. The factor 1.05 covers the small share of epsilon that
    goes to the seal.
    """
    if not math.isfinite(loss.smoothness):
        return 0.0
    return 1.05 * loss.tail * gradient_shift(loss.lipschitz, neighbours) * row_norm**2 / pure_epsilon(budget)


def usual_norm(row_bound: RowBound, intercept: float) -> float:
    """The L2 norm of a typical row with its intercept, guessed from the bound on rows only.

    Groups of columns count as `usual_squares_of_groups` has them. A row bounded by a ball is taken to be uniform below its
    bound, so its mean square is a third of the squared bound. A guess that does not fit the data costs accuracy, not
    privacy.
    """
    row_bound = before_moving(row_bound)
    if isinstance(row_bound, GroupBound):
        square = math.fsum(usual_squares_of_groups(row_bound))
    else:
        square = row_bound.l2_norm**2 / 3.0
    return math.sqrt(square + intercept**2)


def usual_norm_of_curves(encoder: Encoder) -> float | None:
    """The L2 norm of a typical row as it enters a model, without the intercept, if more is known of it than its bound says.

    That is so if numbers have knots or atoms, or if random features are appended to encoded rows; otherwise the result is
    None. It is `usual_norm`, but for atoms, which few rows have, and for numbers with knots: at a share f of the way from
    one knot to the next, two hats are f and 1 - f, so the mean square of their norm is 2/3. On Covertype with six knots at
    (0.05, 1e-5), the test error is .242 with this guess and .247 with a guess of 1. Random features add the square of their
    norm.
    """
    bound, schema, appended = encoder.row_bound, encoder.schema, encoder.appended
    of_groups = [1.0 if linked or size > 1 else 1.0 / 3.0 for size, linked in zip(bound.sizes, bound.linked, strict=True)]
    squares = dict(zip(schema.column_names, of_groups, strict=False))
    squares |= {column.name: _HATS for column in schema.columns if column.is_number and column.knots}
    has_curves = _HATS in squares.values()
    numbers = {column.name for column in schema.columns if column.is_number}
    products = []
    n_atoms = len(bound.sizes) - len(squares) - len(schema.interact)
    for interaction, square in zip(schema.interact, of_groups[len(squares) + n_atoms :], strict=True):
        coarse = {} if interaction.knots is None else dict.fromkeys(numbers, _HATS if interaction.knots else _LINE)
        members = [(squares | coarse)[name] for name in interaction.columns]
        has_curves |= _HATS in members
        is_known = bool(coarse) or _HATS in members
        products.append(interaction.scale**2 * (math.prod(members) if is_known else square))
    if not has_curves and appended is None and not n_atoms:
        return None
    features = 0.0 if appended is None else appended.feature_norm**2
    return math.sqrt(math.fsum([*squares.values(), n_atoms * _AT_ATOMS, *products, features]))


def has_curves(encoder: Encoder) -> bool:
    """Whether a number has three knots or more. With one or two its effect is a bent line."""
    columns, least = encoder.schema.columns, _KNOTS_OF_A_CURVE + 2
    return any(column.is_number and len(column.knots_with_bounds) >= least for column in columns)


def usual_norm_of_rows(encoder: Encoder) -> float:
    """The L2 norm of a typical row as it enters a model, without the intercept: `usual_norm_of_curves`, or `usual_norm`."""
    return usual_norm_of_curves(encoder) or usual_norm(encoder.row_bound, 0.0)


def typical_norm(problem: Problem, usual: float | None) -> float:
    """The L2 norm of a typical row with its intercept. `usual` is that without the intercept, if it is known."""
    return usual_norm(problem.row_bound, problem.intercept) if usual is None else math.hypot(usual, problem.intercept)


def strength(plan: Plan, usual: float | None, n_slots: int = 0) -> float:
    """The sum of all rows, each of typical norm, over the noise in the summed objective, for each weight.

    inf for a plan without such noise. `usual` is explained in `typical_norm`. Slots for atoms do not count.
    """
    problem = plan.problem
    if plan.noise is None:
        return math.inf
    rows = problem.largest_weight * problem.n_rows_low * typical_norm(problem, usual)
    part = 1.0 - n_slots / problem.row_width
    return rows / (part * problem.n_weights * math.sqrt(part) * plan.noise.norm)


def balanced_l2(
    noise_norm: float,
    weight: float,
    row_norm: float,
    *,
    on_weights: bool,
    score_size: float | None = None,
    margin: float = 1.0,
    has_prior: bool = False,
) -> float:
    """The ridge of the sum form that balances the noise against the shrinkage. alpha is this ridge over the number of rows.

    Let b be the noise in the summed objective, and |b| its root mean square norm. The noise adds about |b|^2 / (2 l2) to the
    loss, and the ridge adds about l2 |w|^2 / 2; the two are equal at l2 = |b| / |w|. The norm of w to be expected depends on
    how much the rows tell in spite of the noise. For rows of typical norm S it is taken to be |w| = B / S with

        B = 3.5 (n S / |b|)^(1/3),

    where n is the number of rows (if it is private, its lower bound) times the largest weight of a row; the product is the
    argument `weight`. Noise on the weights has norm |b| / l2 and is not damped by the curvature of the loss, so weights are
    kept short: B = 2.5.

    With a prior w0 the ridge adds l2 |w - w0|^2 / 2, and the distance |w - w0| is expected to be shorter where noise is
    large: half as long where t = n S / |b| is at most 50, and sqrt(t / 200) times as long from there to 200.

    If a hinge has its corner at a `margin` above 1, scores are larger by this factor, and so is B. For a regression the size
    of the scores is known, `score_size`, and B is twice that size.
    """
    if score_size is not None:
        return noise_norm * row_norm / (SCORE_FACTOR * score_size)
    ratio = weight * row_norm / noise_norm
    length = WEIGHT_NORM_ON_WEIGHTS if on_weights else WEIGHT_NORM_FACTOR * math.cbrt(ratio)
    if has_prior and not on_weights:
        length *= min(1.0, max(SHARE_WITH_PRIOR, math.sqrt(ratio / RATIO_WITHOUT_SHARE)))
    return noise_norm * row_norm / (max(1.0, margin) * length)


def l2_beside_curvature(noise_norm: float, problem: Problem) -> float:
    """The ridge of the sum form that balances noise on the weights against the shrinkage, where the loss bends.

    Noise of norm |b| / l2 is not damped by the curvature H of the summed loss. The ridge moves weights of norm |w| by about
    l2 |w| / H. The two are equal at l2 = sqrt(|b| H / |w|). H and |w| are those of typical rows: scores have a deviation of
    2 for margins, and of a quarter of the bound on targets for residuals. For noise that is not damped, errors are several
    times smaller than with `balanced_l2`, which falls as fast as rows are added (benchmarks/sparse_support.py).
    """
    loss, unit = problem.loss.constants, problem.loss.constants.unit
    has_residuals = loss.target_bound is not None
    in_column = typical_norm(problem, None) / math.sqrt(problem.row_width)
    curvature = usual_curvature(loss, unit, has_residuals=has_residuals) * problem.n_rows_low * in_column**2
    length = (0.25 * unit if has_residuals else 2.0 * max(1.0, loss.margin)) / in_column
    return math.sqrt(noise_norm * curvature / length)


def noise_l2(product_deviation: float, n_weights: int) -> float:
    """The ridge of the sum form that limits the effect of noise in X^T X: 0.7 t sqrt(D), D the number of weights.

    t is the standard deviation of the noise on one product. A symmetric matrix of such noise has eigenvalues up to
    2 t sqrt(D). Eigenvalues that become negative are set to 0 (`ridge_weights`), so about a third of that
    suffices. The ridge of Wang (2018) needs a private lower bound on the smallest eigenvalue, which costs budget, and it was
    not better on any design.
    """
    return NOISE_SHARE * product_deviation * math.sqrt(n_weights)
