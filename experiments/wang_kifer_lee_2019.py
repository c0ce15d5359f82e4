"""Wang, Kifer and Lee, Differentially private confidence intervals for empirical risk minimization (JPC 2019): real data.

The model is logistic regression on rows of norm 1, with the paper's ridge c = .001 (alpha = .002) and three tenths of the
budget for the moments. A data set is the population, and samples are drawn from it with replacement, so that the
coefficients that intervals should contain are known. Budgets are pure, or concentrated ones that imply (epsilon, 1e-6).
Noise is in the objective or on the weights; for concentrated budgets the paper's choice, Laplace noise in the objective, is
measured too. The nominal level is .95. The noise is not seeded, so another run gives other digits within the standard
errors.

Only a few columns of each data set are used, with public bounds: with a pure budget and this number of rows, the noise on
the moments allows no more (the library refuses intervals that could not be trusted). The paper's own tables are not
available here.

Run: python experiments/wang_kifer_lee_2019.py [--quick]      all but Adult need CONFIDE_DATA_DIR
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import numpy as np
from cells import Cell
from coverage import Logistic, budget_of, minimiser, plain_width
from interval_lengths import plan_of, widths
from pages import aligned, options
from prepared_data import is_there, table_of

import confide

ALPHA = 0.002
MECHANISMS = {"pure": ("objective", "output"), "zcdp": ("objective", "output", "objective, Laplace")}
SIZES = {"adult": 45_222, "bank": 45_211, "kddcup99": 50_000, "nltcs": 21_574}
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
def population_of(name: str) -> Logistic:
    """The rows of a data set, each of norm 1, with their labels."""
    frame, labels = table_of(name)
    rows = confide.SchemaEncoder(confide.Schema(columns=COLUMNS[name])).fit_transform(frame[list(COLUMNS[name])])
    rows = np.asarray(rows, dtype=float)
    rows /= np.maximum(1e-12, np.linalg.norm(rows, axis=1, keepdims=True))
    return Logistic(rows, np.zeros(rows.shape[1] + 1), labels.astype(float))


def measure(cell: Cell) -> Cell:
    """Coverage and width over repetitions, and the width without noise."""
    population = population_of(cell["data"])
    width = population.rows.shape[1]
    try:
        plan = plan_of(budget_of(cell["currency"], cell["epsilon"]), cell["mechanism"], ALPHA, width, cell["n"])
    except confide.ParameterError:
        return {"columns": width, "refused": True}
    size, tenths, coverage, error = widths(plan, population, cell["n"], cell["repetitions"])
    target, plain = minimiser(population, plan.alpha), plain_width(population, cell["n"], plan.alpha)
    return {
        "columns": width,
        "ratio": round(plan.intervals.ratio, 3),
        "alpha": plan.alpha,
        "largest_coefficient": round(float(np.abs(target).max()), 3),
        "plain_width": round(plain, 4),
        "width": round(size, 4),
        "width_tenths": [round(value, 4) for value in tenths],
        "coverage": round(coverage, 4),
        "standard_error": round(error, 4),
    }


def cells_of(quick: bool) -> Iterator[Cell]:
    """All data sets, currencies and mechanisms."""
    for data in ("adult", "nltcs") if quick else SIZES:
        n, repetitions = (20_000, 2) if quick else (SIZES[data], 30)
        for currency, mechanisms in MECHANISMS.items():
            for epsilon in (4.0,) if quick else (1.0, 4.0):
                for mechanism in mechanisms:
                    cell = {"data": data, "n": n, "currency": currency, "epsilon": epsilon, "mechanism": mechanism}
                    yield cell | {"repetitions": repetitions}


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
