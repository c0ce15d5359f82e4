"""How precise is a private description of a table? Errors of counts, means and quantiles of Adult and of Bank marketing.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.description [--draws 5]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import pandas as pd

import confide
from benchmarks.peers.problems import problem
from confide.estimators import description as module

BUDGETS = {
    "pure .5": confide.PureDP(0.5),
    "(.5, 1e-6)": confide.ApproxDP(0.5, 1e-6),
    "(1, 1e-6)": confide.ApproxDP(1.0, 1e-6),
    "rho .01": confide.ZCDP(0.01),
}


def main() -> None:
    """Print one line for each data set, budget and number of bins."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--bins", type=int, nargs="*", default=[module.N_BINS])
    given = parser.parse_args()
    shares = ", ".join(f"{epsilon:g}: {most_within(counts_of_adult(), epsilon):.2f}" for epsilon in (0.5, 1.0, 2.0, 4.0))
    print(f"Adult, counts within 2% of themselves: no mechanism with this epsilon has a larger share. {shares}")
    print("data    budget      bins  deviation  counts within 2% of rows, of themselves | mean, median: error in % of range")
    for data in ("adult", "bank"):
        split = problem(data).split
        schema = confide.Schema(split.schema.columns)
        true = confide.describe(split.X_train, schema, budget=np.inf)
        for name, budget in BUDGETS.items():
            for bins in given.bins:
                module.N_BINS = bins
                found = [confide.describe(split.X_train, schema, budget=budget) for _ in range(given.draws)]
                shown = errors(found, true, split.X_train)
                print(f"{data:7s} {name:11s} {bins:4d} {found[0].plan.deviation:10.1f}  {shown}", flush=True)


def counts_of_adult() -> np.ndarray:
    """The rows of each level of each category of the shipped rows to learn from."""
    adult = confide.datasets.load_adult()
    categories = [column for column in adult.schema.columns if hasattr(column, "categories")]
    found = [adult.X_train[column.name].value_counts().get(level, 0) for column in categories for level in column.categories]
    return np.array(found)


def most_within(counts: np.ndarray, epsilon: float, error: float = 0.02) -> float:
    """A bound on the mean share of counts that are within `error` of themselves, for any epsilon-DP mechanism.

    Let t be the largest error that is allowed for a count m, and let the mechanism be as often right for m - 2t - 1 and
    m + 2t + 1 rows, which are 2t + 1 rows away. The three intervals of right answers are disjoint, so the probability p of a
    right answer has p (1 + 2 exp(-(2t + 1) epsilon)) <= 1. All levels together cost at least as much as one.
    """
    allowed = np.floor(error * counts)
    return float(np.mean(1.0 / (1.0 + 2.0 * np.exp(-(2.0 * allowed + 1.0) * epsilon))))


def errors(found: list[Any], true: Any, rows: pd.DataFrame) -> str:
    """How far counts, means and medians are from those of the rows."""
    off, exact = [], []
    for one in found:
        for mine, theirs in zip(one.categories, true.categories, strict=True):
            for level, count in theirs.counts.items():
                if level != "(not listed)":
                    off.append(abs(mine.counts[level].value - count.value))
                    exact.append(count.value)
    counts, errs = np.array(exact), np.array(off)
    means, medians = [], []
    for one in found:
        for mine, theirs in zip(one.numbers, true.numbers, strict=True):
            width = theirs.edges[-1] - theirs.edges[0]
            median = rows[theirs.name].astype(float).clip(theirs.edges[0], theirs.edges[-1]).median()
            means.append(abs(mine.mean.value - theirs.mean.value) / width)
            medians.append(abs(mine.quantiles[0.5].value - median) / width)
    large = counts > 0.1 * len(rows)
    of_rows, of_counts = np.mean(errs <= 0.02 * len(rows)), errs <= 0.02 * counts
    return (
        f"{of_rows:.2f}, {np.mean(of_counts):.2f} ({np.mean(of_counts[large]):.2f} of levels with a tenth of the rows) | "
        f"{100 * np.median(means):.3f} (most {100 * max(means):.3f}), "
        f"{100 * np.median(medians):.2f} (most {100 * max(medians):.2f})"
    )


if __name__ == "__main__":
    main()
