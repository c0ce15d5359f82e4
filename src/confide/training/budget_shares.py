"""Which parts of a budget go to intervals, and to what named coefficients need."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from confide.erm.losses import LossConstants
from confide.errors import ParameterError, wording
from confide.inference.forecast import IntervalsPlan
from confide.inference.interest_plan import InterestPlan, facts_of
from confide.inference.sampling_design import SamplingDesign
from confide.privacy.budgets import ZCDP, Budget, budget_of_row, share_of, with_amount
from confide.privacy.curvature import Curvature
from confide.privacy.direction_sums import DirectionSums
from confide.privacy.gaussian import mu_within
from confide.privacy.mechanism import Plan
from confide.privacy.moments import Moments
from confide.privacy.noisy_sum import joint_event
from confide.privacy.spreads import Spreads
from confide.privacy.standardised_sums import RiskSums
from confide.training.alpha import usual_norm
from confide.training.auto_mechanism import mechanism_for, plan_of_weights
from confide.training.settings import Settings

_SHARES = (0.3, 0.05, 0.1, 0.15, 0.2, 0.4, 0.5, 0.6)
"""The shares that "auto" compares. Without privacy it takes the first."""
_MOST_CLASS_WEIGHTS = 1000
"""The largest number of weights for intervals with three or more classes. The moments then have a million entries with exact
noise, and each pair of classes needs its own products."""


def refuse_intervals(mechanism: str, loss: LossConstants, n_weights: int) -> None:
    """Refuse intervals if there is no proof for them, or if they would need too much memory."""
    if mechanism == "gradient":
        raise ParameterError(wording("no intervals of noisy gradients"))
    if loss.has_kinks:
        raise ParameterError(wording("no intervals of a hinge"))
    if loss.n_outputs > 1 and n_weights > _MOST_CLASS_WEIGHTS:
        raise ParameterError(wording("too many classes for intervals", most=_MOST_CLASS_WEIGHTS, n_weights=n_weights))
    if loss.by_length:
        raise ParameterError(wording("no intervals of clipped squares"))


def plans_with_intervals(settings: Settings, n_features: int, n_rows: int | None) -> list[Plan]:
    """The plans of weights and moments together, at the user's share or at those that are compared."""
    share = settings.inference_share
    automatic = _SHARES if settings.budget.is_private else _SHARES[:1]
    shares = automatic if isinstance(share, str) else (share,)
    return [plan for share in shares for plan in _plans_at(settings, n_features, n_rows, (share,), _with_moments)]


def breadth(plan: Plan) -> tuple[float, float]:
    """How broad the intervals of a plan are: by it those that can be trusted come first, the narrowest of them before all.

    Those have a ratio of at most `largest_ratio`. Without any, the smallest ratio comes first, which `check` then refuses.
    """
    intervals = plan.intervals
    assert isinstance(intervals, IntervalsPlan)  # noqa: S101 - the caller asks this of such plans
    return max(intervals.ratio, intervals.largest_ratio), intervals.margin


def _plans_at(
    settings: Settings,
    n_features: int,
    n_rows: int | None,
    shares: tuple[float, ...],
    whole: Callable[[Settings, Plan, tuple[float, ...], list[Budget], bool], Plan],
) -> tuple[Plan, ...]:
    """The plans at these shares: a part of the budget for each release, and for (epsilon, delta) one account of all.

    What is released for intervals is taken at the released weights, and at what was released before it, so this is adaptive
    composition. One charge covers all. `whole` makes the plan of weights and sums, in one account or not.
    """
    budget, plans = settings.budget, []
    if budget.is_approximate:
        parts = [beside_weights(budget, settings.rows_per_person, share) for share in shares]
        # There may be no plan with Gaussian noise in all releases.
        with suppress(ParameterError):
            beside = replace(settings, beside_mu=math.hypot(settings.beside_mu, *(mu for mu, _ in parts)))
            training = plan_of_weights(beside, n_features, n_rows)
            plans.append(whole(settings, training, shares, [of_part for _, of_part in parts], True))
    training = plan_of_weights(replace(settings, budget=share_of(budget, 1.0 - sum(shares))), n_features, n_rows)
    parted = [share_of(budget, share) for share in shares]
    plans.append(whole(settings, training, shares, parted, False))
    return tuple(plans)


def _with_moments(
    settings: Settings, training: Plan, shares: tuple[float, ...], budgets: list[Budget], is_joint: bool
) -> Plan:
    moments = Moments.plan(training, budgets[0])
    event = joint_event(training, moments) if is_joint else training.problem.event(settings.budget)
    whole = replace(training, event=event)
    return replace(whole, intervals=IntervalsPlan.of(shares[0], whole, moments, *_usual_rows(settings, training)))


def _usual_rows(settings: Settings, training: Plan) -> tuple[float, SamplingDesign]:
    """The norm of a typical row without its intercept, and what is declared about the sample."""
    usual = settings.usual_norm or usual_norm(settings.row_bound, 0.0)
    design = settings.sampling_design(training.problem.n_rows_low)
    return usual if math.isfinite(training.problem.row_norm) else 1.0, design


def beside_weights(budget: Budget, rows_per_person: int, share: float) -> tuple[float, ZCDP]:
    """What moments with Gaussian noise may cost beside weights: their shift over deviation for one row, and as a budget.

    The square of that ratio is what adds up if Gaussian releases share an account. `share` is the part of it.
    """
    mu = math.sqrt(share) * mu_within(budget_of_row(budget, rows_per_person))
    # The budget is that of a person, and a little less than mu stands for, so that roundings stay below mu.
    return mu, ZCDP(0.5 * (rows_per_person * mu) ** 2 * (1.0 - 2.0**-40))


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


def plan_with_interest(settings: Settings, n_features: int, n_rows: int | None) -> Plan:
    """The plan of weights, curvature and sums together.

    Raises
    ------
    ParameterError
        If there is no proof for such a release, or intervals could not be trusted at this budget.
    """
    _refuse(settings, n_features)
    if settings.mechanism == "auto" and settings.budget.is_private:
        settings = replace(settings, mechanism="objective")
    plan = _least(settings, n_features, n_rows)
    if not (interest := _interest(plan)).is_trustworthy:
        raise interest.refusal(_instead(settings, n_features, n_rows))
    return plan


def _least(settings: Settings, n_features: int, n_rows: int | None) -> Plan:
    """Of the possible plans the one with the shortest intervals that are to be trusted."""
    plans: list[Plan] = []
    for shares in (SHARES, _SHARES_OF_MUCH):
        of_risks = _SHARES_OF_RISKS if settings.risk_differences else ()
        for own in [(*(share * (1.0 - risks) for share in shares), risks) for risks in of_risks] or [shares]:
            possible = _plans_at(settings, n_features, n_rows, own, _with_interest)
            plans += [plan for plan in possible if shares == SHARES or _hidden(plan) <= 0.5]
    error = "error_of_risks" if settings.risk_differences else "error"
    return min(plans, key=lambda plan: (max(1.0, _hidden(plan)), getattr(plan.intervals, error)))


def _interest(plan: Plan) -> InterestPlan:
    """What is released for coefficients of interest."""
    assert isinstance(plan.intervals, InterestPlan)  # noqa: S101 - asked of such plans alone
    return plan.intervals


def _hidden(plan: Plan) -> float:
    """The noise in the curvature of a plan over the largest at which it is to be trusted."""
    return float(_interest(plan).hidden / _interest(plan).largest_hidden)


def _instead(settings: Settings, n_features: int, n_rows: int | None) -> str:
    """What would do in place of a plan that is refused: a budget, intervals for all coefficients, or more rows."""
    sentences, budget = [], settings.budget
    # Noise falls about as fast as the budget grows, or as its root: few plans are made in search of the least one.
    hidden = max(1.0, _hidden(_least(settings, n_features, n_rows)))
    likely = [factor for factor in _FACTORS if factor >= 0.75 * (hidden**2 if budget.is_concentrated else hidden)]
    for factor in likely[:_MOST_TRIED]:
        with suppress(ParameterError):
            larger = with_amount(budget, float(f"{factor * budget.amount:.2g}"))
            if _interest(_least(replace(settings, budget=larger), n_features, n_rows)).is_trustworthy:
                sentences.append(f"A budget that would do: {larger}.")
                break
    with suppress(ParameterError):
        of_all = replace(settings, interest=(), risk_differences=False, inference_share=_SHARE_OF_ALL, mechanism="auto")
        best = min(plans_with_intervals(of_all, n_features, n_rows), key=breadth).intervals
        assert isinstance(best, IntervalsPlan)  # noqa: S101 - as they are
        best.check()
        sentences.append(wording("intervals for all coefficients", share=_SHARE_OF_ALL))
    return " ".join([*sentences, "More rows, fewer columns, or ApproxDP or ZCDP in place of PureDP help too."])


def _refuse(settings: Settings, n_features: int) -> None:
    loss = settings.score_loss.loss
    if loss.constants.n_outputs > 1:
        raise ParameterError("interest is for two classes: with more, inference_share has intervals for all coefficients.")
    if settings.budget.is_private and mechanism_for(settings, loss) != "objective":
        raise ParameterError(wording("interest needs a minimiser"))
    if n_features > _MOST_COLUMNS:
        raise ParameterError(wording("interest in many columns", most=_MOST_COLUMNS, n_features=n_features))


def _with_interest(
    settings: Settings, training: Plan, shares: tuple[float, ...], budgets: list[Budget], is_joint: bool
) -> Plan:
    spreads = Spreads.plan(training, budgets[0])
    curvatures = Curvature.plan(training, budgets[1]), Curvature.plan(training, budgets[2])
    sums = DirectionSums.plan(training, len(settings.interest), budgets[3])
    risks = RiskSums.plan(training, len(settings.interest), budgets[4]) if settings.risk_differences else None
    usual, design = _usual_rows(settings, training)
    whole = replace(training, event=training.problem.event(settings.budget))
    facts = facts_of(training, curvatures[1], sums, design)
    plan = InterestPlan(settings.budget, shares, spreads, curvatures, sums, settings.interest, facts, usual, risks)
    return replace(whole, event=joint_event(training, *plan.releases) if is_joint else whole.event, intervals=plan)
