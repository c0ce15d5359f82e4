"""How many charges a second does a ledger take, from 1, 4 and 16 processes? The disk bounds it: each charge is synced.

Run: python benchmarks/ledger_rate.py [--charges 1000] [--folder DIR] [--url postgresql://user@host/database]

With a URL the ledgers are new schemas of that database, rate_..., which are left there.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import tempfile
import time
from pathlib import Path

from confide.accounting.ledger import Ledger


def charge(path: str, n_charges: int, start: float) -> None:
    """The work of one process, which begins at a common time."""
    ledger = Ledger(path)
    time.sleep(max(0.0, start - time.time()))
    for _ in range(n_charges):
        ledger.charge(0.001, purpose="benchmark")


def syncs_a_second(folder: str) -> float:
    """What the disk itself can do: small appends, each synced."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        start = time.perf_counter()
        for _ in range(200):
            file.write(b"x" * 4096)
            file.flush()
            os.fdatasync(file.fileno())
        return 200 / (time.perf_counter() - start)


def main() -> None:
    """Print a line for each number of processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--charges", type=int, default=1000)
    parser.add_argument("--folder", default=None)
    parser.add_argument("--url", default=None)
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        print(f"the disk syncs {syncs_a_second(folder):,.0f} small appends a second")
        for n_processes in (1, 4, 16):
            path = str(Path(folder) / f"{n_processes}.db")
            if arguments.url:
                separator = "&" if "?" in arguments.url else "?"
                path = f"{arguments.url}{separator}schema=rate_{time.time_ns()}"
            each = arguments.charges // n_processes
            Ledger(path, limit=10.0)
            start = time.time() + 3.0 + 0.5 * n_processes
            processes = [context.Process(target=charge, args=(path, each, start)) for _ in range(n_processes)]
            for process in processes:
                process.start()
            for process in processes:
                process.join()
            seconds = time.time() - start
            spent, n_charges = Ledger(path).spent().epsilon, each * n_processes
            assert spent == n_charges / 1000, "a charge was lost"
            rate = n_charges / seconds
            print(f"{n_processes:2} processes: {rate:6.0f} charges a second ({n_charges} charges)")


if __name__ == "__main__":
    main()
