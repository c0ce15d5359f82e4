"""Charge one ledger from many processes and threads at once, and count: no charge lost, none twice, no limit exceeded.

`python -m scripts.shared_ledger [--processes 64] [--threads 8] [--seconds 600] [--url postgresql://user@host/database]`
charges a ledger in a file, and one in PostgreSQL: that of the URL, in a new schema that is left there, or else a server of
its own where one is installed. `make faults` does the same. Each ledger is charged for the time that is asked for, and once
more up to a limit that all threads reach together.

Each charge has a purpose of its own, so the entries of the ledger are compared with the calls that returned, one by one.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confide.accounting.ledger import Ledger
from confide.errors import BudgetExceeded, LedgerError

PROCESSES, THREADS, SECONDS = 64, 8, 600
_COST = 2.0**-10
"""Cost of a charge: a power of two, so that sums are exact."""
_CHARGES_UP_TO_THE_LIMIT = 1000
_PLENTY = 10**9
_FORK = multiprocessing.get_context("fork")


class Miscounted(Exception):  # noqa: N818 - says what is wrong
    """Entries of a ledger that are not the charges that were made."""


@dataclass(slots=True)
class Told:
    """What threads were told: purposes of charges that returned, refusals at the limit and others, and waiting times."""

    returned: list[str] = field(default_factory=list)
    exceeded: int = 0
    refusals: Counter[str] = field(default_factory=Counter)
    longest: float = 0.0
    """The longest time, in seconds, that a call of `charge` took."""

    def add(self, other: Told) -> None:
        """What other threads were told, too."""
        self.returned += other.returned
        self.exceeded += other.exceeded
        self.refusals += other.refusals
        self.longest = max(self.longest, other.longest)


def charged_at_once(place: object, *, processes: int, threads: int, seconds: float, most: int = _PLENTY) -> str:
    """Charge a new ledger that has room for `most` charges, compare what it says with what was charged, and say how it went.

    Raises
    ------
    Miscounted
        If a charge is lost or was made twice, a refused one is there, or the limit is exceeded or was not reached.
    """
    ledger = Ledger(str(place), limit=most * _COST)
    start, results = _FORK.Barrier(processes + 1), _FORK.SimpleQueue()
    children = [
        _FORK.Process(target=_work, args=(place, number, threads, seconds, start, results)) for number in range(processes)
    ]
    for child in children:
        child.start()
    start.wait()
    began, told = time.monotonic(), Told()
    for _ in children:
        told.add(results.get())
    elapsed = time.monotonic() - began
    for child in children:
        child.join()
    compare(ledger, told, most)
    n_charges = len(told.returned)
    reached = f", {told.exceeded} threads were refused at the limit" if told.exceeded else ""
    refused = "".join(f", {number} refused ({reason})" for reason, number in told.refusals.items())
    return (
        f"{processes} processes x {threads} threads: {n_charges:,} charges in {elapsed:,.0f} s, "
        f"{n_charges / elapsed:,.0f} a second, the longest took {told.longest:.1f} s{reached}{refused}"
    )


def compare(ledger: Ledger, told: Told, most: int) -> None:
    """Raise Miscounted unless the entries of a ledger are exactly the charges that returned, in a chain without holes."""
    n_charges = ledger.verify()
    entries = ledger.entries()
    if Counter(entries["purpose"]) != Counter(told.returned) or n_charges != len(told.returned):
        raise Miscounted(f"{len(told.returned)} charges returned, and the ledger has {n_charges} others, or not as many")
    if entries["number"].tolist() != list(range(1, n_charges + 1)):
        raise Miscounted("the numbers of charges are not 1, 2, 3 and so on")
    if float(ledger.spent().epsilon) != n_charges * _COST or n_charges > most:
        raise Miscounted(f"{n_charges} charges, where {most} are allowed, cost {ledger.spent()}")
    if told.exceeded and n_charges != most:
        raise Miscounted(f"a charge was refused as too much after {n_charges} of {most}")


def _work(place: object, number: int, threads: int, seconds: float, start: Any, results: Any) -> None:
    ledger = Ledger(str(place))
    start.wait()
    told, until = [Told() for _ in range(threads)], time.monotonic() + seconds
    names = [f"{number}.{thread}" for thread in range(threads)]
    workers = [
        threading.Thread(target=_charge, args=(ledger, *each)) for each in zip(names, [until] * threads, told, strict=True)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for other in told[1:]:
        told[0].add(other)
    results.put(told[0])


def _charge(ledger: Ledger, name: str, until: float, told: Told) -> None:
    n_calls = 0
    while (began := time.monotonic()) < until and not told.exceeded:
        n_calls += 1
        try:
            ledger.charge(_COST, purpose=f"{name}.{n_calls}")
        except BudgetExceeded:
            told.exceeded = 1
        except LedgerError as error:
            told.refusals[str(error).rpartition(": ")[2]] += 1
        else:
            told.returned.append(f"{name}.{n_calls}")
        told.longest = max(told.longest, time.monotonic() - began)


@contextlib.contextmanager
def database(url: str | None = None) -> Iterator[str]:
    """The URL of a database for ledgers, to which the name of a schema is added; or the reason why there is none.

    Without a URL, a server of its own is started where PostgreSQL is installed, and stopped at the end.
    """
    if url is not None:
        yield f"{url}{'&' if '?' in url else '?'}schema="
        return
    from tests.accounting import postgres_server

    if reason := postgres_server.reason_to_skip():
        yield reason
        return
    server = postgres_server.Server()
    try:
        server.execute("CREATE DATABASE ledgers", database="postgres")
        yield server.url("").replace("schema=", "") + "&schema="
    finally:
        server.stop()


def trials(folder: Path, *, processes: int, threads: int, seconds: float, url: str | None = None) -> Iterator[str]:
    """A line for each ledger that was charged: in a file and in a database, for a time and up to a limit."""
    size = {"processes": processes, "threads": threads}
    for most in (_PLENTY, _CHARGES_UP_TO_THE_LIMIT):
        lasting = seconds if most == _PLENTY else 10.0 * SECONDS
        yield f"a file: {charged_at_once(folder / f'{most}.db', **size, seconds=lasting, most=most)}"
    with database(url) as place:
        if not place.startswith("postgresql:"):
            yield f"PostgreSQL: NOT TRIED: {place}"
            return
        for most in (_PLENTY, _CHARGES_UP_TO_THE_LIMIT):
            lasting = seconds if most == _PLENTY else 10.0 * SECONDS
            schema = f"shared_{time.time_ns()}"
            yield f"PostgreSQL: {charged_at_once(place + schema, **size, seconds=lasting, most=most)}"


def main() -> None:
    """Print a line for each ledger."""
    parser = argparse.ArgumentParser(description="Charge one ledger from many processes and threads at once.")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--threads", type=int, default=THREADS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--url", default=None)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in trials(Path(folder), **vars(asked)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
