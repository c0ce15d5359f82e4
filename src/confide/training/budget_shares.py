"""Which parts of a budget go to intervals, centres and means, and whether gradients are noisy."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from confide.erm.group_bounds import GroupBound
from confide.erm.losses import LogisticLoss, Loss
from confide.erm.row_bounds import BallBound, Centred
from confide.erm.target_losses import PoissonLoss, SquaredLoss
from confide.errors import ParameterError
from confide.expected_noise import noise_in_rows
from confide.inference.forecast import IntervalsPlan
from confide.inference.interest_plan import InterestPlan
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP, budget_of_row
from confide.privacy.centring import CentringPlan, centring_plan
from confide.privacy.curvature import NoisyCurvature
from confide.privacy.direction_sums import NoisyDirectionSums, event_of_sums
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import gradient_shift, mu_within
from confide.privacy.lattice import LatticeLaplace
from confide.privacy.matching import MatchingPlan, matching_plan
from confide.privacy.mechanism import Plan, Problem
from confide.privacy.moments import MomentsPlan, SecondMoments, joint_event
from confide.privacy.spreads import NoisySpreads
from confide.privacy.standardised_sums import NoisyStandardisedSums
from confide.training.alpha import USUAL_RADIUS, strength, usual_norm
from confide.training.auto_loss import ENOUGH_FOR_THE_HINGE
from confide.training.auto_mechanism import mechanism_for, plan_of_weights
from confide.training.gradient_steps import has_many_numbers
from confide.training.settings import ScoreLoss, Settings

_SHARES = (0.3, 0.05, 0.1, 0.15, 0.2, 0.4, 0.5, 0.6)
"""The shares that "auto" compares. Without privacy it takes the first."""
_MOST_CLASS_WEIGHTS = 1000
"""The largest number of weights for intervals with three or more classes. The moments then have a million entries with exact
noise, and each pair of classes needs its own products."""


def refuse_noisy_gradients(mechanism: str) -> None:
    """Refuse intervals for a mechanism whose weights are not near the minimiser by a known law."""
    if mechanism == "gradient":
        raise ParameterError(
            "there are no intervals with mechanism='gradient': the weights after a fixed number of steps have no law that "
            "is known closely enough. Give mechanism='objective' or 'output', or leave inference_share at 0."
        )


def refuse_intervals(loss: Loss, n_weights: int) -> None:
    """Refuse intervals if there is no proof for them, or if they would need too much memory."""
    if not math.isfinite(loss.smoothness):
        raise ParameterError(
            "intervals need a loss that bends, and the hinge has a corner. Use LogisticRegression, or loss='huber_hinge' or "
            "'smooth_hinge', or leave inference_share at 0."
        )
    if loss.n_outputs > 1 and n_weights > _MOST_CLASS_WEIGHTS:
        raise ParameterError(
            f"intervals for several classes are for at most {_MOST_CLASS_WEIGHTS:,} weights, and classes times columns "
            f"would be {n_weights:,}. Use fewer columns or classes, or leave inference_share at 0."
        )
    if loss.by_length:
        raise ParameterError(
            "intervals need a slope with one bound for all rows, which loss='clipped_squared' does not have: use "
            "loss='huber', or leave inference_share at 0."
        )


def plan_with_intervals(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """The plan of weights and moments together, with the user's share or the best one.

    Raises
    ------
    ParameterError
        If intervals could not be trusted at this budget.
    """
    share = settings.inference_share
    automatic = _SHARES if settings.budget.is_private else _SHARES[:1]
    shares = automatic if isinstance(share, str) else (share,)
    plans = [plan for each in shares for plan in _plans_at(settings, score_loss, n_features, n_rows, each)]
    # Among the intervals that can be trusted (ratio at most `largest_ratio`), take the narrowest. If there are none, take
    # those with the smallest ratio, which `check` then refuses.
    plan = min(plans, key=lambda plan: (max(plan.intervals.ratio, plan.intervals.largest_ratio), plan.intervals.margin))
    plan.intervals.check()
    return plan


def _plans_at(
    settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None, share: float
) -> tuple[Plan, ...]:
    """The plans at this share: a part of the budget for each release, and for (epsilon, delta) one account of both.

    The moments are taken at the released weights, so this is adaptive composition. One charge covers both releases.
    """
    budget, plans = settings.budget, []
    if isinstance(budget, ApproxDP):
        mu, of_moments = beside_weights(budget, settings.rows_per_person, share)
        # There may be no plan with Gaussian noise in both releases.
        with suppress(ParameterError):
            beside = replace(settings, beside_mu=math.hypot(settings.beside_mu, mu))
            training = plan_of_weights(beside, score_loss, n_features, n_rows, budget)
            moments = SecondMoments().plan(training, of_moments)
            plans.append(_with_moments(settings, share, replace(training, event=joint_event(training, moments)), moments))
    training = plan_of_weights(settings, score_loss, n_features, n_rows, share_of(budget, 1.0 - share))
    moments = SecondMoments().plan(training, share_of(budget, share))
    plans.append(_with_moments(settings, share, replace(training, event=training.problem.event(budget)), moments))
    return tuple(plans)


def _with_moments(settings: Settings, share: float, training: Plan, moments: MomentsPlan) -> Plan:
    usual = settings.usual_norm or usual_norm(settings.row_bound, 0.0)
    usual = usual if math.isfinite(training.problem.row_norm) else 1.0
    design = settings.sampling_design(training.problem.n_rows_low)
    return replace(training, intervals=IntervalsPlan.of(share, training, moments, usual, design))


def beside_weights(budget: ApproxDP, rows_per_person: int, share: float) -> tuple[float, ZCDP]:
    """What moments with Gaussian noise may cost beside weights: their shift over deviation for one row, and as a budget.

    The square of that ratio is what adds up if Gaussian releases share an account. `share` is the part of it.
    """
    of_row = budget_of_row(budget, rows_per_person)
    assert isinstance(of_row, ApproxDP)  # noqa: S101 - the kind of the budget
    mu = math.sqrt(share) * mu_within(of_row)
    # The budget is that of a person, and a little less than mu stands for, so that roundings stay below mu.
    return mu, ZCDP(0.5 * (rows_per_person * mu) ** 2 * (1.0 - 2.0**-40))


def share_of(budget: Budget, share: float) -> Budget:
    """A part of a budget. Parts whose shares add up to 1 cost at most the whole together, by basic composition.

    The factor 1 - 2^-50 rounds each part down, so that rounding cannot make the sum exceed the whole.
    """
    if share == 1.0 or not budget.is_private:
        return budget
    return type(budget)(*(share * getattr(budget, name) * (1.0 - 2.0**-50) for name in budget.ranges))


# Intervals for named coefficients: the shares of the budget, and the plan of all that is released for them.

SHARES = (0.05, 0.1, 0.2, 0.35)
"""Shares of the spreads, of the first and of the second curvature, and of the sums along directions. The weights have the
rest. Of the shares that were compared these gave the shortest intervals with the stated coverage
(benchmarks/notes/intervals_of_one_coefficient.md)."""
_SHARES_OF_MUCH = (0.03, 0.06, 0.11, 0.5)
"""The same where the noise hides at most half of what it may: errors of second order are small there, so the sums have more
(benchmarks/notes/intervals_of_one_coefficient.md)."""
_SHARES_OF_RISKS = (0.01, 0.02, 0.04, 0.08)
"""The shares of the sums for differences of risks that are compared. They leave the others in the same proportion."""
_FACTORS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0)
"""By how much a budget is raised in search of one at which there is a plan."""
_MOST_TRIED = 4
_SHARE_OF_ALL = 0.3
"""The share of intervals for all coefficients that a refusal names."""
_MOST_COLUMNS = 1000
"""The largest number of weights: the curvature then has half a million entries with exact noise."""


def plan_with_interest(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """The plan of weights, curvature and sums together.

    Raises
    ------
    ParameterError
        If there is no proof for such a release, or intervals could not be trusted at this budget.
    """
    _refuse(settings, score_loss, n_features)
    if settings.mechanism == "auto" and settings.budget.is_private:
        settings = replace(settings, mechanism="objective")
    plan = _least(settings, score_loss, n_features, n_rows)
    if not plan.intervals.is_trustworthy:
        raise plan.intervals.refusal(_instead(settings, score_loss, n_features, n_rows))
    return plan


def _least(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> Plan:
    """Of the possible plans the one with the shortest intervals that are to be trusted."""
    plans: list[Plan] = []
    for shares in (SHARES, _SHARES_OF_MUCH):
        own = [(*(each * (1.0 - risks) for each in shares), risks) for risks in _SHARES_OF_RISKS if settings.has_risks]
        found = [plan for each in own or [shares] for plan in _plans(settings, score_loss, n_features, n_rows, each)]
        plans += [plan for plan in found if shares == SHARES or _is_clear(plan)]
    if not settings.has_risks:
        return min(plans, key=lambda plan: (_excess(plan), plan.intervals.error))
    return min(plans, key=lambda plan: (_excess(plan), plan.intervals.error_of_risks))


def _is_clear(plan: Plan) -> bool:
    """Whether the noise in the curvature hides at most half of what it may."""
    return float(plan.intervals.hidden) <= 0.5 * float(plan.intervals.largest_hidden)


def _excess(plan: Plan) -> float:
    """The noise in the curvature of a plan over the largest at which it is to be trusted; 1 for all that are."""
    return max(1.0, float(plan.intervals.hidden / plan.intervals.largest_hidden))


def _instead(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None) -> str:
    """What would do in place of a plan that is refused: a budget, intervals for all coefficients, or more rows."""
    found, budget = [], settings.budget
    name, *others = budget.ranges
    # Noise falls about as fast as the budget grows, or as its root: few plans are made in search of the least one.
    hidden = _excess(_least(settings, score_loss, n_features, n_rows))
    likely = [each for each in _FACTORS if each >= 0.75 * (hidden**2 if isinstance(budget, ZCDP) else hidden)]
    for factor in likely[:_MOST_TRIED]:
        with suppress(ParameterError):
            larger = type(budget)(
                float(f"{factor * getattr(budget, name):.2g}"), *(getattr(budget, each) for each in others)
            )
            if _least(replace(settings, budget=larger), score_loss, n_features, n_rows).intervals.is_trustworthy:
                found.append(f"A budget that would do: {larger}.")
                break
    with suppress(ParameterError):
        of_all = replace(settings, interest=(), has_risks=False, inference_share=_SHARE_OF_ALL, mechanism="auto")
        plan_with_intervals(of_all, score_loss, n_features, n_rows)
        found.append(
            f"Intervals for all coefficients can be had at this budget, for the target with the ridge: give "
            f"inference_share={_SHARE_OF_ALL:g} (intervals on the command line) in place of interest."
        )
    return " ".join([*found, "More rows, fewer columns, or ApproxDP or ZCDP in place of PureDP help too."])


def _refuse(settings: Settings, score_loss: ScoreLoss, n_features: int) -> None:
    if score_loss.loss.n_outputs > 1:
        raise ParameterError(
            "interest is for two classes: with three or more, inference_share has intervals for all coefficients."
        )
    if settings.budget.is_private and mechanism_for(settings, score_loss.loss) != "objective":
        raise ParameterError(
            "interest needs weights near the minimiser by a known law: give mechanism='objective' or 'auto', or leave out "
            "interest."
        )
    if n_features > _MOST_COLUMNS:
        raise ParameterError(
            f"interest is for at most {_MOST_COLUMNS:,} columns as they enter the fit, and here are {n_features:,}. Use "
            f"fewer columns or levels."
        )


def _plans(
    settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None, shares: tuple[float, ...]
) -> tuple[Plan, ...]:
    """The plans: a part of the budget for each release, and for (epsilon, delta) one account of all.

    The curvature is taken at the released weights, the sums along directions that follow from both, and those for
    differences of risks at points that follow from all three, so this is adaptive composition. One charge covers all.
    """
    budget, plans = settings.budget, []
    if isinstance(budget, ApproxDP):
        parts = [beside_weights(budget, settings.rows_per_person, share) for share in shares]
        beside = replace(settings, beside_mu=math.hypot(*(mu for mu, _ in parts)))
        # There may be no plan with Gaussian noise in all releases.
        with suppress(ParameterError):
            training = plan_of_weights(beside, score_loss, n_features, n_rows, budget)
            plans.append(_with_interest(settings, training, shares, [of_part for _, of_part in parts], is_joint=True))
    rest = share_of(budget, 1.0 - sum(shares))
    training = plan_of_weights(settings, score_loss, n_features, n_rows, rest)
    parted = [share_of(budget, share) for share in shares]
    plans.append(_with_interest(settings, training, shares, parted, is_joint=False))
    return tuple(plans)


def _with_interest(
    settings: Settings, training: Plan, shares: tuple[float, ...], budgets: Sequence[Budget], *, is_joint: bool
) -> Plan:
    spreads = NoisySpreads().plan(training, budgets[0])
    curvatures = NoisyCurvature().plan(training, budgets[1]), NoisyCurvature().plan(training, budgets[2])
    sums = NoisyDirectionSums().plan(training, len(settings.interest), budgets[3])
    risks = NoisyStandardisedSums().plan(training, len(settings.interest), budgets[4]) if settings.has_risks else None
    usual = settings.usual_norm or usual_norm(settings.row_bound, 0.0)
    usual = usual if math.isfinite(training.problem.row_norm) else 1.0
    whole = replace(training, event=training.problem.event(settings.budget))
    design = settings.sampling_design(training.problem.n_rows_low)
    plan = InterestPlan.of(shares, whole, spreads, curvatures, sums, settings.interest, usual, risks, design)
    return replace(whole, event=event_of_sums(training, *plan.releases) if is_joint else whole.event, intervals=plan)


# Whether a part of the budget finds the middle of the rows, and the plan of weights with it. Public facts decide it.
#
# Rows that were moved by their middle are shorter, so noise that hides one of them is smaller in relation to them. That
# pays where noise is large. Where it is small, it is better to keep the budget for the weights.

_SHARE = 0.02
"""The part of the budget that finds the middle of the rows: benchmarks/centring.py."""
ENOUGH_FOR_GRADIENTS = 1.6
"""At this `strength` of a plan with noise in the objective, noisy gradients take its place where they may. Without them rows
are then not centred, but for random features and regressions (benchmarks/gradients.py)."""
_ENOUGH_UNDER_RHO = 1.1
"""The same under a concentrated budget, whose account asks for up to 15% more noise in an objective than the ideal. Straight
lines at a rho of .001 (20 and 12 fits): Covertype, at a strength of 1.4, errs by .255 with gradients and by .260 without,
and Bank, at 1.2, by .106 and .107. Below 0.9 Adult errs more often with gradients, by .0005 and .0018."""
_LEAST_NOISE = 8e-4
"""Where the noise is less than what this share of the rows can pull together, a centre gains nothing
(benchmarks/centring.py)."""


def plan_with_centring(settings: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None, plan: Plan) -> Plan:
    """The plan with a centre of the rows, or the plan that was given where a centre does not pay or there can be none."""
    if not settings.may_centre or not _may_be_centred(plan):
        return plan
    if gradients_were_compared(plan, settings, score_loss) and strength(plan, settings.usual_norm) >= enough_for_gradients(
        plan
    ):
        # Centred rows are shortened, and with so little noise that costs more than the centre gains.
        return plan
    problem, budget = plan.problem, plan.budget
    # There may be no plan for what is left of the budget.
    with suppress(ParameterError):
        centring = centring_plan(problem, budget, _SHARE)
        if plan.descent is None and USUAL_RADIUS * _ideal_noise(problem, centring) >= plan.noise_norm * plan.l2:
            return plan
        bound = Centred.unmoved(problem.row_bound, n_features)
        moved = replace(settings, row_bound=bound, beside_mu=math.hypot(settings.beside_mu, centring.mu))
        centred = replace(plan_of_weights(moved, score_loss, n_features, n_rows, budget), centring=centring)
        if plan.descent is not None or USUAL_RADIUS * _noise(centred) < _noise(plan):
            return centred
    return plan


def enough_for_gradients(plan: Plan) -> float:
    """The `strength` from which on noisy gradients may take the place of a plan with noise in the objective."""
    return _ENOUGH_UNDER_RHO if isinstance(plan.budget, ZCDP) else ENOUGH_FOR_GRADIENTS


def gradients_were_compared(plan: Plan, settings: Settings, score_loss: ScoreLoss) -> bool:
    """Whether a plan with noise of its own is of the kind for which mechanisms were compared: two classes, columns as given.

    With random features, an exact minimiser with noise in the objective was better than noisy gradients.
    """
    has_features = settings.random_features or settings.appends_features
    of_two_classes = score_loss.score_size is None and plan.problem.loss.n_outputs == 1
    return plan.noise is not None and of_two_classes and not has_features


def _ideal_noise(problem: Problem, centring: CentringPlan) -> float:
    """The norm of Gaussian noise in the summed objective if what the centre leaves of the budget bought nothing else."""
    left = centring.mu * math.sqrt(1.0 / centring.share - 1.0)
    longest = gradient_shift(problem.loss_bounds.lipschitz, problem.neighbours) * problem.row_norm
    return longest * math.sqrt(problem.n_weights) / left


def _noise(plan: Plan) -> float:
    """The noise as a part of what all rows of the largest norm can pull together."""
    return noise_in_rows(plan) / plan.problem.n_rows_low


def _may_be_centred(plan: Plan) -> bool:
    """Whether weights for moved rows can be released and given for rows as they are, and noise is large enough for it."""
    problem = plan.problem
    return (
        isinstance(plan.budget, ApproxDP | ZCDP)
        # Without an intercept, scores of moved rows are no scores of rows.
        and problem.intercept > 0.0
        and not problem.loss.by_length
        and type(problem.row_bound) in (BallBound, GroupBound)
        # Gradients clip slopes by the length of a row, so shorter rows keep more of theirs, however small the noise is.
        and (plan.descent is not None or _noise(plan) > _LEAST_NOISE)
    )


# Whether a part of the budget makes predicted counts right in the mean, and the plan with it. Public facts decide it.
#
# A clipped loss and a ridge draw predictions of counts below their mean. Two noisy sums after the weights give the factor
# by which they are too small. The more noise the weights have the more there is to gain, and the noise in the sums is a
# small part of the count of a row for all but few rows.

_LARGEST_SHARE, _LEAST_SHARE = 0.1, 0.01
"""The largest and the least part of the budget that pays for the sums: benchmarks/means_of_counts.py."""
_AIM = 0.0015
"""The deviation of the noise in the mean residual that is aimed at, as a share of the bound on counts (the same
benchmark)."""
_TOO_LARGE = 0.005
"""With more noise than this in the mean residual there is no matching: the same benchmark."""
_MOST_NOISE = 1.5
"""Noise and ridge of the weights may grow by this factor at most. Usually they grow by 1.01 to 1.25."""
_UP = 1.0 + 2.0**-30


def plan_with_matching(plan: Plan, settings: Settings, make: Callable[[Settings], Plan]) -> Plan:
    """The plan with a mean that is matched, or the plan that was given where that does not pay or there can be none.

    Parameters
    ----------
    plan : the plan without it
    settings : the settings of the fit
    make : makes the plan of the weights from settings with less budget
    """
    if not settings.matches or not _may_be_matched(plan, settings):
        return plan
    budget, law = settings.budget, _law(plan)
    # There may be no plan for what is left of the budget.
    with suppress(ParameterError):
        share = _share(plan, budget, law)
        if share is None:
            return plan
        if isinstance(budget, ApproxDP) and law == "gaussian":
            mu = matching_plan(plan.problem, budget, share, law).mu * _UP
            made = make(replace(settings, beside_mu=math.hypot(settings.beside_mu, mu)))
            event = made.event
        else:
            made = make(replace(settings, budget=_without(budget, share)))
            event = _event_of_both(made, budget, share)
        if noise_in_rows(made) <= _MOST_NOISE * noise_in_rows(plan) and made.alpha <= _MOST_NOISE * plan.alpha:
            return replace(made, event=event, matching=matching_plan(made.problem, budget, share, law))
    return plan


def _event_of_both(made: Plan, budget: Budget, share: float) -> Event:
    """What a ledger counts for weights and sums whose costs add up; its curve is that of pure privacy where both have it."""
    curve = made.event.curve
    if not isinstance(curve, PureMechanism) or isinstance(budget, ZCDP):
        return made.problem.event(budget)
    return made.problem.event(budget, PureMechanism((curve.epsilon + share * budget.epsilon) * _UP))


def _law(plan: Plan) -> str:
    """The law of the noise on the sums. Under an approximate budget it is that of the weights, which shares its account."""
    if isinstance(plan.budget, ApproxDP):
        is_laplace = isinstance(plan.lattice, LatticeLaplace) if plan.noise is None else plan.noise.law == "laplace"
        return "laplace" if is_laplace else "gaussian"
    return "laplace" if isinstance(plan.budget, PureDP) else "gaussian"


def _without(budget: Budget, share: float) -> Budget:
    """What a share of epsilon or of rho leaves for the weights. Sums with Laplace noise cost no delta."""
    left = share_of(budget, 1.0 - share)
    return ApproxDP(left.epsilon, budget.delta) if isinstance(budget, ApproxDP) and isinstance(left, ApproxDP) else left


def noise_in_the_mean(matching: MatchingPlan, plan: Plan) -> float:
    """The deviation of the noise in the mean residual, as a share of the bound on counts."""
    return matching.lattice.deviation / (plan.problem.intercept * matching.target_bound * plan.problem.n_rows_low)


def _share(plan: Plan, budget: Budget, law: str) -> float | None:
    """The part of the budget at which the noise is what is aimed at; None if it is too large at the largest part."""
    matching = matching_plan(plan.problem, budget, _LARGEST_SHARE, law)
    noise = noise_in_the_mean(matching, plan)
    if noise > _TOO_LARGE:
        return None
    # Gaussian noise shrinks as the root of its share grows, Laplace noise as the share does.
    wanted = _LARGEST_SHARE * math.pow(noise / _AIM, 2.0 if law == "gaussian" else 1.0)
    return max(_LEAST_SHARE, min(_LARGEST_SHARE, wanted))


def _may_be_matched(plan: Plan, settings: Settings) -> bool:
    """Whether predictions are exponentials of scores that have an intercept, and weights stay as they are released.

    Weights become 0 after the release with an l1 penalty. Intervals are those of the weights that were released.
    """
    return (
        plan.budget.is_private
        and isinstance(plan.problem.loss, PoissonLoss)
        and plan.problem.intercept > 0.0
        and settings.l1_ratio == 0.0
        and not settings.has_intervals
    )


# Whether "auto" stands for noisy gradients, and the plan with them. Public facts decide it.
#
# Noise in an objective is damped by the curvature of the loss, but the curvature costs a part of the budget, and rows have
# to be clipped before they are used. Noisy gradients clip the slope of a row alone. For a loss with a margin both err alike
# with much noise. With less noise gradients err less often, because they change fewer rows. The logistic loss without a
# margin is half as steep at scores of 0 as it may become. So gradients that are clipped there need half the noise, which
# pays where noise is large. With next to no noise an exact minimiser is better than the mean of a fixed number of steps
# (benchmarks/gradients.py).

_ENOUGH_FOR_CURVES = 250.0
"""From this `strength` on, curves are left to the exact minimiser. `AdditiveClassifier` under (epsilon, delta), errors by
gradients less those by the objective (6 to 12 fits): -.0012 to 0 on Bank, Adult and Covertype at strengths of 2 to 9, and
-.009 to -.001 on Skin at 5 to 185. On Bank with economic indicators and KDD Cup 99 with all columns, which had no part in
the choice, -.0014 to -.0004 at 1 to 3.5 and +.0005 at epsilon 4."""
_ENOUGH_FOR_OTHER_KNOTS = 3.0
"""The same for numbers with one or two knots; for the logistic loss without a margin, whose probabilities clipped slopes
would make too sure; and for tables of so many numbers that fewer sums are made. With one or two knots on KDD Cup 99,
gradients erred more often by 0 to .0006 at 5 to 78."""
_ENOUGH_FOR_THE_LOGISTIC_LOSS = 8.0
"""From this `strength` on, the logistic loss without a margin is left to the exact minimiser. `LogisticRegression`,
(epsilon, 1e-5), test errors by gradients and by the objective (6 fits): Bank at .5, a strength of 7.7, .0983 and .1010;
Bank with economic indicators at .5, 4.6, .0846 and .0869. From 9 on Covertype and Adult err more often by up to .001 (20
fits), Bank less often. Calibration errors are smaller by .004 to .015, and on Adult larger by .001 to .002."""

_NOISY, _NOISY_UNDER_RHO, _NOISY_FOR_COUNTS = 0.05, 0.002, 0.001
"""Noise in an objective, as a share of what all rows can pull together, above which gradients predict numbers better. R^2 of
`HuberRegressor` with noise in the objective and by gradients (6 fits, benchmarks/means_of_counts.py --part gradients),
(epsilon, 1e-6): hours worked at .05, a share of .062, .098 and .120; at .1, .032, .126 and .133, but age .372 and .363; at
.5, .006, .163 and .161. Under a rho of .05: prices of diamonds, a share of .004, .873 and .898; hours, .017, .094 and .165;
of .5, .001, prices .915 and .899. For counts gradients are better with more noise than a thousandth: of the deviance of
visits to a doctor models explain .125 and .134 at .5, a share of .008, and .10 and .143 at a rho of .05; at epsilon 4,
.0007, .144 and .145, but of visits for mental health .115 and .067."""

_NOISY_FOR_CLASSES = 0.001
"""The same for three or more classes (benchmarks/gradients_of_classes.py). Seven classes of Covertype, errors of
`LogisticRegression` and of `LinearSVC` with noise in the objective or on the weights, and by gradients (2 fits), (epsilon,
1e-5): .358 and .302, .397 and .342 at .1; .303 and .287, .345 and .291 at .5; .291 and .287, .289 and .290 at 4, shares of
.0008 and .0013; at a rho of .005 .337 and .292, .362 and .298."""


def gradients_or(
    plan: Plan, settings: Settings, asked: Settings, score_loss: ScoreLoss, n_features: int, n_rows: int | None
) -> Plan:
    """The plan with noisy gradients where "auto" stands for them, or the plan that was given.

    Parameters
    ----------
    plan : the plan without them, at the loss and the bound on rows that were chosen
    settings : the settings with that bound
    asked : the settings before; gradients clip slopes, and rows are as long as they are
    score_loss : the loss that was chosen
    n_features, n_rows : as in `make_plan`
    """
    of_two = _errs_less_often(plan, settings, asked, score_loss)
    if not of_two and not _regression_is_better(plan, settings) and not _of_classes_is_better(plan, settings):
        return plan
    asked = replace(asked, mechanism="gradient")
    # There may be no plan: sums over very many rows may be too inexact.
    with suppress(ParameterError):
        taken = plan_of_weights(asked, score_loss, n_features, n_rows, asked.budget)
        return plan_with_centring(asked, score_loss, n_features, n_rows, taken)
    return plan


def _errs_less_often(plan: Plan, settings: Settings, asked: Settings, score_loss: ScoreLoss) -> bool:
    """Whether gradients err less often for two classes."""
    # Settings with a smaller bound on rows do not know the usual norm any more.
    least, enough = _limits(plan, asked)
    return _may_take_gradients(plan, settings, score_loss) and least <= strength(plan, settings.usual_norm) < enough


def _regression_is_better(plan: Plan, settings: Settings) -> bool:
    """Whether gradients predict numbers better, because noise in the objective is large."""
    loss, noise = plan.problem.loss, plan.noise
    is_regression = isinstance(loss, PoissonLoss | SquaredLoss) and plan.perturbs_objective
    if not _was_compared(plan, settings) or noise is None or not is_regression:
        return False
    share = noise_in_rows(plan) / plan.problem.n_rows_low
    if isinstance(loss, PoissonLoss):
        return share > _NOISY_FOR_COUNTS
    if isinstance(plan.budget, ZCDP):
        return share > _NOISY_UNDER_RHO
    return share > _NOISY and noise.law == "gaussian"


def _of_classes_is_better(plan: Plan, settings: Settings) -> bool:
    """Whether gradients err less often for three or more classes, because other noise is large."""
    share = noise_in_rows(plan) / plan.problem.n_rows_low
    return plan.problem.loss.n_outputs > 1 and _was_compared(plan, settings) and share > _NOISY_FOR_CLASSES


def _was_compared(plan: Plan, settings: Settings) -> bool:
    """Whether a plan leaves the mechanism open and is of the kind for which regressions and classes were compared."""
    has_features = settings.random_features or settings.appends_features
    is_open = settings.mechanism == "auto" and settings.may_centre and not has_features
    return is_open and plan.budget.is_private and not isinstance(plan.budget, PureDP)


def _limits(plan: Plan, asked: Settings) -> tuple[float, float]:
    """The `strength` from which on gradients err less often, and that from which on an exact minimiser does."""
    is_logistic, least = isinstance(plan.problem.loss, LogisticLoss), enough_for_gradients(plan)
    if asked.usual_norm is not None:
        takes_few_sums = is_logistic or not asked.has_curves or has_many_numbers(plan.problem)
        return least, _ENOUGH_FOR_OTHER_KNOTS if takes_few_sums else _ENOUGH_FOR_CURVES
    if is_logistic:
        return 0.0, _ENOUGH_FOR_THE_LOGISTIC_LOSS
    return least, ENOUGH_FOR_THE_HINGE


def _may_take_gradients(plan: Plan, settings: Settings, score_loss: ScoreLoss) -> bool:
    """Whether the plan and the loss are of the kind for which gradients were compared."""
    return (
        settings.mechanism == "auto"
        # Gradients were compared on centred rows.
        and settings.may_centre
        and gradients_were_compared(plan, settings, score_loss)
        and plan.perturbs_objective
        # Pure budgets have no Gaussian noise. Few weights of straight lines may have less noise of another law.
        and not isinstance(plan.budget, PureDP)
        and plan.noise is not None
        and (plan.noise.law == "gaussian" or settings.has_curves)
        # The logistic loss, with a margin or without.
        and plan.problem.loss.tapered
    )
