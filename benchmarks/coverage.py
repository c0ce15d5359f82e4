"""How often intervals hold the population's coefficients, and how wide they are.

Rows are drawn from a finite population of 20,000 directions and lengths, labels from a logistic model, targets from a linear
one, so that the population's minimiser with any ridge is known exactly. One JSON line a cell: coverage and median width over
repetitions and coefficients, for both targets, and the width of intervals without noise and ridge, those of statsmodels with
HC0 errors. A file of lines is continued where it ends.

    python benchmarks/coverage.py --repetitions 50 --out coverage.jsonl        run, or go on
    python benchmarks/coverage.py --out coverage.jsonl --table                 show what is there
    python benchmarks/coverage.py --out regression.jsonl --models huber ridge  the same for regressions, on fewer cells
    python benchmarks/coverage.py --out classes.jsonl --models softmax one-vs-rest  the same for three and seven classes
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.special import expit, softmax

import confide
from confide.inference import forecast

POPULATION = 20_000
DELTA = 1e-6
LARGEST_RESIDUAL = 0.35


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


@dataclass(frozen=True)
class Logistic:
    """Logistic regression."""

    rows: np.ndarray
    truth: np.ndarray
    chances: np.ndarray

    @classmethod
    def of(cls, d: int) -> Logistic:
        """The population of so many columns."""
        return cls(*population_of(d))

    def estimator(self, budget: Any, mechanism: str, share: float | str) -> Any:
        """The model, unfitted."""
        return confide.LogisticRegression(budget, mechanism=mechanism, inference_share=share, classes=[0, 1], row_norm=1.0)

    def drawn(self, rng: np.random.Generator, places: np.ndarray) -> np.ndarray:
        """Labels of the rows at these places."""
        return (rng.uniform(size=len(places)) < self.chances[places]).astype(int)

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By row of the population: mean slope, mean squared slope and mean curvature at these weights."""
        fitted = expit(self.rows @ weights[:-1] + weights[-1])
        square = self.chances * (1 - fitted) ** 2 + (1 - self.chances) * fitted**2
        return fitted - self.chances, square, fitted * (1 - fitted)


@dataclass(frozen=True)
class Linear:
    """Least squares, or Huber's loss: targets are a linear function of rows and uniform residuals, none beyond 1."""

    rows: np.ndarray
    truth: np.ndarray
    threshold: float

    @classmethod
    def of(cls, d: int, threshold: float) -> Linear:
        """The population of so many columns."""
        rows, weights, _ = population_of(d)
        weights[-1] = 0.1
        weights[:-1] *= 0.5 / np.abs(rows @ weights[:-1]).max()
        return cls(rows, weights, threshold)

    def estimator(self, budget: Any, mechanism: str, share: float | str) -> Any:
        """The model, unfitted."""
        if mechanism == "sums":
            return confide.Ridge(budget, intervals=True, target_bound=1.0)
        return confide.HuberRegressor(
            budget, mechanism=mechanism, inference_share=share, threshold=self.threshold, target_bound=1.0
        )

    def drawn(self, rng: np.random.Generator, places: np.ndarray) -> np.ndarray:
        """Targets of the rows at these places."""
        means = self.rows[places] @ self.truth[:-1] + self.truth[-1]
        return means + rng.uniform(-LARGEST_RESIDUAL, LARGEST_RESIDUAL, size=len(places))

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By row of the population: mean slope, mean squared slope and mean curvature at these weights."""
        change = weights - self.truth
        shift, r, h = self.rows @ change[:-1] + change[-1], LARGEST_RESIDUAL, self.threshold
        low, high = np.clip(shift - r, -h, h), np.clip(shift + r, -h, h)
        beyond = np.maximum(shift + r - h, 0.0), np.maximum(-h - (shift - r), 0.0)
        # Integrals of the clipped residual over the uniform law of residuals.
        slope = ((high**2 - low**2) / 2 + h * (beyond[0] - beyond[1])) / (2 * r)
        square = ((high**3 - low**3) / 3 + h**2 * (beyond[0] + beyond[1])) / (2 * r)
        return slope, square, (high - low) / (2 * r)


@dataclass(frozen=True)
class Classes:
    """Several classes of a softmax model, fitted by it or one class against the rest; no class is rare."""

    rows: np.ndarray
    truth: np.ndarray
    chances: np.ndarray
    multiclass: str

    @classmethod
    def of(cls, d: int, n_classes: int, multiclass: str) -> Classes:
        """The population of so many columns and classes."""
        rows, _, _ = population_of(d)
        rng = np.random.default_rng((d, n_classes))
        weights = np.column_stack([rng.normal(size=(n_classes, d)), rng.uniform(-0.3, 0.3, size=n_classes)])
        weights -= weights.mean(axis=0)
        weights[:, :-1] *= 1.5 * (d * n_classes) ** 0.5 / np.linalg.norm(weights[:, :-1])
        return cls(rows, weights.ravel(), softmax(rows @ weights[:, :-1].T + weights[:, -1], axis=1), multiclass)

    def estimator(self, budget: Any, mechanism: str, share: float | str) -> Any:
        """The model, unfitted."""
        classes = list(range(self.chances.shape[1]))
        return confide.LogisticRegression(
            budget, mechanism=mechanism, inference_share=share, classes=classes, multiclass=self.multiclass, row_norm=1.0
        )

    def drawn(self, rng: np.random.Generator, places: np.ndarray) -> np.ndarray:
        """Classes of the rows at these places."""
        return (rng.uniform(size=(len(places), 1)) > self.chances[places].cumsum(axis=1)[:, :-1]).sum(axis=1)

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """By row, in its scores: mean slope, mean product of slopes and mean curvature at these weights."""
        own = self.chances
        scores = np.column_stack([self.rows, np.ones(len(self.rows))]) @ weights.reshape(own.shape[1], -1).T
        one = np.eye(own.shape[1])
        if self.multiclass == "softmax":
            p = softmax(scores, axis=1)
            mixed = p[:, :, None] * own[:, None, :]
            outer = p[:, :, None] * p[:, None, :]
            square = outer - mixed - mixed.transpose(0, 2, 1) + own[:, :, None] * one
            return p - own, square, p[:, :, None] * one - outer
        p = expit(scores)
        square = own * (1 - p) ** 2 + (1 - own) * p**2
        # Products between two classes say nothing about the weights of one.
        return p - own, square[:, :, None] * one, (p * (1 - p))[:, :, None] * one


Population = Logistic | Linear | Classes


def sums_of(population: Population, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean gradient, mean product of gradients and mean Hessian of the population."""
    design = np.column_stack([population.rows, np.ones(len(population.rows))])
    slope, square, curvature = population.moments(weights)
    gradient = np.atleast_2d(slope.T @ design).ravel() / len(design)

    def summed(factors: np.ndarray) -> np.ndarray:
        factors = factors.reshape(len(design), round((factors.size / len(design)) ** 0.5), -1)
        blocks = [[(design * column[:, None]).T @ design for column in row.T] for row in factors.transpose(1, 0, 2)]
        return np.block(blocks) / len(design)

    return gradient, summed(square), summed(curvature)


def minimiser(population: Population, alpha: float) -> np.ndarray:
    """The population's weights with this ridge, by Newton's method; of softmax without one those whose mean is 0."""
    weights = np.zeros_like(population.truth)
    for _ in range(60):
        gradient, _, hessian = sums_of(population, weights)
        gradient = gradient + alpha * weights
        weights = weights - np.linalg.pinv(hessian + alpha * np.eye(len(weights)), rcond=1e-12) @ gradient
        if np.linalg.norm(gradient) < 1e-13:
            break
    assert np.linalg.norm(gradient) < 1e-9
    return weights


def plain_width(population: Population, n: int, alpha: float = 0.0) -> float:
    """Median width without noise, by the sandwich of the population; without ridge that of statsmodels with HC0 errors."""
    weights = minimiser(population, alpha)
    _, square, hessian = sums_of(population, weights)
    inverse = np.linalg.pinv(hessian + alpha * np.eye(len(weights)), rcond=1e-12)
    spread = inverse @ (square - alpha**2 * np.outer(weights, weights)) @ inverse
    return float(np.median(2 * 1.959964 * np.sqrt(np.diagonal(spread) / n)))


def population_for(kind: str, d: int, n_classes: int) -> Population:
    """That of a kind of model."""
    if kind in ("softmax", "one-vs-rest"):
        return Classes.of(d, n_classes, kind)
    return Logistic.of(d) if kind == "logistic" else Linear.of(d, 0.1 if kind == "huber" else 10.0)


def measured(
    kind: str, d: int, n: int, epsilon: float, currency: str, mechanism: str, share: float | str, repetitions: int,
    n_classes: int = 2,
) -> dict:  # fmt: skip
    """One cell."""
    population = population_for(kind, d, n_classes)
    model = population.estimator(budget_of(currency, epsilon), mechanism, share)
    try:
        plan = model.plan(n, d)
    except confide.ParameterError as refusal:
        return {"refused": True, "reason": str(refusal)}
    targets = {"regularised": minimiser(population, plan.alpha)}
    if plan.mechanism != "output":
        targets["unregularised"] = minimiser(population, 0.0)
    rng = np.random.default_rng((d, n, int(10 * epsilon)))
    hits = {target: [] for target in targets}
    widths = {target: [] for target in targets}
    for _ in range(repetitions):
        drawn = rng.integers(POPULATION, size=n)
        model.fit(population.rows[drawn], population.drawn(rng, drawn))
        for target, weights in targets.items():
            try:
                ends = model.uncertainty(target).intervals(0.95)
            except confide.ParameterError:
                continue  # the noise is too large to take the ridge back
            hits[target].append((ends[:, 0] <= weights) & (weights <= ends[:, 1]))
            widths[target].append(ends[:, 1] - ends[:, 0])
    answer = {"ratio": plan.intervals.ratio, "alpha": plan.alpha, "plain_width": round(plain_width(population, n), 4)}
    for target in targets:
        if len(hits[target]) < repetitions / 2:
            continue
        by_repetition = np.mean(hits[target], axis=1)
        answer[target] = {
            "repetitions": len(hits[target]),
            "coverage": round(float(by_repetition.mean()), 4),
            "standard_error": round(float(by_repetition.std() / len(by_repetition) ** 0.5), 4),
            "least": round(float(np.mean(hits[target], axis=0).min()), 4),
            "width": round(float(np.median(widths[target])), 4),
        }
    return answer


def cells_of(kind: str) -> Iterator[dict]:
    """The grid of one kind of model."""
    sizes, budgets = ((4, 20), (2_000, 10_000, 50_000)), ((0.5, 1.0, 4.0), ("pure", "zcdp"))
    mechanisms = ("sums",) if kind == "ridge" else ("objective", "output")
    if kind in ("softmax", "one-vs-rest"):
        sizes, budgets = ((4,), (5_000, 20_000)), ((1.0, 4.0), ("pure", "approximate", "zcdp"))
        for n, d, epsilon, currency, mechanism, n_classes in itertools.product(
            *reversed(sizes), *budgets, mechanisms, (3, 7)
        ):
            cell = {"kind": kind, "d": d, "n": n, "epsilon": epsilon, "currency": currency, "mechanism": mechanism}
            yield cell | {"n_classes": n_classes}
        return
    if kind != "logistic":
        sizes, budgets = ((4, 20), (2_000, 10_000)), ((1.0, 4.0), ("pure", "zcdp"))
    for n, d, epsilon, currency, mechanism in itertools.product(*reversed(sizes), *budgets, mechanisms):
        yield {"kind": kind, "d": d, "n": n, "epsilon": epsilon, "currency": currency, "mechanism": mechanism}


def show(lines: list[dict]) -> None:
    """The table of README.md: of each target coverage, width, and width over that of statsmodels."""
    print(
        "model         d      n  eps  currency     mechanism  ratio  regularised        width       unregularised      width"
    )
    order = ("kind", "n_classes", "d", "n", "epsilon", "currency")
    for line in sorted(lines, key=lambda line: [line.get(name, 2) for name in order]):
        kind = line["kind"] + (f" {line['n_classes']}" if "n_classes" in line else "")
        start = f"{kind:13s} {line['d']:3d} {line['n']:6d} {line['epsilon']:4g}  {line['currency']:11s}"
        start += f"  {line['mechanism']:9s}"
        if line.get("refused"):
            print(f"{start}  refused")
            continue
        row = start + f"  {line['ratio']:5.2f}"
        for target in ("regularised", "unregularised"):
            if target in line:
                cell = line[target]
                row += f"  {cell['coverage']:.3f} +- {cell['standard_error']:.3f}  {cell['width']:6.3f}"
                row += f" {cell['width'] / line['plain_width']:5.2f}x"
        print(row)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=500)
    parser.add_argument("--out", type=Path, default=Path("coverage.jsonl"))
    parser.add_argument("--share", default="0.3")
    parser.add_argument(
        "--models", nargs="+", default=["logistic"], choices=["logistic", "huber", "ridge", "softmax", "one-vs-rest"]
    )
    parser.add_argument("--largest-ratio", type=float, default=None, help="inf: no cell is refused")
    parser.add_argument("--table", action="store_true", help="show the file and stop")
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    if not arguments.table:
        if arguments.largest_ratio is not None:
            for name in ("LARGEST_RATIO", "LARGEST_RESIDUAL_RATIO", "LARGEST_SUMS_RATIO"):
                setattr(forecast, name, arguments.largest_ratio)
        share = arguments.share if arguments.share == "auto" else float(arguments.share)
        for cell in itertools.chain.from_iterable(map(cells_of, arguments.models)):
            asked = cell | {"asked_share": share, "repetitions": arguments.repetitions}
            if any(asked.items() <= line.items() for line in lines):
                continue
            lines.append(asked | measured(**cell, share=share, repetitions=arguments.repetitions))
            with arguments.out.open("a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
    show(lines)


if __name__ == "__main__":
    main()
