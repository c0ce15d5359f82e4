"""What can be charged to a ledger, and the events that stand for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from confide.accounting.events import Event
from confide.errors import ParameterError
from confide.privacy.budgets import ZCDP, Neighbours, PureDP, as_budget
from confide.privacy.gaussian import GaussianMechanism

_MOST_EVENTS = 100_000
"""A ledger stores each of them as text."""


def as_events(value: object, neighbours: Neighbours | None = None, rows_per_person: int = 1) -> tuple[Event, ...]:
    """The events of a budget, an event, a plan or an event of dp_accounting. Anything else is refused.

    A budget and an event of dp_accounting do not say which neighbours and persons they are for. They get those given here.
    """
    if type(value).__module__.split(".")[0] == "dp_accounting":  # its composed events have an `event` too
        return tuple(replace(e, neighbours=neighbours, rows_per_person=rows_per_person) for e in _translated(value))
    event = getattr(value, "event", value)
    if not isinstance(event, Event):
        event = Event(as_budget(value), None, rows_per_person)
    return (replace(event, neighbours=event.neighbours or getattr(event.curve, "neighbours", neighbours)),)


def _translated(value: Any) -> tuple[Event, ...]:
    import dp_accounting as dp

    match value:
        case dp.NoOpDpEvent():
            return ()
        case dp.ZCDpEvent(xi=0):
            return (Event(ZCDP(value.rho)),)
        case dp.GaussianDpEvent(noise_multiplier=deviation) if deviation > 0.0:
            return (Event(ZCDP(max(0.5 / deviation**2, 1e-12)), GaussianMechanism(1.0 / deviation)),)
        case dp.LaplaceDpEvent(noise_multiplier=scale) if scale > 0.0:
            return (Event(PureDP(1.0 / scale)),)
        case dp.ComposedDpEvent():
            return tuple(event for part in value.events for event in _translated(part))
        case dp.SelfComposedDpEvent(count=int(count)) if count >= 0 and not isinstance(count, bool):
            parts = _translated(value.event)
            if len(parts) * count > _MOST_EVENTS:
                raise ParameterError(f"a charge has at most {_MOST_EVENTS:,} events; compose these before they are charged.")
            return parts * count
    raise ParameterError(
        f"{type(value).__name__} cannot be counted here. Give a budget, a plan, or a Gaussian, Laplace, zCDP or composed "
        f"event of dp_accounting, with noise."
    )
