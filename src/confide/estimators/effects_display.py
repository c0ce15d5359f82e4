"""Pictures of effects by scikit-learn's convention: a display made from an estimator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confide.effects.effects import Effect
from confide.effects.picture import draw_effects
from confide.errors import ParameterError
from confide.estimators.model_effects import effects_of
from confide.known_words import listed


class EffectsDisplay:
    """A picture of the effects of columns: a curve for each number, a point for each level of a category.

    Bands cover sampling and the noise for privacy. The inner band is for each value by itself, the outer one for all values
    of a column together. Small marks on the axis are the knots, between which a curve is straight. No row is drawn.

    Parameters
    ----------
    effects : sequence of Effect
        The effects of single columns.
    outcome : str
        What a larger score stands for.
    level : float
        Confidence level of the bands.

    Attributes
    ----------
    figure_ : Matplotlib figure
    axes_ : list of Matplotlib axes, one for each effect
    ax_ : the first of them

    Raises
    ------
    ParameterError
        By `plot`, if Matplotlib is not installed.

    Notes
    -----
    Guarantee: that of the model. The picture is made of its release alone, and costs nothing more.
    """

    figure_: Any
    ax_: Any
    axes_: list[Any]

    def __init__(self, effects: Iterable[Effect], *, outcome: str, level: float = 0.95) -> None:
        self.effects = tuple(effects)
        self.outcome = outcome
        self.level = level

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, ax: Any = None, columns: Any = None, level: float = 0.95, label: Any = None
    ) -> EffectsDisplay:
        """Draw the effects of a fitted model with a schema.

        Parameters
        ----------
        estimator : fitted or loaded model with a schema
        ax : Matplotlib axes or None
            Their place is divided among the columns. None: a new figure.
        columns : str, list of str or None
            Names of columns. None: all.
        level : float, in (0, 1)
            Confidence level of the bands, where a share of the budget paid for them.
        label : class label or None
            The class that a larger score stands for. None: the one that the model shows.

        Returns
        -------
        EffectsDisplay
            Drawn: `figure_` and `axes_`.

        Raises
        ------
        ParameterError
            If the model has no effects, a column is not one of its own, or Matplotlib is not installed.
        """
        effects = effects_of(estimator)
        names = effects.encoder.schema.column_names
        wanted = names if columns is None else (columns,) if isinstance(columns, str) else tuple(columns)
        if not wanted or any(name not in names for name in wanted):
            raise ParameterError(f"columns must be some of the model's columns, which are {listed(names)}.")
        effects.check_label(label)
        by_name = {each.name: each for each in effects.with_bands(level) if len(each.columns) == 1 and each.label == label}
        outcome = effects.outcome if label is None else f"{effects.unit} of class {label}"
        display = cls((by_name[name] for name in wanted), outcome=outcome, level=level)
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> EffectsDisplay:
        """Draw on Matplotlib axes, whose place is divided among the columns, or on a new figure.

        Parameters
        ----------
        ax : Matplotlib axes or None
            None: a new figure.

        Returns
        -------
        The display itself.

        Raises
        ------
        ParameterError
            If Matplotlib is not installed.
        """
        self.figure_, self.axes_ = draw_effects(self.effects, self.outcome, self.level, ax)
        self.ax_ = self.axes_[0]
        return self
