"""How often intervals from weighted, clustered and finite samples hold the population's coefficients, and how wide they are.

A population of 40,000 units has five strata, whose rows have design weights of 1, 2, 5, 10 and 20. The outcome depends on
the stratum beyond the columns of the model, so a fit without weights would miss the population's coefficients. One JSON line
a cell: coverage over repetitions and coefficients for each target, the median width over that of the same intervals without
noise and ridge (the weighted sandwich of the population, as in R's survey package without strata), and the forecast of the
plan over the same. A file of lines is continued where it ends.

    python benchmarks/survey_weights.py --repetitions 500 --out survey_weights.jsonl     run, or go on
    python benchmarks/survey_weights.py --out survey_weights.jsonl --table               show what is there

Kinds of samples:

strata     a sample with replacement of fixed size in each stratum
chances    rows drawn with chances that rise with two columns, weights from 1 to 20 without strata
persons    persons of three rows that depend on each other, drawn by stratum; no design effect is declared
declared   the same, with the design effect of clustering declared (that of the population, for the worst coefficient)
finite     a quarter of the population, drawn by stratum without replacement; the target is this population, of known size
half       half of the population, drawn without replacement, all rows alike, the same target
ignored    as strata, but the fit is told of no weights: what weights are for
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cells import measured_once, options
from scipy.special import expit

import confide

POPULATION = 39_999
"""A multiple of 3, for persons of three rows."""
DELTA = 1e-6
WEIGHTS = np.array([1.0, 2.0, 5.0, 10.0, 20.0])
STEPS = np.array([0.6, 0.3, 0.0, -0.2, -0.4])
"""What a stratum adds to the log-odds."""


@dataclass(frozen=True)
class Population:
    """Rows (N, d), the chance of the second class (N,), the weight (N,) of each row, and the stratum of each (N,)."""

    rows: np.ndarray
    chances: np.ndarray
    weights: np.ndarray
    strata: np.ndarray
    rows_of_person: int = 1

    @classmethod
    def of(cls, kind: str, d: int) -> Population:
        """The population of a kind of sample."""
        rng = np.random.default_rng(d)
        persons = 3 if kind in ("persons", "declared") else 1
        # Rows of a person share most of their columns and a part of their log-odds.
        of_person = rng.normal(size=(POPULATION // persons, d)).repeat(persons, axis=0)
        rows = of_person if persons == 1 else np.sqrt(0.7) * of_person + np.sqrt(0.3) * rng.normal(size=(POPULATION, d))
        lengths = rng.uniform(size=(POPULATION // persons, 1)).repeat(persons, axis=0)
        rows *= np.sqrt(lengths) / np.linalg.norm(rows, axis=1, keepdims=True)
        weights = rng.normal(size=d)
        weights *= 0.9 / np.std(rows @ weights)
        hidden = (of_person[:, 0] + rng.normal(size=POPULATION // persons).repeat(persons)) / np.sqrt(2.0)
        strata = np.searchsorted(np.quantile(hidden, [0.1, 0.25, 0.45, 0.7]), hidden)
        shared = 0.0 if persons == 1 else 1.5 * rng.normal(size=POPULATION // persons).repeat(persons)
        chances = expit(rows @ weights + 0.3 + STEPS[strata] + shared)
        own = WEIGHTS[strata]
        if kind == "chances":
            own = 20.0 ** expit(3.0 * rows[:, 0] + 3.0 * rows[:, 1])
        if kind == "half":
            own = np.ones(POPULATION)
        if kind in ("finite", "half"):
            chances = (rng.uniform(size=POPULATION) < chances).astype(float)
        return cls(rows, chances, own, strata, persons)

    @property
    def mean_weight(self) -> float:
        """The mean weight of a sample whose rows have chances inversely proportional to their weights."""
        return float(1.0 / np.mean(1.0 / self.weights))

    def minimiser(self, alpha: float) -> np.ndarray:
        """The weights that minimise the mean loss of the population with this ridge, by Newton's method."""
        design, found = self.design, np.zeros(self.rows.shape[1] + 1)
        for _ in range(60):
            fitted = expit(design @ found)
            gradient = design.T @ (fitted - self.chances) / len(design) + alpha * found
            bent = (design * (fitted * (1.0 - fitted))[:, None]).T @ design / len(design)
            found = found - np.linalg.solve(bent + alpha * np.eye(len(found)), gradient)
        assert np.linalg.norm(gradient) < 1e-9
        return found

    @property
    def design(self) -> np.ndarray:
        """(N, d + 1): the rows with the constant of the intercept."""
        return np.column_stack([self.rows, np.ones(len(self.rows))])

    def plain_margins(self, n: int) -> np.ndarray:
        """(d + 1,): half widths of 95% intervals without noise, ridge and strata, for samples of n rows."""
        return 1.959964 * np.sqrt(np.diagonal(self._covariance(self._squares())) / n)

    def cluster_effect(self) -> float:
        """The largest design effect of clustering over the coefficients and all their combinations."""
        fitted = expit(self.design @ self.minimiser(0.0))
        slopes = (fitted - self.chances)[:, None] * self.design
        n_persons = len(slopes) // self.rows_of_person
        together = slopes.reshape(n_persons, self.rows_of_person, -1).sum(axis=1)
        # Labels are independent given the chances, so only the expected slopes of a person's rows depend on each other.
        by_person = self.weights[:: self.rows_of_person, None]
        between = (together * by_person).T @ together - (slopes * self.weights[:, None]).T @ slopes
        squares = self._squares() * len(slopes) / self.mean_weight
        return float(np.linalg.eigvals(np.linalg.solve(squares, squares + between)).real.max())

    def _squares(self) -> np.ndarray:
        """The mean of w s^2 x x^T over the population times the mean weight: that of w^2 s^2 x x^T over a sample."""
        fitted = expit(self.design @ self.minimiser(0.0))
        square = self.chances * (1.0 - fitted) ** 2 + (1.0 - self.chances) * fitted**2
        return (self.design * (self.weights * square)[:, None]).T @ self.design / len(self.rows) * self.mean_weight

    def _covariance(self, squares: np.ndarray) -> np.ndarray:
        fitted = expit(self.design @ self.minimiser(0.0))
        bent = self.mean_weight * (self.design * (fitted * (1.0 - fitted))[:, None]).T @ self.design / len(self.rows)
        inverse = np.linalg.inv(bent)
        return inverse @ squares @ inverse

    def sampled(self, rng: np.random.Generator, kind: str, n: int) -> np.ndarray:
        """The places of the rows of one sample."""
        if kind == "half":
            return rng.choice(POPULATION, size=n, replace=False)
        if kind == "chances":
            chance = 1.0 / self.weights
            return rng.choice(POPULATION, size=n, p=chance / chance.sum())
        k = self.rows_of_person
        first = np.arange(0, POPULATION, k)
        sizes = np.bincount(self.strata[first]) / WEIGHTS
        sizes = np.round(n // k * sizes / sizes.sum()).astype(int)
        sizes[-1] += n // k - sizes.sum()
        drawn = [
            rng.choice(first[self.strata[first] == stratum], size=size, replace=kind != "finite")
            for stratum, size in enumerate(sizes)
        ]
        return (np.concatenate(drawn)[:, None] + np.arange(k)).ravel()


def measured(kind: str, what: str, d: int, n: int, epsilon: float, currency: str, neighbours: str, repetitions: int) -> dict:
    """One cell."""
    population = Population.of(kind, d)
    budget = confide.PureDP(epsilon) if currency == "pure" else confide.ApproxDP(epsilon, DELTA)
    bounds = None if neighbours == "replace-one" else (n // 2, 2 * n)
    largest = float(population.weights.max())
    facts: dict[str, Any] = {"max_sample_weight": largest, "mean_sample_weight": population.mean_weight}
    facts |= {"max_rows_per_person": population.rows_of_person}
    if kind == "declared":
        facts["cluster_effect"] = population.cluster_effect()
    if kind in ("finite", "half"):
        facts["population_size"] = len(population.rows)
    if kind == "ignored":
        facts = {}
    facts |= {"interest": ["x0"]} if what == "interest" else {"inference_share": "auto"}
    model = confide.LogisticRegression(
        budget, classes=[0, 1], row_norm=1.0, neighbours=neighbours, n_rows_bounds=bounds, **facts
    )
    try:
        plan = model.plan(None if bounds else n, d)
    except confide.ParameterError as refusal:
        return {"refused": True, "reason": str(refusal)}
    plain = population.plain_margins(n)[: 1 if what == "interest" else None]
    truth_at = cache(population.minimiser)  # the ridge is the same in every repetition
    rng = np.random.default_rng((d, n, int(100 * epsilon)))
    hits: dict[str, list] = {"regularised": [], "unregularised": []}
    widths: dict[str, list] = {"regularised": [], "unregularised": []}
    refused = 0
    for _ in range(repetitions):
        places = population.sampled(rng, kind, n)
        labels = (rng.uniform(size=len(places)) < population.chances[places]).astype(int)
        weights = {} if kind == "ignored" else {"sample_weight": population.weights[places]}
        model.fit(population.rows[places], labels, **weights)
        for target in hits:
            if what == "interest" and target == "regularised":
                continue
            truth = truth_at(0.0)
            if target == "regularised":
                low = n if bounds is None else bounds[0]
                ridge = model.alpha_ * low / n / (1.0 if kind == "ignored" else population.mean_weight)
                truth = truth_at(ridge)
            try:
                found = model.uncertainty(target)
            except confide.ParameterError:
                refused += 1
                continue
            margins = found.margins(0.95)
            hits[target].append(np.abs(found.estimates - truth[: len(margins)]) <= margins)
            widths[target].append(margins / plain)
    line: dict[str, Any] = {"mean_weight": round(population.mean_weight, 3), "refused_corrections": refused}
    if kind == "declared":
        line["cluster_effect"] = round(facts["cluster_effect"], 3)
    for target in hits:
        if hits[target]:
            line[target] = _shown(np.array(hits[target]), np.array(widths[target]))
    forecast = plan.intervals
    expected = forecast.margin(forecast.combinations[0]) if what == "interest" else forecast.margin
    line["forecast_width"] = round(float(expected / np.median(plain[:d])), 3)
    return line


def _shown(hits: np.ndarray, widths: np.ndarray) -> dict[str, float]:
    by_repetition = hits.mean(axis=1)
    return {
        "coverage": round(float(hits.mean()), 4),
        "standard_error": round(float(by_repetition.std() / np.sqrt(len(hits))), 4),
        "least": round(float(hits.mean(axis=0).min()), 4),
        "width": round(float(np.median(widths)), 3),
    }


def cells() -> Iterator[dict]:
    """The cells of the table."""
    sizes = [(4, 5_000, 1.0), (4, 10_000, 1.0), (4, 20_000, 1.0), (4, 20_000, 0.5), (4, 50_000, 1.0), (10, 50_000, 1.0)]
    for what in ("all", "interest"):
        for d, n, epsilon in sizes:
            yield cell("strata", what, d, n, epsilon)
        yield cell("chances", what, 4, 20_000, 1.0)
        yield cell("ignored", what, 4, 20_000, 1.0)
        yield cell("strata", what, 4, 50_000, 1.0, currency="pure")
        yield cell("strata", what, 4, 50_000, 1.0, neighbours="add-or-remove-one")
        yield cell("persons", what, 4, 60_000, 2.0)
        yield cell("declared", what, 4, 60_000, 2.0)
        yield cell("finite", what, 4, 10_000, 2.0)
        yield cell("half", what, 4, 20_000, 2.0)


def cell(
    kind: str, what: str, d: int, n: int, epsilon: float, currency: str = "approximate", neighbours: str = "replace-one"
) -> dict:
    """The facts of one cell, by name."""
    facts = {"kind": kind, "what": what, "d": d, "n": n, "epsilon": epsilon}
    return facts | {"currency": currency, "neighbours": neighbours}


def show(lines: list[dict[str, Any]]) -> None:
    """The table of README.md."""
    heading = "sample    intervals  d      n  eps  budget       neighbours         regularised    width  unregularised"
    print(f"{heading}  width  plan")
    for line in lines:
        start = f"{line['kind']:9s} {line['what']:9s} {line['d']:2d} {line['n']:6d} {line['epsilon']:4g}  "
        start += f"{line['currency']:11s}  {line['neighbours']:17s}"
        if line.get("refused"):
            print(f"{start}  refused")
            continue
        parts = []
        for target in ("regularised", "unregularised"):
            found = line.get(target)
            parts.append(
                f"{found['coverage']:.3f} ({found['least']:.3f})  {found['width']:5.2f}" if found else " " * 13 + "      "
            )
        print(f"{start}  {parts[0]}  {parts[1]}  {line['forecast_width']:5.2f}")


def main() -> None:
    show(measured_once(options(__doc__, "survey_weights.jsonl").parse_args(), cells(), measured))


if __name__ == "__main__":
    main()
