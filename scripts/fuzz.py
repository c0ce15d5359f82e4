"""Give broken files, messages and arguments to everything that reads some, and list what is not answered by a clear refusal.

`python -m scripts.fuzz` (that is `make fuzz`) tries 500,000 cases: `--cases N` tries fewer, `--target NAME` one target
alone, `--seed S` other cases. Each case starts from a valid file, message or call and is broken at random: bytes are
changed, parts removed, repeated or replaced by odd values, numbers made huge, nesting deep. Where a file has a checksum, it
is computed again, so that broken content gets past it.

What must hold for each case:

- it is understood, or refused by an exception of `confide.errors` with a message of one line;
- it ends within ten seconds, in a second try if not in the first, and within two gigabytes more than the process had;
- nothing is charged for what is refused, and arrays of the caller are not modified.

Everything else is listed with its seed, and the command ends with 1. `--replay TARGET:SEED` runs one case with its
traceback.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.fuzz_targets import TARGETS, Target

from confide.errors import ConfideError

CASES = 500_000
SECONDS_OF_A_CASE = 10
MEMORY_OF_A_CASE = 2 * 1024**3
_MOST_SHOWN = 20


def main() -> None:
    """Try the cases that the command line asks for."""
    parser = argparse.ArgumentParser(description="Try broken files, messages and arguments.")
    parser.add_argument("--cases", type=int, default=CASES, help="cases of all targets together")
    parser.add_argument("--target", choices=sorted(TARGETS), help="one target alone")
    parser.add_argument("--seed", type=int, default=0, help="number of the first case of each target")
    parser.add_argument("--replay", metavar="TARGET:SEED", help="one case, with its traceback")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if asked.replay:
            name, _, seed = asked.replay.partition(":")
            TARGETS[name](Path(folder)).try_case(random.Random(int(seed)))  # noqa: S311 - a fuzzer wants seeds
            return
        names = [asked.target] if asked.target else sorted(TARGETS)
        share = max(1, asked.cases // len(names))
        failed = 0
        for name in names:
            began = time.monotonic()
            outcomes, failures = fuzzed(TARGETS[name](Path(folder)), range(asked.seed, asked.seed + share))
            failed += len(failures)
            told = ", ".join(f"{number:,} {what}" for what, number in sorted(outcomes.items()))
            print(f"{name:16} {share:>9,} cases: {told}; {time.monotonic() - began:,.0f} s", flush=True)
            for text in failures[:_MOST_SHOWN]:
                print(f"  {text}", flush=True)
    sys.exit(1 if failed else 0)


def fuzzed(target: Target, seeds: range) -> tuple[Counter[str], list[str]]:
    """How often each outcome was seen, and one line for each kind of failure."""
    outcomes: Counter[str] = Counter()
    failures: dict[str, str] = {}
    with _bounded_memory(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in seeds:
            outcome, kind = _outcome(target, seed)
            if kind is not None and kind.startswith(TooSlow.__name__):
                outcome, kind = _outcome(target, seed)  # the machine may have been busy with something else
            outcomes[outcome] += 1
            if kind is not None:
                failures.setdefault(kind, f"{target.name}:{seed} {kind}")
    return outcomes, list(failures.values())


def _outcome(target: Target, seed: int) -> tuple[str, str | None]:
    """What became of one case; if it is a failure, its kind in one line."""
    try:
        with _bounded_time():
            target.try_case(random.Random(seed))  # noqa: S311 - a fuzzer wants seeds
    except ConfideError as refusal:
        if len(str(refusal).splitlines()) == 1:
            return "refused", None
        return "failed", f"{type(refusal).__name__} has a message that is not one line"
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in where if "confide" in frame.filename] or where
        return "failed", f"{type(error).__name__} at {Path(own[-1].filename).name}:{own[-1].lineno}: {str(error)[:100]!r}"
    return "understood", None


class TooSlow(Exception):  # noqa: N818 - says what is wrong
    """A case did not end in time."""


@contextmanager
def _bounded_time() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooSlow(f"more than {SECONDS_OF_A_CASE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS_OF_A_CASE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """A limit on the address space, so that a case that asks for much more fails at once and harms nobody."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = Path("/proc/self/statm")  # of Linux; elsewhere there is no limit
    if pages.exists():
        used = int(pages.read_text(encoding="ascii").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY_OF_A_CASE, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


if __name__ == "__main__":
    main()
