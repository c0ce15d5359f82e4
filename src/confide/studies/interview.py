"""The questions that begin a study, in a terminal: one line for each column. No row is read for them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from confide.errors import ParameterError
from confide.features.canonical_labels import canonical_label, is_missing, na_is_a_code
from confide.features.cells import number_in
from confide.features.columns import shown_number
from confide.studies.counting import FEWEST_OF_A_CODE, TYPICAL_CODE
from confide.studies.drafts import (
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
    target_answer,
    typed,
)
from confide.studies.text_tables import DeclaredType, TableNames, table_pieces

_BACK = "<"
_PRIVATE = "private"
Answer = TypeVar("Answer")


class Terminal(Protocol):
    """Where questions are asked."""

    def ask(self, question: str, default: str) -> str:
        """What a person types; the default if it is nothing."""

    def say(self, text: str) -> None:
        """Show some text."""


@dataclass(frozen=True, slots=True)
class Interview:
    """Asks a person what is publicly known of a table.

    Parameters
    ----------
    terminal : where questions are asked
    table : the names of the columns
    suggested : answers for columns, by name, from the rows of a public file; nothing for a private one
    """

    terminal: Terminal
    table: TableNames
    suggested: Mapping[str, str]

    def schema(self, target: str | None, person: str | None) -> SchemaDraft:
        """Ask for the target and the columns.

        Parameters
        ----------
        target, person : columns that options named; None for those to be asked for
        """
        names = self.table.names
        self.terminal.say(self._list_of_names())
        left = tuple(name for name in names if name != person)
        if target is None:
            target = self._asked("Which column is predicted (name or number)?", guessed_target(left) or "", self._named)
        default = target_answer(self.suggested.get(target, ""))
        self.terminal.say(HELP_FOR_TARGETS)
        label = f'What does "{target}" hold?'

        def read(answer: str) -> dict[str, Any]:
            check_no_unclear_pair(answer, default)
            return described_target(target, answer)

        described = self._asked(label, default, read)
        columns = self._columns([name for name in left if name != target])
        return SchemaDraft(columns, described, person)

    def rows_of_a_person(self, given: int | None) -> int:
        """The largest number of rows of one person: what an option gave, or what is answered."""
        return given or self._asked("How many rows may one person have, at most?", "1", _positive)

    def person(self, given: int | None) -> tuple[int, str | None]:
        """The largest number of rows of one person, and the column that identifies persons, or None."""
        rows = self.rows_of_a_person(given)
        if rows == 1:
            return 1, None
        self.terminal.say(self._list_of_names())
        question = "Which column identifies the person (name or number; Enter: none)?"
        return rows, self._asked(question, "", lambda answer: self._named(answer) if answer else None)

    def study(self, study: StudyDraft) -> StudyDraft:
        """Ask for the settings."""
        question = f'About how many rows are there ("{_PRIVATE}" if nobody may know)?'
        rows = self._asked(question, str(study.n_rows), lambda text: None if text.lower() == _PRIVATE else _positive(text))
        bounds = None
        if rows is None:
            bounds = self._asked(
                "Between which public bounds does their number lie (LOW HIGH)?", "1000 1000000", _row_bounds
            )
        n_rows = study.n_rows if rows is None else rows
        study = replace(study, n_rows=n_rows, n_rows_bounds=bounds)
        if study.rho is not None:
            rho = self._asked("Rho of the fit (smaller is more private)?", f"{study.rho:g}", _amount)
            limit = self._asked("Rho of all releases together, the limit of the ledger?", f"{rho:g}", _amount)
            return replace(study, rho=rho, limit=limit)
        epsilon = self._asked("Epsilon of the fit (smaller is more private)?", f"{study.epsilon:g}", _amount)
        shown = "none" if study.delta is None else f"{study.delta:g}"
        delta = self._asked('Delta ("none" for pure differential privacy; else far below 1 / rows)?', shown, _delta)
        limit = self._asked("Epsilon of all releases together, the limit of the ledger?", f"{epsilon:g}", _amount)
        return replace(study, epsilon=epsilon, delta=delta, limit=limit)

    def _columns(self, names: list[str]) -> tuple[ColumnDraft, ...]:
        self.terminal.say(HELP_FOR_COLUMNS)
        answers: list[str] = []
        while len(answers) < len(names):
            name = names[len(answers)]
            guess = self.suggested.get(name) or self._guess(name, dict(zip(names, answers, strict=False)))
            answer = self.terminal.ask(f"{len(answers) + 1}/{len(names)} {name}", guess).strip()
            if answer == _BACK:
                del answers[-1:]
                continue
            try:
                if not answer or answer == "?":
                    raise ParameterError(HELP_FOR_COLUMNS)
                check_no_unclear_pair(answer, guess)
                self.terminal.say(f"    {_understood(described_column(name, answer))}")
            except ParameterError as error:
                self.terminal.say(f"    {error}")
                continue
            answers.append(answer)
        return tuple(ColumnDraft(name, described_column(name, answer)) for name, answer in zip(names, answers, strict=True))

    def _guess(self, name: str, earlier: Mapping[str, str]) -> str:
        """The answer for an earlier column of the same series, or what the name suggests to anybody."""
        own = series_of(name)
        series = [answer for other, answer in earlier.items() if own and series_of(other) == own]
        return series[-1] if series else guessed_answer(name, self.table.types.get(name))

    def _list_of_names(self) -> str:
        return ", ".join(f"{number} {name}" for number, name in enumerate(self.table.names, 1))

    def _asked(self, question: str, default: str, read: Callable[[str], Answer]) -> Answer:
        """What `read` makes of the answer. An answer that it refuses is asked for again."""
        while True:
            answer = self.terminal.ask(question, default).strip()
            try:
                return read(answer)
            except ParameterError as error:
                self.terminal.say(f"    {error}")

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
    if "low" in description:
        scale = ", on a logarithmic scale" if description.get("scale") else ""
        unit = f" {description['unit']}" if "unit" in description else ""
        return f"a number from {description['low']} to {description['high']}{unit}{scale}{gaps}"
    others = ", all others together" if description.get("other") else ""
    levels = {"categories": description["categories"]}
    return f"{len(description['categories'])} levels: {typed(levels)}{others}{gaps}"


def _positive(text: str) -> int:
    digits = text.replace(",", "").replace("_", "")
    if not digits.isdigit() or int(digits) < 1:
        raise ParameterError("give a whole number, at least 1.")
    return int(digits)


def _amount(text: str) -> float:
    try:
        amount = float(text)
    except ValueError:
        amount = 0.0
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


def _row_bounds(text: str) -> tuple[int, int]:
    parts = text.split()
    if len(parts) != 2:
        raise ParameterError("give two whole numbers, such as 1000 1000000.")
    low, high = _positive(parts[0]), _positive(parts[1])
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


@dataclass(slots=True)
class _Seen:
    """What was seen of one column so far. Of a column with many values only the ends and the mean are kept."""

    declared: DeclaredType | None
    levels: dict[str, None] = field(default_factory=dict)
    n_numbers: int = 0
    n_texts: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf
    missing: bool = False
    na: bool = False
    whole: bool = True
    set_aside: Counter[float] = field(default_factory=Counter)

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
        if number is None or math.isinf(number):
            self.n_texts += count
            return
        if TYPICAL_CODE.fullmatch(f"{number:.10g}"):
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
        self.set_aside.clear()
        return codes

    def answer(self) -> str:
        """The suggestion as it would be typed; "" if there is none."""
        if self.declared == "other" or not self.levels:
            return SKIP
        codes = self._without_codes()
        if self.na and na_is_a_code(self.levels):
            self.levels["NA"] = None
        elif self.na:
            self.missing = True
        few_codes = self.whole and len(self.levels) <= _MOST_CODES
        if self.n_numbers and not self.n_texts and not (few_codes and self.high - self.low <= _MOST_CODES):
            if self.low == self.high:
                return SKIP
            mean = self.total / self.n_numbers
            scale = {}
            if self.low == 0.0 and self.high > _LONG_TAIL * max(mean, 1.0):
                scale = {"scale": "log"}
            elif self.low > 0.0 and self.high > _LONG_POSITIVE_TAIL * mean:
                scale = {"scale": "log10"}
            bounds = {"low": shown_number(self.low), "high": shown_number(self.high), "missing": codes or self.missing}
            return typed(bounds | scale)
        if len(self.levels) > _MOST_LEVELS:
            return SKIP
        ordered = sorted(self.levels, key=lambda label: ((label != "NA" and number_in(label)) or 0.0, label))
        if len(ordered) == 1:
            return SKIP
        return typed({"categories": ordered, "missing": codes or self.missing, "other": len(self.levels) > 2})


def suggested_answers(path: Path, table: TableNames) -> dict[str, str]:
    """An answer for each column, as it would be typed, from the rows of a public file.

    Parameters
    ----------
    path : the file, which its owner declared to be public
    table : the names of its columns
    """
    seen = {name: _Seen(table.types.get(name)) for name in table.names}
    for piece in table_pieces(path, table.names):
        for name in table.names:
            for value, count in piece.distinct(name):
                seen[name].add(value, count)
    left_out = {name for name in table.names if guessed_answer(name) == SKIP}
    return {name: SKIP if name in left_out else column.answer() for name, column in seen.items()}
