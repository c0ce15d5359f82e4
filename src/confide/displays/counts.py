"""Pictures of private counts: calibration and ROC curves, and what is refused before a charge."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar, Self

from confide.effects.picture import BLUE, Display, plain, pyplot_for
from confide.errors import ParameterError, checked_axes, wording
from confide.estimators.evaluation import evaluate
from confide.evaluations.class_rates import ClassEvaluation
from confide.evaluations.number_errors import NumberEvaluation
from confide.inference.rates import Evaluation, roc_curve
from confide.privacy.budgets import shown_amounts


class CountsDisplay(Display):
    """A picture of private counts of rows by class and score.

    Parameters
    ----------
    evaluation : what `confide.evaluate` gives

    Attributes
    ----------
    ax_ : Matplotlib axes
    figure_ : Matplotlib figure
    """

    _needs_probabilities: ClassVar[bool] = False
    """Whether a model without probabilities has no such picture."""
    _draws: ClassVar[tuple[type[Any], ...]] = (Evaluation,)
    """The evaluations that can be drawn."""

    def __init__(self, evaluation: Any) -> None:
        self.evaluation = evaluation

    @classmethod
    def from_counts(cls, evaluation: Any, *, ax: Any = None) -> Self:
        """Draw counts that were released. This costs nothing more.

        Parameters
        ----------
        evaluation : what `confide.evaluate` gives
        ax : Matplotlib axes or None
            None makes a new figure.

        Returns
        -------
        The display, drawn: `ax_` and `figure_`.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed, it is no evaluation, or the model gives no such picture.
        """
        if not isinstance(evaluation, cls._draws):
            call = f"To release and draw, call {cls.__name__}.from_estimator(model, X, y, budget=...)."
            raise ParameterError(f"{cls.__name__}.from_counts needs what confide.evaluate gives for such models. {call}")
        return cls(evaluation).plot(ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any = None, y: Any = None, *, budget: Any = None, ledger: Any = None, ax: Any = None,
        **others: Any,
    ) -> Self:  # fmt: skip
        """Release one noisy histogram of scores by class, charge it once, and draw it.

        To draw more than one picture of the same counts, call `confide.evaluate` once, and `from_counts` for each.

        Parameters
        ----------
        estimator, X, y, budget, ledger : as in `confide.evaluate`
            A fitted classifier with two classes (for calibration one with probabilities), rows from which it did not
            learn, what the histogram costs, and where that is charged.
        ax : Matplotlib axes or None
            None makes a new figure.
        **others
            Further parameters of `confide.evaluate`: n_bins, level, neighbours, max_rows_per_person, random_state.

        Returns
        -------
        The display, drawn. Its `evaluation` has the counts.

        Raises
        ------
        ParameterError, InputError, BudgetExceeded
            As in `confide.evaluate`, before anything is charged; and if Matplotlib is not installed, or the model gives no
            such picture.

        Notes
        -----
        Guarantee: that of `confide.evaluate` at this budget, for the rows given here.
        """
        if X is None or budget is None:
            call = f"{cls.__name__}.from_estimator(model, X, y, budget=0.5, ledger=ledger)"
            raise ParameterError(wording("picture needs rows and a price", call=call, display=cls.__name__))
        pyplot_for(cls.__name__)
        checked_axes("ax", ax)
        two_classes = len(getattr(estimator, "classes_", ())) == 2
        if not two_classes or any(others.get(name) is not None for name in ("groups", "other", "clip")):
            raise ParameterError(wording("picture is of two classes", display=cls.__name__, name__=cls.__name__))
        if cls._needs_probabilities and not hasattr(estimator, "predict_proba"):
            raise ParameterError("a support vector machine gives no probabilities to calibrate. Nothing was charged.")
        return cls.from_counts(evaluate(estimator, X, y, budget=budget, ledger=ledger, **others), ax=ax)

    @property
    def _released_under(self) -> str:
        """What a title says of the price of the counts."""
        if self.evaluation.void:
            return "not private"
        return f"counts released at {shown_amounts(self.evaluation.plan.budget)}"


# A picture of calibration, from private counts of rows by class and probability.


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

    def _draw(self, ax: Any) -> None:
        (across, up), ax = _names_of_axes(self.evaluation), self._on(ax, (5.0, 4.8))
        rates, edges = self.evaluation.calibration, self.evaluation.edges
        low, high = edges[0], edges[-1]
        ax.plot([low, high], [low, high], color="0.4", linestyle="--", linewidth=1.0, label="calibrated")
        places = zip([0.5 * sum(ends) for ends in pairwise(edges)], rates, self.evaluation.calibration_band, strict=True)
        known = [(middle, rate, band) for middle, rate, band in places if rate.value is not None]
        for middle, rate, band in known:
            if band.value is not None:
                ax.plot([middle] * 2, [band.low, band.high], color=BLUE, alpha=0.4, linewidth=1.0)
            ax.plot([middle] * 2, [rate.low, rate.high], color=BLUE, alpha=0.4, linewidth=5.0, solid_capstyle="butt")
        label = f"this model, intervals and band at {self.evaluation.level:g}"
        points = [(middle, rate.value) for middle, rate, _ in known]
        ax.plot(*(zip(*points, strict=True) if points else ((), ())), color=BLUE, marker="o", label=label)
        least = min([low, *(rate.low for _, rate, _ in known)])
        edge = 0.02 * (high - least)
        ax.set(xlabel=plain(across), ylabel=plain(up), xlim=(low, high), ylim=(least - edge, high + edge))
        hidden = len(rates) - len(known)
        hides = f"; the noise hides {hidden} of {len(rates)} bins" if hidden else ""
        ax.set_title(f"Calibration\n{self._released_under}{hides}", fontsize="medium", loc="left")
        ax.legend(loc="upper left", fontsize="small", frameon=False)


def _names_of_axes(evaluation: Any) -> tuple[str, str]:
    """What was predicted, and what the rates are of."""
    if isinstance(evaluation, ClassEvaluation):
        return "probability of the predicted class", "part of the rows that are predicted right"
    if isinstance(evaluation, NumberEvaluation):
        return f"predicted: {evaluation.target}", f"mean of {evaluation.target}"
    return f"predicted probability of {evaluation.outcome}", "part of the rows for which it is so"


# A picture of the ROC curve, from private counts of rows by class and score.


class RocDisplay(CountsDisplay):
    """A picture of the ROC curve: sensitivity against the rate of false positives.

    Points are thresholds between bins of the histogram. The inner band covers that the rows are a sample, and the noise, for
    each rate of false positives by itself; the outer band covers them for the whole curve at once.

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

    def _draw(self, ax: Any) -> None:
        ax, evaluation = self._on(ax, (5.0, 4.8)), self.evaluation
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
            label = plain(f"this model, area {area.value:.3f} ({area.low:.3f} to {area.high:.3f})")
            points = {"color": BLUE, "marker": "o", "markersize": 4.0, "label": label}
            ax.plot(curve.false_positive_rates, curve.sensitivities, **points)
        across, up = f"false positives, of rows that are not {evaluation.outcome}", "sensitivity, of rows that are"
        ax.set(xlabel=plain(across), ylabel=plain(f"{up} {evaluation.outcome}"), xlim=(0.0, 1.0), ylim=(-0.02, 1.02))
        ax.set_title(f"ROC, intervals at {evaluation.level:g}\n{self._released_under}", fontsize="medium", loc="left")
        ax.legend(loc="lower right", fontsize="small", frameon=False)
