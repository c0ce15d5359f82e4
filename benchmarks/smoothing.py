"""What does smoothing gain? Test error and log loss with `Smooth` and without it, on real data.

Three encodings of each table: "knots" gives every number 20 even knots, "levels" makes ordered levels of the numbers that
`LEVELS` names (and orders the levels of education), and "auto" is `AdditiveClassifier` as it is, without penalty alone. The
strength was chosen on Adult (`--strengths 1 10 100 1000`); Bank, Covertype and NLTCS had no part in the choice. Classes are
declared, so that a pure budget has noise of the shape of the columns' groups.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.smoothing [--data bank covertype] [--fits 20] [--strengths 0 100]
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np

import confide
from benchmarks.public_data import Split, load
from confide import ZCDP, ApproxDP, PureDP, Schema, Smooth

BUDGETS = (ApproxDP(0.1, 1e-6), ApproxDP(1.0, 1e-6), ZCDP(0.01), PureDP(1.0), PureDP(0.3), PureDP(0.1))
KNOTS = 20
EDUCATION = (
    "Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad", "Some-college", "Assoc-voc",
    "Assoc-acdm", "Bachelors", "Masters", "Prof-school", "Doctorate",
)  # fmt: skip
LEVELS: dict[str, dict[str, tuple[Any, ...]]] = {
    "adult": {"age": tuple(range(17, 91)), "hours-per-week": tuple(range(1, 100)), "education": EDUCATION},
    "bank": {"age": tuple(range(18, 96)), "day": tuple(range(1, 32)), "campaign": tuple(range(1, 33))},
}
"""Columns as ordered levels: every whole number, which a table of numbers would leave to knots."""
LEFT_OUT = {"adult": ("fnlwgt", "education-num"), "bank": ()}


def schema_of(data: str, split: Split, encoding: str) -> tuple[Schema, list[str]]:
    """The schema of an encoding, and the columns that can be smoothed."""
    columns = {name: dict(each) for name, each in split.schema.to_dict()["columns"].items()}
    columns = {name: each for name, each in columns.items() if name not in LEFT_OUT.get(data, ())}
    smoothed = []
    for name, column in columns.items():
        levels = LEVELS.get(data, {}).get(name)
        if encoding == "levels" and levels is not None:
            columns[name] = {"categories": list(levels), "other": levels[-1]}
            smoothed.append(name)
        elif encoding == "knots" and "low" in column and column["high"] - column["low"] > 1:
            columns[name] = column | {"knots": KNOTS}
            smoothed.append(name)
    return Schema(columns=columns), smoothed


def fitted(data: str, split: Split, encoding: str, strength: float, budget: Any, n_fits: int) -> np.ndarray:
    """(n_fits, 3): test error, log loss and seconds."""
    schema, smoothed = schema_of(data, split, encoding)
    penalty = {name: Smooth(strength) for name in smoothed} if strength else None
    make = confide.AdditiveClassifier if encoding == "auto" else confide.LogisticRegression
    classes, found = sorted(set(split.y_train)), np.empty((n_fits, 3))
    for seed in range(n_fits):
        begin = time.perf_counter()
        model = make(budget, schema=schema, penalty=penalty, classes=classes, random_state=seed)
        model.fit(split.X_train, split.y_train)
        seconds = time.perf_counter() - begin
        sure = np.clip(model.predict_proba(split.X_test)[:, 1], 1e-9, 1.0 - 1e-9)
        loss = -np.where(split.y_test == 1, np.log(sure), np.log1p(-sure)).mean()
        found[seed] = 1.0 - model.score(split.X_test, split.y_test), loss, seconds
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["bank", "covertype"])
    parser.add_argument("--encodings", nargs="+", default=["knots", "levels"])
    parser.add_argument("--fits", type=int, default=20)
    parser.add_argument("--strengths", nargs="+", type=float, default=[0.0, 100.0])
    parser.add_argument("--budgets", nargs="+", type=int, default=[0, 1, 2, 3], help="positions in BUDGETS")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for data in given.data:
        split = load(data)
        for encoding in given.encodings:
            if encoding == "levels" and data not in LEVELS:
                continue
            for budget in (BUDGETS[position] for position in given.budgets):
                plain = None
                for strength in given.strengths:
                    numbers = fitted(data, split, encoding, strength, budget, given.fits)
                    plain = numbers if plain is None else plain
                    line = f"{data:10s} {encoding:7s} {budget!r:35s} strength {strength:6g}"
                    for name, column in (("error", 0), ("log loss", 1)):
                        gain = numbers[:, column] - plain[:, column]
                        spread = gain.std(ddof=1) / np.sqrt(given.fits)
                        line += f"  {name} {numbers[:, column].mean():.4f} ({gain.mean():+.4f} +- {spread:.4f})"
                    print(f"{line}  {numbers[:, 2].mean():.2f} s", flush=True)


if __name__ == "__main__":
    main()
