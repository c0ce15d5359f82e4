"""The plans and the rows of a fit, overheard while it runs: what an attacker who knows all but one row can work out too.

Nothing in the rooms that promise privacy knows of audits. So their methods are replaced for the time of a fit, under a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confide.data.source import RowSource
from confide.privacy.mechanism import Plan, Release
from confide.training.mechanism_choice import MECHANISMS

_LOCK = threading.RLock()


@dataclass(frozen=True, slots=True)
class Overheard:
    """One release of weights: its plan, its rows, and what it gave."""

    plan: Plan
    source: RowSource
    release: Release


@contextmanager
def replaced(changes: list[tuple[type, str, Callable[..., Any]]]) -> Iterator[None]:
    """Replace methods of classes for a while. Each new method is given the old one first, and then its arguments."""
    with _LOCK:
        before = [(owner, name, owner.__dict__[name]) for owner, name, _ in changes]
        try:
            for (owner, name, old), (_, _, new) in zip(before, changes, strict=True):
                setattr(owner, name, _with_old(old, new))
            yield
        finally:
            for owner, name, old in before:
                setattr(owner, name, old)


def _with_old(old: Callable[..., Any], new: Callable[..., Any]) -> Callable[..., Any]:
    def method(*given: Any, **named: Any) -> Any:
        return new(old, *given, **named)

    return method


def mechanisms() -> list[type]:
    """The classes of all mechanisms that release weights."""
    return list({type(mechanism) for name, mechanism in MECHANISMS.items() if name != "none"})


def overheard(fit: Callable[[], Any]) -> list[Overheard]:
    """Every release of weights in a fit."""
    found: list[Overheard] = []

    def noted(old: Callable[..., Release], mechanism: Any, plan: Plan, source: RowSource, *rest: Any) -> Release:
        release = old(mechanism, plan, source, *rest)
        found.append(Overheard(plan, source, release))
        return release

    with replaced([(kind, "release", noted) for kind in mechanisms()]):
        fit()
    return found
