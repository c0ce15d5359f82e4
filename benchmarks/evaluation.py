"""How often the intervals of an evaluation on private rows hold the rates of the population, and how wide they are.

A model is fitted once. Then rows are drawn from a large finite population, whose rates are known exactly, and evaluated
with fresh noise, again and again. There is one line for each kind of evaluation, budget and number of rows: the coverage of
each rate, and for comparisons the width of a difference over that of two evaluations at half of the budget each.

    python -m benchmarks.evaluation --repetitions 300 --out evaluation.jsonl        run, or go on
    python -m benchmarks.evaluation --out evaluation.jsonl --table                  show what is there
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd

import confide
from confide.inference.rates import Evaluation, roc_curve

POPULATION = 200_000
Y_NOISE = 0.15
BUDGETS = {"pure 1": confide.PureDP(1.0), "pure .25": confide.PureDP(0.25), "(1, 1e-6)": confide.ApproxDP(1.0, 1e-6)}
SIZES = (1_000, 4_000)


@dataclass(frozen=True)
class Kind:
    """A kind of evaluation: rows of the population, and what `evaluate` is asked."""

    rows: Any
    targets: Any
    model: Any
    asked: dict[str, Any]


def rows_of(seed: int, n: int = POPULATION) -> np.ndarray:
    """Rows with lengths uniform up to 1."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return np.asarray(X * rng.uniform(size=(n, 1)) / np.linalg.norm(X, axis=1, keepdims=True))


def classes_of(X: np.ndarray, n_classes: int, seed: int) -> np.ndarray:
    """Labels of a logistic model, the last class rare."""
    rng = np.random.default_rng(seed)
    weights = np.random.default_rng(n_classes).normal(size=(4, n_classes)) * 3.0
    shift = np.append(np.zeros(n_classes - 1), -1.0)
    return np.asarray((X @ weights + shift + rng.gumbel(size=(len(X), n_classes))).argmax(axis=1))


def numbers_of(X: np.ndarray, seed: int) -> np.ndarray:
    """Targets between -1 and 1 whose spread differs from row to row."""
    rng = np.random.default_rng(seed)
    noise = Y_NOISE * (0.5 + np.linalg.norm(X, axis=1)) * rng.normal(size=len(X))
    return np.clip(X @ np.array([0.7, -0.4, 0.3, 0.1]) + noise, -1.0, 1.0)


def kinds() -> dict[str, Callable[[], Kind]]:
    """Each kind, made when it is asked for."""
    X, train = rows_of(0), rows_of(1, 5_000)
    free = float("inf")

    def classifier(n_classes: int, n: int = 5_000, **more: Any) -> Any:
        model = confide.LogisticRegression(free, classes=list(range(n_classes)), **more)
        return model.fit(train[:n], classes_of(train[:n], n_classes, 2))

    def regressor(n: int = 5_000, **more: Any) -> Any:
        return confide.Ridge(free, target_bound=1.0, **more).fit(train[:n], numbers_of(train[:n], 2))

    def of_groups() -> Kind:
        sizes = np.random.default_rng(3).choice(3, size=POPULATION, p=[0.6, 0.3, 0.1])
        names = np.array(["a", "b", "c"])
        columns = {f"x{i}": {"low": -1.0, "high": 1.0} for i in range(4)} | {"group": {"categories": ["a", "b", "c"]}}
        schema = confide.Schema(columns=columns, target={"column": "y", "negative": 0, "positive": 1})
        frame = pd.DataFrame(X, columns=[f"x{i}" for i in range(4)]).assign(group=names[sizes])
        y = classes_of(X, 2, 4)
        model = confide.LogisticRegression(free, schema=schema).fit(frame[:5_000], y[:5_000])
        return Kind(frame, y, model, {"groups": "group"})

    labels = {k: classes_of(X, k, 4) for k in (2, 3, 7)}
    targets = numbers_of(X, 4)
    return {
        "two classes": lambda: Kind(X, labels[2], classifier(2), {"n_bins": 10}),
        "three classes": lambda: Kind(X, labels[3], classifier(3), {}),
        "seven classes": lambda: Kind(X, labels[7], classifier(7), {"n_bins": 0}),
        "numbers": lambda: Kind(X, targets, regressor(), {"clip": 0.5}),
        "numbers, no clip": lambda: Kind(X, targets, regressor(), {"n_bins": 0}),
        "groups": of_groups,
        "pair of classifiers": lambda: Kind(X, labels[3], classifier(3), {"other": classifier(3, 300, alpha=0.05)}),
        "pair of regressors": lambda: Kind(X, targets, regressor(), {"other": regressor(300, alpha=0.1), "clip": 0.5}),
    }


def values_of(found: Any) -> dict[str, Any]:
    """All rates of an evaluation by name, and bands as lists of rates."""
    if isinstance(found, Evaluation):
        rates = {name: getattr(found, name) for name in ("accuracy", "sensitivity", "specificity", "auc")}
        rates |= {f"confusion {i}{j}": found.confusion[i][j] for i in (0, 1) for j in (0, 1)}
        rates |= {f"bin {place}": rate for place, rate in enumerate(found.calibration)}
        rates["band of calibration"] = found.calibration_band
        rates["band of the ROC curve"] = roc_curve(found, 11).simultaneous_band if found.auc.value is not None else ()
        return rates
    rates = dict(found.rates)
    for group, of_group in found.by_group.items():
        rates |= {f"{name}, {group}": rate for name, rate in of_group.items() if group != "(not listed)"}
    if found.by_group:
        rates["accuracy, b less a"] = found.difference("accuracy", "b", "a")
    if hasattr(found, "f1"):
        rates |= {f"F1 of {label}": rate for label, rate in found.f1.items()}
        rates |= {f"confusion {i}{j}": rate for i, row in enumerate(found.confusion) for j, rate in enumerate(row)}
    if getattr(found.layout, "n_bins", 0):
        rates |= {f"bin {place}": rate for place, rate in enumerate(found.calibration)}
        rates["band of calibration"] = found.calibration_band
    return rates


def holds(rate: Any, truth: Any) -> bool | None:
    """Whether a rate's interval holds the truth, or a band all of its truths; None if the noise hides it."""
    if isinstance(rate, tuple):
        known = [holds(each, true) for each, true in zip(rate, truth, strict=False)]
        seen = [each for each in known if each is not None]
        return all(seen) if seen else None
    if rate.value is None or truth.value is None:
        return None
    return bool(rate.low <= truth.value <= rate.high)


def cell(name: str, kind: Kind, budget: Any, n_rows: int, repetitions: int) -> dict[str, Any]:
    """Coverage of each rate, its median width, and how often it was hidden."""
    truth = values_of(confide.evaluate(kind.model, kind.rows, kind.targets, budget=float("inf"), **kind.asked))
    rng, held = np.random.default_rng(crc32(f"{name} {budget} {n_rows}".encode())), {each: [] for each in truth}
    widths: dict[str, list[float]] = {each: [] for each in truth}
    ratios: dict[str, list[float]] = {}
    for repetition in range(repetitions):
        drawn = rng.integers(POPULATION, size=n_rows)
        rows = kind.rows.iloc[drawn] if hasattr(kind.rows, "iloc") else kind.rows[drawn]
        sample = (rows, kind.targets[drawn])
        found = confide.evaluate(kind.model, *sample, budget=budget, allow_hidden=True, **kind.asked)
        values = values_of(found)
        for each, rate in values.items():
            held[each].append(holds(rate, truth[each]))
            if not isinstance(rate, tuple) and rate.value is not None:
                widths[each].append(rate.high - rate.low)
        if "other" in kind.asked and repetition < 30:
            for each, ratio in ratios_of(kind, sample, budget, values).items():
                ratios.setdefault(each, []).append(ratio)
    rates = {
        each: {
            "coverage": float(np.mean([hit for hit in hits if hit is not None]))
            if any(h is not None for h in hits)
            else None,
            "hidden": float(np.mean([hit is None for hit in hits])),
            "width": float(np.median(widths[each])) if widths[each] else None,
        }
        for each, hits in held.items()
    }
    told = {each: float(np.median(found)) for each, found in ratios.items()}
    return {"kind": name, "n_rows": n_rows, "repetitions": repetitions, "rates": rates, "ratios": told}


def ratios_of(kind: Kind, sample: tuple[Any, Any], budget: Any, values: dict[str, Any]) -> dict[str, float]:
    """The width of each difference over that of two evaluations that share the budget."""
    amounts = {name: getattr(budget, name) / 2.0 for name in budget.ranges}
    half = type(budget)(**amounts)
    asked = {name: value for name, value in kind.asked.items() if name != "other"} | {"n_bins": 0}
    alone = [
        confide.evaluate(model, *sample, budget=half, allow_hidden=True, **asked)
        for model in (kind.model, kind.asked["other"])
    ]
    found = {}
    for name, rate in values.items():
        both = [each.rates.get(name) for each in alone]
        if rate.value is not None and all(each is not None and each.value is not None for each in both):
            found[name] = (rate.high - rate.low) / float(np.hypot(*(each.high - each.low for each in both)))
    return found


def cells() -> Iterator[tuple[str, str, int]]:
    """All cells: kind, budget and number of rows."""
    for name in kinds():
        for budget in BUDGETS:
            for n_rows in SIZES:
                # At a quarter of epsilon, a thousand rows are too few for most rates.
                if (budget, n_rows) != ("pure .25", 1_000):
                    yield name, budget, n_rows


def main() -> None:
    """Run what is missing in the file, or show what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("evaluation.jsonl"))
    parser.add_argument("--kinds", nargs="*", default=None)
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    lines = [json.loads(line) for line in given.out.read_text().splitlines()] if given.out.exists() else []
    if given.table:
        print(table(lines) + "\n\n" + pooled(lines))
        return
    done = {(line["kind"], line["budget"], line["n_rows"]) for line in lines}
    made = kinds()
    for name, budget, n_rows in cells():
        if (name, budget, n_rows) in done or (given.kinds and name not in given.kinds) or n_rows not in given.sizes:
            continue
        line = cell(name, made[name](), BUDGETS[budget], n_rows, given.repetitions) | {"budget": budget}
        with given.out.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(table([line]), flush=True)


def table(lines: list[dict[str, Any]]) -> str:
    """One row a cell: the least and the largest coverage of rates that are hidden at most half of the time, and of bands."""
    shown = [
        "| kind | budget | rows | coverage of rates | below .93, above .98 | bands | median width | difference / two alone |"
    ]
    shown.append("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for line in lines:
        known = {
            name: rate for name, rate in line["rates"].items() if rate["hidden"] <= 0.5 and rate["coverage"] is not None
        }
        rates = {name: rate["coverage"] for name, rate in known.items() if "band" not in name}
        bands = [f"{rate['coverage']:.3f}" for name, rate in known.items() if "band" in name]
        outside = [sum(c < 0.93 for c in rates.values()), sum(c > 0.98 for c in rates.values())]
        spread = f"{min(rates.values()):.3f} to {max(rates.values()):.3f} ({len(rates)})" if rates else "all hidden"
        main = next(iter(known), None)
        width = f"{main}: {known[main]['width']:.4f}" if main else ""
        ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in line["ratios"].items() if " of " not in name)
        shown.append(
            f"| {line['kind']} | {line['budget']} | {line['n_rows']:,} | {spread} | {outside[0]}, {outside[1]} | "
            f"{', '.join(bands)} | {width} | {ratios} |"
        )
    return "\n".join(shown)


def pooled(lines: list[dict[str, Any]]) -> str:
    """One row a kind: the coverage of each rate over all budgets and numbers of rows, where it is mostly not hidden."""
    found: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        for name, rate in line["rates"].items():
            if rate["hidden"] <= 0.5 and rate["coverage"] is not None:
                found.setdefault(line["kind"], {}).setdefault(name, []).append(rate["coverage"])
    shown = ["| kind | rates | least | largest | bands |", "| --- | --- | --- | --- | --- |"]
    for kind, rates in found.items():
        means = {name: float(np.mean(each)) for name, each in rates.items()}
        single = {name: mean for name, mean in means.items() if "band" not in name}
        least, largest = min(single, key=single.__getitem__), max(single, key=single.__getitem__)
        bands = ", ".join(f"{name.removeprefix('band of ')} {mean:.3f}" for name, mean in means.items() if "band" in name)
        shown.append(
            f"| {kind} | {len(single)} | {single[least]:.3f} ({least}) | {single[largest]:.3f} ({largest}) | {bands} |"
        )
    return "\n".join(shown)


if __name__ == "__main__":
    main()
