"""How charges add up, and which charges a limit admits: the filters of a ledger. Proof: proofs/ledger.md.

A filter stays valid if each charge is chosen after the outcomes of earlier charges were seen. Sums are exact: a number
counts as the decimal that is written for it, so that ten times 0.1 is 1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from confide.accounting.events import Event
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP

NOTHING = Fraction(0)


@dataclass(frozen=True, slots=True)
class Amount:
    """Exact costs, which can be added. None stands for an infinite cost, or for a cost that the filter does not count."""

    epsilon: Fraction | None = NOTHING
    delta: Fraction = NOTHING
    rho: Fraction | None = NOTHING
    slack: Fraction = NOTHING

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
        return exact(self.limit.delta) if isinstance(self.limit, ApproxDP) else NOTHING

    def amount(self, event: Event) -> Amount:
        budget = event.budget
        delta = exact(budget.delta) if isinstance(budget, ApproxDP) else NOTHING
        finite = budget.is_private and not isinstance(budget, ZCDP)
        return Amount(exact(budget.epsilon) if finite else None, delta, None)  # type: ignore[union-attr]

    def admits(self, total: Amount) -> bool:
        return total.epsilon is not None and total.epsilon <= exact(self.limit.epsilon) and total.delta <= self._delta

    def spent(self, total: Amount) -> Budget:
        epsilon = as_float(total.epsilon)
        return PureDP.of_sum(epsilon) if isinstance(self.limit, PureDP) else ApproxDP.of_sum(epsilon, float(total.delta))

    def remaining(self, total: Amount) -> Budget:
        return self.spent(Amount(remainder(exact(self.limit.epsilon), total.epsilon), self._delta - total.delta, None))


def total_amount(filter_: Filter, events: Iterable[Event]) -> Amount:
    """What several events cost together."""
    return sum((filter_.amount(event) for event in events), Amount())


def least_rows(events: Iterable[Event]) -> int:
    """The number of rows of one person that all these events protect together."""
    return min(event.rows_per_person for event in events)


def exact(number: float) -> Fraction:
    """The decimal number that is written for a double.

    The double nearest to a decimal exceeds the decimal by at most one part in 2^53. Every mechanism rounds its own cost up
    by one part in 2^40, which covers the difference.
    """
    return Fraction(repr(float(number)))


def _both(first: Fraction | None, second: Fraction | None) -> Fraction | None:
    return None if first is None or second is None else first + second


def remainder(limit: Fraction, spent: Fraction | None) -> Fraction | None:
    """What is left of a limit, at least 0; None where what was spent is infinite."""
    return None if spent is None else max(NOTHING, limit - spent)


def as_float(amount: Fraction | None) -> float:
    """An exact amount as a double; None is infinite."""
    return math.inf if amount is None else float(amount)


def rounded_down(number: Fraction) -> float:
    """The largest double that is at most a number."""
    nearest = float(number)
    return nearest if exact(nearest) <= number else math.nextafter(nearest, 0.0)
