"""Matplotlib axes to draw on, in the one style of all pictures."""

from __future__ import annotations

from typing import Any

from confide.errors import lacking

BLUE, ORANGE = "#2a8acb", "#d1700f"
"""Two colours that stand out from white and from black, and that people with any kind of colour vision tell apart."""


def pyplot_for(what: str) -> Any:
    """Matplotlib's interface for figures.

    Parameters
    ----------
    what : what needs it, for the message

    Raises
    ------
    ParameterError
        If Matplotlib is not installed.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError:
        raise lacking(what, "Matplotlib", "plot") from None
    return plt


def axes_for(what: str, ax: Any, size: tuple[float, float]) -> Any:
    """The axes to draw on: those that were given, or those of a new figure of this size in inches."""
    plt = pyplot_for(what)
    if ax is not None:
        return tidied(ax)
    figure = plt.figure(figsize=size, layout="constrained")
    return tidied(figure.add_subplot())


def tidied(ax: Any) -> Any:
    """The same axes with a quiet grid behind the drawing, and without a frame above and to the right."""
    ax.grid(color="0.5", alpha=0.25, linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def plain(text: str) -> str:
    """Text in which Matplotlib finds no formula."""
    return text.replace("$", r"\$")


def shortened(text: str, most: int) -> str:
    """Plain text of at most so many characters."""
    return plain(text if len(text) <= most else f"{text[: most - 1]}…")
