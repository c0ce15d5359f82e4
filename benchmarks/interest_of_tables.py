"""Intervals for each column of real tables, one by one: how often they hold it, how wide they are beside the forecast.

Rows are drawn from a table with replacement, so the table is the population and its minimiser without privacy the truth. No
model is right for it. "credit" is made up, in units in which such tables come: skewed amounts, counts and status codes. One
JSON line a table, with a number for each coefficient: coverage, the median width over the forecast for the spread of the
column and the share of the rarer outcome, the median width over that without privacy, how often the interval rests on a
supposition because the noise hid what the rows tell, and how often it is infinite. All but the last are of finite intervals,
and null if none is.

One sample and one release of weights, frame and curvatures serve all columns of a table, and each column has its own sums.
So each column has exactly the law of a fit that names it alone.

    CONFIDE_DATA_DIR=... python benchmarks/interest_of_tables.py --repetitions 400 --out benchmarks/interest_of_tables.jsonl
    python benchmarks/interest_of_tables.py --out benchmarks/interest_of_tables.jsonl --table
"""

from __future__ import annotations

import os
import re
import time
from dataclasses import replace
from functools import cache
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from measured_cells import measured_once, options
from public_data import folder
from scipy.special import expit

import confide
from confide.inference.debiased import InterestEvidence, directions_of, supposed_of, uncertainty_of_interest
from confide.inference.interest_plan import InterestPlan

DELTA = 1e-6
Columns = dict[str, dict[str, Any]]


def number(low: float, high: float, scale: str = "linear") -> dict[str, Any]:
    """A column of numbers in a schema."""
    return {"low": low, "high": high, "scale": scale}


def credit(n: int = 200_000) -> tuple[pd.DataFrame, np.ndarray, Columns]:
    """Nine columns of a table of loans, and whether one was not paid back."""
    rng = np.random.default_rng(0)
    limit = rng.lognormal(4.5, 0.8, n)
    used = np.clip(rng.beta(1.2, 2.5, n) * rng.lognormal(0.0, 0.3, n), 0.0, 2.0)
    rows = pd.DataFrame(
        {
            "age": rng.gamma(9.0, 4.0, n),
            "status": rng.poisson(0.4, n) - 1.0,
            "limit": limit,
            "payment": rng.lognormal(1.0, 1.5, n) * (rng.random(n) < 0.8),
            "bill": limit * used,
            "late": rng.poisson(0.25 * np.exp(0.6 * rng.normal(size=n))),
            "income": np.exp(3.5 + 0.25 * np.log(limit / 90.0) + 0.5 * rng.normal(size=n)),
            "dependants": rng.poisson(0.8, n),
            "months": np.where(rng.random(n) < 0.3, 0.3, 1.0) * rng.integers(1, 60, n),
        }
    )
    columns = {
        "age": number(18, 90), "status": number(-2, 8), "limit": number(10, 1_000, "log10"),
        "payment": number(0, 1_000, "log"), "bill": number(0, 2_000), "late": number(0, 20), "income": number(0, 500),
        "dependants": number(0, 10), "months": number(0, 60),
    }  # fmt: skip
    rows = rows.clip(*([each[end] for each in columns.values()] for end in ("low", "high")), axis=1)
    encoded = (rows - rows.mean()) / rows.std()
    effects = np.array([0.25, 0.6, -0.5, -0.15, 0.3, 0.35, -0.4, 0.1, -0.2])
    return rows, (rng.random(n) < expit(encoded.to_numpy() @ effects - 1.6)).astype(int), columns


def _read(name: str, target: str, positive: Any, columns: Columns) -> tuple[pd.DataFrame, np.ndarray, Columns]:
    frame = pd.read_parquet(folder() / name)
    return frame[list(columns)], (frame[target] == positive).to_numpy().astype(int), columns


TABLES = {
    "credit": credit,
    "adult": lambda: _read(
        "adult_train.parquet", "income", ">50K",
        {
            "age": number(17, 90), "fnlwgt": number(10_000, 1_500_000, "log10"), "education-num": number(1, 16),
            "capital-gain": number(0, 99_999), "capital-loss": number(0, 5_000), "hours-per-week": number(1, 99),
            "sex": {"categories": ["Female", "Male"]}, "race": {"categories": ["White", "Black"], "other": True},
        },
    ),
    "bank": lambda: _read(
        "bank_full.parquet", "y", "yes",
        {
            "age": number(18, 95), "balance": number(-2_000, 20_000), "day": number(1, 31), "duration": number(0, 3_600),
            "campaign": number(1, 50), "pdays": number(-1, 900), "previous": number(0, 50, "log"),
            "housing": {"categories": ["no", "yes"]}, "loan": {"categories": ["no", "yes"]},
        },
    ),
    "covertype": lambda: _read(
        "covertype_sample.parquet", "Cover_Type", 2,
        {
            "Elevation": number(1_800, 4_000), "Aspect": number(0, 360), "Slope": number(0, 70),
            "Horizontal_Distance_To_Hydrology": number(0, 1_500), "Vertical_Distance_To_Hydrology": number(-200, 700),
            "Horizontal_Distance_To_Roadways": number(0, 7_500), "Hillshade_Noon": number(0, 255),
            "Horizontal_Distance_To_Fire_Points": number(0, 7_500),
        },
    ),
}  # fmt: skip


def as_fitted(rows: pd.DataFrame, columns: Columns) -> pd.DataFrame:
    """The columns in the units of their coefficients: per unit, per doubling, or 1 for a level beside the first one."""
    found = {}
    for name, facts in columns.items():
        if "categories" in facts:
            known = rows[name].where(rows[name].isin(facts["categories"]), "(other)")
            others = [*facts["categories"][1:], *(["(other)"] if facts.get("other") else [])]
            found |= {f"{name}: {level}": (known == level).astype(float) for level in others}
            continue
        values = rows[name].astype(float).clip(facts["low"], facts["high"])
        logarithms = {"linear": lambda x: x, "log10": np.log2, "log": lambda x: np.log2(x + 1.0)}
        found[name] = logarithms[facts["scale"]](values)
    return pd.DataFrame(found)


@cache
def population(name: str) -> tuple[pd.DataFrame, np.ndarray, Columns, pd.DataFrame]:
    """A table, and for each coefficient the truth, its standard error for one row, and the spread of the column."""
    rows, labels, columns = TABLES[name]()
    fitted = as_fitted(rows, columns)
    middle, spread = fitted.mean().to_numpy(), fitted.std().to_numpy()
    design = np.column_stack([(fitted.to_numpy() - middle) / spread, np.ones(len(fitted))])
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        chances = expit(design @ weights)
        curvature = (design * (chances * (1.0 - chances))[:, None]).T @ design
        weights += np.linalg.solve(curvature, design.T @ (labels - chances))
    slopes = (design * ((labels - chances) ** 2)[:, None]).T @ design
    inverse = np.linalg.inv(curvature)
    errors = np.sqrt(np.diag(inverse @ slopes @ inverse) * len(design))[:-1] / spread
    uncommon = spread.copy()
    for name in fitted.columns[[": " in each for each in fitted.columns]]:
        # Of a level and of the first one, beside which it stands: the root of p q / (p + q).
        column = name.split(": ")[0]
        first = float((rows[column] == columns[column]["categories"][0]).mean())
        own = float(fitted[name].mean())
        places = fitted.columns.get_loc(name)
        uncommon[places] = np.sqrt(own * first / (own + first))
    truth = pd.DataFrame({"truth": weights[:-1] / spread, "error": errors, "spread": uncommon}, index=fitted.columns)
    return rows, labels, columns, truth


def measured(table: str, n: int, epsilon: float, repetitions: int) -> dict[str, Any]:
    """All columns of one table."""
    rows, labels, columns, truth = population(table)
    schema = confide.Schema.from_dict({"columns": columns})
    models = [
        confide.LogisticRegression(confide.ApproxDP(epsilon, DELTA), schema=schema, interest=[column], classes=[0, 1])
        for column in columns
    ]
    plans = [model.plan(n).intervals.at_rate(float(labels.mean())) for model in models]
    whole, found = InterestPlan.released, []

    def released_of_all(plan: InterestPlan, ready: Any, weights: Any, source: Any, entropy: Any) -> Any:
        released = whole(plan, ready, weights, source, entropy)
        found.append([_for_column(released[1], each, source, entropy) for each in plans])
        return released

    rng, began = np.random.default_rng((n, sum(map(ord, table)))), time.time()
    InterestPlan.released = released_of_all
    try:
        for _ in range(repetitions):
            places = rng.integers(len(rows), size=n)
            models[0].fit(rows.iloc[places], labels[places])
    finally:
        InterestPlan.released = whole
    named = [one for plan in plans for one in plan.combinations]
    known, units = truth.loc[[one.name for one in named]], np.array([_unit(one.unit) for one in named])
    uncertain = [[uncertainty_of_interest(each) for each in evidence] for evidence in found]
    margins = np.array([np.concatenate([each.margins(0.95) for each in one]) for one in uncertain]) / units
    estimates = np.array([np.concatenate([each.estimates for each in one]) for one in uncertain]) / units
    supposed = [[name for each in evidence for name in supposed_of(each)] for evidence in found]
    errors = estimates - known["truth"].to_numpy()
    expected = np.array([plan.margin(one) * plan.spread_of(one) for plan in plans for one in plan.combinations])
    are_finite, plain = np.isfinite(margins), 1.96 * known["error"].to_numpy() / np.sqrt(n)
    width = np.nanmedian(np.where(are_finite, margins, np.nan), axis=0)
    covers = np.where(are_finite, np.abs(errors) <= margins, np.nan)
    return {
        "names": list(known.index),
        "coverage": np.nanmean(covers, axis=0).round(4).tolist(),
        "beside_forecast": (width / (expected / known["spread"].to_numpy())).round(3).tolist(),
        "width": (width / plain).round(3).tolist(),
        "error": (np.sqrt(np.mean(np.square(errors), axis=0)) / plain * 1.96).round(3).tolist(),
        "bias": (np.mean(errors, axis=0) / plain * 1.96).round(3).tolist(),
        "supposed": np.mean(are_finite & np.array([[one.name in names for one in named] for names in supposed]), axis=0)
        .round(4)
        .tolist(),
        "infinite": np.mean(~are_finite, axis=0).round(4).tolist(),
        "rate": round(float(labels.mean()), 4),
        "hidden": round(models[0].plan(n).intervals.hidden, 4),
        "seconds": round((time.time() - began) / repetitions, 3),
    }


def _for_column(evidence: InterestEvidence, plan: InterestPlan, source: Any, entropy: Any) -> InterestEvidence:
    """What would have been released if a fit had named the column of this plan."""
    near, matrix = evidence.near, evidence.frame.matrix
    along = directions_of(plan.facts, plan.combinations, evidence.frame, near, evidence.curvature) @ matrix
    sums = plan.sums.release(source, entropy, near.weights[None] @ matrix, along)
    return replace(evidence, facts=plan.facts, combinations=plan.combinations, sums=sums)


def _unit(text: str) -> float:
    """For how many units of its column a coefficient is given."""
    found = re.match(r"per ([\d,.]+)", text)
    return float(found[1].replace(",", "")) if found else 1.0


def show(lines: list[dict[str, Any]]) -> None:
    """The table of README.md."""
    print("table      coefficient                              n  coverage  width  beside forecast  supposed  infinite")
    for line in lines:
        columns = ("names", "coverage", "width", "beside_forecast", "supposed", "infinite")
        for name, coverage, width, beside, supposed, infinite in zip(*(line[column] for column in columns), strict=True):
            print(
                f"{line['table']:10s} {name:34s} {line['n']:7d}  {coverage:8.3f}  {width:5.2f}  {beside:15.2f}  "
                f"{supposed:8.3f}  {infinite:8.3f}"
            )


def main() -> None:
    parser = options(__doc__, "interest_of_tables.jsonl")
    parser.add_argument("--tables", nargs="+", default=list(TABLES))
    parser.add_argument("--n", type=int, default=20_000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    cells = [{"table": table, "n": given.n, "epsilon": given.epsilon} for table in given.tables]
    show(measured_once(given, cells, measured))


if __name__ == "__main__":
    main()
