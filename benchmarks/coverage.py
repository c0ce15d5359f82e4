"""How often intervals hold the population's coefficients, and how wide they are.

Rows are drawn from a finite population of 20,000 directions and lengths, labels from a logistic model, so that the
population's minimiser with any ridge is known exactly. One JSON line a cell: coverage and median width over repetitions and
coefficients, for both targets. A file of lines is continued where it ends.

    python benchmarks/coverage.py --repetitions 50 --out coverage.jsonl        run, or go on
    python benchmarks/coverage.py --out coverage.jsonl --table                 show what is there
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit

import confide
from confide.inference import forecast

POPULATION = 20_000
DELTA = 1e-6


def budget_of(currency: str, epsilon: float) -> confide.PureDP | confide.ApproxDP | confide.ZCDP:
    """Pure, approximate, or the concentrated budget that implies the approximate one."""
    if currency != "zcdp":
        return confide.PureDP(epsilon) if currency == "pure" else confide.ApproxDP(epsilon, DELTA)
    low, high = 1e-9, 1e3
    for _ in range(100):
        rho = (low * high) ** 0.5
        low, high = (rho, high) if confide.ZCDP(rho).to_approx(DELTA).epsilon <= epsilon else (low, rho)
    return confide.ZCDP(low)


def population_of(d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows with lengths uniform up to 1, true weights with the intercept, and the probability of the second class."""
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(POPULATION, d))
    rows *= rng.uniform(size=(POPULATION, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    weights = np.append(rng.normal(size=d), 0.3)
    # Log-odds of the rows have a standard deviation of about 0.9 beside the intercept.
    weights[:-1] *= 1.5 * d**0.5 / np.linalg.norm(weights[:-1])
    return rows, weights, expit(rows @ weights[:-1] + weights[-1])


def minimiser(rows: np.ndarray, chances: np.ndarray, alpha: float) -> np.ndarray:
    """The population's weights with this ridge, by Newton's method."""
    design = np.column_stack([rows, np.ones(len(rows))])
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        fitted = expit(design @ weights)
        gradient = design.T @ (fitted - chances) / len(rows) + alpha * weights
        curvature = (design * (fitted * (1 - fitted))[:, None]).T @ design / len(rows) + alpha * np.eye(len(weights))
        weights = weights - np.linalg.solve(curvature, gradient)
    assert np.linalg.norm(gradient) < 1e-9
    return weights


def measured(d: int, n: int, epsilon: float, currency: str, mechanism: str, share: float | str, repetitions: int) -> dict:
    """One cell."""
    rows, truth, chances = population_of(d)
    model = confide.LogisticRegression(
        budget_of(currency, epsilon), mechanism=mechanism, inference_share=share, classes=[0, 1], row_norm=1.0
    )
    try:
        plan = model.plan(n, d)
    except confide.ParameterError:
        return {"refused": True}
    targets = {"regularised": minimiser(rows, chances, plan.alpha)}
    if plan.mechanism == "objective":
        targets["unregularised"] = truth
    rng = np.random.default_rng((d, n, int(10 * epsilon)))
    hits = {target: [] for target in targets}
    widths = {target: [] for target in targets}
    for _ in range(repetitions):
        drawn = rng.integers(POPULATION, size=n)
        model.fit(rows[drawn], (rng.uniform(size=n) < chances[drawn]).astype(int))
        for target, weights in targets.items():
            ends = model.uncertainty(target).intervals(0.95)
            hits[target].append((ends[:, 0] <= weights) & (weights <= ends[:, 1]))
            widths[target].append(ends[:, 1] - ends[:, 0])
    answer = {"ratio": plan.intervals.ratio, "share": plan.intervals.share, "alpha": plan.alpha}
    answer |= {"forecast_width": 2 * plan.intervals.margin}
    for target in targets:
        by_repetition = np.mean(hits[target], axis=1)
        answer[target] = {
            "coverage": round(float(by_repetition.mean()), 4),
            "standard_error": round(float(by_repetition.std() / repetitions**0.5), 4),
            "least": round(float(np.mean(hits[target], axis=0).min()), 4),
            "width": round(float(np.median(widths[target])), 4),
        }
    return answer


def show(lines: list[dict]) -> None:
    """The table of README.md."""
    print("  d      n  eps  currency  mechanism  share  ratio  regularised        width  unregularised      width")
    for line in lines:
        start = f"{line['d']:3d} {line['n']:6d} {line['epsilon']:4g}  {line['currency']:8s}  {line['mechanism']:9s}"
        if line.get("refused"):
            print(f"{start}  refused")
            continue
        row = start + f"  {line['share']:5.2f}  {line['ratio']:5.2f}"
        for target in ("regularised", "unregularised"):
            if target in line:
                cell = line[target]
                row += f"  {cell['coverage']:.3f} +- {cell['standard_error']:.3f}  {cell['width']:8.3f}"
        print(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("coverage.jsonl"))
    parser.add_argument("--share", default="0.3")
    parser.add_argument("--largest-ratio", type=float, default=forecast.LARGEST_RATIO, help="inf: no cell is refused")
    parser.add_argument("--table", action="store_true", help="show the file and stop")
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    if not arguments.table:
        forecast.LARGEST_RATIO = arguments.largest_ratio
        share = arguments.share if arguments.share == "auto" else float(arguments.share)
        sizes, budgets = ((4, 20), (2_000, 10_000, 50_000)), ((0.5, 1.0, 4.0), ("pure", "zcdp"))
        cells = itertools.product(*sizes, *budgets, ("objective", "output"))
        for d, n, epsilon, currency, mechanism in cells:
            cell = {"d": d, "n": n, "epsilon": epsilon, "currency": currency, "mechanism": mechanism}
            cell |= {"asked_share": share, "repetitions": arguments.repetitions}
            if any(cell.items() <= line.items() for line in lines):
                continue
            lines.append(cell | measured(d, n, epsilon, currency, mechanism, share, arguments.repetitions))
            with arguments.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    show(lines)


if __name__ == "__main__":
    main()
