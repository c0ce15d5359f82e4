"""Does an order among levels pay? Adult and diamonds, with `ordered = true` and without.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.ordered_levels [--rows 2000] [--epsilons .1 1] [--fits 12]

It prints the mean test error (classes) or R squared (numbers) and its standard error over fits to random rows of each size.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from typing import Any

import numpy as np
import pandas as pd

import confide
from benchmarks.public_data import folder

N_TEST = 8000
LEVELS = {
    "education": "Preschool,1st-4th,5th-6th,7th-8th,9th,10th,11th,12th,HS-grad,Some-college,Assoc-voc,Assoc-acdm,Bachelors,"
    "Masters,Prof-school,Doctorate",
    "cut": "Fair,Good,Very Good,Premium,Ideal",
    "color": "J,I,H,G,F,E,D",
    "clarity": "I1,SI2,SI1,VS2,VS1,VVS2,VVS1,IF",
}


def tables() -> dict[str, tuple[pd.DataFrame, dict[str, Any], dict[str, Any], list[str]]]:
    """By name: the rows, the other columns, the target, and the columns whose levels have an order."""
    diamonds = pd.read_parquet(folder() / "diamonds.parquet")
    diamonds["log price"] = np.log(diamonds.price)
    adult = confide.datasets.load_adult()
    people = adult.X_train.assign(income=adult.y_train.to_numpy())
    return {
        "adult": (
            people,
            {"age": {"low": 17, "high": 90}, "sex": {"categories": ["Female", "Male"]}},
            {"column": "income", "negative": "<=50K", "positive": ">50K"},
            ["education"],
        ),
        "diamonds": (
            diamonds,
            {"carat": {"low": 0.2, "high": 5, "scale": "log10"}, "table": {"low": 50, "high": 75}},
            {"column": "log price", "low": 5.5, "high": 10},
            ["cut", "color", "clarity"],
        ),
    }


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[2000, 10_000])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.1, 0.3, 1.0])
    parser.add_argument("--fits", type=int, default=12)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, (frame, columns, target, with_order) in tables().items():
        shuffled = frame.sample(frac=1.0, random_state=0)
        test, rest, y = shuffled[:N_TEST], shuffled[N_TEST:], target["column"]
        kinds: list[Any] = [confide.Ridge, confide.AdditiveRegressor]
        if "low" not in target:
            kinds = [confide.LogisticRegression, confide.AdditiveClassifier]
        for n_rows, epsilon, kind, ordered in itertools.product(given.rows, given.epsilons, kinds, (False, True)):
            levels = {one: {"categories": LEVELS[one].split(","), "ordered": ordered} for one in with_order}
            schema = confide.Schema(columns | levels, target=target)
            scores = []
            for seed in range(given.fits):
                rows = rest.sample(n_rows, random_state=seed)
                model = kind(epsilon, schema=schema, random_state=seed).fit(rows)
                score = model.score(test, test[y])
                scores.append(score if "low" in target else 1.0 - score)
            error = np.std(scores) / np.sqrt(given.fits)
            print(f"{name} {n_rows:6} {epsilon:4} {kind.__name__:18} {ordered!s:5} {np.mean(scores):.4f} +- {error:.4f}")


if __name__ == "__main__":
    main()
