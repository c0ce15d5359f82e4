"""Figures as SVG, the same file for the same numbers. Needs Matplotlib, `pip install '.[plot]'`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

# Colours that colour-blind readers can tell apart (Okabe and Ito), and markers that can be told apart without colour.
_LEAST_DISTANCE = 0.09
"""Between the names of two lines, as a share of the height of the panel."""
STYLES = {
    "non-private": {"color": "#555555", "linestyle": "--", "marker": ""},
    "output": {"color": "#D55E00", "marker": "s"},
    "objective": {"color": "#0072B2", "marker": "o"},
    "objective, Laplace": {"color": "#56B4E9", "marker": "^", "linestyle": "-."},
    "theorem": {"color": "#000000", "linestyle": ":", "marker": ""},
    "independent": {"linestyle": "none", "marker": "x", "markersize": 6},
}


def panels(rows: int, columns: int, height: float = 2.5, **given: Any) -> tuple[Any, Any]:
    """A figure and its axes, in a (rows, columns) array. It can be read at the width of a telephone."""
    import matplotlib as mpl

    mpl.use("Agg")
    # Text is stored as text, not as paths: files are smaller, and a diff shows what changed.
    mpl.rcParams.update({"svg.hashsalt": "confide", "svg.fonttype": "none", "font.family": "sans-serif"})
    mpl.rcParams.update({"font.size": 10, "axes.titlesize": 10, "lines.markersize": 4, "lines.linewidth": 1.3})
    mpl.rcParams.update({"legend.frameon": False, "axes.spines.top": False, "axes.spines.right": False})
    from matplotlib import pyplot as plt

    # One or two columns: a page on a telephone shrinks the figure to its width, and text with it.
    size = (5.6 if columns > 1 else 4.2, height * rows)
    return plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained", **given)


def plain_ticks(axis: Any, direction: str, places: Iterable[float]) -> None:
    """Ticks of a logarithmic axis at those of these places that it shows, as plain numbers."""
    low, high = axis.get_xlim() if direction == "x" else axis.get_ylim()
    shown = [place for place in places if low <= place <= high]
    along = axis.xaxis if direction == "x" else axis.yaxis
    along.set_ticks(shown, [f"{place:g}" for place in shown])
    along.set_ticks([], minor=True)


def name_lines(axis: Any) -> None:
    """Write the name of each line of a panel at its right end, in its colour, and keep the names apart."""
    axis.figure.canvas.draw()
    ends: list[list[Any]] = []
    for handle, name in zip(*axis.get_legend_handles_labels(), strict=True):
        of_it = handle[0] if isinstance(handle, tuple) else handle
        x, y = of_it.get_xdata(), of_it.get_ydata()
        place = axis.transAxes.inverted().transform(axis.transData.transform((x[-1], y[-1])))
        ends.append([float(np.clip(place[1], 0.0, 1.0)), name, of_it.get_color()])
    ends.sort(key=lambda end: end[0])
    for before, after in pairwise(ends):
        after[0] = max(after[0], before[0] + _LEAST_DISTANCE)
    for after, before in pairwise([[1.0 + _LEAST_DISTANCE], *reversed(ends)]):
        before[0] = min(before[0], after[0] - _LEAST_DISTANCE)
    for place, name, colour in ends:
        axis.text(1.03, place, name, color=colour, transform=axis.transAxes, va="center", fontsize=8.5)


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
