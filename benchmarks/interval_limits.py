"""Which ratio of a plan predicts that intervals fail: the limit of the plan, on populations other than those of coverage.py.

Four populations of 20,000 rows with 4 or 15 columns: columns that depend on each other ("dependent"), columns of 0 and 1
("binary"), a chain of dependent columns with one row in six in the second class ("rare"), and uniform columns ("uniform").
The number of rows is that at which the plan has a given ratio. Noise is in the objective, and no cell is refused. One line
a cell: ratio, and coverage of 95% intervals for the regularised target.

    python benchmarks/interval_limits.py --repetitions 40 --ratios 1 1.3
"""

from __future__ import annotations

import argparse
import itertools
import math
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from coverage import POPULATION, Logistic, budget_of, minimiser
from scipy.special import expit

import confide
from confide.inference import forecast, intervals

LARGEST_N = 100_000
KINDS = ("dependent", "binary", "rare", "uniform")


def population_of(kind: str, d: int) -> Logistic:
    """Rows of norm up to 1, with log-odds that spread by 0.9."""
    rng, shift = np.random.default_rng((d, KINDS.index(kind))), 0.2
    if kind == "dependent":
        rows = 0.45 * (rng.normal(size=(POPULATION, d)) * 0.4**0.5 + rng.normal(size=(POPULATION, 1)) * 0.6**0.5)
    elif kind == "binary":
        rows, shift = 1.2 * (rng.uniform(size=(POPULATION, d)) < rng.uniform(0.1, 0.6, size=d)), -0.5
    elif kind == "rare":
        rows, shift = rng.normal(size=(POPULATION, d)), -1.8
        for column in range(1, d):
            rows[:, column] = 0.7 * rows[:, column - 1] + 0.51**0.5 * rows[:, column]
        rows *= 0.5
    else:
        rows, shift = rng.uniform(-1, 1, size=(POPULATION, d)), 0.0
    rows = rows / d**0.5
    rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True) * (1.0 + 1e-9))
    weights = rng.normal(size=d)
    scores = rows @ weights
    return Logistic(rows, np.zeros(d + 1), expit(0.9 * (scores - scores.mean()) / scores.std() + shift))


def rows_for(model: confide.LogisticRegression, d: int, ratio: float) -> int:
    """The number of rows at which the plan has this ratio."""
    low, high = 200, 2 * LARGEST_N
    while high - low > 1:
        middle = math.isqrt(low * high)
        if middle in (low, high):
            break
        low, high = (middle, high) if model.plan(middle, d).intervals.ratio > ratio else (low, middle)
    return high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--ratios", type=float, nargs="+", default=[1.0, 1.3])
    arguments = parser.parse_args()
    forecast.LARGEST_RATIO = intervals._LARGEST_RATIO_OF_ONE_SCORE = math.inf
    budgets = ((1.0, "pure"), (4.0, "pure"), (1.0, "zcdp"), (1.0, "approximate"))
    for ratio, d, (epsilon, currency), kind in itertools.product(arguments.ratios, (4, 15), budgets, KINDS):
        model = confide.LogisticRegression(
            budget_of(currency, epsilon), mechanism="objective", inference_share=0.3, classes=[0, 1], row_norm=1.0
        )
        n = rows_for(model, d, ratio)
        if n > LARGEST_N:
            continue
        population, rng, hits = population_of(kind, d), np.random.default_rng(n), []
        target = minimiser(population, model.plan(n, d).alpha)
        for _ in range(arguments.repetitions):
            drawn = rng.integers(POPULATION, size=n)
            low, high = model.fit(population.rows[drawn], population.drawn(rng, drawn)).uncertainty().intervals(0.95).T
            hits.append((low <= target) & (target <= high))
        own = model.plan(n, d).intervals.ratio
        print(
            f"{own:5.2f}  {kind:9s} d {d:3d} n {n:6d}  {currency:11s} {epsilon:g}  coverage {np.mean(hits):.3f}", flush=True
        )


if __name__ == "__main__":
    main()
