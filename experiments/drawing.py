"""Figures as SVG, the same file for the same numbers. Needs Matplotlib, `pip install 'confide[plot]'`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

# Colours that stay apart for the colour-blind (Okabe and Ito), and markers that do without colour.
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
    # Text stays text: smaller files, which show what changed.
    mpl.rcParams.update({"svg.hashsalt": "confide", "svg.fonttype": "none"})
    mpl.rcParams.update({"font.size": 8, "lines.markersize": 3.5, "lines.linewidth": 1.2, "legend.frameon": False})
    from matplotlib import pyplot as plt

    return plt.subplots(rows, columns, figsize=(3.6 * columns, 2.7 * rows), squeeze=False, layout="constrained", **given)


def line(axis: Any, name: str, x: Iterable[float], y: Iterable[float], style: str | None = None, **given: Any) -> None:
    """One line in the style of its name; None and NaN are left out of it."""
    points = [(a, b) for a, b in zip(x, y, strict=True) if b is not None and b == b]
    if points:
        axis.plot(*zip(*points, strict=True), label=name, **(STYLES.get(style or name, {}) | given))


def save(figure: Any, path: Path) -> None:
    """Write the figure without a date."""
    from matplotlib import pyplot as plt

    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
