"""A picture of coefficients: one point for each, with its interval where intervals were bought, and its unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from confide.effects.effects import Effect, has_effects
from confide.effects.picture import (
    BLUE,
    GREYS,
    NOISE_IN_PICTURE,
    ORANGE,
    Display,
    Pen,
    axes_for,
    broken,
    draw_effects,
    number_text,
    plain,
    shortened,
)
from confide.errors import ParameterError, checked_count, is_label, is_list, is_text
from confide.estimators.linear_model import released_model
from confide.estimators.released import ReleasedCoefficient, ReleasedCoefficients, effects_of
from confide.features.columns import with_unit
from confide.features.schema import Schema
from confide.inference.intervals import checked_level
from confide.inference.table import Coefficient
from confide.known_words import listed
from confide.models.model import ShownClass
from confide.parameters import checked_choice

_MOST, _LONGEST_NAME = 25, 80
_UNITS = ("bounds", "original", "encoded")
_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def coefficients_to_draw(
    model: Any, units: str | None, level: float, label: Any
) -> tuple[list[ReleasedCoefficient], str, str]:
    """The coefficients of a fitted model without intercepts, those that can matter most first.

    Returns
    -------
    The coefficients; what larger scores stand for; the name of the exponential of a coefficient, or "".

    Raises
    ------
    ParameterError
        If the model has random features, or the class is missing or unknown.
    """
    released = released_model(model)
    if released.fourier is not None:
        raise ParameterError(
            "single weights of random features mean nothing, so there is no picture of them. Fit LinearSVC, "
            "LogisticRegression or an additive model to see coefficients."
        )
    several = len(released.scoring.coef) > 1
    if several and not (is_label(label) and label in released.domain):
        raise ParameterError(f"give label=, one of the classes: {', '.join(map(str, released.domain))}.")
    if not several and label is not None:
        raise ParameterError("leave label out: this model has one score, not one for each class.")
    checked_choice("units", units, (*_UNITS, None))
    over_bounds = units == "bounds" or (units is None and released.encoder is not None)
    released_coefficients = ReleasedCoefficients.of(model, "original" if over_bounds else units, level)
    known: dict[str, Coefficient] = {}
    if released.has_intervals:
        summary = model.summary(level=level, units=released_coefficients.units)
        known = {coefficient.name: coefficient for coefficient in summary.coefficients}
    size = len(released_coefficients.coefficients) // len(released.scoring.coef)
    start = released.domain.index(label) * size if several else 0
    outcome = released_coefficients.outcome
    if released.domain:
        outcome = f"class {label}" if several else str(ShownClass.of(released))
    # The sort is stable: coefficients that matter alike keep the order of their columns.
    own = released_coefficients.coefficients[start : start + size - 1]
    shown = sorted(own, key=lambda coefficient: coefficient.size, reverse=True)
    schema = released.schema if over_bounds else None
    lines = [_line(coefficient, known.get(coefficient.name), label, schema) for coefficient in shown]
    return lines, outcome, released_coefficients.ratio


def _line(of: ReleasedCoefficient, known: Coefficient | None, label: Any, schema: Schema | None) -> ReleasedCoefficient:
    """The line of one coefficient. With a schema, a number is drawn for the step from its low to its high.

    `known` is its line in the table. With softmax the mean over classes is subtracted there, as from its interval.
    """
    name, unit, span = of.name if label is None else of.name.removeprefix(f"{label}: "), of.unit, 1.0
    for column in () if schema is None else schema.columns:
        if column.is_number and column.name == name:
            ends = (f"{column.low:,.6g}", f"{column.high:,.6g}")
            low, high = ends if column.holds_numbers else column.texts_of(column.bounds)
            unit, span = with_unit(f"from {low} to {high}", column.unit), of.span
            break
    else:
        if schema is not None and of.span != 1.0:
            unit, span = "from low to high", of.span
    noise = tuple(span * size for size in of.noise or ())
    if known is None or not np.isfinite([known.low, known.high]).all():
        return ReleasedCoefficient(span * (of if known is None else known).estimate, None, None, name, unit, noise=noise)
    return ReleasedCoefficient(known.estimate, known.low, known.high, name, unit, noise=noise).scaled(span)


class CoefficientsDisplay(Display):
    """A picture of the coefficients of a released model, each with its unit.

    Points are the released coefficients. Bars are intervals for sampling and noise together, where a share of the budget
    paid for them. The coefficient that can matter most within the bounds of its column stands on top. Intercepts are not
    drawn. Where the exponential of a coefficient is an odds ratio or a rate ratio, a second axis shows it.

    Parameters
    ----------
    coefficients : sequence of ReleasedCoefficient
        From top to bottom.
    outcome : str
        What larger coefficients favour.
    ratio : str
        "odds ratio", "rate ratio" or "".
    level : float
        Confidence level of the bars.
    n_coefficients : int
        Number of coefficients of the model, of which those are drawn.

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
    Guarantee: that of the model. The picture is made of what was released.

    Examples
    --------
    >>> import confide
    >>> adult = confide.datasets.load_adult()
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema).fit(adult.X_train, adult.y_train)
    >>> display = confide.CoefficientsDisplay.from_estimator(model, most=10)  # doctest: +SKIP
    """

    def __init__(
        self,
        coefficients: Sequence[ReleasedCoefficient],
        *,
        outcome: str,
        ratio: str = "",
        level: float = 0.95,
        n_coefficients: int | None = None,
    ) -> None:
        self.coefficients = tuple(coefficients)
        self.outcome, self.ratio, self.level = outcome, ratio, level
        self.n_coefficients = len(self.coefficients) if n_coefficients is None else n_coefficients

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        ax: Any = None,
        units: str | None = None,
        level: float = 0.95,
        label: Any = None,
        most: int = _MOST,
    ) -> CoefficientsDisplay:
        """Draw the coefficients of a fitted model.

        Parameters
        ----------
        estimator : fitted or loaded linear model of confide
            A model with random features, such as `KernelSVC`, has no coefficients of columns.
        ax : Matplotlib axes or None
            None makes a new figure.
        units : {"bounds", "original", "encoded"} or None, default None
            "bounds": numbers for the step from the low to the high of their bounds, so that all coefficients can be
            compared; categories against their reference level. "original" and "encoded" are those of `summary`. None means
            "bounds" where the model has a schema, and otherwise "encoded".
        level : float, default 0.95
            Confidence level of the intervals.
        label : class
            With three or more classes: the class whose coefficients are drawn.
        most : int, default 25
            The largest number of coefficients that are drawn.

        Returns
        -------
        CoefficientsDisplay

        Raises
        ------
        NotFittedError
            If the model is not fitted.
        ParameterError
            If Matplotlib is not installed, or the model has random features, or a parameter cannot be used.
        """
        level, most = checked_level(level), checked_count("most", most)
        drawn, outcome, ratio = coefficients_to_draw(estimator, units, level, label)
        display = cls(drawn[:most], outcome=outcome, ratio=ratio, level=level, n_coefficients=len(drawn))
        return display.plot(ax=ax)

    def _drawn(self, ax: Any) -> list[Any]:
        ax = _axes("CoefficientsDisplay", ax, self.coefficients, 0.32, 1.9)
        _draw(ax, self.coefficients, BLUE, 5.0)
        _name_lines(ax, self.coefficients, self.outcome)
        shown, number = len(self.coefficients), self.n_coefficients
        title = f"Coefficients ({shown} of {number})" if shown < number else "Coefficients"
        if any(coefficient.low is not None for coefficient in self.coefficients):
            title += f", intervals at {self.level:g} for sampling and noise"
        ax.set_title(plain(title), fontsize="medium", loc="left", pad=24.0 if self.ratio else None)
        if self.ratio:  # an axis above that shows exponentials
            low, high = ax.get_xlim()
            ratios = [ratio for ratio in _RATIOS if low <= np.log(ratio) <= high]
            above = ax.secondary_xaxis("top")
            above.set_xticks(np.log(ratios), [number_text(ratio) for ratio in ratios])
            above.spines["top"].set_visible(False)
            above.tick_params(labelsize="small", length=0.0)
            above.set_xlabel(self.ratio, fontsize="small", loc="right")
        return [ax]


def _axes(what: str, ax: Any, lines: Sequence[ReleasedCoefficient], inches: float, around: float) -> Any:
    """Axes with a line at 0, wide enough for the longest title, and with so many inches for each line and around them."""
    longest = max(len(line.title) for line in lines)
    ax = axes_for(what, ax, (4.6 + 0.075 * min(longest, _LONGEST_NAME), inches * len(lines) + around))
    ax.axvline(0.0, color="0.5", linewidth=0.8)
    return ax


def _draw(
    ax: Any, lines: Sequence[ReleasedCoefficient], colour: str, width: float, shift: float = 0.0, style: Any = None
) -> None:
    """A bar for each interval and a point for each coefficient, beside the places of the lines by so much."""
    places, butt = [place + shift for place in range(len(lines))], {"solid_capstyle": "butt"}
    for place, line in zip(places, lines, strict=True):
        for size, alpha in zip(line.noise, GREYS, strict=False):
            ax.plot([-size, size], [place] * 2, color="0.5", alpha=alpha, linewidth=2.0 * width, **butt)
        if line.low is not None:
            ax.plot([line.low, line.high], [place] * 2, color=colour, alpha=0.4, linewidth=width, **butt)
    style = {"color": colour, "marker": "o", "markersize": 5, "linestyle": ""} | (style or {})
    ax.plot([line.estimate for line in lines], places, **style)


def _name_lines(ax: Any, lines: Sequence[ReleasedCoefficient], outcome: str) -> None:
    """The names of the lines from top to bottom, and what larger coefficients favour."""
    ax.set_yticks(range(len(lines)), [shortened(line.title, _LONGEST_NAME) for line in lines])
    ax.set_ylim(len(lines) - 0.5, -0.5)
    ax.tick_params(labelsize="small")
    noise = f"\n{NOISE_IN_PICTURE}" if any(line.noise for line in lines) else ""
    named = broken(f"coefficient for the unit named; positive: for {outcome}{noise}", 8.0 * ax.figure.get_figwidth())
    ax.set_xlabel(named, fontsize="small")


# Two or more released models in one picture: their coefficients or their effects, side by side.

_KINDS = ("auto", "coefficients", "effects")
_COLOURS, _LINES = (BLUE, ORANGE, "#3f9b5f", "#8a63b8"), ("-", "--", "-.", ":")
_MOST_COMPARED = 20


class ComparisonDisplay(Display):
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
        most: int = _MOST_COMPARED,
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
        level, most = checked_level(level), checked_count("most", most)
        if checked_choice("kind", kind, _KINDS) == "auto":
            has_all = all(has_effects(released_model(estimator)) for estimator in estimators.values())
            kind = "effects" if has_all else "coefficients"
        drawn: Mapping[str, tuple[Any, ...]]
        if kind == "effects":
            drawn, outcome = _common_effects(estimators, columns, level, label)
        else:
            drawn, outcome = _common_coefficients(estimators, units, level, label, most)
        return cls(drawn, kind=kind, outcome=outcome, level=level).plot(ax=ax)

    def _drawn(self, ax: Any) -> list[Any]:
        middle = 0.5 * (len(self.drawn) - 1)
        if self.kind == "effects":
            pens = [
                Pen(colour, line, 0.26 * (number - middle), has_outer_band=False, label=plain(name))
                for number, (name, colour, line) in enumerate(zip(self.drawn, _COLOURS, _LINES, strict=False))
            ]
            _, axes = draw_effects([*zip(pens, self.drawn.values(), strict=True)], self.outcome, self.level, ax)
            axes[0].legend(fontsize="small", frameon=False)
            return axes
        first: tuple[ReleasedCoefficient, ...] = next(iter(self.drawn.values()))
        ax = _axes("ComparisonDisplay", ax, first, 0.42, 1.6)
        for number, (colour, (name, lines)) in enumerate(zip(_COLOURS, self.drawn.items(), strict=False)):
            _draw(ax, lines, colour, 4.0, 0.24 * (number - middle), {"markersize": 4.5, "label": plain(name)})
        _name_lines(ax, first, self.outcome)
        ax.set_title("Coefficients of several models", fontsize="medium", loc="left")
        ax.legend(fontsize="small", frameon=False)
        return [ax]


def _common_effects(
    estimators: Mapping[str, Any], columns: Any, level: float, label: Any
) -> tuple[dict[str, tuple[Effect, ...]], str]:
    """The effects of the same columns of each model, and what larger effects favour."""
    effects_by_model = {name: effects_of(model) for name, model in estimators.items()}
    described = [
        {one.name: replace(one, knots=(), atoms=()) if one.is_number else one for one in of.encoder.schema.columns}
        for of in effects_by_model.values()
    ]
    shared = [name for name, column in described[0].items() if all(its.get(name) == column for its in described)]
    wanted = shared if columns is None else list(columns) if is_list(columns) else [columns]
    if not wanted or any(not is_text(name) or name not in shared for name in wanted):
        which = f"These are {listed(shared)}." if shared else "They have none."
        raise ParameterError(f"columns must be those that all models describe alike, but for knots and atoms. {which}")
    outcome = _one_outcome(of.outcome for of in effects_by_model.values())
    drawn = {}
    for name, of in effects_by_model.items():
        of.check_label(label)
        its = {one.name: one for one in of.with_bands(level) if len(one.columns) == 1 and one.label == label}
        drawn[name] = tuple(its[column] for column in wanted)
    return drawn, outcome if label is None else f"{next(iter(effects_by_model.values())).unit} of class {label}"


def _common_coefficients(
    estimators: Mapping[str, Any], units: str | None, level: float, label: Any, most: int
) -> tuple[dict[str, tuple[ReleasedCoefficient, ...]], str]:
    """The same coefficients of each model, in the order of the first, and what larger ones favour."""
    lines_by_model, outcomes = {}, []
    for name, model in estimators.items():
        lines, outcome, _ = coefficients_to_draw(model, units, level, label)
        lines_by_model[name] = {(line.name, line.unit): line for line in lines}
        outcomes.append(outcome)
    first, *others = lines_by_model.values()
    shared = [key for key in first if all(key in lines for lines in others)][:most]
    if not shared:
        raise ParameterError("the models have no coefficient of the same name and unit.")
    return {name: tuple(lines[key] for key in shared) for name, lines in lines_by_model.items()}, _one_outcome(outcomes)


def _one_outcome(outcomes: Iterable[str]) -> str:
    """What larger values of all models favour."""
    different = list(dict.fromkeys(outcomes))
    if len(different) > 1:
        raise ParameterError(f"the models speak of different outcomes and cannot be compared: {listed(different)}.")
    return different[0]
