"""Change the trusted code in thousands of places, one at a time, and list the changes that no test notices.

`python -m scripts.mutation_tests` (that is `make mutants`) tries the mutants of `erm/`, `privacy/` and `accounting/` in an
order that is random but always the same: those tried so far are a random sample of all. Results are kept in
`build/mutants.jsonl`, and a later run goes on where the last one stopped.

    python -m scripts.mutation_tests --minutes 30 --jobs 2    go on for half an hour
    python -m scripts.mutation_tests --only privacy/lattice   mutants of one module
    python -m scripts.mutation_tests --again                  those that survived, after tests were added
    python -m scripts.mutation_tests --control --most 100     no change at all, which no test may notice
    python -m scripts.mutation_tests --show KEY               the change
    python -m scripts.mutation_tests --summary                the table, and survivors without a reason

A mutant is tried against the tests that reach the changed function, the quick ones first, in a process that has collected
all tests once. Which tests reach a function is measured first, in half an hour, and kept in
`build/reach_of_tests.json`. A test that fails, an error, and no end within the time limit all count as noticed. Survivors
that change nothing which matters are listed with reasons in `tests/surviving_mutants.toml`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from scripts.mutant_trials import Terms, Trial, Trials, be_quiet, run_pytest
from scripts.mutants import Mutant, mutants_of
from scripts.reached_functions import Reach, ReachOfTests, known_reach, measure_files

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "confide"
TESTS = ROOT / "tests"
ROOMS = ("erm", "privacy", "accounting")
FOLDERS = tuple(SOURCE / room for room in ROOMS)
RESULTS = ROOT / "build" / "mutants.jsonl"
REACH = ROOT / "build" / "reach_of_tests.json"
REASONS = TESTS / "surviving_mutants.toml"
NOT_TRIED = ("tests/cli/", "tests/data/test_spark.py", "tests/data/test_dask.py", "tests/report/test_browser.py")
"""Tests of commands, since others make the same calls in Python, and those whose servers outlive a mutant without an end."""
LIBRARY_OF_THREADS = "polars"
"""Files of tests that name it are not tried either: a forked process waits for ever for the threads that its parent had."""


def main() -> None:
    """Go on with the trials, and print the table."""
    parser = argparse.ArgumentParser(description="Try mutants of the trusted code.")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seconds", type=float, default=25.0, help="tests to try on a mutant, as the time that they take")
    parser.add_argument("--only", default="", help="a part of the name of the file, such as privacy/lattice")
    parser.add_argument("--most", type=int, default=sys.maxsize, help="number of mutants to try")
    parser.add_argument("--again", action="store_true", help="try those that survived once more")
    parser.add_argument("--control", action="store_true", help="put no change in the place of each, and print the outcome")
    parser.add_argument("--show", metavar="KEY", help="print one change and what became of it")
    parser.add_argument("--summary", action="store_true", help="print the table alone")
    asked = parser.parse_args()
    mutants = [each for each in all_mutants() if asked.only in each.path.as_posix()]
    known = trials()
    if asked.show:
        print(*(f"{each}\n{known.get(each.key)}" for each in mutants if each.key == asked.show), sep="\n")
        return
    if not asked.summary:
        end = time.monotonic() + 60 * asked.minutes
        again = {key for key, trial in known.items() if trial.status == "survived"} - reasons().keys()
        todo = [each for each in mutants if (each.key in again if asked.again else each.key not in known)][: asked.most]
        if asked.control:
            todo = [each.undone() for each in mutants[: asked.most]]
        reach = reach_of_tests(asked.jobs)
        try_mutants(todo, Terms(SOURCE, FOLDERS, reach, asked.seconds, asked.jobs, end))
        known = trials()
    if asked.control:
        print(*(trial for key, trial in known.items() if key.startswith("=")), sep="\n")
        return
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


def reach_of_tests(jobs: int) -> dict[str, Reach]:
    """What each test reaches, measured where it is not known yet."""
    REACH.parent.mkdir(exist_ok=True)
    files = [
        each
        for each in sorted(TESTS.rglob("test_*.py"))
        if not each.relative_to(ROOT).as_posix().startswith(NOT_TRIED)
        and LIBRARY_OF_THREADS not in each.read_text(encoding="utf-8")
    ]
    while (reach := known_reach(files, ROOT, REACH)) is None:
        # Whatever tests import is imported once, and not by this process, whose children have to see the imports.
        pid = os.fork()
        if not pid:
            with contextlib.redirect_stdout(io.StringIO()):
                run_pytest([str(TESTS)], [], "--collect-only")
            measure_files(files, ROOT, REACH, _run_file, jobs)
            os._exit(0)
        os.waitpid(pid, 0)
    return reach


def try_mutants(mutants: Sequence[Mutant], terms: Terms) -> None:
    """Try mutants in a process of their own, and keep what became of them."""
    if not mutants:
        return
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    with RESULTS.open("a", encoding="utf-8", buffering=1) as file:
        be_quiet()
        Trials(mutants, terms, lambda trial: file.write(json.dumps(vars(trial)) + "\n")).run(TESTS)
    os._exit(0)


def _run_file(name: str, report: Callable[[str, Reach], None]) -> None:
    """Run the tests of one file, and tell what each reaches."""
    be_quiet()
    run_pytest([name], [ReachOfTests(FOLDERS, report)])


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


if __name__ == "__main__":
    main()
