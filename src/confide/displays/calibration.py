"""A picture of calibration, from private counts of rows by class and probability."""

from __future__ import annotations

from typing import Any

from confide.displays.axes import BLUE, axes_for, plain, pyplot_for
from confide.errors import ParameterError
from confide.estimators.evaluation import evaluate
from confide.inference.rates import Evaluation


class CalibrationDisplay:
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

    ax_: Any
    figure_: Any

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @classmethod
    def from_counts(cls, evaluation: Evaluation, *, ax: Any = None) -> CalibrationDisplay:
        """Draw counts that were released. This costs nothing more.

        Parameters
        ----------
        evaluation : Evaluation
            From `confide.evaluate`, of a model with probabilities.
        ax : Matplotlib axes or None
            None makes a new figure.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed, or the model gives no probabilities.
        """
        return cls(evaluation).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: Any = None, *, budget: Any, ledger: Any = None, ax: Any = None, **others: Any
    ) -> CalibrationDisplay:
        """Release one noisy histogram of scores by class, charge it once, and draw it.

        To draw more than one picture of the same counts, call `confide.evaluate` once, and `from_counts` for each.

        Parameters
        ----------
        estimator, X, y, budget, ledger : as in `confide.evaluate`
            A fitted classifier with two classes and probabilities, rows from which it did not
            learn, what the histogram costs, and where that is charged.
        ax : Matplotlib axes or None
            None makes a new figure.
        **others
            Further parameters of `confide.evaluate`: n_bins, level, neighbours, max_rows_per_person, random_state.

        Returns
        -------
        CalibrationDisplay
            Its `evaluation` has the counts.

        Raises
        ------
        ParameterError, InputError, BudgetExceeded
            As in `confide.evaluate`, before anything is charged; and if Matplotlib is not installed, or the model gives no
            probabilities.
        """
        refuse_undrawable("CalibrationDisplay", estimator, ax, needs_probabilities=True)
        return cls.from_counts(evaluate(estimator, X, y, budget=budget, ledger=ledger, **others), ax=ax)

    def plot(self, ax: Any = None) -> CalibrationDisplay:
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
        title = f"Calibration\n{released_under(self.evaluation)}{hides}"
        ax.set_title(title, fontsize="medium", loc="left")
        ax.legend(loc="upper left", fontsize="small", frameon=False)
        self.ax_, self.figure_ = ax, ax.figure
        return self


def refuse_undrawable(what: str, estimator: Any, ax: Any, *, needs_probabilities: bool = False) -> None:
    """Refuse, before anything is charged, what could not be drawn after the charge."""
    pyplot_for(what)
    if ax is not None and not hasattr(ax, "fill_between"):
        raise ParameterError("ax must be the axes of Matplotlib to draw on, or None for a new figure. Nothing was charged.")
    if needs_probabilities and not hasattr(estimator, "predict_proba"):
        raise ParameterError(
            "a support vector machine gives no probabilities, so nothing to calibrate. Nothing was charged."
        )


def released_under(evaluation: Evaluation) -> str:
    """What a title says of the price of the counts."""
    if evaluation.void:
        return "not private"
    budget = evaluation.plan.budget
    return f"counts released at {', '.join(f'{name} = {getattr(budget, name):g}' for name in budget.ranges)}"
