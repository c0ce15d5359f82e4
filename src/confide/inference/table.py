"""A table of coefficients: how sure, and which part of the doubt is the price of privacy."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Self

from confide.errors import ParameterError
from confide.guarantee import Guarantee
from confide.inference.intervals import Uncertainty

if TYPE_CHECKING:
    import pandas as pd

_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
}  # fmt: skip

_CENTRED = "Coefficients are shown less their mean over classes, which is 0 in the population."
_HIDDEN = (
    "inf: the noise hides how much rows tell of this class, or of all, so nothing is known. Means over classes leave it out."
)


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One line of the table.

    Attributes
    ----------
    name : str
    estimate : float
    sampling_error, privacy_error, total_error : float
        Standard errors: of the rows as a sample, of the noise, and of both; inf where the noise hides what
        rows tell.
    low, high : float
        The interval.
    p_value : float
        Null hypothesis: the population's coefficient is 0.
    """

    name: str
    estimate: float
    sampling_error: float
    privacy_error: float
    total_error: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True, slots=True)
class CoefficientTable:
    """Coefficients with standard errors, intervals and p-values. Public: made of a release alone.

    Attributes
    ----------
    coefficients : tuple of Coefficient
        The intercept last.
    level : float
        Of each interval by itself.
    target : str
        What the intervals speak of: "regularised" or "unregularised".
    model, outcome : str
        The kind of model, and what positive coefficients speak for.
    alpha : float
    guarantee : Guarantee
    assumes_equal_variance : bool
        Whether the sampling errors take residuals to vary alike in all rows.
    is_centred : bool
        Whether the coefficients of a column are shown less their mean over classes.
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

    @classmethod
    def of(cls, uncertainty: Uncertainty, names: list[str], level: float, sign: float, **facts: Any) -> Self:
        """The table of an uncertainty; `sign` is -1 where it is to speak of the other class."""
        columns = (
            sign * uncertainty.estimates,
            uncertainty.sampling_error,
            uncertainty.privacy_error,
            uncertainty.total_error,
            *(sign * uncertainty.estimates + side * uncertainty.margins(level) for side in (-1.0, 1.0)),
            uncertainty.p_values(),
        )
        rows = zip(names, *(column.tolist() for column in columns), strict=True)
        return cls(tuple(Coefficient(*row) for row in rows), level=float(level), **facts)

    @property
    def _headings(self) -> tuple[str, ...]:
        tail = 0.5 - 0.5 * self.level
        return ("coef", "sampling err", "privacy err", "total err", f"[{tail:.3g}", f"{1.0 - tail:.3g}]", "p")

    @property
    def _title(self) -> str:
        return f"{self.model}: coefficients" + (f" in favour of {self.outcome}" if self.outcome else "")

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know: sentences below the table."""
        minimiser = (
            f"the minimiser that the population has with the same ridge, alpha = {self.alpha:.4g}"
            if self.target == "regularised"
            else f"the minimiser that the population has without a ridge; alpha = {self.alpha:.4g} was taken back"
        )
        return (
            f"Each interval holds, with probability {self.level:g} by itself, {minimiser}.",
            "p: of the null hypothesis that this is 0. Errors: of the rows as a sample, of the noise, and of both.",
            *(["Sampling errors take residuals to vary alike in all rows."] if self.assumes_equal_variance else []),
            *([_CENTRED] if self.is_centred else []),
            *([_HIDDEN] if any(math.isinf(coefficient.total_error) for coefficient in self.coefficients) else []),
            self.guarantee.statement().split("\n")[0],
        )

    @property
    def cells(self) -> list[tuple[str, ...]]:
        """The lines in words, name first."""
        return [
            (
                coefficient.name,
                *(
                    f"{value:.4f}"
                    for value in (
                        coefficient.estimate,
                        coefficient.sampling_error,
                        coefficient.privacy_error,
                        coefficient.total_error,
                        coefficient.low,
                        coefficient.high,
                    )
                ),
                f"{coefficient.p_value:.3f}",
            )
            for coefficient in self.coefficients
        ]

    def __str__(self) -> str:
        rows = [("", *self._headings), *([_printable(row[0]), *row[1:]] for row in self.cells)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
            for row in rows
        ]
        rule, thin = "=" * len(lines[0]), "-" * len(lines[0])
        notes = [textwrap.fill(note, max(len(rule), 80)) for note in self.notes]
        return "\n".join([_printable(self._title), rule, lines[0], thin, *lines[1:], rule, *notes])

    def to_dict(self) -> dict[str, Any]:
        """A JSON form; None for what the noise hides."""
        return {
            "level": self.level,
            "target": self.target,
            "outcome": self.outcome,
            "alpha": self.alpha,
            "coefficients": [
                {name: _finite(getattr(coefficient, name)) for name in Coefficient.__slots__}
                for coefficient in self.coefficients
            ],
        }

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame, one row a coefficient."""
        import pandas as pd

        names = [name for name in Coefficient.__slots__ if name != "name"]
        return pd.DataFrame(
            {name: [getattr(coefficient, name) for coefficient in self.coefficients] for name in names},
            index=pd.Index([coefficient.name for coefficient in self.coefficients], name="coefficient"),
        )

    def to_latex(self) -> str:
        """A tabular environment, in the way of booktabs, with the notes below."""
        lines = [r"\begin{tabular}{lrrrrrrr}", r"\toprule"]
        # A cell that begins with a bracket would be taken for an argument of the line break before it.
        lines += [" & ".join(["", *("{" + _latex(heading) + "}" for heading in self._headings)]) + r" \\", r"\midrule"]
        lines += [" & ".join(["{" + _latex(name) + "}", *cells]) + r" \\" for name, *cells in self.cells]
        lines += [r"\bottomrule"]
        lines += [rf"\multicolumn{{8}}{{p{{0.9\linewidth}}}}{{\footnotesize {_latex(note)}}} \\" for note in self.notes]
        return "\n".join([*lines, r"\end{tabular}"])

    def to_html(self) -> str:
        """A table for a web page or a notebook."""
        head = "".join(f"<th>{escape(heading)}</th>" for heading in ("", *self._headings))
        body = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"
            for name, *cells in self.cells
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.notes)
        return (
            f'<div class="confide-coefficients"><table><caption>{escape(self._title)}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}</div>"
        )

    def _repr_html_(self) -> str:
        return self.to_html()

    def plot(self, ax: Any = None) -> Any:
        """A forest plot on Matplotlib axes: of each interval, what it would be without noise is drawn darker.

        Parameters
        ----------
        ax : Matplotlib axes, or None for new ones

        Returns
        -------
        The axes.
        """
        try:
            from matplotlib import pyplot as plt
        except ImportError:
            raise ParameterError("plot needs Matplotlib: pip install 'confide[plot]'.") from None
        from scipy.special import ndtri

        if ax is None:
            _, ax = plt.subplots(figsize=(7.0, 1.6 + 0.3 * len(self.coefficients)), layout="constrained")
        quantile = float(ndtri(0.5 + 0.5 * self.level))
        places = range(len(self.coefficients), 0, -1)
        for place, coefficient in zip(places, self.coefficients, strict=True):
            if not math.isfinite(coefficient.total_error):
                continue
            own = min(quantile * coefficient.sampling_error, 0.5 * (coefficient.high - coefficient.low))
            labelled = not ax.get_legend_handles_labels()[1]
            ax.plot(
                [coefficient.low, coefficient.high], [place, place], color="#9ecae1", linewidth=6.0, solid_capstyle="butt",
                label="with the noise for privacy" if labelled else None,
            )  # fmt: skip
            ax.plot(
                [coefficient.estimate - own, coefficient.estimate + own], [place, place], color="#2171b5", linewidth=6.0,
                solid_capstyle="butt", label="from sampling alone" if labelled else None,
            )  # fmt: skip
            ax.plot([coefficient.estimate], [place], marker="|", markersize=10.0, color="black")
        ax.axvline(0.0, color="0.5", linewidth=0.8, zorder=0)
        # A dollar sign would begin a formula.
        ax.set_yticks(list(places), [_printable(coefficient.name).replace("$", r"\$") for coefficient in self.coefficients])
        ax.set_title(_printable(self._title).replace("$", r"\$"), fontsize="medium")
        ax.set_xlabel(f"coefficient, intervals at {self.level:.4g}, {self.target} target")
        ax.legend(loc="best", fontsize="small", frameon=False)
        ax.margins(y=0.5 / max(1, math.sqrt(len(self.coefficients))))
        return ax


def _finite(value: str | float) -> str | float | None:
    return value if isinstance(value, str) or math.isfinite(value) else None


def _printable(text: str) -> str:
    """Names come from files: nothing in them steers a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
