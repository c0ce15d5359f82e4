"""Try mutants: one process collects all tests once, and each mutant gets a copy of this process.

In the copy the code of the changed function is put in place of its own, so nothing is imported anew; then the tests that
reach the function run until one fails. A change outside a function, or in one that was called while modules were imported,
cannot be put in place later: for such a mutant the copy forgets our modules and collects again.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.abc
import importlib.util
import itertools
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import _pytest.config
import pytest
from scripts.mutants import Mutant
from scripts.reached_functions import CallRecorder, Reach, forget_results, function_name

_LIMIT = (10.0, 6.0)
"""Seconds of processor time until a mutant counts as one without an end: so many, and so many times what its tests take."""
_WAITING = 4.0
"""The same by the clock, as a multiple: a mutant that waits for ever uses no processor."""
_QUICK = 0.3
"""Seconds of a test that may be tried before others because it noticed most."""
_MEMORY = 6 * 1024**3
_BESIDE = ("tests", "benchmarks", "experiments", "conftest")
"""Packages that may have imported what is changed, besides the changed one."""


@dataclass(frozen=True)
class Trial:
    """What became of one mutant."""

    key: str
    status: str
    """"noticed", "survived" or "endless"."""
    by: str
    """The test that failed."""
    seconds: float


@dataclass(frozen=True)
class Terms:
    """How mutants are tried.

    Attributes
    ----------
    source : pathlib.Path
        Folder of the package.
    folders : sequence of pathlib.Path
        Folders of the changed code.
    reach : dict
        What each test reaches, by its name.
    seconds : float
        Slower tests than fit into this sum are not tried, but for the first.
    jobs : int
        Number of processes.
    end : float
        When no further mutant is begun, on the monotonic clock.
    """

    source: Path
    folders: Sequence[Path]
    reach: dict[str, Reach]
    seconds: float
    jobs: int
    end: float


@dataclass
class _Running:
    mutant: Mutant
    pipe: int
    folder: Path
    limit: float
    start: float = field(default_factory=time.monotonic)


def run_pytest(arguments: Sequence[str], plugins: Sequence[object], *options: str) -> int:
    """Run pytest in this process, without what keeps files or starts processes of its own."""
    quiet = ("-q", "--assert=plain", "--capture=sys", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler")
    return int(pytest.main([*quiet, *options, *arguments], plugins=list(plugins)))


def be_quiet() -> None:
    """Send what this process prints to nowhere."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


class Trials:
    """A plugin of pytest that tries mutants once all tests are collected, and runs none by itself."""

    def __init__(self, mutants: Sequence[Mutant], terms: Terms, report: Callable[[Trial], None]) -> None:
        self._mutants = mutants
        self._terms = terms
        self._report = report
        self._tests_of: defaultdict[str, set[str]] = defaultdict(set)
        for test, reach in terms.reach.items():
            for function in reach.functions:
                self._tests_of[function].add(test)
                self._tests_of[function.split(":")[0]].add(test)
        self._noticing: defaultdict[Path, Counter[str]] = defaultdict(Counter)
        self._importing, self._collecting = CallRecorder(terms.folders), CallRecorder(terms.folders)

    def run(self, tests: Path) -> int:
        """Collect all tests of a folder, and try the mutants."""
        self._importing.start()
        for path in (path for folder in self._terms.folders for path in sorted(folder.glob("*.py"))):
            importlib.import_module(_module_name(path, self._terms.source))
        self._importing.stop()
        self._collecting.start()
        return run_pytest([str(tests)], [self])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self._collecting.stop()
        self._at_import, self._at_collection = self._importing.functions, self._collecting.functions
        self._items = {item.nodeid: item for item in session.items}
        functions = (each for each in gc.get_objects() if isinstance(each, FunctionType))
        self._live: defaultdict[tuple[str, str, int], list[FunctionType]] = defaultdict(list)
        for each in functions:
            code = each.__code__
            self._live[code.co_filename, code.co_qualname, code.co_firstlineno].append(each)
        gc.collect()
        gc.freeze()
        for trial in self._trials():
            self._report(trial)
        return True

    def _trials(self) -> Iterator[Trial]:
        """Try mutants, several at a time."""
        running: dict[int, _Running] = {}
        waiting = list(reversed(self._mutants))
        try:
            while running or (waiting and time.monotonic() < self._terms.end):
                while waiting and len(running) < self._terms.jobs and time.monotonic() < self._terms.end:
                    pid, begun = self._begun(waiting.pop())
                    running[pid] = begun
                select.select([each.pipe for each in running.values()], [], [], 1.0)
                for pid, each in list(running.items()):
                    took = time.monotonic() - each.start
                    done, state = os.waitpid(pid, os.WNOHANG)
                    if done or took > each.limit:
                        del running[pid]
                        yield self._ended(pid, each, state if done else None)
        finally:
            for pid, each in running.items():
                self._ended(pid, each, None)

    def _begun(self, mutant: Mutant) -> tuple[int, _Running]:
        """Number of a new process that tries a mutant."""
        function, live, code = self._in_place(mutant)
        tests = self._tests_for(mutant, function)
        seconds = _LIMIT[0] + _LIMIT[1] * sum(self._terms.reach[test].seconds for test in tests)
        out, inside = os.pipe()
        folder = Path(tempfile.mkdtemp(prefix="mutant-"))
        folder.chmod(0o755)  # a database server of another user has its files in it
        pid = os.fork()
        if pid:
            os.close(inside)
            return pid, _Running(mutant, out, folder, _WAITING * seconds)
        said = "noticed "
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
            resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            be_quiet()
            os.environ["PYTEST_DEBUG_TEMPROOT"] = os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
            for each in live:
                each.__code__ = code
            forget_results(self._terms.folders)
            by = self._run_here(tests) if live else None
            # What tests compute while they are collected, they compute by the code as it was.
            if by is None and (not live or function in self._at_collection):
                by = _run_anew(mutant, self._terms.source, tests)
            said = "survived " if by is None else f"noticed {by}"
        finally:
            os.write(inside, said.encode())
            os._exit(0)

    def _in_place(self, mutant: Mutant) -> tuple[str, list[FunctionType], CodeType | None]:
        """Name of the changed function, the functions that get a new code, and this code: none where this would not do."""
        try:
            code = _outermost(compile(mutant.source(), str(mutant.path), "exec", dont_inherit=True), mutant.line)
        except SyntaxError:
            code = None
        if code is None:
            return "", [], None
        name = function_name(mutant.path, code.co_qualname)
        live = self._live.get((code.co_filename, code.co_qualname, code.co_firstlineno), [])
        nothing_changed = any(each.__code__ == code for each in live) and not mutant.key.startswith("=")
        if name in self._at_import or nothing_changed:
            return name, [], None
        return name, live, code

    def _tests_for(self, mutant: Mutant, function: str) -> list[str]:
        """Tests in order: three quick ones that noticed most in this file, then by time. The module's own count half."""
        module = f"{mutant.path.parent.name}/{mutant.path.name}"
        own = f"tests/{mutant.path.parent.name}/test_{mutant.path.stem}.py::"
        if function and function not in self._at_import:
            wanted = self._tests_of[function]
        else:
            # A constant or a field may be looked at by tests that call nothing.
            room = own.rpartition("/")[0]
            looking = (
                name
                for name, each in self._terms.reach.items()
                if name.startswith(own) or (name.startswith(room) and not each.functions)
            )
            wanted = self._tests_of[module].union(looking)
        wanted = wanted & self._items.keys()
        seconds = {name: self._terms.reach[name].seconds for name in wanted}
        noticing = (name for name, _ in self._noticing[mutant.path].most_common() if seconds.get(name, 1.0) < _QUICK)
        first = set(itertools.islice(noticing, 3))
        # Tests that call nothing are tried on constants and fields alone, and most of these concern no other test.
        calls = {name: bool(self._terms.reach[name].functions) for name in wanted}
        share = {name: seconds[name] / (1 + name.startswith(own)) for name in wanted}
        ordered = sorted(wanted, key=lambda name: (name not in first, calls[name], share[name]))
        sums = list(itertools.accumulate(seconds[name] for name in ordered))
        return ordered[: max(1, sum(so_far <= self._terms.seconds for so_far in sums))]

    def _run_here(self, tests: Sequence[str]) -> str | None:
        """Run tests that are collected; the first that fails."""
        items = [self._items[name] for name in tests]
        if not items:
            return None
        outcome = _Outcome()
        items[0].config.pluginmanager.register(outcome)
        session = items[0].session
        session.shouldfail = session.shouldstop = False
        for item, after in itertools.pairwise([*items, None]):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if outcome.failed:
                break
        with contextlib.suppress(BaseException):
            session._setupstate.teardown_exact(None)
        return outcome.failed

    def _ended(self, pid: int, each: _Running, state: int | None) -> Trial:
        """End a process with all that it started, and read what it said."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        if state is None:
            os.waitpid(pid, 0)
        said = os.read(each.pipe, 10_000).decode()
        os.close(each.pipe)
        shutil.rmtree(each.folder, ignore_errors=True)
        endless = state is None or (os.WIFSIGNALED(state) and os.WTERMSIG(state) in (signal.SIGXCPU, signal.SIGKILL))
        status, _, by = said.partition(" ") if said else ("endless" if endless else "noticed", "", "")
        if by:
            self._noticing[each.mutant.path][by] += 1
        return Trial(each.mutant.key, status, by, round(time.monotonic() - each.start, 2))


class _Outcome:
    """A plugin of pytest: keeps some tests, in their order, and remembers the first one that failed."""

    def __init__(self, tests: Sequence[str] | None = None) -> None:
        self.failed: str | None = None
        self._places = None if tests is None else {name: place for place, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        if self._places is not None:
            places = self._places
            items[:] = sorted((item for item in items if item.nodeid in places), key=lambda item: places[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and self.failed is None:
            self.failed = report.nodeid


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from the text of a mutant."""

    def __init__(self, mutant: Mutant, source: Path) -> None:
        self._mutant = mutant
        self._name = _module_name(mutant.path, source)

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._mutant.path, loader=self)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        code = compile(self._mutant.source(), str(self._mutant.path), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102 - that is the purpose


def _run_anew(mutant: Mutant, source: Path, tests: Sequence[str]) -> str | None:
    """Import our modules anew, one of them changed, and run tests; the first that fails, or that something else did."""
    # Pytest remembers the classes of warnings that filters name.
    _pytest.config.parse_warning_filter.cache_clear()
    forgotten = {source.name, *_BESIDE}
    # A compiled module cannot be initialised twice.
    for name in [name for name in sys.modules if name.split(".")[0] in forgotten and not name.endswith("._kernel")]:
        del sys.modules[name]
    sys.meta_path.insert(0, _Changed(mutant, source))
    importlib.import_module(_module_name(mutant.path, source))
    own = [name for name in tests if f"/test_{mutant.path.stem}.py" in name] or tests[:1]
    for chosen in (own, [name for name in tests if name not in own]):
        outcome = _Outcome(chosen)
        files = sorted({name.split("::")[0] for name in chosen})
        if chosen and run_pytest(files, [outcome], "-x") not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return outcome.failed or "the collection of tests"
    return None


def _outermost(code: CodeType, line: int) -> CodeType | None:
    """The code of the outermost function around a line; None if there is none."""
    for inner in (each for each in code.co_consts if isinstance(each, CodeType)):
        lines = [number for _, _, number in inner.co_lines() if number]
        lines += [number for each in _within(inner) for _, _, number in each.co_lines() if number]
        if inner.co_firstlineno <= line <= max(lines, default=0):
            return inner if inner.co_flags & CO_OPTIMIZED else _outermost(inner, line)
    return None


def _within(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _within(each)


def _module_name(path: Path, source: Path) -> str:
    return ".".join(path.relative_to(source.parent).with_suffix("").parts)
