"""Is a private search worth its budget? Test error on rows held out, at one pure epsilon in total for each line.

Without options: Adult, published split, shipped schema. The mean error of each fixed alpha of a grid, as if the best were
known, of alpha="auto", and of each method of PrivateSearchCV over the grid.

With --defaults: Adult, Bank, prices of diamonds and delays of flights. The additive model as it stands, beside searches over
the kind of model, the ridge and the knots, each with the default among its three candidates or two. An error is the share of
wrong labels, or 1 - R^2.

Run: python -m benchmarks.private_search [--draws 10] [--epsilon 1] [--defaults adult bank diamonds flights] [--clip 0.25]
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

import confide
from benchmarks.additive_regression import REGRESSIONS
from benchmarks.public_data import load

GRID = [float(f"{alpha:.1e}") for alpha in np.geomspace(3e-4, 1e-1, 6)]


def main() -> None:
    """Print one line a model."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--defaults", nargs="*", default=[])
    parser.add_argument("--clip", type=float, default=None, help="a share of the range of the target")
    arguments = parser.parse_args()
    for name in arguments.defaults:
        beside_defaults(name, arguments)
    if not arguments.defaults:
        of_ridges(arguments)


def of_ridges(arguments: argparse.Namespace) -> None:
    """Searches over ridges of Adult."""
    adult = confide.datasets.load_adult()

    def error(model: Any) -> float:
        return 1.0 - float(model.fit(adult.X_train, adult.y_train).score(adult.X_test, adult.y_test))

    def fixed(alpha: float | str) -> Any:
        return confide.LogisticRegression(arguments.epsilon, alpha=alpha, schema=adult.schema)

    best = min(report(f"alpha = {alpha:g}", fixed(alpha), error, arguments.draws) for alpha in GRID)
    report('alpha = "auto"', fixed("auto"), error, arguments.draws)
    for method in ("permute-and-flip", "exponential", "repeated"):
        search = confide.PrivateSearchCV(fixed(1.0), {"alpha": GRID}, budget=arguments.epsilon, method=method)
        found = report(f"search, {method}", search, error, arguments.draws)
        print(f"{'':28}  {found - best:+.4f} on the best fixed alpha")


def beside_defaults(name: str, arguments: argparse.Namespace) -> None:
    """Searches beside the additive model as it stands."""
    epsilon, clip = arguments.epsilon, {}
    if name in REGRESSIONS:
        data = REGRESSIONS[name]()
        rows, targets = data.rows[: data.n_train], data.targets[: data.n_train]
        known = {"schema": data.schema, "target_bound": data.target_bound}
        straight: Any = confide.HuberRegressor(epsilon, **known)
        additive: Any = confide.AdditiveRegressor(epsilon, **known)
        if arguments.clip is not None:
            clip = {"clip": arguments.clip * 2.0 * data.target_bound}

        def error(model: Any) -> float:
            return 1.0 - data.explained(model.fit(rows, targets))
    else:
        split = load(name)
        known = {"schema": split.schema, "classes": [-1, 1]}
        straight, additive = confide.LogisticRegression(epsilon, **known), confide.AdditiveClassifier(epsilon, **known)

        def error(model: Any) -> float:
            return 1.0 - float(model.fit(split.X_train, split.y_train).score(split.X_test, split.y_test))

    print(f"{name}, epsilon {epsilon:g}")
    report("straight lines", straight, error, arguments.draws)
    report("additive, as it stands", additive, error, arguments.draws)
    searches = {
        "kinds": (Pipeline([("model", additive)]), {"model": [straight, additive]}),
        "ridges": (additive, {"alpha": ["auto", 1e-3, 1e-2]}),
        "knots": (additive, {"knots": ["auto", 4, 12]}),
    }
    for what, (estimator, grid) in searches.items():
        search = confide.PrivateSearchCV(estimator, grid, budget=epsilon, **clip)
        report(f"search over {what}", search, error, arguments.draws)


def report(name: str, model: Any, error: Any, draws: int) -> float:
    """The mean error over several fits."""
    start = time.perf_counter()
    errors = [error(model) for _ in range(draws)]
    seconds = (time.perf_counter() - start) / draws
    spread = np.std(errors, ddof=1) / math.sqrt(len(errors)) if len(errors) > 1 else 0.0
    print(f"{name:28}  {np.mean(errors):.4f} +- {spread:.4f}  {seconds:6.1f} s a fit", flush=True)
    return float(np.mean(errors))


if __name__ == "__main__":
    main()
