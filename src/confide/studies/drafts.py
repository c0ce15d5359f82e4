"""What is known of a study when it begins: the draft of its schema and its settings. Public facts alone."""

from __future__ import annotations

import csv
import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from confide.errors import ParameterError, wording
from confide.features.canonical_labels import BLANK
from confide.features.cells import day_number
from confide.features.columns import CategoryColumn, NumberColumn, columns_of
from confide.features.schema import Target
from confide.known_words import sentences_of
from confide.studies.text_tables import DeclaredType, TableNames

# What a person types about a column in one line, and the description of the column that it stands for.
#
# ::
#
#     18 90             a number from 18 to 90
#     0 1e6 log         the same on a logarithmic scale: "log10" where the first number is above 0, otherwise "log"
#     0.1 1e3 log10     the same; the first number must be above 0
#     F, M              a category with two levels
#     A, B, *           a category; * stands for all other levels together
#     I < II < III      an ordered category, from the lowest level on
#     2010-01-01 2030-12-31   dates between these
#     1.1.2010 31.12.2030     the same, and cells write dates so
#     2010-01-01 2030-12-31 as 31/12/2024   the same; the last one only shows how cells write dates
#     18 90 empty       cells may be empty; also: F, M, empty
#     0 110 empty 999   and 999 stands for an empty cell, as other numbers behind it would; also: F, M, empty 9
#     0 1e6 log in USD  numbers with a unit, which stands last; it is shown wherever units are shown
#     skip              the column is left out

SKIP = "skip"
HELP_FOR_COLUMNS = wording("help for columns")
HELP_FOR_TARGETS = wording("help for targets")

_NUMBER = r"[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_WORDS = r"((?: +[a-z]+\d*)*)"
_CODES = rf"((?<=empty)(?: +{_NUMBER})+)?"
_BOUNDS = re.compile(rf"({_NUMBER})(?: *\.\. *| +to +| +)({_NUMBER}){_WORDS}{_CODES}{_WORDS}", re.IGNORECASE)
_DATES = re.compile(
    r"(D)(?: *\.\. *| +to +| +)(D)(?: +as +(D(?: +[\d:]+)?))?( +empty)?".replace("D", r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}"),
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
    if dates := _DATES.fullmatch(answer):
        low, high, form = _dates(dates[1], dates[2], dates[3])
        return NumberColumn(name, low, high, part="date", format=form, missing=bool(dates[4])).to_dict()
    if " < " in answer:
        before = re.sub(r",? empty$", "", answer, flags=re.IGNORECASE)
        ordered = {"categories": _levels(before.replace(" < ", ", ")), "ordered": True, "missing": before != answer}
        return columns_of({name: ordered})[0].to_dict()
    levels = _levels(answer)
    listed = [level for level in levels if level != "*" and not _EMPTY.fullmatch(str(level))]
    empty = [match[1].split() for level in levels if (match := _EMPTY.fullmatch(str(level)))]
    if len(levels) < 2 or not listed:
        raise ParameterError('give two bounds such as "18 90", levels such as "F, M", or "skip"; "?" says more.')
    codes = tuple(int(code) if re.fullmatch(r"[+-]?\d+", code) else float(code) for texts in empty for code in texts)
    return CategoryColumn(name, tuple(listed), other="*" in levels, missing=codes or bool(empty)).to_dict()


_NAMES = sentences_of("names.ini")
DATE_FORMS = tuple(f"{day}{time}" for day in _NAMES["forms"]["dates"].split() for time in ("", " %H:%M", " %H:%M:%S"))
"""How tables write dates otherwise than as 2024-12-31, in the letters of strptime."""


def _dates(low: str, high: str, shown: str | None) -> tuple[Any, Any, str | None]:
    """The bounds of dates as numbers, and how cells write dates: as the one that is shown, or else as the bounds."""
    ends, cells = (
        [form for form in (None, *DATE_FORMS) if None not in [day_number(text, form) for text in texts]]
        for texts in ((low, high), (shown or low, shown or high))
    )
    if len(ends) != 1 or len(cells) != 1:
        raise ParameterError(wording("unclear dates"))
    return day_number(low, ends[0]), day_number(high, ends[0]), cells[0]


def shown_form(form: str) -> str:
    """The last day of 2024 in a form of dates."""
    return dt.datetime(2024, 12, 31, 14, 30).strftime(form)


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
    match = _PAIR.fullmatch(answer.strip())
    if match is None or answer.strip() == guess:
        return
    low, high = match[1], match[2]
    if _BOUNDS.fullmatch(guess) or abs(float(high) - float(low)) > _NEAR:
        raise ParameterError(wording("bounds or levels", low=low, high=high))


def typed(description: dict[str, Any]) -> str:
    """The answer that stands for the description of a column or of a target."""
    missing = description.get("missing")
    empty = [" ".join(["empty", *map(str, missing if isinstance(missing, list) else ())])] * bool(missing)
    if "low" in description:
        unit = [f"in {description['unit']}"] if "unit" in description else []
        log, form = ["log"] * bool(description.get("scale")), description.get("format")
        words = [description["low"], description["high"], *log, *(["as", shown_form(form)] if form else []), *empty, *unit]
        return " ".join(map(str, words))
    labels = description.get("categories") or description.get("classes") or []
    if "negative" in description:
        labels = [description["negative"], description["positive"]]
    texts = [str(label).lower() if isinstance(label, bool) else str(label) for label in labels]
    texts = ['"' + text.replace('"', '""') + '"' if "," in text or '"' in text else text for text in texts]
    if description.get("ordered"):
        return ", ".join([" < ".join(texts), *empty])
    return ", ".join([*texts, *["*"] * bool(description.get("other")), *empty])


def target_answer(answer: str) -> str:
    """The answer for a column as one for a target, which has no other levels, no empty cells and no scale."""
    numbers, unit = _without_unit(answer)
    beside = rf"(, \*)?(, empty(?: +{_NUMBER})*)?( log(?:10)?)?( empty(?: +{_NUMBER})*)?$"
    kept = "" if answer == SKIP else re.sub(beside, "", numbers)
    return kept if unit is None else f"{kept} in {unit}"


def _without_unit(answer: str) -> tuple[str, str | None]:
    """An answer and the unit behind it; an answer that does not begin with two numbers has none.

    Numbers with a decimal comma count here as numbers, so that they are refused for the comma and not read as levels.
    """
    match = re.fullmatch(r"(.*?) +in +(\S.*)", answer)
    has_unit = match is not None and any(form.fullmatch(match[1]) for form in (_BOUNDS, _DECIMAL_COMMA))
    return (match[1], match[2]) if match and has_unit else (answer, None)


def _bounds(answer: str, known: Sequence[str]) -> tuple[float, float, set[str], tuple[float, ...], str | None] | None:
    """Low, high, words, codes of empty cells and the unit; None if the answer does not begin with two numbers."""
    answer, unit = _without_unit(answer)
    if unit is not None and re.search(r"\b(empty|missing|log|log10)\b", unit, re.IGNORECASE):
        raise ParameterError('write the unit last, after "log" or "empty", as in "0 110 empty 999 in years".')
    if _THOUSANDS.search(answer) and re.fullmatch(r"[\d,. ]+[a-z ]*", answer) and " " in re.sub(", +", ",", answer):
        raise ParameterError('write large numbers without commas, such as "0 20000".')
    if _DECIMAL_COMMA.fullmatch(answer):
        raise ParameterError('write decimals with a point, such as "0.5 20".')
    match = _BOUNDS.fullmatch(answer)
    if match is None:
        return None
    words = f"{match[3]} {match[5]}".lower().split()
    if unknown := [word for word in words if word not in known]:
        raise ParameterError(f'"{unknown[0]}" is not known after two bounds. Known are: {", ".join(known) or "none"}.')
    return float(match[1]), float(match[2]), set(words), tuple(float(code) for code in (match[4] or "").split()), unit


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


# What the name of a column suggests to anybody, for example 0 to 120 for an age. A person confirms each guess.

_USUAL_BOUNDS = dict(_NAMES["bounds"])
"""Bounds for columns whose names have these words, as they are typed."""
_KINDS = {kind: set(words.split()) for kind, words in _NAMES["kinds"].items()}
"""Words of names, by what such columns hold."""


def words_of(name: str) -> list[str]:
    """The words of a name in lower case: BILL_AMT1, billAmt1 and "Bill amt. 1" have the words bill, amt and 1."""
    return re.findall(r"[^\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Za-z])(?=[0-9])", " ", name).lower())


def guessed_answer(name: str, declared: DeclaredType | None = None) -> str:
    """The answer that the name and the declared type of a column suggest, as it would be typed; "" if there is none."""
    words = words_of(name)
    if declared == "boolean":
        return "false, true"
    if declared == "other" or (_KINDS["texts"] & set(words) and not _says_whether(words)):
        return SKIP
    if _KINDS["identifiers"] & set(words) or set(words) <= _KINDS["persons"]:
        return SKIP
    has_bounds = declared not in ("text", "date", "ordered")
    named = [word for word in (" ".join(words), *words) if word in _USUAL_BOUNDS] if has_bounds else []
    return _USUAL_BOUNDS[named[0]] if named else ""


def _says_whether(words: list[str]) -> bool:
    """Whether a column probably says of each row that something holds, such as "Phone verified" or "has_address"."""
    return bool(_KINDS["states"] & set(words) or _KINDS["flags"] & set(words[:1]))


def series_of(name: str) -> tuple[str, ...]:
    """The words of a name without its numbers: columns of one series, such as BILL_AMT1 and BILL_AMT2, share them."""
    return tuple(word for word in words_of(name) if not word.isdigit())


def guessed_target(names: Sequence[str]) -> str:
    """The column that a model probably predicts: one whose name says so, or else the last one that is no identifier."""
    named = [name for name in names if _KINDS["targets"] & set(words_of(name))]
    return (named or [name for name in names if guessed_answer(name) != SKIP] or list(names))[-1]


@dataclass(frozen=True, slots=True)
class ColumnDraft:
    """One column of the schema to be.

    Parameters
    ----------
    name : name of the column
    description : its description as in a schema, in which `BLANK` stands for what is not known; `BLANK` if nothing is; None
        if the column is left out
    note : a comment beside it, "" for none
    """

    name: str
    description: Mapping[str, object] | str | None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SchemaDraft:
    """A schema to be.

    Parameters
    ----------
    columns : without the target and the person
    target : as in a schema, maybe with blanks
    person : the column that identifies persons, or None
    from_rows : the name of the public file from whose rows types, levels and bounds were suggested; "" if no row was read
    table : how the file is written, as in a schema
    """

    columns: tuple[ColumnDraft, ...]
    target: Mapping[str, object]
    person: str | None = None
    from_rows: str = ""
    table: Mapping[str, object] = field(default_factory=dict)

    @property
    def n_blank(self) -> int:
        """The number of places in which something is to be filled in, those of the target among them."""
        descriptions = [self.target, *(column.description for column in self.columns)]
        return sum(repr(description).count(BLANK) for description in descriptions)

    @property
    def predicts_numbers(self) -> bool | None:
        """Whether the target is a number; None if that is to be filled in."""
        return None if BLANK in self.target.values() else "low" in self.target


@dataclass(frozen=True, slots=True)
class StudyDraft:
    """The settings of a study to be.

    Parameters
    ----------
    name : what the study is called
    data : path of the table, as the study file is to name it
    schema : name of the schema's file
    epsilon, delta : the budget of the fit; delta None for pure differential privacy
    rho : the budget of the fit in zero-concentrated differential privacy, which then takes the place of these two; or None
    limit : epsilon, or rho, of the ledger, for all releases together
    n_rows : about how many rows there are, for plans; a public guess
    n_rows_bounds : public bounds on the number of rows if it is private, otherwise None
    max_rows_per_person : the largest number of rows of one person
    ledger : name of the ledger's file
    """

    name: str
    data: str
    schema: str
    epsilon: float = 1.0
    delta: float | None = None
    rho: float | None = None
    limit: float = 1.0
    n_rows: int = 10_000
    n_rows_bounds: tuple[int, int] | None = None
    max_rows_per_person: int = 1
    ledger: str = "study.db"

    @property
    def amounts(self) -> dict[str, float]:
        """The budget of the fit by the names of its amounts: epsilon, epsilon and delta, or rho."""
        if self.rho is not None:
            return {"rho": self.rho}
        return {"epsilon": self.epsilon} | ({} if self.delta is None else {"delta": self.delta})

    @property
    def limits(self) -> dict[str, float]:
        """The limit of the ledger, likewise; its delta is that of as many fits as its epsilon pays for."""
        if self.rho is not None:
            return {"rho": self.limit}
        n_fits = max(1, math.ceil(self.limit / self.epsilon))
        return {"epsilon": self.limit} | ({} if self.delta is None else {"delta": min(self.delta * n_fits, 0.5)})

    @property
    def neighbours(self) -> str:
        """The neighbour relation: with a private number of rows, a row is added or removed."""
        return "replace-one" if self.n_rows_bounds is None else "add-or-remove-one"


def drafted(table: TableNames, answers: Mapping[str, str], target: str | None, person: str | None) -> SchemaDraft:
    """A schema from suggested answers, for its owner to correct; without them, a blank stands where only a person knows.

    Parameters
    ----------
    table : the names of the columns
    answers : for each column of which something is known, what would be typed (see the beginning of this module)
    target : the column to be predicted, or None if it is to be filled in
    person : the column that identifies persons, or None
    """
    described: Mapping[str, Any] = {"column": target or BLANK, "negative": BLANK, "positive": BLANK}
    if target is not None and answers.get(target, "") not in ("", SKIP):
        described = described_target(target, target_answer(answers[target]))
    columns = []
    for name in table.names:
        if name in (target, person):
            continue
        if name in answers:
            column = ColumnDraft(name, described_column(name, answers[name]) if answers[name] else BLANK)
        else:
            column = _blank_column(name, table.types.get(name))
        if name in table.missing and isinstance(column.description, dict):
            column = replace(column, description=column.description | {"missing": True})
        columns.append(column)
    return SchemaDraft(tuple(columns), described, person, table=table.written)


def _blank_column(name: str, declared: DeclaredType | None) -> ColumnDraft:
    """A column of which only its name and the type in its file are known."""
    words, guess = words_of(name), guessed_answer(name, declared)
    if guess == SKIP:
        reason = "its type is no number and no text" if declared == "other" else "it looks like a name or an identifier"
        return ColumnDraft(name, None, f"left out, because {reason}")
    if declared == "boolean":
        return ColumnDraft(name, {"categories": [False, True]}, "true or false, as the file declares")
    if declared == "ordered":
        return ColumnDraft(name, {"categories": [BLANK], "ordered": True}, 'from the lowest level on, as in ["I", "II"]')
    if declared == "text" or _KINDS["categories"] & set(words) or _says_whether(words):
        return ColumnDraft(name, {"categories": [BLANK], "other": True}, 'for example ["a", "b"]')
    if declared == "date" or (declared is None and _KINDS["dates"] & set(words)):
        written = "" if declared else '; format = "%d.%m.%Y" where cells are written so'
        note = f"dates, for example low = 2010-01-01, high = 2030-12-31{written}"
        return ColumnDraft(name, {"low": BLANK, "high": BLANK}, note)
    is_amount = bool(_KINDS["amounts"] & set(words))
    if declared != "number" and not is_amount and not guess:
        return ColumnDraft(name, BLANK)
    low, high = (guess or ("0 1000000" if is_amount else "0 1000")).split()
    tail = '; or low = 1000, high = 1000000, scale = "log10"' if is_amount and not guess else ""
    return ColumnDraft(name, {"low": BLANK, "high": BLANK}, f"for example low = {low}, high = {high}{tail}")
