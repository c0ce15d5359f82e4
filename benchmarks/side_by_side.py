"""A certified private fit beside its peers on the same rows, and beside what the machine can do. One thread each.

Peers: SciPy, scikit-learn and glum without privacy; diffprivlib with privacy, at the same epsilon, ridge and bound on
rows, and without a certificate. One that is missing is named, with the reason. CPU seconds, the median of several runs in
turn; our own fit also without the compiled kernel, and by the wall with one thread, two and all, with the kernel and
without it. Beside these stands what reading the rows gains by two threads: no pass can gain more. Memory is what NumPy and
Python allocate at the peak of a fit.

Run: python benchmarks/side_by_side.py [--runs 3] [--shapes 50000x100,200000x100,1000000x20] [--dtype float64]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import tracemalloc
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np
from solver_speed import ALPHA, RELATIVE, contenders, made_up, seconds
from threadpoolctl import threadpool_limits

import confide

OWN = "confide, private"
BY_NUMPY = "confide, NumPy alone"
THREADS = sorted({1, 2, os.cpu_count() or 1})


def missing(peer: str) -> bool:
    """Whether an optional peer cannot be used here, which is said."""
    try:
        import_module(peer)
    except ImportError as error:
        print(f"{peer} is missing below: {error}")
        return True
    return False


def by_diffprivlib(X: Any, y: Any) -> Callable[[], Any]:
    """Objective perturbation of the peer, at the same epsilon, ridge and bound on rows."""
    from diffprivlib.models import LogisticRegression

    peer = LogisticRegression(
        epsilon=1.0, data_norm=3.0, C=1.0 / (ALPHA * X.shape[0]), fit_intercept=False, tol=RELATIVE, max_iter=2000
    )
    return lambda: peer.fit(X, y)


def without_kernel(fit: Callable[[], Any]) -> Callable[[], Any]:
    """The same fit without the compiled kernel, whose setting is put back afterwards."""

    def by_numpy() -> Any:
        setting = os.environ.get("CONFIDE_COMPILED")
        os.environ["CONFIDE_COMPILED"] = "0"
        try:
            return fit()
        finally:
            del os.environ["CONFIDE_COMPILED"]
            if setting is not None:
                os.environ["CONFIDE_COMPILED"] = setting

    return by_numpy


def limits(X: Any) -> tuple[float, float]:
    """What the machine can do on one thread: rows read in GB/s, products of matrices in GFLOP/s."""
    square = np.ones((1500, 1500), dtype=X.dtype)
    read = min(seconds(lambda: np.add.reduce(X, axis=None)) for _ in range(3))
    product = min(seconds(lambda: square @ square) for _ in range(3))
    return X.nbytes / read / 1e9, 2 * 1500**3 / product / 1e9


def by_wall(run: Callable[[], Any]) -> float:
    """Wall time of one call."""
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


def read_by(X: Any, n_threads: int) -> None:
    """Read all rows once, by several threads."""
    with ThreadPoolExecutor(n_threads) as pool:
        # NumPy lets other threads work while it looks for the largest number of a long array.
        list(pool.map(np.max, np.array_split(X, n_threads)))


def peak(run: Callable[[], Any]) -> int:
    """Bytes that a call allocates at its peak, beside what there was before."""
    tracemalloc.start()
    run()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def compared(X: Any, y: Any, runs: int, more: dict[str, Callable[[Any, Any], Callable[[], Any]]]) -> None:
    """One block: limits, memory, then a line for each contender."""
    n, d = X.shape
    bandwidth, rate = limits(X)
    reading = X.nbytes / 1e9 / bandwidth
    print(f"{n} x {d} {X.dtype}, {X.nbytes / 1e6:.0f} MB: reading {bandwidth:.1f} GB/s, products {rate:.0f} GFLOP/s")
    fits = contenders(X, y)
    fits |= {name: fit(X, y) for name, fit in more.items()} | {BY_NUMPY: without_kernel(fits[OWN])}
    fits[OWN]()  # so that imports of the first fit count neither as memory nor as time
    beside = peak(fits[OWN])
    times: dict[str, list[float]] = {name: [] for name in fits}
    walls: dict[tuple[bool, int], list[float]] = {(on, n_jobs): [] for on in (True, False) for n_jobs in THREADS}
    for _ in range(runs):
        for name, fit in fits.items():
            times[name].append(seconds(fit))
        for (on, n_jobs), wall in walls.items():
            model = confide.LogisticRegression(
                1.0, alpha=ALPHA, row_norm=3.0, fit_intercept=False, classes=[0, 1], n_jobs=n_jobs
            )
            fit_once = partial(model.fit, X, y)
            wall.append(by_wall(fit_once if on else without_kernel(fit_once)))
    own = statistics.median(times[OWN])
    for name, measured in times.items():
        median = statistics.median(measured)
        spread = f"{min(measured) / own:.2f} to {max(measured) / own:.2f}"
        print(f"  {name:28} {median:8.3f} s   {median / own:6.2f} times confide   ({spread})")
    print(
        f"  {OWN}: {own / reading:.0f} times reading X once; peak memory {beside / 1e6:.1f} MB beside X, "
        f"{beside / X.nbytes:.3f} of it"
    )
    for on in (True, False):
        best = {n_jobs: min(walls[on, n_jobs]) for n_jobs in THREADS}
        gains = "".join(f", {best[n]:.3f} s with n_jobs={n}: {best[1] / best[n]:.2f} times faster" for n in THREADS[1:])
        print(f"  {OWN if on else BY_NUMPY}, wall: {best[1]:.3f} s with one thread{gains}")
    alone, shared = (min(by_wall(partial(read_by, X, n)) for _ in range(3)) for n in (1, 2))
    print(f"  reading X, wall: {alone:.3f} s with one thread, with two {alone / shared:.2f} times faster")


def main() -> None:
    """Print one block a shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--shapes", default="50000x100,200000x100,1000000x20")
    parser.add_argument("--dtype", default="float64")
    arguments = parser.parse_args()
    missing("glum")  # which `contenders` then leaves out
    more = {} if missing("diffprivlib") else {"diffprivlib, private": by_diffprivlib}
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of peers: old parameters, rows beyond the declared norm
        for shape in filter(None, arguments.shapes.split(",")):
            n, d = map(int, shape.split("x"))
            X, y = made_up(n, d, arguments.dtype)
            compared(X, y, arguments.runs, more)


if __name__ == "__main__":
    main()
