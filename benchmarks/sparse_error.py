"""Test error on the sparse sets a9a and w8a, and the memory of a fit on CSR rows that could not be held as an array.

The third part repeats the columns of w8a beside each other: a dense float64 array of these rows would take gigabytes, and
the script stops if the fit allocates a tenth of that beside X.

Run: CONFIDE_DATA_DIR=... python benchmarks/sparse_error.py [--draws 10]
"""

from __future__ import annotations

import argparse
import math
import tracemalloc

import numpy as np
import scipy.sparse
from public_data import folder

import confide

MEGABYTE = 10**6


def sparse_rows(name: str, part: str) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Rows of 0 and 1, and labels -1 and 1."""
    with np.load(folder() / f"{name}.npz") as file:
        indices, indptr, shape = (file[f"{part}_{key}"] for key in ("indices", "indptr", "shape"))
        return scipy.sparse.csr_array((file[f"{part}_data"].astype(float), indices, indptr), shape=tuple(shape)), (
            file[f"{part}_y"].astype(int)
        )


def split(name: str) -> tuple[scipy.sparse.csr_array, np.ndarray, scipy.sparse.csr_array, np.ndarray]:
    """The published split of a9a; of w8a, whose test part is not there, a random 70/30 split by a public seed."""
    X, y = sparse_rows(name, "train")
    if name == "a9a":
        return X, y, *sparse_rows(name, "test")
    order = np.random.default_rng(0).permutation(X.shape[0])
    cut = int(0.7 * X.shape[0])
    return X[order[:cut]], y[order[:cut]], X[order[cut:]], y[order[cut:]]


def main() -> None:
    """Print errors, then memory."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    draws = parser.parse_args().draws
    # A row of a9a has 14 ones by construction (one for each attribute of Adult), one of w8a about a dozen words.
    for name, norm in (("a9a", math.sqrt(14.0)), ("w8a", math.sqrt(12.0))):
        X, y, X_test, y_test = split(name)
        majority = 1.0 - max(np.mean(y_test == 1), np.mean(y_test == -1))
        print(f"{name}: {X.shape[0]} x {X.shape[1]}, majority class errs {majority:.4f}")
        for epsilon in (0.5, 1.0, 2.0, math.inf):
            errors = []
            for _ in range(draws if math.isfinite(epsilon) else 1):
                budget = confide.ApproxDP(epsilon, 1e-6) if math.isfinite(epsilon) else math.inf
                model = confide.LogisticRegression(budget, row_norm=norm).fit(X, y)
                errors.append(1.0 - model.score(X_test, y_test))
            spread = np.std(errors, ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else 0.0
            print(
                f"  epsilon {epsilon:<4g} test error {np.mean(errors):.4f} +- {spread:.4f}  alpha {model.alpha_:.3g}",
                flush=True,
            )

    X, y = sparse_rows("w8a", "train")
    wide = scipy.sparse.hstack([X] * 40, format="csr")
    stored = wide.data.nbytes + wide.indices.nbytes + wide.indptr.nbytes
    dense = 8 * wide.shape[0] * wide.shape[1]
    model = confide.LogisticRegression(confide.ApproxDP(1.0, 1e-6), row_norm=math.sqrt(12.0 * 40))
    model.fit(wide[:1000], y[:1000])  # what is imported and planned on the way is not the memory of a fit
    tracemalloc.start()
    model.fit(wide, y)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"{wide.shape[0]} x {wide.shape[1]}: stored {stored / MEGABYTE:.0f} MB, as an array {dense / MEGABYTE:.0f} MB; "
        f"peak of the fit beside X {peak / MEGABYTE:.0f} MB"
    )
    assert peak < dense / 10


if __name__ == "__main__":
    main()
