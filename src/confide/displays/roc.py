"""A picture of the ROC curve, from private counts of rows by class and score."""

from __future__ import annotations

from typing import Any

from confide.displays.axes import BLUE, axes_for, plain
from confide.displays.calibration import refuse_undrawable, released_under
from confide.estimators.evaluation import evaluate
from confide.inference.rates import Evaluation
from confide.inference.roc import roc_curve


class RocDisplay:
    """A picture of the ROC curve: sensitivity against the rate of false positives.

    Points are thresholds between bins of the histogram. The band covers that the rows are a sample, and the noise, for each
    rate of false positives by itself.

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

    ax_: Any
    figure_: Any

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @classmethod
    def from_counts(cls, evaluation: Evaluation, *, ax: Any = None) -> RocDisplay:
        """Draw counts that were released. This costs nothing more.

        Parameters
        ----------
        evaluation : Evaluation
            From `confide.evaluate`.
        ax : Matplotlib axes or None
            None makes a new figure.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed, or a class has too few rows beside the noise.
        """
        return cls(evaluation).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, budget: Any, ledger: Any = None, ax: Any = None, **others: Any
    ) -> RocDisplay:
        """Release one noisy histogram of scores by class, charge it once, and draw it.

        To draw more than one picture of the same counts, call `confide.evaluate` once, and `from_counts` for each.

        Parameters
        ----------
        estimator, X, y, budget, ledger : as in `confide.evaluate`
            A fitted classifier with two classes, rows from which it did not learn, what the
            histogram costs, and where that is charged.
        ax : Matplotlib axes or None
            None makes a new figure.
        **others
            Further parameters of `confide.evaluate`: n_bins, level, neighbours, max_rows_per_person, random_state.

        Returns
        -------
        RocDisplay
            Its `evaluation` has the counts. Where the noise hides a class, the picture says so.

        Raises
        ------
        ParameterError, InputError, BudgetExceeded
            As in `confide.evaluate`, before anything is charged; and if Matplotlib is not installed.
        """
        refuse_undrawable("RocDisplay", estimator, ax)
        return cls.from_counts(evaluate(estimator, X, y, budget=budget, ledger=ledger, **others), ax=ax)

    def plot(self, ax: Any = None) -> RocDisplay:
        """Draw on Matplotlib axes, or on a new figure.

        Parameters
        ----------
        ax : Matplotlib axes or None
            None makes a new figure.

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
            ax.fill_between(curve.places, lows, highs, color=BLUE, alpha=0.25, linewidth=0.0)
            label = f"this model, area {area.value:.3f} ({area.low:.3f} to {area.high:.3f})"
            ax.plot(
                curve.false_positive_rates, curve.sensitivities, color=BLUE, marker="o", markersize=4.0, label=plain(label)
            )
        ax.set_xlabel(plain(f"false positives, of rows that are not {evaluation.outcome}"))
        ax.set_ylabel(plain(f"sensitivity, of rows that are {evaluation.outcome}"))
        ax.set_xlim(0.0, 1.0)
        ax.set_ylim(-0.02, 1.02)
        ax.set_title(f"ROC, band at {evaluation.level:g}\n{released_under(evaluation)}", fontsize="medium", loc="left")
        ax.legend(loc="lower right", fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self
