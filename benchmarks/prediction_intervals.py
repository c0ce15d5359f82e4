"""How often intervals hold coefficients and predicted means of the population, for every kind of model that has intervals.

The population is 50,000 rows with their targets, from which samples are drawn with replacement. What intervals should hold
are the coefficients, and the means of 20 rows, of the fit to the population without noise and with the same ridge. One line
a cell: coverage of coefficients and of means, the least coverage of a row, and the median width of intervals of means.
Samples whose release has no intervals, because the noise hides what the rows tell, are counted and left out.

    python benchmarks/prediction_intervals.py --repetitions 200 --out predictions.jsonl     run, or go on
    python benchmarks/prediction_intervals.py --out predictions.jsonl --table               show what is there
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy.special import expit

import confide
from confide.inference.intervals import Evidence, known_scores

POPULATION, N_ROWS, N_SHOWN, LEVEL = 50_000, 5_000, 20, 0.95
RNG = np.random.default_rng(23)
FACTOR = RNG.normal(size=(POPULATION, 1))
ROWS = 0.25 * (np.sqrt(0.7) * RNG.normal(size=(POPULATION, 4)) + np.sqrt(0.3) * FACTOR)
ROWS /= np.maximum(1.0, np.linalg.norm(ROWS, axis=1, keepdims=True))
SCORES = ROWS @ np.array([2.0, -1.5, 1.0, 0.5])
CURVED = np.sin(6.0 * ROWS[:, 0]) - 4.0 * ROWS[:, 1] ** 2
FRAME = pd.DataFrame(np.clip(ROWS, -0.6, 0.6), columns=list("abcd"))
SCHEMA = confide.Schema(columns={name: {"low": -0.6, "high": 0.6, "knots": 3} for name in "abcd"})
TARGETS = {
    "label": (RNG.uniform(size=POPULATION) < expit(SCORES + 0.3)).astype(int),
    "curved label": (RNG.uniform(size=POPULATION) < expit(2.0 * CURVED)).astype(int),
    "class": (ROWS @ RNG.normal(scale=2.0, size=(4, 3)) + RNG.gumbel(size=(POPULATION, 3))).argmax(axis=1),
    "number": np.clip(0.25 * SCORES + 0.2 * RNG.normal(size=POPULATION), -1.0, 1.0),
    "count": np.minimum(RNG.poisson(np.exp(0.5 * SCORES + 0.7)), 16),
    "rare count": np.minimum(RNG.poisson(np.exp(0.5 * SCORES - 0.9)), 16),
}
SHARE = {"inference_share": 0.3}
TWO, THREE = {"classes": [0, 1]}, {"classes": [0, 1, 2]}
BOUNDED = {"target_bound": 1.0}
CELLS: dict[str, tuple[Callable[..., Any], dict[str, Any], str, int]] = {
    "logistic": (confide.LogisticRegression, SHARE | TWO, "label", N_ROWS),
    "logistic, on the weights": (confide.LogisticRegression, SHARE | TWO | {"mechanism": "output"}, "label", N_ROWS),
    "logistic, refit": (confide.LogisticRegression, SHARE | TWO, "label", N_ROWS),
    "softmax": (confide.LogisticRegression, SHARE | THREE, "class", N_ROWS),
    "one-vs-rest": (confide.LogisticRegression, SHARE | THREE | {"multiclass": "one-vs-rest"}, "class", N_ROWS),
    "support vectors": (confide.LinearSVC, SHARE | TWO | {"loss": "huber_hinge"}, "label", N_ROWS),
    "kernel": (
        confide.KernelSVC,
        SHARE | TWO | {"n_features": 24, "length_scale": 0.5, "loss": "huber_hinge"},
        "curved label",
        6 * N_ROWS,
    ),
    "Huber": (confide.HuberRegressor, SHARE | BOUNDED, "number", N_ROWS),
    "Ridge": (confide.Ridge, {"intervals": True} | BOUNDED, "number", N_ROWS),
    "Poisson": (confide.PoissonRegressor, SHARE | {"target_bound": 16.0}, "count", 12 * N_ROWS),
    "Poisson, rare": (confide.PoissonRegressor, SHARE | {"target_bound": 16.0}, "rare count", 12 * N_ROWS),
    "additive": (confide.AdditiveClassifier, SHARE | TWO | {"schema": SCHEMA}, "curved label", 2 * N_ROWS),
}
BUDGETS = {"approximate 2": confide.ApproxDP(2.0, 1e-6), "pure 4": confide.PureDP(4.0)}


def means_of(model: Any, rows: Any) -> np.ndarray:
    """What `predict_interval` speaks of: probabilities, scores or means, (n,) or (n, k)."""
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(rows)
        return found[:, 1] if found.shape[1] == 2 else found
    return model.decision_function(rows) if hasattr(model, "decision_function") else model.predict(rows)


def settled(model: Any, n_rows: int, alpha: float) -> Any:
    """The same estimator without privacy and with everything that a private plan chooses for so many rows."""
    loss = model.plan(n_rows, None if getattr(model, "schema", None) else ROWS.shape[1]).problem.loss
    found = model.get_params(deep=False) | {"budget": math.inf, "alpha": alpha}
    if "threshold" in found:
        found["threshold"] = loss.threshold
    return type(model)(
        **{name: value for name, value in found.items() if name != "inference_share"} | {"inference_share": 0.3}
    )


def measured(kind: str, budget: Any, repetitions: int) -> dict[str, Any]:
    """One cell."""
    make, parameters, name, n_rows = CELLS[kind]
    rows, targets = FRAME if "schema" in parameters else ROWS, TARGETS[name]
    model, taken = make(budget, **parameters), _taken_of(rows)
    if kind.endswith("refit"):
        earlier = np.random.default_rng(1).integers(POPULATION, size=n_rows)
        first = make(confide.ApproxDP(1.0, 1e-6), **parameters).fit(taken(earlier), targets[earlier])
        model.set_params(prior=first)
    try:
        plan = model.plan(n_rows, None if "schema" in parameters else ROWS.shape[1])
    except confide.ParameterError as refusal:
        return {"refused": True, "reason": str(refusal)}
    if make is confide.Ridge:
        truth = confide.Ridge(math.inf, alpha=plan.alpha, target_bound=1.0).fit(rows, targets)
    else:
        truth = settled(model, n_rows, plan.alpha).fit(rows, targets)
    shown = taken(np.arange(N_SHOWN))
    means, coefficients = means_of(truth, shown), None if kind == "kernel" else np.column_stack(
        [np.atleast_2d(truth.coef_), np.atleast_1d(truth.intercept_)]
    )  # fmt: skip
    if kind == "softmax":
        coefficients = coefficients - coefficients.mean(axis=0)
    hits, of_coefficients, widths = [], [], []
    rng = np.random.default_rng(7)
    for _ in range(repetitions):
        drawn = rng.integers(POPULATION, size=n_rows)
        model.fit(taken(drawn), targets[drawn])
        if isinstance(model._evidence, Evidence) and not known_scores(model._evidence).all():
            continue
        ends = model.predict_interval(shown, LEVEL)
        hits.append((ends[..., 0] <= means) & (means <= ends[..., 1]))
        widths.append(np.median(ends[..., 1] - ends[..., 0]))
        if coefficients is not None:
            low, high = model.uncertainty().intervals(LEVEL).T
            of_coefficients.append(np.mean((low <= coefficients.ravel()) & (coefficients.ravel() <= high)))
    by_repetition = np.array(hits).reshape(len(hits), -1).mean(axis=1)
    return {
        "rows": n_rows,
        "given": len(hits),
        "ratio": getattr(plan.intervals, "ratio", None),
        "means": round(float(by_repetition.mean()), 4),
        "standard_error": round(float(by_repetition.std() / len(hits) ** 0.5), 4),
        "least": round(float(np.mean(hits, axis=0).min()), 4),
        "width": round(float(np.median(widths)), 4),
        "coefficients": round(float(np.mean(of_coefficients)), 4) if of_coefficients else None,
    }


def _taken_of(rows: Any) -> Callable[[np.ndarray], Any]:
    return (lambda places: rows.iloc[places].reset_index(drop=True)) if rows is FRAME else (lambda places: rows[places])


def show(lines: list[dict[str, Any]]) -> None:
    """The table of README.md."""
    print("| model | rows | budget | ratio | given | means | least of a row | width | coefficients |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for line in lines:
        start = f"| {line['kind']} | {line.get('rows', CELLS[line['kind']][3]):,} | {line['budget']} |"
        if line.get("refused"):
            print(f"{start} refused by the plan | | | | | |")
            continue
        ratio = "" if line["ratio"] is None else f"{line['ratio']:.2f}"
        of_coefficients = "" if line["coefficients"] is None else f"{line['coefficients']:.3f}"
        print(
            f"{start} {ratio} | {line['given']} | {line['means']:.3f} +- {line['standard_error']:.3f} | "
            f"{line['least']:.3f} | {line['width']:.3f} | {of_coefficients} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path("predictions.jsonl"))
    parser.add_argument("--table", action="store_true", help="show the file and stop")
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    if not arguments.table:
        for name, budget in BUDGETS.items():
            for kind in CELLS:
                asked = {"kind": kind, "budget": name, "repetitions": arguments.repetitions}
                if any(asked.items() <= line.items() for line in lines):
                    continue
                lines.append(asked | measured(kind, budget, arguments.repetitions))
                with arguments.out.open("a") as file:
                    file.write(json.dumps(lines[-1]) + "\n")
    show(lines)


if __name__ == "__main__":
    main()
