"""Filters that add Rényi divergences: for concentrated limits, and for many releases with Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import lru_cache

from confide.accounting.events import Event
from confide.accounting.filters import NOTHING, Amount, as_float, exact, remainder
from confide.privacy.budgets import ZCDP, ApproxDP, Budget, PureDP
from confide.privacy.conversions import concentrated_epsilon, concentrated_limit

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
