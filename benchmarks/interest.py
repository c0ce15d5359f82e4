"""How often intervals for a named coefficient hold it, how wide they are, and where they must be refused.

Labels are drawn from a logistic model of rows, so the coefficient without a ridge is known. The interval is for the first
column. One JSON line a cell: coverage, median width over that of statsmodels without privacy (from the population's
information), how often the interval rests on a supposition, and what the plan forecast. A file of lines is
continued where it ends.

    python benchmarks/interest.py --repetitions 500 --out interest.jsonl   the cells of results/interest.jsonl
    python benchmarks/interest.py --cells limits --repetitions 200 --out limits.jsonl   other rows, with the gate open
    python benchmarks/interest.py --out interest.jsonl --table                     show what is there
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from measured_cells import cell, measured_once, options, start_of_line
from scipy.special import expit

import confide
from confide.inference import interest_plan
from confide.inference.debiased import supposed_of

POPULATION = 20_000
DELTA = 1e-6
KINDS = ("ball", "correlated", "treatment", "skewed", "steep")


def population_of(kind: str, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows within the unit ball, and true weights with the intercept last.

    ball : directions uniform, lengths uniform up to 1. correlated : the same, from a Gaussian law with correlations of .6.
    treatment : the first column is 0 or a constant with odds that depend on the others, which are uniform. skewed : all
    columns are exponential and cut off. steep : as ball, with log-odds twice as large.
    """
    rng = np.random.default_rng((KINDS.index(kind), d))
    if kind in ("ball", "correlated", "steep"):
        rows = rng.normal(size=(POPULATION, d))
        if kind == "correlated":
            rows = rows @ np.linalg.cholesky(np.full((d, d), 0.6) + 0.4 * np.eye(d)).T
        rows *= rng.uniform(size=(POPULATION, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    elif kind == "treatment":
        rows = rng.uniform(-1.0, 1.0, size=(POPULATION, d)) / d**0.5
        rows[:, 0] = (rng.uniform(size=POPULATION) < expit(2.0 * rows[:, 1:].sum(axis=1))) / d**0.5
    else:
        rows = np.minimum(rng.exponential(size=(POPULATION, d)) / 3.0, 1.0) / d**0.5
    weights = np.append(rng.normal(size=d), 0.3)
    spread = 1.8 if kind == "steep" else 0.9
    weights[:-1] *= spread / np.std(rows @ weights[:-1])
    weights[-1] -= float(np.mean(rows @ weights[:-1])) if kind in ("treatment", "skewed") else 0.0
    return rows, weights


def measured(kind: str, d: int, n: int, epsilon: float, currency: str, neighbours: str, repetitions: int) -> dict:
    """One cell."""
    rows, weights = population_of(kind, d)
    chances = expit(rows @ weights[:-1] + weights[-1])
    budget = confide.PureDP(epsilon) if currency == "pure" else confide.ApproxDP(epsilon, DELTA)
    bounds = None if neighbours == "replace-one" else (n // 2, 2 * n)
    model = confide.LogisticRegression(
        budget, interest=["x0"], classes=[0, 1], row_norm=1.0, neighbours=neighbours, n_rows_bounds=bounds
    )
    try:
        plan = model.plan(None if bounds else n, d)
    except confide.ParameterError as refusal:
        return {"refused": True, "reason": str(refusal)}
    design = np.column_stack([rows, np.ones(POPULATION)])
    information = (design * (chances * (1.0 - chances))[:, None]).T @ design / POPULATION
    plain = float(np.sqrt(np.linalg.inv(information)[0, 0] / n))
    rng = np.random.default_rng((d, n, int(100 * epsilon), KINDS.index(kind)))
    errors, margins, hits, supposed = [], [], [], []
    for _ in range(repetitions):
        places = rng.integers(POPULATION, size=n)
        labels = (rng.uniform(size=n) < chances[places]).astype(int)
        found = model.fit(rows[places], labels).uncertainty()
        supposed.append(bool(supposed_of(model._interest)))
        margin = float(found.margins(0.95)[0])
        errors.append(float(found.estimates[0]) - weights[0])
        margins.append(margin)
        hits.append(abs(errors[-1]) <= margin)
    coverage = float(np.mean(hits))
    facts = plan.intervals
    return {
        "coverage": round(coverage, 4),
        "standard_error": round(float((coverage * (1.0 - coverage) / repetitions) ** 0.5), 4),
        "width": round(float(np.median(margins)) / (1.96 * plain), 3),
        "forecast_width": round(facts.margin(facts.combinations[0]) / (1.96 * plain), 3),
        "hidden": round(facts.hidden, 4),
        "supposed": round(float(np.mean(supposed)), 4),
        "second_order": round(facts.second_order / facts.first_order, 3),
        "median_error": round(float(np.median(np.abs(errors))) / (0.6745 * plain), 3),
    }


def cells_of(name: str) -> Iterator[dict]:
    """The cells of the table, or those from which the limits of the plan were found."""
    if name == "table":
        sizes = [(4, 2_000, 1.0), (4, 2_000, 0.5), (4, 10_000, 1.0), (4, 10_000, 0.5), (20, 10_000, 1.0)]
        sizes += [(20, 50_000, 1.0), (20, 50_000, 0.5)]
        for (d, n, epsilon), kind in ((size, kind) for size in sizes for kind in ("ball", "correlated")):
            yield cell(kind, d, n, epsilon, "approximate", "replace-one")
        for kind in ("ball", "correlated"):
            yield cell(kind, 4, 10_000, 1.0, "pure", "replace-one")
            yield cell(kind, 4, 10_000, 1.0, "approximate", "add-or-remove-one")
        return
    for kind in ("treatment", "skewed", "steep"):
        for d, n, epsilon in [
            (3, 500, 1.0), (3, 1_000, 1.0), (3, 2_000, 0.5), (3, 4_000, 0.5), (3, 4_000, 1.0), (8, 2_000, 1.0),
            (8, 5_000, 1.0), (8, 5_000, 0.5), (8, 10_000, 0.5), (8, 20_000, 0.5), (15, 5_000, 1.0), (15, 10_000, 1.0),
            (15, 20_000, 0.5),
        ]:  # fmt: skip
            yield cell(kind, d, n, epsilon, "approximate", "replace-one")


def show(lines: list[dict[str, Any]]) -> None:
    """The table of README.md."""
    print("rows          d      n   eps  budget       neighbours         coverage        width  forecast  supposed")
    for line in lines:
        start = f"{start_of_line(line)}  {line['neighbours']:17s}"
        if line.get("refused"):
            print(f"{start}  refused")
            continue
        print(
            f"{start}  {line['coverage']:.3f} +- {line['standard_error']:.3f}  {line['width']:5.2f}  "
            f"{line['forecast_width']:5.2f}     {line['supposed']:.3f}"
        )


def main() -> None:
    parser = options(__doc__, "interest.jsonl")
    parser.add_argument("--cells", choices=["table", "limits"], default="table")
    given = parser.parse_args()
    if given.cells == "limits":
        interest_plan._LARGEST_HIDDEN_OF_ARRAYS = float("inf")
    show(measured_once(given, cells_of(given.cells), measured))


if __name__ == "__main__":
    main()
