"""Which number of knots is best, and what the automatic one loses beside it.

Test errors of `AdditiveClassifier`, and one minus what `AdditiveRegressor` explains, with fixed numbers of knots in all
columns and with the automatic number. The rule of training/auto_features.py was chosen on the first five data sets; the
others had no part in it.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.automatic_knots [--data adult ...] [--draws 6] [--epsilons 0.3 ...]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.additive_regression import REGRESSIONS, Regression
from benchmarks.peers.problems import Problem, problem
from benchmarks.public_data import load
from confide import AdditiveClassifier, ApproxDP, Schema
from confide.features.columns import NumberColumn

CHOSEN_ON = ("adult", "bank", "covertype", "kddcup99", "skin")
CONFIRMED_ON = ("bank-additional", "nltcs", "kddcup99, all columns")
EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0, 4.0)
KNOTS: tuple[Any, ...] = (0, 1, 3, 6, 12, "auto")


def data(name: str) -> Problem:
    """One data set; what its schema says about knots is left out."""
    given = problem(name) if name in CHOSEN_ON else Problem(name, load(name.split(",")[0]))
    columns = [
        replace(column, knots=()) if isinstance(column, NumberColumn) else column for column in given.split.schema.columns
    ]
    return Problem(name, replace(given.split, schema=Schema(columns, interact=given.split.schema.interact)))


def of_classifier(given: Problem, epsilon: float, delta: float, knots: Any) -> float:
    """The test error of one fit."""
    split, private = given.split, {"neighbours": "add-or-remove-one", "n_rows_bounds": given.n_rows_bounds}
    budget = ApproxDP(epsilon, delta) if delta else epsilon
    model = AdditiveClassifier(budget, schema=split.schema, knots=knots, **(private if delta else {}))
    return 1.0 - model.fit(split.X_train, split.y_train).score(split.X_test, split.y_test)


def of_regressor(given: Regression, epsilon: float, knots: Any) -> float:
    """One minus what one fit explains."""
    return 1.0 - given.explained(given.fitted(epsilon, knots=knots))


def shown(name: str, what: str, draw: Callable[[float, Any], float], draws: int, epsilons: Sequence[float]) -> None:
    """Print a line for each epsilon."""
    print(f"{name}, {what}; knots: " + ", ".join(map(str, KNOTS)))
    for epsilon in epsilons:
        found = {knots: [draw(epsilon, knots) for _ in range(draws)] for knots in KNOTS}
        means = {knots: float(np.mean(values)) for knots, values in found.items()}
        error = np.median([np.std(values) / draws**0.5 for values in found.values()])
        lost = means["auto"] - min(means.values())
        print(
            f"  epsilon {epsilon:<4g} " + "  ".join(f"{mean:.4f}" for mean in means.values())
            + f"   automatic - best {lost:.4f}, - straight {means['auto'] - means[0]:+.4f}, standard error {error:.4f}",
            flush=True,
        )  # fmt: skip


def main() -> None:
    """Print a block for each data set and guarantee."""
    names = (*CHOSEN_ON, *CONFIRMED_ON, *REGRESSIONS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", choices=names, default=list(names))
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    options = parser.parse_args()
    asked = (options.draws, options.epsilons)
    with threadpool_limits(1):
        for name in options.data:
            if name in REGRESSIONS:
                regression = REGRESSIONS[name]()
                shown(
                    name,
                    "(epsilon, 1e-6)",
                    lambda e, k, r=regression: of_regressor(r, e, k),
                    options.draws,
                    options.epsilons,
                )
                continue
            given = data(name)
            for what, delta in (("pure, replace-one", 0.0), ("(epsilon, 1e-5), add-or-remove-one", 1e-5)):
                shown(name, what, lambda e, k, g=given, d=delta: of_classifier(g, e, d, k), *asked)


if __name__ == "__main__":
    main()
