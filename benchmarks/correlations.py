"""How precise are private correlations? Errors and coverage beside NumPy's correlations of the same rows, by budget.

Run: CONFIDE_DATA_DIR=... python -m benchmarks.correlations FILE.parquet COLUMN=LOW:HIGH ... [--draws 40]
Each COLUMN is one of numbers without missing cells, with its public bounds.

Found on 2026-11-30 in twelve releases that describe these columns and nothing else: the usual error of a correlation, and
the largest one of a release (median). Between .92 and .98 of the intervals at level .95 held the true number. Columns that
hardly move within their bounds are hidden or badly known: capital gains in Adult, depths of diamonds.

    budget      Adult, 32,561 rows, 6 columns   diamonds, 53,940 rows, 7    flights, 20,000 rows, 5
    pure .5     .031, .17 (a quarter hidden)    .053, .23 (a fifth hidden)  .030, .11
    pure 1      .017, .08                       .024, .14                   .013, .05
    pure 4      .005, .03                       .008, .03                   .004, .01
    (.5, 1e-6)  .027, .09                       .028, .12                   .021, .07
    (1, 1e-6)   .012, .05                       .017, .07                   .010, .04
    (4, 1e-6)   .003, .02                       .004, .02                   .003, .01
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pandas as pd

import confide

BUDGETS = {
    f"{name} {epsilon:g}": budget(epsilon)
    for name, budget in (("pure", confide.PureDP), ("1e-6", lambda epsilon: confide.ApproxDP(epsilon, 1e-6)))
    for epsilon in (0.5, 1.0, 4.0)
}


def main() -> None:
    """Print a line for each budget."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("columns", nargs="+")
    parser.add_argument("--draws", type=int, default=40)
    given = parser.parse_args()
    bounds = {name: tuple(map(float, ends.split(":"))) for name, ends in (text.split("=") for text in given.columns)}
    schema = confide.Schema({name: {"low": low, "high": high} for name, (low, high) in bounds.items()})
    rows = pd.read_parquet(Path(os.environ.get("CONFIDE_DATA_DIR", ".")) / given.file)[list(bounds)].astype(float)
    true = np.corrcoef([rows[name].clip(*ends) for name, ends in bounds.items()])
    print(f"{given.file.stem}: {len(rows):,} rows, {len(bounds)} columns")
    print("budget      usual  largest error (median of draws)  hidden  coverage at .95  width")
    for name, budget in BUDGETS.items():
        errors, held, hidden = [], [], 0
        for _ in range(given.draws):
            found = confide.describe(rows, schema, budget=budget, correlations=True).correlations
            shown = [
                (rate, abs(rate.value - true[i, j]), rate.low <= true[i, j] <= rate.high)
                for rate, i, j in zip(found.correlations.values(), *np.triu_indices(len(true), 1), strict=True)
                if rate.value is not None
            ]
            hidden += len(found.correlations) - len(shown)
            errors.append([error for _, error, _ in shown] or [np.nan])
            held += [(inside, rate.high - rate.low) for rate, _, inside in shown]
        usual = np.nanmedian(np.concatenate(errors)) if held else np.nan
        largest = np.nanmedian([np.max(each) for each in errors]) if held else np.nan
        shares = np.mean(held, axis=0) if held else (np.nan, np.nan)
        n_pairs = given.draws * len(true) * (len(true) - 1) // 2
        print(
            f"{name:10s} {usual:6.4f}  {largest:6.4f}  {hidden / n_pairs:6.3f}  {shares[0]:5.3f}  {shares[1]:6.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
