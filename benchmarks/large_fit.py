"""A fit on many rows: peak memory over the memory of X, passes over X, and CPU time beside scikit-learn without privacy.

Needs Linux for the memory figures.

Run: OMP_NUM_THREADS=1 python benchmarks/large_fit.py [--rows 1000000] [--columns 100] [--dtype float64] [--growth]

With --growth: how CPU time grows with the number of rows, from 100,000 to `--rows`; smaller data sets are the first of them.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from confide import LogisticRegression
from confide.data.arrays import MemorySource


def resident(what: str) -> int:
    """Memory of this process in bytes, as Linux counts it: VmRSS now, VmHWM at the peak."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


def growth(X: Any, y: Any) -> None:
    """CPU seconds of fits to ever more rows, and the slope of their logarithm over that of the rows.

    Start-up is what a fit to 1,000 rows takes: checks of parameters, noise, seal.
    """
    orders: Counter[int] = Counter()
    original = MemorySource.sum_over_rows

    def counting(self: Any, row_sum: Any, weights: Any) -> Any:
        orders[row_sum.order] += self.n_rows
        return original(self, row_sum, weights)

    MemorySource.sum_over_rows = counting  # type: ignore[method-assign]
    sizes = [n for n in (100_000, 200_000, 500_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000) if n < len(X)] + [len(X)]
    seconds = []
    LogisticRegression(1.0).fit(X[:1000], y[:1000])
    for n in (1_000, *sizes):
        times = []
        for _ in range(5 if n <= 1_000_000 else 3):
            orders.clear()
            start = time.process_time()
            LogisticRegression(1.0).fit(X[:n], y[:n])
            times.append(time.process_time() - start)
        seconds.append(min(times))
        passes = sum(orders.values()) / n
        print(f"{n:>10,} rows: {seconds[-1]:8.3f} s CPU, {1e9 * seconds[-1] / n:6.0f} ns a row, {passes:.1f} passes")
    start_up, *seconds = seconds
    for first in (0, 1, 2):
        slope, outside = (
            np.polyfit(np.log(sizes[first:]), np.log(np.array(seconds[first:]) - less), 1)[0] for less in (0.0, start_up)
        )
        print(f"slope from {sizes[first]:,} rows: {slope:.3f}, outside start-up {outside:.3f}")


def main() -> None:
    """Print the figures of one fit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--growth", action="store_true")
    arguments = parser.parse_args()
    n, d = arguments.rows, arguments.columns
    rng = np.random.default_rng(0)
    X = np.empty((n, d), dtype=arguments.dtype)
    for start in range(0, n, 10_000):
        X[start : start + 10_000] = rng.normal(size=(min(10_000, n - start), d)) / np.sqrt(d)
    y = (X @ rng.normal(size=d).astype(X.dtype) * 3 + rng.logistic(size=n) > 0).astype(np.int64)

    if arguments.growth:
        growth(X, y)
        return

    orders: Counter[int] = Counter()
    original = MemorySource.sum_over_rows

    def counting(self, row_sum, weights):
        orders[row_sum.order] += 1
        return original(self, row_sum, weights)

    MemorySource.sum_over_rows = counting  # type: ignore[method-assign]
    LogisticRegression(1.0).fit(X[:1000], y[:1000])
    orders.clear()
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew from here
    start = time.process_time()
    model = LogisticRegression(1.0).fit(X, y)
    seconds = time.process_time() - start
    after = resident("VmHWM")
    print(f"{n} x {d} {X.dtype}: X {X.nbytes / 1e6:.0f} MB")
    print(f"process before the fit {before / 1e6:.0f} MB, peak during it {after / 1e6:.0f} MB; "
          f"growth {(after - before) / X.nbytes:.3f} of X")  # fmt: skip
    print(f"passes, over samples and all rows: {orders[2]} with Hessian, {orders[1]} gradients, {orders[0]} values")
    print(f"private fit: {seconds:.2f} s CPU, training accuracy {model.score(X, y):.4f}")

    from sklearn.linear_model import LogisticRegression as Reference

    for solver in ("newton-cholesky", "lbfgs"):
        start = time.process_time()
        Reference(C=1.0 / (n * model.alpha_), solver=solver).fit(X, y)
        reference = time.process_time() - start
        print(f"scikit-learn {solver}: {reference:.2f} s CPU; ours over theirs {seconds / reference:.2f}")


if __name__ == "__main__":
    main()
