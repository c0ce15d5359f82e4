"""A picture of coefficients: one point for each, with its interval where intervals were bought, and its unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from confide.effects.picture import (
    BLUE,
    GREYS,
    NOISE_IN_PICTURE,
    Display,
    broken,
    plain,
    shortened,
)
from confide.errors import ParameterError, checked_count, is_label, wording
from confide.estimators.linear_model import released_model
from confide.estimators.released import ReleasedCoefficient, ReleasedCoefficients
from confide.features.columns import with_unit
from confide.features.schema import Schema
from confide.inference.intervals import checked_level
from confide.inference.table import Coefficient, add_ratios
from confide.models.model import ShownClass
from confide.parameters import checked_choice

_MOST, _LONGEST_NAME = 25, 80
_UNITS = ("bounds", "original", "encoded")


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
        raise ParameterError(wording("no picture of random features"))
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
    >>> model = confide.LogisticRegression(1.0, schema=adult.schema)
    >>> model = model.fit(adult.X_train, adult.y_train)
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
        units: Literal["bounds", "original", "encoded"] | None = None,
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

    def _draw(self, ax: Any) -> None:
        shown, number = len(self.coefficients), self.n_coefficients
        longest = min(max(len(line.title) for line in self.coefficients), _LONGEST_NAME)
        ax = self._on(ax, (4.6 + 0.075 * longest, 0.32 * shown + 1.9))
        ax.axvline(0.0, color="0.5", linewidth=0.8)
        for place, line in enumerate(self.coefficients):
            for size, alpha in zip(line.noise, GREYS, strict=False):
                ax.plot([-size, size], [place] * 2, color="0.5", alpha=alpha, linewidth=10.0, solid_capstyle="butt")
            if line.low is not None:
                ax.plot([line.low, line.high], [place] * 2, color=BLUE, alpha=0.4, linewidth=5.0, solid_capstyle="butt")
        points = [line.estimate for line in self.coefficients]
        ax.plot(points, range(shown), color=BLUE, marker="o", markersize=5, linestyle="")
        ax.set_yticks(range(shown), [shortened(line.title, _LONGEST_NAME) for line in self.coefficients])
        ax.set_ylim(shown - 0.5, -0.5)
        ax.tick_params(labelsize="small")
        noise = f"\n{NOISE_IN_PICTURE}" if any(line.noise for line in self.coefficients) else ""
        named = f"coefficient for the unit named; positive: for {self.outcome}{noise}"
        ax.set_xlabel(broken(named, 8.0 * ax.figure.get_figwidth()), fontsize="small")
        title = f"Coefficients ({shown} of {number})" if shown < number else "Coefficients"
        if any(coefficient.low is not None for coefficient in self.coefficients):
            title += f", intervals at {self.level:g} for sampling and noise"
        ax.set_title(plain(title), fontsize="medium", loc="left", pad=24.0 if self.ratio else None)
        if self.ratio:
            add_ratios(ax, self.ratio)
