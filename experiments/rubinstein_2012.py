"""Rubinstein, Bartlett, Huang and Taft, Learning in a large function space (JPC 2012): how near private machines come.

The paper has theorems and no measurements. Here the theorems are compared with what the library releases.

- "finite" (PrivateSVM-Finite): the largest distance of decision functions over all rows with entries up to 1, against
  theorem 11; 10,000 rows, C = 1, epsilon 1, 1,000 draws of noise.
- "kernel" (PrivateSVM): distance to the exact machine of the Gaussian kernel on a grid, in two parts: random features, and
  noise against corollary 15; and the accuracy that theorem 13 promises for this number of features.
- "sensitivity" (lemma 22): a pair of databases whose machines lie as far apart as the tight constant 2 L C k / n allows.
- "floor" (theorem 23): on that pair every mechanism is inaccurate with probability at least 1 / (1 + exp(epsilon)).
- "packing" (lemma 25): databases around a circle whose machines are pairwise apart by at least C / (2 n).

Run: python experiments/rubinstein_2012.py [--quick]
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from cells import Cell, seed_of
from pages import aligned, options
from releases import release_many
from scipy.optimize import minimize
from scipy.spatial.distance import cdist
from scipy.stats import gamma

import confide
from confide.planning.kernels import features_for_kernel

FAILURE = 0.05


def tenths(values: Any) -> list[float]:
    """The quantiles of 10% and 90%."""
    return [float(value) for value in np.quantile(values, (0.1, 0.9))]


def machine(budget: float, c: float, row_norm: float = 1.0) -> Any:
    """The hinge with independent Laplace noise on the weights, as in the paper. Without privacy it is the machine itself."""
    mechanism = "output-laplace" if math.isfinite(budget) else "auto"
    settings = {"row_norm": row_norm, "fit_intercept": False, "classes": [0, 1], "mechanism": mechanism}
    return confide.LinearSVC(budget, loss="hinge", alpha=1.0 / c, **settings)


def measure_finite(cell: Cell) -> Cell:
    """Largest distance over the box of entries up to 1: the L1 norm of the difference of weights."""
    rng, n, width = np.random.default_rng(cell["width"]), cell["n"], cell["width"]
    rows = rng.normal(size=(n, width))
    rows *= rng.uniform(size=(n, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
    labels = (rows @ rng.normal(size=width) + 0.1 * rng.normal(size=n) > 0.0).astype(int)
    exact = release_many(machine(math.inf, cell["c"]), rows, labels, 1, 0).weights
    released = release_many(machine(cell["epsilon"], cell["c"]), rows, labels, cell["draws"], seed_of(cell))
    distances = np.abs(released.weights - exact).sum(axis=1)
    scale = 2.0 * cell["c"] * math.sqrt(width) / (cell["epsilon"] * n)
    # Theorem 11 with F log 2 in place of F, solved for the accuracy of this scale.
    promised = 2.0 * scale * (width * math.log(2.0) - math.log(FAILURE))
    return {
        "scale": scale,
        "planned_scale": released.plan.lattice.scale,
        "median": float(np.median(distances)),
        "tenths": tenths(distances),
        "quantile": float(np.quantile(distances, 1.0 - FAILURE)),
        "law": float(gamma.ppf(1.0 - FAILURE, width) * scale),
        "promised": promised,
        "beyond": float(np.mean(distances > promised)),
    }


def exact_machine(kernel: np.ndarray, labels: np.ndarray, c: float) -> tuple[np.ndarray, float]:
    """Coefficients of the machine without intercept, from its dual, and the duality gap."""
    signs, box = np.where(labels == 1, 1.0, -1.0), c / len(labels)
    signed = kernel * np.outer(signs, signs)

    def dual(alpha: np.ndarray) -> tuple[float, np.ndarray]:
        product = signed @ alpha
        return 0.5 * float(alpha @ product) - float(alpha.sum()), product - 1.0

    tight = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50}
    alpha = minimize(
        dual, np.full(len(labels), box), jac=True, method="L-BFGS-B", bounds=[(0.0, box)] * len(labels), options=tight
    ).x
    margins = signed @ alpha
    primal = 0.5 * float(alpha @ margins) + box * float(np.maximum(1.0 - margins, 0.0).sum())
    return alpha * signs, primal + dual(alpha)[0]


def gaussian_kernel(one: np.ndarray, other: np.ndarray, length_scale: float) -> np.ndarray:
    """exp(-|x - y|^2 / (2 s^2))."""
    return np.exp(-cdist(one, other, "sqeuclidean") / (2.0 * length_scale**2))


def grid_of(low: float, high: float, size: int = 41) -> np.ndarray:
    """Points of a square."""
    ticks = np.linspace(low, high, size)
    return np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)


def promised_accuracy(n_pairs: int, cell: Cell) -> float | None:
    """The smallest accuracy for which theorem 13 asks for no more pairs of features, by bisection; None if there is none."""
    low, high = 1e-3, 1e3
    given = {"failure": FAILURE, "alpha": 1.0 / cell["c"], "length_scale": cell["length_scale"], "diameter": math.sqrt(2.0)}
    if features_for_kernel(2, accuracy=high, **given) > n_pairs:
        return None
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if features_for_kernel(2, accuracy=middle, **given) <= n_pairs else (middle, high)
    return high


def measure_kernel(cell: Cell) -> Cell:
    """Distances on the unit square, over maps and draws of noise."""
    rng, n, pairs = np.random.default_rng(2012), cell["n"], cell["pairs"]
    rows = rng.uniform(size=(n, 2))
    labels = (np.linalg.norm(rows - 0.5, axis=1) < 0.35).astype(int)
    labels ^= rng.uniform(size=n) < 0.05
    grid, s = grid_of(0.0, 1.0), cell["length_scale"]
    coefficients, gap = exact_machine(gaussian_kernel(rows, rows, s), labels, cell["c"])
    exact = gaussian_kernel(grid, rows, s) @ coefficients
    by_features, by_noise, whole = [], [], []
    for seed in range(cell["maps"]):
        features = confide.RandomFourierFeatures(kernel="rbf", length_scale=s, n_features=2 * pairs, random_state=seed).fit(
            rows
        )
        mapped, on_grid = features.transform(rows), features.transform(grid)
        plain = on_grid @ release_many(machine(math.inf, cell["c"]), mapped, labels, 1, 0).weights[0]
        private = release_many(machine(cell["epsilon"], cell["c"]), mapped, labels, cell["draws"], seed_of(cell) + seed)
        scores = on_grid @ private.weights.T
        by_features.append(np.abs(plain - exact).max())
        by_noise.extend(np.abs(scores - plain[:, None]).max(axis=0))
        whole.extend(np.abs(scores - exact[:, None]).max(axis=0))
    scale = 2.0**1.5 * cell["c"] * math.sqrt(pairs) / (cell["epsilon"] * n)
    # Corollary 15, solved for the accuracy of this scale. Half the accuracy and half the failures are for the noise.
    noise_bound = (
        0.5 * scale * max(16.0 * math.log(2.0) * math.sqrt(pairs), 8.0 * math.log(2.0 / FAILURE) / math.sqrt(pairs))
    )
    return {
        "gap": gap,
        "size": float(np.abs(exact).max()),
        "features": float(np.mean(by_features)),
        "features_tenths": tenths(by_features),
        "noise": float(np.quantile(by_noise, 1.0 - FAILURE / 2.0)),
        "noise_median": float(np.median(by_noise)),
        "noise_tenths": tenths(by_noise),
        "noise_bound": noise_bound,
        "whole": float(np.quantile(whole, 1.0 - FAILURE)),
        "promised": promised_accuracy(pairs, cell),
        "beyond": float(np.mean(np.array(by_noise) > noise_bound)),
    }


def neighbours(n: int, largest: float, gap: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of lemma 22 and the labels of both databases, which differ in the last row's."""
    rows = np.full((n, 1), largest)
    rows[: n // 2] = -largest
    rows[-1] = largest - gap
    first = np.ones(n, dtype=int)
    first[: n // 2] = 0
    second = first.copy()
    first[-1] = 0
    return rows, first, second


def measure_sensitivity(cell: Cell) -> Cell:
    """Weights of both machines of lemma 22 and their distance, by formula and by fit."""
    n, c, largest, gap = (cell[name] for name in ("n", "c", "largest", "gap"))
    assert 1.0 / largest > c * (largest * n - gap) / n
    rows, *both = neighbours(n, largest, gap)
    fitted = [float(release_many(machine(math.inf, c), rows, labels, 1, 0).weights[0, 0]) for labels in both]
    formula = [c * (largest * (n - 2) + gap) / n, c * (largest * n - gap) / n]
    return {"fitted": fitted, "formula": formula, "share": abs(fitted[1] - fitted[0]) / (2.0 * c * largest / n)}


def measure_floor(cell: Cell) -> Cell:
    """How often the release is further than the accuracy from the machine, on rows up to 1, and the least possible share."""
    n, c = cell["n"], cell["c"]
    accuracy = 0.999 * math.sqrt(c) / (2.0 * n)
    rows, *both = neighbours(n, 2.0 * n * accuracy / c, n * accuracy / c)
    failures = []
    for labels in both:
        exact = release_many(machine(math.inf, c), rows, labels, 1, 0).weights
        released = release_many(machine(cell["epsilon"], c), rows, labels, cell["draws"], seed_of(cell))
        failures.append(float(np.mean(np.abs(released.weights - exact) > accuracy)))
    return {
        "failure": max(failures),
        "least": 1.0 / (1.0 + math.exp(cell["epsilon"])),
        "law": math.exp(-cell["epsilon"] * accuracy * n / (2.0 * c)),
    }


def measure_packing(cell: Cell) -> Cell:
    """Least distance between exact machines of lemma 25, and how often the private one fails to be that accurate."""
    n, c, s = cell["n"], cell["c"], cell["length_scale"]
    count = math.floor(2.0 / s * math.sqrt(2.0 / math.log(2.0)))
    angles = 2.0 * math.pi * np.arange(count) / count
    corners = np.column_stack([np.cos(angles), np.sin(angles)])
    grid = np.vstack([grid_of(-1.2, 1.2, 61), corners])
    labels = np.zeros(n, dtype=int)
    labels[-1] = 1
    machines, failures = [], []
    for place, corner in enumerate(corners):
        rows = np.zeros((n, 2))
        rows[-1] = corner
        coefficients, _ = exact_machine(gaussian_kernel(rows, rows, s), labels, c)
        machines.append(gaussian_kernel(grid, rows, s) @ coefficients)
        features = confide.RandomFourierFeatures(kernel="rbf", length_scale=s, n_features=256, random_state=place).fit(rows)
        private = release_many(
            machine(cell["epsilon"], c), features.transform(rows), labels, cell["draws"], seed_of(cell) + place
        )
        scores = features.transform(grid) @ private.weights.T
        failures.extend(np.abs(scores - machines[-1][:, None]).max(axis=0) > c / (4.0 * n))
    apart = cdist(machines, machines, "chebyshev") + np.diag(np.full(count, math.inf))
    return {
        "databases": count,
        "apart": float(apart.min()),
        "formula": (1.0 - math.exp(-2.0 / s**2 * math.sin(math.pi / count) ** 2)) * c / n,
        "at_least": c / (2.0 * n),
        "failure": float(np.mean(failures)),
        "least": (count - 1.0) / (count - 1.0 + math.exp(cell["epsilon"])),
    }


MEASURES = {
    "finite": measure_finite,
    "kernel": measure_kernel,
    "sensitivity": measure_sensitivity,
    "floor": measure_floor,
    "packing": measure_packing,
}


def cells_of(quick: bool) -> Iterator[Cell]:
    """All parts."""
    for width in (2, 20) if quick else (1, 2, 5, 10, 20, 50, 100, 200):
        draws, n = (50, 1_000) if quick else (1_000, 10_000)
        yield {"part": "finite", "width": width, "n": n, "c": 1.0, "epsilon": 1.0, "draws": draws}
    for pairs in (16, 64) if quick else (8, 16, 32, 64, 128):
        sizes = {"n": 300, "maps": 2, "draws": 5} if quick else {"n": 3_000, "maps": 10, "draws": 40}
        yield {"part": "kernel", "pairs": pairs, "length_scale": 0.3, "c": 50.0, "epsilon": 1.0, **sizes}
    for n, c, largest, gap in ((10, 1.0, 0.5, 0.1), (10, 1.0, 0.5, 1e-6), (100, 4.0, 0.3, 0.01), (100, 4.0, 0.3, 1e-6)):
        yield {"part": "sensitivity", "n": n, "c": c, "largest": largest, "gap": gap}
    for epsilon in (1.0, 4.0) if quick else (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        yield {"part": "floor", "n": 100, "c": 1.0, "epsilon": epsilon, "draws": 100 if quick else 10_000}
    for length_scale, c, n in ((0.5, 3.0, 10),) if quick else ((0.3, 1.0, 8), (0.5, 3.0, 10), (0.2, 5.0, 6)):
        yield {"part": "packing", "length_scale": length_scale, "c": c, "n": n, "epsilon": 1.0, "draws": 2 if quick else 10}


HEADS = {
    "finite": ["columns", "median", "95%", "95%, law", "theorem 11", "beyond it"],
    "kernel": ["pairs", "by features", "by noise, 97.5%", "corollary 15", "whole, 95%", "theorem 13"],
    "sensitivity": ["n", "C", "M", "m", "w1", "w1, formula", "w2", "w2, formula", "share"],
    "floor": ["epsilon", "measured", "exp(-epsilon n a / (2 C))", "least possible"],
    "packing": ["length scale", "C", "n", "databases", "apart", "formula", "at least", "failures", "least possible"],
}


def titles_of(finite: Cell, kernel: Cell) -> dict[str, str]:
    """The text above each table."""
    return {
        "finite": (
            f"PrivateSVM-Finite: largest distance of decision functions over rows with entries up to 1, {finite['n']} rows, "
            f"C = {finite['c']:g}, epsilon {finite['epsilon']:g}; of {finite['draws']} draws median and 95% quantile, "
            f"beside the law of a sum of exponentials and theorem 11 at failure .05."
        ),
        "kernel": (
            f"PrivateSVM: largest distance on the unit square, {kernel['n']} rows, Gaussian kernel of length scale "
            f"{kernel['length_scale']:g}, C = {kernel['c']:g}, epsilon {kernel['epsilon']:g}, {kernel['maps']} maps with "
            f"{kernel['draws']} draws each; the exact machine's decision function is up to {kernel['size']:.2f}."
        ),
        "sensitivity": "Lemma 22: weights of the two machines, and their distance over the tight sensitivity 2 C M / n.",
        "floor": (
            "Theorem 23 on the pair of lemma 22, n = 100, C = 1, accuracy a = .999 sqrt(C) / (2 n): share of "
            "releases that are further off."
        ),
        "packing": (
            "Lemma 25: machines around a circle, at least C / (2 n) apart; and theorem 26 at accuracy C / (4 n), "
            "epsilon 1, 128 pairs of features."
        ),
    }


def row_of(line: Cell) -> list[str]:
    """One row of the table of its part."""
    if line["part"] == "finite":
        return [str(line["width"]), *(f"{line[name]:.5f}" for name in ("median", "quantile", "law", "promised", "beyond"))]
    if line["part"] == "kernel":
        promised = "none" if line["promised"] is None else f"{line['promised']:.1f}"
        return [str(line["pairs"]), *(f"{line[n]:.3f}" for n in ("features", "noise", "noise_bound", "whole")), promised]
    if line["part"] == "sensitivity":
        weights = [f"{value:.7f}" for pair in zip(line["fitted"], line["formula"], strict=True) for value in pair]
        return [*(f"{line[name]:g}" for name in ("n", "c", "largest", "gap")), *weights, f"{line['share']:.6f}"]
    if line["part"] == "floor":
        return [f"{line['epsilon']:g}", *(f"{line[name]:.4f}" for name in ("failure", "law", "least"))]
    facts = [f"{line[name]:g}" for name in ("length_scale", "c", "n", "databases")]
    return [*facts, *(f"{line[name]:.4f}" for name in ("apart", "formula", "at_least", "failure", "least"))]


def text_of(lines: list[Cell]) -> str:
    """One table for each part."""
    of = {part: [line for line in lines if line["part"] == part] for part in MEASURES}
    titles = titles_of(of["finite"][0], of["kernel"][0])
    return "\n\n".join(f"{titles[part]}\n\n{aligned(HEADS[part], [row_of(line) for line in of[part]])}" for part in of)


def draw(lines: list[Cell], path: Path) -> None:
    """Distances by width, by number of features, and failures by epsilon. Shaded: 10% to 90% of releases or maps."""
    import drawing

    figure, axes = drawing.panels(3, 1, height=3.0)
    parts = ("finite", draw_finite), ("kernel", draw_kernel), ("floor", draw_floor)
    for axis, (part, draw_part) in zip(axes.flat, parts, strict=True):
        draw_part(axis, [line for line in lines if line["part"] == part])
    for axis in axes.flat:
        drawing.name_lines(axis)
    drawing.save(figure, path)


def draw_finite(axis: Any, lines: list[Cell]) -> None:
    """PrivateSVM-Finite: distances by number of columns; without privacy they are 0, which a logarithmic axis has not."""
    import drawing

    x = [line["width"] for line in lines]
    drawing.line(axis, "theorem 11", x, [line["promised"] for line in lines], "theorem")
    drawing.line(axis, "95%", x, [line["quantile"] for line in lines], "output")
    drawing.line(axis, "median", x, [line["median"] for line in lines], "output", linestyle="--")
    drawing.band(axis, "output", x, [line["tenths"] for line in lines])
    axis.set(title="PrivateSVM-Finite", xlabel="columns", ylabel="distance", xscale="log", yscale="log")
    drawing.plain_ticks(axis, "x", (1, 2, 5, 10, 20, 50, 100, 200))


def draw_kernel(axis: Any, lines: list[Cell]) -> None:
    """PrivateSVM: distances by noise and by random features, beside the size of the decision function without privacy."""
    import drawing

    x = [line["pairs"] for line in lines]
    drawing.line(axis, "corollary 15", x, [line["noise_bound"] for line in lines], "theorem")
    drawing.line(axis, "noise, 97.5%", x, [line["noise"] for line in lines], "output")
    drawing.line(axis, "median", x, [line["noise_median"] for line in lines], "output", linestyle="--")
    drawing.band(axis, "output", x, [line["noise_tenths"] for line in lines])
    drawing.line(axis, "features", x, [line["features"] for line in lines], "objective")
    drawing.band(axis, "objective", x, [line["features_tenths"] for line in lines])
    drawing.line(axis, "without privacy", x, [line["size"] for line in lines], "non-private")
    axis.set(title="PrivateSVM, Gaussian kernel", xlabel="pairs of features", ylabel="distance", xscale="log", yscale="log")
    drawing.plain_ticks(axis, "x", x)


def draw_floor(axis: Any, lines: list[Cell]) -> None:
    """Failures on the pair of lemma 22 by epsilon."""
    import drawing

    x = [line["epsilon"] for line in lines]
    drawing.line(axis, "theorem 23", x, [line["least"] for line in lines], "theorem")
    # Two standard errors of a share among this number of releases.
    lengths = [2.0 * math.sqrt(line["failure"] * (1.0 - line["failure"]) / line["draws"]) for line in lines]
    drawing.line(axis, "measured", x, [line["failure"] for line in lines], "output", lengths)
    drawing.line(axis, "without privacy", x, [0.0] * len(x), "non-private")
    axis.set(title="the pair of lemma 22, n = 100", xlabel="epsilon", ylabel="share that fails", xscale="log")
    drawing.plain_ticks(axis, "x", x)


def main() -> None:
    """Measure what is missing, then write tables and figure."""
    asked = options(__file__, __doc__)
    lines = asked.cells.run(cells_of(asked.quick), lambda cell: MEASURES[cell["part"]](cell))
    asked.write(text_of(lines), lambda path: draw(lines, path))


if __name__ == "__main__":
    main()
