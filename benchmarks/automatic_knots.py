"""Which number of knots is best, and what the automatic one loses beside it.

Test errors of `AdditiveClassifier`, and one minus what `AdditiveRegressor` explains, with fixed numbers of knots in all
columns and with the automatic number. The rule of training/auto_features.py was chosen on the first five data sets; the
others had no part in it.

With `--rows`, each fit is to a random part of so many rows, the same for all models, and two linear models are compared too.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.automatic_knots [--data adult ...] [--draws 6] [--epsilons 1] [--rows 500]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.additive_regression import REGRESSIONS, Regression
from benchmarks.peers.problems import Problem, problem
from benchmarks.public_data import load
from confide import AdditiveClassifier, ApproxDP, LinearSVC, LogisticRegression, Schema
from confide.features.columns import NumberColumn

CHOSEN_ON = ("adult", "bank", "covertype", "kddcup99", "skin")
CONFIRMED_ON = ("bank-additional", "nltcs", "kddcup99, all columns", "clothing")
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


def of_small_tables(given: Problem, n_rows: int, epsilon: float, draws: int) -> None:
    """Print the mean errors of fits to random parts of so many rows, and how far they are from the automatic number."""
    split, found = given.split, dict[str, list[float]]()
    makers: dict[str, Callable[..., Any]] = {"logistic": LogisticRegression, "svm": LinearSVC}
    makers |= {f"knots {knots}": partial(AdditiveClassifier, knots=knots) for knots in (0, 3, 6, "auto")}
    for draw in range(draws):
        part = np.random.default_rng(draw).permutation(len(split.y_train))[:n_rows]
        for name, make in makers.items():
            model = make(ApproxDP(epsilon, 1e-5), schema=split.schema, classes=[-1, 1])
            model.fit(split.X_train.iloc[part], split.y_train[part])
            found.setdefault(name, []).append(1.0 - model.score(split.X_test, split.y_test))
    share = (split.y_test > 0).mean()
    print(f"{given.name}, {n_rows} rows, ({epsilon:g}, 1e-5), always the same answer {min(share, 1.0 - share):.4f}:", end="")
    for name, errors in found.items():
        less = np.array(errors) - np.array(found["knots auto"])
        print(f" {name} {np.mean(errors):.4f} ({less.mean():+.4f} +- {less.std() / draws**0.5:.4f})", end="", flush=True)
    print()


def main() -> None:
    """Print a block for each data set and guarantee."""
    names = (*CHOSEN_ON, *CONFIRMED_ON, *REGRESSIONS)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="*", choices=names, default=list(names))
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--epsilons", nargs="*", type=float, default=EPSILONS)
    parser.add_argument("--rows", nargs="*", type=int, default=[])
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
            for n_rows in options.rows:
                for epsilon in options.epsilons:
                    of_small_tables(given, n_rows, epsilon, options.draws)
            if options.rows:
                continue
            for what, delta in (("pure, replace-one", 0.0), ("(epsilon, 1e-5), add-or-remove-one", 1e-5)):
                shown(name, what, lambda e, k, g=given, d=delta: of_classifier(g, e, d, k), *asked)


if __name__ == "__main__":
    main()
