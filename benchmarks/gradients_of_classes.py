"""Several classes: noise in the objective or on the weights, or noisy gradients. Test errors over data sets and budgets.

`LogisticRegression` (softmax) and `LinearSVC` (one class against the others), replace-one. "auto" was chosen on FOUND, and
CONFIRMED had no part in it. For each cell it prints the mean test error with noise in the objective or on the weights, as
"auto" would choose without gradients, and by gradients; the noise in rows of the former, as a share of all; and what "auto"
takes.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.gradients_of_classes [--draws 4] [--data covertype ...]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from benchmarks.additive_regression import _shuffled, diamonds
from benchmarks.public_data import folder, load
from confide import ZCDP, ApproxDP, LinearSVC, LogisticRegression, Schema
from confide.expected_noise import noise_in_rows
from confide.training import plan as planning

BUDGETS: dict[str, Any] = {
    "0.1, 1e-5": ApproxDP(0.1, 1e-5), "0.5, 1e-5": ApproxDP(0.5, 1e-5), "1, 1e-5": ApproxDP(1.0, 1e-5),
    "4, 1e-5": ApproxDP(4.0, 1e-5), "rho 0.001": ZCDP(0.001), "rho 0.005": ZCDP(0.005), "rho 0.05": ZCDP(0.05),
}  # fmt: skip
_ATTACKS = {
    "normal.": "normal",
    **dict.fromkeys(("smurf.", "neptune.", "back.", "teardrop.", "pod.", "land."), "denial of service"),
    **dict.fromkeys(("satan.", "ipsweep.", "portsweep.", "nmap."), "probe"),
}
Task = tuple[Schema, pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]


def _column(data: str, column: str) -> Task:
    """A column of categories is predicted from the others."""
    split = load(data)
    schema = Schema(columns=[each for each in split.schema.columns if each.name != column])
    labels = [rows[column].fillna("missing").astype(str).to_numpy() for rows in (split.X_train, split.X_test)]
    return schema, split.X_train, labels[0], split.X_test, labels[1]


def _of_file(data: str, file: str, target: str, group: Callable[[Any], Any] = str) -> Task:
    """The classes of a data set whose benchmark has two."""
    split = load(data)
    labels = pd.read_parquet(folder() / file)[target].map(group).to_numpy()
    parts = [labels[rows.index.to_numpy()] for rows in (split.X_train, split.X_test)]
    return split.schema, split.X_train, parts[0], split.X_test, parts[1]


def _diamonds(column: str) -> Task:
    known, frame = diamonds(), _shuffled("diamonds.parquet")
    columns = [each for each in known.schema.columns if each.name != column]
    columns.extend(Schema({"price": {"low": 300, "high": 20_000, "scale": "log"}}).columns)
    rows = frame[[each.name for each in columns]].astype(
        {name: str for name in ("cut", "color", "clarity") if name != column}
    )
    labels, cut = frame[column].astype(str).to_numpy(), known.n_train
    return Schema(columns=columns), rows[:cut], labels[:cut], rows[cut:], labels[cut:]


FOUND: dict[str, Callable[[], Task]] = {
    "covertype": lambda: _of_file("covertype", "covertype_sample.parquet", "Cover_Type"),
    "marital status": lambda: _column("adult", "marital-status"),
    "schooling": lambda: _column("bank", "education"),
}
CONFIRMED: dict[str, Callable[[], Task]] = {
    "attacks": lambda: _of_file(
        "kddcup99", "kddcup99_10percent.parquet", "label", lambda label: _ATTACKS.get(label, "other")
    ),
    "cut": lambda: _diamonds("cut"),
    "relationship": lambda: _column("adult", "relationship"),
    "job": lambda: _column("bank-additional", "job"),
}


def error(model: Any, task: Task, draws: int) -> tuple[float, float]:
    """The mean test error and its standard error."""
    _, rows, labels, test_rows, test_labels = task
    errors = [float((model.fit(rows, labels).predict(test_rows) != test_labels).mean()) for _ in range(draws)]
    return float(np.mean(errors)), float(np.std(errors) / math.sqrt(draws))


def cell(kind: Any, name: str, task: Task, setting: str, draws: int) -> None:
    """Print one line."""
    schema, rows, labels, _, _ = task
    classes = sorted(set(labels))
    given = {"schema": schema, "classes": classes}
    size = {"n_rows": len(rows), "n_classes": len(classes)}
    chosen = kind(BUDGETS[setting], **given).plan(**size).mechanism
    steps = planning.STEPS
    planning.STEPS = tuple(step for step in steps if step.name != "noisy gradients")
    planning._remembered.cache_clear()
    try:
        without = kind(BUDGETS[setting], **given)
        plan = without.plan(**size)
        before = error(without, task, draws)
    finally:
        planning.STEPS = steps
        planning._remembered.cache_clear()
    by_gradients = error(kind(BUDGETS[setting], **given, mechanism="gradient"), task, draws)
    share = noise_in_rows(plan) / plan.problem.n_rows_low
    print(
        f"{name:15} {kind.__name__:18} {setting:9} {plan.mechanism:9} {before[0]:.4f} +- {before[1]:.4f}   gradient "
        f"{by_gradients[0]:.4f} +- {by_gradients[1]:.4f}   noise in rows {share:.4f}, {len(classes)} classes, "
        f"auto: {chosen}",
        flush=True,
    )


def main() -> None:
    """Print a line for each model, data set and budget."""
    tasks = FOUND | CONFIRMED
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--data", nargs="*", choices=tasks, default=list(tasks))
    parser.add_argument("--budgets", nargs="*", choices=BUDGETS, default=list(BUDGETS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.data:
            task = tasks[name]()
            for kind in (LogisticRegression, LinearSVC):
                for setting in options.budgets:
                    cell(kind, name, task, setting, options.draws)


if __name__ == "__main__":
    main()
