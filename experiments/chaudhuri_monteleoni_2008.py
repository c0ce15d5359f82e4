"""Chaudhuri and Monteleoni, Privacy-preserving logistic regression (NIPS 2008), figure 1: made-up rows.

Rows are uniform on the unit sphere of 10 dimensions. "separable": no row is within .03 of the plane that gives the label.
"unseparable": labels within .1 of the plane are flipped with probability .2. There are 17,500 rows, 5 folds and a ridge of
.01. Each fold has 200 draws of noise for test errors, 1,000 below epsilon .005, and 40 for learning curves. The epsilon of
the learning curves is our choice, because the surviving text of the paper does not state it.

Run: python experiments/chaudhuri_monteleoni_2008.py [--quick]
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cells import Cell, seed_of, spread
from pages import aligned, options
from releases import mistakes, release_many

import confide

N_ROWS, FOLDS, DIMENSION, ALPHA = 17_500, 5, 10, 0.01
KINDS = ("separable", "unseparable")
EPSILONS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2)
LABELLED = (0.001, 0.01, 0.1)
"""Labels of the epsilons on the axis of the figure."""
CURVE_EPSILON = 0.1
SMALL_EPSILON = 0.005
METHODS = ("non-private", "output", "objective")
INDEPENDENT = {
    "separable": {
        0.01: (0.3754, 0.2365), 0.015: (0.3203, 0.1790), 0.02: (0.2958, 0.1358), 0.03: (0.2195, 0.0816),
        0.05: (0.1328, 0.0415), 0.1: (0.0633, 0.0117), 0.2: (0.0241, 0.0013),
    },
    "unseparable": {
        0.01: (0.4020, 0.2676), 0.015: (0.3539, 0.2053), 0.02: (0.3162, 0.1632), 0.03: (0.2696, 0.1212),
        0.05: (0.1895, 0.0880), 0.1: (0.1080, 0.0659), 0.2: (0.0758, 0.0562),
    },
}  # fmt: skip
"""Output and objective perturbation in another program for the paper's algorithms, which shares no code with the library."""


def rows_of(kind: str, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows on the sphere and their labels, 0 and 1; the first column gives the label."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(2 * n, DIMENSION))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    if kind == "separable":
        rows = rows[np.abs(rows[:, 0]) >= 0.03]
    rows = rows[:n]
    labels = rows[:, 0] > 0.0
    if kind == "unseparable":
        labels ^= (np.abs(rows[:, 0]) <= 0.1) & (rng.uniform(size=n) < 0.2)
    return rows, labels.astype(int)


def model_of(budget: float, mechanism: str) -> confide.LogisticRegression:
    """The estimator in the paper's setting."""
    return confide.LogisticRegression(
        budget, alpha=ALPHA, row_norm=1.0, fit_intercept=False, classes=[0, 1], mechanism=mechanism
    )


def measure(cell: Cell) -> Cell:
    """Test errors of all methods over folds and draws: mean, standard deviation, and the quantiles of 10% and 90%."""
    rows, labels = rows_of(cell["kind"], cell["rows"], seed=2008)
    folds = np.random.default_rng(1).permutation(len(rows)).reshape(FOLDS, -1)
    found: dict[str, list[float]] = {name: [] for name in METHODS}
    for place in range(FOLDS):
        test, training = folds[place], np.delete(folds, place, axis=0).ravel()[: cell["n"]]
        for mechanism in ("output", "objective"):
            released = release_many(
                model_of(cell["epsilon"], mechanism), rows[training], labels[training], cell["draws"], seed_of(cell) + place
            )
            found[mechanism].extend(mistakes(released.weights, rows[test], labels[test]))
            if released.exact is not None:
                found["non-private"].extend(mistakes(released.exact, rows[test], labels[test]))
    measured: Cell = {name: spread(of) for name, of in found.items()}
    if cell["epsilon"] < SMALL_EPSILON:
        rows, labels = rows[folds[1:].ravel()], labels[folds[1:].ravel()]
        measured["pulls"] = pulls(cell, rows, labels)
    return measured


def pulls(cell: Cell, rows: np.ndarray, labels: np.ndarray) -> list[float]:
    """How strongly the rows pull the weights in their own direction, in the unit in which the noise of both has one law.

    Times the ridge, noise on the weights is added to alpha |w| for the minimiser w, noise in the objective to the mean
    gradient. Where the noise is large, the gradient is that at weights of a random direction, which are wrong for half of
    the rows: half the length of the mean of the signed rows.
    """
    exact = release_many(model_of(cell["epsilon"], "output"), rows, labels, 1, 0).exact
    mean = np.mean(rows * (2 * labels - 1)[:, None], axis=0)
    return [round(ALPHA * float(np.linalg.norm(exact)), 4), round(0.5 * float(np.linalg.norm(mean)), 4)]


def cells_of(quick: bool) -> Iterator[Cell]:
    """Errors by epsilon on four fifths of the rows, then learning curves."""
    rows, draws = (2_500, 5) if quick else (N_ROWS, 200)
    whole = rows * (FOLDS - 1) // FOLDS
    for kind in KINDS:
        for epsilon in (0.1, 0.2) if quick else EPSILONS:
            # Near chance, single releases differ the most, and the methods the least.
            times = 5 if epsilon < SMALL_EPSILON else 1
            yield {"part": "budget", "kind": kind, "rows": rows, "n": whole, "epsilon": epsilon, "draws": draws * times}
    for kind in KINDS:
        for n in range(1_000, whole + 1, 1_000):
            yield {"part": "rows", "kind": kind, "rows": rows, "n": n, "epsilon": CURVE_EPSILON, "draws": draws // 5}


def text_of(lines: list[Cell]) -> str:
    """The tables."""

    def row(line: Cell, start: str) -> list[str]:
        cells = [f"{line[name][0]:.4f} +- {line[name][1]:.4f}" for name in METHODS]
        if line["part"] == "budget" and line["rows"] == N_ROWS:
            cells += [f"{value:.4f}" for value in INDEPENDENT[line["kind"]].get(line["epsilon"], ())] or ["", ""]
        return [start, *cells]

    parts = []
    for kind in KINDS:
        of_kind = [line for line in lines if line["kind"] == kind]
        head = ["epsilon", *METHODS]
        if of_kind[0]["rows"] == N_ROWS:
            head += ["output, independent", "objective, independent"]
        parts.append(f"{kind.capitalize()} rows: test error by epsilon, mean and standard deviation over folds and draws.\n")
        parts.append(aligned(head, [row(line, f"{line['epsilon']:g}") for line in of_kind if line["part"] == "budget"]))
        parts.append(f"\n{kind.capitalize()} rows: by number of rows at epsilon {CURVE_EPSILON:g}.\n")
        head = ["rows", *METHODS]
        parts.append(aligned(head, [row(line, f"{line['n']}") for line in of_kind if line["part"] == "rows"]) + "\n")
    return "\n".join(parts)


def draw(lines: list[Cell], path: Path) -> None:
    """Errors by epsilon above, by number of rows below. Shaded areas reach from the 10% quantile to the 90% quantile."""
    import drawing

    figure, axes = drawing.panels(2, 2, height=3.0)
    for kind, axis in zip(KINDS, axes[0], strict=True):
        draw_budgets(axis, [line for line in lines if line["part"] == "budget" and line["kind"] == kind])
    for kind, axis in zip(KINDS, axes[1], strict=True):
        shown = [line for line in lines if line["part"] == "rows" and line["kind"] == kind]
        draw_methods(axis, shown, "n")
        axis.set(title=kind, xlabel="rows")
        axis.xaxis.set_major_formatter(lambda rows, _: f"{rows / 1000:g}k")
    for axis in axes.flat:
        axis.set_ylim(0.0, 0.66)
    for axis in axes[:, 0]:
        axis.set_ylabel("test error")
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=2)
    drawing.save(figure, path)


def draw_methods(axis: Any, lines: list[Cell], by: str) -> None:
    """Means, bars of two standard errors, and the tenths of single releases."""
    import drawing

    x = [line[by] for line in lines]
    for name in METHODS:
        times = [FOLDS * (1 if name == "non-private" else line["draws"]) for line in lines]
        lengths = [2.0 * line[name][1] / max(1, count - 1) ** 0.5 for line, count in zip(lines, times, strict=True)]
        drawing.line(axis, name, x, [line[name][0] for line in lines], lengths=lengths)
        drawing.band(axis, name, x, [line[name][2:] for line in lines])


def draw_budgets(axis: Any, lines: list[Cell]) -> None:
    """Errors by epsilon, with the independent program."""
    import drawing

    draw_methods(axis, lines, "epsilon")
    kind, x = lines[0]["kind"], [line["epsilon"] for line in lines]
    for place, name in enumerate(METHODS[1:]):
        colour = drawing.STYLES[name]["color"]
        check = [INDEPENDENT[kind].get(epsilon, (None, None))[place] for epsilon in x]
        drawing.line(axis, f"{name}, independent", x, check, "independent", color=colour)
    axis.set(title=kind, xlabel="epsilon", xscale="log")
    drawing.plain_ticks(axis, "x", LABELLED)


def main() -> None:
    """Measure what is missing, then write tables and figure."""
    asked = options(__file__, __doc__)
    lines = asked.cells.run(cells_of(asked.quick), measure)
    asked.write(text_of(lines), lambda path: draw(lines, path))


if __name__ == "__main__":
    main()
