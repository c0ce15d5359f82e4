"""Default against the best of a small grid, for every regressor: threshold, mechanism, alpha and the constant.

Data on which the rules for the threshold and for the mechanism of `Ridge` were found (FOUND), and other data on which they
were confirmed (CONFIRMED). Bounds are round public figures. A cell is a data set and a budget (replace-one, delta 1e-6). For
each cell it prints what the default reaches on held-out rows (R^2, or the share of the Poisson deviance that is explained),
the best of the grid, and the excess: the mean squared error, or the deviance, of the default over that of the best, minus 1.

With --part scikit-learn, models without privacy are put beside scikit-learn's on targets clipped to the same bound, both
with next to no ridge. scikit-learn's `HuberRegressor` estimates a scale, and a residual pulls no harder beyond `epsilon`
times that scale; so that product is `threshold` here. For counts, the mean prediction over the mean of the clipped counts is
printed too, on the rows to learn from and at all budgets.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.thresholds [--draws 8] [--data price visits ...] [--part threshold]
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import HuberRegressor as ScikitHuber
from sklearn.linear_model import PoissonRegressor as ScikitPoisson
from sklearn.metrics import d2_tweedie_score, r2_score
from threadpoolctl import threadpool_limits

from benchmarks.additive_regression import _shuffled, diamonds, visits
from benchmarks.public_data import load
from confide import ApproxDP, HuberRegressor, PoissonRegressor, PureDP, Ridge, Schema
from confide.features.encoder import Encoder

SHARES = (0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8, 1.0)
ALPHAS = (0.25, 0.5, 1.0, 2.0, 4.0)
CONSTANTS = (1.0, 2.0, 4.0)
EPSILONS = (1.35, 2.0, 3.0, 4.0, 8.0)
"""What scikit-learn's `HuberRegressor` multiplies its scale with; 1.35 is its default."""
BUDGETS: dict[str, Any] = {
    "0.1, 1e-6": ApproxDP(0.1, 1e-6), "0.5, 1e-6": ApproxDP(0.5, 1e-6), "1, 1e-6": ApproxDP(1.0, 1e-6),
    "4, 1e-6": ApproxDP(4.0, 1e-6), "pure 1": PureDP(1.0), "not private": math.inf,
}  # fmt: skip


@dataclass(frozen=True)
class Task:
    """Rows and targets for training and test, the schema, and the public bound on targets. Counts have `counts`."""

    schema: Schema
    X_train: pd.DataFrame
    y_train: np.ndarray
    X_test: pd.DataFrame
    y_test: np.ndarray
    target_bound: float
    counts: bool = False

    def value(self, make: Callable[..., Any], draws: int, **parameters: Any) -> float:
        """The mean share of the variance, or of the deviance, that models explain on the test rows."""
        model = make(schema=self.schema, target_bound=self.target_bound, **parameters)
        return float(np.mean([self._explained(model.fit(self.X_train, self.y_train)) for _ in range(draws)]))

    def _explained(self, model: Any) -> float:
        return self.explained(model.predict(self.X_test))

    def explained(self, predicted: np.ndarray) -> float:
        """The share of the variance, or of the deviance, that predictions for the test rows explain."""
        if self.counts:
            return float(d2_tweedie_score(self.y_test, np.maximum(predicted, 1e-9), power=1))
        return float(r2_score(self.y_test, predicted))


def _of_diamonds(column: str, target_bound: float) -> Task:
    known, frame = diamonds(), _shuffled("diamonds.parquet")
    columns = [each for each in known.schema.columns if each.name != column]
    if column != "price":
        columns.extend(Schema({"price": {"low": 300, "high": 20_000, "scale": "log"}}).columns)
    rows = frame[[each.name for each in columns]].astype(dict.fromkeys(("cut", "color", "clarity"), str))
    targets, cut = frame[column].to_numpy(float), known.n_train
    return Task(Schema(columns=columns), rows[:cut], targets[:cut], rows[cut:], targets[cut:], target_bound)


def _of_visits(column: str, target_bound: float, *, counts: bool) -> Task:
    known = visits()
    targets, cut = _shuffled("randhie.parquet")[column].to_numpy(float), known.n_train
    return Task(known.schema, known.rows[:cut], targets[:cut], known.rows[cut:], targets[cut:], target_bound, counts)


def _column(data: str, column: str, centre: float, target_bound: float, *, counts: bool = False) -> Task:
    split = load(data)
    schema = Schema(columns=[each for each in split.schema.columns if each.name != column])
    targets = [rows[column].to_numpy(float) - centre for rows in (split.X_train, split.X_test)]
    return Task(schema, split.X_train, targets[0], split.X_test, targets[1], target_bound, counts)


def _made_up(n_rows: int, n_features: int, *, counts: bool = False, heavy: bool = False) -> Task:
    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(n_features)]
    rows = pd.DataFrame(rng.uniform(-1.0, 1.0, (n_rows + 5_000, n_features)), columns=names)
    weights = rng.normal(size=n_features)
    scores = 0.5 * rows.to_numpy() @ weights / math.sqrt(float(weights @ weights) / 3.0)
    if counts:
        targets = rng.poisson(np.exp(scores + 0.7) * rng.gamma(2.0, 0.5, len(rows))).astype(float)
    else:
        targets = scores + 0.5 * (rng.standard_t(2.5, len(rows)) if heavy else rng.normal(size=len(rows)))
    schema = Schema({name: {"low": -1, "high": 1} for name in names})
    bound = 20.0 if counts else 4.0
    return Task(schema, rows[:n_rows], targets[:n_rows], rows[n_rows:], targets[n_rows:], bound, counts)


FOUND: dict[str, Callable[[], Task]] = {
    "price": lambda: _of_diamonds("price", 20_000.0),
    "hours": lambda: _column("adult", "hours-per-week", 40.0, 40.0),
    "elevation": lambda: _column("covertype", "Elevation", 2900.0, 1000.0),
    "balance": lambda: _column("bank", "balance", 1000.0, 10_000.0),
    "visits, squared": lambda: _of_visits("mdvis", 20.0, counts=False),
    "made up, 10": lambda: _made_up(5_000, 10),
    "made up, 40": lambda: _made_up(30_000, 40),
    "visits": lambda: _of_visits("mdvis", 20.0, counts=True),
    "visits, wide bound": lambda: _of_visits("mdvis", 77.0, counts=True),
    "admissions": lambda: _of_visits("totadm", 5.0, counts=True),
    "calls": lambda: _column("bank", "campaign", 0.0, 10.0, counts=True),
    "made up counts": lambda: _made_up(15_000, 10, counts=True),
}
CONFIRMED: dict[str, Callable[[], Task]] = {
    "age": lambda: _column("adult", "age", 45.0, 45.0),
    "carat": lambda: _of_diamonds("carat", 5.0),
    "expenses": lambda: _of_visits("meddol", 5_000.0, counts=False),
    "roads": lambda: _column("covertype", "Horizontal_Distance_To_Roadways", 0.0, 8_000.0),
    "euribor": lambda: _column("bank-additional", "euribor3m", 0.0, 6.0),
    "duration": lambda: _column("bank", "duration", 0.0, 2_000.0),
    "made up, heavy": lambda: _made_up(30_000, 20, heavy=True),
    "other visits": lambda: _of_visits("notmdvis", 20.0, counts=True),
    "mental visits": lambda: _of_visits("mentvis", 20.0, counts=True),
    "calls of 2010": lambda: _column("bank-additional", "campaign", 0.0, 20.0, counts=True),
    "earlier calls": lambda: _column("bank", "previous", 0.0, 20.0, counts=True),
    "hours as counts": lambda: _column("adult", "hours-per-week", 0.0, 100.0, counts=True),
}


def grid_of(task: Task, part: str, budget: Any) -> dict[str, tuple[Callable[..., Any], list[dict[str, Any]]]]:
    """The estimators of a task, each with the parameters to compare with its default."""
    bound = task.target_bound
    kinds = {"Poisson": PoissonRegressor} if task.counts else {"Ridge": Ridge, "Huber": HuberRegressor}
    found = {}
    for name, make in kinds.items():
        if part == "threshold":
            others = [{"threshold": share * bound} for share in SHARES]
            if name == "Ridge":
                others = [{"mechanism": "sufficient-statistics"}, {"mechanism": "objective"}]
        elif part == "alpha":
            plan = make(budget, schema=task.schema, target_bound=bound).plan(len(task.y_train))
            others = [{"alpha": factor * plan.alpha} for factor in ALPHAS]
        else:
            others = [{"intercept_scaling": constant} for constant in CONSTANTS]
        found[name] = (make, others)
    return found


def beside_scikit_learn(task: Task, name: str, draws: int) -> None:
    """Print what models without privacy explain, beside scikit-learn's; for counts also mean predictions at all budgets."""
    encoder, ours = Encoder(task.schema), {"schema": task.schema, "target_bound": task.target_bound}
    rows, test_rows = encoder.transform(task.X_train), encoder.transform(task.X_test)
    targets = np.minimum(task.y_train, task.target_bound)
    if not task.counts:
        for epsilon in EPSILONS:
            theirs = ScikitHuber(epsilon=epsilon, max_iter=10_000).fit(rows, targets)
            threshold = float(epsilon * theirs.scale_)
            value = task.value(HuberRegressor, 1, budget=math.inf, threshold=threshold)
            beside = task.explained(theirs.predict(test_rows))
            print(f"{name:18} epsilon {epsilon:4}, threshold {threshold:9.4g}: ours {value:.4f}, scikit-learn {beside:.4f}")
        return
    theirs = ScikitPoisson(alpha=1.0 / len(rows), max_iter=10_000).fit(rows, targets)
    beside = task.explained(theirs.predict(test_rows))
    print(f"{name:18} ours {task.value(PoissonRegressor, 1, budget=math.inf):.4f}, scikit-learn {beside:.4f}")
    for setting, budget in BUDGETS.items():
        fits = [PoissonRegressor(budget, **ours).fit(task.X_train, task.y_train) for _ in range(draws)]
        ratios = [fit.predict(task.X_train).mean() / targets.mean() for fit in fits]
        print(
            f"{name:18} {setting:11} mean prediction over mean count {np.mean(ratios):.3f} +- {np.std(ratios):.3f} (one fit)"
        )


def main() -> None:
    """Print a line for each cell and estimator, and the means of each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--data", nargs="*", choices=[*FOUND, *CONFIRMED], default=[*FOUND, *CONFIRMED])
    parser.add_argument("--budgets", nargs="*", choices=BUDGETS, default=list(BUDGETS))
    parser.add_argument("--part", choices=["threshold", "alpha", "constant", "scikit-learn"], default="threshold")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.data:
            task = (FOUND | CONFIRMED)[name]()
            if options.part == "scikit-learn":
                beside_scikit_learn(task, name, options.draws)
                continue
            excesses: dict[str, list[float]] = {}
            for setting in options.budgets:
                budget = BUDGETS[setting]
                draws = options.draws if budget != math.inf else 1
                for kind, (make, others) in grid_of(task, options.part, budget).items():
                    default = task.value(make, draws, budget=budget)
                    values = [task.value(make, draws, budget=budget, **each) for each in others]
                    best = int(np.argmax(values))
                    excess = (1.0 - default) / (1.0 - values[best]) - 1.0
                    excesses.setdefault(kind, []).append(excess)
                    told = ", ".join(f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
                                     for key, value in others[best].items())  # fmt: skip
                    print(
                        f"{name:18} {setting:11} {kind:8} default {default:7.4f}  best {values[best]:7.4f} ({told})  "
                        f"excess {excess:7.4f}",
                        flush=True,
                    )
            for kind, found in excesses.items():
                print(f"{name:18} {kind:8} mean excess {np.mean(found):.4f}, largest {max(found):.4f}", flush=True)


if __name__ == "__main__":
    main()
