"""Means of predicted counts, and the mechanism that predicts numbers best.

With --part matching (the default), `PoissonRegressor` with and without a part of the budget for the mean of predictions
(`match_mean`): the share of the deviance that is explained on held-out rows; the mean prediction over the mean count on the
rows to learn from, and the root mean square of its error. With --part gradients, `PoissonRegressor` and `HuberRegressor`
with noise in the objective and by noisy gradients: the share of the deviance or of the variance that is explained on
held-out rows.

The data sets are those of thresholds.py. The rules were found on its FOUND and confirmed on its CONFIRMED.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.means_of_counts [--part gradients] [--draws 12] [--data visits calls]
"""

from __future__ import annotations

import argparse
import math
import warnings
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.thresholds import CONFIRMED, FOUND, Task
from confide import ZCDP, ApproxDP, HuberRegressor, PoissonRegressor, PureDP
from confide.expected_noise import noise_in_rows

BUDGETS: dict[str, Any] = {
    "0.1, 1e-6": ApproxDP(0.1, 1e-6), "0.5, 1e-6": ApproxDP(0.5, 1e-6), "1, 1e-6": ApproxDP(1.0, 1e-6),
    "4, 1e-6": ApproxDP(4.0, 1e-6), "pure 0.5": PureDP(0.5), "pure 1": PureDP(1.0), "rho 0.001": ZCDP(0.001),
    "rho 0.005": ZCDP(0.005), "rho 0.05": ZCDP(0.05), "rho 0.5": ZCDP(0.5),
}  # fmt: skip


def means(task: Task, name: str, budget: str, draws: int) -> None:
    """Print a line for a data set and a budget: without and with a mean that is matched."""
    given = {"schema": task.schema, "target_bound": task.target_bound}
    mean = np.minimum(task.y_train, task.target_bound).mean()
    told = []
    for choice in (False, "auto"):
        explained, ratios = [], []
        for _ in range(draws):
            model = PoissonRegressor(BUDGETS[budget], **given, match_mean=choice).fit(task.X_train, task.y_train)
            explained.append(task.explained(model.predict(task.X_test)))
            ratios.append(float(model.predict(task.X_train).mean() / mean))
        error = math.sqrt(np.mean((np.array(ratios) - 1.0) ** 2))
        deviation = np.std(explained) / math.sqrt(draws)
        told.append(f"explained {np.mean(explained):.4f} +- {deviation:.4f}, mean {np.mean(ratios):.3f}, error {error:.3f}")
    plan = PoissonRegressor(BUDGETS[budget], **given).plan(len(task.y_train))
    share = 0.0 if plan.matching is None else plan.matching.share
    print(f"{name:18} {budget:9} share {share:.3f}   without: {told[0]}   with: {told[1]}", flush=True)


def mechanisms(task: Task, name: str, budget: str, draws: int) -> None:
    """Print a line for a data set and a budget: noise in the objective, noisy gradients, and which "auto" takes."""
    make = PoissonRegressor if task.counts else HuberRegressor
    given = {"schema": task.schema, "target_bound": task.target_bound}
    told = []
    for mechanism in ("objective", "gradient"):
        values = [task.value(make, 1, budget=BUDGETS[budget], mechanism=mechanism) for _ in range(draws)]
        told.append(f"{mechanism} {np.mean(values):8.4f} +- {np.std(values) / math.sqrt(draws):.4f}")
    plan = make(BUDGETS[budget], **given, mechanism="objective").plan(len(task.y_train))
    taken = make(BUDGETS[budget], **given).plan(len(task.y_train)).mechanism
    share, law = noise_in_rows(plan) / plan.problem.n_rows_low, "none" if plan.noise is None else plan.noise.law
    print(f"{name:18} {budget:9} {'   '.join(told)}   noise in rows {share:.4f} ({law}), auto: {taken}", flush=True)


def main() -> None:
    """Print a line for each data set and budget."""
    tasks = FOUND | CONFIRMED
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--data", nargs="*", choices=tasks, default=list(tasks))
    parser.add_argument("--budgets", nargs="*", choices=BUDGETS, default=list(BUDGETS))
    parser.add_argument("--part", choices=["matching", "gradients"], default="matching")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.data:
            task = tasks[name]()
            for budget in options.budgets:
                if options.part == "matching" and task.counts:
                    means(task, name, budget, options.draws)
                elif options.part == "gradients" and not isinstance(BUDGETS[budget], PureDP):
                    mechanisms(task, name, budget, options.draws)


if __name__ == "__main__":
    main()
