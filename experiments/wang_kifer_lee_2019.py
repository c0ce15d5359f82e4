"""Wang, Kifer and Lee, Differentially private confidence intervals for empirical risk minimization (JPC 2019): real data.

The model is logistic regression on rows of norm 1, with the paper's ridge c = .001 (alpha = .002) and three tenths of the
budget for the moments. A data set is the population, and samples are drawn from it with replacement, so that the
coefficients that intervals should contain are known. Budgets are pure, or concentrated ones that imply (epsilon, 1e-6).
Noise is in the objective or on the weights; for concentrated budgets the paper's choice, Laplace noise in the objective, is
measured too. The nominal level is .95. The noise is not seeded, so another run gives other digits within the standard
errors.

- "few": a few columns of each data set with public bounds, 20 repetitions;
- "whole": all columns, each between 0 and 1 by its smallest and largest value, 6 repetitions. Cells that the library refuses
  are measured all the same, without its limits, to see what it protects from;
- "one of few", "one of whole": an interval for one named coefficient without the ridge (`interest=`), 40 and 10 repetitions,
  and 300 of KDD Cup 99.
  "unknown" is the share of releases which say that the noise hides the coefficient, at the full price.

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
ALMOST_NO_RIDGE = 1e-9
"""Levels of all categories add up to the same column, so without a ridge their coefficients are not unique."""
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


INTEREST = {
    "one of few": {"adult": "hours-per-week", "bank": "housing", "kddcup99": "count", "nltcs": "item5"},
    "one of whole": {"adult": "age", "bank": "age"},
}
"""Columns whose coefficient is asked for; with all columns it is the first one."""


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
def without_limits() -> Iterator[float]:
    """Plans and intervals that the library refuses because the noise hides the curvature; gives the limit of the ratio."""
    places = (forecast, "LARGEST_RATIO"), (intervals, "_LARGEST_RATIO_OF_ONE_SCORE")
    limits = [getattr(*place) for place in places]
    for place in places:
        setattr(*place, float("inf"))
    try:
        yield limits[0]
    finally:
        for place, limit in zip(places, limits, strict=True):
            setattr(*place, limit)


def measure_interest(cell: Cell) -> Cell:
    """Coverage and width of the interval for one coefficient without a ridge, beside the width without privacy."""
    part, data, n = cell["part"].removeprefix("one of "), cell["data"], cell["n"]
    population = population_of(part, data)
    place = list(COLUMNS[data]).index(cell["column"]) if part == "few" else 0
    budget = budget_of(cell["currency"], cell["epsilon"])
    model = confide.LogisticRegression(budget, interest=[f"x{place}"], classes=[0, 1], row_norm=1.0)
    try:
        plan = model.plan(n, population.rows.shape[1])
    except confide.ParameterError:
        return {"columns": population.rows.shape[1], "refused": True}
    target, sampling, _ = asymptotics(part, data, ALMOST_NO_RIDGE)
    rng = np.random.default_rng(2019)
    errors, margins = [], []
    for _ in range(cell["repetitions"]):
        places = rng.integers(len(population.rows), size=n)
        model.fit(population.rows[places], population.drawn(rng, places).astype(int))
        found = model.uncertainty()
        errors.append(abs(float(found.estimates[0]) - target[place]))
        margins.append(float(found.margins(0.95)[0]))
    known = np.isfinite(margins)
    answer = {
        "columns": population.rows.shape[1],
        "refused": False,
        "alpha": plan.alpha,
        "coefficient": round(float(target[place]), 3),
        "plain_width": round(NORMAL_WIDTH * float(sampling[place]) / n**0.5, 4),
        "unknown": round(1.0 - float(known.mean()), 3),
    }
    if known.any():
        hits = (np.array(errors) <= np.array(margins))[known]
        answer["coverage"] = round(float(hits.mean()), 4)
        answer["standard_error"] = round(float((hits.mean() * (1.0 - hits.mean()) / len(hits)) ** 0.5), 4)
        answer["width"] = round(2.0 * float(np.median(np.array(margins)[known])), 4)
    return answer


def measure(cell: Cell) -> Cell:
    """Coverage and width over repetitions, beside the width without noise and the one that the formula expects."""
    if cell["part"] in INTEREST:
        return measure_interest(cell)
    population = population_of(cell["part"], cell["data"])
    columns, n = population.rows.shape[1], cell["n"]
    asked = budget_of(cell["currency"], cell["epsilon"]), cell["mechanism"], ALPHA, columns, n
    with without_limits() as limit:
        plan = plan_of(*asked)
        is_refused = plan.intervals.ratio > limit
        refused = {"columns": columns, "ratio": round(plan.intervals.ratio, 3), "refused": True}
        if is_refused and cell["part"] == "few":
            return refused
        target, sampling, shares = asymptotics(cell["part"], cell["data"], plan.alpha)
        size, tenths, coverage, error = widths(plan, population, n, cell["repetitions"], target)
    if not np.isfinite(size):
        return refused
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
            n, repetitions = (4_000, 2) if quick else (sizes[data], 20 if part == "few" else 6)
            of_part = {"zcdp": MECHANISMS["zcdp"][:2]} if quick and part == "whole" else MECHANISMS
            for currency, mechanisms in of_part.items():
                for epsilon in (4.0,) if quick else (1.0, 4.0):
                    for mechanism in mechanisms:
                        cell = {"part": part, "data": data, "n": n, "currency": currency, "epsilon": epsilon}
                        yield cell | {"mechanism": mechanism, "repetitions": repetitions}
    for part, names in INTEREST.items():
        for data, column in ({"adult": names["adult"]} if quick else names).items():
            n, repetitions = (4_000, 2) if quick else ((WHOLE_SIZES | SIZES)[data], 40 if part == "one of few" else 10)
            for currency in MECHANISMS:
                for epsilon in (4.0,) if quick else (1.0, 4.0):
                    cell = {"part": part, "data": data, "n": n, "currency": currency, "epsilon": epsilon}
                    yield cell | {"column": column, "repetitions": 300 if data == "kddcup99" else repetitions}


HEAD = ["data", "columns", "n", "currency", "epsilon", "mechanism", "ratio", "coverage", "width", "expected", "over plain"]


INTEREST_HEAD = ["data", "columns", "n", "column", "currency", "epsilon", "coverage", "width", "over plain", "unknown"]


def row_of_interest(line: Cell) -> list[str]:
    """A row of the table for one coefficient."""
    row = [line["data"], f"{line['columns']}", f"{line['n']}", line["column"]]
    row += [line["currency"], f"{line['epsilon']:g}"]
    if line["refused"]:
        return [*row, "refused", "", "", ""]
    if "width" not in line:
        return [*row, "", "", "", f"{line['unknown']:.2f}"]
    coverage = f"{line['coverage']:.3f} +- {line['standard_error']:.3f}"
    return [*row, coverage, f"{line['width']:.4f}", f"{line['width'] / line['plain_width']:.2f}x", f"{line['unknown']:.2f}"]


def row_of(line: Cell) -> list[str]:
    """A row of the table."""
    row = [line["data"], *(f"{line[name]}" for name in ("columns", "n", "currency"))]
    row += [f"{line['epsilon']:g}", line["mechanism"]]
    if "width" not in line:
        return [*row, f"{line['ratio']:.2f}", "refused", "", "", ""]
    over, mark = line["width"] / line["plain_width"], "*" if line["refused"] else ""
    coverage = f"{line['coverage']:.3f} +- {line['standard_error']:.3f}{mark}"
    expected = f"{line['expected_width']:.4f}"
    return [*row, f"{line['ratio']:.2f}", coverage, f"{line['width']:.4f}", expected, f"{over:.2f}x"]


def comparisons(lines: list[Cell]) -> Iterator[tuple[Cell, Cell]]:
    """Cells with noise in the objective, each beside the one with noise on the weights."""
    named = ("part", "data", "currency", "epsilon")
    outputs = {tuple(line[name] for name in named): line for line in lines if line["mechanism"] == "output"}
    for line in lines:
        other = outputs.get(tuple(line[name] for name in named), {})
        if line["mechanism"] != "output" and "width" in line and "width" in other:
            yield line, other


def comparison_of(line: Cell, other: Cell) -> list[str]:
    """A row of the table of ratios: noise in the objective over noise on the weights."""
    noise = line["noise"] / other["noise"]
    row = [line["data"], f"{line['columns']}", line["currency"], f"{line['epsilon']:g}", line["mechanism"]]
    row += [f"{noise:.2f}", f"{line['shares'][1]:.2f}", f"{noise * line['shares'][1]:.2f}"]
    measured = f"{line['width'] / other['width']:.2f}{'*' if line['refused'] else ''}"
    return [*row, f"{line['expected_width'] / other['expected_width']:.2f}", measured]


def text_of(lines: list[Cell]) -> str:
    """Tables of coverage and width, of all coefficients and of one, and one of the ratios of widths."""
    parts, of_one = [], [line for line in lines if line["part"] in INTEREST]
    lines = [line for line in lines if line["part"] not in INTEREST]
    for part, words in (("few", "a few columns with public bounds"), ("whole", "all columns")):
        of_it = [line for line in lines if line["part"] == part]
        starred = "; cells with a star are refused by the library and were measured without its limits" * (part == "whole")
        parts.append(
            f"Coverage and median width of 95% intervals, {words}, {of_it[0]['repetitions']} repetitions a cell. The ratio "
            "is that by which the library refuses, the expected width is that of the formula, and the last column is the "
            f"width over that without privacy at the same ridge{starred}.\n\n"
            + aligned(HEAD, [row_of(line) for line in of_it])
            + "\n"
        )
    parts.append(
        "One named coefficient without the ridge (`interest=`): coverage and median width where the release gives an "
        "interval, the width over that without privacy, and the share of releases that give none because the noise hides "
        "the coefficient, or the ridge moved the weights too far.\n\n"
        + aligned(INTEREST_HEAD, [row_of_interest(line) for line in of_one])
        + "\n"
    )
    head = ["data", "columns", "currency", "epsilon", "mechanism", "noise", "share", "product", "expected", "measured"]
    rows = [comparison_of(*both) for both in comparisons(lines)]
    parts.append(
        "Noise in the objective over noise on the weights: ratio of the noises before the curvature of the rows, share of "
        "the former that gets through it (median over coefficients), product of the two, and ratio of the widths of "
        f"intervals, which sampling brings nearer to 1.\n\n{aligned(head, rows)}"
    )
    return "\n".join(parts)


OFFSETS = {"objective": -0.22, "output": 0.0, "objective, Laplace": 0.22}
LINES = (("pure", "objective"), ("zcdp", "objective"), ("zcdp", "objective, Laplace"))
SHORT = {"kddcup99": "kdd", "ipums_br": "census"}


def draw(lines: list[Cell], path: Path) -> None:
    """Coverage and widths by data set and epsilon; below, when which noise gives the shorter intervals."""
    import drawing

    figure, axes = drawing.panels(3, 2, height=4.4, gridspec_kw={"height_ratios": (1.25, 1.25, 0.8)})
    for currency, row in zip(MECHANISMS, axes, strict=False):
        draw_currency([line for line in lines if line["currency"] == currency], currency, *row)
    draw_shares(lines, axes[2, 0])
    draw_ratios(lines, axes[2, 1])
    handles = {name: handle for axis in axes[1] for handle, name in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=2)
    drawing.save(figure, path)


def draw_currency(lines: list[Cell], currency: str, left: Any, right: Any) -> None:
    """Coverage and width of one currency, a line for each data set and epsilon. Refused cells are hollow."""
    import drawing

    places = list(dict.fromkeys((line["data"], line["columns"], line["epsilon"]) for line in lines))
    for mechanism, offset in OFFSETS.items():
        of_it = [line for line in lines if line["mechanism"] == mechanism]
        given = drawing.STYLES[mechanism] | {"linestyle": "none", "elinewidth": 0.8}
        for is_refused in (False, True):
            shown = [line for line in of_it if "width" in line and line["refused"] == is_refused]
            if not shown:
                continue
            y = [places.index((line["data"], line["columns"], line["epsilon"])) + offset for line in shown]
            look = given | ({"markerfacecolor": "white"} if is_refused else {"label": mechanism})
            left.errorbar(
                [line["coverage"] for line in shown], y, xerr=[2 * line["standard_error"] for line in shown], **look
            )
            plain, width = (np.array([line[name] for line in shown]) for name in ("plain_width", "width"))
            # From the 10% quantile to the 90% quantile over repetitions.
            low, high = np.array([line["width_tenths"] for line in shown]).T
            right.errorbar(width / plain, y, xerr=np.maximum(0.0, (width - low, high - width)) / plain, **look)
    for line in lines:
        if "width" not in line:
            place = places.index((line["data"], line["columns"], line["epsilon"])) + OFFSETS[line["mechanism"]]
            left.text(0.5, place, "refused", va="center", fontsize=8)
    left.axvline(0.95, color="#555555", linewidth=0.8, linestyle="--")
    right.axvline(1.0, label="without privacy", **drawing.STYLES["non-private"])
    names = [f"{SHORT.get(data, data)}, {columns}, {epsilon:g}" for data, columns, epsilon in places]
    left.set(title=f"{currency}: coverage", xlabel="share of coefficients", xlim=(0.0, 1.03))
    right.set(title=f"{currency}: width", xlabel="over that without privacy", xscale="log")
    drawing.plain_ticks(right, "x", (1.0, 2.0, 5.0, 10.0, 20.0, 50.0))
    left.set_yticks(range(len(places)), names, fontsize=8)
    right.set_yticks(range(len(places)), [])
    for axis in (left, right):
        axis.set_ylim(len(places) - 0.5, -0.5)
        axis.grid(axis="y", color="#dddddd", linewidth=0.5)


def draw_shares(lines: list[Cell], axis: Any) -> None:
    """Ratio of the noises in the weights by the share that gets through, at one epsilon. Bars: quartiles of coefficients."""
    import drawing

    x = np.linspace(0.05, 1.0, 20)
    smallest = min(line["epsilon"] for line in lines)
    shown = [both for both in comparisons(lines) if both[0]["epsilon"] == smallest]
    for currency, mechanism in LINES:
        of_it = [both for both in shown if (both[0]["currency"], both[0]["mechanism"]) == (currency, mechanism)]
        of_it.sort(key=lambda both: both[0]["columns"])
        look = drawing.STYLES[mechanism] | {"marker": "", "linestyle": ":" if currency == "pure" else "-"}
        is_laplace = mechanism.endswith("Laplace")
        for line, other in (of_it[0], of_it[-1]) if is_laplace else of_it[:1]:
            name = currency + (f", Laplace, {line['columns']}" if is_laplace else "")
            axis.plot(x, line["noise"] / other["noise"] * x, label=name, **look)
    for line, other in shown:
        low, median, high = line["shares"]
        noise, look = line["noise"] / other["noise"], drawing.STYLES[line["mechanism"]] | {"linestyle": "none"}
        ends = [[median - low], [high - median]]
        axis.errorbar([median], [noise * median], xerr=ends, elinewidth=0.8, **look)
    axis.axhline(1.0, color="#555555", linewidth=0.8, linestyle="--")
    axis.set(title="noise in the weights", xlabel="share that gets through", ylabel="objective / output", yscale="log")
    drawing.plain_ticks(axis, "y", (0.1, 0.3, 1.0, 3.0, 10.0))
    axis.legend(fontsize=8, handlelength=1.2, loc="lower right", borderaxespad=0.0)


def draw_ratios(lines: list[Cell], axis: Any) -> None:
    """Measured ratios of widths by those of the formula, where the library makes intervals."""
    import drawing

    for mechanism in ("objective", "objective, Laplace"):
        shown = [both for both in comparisons(lines) if both[0]["mechanism"] == mechanism and not both[0]["refused"]]
        x = [line["expected_width"] / other["expected_width"] for line, other in shown]
        y = [line["width"] / other["width"] for line, other in shown]
        # Relative ends of both widths, added in squares.
        ends = [
            [value * np.hypot(*(abs(each["width_tenths"][end] / each["width"] - 1.0) for each in both)) for both, value in
             zip(shown, y, strict=True)]
            for end in (0, 1)
        ]  # fmt: skip
        axis.errorbar(x, y, yerr=ends, elinewidth=0.8, **drawing.STYLES[mechanism] | {"linestyle": "none"})
    axis.plot([0.3, 7.0], [0.3, 7.0], color="#555555", linewidth=0.8)
    axis.axhline(1.0, color="#555555", linewidth=0.8, linestyle="--")
    axis.set(title="width, objective / output", xlabel="by the formula", ylabel="measured", xscale="log", yscale="log")
    for direction in "xy":
        drawing.plain_ticks(axis, direction, (0.3, 0.5, 1.0, 2.0, 5.0))


def main() -> None:
    """Measure what is missing, then write table and figure."""
    asked = options(__file__, __doc__)
    lines = asked.cells.run(cells_of(asked.quick), measure, is_there)
    asked.write(text_of(lines), lambda path: draw([line for line in lines if line["part"] not in INTEREST], path))


if __name__ == "__main__":
    main()
