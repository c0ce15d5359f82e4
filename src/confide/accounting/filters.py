"""How charges add up, and which of them a limit admits: the filters of a ledger. Proof: proofs/ledger.md.

Each filter stays valid when every charge is chosen after seeing the outcomes of those before. Sums are exact: a number
counts as the decimal that is written for it, so that ten times 0.1 is 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Protocol

from confide.accounting.events import Event, joint_epsilon
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP, concentrated_epsilon, concentrated_limit

ACCOUNTINGS = ("sum", "renyi")

_NOTHING = Fraction(0)
_SLACK_SHARE = 0.01
"""Part of delta that a Rényi filter keeps for charges that are approximate without a curve."""
_concentrated = lru_cache(maxsize=64)(concentrated_limit)
"""A search over thousands of orders, the same for every charge of a ledger."""


@dataclass(frozen=True, slots=True)
class Amount:
    """Exact costs, which add. None stands for an infinite cost, or for one that the filter does not count."""

    epsilon: Fraction | None = _NOTHING
    delta: Fraction = _NOTHING
    rho: Fraction | None = _NOTHING
    slack: Fraction = _NOTHING

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            _both(self.epsilon, other.epsilon),
            self.delta + other.delta,
            _both(self.rho, other.rho),
            self.slack + other.slack,
        )


class Filter(Protocol):
    """Decides which charges a limit admits."""

    @property
    def limit(self) -> Budget:
        """The guarantee of all admitted charges together."""

    def amount(self, event: Event) -> Amount:
        """What one event costs under this filter."""

    def admits(self, total: Amount) -> bool:
        """Whether charges of this total stay within the limit."""

    def spent(self, total: Amount) -> Budget:
        """A total in the currency of the limit."""

    def remaining(self, total: Amount) -> Budget:
        """What is left of the limit, in its currency."""


@dataclass(frozen=True, slots=True)
class SumFilter:
    """Adds epsilons and deltas."""

    limit: PureDP | ApproxDP

    @property
    def _delta(self) -> Fraction:
        return exact(self.limit.delta) if isinstance(self.limit, ApproxDP) else _NOTHING

    def amount(self, event: Event) -> Amount:
        budget = event.budget
        delta = exact(budget.delta) if isinstance(budget, ApproxDP) else _NOTHING
        finite = budget.is_private and not isinstance(budget, ZCDP)
        return Amount(exact(budget.epsilon) if finite else None, delta, None)  # type: ignore[union-attr]

    def admits(self, total: Amount) -> bool:
        return total.epsilon is not None and total.epsilon <= exact(self.limit.epsilon) and total.delta <= self._delta

    def spent(self, total: Amount) -> Budget:
        epsilon = _float(total.epsilon)
        return PureDP.of_sum(epsilon) if isinstance(self.limit, PureDP) else ApproxDP.of_sum(epsilon, float(total.delta))

    def remaining(self, total: Amount) -> Budget:
        return self.spent(Amount(_left(exact(self.limit.epsilon), total.epsilon), self._delta - total.delta, None))


@dataclass(frozen=True, slots=True)
class ConcentratedFilter:
    """Adds rhos."""

    limit: ZCDP

    def amount(self, event: Event) -> Amount:
        rho = event.rho if event.budget.is_private and not event.slack else math.inf
        return Amount(None, _NOTHING, exact(rho) if rho < math.inf else None)

    def admits(self, total: Amount) -> bool:
        return total.rho is not None and total.rho <= exact(self.limit.rho)

    def spent(self, total: Amount) -> Budget:
        return ZCDP.of_sum(_float(total.rho))

    def remaining(self, total: Amount) -> Budget:
        return ZCDP.of_sum(_float(_left(exact(self.limit.rho), total.rho)))


@dataclass(frozen=True, slots=True)
class RenyiFilter:
    """Adds Rényi divergences of the one order at which the limit admits the most, divided by that order.

    Charges that are all pure may stay within the limit by the sum of their epsilons instead, which needs none of delta.
    """

    limit: ApproxDP

    @property
    def _slack(self) -> float:
        return _SLACK_SHARE * self.limit.delta

    def amount(self, event: Event) -> Amount:
        _, order = _concentrated(self.limit.epsilon, self.limit.delta - self._slack)
        budget = event.budget
        if not budget.is_private:
            return Amount(None, _NOTHING, None)
        is_bare = isinstance(budget, ZCDP) and event.curve is None
        rho = event.rho if is_bare else event.renyi(order) / order * (1.0 + 2.0**-50)
        epsilon = exact(budget.epsilon) if isinstance(budget, PureDP) else None
        return Amount(epsilon, _NOTHING, exact(rho), exact(event.slack))

    def admits(self, total: Amount) -> bool:
        if total.epsilon is not None and total.epsilon <= exact(self.limit.epsilon):
            return True
        most, _ = _concentrated(self.limit.epsilon, self.limit.delta - self._slack)
        return total.rho is not None and total.rho <= exact(most) and total.slack <= exact(self._slack)

    def spent(self, total: Amount) -> Budget:
        concentrated = concentrated_epsilon(_float(total.rho), self.limit.delta - self._slack)
        if _float(total.epsilon) <= concentrated:
            return ApproxDP.of_sum(_float(total.epsilon), 0.0)
        return ApproxDP.of_sum(concentrated, self.limit.delta)

    def remaining(self, total: Amount) -> Budget:
        epsilon, delta = astuple(self.spent(total))
        return ApproxDP.of_sum(max(0.0, self.limit.epsilon - epsilon), self.limit.delta - delta)


def filter_for(limit: Budget, accounting: str) -> Filter:
    """The filter of a limit; "sum" or "renyi" makes a difference for approximate limits alone."""
    if not limit.is_private:
        raise ParameterError("the limit of a ledger must be finite.")
    if accounting not in ACCOUNTINGS:
        raise ParameterError("accounting must be 'auto', 'sum' or 'renyi'.")
    if isinstance(limit, ZCDP):
        return ConcentratedFilter(limit)
    return RenyiFilter(limit) if accounting == "renyi" and isinstance(limit, ApproxDP) else SumFilter(limit)


def accounting_of(event: Event) -> str:
    """What "auto" means for a ledger whose first charge is this: the way to add that suits its currency."""
    return "renyi" if isinstance(event.budget, ZCDP) else "sum"


def why_foreign(filter_: Filter, events: tuple[Event, ...]) -> str | None:
    """Why charges of this currency can never be counted by this filter, and what to do; None if they can."""
    kinds = {type(event.budget) for event in events}
    if isinstance(filter_, ConcentratedFilter) and any(event.slack for event in events):
        return (
            "an approximate charge without a finer account has no rho, which is what this ledger adds. Charge a plan or a "
            "ZCDP budget, or use a ledger with an ApproxDP limit."
        )
    if isinstance(filter_.limit, PureDP) and kinds != {PureDP}:
        return (
            "this ledger has a pure limit, and the charge is not pure: no epsilon covers it without a delta. Use a "
            "mechanism with pure privacy, or a ledger with an ApproxDP or ZCDP limit."
        )
    if isinstance(filter_, SumFilter) and ZCDP in kinds:
        return (
            "this ledger adds epsilons and deltas, and a ZCDP charge has neither. Charge its joint epsilon at a delta with "
            "`ledger.plan([...])` if delta is left, or use a new ledger with accounting='renyi' for what is left."
        )
    return None


def total_amount(filter_: Filter, events: Iterable[Event]) -> Amount:
    """What several events cost together."""
    return sum((filter_.amount(event) for event in events), Amount())


def joint_events(filter_: Filter, events: tuple[Event, ...], delta: float) -> tuple[Event, ...]:
    """The cheapest account of events that were all fixed beforehand: their own, or one for their joint loss at delta."""
    if not isinstance(filter_, SumFilter) or not isinstance(filter_.limit, ApproxDP):
        return events
    left = delta - math.fsum(event.slack for event in events)
    joint = joint_epsilon(events, delta)
    if left > 0.0:
        joint = min(joint, concentrated_epsilon(math.fsum(event.rho for event in events), left))
    alone = total_amount(filter_, events)
    # A joint account that saves less than a hundredth is not worth its delta.
    if alone.epsilon is not None and alone.epsilon <= 1.01 * joint and alone.delta <= exact(delta):
        return events
    return (Event(ApproxDP(max(joint, 1e-9), delta), None, least_rows(events)),)


def least_rows(events: Iterable[Event]) -> int:
    """The most rows of one person that all events protect together."""
    return min(event.rows_per_person for event in events)


def exact(number: float) -> Fraction:
    """The decimal number that is written for a double.

    The double nearest to a decimal exceeds it by at most one part in 2^53; every mechanism rounds its own cost by one
    part in 2^40, which covers the difference.
    """
    return Fraction(repr(float(number)))


def _both(first: Fraction | None, second: Fraction | None) -> Fraction | None:
    return None if first is None or second is None else first + second


def _left(limit: Fraction, spent: Fraction | None) -> Fraction | None:
    return None if spent is None else max(_NOTHING, limit - spent)


def _float(amount: Fraction | None) -> float:
    return math.inf if amount is None else float(amount)
