"""Two or more released models in one picture: their coefficients or their effects, side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from confide.displays.axes import BLUE, ORANGE, axes_for, plain, shortened
from confide.displays.coefficients import DrawnCoefficient, coefficients_to_draw
from confide.effects.effects import Effect, has_effects
from confide.effects.picture import Pen, draw_compared_effects
from confide.errors import ParameterError
from confide.estimators.linear_model import released_model
from confide.estimators.model_effects import effects_of
from confide.features.columns import Column, NumberColumn
from confide.known_words import listed, words_of

_KINDS = ("auto", "coefficients", "effects")
_COLOURS, _LINES = (BLUE, ORANGE, "#3f9b5f", "#8a63b8"), ("-", "--", "-.", ":")
_MOST, _LONGEST_NAME = 20, 80


class ComparisonDisplay:
    """A picture of two to four released models, side by side: the same coefficients, or the same effects.

    Bars and bands are intervals for sampling and noise, where a share of a model's budget paid for them. Where they do not
    overlap, the models differ by more than chance explains; where there are none, differences may be noise alone.

    Parameters
    ----------
    drawn : mapping of str to tuples
        For the name of each model, its coefficients or its effects.
    kind : {"coefficients", "effects"}
    outcome : str
        What larger values favour.
    level : float
        Confidence level of bars and bands.

    Attributes
    ----------
    ax_ : Matplotlib axes
    axes_ : list of Matplotlib axes
        One for each column of "effects"; otherwise `ax_` alone.
    figure_ : Matplotlib figure

    Raises
    ------
    ParameterError
        By `plot`, if Matplotlib is not installed.

    Notes
    -----
    Guarantee: those of the models together; what each cost adds up where they were made from the same rows.
    """

    ax_: Any
    axes_: list[Any]
    figure_: Any

    def __init__(self, drawn: Mapping[str, tuple[Any, ...]], *, kind: str, outcome: str, level: float = 0.95) -> None:
        self.drawn, self.kind, self.outcome, self.level = dict(drawn), kind, outcome, level

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        *,
        kind: str = "auto",
        columns: Any = None,
        units: str | None = None,
        level: float = 0.95,
        label: Any = None,
        most: int = _MOST,
        ax: Any = None,
    ) -> ComparisonDisplay:
        """Draw what two to four models have in common.

        Parameters
        ----------
        estimators : mapping of str to fitted or loaded models
            The models by the names that the picture gives them.
        kind : {"auto", "coefficients", "effects"}, default "auto"
            "auto" is "effects" where every model has a schema, and otherwise "coefficients".
        columns : sequence of str or None
            For "effects": the columns to be drawn. None means all that the models have in common.
        units, level, label : as for the display of one model
            See `CoefficientsDisplay` and `EffectsDisplay`.
        most : int, default 20
            For "coefficients": the largest number that are drawn.
        ax : Matplotlib axes or None
            None makes a new figure. Several effects need axes from `plt.subplots`, whose place is divided.

        Returns
        -------
        ComparisonDisplay

        Raises
        ------
        NotFittedError
            If a model is not fitted.
        ParameterError
            If Matplotlib is not installed, the models have nothing in common, or they predict different outcomes.
        """
        if not isinstance(estimators, Mapping) or not 2 <= len(estimators) <= len(_COLOURS):
            raise ParameterError('give two to four models by their names: {"this year": model, "last year": other}.')
        if kind not in _KINDS:
            raise ParameterError(f"kind must be one of {words_of(_KINDS, kind)}.")
        if kind == "auto":
            kind = "effects" if all(has_effects(released_model(each)) for each in estimators.values()) else "coefficients"
        drawn: Mapping[str, tuple[Any, ...]]
        if kind == "effects":
            drawn, outcome = _common_effects(estimators, columns, level, label)
        else:
            drawn, outcome = _common_coefficients(estimators, units, level, label, most)
        return cls(drawn, kind=kind, outcome=outcome, level=level).plot(ax=ax)

    def plot(self, ax: Any = None) -> ComparisonDisplay:
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
        self.axes_ = self._plot_effects(ax) if self.kind == "effects" else self._plot_coefficients(ax)
        self.ax_, self.figure_ = self.axes_[0], self.axes_[0].figure
        return self

    def _plot_effects(self, ax: Any) -> list[Any]:
        n = len(self.drawn)
        pens = [
            Pen(colour, line, 0.26 * (number - 0.5 * (n - 1)), has_outer_band=False, label=plain(name))
            for number, (name, colour, line) in enumerate(zip(self.drawn, _COLOURS, _LINES, strict=False))
        ]
        _, axes = draw_compared_effects(self.drawn, pens, self.outcome, self.level, ax)
        axes[0].legend(fontsize="small", frameon=False)
        return axes

    def _plot_coefficients(self, ax: Any) -> list[Any]:
        first: tuple[DrawnCoefficient, ...] = next(iter(self.drawn.values()))
        n = len(first)
        longest = min(_LONGEST_NAME, max(len(each.title) for each in first))
        ax = axes_for("ComparisonDisplay", ax, (4.6 + 0.075 * longest, 0.42 * n + 1.6))
        ax.axvline(0.0, color="0.5", linewidth=0.8)
        for number, (colour, (name, found)) in enumerate(zip(_COLOURS, self.drawn.items(), strict=False)):
            shift = 0.24 * (number - 0.5 * (len(self.drawn) - 1))
            for place, each in enumerate(found):
                if each.low is not None:
                    ends = [each.low, each.high]
                    ax.plot(ends, [place + shift] * 2, color=colour, alpha=0.4, linewidth=4.0, solid_capstyle="butt")
            places = [place + shift for place in range(n)]
            values = [each.estimate for each in found]
            ax.plot(values, places, color=colour, marker="o", markersize=4.5, linestyle="", label=plain(name))
        ax.set_yticks(range(n), [shortened(each.title, _LONGEST_NAME) for each in first])
        ax.set_ylim(n - 0.5, -0.5)
        ax.tick_params(labelsize="small")
        ax.set_xlabel(plain(f"coefficient for the unit named; positive: for {self.outcome}"), fontsize="small")
        ax.set_title("Coefficients of several models", fontsize="medium", loc="left")
        ax.legend(fontsize="small", frameon=False)
        return [ax]


def _common_effects(
    estimators: Mapping[str, Any], columns: Any, level: float, label: Any
) -> tuple[dict[str, tuple[Effect, ...]], str]:
    """The effects of the same columns of each model, and what larger effects favour."""
    found = {name: effects_of(model) for name, model in estimators.items()}
    described = {
        name: {each.name: each for each in map(_without_knots, of.encoder.schema.columns)} for name, of in found.items()
    }
    first = next(iter(described.values()))
    shared = [column for column in first if all(each.get(column) == first[column] for each in described.values())]
    wanted = shared if columns is None else [columns] if isinstance(columns, str) else list(columns)
    if not wanted or any(name not in shared for name in wanted):
        which = f"These are {listed(shared)}." if shared else "They have none."
        raise ParameterError(f"columns must be those that all models describe in the same way, but for knots. {which}")
    outcome = _one_outcome(of.outcome for of in found.values())
    drawn = {}
    for name, of in found.items():
        of.check_label(label)
        by_name = {each.name: each for each in of.with_bands(level) if len(each.columns) == 1 and each.label == label}
        drawn[name] = tuple(by_name[column] for column in wanted)
    return drawn, outcome if label is None else f"{next(iter(found.values())).unit} of class {label}"


def _without_knots(column: Column) -> Column:
    return replace(column, knots=()) if isinstance(column, NumberColumn) else column


def _common_coefficients(
    estimators: Mapping[str, Any], units: str | None, level: float, label: Any, most: int
) -> tuple[dict[str, tuple[DrawnCoefficient, ...]], str]:
    """The same coefficients of each model, in the order of the first, and what larger ones favour."""
    found, outcomes = {}, []
    for name, model in estimators.items():
        lines, outcome, _ = coefficients_to_draw(model, units, level, label)
        found[name] = {(each.name, each.unit): each for each in lines}
        outcomes.append(outcome)
    shared = [key for key in next(iter(found.values())) if all(key in each for each in found.values())][:most]
    if not shared:
        raise ParameterError("the models have no coefficient of the same name and unit.")
    return {name: tuple(each[key] for key in shared) for name, each in found.items()}, _one_outcome(outcomes)


def _one_outcome(outcomes: Iterable[str]) -> str:
    """What larger values of all models favour."""
    different = list(dict.fromkeys(outcomes))
    if len(different) > 1:
        raise ParameterError(f"the models speak of different outcomes and cannot be compared: {listed(different)}.")
    return different[0]
