"""The large audits run where they are asked for by their mark, `pytest -m audit`, and nowhere else."""

from __future__ import annotations

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked `audit`, unless the expression of marks names it."""
    if "audit" in config.getoption("markexpr"):
        return
    large = [item for item in items if item.get_closest_marker("audit")]
    if large:
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in large]
