"""How charges add up, and which charges a limit admits: the filters of a ledger. Proof: proofs/ledger.md.

A filter stays valid if each charge is chosen after the outcomes of earlier charges were seen. Sums are exact: a number
counts as the decimal that is written for it, so that ten times 0.1 is 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from operator import attrgetter
from typing import Any, TypeAlias

from confide.accounting.records import Entry
from confide.errors import BudgetExceeded, LedgerError, imported, wording
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP, concentrated_epsilon, concentrated_limit
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import GaussianMechanism

NOTHING = Fraction(0)
ACCOUNTINGS = ("sum", "renyi")
CURRENCIES = ("epsilon", "delta", "rho")


@dataclass(frozen=True, slots=True)
class Amount:
    """Exact costs, which can be added. An infinite one is infinite, or is not counted by the filter."""

    epsilon: Fraction | float = NOTHING
    delta: Fraction = NOTHING
    rho: Fraction | float = NOTHING
    slack: Fraction = NOTHING

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.epsilon + other.epsilon, self.delta + other.delta, self.rho + other.rho, self.slack + other.slack)


def exact(number: float) -> Fraction:
    """The decimal number that is written for a double.

    The double nearest to a decimal exceeds the decimal by at most one part in 2^53. Every mechanism rounds its own cost up
    by one part in 2^40, which covers the difference.
    """
    return Fraction(repr(float(number)))


def rounded_down(number: Fraction) -> float:
    """The largest double that is at most a number."""
    nearest = float(number)
    return nearest if exact(nearest) <= number else math.nextafter(nearest, 0.0)


# A filter has a `limit`: the guarantee of all admitted charges together. `amount` is what one event costs under it, `admits`
# says whether charges of a total stay within the limit, and `spent` and `remaining` are a total, and what is left of the
# limit, in its currency.


@dataclass(frozen=True, slots=True)
class SumFilter:
    """Adds epsilons and deltas, under a pure or an approximate limit."""

    limit: Budget

    def amount(self, event: Event) -> Amount:
        budget = event.budget
        counts = budget.is_private and not budget.is_concentrated
        return Amount(exact(budget.amount) if counts else math.inf, exact(budget.slack), math.inf)

    def admits(self, total: Amount) -> bool:
        return total.epsilon <= exact(self.limit.amount) and total.delta <= exact(self.limit.slack)

    def spent(self, total: Amount) -> Budget:
        epsilon = float(total.epsilon)
        return PureDP.of_sum(epsilon) if self.limit.is_pure else ApproxDP.of_sum(epsilon, float(total.delta))

    def remaining(self, total: Amount) -> Budget:
        left = max(NOTHING, exact(self.limit.amount) - total.epsilon)
        return self.spent(Amount(left, exact(self.limit.slack) - total.delta))


# Filters that add Rényi divergences: for concentrated limits, and for many releases with Gaussian noise.

_SLACK_SHARE = 0.01
"""Share of delta that a Rényi filter keeps for approximate charges without a curve."""
_concentrated = lru_cache(maxsize=64)(concentrated_limit)
"""Cached, since it searches thousands of orders and is the same for every charge of a ledger."""


@dataclass(frozen=True, slots=True)
class ConcentratedFilter:
    """Adds rhos, under a concentrated limit."""

    limit: Budget

    def amount(self, event: Event) -> Amount:
        counts = event.budget.is_private and not event.slack and event.rho < math.inf
        return Amount(math.inf, NOTHING, exact(event.rho) if counts else math.inf)

    def admits(self, total: Amount) -> bool:
        return total.rho <= exact(self.limit.amount)

    def spent(self, total: Amount) -> Budget:
        return ZCDP.of_sum(float(total.rho))

    def remaining(self, total: Amount) -> Budget:
        return ZCDP.of_sum(float(max(NOTHING, exact(self.limit.amount) - total.rho)))


@dataclass(frozen=True, slots=True)
class RenyiFilter:
    """Adds Rényi divergences of one order, divided by that order: the order at which the approximate limit admits the most.

    If all charges are pure, the sum of their epsilons may stay within the limit instead, which uses nothing of delta.
    """

    limit: Budget

    @property
    def _slack(self) -> float:
        return _SLACK_SHARE * self.limit.slack

    def amount(self, event: Event) -> Amount:
        _, order = _concentrated(self.limit.amount, self.limit.slack - self._slack)
        budget = event.budget
        if not budget.is_private:
            return Amount(math.inf, NOTHING, math.inf)
        is_bare = budget.is_concentrated and event.curve is None
        rho = event.rho if is_bare else event.renyi(order) / order * (1.0 + 2.0**-50)
        pure = exact(budget.amount) if budget.is_pure else math.inf
        return Amount(pure, NOTHING, exact(rho) if rho < math.inf else math.inf, exact(event.slack))

    def admits(self, total: Amount) -> bool:
        if total.epsilon <= exact(self.limit.amount):
            return True
        most, _ = _concentrated(self.limit.amount, self.limit.slack - self._slack)
        return total.rho <= exact(most) and total.slack <= exact(self._slack)

    def spent(self, total: Amount) -> Budget:
        concentrated = concentrated_epsilon(float(total.rho), self.limit.slack - self._slack)
        if total.epsilon <= concentrated:
            return ApproxDP.of_sum(float(total.epsilon), 0.0)
        return ApproxDP.of_sum(concentrated, self.limit.slack)

    def remaining(self, total: Amount) -> Budget:
        spent = self.spent(total)
        return ApproxDP.of_sum(max(0.0, self.limit.amount - spent.amount), self.limit.slack - spent.slack)


Filter: TypeAlias = SumFilter | ConcentratedFilter | RenyiFilter


def filter_for(limit: Budget, accounting: str) -> Filter:
    """The filter of a limit. "sum" and "renyi" differ for approximate limits alone."""
    if limit.is_concentrated:
        return ConcentratedFilter(limit)
    return RenyiFilter(limit) if accounting == "renyi" and limit.is_approximate else SumFilter(limit)


def accounting_for(limit: Budget, accounting: str) -> str:
    """The way of adding. It is the one asked for where the limit leaves a choice."""
    return accounting if limit.is_approximate else "sum" if limit.is_pure else "renyi"


@lru_cache(maxsize=256)
def cost(filter_: Filter, events: tuple[Event, ...]) -> Amount:
    """What events cost together."""
    # Cached, since a process that shares a file adds up the charges of all others, which are often equal.
    return sum(map(filter_.amount, events), Amount())


# Totals of a ledger: what charges cost everybody, and beside that the persons of each cohort alone. Nobody is in two.

Totals: TypeAlias = Mapping[str | None, Amount]
"""By the name of a cohort; at None stands what everybody pays. Proof: proofs/cohorts.md."""
_Chosen: TypeAlias = Callable[[Iterable[float]], float]


def with_charge(filter_: Filter, totals: Totals, charge: Entry) -> Totals:
    """The totals after a charge, for one cohort alone or for everybody."""
    return {**totals, charge.cohort: totals.get(charge.cohort, Amount()) + cost(filter_, charge.events)}


def of_each(totals: Totals) -> Totals:
    """What a person pays who is in no cohort that was charged alone, and then a person of each of these."""
    everybody = totals.get(None, Amount())
    return {None: everybody} | {cohort: everybody + own for cohort, own in totals.items() if cohort is not None}


def shown(chosen: _Chosen, of_total: Callable[[Amount], Budget], totals: Totals, cohort: str | None = None) -> Budget:
    """The most (`max`, `filter_.spent`) that anybody pays, or the least (`min`, `filter_.remaining`) that is left.

    Each amount by itself; of everybody, or of the persons of one cohort.
    """
    paid = of_each({cohort: Amount(), **totals})
    budgets = list(map(of_total, paid.values() if cohort is None else [paid[cohort]]))
    pairs = zip(*map(dict.values, map(attrgetter("amounts"), budgets)), strict=True)
    return type(budgets[0]).of_sum(*map(chosen, pairs))


def refuse_excess(filter_: Filter, totals: Totals, charge: Entry, purpose: str | None = None) -> None:
    """Raise unless everybody whom a charge concerns stays within the limit. The purpose is that of a sub-limit."""
    before, after = of_each({charge.cohort: Amount(), **totals}), of_each(with_charge(filter_, totals, charge))
    if short := [cohort for cohort, then in after.items() if not filter_.admits(then)]:
        least = min(short, key=lambda cohort: filter_.remaining(before[cohort]).amount)
        raise refusal(filter_, charge, before[least], purpose, least)


def least_rows(events: Iterable[Event]) -> int:
    """The number of rows of one person that all these events protect together."""
    return min(event.rows_per_person for event in events)


# What a filter does not admit.


def why_foreign(filter_: Filter, events: tuple[Event, ...]) -> str | None:
    """Why this filter can never count charges of this currency, and what to do; None if it can."""
    budgets = [event.budget for event in events]
    if filter_.limit.is_concentrated and any(event.slack for event in events):
        return wording("approximate charge without rho")
    if filter_.limit.is_pure and not all(budget.is_pure for budget in budgets):
        return wording("approximate charge under a pure limit")
    if isinstance(filter_, SumFilter) and any(budget.is_concentrated for budget in budgets):
        return wording("concentrated charge under sums")
    return None


def refusal(filter_: Filter, charge: Entry, total: Amount, purpose: str | None, cohort: str | None) -> LedgerError:
    """Why a filter, of the ledger or of the sub-limit of a purpose, does not admit a charge after the total of a cohort."""
    foreign = why_foreign(filter_, charge.events)
    if foreign is not None:
        return LedgerError(f"{foreign} Nothing was used or charged.")
    is_shared = isinstance(filter_, RenyiFilter) and any(event.slack for event in charge.events)
    share = f" {wording('share of delta')}" if is_shared else ""
    whose, fixed = "the ledger", "a limit is fixed once"
    if purpose is not None:
        whose = f'the purpose "{purpose}"'
        fixed = "whoever decides on sub-limits can replace this one, within the limit of the ledger"
    whom = "" if cohort is None else f' for the persons of the cohort "{cohort}"'
    left = f"{listed(filter_.remaining(total).amounts)} left of {listed(filter_.limit.amounts)}{whom}"
    asked = listed(costs_of(charge.events))
    return BudgetExceeded(wording("budget exceeded", asked=asked, whose=whose, left=left, share=share, fixed=fixed))


def costs_of(events: tuple[Event, ...]) -> dict[str, float | None]:
    """What events cost by their budgets, added up for each currency; None for a currency that no event has."""
    amounts = [event.budget.amounts for event in events]
    columns = {name: [one[name] for one in amounts if name in one] for name in CURRENCIES}
    return {name: math.fsum(costs) if costs else None for name, costs in columns.items()}


def listed(costs: Mapping[str, float | None]) -> str:
    """Costs as text, without currencies that are not there."""
    return ", ".join(f"{name} {cost:g}" for name, cost in costs.items() if cost is not None)


# The joint privacy loss of releases that were all fixed beforehand. Proof: proofs/ledger.md.

_LARGEST_JOINT_RHO = 50.0


def joint_events(limit: Budget, events: tuple[Event, ...], delta: float) -> tuple[Event, ...]:
    """The cheapest account of events that were all fixed beforehand, where epsilons and deltas add up to a limit.

    It is these events, or one for their joint loss at delta.
    """
    left = delta - math.fsum(event.slack for event in events)
    joint = joint_epsilon(events, delta)
    if left > 0.0:
        joint = min(joint, concentrated_epsilon(math.fsum(event.rho for event in events), left))
    alone = cost(SumFilter(limit), events)
    # A joint account that saves less than a hundredth is not worth its delta.
    if alone.epsilon < math.inf and alone.epsilon <= 1.01 * joint and alone.delta <= exact(delta):
        return events
    return (Event(ApproxDP(max(joint, 1e-9), delta), None, least_rows(events)),)


def joint_epsilon(events: tuple[Event, ...], delta: float) -> float:
    """The epsilon of events that were all fixed beforehand, by the privacy loss distributions of dp_accounting.

    Each event enters by a pair of laws that dominates it: that of a Gaussian, or that of a pure or approximate budget. The
    grid of dp_accounting is pessimistic. A small part of delta is kept for the rounding of its transforms.
    """
    imported("dp_accounting", "a batch under epsilon and delta", "accounting")
    from dp_accounting.pld import privacy_loss_distribution

    within = 0.999 * delta - 1e-11
    # For very large epsilons the grids of dp_accounting take minutes, and nobody is protected anyway.
    if within <= 0.0 or math.fsum(event.rho for event in events) > _LARGEST_JOINT_RHO:
        return math.inf
    pairs = [(_dominating(event), count) for event, count in Counter(events).items()]
    if any(pair is None for pair, _ in pairs):
        return math.inf
    joint = privacy_loss_distribution.identity()
    for pair, count in pairs:
        joint = joint.compose(pair.self_compose(count))
    return float(joint.get_epsilon_for_delta(within)) * (1.0 + 2.0**-40)


def _dominating(event: Event) -> Any:
    """The loss distribution of a pair of laws that dominates an event; None for a concentrated one without such a pair."""
    from dp_accounting.pld import common, privacy_loss_distribution

    curve, pair = event.curve, (event.budget.amount, event.budget.slack)
    if isinstance(curve, GaussianMechanism):
        return privacy_loss_distribution.from_gaussian_mechanism(1.0 / curve.mu)
    if isinstance(curve, PureMechanism):
        pair = curve.epsilon, 0.0
    elif event.budget.is_concentrated:
        return None
    return privacy_loss_distribution.from_privacy_parameters(common.DifferentialPrivacyParameters(*pair))
