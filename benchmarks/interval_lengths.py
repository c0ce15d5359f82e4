"""How long intervals are by mechanism and currency at one ridge, beside the paper's own choice of noise.

Wang, Kifer and Lee (2019) put noise of the pure law into the objective under concentrated budgets too, at the epsilon whose
pure guarantee implies the budget, and find output perturbation shorter there. Here that pairing ("objective, Laplace")
stands beside Gaussian noise in the objective and on the weights. All have the same fixed ridge and share, so they speak of
the same coefficients. One line a cell: median width, that over the width without noise, and coverage.

    python benchmarks/interval_lengths.py --repetitions 10
"""

from __future__ import annotations

import argparse
import itertools
import os
from dataclasses import replace
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from coverage import Logistic, budget_of, minimiser, plain_width

import confide
from confide.data.arrays import ArrayBlocks, MemorySource
from confide.inference.forecast import IntervalsPlan
from confide.privacy.budgets import PureDP, pure_within, share_of
from confide.privacy.moments import Moments
from confide.privacy.noise import Entropy
from confide.training.auto_mechanism import MECHANISMS
from confide.training.fit import released

SHARE = 0.3


def plan_of(budget: Any, mechanism: str, alpha: float, d: int, n: int) -> Any:
    """The plan by the library, or with the paper's noise in the objective."""
    name = mechanism.split(",")[0]
    model = confide.LogisticRegression(
        budget, alpha=alpha, mechanism=name, inference_share=SHARE, classes=[0, 1], row_norm=1.0
    )
    plan = model.plan(n, d)
    if not mechanism.endswith("Laplace"):
        return plan
    pure = PureDP(pure_within(share_of(budget, 1.0 - SHARE).rho))
    training = MECHANISMS[name].plan(plan.problem, pure)
    moments = Moments.plan(training, share_of(budget, SHARE))
    training = replace(training, event=plan.event)
    return replace(
        training, intervals=IntervalsPlan.of(SHARE, training, moments, plan.intervals.usual_row_norm, plan.intervals.design)
    )


def widths(
    plan: Any, population: Logistic, n: int, repetitions: int, target: np.ndarray | None = None
) -> tuple[float, tuple[float, float], float, float]:
    """Median width, its quantiles of 10% and 90% over repetitions, coverage of the target, standard error.

    By default the target is the regularised minimiser.
    """
    target, rng = minimiser(population, plan.alpha) if target is None else target, np.random.default_rng(n)
    found, hits = [], []
    for _ in range(repetitions):
        drawn = rng.integers(len(population.rows), size=n)
        labels = 2 * population.drawn(rng, drawn) - 1
        source = MemorySource(ArrayBlocks(population.rows[drawn]), labels.astype(np.int8))
        ends = released(plan, source, Entropy.fresh())[1].uncertainty().intervals(0.95)
        found.append(ends[:, 1] - ends[:, 0])
        hits.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
    by_repetition = np.mean(hits, axis=1)
    low, high = np.quantile(np.median(found, axis=1), (0.1, 0.9))
    coverage, error = float(by_repetition.mean()), float(by_repetition.std() / repetitions**0.5)
    return float(np.median(found)), (float(low), float(high)), coverage, error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=10)
    arguments = parser.parse_args()
    print("  d      n  alpha  currency  eps     no noise  mechanism            width          coverage")
    grid = itertools.product((4, 20), (10_000, 50_000), (0.002, 0.02), ("pure", "zcdp"), (1.0, 4.0))
    for d, n, alpha, currency, epsilon in grid:
        population, budget = Logistic.of(d), budget_of(currency, epsilon)
        plain = plain_width(population, n, alpha)
        mechanisms = ["objective", "output"] + ["objective, Laplace"] * (currency == "zcdp")
        for mechanism in mechanisms:
            start = f"{d:3d} {n:6d}  {alpha:5g}  {currency:8s} {epsilon:4g}  {plain:11.4f}  {mechanism:18s}"
            try:
                plan = plan_of(budget, mechanism, alpha, d, n)
            except confide.ParameterError:
                print(f"{start}  refused", flush=True)
                continue
            width, _, coverage, _ = widths(plan, population, n, arguments.repetitions)
            print(f"{start}  {width:7.4f} {width / plain:6.2f}x  {coverage:.3f}", flush=True)


if __name__ == "__main__":
    main()
