"""What pictures of private counts have in common: where counts come from, and what is refused before a charge."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from confide.displays.axes import pyplot_for
from confide.errors import ParameterError
from confide.estimators.evaluation import evaluate
from confide.inference.rates import Evaluation


class CountsDisplay(ABC):
    """A picture of private counts of rows by class and score.

    Parameters
    ----------
    evaluation : Evaluation
        From `confide.evaluate`.

    Attributes
    ----------
    ax_ : Matplotlib axes
    figure_ : Matplotlib figure
    """

    ax_: Any
    figure_: Any
    _needs_probabilities: ClassVar[bool] = False
    """Whether a model without probabilities has no such picture."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    @classmethod
    def from_counts(cls, evaluation: Evaluation, *, ax: Any = None) -> Self:
        """Draw counts that were released. This costs nothing more.

        Parameters
        ----------
        evaluation : Evaluation
            From `confide.evaluate`.
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
        if not isinstance(evaluation, Evaluation):
            raise ParameterError(
                f"{cls.__name__}.from_counts needs what confide.evaluate gives. To release counts and draw them, call "
                f"{cls.__name__}.from_estimator(model, X, y, budget=...)."
            )
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
            raise ParameterError(
                f"{cls.__name__}.from_estimator counts rows privately, so it needs rows and a price: "
                f"{cls.__name__}.from_estimator(model, X, y, budget=0.5, ledger=ledger), with rows from which the model did "
                f"not learn. To draw counts that were released, call {cls.__name__}.from_counts(evaluation). Nothing was "
                f"charged."
            )
        pyplot_for(cls.__name__)
        if ax is not None and not hasattr(ax, "fill_between"):
            raise ParameterError(
                "ax must be the axes of Matplotlib to draw on, or None for a new figure. Nothing was charged."
            )
        two_classes = len(getattr(estimator, "classes_", ())) == 2
        if not two_classes or any(others.get(name) is not None for name in ("groups", "other", "clip")):
            raise ParameterError(
                f"{cls.__name__} draws the histogram of one model of two classes, without groups, other or clip. Nothing "
                f"was charged."
            )
        if cls._needs_probabilities and not hasattr(estimator, "predict_proba"):
            raise ParameterError(
                "a support vector machine gives no probabilities, so nothing to calibrate. Nothing was charged."
            )
        return cls.from_counts(evaluate(estimator, X, y, budget=budget, ledger=ledger, **others), ax=ax)

    @abstractmethod
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

    @property
    def _released_under(self) -> str:
        """What a title says of the price of the counts."""
        if self.evaluation.void:
            return "not private"
        budget = self.evaluation.plan.budget
        return f"counts released at {', '.join(f'{name} = {getattr(budget, name):g}' for name in budget.ranges)}"
