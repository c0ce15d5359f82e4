"""Names and values of options: the text that was typed, read as the value that Python takes."""

from __future__ import annotations

import inspect
import math
import re
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confide.errors import ParameterError, wording
from confide.parameters import COMMAND_LINE, PARAMETERS

if TYPE_CHECKING:
    from confide.estimators.linear_model import PrivateLinearModel
    from confide.features.schema import Schema
    from confide.privacy.budgets import Budget


_NUMBER = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[-+]?[0-9]+)?")


def number_or_auto(option: str, text: str) -> float | str:
    """A number, or "auto".

    Raises
    ------
    ParameterError
        If the text is neither.
    """
    if text == "auto":
        return text
    value = math.nan
    with suppress(ValueError):
        value = float(text)
    if math.isnan(value):
        raise ParameterError(f"{option} must be auto or a positive number.")
    return value


def interactions(text: str) -> str | list[list[str]]:
    """The columns of each interaction, from text such as age:hours,age:sex; or a word that the estimators know."""
    if text in ("auto", "none", "pairs", "all"):
        return [] if text == "none" else text
    named = [[name.strip() for name in entry.split(":")] for entry in text.split(",")]
    if any(len(names) < 2 or not all(names) for names in named):
        raise ParameterError(wording("interactions of an option"))
    return named


def knots(text: str) -> str | int | dict[str, int]:
    """A number of knots for all columns, or for each that is named; or "auto"."""
    if text == "auto":
        return text
    if ":" in text:
        return {name: _number_of_knots(number) for name, number in _pairs("--knots", text, "age:6,hours:0")}
    return _number_of_knots(text)


def monotone(text: str) -> dict[str, str]:
    """The columns whose effect only rises or only falls, from text such as age:up,hours:down."""
    pairs = _pairs("--monotone", text, "age:up,hours:down")
    if not {direction for _, direction in pairs} <= {"up", "down"}:
        raise ParameterError("--monotone must name columns with up or down behind them, such as age:up,hours:down.")
    return dict(pairs)


def effects(text: str) -> dict[str, str | float]:
    """Declared effects by column or level, from text such as age:up,dose:0.5,sex=Male:down."""
    pairs = _pairs("--effects", text, "age:up,dose:0.5,sex=Male:down")
    return {name: float(value) if _NUMBER.fullmatch(value) else value for name, value in pairs}


def columns(text: str, option: str = "--interest") -> list[str]:
    """Names of columns, from text such as treatment,age."""
    named = [name.strip() for name in text.split(",")]
    if not all(named):
        raise ParameterError(f"{option} must name columns with commas between, such as treatment,age.")
    return named


def p_value(text: str, *, of_charge: bool) -> tuple[str | int, float]:
    """The name of an analysis, or the number of its charge, and its p-value, from text such as survey=0.012."""
    name, _, number = text.rpartition("=")
    example = "3=0.012, with the number of a charge" if of_charge else "survey=0.012"
    with suppress(ValueError):
        if name.strip():
            return (int(name) if of_charge else name.strip()), float(number)
    raise ParameterError(f"--p-value must be like {example}.")


def penalty(text: str) -> str | dict[str, str]:
    """The penalty of each column, from text such as age:smooth,pay:4; or a name that the estimators know."""
    return dict(_pairs("--penalty", text, "age:smooth,pay:4")) if ":" in text else text


def class_weight(text: str) -> dict[str, float]:
    """The weight of each label, from text such as yes:5,no:1."""
    try:
        return {label: float(weight) for label, weight in _pairs("--class-weight", text, "yes:5,no:1")}
    except ValueError:
        raise ParameterError("--class-weight must give a number for each label, such as yes:5,no:1.") from None


def _pairs(option: str, text: str, example: str) -> list[tuple[str, str]]:
    """Names and what stands behind the last colon of each. A name may hold colons, but no comma."""
    pairs = [(name.strip(), value.strip()) for name, _, value in [entry.rpartition(":") for entry in text.split(",")]]
    if not all(name and value for name, value in pairs) or len({name for name, _ in pairs}) < len(pairs):
        raise ParameterError(f"{option} must give a value for each name once, with a colon between, such as {example}.")
    return pairs


def _number_of_knots(text: str) -> int:
    from confide.features.columns import MOST_EVEN_KNOTS

    if not re.fullmatch("[0-9]{1,9}", text) or int(text) > MOST_EVEN_KNOTS:
        raise ParameterError(f"--knots must be auto or a whole number from 0, a straight line, to {MOST_EVEN_KNOTS}.")
    return int(text)


# Which option of the command line stands for which parameter of Python.
#
# Refusals are put into the words of options by this table, and a test compares it with the parameters of all estimators.

_OF_COMMANDS = (
    "allow_hidden", "clip", "delta", "epsilon", "error", "excess", "expected_tries", "failure", "groups", "held_out",
    "ledger", "level", "method", "other", "positive_rate", "quantiles", "reference_norm", "rho", "schema", "score_share",
)  # fmt: skip
"""What is no parameter of a model, or has an option of its own in each command, by the name of that option."""

OPTION_OF = {
    **{name: f"--{name.replace('_', '-')}" for name in _OF_COMMANDS},
    **{row.name: row.flag for row in PARAMETERS.values() if row.option and row.group != COMMAND_LINE},
    "budget": "--epsilon",
    "cross_tables": "--cross",
    "intervals": "--intervals",
    "n_bins": "--bins",
    "n_rows": "--rows",
    "param_grid": "--grid",
}
"""The option that stands for a parameter."""


# The estimator that `--model` names: an additive model unless another is asked for.

_FOR_NUMBERS = ("huber", "poisson", "ridge")


def new_estimator(kind: str, budget: Budget, schema: Schema | None, **parameters: Any) -> PrivateLinearModel:
    """The estimator that `--model` names, with these parameters.

    For an additive model, the target of the schema says whether classes or numbers are predicted.

    Raises
    ------
    ParameterError
        If the model does not predict what the schema's target holds, or needs a schema and has none.
    """
    predicts_numbers = predicts_a_number(schema)
    _check_suited(kind, schema, predicts_numbers=predicts_numbers)
    classes = classes_of_kind(kind)
    chosen = classes[-1] if predicts_numbers else classes[0]
    unknown = [name for name in parameters if name not in inspect.signature(chosen).parameters]
    if unknown:
        what = "numbers" if predicts_numbers else "labels"
        raise ParameterError(f"{OPTION_OF[unknown[0]]} does nothing for --model {kind} that predicts {what}; leave it out.")
    return chosen(budget, schema=schema, **parameters)  # type: ignore[no-any-return]


_KINDS = {
    "additive": ("additive", "AdditiveClassifier", "AdditiveRegressor"),
    "logistic": ("logistic", "LogisticRegression"),
    "svm": ("svm", "LinearSVC"),
    "kernel-svm": ("svm", "KernelSVC"),
    "huber": ("regression", "HuberRegressor"),
    "poisson": ("regression", "PoissonRegressor"),
    "ridge": ("regression", "Ridge"),
    "erm": ("erm", "ERMClassifier", "ERMRegressor"),
}
"""The module of each kind of model, and its estimators; where there are two, the first is for classes."""


def classes_of_kind(kind: str) -> tuple[Any, ...]:
    """The estimators of one kind of model, in the order of `_KINDS`."""
    module, *names = _KINDS[kind]
    return tuple(getattr(import_module(f"confide.estimators.{module}"), name) for name in names)


def classes_of_kinds() -> dict[str, tuple[Any, ...]]:
    """Those of all kinds."""
    return {kind: classes_of_kind(kind) for kind in _KINDS}


def predicts_a_number(schema: Schema | None) -> bool:
    """Whether the target of a schema is a column of numbers."""
    return schema is not None and schema.target is not None and schema.target.bounds is not None


def _check_suited(kind: str, schema: Schema | None, *, predicts_numbers: bool) -> None:
    if kind == "additive" and schema is None:
        raise ParameterError(wording("additive model without bounds"))
    if kind in _FOR_NUMBERS and not predicts_numbers:
        raise ParameterError(wording("model for numbers", kind=kind))
    if predicts_numbers and kind not in (*_FOR_NUMBERS, "additive", "erm"):
        raise ParameterError(wording("model for labels", kind=kind))


# Refusals of the library in the words of the command line: options in place of parameters and classes of Python.
#
# `option_values.OPTION_OF` names the option of each parameter. A test collects every refusal that the library can raise,
# puts it into these words, and looks for names of Python that are left.

_LINES = Path(__file__).with_name("phrases.txt").read_text("utf-8").splitlines()
_PHRASES = {phrase: words.strip() for phrase, _, words in (line.partition(" ->") for line in _LINES)}
"""Phrases of the library, and what the command line says instead, in the order in which they are replaced."""

_CLASSES = {
    "AdditiveClassifier": "--model additive", "AdditiveRegressor": "--model additive", "ERMClassifier": "--model erm",
    "ERMRegressor": "--model erm", "HuberRegressor": "--model huber", "KernelSVC": "--model kernel-svm",
    "LinearSVC": "--model svm", "LogisticRegression": "--model logistic", "PoissonRegressor": "--model poisson",
    "PrivateSearchCV": "confide search", "Ridge": "--model ridge", "ApproxDP": "--delta", "PureDP": "--epsilon",
    "ZCDP": "--rho",
}  # fmt: skip
_VALUES = ("logistic_hinge", "huber_hinge", "smooth_hinge", "clipped_squared", "negative_binomial")
"""Values of options that have dashes on the command line."""

_NAMES = [name for name in OPTION_OF if "_" in name]
"""Parameters that nobody takes for words."""
_WORDS = [name for name in OPTION_OF if "_" not in name]
"""Parameters that are also words. Such a word stands for the option where a sentence says what it must be, before an equals
sign, and between backticks."""

_OUTSIDE = r"(?<![\w\"'/.-])"
"""Not within a word, a path or a quoted name: names in double quotes are columns, and stay as they are."""
_CLASS = re.compile(rf"{_OUTSIDE}({'|'.join(_CLASSES)})(?![\w\"'/(-])")
_ANY_VALUE = re.compile(rf"(?<![\w\"/.-])({'|'.join(_VALUES)})(?![\w\"/.-])")
_IN_BACKTICKS = re.compile(rf"`({'|'.join(OPTION_OF)})`")
_PARAMETER = re.compile(rf"{_OUTSIDE}({'|'.join(_NAMES)})(?!\w)(?![\"'/.-]*[/\"])(?:=(?=\S))?")
_VALUE = re.compile(rf"{_OUTSIDE}({'|'.join(_WORDS)})=(?:'([^']+)'|\"([^\"]+)\"|([\w-]+))")
_SUBJECT = re.compile(rf"(^|[.;:,] )({'|'.join(_WORDS)})(?= (?:must|is|does|needs) )")
_URL = re.compile(r"\w[\w+.-]*://\S*[^\s.:;,]")
_IN_PLACE_OF_A_URL = "\ue000"
"""A letter of private use, which no message has."""


def in_words_of_options(message: str) -> str:
    """The message of a refusal, with the names of options. URLs stay as they are: theirs are the words of a server."""
    urls = iter(_URL.findall(message))
    message = _URL.sub(_IN_PLACE_OF_A_URL, message)
    for phrase, words in _PHRASES.items():
        message = message.replace(phrase, words)
    message = _ANY_VALUE.sub(lambda match: match[1].replace("_", "-"), message)
    message = _CLASS.sub(lambda match: _CLASSES[match[1]], message)
    message = _IN_BACKTICKS.sub(lambda match: OPTION_OF[match[1]], message)
    message = _VALUE.sub(lambda match: f"{OPTION_OF[match[1]]} {match[2] or match[3] or match[4]}", message)
    message = _PARAMETER.sub(lambda match: OPTION_OF[match[1]] + (" " if match[0].endswith("=") else ""), message)
    message = _SUBJECT.sub(lambda match: f"{match[1]}{OPTION_OF[match[2]]}", message)
    return re.sub(_IN_PLACE_OF_A_URL, lambda match: next(urls, match[0]), message)


def chosen_budget(epsilon: float | None, delta: float | None, rho: float | None, purpose: str = "budget") -> Budget:
    """The budget that the given options state.

    Parameters
    ----------
    epsilon, delta, rho : values of --epsilon, --delta and --rho; None for an option that was not given
    purpose : what the error message calls the amount

    Raises
    ------
    ParameterError
        Unless either --epsilon (with or without --delta) or --rho alone is given.
    """
    from confide.privacy.budgets import ZCDP, ApproxDP, PureDP

    if rho is not None and epsilon is None and delta is None:
        return ZCDP(rho)
    if epsilon is not None and rho is not None:
        raise ParameterError(f"--epsilon and --rho both state the {purpose}; give one of them.")
    if epsilon is None or rho is not None:
        raise ParameterError(f"give a {purpose}: either --epsilon, with --delta or without, or --rho.")
    # The comparison is written so that NaN is refused too.
    if not epsilon > 0.0:
        raise ParameterError("--epsilon must be a positive number, or inf for a model without privacy.")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def is_dialogue() -> bool:
    """Whether a person can be asked."""
    return sys.stdin.isatty() and sys.stdout.isatty()
