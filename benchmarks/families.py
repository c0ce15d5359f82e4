"""How often intervals of a family all hold together, and how often a family without an effect is rejected.

Rows lie in the unit ball with correlations of .6, and labels are drawn from a logistic model, so that the population's
coefficients are known. Kinds of families: "single-step" and "holm", all coefficients of one model with the ridge;
"interest", four named coefficients without it; "releases", two models of the same rows, one of each kind, corrected by
Holm's method. One JSON line a cell: how often all intervals hold, with the effects as they are; and how often anything is
rejected at .05 where labels do not depend on rows. A file of lines is continued where it ends.

    python benchmarks/families.py --repetitions 500 --out families.jsonl   the cells of benchmarks/results/families.jsonl
    python benchmarks/families.py --out families.jsonl --table             show what is there
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from measured_cells import measured_once, options, start_of_line
from scipy.special import expit

import confide

POPULATION = 20_000
DELTA = 1e-6


def population_of(d: int, *, has_effects: bool) -> tuple[np.ndarray, np.ndarray]:
    """Rows and true weights, the intercept last."""
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(POPULATION // 2, d)) @ np.linalg.cholesky(np.full((d, d), 0.6) + 0.4 * np.eye(d)).T
    rows *= rng.uniform(size=(len(rows), 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    # Each row has its mirror image, so that a ridge leaves weights of 0 where there is no effect.
    rows = np.concatenate([rows, -rows])
    weights = np.append(rng.normal(size=d) if has_effects else np.zeros(d), 0.3)
    if has_effects:
        weights[:-1] *= 0.9 / np.std(rows @ weights[:-1])
    return rows, weights


def with_ridge(rows: np.ndarray, weights: np.ndarray, alpha: float) -> np.ndarray:
    """The population's minimiser with a ridge, the intercept last."""
    design, chances = np.column_stack([rows, np.ones(len(rows))]), expit(rows @ weights[:-1] + weights[-1])
    found = weights.copy()
    for _ in range(50):
        fitted = expit(design @ found)
        hessian = (design * (fitted * (1.0 - fitted))[:, None]).T @ design / len(rows) + alpha * np.eye(len(found))
        found = found - np.linalg.solve(hessian, design.T @ (fitted - chances) / len(rows) + alpha * found)
    return found


def models_of(kind: str, budget: Any) -> list[confide.LogisticRegression]:
    """The models of a family, unfitted."""
    shared = {"classes": [0, 1], "row_norm": 1.0}
    named = confide.LogisticRegression(budget, interest=[f"x{place}" for place in range(4)], **shared)
    whole = confide.LogisticRegression(budget, inference_share=0.3, **shared)
    return {"interest": [named], "releases": [whole, named]}.get(kind, [whole])


def table_of(kind: str, fitted: list[confide.LogisticRegression]) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of a family (tests, 2), and its corrected p-values."""
    if kind == "releases":
        found = confide.family(fitted).hypotheses
    else:
        adjust = "single-step" if kind == "single-step" else "holm"
        found = [one for one in fitted[0].summary(adjust=adjust).coefficients if one.unit]
    return np.array([(one.low, one.high) for one in found]), np.array([one.adjusted_p_value for one in found])


def measured(kind: str, d: int, n: int, epsilon: float, currency: str, repetitions: int) -> dict:
    """One cell."""
    budget = confide.PureDP(epsilon) if currency == "pure" else confide.ApproxDP(epsilon, DELTA)
    try:
        plans = [model.plan(n, d) for model in models_of(kind, budget)]
    except confide.ParameterError as refusal:
        return {"refused": True, "reason": str(refusal)}
    found: dict[str, Any] = {"alphas": [plan.alpha for plan in plans]}
    for has_effects in (True, False):
        rows, weights = population_of(d, has_effects=has_effects)
        chances = expit(rows @ weights[:-1] + weights[-1])
        truths = [weights[:4] if model.interest else with_ridge(rows, weights, plan.alpha)[:d]
                  for model, plan in zip(models_of(kind, budget), plans, strict=True)]  # fmt: skip
        truth = np.concatenate(truths)
        rng = np.random.default_rng((d, n, int(100 * epsilon), has_effects))
        hold, alone, rejected = [], [], []
        for _ in range(repetitions):
            places = rng.integers(POPULATION, size=n)
            labels = (rng.uniform(size=n) < chances[places]).astype(int)
            fitted = [model.fit(rows[places], labels) for model in models_of(kind, budget)]
            ends, p_values = table_of(kind, fitted)
            hold.append(bool(((ends[:, 0] <= truth) & (truth <= ends[:, 1])).all()))
            each = np.concatenate([model.conf_int() for model in fitted])
            alone.append(bool(((each[:, 0] <= truth) & (truth <= each[:, 1])).all()))
            rejected.append(bool(p_values.min() <= 0.05))
        if has_effects:
            found |= {"together": round(float(np.mean(hold)), 4), "each_by_itself": round(float(np.mean(alone)), 4)}
        else:
            found |= {
                "together_without_effect": round(float(np.mean(hold)), 4),
                "rejected": round(float(np.mean(rejected)), 4),
            }
    return found


def cells() -> Iterator[dict]:
    """The cells of the table."""
    for kind in ("single-step", "holm"):
        for d, n, epsilon, currency in [
            (4, 10_000, 2.0, "approximate"), (12, 20_000, 2.0, "approximate"), (4, 20_000, 4.0, "pure"),
        ]:  # fmt: skip
            yield {"kind": kind, "d": d, "n": n, "epsilon": epsilon, "currency": currency}
    for currency in ("approximate", "pure"):
        yield {"kind": "interest", "d": 6, "n": 20_000, "epsilon": 2.0, "currency": currency}
    yield {"kind": "releases", "d": 6, "n": 20_000, "epsilon": 2.0, "currency": "approximate"}


def show(lines: list[dict[str, Any]]) -> None:
    """The table of README.md."""
    print("family        d      n   eps  budget       all hold  each at 95%, all hold  all hold, no effect  any rejected")
    for line in lines:
        start = start_of_line(line)
        if line.get("refused"):
            print(f"{start}  refused")
            continue
        print(
            f"{start}  {line['together']:.3f}     {line['each_by_itself']:.3f}                  "
            f"{line['together_without_effect']:.3f}                {line['rejected']:.3f}"
        )


def main() -> None:
    show(measured_once(options(__doc__, "families.jsonl").parse_args(), cells(), measured))


if __name__ == "__main__":
    main()
