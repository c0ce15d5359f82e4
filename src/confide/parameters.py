"""The parameters of all estimators: one table, with one row for each.

A row says all that is known of a parameter: how its value is checked and refused, its entry in docstrings, and its option of
the command line. The words of the last two stand in `parameters.txt`, below the parameter's name. What type checkers must
see is written once more, as a field of a class in `estimators/parameters.py`, and a test compares the two. Nothing here is
heavy to import, because the help of the command line is made of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from confide.errors import ParameterError, as_float, sections_of
from confide.known_words import suggestion, words_of

EVERY_MODEL = "ModelParameters"
"""The group of what every model has."""
COMMAND_LINE = "command line"
"""The group of options that describe a model and are no parameter of it."""
_ABOVE_ZERO = math.nextafter(0.0, 1.0)
_BELOW_ONE = math.nextafter(1.0, 0.0)
_SMALLEST, _LARGEST = 2.0**-300, 2.0**300


@dataclass(frozen=True, slots=True)
class Parameter:
    """A row of the table.

    Attributes
    ----------
    name : the parameter
    kind : what its values are beside those of `also`: float, int, bool, or str for the words of `also` alone. Where it is
        another type, what uses the parameter checks it.
    group : the class that has its written signature; empty for what single estimators have, each with its own text
    default : its value by default
    also : words, None, or infinity, which are taken as they are
    low, high : the ends of the range, which are values themselves. A switch of which True is no value has `high` False.
    refused : values within the range that are refused
    must : what a refusal says that it must be; {near} is the place of a question about a misspelled word. Where it is empty,
        the row does not say all that a value must be. It is read from `parameters.txt`, as the last three are.
    option : the option of the command line, and what stands for its value in the help; empty if it has none
    help : the text of the option
    text : type and description, as they stand in a docstring.
    """

    name: str
    kind: type
    group: str = ""
    default: object = None
    also: tuple[object, ...] = ()
    low: float = -math.inf
    high: float = math.inf
    refused: tuple[object, ...] = ()
    must: str = ""
    option: str = ""
    help: str = ""
    text: str = ""

    @property
    def flag(self) -> str:
        """The option as it is typed, such as --alpha; for a switch, the one that turns it on."""
        return self.option.partition(" ")[0].partition("/")[0]

    @property
    def key(self) -> str:
        """The name of the option as a key of a study file, such as n_rows_bounds."""
        return self.name if self.group == COMMAND_LINE else self.flag.removeprefix("--").replace("-", "_")

    def checked(self, value: Any) -> Any:
        """The value in the type that the rest computes with.

        Raises
        ------
        ParameterError
            If it is none of the values of this parameter.
        """
        if (value is None or isinstance(value, str)) and value in self.also:
            return value
        is_flag, kinds = type(value).__name__ in ("bool", "bool_"), {int: (Integral,), float: (Real,)}
        if is_flag if self.kind is bool else isinstance(value, kinds.get(self.kind, ())) and not is_flag:
            # Converted first: NumPy rounds the ends of a range to the precision of what it compares with them.
            number = as_float(value) if self.kind is float else self.kind(value)
            if (self.low <= number <= self.high or number in self.also) and number not in self.refused:
                return number
        raise ParameterError(self.refusal(value))

    def refusal(self, value: object) -> str:
        """What is said of a value that is none."""
        words = [word for word in self.also if isinstance(word, str)]
        if self.kind is str:
            return f"{self.name} must be one of {words_of(words, value)}."
        return f"{self.name} must be {self.must.replace('{near}', suggestion(value, words))}."


# fmt: off
_ROWS = (
    Parameter("kind", str, group=COMMAND_LINE, default="additive",
        also=("additive", "logistic", "svm", "kernel-svm", "huber", "poisson", "ridge", "erm")),
    Parameter("loss", str,
        also=("auto", "logistic", "logistic_hinge", "huber_hinge", "smooth_hinge", "hinge", "huber", "clipped_squared",
              "squared", "poisson", "gamma", "tweedie", "negative_binomial", "quantile", "absolute")),
    Parameter("knots", object, group="AdditiveParameters", default="auto"),
    Parameter("interactions", object, group="AdditiveParameters", default="auto"),
    Parameter("atoms", bool, group="AdditiveParameters", default="auto", also=("auto",), high=False),
    Parameter("monotone", object, group="AdditiveParameters"),
    Parameter("interest", object, group="InterestParameter"),
    Parameter("risk_differences", bool, group="InterestParameter", default=False),
    Parameter("penalty", object, group="PenaltyParameter"),
    Parameter("kernel", str, also=("rbf", "laplacian", "cauchy")),
    Parameter("length_scale", float),
    Parameter("n_features", int),
    Parameter("feature_norm", object),
    Parameter("orthogonal", bool),
    Parameter("map_seed", int),
    Parameter("smoothing", float),
    Parameter("threshold", float, also=("auto",), low=_SMALLEST, high=_LARGEST),
    Parameter("quantile", float, low=0.001, high=0.999),
    Parameter("power", float, default=1.5, low=1.0, high=2.0, refused=(1.0, 2.0)),
    Parameter("dispersion", float, default=1.0, low=1e-6, high=1e6),
    Parameter("l1_ratio", float, group="StraightLineParameters", default=0.0, low=0.0, high=_BELOW_ONE),
    Parameter("target_bound", float, group="TargetParameter", also=(None, math.inf), low=_SMALLEST, high=_LARGEST),
    Parameter("class_weight", object, group="ClassParameters"),
    Parameter("multiclass", str, also=("softmax", "one-vs-rest")),
    Parameter("alpha", float, group=EVERY_MODEL, default="auto", also=("auto",), low=_ABOVE_ZERO, high=1e12),
    Parameter("mechanism", str, group=EVERY_MODEL, default="auto",
        also=("auto", "objective", "output", "output-laplace", "gradient", "sufficient-statistics")),
    Parameter("centre", bool, group=EVERY_MODEL, default="auto", also=("auto",), high=False),
    Parameter("match_mean", bool, group="CountParameters", default="auto", also=("auto",), high=False),
    Parameter("exposure_range", tuple[float, float], group="CountParameters"),
    Parameter("fit_intercept", bool, group=EVERY_MODEL, default=True),
    Parameter("intercept_scaling", float, group=EVERY_MODEL, default=1.0,
        low=math.nextafter(2.0**-300, 1.0), high=math.nextafter(2.0**300, 1.0)),
    Parameter("neighbours", str, group=EVERY_MODEL, default="replace-one", also=("replace-one", "add-or-remove-one")),
    Parameter("n_rows_bounds", tuple[int, int], group=EVERY_MODEL),
    Parameter("max_rows_per_person", int, group=EVERY_MODEL, default=1, low=1, high=10**6),
    Parameter("inference_share", float, group="IntervalsParameter", default=0.0, also=("auto",), low=0.0, high=0.9),
    Parameter("cluster_effect", float, group="DesignParameters", also=(None,), low=1.0, high=1e6),
    Parameter("population_size", int, group="DesignParameters", also=(None,), low=1, high=10**15),
    Parameter("prior", Path, group=EVERY_MODEL),
    Parameter("public_prior", Path, group=COMMAND_LINE),
    Parameter("effects", object, group=COMMAND_LINE),
    Parameter("row_norm", float, group="StraightLineParameters"),
    Parameter("n_jobs", int, group=EVERY_MODEL, also=(None,), refused=(0,)),
    Parameter("random_state", int, group=EVERY_MODEL, also=(None,), low=0),
    Parameter("budget", object, group=EVERY_MODEL, default=1.0),
    Parameter("schema", object, group=EVERY_MODEL),
    Parameter("target_low", object, group="TargetParameter"),
    Parameter("target_high", object, group="TargetParameter"),
    Parameter("classes", object, group="ClassParameters"),
    Parameter("max_sample_weight", float, group="SampleWeightParameter", default=1.0, low=1e-9, high=1e9),
    Parameter("mean_sample_weight", float, group="SampleWeightParameter", also=(None,), low=_ABOVE_ZERO),
    Parameter("bounds", object, group="AdditiveParameters"),
    Parameter("ledger", object, group=EVERY_MODEL),
    Parameter("held_out", float, also=(None,), low=0.0, high=1.0, refused=(0.0, 1.0)),
    Parameter("score_share", float, default=0.0, low=0.0, high=1.0, refused=(1.0,)),
    Parameter("clip", float, also=(None,), low=0.0, refused=(0.0, math.inf)),
    Parameter("expected_tries", float, also=(None,), low=1.01, high=1e6),
)
# fmt: on


def _with_words(row: Parameter, said: str) -> Parameter:
    """The row with its option, below an empty line its entry in docstrings, and at last what a refusal says."""
    said, _, must = (part.strip() for part in f"\n\n{said}".partition("\n\nmust be "))
    option, _, text = said.partition("\n\n") if said.startswith("--") else ("", "", said)
    usage, _, words = option.replace("\n", " ").partition("  ")
    return replace(row, option=usage, help=words, text=text, must=must.replace("\n", " "))


_SAID = sections_of(Path(__file__).with_suffix(".txt"))
"""What is said of each parameter, by its name."""
PARAMETERS = {row.name: _with_words(row, _SAID.pop(row.name).strip()) for row in _ROWS}
"""The rows by name, in the order of the help."""


def checked(name: str, value: Any) -> Any:
    """The value of a parameter in the type that the rest computes with. Refused if it is none of its values."""
    return PARAMETERS[name].checked(value)


def checked_choice(name: str, value: Any, choices: Iterable[str | None]) -> str:
    """One of a closed list of words, and perhaps None, for a parameter of which an estimator takes some words alone."""
    return str(Parameter(name, str, also=tuple(choices)).checked(value))
