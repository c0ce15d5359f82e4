"""How often intervals for differences of risks, standardised over the rows, hold the population's, and how wide they are.

Outcomes are drawn from a logistic model of a table with a treatment and d - 1 numbers, so the mean difference of
probabilities over the population is known. One JSON line a cell: coverage, median width over that of the delta method
without privacy (from the population's information), how often the release says that nothing is known, the mean error in
standard errors, how often a test of "no effect" of size 5% rejects, and what the plan forecast. A file of lines is continued
where it ends.

    python benchmarks/risk_differences.py --repetitions 500 --out risks.jsonl   the cells of results/risk_differences.jsonl
    python benchmarks/risk_differences.py --out risks.jsonl --table             show what is there
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from measured_cells import cell, measured_once, options, start_of_line
from scipy.special import expit

import confide

POPULATION = 20_000
DELTA = 1e-6
EFFECTS = {"confounded": 1.0, "rare": 0.8, "small": 0.3, "none": 0.0, "steep": 1.0, "number": 0.7}
"""The change of the log-odds in each kind of population: of the treatment, or of one unit of the first number."""


def population_of(kind: str, d: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows, the probability of each, and the change of it.

    confounded : the odds of the treatment depend on the numbers. rare : one row in twenty is treated. small, none : a small
    effect, and none. steep : log-odds spread twice as much. number : the change is one unit of the first number.
    """
    rng = np.random.default_rng((list(EFFECTS).index(kind), d))
    numbers = rng.uniform(-1.0, 1.0, size=(POPULATION, d - 1))
    share = np.full(POPULATION, 0.05) if kind == "rare" else expit(1.5 * numbers[:, 0])
    treated = rng.uniform(size=POPULATION) < share
    weights = rng.normal(size=d - 1)
    weights *= (1.8 if kind == "steep" else 0.9) / np.std(numbers @ weights)
    effect = EFFECTS[kind]
    if kind == "number":
        weights[0] = effect
    scores = numbers @ weights - 0.3
    rows = pd.DataFrame(numbers, columns=[f"x{place}" for place in range(d - 1)])
    rows["treatment"] = np.where(treated, "drug", "none")
    if kind == "number":
        scores = scores + 0.5 * treated
        return rows, expit(scores), expit(scores + effect) - expit(scores)
    return rows, expit(scores + effect * treated), expit(scores + effect) - expit(scores)


def measured(kind: str, d: int, n: int, epsilon: float, currency: str, neighbours: str, repetitions: int) -> dict:
    """One cell."""
    rows, chances, changes = population_of(kind, d)
    truth = float(changes.mean())
    columns: dict[str, Any] = {f"x{place}": {"low": -1.0, "high": 1.0} for place in range(d - 1)}
    columns["treatment"] = {"categories": ["none", "drug"]}
    schema = confide.Schema(columns=columns, target={"column": "y", "negative": "no", "positive": "yes"})
    budget = confide.PureDP(epsilon) if currency == "pure" else confide.ApproxDP(epsilon, DELTA)
    bounds = None if neighbours == "replace-one" else (n // 2, 2 * n)
    model = confide.LogisticRegression(
        budget,
        schema=schema,
        interest=["x0" if kind == "number" else "treatment"],
        risk_differences=True,
        neighbours=neighbours,
        n_rows_bounds=bounds,
    )
    try:
        plan = model.plan(None if bounds else n)
    except confide.ParameterError as refusal:
        return {"refused": True, "reason": str(refusal)}
    plain = _error_without_privacy(kind, rows, chances, changes, n)
    rng = np.random.default_rng((d, n, int(100 * epsilon), list(EFFECTS).index(kind)))
    errors, margins, totals, rejected = [], [], [], []
    for _ in range(repetitions):
        places = rng.integers(POPULATION, size=n)
        outcome = np.where(rng.uniform(size=n) < chances[places], "yes", "no")
        (found,) = model.fit(rows.iloc[places], outcome).average_risk_differences().coefficients
        errors.append(found.estimate - truth)
        margins.append(0.5 * (found.high - found.low))
        totals.append(found.total_error)
        rejected.append(model.summary().coefficients[0].p_value <= 0.05)
    known = np.isfinite(margins)
    hits = np.abs(np.array(errors)[known]) <= np.array(margins)[known]
    coverage = float(np.mean(hits)) if known.any() else float("nan")
    facts = plan.intervals
    return {
        "coverage": round(coverage, 4),
        "standard_error": round(float((coverage * (1.0 - coverage) / max(1, known.sum())) ** 0.5), 4),
        "width": round(float(np.median(margins)) / (1.96 * plain), 3),
        "unknown": round(float(1.0 - known.mean()), 4),
        "forecast_width": round(facts.margin_of_risk(facts.combinations[0]) / (1.96 * plain), 3),
        "mean_error": round(float(np.mean(np.array(errors)[known] / np.array(totals)[known])), 3),
        "rejected": round(float(np.mean(rejected)), 4),
        "truth": round(truth, 4),
        "share": facts.shares[2],
    }


def _error_without_privacy(kind: str, rows: pd.DataFrame, chances: np.ndarray, changes: np.ndarray, n: int) -> float:
    """Standard error of the delta method for n rows of the population, without privacy."""
    treated = (rows["treatment"] == "drug").to_numpy(float)
    numbers = rows.drop(columns="treatment").to_numpy()
    design = np.column_stack([numbers, treated, np.ones(POPULATION)])
    information = (design * (chances * (1.0 - chances))[:, None]).T @ design / POPULATION
    before, after = design.copy(), design.copy()
    place = 0 if kind == "number" else numbers.shape[1]
    if kind == "number":
        low, high = chances, chances + changes
        after[:, 0] += 1.0
    else:
        before[:, place], after[:, place] = 0.0, 1.0
        scores = np.log(chances / (1.0 - chances)) - EFFECTS[kind] * treated
        low, high = expit(scores), expit(scores + EFFECTS[kind])
    rates = (high * (1.0 - high))[:, None] * after - (low * (1.0 - low))[:, None] * before
    gradient = rates.mean(axis=0)
    return float(np.sqrt((gradient @ np.linalg.solve(information, gradient) + np.var(changes)) / n))


def cells() -> Iterator[dict]:
    """The cells of the table."""
    for d, n, epsilon in [(4, 2_000, 1.0), (4, 10_000, 1.0), (4, 10_000, 0.5), (12, 10_000, 1.0), (20, 50_000, 0.5)]:
        for kind in ("confounded", "rare", "none", "steep", "number"):
            if kind in ("confounded", "number") or n == 10_000:
                yield cell(kind, d, n, epsilon, "approximate", "replace-one")
    yield cell("small", 4, 10_000, 1.0, "approximate", "replace-one")
    for kind in ("confounded", "number"):
        yield cell(kind, 4, 10_000, 1.0, "pure", "replace-one")
        yield cell(kind, 4, 10_000, 1.0, "approximate", "add-or-remove-one")


def show(lines: list[dict[str, Any]]) -> None:
    """The table of README.md."""
    heads = "rows          d      n   eps  budget       neighbours         coverage        width  forecast  unknown"
    print(f"{heads}  bias  rejected")
    for line in lines:
        start = f"{start_of_line(line)}  {line['neighbours']:17s}"
        if line.get("refused"):
            print(f"{start}  refused")
            continue
        print(
            f"{start}  {line['coverage']:.3f} +- {line['standard_error']:.3f}  {line['width']:5.2f}  "
            f"{line['forecast_width']:5.2f}     {line['unknown']:.3f}  {line['mean_error']:5.2f}  {line['rejected']:.3f}"
        )


def main() -> None:
    show(measured_once(options(__doc__, "risks.jsonl").parse_args(), cells(), measured))


if __name__ == "__main__":
    main()
