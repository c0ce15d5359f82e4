"""What a person types about a column in one line, and the description of the column that it stands for.

::

    18 90             a number from 18 to 90
    0 1e6 log         the same on a logarithmic scale: "log10" where the first number is above 0, otherwise "log"
    0.1 1e3 log10     the same; the first number must be above 0
    F, M              a category with two levels
    A, B, *           a category; * stands for all other levels together
    18 90 empty       cells may be empty; also: F, M, empty
    0 110 empty 999   and 999 stands for an empty cell, as other numbers behind it would; also: F, M, empty 9
    0 1e6 log in USD  numbers with a unit, which stands last; it is shown wherever units are shown
    skip              the column is left out
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from typing import Any

from confide.errors import ParameterError
from confide.features.columns import CategoryColumn, NumberColumn
from confide.features.target import Target

SKIP = "skip"
HELP_FOR_COLUMNS = (
    '"18 90" is a number from 18 to 90, and "18 90 in years" names its unit; add "log" only where values spread over powers '
    'of ten. "F, M" are the levels of a category; add "*" for all other levels together. Add "empty" if cells may be empty, '
    'and behind it codes that stand for empty cells, as in "empty 999 -9". "skip" leaves the column out, and "<" goes back.'
)
HELP_FOR_TARGETS = (
    '"no, yes" are two labels, and the model gives the probability of the second; "a, b, c" are classes; "0 20000" are the '
    'bounds of a number, and "0 20000 in USD" names its unit.'
)

_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BOUNDS = re.compile(
    rf"({_NUMBER})(?: *\.\. *| +to +| +)({_NUMBER})((?: +[a-z]+\d*)*)((?<=empty)(?: +{_NUMBER})+)?((?: +[a-z]+\d*)*)",
    re.IGNORECASE,
)
_EMPTY = re.compile(rf"empty((?: +{_NUMBER})*)", re.IGNORECASE)
_PAIR = re.compile(rf"({_NUMBER}) *, *({_NUMBER})")
_NEAR = 2.0
"""Two codes of levels, such as 0 and 1 or -1 and 1, are hardly ever farther apart."""
_WITH_COMMA = r"[+-]?\d+(?:[.,]\d+)?(?:[eE][+-]?\d+)?"
_DECIMAL_COMMA = re.compile(rf"(?=.*\d,\d){_WITH_COMMA}(?: *\.\. *| +to +| +){_WITH_COMMA}(?: +[a-z]+\d*)*", re.IGNORECASE)
_THOUSANDS = re.compile(r"\d,\d{3}(?!\d)")


def described_column(name: str, answer: str) -> dict[str, Any] | None:
    """The description of a column, as in a schema; None if it is left out.

    Parameters
    ----------
    name : name of the column
    answer : what was typed, in the form that this module documents

    Raises
    ------
    ParameterError
        If the answer has another form, or contradicts itself. The message says what to type.
    """
    answer = answer.strip()
    if answer.lower() == SKIP:
        return None
    if bounds := _bounds(answer, ("log", "log10", "empty")):
        low, high, words, codes, unit = bounds
        scale = "log10" if "log10" in words or ("log" in words and low > 0.0) else "log" if "log" in words else "linear"
        return NumberColumn(name, low, high, scale=scale, missing=codes or "empty" in words, unit=unit).to_dict()
    levels, codes = _without_codes(_levels(answer))
    listed = [level for level in levels if level not in ("*", "empty")]
    if len(levels) < 2 or not listed:
        raise ParameterError('give two bounds such as "18 90", levels such as "F, M", or "skip"; "?" says more.')
    return CategoryColumn(name, tuple(listed), other="*" in levels, missing=codes or "empty" in levels).to_dict()


def described_target(name: str, answer: str) -> dict[str, Any]:
    """The description of the target, as in a schema.

    Raises
    ------
    ParameterError
        If the answer is neither labels nor bounds.
    """
    if bounds := _bounds(answer.strip(), ()):
        return Target(name, low=bounds[0], high=bounds[1], unit=bounds[4]).to_dict()
    labels = _levels(answer.strip())
    if len(labels) < 2:
        raise ParameterError('give two labels such as "no, yes", more of them, or two bounds such as "0 20000".')
    if len(labels) == 2:
        return Target(name, negative=labels[0], positive=labels[1]).to_dict()
    return Target(name, classes=tuple(labels)).to_dict()


def check_no_unclear_pair(answer: str, guess: str) -> None:
    """Refuse two numbers with a comma that may be meant as bounds, as in "18,90"; "0, 1" and quoted levels are levels.

    Parameters
    ----------
    answer : what was typed
    guess : what was suggested

    Raises
    ------
    ParameterError
        With what to type for bounds and for levels.
    """
    found = _PAIR.fullmatch(answer.strip())
    if found is None or answer.strip() == guess:
        return
    low, high = found[1], found[2]
    if _BOUNDS.fullmatch(guess) or abs(float(high) - float(low)) > _NEAR:
        raise ParameterError(
            f"two numbers: bounds {low} to {high}, or two levels? Type {low} {high} without a comma for bounds, or "
            f'"{low}", "{high}" with the quotation marks for levels.'
        )


def typed(description: dict[str, Any]) -> str:
    """The answer that stands for the description of a column or of a target."""
    if "low" in description:
        words = (" log" if description.get("scale") else "") + "".join(f" {mark}" for mark in _empty(description))
        unit = f" in {description['unit']}" if "unit" in description else ""
        return f"{description['low']} {description['high']}{words}{unit}"
    labels = description.get("categories") or description.get("classes") or []
    if "negative" in description:
        labels = [description["negative"], description["positive"]]
    marks = ["*"] * bool(description.get("other")) + _empty(description)
    return ", ".join([*(_quoted(label) for label in labels), *marks])


def _empty(description: dict[str, Any]) -> list[str]:
    """How it is typed that cells may be empty, in a list that is empty where they may not be."""
    missing = description.get("missing")
    codes = missing if isinstance(missing, list) else []
    return [" ".join(["empty", *map(str, codes)])] * bool(missing)


def target_answer(answer: str) -> str:
    """The answer for a column as one for a target, which has no other levels, no empty cells and no scale."""
    numbers, unit = _without_unit(answer)
    kept = (
        ""
        if answer == SKIP
        else re.sub(rf"(, \*)?(, empty(?: +{_NUMBER})*)?( log(?:10)?)?( empty(?: +{_NUMBER})*)?$", "", numbers)
    )
    return kept if unit is None else f"{kept} in {unit}"


def _without_unit(answer: str) -> tuple[str, str | None]:
    """An answer and the unit behind it; an answer that does not begin with two numbers has none.

    Numbers with a decimal comma count here as numbers, so that they are refused for the comma and not read as levels.
    """
    found = re.fullmatch(r"(.*?) +in +(\S.*)", answer)
    has_unit = found is not None and any(form.fullmatch(found[1]) for form in (_BOUNDS, _DECIMAL_COMMA))
    return (found[1], found[2]) if found and has_unit else (answer, None)


def _bounds(answer: str, known: Sequence[str]) -> tuple[float, float, set[str], tuple[float, ...], str | None] | None:
    """Low, high, words, codes of empty cells and the unit; None if the answer does not begin with two numbers."""
    answer, unit = _without_unit(answer)
    if _THOUSANDS.search(answer) and re.fullmatch(r"[\d,. ]+[a-z ]*", answer) and " " in re.sub(", +", ",", answer):
        raise ParameterError('write large numbers without commas, such as "0 20000".')
    if _DECIMAL_COMMA.fullmatch(answer):
        raise ParameterError('write decimals with a point, such as "0.5 20".')
    found = _BOUNDS.fullmatch(answer)
    if found is None:
        return None
    words = f"{found[3]} {found[5]}".lower().split()
    if unknown := [word for word in words if word not in known]:
        raise ParameterError(f'"{unknown[0]}" is not known after two bounds. Known are: {", ".join(known) or "none"}.')
    return float(found[1]), float(found[2]), set(words), tuple(float(code) for code in (found[4] or "").split()), unit


def _without_codes(levels: list[Any]) -> tuple[list[Any], tuple[int | float, ...]]:
    """The labels and marks of a list, and the codes behind the mark for empty cells."""
    codes: list[int | float] = []
    kept = []
    for level in levels:
        found = _EMPTY.fullmatch(level) if isinstance(level, str) else None
        codes += [
            int(code) if re.fullmatch(r"[+-]?\d+", code) else float(code) for code in (found[1] if found else "").split()
        ]
        kept.append("empty" if found else level)
    return kept, tuple(codes)


def _levels(answer: str) -> list[Any]:
    """The labels of a list with commas. Numbers become numbers, and true and false booleans, if all labels are."""
    texts = [text.strip() for text in next(csv.reader([answer], skipinitialspace=True), [])]
    marks = [text for text in texts if text == "*" or _EMPTY.fullmatch(text)]
    labels: list[Any] = [text for text in texts if text and text not in marks]
    if labels and all(re.fullmatch(r"[+-]?\d{1,15}", label) for label in labels):
        labels = [int(label) for label in labels]
    elif labels and all(label.lower() in ("true", "false") for label in labels):
        labels = [label.lower() == "true" for label in labels]
    return [*labels, *marks]


def _quoted(label: object) -> str:
    text = str(label).lower() if isinstance(label, bool) else str(label)
    return '"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text
