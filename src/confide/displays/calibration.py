"""A picture of calibration, from private counts of rows by class and probability."""

from __future__ import annotations

from typing import Any, Self

from confide.displays.axes import BLUE, axes_for, plain
from confide.displays.counts import CountsDisplay


class CalibrationDisplay(CountsDisplay):
    """A picture of calibration: for each bin of probabilities, the part of its rows that are positive.

    For a calibrated model, points lie on the diagonal. Bars are intervals for the rows as a sample and for the noise, each
    by itself. Bins with too few rows beside the noise have no point.

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

    _needs_probabilities = True

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
        rates = self.evaluation.calibration
        ax = axes_for("CalibrationDisplay", ax, (5.0, 4.8))
        ax.plot([0.0, 1.0], [0.0, 1.0], color="0.4", linestyle="--", linewidth=1.0, label="calibrated")
        middles = [(place + 0.5) / len(rates) for place in range(len(rates))]
        known = [(middle, rate) for middle, rate in zip(middles, rates, strict=True) if rate.value is not None]
        for middle, rate in known:
            ax.plot([middle] * 2, [rate.low, rate.high], color=BLUE, alpha=0.4, linewidth=5.0, solid_capstyle="butt")
        label = f"this model, intervals at {self.evaluation.level:g}"
        ax.plot([middle for middle, _ in known], [rate.value for _, rate in known], color=BLUE, marker="o", label=label)
        ax.set_xlabel(plain(f"predicted probability of {self.evaluation.outcome}"))
        ax.set_ylabel("part of the rows for which it is so")
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(-0.02, 1.02)
        hidden = len(rates) - len(known)
        hides = f"; the noise hides {hidden} of {len(rates)} bins" if hidden else ""
        title = f"Calibration\n{self._released_under}{hides}"
        ax.set_title(title, fontsize="medium", loc="left")
        ax.legend(loc="upper left", fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
