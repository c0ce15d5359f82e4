"""Sentences that warn of an unusual budget. Plans, fits, guarantees and reports show the same ones."""

from __future__ import annotations

import math
import sys
import warnings
from types import FrameType
from typing import Any

from confide.errors import PrivacyWarning

EXAMPLE_DELTA = 1e-6
"""Delta at which a concentrated budget is shown as an epsilon."""
_USUAL_DELTA = 1e-5
_LARGEST_USUAL_EPSILON = 10.0

UNDECLARED_LABELS = (
    "The labels were not declared, so they are learned from y and become public with the model: one that a single person "
    "has would show. Declare all labels that there can be, as `classes` or as the target of the schema."
)


def cautions(budget: Any, n_rows_low: int, n_rows_high: int) -> tuple[str, ...]:
    """The sentences on a budget that promises little, from public facts alone. A usual or an infinite budget has none.

    Parameters
    ----------
    budget : PureDP, ApproxDP or ZCDP
    n_rows_low, n_rows_high : public bounds on the number of rows; they are equal where that number is public
    """
    if not budget.is_private:
        return ()
    found = (_large_delta(getattr(budget, "delta", 0.0), n_rows_low, n_rows_high), _large_epsilon(budget))
    return tuple(sentence for sentence in found if sentence is not None)


def steps_outside(frame: FrameType) -> int:
    """Number of calls between a frame and the first code outside of confide and scikit-learn, where a warning points."""
    steps = 0
    while frame.f_back is not None and _package_of(frame) in ("confide", "sklearn", "contextlib"):
        frame, steps = frame.f_back, steps + 1
    return steps


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).split(".")[0]


def warn(sentences: tuple[str, ...]) -> None:
    """Give each sentence as a `PrivacyWarning`."""
    for sentence in sentences:
        warnings.warn(sentence, PrivacyWarning, stacklevel=1 + steps_outside(sys._getframe()))


def _large_delta(delta: float, low: int, high: int) -> str | None:
    if delta * low >= 1.0:
        return (
            f"Its delta, {delta:g}, is not below one over the number of rows: it would allow a release that shows some rows "
            f"outright. Choose a far smaller one."
        )
    if delta * high >= 1.0:
        return (
            f"Its delta, {delta:g}, is not below one over the largest number of rows that was declared: over so many rows "
            f"it would allow a release that shows some of them outright. Choose a far smaller one."
        )
    if delta > _USUAL_DELTA:
        return (
            f"Its delta, {delta:g}, is above the usual {_USUAL_DELTA:g}: it would allow a release that shows a row outright "
            f"with that probability. Choose a smaller one."
        )
    return None


def _large_epsilon(budget: Any) -> str | None:
    implied = budget if hasattr(budget, "epsilon") else budget.to_approx(EXAMPLE_DELTA)
    if not implied.epsilon > _LARGEST_USUAL_EPSILON:
        return None
    which = "Its epsilon" if implied is budget else f"The epsilon that it implies with delta = {EXAMPLE_DELTA:g}"
    factor = f"10^{math.floor(implied.epsilon / math.log(10.0))}"
    return (
        f"{which}, {implied.epsilon:.6g}, is above {_LARGEST_USUAL_EPSILON:g}: a release may become more than {factor} "
        f"times as probable through what one person contributed, which hides little of it. Choose a smaller budget."
    )
