"""The table of violations: what each release claims, and what an attack shows.

    python -m benchmarks.violations.run            print it
    python -m benchmarks.violations.run --write    put it into README.md

Its environment needs requirements.txt beside this file. A release whose library is missing is named.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from benchmarks.violations.releases import VIOLATIONS, Violation
from confide.audit import AuditResult, attack
from confide.audit.worst_pairs import audited

PAGE = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- the table -->", "<!-- end of the table -->"
CONFIDENCE = 0.99


def attacked(violation: Violation, confidence: float = CONFIDENCE) -> AuditResult:
    if isinstance(violation.release, str):
        return audited(violation.release, violation.claim, violation.n_releases, confidence)
    return attack(
        violation.release,
        violation.first,
        violation.second,
        budget=violation.claim,
        n_releases=violation.n_releases,
        confidence=confidence,
        with_power=False,
        name=violation.name,
    )


def claimed(violation: Violation) -> str:
    return f"({violation.epsilon:g}, {violation.delta:g})" if violation.delta else f"{violation.epsilon:g}"


def lines(names: list[str]) -> list[str]:
    found = [
        "| release | fault | claimed | shown, at least | verdict | control | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for violation in VIOLATIONS:
        if names and not any(name in violation.name for name in names):
            continue
        start = time.process_time()
        try:
            result = attacked(violation)
            failure = result.failure
        except ImportError as error:
            failure = str(error)
        if failure is not None:
            found.append(f"| {violation.name} | {violation.fault} | {claimed(violation)} | not run: {failure} | | | |")
            print(found[-1], flush=True)
            continue
        verdict = "**refuted**" if result.refuted else "not refuted"
        found.append(
            f"| {violation.name} | {violation.fault} | {claimed(violation)} | {result.epsilon:.2f} | {verdict} | "
            f"{result.control:.2f} | {time.process_time() - start:.0f} |"
        )
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="put the table into README.md")
    parser.add_argument("names", nargs="*", help="parts of names; without any, all releases")
    given = parser.parse_args()
    table = lines(given.names)
    if given.write:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.split(BEGIN)[0], text.split(END)[1]
        PAGE.write_text("\n".join([before + BEGIN, "", *table, "", END + after]), encoding="utf-8")


if __name__ == "__main__":
    main()
