"""A picture of calibration, from private counts of rows by class and probability."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

from confide.displays.axes import BLUE, axes_for, plain
from confide.displays.counts import CountsDisplay
from confide.evaluations.class_rates import ClassEvaluation
from confide.evaluations.number_errors import NumberEvaluation
from confide.inference.rates import Evaluation


class CalibrationDisplay(CountsDisplay):
    """A picture of calibration: for each bin of probabilities, the part of its rows for which the prediction is right.

    For a calibrated model, points lie on the diagonal. Bars are intervals for the rows as a sample and for the noise, each
    by itself; the thin lines are a band whose intervals hold all together. Bins with too few rows beside the noise have no
    point. For a regression the picture shows the mean of the target for each bin of the prediction.

    Parameters
    ----------
    evaluation : Evaluation, ClassEvaluation or NumberEvaluation
        From `confide.evaluate`.

    Attributes
    ----------
    ax_ : Matplotlib axes
    figure_ : Matplotlib figure

    Raises
    ------
    ParameterError
        By `plot`, if Matplotlib is not installed.

    Notes
    -----
    Guarantee: that of the evaluation. The picture is made of its noisy counts alone.
    """

    _needs_probabilities = True
    _draws = (Evaluation, ClassEvaluation, NumberEvaluation)

    def plot(self, ax: Any = None) -> Self:
        """Draw on Matplotlib axes, or on a new figure.

        Parameters
        ----------
        ax : Matplotlib axes or None
            None makes a new figure.

        Returns
        -------
        The display itself.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed.
        """
        axis, ax = _axis_of(self.evaluation), axes_for("CalibrationDisplay", ax, (5.0, 4.8))
        rates, (low, high) = self.evaluation.calibration, axis.ends
        ax.plot([low, high], [low, high], color="0.4", linestyle="--", linewidth=1.0, label="calibrated")
        places = zip(_middles(axis.edges), rates, self.evaluation.calibration_band, strict=True)
        known = [(middle, rate, band) for middle, rate, band in places if rate.value is not None]
        for middle, rate, band in known:
            if band.value is not None:
                ax.plot([middle] * 2, [band.low, band.high], color=BLUE, alpha=0.4, linewidth=1.0)
            ax.plot([middle] * 2, [rate.low, rate.high], color=BLUE, alpha=0.4, linewidth=5.0, solid_capstyle="butt")
        label = f"this model, intervals and band at {self.evaluation.level:g}"
        ax.plot([each[0] for each in known], [each[1].value for each in known], color=BLUE, marker="o", label=label)
        ax.set_xlabel(plain(axis.across))
        ax.set_ylabel(plain(axis.up))
        ax.set_xlim(low, high)
        least = min([low, *(rate.low for _, rate, _ in known)])
        ax.set_ylim(least - 0.02 * (high - least), high + 0.02 * (high - least))
        hidden = len(rates) - len(known)
        hides = f"; the noise hides {hidden} of {len(rates)} bins" if hidden else ""
        title = f"Calibration\n{self._released_under}{hides}"
        ax.set_title(title, fontsize="medium", loc="left")
        ax.legend(loc="upper left", fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


@dataclass(frozen=True, slots=True)
class _Axis:
    """The bins of a calibration, and what the axes are called."""

    edges: tuple[float, ...]
    across: str
    up: str

    @property
    def ends(self) -> tuple[float, float]:
        return self.edges[0], self.edges[-1]


def _middles(edges: tuple[float, ...]) -> list[float]:
    return [0.5 * (low + high) for low, high in pairwise(edges)]


def _axis_of(evaluation: Any) -> _Axis:
    if isinstance(evaluation, ClassEvaluation):
        return _Axis(evaluation.edges, "probability of the predicted class", "part of the rows that are predicted right")
    if isinstance(evaluation, NumberEvaluation):
        return _Axis(evaluation.edges, f"predicted: {evaluation.target}", f"mean of {evaluation.target}")
    edges = tuple(place / evaluation.n_bins for place in range(evaluation.n_bins + 1))
    return _Axis(edges, f"predicted probability of {evaluation.outcome}", "part of the rows for which it is so")
