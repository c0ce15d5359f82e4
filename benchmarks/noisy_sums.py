"""What noise on the sums of least squares costs `Ridge`, by the ratio that its plan forecasts.

R^2 on a test part without privacy and with it, and of Huber's regression at the same budget, for 5 to 106 columns and five
budgets. The threshold of the plan's warning (`confide.inference.forecast.POOR_FIT_RATIO`) was chosen on made-up
rows and Diamonds, and confirmed on RAND HIE, Adult, Bank and Covertype. One JSON line a cell, then a table by ratio.

Run: CONFIDE_DATA_DIR=... python benchmarks/noisy_sums.py [--draws 6] [--out cells.jsonl] [--tasks made ...]
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from public_data import folder
from regression_error import TASKS, rows_of

from confide import ApproxDP, HuberRegressor, PureDP, Ridge, Schema

BUDGETS = {
    "pure .3": PureDP(0.3), "pure 1": PureDP(1.0), "pure 4": PureDP(4.0),
    "(.3, 1e-6)": ApproxDP(0.3, 1e-6), "(1, 1e-6)": ApproxDP(1.0, 1e-6),
}  # fmt: skip
EDGES = (0.0, 0.05, 0.2, 0.5, 1.0, 1.5, 5.0, math.inf)
CHOSEN_ON = ("made", "diamonds")


@dataclass(frozen=True)
class Case:
    """Rows with targets within [-1, 1], for training and for testing, and what is public of them."""

    name: str
    facts: dict[str, Any]
    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def made() -> Iterator[Case]:
    """Rows of a ball, independent or with few long directions; a linear target and as much noise."""
    for kind in ("independent", "decaying"):
        for d in (5, 10, 20, 40, 80):
            for n in (5_000, 50_000):
                rng = np.random.default_rng(0)
                X = rng.normal(size=(n + 5_000, d))
                if kind == "decaying":
                    X = X @ (np.linalg.qr(rng.normal(size=(d, d)))[0] * np.arange(1.0, d + 1.0) ** -1.0)
                X /= np.quantile(np.linalg.norm(X, axis=1), 0.9)
                X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
                scores = X @ rng.normal(size=d)
                y = np.clip(0.3 * scores / scores.std() + 0.3 * rng.normal(size=len(X)), -1.0, 1.0)
                yield Case(f"made, {kind}", {"row_norm": 1.0}, X[:n], y[:n], X[n:], y[n:])


def numbers(bounds: dict[str, tuple[float, float]], knots: int) -> dict[str, Any]:
    """Columns of a schema, each with so many knots but for those from 0 to 1."""
    return {
        name: {"low": low, "high": high, "knots": list(np.linspace(low, high, knots + 2)[1:-1])}
        if knots and (low, high) != (0, 1)
        else {"low": low, "high": high}
        for name, (low, high) in bounds.items()
    }


def split(name: str, columns: dict[str, Any], rows: pd.DataFrame, targets: np.ndarray) -> Case:
    """Seven tenths of the rows to train on."""
    order = np.random.default_rng(0).permutation(len(rows))
    cut, rows = int(0.7 * len(order)), rows[list(columns)]
    train, test = order[:cut], order[cut:]
    facts = {"schema": Schema(columns=columns)}
    return Case(name, facts, rows.iloc[train], targets[train], rows.iloc[test], targets[test])


def diamonds() -> Iterator[Case]:
    """The price, from measures, with categories and with knots."""
    frame = pd.read_parquet(folder() / "diamonds.parquet").sample(frac=1, random_state=1).reset_index(drop=True)
    price = frame["price"].to_numpy(float) / 10_000.0 - 0.5
    bounds = {"carat": (0, 5), "depth": (40, 80), "table": (40, 100), "x": (0, 12), "y": (0, 12), "z": (0, 12)}
    levels = {name: {"categories": sorted(frame[name].unique())} for name in ("cut", "color", "clarity")}
    for n in (len(frame), 8_000):
        measures = {name: bounds[name] for name in list(bounds)[:5]}
        for columns in (
            numbers(measures, 0),
            numbers(bounds, 0) | {"cut": levels["cut"]},
            *(numbers(bounds, knots) | levels for knots in (0, 3, 10)),
        ):
            yield split("diamonds", columns, frame[:n], price[:n])


def randhie() -> Iterator[Case]:
    """Visits to a doctor, which are skewed, and the logarithm of spending: both hard to predict."""
    frame = pd.read_parquet(folder() / "randhie.parquet").sample(frac=1, random_state=1).reset_index(drop=True)
    bounds = {
        "xage": (0, 65), "disea": (0, 60), "physlm": (0, 1), "mhi": (0, 100), "income": (0, 30_000), "xghindx": (0, 100),
        "female": (0, 1), "black": (0, 1), "child": (0, 1), "logc": (0, 5), "lpi": (0, 8), "fmde": (0, 9), "lfam": (0, 3),
        "idp": (0, 1), "hlthg": (0, 1), "hlthf": (0, 1), "hlthp": (0, 1), "coins": (0, 100), "num": (1, 14), "linc": (0, 11),
    }  # fmt: skip
    visits = np.clip(frame["mdvis"].to_numpy(float), 0.0, 10.0) / 10.0
    spending = np.log1p(frame["meddol"].to_numpy(float)) / 5.0 - 0.6
    for name, targets in (("randhie, visits", visits), ("randhie, spending", spending)):
        for columns, knots in ((5, 0), (10, 0), (20, 0), (10, 3), (10, 7)):
            first = {column: bounds[column] for column in list(bounds)[:columns]}
            yield split(name, numbers(first, knots), frame, targets)


def columns_of_tables() -> Iterator[Case]:
    """Columns of Adult, Bank and Covertype from the others, and from the first 4 and 8 of these."""
    for name in ("adult-hours", "adult-age", "bank-balance", "covertype-elevation"):
        schema, X, y, X_test, y_test = rows_of(TASKS[name])
        for first in (len(schema.columns), 4, 8):
            columns = list(schema.columns)[:first]
            names = [column.name for column in columns]
            yield Case(name, {"schema": Schema(columns=columns)}, X[names], np.clip(y, -1.0, 1.0), X_test[names], y_test)


SOURCES: dict[str, Callable[[], Iterator[Case]]] = {
    "made": made, "diamonds": diamonds, "randhie": randhie, "tables": columns_of_tables,
}  # fmt: skip


def measured(case: Case, draws: int) -> Iterator[dict[str, Any]]:
    """One cell a budget."""

    def quality(model: Any) -> float:
        residuals = case.y_test - model.fit(case.X, case.y).predict(case.X_test)
        return float(1.0 - np.mean(residuals**2) / np.mean((case.y_test - case.y.mean()) ** 2))

    n_features = case.X.shape[1] if "row_norm" in case.facts else None
    plain = quality(Ridge(math.inf, alpha=1e-9, target_bound=1.0, **case.facts))
    for name, budget in BUDGETS.items():
        model = Ridge(budget, target_bound=1.0, mechanism="sufficient-statistics", **case.facts)
        plan = model.plan(len(case.y), n_features)
        huber = HuberRegressor(budget, target_bound=1.0, **case.facts)
        yield {
            "name": case.name,
            "n": len(case.y),
            "columns": plan.problem.n_features,
            "budget": name,
            "ratio": plan.forecast.ratio,
            "non-private": plain,
            "ridge": float(np.mean([quality(model) for _ in range(draws)])),
            "huber": float(np.mean([quality(huber) for _ in range(max(1, draws // 2))])),
        }


def table(cells: list[dict[str, Any]]) -> str:
    """What was lost of R^2, by ratio: quartiles of `Ridge`, median of Huber, how often Huber is better."""
    lines = ["ratio        cells  lost by Ridge: quarter, half, three quarters, all   by Huber: half   Huber better"]
    for low, high in pairwise(EDGES):
        chosen = [cell for cell in cells if low <= cell["ratio"] < high]
        if not chosen:
            continue
        ridge, huber = (np.array([cell["non-private"] - cell[name] for cell in chosen]) for name in ("ridge", "huber"))
        quartiles = "  ".join(f"{value:6.3f}" for value in np.quantile(ridge, (0.25, 0.5, 0.75, 1.0)))
        start = f"{low:4g} to {high:<5g}{len(chosen):5d}  {quartiles}"
        lines.append(f"{start}   {np.median(huber):6.3f}   {np.mean(huber < ridge):4.0%}")
    return "\n".join(lines)


def main() -> None:
    """Print one line a cell, then a table for the data that the threshold was chosen on and one for the others."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--tasks", nargs="*", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--out", type=Path, help="file for the cells, one a line; is added to")
    given = parser.parse_args()
    found: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for task in given.tasks:
        for case in SOURCES[task]():
            for cell in measured(case, given.draws):
                found[task in CHOSEN_ON].append(cell)
                print(json.dumps(cell), flush=True)
                if given.out is not None:
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(cell) + "\n")
    for chosen, cells in found.items():
        if cells:
            print(f"\n{'The threshold was chosen on these' if chosen else 'It was confirmed on these'}\n{table(cells)}")


if __name__ == "__main__":
    main()
