"""The questions that begin a study, in a terminal: one line for each column. No row is read for them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

from confide.data.files import CSV_MISSING
from confide.data.sources import files_of
from confide.errors import ParameterError, is_text
from confide.features.canonical_labels import canonical_label, is_missing, na_is_a_code
from confide.features.cells import day_number, number_in, shown_days
from confide.features.columns import shown_number
from confide.features.schema import Schema
from confide.studies.counting import FEWEST_OF_A_CODE, TYPICAL_CODE
from confide.studies.drafts import (
    DATE_FORMS,
    HELP_FOR_COLUMNS,
    HELP_FOR_TARGETS,
    SKIP,
    ColumnDraft,
    SchemaDraft,
    StudyDraft,
    check_no_unclear_pair,
    described_column,
    described_target,
    guessed_answer,
    guessed_target,
    series_of,
    shown_form,
    target_answer,
    typed,
)
from confide.studies.text_tables import (
    DeclaredType,
    TableNames,
    TextForm,
    cells_in,
    distinct_in,
    form_of,
    is_text_table,
    table_pieces,
)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Interview:
    """Asks a person what is publicly known of a table.

    Parameters
    ----------
    ask : what a person types when asked a question; the default that is given beside it if that is nothing
    say : shows some text
    table : the names of the columns
    suggested : answers for columns, by name, from the rows of a public file; nothing for a private one
    """

    ask: Callable[[str, str], str]
    say: Callable[[str], None]
    table: TableNames
    suggested: Mapping[str, str]

    def schema(self, target: str | None, person: str | None) -> SchemaDraft:
        """Ask for the target and the columns.

        Parameters
        ----------
        target, person : columns that options named; None for those to be asked for
        """
        self.say(self._list_of_names())
        left = [name for name in self.table.names if name != person]
        if target is None:
            target = self._asked("Which column is predicted (name or number)?", guessed_target(left) or "", self._named)
        default = target_answer(self.suggested.get(target, ""))
        self.say(HELP_FOR_TARGETS)

        def read(answer: str) -> dict[str, Any]:
            check_no_unclear_pair(answer, default)
            return described_target(target, answer)

        described = self._asked(f'What does "{target}" hold?', default, read)
        columns = self._columns([name for name in left if name != target])
        return SchemaDraft(columns, described, person, table=self._written())

    def _written(self) -> Mapping[str, object]:
        """How the file is written. What its first line, or a public file, tells of its numbers is asked for."""
        written = dict(self.table.written)
        if not written.keys() & {"decimal", "thousands"}:
            return written
        decimal, thousands = (written.pop(key, usual) for key, usual in (("decimal", "."), ("thousands", "")))
        question = "How are twelve thousand and a half written in the file, as 12000,5 or 12000.5 or 12.000,5 or 12,000.5?"
        return written | self._asked(question, f"12{thousands}000{decimal}5", _signs)

    def person(self, rows: int | None, column: str | None = None) -> tuple[int, str | None]:
        """The largest number of rows of one person and the column that identifies persons, which options may have given."""
        rows = rows or self._asked("How many rows may one person have, at most?", "1", _positive)
        if rows == 1 or column is not None:
            return rows, column
        self.say(self._list_of_names())
        question = "Which column identifies the person (name or number; Enter: none)?"
        return rows, self._asked(question, "", lambda answer: self._named(answer) if answer else None)

    def study(self, study: StudyDraft) -> StudyDraft:
        """Ask for the settings."""
        question = 'About how many rows are there ("private" if nobody may know)?'
        rows = self._asked(question, str(study.n_rows), lambda text: None if text.lower() == "private" else _positive(text))
        if rows is None:
            question = "Between which public bounds does their number lie (LOW HIGH)?"
            study = replace(study, n_rows_bounds=self._asked(question, "1000 1000000", _row_bounds))
        else:
            study = replace(study, n_rows=rows)
        name, delta = "epsilon" if study.rho is None else "rho", study.delta
        shown = name.capitalize()
        amount = self._asked(f"{shown} of the fit (smaller is more private)?", f"{study.amounts[name]:g}", _amount)
        if study.rho is None:
            usual = "none" if delta is None else f"{delta:g}"
            delta = self._asked('Delta ("none" for pure differential privacy; else far below 1 / rows)?', usual, _delta)
        limit = self._asked(f"{shown} of all releases together, the limit of the ledger?", f"{amount:g}", _amount)
        return replace(study, **{name: amount}, delta=delta, limit=limit)  # type: ignore[arg-type]  # names of numbers

    def _columns(self, names: list[str]) -> tuple[ColumnDraft, ...]:
        self.say(HELP_FOR_COLUMNS)
        answers: list[str] = []
        while len(answers) < len(names):
            name = names[len(answers)]
            own = series_of(name)
            series = [answer for other, answer in zip(names, answers, strict=False) if own and series_of(other) == own]
            guess = self.suggested.get(name) or [guessed_answer(name, self.table.types.get(name)), *series][-1]
            answer = self.ask(f"{len(answers) + 1}/{len(names)} {name}", guess).strip()
            if answer == "<":
                del answers[-1:]
                continue
            try:
                if not answer or answer == "?":
                    raise ParameterError(HELP_FOR_COLUMNS)
                check_no_unclear_pair(answer, guess)
                self.say(f"    {_understood(described_column(name, answer))}")
                answers.append(answer)
            except ParameterError as error:
                self.say(f"    {error}")
        return tuple(ColumnDraft(name, described_column(name, answer)) for name, answer in zip(names, answers, strict=True))

    def _list_of_names(self) -> str:
        return ", ".join(f"{number} {name}" for number, name in enumerate(self.table.names, 1))

    def _asked(self, question: str, default: str, read: Callable[[str], Answer]) -> Answer:
        """What `read` makes of the answer. An answer that it refuses is asked for again."""
        while True:
            try:
                return read(self.ask(question, default).strip())
            except ParameterError as error:
                self.say(f"    {error}")

    def _named(self, answer: str) -> str:
        """A column, by its name or its number."""
        if answer in self.table.names:
            return answer
        if answer.isdigit() and 1 <= int(answer) <= len(self.table.names):
            return self.table.names[int(answer) - 1]
        raise ParameterError("give the name of a column, or its number in the list above.")


def _understood(description: dict[str, Any] | None) -> str:
    """How an answer was understood, so that a mistake is seen."""
    if description is None:
        return "left out"
    codes = description.get("missing")
    gaps = ", cells may be empty" if codes else ""
    gaps += f" ({', '.join(map(str, codes))} stand for empty ones)" if isinstance(codes, list) else ""
    if is_text(description.get("low")):
        written = f", written as {shown_form(description['format'])}" if "format" in description else ""
        return f"a date from {description['low']} to {description['high']}{written}{gaps}"
    if "low" in description:
        scale = ", on a logarithmic scale" if description.get("scale") else ""
        unit = f" {description['unit']}" if "unit" in description else ""
        return f"a number from {description['low']} to {description['high']}{unit}{scale}{gaps}"
    if description.get("ordered"):
        return f"levels in this order: {typed({'categories': description['categories'], 'ordered': True})}{gaps}"
    others, levels = ", all others together" if description.get("other") else "", description["categories"]
    return f"{len(levels)} levels: {typed({'categories': levels})}{others}{gaps}"


def _positive(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdigit() or int(digits) < 1:
        raise ParameterError("give a whole number, at least 1.")
    return int(digits)


def _amount(text: str) -> float:
    amount = 0.0
    with suppress(ValueError):
        amount = float(text)
    if not 0.0 < amount < float("inf"):
        raise ParameterError("give a positive number, such as 1.")
    return amount


def _delta(text: str) -> float | None:
    if text.lower() in ("none", "0", ""):
        return None
    amount = _amount(text)
    if amount >= 1.0:
        raise ParameterError("delta is a probability, so it is below 1; for example 1e-6.")
    return amount


def _signs(text: str) -> dict[str, str]:
    """The signs of a table in twelve thousand and a half, as a schema says them."""
    for decimal, thousands in _SIGNS:
        if text == f"12{thousands}000{decimal}5":
            return _declared(decimal, thousands)
    raise ParameterError("write 12000.5 with the signs of the file before decimals and between thousands.")


def _declared(decimal: str, thousands: str) -> dict[str, str]:
    """Two signs as a schema says them."""
    return ({"decimal": decimal} if decimal != "." else {}) | ({"thousands": thousands} if thousands else {})


def _row_bounds(text: str) -> tuple[int, int]:
    if len(text.split()) != 2:
        raise ParameterError("give two whole numbers, such as 1000 1000000.")
    low, high = map(_positive, text.split())
    if low >= high:
        raise ParameterError("the first number must be below the second.")
    return low, high


# Suggestions from the rows of a file that its owner declares to be public: types, bounds and levels.
#
# This is the only place where the start of a study reads a row, and it is reached by `--public-file` alone.

_MOST_LEVELS = 50
"""A column of text with more different values is no category that a person would list."""
_MOST_CODES = 12
"""A column of whole numbers with so few different values is taken for a category of codes."""
_LONG_TAIL = 100.0
"""If the least number is 0 and the largest is more than so many times the mean, the scale "log" is suggested."""
_LONG_POSITIVE_TAIL = 20.0
"""If all numbers are positive and the largest is more than so many times the mean, the scale "log10" is suggested. The tail
of an exponential distribution is shorter in any table that fits into memory, and that of incomes is longer."""


_NO_DAYS = (math.inf, -math.inf)


@dataclass(slots=True)
class _Seen:
    """What was seen of one column so far. Of a column with many values only the ends and the mean are kept."""

    declared: DeclaredType | None
    levels: dict[str, None] = field(default_factory=dict)
    n_numbers: int = 0
    has_texts: bool = False
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    missing: bool = False
    na: bool = False
    whole: bool = True
    set_aside: Counter[float] = field(default_factory=Counter)
    days: dict[str | None, tuple[float, float]] = field(default_factory=lambda: dict.fromkeys((None, *DATE_FORMS), _NO_DAYS))
    """The first and the last date, by each form in which all dates can be read."""

    def add(self, value: object, count: int) -> None:
        """One distinct value, and in how many rows it is."""
        number = number_in(value)
        label = None if value is None else canonical_label(str(value))
        if is_missing(label) or label is None or (number is not None and math.isnan(number)):
            self.missing = self.missing or label != "NA"
            self.na = self.na or label == "NA"
            return
        if len(self.levels) <= _MOST_LEVELS:
            self.levels[label] = None
        if number is None:
            days = [(day_number(value, form), form, ends) for form, ends in self.days.items()]
            self.days = {form: (min(day, low), max(day, high)) for day, form, (low, high) in days if day is not None}
            self.has_texts = not self.days
        elif math.isinf(number):
            self.has_texts = True
        elif TYPICAL_CODE.fullmatch(f"{number:.10g}"):
            self.set_aside[number] += count
        else:
            self._add_number(number, count)

    def _add_number(self, number: float, count: int) -> None:
        self.n_numbers += count
        self.total += number * count
        self.low, self.high = min(self.low, number), max(self.high, number)
        self.whole = self.whole and number.is_integer()

    def _without_codes(self) -> list[int | float]:
        """Codes for missing cells, such as 999 and -9, among the numbers that may be some; the others count as numbers."""
        low, high, codes = self.low, self.high, []
        for number, count in self.set_aside.items():
            is_outside = number < 0.0 <= low or number - high > high - low > 0.0
            if count >= FEWEST_OF_A_CODE and is_outside:
                codes.append(shown_number(number))
                self.levels.pop(str(shown_number(number)), None)
            else:
                self._add_number(number, count)
        return codes

    def answer(self) -> str:
        """The suggestion as it would be typed; "" if there is none."""
        if self.declared == "other" or not self.levels:
            return SKIP
        codes = self._without_codes()
        form = next(iter(self.days), None)
        low, high = self.days.get(form, _NO_DAYS)
        if low < high and not (self.has_texts or self.n_numbers):
            if form is not None and len(self.days) > 1:
                return ""  # each date can be read with day and month in either order
            first, last = (text[:10] for text in shown_days([low, high]))
            return typed({"low": first, "high": last, "missing": self.missing or self.na, "format": form})
        if self.na and na_is_a_code(self.levels):
            self.levels["NA"] = None
        elif self.na:
            self.missing = True
        few_codes = self.whole and len(self.levels) <= _MOST_CODES
        if self.n_numbers and not self.has_texts and not (few_codes and self.high - self.low <= _MOST_CODES):
            if self.low == self.high:
                return SKIP
            mean = self.total / self.n_numbers
            tail = _LONG_TAIL * max(mean, 1.0) if self.low == 0.0 else _LONG_POSITIVE_TAIL * mean
            is_long = self.low >= 0.0 and self.high > tail
            bounds = {"low": shown_number(self.low), "high": shown_number(self.high), "missing": codes or self.missing}
            return typed(bounds | ({"scale": "log"} if is_long else {}))
        if not 1 < len(self.levels) <= _MOST_LEVELS:
            return SKIP
        ordered = sorted(self.levels, key=lambda label: ((label != "NA" and number_in(label)) or 0.0, label))
        return typed({"categories": ordered, "missing": codes or self.missing, "other": len(self.levels) > 2})


_SIGNS = {
    signs: re.sub("D", signs[0], rf"^\s*[+-]?([0-9]+{grouped})([D][0-9]*)?([eE][+-]?[0-9]+)?\s*$")
    for signs in ((".", ""), (",", ""), (".", ","), (",", "."), *product(",.", " '\u2019\u00a0\u202f"))
    for grouped in [f"|[0-9]{{1,3}}([{signs[1]}][0-9]{{3}})+" if signs[1] else ""]
}
"""Signs before decimals and between thousands, the usual ones first, and how numbers with these signs are written."""


def _signs_of(path: Path, names: Sequence[str], form: TextForm) -> tuple[dict[str, str], list[str]]:
    """The signs with which most columns of a file are numbers, as a schema says them, and the names of these columns."""
    import pyarrow as pa
    import pyarrow.compute as pc

    fits, filled = {name: set(_SIGNS) for name in names}, set[str]()
    for piece in table_pieces(path, names, form):
        for name in names:
            texts = cells_in(piece, name).dictionary
            texts = texts.filter(pc.invert(pc.is_in(texts, pa.array(CSV_MISSING))))
            filled |= {name} if len(texts) else set()
            found = {signs: pc.match_substring_regex(texts, _SIGNS[signs]) for signs in fits[name]}
            fits[name] = {signs for signs, are in found.items() if pc.all(are).as_py() is not False}
    columns = {signs: [name for name in names if name in filled and signs in fits[name]] for signs in _SIGNS}
    # Where commas stand between cells, "1,234" in quotes has one between thousands.
    best = max(_SIGNS, key=lambda signs: (len(columns[signs]), signs[0] != form.separator))
    return _declared(*best), columns[best]


def suggested_answers(path: Path, table: TableNames) -> tuple[dict[str, str], dict[str, object]]:
    """An answer for each column, as it would be typed, and how the file is written, from the rows of a public file.

    Parameters
    ----------
    path : the file, which its owner declared to be public
    table : the names of its columns
    """
    seen = {name: _Seen(table.types.get(name)) for name in table.names}
    written = dict[str, object]()
    if is_text_table(path):
        form = form_of(path, whole=True)
        signs, numbers = _signs_of(path, table.names, form)
        written = form.encoded | signs
        if signs:  # a private copy of the file has its numbers as programs write them
            (path,) = files_of(path, Schema({name: {"low": 0, "high": 1} for name in numbers}, table=written))
    for piece in table_pieces(path, table.names):
        for name, column in seen.items():
            for value, count in distinct_in(piece, name):
                column.add(value, count)
    return {name: SKIP if guessed_answer(name) == SKIP else column.answer() for name, column in seen.items()}, written
