"""Values of options that are more than a number or a name: the text that was typed, read as the value that Python takes."""

from __future__ import annotations

import math
import re

from confide.errors import ParameterError


def number_or_auto(option: str, text: str) -> float | str:
    """A number, or "auto".

    Raises
    ------
    ParameterError
        If the text is neither.
    """
    if text == "auto":
        return text
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise ParameterError(f"{option} must be auto or a positive number.")
    return value


def interactions(text: str) -> str | list[list[str]]:
    """The columns of each interaction, from text such as age:hours,age:sex; or a word that the estimators know."""
    if text in ("auto", "pairs", "all"):
        return text
    named = [[name.strip() for name in entry.split(":")] for entry in text.split(",")]
    if any(len(names) < 2 or not all(names) for names in named):
        raise ParameterError(
            "--interactions must be auto, pairs, all, or columns with colons between, such as age:hours,age:sex. Columns "
            "with colons or commas in their names can be named in the schema, as interact = [...]."
        )
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
    try:
        if name.strip():
            return (int(name) if of_charge else name.strip()), float(number)
    except ValueError:
        pass
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
    parts = [entry.rpartition(":") for entry in text.split(",")]
    pairs = [(name.strip(), value.strip()) for name, _, value in parts]
    if not all(name and value for name, value in pairs) or len({name for name, _ in pairs}) < len(pairs):
        raise ParameterError(f"{option} must give a value for each name once, with a colon between, such as {example}.")
    return pairs


def _number_of_knots(text: str) -> int:
    from confide.features.columns import MOST_EVEN_KNOTS

    if not re.fullmatch("[0-9]{1,9}", text) or int(text) > MOST_EVEN_KNOTS:
        raise ParameterError(f"--knots must be auto or a whole number from 0, a straight line, to {MOST_EVEN_KNOTS}.")
    return int(text)
