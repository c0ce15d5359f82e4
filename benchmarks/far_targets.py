"""From which range of targets on it pays to subtract the middle of the range.

Targets and their range are moved so that the middle lies a number of half-widths of the range away from 0; a fit without the
shift of training is then compared with one of targets about 0. R^2 on rows held out, medians. Replace-one. The rule of
`intake/parameters.py` was chosen on prices of diamonds; the other tables had no part in it.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.far_targets [--draws 10]
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.thresholds import CONFIRMED, FOUND, Task
from confide import AdditiveRegressor, ApproxDP, ERMRegressor, Ridge, Schema
from confide.intake import parameters

TABLES = {
    "price": (FOUND["price"], 0.0, 20_000.0),
    "price, 5,000 rows": (lambda: _fewer(FOUND["price"]()), 0.0, 20_000.0),
    "elevation": (FOUND["elevation"], -1_100.0, 1_100.0),
    "age": (CONFIRMED["age"], -28.0, 45.0),
}
HALF_WIDTHS = (0.0, 1.0, 1.25, 1.5, 2.0, 3.0)
MODELS: dict[str, Any] = {
    "Ridge": (Ridge, {}),
    "three knots": (AdditiveRegressor, {"knots": 3}),
    "median": (ERMRegressor, {"loss": "absolute"}),
}


def _fewer(task: Task) -> Task:
    return replace(task, X_train=task.X_train[:5_000], y_train=task.y_train[:5_000])


def median(task: Task, low: float, high: float, away: float, draws: int, fit: Any) -> float:
    """The median of R^2 where the middle of the range lies so many half-widths away from 0, and nothing is subtracted."""
    make, budget, more = fit
    half = 0.5 * (high - low)
    moved = away * half - 0.5 * (low + high)
    target = {"column": "the target", "low": low + moved, "high": high + moved}
    model = make(budget, schema=Schema(task.schema.columns, target=target), **more)
    there = replace(task, y_test=task.y_test + moved)
    fits = (model.fit(task.X_train, task.y_train + moved) for _ in range(draws))
    return float(np.median([there.explained(each.predict(task.X_test)) for each in fits]))


def main() -> None:
    """Print a line for each table, budget and model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # one diamond to be predicted is wider than its bound
    print("half-widths away from 0: " + ", ".join(f"{each:g}" for each in HALF_WIDTHS))
    with threadpool_limits(1), patch.object(parameters, "_FAR_FROM_ZERO", np.inf):
        for name, (make, low, high) in TABLES.items():
            task = make()
            for epsilon in (0.2, 1.0):
                for budget in (epsilon, ApproxDP(epsilon, 1e-6)):
                    for kind, (model, more) in MODELS.items():
                        fit = (model, budget, more)
                        found = [median(task, low, high, away, options.draws, fit) for away in HALF_WIDTHS]
                        print(f"{name}, {budget}, {kind}: " + "  ".join(f"{each:.3f}" for each in found), flush=True)


if __name__ == "__main__":
    main()
