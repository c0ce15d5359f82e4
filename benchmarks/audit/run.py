"""`make audit`: every combination is replayed and attacked, every planted bug must be caught, and the auditor is audited.

    python -m benchmarks.audit.run                      all of it, on all cores
    python -m benchmarks.audit.run --fits 0             replays and planted bugs alone: minutes
    python -m benchmarks.audit.run --only Ridge --jobs 1
    python -m benchmarks.audit.run --write              put the table into README.md

Exit code 1 where anything is not as it must be.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import joblib
import pytest

from benchmarks.audit.cases import Case, cases
from confide.audit import attack, own_checks, replay
from confide.errors import ConfideError, ParameterError

PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- the table -->", "<!-- end of the table -->"
CONFIDENCE = 0.9999
"""Of each attack: of some four hundred, one in forty runs refutes a correct mechanism by chance."""
PLANTED = ("bug", "refute", "refuted", "caught", "noticed", "attack_sees", "leaks_are_found")
"""Words in the names of tests that plant a bug."""


@dataclass(frozen=True)
class Outcome:
    """What one combination showed."""

    estimator: str
    mechanism: str
    currency: str
    relation: str
    rows: str
    status: str
    """"right", "wrong" or "not offered"."""
    distance: float = 0.0
    """The largest distance of the replays over what was declared."""
    shown: float | None = None
    """What the attack shows over what was claimed; None without an attack."""
    control: float = 0.0
    problem: str = ""
    seconds: float = 0.0


def audited(case: Case, n_fits: int) -> Outcome:
    """Replay all pairs of a case, and attack the one at which the distance is longest."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _outcome(case, n_fits)
    except ConfideError as error:
        # One combination that stops must not end the others.
        return Outcome(*_facts(case), "wrong", problem=f"{type(error).__name__}: {error}")


def _facts(case: Case) -> tuple[str, str, str, str, str]:
    return case.estimator, case.mechanism, case.currency, case.relation, case.rows


def _outcome(case: Case, n_fits: int) -> Outcome:
    start = time.process_time()
    try:
        pairs = case.pairs()
        found = [replay(case.release, *pair.first, neighbour=pair.second) for pair in pairs]
    except ParameterError as error:
        return Outcome(*_facts(case), "not offered", problem=str(error).split(".")[0])
    bad = [f"{pair.name}: {result}" for pair, result in zip(pairs, found, strict=True) if not result.holds]
    worst = max(range(len(found)), key=lambda k: found[k].worst)
    shown, control = None, 0.0
    if n_fits and case.is_attacked:
        pair = pairs[worst]
        result = attack(
            case.release, pair.first, pair.second, budget=case.budget, n_releases=n_fits, confidence=CONFIDENCE,
            with_power=False,
        )  # fmt: skip
        shown, control = result.shown / case.budget.amount, result.control
        bad += [str(result)] if result.refuted or not result.is_sound or result.failure else []
    status = "wrong" if bad else "right"
    return Outcome(*_facts(case), status, found[worst].worst, shown, control, "; ".join(bad), time.process_time() - start)


class Reports:
    """Collects which tests passed."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.when == "call" or report.outcome != "passed":
            self.outcomes[report.nodeid] = report.outcome


def planted_bugs() -> dict[str, str]:
    """Every test of tests/audit that plants a bug, and whether it was caught."""
    reports = Reports()
    words = " or ".join(sorted(set(PLANTED)))
    # pytest cannot rewrite the asserts of a package that was imported before it.
    options = ["-q", "--no-header", "--assert=plain", "-p", "no:cacheprovider"]
    pytest.main([*options, "-m", "not audit", "-k", words, "tests/audit"], plugins=[reports])
    return {
        name: outcome for name, outcome in reports.outcomes.items() if not name.endswith("code]") and "[code" not in name
    }


def table(outcomes: list[Outcome]) -> list[str]:
    """One line for each estimator, mechanism and currency."""
    groups: dict[tuple[str, str, str], list[Outcome]] = collections.defaultdict(list)
    for outcome in outcomes:
        if outcome.status != "not offered":
            groups[outcome.estimator, outcome.mechanism, outcome.currency].append(outcome)
    lines = [
        "| estimator | mechanism | currency | relations, rows | largest distance / declared | shown / claimed | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for (estimator, mechanism, currency), own in groups.items():
        kinds = f"{len({each.relation for each in own})} x {', '.join(dict.fromkeys(each.rows for each in own))}"
        verdict = "right" if all(each.status == "right" for each in own) else "**WRONG**"
        shown = [each.shown for each in own if each.shown is not None]
        lines.append(
            f"| {estimator} | {mechanism} | {currency} | {kinds} | {max(each.distance for each in own):.3f} | "
            f"{f'{max(shown):.2f}' if shown else '-'} | {verdict} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=300, help="fits to either data set; 0 for replays alone")
    parser.add_argument("--only", default="", help="a part of the name of a combination")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    given = parser.parse_args()
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        chosen = [case for case in cases(Path(folder)) if given.only in case.name]
        outcomes = [audited(case, given.fits) for case in chosen] if given.jobs == 1 else joblib.Parallel(given.jobs)(
            joblib.delayed(audited)(case, given.fits) for case in chosen
        )  # fmt: skip
    lines = table(outcomes)
    print("\n".join([*lines, ""]), flush=True)
    count = collections.Counter(outcome.status for outcome in outcomes)
    wrong = [f"{asdict(outcome)}" for outcome in outcomes if outcome.status == "wrong"]
    control = max((each.control for each in outcomes), default=0.0)
    replayed = f"{count['right'] + count['wrong']} combinations were replayed and {count['wrong']} are wrong"
    summary = [f"{replayed}; {count['not offered']} are not offered. The largest control is {control:.3f}."]
    if not given.only:
        bugs = planted_bugs()
        missed = [name for name, outcome in bugs.items() if outcome not in ("passed", "skipped")]
        checks = own_checks()
        summary.append(f"{len(bugs)} planted bugs were attacked, and {len(missed)} were missed.")
        summary.append(f"Of {len(checks)} releases with a known answer, {sum(check.holds for check in checks)} got it.")
        wrong += missed + [str(check) for check in checks if not check.holds]
    summary.append(
        f"{given.fits} fits to either data set, {given.jobs} processes, {(time.monotonic() - start) / 60:.0f} minutes, "
        f"{sum(each.seconds for each in outcomes) / 60:.0f} minutes of processor time for the combinations."
    )
    print("\n".join([*summary, *wrong]))
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text("\n".join([before + BEGIN, "", *lines, "", *summary, "", END + after]), encoding="utf-8")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
