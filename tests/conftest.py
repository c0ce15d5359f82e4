"""Shared fixtures: real data where it is present, and small made-up rows."""

from __future__ import annotations

import gc
import itertools
import os
import random
import secrets
import signal
from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

from confide.compiled.loading import Kernel, kernel

# No test is judged by the time it takes, and a test that failed fails again.
settings.register_profile("untimed", deadline=None, derandomize=True)
settings.register_profile("untimed and fresh", deadline=None)
settings.load_profile("untimed")


class NoiseOfTests:
    """Bytes in place of those of the operating system, seeded by what is tested, so that a failure can be repeated."""

    def __init__(self) -> None:
        self.stream = random.Random("nothing")
        # Noise of a child process is not that of its parent.
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=lambda: self.stream.seed(f"{os.getpid()} {self.stream.random()}"))

    def token_bytes(self, n: int) -> bytes:
        """So many bytes."""
        return self.stream.randbytes(n)


NOISE, OF_THE_SYSTEM = NoiseOfTests(), secrets.token_bytes


def pytest_addoption(parser: pytest.Parser) -> None:
    """Audits, and those who look for rare failures, want other noise in each run."""
    parser.addoption("--fresh-noise", action="store_true", help="noise of the operating system, another one each time")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Seed the noise of a test by its name."""
    NOISE.stream.seed(item.nodeid)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
    """Seed the noise of a fixture that several tests share by its own name: any of them may be the first to ask for it."""
    if fixturedef.scope == "function":
        return (yield)
    before = NOISE.stream.getstate()
    NOISE.stream.seed(f"{fixturedef.baseid} {fixturedef.argname}")
    try:
        return (yield)
    finally:
        NOISE.stream.setstate(before)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for no garbage while tests are collected, later not at what was there then, and seldom at all.

    Nineteen thousand tests make millions of objects that all stay. To look among them for what may go would take a third of
    the time of collecting them. What tests leave behind is little, and to look for it as often as Python does takes a
    twenty-fifth of the time of running them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(100_000, 20, 100)
        gc.enable()


ON_REQUEST = ("attack", "audit", "server", "browser", "spark")
"""Marks of tests that run only where the expression of marks names one of them: `make test ARGS="-m server"`."""
MARKS_OF_FIXTURES = {"data_dir": "data", "server": "server"}


MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder of its own there
"""A file system in memory, as Linux has it. Each charge of a ledger waits for the disk, and tests make thousands of them."""


def has_room(place: Path) -> bool:
    """Whether what tests write may lie there: two gigabytes are free, and what they compile can be loaded from it."""
    if not (hasattr(os, "statvfs") and os.access(place, os.W_OK)):
        return False
    found = os.statvfs(place)
    return found.f_bavail * found.f_frsize > 2**31 and not found.f_flag & getattr(os, "ST_NOEXEC", 0)


def pytest_configure(config: pytest.Config) -> None:
    """Let control-C interrupt, also where the tests were started with SIGINT ignored, as by nohup or in the background.

    Folders of tests lie in memory where there is room, unless an option or a variable names another place.
    """
    if has_room(MEMORY):
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--fresh-noise") or "audit" in config.getoption("markexpr"):
        settings.load_profile("untimed and fresh")
    else:
        secrets.token_bytes = NOISE.token_bytes


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what a fixture needs, and leave out what runs on request alone."""
    for item in items:
        for fixture in set(MARKS_OF_FIXTURES).intersection(getattr(item, "fixturenames", ())):
            item.add_marker(MARKS_OF_FIXTURES[fixture])
    if any(mark in config.getoption("markexpr") for mark in ON_REQUEST):
        return
    on_request = [not {mark.name for mark in item.iter_markers()}.isdisjoint(ON_REQUEST) for item in items]
    if any(on_request):
        config.hook.pytest_deselected(items=list(itertools.compress(items, on_request)))
        items[:] = [item for item, left_out in zip(items, on_request, strict=True) if not left_out]


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real data sets, named by CONFIDE_DATA_DIR."""
    folder = os.environ.get("CONFIDE_DATA_DIR")
    if not folder:
        pytest.skip("CONFIDE_DATA_DIR is not set: no folder of real data sets")
    return Path(folder)


@pytest.fixture
def noise_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise as users have it."""
    monkeypatch.setattr(secrets, "token_bytes", OF_THE_SYSTEM)


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
