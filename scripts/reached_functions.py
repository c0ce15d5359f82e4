"""Which functions of the trusted code each test reaches, and how long it takes.

`make mutants` tries a change of a function against the tests that reach it. Each file of tests is measured once, in a
process of its own, and again when its text changes. What a fixture of a whole file or session reaches counts for every test
that asks for it.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

_LONGEST_TEST = 60
"""Seconds until a test counts as one that does not end."""


@dataclass(frozen=True)
class Reach:
    """What one test does.

    Attributes
    ----------
    seconds : float
        Time of the test with all its fixtures, while calls are recorded.
    functions : frozenset of str
        Outermost functions and methods that it calls, as `function_name` writes them.
    """

    seconds: float
    functions: frozenset[str]


def function_name(path: Path, qualified: str) -> str:
    """A function by the last two parts of its file and its name there: that of the outermost one, for one inside another."""
    return f"{path.parent.name}/{path.name}:{qualified.split('.<locals>')[0]}"


def forget_results(folders: Sequence[Path]) -> None:
    """Clear what functions of the modules of some folders keep of earlier calls, so that they are called again."""
    beginnings = tuple(f"{folder}{os.sep}" for folder in folders)
    for module in list(sys.modules.values()):
        if (getattr(module, "__file__", None) or "").startswith(beginnings):
            for value in list(vars(module).values()):
                if callable(forget := getattr(value, "cache_clear", None)):
                    forget()


class CallRecorder:
    """Remembers which functions of some folders are called, in any thread of this process."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._beginnings = tuple(f"{folder}{os.sep}" for folder in folders)
        self._known: dict[str, bool] = {}
        self.called: set[CodeType] = set()

    def start(self) -> None:
        sys.settrace(self._note)
        threading.settrace(self._note)

    def stop(self) -> None:
        sys.settrace(None)
        threading.settrace(None)  # type: ignore[arg-type] # None ends it, although no stub says so

    @property
    def functions(self) -> set[str]:
        """Names of the functions so far, without bodies of modules."""
        return {
            function_name(Path(code.co_filename), code.co_qualname) for code in self.called if code.co_name != "<module>"
        }

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        wanted = self._known.get(code.co_filename)
        if wanted is None:
            wanted = self._known[code.co_filename] = code.co_filename.startswith(self._beginnings)
        if wanted:
            self.called.add(code)


class ReachOfTests:
    """A plugin of pytest that measures every test of a run, and hands on what each one that passed reached.

    A process whose test waits for ever is ended: a copy of a process must not use threads that only the original has.
    """

    def __init__(self, folders: Sequence[Path], report: Callable[[str, Reach], None]) -> None:
        self._folders = folders
        self._report = report
        self._of_fixtures: defaultdict[int, set[str]] = defaultdict(set)
        self._seconds: Counter[str] = Counter()
        self._failed: set[str] = set()
        self._recorders: list[CallRecorder] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_LONGEST_TEST)
        forget_results(self._folders)
        with self._recording() as recorder:
            result = yield
        signal.alarm(0)
        if item.nodeid not in self._failed:
            fixtures = (each for same_name in item._fixtureinfo.name2fixturedefs.values() for each in same_name)
            of_fixtures = (self._of_fixtures[id(each)] for each in fixtures)
            functions = frozenset(recorder.functions.union(*of_fixtures))
            self._report(item.nodeid, Reach(self._seconds[item.nodeid], functions))
        return result  # type: ignore[return-value] # that is how a wrapper of pytest hands on a result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        with self._recording() as recorder:
            result = yield
        if fixturedef.scope != "function":
            self._of_fixtures[id(fixturedef)].update(recorder.functions)
        return result  # type: ignore[return-value]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._seconds[report.nodeid] += report.duration
        if report.failed:
            self._failed.add(report.nodeid)

    @contextmanager
    def _recording(self) -> Iterator[CallRecorder]:
        """Record calls; those around this one see them too."""
        recorder = CallRecorder(self._folders)
        self._recorders.append(recorder)
        recorder.start()
        try:
            yield recorder
        finally:
            self._recorders.pop()
            recorder.stop()
            if self._recorders:
                self._recorders[-1].called |= recorder.called
                self._recorders[-1].start()


def measure_files(
    files: Sequence[Path], root: Path, kept: Path, run: Callable[[str, Callable[[str, Reach], None]], None], jobs: int
) -> None:
    """Bring up to date what the tests of files reach.

    Parameters
    ----------
    files : sequence of pathlib.Path
        Files of tests.
    root : pathlib.Path
        The folder by which files are named.
    kept : pathlib.Path
        A JSON file of the measurements.
    run : callable
        Runs the tests of one file, named by its place under `root`, and tells what each test reaches. It is called in a
        process of its own.
    jobs : int
        Number of processes.
    """
    known = _kept(kept)
    digests = _digests(files, root)
    waiting = _changed(digests, known)
    running: dict[int, tuple[str, Path]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            name = waiting.pop()
            answer = kept.with_suffix(f".{digests[name][:12]}")
            pid = os.fork()
            if not pid:
                _answer(answer, run, name)
            running[pid] = name, answer
        pid, state = os.wait()
        name, answer = running.pop(pid)
        known[name] = [digests[name], dict(json.loads(line) for line in answer.read_text(encoding="utf-8").splitlines())]
        answer.unlink()
        kept.write_text(json.dumps(known), encoding="utf-8")
        if state:
            print(f"{name} did not end, and its tests count up to the one that waits for ever", file=sys.stderr)


def known_reach(files: Sequence[Path], root: Path, kept: Path) -> dict[str, Reach] | None:
    """What the tests of files reach; None if a file has changed since it was measured."""
    known, digests = _kept(kept), _digests(files, root)
    if _changed(digests, known):
        return None
    return {
        test: Reach(seconds, frozenset(functions))
        for name in digests
        for test, (seconds, functions) in known[name][1].items()
    }


def _kept(kept: Path) -> dict[str, Any]:
    return json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}


def _digests(files: Sequence[Path], root: Path) -> dict[str, str]:
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def _changed(digests: dict[str, str], known: dict[str, Any]) -> list[str]:
    return [name for name, digest in digests.items() if known.get(name, [""])[0] != digest]


def _answer(answer: Path, run: Callable[[str, Callable[[str, Reach], None]], None], name: str) -> None:
    """Measure one file, write down a line for each test, and end this process."""
    try:
        with answer.open("w", encoding="utf-8", buffering=1) as file:

            def write(test: str, reach: Reach) -> None:
                file.write(json.dumps([test, [round(reach.seconds, 4), sorted(reach.functions)]]) + "\n")

            run(name, write)
    finally:
        os._exit(0)
