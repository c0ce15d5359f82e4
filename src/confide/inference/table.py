"""A table of coefficients with their standard errors: due to sampling, due to the noise for privacy, and due to both."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logit, ndtri

from confide.array_types import Array
from confide.blocks import Block, Shown, as_json, frame_of, heading, table, text
from confide.errors import ParameterError, as_float, checked_axes, imported, is_text, wording
from confide.guarantee import Guarantee
from confide.inference.intervals import JointUncertainty, Uncertainty, checked_level
from confide.inference.rates import UNKNOWN, Interval, json_form, readable
from confide.inference.sampling_design import INDEPENDENT, SamplingDesign
from confide.known_words import listed, printable_line, printable_lines, suggest_keywords_of, suggestion

if TYPE_CHECKING:
    import pandas as pd


# Several tests, one family: corrected p-values, and intervals that all hold together. Post-processing; it costs no privacy.
#
# The names of the methods are those of statsmodels' `multipletests`, and "single-step" is that of R's multcomp.
#
# Sources: S. Holm, *A simple sequentially rejective multiple test procedure*, Scandinavian Journal of Statistics 6(2),
# 1979; Y. Benjamini, Y. Hochberg, *Controlling the false discovery rate*, JRSS B 57(1), 1995; Y. Benjamini, D. Yekutieli,
# *The control of the false discovery rate in multiple testing under dependency*, Annals of Statistics 29(4), 2001; T.
# Hothorn, F. Bretz, P. Westfall, *Simultaneous inference in general parametric models*, Biometrical Journal 50(3), 2008.

SINGLE_STEP = "single-step"
Method: TypeAlias = Literal["single-step", "holm", "bonferroni", "fdr_by", "fdr_bh"]
METHODS: tuple[str, ...] = get_args(Method)
"""All methods; the first needs the joint law of the errors."""
METHODS_UNDER_ANY_DEPENDENCE = ("holm", "bonferroni", "fdr_by")
"""Those that hold whatever the errors have to do with each other, as those of several analyses of the same rows do."""
RATES = dict.fromkeys((SINGLE_STEP, "holm", "bonferroni"), "the probability of any false rejection in the family") | {
    "fdr_by": "the expected share of false rejections among all rejections",
    "fdr_bh": "the expected share of false rejections among all rejections, if tests are independent or depend positively,",
}
"""What a method keeps at or below the size at which corrected p-values are compared."""


def checked_method(method: Any, known: tuple[str, ...] = METHODS) -> str:
    """The name of a method.

    Raises
    ------
    ParameterError
        If it is none of those that are known here.
    """
    if is_text(method) and method in known:
        return method
    listed = ", ".join(f'"{name}"' for name in known)
    if is_text(method) and method in METHODS:
        raise ParameterError(wording("method over several releases", method=method, listed=listed))
    raise ParameterError(f"the method of correction must be one of {listed}{suggestion(method, known)}.")


def adjusted_p_values(p_values: ArrayLike, method: str) -> Array:
    """Correct p-values (m,) of one family, by a method that needs nothing but them.

    Parameters
    ----------
    p_values : (m,), in [0, 1]
    method : "holm", "bonferroni", "fdr_by" or "fdr_bh"

    Returns
    -------
    array (m,)
        Corrected p-values, in the same order. Rejecting where one is at most a keeps the rate of `RATES` at or below a.
    """
    values = np.asarray(p_values, dtype=np.float64)
    m = len(values)
    if method == "bonferroni" or not m:
        return np.minimum(1.0, m * values)
    order = np.argsort(values)
    ranks, ordered = np.arange(1, m + 1), values[order]
    if method == "holm":
        corrected = np.maximum.accumulate((m - ranks + 1) * ordered)
    else:
        factor = float(np.sum(1.0 / ranks)) if method == "fdr_by" else 1.0
        corrected = np.minimum.accumulate((factor * m / ranks * ordered)[::-1])[::-1]
    answer = np.empty(m)
    answer[order] = np.minimum(1.0, corrected)
    return answer


def level_of_each(level: float, n_intervals: int) -> float:
    """The level of each of so many intervals that all hold together with probability `level`, under any dependence."""
    return 1.0 - (1.0 - checked_level(level)) / max(1, n_intervals)


def p_values_of_family(known: Uncertainty, method: str) -> Array:
    """(D,): corrected p-values of the null hypotheses that the population's coefficients are 0.

    Raises
    ------
    ParameterError
        If the method is unknown, or needs the joint law of the errors and it was not released.
    """
    if checked_method(method) != SINGLE_STEP:
        return adjusted_p_values(known.p_values(), method)
    if not isinstance(known, JointUncertainty):
        raise ParameterError(wording("single-step needs a joint distribution", single_step=SINGLE_STEP))
    return known.joint_p_values()


def margins_of_family(known: Uncertainty, level: float, method: str | None = None) -> Array:
    """(D,): half the widths of intervals that all together contain their targets with probability `level`.

    By the largest ratio of an error to its standard error where the joint law of the errors was released, and otherwise, or
    for another method than "single-step", by Bonferroni's inequality, which holds under any dependence.
    """
    if isinstance(known, JointUncertainty) and (method is None or checked_method(method) == SINGLE_STEP):
        return known.joint_margins(checked_level(level))
    return known.margins(level_of_each(level, len(known.estimates)))


# What a log-odds coefficient means for a risk: the difference of two probabilities at a stated baseline.


def risk_difference(log_odds: float, baseline: float) -> float:
    """By how much a probability of `baseline` changes if its log-odds rise by so much.

    It rises with the change, so the ends of an interval for the one become those for the other.
    """
    return float(expit(logit(baseline) + log_odds)) - baseline


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip

BASE_NOTE = wording("intercept in original units")
SHORTENED_NOTE = "The model clips long encoded rows: all coefficients count less for such a row, by one factor below 1."
_CENTRED_NOTE = "Coefficients are shown minus their mean over classes, which is 0 in the population."
SUPPOSED_NOTE = wording("hidden column")
_POWER = 0.8
_SIZE = 0.05
_FIRST_PART, _SECOND_PART = (0, 1, 2, 5, 6, 7, 8), (0, 1, 3, 4, 9, 10, 11)
"""The places of the columns in the two parts of the printed table: coefficients, then sources of error and ratios."""
_LIGHT_BLUE, _DARK_BLUE = "#9ecae1", "#2171b5"


@dataclass(frozen=True, slots=True)
class NamedUnit:
    """What one coefficient in the units of the table stands for.

    Attributes
    ----------
    name : the column, or the column and a level or value; for interactions several of them with " x " between
    unit : the change that the coefficient is for, such as "per 1", "per doubling" or "against private"
    columns : names of the columns; none for the intercept
    span : how many such changes lie between the low and the high of a number; 1 for everything else. A coefficient times its
        span says how much it can matter, whatever the unit
    """

    name: str
    unit: str
    columns: tuple[str, ...]
    span: float = 1.0


@dataclass(frozen=True, slots=True)
class Coefficient(Interval):
    """One line of the table.

    Attributes
    ----------
    name : str
    estimate : float
    sampling_error, privacy_error, total_error : float
        Standard errors due to sampling, due to the noise, and due to both. They are inf if the noise hides what the rows
        tell.
    low, high : float
        Ends of the interval.
    p_value : float
        For the null hypothesis that the population's coefficient is 0.
    unit : str
        The change of the column that the coefficient is for, such as "per 1", "per doubling" or "against private"; empty for
        the intercept.
    span : float
        How many of these units lie between the low and the high of a number; 1 for everything else.
    adjusted_p_value : float or None
        The p-value corrected for the family of all coefficients of the table; None for an intercept, which is not in the
        family, and in a table without correction.
    columns : tuple of str
        Names of the columns that it is about; none for the intercept.
    analysis : str
        In a family of several analyses, the name of the one that it belongs to.
    """

    estimate: float
    low: float
    high: float
    sampling_error: float
    privacy_error: float
    total_error: float
    p_value: float
    name: str
    unit: str = ""
    span: float = 1.0
    adjusted_p_value: float | None = None
    columns: tuple[str, ...] = ()
    analysis: str = ""

    @property
    def size(self) -> tuple[bool, float]:
        """What a sort compares: whether 0 lies outside of the interval, and how large it is over its span."""
        return not self.low <= 0.0 <= self.high, abs(self.estimate) * self.span


_FIELDS = (
    "name", "estimate", "sampling_error", "privacy_error", "total_error", "low", "high", "p_value", "unit", "span",
    "adjusted_p_value",
)  # fmt: skip
"""What a file and a frame have of each coefficient; the last only with a correction."""


@suggest_keywords_of
@dataclass(frozen=True, slots=True)
class CoefficientTable(Shown):
    """Coefficients with standard errors, intervals and p-values. Public: made from the release only.

    Attributes
    ----------
    coefficients : tuple of Coefficient
        The intercept is last.
    level : float
        Level of each interval by itself; in a table with a correction, of all intervals together.
    target : str
        What the intervals are for: "regularised" or "unregularised".
    model, outcome : str
        The kind of model, and the outcome that positive coefficients favour.
    alpha : float
    guarantee : Guarantee
    assumes_equal_variance : bool
        Whether the sampling errors assume that residuals have the same variance in all rows.
    is_centred : bool
        Whether the mean over classes is subtracted from the coefficients of each column.
    shown_units : str
        "original" for the units of the table, "encoded" for those of the columns as they entered the fit.
    ratio : str
        The name of the exponential of a coefficient, "odds ratio" or "rate ratio"; empty where it has no meaning.
    shortens_rows : bool
        Whether the model clips long encoded rows, for which coefficients count less.
    is_of_interest : bool
        Whether the coefficients are those that were named, by an orthogonal score.
    predicted : str
        The number that a regression predicts, with its unit if the schema names one; empty for classes.
    design : SamplingDesign
        What sampling errors assume of the way in which rows came from their population.
    quantity : str
        What the lines are: "coefficients", or "risk differences", standardised over the rows.
    adjust : str
        The method by which p-values are corrected for the family of all coefficients but intercepts; empty for none.
    supposed : tuple of str
        Names of the coefficients whose intervals rest on a supposition or are infinite, because the noise hid what the
        rows tell.
    """

    coefficients: tuple[Coefficient, ...]
    level: float
    target: str
    model: str
    outcome: str
    alpha: float
    guarantee: Guarantee
    assumes_equal_variance: bool = False
    is_centred: bool = False
    shown_units: str = "encoded"
    ratio: str = ""
    shortens_rows: bool = False
    predicted: str = ""
    is_of_interest: bool = False
    design: SamplingDesign = INDEPENDENT
    adjust: str = ""
    quantity: str = "coefficients"
    supposed: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, known: Uncertainty, units: Sequence[NamedUnit], level: float, sign: float, adjust: str | None, **facts: Any
    ) -> Self:
        """The table of what is known of coefficients. With `sign` -1, they are shown for the other class."""
        margins = known.margins(level)
        adjusted: list[float | None] = [None] * len(units)
        if adjust is not None:
            family = np.flatnonzero([bool(unit.unit) for unit in units])
            own = known.among(family)
            margins[family] = margins_of_family(own, level, adjust)
            for place, value in zip(family.tolist(), p_values_of_family(own, adjust).tolist(), strict=True):
                adjusted[place] = value
        estimates = sign * known.estimates
        of_errors = (known.sampling_error, known.privacy_error, known.total_error)
        numbers = np.column_stack([estimates, estimates - margins, estimates + margins, *of_errors, known.p_values()])
        pairs = zip(units, numbers.tolist(), adjusted, strict=True)
        lines: list[Any] = [(*row, one.name, one.unit, one.span, corrected, one.columns) for one, row, corrected in pairs]
        return cls(tuple(Coefficient(*line) for line in lines), level=float(level), adjust=adjust or "", **facts)

    @property
    def headings(self) -> tuple[str, ...]:
        """The headings of `cells`."""
        tail = 0.5 - 0.5 * self.level
        ends = f"[{tail:.3g}", f"{1.0 - tail:.3g}]"
        ratio = (self.ratio, *ends) if self.ratio else ()
        shown = "coef" if self.quantity == "coefficients" else "risk diff"
        p = "adjusted p" if self.adjust else "p"
        return ("", "unit", shown, "sampling err", "privacy err", "total err", *ends, p, *ratio)

    def shown_p(self, one: Coefficient) -> float:
        """The p-value that is shown for a coefficient."""
        return one.p_value if one.adjusted_p_value is None else one.adjusted_p_value

    @property
    def _title(self) -> str:
        of_what = f" in favour of {self.outcome}" if self.outcome else f" for {self.predicted}" if self.predicted else ""
        return f"{self.model}: {self.quantity}{of_what}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences below the table, which a reader needs to understand it."""
        # With weights in another unit the same ridge has another alpha.
        beside = " beside losses times the weights of their rows" if self.design.has_weights else ""
        minimiser = f"the population's minimiser with the same ridge, alpha = {self.alpha:.4g}{beside}"
        if self.target != "regularised":
            minimiser = f"the population's minimiser without a ridge; the bias of alpha = {self.alpha:.4g} was corrected"
        if self.quantity != "coefficients":
            minimiser = wording("average difference of risks")
        # Which effect a test of the usual size finds, in total errors.
        smallest = errors_found(_SIZE / (len(self._family) or 1 if self.adjust else 1), _POWER)
        test = f'Rejecting "no effect" where p is at most {_SIZE:g} has size {_SIZE:.0%} for the whole family, and finds'
        if not self.adjust:
            test = f'A test that rejects "no effect" where p is below {_SIZE:g} has size {_SIZE:.0%}. It finds'
        hides = any(math.isinf(one.total_error) for one in self.coefficients)
        perhaps = (
            (any(one.privacy_error for one in self.coefficients), "The sampling error is itself an estimate under noise."),
            *((True, sentence) for sentence in self.design.sentences),
            (self.assumes_equal_variance, "Sampling errors assume that residuals have the same variance in all rows."),
            (self.is_centred, _CENTRED_NOTE),
            (hides and not self.is_of_interest, wording("hidden class")),
            (bool(self.supposed), f"{listed(self.supposed)}: {SUPPOSED_NOTE}"),
            (
                self.is_of_interest and not self.adjust.startswith("fdr"),
                f"{test} an effect of {smallest:.1f} total errors with probability {_POWER:.0%}.",
            ),
            (self.shown_units == "original" and not self.is_of_interest, BASE_NOTE),
            (bool(self.ratio), f"The {self.ratio} is the exponential of the coefficient."),
            (self.shortens_rows, SHORTENED_NOTE),
            (True, self.guarantee.statement().split("\n")[0]),
        )
        return (*self._notes_on_intervals(minimiser), *(sentence for applies, sentence in perhaps if applies))

    def _notes_on_intervals(self, minimiser: str) -> tuple[str, ...]:
        errors = "Errors are due to sampling, due to the noise, and due to both."
        if not self.adjust:
            of_interval = f"Each interval contains, with probability {self.level:g} by itself, {minimiser}."
            return of_interval, f"p is for the null hypothesis that this is 0. {errors}"
        count = len(self._family)
        of_ends = "" if self.adjust == SINGLE_STEP else " by Bonferroni's inequality"
        rest = " An intercept is not in the family: its interval and its p-value stand by themselves."
        rest = rest if count < len(self.coefficients) else ""
        tests = f'p is for the null hypothesis that this is 0, corrected for the family of all {count} by "{self.adjust}":'
        return (
            f"All {count} intervals together contain, with probability {self.level:g}{of_ends}, {minimiser}.{rest}",
            f"{tests} rejecting where it is at most a keeps {RATES[self.adjust]} at or below a. {errors}",
        )

    @property
    def _family(self) -> tuple[Coefficient, ...]:
        """The coefficients for which a correction is made: all but intercepts."""
        return tuple(one for one in self.coefficients if one.unit)

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The cells of the table as text, line by line: the name, the unit, and numbers. The ratios come last."""
        ratios = [self.ratio_of(one) for one in self.coefficients]
        none = ("", "", "") if self.ratio else ()
        of_ratios = [none if ratio is None or not self.ratio else ratio.readable for ratio in ratios]
        lines = zip(self.coefficients, of_ratios, strict=True)
        return [(one.name, one.unit, *self._numbers(one), *cells) for one, cells in lines]

    def _numbers(self, one: Coefficient) -> tuple[str, ...]:
        errors = (one.sampling_error, one.privacy_error, one.total_error)
        p_value = "<0.001" if self.shown_p(one) < 0.001 else f"{self.shown_p(one):.3f}"
        # Encoded columns have one size, so their coefficients do. Coefficients in units of the table may be tiny.
        if self.shown_units != "original":
            return (*map("{:.4f}".format, (one.estimate, *errors, one.low, one.high)), p_value)
        estimate, *ends = one.readable
        return (estimate, *map(readable, errors), *ends, p_value)

    def ratio_of(self, one: Coefficient) -> Interval | None:
        """The exponential of a coefficient with its interval; None for an intercept, or without a meaning."""
        return one.mapped(exponential) if self.ratio and one.unit else None

    def blocks(self) -> list[Block]:
        """Coefficients with intervals, then the sources of their errors and ratios, and what a reader needs to know."""
        lines, tables = [[name or "column" for name in self.headings], *self.cells], list[Block]()
        for part in (_FIRST_PART, _SECOND_PART):
            heads, *rows = [[row[at] for at in part if at < len(row)] for row in lines]
            tables.append(table(heads, rows, words=("unit",)))
        title = f"{self._title}, with intervals of {self.level:g}{' together' * bool(self.adjust)}"
        return [heading(title), *tables, text(*self.notes)]

    def to_dict(self) -> dict[str, Any]:
        """A JSON form. Values that the noise hides are None."""
        return {
            **as_json(self, "level target outcome predicted alpha"),
            **({} if self.quantity == "coefficients" else {"quantity": self.quantity}),
            "units": self.shown_units,
            "design": self.design.to_dict(),
            **({"adjust": self.adjust} if self.adjust else {}),
            **({"rests_on_supposition": list(self.supposed)} if self.supposed else {}),
            "coefficients": [
                {name: json_form(getattr(coefficient, name)) for name in self._fields}
                | {name: json_form(number) for name, number in self._ratio_entries(coefficient).items()}
                for coefficient in self.coefficients
            ],
        }

    @property
    def _fields(self) -> tuple[str, ...]:
        """The names of what is known of each coefficient."""
        return _FIELDS if self.adjust else _FIELDS[:-1]

    def _ratio_entries(self, one: Coefficient) -> dict[str, float | None]:
        """The ratio and its interval under their names; nothing where ratios have no meaning."""
        if not self.ratio:
            return {}
        name, ratio = self.ratio.replace(" ", "_"), self.ratio_of(one) or UNKNOWN
        return {name: ratio.estimate, f"{name}_low": ratio.low, f"{name}_high": ratio.high}

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame with one row for each coefficient, and its unit in the first column."""
        names = ["unit", *(name for name in self._fields if name not in ("name", "unit"))]
        lines = [{name: getattr(one, name) for name in names} | self._ratio_entries(one) for one in self.coefficients]
        frame = frame_of(lines, index=[one.name for one in self.coefficients]).rename_axis("coefficient")
        return frame.astype(dict.fromkeys(frame.columns[len(names) :], float))

    def risk_differences(self, baseline: float) -> pd.DataFrame:
        """Turn coefficients of a logistic loss into differences of risks, for a person whose risk is stated.

        Parameters
        ----------
        baseline : float
            The probability of the outcome that the table speaks of before the change, strictly between 0 and 1. It must be
            chosen without looking at the rows, or come from a release.

        Returns
        -------
        DataFrame (n_coefficients, 4)
            For each coefficient but the intercept its unit, the difference of the two probabilities, and the ends of its
            interval, at the level of the table. They follow from those of the coefficient, which costs no privacy.

        Raises
        ------
        ParameterError
            If the baseline is no probability, or coefficients are no log-odds.
        """
        base = as_float(baseline)
        if not 0.0 < base < 1.0:
            raise ParameterError("baseline must be a probability strictly between 0 and 1, chosen without the rows.")
        if self.ratio != "odds ratio":
            raise ParameterError("differences of risks are for models whose coefficients are log-odds.")
        changed = [one.mapped(lambda log_odds: risk_difference(log_odds, base)) for one in self._family]
        lines = [(one.unit, one.estimate, one.low, one.high) for one in changed]
        names, columns = [one.name for one in changed], ["unit", "risk_difference", "low", "high"]
        return frame_of(lines, index=names, columns=columns).rename_axis("coefficient")

    def smallest_effects(self, size: float = 0.05, power: float = 0.8) -> pd.DataFrame:
        """Which effects a test of "no effect" finds: for each coefficient the smallest, at a stated size and power.

        The test rejects where the p-value of the table is at most `size`. In a table with a correction for the family, the
        size is that of the family, and the effect is that which Bonferroni's correction finds; other corrections of the same
        rate find it at least as often.

        Parameters
        ----------
        size : float, default 0.05
            The probability of rejecting where there is no effect, strictly between 0 and 1.
        power : float, default 0.8
            The probability of rejecting where there is that effect, strictly between `size` and 1.

        Returns
        -------
        DataFrame (n_coefficients, 2)
            For each coefficient but intercepts its unit and the effect, a positive number in that unit; inf where the noise
            hides what the rows tell.

        Raises
        ------
        ParameterError
            If size or power is out of range.

        Notes
        -----
        Guarantee: post-processing of the release, which costs nothing more. The law of the errors is taken to be normal.
        """
        size, power = as_float(size), as_float(power)
        if not 0.0 < size < power < 1.0:
            raise ParameterError("size and power must be probabilities with 0 < size < power < 1, such as 0.05 and 0.8.")
        of_each = size / max(1, len(self._family)) if self.adjust else size
        smallest = [errors_found(of_each, power) * one.total_error for one in self._family]
        found = {"unit": [one.unit for one in self._family], "smallest_effect": smallest}
        return frame_of(found, index=[one.name for one in self._family]).rename_axis("coefficient")

    def to_latex(self) -> str:
        """A LaTeX tabular for the package booktabs, with the notes below."""
        n = len(self.headings)
        lines = [rf"\begin{{tabular}}{{ll{'r' * (n - 2)}}}", r"\toprule"]
        # In braces, because LaTeX reads a bracket after a line break as an argument of the line break.
        lines += [" & ".join(["", *("{" + _latex(heading) + "}" for heading in self.headings[1:])]) + r" \\", r"\midrule"]
        lines += [" & ".join(["{" + _latex(name) + "}", *cells]) + r" \\" for name, *cells in self.cells]
        lines += [r"\bottomrule"]
        lines += [rf"\multicolumn{{{n}}}{{p{{0.9\linewidth}}}}{{\footnotesize {_latex(note)}}} \\" for note in self.notes]
        return "\n".join([*lines, r"\end{tabular}"])

    def plot(self, ax: Any = None) -> Any:
        """A forest plot on Matplotlib axes. The inner part of each bar is the interval that there would be without noise.

        Intercepts, whose size would hide that of the others, are in the table alone.

        Parameters
        ----------
        ax : Matplotlib axes; None for new ones

        Returns
        -------
        The axes.
        """
        imported("matplotlib", "plot", "plot")
        from matplotlib import pyplot as plt

        drawn = self._family
        units = {one.unit for one in drawn}
        if checked_axes("ax", ax) is None:
            _, ax = plt.subplots(figsize=(7.0, 1.6 + (0.45 if len(units) > 1 else 0.3) * len(drawn)), layout="constrained")
        places = range(len(drawn), 0, -1)
        known = [(at, one) for at, one in zip(places, drawn, strict=True) if math.isfinite(one.total_error)]
        numbers = [(at, one.estimate, one.low, one.high, one.sampling_error) for at, one in known]
        ats, estimates, lows, highs, sampling = np.reshape(numbers, (-1, 5)).T
        half = np.minimum(float(ndtri(0.5 + 0.5 * self.level)) * sampling, 0.5 * (highs - lows))
        ax.hlines(ats, lows, highs, color=_LIGHT_BLUE, linewidth=6.0, label="with the noise for privacy")
        ax.hlines(ats, estimates - half, estimates + half, color=_DARK_BLUE, linewidth=6.0, label="due to sampling only")
        ax.plot(estimates, ats, marker="|", markersize=10.0, color="black", linestyle="")
        ax.axvline(0.0, color="0.5", linewidth=0.8, zorder=0)
        ticks = [f"{one.name}\n{one.unit}" if len(units) > 1 else one.name for one in drawn]
        # Matplotlib would read a dollar sign as the start of a formula.
        ax.set_yticks(list(places), [printable_lines(tick).replace("$", r"\$") for tick in ticks])
        pad = 24.0 if self.ratio else None
        ax.set_title(printable_line(self._title).replace("$", r"\$"), fontsize="medium", loc="left", pad=pad)
        of_what = f" {units.pop()}" if len(units) == 1 else " in its unit"
        kind = "simultaneous intervals" if self.adjust else "intervals"
        rest = "\nIntercepts are in the table alone." if len(drawn) < len(self.coefficients) else ""
        ax.set_xlabel(f"{self.quantity.removesuffix('s')}{of_what}, {kind} at {self.level:.4g}, {self.target} target{rest}")
        ax.set_ylim(-0.3, len(drawn) + 0.7)  # below the last bar there is room for the legend
        ax.legend(loc="lower right", ncols=2, fontsize="small", frameon=False)
        if self.ratio:
            add_ratios(ax, self.ratio)
        return ax


_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


def add_ratios(ax: Any, name: str) -> None:
    """Add an axis above Matplotlib axes of coefficients that shows their exponentials, such as odds ratios."""
    low, high = ax.get_xlim()
    ratios = [ratio for ratio in _RATIOS[:: 1 if high - low < 9.0 else 3] if low <= math.log(ratio) <= high]
    above = ax.secondary_xaxis("top")
    above.set_xticks(np.log(ratios), [f"{ratio:g}" for ratio in ratios])
    above.spines["top"].set_visible(False)
    above.tick_params(labelsize="small", length=0.0)
    above.set_xlabel(name, fontsize="small", loc="right")


def errors_found(size: float, power: float) -> float:
    """The effect, in total errors, that a two-sided test of this size finds with this power, by a normal law."""
    return float(ndtri(1.0 - 0.5 * size) + ndtri(power))


def exponential(value: float) -> float:
    """The exponential of a number; inf where it is too large for double precision."""
    return math.exp(value) if value < 700.0 else math.inf


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
