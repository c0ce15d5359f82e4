"""Means of predicted counts, and the mechanism that predicts numbers best.

With --part matching (the default), `PoissonRegressor` with and without a part of the budget for the mean of predictions
(`match_mean`): the share of the deviance that is explained on held-out rows; the mean prediction over the mean count on the
rows to learn from, and the root mean square of its error. With --part gradients, `PoissonRegressor` and `HuberRegressor`
with noise in the objective and by noisy gradients: the share of the deviance or of the variance that is explained on
held-out rows. With --part exposures, all visits of a person beside the years in which they were counted
(randhie.parquet): the share of the deviance that is explained for held-out persons, with the exposure and without it, in
JSON lines, beside statsmodels.

The data sets are those of thresholds.py. The rules were found on its FOUND and confirmed on its CONFIRMED.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.means_of_counts [--part gradients|exposures] [--draws 9] [--data visits calls]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import d2_tweedie_score
from threadpoolctl import threadpool_limits

from benchmarks.thresholds import CONFIRMED, FOUND, Task
from confide import ZCDP, AdditiveRegressor, ApproxDP, HuberRegressor, PoissonRegressor, PureDP, Schema
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


def exposures(budgets: list[str], draws: int) -> None:
    """Print a line for each model and budget: the median share of the deviance explained, with and without the exposure."""
    import statsmodels.api as sm

    bounds = {"logc": (0, 4.7), "xage": (0, 65), "disea": (0, 60), "linc": (0, 10.5), "lfam": (0, 3), "female": (0, 1),
              "physlm": (0, 1), "black": (0, 1)}  # fmt: skip
    years = pd.read_parquet(Path(os.environ["CONFIDE_DATA_DIR"], "randhie.parquet")).dropna(subset=["xage", "disea", "linc"])
    sums = {name: (name, "sum") for name in ("mdvis", "time")} | {name: (name, "first") for name in bounds}
    persons = years.groupby("zper").agg(**sums)
    persons = persons.iloc[np.random.default_rng(0).permutation(len(persons))]
    train, test = persons[:4500], persons[4500:]
    columns = {name: {"low": low, "high": high} for name, (low, high) in bounds.items()}
    target = {"column": "mdvis", "low": 0, "high": 80}
    rate = target | {"exposure": {"column": "time", "low": 0.1, "high": 5}}

    def explained(means: Any) -> float:
        return float(d2_tweedie_score(test["mdvis"], np.maximum(means, 1e-9), power=1))

    def told(model: str, budget: str, shares: tuple[float, ...]) -> None:
        named = zip(("with", "without"), (f"{share:.3f}".lstrip("0") for share in shares), strict=True)
        print(json.dumps({"model": model, "budget": budget} | dict(named)), flush=True)

    X, X_test = (sm.add_constant(part[list(bounds)].astype(float)) for part in (train, test))
    family, given = sm.families.Poisson(), {"exposure": test["time"]}
    exact = sm.GLM(train["mdvis"], X, family=family, exposure=train["time"]).fit(tol=1e-12)
    plain = sm.GLM(train["mdvis"], X, family=family).fit()
    told("statsmodels", "none", (explained(exact.predict(X_test, **given)), explained(plain.predict(X_test))))
    widths = np.array([high for _, high in bounds.values()]) * math.sqrt(len(bounds))
    loose: Any = {"threshold": 1e7, "alpha": 1e-13, "exposure_range": (0.1, 5.0), "target_bound": 1000.0}
    own = PoissonRegressor(math.inf, **loose).fit(X.to_numpy()[:, 1:] / widths, train["mdvis"], exposure=train["time"])
    apart = np.abs(np.append(own.intercept_, own.coef_ / widths) - exact.params.to_numpy()).max()
    print(json.dumps({"largest difference of coefficients without privacy": f"{apart:.1e}"}), flush=True)
    for budget in budgets:
        for make, parameters in ((PoissonRegressor, {}), (AdditiveRegressor, {"loss": "poisson"})):
            shares = []
            for described, of_rows in ((rate, given), (target, {})):
                schema = Schema(columns, described)
                models = (make(BUDGETS[budget], schema=schema, **parameters).fit(train) for _ in range(draws))
                shares.append(float(np.median([explained(model.predict(test, **of_rows)) for model in models])))
            told(make.__name__, budget, tuple(shares))


def main() -> None:
    """Print a line for each data set and budget."""
    tasks = FOUND | CONFIRMED
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=12)
    parser.add_argument("--data", nargs="*", choices=tasks, default=list(tasks))
    parser.add_argument("--budgets", nargs="*", choices=BUDGETS, default=list(BUDGETS))
    parser.add_argument("--part", choices=["matching", "gradients", "exposures"], default="matching")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if options.part == "exposures":
            exposures(options.budgets, options.draws)
            return
        for name in options.data:
            task = tasks[name]()
            for budget in options.budgets:
                if options.part == "matching" and task.counts:
                    means(task, name, budget, options.draws)
                elif options.part == "gradients" and not isinstance(BUDGETS[budget], PureDP):
                    mechanisms(task, name, budget, options.draws)


if __name__ == "__main__":
    main()
