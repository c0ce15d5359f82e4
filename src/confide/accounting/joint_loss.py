"""The joint privacy loss of releases that were all fixed beforehand. Proof: proofs/ledger.md."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from confide.accounting.events import Event, PureMechanism
from confide.accounting.filters import Filter, SumFilter, exact, least_rows, total_amount
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, ApproxDP, PureDP
from confide.privacy.conversions import concentrated_epsilon
from confide.privacy.gaussian import GaussianMechanism

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
