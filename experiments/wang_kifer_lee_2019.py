"""Wang, Kifer and Lee, Differentially private confidence intervals for empirical risk minimization (JPC 2019): real data.

The model is logistic regression on rows of norm 1, with the paper's ridge c = .001 (alpha = .002) and three tenths of the
budget for the moments. A data set is the population, and samples are drawn from it with replacement, so that the
coefficients that intervals should contain are known. Budgets are pure, or concentrated ones that imply (epsilon, 1e-6).
Noise is in the objective or on the weights; for concentrated budgets the paper's choice, Laplace noise in the objective, is
measured too. The nominal level is .95. The noise is not seeded, so another run gives other digits within the standard
errors.

- "few": a few columns of each data set with public bounds, 20 repetitions;
- "whole": all columns, each between 0 and 1 by its smallest and largest value, 6 repetitions. Cells that the library refuses
  are measured all the same, without its limits, to see what it protects from.

Run: python experiments/wang_kifer_lee_2019.py [--quick]      all but Adult need CONFIDE_DATA_DIR
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import numpy as np
from cells import Cell
from coverage import Logistic, budget_of, minimiser, sums_of
from interval_lengths import plan_of, widths
from pages import aligned, options
from prepared_data import between_0_and_1, is_there, table_of

import confide
from confide.inference import forecast, intervals

ALPHA = 0.002
MECHANISMS = {"pure": ("objective", "output"), "zcdp": ("objective", "output", "objective, Laplace")}
SIZES = {"adult": 45_222, "bank": 45_211, "kddcup99": 50_000, "nltcs": 21_574}
WHOLE_SIZES = {"adult": 45_222, "bank": 45_211, "kddcup99": 50_000, "ipums_br": 38_000}
LARGEST_POPULATION = 70_000
NORMAL_WIDTH = 2.0 * 1.959964
COLUMNS: dict[str, dict[str, Any]] = {
    "adult": {
        "age": {"low": 17, "high": 90},
        "education-num": {"low": 1, "high": 16},
        "hours-per-week": {"low": 0, "high": 99},
        "capital-gain": {"low": 0, "high": 99_999, "scale": "log"},
        "capital-loss": {"low": 0, "high": 99_999, "scale": "log"},
        "sex": {"categories": ["Female", "Male"]},
    },
    "bank": {
        "age": {"low": 18, "high": 100},
        "balance": {"low": -10_000, "high": 110_000},
        "duration": {"low": 0, "high": 5_000, "scale": "log"},
        "campaign": {"low": 1, "high": 100, "scale": "log"},
        "housing": {"categories": ["no", "yes"]},
        "loan": {"categories": ["no", "yes"]},
    },
    "kddcup99": {
        "logged_in": {"low": 0, "high": 1},
        "count": {"low": 0, "high": 511, "scale": "log"},
        "srv_count": {"low": 0, "high": 511, "scale": "log"},
        "serror_rate": {"low": 0, "high": 1},
        "same_srv_rate": {"low": 0, "high": 1},
        "dst_host_count": {"low": 0, "high": 255},
        "dst_host_srv_count": {"low": 0, "high": 255},
    },
    "nltcs": {f"item{place}": {"low": 0, "high": 1} for place in range(1, 16)},
}


@lru_cache(maxsize=1)
def population_of(part: str, name: str) -> Logistic:
    """The rows of a data set, each of norm 1, with their labels; of KDD Cup 99 a random 70,000."""
    frame, labels = table_of(name)
    if len(frame) > LARGEST_POPULATION:
        order = np.random.default_rng(2019).permutation(len(frame))[:LARGEST_POPULATION]
        frame, labels = frame.iloc[order], labels[order]
    if part == "whole":
        rows = between_0_and_1(frame)
    else:
        columns = COLUMNS[name]
        rows = np.asarray(confide.SchemaEncoder(confide.Schema(columns=columns)).fit_transform(frame[list(columns)]), float)
    rows /= np.maximum(1e-12, np.linalg.norm(rows, axis=1, keepdims=True))
    return Logistic(rows, np.zeros(rows.shape[1] + 1), labels.astype(float))


@contextmanager
def without_limits() -> Iterator[None]:
    """Plans and intervals that the library refuses because the noise hides the curvature."""
    places = (forecast, "LARGEST_RATIO"), (intervals, "_LARGEST_RATIO_OF_TWO_CLASSES")
    limits = [getattr(*place) for place in places]
    for place in places:
        setattr(*place, float("inf"))
    try:
        yield
    finally:
        for place, limit in zip(places, limits, strict=True):
            setattr(*place, limit)


def measure(cell: Cell) -> Cell:
    """Coverage and width over repetitions, beside the width without noise and the one that the formula expects."""
    population = population_of(cell["part"], cell["data"])
    columns, n = population.rows.shape[1], cell["n"]
    asked = budget_of(cell["currency"], cell["epsilon"]), cell["mechanism"], ALPHA, columns, n
    with without_limits():
        plan = plan_of(*asked)
        is_refused = plan.intervals.ratio > 1.75
        if is_refused and cell["part"] == "few":
            return {"columns": columns, "ratio": round(plan.intervals.ratio, 3), "refused": True}
        target, sampling, shares = asymptotics(cell["part"], cell["data"], plan.alpha)
        size, tenths, coverage, error = widths(plan, population, n, cell["repetitions"], target)
    noise = plan.noise_norm / np.sqrt(columns + 1)
    expected = np.sqrt(sampling**2 / n + (noise * (shares if plan.perturbs_objective else 1.0)) ** 2)
    return {
        "columns": columns,
        "ratio": round(plan.intervals.ratio, 3),
        "refused": is_refused,
        "alpha": plan.alpha,
        "largest_coefficient": round(float(np.abs(target).max()), 3),
        "shares": [round(float(value), 4) for value in np.quantile(shares, (0.25, 0.5, 0.75))],
        "noise": float(f"{noise:.4g}"),
        "plain_width": round(NORMAL_WIDTH * float(np.median(sampling)) / n**0.5, 4),
        "expected_width": round(NORMAL_WIDTH * float(np.median(expected)), 4),
        "width": round(size, 4),
        "width_tenths": [round(value, 4) for value in tenths],
        "coverage": round(coverage, 4),
        "standard_error": round(error, 4),
    }


@lru_cache(maxsize=4)
def asymptotics(part: str, name: str, alpha: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(D,) each: the population's weights, their standard errors at one row without noise, and shares of noise.

    A share is alpha times the length of a row of the inverse Hessian. Noise in the objective reaches the weights divided by
    the curvature of rows and ridge, noise on the weights is divided by the ridge alone. So the share of the former that gets
    through is 1 in a direction in which the rows have no curvature, and near 0 where they have much.
    """
    population = population_of(part, name)
    weights = minimiser(population, alpha)
    _, square, hessian = sums_of(population, weights)
    inverse = np.linalg.inv(hessian + alpha * np.eye(len(weights)))
    variances = np.diagonal(inverse @ (square - alpha**2 * np.outer(weights, weights)) @ inverse)
    return weights, np.sqrt(np.maximum(0.0, variances)), alpha * np.linalg.norm(inverse, axis=0)


def cells_of(quick: bool) -> Iterator[Cell]:
    """All data sets, currencies and mechanisms."""
    for part, sizes in (("few", SIZES), ("whole", WHOLE_SIZES)):
        for data in ("adult",) if quick else sizes:
            n, repetitions = (20_000, 2) if quick else (sizes[data], 20 if part == "few" else 6)
            for currency, mechanisms in MECHANISMS.items():
                for epsilon in (4.0,) if quick else (1.0, 4.0):
                    for mechanism in mechanisms:
                        cell = {"part": part, "data": data, "n": n, "currency": currency, "epsilon": epsilon}
                        yield cell | {"mechanism": mechanism, "repetitions": repetitions}


def text_of(lines: list[Cell]) -> str:
    """One table."""
    rows = []
    for line in lines:
        row = [
            line["data"],
            f"{line['columns']}",
            f"{line['n']}",
            line["currency"],
            f"{line['epsilon']:g}",
            line["mechanism"],
        ]
        if line.get("refused"):
            rows.append([*row, "", "refused", "", ""])
            continue
        over = f"{line['width'] / line['plain_width']:.2f}x"
        rows.append(
            [
                *row,
                f"{line['ratio']:.2f}",
                f"{line['coverage']:.3f} +- {line['standard_error']:.3f}",
                f"{line['width']:.4f}",
                over,
            ]
        )
    head = ["data", "columns", "n", "currency", "epsilon", "mechanism", "ratio", "coverage", "width", "over plain"]
    repetitions = lines[0]["repetitions"]
    return (
        f"Coverage and median width of 95% intervals, {repetitions} repetitions a cell; the last column is over the width "
        f"without privacy at the same ridge, the ratio is that by which the library refuses.\n\n{aligned(head, rows)}"
    )


def draw(lines: list[Cell], path: Path) -> None:
    """Coverage above, width over that without privacy below, by data set and epsilon; cells that were refused are marked."""
    import drawing

    figure, axes = drawing.panels(2, 2, sharey="row")
    names = list(dict.fromkeys(line["data"] for line in lines))
    epsilons = sorted({line["epsilon"] for line in lines})
    places = [f"{name}\n{epsilon:g}" for name in names for epsilon in epsilons]

    def place_of(line: Cell) -> int:
        return places.index(f"{line['data']}\n{line['epsilon']:g}")

    for (currency, mechanisms), upper, lower in zip(MECHANISMS.items(), *axes, strict=True):
        for shift, mechanism in enumerate(mechanisms):
            of_it = [
                line for line in lines if (line["currency"], line["mechanism"]) == (currency, mechanism) and "width" in line
            ]
            x = [place_of(line) + 0.18 * (shift - 1) for line in of_it]
            style = drawing.STYLES[mechanism] | {"linestyle": "none"}
            errors = [2.0 * line["standard_error"] for line in of_it]
            upper.errorbar(x, [line["coverage"] for line in of_it], yerr=errors, label=mechanism, **style)
            # From the 10% quantile to the 90% quantile over repetitions.
            low, high = np.array([line["width_tenths"] for line in of_it]).T
            width, plain = (np.array([line[name] for line in of_it]) for name in ("width", "plain_width"))
            ends = np.maximum(0.0, (width - low, high - width)) / plain
            lower.errorbar(x, width / plain, yerr=ends, label=mechanism, **style)
            none = [
                place_of(line) + 0.18 * (shift - 1)
                for line in lines
                if (line["currency"], line["mechanism"]) == (currency, mechanism) and line.get("refused")
            ]
            for axis in (upper, lower):
                drawing.refused(axis, mechanism, none)
                for place in sorted({round(place) for place in none}):
                    axis.text(place, 0.09, "refused", transform=axis.get_xaxis_transform(), ha="center", fontsize=6)
        upper.axhline(0.95, color="#555555", linewidth=0.7, linestyle="--")
        lower.axhline(1.0, label="without privacy", **drawing.STYLES["non-private"])
        upper.set(title=f"{currency} budget", ylabel="coverage")
        lower.set(ylabel="width over that without privacy", yscale="log")
        for axis in (upper, lower):
            axis.set_xticks(range(len(places)), [place.replace("kddcup99", "kdd") for place in places], fontsize=6)
            axis.set_xlim(-0.6, len(places) - 0.4)
    figure.legend(*axes[1, 1].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    drawing.save(figure, path)


def main() -> None:
    """Measure what is missing, then write table and figure."""
    asked = options(__file__, __doc__)
    lines = asked.cells.run(cells_of(asked.quick), measure, is_there)
    asked.write(text_of(lines), lambda path: draw(lines, path))


if __name__ == "__main__":
    main()
