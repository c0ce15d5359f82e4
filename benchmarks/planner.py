"""How near are forecasts of test error to what fits reach? On seven real data sets, and on sets that chose no constant.

A cell is a data set, a currency and a budget. Forecasts know the schema (or the bound on rows), the number of rows, the
share of positives and the error of the model without privacy, and nothing else. --designs runs the grid of designs from
which the constants of confide.planning.simulation were chosen and leaves each data set out in turn: the design that is best
on the others forecasts it.

Run: CONFIDE_DATA_DIR=... python benchmarks/planner.py [--draws 4] [--designs] [--data adult bank ...]
"""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np
import pandas as pd
from public_data import NAMES, folder, load
from sklearn.feature_extraction.text import HashingVectorizer
from sparse_error import split as split_sparse

from confide import ApproxDP, LogisticRegression, PureDP
from confide.planning import simulate, simulation
from confide.privacy.budgets import Budget

EPSILONS = (0.05, 0.1, 0.5, 1.0, 2.0)
BUDGETS: dict[str, Any] = {"pure": PureDP, "approximate": lambda epsilon: ApproxDP(epsilon, 1e-6)}
LEFT_OUT = ("a9a", "w8a", "mnist-even", "clothing")
"""Data sets that no constant was chosen on."""
DESIGNS = [{"_COMMON": common, "_DECAY": decay} for common in (0.0, 0.2, 0.3, 0.5) for decay in (0.0, 0.25, 0.5, 1.0)]
NEAR = 0.02


def data_of(name: str) -> tuple[dict[str, Any], Any, Any, Any, Any]:
    """Parameters of the estimator, training rows and labels, test rows and labels."""
    if name in NAMES:
        split = load(name)
        return {"schema": split.schema}, split.X_train, split.y_train, split.X_test, split.y_test
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


def measured(name: str, draws: int) -> dict[str, Any]:
    """Public facts of one data set, and the mean test error of each cell."""
    given, X_train, y_train, X_test, y_test = data_of(name)

    def error(budget: Budget | float) -> float:
        model = LogisticRegression(budget, classes=[-1, 1], **given).fit(X_train, y_train)
        return 1.0 - float(model.score(X_test, y_test))

    cells = [
        {"currency": currency, "epsilon": epsilon, "error": float(np.mean([error(make(epsilon)) for _ in range(draws)]))}
        for currency, make in BUDGETS.items()
        for epsilon in EPSILONS
    ]
    positive = float((y_test == 1).mean())
    facts = {"rows": len(y_train), "columns": None if "schema" in given else X_train.shape[1], "positive": positive}
    return {"name": name, **facts, "error": error(float("inf")), "given": given, "cells": cells}


def forecast(facts: dict[str, Any]) -> np.ndarray:
    """(cells,) forecast less measured error."""
    # Without privacy a model may be no better than none, which a forecast cannot start from.
    guess = min(facts["error"], 0.98 * min(facts["positive"], 1.0 - facts["positive"]))
    return np.array([
        simulate(
            LogisticRegression(BUDGETS[cell["currency"]](cell["epsilon"]), **facts["given"]),
            facts["rows"],
            facts["columns"],
            error=guess,
            positive_rate=facts["positive"],
        ).error
        - cell["error"]
        for cell in facts["cells"]
    ])  # fmt: skip


def show(facts: dict[str, Any], differences: np.ndarray) -> None:
    """One line a currency."""
    for currency in BUDGETS:
        own = [(cell, d) for cell, d in zip(facts["cells"], differences, strict=True) if cell["currency"] == currency]
        line = "  ".join(f"{cell['error']:.4f} {d:+.4f}" for cell, d in own)
        print(f"{facts['name']:16} {currency:12} {facts['error']:.4f} | {line}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=4)
    parser.add_argument("--designs", action="store_true")
    parser.add_argument("--data", nargs="+", default=[*NAMES, *LEFT_OUT])
    options = parser.parse_args()
    everything = [measured(name, options.draws) for name in options.data]
    if options.designs:
        tables = []
        for design in DESIGNS:
            for name, value in design.items():
                setattr(simulation, name, value)
            simulation._made_up.cache_clear()
            tables.append([np.abs(forecast(facts)) for facts in everything])
            print(design, f"mean {np.mean(np.concatenate(tables[-1])):.4f}", flush=True)
        for k, facts in enumerate(everything):
            others = [np.mean(np.concatenate(table[:k] + table[k + 1 :])) for table in tables]
            best = int(np.argmin(others))
            own = tables[best][k]
            print(f"{facts['name']:16} left out: {DESIGNS[best]} mean {own.mean():.4f}, near {np.mean(own <= NEAR):.0%}")
        return
    print(f"{'':16} {'':12} without | measured and difference of the forecast at epsilon {EPSILONS}")
    found = {facts["name"]: forecast(facts) for facts in everything}
    for facts in everything:
        show(facts, found[facts["name"]])
    for title, names in (("chosen on", NAMES), ("left out", LEFT_OUT)):
        own = [found[name] for name in names if name in found]
        if own:
            near = np.mean(np.abs(np.concatenate(own)) <= NEAR)
            print(f"{title}: within {NEAR} in {near:.0%} of {sum(map(len, own))} cells")


if __name__ == "__main__":
    main()
