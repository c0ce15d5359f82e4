"""How charges add up, and which charges a limit admits: the filters of a ledger. Proof: proofs/ledger.md.

A filter stays valid if each charge is chosen after the outcomes of earlier charges were seen. Sums are exact: a number
counts as the decimal that is written for it, so that ten times 0.1 is 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Protocol

from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP, concentrated_epsilon, concentrated_limit
from confide.privacy.events import Event, PureMechanism
from confide.privacy.gaussian import GaussianMechanism

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


# Filters that add Rényi divergences: for concentrated limits, and for many releases with Gaussian noise.

_SLACK_SHARE = 0.01
"""Share of delta that a Rényi filter keeps for approximate charges without a curve."""
_concentrated = lru_cache(maxsize=64)(concentrated_limit)
"""Cached, since it searches thousands of orders and is the same for every charge of a ledger."""


@dataclass(frozen=True, slots=True)
class ConcentratedFilter:
    """Adds rhos."""

    limit: ZCDP

    def amount(self, event: Event) -> Amount:
        rho = event.rho if event.budget.is_private and not event.slack else math.inf
        return Amount(None, NOTHING, exact(rho) if rho < math.inf else None)

    def admits(self, total: Amount) -> bool:
        return total.rho is not None and total.rho <= exact(self.limit.rho)

    def spent(self, total: Amount) -> Budget:
        return ZCDP.of_sum(as_float(total.rho))

    def remaining(self, total: Amount) -> Budget:
        return ZCDP.of_sum(as_float(remainder(exact(self.limit.rho), total.rho)))


@dataclass(frozen=True, slots=True)
class RenyiFilter:
    """Adds Rényi divergences of one order, divided by that order: the order at which the limit admits the most.

    If all charges are pure, the sum of their epsilons may stay within the limit instead, which uses nothing of delta.
    """

    limit: ApproxDP

    @property
    def _slack(self) -> float:
        return _SLACK_SHARE * self.limit.delta

    def amount(self, event: Event) -> Amount:
        _, order = _concentrated(self.limit.epsilon, self.limit.delta - self._slack)
        budget = event.budget
        if not budget.is_private:
            return Amount(None, NOTHING, None)
        is_bare = isinstance(budget, ZCDP) and event.curve is None
        rho = event.rho if is_bare else event.renyi(order) / order * (1.0 + 2.0**-50)
        epsilon = exact(budget.epsilon) if isinstance(budget, PureDP) else None
        return Amount(epsilon, NOTHING, exact(rho), exact(event.slack))

    def admits(self, total: Amount) -> bool:
        if total.epsilon is not None and total.epsilon <= exact(self.limit.epsilon):
            return True
        most, _ = _concentrated(self.limit.epsilon, self.limit.delta - self._slack)
        return total.rho is not None and total.rho <= exact(most) and total.slack <= exact(self._slack)

    def spent(self, total: Amount) -> Budget:
        concentrated = concentrated_epsilon(as_float(total.rho), self.limit.delta - self._slack)
        if as_float(total.epsilon) <= concentrated:
            return ApproxDP.of_sum(as_float(total.epsilon), 0.0)
        return ApproxDP.of_sum(concentrated, self.limit.delta)

    def remaining(self, total: Amount) -> Budget:
        epsilon, delta = astuple(self.spent(total))
        return ApproxDP.of_sum(max(0.0, self.limit.epsilon - epsilon), self.limit.delta - delta)


# The joint privacy loss of releases that were all fixed beforehand. Proof: proofs/ledger.md.

_LARGEST_JOINT_RHO = 50.0


def joint_events(filter_: Filter, events: tuple[Event, ...], delta: float) -> tuple[Event, ...]:
    """The cheapest account of events that were all fixed beforehand: these events, or one for their joint loss at delta."""
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


def joint_epsilon(events: tuple[Event, ...], delta: float) -> float:
    """The epsilon of events that were all fixed beforehand, by the privacy loss distributions of dp_accounting.

    Each event enters by a pair of laws that dominates it: that of a Gaussian, or that of a pure or approximate budget. The
    grid of dp_accounting is pessimistic. A small part of delta is kept for the rounding of its transforms.
    """
    from dp_accounting.pld import privacy_loss_distribution

    within = 0.999 * delta - 1e-11
    counts = Counter(events)
    # No pair of laws is known that dominates every concentrated mechanism.
    known = (GaussianMechanism, PureMechanism)
    unknown = any(isinstance(e.budget, ZCDP) and not isinstance(e.curve, known) for e in counts)
    # For very large epsilons the grids of dp_accounting take minutes, and nobody is protected anyway.
    if within <= 0.0 or unknown or math.fsum(event.rho for event in events) > _LARGEST_JOINT_RHO:
        return math.inf
    joint = privacy_loss_distribution.identity()
    for event, count in counts.items():
        joint = joint.compose(_dominating(event).self_compose(count))
    return float(joint.get_epsilon_for_delta(within)) * (1.0 + 2.0**-40)


def _dominating(event: Event) -> Any:
    from dp_accounting.pld import common, privacy_loss_distribution

    if isinstance(event.curve, PureMechanism):
        event = Event(PureDP(event.curve.epsilon))
    if isinstance(event.curve, GaussianMechanism):
        return privacy_loss_distribution.from_gaussian_mechanism(1.0 / event.curve.mu)
    budget = event.budget
    if isinstance(budget, ZCDP):
        raise ParameterError("a concentrated budget alone has no loss distribution.")
    parameters = common.DifferentialPrivacyParameters(budget.epsilon, getattr(budget, "delta", 0.0))
    return privacy_loss_distribution.from_privacy_parameters(parameters)
