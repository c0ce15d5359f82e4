"""Chaudhuri, Monteleoni and Sarwate, Differentially private empirical risk minimization (JMLR 2011), section 6: real data.

Adult (45,222 complete rows) and KDD Cup 99 (70,000 random rows, each type of connection as often as in the whole set), one
column a level, columns divided by their largest value and rows shortened to norm 1, logistic regression and the Huber
support vector machine (h = .5). Four parts:

- "variant": test error without privacy on other samples, tasks and encodings of KDD Cup 99;
- "lambda": test error by lambda at epsilon .1, 10 folds with 10 draws of noise on Adult, 5 with 10 on KDD Cup 99;
- "epsilon": test error by epsilon at the lambda that is best at epsilon .1, chosen with the test error as in the paper; 5
  draws in each of 3 folds, below epsilon .01 40 draws;
- "curve": learning curves on KDD Cup 99, lambda chosen privately among five (the paper's algorithm 4, `PrivateSearchCV`),
  25,000 rows to choose and 25,000 to test, 3 permutations; without privacy all five on the same rows. The paper goes from
  60,000 rows for each lambda to 120,000; the 10 percent have rows for 87,000.

Run: python experiments/chaudhuri_monteleoni_sarwate_2011.py [--quick]      KDD Cup 99 needs CONFIDE_DATA_DIR
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cells import Cell, seed_of
from pages import aligned, options
from prepared_data import is_there, scaled_rows
from releases import mistakes, release_many

import confide

ESTIMATORS = {"logistic": confide.LogisticRegression, "svm": partial(confide.LinearSVC, loss="huber_hinge")}
METHODS = ("non-private", "output", "objective")
N_ROWS = {"adult": None, "kddcup99": 70_000}
LOG_LAMBDAS = {"adult": (-10, -7, -4, -3.5, -3, -2.5, -2, -1.5), "kddcup99": (-9, -7, -5, -3.5, -3, -2.5, -2, -1.5)}
EPSILONS = (0.001, 0.003, 0.01, 0.05, 0.2, 0.5)
VARIANTS = (
    ("kddcup99", "constant"), ("kddcup99", "no constant"), ("kddcup99, denial of service", "constant"),
    ("kddcup99, 10 percent", "constant"), ("kddcup99, 10 percent", "no constant"), ("kddcup99, 10 percent", "largest"),
    ("kddcup99, 10 percent, denial of service", "constant"),
)  # fmt: skip
"""Samples and tasks with encodings, see `prepared_data`."""
VARIANTS_SHOWN = {
    "kddcup99": ("whole set", "#0072B2"),
    "kddcup99, 10 percent": ("10 percent", "#D55E00"),
    "kddcup99, denial of service": ("denial", "#CC79A7"),
}
"""Of the samples and tasks, those in the figure, with their names and colours there."""
SHORT = {"adult": "adult", "kddcup99": "kdd"}
CURVE_GRID = (-4, -3.5, -3, -2.5, -2)
CURVE_ROWS, CURVE_EPSILONS, HELD_OUT = (10_000, 30_000, 60_000, 80_000), (0.01, 0.05), 25_000


def model_of(loss: str, budget: float, alpha: float, mechanism: str = "auto") -> Any:
    """The estimator in the paper's setting: no intercept but the constant column, noise for a ball of radius 1."""
    settings = {"alpha": alpha, "row_norm": 1.0, "fit_intercept": False, "classes": [0, 1], "mechanism": mechanism}
    return ESTIMATORS[loss](budget, **settings)


def in_folds(cell: Cell, asked: list[tuple[str, float, float]]) -> dict[str, list[float]]:
    """Test errors of (method, epsilon, lambda) over folds and draws. There are none for a method that is refused.

    The errors without privacy are those of the minimisers to which output perturbation adds its noise.
    """
    rows, labels = scaled_rows(cell["data"], cell["rows"])
    folds = np.array_split(np.random.default_rng(1).permutation(len(rows)), cell["folds"])
    found: dict[str, list[float]] = {}
    for place, test in enumerate(folds):
        training = np.concatenate([fold for other, fold in enumerate(folds) if other != place])
        X, y = rows[training], labels[training]
        for method, epsilon, alpha in asked:
            try:
                released = release_many(
                    model_of(cell["loss"], epsilon, alpha, method), X, y, cell["draws"], seed_of(cell) + place
                )
            except confide.ParameterError:
                continue
            found.setdefault(method, []).extend(mistakes(released.weights, rows[test], labels[test]))
            if released.exact is not None:
                found.setdefault("non-private", []).extend(mistakes(released.exact, rows[test], labels[test]))
    return found


def summary(errors: list[float] | None) -> list[float] | None:
    """Mean and standard deviation; None for what was refused."""
    return None if not errors else [round(float(np.mean(errors)), 4), round(float(np.std(errors)), 4)]


def measure_lambda(cell: Cell) -> Cell:
    """Test error of the three methods at one lambda."""
    alpha = 10.0 ** cell["log_lambda"]
    found = in_folds(cell, [(method, cell["epsilon"], alpha) for method in METHODS[1:]])
    return {method: summary(found.get(method)) for method in METHODS}


def measure_variant(cell: Cell) -> Cell:
    """Test error without privacy at each lambda: means over folds."""
    rows, labels = scaled_rows(cell["data"], cell["rows"], cell["encoding"])
    order = np.random.default_rng(1).permutation(len(rows))
    found = []
    for place in range(cell["folds"]):
        test = order[place::10]
        training = np.setdiff1d(order, test)
        exact = [
            release_many(model_of(cell["loss"], float("inf"), 10.0**log_lambda), rows[training], labels[training], 1, 0)
            for log_lambda in cell["log_lambdas"]
        ]
        found.append(mistakes(np.concatenate([each.weights for each in exact]), rows[test], labels[test]))
    return {"errors": [round(float(error), 4) for error in np.mean(found, axis=0)]}


def measure_epsilon(cell: Cell) -> Cell:
    """Test error of one method at one epsilon."""
    return {
        "error": summary(in_folds(cell, [(cell["method"], cell["epsilon"], 10.0 ** cell["log_lambda"])]).get(cell["method"]))
    }


def measure_curve(cell: Cell) -> Cell:
    """Test error after a private choice of lambda, over permutations of the rows; none for a choice that is refused."""
    rows, labels = scaled_rows(cell["data"], cell["rows"])
    grid, held_out = [10.0**place for place in CURVE_GRID], cell["held_out"]
    n = cell["n"] * len(grid) + held_out
    errors = []
    for permutation in range(cell["permutations"]):
        order = np.random.default_rng(permutation).permutation(len(rows))
        test, training = order[:held_out], order[held_out : held_out + n]
        if cell["method"] == "non-private":
            errors.append(_without_privacy(cell["loss"], grid, rows, labels, test, training[: cell["n"] + held_out]))
            continue
        search = confide.PrivateSearchCV(
            model_of(cell["loss"], 1.0, 1.0, cell["method"]), {"alpha": grid}, budget=cell["epsilon"],
            method="exponential", held_out=held_out / n, random_state=(seed_of(cell) + permutation) % 2**31,
        )  # fmt: skip
        try:
            search.fit(rows[training], labels[training])
        except confide.ParameterError:
            # With so few rows the proof raises some lambdas to the same one, whatever the rows are.
            return {"error": summary(None)}
        errors.append(1.0 - search.score(rows[test], labels[test]))
    return {"error": summary(errors)}


def _without_privacy(
    loss: str, grid: list[float], rows: np.ndarray, labels: np.ndarray, test: np.ndarray, training: np.ndarray
) -> float:
    """Test error of the lambda with the fewest errors on as many held-out rows. All are trained on the same other rows."""
    held_out, others = training[: len(test)], training[len(test) :]
    fitted = [
        release_many(model_of(loss, float("inf"), alpha), rows[others], labels[others], 1, 0).weights for alpha in grid
    ]
    weights = np.concatenate(fitted)
    chosen = int(mistakes(weights, rows[held_out], labels[held_out]).argmin())
    return float(mistakes(weights[[chosen]], rows[test], labels[test])[0])


MEASURES = {"variant": measure_variant, "lambda": measure_lambda, "epsilon": measure_epsilon, "curve": measure_curve}


def variant_cells(quick: bool) -> Iterator[Cell]:
    """Samples, tasks and encodings of KDD Cup 99, without privacy."""
    places = LOG_LAMBDAS["kddcup99"][3:]
    sizes = {"rows": 4_000, "folds": 1, "log_lambdas": places[-2:]} if quick else {"rows": 70_000, "folds": 3}
    for loss in ESTIMATORS:
        for data, encoding in VARIANTS[:1] if quick else VARIANTS:
            if loss == "svm" and encoding != "constant":
                continue
            cell = {"part": "variant", "data": data, "encoding": encoding, "loss": loss, "log_lambdas": places} | sizes
            yield cell | {"log_lambdas": list(cell["log_lambdas"])}


def lambda_cells(quick: bool) -> Iterator[Cell]:
    """Errors by lambda."""
    for data in LOG_LAMBDAS:
        folds, draws = (2, 2) if quick else (10, 10) if data == "adult" else (5, 10)
        for loss in ESTIMATORS:
            for log_lambda in (-3, -2) if quick else LOG_LAMBDAS[data]:
                rows = 4_000 if quick else N_ROWS[data]
                cell = {"part": "lambda", "data": data, "loss": loss, "log_lambda": log_lambda, "rows": rows}
                yield cell | {"folds": folds, "draws": draws, "epsilon": 0.1}


def epsilon_cells(tables: list[Cell], quick: bool) -> Iterator[Cell]:
    """Curves by epsilon at the lambda that is best in the tables."""
    for data, loss in dict.fromkeys((line["data"], line["loss"]) for line in tables):
        of_both = [line for line in tables if (line["data"], line["loss"]) == (data, loss)]
        for method in METHODS[1:]:
            best = min((line for line in of_both if line[method]), key=lambda line: line[method][0])
            kept = {name: best[name] for name in ("data", "loss", "log_lambda", "rows")} | {"folds": 2 if quick else 3}
            for epsilon in (0.05, 0.5) if quick else EPSILONS:
                # Near chance, single releases differ the most.
                draws = 2 if quick else 5 if epsilon >= 0.01 else 40
                yield {"part": "epsilon", "method": method, "epsilon": epsilon, **kept, "draws": draws}


def curve_cells(quick: bool) -> Iterator[Cell]:
    """Learning curves with private tuning."""
    sizes = (
        {"rows": 8_000, "held_out": 500, "permutations": 1}
        if quick
        else {"rows": None, "held_out": HELD_OUT, "permutations": 3}
    )
    for loss, method, epsilon in itertools.product(ESTIMATORS, METHODS[1:], CURVE_EPSILONS):
        for n in (1_000,) if quick else CURVE_ROWS:
            cell = {"part": "curve", "data": "kddcup99", "loss": loss, "method": method, "epsilon": epsilon, "n": n}
            yield cell | sizes
    for loss, n in itertools.product(ESTIMATORS, (1_000,) if quick else CURVE_ROWS):
        yield {"part": "curve", "data": "kddcup99", "loss": loss, "method": "non-private", "epsilon": None, "n": n} | sizes


def shown(value: list[float] | None) -> str:
    return "refused" if value is None else f"{value[0]:.4f}"


def error_of(value: list[float] | None, repetitions: int) -> float | None:
    """Standard error of a mean, from the standard deviation and the number of repetitions."""
    return None if value is None else value[1] / max(1, repetitions - 1) ** 0.5


def with_error(value: list[float] | None, repetitions: int) -> str:
    """A mean with its standard error, which one repetition does not show."""
    if value is None or repetitions < 2:
        return shown(value)
    return f"{value[0]:.4f} +- {error_of(value, repetitions):.4f}"


def without_privacy(tables: list[Cell], data: str, loss: str) -> Cell:
    """The cell of the tables in which the model without privacy has the smallest error."""
    return min(
        (line for line in tables if (line["data"], line["loss"]) == (data, loss)), key=lambda line: line["non-private"][0]
    )


def text_of(lines: list[Cell]) -> str:
    """The tables of all parts."""
    tables = [line for line in lines if line["part"] == "lambda"]
    parts = [*tables_by_lambda(tables), variants_of([line for line in lines if line["part"] == "variant"])]
    parts.append(table_by_epsilon(tables, [line for line in lines if line["part"] == "epsilon"]))
    parts.append(table_of_curves([line for line in lines if line["part"] == "curve"]))
    return "\n".join(part for part in parts if part)


def tables_by_lambda(tables: list[Cell]) -> Iterator[str]:
    """Errors by lambda."""
    for data, loss in dict.fromkeys((line["data"], line["loss"]) for line in tables):
        of_both = [line for line in tables if (line["data"], line["loss"]) == (data, loss)]
        rows = [[f"{method}", *(shown(line[method]) for line in of_both)] for method in METHODS]
        yield f"{data}, {loss}: test error at epsilon .1 by log10 lambda.\n"
        yield aligned(["log10 lambda", *(f"{line['log_lambda']:g}" for line in of_both)], rows) + "\n"


def variants_of(lines: list[Cell]) -> str:
    """Errors without privacy on other samples, tasks and encodings."""
    if not lines:
        return ""
    head = ["loss, sample and task, encoding", *(f"{place:g}" for place in lines[0]["log_lambdas"])]
    rows = []
    for loss in ESTIMATORS:
        of_it = [line for line in lines if line["loss"] == loss]
        rows += [
            [f"{loss}: {line['data']}, {line['encoding']}", *(f"{error:.4f}" for error in line["errors"])] for line in of_it
        ]
    return (
        f"KDD Cup 99 without privacy on other samples, tasks and encodings: test error by log10 lambda, {lines[0]['folds']} "
        f"of 10 folds.\n\n{aligned(head, rows)}\n"
    )


def table_by_epsilon(tables: list[Cell], by_epsilon: list[Cell]) -> str:
    """Curves by epsilon."""
    epsilons = sorted({line["epsilon"] for line in by_epsilon})
    rows: dict[str, list[str]] = {}
    for line in by_epsilon:
        plain = without_privacy(tables, line["data"], line["loss"])
        key = f"{line['data']}, {line['loss']}, non-private, log10 lambda {plain['log_lambda']:g}"
        rows.setdefault(key, [key, *[shown(plain["non-private"])] * len(epsilons)])
        key = f"{line['data']}, {line['loss']}, {line['method']}, log10 lambda {line['log_lambda']:g}"
        rows.setdefault(key, [key]).append(with_error(line["error"], line["folds"] * line["draws"]))
    return (
        "Test error by epsilon, at the lambda that is best at epsilon .1: mean and standard error over folds and draws; "
        "without privacy at its own best lambda of the tables.\n\n"
        + aligned(["", *(f"{epsilon:g}" for epsilon in epsilons)], list(rows.values()))
        + "\n"
    )


def table_of_curves(curves: list[Cell]) -> str:
    """Learning curves."""
    if not curves:
        return ""
    rows: dict[str, list[str]] = {}
    for line in curves:
        key = f"{line['loss']}, {line['method']}" + (f", epsilon {line['epsilon']:g}" if line["epsilon"] else "")
        rows.setdefault(key, [key]).append(with_error(line["error"], line["permutations"]))
    return (
        "KDD Cup 99, lambda chosen among five, privately but for the non-private lines: test error by number of rows for "
        "each, mean and standard error over permutations.\n\n"
        + aligned(["", *map(str, sorted({line["n"] for line in curves}))], list(rows.values()))
    )


def draw(lines: list[Cell], path: Path) -> None:
    """Errors by lambda, by epsilon, on other samples, and by number of rows."""
    import drawing

    tables = [line for line in lines if line["part"] == "lambda"]
    pairs = list(dict.fromkeys((line["data"], line["loss"]) for line in tables))
    half = len(pairs) // 2
    figure, axes = drawing.panels(2 * half + 3, 2, height=2.3)
    by_lambda, by_epsilon = axes[:half].flat, axes[half : 2 * half].flat
    for (data, loss), upper, middle in zip(pairs, by_lambda, by_epsilon, strict=True):
        of_both = [line for line in lines if (line["data"], line["loss"]) == (data, loss)]
        draw_lambdas(upper, [line for line in of_both if line["part"] == "lambda"])
        draw_epsilons(middle, [line for line in of_both if line["part"] == "epsilon"])
        middle.axhline(without_privacy(tables, data, loss)["non-private"][0], **drawing.STYLES["non-private"])
    for loss, axis in zip(ESTIMATORS, axes[2 * half], strict=True):
        draw_variants(axis, [line for line in lines if line["part"] == "variant" and line["loss"] == loss])
    places = [(loss, epsilon) for loss in ESTIMATORS for epsilon in CURVE_EPSILONS]
    for (loss, epsilon), axis in zip(places, axes[2 * half + 1 :].flat, strict=True):
        curves = [line for line in lines if line["part"] == "curve" and line["loss"] == loss]
        draw_curves(axis, [line for line in curves if line["epsilon"] in (epsilon, None)])
        axis.set(title=f"kdd, {loss}, epsilon {epsilon:g}", xlabel="rows for each lambda")
    for axis in axes.flat:
        axis.set_ylim(bottom=0.0)
        axis.set_visible(bool(axis.lines))
    for axis in axes[:, 0]:
        axis.set_ylabel("test error")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=2)
    drawing.save(figure, path)


def draw_lambdas(axis: Any, lines: list[Cell]) -> None:
    """One table."""
    data, loss = lines[0]["data"], lines[0]["loss"]
    x = [line["log_lambda"] for line in lines]
    for method in METHODS:
        repetitions = [line["folds"] * (1 if method == "non-private" else line["draws"]) for line in lines]
        bars(axis, method, x, [line[method] for line in lines], repetitions)
    axis.set(title=f"{SHORT[data]}, {loss}, epsilon .1", xlabel="log10 lambda")


def draw_epsilons(axis: Any, lines: list[Cell]) -> None:
    """Both mechanisms by epsilon."""
    import drawing

    for method in METHODS[1:]:
        chosen = [line for line in lines if line["method"] == method]
        repetitions = [line["folds"] * line["draws"] for line in chosen]
        bars(axis, method, [line["epsilon"] for line in chosen], [line["error"] for line in chosen], repetitions)
    axis.set(title=f"{SHORT[lines[0]['data']]}, {lines[0]['loss']}, best lambda", xlabel="epsilon", xscale="log")
    drawing.plain_ticks(axis, "x", (0.001, 0.01, 0.1))


def draw_variants(axis: Any, lines: list[Cell]) -> None:
    """Errors without privacy on three samples and tasks; nothing where there are none."""
    import drawing

    if not lines:
        return
    for place, (data, (name, colour)) in enumerate(VARIANTS_SHOWN.items()):
        for line in lines:
            if (line["data"], line["encoding"]) == (data, "constant"):
                n = line["rows"] // 10 * line["folds"]
                lengths = [2.0 * (error * (1.0 - error) / n) ** 0.5 for error in line["errors"]]
                x, look = line["log_lambdas"], {"color": colour, "marker": "os^"[place]}
                drawing.line(axis, name, x, line["errors"], "", lengths, **look)
    axis.set(title=f"kdd, {lines[0]['loss']}, no privacy", xlabel="log10 lambda")
    axis.set_ylim(top=1.6 * axis.get_ylim()[1])
    axis.legend(fontsize=8, loc="upper left", handlelength=1.2)


def draw_curves(axis: Any, lines: list[Cell]) -> None:
    """Errors by number of rows."""
    for method in METHODS:
        of_it = [line for line in lines if line["method"] == method]
        bars(axis, method, [line["n"] for line in of_it], [line["error"] for line in of_it],
             [line["permutations"] for line in of_it])  # fmt: skip
    axis.xaxis.set_major_formatter(lambda rows, _: f"{rows / 1000:g}k")


def bars(axis: Any, method: str, x: list[float], found: list[list[float] | None], repetitions: list[int]) -> None:
    """Means with two standard errors on either side. Cells that were refused are marked."""
    import drawing

    errors = [error_of(value, times) for value, times in zip(found, repetitions, strict=True)]
    lengths = [None if error is None else 2.0 * error for error in errors]
    drawing.line(axis, method, x, [value and value[0] for value in found], lengths=lengths)
    drawing.refused(axis, method, [place for place, value in zip(x, found, strict=True) if value is None])


def main() -> None:
    """Measure what is missing, then write tables and figure."""
    asked = options(__file__, __doc__)

    def measure(cell: Cell) -> Cell:
        return MEASURES[cell["part"]](cell)

    lines = asked.cells.run(lambda_cells(asked.quick), measure, is_there)
    lines += asked.cells.run(epsilon_cells(lines, asked.quick), measure, is_there)
    lines += asked.cells.run(variant_cells(asked.quick), measure, is_there)
    lines += asked.cells.run(curve_cells(asked.quick), measure, is_there)
    asked.write(text_of(lines), lambda path: draw(lines, path))


if __name__ == "__main__":
    main()
