"""What one release costs: the events that a ledger adds up, and what stands for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, TypeAlias

from confide.errors import ParameterError, checked_count, wording
from confide.privacy.budgets import ZCDP, Budget, Neighbours, PureDP, as_budget, budget_from_dict
from confide.privacy.gaussian import GaussianMechanism
from confide.privacy.objective_account import GaussianObjective

# What a release costs, as frozen data: a budget, and if it is known the curve behind it.


@dataclass(frozen=True, slots=True)
class PureMechanism:
    """The curve of a release with pure privacy, which may have been made for a weaker budget."""

    epsilon: float

    def renyi(self, order: float) -> float:
        """Upper bound on the Rényi divergence of this order, above 1."""
        return pure_renyi(self.epsilon, order)

    @property
    def rho(self) -> float:
        """Upper bound on renyi(order) / order over all orders."""
        return PureDP(self.epsilon).to_zcdp().rho


Curve: TypeAlias = PureMechanism | GaussianMechanism | GaussianObjective
_CURVES: dict[str, type[Curve]] = {
    "gaussian": GaussianMechanism,
    "gaussian-objective": GaussianObjective,
    "pure": PureMechanism,
}


@dataclass(frozen=True, slots=True)
class Event:
    """One release, as a ledger counts it.

    Parameters
    ----------
    budget : what the release costs by itself
    curve : a finer account of the same release, or None where the budget alone is known
    rows_per_person : the number of rows of one person that it protects together, at most
    neighbours : the relation under which it is private; None where the ledger alone states it, as in records
    """

    budget: Budget
    curve: Curve | None = None
    rows_per_person: int = 1
    neighbours: Neighbours | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows_per_person", checked_rows(self.rows_per_person))

    @classmethod
    def of(cls, budget: Budget, curve: Curve | None, protected: Any) -> Event:
        """What a ledger counts for a release at this budget: `protected` knows relation and rows of a person.

        The curve is kept for one row a person alone, since it describes one row. A pure budget needs no curve.
        """
        speaks = protected.rows_per_person == 1 and not budget.is_pure
        return cls(budget, curve if speaks else None, protected.rows_per_person, protected.neighbours)

    def renyi(self, order: float) -> float:
        """Upper bound on the Rényi divergence of this order, above 1, outside of an event of probability `slack`."""
        if self.curve is None and self.budget.is_concentrated:
            return self.budget.amount * order
        return (self.curve or PureMechanism(self.budget.amount)).renyi(order)

    @property
    def slack(self) -> float:
        """Probability of the event outside of which `renyi` holds: the delta of an approximate budget without a curve."""
        return self.budget.slack if self.curve is None else 0.0

    @property
    def rho(self) -> float:
        """Upper bound on renyi(order) / order over all orders."""
        if self.curve is None and self.budget.is_concentrated:
            return self.budget.amount
        return (self.curve or PureMechanism(self.budget.amount)).rho

    def to_dict(self) -> dict[str, Any]:
        """A JSON form."""
        written: dict[str, Any] = {"budget": self.budget.to_dict(), "curve": None, "rows_per_person": self.rows_per_person}
        if self.curve is not None:
            kind = next(name for name, curve in _CURVES.items() if type(self.curve) is curve)
            numbers = {name: "inf" if value == math.inf else value for name, value in asdict(self.curve).items()}
            written["curve"] = {"kind": kind, **numbers}
        return written

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Event:
        """Read the form written by `to_dict`; a number or a type that no event has is refused."""
        budget = budget_from_dict(value["budget"])
        if value["curve"] is None:
            return cls(budget, None, value["rows_per_person"])
        facts: dict[str, Any] = {name: math.inf if fact == "inf" else fact for name, fact in value["curve"].items()}
        if (kind := facts.pop("kind")) not in _CURVES:
            raise ParameterError("an event of an unknown kind.")
        admitted: dict[str, Callable[[Any], bool]] = {
            "bool": lambda fact: isinstance(fact, bool),
            "int": lambda fact: type(fact) is int and fact >= 1,
            "float": lambda fact: type(fact) in (int, float) and float(fact) >= 0.0,
            "Neighbours": lambda fact: isinstance(fact, str),
        }
        for field in fields(_CURVES[kind]):
            if not admitted[str(field.type)](facts[field.name]) or (
                field.name in ("mu", "epsilon") and not facts[field.name]
            ):
                raise ParameterError(f"an event with a {field.name} that no event has.")
        if "neighbours" in facts:
            facts["neighbours"] = Neighbours.parse(facts["neighbours"])
        return cls(budget, _CURVES[kind](**facts), value["rows_per_person"])


def pure_renyi(epsilon: float, order: float) -> float:
    """Largest Rényi divergence of this order under pure privacy: randomised response attains it.

    log[cosh((a - 1/2) epsilon) / cosh(epsilon / 2)] / (a - 1).
    """
    # The difference loses digits near order 1. The last factor pays for them.
    difference = _log_cosh((order - 0.5) * epsilon) - _log_cosh(0.5 * epsilon)
    return min(epsilon, difference / (order - 1.0) * (1.0 + 2.0**-40 + 2.0**-50 / (order - 1.0)))


def _log_cosh(x: float) -> float:
    if x < 20.0:
        return math.log1p(2.0 * math.sinh(0.5 * x) ** 2)
    return x - math.log(2.0) + math.log1p(math.exp(-2.0 * x))


def checked_rows(rows: Any) -> int:
    """The cap on rows of one person, if it is a whole number of at least 1, and no more than a table of charges can show."""
    return checked_count("max_rows_per_person", rows, digits=9)


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
        case dp.GaussianDpEvent(noise_multiplier=deviation) if 1e-100 < float(deviation) < 1e100:
            return (Event(ZCDP(max(0.5 / float(deviation) ** 2, 1e-12)), GaussianMechanism(1.0 / float(deviation))),)
        case dp.LaplaceDpEvent(noise_multiplier=scale) if scale > 0.0:
            return (Event(PureDP(1.0 / scale)),)
        case dp.ComposedDpEvent():
            return tuple(event for part in value.events for event in _translated(part))
        case dp.SelfComposedDpEvent(count=int(count)) if count >= 0 and not isinstance(count, bool):
            parts = _translated(value.event)
            if len(parts) * count > _MOST_EVENTS:
                raise ParameterError(f"a charge has at most {_MOST_EVENTS:,} events; compose these before they are charged.")
            return parts * count
    raise ParameterError(wording("cannot be counted", kind=type(value).__name__))
