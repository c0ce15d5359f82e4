"""Fixtures for pytest: `replay_holds` and `no_leaks`, which fail a test with the whole table.

pytest finds this module by itself where the package is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture
def replay_holds() -> Callable[..., Any]:
    """A function with the arguments of `confide.audit.replay` that fails the test unless the replay holds."""

    def check(release: Any, *data: Any, neighbour: Any, rows_changed: int = 1) -> Any:
        from confide.audit.replays import replay

        result = replay(release, *data, neighbour=neighbour, rows_changed=rows_changed)
        result.check()
        return result

    return check


@pytest.fixture
def no_leaks() -> Callable[..., Any]:
    """A function with the arguments of `confide.audit.leaks` that fails the test if there is a leak."""

    def check(estimator: Any, X: Any, y: Any = None, *, neighbour: Any = None) -> Any:
        from confide.audit.leak_search import leaks

        result = leaks(estimator, X, y, neighbour=neighbour)
        result.check()
        return result

    return check
