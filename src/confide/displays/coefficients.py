"""A picture of coefficients: one point for each, with its interval where intervals were bought, and its unit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from confide.displays.axes import BLUE, axes_for, plain, shortened
from confide.effects.ticks import number_text
from confide.errors import ParameterError
from confide.estimators.linear_model import released_model
from confide.estimators.released_coefficients import ReleasedCoefficient, ReleasedCoefficients
from confide.features.columns import NumberColumn, with_unit
from confide.features.schema import Schema
from confide.inference.table import Coefficient
from confide.known_words import words_of
from confide.released_models.shown_class import ShownClass

_MOST, _LONGEST_NAME = 25, 80
_UNITS = ("bounds", "original", "encoded")
_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True, slots=True)
class DrawnCoefficient:
    """One line of the picture.

    Attributes
    ----------
    name, unit : str
    estimate : float
    low, high : float or None
        Ends of the interval; None where none was bought, or the noise hides what the rows tell.
    """

    name: str
    unit: str
    estimate: float
    low: float | None
    high: float | None

    @property
    def title(self) -> str:
        """Name and unit."""
        return f"{self.name}, {self.unit}" if self.unit else self.name


def coefficients_to_draw(model: Any, units: str | None, level: float, label: Any) -> tuple[list[DrawnCoefficient], str, str]:
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
    if several and label not in released.domain:
        raise ParameterError(f"give label=, one of the classes: {', '.join(map(str, released.domain))}.")
    if not several and label is not None:
        raise ParameterError("leave label out: this model has one score, not one for each class.")
    if units not in (*_UNITS, None):
        raise ParameterError(f"units must be one of {words_of(_UNITS, units)}.")
    over_bounds = units == "bounds" or (units is None and released.encoder is not None)
    found = ReleasedCoefficients.of(model, "original" if over_bounds else units)
    known = _with_intervals(model, found.units, level)
    size = len(found.coefficients) // len(released.scoring.coef)
    start = released.domain.index(label) * size if several else 0
    outcome = f"class {label}" if several else str(ShownClass.of(released)) if released.domain else found.outcome
    lines = [
        (
            abs(each.estimate) * each.span,
            _line(each, known.get(each.name), label, released.schema if over_bounds else None),
        )
        for each in found.coefficients[start : start + size - 1]
    ]
    lines.sort(key=lambda line: -line[0])
    return [line for _, line in lines], outcome, found.ratio


def _line(of: ReleasedCoefficient, known: Coefficient | None, label: Any, schema: Schema | None) -> DrawnCoefficient:
    """The line of one coefficient. With a schema, a number is drawn for the step from its low to its high.

    `known` is its line in the table. With softmax the mean over classes is subtracted there, as from its interval.
    """
    name, unit, span = _without(label, of.name), of.unit, 1.0
    number = next((each for each in _numbers(schema) if each.name == name), None)
    if number is not None:
        unit, span = with_unit(f"from {number.low:,.6g} to {number.high:,.6g}", number.unit), of.span
    elif schema is not None and of.span != 1.0:
        unit, span = "from low to high", of.span
    if known is None or not np.isfinite([known.low, known.high]).all():
        return DrawnCoefficient(name, unit, span * (of if known is None else known).estimate, None, None)
    return DrawnCoefficient(name, unit, span * known.estimate, span * known.low, span * known.high)


def _numbers(schema: Schema | None) -> list[NumberColumn]:
    return [] if schema is None else [each for each in schema.columns if isinstance(each, NumberColumn)]


def _without(label: Any, name: str) -> str:
    return name if label is None else name.removeprefix(f"{label}: ")


def _with_intervals(model: Any, units: str, level: float) -> dict[str, Coefficient]:
    """The lines of the table of coefficients by their names; none where nothing was released for intervals."""
    if not released_model(model).has_intervals:
        return {}
    return {each.name: each for each in model.summary(level=level, units=units).coefficients}


class CoefficientsDisplay:
    """A picture of the coefficients of a released model, each with its unit.

    Points are the released coefficients. Bars are intervals for sampling and noise together, where a share of the budget
    paid for them. The coefficient that can matter most within the bounds of its column stands on top. Intercepts are not
    drawn. Where the exponential of a coefficient is an odds ratio or a rate ratio, a second axis shows it.

    Parameters
    ----------
    coefficients : sequence of DrawnCoefficient
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

    ax_: Any
    figure_: Any

    def __init__(
        self,
        coefficients: Sequence[DrawnCoefficient],
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
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise ParameterError("most must be a whole number of at least 1.")
        found, outcome, ratio = coefficients_to_draw(estimator, units, level, label)
        display = cls(found[:most], outcome=outcome, ratio=ratio, level=level, n_coefficients=len(found))
        return display.plot(ax=ax)

    def plot(self, ax: Any = None) -> CoefficientsDisplay:
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
        n = len(self.coefficients)
        ax = axes_for("CoefficientsDisplay", ax, self._size)
        ax.axvline(0.0, color="0.5", linewidth=0.8)
        for place, each in enumerate(self.coefficients):
            if each.low is not None:
                ax.plot([each.low, each.high], [place] * 2, color=BLUE, alpha=0.4, linewidth=5.0, solid_capstyle="butt")
        ax.plot([each.estimate for each in self.coefficients], range(n), color=BLUE, marker="o", markersize=5, linestyle="")
        ax.set_yticks(range(n), [shortened(each.title, _LONGEST_NAME) for each in self.coefficients])
        ax.set_ylim(n - 0.5, -0.5)
        ax.tick_params(labelsize="small")
        favoured = f"coefficient for the unit named; positive: for {self.outcome}"
        ax.set_xlabel(plain(favoured), fontsize="small")
        ax.set_title(plain(self._title), fontsize="medium", loc="left", pad=24.0 if self.ratio else None)
        if self.ratio:
            self._add_ratios(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @property
    def _size(self) -> tuple[float, float]:
        """Width and height in inches, wide enough for the longest title."""
        longest = max(len(each.title) for each in self.coefficients)
        return 4.6 + 0.075 * min(longest, _LONGEST_NAME), 0.32 * len(self.coefficients) + 1.9

    @property
    def _title(self) -> str:
        shown, number = len(self.coefficients), self.n_coefficients
        which = f"Coefficients ({shown} of {number})" if shown < number else "Coefficients"
        has_bars = any(each.low is not None for each in self.coefficients)
        return f"{which}, intervals at {self.level:g} for sampling and noise" if has_bars else which

    def _add_ratios(self, ax: Any) -> None:
        """An axis above that shows exponentials."""
        low, high = ax.get_xlim()
        ratios = [ratio for ratio in _RATIOS if low <= np.log(ratio) <= high]
        above = ax.secondary_xaxis("top")
        above.set_xticks(np.log(ratios), [number_text(ratio) for ratio in ratios])
        above.spines["top"].set_visible(False)
        above.tick_params(labelsize="small", length=0.0)
        above.set_xlabel(self.ratio, fontsize="small", loc="right")
