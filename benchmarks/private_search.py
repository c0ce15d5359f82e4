"""Is a private search for alpha worth its budget? Test error on Adult, published split, shipped schema, total epsilon 1.

Prints the mean test error of each fixed alpha of a grid, as if the best were known, of alpha="auto", and of each method of
PrivateSearchCV over the grid.

Run: python benchmarks/private_search.py [--draws 10] [--epsilon 1]
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np

import confide

GRID = [float(f"{alpha:.1e}") for alpha in np.geomspace(3e-4, 1e-1, 6)]


def main() -> None:
    """Print one line a model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    arguments = parser.parse_args()
    adult = confide.datasets.load_adult()

    def report(name: str, model: Any) -> float:
        errors, start = [], time.perf_counter()
        for _ in range(arguments.draws):
            model.fit(adult.X_train, adult.y_train)
            errors.append(1.0 - model.score(adult.X_test, adult.y_test))
        seconds = (time.perf_counter() - start) / arguments.draws
        spread = np.std(errors, ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else 0.0
        print(f"{name:28}  {np.mean(errors):.4f} +- {spread:.4f}  {seconds:6.1f} s a fit", flush=True)
        return float(np.mean(errors))

    def fixed(alpha: float | str) -> Any:
        return confide.LogisticRegression(arguments.epsilon, alpha=alpha, schema=adult.schema)

    best = min(report(f"alpha = {alpha:g}", fixed(alpha)) for alpha in GRID)
    report('alpha = "auto"', fixed("auto"))
    for method in ("permute-and-flip", "exponential", "repeated"):
        search = confide.PrivateSearchCV(fixed(1.0), {"alpha": GRID}, budget=arguments.epsilon, method=method)
        error = report(f"search, {method}", search)
        print(f"{'':28}  {error - best:+.4f} on the best fixed alpha")


if __name__ == "__main__":
    main()
