"""A picture of the ROC curve, from private counts of rows by class and score."""

from __future__ import annotations

from typing import Any, Self

from confide.displays.axes import BLUE, axes_for, plain
from confide.displays.counts import CountsDisplay
from confide.inference.roc import roc_curve


class RocDisplay(CountsDisplay):
    """A picture of the ROC curve: sensitivity against the rate of false positives.

    Points are thresholds between bins of the histogram. The dark band covers that the rows are a sample, and the noise, for
    each rate of false positives by itself; the light band covers them for the whole curve at once.

    Parameters
    ----------
    evaluation : Evaluation
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
        ax, evaluation = axes_for("RocDisplay", ax, (5.0, 4.8)), self.evaluation
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.4", linestyle="--", linewidth=1.0, label="chance")
        area = evaluation.auc
        if area.value is None:
            ax.text(0.97, 0.2, "The noise hides one of the classes:\nmore rows or a larger budget are needed.", ha="right")
        else:
            curve = roc_curve(evaluation)
            lows, highs = [rate.low for rate in curve.band], [rate.high for rate in curve.band]
            ends = [(rate.low, rate.high) for rate in curve.simultaneous_band]
            whole = f"band of the whole curve at {evaluation.level:g}"
            ax.fill_between(curve.places, *zip(*ends, strict=True), color=BLUE, alpha=0.12, linewidth=0.0, label=whole)
            ax.fill_between(curve.places, lows, highs, color=BLUE, alpha=0.25, linewidth=0.0)
            label = f"this model, area {area.value:.3f} ({area.low:.3f} to {area.high:.3f})"
            ax.plot(
                curve.false_positive_rates, curve.sensitivities, color=BLUE, marker="o", markersize=4.0, label=plain(label)
            )
        ax.set_xlabel(plain(f"false positives, of rows that are not {evaluation.outcome}"))
        ax.set_ylabel(plain(f"sensitivity, of rows that are {evaluation.outcome}"))
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(-0.02, 1.02)
        ax.set_title(f"ROC, intervals at {evaluation.level:g}\n{self._released_under}", fontsize="medium", loc="left")
        ax.legend(loc="lower right", fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
