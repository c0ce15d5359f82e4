"""How near are forecasts of test error to what fits reach? On seven real data sets, and on sets that chose no constant.

A cell is a data set, an estimator, a currency and a budget. Forecasts know the schema (or the bound on rows), the number of
rows, the share of positives and the error of the model without privacy, and nothing else. --designs runs the grid of designs
from which two constants of confide.planning.simulation were chosen and leaves each data set out in turn: the design that is
best on the others forecasts it. --ball-designs does the same for rows without a schema, and --ranges for the width of the
range of a forecast.

Run: CONFIDE_DATA_DIR=... python benchmarks/planner.py [--draws 4] [--designs | --ball-designs | --ranges] [--data adult ...]
"""

from __future__ import annotations

import argparse
import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
from public_data import NAMES, folder, load
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.feature_extraction.text import HashingVectorizer
from sparse_error import split as split_sparse

from confide import ApproxDP, LinearSVC, LogisticRegression, PureDP
from confide.features.encoder import Encoder
from confide.planning import simulation
from confide.planning.simulation import Forecast, simulate
from confide.privacy.budgets import Budget

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0)
BUDGETS: dict[str, Any] = {"pure": PureDP, "approximate": lambda epsilon: ApproxDP(epsilon, 1e-6)}
IN_A_BALL = " in a ball"
BUNDLED: dict[str, Any] = {"digits": load_digits, "breast-cancer": load_breast_cancer}
"""Small sets that come with scikit-learn, of plain numbers."""
BALLS = (*(name + IN_A_BALL for name in NAMES), *BUNDLED)
"""Rows without a schema: the same data sets encoded by theirs."""
LARGE_EPSILONS = {"digits": (1.0, 2.0, 5.0, 10.0, 20.0), "breast-cancer": (2.0, 5.0, 10.0, 20.0, 50.0)}
"""For so few rows."""
LEFT_OUT = ("a9a", "w8a", "mnist-even", "clothing")
"""Data sets that no constant was chosen on."""
DESIGNS = [
    {"_CORRELATION": common, "_SIGNAL_DECAY": decay} for common in (0.0, 0.2, 0.3, 0.5) for decay in (0.0, 0.25, 0.5, 1.0)
]
_QUICK = {"_N_DESIGNS": 1, "_N_DESIGNS_OF_MANY_WEIGHTS": 1, "_N_ROWS": 4000}
BALL_DESIGNS = [
    {"_VARIANCE_DECAY": fall, "_MEAN_SHARE": mean, "_SIGNAL_DECAY": decay, **_QUICK}
    for fall in (1.0, 1.5, 2.0) for mean in (0.0, 0.5, 0.75) for decay in (0.25, 0.5, 1.0)
]  # fmt: skip
NEAR = 0.02
ESTIMATORS = {"logistic": LogisticRegression, "svm": LinearSVC}
FACTORS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0)
FLOORS = (0.002, 0.003, 0.004, 0.005, 0.0075, 0.01, 0.0125, 0.015, 0.02)


def rows_of_ball(name: str) -> tuple[dict[str, Any], Any, Any, Any, Any]:
    """The same, of plain numbers and a bound that a tenth of them are longer than, rounded to two digits."""
    if name in BUNDLED:
        X, y = BUNDLED[name](return_X_y=True)
        X, y = X / (16.0 if name == "digits" else X.max(axis=0)), np.where(y % 2 == (name == "breast-cancer"), 1, -1)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[: int(0.7 * len(y))], order[int(0.7 * len(y)) :]
        X_train, y_train, X_test, y_test = X[train], y[train], X[test], y[test]
    else:
        split = load(name.removesuffix(IN_A_BALL))
        encoder = Encoder(split.schema)
        X_train, X_test = encoder.transform(split.X_train), encoder.transform(split.X_test)
        y_train, y_test = split.y_train, split.y_test
    return {"row_norm": float(f"{np.quantile(np.linalg.norm(X_train, axis=1), 0.9):.2g}")}, X_train, y_train, X_test, y_test


def data_of(name: str) -> tuple[dict[str, Any], Any, Any, Any, Any]:
    """Parameters of the estimator, training rows and labels, test rows and labels."""
    if name in NAMES:
        split = load(name)
        return {"schema": split.schema}, split.X_train, split.y_train, split.X_test, split.y_test
    if name in BALLS:
        return rows_of_ball(name)
    if name == "mnist-even":
        with np.load(folder() / "mnist.npz") as arrays:
            X = [arrays[key].reshape(-1, 784) / 255.0 for key in ("x_train", "x_test")]
            y = [np.where(arrays[key] % 2 == 0, 1, -1) for key in ("y_train", "y_test")]
        # A third of the pixels have ink.
        return {"row_norm": 10.0}, X[0], y[0], X[1], y[1]
    if name == "clothing":
        frame = pd.read_parquet(folder() / "clothing_reviews.parquet")
        words = frame["Title"].fillna("") + " " + frame["Review Text"].fillna("")
        # Words fall into columns by their hash: nothing is learned from the texts.
        X = HashingVectorizer(n_features=512, alternate_sign=False).transform(words)
        y = np.where(frame["Recommended IND"] == 1, 1, -1)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[: int(0.7 * len(y))], order[int(0.7 * len(y)) :]
        return {"row_norm": 1.0}, X[train], y[train], X[test], y[test]
    return {"row_norm": math.sqrt({"a9a": 14.0, "w8a": 12.0}[name])}, *split_sparse(name)


def measured(name: str, kind: str, draws: int) -> dict[str, Any]:
    """Public facts of one data set, and the mean test error of each cell of one estimator."""
    given, X_train, y_train, X_test, y_test = data_of(name)

    def error(budget: Budget | float) -> float:
        model = ESTIMATORS[kind](budget, classes=[-1, 1], **given).fit(X_train, y_train)
        return 1.0 - float(model.score(X_test, y_test))

    cells = [
        {"currency": currency, "epsilon": epsilon, "error": float(np.mean([error(make(epsilon)) for _ in range(draws)]))}
        for currency, make in BUDGETS.items()
        for epsilon in LARGE_EPSILONS.get(name, EPSILONS)
    ]
    positive = float((y_test == 1).mean())
    facts = {"rows": len(y_train), "columns": None if "schema" in given else X_train.shape[1], "positive": positive}
    return {"name": name, "kind": kind, **facts, "error": error(float("inf")), "given": given, "cells": cells}


def forecasts_of(facts: dict[str, Any]) -> list[Forecast]:
    """One for each cell."""
    # Without privacy a model may be no better than none, which a forecast cannot start from.
    guess = min(facts["error"], 0.98 * min(facts["positive"], 1.0 - facts["positive"]))
    return [
        simulate(
            ESTIMATORS[facts["kind"]](BUDGETS[cell["currency"]](cell["epsilon"]), **facts["given"]),
            facts["rows"],
            facts["columns"],
            error=guess,
            positive_rate=facts["positive"],
        )
        for cell in facts["cells"]
    ]


def differences_of(facts: dict[str, Any], forecasts: list[Forecast]) -> np.ndarray:
    """(cells,) forecast less measured error."""
    pairs = zip(facts["cells"], forecasts, strict=True)
    return np.array([forecast.error - cell["error"] for cell, forecast in pairs])


def ranges_of(facts: dict[str, Any], forecasts: list[Forecast], factor: float, floor: float) -> np.ndarray:
    """(cells, 2): whether the measured error lies in the range with these constants, and how wide that is."""
    simulation._RANGE_FACTOR, simulation._RANGE_FLOOR = factor, floor
    found = []
    for cell, forecast in zip(facts["cells"], forecasts, strict=True):
        low, high = simulation._range(forecast.error, forecast.non_private_error, forecast.constant_error)
        found.append((low <= cell["error"] <= high, high - low))
    return np.array(found)


def choose_ranges(everything: list[dict[str, Any]], forecasts: list[list[Forecast]]) -> None:
    """The narrowest range that holds enough cells of each data set, on all and with each left out in turn."""
    names = list(dict.fromkeys(facts["name"] for facts in everything))
    tables = {
        constants: {
            name: np.concatenate([
                ranges_of(facts, own, *constants)
                for facts, own in zip(everything, forecasts, strict=True)
                if facts["name"] == name
            ])
            for name in names
        }
        for constants in itertools.product(FACTORS, FLOORS)
    }  # fmt: skip

    def best(without: str | None) -> tuple[float, float]:
        kept = [name for name in names if name != without]
        enough = [
            (np.mean(np.concatenate([table[name] for name in kept])[:, 1]), constants)
            for constants, table in tables.items()
            if min(table[name][:, 0].mean() for name in kept) >= simulation.COVERAGE
        ]
        return min(enough)[1]

    for name in names:
        own = tables[best(name)][name]
        print(f"{name:16} left out: {best(name)} holds {own[:, 0].mean():.0%}, median width {np.median(own[:, 1]):.4f}")
    chosen = np.concatenate(list(tables[best(None)].values()))
    print(f"chosen on all: {best(None)} holds {chosen[:, 0].mean():.0%}, median width {np.median(chosen[:, 1]):.4f}")


def show(facts: dict[str, Any], differences: np.ndarray) -> None:
    """One line a currency."""
    for currency in BUDGETS:
        own = [(cell, d) for cell, d in zip(facts["cells"], differences, strict=True) if cell["currency"] == currency]
        line = "  ".join(f"{cell['error']:.4f} {d:+.4f}" for cell, d in own)
        print(f"{facts['name']:16} {facts['kind']:9} {currency:12} {facts['error']:.4f} | {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--designs", action="store_true")
    parser.add_argument("--ball-designs", action="store_true")
    parser.add_argument("--ranges", action="store_true")
    parser.add_argument("--data", nargs="+")
    options = parser.parse_args()
    data = options.data or (
        BALLS if options.ball_designs else NAMES if options.designs or options.ranges else [*NAMES, *BALLS, *LEFT_OUT]
    )
    everything = [measured(name, kind, options.draws) for name in data for kind in ESTIMATORS]
    if options.designs:
        choose_designs(everything, DESIGNS)
        return
    if options.ball_designs:
        choose_designs(everything, BALL_DESIGNS)
        return
    forecasts = [forecasts_of(facts) for facts in everything]
    if options.ranges:
        choose_ranges(everything, forecasts)
        return
    print(f"{'':39} without | measured and difference of the forecast at epsilon {EPSILONS}, of small sets {LARGE_EPSILONS}")
    pairs = list(zip(everything, forecasts, strict=True))
    for facts, own in pairs:
        show(facts, differences_of(facts, own))
    for title, names in (("chosen on", NAMES), ("rows of a ball", BALLS), ("left out", LEFT_OUT)):
        for name in (None, *names):
            cells = [pair for pair in pairs if pair[0]["name"] in names and name in (None, pair[0]["name"])]
            if cells:
                near = np.abs(np.concatenate([differences_of(*pair) for pair in cells])) <= NEAR
                held, widths = np.concatenate(
                    [ranges_of(facts, own, simulation._RANGE_FACTOR, simulation._RANGE_FLOOR) for facts, own in cells]
                ).T
                print(
                    f"{name or title:16} of {len(near)} cells, near {near.mean():.0%}, in the range {held.mean():.0%}, "
                    f"median width {np.median(widths):.4f}, mean {widths.mean():.4f}"
                )


def choose_designs(everything: list[dict[str, Any]], designs: list[dict[str, float]]) -> None:
    """The mean difference of each design, and with each data set left out in turn."""
    tables = []
    for design in designs:
        for name, value in design.items():
            setattr(simulation, name, value)
        simulation._made_up_rows.cache_clear()
        tables.append([np.abs(differences_of(facts, forecasts_of(facts))) for facts in everything])
        print(design, f"mean {np.mean(np.concatenate(tables[-1])):.4f}", flush=True)
    for left_out in dict.fromkeys(facts["name"] for facts in everything):
        own = [k for k, facts in enumerate(everything) if facts["name"] == left_out]
        others = [k for k in range(len(everything)) if k not in own]
        best = int(np.argmin([np.mean(np.concatenate([table[k] for k in others])) for table in tables]))
        found = np.concatenate([tables[best][k] for k in own])
        print(f"{left_out:16} left out: {designs[best]} mean {found.mean():.4f}, near {np.mean(found <= NEAR):.0%}")


if __name__ == "__main__":
    main()
