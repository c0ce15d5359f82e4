"""Test error of private regressors on real data with everything but the bounds at its default, beside that without privacy.

Run: CONFIDE_DATA_DIR=... python benchmarks/regression_error.py [--draws 10] [--tasks adult-hours ...]
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from public_data import load

import confide
from confide import ApproxDP, HuberRegressor, PoissonRegressor, PureDP, Ridge, Schema


@dataclass(frozen=True)
class Task:
    """A column to be predicted from the others. Targets are (value - centre) / unit for numbers, and values for counts."""

    data: str
    column: str
    centre: float
    unit: float
    counts: bool = False


TASKS = {
    # Round public figures: a usual value, and how far from it one may lie.
    "adult-hours": Task("adult", "hours-per-week", 40.0, 40.0),
    "adult-age": Task("adult", "age", 45.0, 45.0),
    "bank-balance": Task("bank", "balance", 1000.0, 10_000.0),
    "covertype-elevation": Task("covertype", "Elevation", 2900.0, 1000.0),
    "bank-campaign": Task("bank", "campaign", 0.0, 1.0, counts=True),
}
LARGEST_COUNT = 10.0
BUDGETS = {"not private": math.inf, "pure 1": PureDP(1.0), "1, 1e-6": ApproxDP(1.0, 1e-6)}


def rows_of(task: Task) -> tuple[Schema, pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Schema without the target, and rows and scaled targets of the training and the test part."""
    split = load(task.data)
    columns = [column for column in split.schema.columns if column.name != task.column]
    targets = [(rows[task.column].to_numpy(float) - task.centre) / task.unit for rows in (split.X_train, split.X_test)]
    return Schema(columns=columns), split.X_train, targets[0], split.X_test, targets[1]


def models_of(task: Task, budget: Any, schema: Schema) -> dict[str, Any]:
    """The estimators to compare, by name."""
    facts = {"budget": budget, "schema": schema, "target_bound": LARGEST_COUNT if task.counts else 1.0}
    if task.counts:
        return {
            "Ridge": Ridge(**facts),
            "Huber": HuberRegressor(**facts, threshold=1.0),
            "Poisson": PoissonRegressor(**facts),
        }
    return {
        "Ridge": Ridge(**facts),
        "Huber": HuberRegressor(**facts),
        "clipped squared": HuberRegressor(**facts, loss="clipped_squared"),
    }


def errors_of(predicted: np.ndarray, targets: np.ndarray, task: Task) -> tuple[float, float]:
    """Root mean square and mean absolute error, in the units of the column."""
    residuals = task.unit * (predicted - targets)
    return float(np.sqrt(np.mean(residuals**2))), float(np.mean(np.abs(residuals)))


def main() -> None:
    """Print one line a task, budget and model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--tasks", nargs="*", default=list(TASKS))
    given = parser.parse_args()
    for name in given.tasks:
        task = TASKS[name]
        schema, X_train, y_train, X_test, y_test = rows_of(task)
        print(f"{name}: {len(y_train)} rows, {confide.SchemaEncoder(schema).row_bound.n_features} columns")
        for setting, budget in BUDGETS.items():
            for kind, model in models_of(task, budget, schema).items():
                draws = 1 if budget == math.inf else given.draws
                found = np.array(
                    [errors_of(model.fit(X_train, y_train).predict(X_test), y_test, task) for _ in range(draws)]
                )
                squared, absolute = found.mean(axis=0)
                spread = found[:, 0].std(ddof=1) / math.sqrt(draws) if draws > 1 else 0.0
                print(
                    f"  {setting:12} {kind:16} root mean square {squared:.4g} +- {spread:.2g}  absolute {absolute:.4g}  "
                    f"alpha {model.alpha_:.3g}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
