"""Shared fixtures: real data where it is present, and small made-up rows."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from confide.compiled.loading import Kernel, kernel

# No test is judged by the time it takes.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, and later not at what was there then.

    Fifteen thousand tests make millions of objects that all stay. To look among them for what may go would take a third of
    the time of collecting them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


ON_REQUEST = ("audit", "server", "browser", "spark")
"""Marks of tests that run only where the expression of marks names one of them: `make test ARGS="-m server"`."""
MARKS_OF_FIXTURES = {"data_dir": "data", "server": "server"}


def pytest_configure() -> None:
    """Let control-C interrupt, also where the tests were started with SIGINT ignored, as by nohup or in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what a fixture needs, and leave out what runs on request alone."""
    for item in items:
        for fixture in set(MARKS_OF_FIXTURES).intersection(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS_OF_FIXTURES[fixture])
    if any(mark in config.getoption("markexpr") for mark in ON_REQUEST):
        return
    left_out = [item for item in items if any(item.get_closest_marker(mark) for mark in ON_REQUEST)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not any(item.get_closest_marker(mark) for mark in ON_REQUEST)]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real data sets, named by CONFIDE_DATA_DIR."""
    folder = os.environ.get("CONFIDE_DATA_DIR")
    if not folder:
        pytest.skip("CONFIDE_DATA_DIR is not set: no folder of real data sets")
    return Path(folder)


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    """2,000 rows of 5 features, many longer than 1, with labels 0 and 1 from a logistic model."""
    rng = np.random.default_rng(7)
    features = rng.normal(size=(2000, 5)) * 0.6
    chance = 1.0 / (1.0 + np.exp(-features @ np.array([3.0, -2.0, 1.0, 0.0, 0.5])))
    return features, (rng.random(2000) < chance).astype(np.int64)


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """The compiled kernel, whatever the environment says of it."""
    monkeypatch.delenv("CONFIDE_COMPILED", raising=False)
    found = kernel()
    if found is None:
        pytest.skip("the compiled kernel was not built: python hatch_build.py builds it where there is a C compiler")
    return found


@pytest.fixture
def by_numpy_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the compiled kernel had not been built."""
    monkeypatch.setenv("CONFIDE_COMPILED", "0")
