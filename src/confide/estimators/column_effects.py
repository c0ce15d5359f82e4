"""Effects of columns, as attributes and methods of a fitted model whose rows a schema describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confide.effects.effects import Contrast
from confide.estimators.effects_display import EffectsDisplay
from confide.estimators.model_effects import effects_of

if TYPE_CHECKING:
    import pandas as pd


class ColumnEffects:
    """What each column adds to the score of a linear model. Everything here is made from the release only."""

    @property
    def effects_(self) -> pd.DataFrame:
        """The effect of each column at its values, with intervals at level 0.95 where a share of the budget paid for them.

        The columns are "column", "value" and "effect" and, with intervals, "standard_error", the ends "low" and "high" of
        the interval of each value by itself, and the ends "joint_low" and "joint_high" of intervals that hold for all values
        of one effect together. With three or more classes, the first column is "class".

        For a number, values are its low, its knots and its high, and the effect between two of them is a straight line on
        the column's own scale. Missing cells have the value "(missing)". For an interaction, "column" has the names of its
        columns with colons between, and "value" is a tuple.

        Effects and intercept add up to the score in favour of the class that is shown: the schema's positive class, or
        without a target in the schema `classes_[1]`. For a curve the mean over the column's own scale is 0 (by the trapezoid
        rule). For a category the plain mean over its levels is 0. What an interaction adds has mean 0 along each of its
        columns, by the same weights. With softmax, the mean over classes is subtracted from effects.
        """
        return effects_of(self).to_frame()

    def contrast(self, column: str, first: Any, second: Any, *, level: float = 0.95, label: Any = None) -> Contrast:
        """How much the score changes if one column changes from one value to another, and all other columns stay.

        What interactions add is left out: it depends on the other columns, and has mean 0 over them.

        Parameters
        ----------
        column : str
            Name of a column of the schema.
        first, second : number or level
            Numbers within the column's bounds, or levels of a category. None means a missing cell.
        level : float, default 0.95
            Confidence level of the interval.
        label : class
            With three or more classes: the class whose score is meant.

        Returns
        -------
        Contrast
            The estimate; its standard error and interval too, if a share of the budget paid for intervals.

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If the model has no schema, the column is unknown, a number lies outside the bounds, or a level is not listed.
        """
        return effects_of(self).contrast(column, first, second, level=level, label=label)

    def plot_effects(self, ax: Any = None, columns: Any = None, *, level: float = 0.95, label: Any = None) -> EffectsDisplay:
        """Draw the effects of columns with Matplotlib: a curve for each number, a point for each level.

        Parameters
        ----------
        ax : Matplotlib axes or None
            Where to draw; its place is divided among the columns. None makes a new figure.
        columns : sequence of str, str or None
            Columns to be drawn; None means all. Interactions are not drawn.
        level : float, default 0.95
            Confidence level of the bands, if a share of the budget paid for them.
        label : class
            With three or more classes: the class whose effects are drawn.

        Returns
        -------
        EffectsDisplay
            With `figure_` and `axes_`.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed, or as for `contrast`.
        """
        return EffectsDisplay.from_estimator(self, ax=ax, columns=columns, level=level, label=label)
