"""A fit on many rows: peak memory over the memory of X, passes over X, and CPU time beside scikit-learn without privacy.

Needs Linux for the memory figures.

Run: OMP_NUM_THREADS=1 python benchmarks/large_fit.py [--rows 1000000] [--columns 100] [--dtype float64]
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from pathlib import Path

import numpy as np

from confide import LogisticRegression
from confide.data.arrays import MemorySource


def resident(what: str) -> int:
    """Memory of this process in bytes, as Linux counts it: VmRSS now, VmHWM at the peak."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(what))
    return int(line.split()[1]) * 1024


def main() -> None:
    """Print the figures of one fit."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--dtype", default="float64")
    arguments = parser.parse_args()
    n, d = arguments.rows, arguments.columns
    rng = np.random.default_rng(0)
    X = np.empty((n, d), dtype=arguments.dtype)
    for start in range(0, n, 10_000):
        X[start : start + 10_000] = rng.normal(size=(min(10_000, n - start), d)) / np.sqrt(d)
    y = (X @ rng.normal(size=d).astype(X.dtype) * 3 + rng.logistic(size=n) > 0).astype(np.int64)

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
    print(f"passes: {orders[2]} with Hessian (Newton trials), {orders[1]} certificate, {orders[0]} value only")
    print(f"private fit: {seconds:.2f} s CPU, training accuracy {model.score(X, y):.4f}")

    from sklearn.linear_model import LogisticRegression as Reference

    for solver in ("newton-cholesky", "lbfgs"):
        start = time.process_time()
        Reference(C=1.0 / (n * model.alpha_), solver=solver).fit(X, y)
        reference = time.process_time() - start
        print(f"scikit-learn {solver}: {reference:.2f} s CPU; ours over theirs {seconds / reference:.2f}")


if __name__ == "__main__":
    main()
