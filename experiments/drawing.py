"""Figures as SVG, the same file for the same numbers. Needs Matplotlib, `pip install 'confide[plot]'`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Colours that colour-blind readers can tell apart (Okabe and Ito), and markers that can be told apart without colour.
STYLES = {
    "non-private": {"color": "#555555", "linestyle": "--", "marker": ""},
    "output": {"color": "#D55E00", "marker": "s"},
    "objective": {"color": "#0072B2", "marker": "o"},
    "objective, Laplace": {"color": "#56B4E9", "marker": "^", "linestyle": "-."},
    "theorem": {"color": "#000000", "linestyle": ":", "marker": ""},
    "recalled": {"linestyle": "none", "marker": "x", "markersize": 6},
}


def panels(rows: int, columns: int, **given: Any) -> tuple[Any, Any]:
    """A figure and its axes, in a (rows, columns) array."""
    import matplotlib as mpl

    mpl.use("Agg")
    # Text is stored as text, not as paths: files are smaller, and a diff shows what changed.
    mpl.rcParams.update({"svg.hashsalt": "confide", "svg.fonttype": "none"})
    mpl.rcParams.update({"font.size": 8, "lines.markersize": 3.5, "lines.linewidth": 1.2, "legend.frameon": False})
    from matplotlib import pyplot as plt

    return plt.subplots(rows, columns, figsize=(3.6 * columns, 2.7 * rows), squeeze=False, layout="constrained", **given)


def line(
    axis: Any,
    name: str,
    x: Iterable[float],
    y: Iterable[float | None],
    style: str | None = None,
    lengths: Iterable[float | None] | None = None,
    **given: Any,
) -> None:
    """One line in the style of its name, with error bars of these lengths. None and NaN are left out."""
    places, values = list(x), list(y)
    sizes = [0.0] * len(values) if lengths is None else list(lengths)
    points = [(a, b, c) for a, b, c in zip(places, values, sizes, strict=True) if b is not None and b == b]
    if not points:
        return
    a, b, c = zip(*points, strict=True)
    given = STYLES.get(style or name, {}) | given
    if lengths is None:
        axis.plot(a, b, label=name, **given)
    else:
        axis.errorbar(a, b, yerr=c, label=name, elinewidth=0.7, **given)


def band(axis: Any, name: str, x: Iterable[float], spread: Iterable[Iterable[float]], style: str | None = None) -> None:
    """A shaded area in the colour of a name, between the (low, high) of each point."""
    low, high = zip(*spread, strict=True)
    axis.fill_between(list(x), low, high, color=STYLES[style or name]["color"], alpha=0.15, linewidth=0.0)


def refused(axis: Any, name: str, x: Iterable[float]) -> None:
    """A cross at the bottom of the panel for each cell that was refused."""
    for place in x:
        axis.plot(
            [place], [0.04], transform=axis.get_xaxis_transform(), color=STYLES[name]["color"], marker="X", markersize=6,
            linestyle="none",
        )  # fmt: skip


def save(figure: Any, path: Path) -> None:
    """Write the figure without a date."""
    from matplotlib import pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
