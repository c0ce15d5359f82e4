"""Change the trusted code in thousands of places, one at a time, and list the changes that no test notices.

`python -m scripts.mutation_tests` (that is `make mutants`) tries the mutants of `erm/`, `privacy/` and `accounting/` in an
order that is random but always the same: those tried so far are a random sample of all. Results are kept in
`build/mutants.jsonl`, and a later run goes on where the last one stopped.

    python -m scripts.mutation_tests --minutes 30 --jobs 2    go on for half an hour
    python -m scripts.mutation_tests --only privacy/lattice   mutants of one module
    python -m scripts.mutation_tests --again                  those that survived, after tests were added
    python -m scripts.mutation_tests --show KEY               the change
    python -m scripts.mutation_tests --summary                the table, and survivors without a reason

A mutant is tried against the tests of its module, then against those of its room, the quick ones first. Tests of pages and
hashes of the code would notice everything, and take no part. A test that fails, an error, and no end within the time limit
all count as noticed. Survivors that change nothing which matters are listed with reasons in `tests/surviving_mutants.toml`.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.util
import itertools
import json
import os
import resource
import select
import signal
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from scripts.mutants import Mutant, mutants_of

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "confide"
TESTS = ROOT / "tests"
ROOMS = ("erm", "privacy", "accounting")
RESULTS = ROOT / "build" / "mutants.jsonl"
TIMES = ROOT / "build" / "times_of_tests.json"
REASONS = TESTS / "surviving_mutants.toml"
_SECONDS_OF_TESTS = 25.0
"""Slower tests than fit into this sum are not tried: a change that only they would notice counts as a survivor."""
_LIMIT = (20.0, 6.0)
"""Seconds until a mutant without an end counts as noticed: so many, and so many times what its tests take."""
_MEMORY = 6 * 1024**3


@dataclass(frozen=True)
class Trial:
    """What became of one mutant."""

    key: str
    status: str
    """"noticed", "survived" or "endless"."""
    by: str
    """The first test that failed."""
    seconds: float


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads one module from the text of a mutant."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        place = mutant.path.relative_to(SOURCE.parent).with_suffix("")
        self._name = ".".join(place.parts)

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> Any:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(fullname, self._mutant.path, loader=self)

    def create_module(self, spec: Any) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._mutant.source(), str(self._mutant.path), "exec"), module.__dict__)  # noqa: S102 - that is the purpose


class _Outcome:
    """A plugin of pytest: runs the quick tests first, and remembers the first one that failed."""

    def __init__(self, times: dict[str, float], files: Sequence[str] = ()) -> None:
        self.failed = ""
        self.seconds: Counter[str] = Counter()
        self._times = times
        self._files = files

    def pytest_collection_modifyitems(self, config: Any, items: list[Any]) -> None:
        """Order the tests: those of the first file, then all others, the quick ones first, until the time is used up."""
        if not self._files:
            return
        items.sort(key=lambda item: (not item.nodeid.startswith(self._files[0]), self._times.get(item.nodeid, 0.0)))
        sums = itertools.accumulate(self._times.get(item.nodeid, 0.0) for item in items)
        within = sum(so_far <= _SECONDS_OF_TESTS for so_far in sums)
        config.hook.pytest_deselected(items=items[within:])
        items[:] = items[:within]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed and not self.failed:
            self.failed = report.nodeid


def main() -> None:
    """Go on with the trials, and print the table."""
    parser = argparse.ArgumentParser(description="Try mutants of the trusted code.")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--only", default="", help="a part of the name of the file, such as privacy/lattice")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="number of mutants to try")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--show", metavar="KEY", help="print one change and what became of it")
    parser.add_argument("--summary", action="store_true", help="print the table alone")
    asked = parser.parse_args()
    mutants = [each for each in all_mutants() if asked.only in each.path.as_posix()]
    known = trials()
    if asked.show:
        print(*(f"{each}\n{known.get(each.key)}" for each in mutants if each.key == asked.show), sep="\n")
        return
    if not asked.summary:
        again = {key for key, trial in known.items() if trial.status == "survived"} if asked.again else set()
        todo = [each for each in mutants if (each.key in again if asked.again else each.key not in known)][: asked.most]
        for trial in tried(todo, asked.jobs, time.monotonic() + 60 * asked.minutes):
            known[trial.key] = trial
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(json.dumps(vars(trial)) + "\n")
    print("\n".join(summary(mutants, known)))


def all_mutants() -> list[Mutant]:
    """Of the trusted rooms, in the order in which they are tried."""
    found = [each for room in ROOMS for path in sorted((SOURCE / room).glob("*.py")) for each in mutants_of(path, SOURCE)]
    return sorted(found, key=lambda each: each.key)


def trials() -> dict[str, Trial]:
    """The last trial of each mutant that was ever tried here."""
    if not RESULTS.exists():
        return {}
    lines = RESULTS.read_text(encoding="utf-8").splitlines()
    return {trial.key: trial for trial in (Trial(**json.loads(line)) for line in lines)}


def tried(mutants: Sequence[Mutant], jobs: int, end: float) -> Iterator[Trial]:
    """Try mutants, several at a time, until `end` on the monotonic clock."""
    if not mutants:
        return
    RESULTS.parent.mkdir(exist_ok=True)
    _import_what_tests_import()
    times = _times_of_tests()
    killers: defaultdict[Path, Counter[str]] = defaultdict(Counter)
    running: dict[int, tuple[Mutant, int, float, float]] = {}
    waiting = list(reversed(mutants))
    while running or (waiting and time.monotonic() < end):
        while waiting and len(running) < jobs and time.monotonic() < end:
            mutant = waiting.pop()
            first = [name for name, _ in killers[mutant.path].most_common(3)]
            seconds = _LIMIT[0] + _LIMIT[1] * (_SECONDS_OF_TESTS + sum(times.get(name, 0.0) for name in first))
            pid, pipe = _started(mutant, first, times)
            running[pid] = mutant, pipe, time.monotonic(), seconds
        select.select([pipe for _, pipe, _, _ in running.values()], [], [], 1.0)
        for pid, (mutant, pipe, start, seconds) in list(running.items()):
            took = time.monotonic() - start
            done, _ = os.waitpid(pid, os.WNOHANG)
            if not done and took < seconds:
                continue
            _end(pid, done=bool(done))
            said = os.read(pipe, 10_000).decode()
            os.close(pipe)
            del running[pid]
            status, _, by = said.partition(" ") if said else ("noticed" if done else "endless", "", "")
            if by:
                killers[mutant.path][by] += 1
            yield Trial(mutant.key, status, by, round(took, 2))


def files_for(path: Path, times: dict[str, float]) -> list[str]:
    """Files of tests for a module, in order: its own, those that name it, and the others of its room."""
    room, module = path.parent.name, f"confide.{path.parent.name}.{path.stem}"
    known = sorted({name.split("::")[0] for name in times})
    own = f"tests/{room}/test_{path.stem}.py"
    naming = [name for name in known if name != own and module in (ROOT / name).read_text(encoding="utf-8")]
    rest = [name for name in known if name.startswith(f"tests/{room}/") and name != own and name not in naming]
    return [*([own] if own in known else []), *naming, *rest]


def reasons() -> dict[str, str]:
    """Why a survivor may survive, by its key."""
    return tomllib.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}


def summary(mutants: Sequence[Mutant], known: dict[str, Trial]) -> list[str]:
    """One line for each module, their sums, and the survivors without a reason."""
    explained = reasons()
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    open_ones = []
    for mutant in mutants:
        name = mutant.path.relative_to(SOURCE).as_posix()
        trial = known.get(mutant.key)
        state = "untried" if trial is None else trial.status
        if state == "survived":
            state = "explained" if mutant.key in explained else state
        if state == "survived":
            open_ones.append(f"{mutant.key} {name}:{mutant.line} {mutant.function}: {mutant.before} -> {mutant.after}")
        for row in (name, name.split("/")[0], "all"):
            rows[row][state] += 1
    lines = ["| module | mutants | tried | noticed | explained | survived |", "|---|---|---|---|---|---|"]
    for name in sorted(rows):
        row = rows[name]
        noticed = row["noticed"] + row["endless"]
        n_tried = noticed + row["explained"] + row["survived"]
        share = f"{100 * noticed / n_tried:.1f}%" if n_tried else "-"
        lines.append(f"| {name} | {row.total()} | {n_tried} | {share} | {row['explained']} | {row['survived']} |")
    return [*lines, "", *open_ones]


def _started(mutant: Mutant, first: Sequence[str], times: dict[str, float]) -> tuple[int, int]:
    """Number of a new process that tries a mutant, `first` tests first, and the pipe on which it tells the outcome."""
    out, inside = os.pipe()
    pid = os.fork()
    if pid:
        os.close(inside)
        return pid, out
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _be_quiet()
        sys.meta_path.insert(0, _Changed(mutant))
        files = files_for(mutant.path, times)
        # Most mutants end at the first tests or at those of their module, before all others are collected.
        for chosen, ordered in ((first, []), (files[:1], files), (files[1:], files)):
            outcome = _Outcome(times, ordered)
            code = _pytest(chosen, outcome) if chosen else 0
            if code:
                os.write(inside, f"noticed {outcome.failed}".encode())
                os._exit(0)
        os.write(inside, b"survived ")
    except BaseException:  # noqa: BLE001 - whatever a mutant raises, it was noticed
        os.write(inside, b"noticed ")
    finally:
        os._exit(0)


def _end(pid: int, *, done: bool) -> None:
    """End a process with all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    if not done:
        os.waitpid(pid, 0)


def _pytest(arguments: Sequence[str], outcome: _Outcome, *options: str) -> int:
    import pytest

    quiet = ("-x", "-q", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:faulthandler")
    return int(pytest.main([*quiet, *options, *arguments], plugins=[outcome]))


def _be_quiet() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)


def _import_what_tests_import() -> None:
    """Import every package that tests use, but for our own: a new process then begins with them."""
    out, inside = os.pipe()
    pid = os.fork()
    if not pid:
        _be_quiet()
        _pytest([f"tests/{room}" for room in ROOMS], _Outcome({}), "--collect-only")
        ours = ("confide", "tests", "scripts", "benchmarks", "conftest", "__main__")
        names = [name for name in sys.modules if name.split(".")[0] not in ours and not name.startswith("_")]
        os.write(inside, " ".join(names).encode())
        os._exit(0)
    os.close(inside)
    names = ""
    while part := os.read(out, 65536):
        names += part.decode()
    os.waitpid(pid, 0)
    for name in names.split():
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001, S112 - some modules exist only while another one runs
            continue


def _times_of_tests() -> dict[str, float]:
    """Seconds of each test without a change. Each file is measured once; files that fail now are left out."""
    known = json.loads(TIMES.read_text(encoding="utf-8")) if TIMES.exists() else {}
    for path in (path for room in ROOMS for path in sorted((TESTS / room).glob("test_*.py"))):
        name = path.relative_to(ROOT).as_posix()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        if known.get(name, [""])[0] == digest:
            continue
        out, inside = os.pipe()
        if not os.fork():
            _be_quiet()
            outcome = _Outcome({})
            passed = _pytest([name], outcome) == 0
            with os.fdopen(inside, "w") as pipe:
                json.dump(outcome.seconds if passed else {}, pipe)
            os._exit(0)
        os.close(inside)
        with os.fdopen(out) as pipe:
            known[name] = [digest, json.load(pipe)]
        os.wait()
        TIMES.write_text(json.dumps(known), encoding="utf-8")
        if not known[name][1]:
            print(f"{name} does not pass without a change, and is left out", file=sys.stderr)
    return {test: seconds for _, tests in known.values() for test, seconds in tests.items()}


if __name__ == "__main__":
    main()
