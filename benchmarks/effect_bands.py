"""How often the bands of effects hold the effects of the population, value by value and all values of a column together.

Rows are drawn from a finite population of 20,000: four numbers with knots, one on a log scale and one that seldom comes near
its high, a category with a rare level, and one of two levels. Labels come from a logistic model whose effects are curves, so
the population's minimiser with the same ridge is known exactly. One JSON line a cell: the share of values, over repetitions,
whose own interval holds its target, the least such share of a column, and the share of effects all of whose values are held
together; and the median width of intervals. A file of lines is continued where it ends.

    python benchmarks/effect_bands.py --repetitions 200 --out bands.jsonl     run, or go on
    python benchmarks/effect_bands.py --out bands.jsonl --table               show what is there
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.special import expit

import confide
from confide.effects.effects import decomposition
from confide.estimators.released import effects_of
from confide.features.encoder import Encoder

POPULATION, SHARE, LEVEL = 20_000, 0.4, 0.95
BUDGETS: dict[str, Any] = {
    **{f"pure {epsilon:g}": confide.PureDP(epsilon) for epsilon in (2.0, 4.0, 8.0, 16.0)},
    **{f"approximate {epsilon:g}": confide.ApproxDP(epsilon, 1e-6) for epsilon in (0.25, 0.5, 1.0, 2.0, 4.0)},
}
SCHEMA = confide.Schema(
    columns={
        "age": {"low": 17, "high": 90, "knots": 6},
        "income": {"low": 0, "high": 100_000, "scale": "log", "knots": 4},
        "hours": {"low": 0, "high": 99, "knots": 6, "missing": True},
        "rank": {"low": 0, "high": 1, "knots": 3},
        "work": {"categories": ["office", "field", "shop", "sea"], "other": "office"},
        "sex": {"categories": ["Female", "Male"]},
    },
    target={"column": "buys", "negative": "no", "positive": "yes"},
)


def population() -> tuple[pd.DataFrame, np.ndarray]:
    """Rows, and the probability that each has the label "yes"."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.uniform(17, 90, POPULATION),
            "income": np.clip(rng.lognormal(7.0, 2.0, POPULATION), 0, 100_000),
            "hours": np.where(rng.uniform(size=POPULATION) < 0.1, np.nan, np.clip(rng.normal(40, 12, POPULATION), 0, 99)),
            "rank": rng.beta(1.0, 3.0, POPULATION),
            "work": rng.choice(["office", "field", "shop", "sea"], POPULATION, p=[0.5, 0.3, 0.18, 0.02]),
            "sex": rng.choice(["Female", "Male"], POPULATION),
        }
    )
    scores = (
        -0.5
        - ((frame["age"] - 50) / 25) ** 2
        + 0.25 * np.log1p(frame["income"]) * (frame["income"] > 1000)
        + np.sin(frame["hours"].fillna(40) / 15)
        + 1.5 * frame["rank"]
        + frame["work"].map({"office": 0.3, "field": -0.3, "shop": 0.0, "sea": 0.8})
        + 0.3 * (frame["sex"] == "Male")
        - 0.8
    )
    return frame, expit(scores.to_numpy())


def minimiser(rows: np.ndarray, chances: np.ndarray, alpha: float) -> np.ndarray:
    """The population's weights with this ridge, the intercept last, by Newton's method."""
    design = np.column_stack([rows, np.ones(len(rows))])
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        fitted = expit(design @ weights)
        gradient = design.T @ (fitted - chances) / len(design) + alpha * weights
        hessian = (design * (fitted * (1 - fitted))[:, None]).T @ design / len(design) + alpha * np.eye(len(weights))
        step = np.linalg.solve(hessian, gradient)
        weights -= step
        if np.abs(step).max() < 1e-12:
            break
    return weights


def cell(n: int, name: str, repetitions: int) -> dict[str, Any]:
    """One line of the file."""
    frame, chances = population()
    encoder = Encoder(SCHEMA)
    rows = encoder.transform(frame)
    try:
        plan = confide.LogisticRegression(BUDGETS[name], schema=SCHEMA, inference_share=SHARE).plan(n)
    except confide.ParameterError:
        return {"n": n, "budget": name, "refused": True}
    target = decomposition(encoder, minimiser(rows, chances, plan.alpha)[:-1, None])[1]
    truth = {term.columns: term.effects[: len(term.points[0].values), 0] for term in target}
    alone: dict[str, list[float]] = {term.columns[0]: [] for term in target}
    together, widths = [], []
    for repetition in range(repetitions):
        rng = np.random.default_rng((1, n, repetition))
        places = rng.integers(POPULATION, size=n)
        labels = np.where(rng.uniform(size=n) < chances[places], "yes", "no")
        model = confide.LogisticRegression(BUDGETS[name], schema=SCHEMA, inference_share=SHARE)
        model.fit(frame.iloc[places], labels)
        for effect in effects_of(model).with_bands(LEVEL):
            values, right = effect.values, truth[effect.columns]
            held = [value.low <= true <= value.high for value, true in zip(values, right, strict=True)]
            alone[effect.name].append(float(np.mean(held)))
            together.append(
                all(value.joint_low <= true <= value.joint_high for value, true in zip(values, right, strict=True))
            )
            widths += [value.high - value.low for value in values]
    sizes = {name: len(truth[(name,)]) for name in alone}
    return {
        "n": n,
        "budget": name,
        "repetitions": repetitions,
        "alone": float(np.average([np.mean(alone[column]) for column in alone], weights=list(sizes.values()))),
        "least": min((float(np.mean(held)), column) for column, held in alone.items()),
        "together": float(np.mean(together)),
        "width": float(np.median(widths)),
    }


def show(lines: list[dict[str, Any]]) -> None:
    """The table of what is there."""
    print("| rows | budget | each value | least of a column | all values of a column | median width |")
    print("| --- | --- | --- | --- | --- | --- |")
    for line in lines:
        print(f"| {line['n']:,} | {line['budget']} |", end=" ")
        if line.get("refused"):
            print("refused by the plan | | | |")
        else:
            least, column = line["least"]
            print(f"{line['alone']:.3f} | {least:.3f} ({column}) | {line['together']:.3f} | {line['width']:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 50_000])
    parser.add_argument("--budgets", nargs="+", default=list(BUDGETS), choices=list(BUDGETS))
    chosen = parser.parse_args()
    lines = [json.loads(line) for line in chosen.out.read_text().splitlines()] if chosen.out.exists() else []
    if not chosen.table:
        done = {(line["n"], line["budget"]) for line in lines}
        for n, name in itertools.product(chosen.rows, chosen.budgets):
            if (n, name) not in done:
                lines.append(cell(n, name, chosen.repetitions))
                with chosen.out.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    show(lines)


if __name__ == "__main__":
    main()
